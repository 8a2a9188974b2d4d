"""Which tables does the report hold? Rows of cells from the runs: who wins where, costs, break-even, failures, runs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from quartbench.study import costs, summary
from quartbench.study.kernels import duration

from . import profiles
from .claims import Claim, Finding
from .figures import compared
from .growth import SCALING, growths
from .words import gap_words, short


class Cell(NamedTuple):
    """What is shown, what is sorted by (the text where None), whose row it is to a legend, and the runs behind it."""

    text: str
    value: float | None = None
    contender: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of the page. ``numeric`` tells the columns that stand to the right."""

    name: str
    title: str
    note: str
    columns: list[str]
    rows: list[list[Cell]]
    numeric: frozenset[int] = frozenset()


def number(value: float, digits: int = 3) -> Cell:
    """Return a number; a dash where there is none, ∞ where it was never reached."""
    value = float(value)
    if math.isnan(value):
        return Cell("–", math.inf)
    if math.isinf(value):
        return Cell("not reached", math.inf)
    return Cell(f"{value:.0f}" if value == round(value) and abs(value) < 1e6 else short(value, digits), value)


def seconds(value: float) -> Cell:
    """Return a time in the unit that reads best."""
    return number(value) if not math.isfinite(value) else Cell(duration(value) if value > 0 else "0", float(value))


def gap_cell(value: float) -> Cell:
    """Return a gap as a power of ten."""
    return Cell(gap_words(value), float(value))


def contender(name: str) -> Cell:
    """Return a contender whose row a legend can toggle."""
    return Cell(name, None, name)


# Who wins where -------------------------------------------------------------------------------------------------------


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


def winners(runs: pd.DataFrame) -> list[Winner]:
    """Return who wins on every instance outside the scaling groups, at the tightest gap that more than one reached.

    Times are medians over seeds of medians over repeats.
    """
    found = []
    part = runs[~runs.group.str.startswith("scaling-")].sort_values("group", kind="stable")
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
        tie = one.factor <= 1.0 + noise
        lead = (
            Cell("–", 0.0)
            if math.isnan(one.factor)
            else Cell(f"tie with {one.second}" if tie else f"{short(one.factor)}× faster than {one.second}", one.factor)
        )
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
    note = (
        "Median seconds over seeds to the tightest gap that two contenders reached, set-up included. "
        f"A lead of less than {noise:.0%}, the noise floor, is a tie."
    )
    columns = ["instance", "group", "gap", "fastest", "time", "lead", "fewest passes", "passes"]
    return Table("winners", "Who wins where", note, columns, rows, frozenset({2, 4, 7}))


# Costs ----------------------------------------------------------------------------------------------------------------


def cost_table(runs: pd.DataFrame) -> Table:
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


def growth_table(runs: pd.DataFrame) -> Table | None:
    """Return the fitted exponents with their confidence intervals beside those of the theory."""
    rows = []
    for group in SCALING:
        for one in growths(runs, group):
            theory = Cell("–") if one.theory is None else Cell(f"{'≤ ' * one.bound}{one.theory:g}", one.theory)
            interval = Cell(f"[{one.fit.low:.2f}, {one.fit.high:.2f}]", one.fit.high - one.fit.low)
            rows.append(
                [
                    Cell(SCALING[group][1]),
                    Cell(one.measure),
                    contender(one.name),
                    number(one.fit.exponent),
                    interval,
                    theory,
                    number(one.fit.points),
                ]
            )
    if not rows:
        return None
    note = (
        "Least squares on logarithms, a point a cell, with 95 % confidence intervals. The theory bounds iterations "
        "from above; of time it says what remains once a problem is large, so small ones may grow more slowly."
    )
    columns = ["in", "measure", "contender", "exponent", "95 % interval", "theory", "points"]
    return Table("growth", "Fitted exponents", note, columns, rows, frozenset({3, 4, 5, 6}))


# Break-even -----------------------------------------------------------------------------------------------------------


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


# Peers and kernels ----------------------------------------------------------------------------------------------------


def peer_table(runs: pd.DataFrame) -> Table | None:
    """Return auto against the best peer on each instance."""
    part = runs[runs.group == "peers"]
    if not (part.method == "auto").any() or not part.peer.any():
        return None
    rows = [
        [
            Cell(one.instance),
            gap_cell(one.rel_gap),
            seconds(one.auto),
            Cell(one.peer or "none got there"),
            seconds(one.peer_time),
            number(one.ratio),
            Cell(one.own),
            seconds(one.own_time),
            number(one.overhead),
        ]
        for one in summary.peers(part).itertuples()
    ]
    note = (
        "Time to the gap, set-up included, of runs whose gap was certified. 'ratio' is the best peer over auto: above "
        "1 auto is faster; 'overhead' is auto over the best of our methods."
    )
    columns = ["instance", "gap", "auto", "best peer", "its time", "ratio", "our best", "time", "overhead"]
    return Table("peers", "auto against the best peer", note, columns, rows, frozenset({1, 2, 4, 5, 7, 8}))


def kernel_table(kernels: dict | None) -> Table | None:
    """Return the measured kernels."""
    if not kernels or not kernels["rows"]:
        return None
    rows = [
        [
            Cell(one["name"]),
            Cell(one["operation"]),
            seconds(one["seconds"]),
            number(one["gigabytes_per_second"]),
            number(one["bandwidth_fraction"], 2),
            number(one["ratio"]),
            number(one["tuned_ratio"]),
            Cell(f"≥ {one['target']:g}", one["target"]),
        ]
        for one in kernels["rows"]
    ]
    note = (
        "'read' is the fraction of the measured bandwidth; 'ratio' compares with the code as one writes it first in "
        "NumPy or scipy.sparse, 'tuned' with the same code at its best, 'wanted' is the ratio that is promised."
    )
    columns = ["case", "operation", "time", "GB/s", "read", "ratio", "tuned", "wanted"]
    return Table("kernel-table", "Kernels", note, columns, rows, frozenset(range(2, 8)))


# What to know of the runs ---------------------------------------------------------------------------------------------


def failure_table(runs: pd.DataFrame) -> Table:
    """Return the runs that broke off, and those that did not reach the gap they were asked for, with the reason."""
    short = runs[~runs.success].sort_values(["group", "instance"], kind="stable")
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
        rows.append([Cell(instance), Cell(group), contender(name), Cell(status), Cell(reason), count])
    note = (
        "A run that failed or was killed counts as not solved everywhere above; one that stopped early counts for the "
        "gaps that it did reach."
    )
    columns = ["instance", "group", "contender", "status", "reason", "runs"]
    return Table("failures", "Failures and runs that stopped early", note, columns, rows, frozenset({5}))


def run_table(runs: pd.DataFrame) -> Table:
    """Return every run, a row each, under its key."""
    rows = [
        [
            Cell(run.key),
            Cell(run.instance),
            Cell(run.group),
            contender(run.contender),
            number(run.seed),
            number(run.repeat),
            Cell(run.status),
            number(run.gap, 2),
            number(run.nit),
            number(run.passes),
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
        "set-up",
        "solve",
    ]
    note = "Each is one Parquet file, runs/KEY.parquet, with its settings, its versions and its whole trace."
    return Table("runs", "Every run", note, columns, rows, frozenset({4, 5, 7, 8, 9, 10, 11}))


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
