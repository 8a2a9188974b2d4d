"""How did recoveries go, in numbers? What was recovered, how exactly, what it cost, and what metrics save in DC."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from quartbench.study import costs, outcomes

from .cells import Cell, Table, contender, number, seconds


def outcome_table(runs: pd.DataFrame, name: str, title: str) -> Table:
    """Return what every contender made of every instance."""
    rows = [
        [
            Cell(one.instance),
            contender(one.contender),
            Cell(f"{one.recovered}/{one.seeds}", one.recovered / one.seeds, keys=one.keys),
            number(one.error, 2),
            number(one.residual, 2),
            number(one.passes),
            number(one.start_passes),
            seconds(one.seconds),
            seconds(one.wall),
        ]
        for one in outcomes.outcomes(runs).itertuples()
    ]
    note = (
        "'recovered' counts seeds with a relative error of at most 10⁻³, or the noise where that is more. The others "
        "are medians over seeds, recovered or not; 'passes' and 'time' are without the start, 'with start' is the "
        "whole wait."
    )
    columns = ["instance", "contender", "recovered", "error", "residual", "passes", "of the start", "time"]
    return Table(name, title, note, [*columns, "with start"], rows, frozenset(range(2, 9)))


def cluster_table(runs: pd.DataFrame) -> Table:
    """Return time, F and accuracy of every contender on every matrix."""
    least = runs.groupby(["instance", "seed"]).value.transform("min")
    above = runs.assign(above=runs.value / least - 1.0).groupby(["instance", "contender"], sort=False).above.median()
    rows = [
        [
            Cell(one.instance),
            contender(one.contender),
            seconds(one.wall),
            number(one.passes),
            number(above[one.instance, one.contender], 2),
            Cell(f"{1.0 - one.error:.3f}", 1.0 - one.error, keys=one.keys),
        ]
        for one in outcomes.outcomes(runs).itertuples()
    ]
    note = (
        "Medians over starts. 'F above the least' is relative to the least F that any of these methods found from the "
        "same start: a method that is fast may end in another valley. The accuracy is that of the labels under their "
        "best renaming."
    )
    columns = ["instance", "contender", "time", "passes", "F above the least", "accuracy"]
    return Table("clusters-outcomes", "Clusters found", note, columns, rows, frozenset(range(2, 6)))


def price_table(found: pd.DataFrame) -> Table:
    """Return auto against the best peer, and the DC algorithm beside them."""
    rows = [
        [
            Cell(one.instance),
            seconds(one.auto),
            number(one.auto_passes),
            Cell(one.peer or "none gets there"),
            seconds(one.best),
            number(one.peer_passes),
            number(one.ratio) if math.isfinite(one.ratio) else Cell("∞", math.inf),
            seconds(one.dc_seconds),
            number(one.dc_passes),
            number(costs.ratio(one.dc_passes, one.peer_passes) if one.peer else math.nan),
        ]
        for one in found.itertuples()
    ]
    note = (
        "To a relative residual of 10⁻⁴ from the same start, which is not counted. 'ratio' is the time of the best "
        "peer over that of auto: above 1 auto is faster. 'DC/peer' is in passes."
    )
    columns = ["instance", "auto", "passes", "best peer", "time", "passes", "ratio", "DC", "passes", "DC/peer"]
    return Table(
        "recovery-peers", "auto and DC against the best peer", note, columns, rows, frozenset({1, 2, *range(4, 10)})
    )


def fit_table(runs: pd.DataFrame) -> Table:
    """Return the time and passes of every contender to the residual at which they are compared."""
    time, passes = outcomes.fitting(runs, "seconds"), outcomes.fitting(runs, "passes")
    ends = outcomes.outcomes(runs).set_index(["instance", "contender"])
    rows = []
    for instance in time.index:
        for name in time.columns:
            if math.isnan(time.loc[instance, name]):
                continue
            end = ends.loc[(instance, name)]
            rows.append(
                [
                    Cell(instance),
                    contender(name),
                    seconds(time.loc[instance, name]),
                    number(passes.loc[instance, name]),
                    number(end.residual, 2),
                    Cell(number(end.error, 2).text, end.error, keys=end["keys"]),
                    seconds(end.wall),
                ]
            )
    note = (
        "'time' and 'passes' to a relative residual of 10⁻⁴ from the same start; then where each ended by itself, "
        "after how long, start included."
    )
    columns = ["instance", "contender", "time", "passes", "residual at the end", "error", "whole time"]
    return Table("recovery-fits", "Every method on every problem", note, columns, rows, frozenset(range(2, 7)))


#: Two metrics that are held beside each other, by their names in a study, and in a table.
METRIC_PAIRS = [("uniform", "lewis", "B⁽⁰⁾", "B*"), ("identity", "uniform", "I", "B⁽⁰⁾")]


def metric_table(runs: pd.DataFrame) -> Table | None:
    """Return the passes of DC in two metrics, to the least F that both reached from one start."""
    rows = []
    for (instance, solver), here in runs.groupby(["instance", "solver"], sort=False):
        for first, second, *names in METRIC_PAIRS:
            found = outcomes.compared(*(here[here.metric_asked == metric] for metric in (first, second)), "passes")
            if found is None:
                continue
            dear, cheap, keys = found
            ratio = float(np.median(dear / cheap))
            row = [Cell(instance), Cell(solver), Cell("/".join(names)), number(np.median(dear))]
            rows.append([*row, number(np.median(cheap)), Cell(number(ratio).text, ratio, keys=tuple(keys))])
    if not rows:
        return None
    note = (
        "Passes of the DC algorithm, its convex steps solved by the solver named, to the least F that both metrics "
        "reached; medians over seeds, of ratios too. A ratio above 1: the second metric saves passes. I is the "
        "Euclidean norm."
    )
    columns = ["instance", "DC with", "metrics", "passes in the first", "in the second", "ratio"]
    return Table("dc-metrics-table", "Convex steps in two metrics", note, columns, rows, frozenset({3, 4, 5}))
