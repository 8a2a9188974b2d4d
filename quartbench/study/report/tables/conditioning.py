"""How tight are the bounds on κ? The largest ratio found, beside what is certified and what the paper has for it."""

from __future__ import annotations

import json
import math

import pandas as pd

from .cells import Cell, Table, number


def paper_bound(run) -> float:
    """Return the paper's bound on κ in the metric of a run: √(mγ), √n, (σ_max/σ_min)²√(mγ), or √r without terms."""
    if run.generator == "planted_partition":
        return math.sqrt(run.r)
    if run.metric == "lewis":
        return math.sqrt(run.n)
    bound = math.sqrt(run.m * run.coherence)
    if run.metric == "uniform":
        return bound
    given = json.loads(run.arguments)
    cond = given.get("cond") or 1.0 / given.get("sigma_min", math.nan)
    return cond**2 * bound if run.metric == "identity" else math.nan


def kappa_table(runs: pd.DataFrame) -> Table | None:
    """Return the measured κ of every metric on every instance that has one."""
    part = runs.dropna(subset=["kappa_measured"]).drop_duplicates(["instance", "seed", "metric"])
    rows = []
    for run in part.sort_values(["instance", "seed", "metric"], kind="stable").itertuples():
        bound = paper_bound(run)
        rows.append(
            [
                Cell(run.instance),
                Cell(run.metric),
                Cell(number(run.kappa_measured).text, run.kappa_measured, keys=(run.key,)),
                number(run.kappa_bound),
                number(bound),
                number(run.kappa_measured / bound, 2),
                number(run.kappa_measured / math.sqrt(run.n), 2),
            ]
        )
    if not rows:
        return None
    note = (
        "'found' is attained by two points that a search from several starts ended at, so that κ is at least this; "
        "'certified' is the bound that fixed steps use; 'paper' is √(mγ) for uniform, √n for lewis, "
        "(σ_max/σ_min)²·√(mγ) for identity where the generator sets the singular values, and √r for symmetric NMF."
    )
    columns = ["instance", "metric", "found", "certified", "paper", "found/paper", "found/√n"]
    return Table("kappa", "κ found, certified and bounded", note, columns, rows, frozenset(range(2, 7)))
