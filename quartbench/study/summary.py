"""Who was fastest? Median times to a gap on each instance, and ``auto`` against the best peer.

Runs are taken as :func:`quartbench.study.costs.prepare` returns them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from . import costs

#: Our method for regressions, as ``auto`` is for convex problems.
REGRESSION = "l4-regression"

#: What :func:`peers` returns.
PEER_COLUMNS = (
    "instance",
    "rel_gap",
    "auto",
    "wall",
    "peer",
    "peer_time",
    "peer_wall",
    "wall_ratio",
    "ratio",
    "own",
    "own_time",
    "overhead",
)


def times(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the median time to the gap: one row per instance and gap, one column per contender.

    The median is over the seeds of medians over the repeats. Infinite where the gap was not reached, NaN where there
    was no run.
    """
    table = runs.assign(time=costs.to_gap(runs, runs["rel_gap"], "seconds"))
    cells = table.groupby(["instance", "rel_gap", "contender", "seed"], sort=False)["time"].median()
    return cells.groupby(["instance", "rel_gap", "contender"], sort=False).median().unstack("contender", sort=False)


def peers(runs: pd.DataFrame, own: str = "auto") -> pd.DataFrame:
    """Return how ``auto`` did against the best peer and the best of our methods, one row per instance and gap.

    Of our runs only those whose gap was certified count. A peer is bare: it runs on ``form.plain()``, what a
    careful user of NumPy and scipy.sparse would write, and what counts is its clock at the first point within the gap
    of f*. ``wall`` is the whole call of ``auto``, certificates included, and ``wall_ratio`` the best
    peer's time over it; ``ratio`` is the same by the clock of ``auto``; ``overhead`` is auto's time over that of our
    best method; infinite ratios mean that no peer got there; ``peer_wall`` is the best peer's whole run under the
    driver, with certificates.

    Parameters
    ----------
    runs : DataFrame
        Runs of the group ``peers``, or regressions.
    own : str
        The solver to compare.
    """
    bare = runs["peer"] & np.isfinite(runs["optimum"])
    table = runs.assign(time=costs.to_gap(runs, runs["rel_gap"], "seconds").where(bare | runs["success"], np.inf))
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
                "wall_ratio": costs.ratio(best_peer["time"], auto["wall_seconds"]),
                "ratio": costs.ratio(best_peer["time"], auto["time"]),
                "own": best_own["solver"],
                "own_time": best_own["time"],
                "overhead": costs.ratio(auto["time"], best_own["time"]),
            }
        )
    return pd.DataFrame(rows, columns=PEER_COLUMNS).sort_values(
        "rel_gap", ascending=False, kind="stable", ignore_index=True
    )


class Tally(NamedTuple):
    """Wins, ties and losses; a tie is what the noise of the times can turn round."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return ", ".join(
            f"{count} {one if count == 1 else many}"
            for count, one, many in zip(self, ("win", "tie", "loss"), ("wins", "ties", "losses"), strict=True)
        )


def tally(ratios: pd.Series, noise: float) -> Tally:
    """Count ratios of times: above 1 is a win, but within the noise either way is a tie."""
    wins, losses = int((ratios > 1.0 + noise).sum()), int((ratios * (1.0 + noise) < 1.0).sum())
    return Tally(wins, len(ratios) - wins - losses, losses)


def geometric_mean(ratios: pd.Series) -> float:
    """Return the geometric mean of the finite ratios; NaN where there are none."""
    finite = ratios[np.isfinite(ratios) & (ratios > 0)]
    return float(np.exp(np.log(finite).mean())) if len(finite) else np.nan


def _fastest(table: pd.DataFrame) -> dict:
    if table.empty or not np.isfinite(table["time"]).any():
        return {"solver": "", "time": np.inf, "wall_seconds": np.nan}
    return dict(table.loc[table["time"].idxmin()])


def failures(runs: pd.DataFrame) -> pd.DataFrame:
    """Return how many runs failed or were killed, one row per group, instance, solver, status and message."""
    bad = runs[runs["status"].isin(costs.BROKEN)]
    columns = ["group", "instance", "solver", "status", "message"]
    return bad.groupby(columns, sort=False).size().rename("runs").reset_index()
