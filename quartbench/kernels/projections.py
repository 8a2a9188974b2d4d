"""Kernels that project onto K ∩ {⟨c,y⟩ = 1} for the cones whose slice has no closed form."""

from __future__ import annotations

import math

import numpy as np

from .jit import kernel


@kernel
def orthant_slice(y, c, d):
    """Return argmin Σ dⱼ(zⱼ − yⱼ)² over z ≥ 0, ⟨c,z⟩ = 1, exactly.

    The solution is z(t) = (y + t c/d)₊ for the t with ⟨c,z(t)⟩ = 1 (ERRATA 6). ⟨c,z(t)⟩ is nondecreasing and piecewise
    linear with a break at tⱼ = −yⱼdⱼ/cⱼ: coordinates with cⱼ > 0 enter there as t grows, those with cⱼ < 0 leave. So
    sort the breaks and walk to the piece that crosses 1. Some cⱼ must be positive.
    """
    n = y.size
    breaks = np.empty(n)
    count = 0
    owner = np.empty(n, dtype=np.int64)
    slope = 0.0  # ⟨c,z(t)⟩ = offset + slope·t on the current piece, which starts at t = −∞
    offset = 0.0
    for j in range(n):
        if c[j] != 0.0:
            breaks[count] = -y[j] * d[j] / c[j]
            owner[count] = j
            count += 1
            if c[j] < 0.0:
                slope += c[j] * c[j] / d[j]
                offset += c[j] * y[j]
    order = np.argsort(breaks[:count])
    # On the first piece only coordinates with c < 0 are active, where ⟨c,z⟩ ≤ 0 < 1: the crossing comes later.
    t = 0.0
    for k in range(count):
        j = owner[order[k]]
        if c[j] > 0.0:
            slope += c[j] * c[j] / d[j]
            offset += c[j] * y[j]
        else:
            slope -= c[j] * c[j] / d[j]
            offset -= c[j] * y[j]
        if k + 1 < count and offset + slope * breaks[order[k + 1]] < 1.0:
            continue
        # The running sums carry the rounding of every piece before: sum this one again before it decides t.
        low = breaks[order[k]]
        high = breaks[order[k + 1]] if k + 1 < count else np.inf
        middle = 0.5 * (low + high) if high < np.inf else low + 1.0 + abs(low)
        slope = 0.0
        offset = 0.0
        for i in range(n):
            if y[i] + middle * c[i] / d[i] > 0.0:
                slope += c[i] * c[i] / d[i]
                offset += c[i] * y[i]
        if slope > 0.0:
            t = (1.0 - offset) / slope
            if t <= high:
                break
    z = np.empty(n)
    for j in range(n):
        z[j] = max(y[j] + t * c[j] / d[j], 0.0)
    return z


@kernel
def second_order(y):
    """Return the Euclidean projection of y = (s, v) onto {‖v‖ ≤ s}."""
    s = y[0]
    norm = 0.0
    for j in range(1, y.size):
        norm += y[j] * y[j]
    norm = math.sqrt(norm)
    z = y.copy()
    if norm <= s:
        return z
    if norm <= -s:
        z[:] = 0.0
        return z
    z[0] = 0.5 * (s + norm)
    for j in range(1, y.size):
        z[j] = y[j] * (z[0] / norm)
    return z


@kernel
def _dot(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel
def second_order_slice(y, c):
    """Return the Euclidean projection of y onto {‖v‖ ≤ s} ∩ {⟨c,·⟩ = 1}: the root of t ↦ ⟨c,P_K(y + tc)⟩ − 1.

    The function is nondecreasing (ERRATA 6); it is bracketed by doubling, then closed in by regula falsi with bisection
    as a safeguard, down to neighbouring floats.
    """
    scale = 1.0 / _dot(c, c)
    low = 0.0
    high = 0.0
    f_low = _dot(c, second_order(y)) - 1.0
    f_high = f_low
    step = scale * max(1.0, abs(f_low))
    while f_high < 0.0:
        low, f_low = high, f_high
        high += step
        step *= 2.0
        f_high = _dot(c, second_order(y + high * c)) - 1.0
    while f_low > 0.0:
        high, f_high = low, f_low
        low -= step
        step *= 2.0
        f_low = _dot(c, second_order(y + low * c)) - 1.0
    for iteration in range(200):
        if f_low == 0.0 or f_high == 0.0 or high - low <= 4e-16 * max(abs(low), abs(high)):
            break
        t = low - f_low * (high - low) / (f_high - f_low)
        if iteration % 2 == 1 or not low < t < high:
            t = 0.5 * (low + high)
        f = _dot(c, second_order(y + t * c)) - 1.0
        if f < 0.0:
            low, f_low = t, f
        else:
            high, f_high = t, f
    t = low if abs(f_low) < abs(f_high) else high
    z = second_order(y + t * c)
    return z * (1.0 / _dot(c, z))
