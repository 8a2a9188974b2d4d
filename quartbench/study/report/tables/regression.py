"""How does ℓ4 regression compare? Ours, certificate included, beside bare peers on every instance."""

from __future__ import annotations

import pandas as pd

from quartbench.study import costs, summary

from .cells import Cell, Table, contender, gap_cell, number, seconds


def regression_table(runs: pd.DataFrame) -> Table | None:
    """Return the time of every contender on every regression, and that over the time of ours."""
    rows = []
    for (instance, gap), times in summary.times(runs).iterrows() if len(runs) else ():
        here = runs[(runs.instance == instance) & (runs.rel_gap == gap)]
        ours = times.get(summary.REGRESSION, float("nan"))
        for name, time in times.dropna().sort_values().items():
            mine = here[here.contender == name]
            reached = int(mine.success.sum())
            rows.append(
                [
                    Cell(instance),
                    gap_cell(gap),
                    contender(name),
                    seconds(time),
                    number(costs.ratio(time, ours)),
                    Cell("with a certificate" if not mine.peer.any() else "bare"),
                    Cell(f"{reached}/{len(mine)}", reached / len(mine), keys=tuple(mine.key)),
                ]
            )
    if not rows:
        return None
    note = (
        "min ‖Ax − b‖₄: median seconds to a relative gap of the norm. Ours is the whole call, with the certificate "
        "that ends it; a peer is bare: it is told the norm to reach, and ends at its first point with it. 'times ours' "
        "above 1: ours is faster. 'least_squares=normal' solves normal equations, the others numpy.linalg.lstsq. "
        "Of ours the figure shows the end alone."
    )
    columns = ["instance", "gap", "contender", "time", "times ours", "answer", "reached"]
    return Table("regression", "ℓ4 regression", note, columns, rows, frozenset({1, 3, 4, 6}))
