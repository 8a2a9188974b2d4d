"""Kernels for F(x) = Σ ωᵢ(‖sᵢ‖² − dᵢ)²: weights and lines from images, and fused passes over complex rows and edges.

∇F = Mᵀw with wᵢ = 4ωᵢ(‖sᵢ‖² − dᵢ)sᵢ. A product with a matrix of second derivatives has the weights
wᵢ = αᵢtᵢ + βᵢ⟨sᵢ,tᵢ⟩sᵢ, t the image of v: β = 8ω, and α = 4ω(‖sᵢ‖² − dᵢ) for the Hessian or 0 for Gauss and Newton's.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .jit import gather_kernel, kernel, parallel_kernel
from .rows import _add_pair, _block_terms, _dots_pair, _join, _total, _turn

# On images ------------------------------------------------------------------------------------------------------------


# Loops over the entries of a term are unrolled where the rank is a constant: then a kernel takes a quarter of the time.


@kernel
def _write_gradient_weights(image, rank, d, omega, weights):
    total = 0.0
    for i in range(d.size):
        q = -d[i]
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
        total += omega[i] * q * q
        q *= 4.0 * omega[i]
        for k in range(i * rank, (i + 1) * rank):
            weights[k] = q * image[k]
    return total


@kernel
def gradient_weights(image, rank, d, omega, weights):
    """Write wᵢ = 4ωᵢ(‖sᵢ‖² − dᵢ)sᵢ, so that ∇F = Σ Uᵢwᵢ, and return F."""
    if rank == 1:
        return _write_gradient_weights(image, 1, d, omega, weights)
    if rank == 2:
        return _write_gradient_weights(image, 2, d, omega, weights)
    if rank == 3:
        return _write_gradient_weights(image, 3, d, omega, weights)
    return _write_gradient_weights(image, rank, d, omega, weights)


@kernel
def _write_product_weights(image, direction, rank, alpha, beta, weights):
    for i in range(alpha.size):
        b = 0.0
        for k in range(i * rank, (i + 1) * rank):
            b += image[k] * direction[k]
        b *= beta[i]
        for k in range(i * rank, (i + 1) * rank):
            weights[k] = alpha[i] * direction[k] + b * image[k]


@kernel
def product_weights(image, direction, rank, alpha, beta, weights):
    """Write wᵢ = αᵢtᵢ + βᵢ⟨sᵢ,tᵢ⟩sᵢ, t the image of v."""
    if rank == 1:
        _write_product_weights(image, direction, 1, alpha, beta, weights)
    elif rank == 2:
        _write_product_weights(image, direction, 2, alpha, beta, weights)
    elif rank == 3:
        _write_product_weights(image, direction, 3, alpha, beta, weights)
    else:
        _write_product_weights(image, direction, rank, alpha, beta, weights)


@kernel
def _quartic(square, slope, curvature, twist, last):
    """Return the coefficients of F(x + t v) from Σωa², Σωab, Σω(4b² + 2ae), Σωbe, Σωe²; a + 2bt + et² is a misfit."""
    # Sums that a function added terms to would be kept in memory, which takes a seventh longer.
    out = np.empty(5)
    out[0], out[1], out[2], out[3], out[4] = square, 4.0 * slope, curvature, 4.0 * twist, last
    return out


@kernel
def _add_misfits(image, direction, rank, d, omega):
    """Return the sums of ``_quartic``."""
    c0 = c1 = c2 = c3 = c4 = 0.0
    for i in range(d.size):
        a = -d[i]
        b = e = 0.0
        for k in range(i * rank, (i + 1) * rank):
            a += image[k] * image[k]
            b += image[k] * direction[k]
            e += direction[k] * direction[k]
        w = omega[i]
        c0 += w * a * a
        c1 += w * a * b
        c2 += w * (4.0 * b * b + 2.0 * a * e)
        c3 += w * b * e
        c4 += w * e * e
    return c0, c1, c2, c3, c4


@kernel
def _add_misfits_to(image, ahead, rank, d, omega):
    """Return the sums of ``_quartic`` for the direction from an image to the one ahead, which is not written."""
    c0 = c1 = c2 = c3 = c4 = 0.0
    for i in range(d.size):
        a = -d[i]
        b = e = 0.0
        for k in range(i * rank, (i + 1) * rank):
            s = image[k]
            t = ahead[k] - s
            a += s * s
            b += s * t
            e += t * t
        w = omega[i]
        c0 += w * a * a
        c1 += w * a * b
        c2 += w * (4.0 * b * b + 2.0 * a * e)
        c3 += w * b * e
        c4 += w * e * e
    return c0, c1, c2, c3, c4


@kernel
def _add_misfits_to_three(image, ahead, d, omega):
    """Return the sums of ``_add_misfits_to`` for rank 3, whose loop the compiler does not unroll well."""
    c0 = c1 = c2 = c3 = c4 = 0.0
    for i in range(d.size):
        s0, s1, s2 = image[3 * i], image[3 * i + 1], image[3 * i + 2]
        t0, t1, t2 = ahead[3 * i] - s0, ahead[3 * i + 1] - s1, ahead[3 * i + 2] - s2
        a = s0 * s0 + s1 * s1 + s2 * s2 - d[i]
        b = s0 * t0 + s1 * t1 + s2 * t2
        e = t0 * t0 + t1 * t1 + t2 * t2
        w = omega[i]
        c0 += w * a * a
        c1 += w * a * b
        c2 += w * (4.0 * b * b + 2.0 * a * e)
        c3 += w * b * e
        c4 += w * e * e
    return c0, c1, c2, c3, c4


@kernel
def line(image, direction, rank, d, omega):
    """Return the five coefficients of t ↦ F(x + t v), constant first, from the images of x and v."""
    if rank == 1:
        return _quartic(*_add_misfits(image, direction, 1, d, omega))
    if rank == 2:
        return _quartic(*_add_misfits(image, direction, 2, d, omega))
    return _quartic(*_add_misfits(image, direction, rank, d, omega))


@kernel
def line_to(image, ahead, rank, d, omega):
    """Return the coefficients of t ↦ F(x + t(y − x)) from the images of x and y, without writing their difference."""
    if rank == 1:
        return _quartic(*_add_misfits_to(image, ahead, 1, d, omega))
    if rank == 2:
        return _quartic(*_add_misfits_to(image, ahead, 2, d, omega))
    if rank == 3:
        return _quartic(*_add_misfits_to_three(image, ahead, d, omega))
    return _quartic(*_add_misfits_to(image, ahead, rank, d, omega))


# Complex rows, as interleaved reals (m, 2N) ---------------------------------------------------------------------------


@kernel
def _evaluate_range_complex(rows, x, jx, d, omega, start, stop, image, first, second):
    step = _block_terms(rows.shape[1], 1)
    weights = np.empty(2 * step)
    total = 0.0
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[2 * i : 2 * end]
        _dots_pair(rows, i, end, x, jx, s)
        total += gradient_weights(s, 2, d[i:end], omega[i:end], weights)
        _add_pair(rows, i, end, weights, first, second)
    return total


@kernel
def _product_range_complex(rows, s, alpha, beta, v, jv, start, stop, image, first, second):
    step = _block_terms(rows.shape[1], 1)
    weights = np.empty(2 * step)
    for i in range(start, stop, step):
        end = min(i + step, stop)
        t = image[2 * i : 2 * end]
        _dots_pair(rows, i, end, v, jv, t)
        product_weights(s[2 * i : 2 * end], t, 2, alpha[i:end], beta[i:end], weights)
        _add_pair(rows, i, end, weights, first, second)


@kernel
def evaluate_complex(rows, x, d, omega):
    """Return F(x), ∇F(x) and the image of x in one pass."""
    s = np.empty(2 * rows.shape[0])
    first = np.zeros(rows.shape[1])
    second = np.zeros(rows.shape[1])
    total = _evaluate_range_complex(rows, x, _turn(x), d, omega, 0, rows.shape[0], s, first, second)
    return total, _join(first, second), s


@parallel_kernel
def evaluate_complex_parallel(rows, x, d, omega, bounds):
    """Return F(x), ∇F(x) and the image of x in one pass shared between threads."""
    s = np.empty(2 * rows.shape[0])
    jx = _turn(x)
    first = np.zeros((bounds.size - 1, rows.shape[1]))
    second = np.zeros((bounds.size - 1, rows.shape[1]))
    totals = np.zeros(bounds.size - 1)
    for p in prange(bounds.size - 1):
        totals[p] = _evaluate_range_complex(rows, x, jx, d, omega, bounds[p], bounds[p + 1], s, first[p], second[p])
    total = 0.0
    for p in range(totals.size):
        total += totals[p]
    return total, _join(_total(first), _total(second)), s


@kernel
def product_complex(rows, s, alpha, beta, v):
    """Return the product with v and the image of v in one pass, s the image of x."""
    image = np.empty(2 * rows.shape[0])
    first = np.zeros(rows.shape[1])
    second = np.zeros(rows.shape[1])
    _product_range_complex(rows, s, alpha, beta, v, _turn(v), 0, rows.shape[0], image, first, second)
    return _join(first, second), image


@parallel_kernel
def product_complex_parallel(rows, s, alpha, beta, v, bounds):
    """Return the product with v and the image of v in one pass shared between threads."""
    image = np.empty(2 * rows.shape[0])
    jv = _turn(v)
    first = np.zeros((bounds.size - 1, rows.shape[1]))
    second = np.zeros((bounds.size - 1, rows.shape[1]))
    for p in prange(bounds.size - 1):
        _product_range_complex(rows, s, alpha, beta, v, jv, bounds[p], bounds[p + 1], image, first[p], second[p])
    return _join(_total(first), _total(second)), image


# The edges of a graph -------------------------------------------------------------------------------------------------


@gather_kernel
def _evaluate_edges(heads, tails, x, d, omega, r, image, gradient):
    total = 0.0
    for e in range(heads.size):
        i = np.uintp(heads[e])
        j = np.uintp(tails[e])
        q = -d[e]
        for k in range(r):
            s = x[i, k] - x[j, k]
            image[np.uintp(e * r + k)] = s
            q += s * s
        total += omega[e] * q * q
        q *= 4.0 * omega[e]
        for k in range(r):
            w = q * image[np.uintp(e * r + k)]
            gradient[i, k] += w
            gradient[j, k] -= w
    return total


@gather_kernel
def _add_edge_products(heads, tails, s, alpha, beta, v, r, product):
    for e in range(heads.size):
        i = np.uintp(heads[e])
        j = np.uintp(tails[e])
        b = 0.0
        for k in range(r):
            b += s[np.uintp(e * r + k)] * (v[i, k] - v[j, k])
        b *= beta[e]
        for k in range(r):
            w = alpha[e] * (v[i, k] - v[j, k]) + b * s[np.uintp(e * r + k)]
            product[i, k] += w
            product[j, k] -= w


@gather_kernel
def evaluate_edges(heads, tails, x, d, omega):
    """Return F(X), ∇F(X) and the image of X in one pass over the edges."""
    r = x.shape[1]
    image = np.empty(heads.size * r)
    gradient = np.zeros_like(x)
    total = 0.0
    if r == 3:
        # Edges of one head follow each other: what it gets stays in registers until the next.
        last = np.uintp(heads[0])
        g0 = g1 = g2 = 0.0
        for e in range(heads.size):
            i = np.uintp(heads[e])
            j = np.uintp(tails[e])
            k = np.uintp(3 * e)
            if i != last:
                gradient[last, 0] += g0
                gradient[last, 1] += g1
                gradient[last, 2] += g2
                g0 = g1 = g2 = 0.0
                last = i
            s0 = x[i, 0] - x[j, 0]
            s1 = x[i, 1] - x[j, 1]
            s2 = x[i, 2] - x[j, 2]
            image[k] = s0
            image[k + np.uintp(1)] = s1
            image[k + np.uintp(2)] = s2
            q = s0 * s0 + s1 * s1 + s2 * s2 - d[e]
            total += omega[e] * q * q
            q *= 4.0 * omega[e]
            g0 += q * s0
            g1 += q * s1
            g2 += q * s2
            gradient[j, 0] -= q * s0
            gradient[j, 1] -= q * s1
            gradient[j, 2] -= q * s2
        gradient[last, 0] += g0
        gradient[last, 1] += g1
        gradient[last, 2] += g2
        return total, gradient, image
    if r == 2:
        total = _evaluate_edges(heads, tails, x, d, omega, 2, image, gradient)
    elif r == 4:
        total = _evaluate_edges(heads, tails, x, d, omega, 4, image, gradient)
    elif r == 5:
        total = _evaluate_edges(heads, tails, x, d, omega, 5, image, gradient)
    else:
        total = _evaluate_edges(heads, tails, x, d, omega, r, image, gradient)
    return total, gradient, image


@gather_kernel
def product_edges(heads, tails, s, alpha, beta, v):
    """Return the product with V in one pass over the edges, s the image of X."""
    r = v.shape[1]
    product = np.zeros_like(v)
    if r == 3:
        # Edges of one head follow each other: what it gets stays in registers until the next.
        last = np.uintp(heads[0])
        p0 = p1 = p2 = 0.0
        for e in range(heads.size):
            i = np.uintp(heads[e])
            j = np.uintp(tails[e])
            k = np.uintp(3 * e)
            if i != last:
                product[last, 0] += p0
                product[last, 1] += p1
                product[last, 2] += p2
                p0 = p1 = p2 = 0.0
                last = i
            s0, s1, s2 = s[k], s[k + np.uintp(1)], s[k + np.uintp(2)]
            t0 = v[i, 0] - v[j, 0]
            t1 = v[i, 1] - v[j, 1]
            t2 = v[i, 2] - v[j, 2]
            q = alpha[e]
            b = beta[e] * (s0 * t0 + s1 * t1 + s2 * t2)
            w0 = q * t0 + b * s0
            w1 = q * t1 + b * s1
            w2 = q * t2 + b * s2
            p0 += w0
            p1 += w1
            p2 += w2
            product[j, 0] -= w0
            product[j, 1] -= w1
            product[j, 2] -= w2
        product[last, 0] += p0
        product[last, 1] += p1
        product[last, 2] += p2
        return product
    if r == 2:
        _add_edge_products(heads, tails, s, alpha, beta, v, 2, product)
    else:
        _add_edge_products(heads, tails, s, alpha, beta, v, r, product)
    return product
