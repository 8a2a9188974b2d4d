"""What is on record? Every run, those that failed or stopped early, and the claims with the keys of their runs."""

from __future__ import annotations

import pandas as pd

from quartbench.study import costs
from quartbench.study.report.claims import Claim, Finding
from quartbench.study.report.words import gap_words

from .cells import Cell, Table, contender, number, seconds

#: How a run ended, in words where the status is a name of the program.
ENDS = {"max_iter": "iteration limit", "time_limit": "time limit"}


def failure_table(runs: pd.DataFrame) -> Table:
    """Return the runs that broke off, and those that did not reach the gap they were asked for, with the reason.

    A recovery that ended in another valley is no failure of the run: the tables of the applications count it.
    """
    broken = runs.status.isin(costs.BROKEN)
    judged = runs.application.isin(["", costs.REGRESSION])
    short = runs[broken | (~runs.success & judged)].sort_values(["group", "instance"], kind="stable")
    rows = []
    for (group, instance, name, status), here in short.groupby(
        ["group", "instance", "contender", "status"], sort=False
    ):
        reason = (
            here.message.iloc[0]
            if status in costs.BROKEN
            else f"certified gap {gap_words(here.gap.median(), 2)} at the end"
        )
        count = Cell(str(len(here)), len(here), keys=tuple(here.key))
        rows.append([Cell(instance), Cell(group), contender(name), Cell(ENDS.get(status, status)), Cell(reason), count])
    note = (
        "A run that failed or was killed counts as not solved everywhere above; one that stopped early counts for the "
        "gaps that it did reach."
    )
    columns = ["instance", "group", "contender", "status", "reason", "runs"]
    return Table("failures", "Failures and runs that stopped early", note, columns, rows, frozenset({5}))


def run_table(runs: pd.DataFrame) -> Table:
    """Return every run, one per row, under its key; with rounds and bytes where some have their rows on workers."""
    spread = bool(runs.rounds.any())
    rows = [
        [
            Cell(run.key),
            Cell(run.instance),
            Cell(run.group),
            contender(run.contender),
            number(run.seed),
            number(run.repeat),
            Cell(ENDS.get(run.status, run.status)),
            number(run.gap, 2),
            number(run.nit),
            number(run.passes),
            *([number(run.rounds), number(run.bytes)] if spread else []),
            seconds(run.setup_seconds),
            seconds(run.solve_seconds),
        ]
        for run in runs.sort_values(["group", "instance", "contender", "seed", "repeat"], kind="stable").itertuples()
    ]
    columns = [
        "key",
        "instance",
        "group",
        "contender",
        "seed",
        "repeat",
        "status",
        "certified",
        "iterations",
        "passes",
        *(["rounds", "bytes"] if spread else []),
        "set-up",
        "solve",
    ]
    note = "Each is one Parquet file, runs/KEY.parquet, with its settings, its versions and its whole trace."
    return Table("runs", "Every run", note, columns, rows, frozenset({4, 5, *range(7, len(columns))}))


def claim_frame(decided: list[tuple[Claim, Finding]]) -> pd.DataFrame:
    """Return the claims as they go into claims.csv: with every number and every key."""
    return pd.DataFrame(
        [
            {
                "claim": claim.name,
                "source": claim.source,
                "sentence": claim.sentence,
                "verdict": found.verdict,
                "condition": found.condition,
                "evidence": found.evidence,
                "cases": " | ".join(found.cases),
                "runs": " ".join(found.keys),
            }
            for claim, found in decided
        ]
    )
