"""How far is a run? A bar that fills as the logarithm of the certified gap falls to its target, and counts passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(name: str, rel_gap: float | None) -> Iterator[tuple[Callable[[float, int], None], Callable[[int], None]]]:
    """Show a bar on standard error; yield what advances it, given gap and iteration, and what is told every pass."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("gap {task.fields[gap]}  iteration {task.fields[iteration]}  pass {task.fields[passes]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(name, total=1.0 if rel_gap else None, gap="–", iteration=0, passes=0)
        first = math.inf

        def advance(gap: float, iteration: int) -> None:
            nonlocal first
            first = min(first, max(gap, 10.0 * rel_gap)) if rel_gap and first == math.inf else first
            done = math.log(first / gap) / math.log(first / rel_gap) if rel_gap and gap < first < math.inf else 0.0
            display.update(task, completed=min(max(done, 0.0), 1.0), gap=f"{gap:.1e}", iteration=iteration)

        yield advance, lambda passes: display.update(task, passes=passes)
