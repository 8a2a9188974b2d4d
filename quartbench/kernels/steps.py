"""Kernels of the gradient methods on vectors: a step inside a slice, an extrapolation, and the same on images."""

from __future__ import annotations

import math

import numpy as np

from .jit import kernel


@kernel
def slice_step(z, v, gradient, rho, c, normal, share, t):
    """Return y = z − t d and ‖d‖²_B for d the B-gradient of √ρ at z inside {⟨c,·⟩ = 1}.

    ``v`` is B⁻¹∇ρ(z), ``normal`` is B⁻¹c/‖c‖²_* and ``share`` 1/‖c‖²_*, all inside the subspace where the cone is one;
    then d = (v − ⟨c,v⟩·normal)/(2√ρ) and ‖d‖²_B = ⟨Bd,d⟩ with Bd = (∇ρ − ⟨c,v⟩·share·c)/(2√ρ): to take out the part
    along c, which d does not see, before the product keeps digits. The last loop takes back the rounding of ⟨c,y⟩ = 1.
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
        slope += (gradient[j] - along * share * c[j]) * d
        y[j] = z[j] - t * d
        inner += c[j] * y[j]
    miss = 1.0 - inner
    for j in range(v.size):
        y[j] += miss * normal[j]
    return y, half * slope


@kernel
def extrapolate(y, before, theta, gradient):
    """Return y + θ(y − before) and ⟨gradient, y − before⟩."""
    z = np.empty_like(y)
    uphill = 0.0
    for j in range(y.size):
        h = y[j] - before[j]
        uphill += gradient[j] * h
        z[j] = y[j] + theta * h
    return z, uphill


@kernel
def accelerated_step(z, v, gradient, rho, c, normal, share, t, before, theta):
    """Return ``slice_step`` and ``extrapolate`` together: y, y + θ(y − before), ‖d‖²_B and ⟨∇ρ(z), y − before⟩."""
    y, slope = slice_step(z, v, gradient, rho, c, normal, share, t)
    ahead, uphill = extrapolate(y, before, theta, gradient)
    return y, ahead, slope, uphill
