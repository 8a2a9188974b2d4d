"""Kernels of L-BFGS for ‖XXᵀ − M‖²_F over X ≥ 0: directions of what is free, in a metric of the rows of X."""

from __future__ import annotations

import numpy as np

from .jit import dividing_kernel

#: A pair (s, y) is used where ⟨s,y⟩ on what is free exceeds this share of ‖y‖².
CURVED = 1e-10


@dividing_kernel
def _dot(a, b):
    total = 0.0
    for p in range(a.size):
        total += a[p] * b[p]
    return total


@dividing_kernel
def _overlap(square):
    """Return the largest squared cosine between two columns of X, from XᵀX."""
    largest = 0.0
    for k in range(square.shape[0]):
        for j in range(k):
            both = square[k, k] * square[j, j]
            if both > 0.0:
                largest = max(largest, square[k, j] * square[k, j] / both)
    return largest


@dividing_kernel
def _solve_rows(x, square, free, u, v):
    """Solve with XᵀX + xᵢxᵢᵀ on the free entries of every row i, in place: a quarter of the second derivative there."""
    n, r = x.shape
    factor, where = np.empty((r, r)), np.empty(r + 1, np.uintp)
    ridge = 1e-10 * np.trace(square)
    for i in range(n):
        size = 0
        for k in range(r):
            where[size] = np.uintp(k)
            size += free[i, k]
        for a in range(size):
            p = where[a]
            for b in range(a):
                q = where[b]
                entry = square[p, q] + x[i, p] * x[i, q]
                for c in range(b):
                    entry -= factor[a, c] * factor[b, c]
                entry *= factor[b, b]
                factor[a, b] = entry
                u[i, p] -= entry * u[i, q]
                v[i, p] -= entry * v[i, q]
            entry = square[p, p] + x[i, p] * x[i, p]
            for c in range(a):
                entry -= factor[a, c] * factor[a, c]
            scale = 1.0 / np.sqrt(max(entry, 0.0) + ridge)
            factor[a, a] = scale
            u[i, p] *= scale
            v[i, p] *= scale
        for a in range(size - 1, -1, -1):
            p = where[a]
            u[i, p] *= factor[a, a]
            v[i, p] *= factor[a, a]
            for b in range(a):
                u[i, where[b]] -= factor[a, b] * u[i, p]
                v[i, where[b]] -= factor[a, b] * v[i, p]


@dividing_kernel
def _spread(values, where, shape):
    """Return a matrix with the values at these places, zero elsewhere."""
    out = np.zeros(shape)
    flat = out.reshape(-1)
    for p in range(where.size):
        flat[where[p]] = values[p]
    return out


@dividing_kernel
def _scaled(x, square, free, where, q, change, curvature, overlap):
    """Write γB⁻¹q into q: B the row metric or the identity, γ = ⟨s,y⟩/⟨y,B⁻¹y⟩ for the last pair, if there is one."""
    if _overlap(square) > overlap:
        u, v = _spread(q, where, x.shape), _spread(change, where, x.shape)
        _solve_rows(x, square, free, u, v)
        above, solved = u.reshape(-1), v.reshape(-1)
        gamma, below = 0.25, 0.0
        if curvature > 0.0:
            for p in range(where.size):
                below += change[p] * solved[where[p]]
            gamma = curvature / below
        for p in range(where.size):
            q[p] = gamma * above[where[p]]
    else:
        gamma = curvature / _dot(change, change) if curvature > 0.0 else 0.25 / np.diag(square).max()
        for p in range(where.size):
            q[p] *= gamma


@dividing_kernel
def direction(x, gradient, steps, changes, count, overlap):
    """Return −H∇F on the free entries of X, zero elsewhere: positive ones, and zeros with a negative slope.

    H is that of the two-loop recursion over the last pairs, cut to what is free. ``steps`` and ``changes`` are ring
    buffers of flat pairs of which ``count`` were kept so far.
    """
    size, memory = x.size, steps.shape[0]
    kept = min(count, memory)
    at, slopes = x.reshape(-1), gradient.reshape(-1)
    free, where = np.empty(x.shape, np.uint8), np.empty(size + 1, np.uint32)
    marks = free.reshape(-1)
    found = 0
    for p in range(size):  # without branches, which would be guessed wrong
        marks[p] = (at[p] > 0.0) | (slopes[p] < 0.0)
        where[found] = p
        found += marks[p]
    where = where[:found]
    q = np.empty(found)
    for p in range(found):
        q[p] = slopes[where[p]]
    s, y = np.empty((kept, found)), np.empty((kept, found))
    curvatures, shares = np.zeros(kept), np.zeros(kept)
    last = -1
    for back in range(kept):
        i = (count - 1 - back) % memory
        step, change = s[back], y[back]
        for p in range(found):
            step[p] = steps[i, where[p]]
            change[p] = changes[i, where[p]]
        curvature = _dot(step, change)
        if curvature <= CURVED * _dot(change, change):
            continue
        last = back if last < 0 else last
        curvatures[back], shares[back] = curvature, _dot(step, q) / curvature
        for p in range(found):
            q[p] -= shares[back] * change[p]
    square = np.dot(x.T, x)
    _scaled(x, square, free, where, q, y[last] if last >= 0 else q, curvatures[last] if last >= 0 else 0.0, overlap)
    for back in range(kept - 1, -1, -1):
        if curvatures[back] > 0.0:
            step, change = s[back], y[back]
            share = shares[back] - _dot(change, q) / curvatures[back]
            for p in range(found):
                q[p] += share * step[p]
    for p in range(found):
        q[p] = -q[p]
    return _spread(q, where, x.shape)


@dividing_kernel
def toward(x, gradient, v, t):
    """Return max(X + tV, 0) and the slope of F towards it."""
    out = np.empty_like(x)
    slope = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = max(x[i, k] + t * v[i, k], 0.0)
            slope += gradient[i, k] * (out[i, k] - x[i, k])
    return out, slope
