"""TEMP."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg


class Solved(NamedTuple):
    x: np.ndarray
    residual: np.ndarray
    companion: Any
    steps: list
    ratios: list


def conjugate_gradients(product, v, precondition, *, first=None, share=1e-13, products=1000, watch=None):
    z = precondition(v) if first is None else first
    e, rest, p = np.zeros_like(v), v, z
    companion = None
    rz = float(v @ z)
    steps, ratios = [], []
    if not rz > 0.0:
        return Solved(z, v, None, steps, ratios)
    goal = share * share * rz
    square, largest = rz, 0.0
    if watch is not None:
        watch.begin()
        products = watch.products
    for _ in range(products):
        hp, beside = product(p)
        curvature = float(p @ hp)
        largest = max(largest, curvature / square)
        if not curvature > 1e-15 * largest * square:
            return Solved(e if e.any() else p, rest, companion, steps, ratios)
        step = rz / curvature
        e = e + step * p
        rest = rest - step * hp
        if beside is not None:
            companion = step * beside if companion is None else companion + step * beside
        z = precondition(rest)
        rz, last = float(rest @ z), rz
        steps.append(step)
        ratios.append(rz / last)
        if watch is not None:
            watch.add(step, rz / last)
        if not rz > goal:
            break
        p = z + (rz / last) * p
        square = rz + (rz / last) ** 2 * square
    return Solved(e, rest, companion, steps, ratios)


def ritz_values(steps, ratios):
    main = 1.0 / steps
    main[1:] += ratios[:-1] / steps[:-1]
    beside, last = np.sqrt(ratios[:-1]) / steps[:-1], len(main) - 1
    low, high = (scipy.linalg.eigvalsh_tridiagonal(main, beside, select="i", select_range=(i, i))[0] for i in (0, last))
    return float(low), float(high)
