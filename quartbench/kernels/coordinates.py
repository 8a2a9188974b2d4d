"""Kernels of coordinate descent on ‖XᵀX‖²_F + 2σ‖X‖²_F − ⟨C,X⟩ over X ≥ 0, and on ‖XXᵀ − M‖²_F itself."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def _positive_root(a, b):
    """Return the x ≥ 0 where x⁴ + 2ax² + 4bx is least: a root of x³ + ax + b, or 0."""
    if a >= 0.0:
        if b >= 0.0:
            return 0.0
        if a == 0.0:
            return np.cbrt(-b)
        # One real root, and the slope never falls: Cardano's formula without cancellation.
        half = -0.5 * b
        third = a / 3.0
        u = np.cbrt(half + np.sqrt(half * half + third * third * third))
        return -b / (u * u + third + (third / u) * (third / u))
    third = -a / 3.0
    half = -0.5 * b
    inside = half * half - third * third * third
    if inside > 0.0:
        x = np.cbrt(half + np.sqrt(inside)) + np.cbrt(half - np.sqrt(inside))
    else:
        x = 2.0 * np.sqrt(third) * np.cos(np.arccos(half / (third * np.sqrt(third))) / 3.0)
    if x <= 0.0:
        return 0.0
    return x if x * (x * (x * x + 2.0 * a) + 4.0 * b) < 0.0 else 0.0


@kernel
def _move(x, gram, i, k, new):
    """Set a coordinate of X, and keep G = XᵀX."""
    old = x[i, k]
    step = new - old
    if step != 0.0:
        for j in range(x.shape[1]):
            if j != k:
                change = step * x[i, j]
                gram[k, j] += change
                gram[j, k] += change
        gram[k, k] += new * new - old * old
        x[i, k] = new


@kernel
def convex_sweep(x, c, sigma):
    """Minimise over each coordinate of X ≥ 0 once, row by row, in place.

    Along xᵢₖ the slope is 4(x³ + (a + σ)x + b) − cᵢₖ with a = Σ_{l≠k} xᵢₗ² + Σ_{j≠i} xⱼₖ² and
    b = Σ_{l≠k} xᵢₗΣ_{j≠i} xⱼₗxⱼₖ; G = XᵀX gives both.
    """
    n, r = x.shape
    gram = np.dot(x.T, x)
    for i in range(n):
        for k in range(r):
            old = x[i, k]
            row = inner = 0.0
            for j in range(r):
                if j != k:
                    row += x[i, j] * x[i, j]
                    inner += x[i, j] * gram[k, j]
            a = row + gram[k, k] - old * old + sigma
            b = inner - old * row - 0.25 * c[i, k]
            _move(x, gram, i, k, _positive_root(a, b))


@kernel
def exact_sweep(matrix, x):
    """Minimise ‖XXᵀ − M‖²_F over each coordinate of X ≥ 0 once, column by column, in place, M dense.

    The method of Vandaele and others: along xᵢₖ the slope is 4(x³ + ax + b) with the a and b of ``convex_sweep`` less
    Mᵢᵢ and Σ_{j≠i} Mᵢⱼxⱼₖ.
    """
    n, r = x.shape
    gram = np.dot(x.T, x)
    for k in range(r):
        for i in range(n):
            old = x[i, k]
            row = inner = 0.0
            for j in range(r):
                if j != k:
                    row += x[i, j] * x[i, j]
                    inner += x[i, j] * gram[k, j]
            product = 0.0
            for j in range(n):
                product += matrix[i, j] * x[j, k]
            a = row + gram[k, k] - old * old - matrix[i, i]
            b = inner - old * row - (product - matrix[i, i] * old)
            _move(x, gram, i, k, _positive_root(a, b))
