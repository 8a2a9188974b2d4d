"""How does a method that calls back become a generator? It runs on a stack of its own, left at every callback.

The stack is a greenlet: there and back takes 1 µs in a loop of its own and about 12 µs within L-BFGS-B, against 20 to
70 µs in a loop for threads. All stays in one thread, so that the clock, Ctrl-C and exceptions work as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

from greenlet import getcurrent, greenlet


def handed_over(run: Callable[[Callable[[Any], None]], None]) -> Iterator[Any]:
    """Yield what ``run(hand_over)`` gives to ``hand_over``; between two items ``run`` stands still.

    Closing the generator ends ``run`` by an exception out of ``hand_over``; an exception of ``run`` comes out here.
    """
    worker = greenlet(run)
    worker.gr_context = copy_context()  # NumPy keeps its error state there
    try:
        worker.parent = getcurrent()
        item = worker.switch(lambda item: worker.parent.switch(item))
        while not worker.dead:
            yield item
            worker.parent = getcurrent()
            item = worker.switch()
    finally:
        if not worker.dead:
            worker.throw()
