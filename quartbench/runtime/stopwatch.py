"""How long did it take, loading aside? A clock that stands still while machine code is compiled or read from disk."""

from __future__ import annotations

from contextlib import ExitStack
from time import perf_counter

from numba.core import event


class Stopwatch:
    """``with Stopwatch() as watch: …``, then ``watch.seconds``.

    Numba compiles, and loads what it has compiled, under one lock: the seconds in which that is held do not count. The
    first solve of a process spends 0.3 s and more in it, on any problem.
    """

    def __init__(self) -> None:
        self.seconds = self.loading = 0.0

    def __enter__(self) -> Stopwatch:
        self._stack = ExitStack()
        self._stack.enter_context(event.install_timer("numba:compiler_lock", self._loaded))
        self._started = perf_counter()
        return self

    def _loaded(self, seconds: float) -> None:
        self.loading += seconds

    def __exit__(self, *error: object) -> None:
        elapsed = perf_counter() - self._started
        self._stack.close()
        self.seconds = max(elapsed - self.loading, 0.0)  # another thread may have held the lock for longer
