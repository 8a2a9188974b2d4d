"""Where along a line is F least? A quartic with up to two valleys: the lowest point is found exactly."""

from __future__ import annotations

import math

import numpy as np


def value_on(line: np.ndarray, t: float) -> float:
    """Return the quartic at t, coefficients constant first."""
    return float(line[0] + t * (line[1] + t * (line[2] + t * (line[3] + t * line[4]))))


def fall_on(line: np.ndarray, t: float) -> float:
    """Return how far the quartic falls from 0 to t; no digit is lost to its constant."""
    return -float(t * (line[1] + t * (line[2] + t * (line[3] + t * line[4]))))


def lowest(line: np.ndarray, low: float = -math.inf, high: float = math.inf) -> float:
    """Return the t in [low, high] where a quartic is least; 0 where it falls nowhere visibly.

    Parameters
    ----------
    line : array of shape (5,)
        The coefficients, constant first, the last nonnegative.
    low, high : float
        With low ≤ 0 ≤ high.
    """
    _, c1, c2, c3, c4 = (float(coefficient) for coefficient in line)
    # In units where the candidate steps are of order one, so that tiny and huge directions are the same to the roots.
    sizes = [
        abs(c1 / c2) if c2 else 0.0,
        math.sqrt(abs(c2 / c4)) if c4 else 0.0,
        abs(c1 / c4) ** (1 / 3) if c4 else 0.0,
    ]
    unit = min((size for size in sizes if 0.0 < size < math.inf), default=1.0)
    cubic = [4.0 * c4 * unit**3, 3.0 * c3 * unit**2, 2.0 * c2 * unit, c1]
    largest = max(map(abs, cubic))
    if not 0.0 < largest < math.inf:
        return 0.0
    candidates = [_polished(line, unit * root) for root in _real_roots([entry / largest for entry in cubic])]
    candidates = [min(max(t, low), high) for t in candidates]
    candidates += [end for end in (low, high) if math.isfinite(end)]
    best = max(candidates, key=lambda t: fall_on(line, t), default=0.0)
    return best if fall_on(line, best) > 0.0 else 0.0


def _real_roots(cubic: list[float]) -> list[float]:
    """Return the real parts of the roots of a cubic, highest power first; those that are no roots do no harm."""
    a, b, c, d = cubic
    if abs(a) < 1e-14:
        if abs(b) < 1e-14:
            return [-d / c] if c else []
        inner = c * c - 4.0 * b * d
        if inner < 0.0:
            return [-0.5 * c / b]
        q = -0.5 * (c + math.copysign(math.sqrt(inner), c))
        return [root for root in (q / b, d / q if q else 0.0) if math.isfinite(root)]
    p, q, r = b / a, c / a, d / a
    shift = p / 3.0
    u, v = q - p * shift, r - q * shift + 2.0 * shift**3
    discriminant = (v / 2.0) ** 2 + (u / 3.0) ** 3
    if discriminant > 0.0:
        root = math.sqrt(discriminant)
        first = -math.copysign((abs(v) / 2.0 + root) ** (1.0 / 3.0), v)
        return [first - u / (3.0 * first) - shift]
    if u == 0.0:
        return [-shift]
    radius = 2.0 * math.sqrt(-u / 3.0)
    angle = math.acos(max(-1.0, min(1.0, 3.0 * v / (u * radius))))
    return [radius * math.cos((angle - 2.0 * math.pi * k) / 3.0) - shift for k in range(3)]


def _polished(line: np.ndarray, t: float) -> float:
    """Return a stationary point after two steps of Newton's method, which restore what the formula rounded away."""
    _, c1, c2, c3, c4 = (float(coefficient) for coefficient in line)
    for _ in range(2):
        slope = c1 + t * (2.0 * c2 + t * (3.0 * c3 + t * 4.0 * c4))
        curvature = 2.0 * c2 + t * (6.0 * c3 + t * 12.0 * c4)
        if not curvature > 0.0:
            break
        following = t - slope / curvature
        if not math.isfinite(following) or abs(following - t) > 0.1 * abs(t):
            break
        t = following
    return t
