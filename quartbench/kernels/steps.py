"""Kernels of the gradient methods on vectors: a step inside a slice, an extrapolation, and the same on images."""

from __future__ import annotations

import math

import numpy as np

from .jit import kernel


@kernel
def slice_step(z, v, gradient, rho, c, normal, t):
    """Return y = z − t d and ‖d‖²_B for d the B-gradient of √ρ at z inside {⟨c,·⟩ = 1}.

    ``v`` is B⁻¹∇ρ(z) and ``normal`` is B⁻¹c/‖c‖²_*, both inside the subspace where the cone is one; then
    d = (v − ⟨c,v⟩·normal)/(2√ρ) and ‖d‖²_B = ⟨∇√ρ(z),d⟩. The last loop takes back the rounding of ⟨c,y⟩ = 1.
    """
    half = 0.5 / math.sqrt(rho)
    along = 0.0
    for j in range(v.size):
        along += c[j] * v[j]
    y = np.empty_like(z)
    slope = 0.0
    inner = 0.0
    for j in range(v.size):
        d = half * (v[j] - along * normal[j])
        slope += gradient[j] * d
        y[j] = z[j] - t * d
        inner += c[j] * y[j]
    miss = 1.0 - inner
    for j in range(v.size):
        y[j] += miss * normal[j]
    return y, half * slope


@kernel
def extrapolate(y, before, theta):
    """Return y + θ(y − before)."""
    z = np.empty_like(y)
    for j in range(y.size):
        z[j] = y[j] + theta * (y[j] - before[j])
    return z


@kernel
def image_behind(ahead, before, theta, at):
    """Return the image s of y from that of z = y + θ(y − before), and s − at. Errors do not grow: θ/(1+θ) ≤ ½."""
    share = 1.0 / (1.0 + theta)
    s = np.empty_like(ahead)
    w = np.empty_like(ahead)
    for k in range(ahead.size):
        s[k] = share * (ahead[k] + theta * before[k])
        w[k] = s[k] - at[k]
    return s, w
