"""Kernels on images: the value, the weights of a gradient or Hessian product, and the five coefficients along a line.

An image is the stacked s = Mx of length m·r; term i owns ``s[i*r:(i+1)*r]``. Nothing here reads the rows of a form.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def value(image, rank):
    """Return ρ = Σᵢ ‖sᵢ‖⁴."""
    total = 0.0
    if rank == 1:
        for s in image:
            total += (s * s) * (s * s)
        return total
    for i in range(image.size // rank):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
        total += q * q
    return total


@kernel
def gradient_weights(image, rank, weights):
    """Write wᵢ = 4‖sᵢ‖²sᵢ, so that ∇ρ = Σ Uᵢwᵢ, and return ρ."""
    total = 0.0
    if rank == 1:
        for i in range(image.size):
            s = image[i]
            q = s * s
            total += q * q
            weights[i] = 4.0 * q * s
        return total
    for i in range(image.size // rank):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
        total += q * q
        for k in range(i * rank, (i + 1) * rank):
            weights[k] = 4.0 * q * image[k]
    return total


@kernel
def hessian_weights(image, direction, rank, weights):
    """Write wᵢ = 4‖sᵢ‖²tᵢ + 8⟨sᵢ,tᵢ⟩sᵢ for t the image of v: ρ''(x)v = Σ Uᵢwᵢ (errata 2 of the documentation)."""
    if rank == 1:
        for i in range(image.size):
            weights[i] = 12.0 * image[i] * image[i] * direction[i]
        return
    for i in range(image.size // rank):
        q = 0.0
        b = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
            b += image[k] * direction[k]
        for k in range(i * rank, (i + 1) * rank):
            weights[k] = 4.0 * q * direction[k] + 8.0 * b * image[k]


@kernel
def _coefficients(image, direction, rank):
    c0 = c1 = c2 = c3 = c4 = 0.0
    if rank == 1:
        for i in range(image.size):
            s = image[i]
            w = direction[i]
            a = s * s
            b = s * w
            e = w * w
            c0 += a * a
            c1 += a * b
            c2 += a * e
            c3 += b * e
            c4 += e * e
        c2 *= 6.0
    else:
        for i in range(image.size // rank):
            a = b = e = 0.0
            for k in range(i * rank, (i + 1) * rank):
                a += image[k] * image[k]
                b += image[k] * direction[k]
                e += direction[k] * direction[k]
            c0 += a * a
            c1 += a * b
            c2 += 4.0 * b * b + 2.0 * a * e
            c3 += b * e
            c4 += e * e
    return c0, 4.0 * c1, c2, 4.0 * c3, c4


@kernel
def line(image, direction, rank):
    """Return the five coefficients of t ↦ ρ(x + t d), constant first, from the images of x and d."""
    out = np.empty(5)
    out[0], out[1], out[2], out[3], out[4] = _coefficients(image, direction, rank)
    return out


@kernel
def behind(ahead, before, theta, out):
    """Write the image of y, known from that of z = y + θ(y − before). Errors do not grow: θ/(1+θ) ≤ ½ for θ ≤ 1."""
    share = 1.0 / (1.0 + theta)
    for k in range(ahead.size):
        out[k] = share * (ahead[k] + theta * before[k])


@kernel
def line_behind(at, ahead, before, theta, rank, out):
    """Write the image of y as ``behind`` does; return the coefficients of t ↦ ρ(x + t(y − x)), x of image ``at``."""
    behind(ahead, before, theta, out)
    direction = np.empty_like(out)
    for k in range(out.size):
        direction[k] = out[k] - at[k]
    return _coefficients(at, direction, rank)


@kernel
def dual_value(weights, rank):
    """Return Σᵢ 3(‖λᵢ‖/4)^{4/3}, the conjugate of Σ‖sᵢ‖⁴ at the stacked λ."""
    total = 0.0
    for i in range(weights.size // rank):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += weights[k] * weights[k]
        total += (q / 16.0) ** (2.0 / 3.0)
    return 3.0 * total


@kernel
def square_norms(image, rank):
    """Return ‖sᵢ‖² for every term."""
    out = np.empty(image.size // rank)
    for i in range(out.size):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
        out[i] = q
    return out
