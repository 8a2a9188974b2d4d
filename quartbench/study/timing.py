"""How contenders are timed against each other: equal threads, interleaved, best of many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numba
from threadpoolctl import threadpool_limits

from quartbench.kernels import jit
from quartbench.runtime.blas import sleeps_soon

#: Seconds between two contenders. The threads that one leaves behind spin on, in which time a kernel on all cores takes
#: twice its own: OpenMP's and, as ``runtime`` sets it, OpenBLAS's for some 2 ms (measured as CPU time while the process
#: sleeps), other BLAS, or one that the user has set otherwise, for a tenth of a second.
PAUSE = 0.02 if sleeps_soon() else 0.15


@contextmanager
def equal_threads(count: int) -> Iterator[None]:
    """Give BLAS and the kernels the same number of threads."""
    before = numba.get_num_threads()
    with threadpool_limits(count):
        if jit.LAYER is not None:
            numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
        try:
            yield
        finally:
            numba.set_num_threads(before)


def best_times(
    contenders: list[Callable[[], object]], rounds: int = 6, slice_seconds: float = 0.05, pause: float = PAUSE
) -> list[float]:
    """Return the best seconds of a call of each contender.

    Contenders take turns, a time slice each, so that drift of the machine hits all alike; between two of them all
    threads go to sleep.
    """
    best = [float("inf")] * len(contenders)
    for call in contenders:
        call()
    for _ in range(rounds):
        for i, call in enumerate(contenders):
            time.sleep(pause)
            end = time.perf_counter() + slice_seconds
            calls = 0
            while calls < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - start)
                calls += 1
    return best
