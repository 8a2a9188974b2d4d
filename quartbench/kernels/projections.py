"""Kernels that project onto cones, and onto K ∩ {⟨c,y⟩ = 1} where that slice has no closed form."""

from __future__ import annotations

import math

import numpy as np

from .jit import kernel


@kernel
def _orthant_inner(y, c, d, t):
    """Return ⟨c,z(t)⟩ for z(t) = (y + t c/d)₊."""
    total = 0.0
    for j in range(y.size):
        total += c[j] * max(y[j] + t * c[j] / d[j], 0.0)
    return total


@kernel
def _orthant_crossing(y, c, d):
    """Return the t with ⟨c,z(t)⟩ = 1 for z(t) = (y + t c/d)₊.

    ⟨c,z(t)⟩ is nondecreasing and piecewise linear with a break at tⱼ = −yⱼdⱼ/cⱼ: coordinates with cⱼ > 0 enter there as
    t grows, those with cⱼ < 0 leave. Sort the breaks and halve their range down to the piece that crosses 1. (A walk
    with running sums is as fast, but what leaves a sum leaves its rounding behind: uneven c took it to a wrong piece.)
    """
    breaks = np.empty(y.size)
    for j in range(y.size):
        breaks[j] = -y[j] * d[j] / c[j] if c[j] != 0.0 else np.inf
    ordered = np.sort(breaks)
    first = -1
    last = ordered.size
    while last - first > 1:
        middle = (first + last) // 2
        if ordered[middle] < np.inf and _orthant_inner(y, c, d, ordered[middle]) < 1.0:
            first = middle
        else:
            last = middle
    low = ordered[first] if first >= 0 else -np.inf
    high = ordered[last] if last < ordered.size else np.inf
    slope = 0.0  # ⟨c,z(t)⟩ = offset + slope·t on the piece
    offset = 0.0
    for j in range(y.size):
        if (c[j] > 0.0 and breaks[j] <= low) or (c[j] < 0.0 and breaks[j] >= high):
            slope += c[j] * c[j] / d[j]
            offset += c[j] * y[j]
    return min(max((1.0 - offset) / slope, low), high) if slope > 0.0 else high


@kernel
def orthant_slice(y, c, d):
    """Return argmin Σ dⱼ(zⱼ − yⱼ)² over z ≥ 0, ⟨c,z⟩ = 1, exactly. Some cⱼ must be positive.

    The solution is z(t) = (y + t c/d)₊ for the t with ⟨c,z(t)⟩ = 1 (errata 6 of the documentation). From a y far away z
    carries the rounding of y: then the search is done again from y + t c/d, which has the same solution and is near it.
    """
    u = y.copy()
    z = np.empty_like(y)
    for _ in range(4):
        t = _orthant_crossing(u, c, d)
        inner = 0.0
        size = 1.0
        for j in range(y.size):
            u[j] += t * c[j] / d[j]
            z[j] = max(u[j], 0.0)
            inner += c[j] * z[j]
            size += abs(c[j] * z[j])
        if abs(inner - 1.0) <= 1e-14 * size:
            break
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

    The function is nondecreasing (errata 6 of the documentation); it is bracketed by doubling, then closed in by regula
    falsi with bisection as a safeguard, down to neighbouring floats.
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
    # Where the projection is zero ⟨c,·⟩ is too, f is −1, and no multiple of it is on the slice.
    t = low if f_low > -1.0 and abs(f_low) < abs(f_high) else high
    z = second_order(y + t * c)
    return z * (1.0 / _dot(c, z))


@kernel
def centred(x, shares):
    """Return the N × d points less their sum, of which each takes its share: no translation is left."""
    points, d = shares.shape
    totals = np.zeros(d)
    for i in range(points):
        for k in range(d):
            totals[k] += x[i * d + k]
    out = np.empty(x.size)
    for i in range(points):
        for k in range(d):
            out[i * d + k] = x[i * d + k] - shares[i, k] * totals[k]
    return out
