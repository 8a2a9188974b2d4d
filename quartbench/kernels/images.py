"""Kernels on images: the value, the weights of a gradient or Hessian product, and the five coefficients along a line.

An image is the stacked s = Mx of length m·r; term i owns ``s[i*r:(i+1)*r]``. Nothing here reads the rows of a form.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

# Loops over the entries of a term are unrolled where the rank is a constant: then a kernel takes a quarter of the time.


@kernel
def _value(image, rank):
    total = 0.0
    for i in range(image.size // rank):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
        total += q * q
    return total


@kernel
def value(image, rank):
    """Return ρ = Σᵢ ‖sᵢ‖⁴."""
    if rank == 1:
        return _value(image, 1)
    if rank == 2:
        return _value(image, 2)
    if rank == 3:
        return _value(image, 3)
    return _value(image, rank)


@kernel
def _write_gradient_weights(image, rank, weights):
    total = 0.0
    for i in range(image.size // rank):
        q = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
        total += q * q
        for k in range(i * rank, (i + 1) * rank):
            weights[k] = 4.0 * q * image[k]
    return total


@kernel
def gradient_weights(image, rank, weights):
    """Write wᵢ = 4‖sᵢ‖²sᵢ, so that ∇ρ = Σ Uᵢwᵢ, and return ρ."""
    if rank == 1:
        return _write_gradient_weights(image, 1, weights)
    if rank == 2:
        return _write_gradient_weights(image, 2, weights)
    if rank == 3:
        return _write_gradient_weights(image, 3, weights)
    return _write_gradient_weights(image, rank, weights)


@kernel
def _write_hessian_weights(image, direction, rank, weights):
    for i in range(image.size // rank):
        q = 0.0
        b = 0.0
        for k in range(i * rank, (i + 1) * rank):
            q += image[k] * image[k]
            b += image[k] * direction[k]
        for k in range(i * rank, (i + 1) * rank):
            weights[k] = 4.0 * q * direction[k] + 8.0 * b * image[k]


@kernel
def hessian_weights(image, direction, rank, weights):
    """Write wᵢ = 4‖sᵢ‖²tᵢ + 8⟨sᵢ,tᵢ⟩sᵢ for t the image of v: ρ''(x)v = Σ Uᵢwᵢ (errata 2 of the documentation)."""
    if rank == 1:
        for i in range(image.size):
            weights[i] = 12.0 * image[i] * image[i] * direction[i]
    elif rank == 2:
        _write_hessian_weights(image, direction, 2, weights)
    elif rank == 3:
        _write_hessian_weights(image, direction, 3, weights)
    else:
        _write_hessian_weights(image, direction, rank, weights)


@kernel
def _add_coefficients(image, direction, rank):
    c0 = c1 = c2 = c3 = c4 = 0.0
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
def _coefficients_one(image, direction):
    c0 = c1 = c2 = c3 = c4 = 0.0
    for i in range(image.size):
        a = image[i] * image[i]
        b = image[i] * direction[i]
        e = direction[i] * direction[i]
        c0 += a * a
        c1 += a * b
        c2 += a * e
        c3 += b * e
        c4 += e * e
    return c0, 4.0 * c1, 6.0 * c2, 4.0 * c3, c4


@kernel
def _coefficients_three(image, direction):
    c0 = c1 = c2 = c3 = c4 = 0.0
    for i in range(image.size // 3):
        s0, s1, s2 = image[3 * i], image[3 * i + 1], image[3 * i + 2]
        t0, t1, t2 = direction[3 * i], direction[3 * i + 1], direction[3 * i + 2]
        a = s0 * s0 + s1 * s1 + s2 * s2
        b = s0 * t0 + s1 * t1 + s2 * t2
        e = t0 * t0 + t1 * t1 + t2 * t2
        c0 += a * a
        c1 += a * b
        c2 += 4.0 * b * b + 2.0 * a * e
        c3 += b * e
        c4 += e * e
    return c0, 4.0 * c1, c2, 4.0 * c3, c4


@kernel
def _coefficients(image, direction, rank):
    if rank == 1:
        return _coefficients_one(image, direction)
    if rank == 2:
        return _add_coefficients(image, direction, 2)
    if rank == 3:
        return _coefficients_three(image, direction)
    return _add_coefficients(image, direction, rank)


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
