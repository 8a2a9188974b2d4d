"""What does a run leave where it has nothing to show, and what of it is kept? Shared by runs of every kind."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

#: Points of a trace that are kept.
TRACE = 400

#: What of a history is kept, as columns ``trace_…``.
TRACED = ("iteration", "passes", "seconds", "value", "gap", "restart", "rounds", "bytes")

#: Relative error of a reported value that is not a lie: iterates may lie outside the cone by rounding.
HONEST = 1e-7

#: What a run leaves that has nothing to show.
NOTHING: dict[str, Any] = {
    "success": False,
    **dict.fromkeys(("value", "lower_bound", "gap", "kappa_bound", "kappa_measured", "error", "residual"), math.nan),
    **dict.fromkeys(("nit", "passes", "rounds", "bytes", "sweeps", "start_passes"), 0),
    **dict.fromkeys(("setup_seconds", "solve_seconds", "wall_seconds"), math.nan),
    **{f"trace_{name}": [] for name in TRACED},
}

#: What is known of a problem that could not be made.
NOWHERE: dict[str, Any] = {"m": 0, "n": 0, "r": 0, "cone": "", "sigma_min": math.nan, "coherence": math.nan}


def lie(message: str) -> dict[str, Any]:
    """Return what changes in a row where what the method reports is not true."""
    return {"status": "failed", "success": False, "message": message}


def fingerprint(arrays: Iterable[np.ndarray]) -> int:
    """Return a checksum of the numbers of a problem, which no method may change: others are given the same."""
    total = 0
    for array in arrays:
        total = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8), total)
    return total


def kept(rows: int) -> np.ndarray:
    """Return which points of a trace are kept, at most ``TRACE``: first, last, evenly in the logarithm."""
    if rows <= TRACE:
        return np.arange(rows)
    return np.unique(np.geomspace(1, rows, TRACE).round().astype(np.int64) - 1)
