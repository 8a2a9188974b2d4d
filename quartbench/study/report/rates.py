"""How fast does the gap fall with the iterations? Fitted exponents on degenerate rows, beside those of the theorems.

On generic rows the methods end up linear, and no theorem on sublinear rates is put to the test. Where ρ″(x*) is
singular the gap falls like a power of k, and the exponent can be measured.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from quartbench.study import costs

from .fits import interval, power_law
from .words import signed

#: The group of runs on degenerate rows: each goes on for all its iterations, so that it is no race.
GROUP = "rates"

#: A gap below this is rounding: f* is planted to about 1e-15 of its size.
ROUNDING = 1e-12

#: The exponent is fitted over the last part of a run above rounding: from this share of its iterations on.
LAST = 0.1


@dataclass(frozen=True)
class Rate:
    """The exponent of k in the gap of one contender on one instance: its mean over seeds, with Student's interval.

    ``theory`` is the exponent of the theorem about the method (None where there is none).
    """

    instance: str
    name: str
    exponent: float
    low: float
    high: float
    seeds: int
    theory: float | None
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return signed(f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}]")


def theory(method: str, settings: dict) -> float | None:
    """Return the exponent of K in the abstract: −2 for HomGD, −4 for Accel-HomGD with the restarts of Algorithm 2."""
    if method == "homgd":
        return -2.0
    return -4.0 if method == "accel-homgd" and settings.get("restart") == "scheduled" else None


def falling(run) -> tuple[np.ndarray, np.ndarray]:
    """Return the iterations from the first on, and the least gap up to each, as long as it is no rounding."""
    k = np.asarray(run.trace_iteration, dtype=float)
    least = np.minimum.accumulate(np.nan_to_num(run.trace_true, nan=np.inf))
    kept = (k > 0) & (least > ROUNDING) & np.isfinite(least)
    return k[kept], least[kept]


def exponent(run) -> float:
    """Return the exponent of k in the gap over the last part of a run; NaN where it is too short to tell."""
    k, gap = falling(run)
    if not k.size:
        return np.nan
    last = k >= LAST * k[-1]
    fit = power_law(k[last], gap[last])
    return np.nan if fit is None else fit.exponent


def rates(runs: pd.DataFrame) -> list[Rate]:
    """Return the exponent of every contender on every instance of the group that has two seeds or more to tell.

    The interval is over the seeds: the points of one run lie on one curve and are no independent measurements.
    """
    part = costs.iterated(runs[(runs.group == GROUP) & np.isfinite(runs.optimum.to_numpy(dtype=float))])
    found = []
    for (instance, name), here in part.groupby(["instance", "contender"], sort=False):
        slopes = np.array([exponent(run) for run in here.itertuples()])
        slopes, known = slopes[np.isfinite(slopes)], here[np.isfinite(slopes)]
        if len(slopes) < 2:
            continue
        first = known.iloc[0]
        expected = theory(first.method, json.loads(first.settings))
        middle, low, high = interval(slopes)
        found.append(Rate(instance, name, middle, low, high, len(slopes), expected, tuple(known.key)))
    return sorted(found, key=lambda one: (one.theory is None, one.name))
