"""Who wins where? The fastest on every instance, by how much, and who is fastest most often."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from quartbench.study import costs
from quartbench.study.report.words import short

from .cells import Cell, Table, gap_cell, number, seconds


class Winner(NamedTuple):
    """The fastest on an instance at a gap, the next, by which factor, and who needed the fewest passes."""

    group: str
    instance: str
    gap: float
    first: str
    seconds: float
    second: str
    factor: float
    frugal: str
    passes: float
    contenders: int

    def lead(self, noise: float) -> str:
        """Say by how much it leads: a tie where that is within the noise, nothing where nobody else got there."""
        if not self.second:
            return ""
        tie = self.factor <= 1.0 + noise
        return f"tie with {self.second}" if tie else f"{short(self.factor)}× faster than {self.second}"


def winners(runs: pd.DataFrame) -> list[Winner]:
    """Return who wins on every instance of the groups that are races, at the tightest gap that more than one reached.

    Times are medians over seeds of medians over repeats.
    """
    found = []
    part = costs.races(runs).sort_values("group", kind="stable")
    for (group, instance), here in part.groupby(["group", "instance"], sort=False):
        asked = float(here.rel_gap.min())
        for gap in (asked, *(one for one in costs.LADDER[::-1] if one > asked * (1.0 + 1e-9))):
            times = costs.table(here, gap, "seconds").median().sort_values()
            times = times[np.isfinite(times)]
            if len(times) >= min(2, here.contender.nunique()) and len(times):
                break
        else:
            continue
        passes = costs.table(here, gap, "passes").median().sort_values()
        second, factor = "", math.nan
        if len(times) > 1:
            second, factor = times.index[1], costs.ratio(times.iloc[1], times.iloc[0])
        found.append(
            Winner(
                group,
                instance,
                gap,
                times.index[0],
                times.iloc[0],
                second,
                factor,
                passes.index[0],
                passes.iloc[0],
                here.contender.nunique(),
            )
        )
    return found


def leaders(found: list[Winner], noise: float) -> tuple[Counter, int]:
    """Return how often each contender was fastest, ties included, and on how many instances.

    Where there is a catalogue or peers only they count: the paper's figures leave out whoever is not in them.
    """
    open_to_all = [one for one in found if one.group in ("catalogue", "peers")] or found
    counted = [one for one in open_to_all if one.second]
    count = Counter(one.first for one in counted)
    count.update(one.second for one in counted if one.factor <= 1.0 + noise)
    return count, len(counted)


def winner_table(found: list[Winner], noise: float) -> Table:
    """Return who wins where; a lead within the noise is called a tie."""
    rows = []
    for one in found:
        lead = Cell(one.lead(noise), one.factor) if one.second else Cell("–", 0.0)
        rows.append(
            [
                Cell(one.instance),
                Cell(one.group),
                gap_cell(one.gap),
                Cell(one.first),
                seconds(one.seconds),
                lead,
                Cell(one.frugal),
                number(one.passes),
            ]
        )
    ties = f"A lead of less than {100 * noise:.0f} %, the noise floor, is a tie."
    note = "Median seconds over seeds to the tightest gap that two contenders reached, set-up included. " + (
        ties if noise else "Without repeats the noise is not known, and no lead is called a tie."
    )
    columns = ["instance", "group", "gap", "fastest", "time", "lead", "fewest passes", "passes"]
    return Table("winners", "Who wins where", note, columns, rows, frozenset({2, 4, 7}))
