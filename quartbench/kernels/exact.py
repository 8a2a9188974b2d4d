"""Kernels that say how far rounding can have taken them: sums in twice the working precision, with proven bounds.

Every result is a pair hi + lo and a bound: the exact number lies within ``error`` of hi + lo, whatever the data. Two
error-free transformations carry it (Dekker; Knuth; Ogita, Rump & Oishi, "Accurate sum and dot product", 2005):

    a + b = s + t   with s = fl(a + b):   z = s − a,  t = (a − (s − z)) + (b − z)
    a · b = p + f   with p = fl(a · b):   f = fma(a, b, −p)

All is strict: no operation is reordered or fused but where ``fma`` is written. LLVM's ``fma`` never splits into a
product and a sum; where the processor has none, the C library's takes its place, slowly.

**The bound of a sum of N products** (wᵢ + w'ᵢ)vᵢ, |w'ᵢ| ≤ 2u|wᵢ|, u = 2⁻⁵³, with P = Σ|wᵢvᵢ| and Nu ≤ 1e-3. Write
wᵢvᵢ = pᵢ + fᵢ. The second part gᵢ = fl(fᵢ + w'ᵢvᵢ) errs by at most u(|fᵢ| + |w'ᵢvᵢ|) ≤ 3.1u²|pᵢ|, and |gᵢ| ≤
3.1u|pᵢ|. Partial sums of the pᵢ, in any order, are at most 1.01P, so each of the N sums leaves |tᵢ| ≤ 1.01uP. lo adds
up all gᵢ and tᵢ; each goes through at most N + 1 additions, so lo errs by at most 1.01(N + 1)u · Σ(|gᵢ| + |tᵢ|) ≤
1.01(N + 1)u · (1.01N + 3.2)uP. All in all the error is below 1.1(N + 4)²u²P. P itself is summed with a relative error
of at most 1.01(N + 1)u. Where a product is below 2⁻⁹⁶⁹ its fᵢ need not be a number: it then errs by at most 2⁻¹⁰⁷⁴,
and so may any later product that is tiny. Hence

    error = 1.25(N + 8)²u²P + (N + 8)2⁻¹⁰¹⁰.

**First stage.** A plain sum of N products errs by at most 1.01(d + 1)uP + N2⁻¹⁰⁷⁴, if no product goes through more
than d additions: N of them in any order; in the adjoints here far fewer, as blocks are summed first. See the
``bounded`` kernels.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numba import config, prange, types
from numba.extending import intrinsic

from .jit import kernel, parallel_kernel, strict_kernel, strict_parallel_kernel

#: The unit roundoff: fl(a ∘ b) = (a ∘ b)(1 + δ), |δ| ≤ u.
U = 2.0**-53

#: What products that underflow can hide, times the number of operations: above 2⁻¹⁰²² too, the least normal number, as
#: some libraries make a whole process flush smaller ones to zero. Far below any data.
TINY = 2.0**-1010

#: Sums that run side by side in one row: enough for the vector units, and for the latency of an addition.
LANES = 16

#: Columns up to which a lane has a row of its own: 500 × 20 takes 10 µs so and 26 otherwise, 2000 × 100 165 and 122.
NARROW = 32

#: Squared norms outside of these would leave the range of floating point in the steps of ``dual_power``.
LEAST, LARGEST = 2.0**-480, 2.0**480

#: Terms whose powers are formed together.
TERMS = 256

#: The bits of q, as an integer, are almost linear in log q. So those of q^{−1/3} are about 4/3(1023 − 0.045)·2⁵² less a
#: third of those of q, and a third is 87381/2¹⁸: right to some 5 %.
THIRD, SHIFT, OFFSET = 87_381, 18, int(4.0 / 3.0 * (1023.0 - 0.0450466) * 2.0**52)


if config.DISABLE_JIT:

    def fma(a, b, c):
        """Return ab + c, rounded once."""
        return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))

else:

    @intrinsic
    def fma(_context, _a, _b, _c):
        """Return ab + c, rounded once."""

        def generate(_target, builder, _signature, arguments):
            return builder.fma(*arguments)

        return types.float64(types.float64, types.float64, types.float64), generate


# One step of a sum ----------------------------------------------------------------------------------------------------


@strict_kernel
def _add_pair(s, e, p, f):
    """Return the pair (s, e) with (p, f) added to it: exact in the first parts, one rounding each in the second."""
    t = s + p
    z = t - s
    return t, e + (((s - (t - z)) + (p - z)) + f)


@strict_kernel
def _add_product(s, e, size, w, w_low, v):
    """Return the pair (s, e) with (w + w_low)·v added to it, and size + |wv|."""
    p = w * v
    s, e = _add_pair(s, e, p, fma(w_low, v, fma(w, v, -p)))
    return s, e, size + abs(p)


@strict_kernel
def _normal(s, e):
    """Return the same sum as a pair whose second part is the rounding of the first."""
    t = s + e
    z = t - s
    return t, (s - (t - z)) + (e - z)


@strict_kernel
def _bound(count, size):
    """Return the error of a sum of ``count`` products of total size ``size``: see the head of this file."""
    steps = count + 8.0
    return 1.25 * (steps * U) * (steps * U) * size + steps * TINY


@strict_kernel
def _finish(s, e, size, count, hi, lo, error, at):
    hi[at], lo[at] = _normal(s, e)
    error[at] = _bound(count, size)


# Dense rows -----------------------------------------------------------------------------------------------------------


@strict_kernel
def _dots_narrow(rows, start, stop, x, hi, lo, error):
    """Write the products of as many rows as make blocks of LANES, one row a lane; return the first row that is left."""
    n = rows.shape[1]
    block, sums = np.empty((n, LANES)), np.empty(3 * LANES)
    i = start
    while i + LANES <= stop:
        for k in range(LANES):
            for j in range(n):
                block[j, k] = rows[i + k, j]
        for k in range(3 * LANES):
            sums[k] = 0.0
        for j in range(n):
            v = x[j]
            for k in range(LANES):
                s, e, size = sums[k], sums[LANES + k], sums[2 * LANES + k]
                sums[k], sums[LANES + k], sums[2 * LANES + k] = _add_product(s, e, size, v, 0.0, block[j, k])
        for k in range(LANES):
            _finish(sums[k], sums[LANES + k], sums[2 * LANES + k], n, hi, lo, error, i + k)
        i += LANES
    return i


@strict_kernel
def _dots(rows, start, stop, x, hi, lo, error):
    """Write the products of rows[start:stop] with x, to entries start to stop."""
    n = rows.shape[1]
    if n <= NARROW:
        start = _dots_narrow(rows, start, stop, x, hi, lo, error)
    sums = np.empty(3 * LANES)  # one array: parts of several would have to be compared with each other at run time
    for i in range(start, stop):
        for k in range(3 * LANES):
            sums[k] = 0.0
        j = 0
        while j + 2 * LANES <= n:
            for k in range(LANES):
                s, e, size = sums[k], sums[LANES + k], sums[2 * LANES + k]
                s, e, size = _add_product(s, e, size, x[j + k], 0.0, np.float64(rows[i, j + k]))
                v = np.float64(rows[i, j + LANES + k])
                s, e, size = _add_product(s, e, size, x[j + LANES + k], 0.0, v)
                sums[k], sums[LANES + k], sums[2 * LANES + k] = s, e, size
            j += 2 * LANES
        while j < n:
            for k in range(min(LANES, n - j)):
                s, e, size = sums[k], sums[LANES + k], sums[2 * LANES + k]
                s, e, size = _add_product(s, e, size, x[j + k], 0.0, np.float64(rows[i, j + k]))
                sums[k], sums[LANES + k], sums[2 * LANES + k] = s, e, size
            j += LANES
        half = LANES // 2
        while half > 0:
            for k in range(half):
                s, e = _add_pair(sums[k], sums[LANES + k], sums[half + k], sums[LANES + half + k])
                sums[k], sums[LANES + k] = s, e
                sums[2 * LANES + k] += sums[2 * LANES + half + k]
            half //= 2
        _finish(sums[0], sums[LANES], sums[2 * LANES], n + LANES, hi, lo, error, i)


@strict_kernel
def _add(rows, start, stop, w, w_low, hi, lo, size):
    """Add Σ (w[i] + w_low[i])·rows[i] over start ≤ i < stop to the pairs, and the absolute products to size."""
    n = rows.shape[1]
    i = start
    while i + 4 <= stop:
        a, b, c, d = w[i], w[i + 1], w[i + 2], w[i + 3]
        a_low, b_low, c_low, d_low = w_low[i], w_low[i + 1], w_low[i + 2], w_low[i + 3]
        for j in range(n):
            s, e, t = hi[j], lo[j], size[j]
            s, e, t = _add_product(s, e, t, a, a_low, np.float64(rows[i, j]))
            s, e, t = _add_product(s, e, t, b, b_low, np.float64(rows[i + 1, j]))
            s, e, t = _add_product(s, e, t, c, c_low, np.float64(rows[i + 2, j]))
            s, e, t = _add_product(s, e, t, d, d_low, np.float64(rows[i + 3, j]))
            hi[j], lo[j], size[j] = s, e, t
        i += 4
    while i < stop:
        a, a_low = w[i], w_low[i]
        for j in range(n):
            hi[j], lo[j], size[j] = _add_product(hi[j], lo[j], size[j], a, a_low, np.float64(rows[i, j]))
        i += 1


@strict_kernel
def _less(c, hi, lo, size, count):
    """Return c less the sum of all parts (one part a row), with its bound; ``count`` products went into the parts."""
    out_hi, out_lo, error = np.empty(c.size), np.empty(c.size), np.empty(c.size)
    for j in range(c.size):
        s, e, total = c[j], 0.0, abs(c[j])
        for p in range(hi.shape[0]):
            s, e = _add_pair(s, e, -hi[p, j], -lo[p, j])
            total += size[p, j]
        _finish(s, e, total, count + hi.shape[0] + 1, out_hi, out_lo, error, j)
    return out_hi, out_lo, error


@strict_kernel
def image(rows, x):
    """Return Mx as pairs with their bounds: hi, lo, error."""
    hi, lo, error = np.empty(rows.shape[0]), np.empty(rows.shape[0]), np.empty(rows.shape[0])
    _dots(rows, 0, rows.shape[0], x, hi, lo, error)
    return hi, lo, error


@strict_parallel_kernel
def image_parallel(rows, x, bounds):
    """Return Mx as pairs with their bounds; thread p reads the rows between bounds[p] and bounds[p+1]."""
    hi, lo, error = np.empty(rows.shape[0]), np.empty(rows.shape[0]), np.empty(rows.shape[0])
    for p in prange(bounds.size - 1):
        _dots(rows, bounds[p], bounds[p + 1], x, hi, lo, error)
    return hi, lo, error


@strict_kernel
def residual(rows, c, w, w_low):
    """Return c − Mᵀ(w + w_low) as pairs with their bounds; |w_low| must be at most 2u|w|."""
    sums = np.zeros((3, 1, rows.shape[1]))
    _add(rows, 0, rows.shape[0], w, w_low, sums[0, 0], sums[1, 0], sums[2, 0])
    return _less(c, sums[0], sums[1], sums[2], rows.shape[0])


@strict_parallel_kernel
def residual_parallel(rows, c, w, w_low, bounds):
    """Return c − Mᵀ(w + w_low) as pairs with their bounds; each thread sums into vectors of its own."""
    sums = np.zeros((3, bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _add(rows, bounds[p], bounds[p + 1], w, w_low, sums[0, p], sums[1, p], sums[2, p])
    return _less(c, sums[0], sums[1], sums[2], rows.shape[0])


# Complex rows, as interleaved reals: a real row with two right-hand sides (see ``rows``) ------------------------------


@strict_kernel
def _turn(x):
    """Return Jx for an interleaved complex x: (re, im) becomes (im, −re)."""
    out = np.empty_like(x)
    for k in range(0, x.size, 2):
        out[k] = x[k + 1]
        out[k + 1] = -x[k]
    return out


@strict_kernel
def _less_complex(c, first, second, count):
    """Return c − (first + i·second), interleaved; ``first`` and ``second`` hold the hi, lo and size of all parts."""
    out_hi, out_lo, error = np.empty(c.size), np.empty(c.size), np.empty(c.size)
    for j in range(c.size):
        other, sign = (j + 1, -1.0) if j % 2 == 0 else (j - 1, 1.0)
        s, e, total = c[j], 0.0, abs(c[j])
        for p in range(first.shape[1]):
            s, e = _add_pair(s, e, -first[0, p, j], -first[1, p, j])
            s, e = _add_pair(s, e, -sign * second[0, p, other], -sign * second[1, p, other])
            total += first[2, p, j] + second[2, p, other]
        _finish(s, e, total, 2 * count + 2 * first.shape[1] + 1, out_hi, out_lo, error, j)
    return out_hi, out_lo, error


@strict_kernel
def image_complex(rows, x):
    """Return the pairs (re, im) of ⟨qᵢ,x⟩, interleaved: hi, lo, error."""
    size = 2 * rows.shape[0]
    hi, lo, error = np.empty(size), np.empty(size), np.empty(size)
    _dots(rows, 0, rows.shape[0], x, hi[0::2], lo[0::2], error[0::2])
    _dots(rows, 0, rows.shape[0], _turn(x), hi[1::2], lo[1::2], error[1::2])
    return hi, lo, error


@strict_parallel_kernel
def image_complex_parallel(rows, x, bounds):
    """Return the pairs (re, im) of ⟨qᵢ,x⟩, interleaved, one share of the rows a thread."""
    size = 2 * rows.shape[0]
    hi, lo, error = np.empty(size), np.empty(size), np.empty(size)
    turned = _turn(x)
    for p in prange(bounds.size - 1):
        _dots(rows, bounds[p], bounds[p + 1], x, hi[0::2], lo[0::2], error[0::2])
        _dots(rows, bounds[p], bounds[p + 1], turned, hi[1::2], lo[1::2], error[1::2])
    return hi, lo, error


@strict_kernel
def residual_complex(rows, c, w, w_low):
    """Return c − Σ (w + w_low)ᵢqᵢ, interleaved, as pairs with their bounds."""
    first, second = np.zeros((3, 1, rows.shape[1])), np.zeros((3, 1, rows.shape[1]))
    m = rows.shape[0]
    _add(rows, 0, m, w[0::2], w_low[0::2], first[0, 0], first[1, 0], first[2, 0])
    _add(rows, 0, m, w[1::2], w_low[1::2], second[0, 0], second[1, 0], second[2, 0])
    return _less_complex(c, first, second, m)


@strict_parallel_kernel
def residual_complex_parallel(rows, c, w, w_low, bounds):
    """Return c − Σ (w + w_low)ᵢqᵢ, interleaved, as pairs with their bounds; threads have sums of their own."""
    first, second = np.zeros((3, bounds.size - 1, rows.shape[1])), np.zeros((3, bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        start, stop = bounds[p], bounds[p + 1]
        _add(rows, start, stop, w[0::2], w_low[0::2], first[0, p], first[1, p], first[2, p])
        _add(rows, start, stop, w[1::2], w_low[1::2], second[0, p], second[1, p], second[2, p])
    return _less_complex(c, first, second, rows.shape[0])


# Sparse rows ----------------------------------------------------------------------------------------------------------


@strict_kernel
def _dots_sparse(data, indices, indptr, start, stop, x, hi, lo, error):
    for i in range(start, stop):
        s = e = size = 0.0
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            s, e, size = _add_product(s, e, size, x[np.uintp(indices[k])], 0.0, np.float64(data[k]))
        _finish(s, e, size, indptr[i + 1] - indptr[i], hi, lo, error, i)


@strict_kernel
def _add_sparse(data, indices, indptr, start, stop, w, w_low, hi, lo, size):
    for i in range(start, stop):
        a, a_low = w[i], w_low[i]
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            j = np.uintp(indices[k])
            hi[j], lo[j], size[j] = _add_product(hi[j], lo[j], size[j], a, a_low, np.float64(data[k]))


@strict_kernel
def image_sparse(data, indices, indptr, x):
    """Return Mx as pairs with their bounds: hi, lo, error."""
    m = indptr.size - 1
    hi, lo, error = np.empty(m), np.empty(m), np.empty(m)
    _dots_sparse(data, indices, indptr, 0, m, x, hi, lo, error)
    return hi, lo, error


@strict_parallel_kernel
def image_sparse_parallel(data, indices, indptr, x, bounds):
    """Return Mx as pairs with their bounds, one share of the rows a thread."""
    m = indptr.size - 1
    hi, lo, error = np.empty(m), np.empty(m), np.empty(m)
    for p in prange(bounds.size - 1):
        _dots_sparse(data, indices, indptr, bounds[p], bounds[p + 1], x, hi, lo, error)
    return hi, lo, error


@strict_kernel
def residual_sparse(data, indices, indptr, c, w, w_low):
    """Return c − Mᵀ(w + w_low) as pairs with their bounds."""
    sums = np.zeros((3, 1, c.size))
    _add_sparse(data, indices, indptr, 0, indptr.size - 1, w, w_low, sums[0, 0], sums[1, 0], sums[2, 0])
    return _less(c, sums[0], sums[1], sums[2], indptr.size - 1)


@strict_parallel_kernel
def residual_sparse_parallel(data, indices, indptr, c, w, w_low, bounds):
    """Return c − Mᵀ(w + w_low) as pairs with their bounds; each thread sums into vectors of its own."""
    sums = np.zeros((3, bounds.size - 1, c.size))
    for p in prange(bounds.size - 1):
        start, stop = bounds[p], bounds[p + 1]
        _add_sparse(data, indices, indptr, start, stop, w, w_low, sums[0, p], sums[1, p], sums[2, p])
    return _less(c, sums[0], sums[1], sums[2], indptr.size - 1)


# Graph edges: differences need no products, and one of two numbers is a pair without error ----------------------------


@strict_kernel
def _differences(heads, tails, start, stop, x, hi, lo):
    d = x.shape[1]
    for e in range(start, stop):
        i, j = np.uintp(heads[e]), np.uintp(tails[e])
        for k in range(d):
            hi[e * d + k], lo[e * d + k] = _add_pair(x[i, k], 0.0, -x[j, k], 0.0)


@strict_kernel
def image_edges(heads, tails, x):
    """Return the stacked differences x_head − x_tail as pairs, exactly: hi, lo, error (zeros)."""
    size = heads.size * x.shape[1]
    hi, lo = np.empty(size), np.empty(size)
    _differences(heads, tails, 0, heads.size, x, hi, lo)
    return hi, lo, np.zeros(size)


@strict_parallel_kernel
def image_edges_parallel(heads, tails, x, bounds):
    """Return the stacked differences x_head − x_tail as pairs, exactly, one share of the edges a thread."""
    size = heads.size * x.shape[1]
    hi, lo = np.empty(size), np.empty(size)
    for p in prange(bounds.size - 1):
        _differences(heads, tails, bounds[p], bounds[p + 1], x, hi, lo)
    return hi, lo, np.zeros(size)


@strict_kernel
def residual_edges(heads, tails, c, w, w_low):
    """Return c less the sum of ± (w + w_low) at each vertex, c of N × d, flat, as pairs with their bounds."""
    d = c.shape[1]
    sums = np.zeros((3, 1, c.size))
    hi, lo, size = sums[0, 0], sums[1, 0], sums[2, 0]
    most = 0
    degrees = np.zeros(c.shape[0], dtype=np.int64)
    for e in range(heads.size):
        i, j = np.uintp(heads[e]), np.uintp(tails[e])
        degrees[i] += 1
        degrees[j] += 1
        most = max(most, degrees[i], degrees[j])
        for k in range(d):
            v, v_low = w[e * d + k], w_low[e * d + k]
            a, b = i * np.uintp(d) + np.uintp(k), j * np.uintp(d) + np.uintp(k)
            hi[a], lo[a] = _add_pair(hi[a], lo[a], v, v_low)
            hi[b], lo[b] = _add_pair(hi[b], lo[b], -v, -v_low)
            size[a] += abs(v)
            size[b] += abs(v)
    return _less(c.reshape(-1), sums[0], sums[1], sums[2], most)


# First stage: plain sums, and the sums of absolute products that bound their rounding, in one read of the rows --------


@kernel
def _bounded_dots(rows, start, stop, x, out, error):
    n = rows.shape[1]
    factor = 1.02 * (n + 2.0) * U  # the sum of absolute products may be short by 1.01(n + 1)u of itself
    for i in range(start, stop):
        total = size = 0.0
        for j in range(n):
            p = rows[i, j] * x[j]
            total += p
            size += abs(p)
        out[i] = total
        error[i] = factor * size + n * TINY


@kernel
def image_bounded(rows, x):
    """Return Mx, summed as fast as can be, and for each entry a bound on its rounding."""
    out, error = np.empty(rows.shape[0]), np.empty(rows.shape[0])
    _bounded_dots(rows, 0, rows.shape[0], x, out, error)
    return out, error


@parallel_kernel
def image_bounded_parallel(rows, x, bounds):
    """Return Mx and bounds on its rounding, one share of the rows a thread."""
    out, error = np.empty(rows.shape[0]), np.empty(rows.shape[0])
    for p in prange(bounds.size - 1):
        _bounded_dots(rows, bounds[p], bounds[p + 1], x, out, error)
    return out, error


#: Rows of the blocks that are summed by themselves before they join the total: 64 + m/256 additions instead of m/4.
BLOCK = 256


@strict_kernel
def _bounded_add(rows, start, stop, w, total, size):
    """Add Σ w[i]·rows[i] to total and Σ |w[i]·rows[i]| to size, blocks of rows by themselves first."""
    n = rows.shape[1]
    part, part_size = np.empty(n), np.empty(n)
    for first in range(start, stop, BLOCK):
        end = min(first + BLOCK, stop)
        part[:] = 0.0
        part_size[:] = 0.0
        i = first
        while i + 4 <= end:
            a, b, c, d = w[i], w[i + 1], w[i + 2], w[i + 3]
            for j in range(n):
                e, f, g, h = a * rows[i, j], b * rows[i + 1, j], c * rows[i + 2, j], d * rows[i + 3, j]
                part[j] += (e + f) + (g + h)
                part_size[j] += (abs(e) + abs(f)) + (abs(g) + abs(h))
            i += 4
        while i < end:
            for j in range(n):
                e = w[i] * rows[i, j]
                part[j] += e
                part_size[j] += abs(e)
            i += 1
        for j in range(n):
            total[j] += part[j]
            size[j] += part_size[j]


@strict_kernel
def _bounded_less(c, total, size, longest):
    """Return c less all parts and the bound: a product passes BLOCK/4 + 5 additions, then one a block and part."""
    out, error = np.empty(c.size), np.empty(c.size)
    additions = BLOCK // 4 + 5 + longest // BLOCK + 1 + total.shape[0] + 1
    factor = 1.02 * (additions + 2.0) * U
    for j in range(c.size):
        sum_, size_ = 0.0, 0.0
        for p in range(total.shape[0]):
            sum_ += total[p, j]
            size_ += size[p, j]
        out[j] = c[j] - sum_
        error[j] = factor * size_ + 1.01 * U * abs(out[j]) + 8.0 * longest * TINY
    return out, error


@strict_kernel
def residual_bounded(rows, c, w):
    """Return c − Mᵀw and for each entry a bound on its rounding."""
    sums = np.zeros((2, 1, rows.shape[1]))
    _bounded_add(rows, 0, rows.shape[0], w, sums[0, 0], sums[1, 0])
    return _bounded_less(c, sums[0], sums[1], rows.shape[0])


@strict_parallel_kernel
def residual_bounded_parallel(rows, c, w, bounds):
    """Return c − Mᵀw and bounds on its rounding; each thread sums into vectors of its own."""
    sums = np.zeros((2, bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _bounded_add(rows, bounds[p], bounds[p + 1], w, sums[0, p], sums[1, p])
    return _bounded_less(c, sums[0], sums[1], rows.shape[0])


# Vectors --------------------------------------------------------------------------------------------------------------


@strict_kernel
def dot(c, x):
    """Return ⟨c,x⟩ as a pair with its bound: hi, lo, error."""
    s = e = size = 0.0
    for j in range(c.size):
        s, e, size = _add_product(s, e, size, c[j], 0.0, x[j])
    s, e = _normal(s, e)
    return s, e, _bound(c.size, size)


@strict_kernel
def total(x):
    """Return the sum of x as a pair with its bound: hi, lo, error."""
    s = e = size = 0.0
    for j in range(x.size):
        s, e = _add_pair(s, e, x[j], 0.0)
        size += abs(x[j])
    s, e = _normal(s, e)
    return s, e, _bound(x.size, size)


@strict_kernel
def norm(hi, lo):
    """Return ‖hi + lo‖₂ as a pair with its bound; |lo| must be at most 2u|hi|.

    (h + l)² = h² + 2hl + l² = p + fl(f + 2hl) up to a rounding of 5.1u²p and l² ≤ 4.1u²p; the sum adds ``_bound``.
    From Q = q + q' the root is r + (Q − r²)/(2r), r = fl(√q): Newton's step from a root that is right to 1.6u, so it
    is above √Q by at most 1.3u²r, and with the roundings of its numerator (3.1u²q) and of itself (3.2u²r) it errs by
    less than 16u²r.
    """
    s = e = 0.0
    for j in range(hi.size):
        p = hi[j] * hi[j]
        s, e = _add_pair(s, e, p, fma(2.0 * hi[j], lo[j], fma(hi[j], hi[j], -p)))
    if s <= 0.0:
        return 0.0, 0.0, hi.size * math.sqrt(TINY)
    squares = _bound(hi.size, s) + 32.0 * U * U * s
    s, e = _normal(s, e)
    r = math.sqrt(s)
    correction = (fma(-r, r, s) + e) / (2.0 * r)
    r, correction = _normal(r, correction)
    return r, correction, 1.01 * squares / r + 16.0 * U * U * r + hi.size * math.sqrt(TINY)


@strict_kernel
def norm_upper(hi, lo, error):
    """Return a number that is at least the norm of every vector within ``error`` of hi + lo."""
    total_ = 0.0
    rest = 0.0
    for j in range(hi.size):
        v = abs(hi[j] + lo[j]) + error[j]
        total_, rest = _add_pair(total_, rest, v * v, 0.0)
    # A square errs by 5u, compensated summing by 2u more, the root and what follows by 3u: in the root 7u.
    return math.sqrt(total_ + rest) * (1.0 + 10.0 * U) + hi.size * math.sqrt(TINY)


@strict_kernel
def quartic(hi, lo, error, rank):
    """Return a number that is at least Σ‖sᵢ‖⁴ for every s within ``error`` of hi + lo.

    |s| is formed with two roundings, its square with 5, the sum over a term with rank + 4, the fourth power with
    2·rank + 9, the compensated total and the last product with 4.
    """
    sum_ = rest = 0.0
    for i in range(hi.size // rank):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            v = abs(hi[k] + lo[k]) + error[k]
            q += v * v
        sum_, rest = _add_pair(sum_, rest, q * q, 0.0)
    return (sum_ + rest) * (1.0 + (2.0 * rank + 16.0) * U) + hi.size * TINY


@strict_kernel
def dual_power(hi, lo, rank):
    """Return a number that is at least Σ‖λᵢ‖^{4/3} for λ = hi + lo, and little more; inf where λ is out of range.

    With q = ‖λᵢ‖², any t > 0 and g = q²/t³: q^{2/3} = t·g^{1/3} ≤ t(1 + (g − 1)/3), as the cube root is concave. So
    no power function has to be trusted: t = qy, where y ≈ q^{−1/3} comes from the bits of q and two steps of fourth
    order, good to 1e-15, and the bound is short of the true power by the rounding of g (4.1u, a third of it) and of
    the last sum. q carries rank + 3 roundings, of which the power feels two thirds. q below 2⁻⁴⁸⁰ counts as 2⁻⁴⁸⁰.
    """
    terms = hi.size // rank
    squares, powers = np.empty(TERMS), np.empty(TERMS)
    bits, power_bits = squares.view(np.int64), powers.view(np.int64)
    sum_ = rest = largest = 0.0
    for first in range(0, terms, TERMS):
        count = min(TERMS, terms - first)
        for i in range(count):
            q = 0.0
            for k in range((first + i) * rank, (first + i + 1) * rank):
                v = hi[k] + lo[k]
                q += v * v
            largest = max(largest, q)
            squares[i] = max(q, LEAST)
        for i in range(count):
            power_bits[i] = OFFSET - (bits[i] >> SHIFT) * THIRD
        for i in range(count):
            q, y = squares[i], powers[i]
            d = 1.0 - q * y * y * y
            y += y * d * (1.0 / 3.0 + d * (2.0 / 9.0 + d * (14.0 / 81.0)))
            d = 1.0 - q * y * y * y
            y += y * d * (1.0 / 3.0 + d * (2.0 / 9.0 + d * (14.0 / 81.0)))
            t = q * y
            g = (q / t) * (q / t) / t
            powers[i] = t + t * ((g - 1.0) / 3.0)
        for i in range(count):
            sum_, rest = _add_pair(sum_, rest, powers[i], 0.0)
    if not largest <= LARGEST:
        return np.inf
    return (sum_ + rest) * (1.0 + (rank + 10.0) * U)


@strict_kernel
def cubic_weights(hi, lo, rank):
    """Return 4‖sᵢ‖²sᵢ for s = hi + lo as pairs, right to some 30 digits: a dual point, which may be any.

    Its residual is what needs a bound, not how it was found.
    """
    out_hi, out_lo = np.empty_like(hi), np.empty_like(hi)
    for i in range(hi.size // rank):
        q = e = 0.0
        for k in range(i * rank, (i + 1) * rank):
            p = hi[k] * hi[k]
            q, e = _add_pair(q, e, p, fma(2.0 * hi[k], lo[k], fma(hi[k], hi[k], -p)))
        q, e = _normal(4.0 * q, 4.0 * e)
        for k in range(i * rank, (i + 1) * rank):
            p = q * hi[k]
            out_hi[k], out_lo[k] = _normal(p, fma(q, lo[k], fma(e, hi[k], fma(q, hi[k], -p))))
    return out_hi, out_lo


@strict_kernel
def add(hi, lo, x):
    """Return the pairs hi + lo with the numbers x added, |lo| ≤ u|hi| again."""
    out_hi, out_lo = np.empty_like(hi), np.empty_like(hi)
    for j in range(hi.size):
        s, e = _add_pair(hi[j], lo[j], x[j], 0.0)
        out_hi[j], out_lo[j] = _normal(s, e)
    return out_hi, out_lo


@strict_kernel
def subtree_sums(order, parents, loads):
    """Return for each vertex the sum of the nonnegative ``loads`` (N × d) of its subtree, never too small.

    ``order`` lists the vertices of a tree, each after its parent; the root is its own parent. What leaves a vertex
    along the edge to its parent is at most its sum, if the loads bound what enters. A sum of k numbers is short by at
    most ku.
    """
    out = loads.copy()
    for at in range(order.size - 1, 0, -1):
        i = order[at]
        for k in range(out.shape[1]):
            out[parents[i], k] += out[i, k]
    return out * (1.0 + 1.01 * (order.size + 2.0) * U)
