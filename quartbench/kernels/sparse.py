"""Kernels on stacked sparse rows (CSR): the operations of ``rows``, one read of the stored entries each."""

from __future__ import annotations

import numpy as np
from numba import prange

from .images import gradient_weights, hessian_weights
from .jit import gather_kernel, kernel, parallel_kernel

#: Stored entries of a block of terms, whose image and weights are formed together while the entries are in cache.
BLOCK = 16_384


@kernel
def _block_terms(indptr, rank):
    """Return how many terms make a block: few enough to stay in cache, enough to be worth a block."""
    terms = (indptr.size - 1) // rank
    return min(1024, max(16, BLOCK * terms // max(indptr[-1], 1)))


@gather_kernel
def _dots(data, indices, indptr, start, stop, x, out):
    # Two sums hide the latency of an addition; unsigned indices need no test for negative ones.
    for i in range(start, stop):
        k, end = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        even = odd = 0.0
        while k + np.uintp(1) < end:
            even += data[k] * x[np.uintp(indices[k])]
            odd += data[k + np.uintp(1)] * x[np.uintp(indices[k + np.uintp(1)])]
            k += np.uintp(2)
        if k < end:
            even += data[k] * x[np.uintp(indices[k])]
        out[i - start] = even + odd


@gather_kernel
def _add(data, indices, indptr, start, stop, w, out):
    for i in range(start, stop):
        weight = w[i - start]
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            out[np.uintp(indices[k])] += weight * data[k]


@kernel
def _evaluate_range(data, indices, indptr, rank, x, start, stop, image, gradient):
    step = _block_terms(indptr, rank)
    weights = np.empty(step * rank)
    total = 0.0
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[i * rank : end * rank]
        _dots(data, indices, indptr, i * rank, end * rank, x, s)
        total += gradient_weights(s, rank, weights)
        _add(data, indices, indptr, i * rank, end * rank, weights, gradient)
    return total


@kernel
def _hessian_range(data, indices, indptr, rank, x, known, v, start, stop, image, product):
    step = _block_terms(indptr, rank)
    weights = np.empty(step * rank)
    direction = np.empty(step * rank)
    for i in range(start, stop, step):
        end = min(i + step, stop)
        s = image[i * rank : end * rank]
        if not known:
            _dots(data, indices, indptr, i * rank, end * rank, x, s)
        t = direction[: s.size]
        _dots(data, indices, indptr, i * rank, end * rank, v, t)
        hessian_weights(s, t, rank, weights)
        _add(data, indices, indptr, i * rank, end * rank, weights, product)


@parallel_kernel
def _total(parts):
    """Return the sum of the rows of ``parts``, column by column, always in the same order."""
    out = np.empty(parts.shape[1])
    for j in prange(out.size):
        total = 0.0
        for p in range(parts.shape[0]):
            total += parts[p, j]
        out[j] = total
    return out


@kernel
def image(data, indices, indptr, x):
    """Return Mx."""
    out = np.empty(indptr.size - 1)
    _dots(data, indices, indptr, 0, out.size, x, out)
    return out


@parallel_kernel
def image_parallel(data, indices, indptr, x, bounds):
    """Return Mx; thread p reads the rows between bounds[p] and bounds[p+1]."""
    out = np.empty(indptr.size - 1)
    for p in prange(bounds.size - 1):
        _dots(data, indices, indptr, bounds[p], bounds[p + 1], x, out[bounds[p] : bounds[p + 1]])
    return out


@kernel
def adjoint(data, indices, indptr, columns, weights):
    """Return Mᵀw."""
    out = np.zeros(columns)
    _add(data, indices, indptr, 0, indptr.size - 1, weights, out)
    return out


@parallel_kernel
def adjoint_parallel(data, indices, indptr, columns, weights, bounds):
    """Return Mᵀw; each thread sums into a vector of its own."""
    parts = np.zeros((bounds.size - 1, columns))
    for p in prange(bounds.size - 1):
        _add(data, indices, indptr, bounds[p], bounds[p + 1], weights[bounds[p] : bounds[p + 1]], parts[p])
    return _total(parts)


@gather_kernel
def _add_squares(data, indices, indptr, start, stop, weights, out):
    for i in range(start, stop):
        w = weights[i]
        for k in range(indptr[i], indptr[i + 1]):
            out[np.uintp(indices[k])] += w * data[k] * data[k]


@kernel
def column_squares(data, indices, indptr, columns, weights):
    """Return Σₖ wₖMₖⱼ² for every column j."""
    out = np.zeros(columns)
    _add_squares(data, indices, indptr, 0, indptr.size - 1, weights, out)
    return out


@parallel_kernel
def column_squares_parallel(data, indices, indptr, columns, weights, bounds):
    """Return Σₖ wₖMₖⱼ² for every column j; each thread sums into a vector of its own."""
    parts = np.zeros((bounds.size - 1, columns))
    for p in prange(bounds.size - 1):
        _add_squares(data, indices, indptr, bounds[p], bounds[p + 1], weights, parts[p])
    return _total(parts)


@gather_kernel
def add_pairs(data, indices, indptr, gram):
    """Add the products of the pairs of every row to the lower triangle of a dense matrix: MᵀM, from zero."""
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            row = gram[np.uintp(indices[k])]
            a = data[k]
            for other in range(indptr[i], indptr[i + 1]):
                j = np.uintp(indices[other])
                if j <= np.uintp(indices[k]):
                    row[j] += a * data[other]


@kernel
def evaluate(data, indices, indptr, columns, rank, x):
    """Return ρ(x), ∇ρ(x) and the image Mx in one pass."""
    s = np.empty(indptr.size - 1)
    gradient = np.zeros(columns)
    total = _evaluate_range(data, indices, indptr, rank, x, 0, s.size // rank, s, gradient)
    return total, gradient, s


@parallel_kernel
def evaluate_parallel(data, indices, indptr, columns, rank, x, bounds):
    """Return ρ(x), ∇ρ(x) and Mx in one pass shared between threads."""
    s = np.empty(indptr.size - 1)
    parts = np.zeros((bounds.size - 1, columns))
    totals = np.zeros(bounds.size - 1)
    for p in prange(bounds.size - 1):
        totals[p] = _evaluate_range(data, indices, indptr, rank, x, bounds[p], bounds[p + 1], s, parts[p])
    total = 0.0
    for p in range(totals.size):
        total += totals[p]
    return total, _total(parts), s


@kernel
def hessian_product(data, indices, indptr, columns, rank, x, s, known, v):
    """Return ρ''(x)v in one pass; ``s`` is the image of x where ``known``, and is filled where not."""
    product = np.zeros(columns)
    _hessian_range(data, indices, indptr, rank, x, known, v, 0, s.size // rank, s, product)
    return product


@parallel_kernel
def hessian_product_parallel(data, indices, indptr, columns, rank, x, s, known, v, bounds):
    """Return ρ''(x)v in one pass shared between threads."""
    parts = np.zeros((bounds.size - 1, columns))
    for p in prange(bounds.size - 1):
        _hessian_range(data, indices, indptr, rank, x, known, v, bounds[p], bounds[p + 1], s, parts[p])
    return _total(parts)
