"""What did it cost a run to reach a gap? Iterations, passes and seconds, from its trace; every figure begins here.

A contender is a solver with its settings in a metric; a cell is an instance with a seed, whose repeats are one median.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

#: What a cost is counted in, and the column of the trace that holds it.
UNITS = {"iterations": "trace_iteration", "passes": "trace_passes", "seconds": "trace_seconds"}

#: What makes two runs repeats of each other.
CELL = ["group", "instance", "seed"]

#: Statuses of runs that left nothing to compare.
BROKEN = ("failed", "timeout")

#: A true gap below this is rounding of f: an optimum is known to about as many digits.
SMALLEST = 1e-15


def prepare(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with two more columns: ``contender``, and ``trace_true``, the relative gap along the trace.

    The gap is taken from the known optimum where there is one, else it is the certified one; never from the least value
    that some method happened to find. Rows are sorted by contender, so that every legend has the same order.
    """
    words = runs.select_dtypes("string").columns
    runs = runs.astype(dict.fromkeys(words, object))  # taking rows of Arrow's strings was a third of the whole report
    runs["contender"] = [_contender(run) for run in runs.itertuples()]
    runs["trace_true"] = pd.Series([_gaps(run) for run in runs.itertuples()], index=runs.index, dtype=object)
    return runs.sort_values("contender", kind="stable", ignore_index=True)


def _contender(run) -> str:
    """Name the solver and the metric that the study asked for; where it asked for none, the solver alone."""
    return run.solver if run.metric_asked == "auto" else f"{run.solver} · {run.metric_asked}"


def _gaps(run) -> np.ndarray:
    values = np.asarray(run.trace_value, dtype=float)
    if not np.isfinite(run.optimum) or run.optimum == 0.0:
        return np.asarray(run.trace_gap, dtype=float)
    return np.maximum((values - run.optimum) / abs(run.optimum), SMALLEST)


#: What :func:`cost` reads of a run.
COST_COLUMNS = ["status", "setup_seconds", "trace_true", *UNITS.values()]


def each(runs: pd.DataFrame) -> Iterator:
    """Yield the runs as :func:`cost` takes them: few columns, as a tuple of all of them takes its time."""
    return runs[COST_COLUMNS].itertuples(index=False)


def cost(run, gaps: Sequence[float], unit: str) -> np.ndarray:
    """Return what a run had spent when its gap was first at most each of ``gaps``; infinite where it never was.

    Seconds include the set-up, so that a preconditioner is paid for.
    """
    spent = np.asarray(getattr(run, UNITS[unit]), dtype=float)
    found = np.full(len(gaps), np.inf)
    if run.status in BROKEN or not len(spent):
        return found
    best = np.minimum.accumulate(np.nan_to_num(run.trace_true, nan=np.inf))
    first = np.searchsorted(-best, -np.asarray(gaps, dtype=float), side="left")
    reached = first < len(spent)
    found[reached] = spent[first[reached]] + (run.setup_seconds if unit == "seconds" else 0.0)
    return found


def table(runs: pd.DataFrame, gap: float, unit: str) -> pd.DataFrame:
    """Return the cost to a gap: a row a cell, a column a contender, medians over repeats.

    Only runs that were asked for this gap or a tighter one count. NaN is a contender that was not run on the cell,
    infinity one that did not get there.
    """
    runs = runs[runs.rel_gap <= gap * (1.0 + 1e-9)]
    if runs.empty:
        return pd.DataFrame()
    costs = runs[[*CELL, "contender"]].copy()
    costs["cost"] = [cost(run, [gap], unit)[0] for run in each(runs)]
    return costs.groupby([*CELL, "contender"], sort=False)["cost"].median().unstack("contender")


def tightest(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with the tightest target of each contender on each cell: their traces pass the other targets."""
    return runs[runs.rel_gap == runs.groupby([*CELL, "contender"], sort=False).rel_gap.transform("min")]


def block(costs: pd.DataFrame) -> pd.DataFrame:
    """Return the largest part of a cost table in which every contender was run on every cell.

    Candidates are the sets of contenders that some cell has; the one with the most entries wins, so that no contender
    is judged on cells that another was spared.
    """
    run = costs.notna()
    best = costs.iloc[:0, :0]
    for wanted in {tuple(row) for row in run.to_numpy()}:
        columns = costs.columns[np.array(wanted)]
        rows = run[columns].all(axis=1)
        if rows.sum() * len(columns) > best.size:
            best = costs.loc[rows, columns]
    return best


def target(runs: pd.DataFrame) -> float:
    """Return the gap at which runs are compared: the tightest that every contender was asked for on every cell."""
    return float(runs.groupby([*CELL, "contender"], sort=False).rel_gap.min().max())
