"""How do contenders compare? Their costs on every instance, ratios of every two of them, and auto against the peers."""

from __future__ import annotations

import pandas as pd

from quartbench.study import costs, summary
from quartbench.study.report import profiles
from quartbench.study.report.figures import compared

from .cells import Cell, Table, contender, gap_cell, number, seconds


def cost_table(runs: pd.DataFrame) -> Table | None:
    """Return time, iterations, passes and set-up of every contender on every instance at the gap it was asked for."""
    rows = []
    ordered = runs.sort_values(["group", "instance"], kind="stable")
    for (group, instance, name, gap), here in ordered.groupby(
        ["group", "instance", "contender", "rel_gap"], sort=False
    ):
        spent = {unit: costs.to_gap(here, gap, unit).median() for unit in costs.UNITS}
        last = here[~here.status.isin(costs.BROKEN)].gap.median()
        reached = int(here.success.sum())
        rows.append(
            [
                Cell(instance),
                Cell(group),
                contender(name),
                gap_cell(gap),
                seconds(spent["seconds"]),
                number(spent["iterations"]),
                number(spent["passes"]),
                seconds(here.setup_seconds.median()),
                number(last, 2),
                Cell(f"{reached}/{len(here)}", reached / len(here)),
            ]
        )
    if not rows:
        return None
    note = (
        "Medians over seeds and repeats of what it cost to reach the gap that was asked for; the time includes the "
        "set-up. 'certified' is the median gap at the end, 'certain' how many runs ended with that gap certified."
    )
    columns = [
        "instance",
        "group",
        "contender",
        "gap",
        "time",
        "iterations",
        "passes",
        "set-up",
        "certified",
        "certain",
    ]
    return Table("costs", "Cost on every instance", note, columns, rows, frozenset(range(3, 10)))


def pair_table(runs: pd.DataFrame) -> Table | None:
    """Return the pairwise ratios of time at several gaps."""
    part, gaps = compared(runs)
    rows = []
    for gap in gaps:
        for one in profiles.pairs(costs.table(part, gap, "seconds")).itertuples():
            ratio = number(one.median_ratio)
            share = Cell(f"{one.wins}/{one.problems}", one.wins / one.problems)
            rows.append([contender(one.contender), contender(one.against), gap_cell(gap), ratio, share])
    if not rows:
        return None
    note = "Median over problems of time over time of the other: below 1 is faster. 'faster on' counts problems."
    columns = ["contender", "against", "gap", "ratio of times", "faster on"]
    return Table("pairs", "Pairwise ratios of time", note, columns, rows, frozenset({2, 3, 4}))


def peer_table(runs: pd.DataFrame) -> Table | None:
    """Return auto against the best peer on each instance."""
    part = runs[runs.group == "peers"]
    if not (part.method == "auto").any() or not part.peer.any():
        return None
    rows = [
        [
            Cell(one.instance),
            gap_cell(one.rel_gap),
            seconds(one.wall),
            seconds(one.auto),
            Cell(one.peer or "none got there"),
            seconds(one.peer_time),
            number(one.wall_ratio),
            number(one.ratio),
            Cell(one.own),
            seconds(one.own_time),
            number(one.overhead),
        ]
        for one in summary.peers(part).itertuples()
    ]
    note = (
        "'wall' is the whole call of auto as a user makes it, certificate included; 'clock' is its method alone. A "
        "peer is bare: it calls functions of NumPy and scipy.sparse as a careful user writes them, none of our "
        "kernels, has no certificate, and ends at the first point within the gap of the known f*. 'ratio' is "
        "the best peer over the wall of auto: above 1 auto is faster; 'overhead' is auto over our best, by clock."
    )
    columns = ["instance", "gap", "wall", "clock", "best peer", "its time", "ratio", "by clock", "our best", "time"]
    columns.append("overhead")
    return Table("peers", "auto against the best peer", note, columns, rows, frozenset({1, 2, 3, 5, 6, 7, 9, 10}))
