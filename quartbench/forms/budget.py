"""How is a method stopped within an iteration? By the count of its passes, which ends it where a limit is spent.

A method knows nothing of limits. But all that it does with the rows it asks its form for, and the form counts; so the
count is the one place where products of a direction and trials of a search can be stopped, whatever the method.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


class SpentError(BaseException):
    """A method has had all the passes or seconds that it was given; ``status`` says which.

    Like ``KeyboardInterrupt`` no error of the method, which therefore does not catch it with its errors.
    """

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Budget(list):
    """A count of passes, in the list of one number that a form keeps it in, which raises where a limit is spent.

    The first pass is always there: most methods begin with it, and a run then has its start to show.

    Parameters
    ----------
    passes, seconds : float
        What may be spent; infinite for no limit.
    clock : callable
        Gives the time in seconds.
    watch : callable, optional
        Told the count at every pass: what shows that a long one is under way.

    Attributes
    ----------
    begun : float
        When the clock of the seconds would have started, had it never stood still.
    """

    __slots__ = ("begun", "clock", "passes", "seconds", "watch")

    def __init__(
        self,
        passes: float,
        seconds: float,
        clock: Callable[[], float] = perf_counter,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__([0])
        self.passes, self.seconds, self.clock, self.watch = passes, seconds, clock, watch
        self.begun = clock()

    @property
    def elapsed(self) -> float:
        """The seconds on the clock."""
        return self.clock() - self.begun

    def __setitem__(self, place: int, count: int) -> None:
        """Count, before the rows are read; raise where a limit forbids it."""
        if count > self.passes:
            raise SpentError("max_passes")
        if count > 1 and self.elapsed >= self.seconds:
            raise SpentError("time_limit")
        super().__setitem__(place, count)
        if self.watch is not None:
            self.watch(count)
