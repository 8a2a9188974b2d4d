"""What may a generator be called with, and how does its problem remember it?

Every refusal names the argument, what was found and what is needed; every problem carries its origin.
"""

from __future__ import annotations

import numpy as np

from quartbench.errors import whole_number

#: Version of the generators: raised whenever the same arguments would give another problem than before.
PROBLEM_SET = 1

#: Second word of the seed of planted solutions, so that x* never repeats the draws that made its form.
PLANT_STREAM = 1


def generator(seed: object, *stream: int) -> np.random.Generator:
    """Return numpy's default generator for a nonnegative whole seed (and a stream of that seed)."""
    seed = whole_number(seed, "seed", 0)
    return np.random.default_rng([seed, *stream] if stream else seed)


def origin(name: str, **arguments: object) -> dict:
    """Return the record from which :func:`quartbench.instances.remake` makes the same problem again."""
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in arguments.items()}
    return {"generator": name, **plain, "version": PROBLEM_SET}
