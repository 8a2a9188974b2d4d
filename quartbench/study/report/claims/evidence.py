"""What are the tests of claims written with? Selections of runs, two of them side by side, and verdicts over cases."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from quartbench.study import costs
from quartbench.study.report.rates import GROUP
from quartbench.study.report.words import as_many, gap_words, short

from .base import FAILS, HOLDS, ONLY, Finding

#: Two costs within this factor are called similar; beyond it one is significantly better.
SIMILAR = 1.25

#: The groups of runs that redraw Figure 1, by what is on them.
FIGURE_1 = {"well-conditioned rows (1a)": "figure-1a", "ill-conditioned rows (1b)": "figure-1b"}

#: The group of runs with fixed steps, in a metric in which also those of gradients on f arrive.
FIXED = "fixed-steps"

#: Kinds of rows on which restarts are judged, by the groups of their runs.
KINDS = {
    **{f"generic, {label}": group for label, group in FIGURE_1.items()},
    "generic, preconditioned rows": FIXED,
    "degenerate rows": GROUP,
}

#: The rules for the step, by their name in words.
STEPS = {"Armijo's rule": "armijo", "fixed steps": "fixed"}


def pick(
    runs: pd.DataFrame, method: str | None = None, metric: str | None = None, group: str | None = None, **settings
) -> pd.DataFrame:
    """Return the runs of a method, metric and group with these settings; what broke or was trivial is no evidence."""
    runs = costs.iterated(runs)
    kept = pd.Series(True, index=runs.index)
    for column, wanted in (("method", method), ("metric", metric), ("group", group)):
        if wanted is not None:
            kept &= runs[column] == wanted
    part = runs[kept]
    if settings and len(part):
        options = [json.loads(text) for text in part.settings]
        part = part[[all(one.get(name) == value for name, value in settings.items()) for one in options]]
    return part


@dataclass(frozen=True)
class Comparison:
    """Median ratio of costs over the cells that two selections share, at the tightest gap that both always reach.

    There is no gap (NaN) where the problem is not convex.
    """

    ratio: float
    gap: float
    first: float
    second: float
    keys: list[str]

    def __str__(self) -> str:
        where = f" at gap {gap_words(self.gap)}" if math.isfinite(self.gap) else ""
        return f"{short(self.first)} against {short(self.second)}{where}"


def compare(first: pd.DataFrame, second: pd.DataFrame, unit: str = "iterations") -> Comparison | None:
    """Return how many times the cost of ``first`` is that of ``second``; None where they share no cell or gap."""
    if first.empty or second.empty:
        return None
    first, second = costs.tightest(first), costs.tightest(second)
    sides = [part.groupby(["instance", "seed"], sort=False) for part in (first, second)]
    shared = [cell for cell in sides[0].groups if cell in sides[1].groups]
    if not shared:
        return None
    spent = [np.array([costs.median(side.get_group(cell), costs.LADDER, unit) for cell in shared]) for side in sides]
    usable = np.flatnonzero(np.isfinite(spent[0]).all(axis=0) & np.isfinite(spent[1]).all(axis=0))
    usable = usable[(spent[0][:, usable] > 0).all(axis=0) & (spent[1][:, usable] > 0).all(axis=0)]
    if not usable.size:
        return None
    last = usable[-1]
    gap, a, b = float(costs.LADDER[last]), spent[0][:, last], spent[1][:, last]
    keys = [key for side in sides for cell in shared for key in side.get_group(cell).key]
    return Comparison(float(np.median(a / b)), gap, float(np.median(a)), float(np.median(b)), keys)


def split(cases: dict[str, bool]) -> tuple[str, str]:
    """Return the verdict over several cases, and the condition under which the claim holds: the shorter list."""
    true, false = ([name for name, holds in cases.items() if bool(holds) is wanted] for wanted in (True, False))
    if not false:
        return HOLDS, ""
    if not true:
        return FAILS, ""
    return ONLY, f"for {' and '.join(true)}" if len(true) <= len(false) else f"not for {' nor '.join(false)}"


def keys(runs: pd.DataFrame) -> list[str]:
    """Return the keys of runs."""
    return runs.key.tolist()


def several(found: dict[str, Comparison], words: str, verdict: str, condition: str) -> Finding:
    """Put comparisons into words: their range in a sentence, and a line for each."""
    numbers = {label: float(one.ratio) for label, one in found.items()}
    low, high = min(numbers.values()), max(numbers.values())
    ratio = short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"
    lines = tuple(f"{label}: {short(one.ratio)} ({one})" for label, one in found.items())
    every = list(dict.fromkeys(key for one in found.values() for key in one.keys))
    return Finding(verdict, f"{as_many(words.format(ratio=ratio))}.", numbers, every, condition, lines)
