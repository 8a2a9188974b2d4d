"""When does a preconditioner pay for itself? From which gap on in one solve, and after how many solves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from quartbench.study import costs
from quartbench.study.report.words import gap_words

from .cells import Cell, Table, gap_cell, number, seconds


class BreakEven(NamedTuple):
    """When a metric pays: from which gap on within one solve, and after how many solves at the tightest shared gap."""

    gap: float
    solves: float
    shared: float
    saving: float


def break_even(plain: pd.DataFrame, metric: pd.DataFrame) -> BreakEven:
    """Compare a solver in the metric identity with itself in another metric, on one instance.

    Parameters
    ----------
    plain, metric : DataFrame
        Their runs. ``gap`` is the loosest gap of the ladder from which on the total time with the metric is less at
        every tighter gap that either reached (NaN: at none); ``solves`` is how many problems with the same form repay
        one set-up at ``shared``, the tightest gap that both reached (1: at once, infinite: never, NaN: no such gap).
    """
    total = [costs.median(side, costs.LADDER, "seconds") for side in (plain, metric)]
    setup = [float(side.setup_seconds.median()) for side in (plain, metric)]
    reached = np.isfinite(total[0]) | np.isfinite(total[1])
    less = total[1] < total[0]
    pays = math.nan
    for place in np.flatnonzero(reached)[::-1]:
        if not less[place]:
            break
        pays = float(costs.LADDER[place])
    both = np.flatnonzero(np.isfinite(total[0]) & np.isfinite(total[1]))
    if not both.size:
        return BreakEven(pays, math.nan, math.nan, math.nan)
    last = both[-1]
    saved = (total[0][last] - setup[0]) - (total[1][last] - setup[1])
    extra = setup[1] - setup[0]
    solves = math.inf if saved <= 0 else max(1.0, math.ceil(extra / saved))
    return BreakEven(pays, solves, float(costs.LADDER[last]), costs.ratio(total[0][last], total[1][last]))


def break_even_table(runs: pd.DataFrame) -> Table | None:
    """Return when each metric pays for itself, for every solver that was run with and without it."""
    rows = []
    part = costs.tightest(costs.iterated(runs))
    for (instance, solver), here in part.groupby(["instance", "solver"], sort=False):
        plain = here[here.metric == "identity"]
        for metric, other in here[here.metric != "identity"].groupby("metric", sort=False):
            if plain.empty:
                continue
            found = break_even(plain, other)
            pays = (
                Cell("at no gap reached", 0.0)
                if math.isnan(found.gap)
                else Cell(f"gap ≤ {gap_words(found.gap)}", found.gap)
            )
            solves = Cell("never", math.inf) if math.isinf(found.solves) else number(found.solves)
            rows.append(
                [
                    Cell(instance),
                    Cell(solver),
                    Cell(metric),
                    seconds(other.setup_seconds.median()),
                    pays,
                    solves,
                    gap_cell(found.shared),
                    number(found.saving),
                ]
            )
    if not rows:
        return None
    note = (
        "Against the same solver in the metric identity. 'pays from' is the gap from which on one solve, set-up "
        "included, takes less time; 'solves to repay' how many problems with the same rows repay the set-up at the "
        "shared gap, and 'speed-up' the ratio of total times there."
    )
    columns = ["instance", "solver", "metric", "set-up", "pays from", "solves to repay", "shared gap", "speed-up"]
    return Table("break-even", "When a preconditioner pays for itself", note, columns, rows, frozenset({3, 5, 6, 7}))
