"""Kernels on stacked dense rows, real (float64, float32) and complex: one read of the rows an operation.

A block of rows is read from memory once; its image, its weights and its share of the gradient are formed while it is
in cache. Eight rows advance together, so that x (or the gradient) is loaded once for eight rows and the sums run in
eight independent chains. Sums are always in float64.

Complex rows are read as interleaved reals. With J(re, im) = (im, −re), ⟨q,x⟩ = (row·x) + i (row·Jx), and adding w q to
a gradient adds Re(w)·row to one accumulator and Im(w)·row to a second one, to be turned by i once at the end: a
complex row is a real row with two right-hand sides, and the image of a term is the pair (re, im) of a rank-2 term.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .images import gradient_weights, hessian_weights
from .jit import kernel, parallel_kernel

#: Doubles of a row block: it must stay in a core's cache between its two uses.
BLOCK = 16_384

#: Doubles of rows that lie in a cache themselves: eight of them are then used twice at once, from registers on. The
#: loops are those of ``_dots`` and ``_add`` written out: as functions of eight numbers they took 12 to 37 % longer
#: (n ≤ 100).
CACHED = 1 << 20


@kernel
def _block_terms(width, rank):
    """Return how many terms make a row block: a multiple of eight rows, about 128 KB."""
    rows = max(8, min(64, BLOCK // max(width, 1)))
    return max(1, (rows // 8) * 8 // rank)


@kernel
def _dots(rows, start, stop, x, out):
    """Write the products of rows[start:stop] with x to out[:stop-start]."""
    n = rows.shape[1]
    i = start
    while i + 8 <= stop:
        a = b = c = d = e = f = g = h = 0.0
        for j in range(n):
            v = x[j]
            a += rows[i, j] * v
            b += rows[i + 1, j] * v
            c += rows[i + 2, j] * v
            d += rows[i + 3, j] * v
            e += rows[i + 4, j] * v
            f += rows[i + 5, j] * v
            g += rows[i + 6, j] * v
            h += rows[i + 7, j] * v
        k = i - start
        out[k] = a
        out[k + 1] = b
        out[k + 2] = c
        out[k + 3] = d
        out[k + 4] = e
        out[k + 5] = f
        out[k + 6] = g
        out[k + 7] = h
        i += 8
    while i < stop:
        a = 0.0
        for j in range(n):
            a += rows[i, j] * x[j]
        out[i - start] = a
        i += 1


@kernel
def _add(rows, start, stop, w, out):
    """Add Σ w[i-start]·rows[i] over start ≤ i < stop to out."""
    n = rows.shape[1]
    i = start
    while i + 8 <= stop:
        k = i - start
        a, b, c, d = w[k], w[k + 1], w[k + 2], w[k + 3]
        e, f, g, h = w[k + 4], w[k + 5], w[k + 6], w[k + 7]
        for j in range(n):
            out[j] += ((a * rows[i, j] + b * rows[i + 1, j]) + (c * rows[i + 2, j] + d * rows[i + 3, j])) + (
                (e * rows[i + 4, j] + f * rows[i + 5, j]) + (g * rows[i + 6, j] + h * rows[i + 7, j])
            )
        i += 8
    while i < stop:
        a = w[i - start]
        for j in range(n):
            out[j] += a * rows[i, j]
        i += 1


@kernel
def _dots_pair(rows, start, stop, x, y, out):
    """Write (row·x, row·y) for rows[start:stop] to consecutive entries of out."""
    n = rows.shape[1]
    i = start
    while i + 4 <= stop:
        a = b = c = d = e = f = g = h = 0.0
        for j in range(n):
            v = x[j]
            w = y[j]
            a += rows[i, j] * v
            b += rows[i, j] * w
            c += rows[i + 1, j] * v
            d += rows[i + 1, j] * w
            e += rows[i + 2, j] * v
            f += rows[i + 2, j] * w
            g += rows[i + 3, j] * v
            h += rows[i + 3, j] * w
        k = 2 * (i - start)
        out[k] = a
        out[k + 1] = b
        out[k + 2] = c
        out[k + 3] = d
        out[k + 4] = e
        out[k + 5] = f
        out[k + 6] = g
        out[k + 7] = h
        i += 4
    while i < stop:
        a = b = 0.0
        for j in range(n):
            a += rows[i, j] * x[j]
            b += rows[i, j] * y[j]
        out[2 * (i - start)] = a
        out[2 * (i - start) + 1] = b
        i += 1


@kernel
def _add_pair(rows, start, stop, w, first, second):
    """Add Σ w[2k]·row to first and Σ w[2k+1]·row to second."""
    n = rows.shape[1]
    i = start
    while i + 4 <= stop:
        k = 2 * (i - start)
        a, b, c, d = w[k], w[k + 1], w[k + 2], w[k + 3]
        e, f, g, h = w[k + 4], w[k + 5], w[k + 6], w[k + 7]
        for j in range(n):
            p, q, r, s = rows[i, j], rows[i + 1, j], rows[i + 2, j], rows[i + 3, j]
            first[j] += (a * p + c * q) + (e * r + g * s)
            second[j] += (b * p + d * q) + (f * r + h * s)
        i += 4
    while i < stop:
        a, b = w[2 * (i - start)], w[2 * (i - start) + 1]
        for j in range(n):
            first[j] += a * rows[i, j]
            second[j] += b * rows[i, j]
        i += 1


# Over a range of terms: what one thread does --------------------------------------------------------------------------


@kernel
def _evaluate_cached(rows, x, start, stop, image, gradient):
    """Evaluate terms of rank 1, eight at a time: their weights never leave the registers. Return ρ."""
    n = rows.shape[1]
    total = 0.0
    i = start
    while i + 8 <= stop:
        a = b = c = d = e = f = g = h = 0.0
        for j in range(n):
            v = x[j]
            a += rows[i, j] * v
            b += rows[i + 1, j] * v
            c += rows[i + 2, j] * v
            d += rows[i + 3, j] * v
            e += rows[i + 4, j] * v
            f += rows[i + 5, j] * v
            g += rows[i + 6, j] * v
            h += rows[i + 7, j] * v
        image[i] = a
        image[i + 1] = b
        image[i + 2] = c
        image[i + 3] = d
        image[i + 4] = e
        image[i + 5] = f
        image[i + 6] = g
        image[i + 7] = h
        total += (a * a * a * a + b * b * b * b) + (c * c * c * c + d * d * d * d)
        total += (e * e * e * e + f * f * f * f) + (g * g * g * g + h * h * h * h)
        a, b, c, d = 4.0 * a * a * a, 4.0 * b * b * b, 4.0 * c * c * c, 4.0 * d * d * d
        e, f, g, h = 4.0 * e * e * e, 4.0 * f * f * f, 4.0 * g * g * g, 4.0 * h * h * h
        for j in range(n):
            gradient[j] += ((a * rows[i, j] + b * rows[i + 1, j]) + (c * rows[i + 2, j] + d * rows[i + 3, j])) + (
                (e * rows[i + 4, j] + f * rows[i + 5, j]) + (g * rows[i + 6, j] + h * rows[i + 7, j])
            )
        i += 8
    while i < stop:
        a = 0.0
        for j in range(n):
            a += rows[i, j] * x[j]
        image[i] = a
        total += a * a * a * a
        a = 4.0 * a * a * a
        for j in range(n):
            gradient[j] += a * rows[i, j]
        i += 1
    return total


@kernel
def _hessian_cached(rows, v, start, stop, image, product):
    """Add ρ''(x)v for terms of rank 1 with known images, eight at a time, to product."""
    n = rows.shape[1]
    i = start
    while i + 8 <= stop:
        a = b = c = d = e = f = g = h = 0.0
        for j in range(n):
            y = v[j]
            a += rows[i, j] * y
            b += rows[i + 1, j] * y
            c += rows[i + 2, j] * y
            d += rows[i + 3, j] * y
            e += rows[i + 4, j] * y
            f += rows[i + 5, j] * y
            g += rows[i + 6, j] * y
            h += rows[i + 7, j] * y
        a *= 12.0 * image[i] * image[i]
        b *= 12.0 * image[i + 1] * image[i + 1]
        c *= 12.0 * image[i + 2] * image[i + 2]
        d *= 12.0 * image[i + 3] * image[i + 3]
        e *= 12.0 * image[i + 4] * image[i + 4]
        f *= 12.0 * image[i + 5] * image[i + 5]
        g *= 12.0 * image[i + 6] * image[i + 6]
        h *= 12.0 * image[i + 7] * image[i + 7]
        for j in range(n):
            product[j] += ((a * rows[i, j] + b * rows[i + 1, j]) + (c * rows[i + 2, j] + d * rows[i + 3, j])) + (
                (e * rows[i + 4, j] + f * rows[i + 5, j]) + (g * rows[i + 6, j] + h * rows[i + 7, j])
            )
        i += 8
    while i < stop:
        a = 0.0
        for j in range(n):
            a += rows[i, j] * v[j]
        a *= 12.0 * image[i] * image[i]
        for j in range(n):
            product[j] += a * rows[i, j]
        i += 1


@kernel
def _evaluate_range(rows, rank, x, start, stop, image, gradient):
    if rank == 1 and rows.size <= CACHED:
        return _evaluate_cached(rows, x, start, stop, image, gradient)
    step = _block_terms(rows.shape[1], rank)
    weights = np.empty(step * rank)
    total = 0.0
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[i * rank : end * rank]
        _dots(rows, i * rank, end * rank, x, s)
        total += gradient_weights(s, rank, weights)
        _add(rows, i * rank, end * rank, weights, gradient)
    return total


@kernel
def _hessian_range(rows, rank, x, known, v, start, stop, image, product):
    if known and rank == 1 and rows.size <= CACHED:
        _hessian_cached(rows, v, start, stop, image, product)
        return
    step = _block_terms(rows.shape[1], rank)
    weights = np.empty(step * rank)
    direction = np.empty(step * rank)
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[i * rank : end * rank]
        if not known:
            _dots(rows, i * rank, end * rank, x, s)
        t = direction[: s.size]
        _dots(rows, i * rank, end * rank, v, t)
        hessian_weights(s, t, rank, weights)
        _add(rows, i * rank, end * rank, weights, product)


@kernel
def _evaluate_range_complex(rows, x, jx, start, stop, image, first, second):
    step = _block_terms(rows.shape[1], 1)
    weights = np.empty(2 * step)
    total = 0.0
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[2 * i : 2 * end]
        _dots_pair(rows, i, end, x, jx, s)
        total += gradient_weights(s, 2, weights)
        _add_pair(rows, i, end, weights, first, second)
    return total


@kernel
def _hessian_range_complex(rows, x, jx, known, v, jv, start, stop, image, first, second):
    step = _block_terms(rows.shape[1], 1)
    weights = np.empty(2 * step)
    direction = np.empty(2 * step)
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[2 * i : 2 * end]
        if not known:
            _dots_pair(rows, i, end, x, jx, s)
        t = direction[: s.size]
        _dots_pair(rows, i, end, v, jv, t)
        hessian_weights(s, t, 2, weights)
        _add_pair(rows, i, end, weights, first, second)


@kernel
def _turn(x):
    """Return Jx for an interleaved complex x: (re, im) becomes (im, −re)."""
    out = np.empty_like(x)
    for k in range(0, x.size, 2):
        out[k] = x[k + 1]
        out[k + 1] = -x[k]
    return out


@kernel
def _join(first, second):
    """Return first + i·second in interleaved form."""
    out = np.empty_like(first)
    for k in range(0, first.size, 2):
        out[k] = first[k] - second[k + 1]
        out[k + 1] = first[k + 1] + second[k]
    return out


@kernel
def _total(parts):
    """Return the sum of the rows of ``parts``, always in the same order."""
    out = parts[0].copy()
    for p in range(1, parts.shape[0]):
        for j in range(out.size):
            out[j] += parts[p, j]
    return out


# Real rows ------------------------------------------------------------------------------------------------------------


@kernel
def image(rows, x):
    """Return Mx."""
    out = np.empty(rows.shape[0])
    _dots(rows, 0, rows.shape[0], x, out)
    return out


@parallel_kernel
def image_parallel(rows, x, bounds):
    """Return Mx; thread p reads the rows between bounds[p] and bounds[p+1]."""
    out = np.empty(rows.shape[0])
    for p in prange(bounds.size - 1):
        _dots(rows, bounds[p], bounds[p + 1], x, out[bounds[p] : bounds[p + 1]])
    return out


@kernel
def adjoint(rows, weights):
    """Return Mᵀw."""
    out = np.zeros(rows.shape[1])
    _add(rows, 0, rows.shape[0], weights, out)
    return out


@parallel_kernel
def adjoint_parallel(rows, weights, bounds):
    """Return Mᵀw; each thread sums into a vector of its own."""
    parts = np.zeros((bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _add(rows, bounds[p], bounds[p + 1], weights[bounds[p] : bounds[p + 1]], parts[p])
    return _total(parts)


@kernel
def evaluate(rows, rank, x):
    """Return ρ(x), ∇ρ(x) and the image Mx in one pass."""
    s = np.empty(rows.shape[0])
    gradient = np.zeros(rows.shape[1])
    total = _evaluate_range(rows, rank, x, 0, rows.shape[0] // rank, s, gradient)
    return total, gradient, s


@parallel_kernel
def evaluate_parallel(rows, rank, x, bounds):
    """Return ρ(x), ∇ρ(x) and Mx in one pass shared between threads."""
    s = np.empty(rows.shape[0])
    parts = np.zeros((bounds.size - 1, rows.shape[1]))
    totals = np.zeros(bounds.size - 1)
    for p in prange(bounds.size - 1):
        totals[p] = _evaluate_range(rows, rank, x, bounds[p], bounds[p + 1], s, parts[p])
    total = 0.0
    for p in range(totals.size):
        total += totals[p]
    return total, _total(parts), s


@kernel
def hessian_product(rows, rank, x, s, known, v):
    """Return ρ''(x)v in one pass; ``s`` is the image of x where ``known``, and is filled where not."""
    product = np.zeros(rows.shape[1])
    _hessian_range(rows, rank, x, known, v, 0, rows.shape[0] // rank, s, product)
    return product


@parallel_kernel
def hessian_product_parallel(rows, rank, x, s, known, v, bounds):
    """Return ρ''(x)v in one pass shared between threads."""
    parts = np.zeros((bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _hessian_range(rows, rank, x, known, v, bounds[p], bounds[p + 1], s, parts[p])
    return _total(parts)


# Complex rows, as interleaved reals (m, 2N) ---------------------------------------------------------------------------


@kernel
def image_complex(rows, x):
    """Return the pairs (re, im) of ⟨qᵢ,x⟩."""
    out = np.empty(2 * rows.shape[0])
    _dots_pair(rows, 0, rows.shape[0], x, _turn(x), out)
    return out


@parallel_kernel
def image_complex_parallel(rows, x, bounds):
    """Return the pairs (re, im) of ⟨qᵢ,x⟩."""
    out = np.empty(2 * rows.shape[0])
    jx = _turn(x)
    for p in prange(bounds.size - 1):
        _dots_pair(rows, bounds[p], bounds[p + 1], x, jx, out[2 * bounds[p] : 2 * bounds[p + 1]])
    return out


@kernel
def adjoint_complex(rows, weights):
    """Return Σ wᵢqᵢ, interleaved."""
    first = np.zeros(rows.shape[1])
    second = np.zeros(rows.shape[1])
    _add_pair(rows, 0, rows.shape[0], weights, first, second)
    return _join(first, second)


@parallel_kernel
def adjoint_complex_parallel(rows, weights, bounds):
    """Return Σ wᵢqᵢ, interleaved."""
    first = np.zeros((bounds.size - 1, rows.shape[1]))
    second = np.zeros((bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        share = weights[2 * bounds[p] : 2 * bounds[p + 1]]
        _add_pair(rows, bounds[p], bounds[p + 1], share, first[p], second[p])
    return _join(_total(first), _total(second))


@kernel
def evaluate_complex(rows, x):
    """Return ρ(x), ∇ρ(x) and the image in one pass."""
    s = np.empty(2 * rows.shape[0])
    first = np.zeros(rows.shape[1])
    second = np.zeros(rows.shape[1])
    total = _evaluate_range_complex(rows, x, _turn(x), 0, rows.shape[0], s, first, second)
    return total, _join(first, second), s


@parallel_kernel
def evaluate_complex_parallel(rows, x, bounds):
    """Return ρ(x), ∇ρ(x) and the image in one pass shared between threads."""
    s = np.empty(2 * rows.shape[0])
    jx = _turn(x)
    first = np.zeros((bounds.size - 1, rows.shape[1]))
    second = np.zeros((bounds.size - 1, rows.shape[1]))
    totals = np.zeros(bounds.size - 1)
    for p in prange(bounds.size - 1):
        totals[p] = _evaluate_range_complex(rows, x, jx, bounds[p], bounds[p + 1], s, first[p], second[p])
    total = 0.0
    for p in range(totals.size):
        total += totals[p]
    return total, _join(_total(first), _total(second)), s


@kernel
def hessian_product_complex(rows, x, s, known, v):
    """Return ρ''(x)v in one pass; ``s`` is the image of x where ``known``, and is filled where not."""
    first = np.zeros(rows.shape[1])
    second = np.zeros(rows.shape[1])
    _hessian_range_complex(rows, x, _turn(x), known, v, _turn(v), 0, rows.shape[0], s, first, second)
    return _join(first, second)


@parallel_kernel
def hessian_product_complex_parallel(rows, x, s, known, v, bounds):
    """Return ρ''(x)v in one pass shared between threads."""
    jx = _turn(x)
    jv = _turn(v)
    first = np.zeros((bounds.size - 1, rows.shape[1]))
    second = np.zeros((bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _hessian_range_complex(rows, x, jx, known, v, jv, bounds[p], bounds[p + 1], s, first[p], second[p])
    return _join(_total(first), _total(second))


# What preconditioning needs -------------------------------------------------------------------------------------------


@kernel
def _add_squares(rows, start, stop, weights, out):
    """Add the squares of the entries of each row, times its weight, to out."""
    i = start
    while i + 4 <= stop:
        a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(rows.shape[1]):
            e = np.float64(rows[i, j])
            f = np.float64(rows[i + 1, j])
            g = np.float64(rows[i + 2, j])
            h = np.float64(rows[i + 3, j])
            out[j] += (a * e * e + b * f * f) + (c * g * g + d * h * h)
        i += 4
    while i < stop:
        a = weights[i]
        for j in range(rows.shape[1]):
            e = np.float64(rows[i, j])
            out[j] += a * e * e
        i += 1


@kernel
def column_squares(rows, weights):
    """Return Σₖ wₖMₖⱼ² for every column j."""
    out = np.zeros(rows.shape[1])
    _add_squares(rows, 0, rows.shape[0], weights, out)
    return out


@parallel_kernel
def column_squares_parallel(rows, weights, bounds):
    """Return Σₖ wₖMₖⱼ² for every column j; each thread sums into a vector of its own."""
    parts = np.zeros((bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _add_squares(rows, bounds[p], bounds[p + 1], weights, parts[p])
    return _total(parts)


@kernel
def _scale_range(rows, weights, start, stop, out):
    """Write the rows from start to stop, each times its weight, to out, whose precision may be another."""
    for i in range(start, stop):
        w = weights[i]
        for j in range(rows.shape[1]):
            out[i, j] = w * rows[i, j]


@kernel
def scale(rows, weights, out):
    """Write the rows, each times its weight, to out."""
    _scale_range(rows, weights, 0, rows.shape[0], out)


@parallel_kernel
def scale_parallel(rows, weights, out, bounds):
    """Write the rows, each times its weight, to out, one share a thread."""
    for p in prange(bounds.size - 1):
        _scale_range(rows, weights, bounds[p], bounds[p + 1], out)


# Reading without thinking: the machine's speed limit ------------------------------------------------------------------


@kernel
def _sum_range(rows, start, stop):
    n = rows.shape[1]
    total = 0.0
    i = start
    while i + 8 <= stop:
        a = b = c = d = 0.0
        for j in range(n):
            a += rows[i, j] + rows[i + 1, j]
            b += rows[i + 2, j] + rows[i + 3, j]
            c += rows[i + 4, j] + rows[i + 5, j]
            d += rows[i + 6, j] + rows[i + 7, j]
        total += (a + b) + (c + d)
        i += 8
    while i < stop:
        for j in range(n):
            total += rows[i, j]
        i += 1
    return total


@parallel_kernel
def sum_parallel(rows, bounds):
    """Return the sum of all entries: the fastest that this machine reads these rows."""
    totals = np.zeros(bounds.size - 1)
    for p in prange(bounds.size - 1):
        totals[p] = _sum_range(rows, bounds[p], bounds[p + 1])
    total = 0.0
    for p in range(totals.size):
        total += totals[p]
    return total
