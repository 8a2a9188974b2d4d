"""How near is near enough? The comparison that every battery uses, with a message that says what is off."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Relative differences that rounding may leave in a contract's identities.
TOLERANCE = 1e-8


def close(found: Any, wanted: Any, what: str, tolerance: float = TOLERANCE, size: float | None = None) -> None:
    """Raise AssertionError where two arrays differ by more than a share of the larger, or of ``size``."""
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, and {wanted.shape} is wanted"
    assert np.isfinite(found).all(), f"{what}: not finite"
    size = max(np.abs(wanted).max(initial=0.0), np.abs(found).max(initial=0.0)) if size is None else size
    off = np.abs(found - wanted).max(initial=0.0)
    assert off <= tolerance * size, f"{what}: off by {off:.2e}, where {tolerance * size:.2e} would be rounding"


def same(found: Any, wanted: Any, what: str, tolerance: float = TOLERANCE) -> None:
    """Raise AssertionError where two arrays, real or complex, differ."""
    found, wanted = (np.ascontiguousarray(array, dtype=complex).view(float) for array in (found, wanted))
    close(found, wanted, what, tolerance)
