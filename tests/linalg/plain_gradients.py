"""Conjugate gradients written down once more, as a textbook has them: what the package's must agree with bit by bit."""

import numpy as np


def plain_conjugate_gradients(H, v, precondition, share, products):
    """Return x ≈ H⁻¹v from zero, until ⟨r,B⁻¹r⟩ ≤ share²⟨v,B⁻¹v⟩ or after so many products."""
    x, r, p = np.zeros_like(v), v, precondition(v)
    rz = float(r @ p)
    goal = share * share * rz
    for _ in range(products):
        hp = H @ p
        step = rz / float(p @ hp)
        x = x + step * p
        r = r - step * hp
        z = precondition(r)
        rz, last = float(r @ z), rz
        if not rz > goal:
            break
        p = z + (rz / last) * p
    return x
