"""Dense rows in panels that stay in the cache: the passes, term-by-term loops and small factors of compiled solves.

Rows are copied once to panels of shape (panel, column, rank × width): the terms of a panel run fastest, so that every
loop is over terms and vectorises for any n and r, and a sum over all terms is a sum, in order, of short sums in any
order, whose rounding is bounded by the length of a panel and their number (:func:`reach`). Absent terms of the last
panel are zero rows, and count for nothing.

A solve keeps its memory in four arrays, and these kernels are told by number which part of one to read and write:
images (number, panel, rank × width), buffers (3, width) for what is known of the terms of one panel, matrices
(number, n, n) and vectors (number, n). Views would read better, but Numba counts references to each, and at 10 × 3 that
takes as long as the arithmetic.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import dividing_kernel, ordered_kernel

#: Doubles of a column in a panel, at most: 100 such columns are 200 KB, within a core's second cache, and 1984 bytes
#: are an odd number of its lines, so that columns do not fall on the same ones. With 120 a Hessian takes 13 % longer.
PANEL = 248

#: √12 and √3 − 1: the roots of 12s² and of I + 2ŝŝᵀ (forms/blocks.py).
ROOT_12, ROOT = math.sqrt(12.0), math.sqrt(3.0) - 1.0

#: A pivot below this share of its diagonal entry is rounding, and is raised to ten times that.
PIVOT = 1e-15

#: Added where a quotient might be 0/0, or a product have underflowed, and before a cube root, whose formula needs more.
SMALLEST, SMALLEST_CUBE = 1e-290, 1e-200


# Layout and units -----------------------------------------------------------------------------------------------------


@ordered_kernel
def shape(terms, rank):
    """Return how many panels there are and how many terms are in each, a multiple of eight."""
    wanted = max(1, (terms * rank + PANEL - 1) // PANEL)
    width = 8 * ((terms + 8 * wanted - 1) // (8 * wanted))
    return (terms + width - 1) // width, width


@ordered_kernel
def reach(panels):
    """Return how many roundings a product is in, at most, that is summed over all terms."""
    return panels.shape[2] + panels.shape[0] + 16


@ordered_kernel
def _larger(x, y):
    """Return the larger one, y where x is NaN; Python's max, which keeps NaN in either place, does not vectorise."""
    return x if x > y else y


@ordered_kernel
def equilibrate(rows, vectors, to):
    """Write the power of two that brings the largest entry of each column to [½, 1).

    Returns 1, or the largest entry of the first column that has no such power (0, inf, beyond 1e±300): all are 1 then.
    """
    n = rows.shape[1]
    for j in range(n):
        vectors[to, j] = 0.0
    whole = rows.shape[0] - rows.shape[0] % 4
    for i in range(0, whole, 4):
        for j in range(n):
            a = _larger(abs(rows[i, j]), abs(rows[i + 1, j]))
            b = _larger(abs(rows[i + 2, j]), abs(rows[i + 3, j]))
            vectors[to, j] = _larger(_larger(a, b), vectors[to, j])
    for i in range(whole, rows.shape[0]):
        for j in range(n):
            vectors[to, j] = _larger(abs(rows[i, j]), vectors[to, j])
    for j in range(n):
        extreme = vectors[to, j]
        if not 1e-300 < extreme < 1e300:
            for k in range(n):
                vectors[to, k] = 1.0
            return extreme
    for j in range(n):
        vectors[to, j] = math.ldexp(1.0, -math.frexp(vectors[to, j])[1])
    return 1.0


@ordered_kernel
def lay_out(rows, rank, vectors, scales, panels):
    """Copy the rows, columns scaled, to panels; eight terms at a time, so that whole lines of the cache are written."""
    terms, width = rows.shape[0] // rank, panels.shape[2] // rank
    for p in range(panels.shape[0]):
        for t in range(0, width, 8):
            first = p * width + t
            here = min(8, max(terms - first, 0))
            for k in range(rank):
                place = k * width + t
                for j in range(rows.shape[1]):
                    scale = vectors[scales, j]
                    if here == 8:  # a loop of known length is unrolled
                        for i in range(8):
                            panels[p, j, place + i] = rows[(first + i) * rank + k, j] * scale
                    else:
                        for i in range(8):
                            panels[p, j, place + i] = rows[(first + i) * rank + k, j] * scale if i < here else 0.0


@ordered_kernel
def scale_vector(c, orthant, vectors, scales, to):
    """Write D c·8ᵖ, whose largest entry (positive one, on the orthant) is about 1, and return p."""
    largest = -10_000
    for j in range(c.size):
        if c[j] > 0.0 or (c[j] < 0.0 and not orthant):
            largest = max(largest, math.frexp(c[j])[1] + math.frexp(vectors[scales, j])[1])
    power = -(largest // 3)
    for j in range(c.size):
        vectors[to, j] = math.ldexp(c[j], math.frexp(vectors[scales, j])[1] - 1 + 3 * power)
    return power


# Sums over all terms: a panel at a time, in any order within it -------------------------------------------------------


@dividing_kernel
def _sixteen_products(panels, p, j, k):
    """Return the products of columns j … j+3 of a panel with columns k … k+3."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = 0.0
    for i in range(panels.shape[2]):
        a, b, c, d = panels[p, j, i], panels[p, j + 1, i], panels[p, j + 2, i], panels[p, j + 3, i]
        e, f, g, h = panels[p, k, i], panels[p, k + 1, i], panels[p, k + 2, i], panels[p, k + 3, i]
        a0 += a * e
        a1 += a * f
        a2 += a * g
        a3 += a * h
        b0 += b * e
        b1 += b * f
        b2 += b * g
        b3 += b * h
        c0 += c * e
        c1 += c * f
        c2 += c * g
        c3 += c * h
        d0 += d * e
        d1 += d * f
        d2 += d * g
        d3 += d * h
    return (a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3)


@dividing_kernel
def _four_products(panels, p, j, k):
    """Return the products of columns j … j+3 of a panel with column k."""
    a = b = c = d = 0.0
    for i in range(panels.shape[2]):
        e = panels[p, k, i]
        a += panels[p, j, i] * e
        b += panels[p, j + 1, i] * e
        c += panels[p, j + 2, i] * e
        d += panels[p, j + 3, i] * e
    return a, b, c, d


@dividing_kernel
def _product(panels, p, j, k):
    """Return the product of two columns of a panel."""
    total = 0.0
    for i in range(panels.shape[2]):
        total += panels[p, j, i] * panels[p, k, i]
    return total


@ordered_kernel
def add_gram(panels, p, matrices, to):
    """Add the products of the columns of a panel to the upper triangle of a matrix, in blocks of four by four."""
    n = panels.shape[1]
    whole = n - n % 4
    for j in range(0, whole, 4):
        for k in range(j, whole, 4):
            block = _sixteen_products(panels, p, j, k)
            for a in range(4):
                for b in range(4):
                    matrices[to, j + a, k + b] += block[a][b]
        for k in range(whole, n):
            column = _four_products(panels, p, j, k)
            for a in range(4):
                matrices[to, j + a, k] += column[a]
    for j in range(whole, n):
        for k in range(j, n):
            matrices[to, j, k] += _product(panels, p, j, k)


@dividing_kernel
def _three_products(panels, p, j, images, weights, dual):
    """Return ⟨a,u⟩, ⟨a,λ⟩ and ⟨|a|,|λ|⟩ for column a of a panel, u the weights."""
    first = second = third = 0.0
    for i in range(panels.shape[2]):
        share = panels[p, j, i] * images[dual, p, i]
        first += panels[p, j, i] * images[weights, p, i]
        second += share
        third += abs(share)
    return first, second, third


@dividing_kernel
def _six_products(panels, p, j, images, weights, dual):
    """Return the three products for columns j and j+1."""
    a = b = c = d = e = f = 0.0
    for i in range(panels.shape[2]):
        u, v = images[weights, p, i], images[dual, p, i]
        x, y = panels[p, j, i], panels[p, j + 1, i]
        a += x * u
        b += x * v
        c += abs(x * v)
        d += y * u
        e += y * v
        f += abs(y * v)
    return (a, b, c), (d, e, f)


@ordered_kernel
def adjoints(panels, images, weights, dual, vectors, gradient, product, bulk):
    """Write Uu, Uλ and Σ|U||λ| in one pass."""
    n = vectors.shape[1]
    for j in range(n):
        vectors[gradient, j] = vectors[product, j] = vectors[bulk, j] = 0.0
    for p in range(panels.shape[0]):
        for j in range(0, n - 1, 2):
            pair = _six_products(panels, p, j, images, weights, dual)
            for k in range(2):
                vectors[gradient, j + k] += pair[k][0]
                vectors[product, j + k] += pair[k][1]
                vectors[bulk, j + k] += pair[k][2]
        if n % 2 == 1:
            last = _three_products(panels, p, n - 1, images, weights, dual)
            vectors[gradient, n - 1] += last[0]
            vectors[product, n - 1] += last[1]
            vectors[bulk, n - 1] += last[2]


@dividing_kernel
def image(panels, vectors, of, images, to):
    """Write the image of a vector, four columns at a time."""
    n, length = panels.shape[1], panels.shape[2]
    for p in range(panels.shape[0]):
        for i in range(length):
            images[to, p, i] = 0.0
        j = 0
        while j + 4 <= n:
            a, b, c, d = vectors[of, j], vectors[of, j + 1], vectors[of, j + 2], vectors[of, j + 3]
            for i in range(length):
                images[to, p, i] += (a * panels[p, j, i] + b * panels[p, j + 1, i]) + (
                    c * panels[p, j + 2, i] + d * panels[p, j + 3, i]
                )
            j += 4
        while j < n:
            a = vectors[of, j]
            for i in range(length):
                images[to, p, i] += a * panels[p, j, i]
            j += 1


@dividing_kernel
def image_moduli(panels, vectors, of, images, to):
    """Write Σ|U||x|."""
    for p in range(panels.shape[0]):
        for i in range(panels.shape[2]):
            images[to, p, i] = 0.0
        for j in range(panels.shape[1]):
            a = vectors[of, j]
            for i in range(panels.shape[2]):
                images[to, p, i] += abs(a * panels[p, j, i])


# Term by term, on one panel: buffers hold q = ‖sᵢ‖², b = ⟨sᵢ,wᵢ⟩ and e = ‖wᵢ‖² ----------------------------------------

_Q, _B, _E = np.arange(3)


@dividing_kernel
def _inners(images, of, other, p, buffers, to):
    """Write the inner products of two images, term by term."""
    width = buffers.shape[1]
    for i in range(width):
        buffers[to, i] = images[of, p, i] * images[other, p, i]
    for start in range(width, images.shape[2], width):
        for i in range(width):
            buffers[to, i] += images[of, p, start + i] * images[other, p, start + i]


@dividing_kernel
def _cube_root(p):
    """Return ∛p within two units in the last place, by operations that vectorise; 1e-200 ≤ p ≤ 1e200.

    A third of the exponent by shifts (1/3 = ¼·(1 + ¼)(1 + 1/16)…) is right to 4 %, two steps of Halley's method bring
    that below 1e-13, and one of Newton's ends it.
    """
    bits = np.float64(p).view(np.int64)
    third = (bits >> 2) + (bits >> 4)
    third += third >> 4
    third += third >> 8
    third += third >> 16
    third += third >> 32
    t = np.int64(third + 3071306043645493248).view(np.float64)
    cube = t * t * t
    t = t * ((cube + 2.0 * p) / (2.0 * cube + p))
    cube = t * t * t
    t = t * ((cube + 2.0 * p) / (2.0 * cube + p))
    return t + (p / (t * t) - t) / 3.0


@dividing_kernel
def _sum_of_squares(buffers):
    total = 0.0
    for i in range(buffers.shape[1]):
        total += buffers[_Q, i] * buffers[_Q, i]
    return total


@dividing_kernel
def _sum_of_powers(buffers):
    """Return Σ q^{2/3}."""
    total = 0.0
    for i in range(buffers.shape[1]):
        root = _cube_root(buffers[_Q, i] + SMALLEST_CUBE)
        total += root * root
    return total


@dividing_kernel
def _sums_of_line(buffers):
    """Return the coefficients of t², t³ and t⁴ in Σ(q + 2bt + et²)²."""
    second = third = fourth = 0.0
    for i in range(buffers.shape[1]):
        q, b, e = buffers[_Q, i], buffers[_B, i], buffers[_E, i]
        second += 4.0 * b * b + 2.0 * q * e
        third += b * e
        fourth += e * e
    return second, 4.0 * third, fourth


@dividing_kernel
def _write_weights(images, at, p, buffers, to):
    """Write 4qᵢsᵢ."""
    width = buffers.shape[1]
    for start in range(0, images.shape[2], width):
        for i in range(width):
            images[to, p, start + i] = 4.0 * buffers[_Q, i] * images[at, p, start + i]


@dividing_kernel
def _write_dual(images, at, along, p, buffers, share, to):
    """Write share·(4qᵢ(sᵢ+wᵢ) + 8bᵢsᵢ)."""
    width = buffers.shape[1]
    for start in range(0, images.shape[2], width):
        for i in range(width):
            s, w = images[at, p, start + i], images[along, p, start + i]
            images[to, p, start + i] = share * (4.0 * buffers[_Q, i] * (s + w) + 8.0 * buffers[_B, i] * s)


@dividing_kernel
def _mix(panels, images, at, p, buffers, mixed):
    """Write Wᵢ^½Uᵢᵀ for the terms of a panel: the products of its columns are the panel's share of the Hessian."""
    width = buffers.shape[1]
    if images.shape[2] == width:
        for j in range(panels.shape[1]):
            for i in range(width):
                mixed[0, j, i] = ROOT_12 * images[at, p, i] * panels[p, j, i]
        return
    for i in range(width):
        buffers[_B, i] = ROOT / (buffers[_Q, i] + SMALLEST)
        buffers[_Q, i] = 2.0 * math.sqrt(buffers[_Q, i])
    for j in range(panels.shape[1]):
        for i in range(width):
            buffers[_E, i] = 0.0
        for start in range(0, images.shape[2], width):
            for i in range(width):
                buffers[_E, i] += images[at, p, start + i] * panels[p, j, start + i]
        for start in range(0, images.shape[2], width):
            for i in range(width):
                more = buffers[_B, i] * buffers[_E, i] * images[at, p, start + i]
                mixed[0, j, start + i] = buffers[_Q, i] * (panels[p, j, start + i] + more)


# Over all panels ------------------------------------------------------------------------------------------------------


@ordered_kernel
def value(images, at, buffers):
    """Return Σ‖sᵢ‖⁴."""
    total = 0.0
    for p in range(images.shape[1]):
        _inners(images, at, at, p, buffers, _Q)
        total += _sum_of_squares(buffers)
    return total


@ordered_kernel
def weights(images, at, buffers, to):
    """Write the weights 4‖sᵢ‖²sᵢ of the gradient; return ρ."""
    total = 0.0
    for p in range(images.shape[1]):
        _inners(images, at, at, p, buffers, _Q)
        total += _sum_of_squares(buffers)
        _write_weights(images, at, p, buffers, to)
    return total


@ordered_kernel
def hessian(panels, images, at, buffers, mixed, matrices, to):
    """Write ρ'' at the point of an image, the upper triangle; ``mixed`` is a panel to work in."""
    clear(matrices, to)
    for p in range(panels.shape[0]):
        _inners(images, at, at, p, buffers, _Q)
        _mix(panels, images, at, p, buffers, mixed)
        add_gram(mixed, _Q, matrices, to)


@ordered_kernel
def dual_norm(images, dual, buffers):
    """Return (Σ‖λᵢ‖^{4/3})^{3/4}."""
    total = 0.0
    for p in range(images.shape[1]):
        _inners(images, dual, dual, p, buffers, _Q)
        total += _sum_of_powers(buffers)
    return math.sqrt(total) * math.sqrt(math.sqrt(total))


@ordered_kernel
def newton_dual(images, at, along, share, buffers, to):
    """Write share·(4‖sᵢ‖²(sᵢ+wᵢ) + 8⟨sᵢ,wᵢ⟩sᵢ), the dual point of a direction with image w at a point with image s."""
    for p in range(images.shape[1]):
        _inners(images, at, at, p, buffers, _Q)
        _inners(images, at, along, p, buffers, _B)
        _write_dual(images, at, along, p, buffers, share, to)


@ordered_kernel
def line(images, at, along, buffers):
    """Return the coefficients of t², t³ and t⁴ of ρ along s + t w."""
    second = third = fourth = 0.0
    for p in range(images.shape[1]):
        _inners(images, at, at, p, buffers, _Q)
        _inners(images, at, along, p, buffers, _B)
        _inners(images, along, along, p, buffers, _E)
        found = _sums_of_line(buffers)
        second += found[0]
        third += found[1]
        fourth += found[2]
    return second, third, fourth


@dividing_kernel
def clear(arrays, to):
    """Set an image or a matrix to zero."""
    for p in range(arrays.shape[1]):
        for i in range(arrays.shape[2]):
            arrays[to, p, i] = 0.0


@dividing_kernel
def combine(arrays, share, of, other_share, other, to):
    """Write share·x + other_share·y, images or matrices."""
    for p in range(arrays.shape[1]):
        for i in range(arrays.shape[2]):
            arrays[to, p, i] = share * arrays[of, p, i] + other_share * arrays[other, p, i]


@dividing_kernel
def enlarge(images, moduli, share, of):
    """Overwrite an image of moduli with |s| + share·moduli."""
    for p in range(images.shape[1]):
        for i in range(images.shape[2]):
            images[moduli, p, i] = abs(images[of, p, i]) + share * images[moduli, p, i] + SMALLEST


# Vectors, and factors: LDLᵀ by rows, four at a time, in the upper triangle --------------------------------------------


@dividing_kernel
def dot(vectors, of, other):
    """Return the inner product of two vectors."""
    total = 0.0
    for j in range(vectors.shape[1]):
        total += vectors[of, j] * vectors[other, j]
    return total


@dividing_kernel
def _subtract(matrices, to, j, share, k, start, stop):
    """Take share times row k, from start to stop, off row j."""
    for i in range(start, stop):
        matrices[to, j, i] -= share * matrices[to, k, i]


@dividing_kernel
def _subtract_four(matrices, to, j, a, b, c, d, k, start, stop):
    """Take a, b, c, d times rows k … k+3, from start to stop, off row j."""
    for i in range(start, stop):
        matrices[to, j, i] -= (a * matrices[to, k, i] + b * matrices[to, k + 1, i]) + (
            c * matrices[to, k + 2, i] + d * matrices[to, k + 3, i]
        )


@dividing_kernel
def _row_product(matrices, at, k, start, stop, vectors, of):
    total = 0.0
    for j in range(start, stop):
        total += matrices[at, k, j] * vectors[of, j]
    return total


@ordered_kernel
def _multiplier(matrices, at, k, j):
    """Return Lⱼₖ."""
    return matrices[at, k, j] * matrices[at, k, k]


@ordered_kernel
def factor(matrices, at, size):
    """Overwrite the upper triangle of the first ``size`` rows with DLᵀ, and its diagonal with 1/D.

    Returns whether a pivot was rounding and had to be raised. Below the diagonal only the first column is used.
    """
    raised, largest = False, 0.0
    for k in range(size):
        matrices[at, k, 0] = matrices[at, k, k]
        largest = max(largest, matrices[at, k, k])
    for start in range(0, size, 4):
        stop = min(start + 4, size)
        for k in range(start, stop):
            pivot, least = matrices[at, k, k], PIVOT * max(matrices[at, k, 0], 1e-30 * largest)
            if not pivot > least:
                raised = True
                pivot = 10.0 * least if least > 0.0 else 1.0
            matrices[at, k, k] = 1.0 / pivot
            for j in range(k + 1, stop):
                _subtract(matrices, at, j, _multiplier(matrices, at, k, j), k, j, size)
        for j in range(stop, size):
            a, b = _multiplier(matrices, at, start, j), _multiplier(matrices, at, start + 1, j)
            c, d = _multiplier(matrices, at, start + 2, j), _multiplier(matrices, at, start + 3, j)
            _subtract_four(matrices, at, j, a, b, c, d, start, j, size)
    return raised


@ordered_kernel
def substitute(matrices, at, size, vectors, of):
    """Overwrite the first ``size`` entries of a vector x with H⁻¹x, H factored by :func:`factor`."""
    for k in range(size):
        share = vectors[of, k] * matrices[at, k, k]
        for j in range(k + 1, size):
            vectors[of, j] -= share * matrices[at, k, j]
    for k in range(size - 1, -1, -1):
        vectors[of, k] = matrices[at, k, k] * (vectors[of, k] - _row_product(matrices, at, k, k + 1, size, vectors, of))


@ordered_kernel
def inverse_moduli(matrices, at, to):
    """Write |X|, X the computed inverse of L√D, lower triangular."""
    n = matrices.shape[1]
    clear(matrices, to)
    for k in range(n):
        matrices[to, k, k] = 1.0
    for start in range(0, n, 4):
        stop = min(start + 4, n)
        for k in range(start, stop):
            for j in range(k + 1, stop):
                _subtract(matrices, to, j, _multiplier(matrices, at, k, j), k, 0, k + 1)
        for j in range(stop, n):
            a, b = _multiplier(matrices, at, start, j), _multiplier(matrices, at, start + 1, j)
            c, d = _multiplier(matrices, at, start + 2, j), _multiplier(matrices, at, start + 3, j)
            _subtract_four(matrices, to, j, a, b, c, d, start, 0, stop)
    for j in range(n):
        root = math.sqrt(matrices[at, j, j])
        for k in range(j + 1):
            matrices[to, j, k] = abs(matrices[to, j, k]) * root


@ordered_kernel
def norm_of_product(matrices, at, vectors, of):
    """Return ‖Xv‖ for a lower triangular X."""
    total = 0.0
    for j in range(vectors.shape[1]):
        entry = _row_product(matrices, at, j, 0, j + 1, vectors, of)
        total += entry * entry
    return math.sqrt(total)
