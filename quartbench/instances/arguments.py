"""What may a generator be called with, and how does its problem remember it?

Every refusal names the argument, what was found and what is needed; every problem carries its origin.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from quartbench.errors import ProblemError, whole_number

PROBLEM_SET = 1
"""Version of the generators: raised whenever the same arguments would give another problem than before."""

PLANT_STREAM = 1
"""Second word of the seed of planted solutions, so that x* never repeats the draws that made its form."""


def number(name: str, value: object, low: float, high: float, why: str = "", open_low: bool = False) -> float:
    """Return ``value`` as a finite float in [low, high], or in (low, high] where ``open_low``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ProblemError(f"{name} must be a real number, found {value!r}")
    value = float(value)
    if not np.isfinite(value) or not low <= value <= high or (open_low and value == low):
        interval = f"{'(' if open_low else '['}{low:.12g}, {high:.12g}{')' if high == np.inf else ']'}"
        raise ProblemError(f"{name} must lie in {interval}{f' ({why})' if why else ''}, found {value!r}")
    return value


def generator(seed: object, *stream: int) -> np.random.Generator:
    """Return numpy's default generator for a nonnegative whole seed (and a stream of that seed)."""
    seed = whole_number(seed, "seed", 0)
    return np.random.default_rng([seed, *stream] if stream else seed)


def origin(name: str, **arguments: object) -> dict:
    """Return the record from which :func:`quartbench.instances.remake` makes the same problem again."""
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in arguments.items()}
    return {"generator": name, **plain, "version": PROBLEM_SET}
