"""How do costs grow with the problem? The points of each scaling group, fitted exponents, and those of the theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from quartbench.study import costs

from .fits import PowerLaw, power_law

#: What the paper varies nothing in, and we do: the column on the horizontal axis, and what it is called.
SCALING = {
    "scaling-m": ("m", "terms m"),
    "scaling-n": ("n", "variables n"),
    "scaling-r": ("r", "rank r"),
    "scaling-kappa": ("kappa_bound", "certified bound on κ"),
    "scaling-coherence": ("coherence", "coherence γ"),
}


@dataclass(frozen=True)
class Points:
    """A measure of one contender in a scaling group: one point per cell, the median of its repeats.

    ``theory`` is the exponent that theory has for it (None where it has none), ``bound`` whether that is an upper
    bound only.
    """

    group: str
    measure: str
    name: str
    x: np.ndarray
    y: np.ndarray
    theory: float | None
    bound: bool


@dataclass(frozen=True)
class Growth:
    """A fitted exponent beside that of the theory (None where it has none; ``bound`` where it is an upper bound)."""

    group: str
    measure: str
    name: str
    fit: PowerLaw
    theory: float | None
    bound: bool


def theory(group: str, measure: str, method: str, metric: str) -> tuple[float | None, bool]:
    """Return the exponent that theory has for a measure, and whether it is an upper bound only.

    A pass reads m·r rows of n numbers, set-up forms B(τ) in O(mrn²). Iterations are at most O(κ) for HomGD and O(√κ)
    for its accelerated version, with κ ≤ √(mγ) in the metric uniform and κ ≤ √n in the metric lewis.
    """
    axis = group.removeprefix("scaling-")
    if measure == "seconds per pass":
        return {"m": 1.0, "n": 1.0, "r": 1.0}.get(axis), False
    if measure == "set-up seconds":
        return {"m": 1.0, "n": 2.0, "r": 1.0}.get(axis) if metric in ("uniform", "lewis") else None, False
    rate = {"homgd": 1.0, "accel-homgd": 0.5}.get(method)
    if rate is None:
        return None, True
    power = {("kappa", metric): 1.0, ("coherence", "uniform"): 0.5, ("coherence", "lewis"): 0.0, ("n", "lewis"): 0.5}
    share = power.get((axis, metric))
    return (None if share is None else rate * share), True


def measures(runs: pd.DataFrame, group: str) -> dict[str, np.ndarray]:
    """Return what a scaling group is measured in, one value per run."""
    gap = costs.target(runs)
    iterations = costs.to_gap(runs, gap, "iterations").to_numpy()
    if group in ("scaling-kappa", "scaling-coherence"):
        return {"iterations": iterations, "passes": costs.to_gap(runs, gap, "passes").to_numpy()}
    per_pass = (runs.solve_seconds / runs.passes.where(runs.passes > 0)).to_numpy(dtype=float)
    setup = runs.setup_seconds.where(runs.metric.isin(["uniform", "lewis"])).to_numpy(dtype=float)
    return {"seconds per pass": per_pass, "set-up seconds": setup, "iterations": iterations}


def points(runs: pd.DataFrame, group: str) -> list[Points]:
    """Return every measure of a scaling group for every contender that has a point."""
    part = costs.iterated(runs[runs.group == group])
    if part.empty:
        return []
    column = SCALING[group][0]
    found = []
    for measure, values in measures(part, group).items():
        for name, rows in part.assign(value=values).groupby("contender", sort=False):
            x, y = _medians(rows, column)
            if x.size:
                expected = theory(group, measure, rows.method.iloc[0], rows.metric.iloc[0])
                found.append(Points(group, measure, name, x, y, *expected))
    return found


def _medians(rows: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    cells = rows.groupby(["instance", "seed"], sort=False)[[column, "value"]].median()
    cells = cells[np.isfinite(cells).all(axis=1) & (cells > 0).all(axis=1)]
    return cells[column].to_numpy(dtype=float), cells["value"].to_numpy(dtype=float)


def growths(runs: pd.DataFrame, group: str) -> list[Growth]:
    """Fit every measure of a scaling group for every contender that has points enough."""
    fits = ((one, power_law(one.x, one.y)) for one in points(runs, group))
    return [Growth(group, one.measure, one.name, fit, one.theory, one.bound) for one, fit in fits if fit is not None]
