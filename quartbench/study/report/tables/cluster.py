"""What did it cost where rows are on workers, and how like the whole is a sample of them?"""

from __future__ import annotations

import pandas as pd

from quartbench.study import costs
from quartbench.study.report.words import short

from .cells import Cell, Table, contender, gap_cell, number, seconds


def traffic_table(runs: pd.DataFrame) -> Table | None:
    """Return rounds, bytes and seconds to the gap of every run with rows on workers, medians over seeds and repeats."""
    part = costs.iterated(runs[runs.workers > 0])
    if part.empty:
        return None
    spent = {unit: costs.to_gap(part, part.rel_gap, unit) for unit in ("rounds", "bytes", "seconds")}
    part = part.assign(**{f"to_{unit}": found for unit, found in spent.items()})
    rows = []
    part = part.sort_values(["group", "instance"], kind="stable")
    for (instance, name, gap), here in part.groupby(["instance", "contender", "rel_gap"], sort=False):
        rounds = here.to_rounds.median()
        rows.append(
            [
                Cell(str(instance)),
                contender(str(name)),
                gap_cell(gap),
                Cell(number(rounds).text, rounds, keys=tuple(here.key)),
                number(here.rounds.median()),
                count(here.to_bytes.median()),
                seconds(here.to_seconds.median()),
                seconds(here.setup_seconds.median()),
            ]
        )
    note = (
        "'rounds' and 'bytes' are those in which the gap to f* was reached, 'until certified' the rounds of the whole "
        "run. Seconds include the set-up, which is also shown apart."
    )
    columns = ["instance", "contender", "gap", "rounds", "until certified", "bytes", "seconds", "set-up"]
    return Table("traffic", "Rounds, bytes and seconds to the gap", note, columns, rows, frozenset(range(2, 8)))


def count(value: float) -> Cell:
    """Return bytes in the unit that reads best."""
    if not value < float("inf"):
        return number(value)
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return Cell(f"{short(value / size)} {unit}", float(value))
    return Cell(f"{value:.0f} B", float(value))


def sample_table(samples: pd.DataFrame) -> Table | None:
    """Return μ_m, L_m and their ratio for every size of a sample."""
    if samples.empty:
        return None
    rows = [
        [
            Cell(one.instance),
            Cell(one.sampling),
            Cell(f"{100.0 * one.share:g} %", one.share),
            number(one.terms),
            number(one.low),
            number(one.high),
            number(one.condition),
        ]
        for one in samples.itertuples()
    ]
    note = "Lₘ/μₘ is the relative condition number: 1 where the sample is the whole."
    columns = ["rows", "sampling", "share", "terms", "μₘ", "Lₘ", "Lₘ/μₘ"]
    return Table("samples", "Samples of the terms", note, columns, rows, frozenset(range(2, 7)))
