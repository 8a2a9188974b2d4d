"""Kernels on the Gram form ρ(X) = ‖XᵀX‖²_F, X of n × r: everything goes through r × r matrices."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def _square(a):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * a[i, j]
    return total


@kernel
def value(x):
    """Return ‖XᵀX‖²_F."""
    return _square(np.dot(x.T, x))


@kernel
def evaluate(x):
    """Return ρ(X) and ∇ρ(X) = 4X(XᵀX)."""
    gram = np.dot(x.T, x)
    return _square(gram), 4.0 * np.dot(x, gram)


@kernel
def misfit(x, product):
    """Return ‖XXᵀ − M‖²_F less ‖M‖²_F, and its gradient 4(X(XᵀX) − MX), from X and MX."""
    gram = np.dot(x.T, x)
    gradient = np.dot(x, gram)
    inner = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            inner += x[i, k] * product[i, k]
            gradient[i, k] = 4.0 * (gradient[i, k] - product[i, k])
    return _square(gram) - 2.0 * inner, gradient


@kernel
def hessian_product(x, v):
    """Return ρ''(X)V = 4(V XᵀX + X(VᵀX + XᵀV))."""
    cross = np.dot(x.T, v)
    return 4.0 * (np.dot(v, np.dot(x.T, x)) + np.dot(x, cross + cross.T))


@kernel
def line(x, d):
    """Return the five coefficients of t ↦ ‖(X + tD)ᵀ(X + tD)‖²_F, constant first."""
    a = np.dot(x.T, x)
    cross = np.dot(x.T, d)
    b = cross + cross.T
    e = np.dot(d.T, d)
    out = np.empty(5)
    out[0] = _square(a)
    out[1] = 2.0 * np.sum(a * b)
    out[2] = _square(b) + 2.0 * np.sum(a * e)
    out[3] = 2.0 * np.sum(b * e)
    out[4] = _square(e)
    return out
