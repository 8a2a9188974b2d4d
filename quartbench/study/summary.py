"""Who was fastest? Times to a gap from the results of a study, and ``auto`` against the best peer on each instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas


def time_to_gap(runs: pandas.DataFrame, gap: float | None = None) -> pandas.Series:
    """Return for each run the seconds, set-up included, to the first point of its trace within a relative gap.

    The gap of a point is (f − f*)/|f*| where f* is known, else the certified one. Infinite where it was not reached,
    and where the run failed.

    Parameters
    ----------
    runs : DataFrame
        As :func:`quartbench.study.store.read` returns it.
    gap : float, optional
        The gap that each run was asked for, where not given.
    """
    import pandas

    targets = runs["rel_gap"] if gap is None else pandas.Series(gap, index=runs.index)
    columns = ("status", "optimum", "setup_seconds", "trace_seconds", "trace_value", "trace_gap")
    found = [
        _reached(target, *row) for target, row in zip(targets, runs[list(columns)].itertuples(index=False), strict=True)
    ]
    return pandas.Series(found, index=runs.index, dtype=float, name="time_to_gap")


def _reached(target, status, optimum, setup, seconds, values, gaps) -> float:
    if status in ("failed", "timeout"):
        return np.inf
    if status == "trivial":
        return setup
    gaps = (np.asarray(values) - optimum) / abs(optimum) if np.isfinite(optimum) else np.asarray(gaps)
    there = np.flatnonzero(gaps <= target)
    return setup + seconds[there[0]] if there.size else np.inf


def contender(runs: pandas.DataFrame) -> pandas.Series:
    """Return the solver of each run, with the metric that was asked for where the runs differ in it."""
    ours = runs.loc[~runs["peer"], "metric_asked"]
    if ours.nunique() <= 1:
        return runs["solver"]
    return runs["solver"].where(runs["peer"], runs["solver"] + " · " + runs["metric_asked"])


def times(runs: pandas.DataFrame) -> pandas.DataFrame:
    """Return the median time to the gap: a row for each instance and gap, a column for each contender.

    The median is over the seeds of medians over the repeats. Infinite where the gap was not reached, NaN where there
    was no run.
    """
    table = runs.assign(contender=contender(runs), time=time_to_gap(runs))
    cells = table.groupby(["instance", "rel_gap", "contender", "seed"], sort=False)["time"].median()
    return cells.groupby(["instance", "rel_gap", "contender"], sort=False).median().unstack("contender", sort=False)


def peers(runs: pandas.DataFrame, own: str = "auto") -> pandas.DataFrame:
    """Return how ``auto`` did against the best peer and the best of our methods, a row for each instance and gap.

    Only runs whose gap was certified count. ``ratio`` is the best peer's time over that of ``auto``; ``overhead`` is
    auto's time over that of our best method; infinite ratios mean that no peer got there. ``wall`` is the whole call
    of ``auto`` and ``peer_wall`` that of the best peer, certificates included.

    Parameters
    ----------
    runs : DataFrame
        Runs of the group ``peers``.
    own : str
        The solver to compare.
    """
    import pandas

    table = runs.assign(time=time_to_gap(runs).where(runs["success"], np.inf))
    cells = table.groupby(["instance", "rel_gap", "solver", "peer", "seed"], sort=False)[["time", "wall_seconds"]]
    median = cells.median().groupby(["instance", "rel_gap", "solver", "peer"], sort=False).median().reset_index()
    rows = []
    for (instance, gap), here in median.groupby(["instance", "rel_gap"], sort=False):
        mine, theirs = here[here["solver"] == own], here[here["peer"]]
        ours = here[~here["peer"] & (here["solver"] != own)]
        if mine.empty:
            continue
        auto, best_peer, best_own = mine.iloc[0], _fastest(theirs), _fastest(ours)
        rows.append(
            {
                "instance": instance,
                "rel_gap": gap,
                "auto": auto["time"],
                "wall": auto["wall_seconds"],
                "peer": best_peer["solver"],
                "peer_time": best_peer["time"],
                "peer_wall": best_peer["wall_seconds"],
                "ratio": _ratio(best_peer["time"], auto["time"]),
                "own": best_own["solver"],
                "own_time": best_own["time"],
                "overhead": _ratio(auto["time"], best_own["time"]),
            }
        )
    return pandas.DataFrame(rows, columns=PEER_COLUMNS).sort_values(
        "rel_gap", ascending=False, kind="stable", ignore_index=True
    )


PEER_COLUMNS = (
    "instance",
    "rel_gap",
    "auto",
    "wall",
    "peer",
    "peer_time",
    "peer_wall",
    "ratio",
    "own",
    "own_time",
    "overhead",
)


def geometric_mean(ratios: pandas.Series) -> float:
    """Return the geometric mean of the finite ratios; NaN where there are none."""
    finite = ratios[np.isfinite(ratios) & (ratios > 0)]
    return float(np.exp(np.log(finite).mean())) if len(finite) else np.nan


def _fastest(table: pandas.DataFrame) -> dict:
    if table.empty or not np.isfinite(table["time"]).any():
        return {"solver": "", "time": np.inf, "wall_seconds": np.nan}
    return dict(table.loc[table["time"].idxmin()])


def _ratio(above: float, below: float) -> float:
    """Return above/below; NaN where neither got there."""
    if np.isinf(above) and np.isinf(below):
        return np.nan
    return 0.0 if np.isinf(below) else above / below


def failures(runs: pandas.DataFrame) -> pandas.DataFrame:
    """Return the runs that failed or were killed, one row a cause: group, instance, solver, status, message, count."""
    bad = runs[runs["status"].isin(["failed", "timeout"])]
    columns = ["group", "instance", "solver", "status", "message"]
    return bad.groupby(columns, sort=False).size().rename("runs").reset_index()
