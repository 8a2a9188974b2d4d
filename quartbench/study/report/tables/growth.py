"""How do costs grow, in numbers? The fitted exponents of the scaling groups beside those of the theory."""

from __future__ import annotations

import pandas as pd

from quartbench.study.report.growth import SCALING, growths

from .cells import Cell, Table, contender, number


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
        "Least squares on logarithms, one point per cell, with 95 % confidence intervals. The theory bounds iterations "
        "from above; of time it says what remains once a problem is large, so small ones may grow more slowly."
    )
    columns = ["in", "measure", "contender", "exponent", "95 % interval", "theory", "points"]
    return Table("growth", "Fitted exponents", note, columns, rows, frozenset({3, 4, 5, 6}))
