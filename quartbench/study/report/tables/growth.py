"""How do costs grow and gaps fall, in numbers? Fitted exponents beside those of the theory."""

from __future__ import annotations

import pandas as pd

from quartbench.study.report.growth import SCALING, growths
from quartbench.study.report.rates import rates
from quartbench.study.report.words import signed

from .cells import Cell, Table, contender, number


def growth_table(runs: pd.DataFrame) -> Table | None:
    """Return the fitted exponents with their confidence intervals beside those of the theory."""
    rows = []
    for group in SCALING:
        for one in growths(runs, group):
            theory = Cell("–") if one.theory is None else Cell(f"{'≤ ' * one.bound}{one.theory:g}", one.theory)
            interval = Cell(signed(f"[{one.fit.low:.2f}, {one.fit.high:.2f}]"), one.fit.high - one.fit.low)
            rows.append(
                [
                    Cell(SCALING[group][1]),
                    Cell(one.measure),
                    contender(one.name),
                    Cell(signed(f"{one.fit.exponent:.2f}"), one.fit.exponent),
                    interval,
                    theory,
                    number(one.fit.points),
                ]
            )
    if not rows:
        return None
    note = (
        "Least squares on logarithms, one point per instance and seed, with 95 % confidence intervals. The theory "
        "bounds iterations from above; of time it says what remains once a problem is large, so small ones may grow "
        "more slowly."
    )
    columns = ["in", "measure", "contender", "exponent", "95 % interval", "theory", "points"]
    return Table("growth", "Fitted exponents", note, columns, rows, frozenset({3, 4, 5, 6}))


def rate_table(runs: pd.DataFrame) -> Table | None:
    """Return the exponents of k in the gap on degenerate rows, with the theorem's beside them."""
    rows = [
        [
            Cell(one.instance),
            contender(one.name),
            Cell(signed(f"{one.exponent:.2f}"), one.exponent),
            Cell(signed(f"[{one.low:.2f}, {one.high:.2f}]"), one.high - one.low),
            Cell("–") if one.theory is None else Cell(signed(f"≤ {one.theory:g}"), one.theory),
            Cell(str(one.seeds), one.seeds, keys=one.keys),
        ]
        for one in rates(runs)
    ]
    if not rows:
        return None
    note = (
        "The gap falls like k to this power over the last decade of its iterations above rounding: the mean over "
        "seeds, with its 95 % confidence interval. A dash is a method whose rate no theorem of the paper states."
    )
    columns = ["instance", "contender", "exponent", "95 % interval", "theory", "runs"]
    return Table("rate-table", "Exponents of k in the gap", note, columns, rows, frozenset({2, 3, 4, 5}))
