"""How does the command line show things? Progress bars and tables in one style, and times in words.

Progress goes to standard error, so that what is printed can be piped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from quartbench.errors import ProblemError
from quartbench.precondition import METRICS

#: What may be given for a metric.
METRIC_NAMES = f"{', '.join(METRICS)} or auto."

#: Seconds over which a study estimates its speed: its runs differ so much that only all of them together tell it.
STUDY_PERIOD = 3600.0


#: Columns that a bar may take; a wide screen leaves more of them to it.
SHORTEST, LONGEST = 8, 40


class _Label(ProgressColumn):
    """What is being done, in so many columns: on a narrow screen it is cut before any number is."""

    def __init__(self, width: int) -> None:
        super().__init__(Column())  # it may be made narrower, where the columns of numbers may not
        self.width = width

    def render(self, task: Task) -> Text:
        return Text(f"{task.description:<{self.width}.{self.width}}", no_wrap=True, overflow="ellipsis")


def _bar(console: Console, width: int, *more: ProgressColumn, **options: Any) -> Progress:
    """Return a progress bar whose label has so many columns where the screen has room for it."""
    numbers = [kind(table_column=Column(no_wrap=True)) for kind in (MofNCompleteColumn, TimeElapsedColumn)]
    room = console.width - width - 36  # the numbers, and the spaces between
    bar = BarColumn(max(SHORTEST, min(LONGEST, room)), table_column=Column(no_wrap=True))
    columns = (SpinnerColumn(table_column=Column(no_wrap=True)), _Label(width), bar, *numbers, *more)
    return Progress(*columns, console=console, transient=True, **options)


def progress(console: Console) -> Progress:
    """Return the progress bar that every long command shows."""
    return _bar(console, 42)


def study_progress(console: Console) -> Progress:
    """Return the progress bar of a study, with the time that is left."""
    left = TimeRemainingColumn(elapsed_when_finished=False, table_column=Column(no_wrap=True))
    return _bar(console, 56, TextColumn("left"), left, speed_estimate_period=STUDY_PERIOD)


def require_folder(path: Path | None) -> None:
    """Raise where there is no directory for a file that is to be written, before any work is done for it."""
    if path is not None and not path.absolute().parent.is_dir():
        raise ProblemError(f"cannot write {path}: there is no directory {path.parent}")


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
