"""How does the command line show things? Progress bars and tables in one style, and times in words.

Progress goes to standard error, so that what is printed can be piped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

#: Seconds over which a study estimates its speed: its runs differ so much that only all of them together tell it.
STUDY_PERIOD = 3600.0


def progress(console: Console) -> Progress:
    """Return the progress bar that every long command shows."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<42}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def study_progress(console: Console) -> Progress:
    """Return the progress bar of a study, with the time that is left."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<56.56}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
        transient=True,
        speed_estimate_period=STUDY_PERIOD,
    )


def counted(number: int, one: str, many: str) -> str:
    """Return a number of things in words."""
    return f"{number} {one if number == 1 else many}"


def plain_table(**options: Any) -> Table:
    """Return a table without lines or headings: a name and what is to say of it in each row."""
    return Table(box=None, show_header=False, pad_edge=False, **options)


def headed_table(title: str, **options: Any) -> Table:
    """Return a table under a title, with a line below its headings."""
    return Table(title=title, **{"box": SIMPLE_HEAD, "title_justify": "left", "title_style": "bold"} | options)


def fact_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return facts, each under its bold name; rich's markup in them counts."""
    table = plain_table()
    for name, fact in facts:
        table.add_row(f"[bold]{name}[/]", fact)
    return table


def word_table(words: Iterable[tuple[str, str]], width: int, **options: Any) -> Table:
    """Return words with their meanings; ``width`` is the least of the first column."""
    table = plain_table(**options)
    table.add_column(style="cyan", min_width=width, no_wrap=True)
    for word, meaning in words:
        table.add_row(escape(word), escape(meaning))
    return table


def json_text(record: Any) -> str:
    """Return a record as JSON, which has no infinities and no NaN: they are null there."""
    from quartbench.gate.report import finite

    return json.dumps(finite(record), indent=2, ensure_ascii=False, allow_nan=False)


def time_words(seconds: float) -> str:
    """Return a time in the unit that reads best: a dash where it is infinite, nothing where there is none."""
    from quartbench.views import duration

    return duration(seconds) if math.isfinite(seconds) else ("–" if math.isinf(seconds) else "")
