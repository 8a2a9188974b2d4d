"""How far is a run? A bar that fills as the logarithm of the certified gap, or another number, falls to its target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(
    name: str, target: float | None, what: str = "gap"
) -> Iterator[tuple[Callable[[float, int], None], Callable[[int], None]]]:
    """Show a bar on standard error; yield what advances it, given the number that falls and the iteration.

    Beside it comes what is told every pass, so that a long one shows.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn(what + " {task.fields[number]}  iteration {task.fields[iteration]}  pass {task.fields[passes]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(name, total=1.0 if target else None, number="–", iteration=0, passes=0)
        first = math.inf

        def advance(number: float, iteration: int) -> None:
            nonlocal first
            first = min(first, max(number, 10.0 * target)) if target and first == math.inf else first
            done = 1.0 if number == 0.0 else 0.0
            if target and 0.0 < number < first < math.inf:
                done = math.log(first / number) / math.log(first / target)
            display.update(task, completed=min(max(done, 0.0), 1.0), number=f"{number:.1e}", iteration=iteration)

        yield advance, lambda passes: display.update(task, passes=passes)
