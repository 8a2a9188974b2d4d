"""Kernels of quasi-Newton methods: the two-loop recursion of L-BFGS, and the pairs it is made of."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def _dot(a, b):
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel
def lbfgs_direction(gradient, steps, changes, count, inverse):
    """Return −Hg by the two-loop recursion over the last pairs (s, y), from γ·diag(inverse).

    ``steps`` and ``changes`` are ring buffers of which ``count`` pairs were kept so far; γ = ⟨s,y⟩/⟨y,diag(inverse)y⟩
    for the last of them.
    """
    memory = steps.shape[0]
    kept = min(count, memory)
    q = gradient.copy()
    shares = np.empty(kept)
    for back in range(kept):
        i = (count - 1 - back) % memory
        share = _dot(steps[i], q) / _dot(steps[i], changes[i])
        shares[back] = share
        for k in range(q.size):
            q[k] -= share * changes[i, k]
    gamma = 1.0
    if kept:
        i = (count - 1) % memory
        below = 0.0
        for k in range(q.size):
            below += changes[i, k] * changes[i, k] * inverse[k]
        gamma = _dot(steps[i], changes[i]) / below
    for k in range(q.size):
        q[k] *= -gamma * inverse[k]
    for back in range(kept - 1, -1, -1):
        i = (count - 1 - back) % memory
        share = shares[back] + _dot(changes[i], q) / _dot(steps[i], changes[i])
        for k in range(q.size):
            q[k] -= share * steps[i, k]
    return q


@kernel
def keep_pair(steps, changes, count, point, point_before, gradient, gradient_before):
    """Keep the pair (x − x_before, g − g_before) where it curves upwards; return how many were kept so far."""
    i = count % steps.shape[0]
    curvature = length = 0.0
    for k in range(point.size):
        s = point[k] - point_before[k]
        y = gradient[k] - gradient_before[k]
        steps[i, k] = s
        changes[i, k] = y
        curvature += s * y
        length += y * y
    return count + 1 if curvature > 1e-14 * length else count
