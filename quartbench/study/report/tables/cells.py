"""What is a table of the page? Rows of cells, each with what is shown, what is sorted by, and the runs behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from quartbench.study.report.words import gap_words, short
from quartbench.views import duration


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
