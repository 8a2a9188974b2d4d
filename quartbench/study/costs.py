"""What did it cost a run to reach a gap? Iterations, passes and seconds, from its trace; every comparison begins here.

A contender is a solver with its settings in a metric; a cell is an instance with a seed, whose repeats are one median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

#: What a cost is counted in, and the column of the trace that holds it.
UNITS = {"iterations": "trace_iteration", "passes": "trace_passes", "seconds": "trace_seconds"}

#: The same for rows on workers: nought elsewhere.
TRAFFIC = {"rounds": "trace_rounds", "bytes": "trace_bytes"}

#: What makes two runs repeats of each other.
CELL = ["group", "instance", "seed"]

#: How the names of groups begin that are no races: their runs show how a cost grows, or how a gap falls.
NO_RACES = ("scaling-", "rates", "fixed-steps", "conditioning", "cluster")

#: Statuses of runs that left nothing to compare.
BROKEN = ("failed", "timeout")

#: The status of a run on a problem with c in the polar cone: its minimiser is 0, so that there is nothing to iterate.
TRIVIAL = "trivial"

#: What the column ``application`` says of a regression.
REGRESSION = "regression"

#: A true gap below this is rounding of f: an optimum is known to about as many digits.
SMALLEST = 1e-15

#: Gaps at which two contenders may be compared: the tightest that both always reach is taken.
LADDER = 10.0 ** -np.arange(1, 13)


# Runs -----------------------------------------------------------------------------------------------------------------


def prepare(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with two more columns: ``contender``, and ``trace_true``, the relative gap along the trace.

    Parameters
    ----------
    runs : DataFrame
        As :func:`quartbench.study.store.read` returns it.
    """
    words = runs.select_dtypes("string").columns
    runs = runs.astype(dict.fromkeys(words, object))  # taking rows of Arrow's strings was a third of the whole report
    runs["application"] = runs["application"].fillna("")  # results of before there were recoveries have none
    for name in ("rounds", "bytes", "workers", "blocks"):  # nor have they any traffic
        runs[name] = runs[name].fillna(0).astype(int)
    runs["contender"] = [contender(run) for run in runs.itertuples()]
    runs["trace_true"] = pd.Series([gaps_along(run) for run in runs.itertuples()], index=runs.index, dtype=object)
    return runs


def convex(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on convex problems."""
    return runs[runs.application == ""]


def recoveries(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on inverse problems."""
    return runs[~runs.application.isin(["", REGRESSION])]


def regressions(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on regressions: their value is the ℓ4 norm, their optimum what no fit is below."""
    return runs[runs.application == REGRESSION]


def contender(run) -> str:
    """Name the solver and the metric that the study asked for; where it asked for none, the solver alone."""
    return run.solver if run.metric_asked == "auto" else f"{run.solver} · {run.metric_asked}"


def gaps_along(run) -> np.ndarray:
    """Return the relative gap at each point of a trace: (f − f*)/|f*| where f* is known, else the certified one.

    Never from the least value that some method happened to find.
    """
    values = np.asarray(run.trace_value, dtype=float)
    if not np.isfinite(run.optimum) or run.optimum == 0.0:
        return np.asarray(run.trace_gap, dtype=float)
    return np.maximum((values - run.optimum) / abs(run.optimum), SMALLEST)


def iterated(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that have a trace to learn from: those that neither broke nor had nothing to do."""
    return runs[~runs.status.isin([*BROKEN, TRIVIAL])]


def races(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of groups in which contenders are compared with each other."""
    return runs[~runs.group.str.startswith(NO_RACES)]


def tightest(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with the tightest target of each contender on each cell: their traces pass the other targets."""
    return runs[runs.rel_gap == runs.groupby([*CELL, "contender"], sort=False).rel_gap.transform("min")]


def target(runs: pd.DataFrame) -> float:
    """Return the gap at which runs are compared: the tightest that every contender was asked for on every cell."""
    return float(runs.groupby([*CELL, "contender"], sort=False).rel_gap.min().max())


# Costs ----------------------------------------------------------------------------------------------------------------

#: What :func:`cost` reads of a run.
COST_COLUMNS = ["status", "setup_seconds", "trace_true", *UNITS.values(), *TRAFFIC.values()]


def each(runs: pd.DataFrame) -> Iterator:
    """Yield the runs as :func:`cost` takes them: few columns, as a tuple of all of them takes its time."""
    return runs[COST_COLUMNS].itertuples(index=False)


def cost(run, gaps: Sequence[float], unit: str) -> np.ndarray:
    """Return what a run had spent when its gap was first at most each of ``gaps``; infinite where it never was.

    Seconds include the set-up, so that a preconditioner is paid for. A run that broke reached nothing, whatever its
    trace says; one on a trivial problem reached every gap with its set-up, at no iteration and no pass.
    """
    setup = run.setup_seconds if unit == "seconds" else 0.0
    found = np.full(len(gaps), np.inf)
    if run.status in BROKEN:
        return found
    if run.status == TRIVIAL:
        return np.full(len(gaps), setup)
    spent = np.asarray(getattr(run, (UNITS | TRAFFIC)[unit]), dtype=float)
    best = np.minimum.accumulate(np.nan_to_num(run.trace_true, nan=np.inf))
    first = np.searchsorted(-best, -np.asarray(gaps, dtype=float), side="left")
    reached = first < len(spent)
    found[reached] = spent[first[reached]] + setup
    return found


def to_gap(runs: pd.DataFrame, gap: float | pd.Series, unit: str) -> pd.Series:
    """Return the cost of each run to a gap: one gap for all runs, or a series with one per run."""
    wanted = np.broadcast_to(np.asarray(gap, dtype=float), len(runs))
    found = [cost(run, [one], unit)[0] for run, one in zip(each(runs), wanted, strict=True)]
    return pd.Series(found, index=runs.index, dtype=float)


def median(runs: pd.DataFrame, gaps: Sequence[float], unit: str) -> np.ndarray:
    """Return the median over runs of their costs to each of several gaps."""
    return np.median([cost(run, gaps, unit) for run in each(runs)], axis=0)


def table(runs: pd.DataFrame, gap: float, unit: str) -> pd.DataFrame:
    """Return the cost to a gap: one row per cell, one column per contender, medians over repeats.

    Only runs that were asked for this gap or a tighter one count. NaN is a contender that was not run on the cell,
    infinity one that did not get there.
    """
    runs = runs[runs.rel_gap <= gap * (1.0 + 1e-9)]
    if runs.empty:
        return pd.DataFrame()
    costs = runs[[*CELL, "contender"]].assign(cost=to_gap(runs, gap, unit))
    return costs.groupby([*CELL, "contender"], sort=False)["cost"].median().unstack("contender")


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


def noise(runs: pd.DataFrame) -> float:
    """Return by how much the slowest repeat of a run is slower than its fastest, in the median; 0 without repeats."""
    seconds = (runs.setup_seconds + runs.solve_seconds).where(~runs.status.isin([*BROKEN, TRIVIAL]))
    cells = seconds.groupby([runs[name] for name in [*CELL, "contender", "rel_gap"]], sort=False)
    spread = (cells.max() / cells.min() - 1.0)[cells.count() > 1]
    spread = spread[np.isfinite(spread)]
    return float(spread.median()) if len(spread) else 0.0


def ratio(above: float, below: float) -> float:
    """Return above/below: 1 where both are the same, nothing included; NaN where neither got there."""
    if above == below:
        return math.nan if math.isinf(above) else 1.0
    return math.inf if below == 0.0 else float(above / below)
