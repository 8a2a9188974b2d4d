"""How did recoveries go? How many succeeded, how exact they are, and what they cost to a residual or to a value of F.

Runs are taken as :func:`quartbench.study.costs.prepare` returns them. Medians are over seeds of medians over repeats.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd

from . import costs

#: What makes two runs of a recovery repeats of each other.
CELL = ["group", "instance", "contender", "seed"]

#: The relative residual √F/‖d‖ to which costs are compared: every method can fit data without noise so well.
FITTED = 1e-4

#: How much above a value F may be to have reached it, relative to it.
ROUNDING = 1e-9

#: What a cost is counted in, and the column of the trace that holds it.
UNITS = {"steps": "trace_iteration", "passes": "trace_passes", "seconds": "trace_seconds"}


def outcomes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per group, instance and contender.

    ``recovered`` of ``seeds`` succeeded; error, residual, ``passes`` without the start, ``seconds`` without it and
    ``wall`` with it are medians.
    """
    rows = []
    for (group, instance, contender), here in runs.groupby(CELL[:3], sort=False):
        seeds = here.groupby("seed", sort=False)
        measured = ["error", "residual", "passes", "start_passes", "solve_seconds", "wall_seconds"]
        middle = seeds[measured].median().median()
        rows.append(
            {
                "group": group,
                "instance": instance,
                "contender": contender,
                "application": here.application.iloc[0],
                "peer": bool(here.peer.iloc[0]),
                "seeds": len(seeds),
                "recovered": int(seeds.success.all().sum()),
                "error": middle.error,
                "residual": middle.residual,
                "passes": middle.passes,
                "start_passes": middle.start_passes,
                "seconds": middle.solve_seconds,
                "wall": middle.wall_seconds,
                "keys": tuple(here.key),
            }
        )
    columns = ["group", "instance", "contender", "application", "peer", "seeds", "recovered", "error", "residual"]
    found = pd.DataFrame(rows, columns=[*columns, "passes", "start_passes", "seconds", "wall", "keys"])
    return found.sort_values(["group", "instance"], kind="stable", ignore_index=True)


def argument(runs: pd.DataFrame, name: str) -> pd.Series:
    """Return an argument of the generator of each run; NaN where it has none of that name."""
    return pd.Series([json.loads(text).get(name, math.nan) for text in runs.arguments], index=runs.index, dtype=float)


def residuals(run) -> np.ndarray:
    """Return √F/‖d‖ along the trace of a run; ‖d‖ is known from where it ended, unless that is F = 0 to the last bit.

    Then 0 there, and infinite before.
    """
    values = np.maximum(np.asarray(run.trace_value, dtype=float), 0.0)
    if not (run.value > 0.0 and run.residual > 0.0):
        return np.where(values > 0.0, np.inf, 0.0)
    return np.sqrt(values / run.value) * run.residual


def to_value(run, level: float, unit: str) -> float:
    """Return what a run had spent when F was first at most ``level``; infinite where it never was. Without the start.

    Only the last stage of a run has a trace of F; what the stages before it took counts with its first point.
    """
    if run.status in costs.BROKEN:
        return math.inf
    low = np.flatnonzero(np.asarray(run.trace_value, dtype=float) <= level)
    return float(getattr(run, UNITS[unit])[low[0]]) if low.size else math.inf


def to_residual(run, level: float, unit: str) -> float:
    """Return what a run had spent when √F/‖d‖ was first at most ``level``; infinite where it never was."""
    if run.status in costs.BROKEN:
        return math.inf
    low = np.flatnonzero(residuals(run) <= level)
    return float(getattr(run, UNITS[unit])[low[0]]) if low.size else math.inf


def fitting(runs: pd.DataFrame, unit: str, level: float = FITTED) -> pd.DataFrame:
    """Return the median cost to a residual: one row per instance, one column per contender; infinite where missed."""
    spent = runs[CELL[1:]].assign(cost=[to_residual(run, level, unit) for run in runs.itertuples()])
    cells = spent.groupby(CELL[1:], sort=False)["cost"].median()
    return cells.groupby(["instance", "contender"], sort=False).median().unstack("contender", sort=False)


def compared(first: pd.DataFrame, second: pd.DataFrame, unit: str) -> tuple[np.ndarray, np.ndarray, list[str]] | None:
    """Return what two selections spent on one instance to the least F that both reached, one number per seed.

    With the keys of the runs; None where they share no seed on which both spent something.
    """
    spent, used = [], []
    for seed in sorted(set(first.seed) & set(second.seed)):
        sides = [part[part.seed == seed] for part in (first, second)]
        level = max(float(np.min(run.trace_value)) for side in sides for run in side.itertuples())
        both = [
            np.median([to_value(run, level * (1.0 + ROUNDING), unit) for run in side.itertuples()]) for side in sides
        ]
        if min(both) > 0.0 and np.isfinite(both).all():
            spent.append(both)
            used += [*sides[0].key, *sides[1].key]
    return (*np.array(spent).T, used) if spent else None


def against_peers(runs: pd.DataFrame) -> pd.DataFrame:
    """Return how auto does against the best peer by seconds to :data:`FITTED`, from the same start.

    One row per instance: ``auto`` and ``best`` in seconds, the ``peer`` that is best, ``ratio`` = best/auto, and what
    the DC algorithm takes: ``dc_passes``, ``dc_seconds`` beside ``peer_passes`` of that peer.
    """
    peers = set(runs.contender[runs.peer])
    seconds, passes = fitting(runs, "seconds"), fitting(runs, "passes")
    rows = []
    for instance, spent in seconds.iterrows():
        theirs = spent[[name for name in spent.index if name in peers]].dropna()
        if "auto" not in spent.index or theirs.empty or math.isnan(spent["auto"]):
            continue
        best = theirs.idxmin()
        read = passes.loc[instance]
        rows.append(
            {
                "instance": instance,
                "auto": spent["auto"],
                "auto_passes": read["auto"],
                "peer": best if math.isfinite(theirs[best]) else "",
                "best": theirs[best],
                "peer_passes": read[best],
                "ratio": costs.ratio(theirs[best], spent["auto"]),
                "dc_passes": read.get("dc", math.nan),
                "dc_seconds": spent.get("dc", math.nan),
            }
        )
    columns = ["instance", "auto", "auto_passes", "peer", "best", "peer_passes", "ratio", "dc_passes", "dc_seconds"]
    return pd.DataFrame(rows, columns=columns)
