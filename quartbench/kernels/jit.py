"""How every kernel is compiled: the decorators, and how many threads run a kernel."""

from __future__ import annotations

import math
import os
import threading
from time import perf_counter

import numba
import numpy as np
from numba import config

from quartbench.runtime import configure
from quartbench.runtime.threads import survives_fork

#: Where compiled kernels are kept, and the threading layer they run in (None: serially).
CACHE_DIR, LAYER = configure()


def _leave_threads_to_parent() -> None:
    """Run kernels serially in a forked process whose parent has the threads: GNU's OpenMP would end it."""
    global LAYER
    if not survives_fork():
        LAYER = None


os.register_at_fork(after_in_child=_leave_threads_to_parent)

#: NaN and inf keep their meaning (no ``nnan``, ``ninf``): sums may be reordered and products fused, nothing else.
FASTMATH = {"reassoc", "contract", "nsz", "arcp"}

#: Elements of work below which one thread serves. A fused pass reads an element in 0.27 ns and a parallel region costs
#: 5 to 10 µs, so two threads break even at some 60 000 elements. But where another process has the second core, a
#: region takes a millisecond: up to here two threads would gain 40 µs at the most, and that is not worth the risk.
PARALLEL_WORK = 300_000


def _compiled(fastmath: set[str], **options):
    def decorate(function):
        before = config.CACHE_DIR
        config.CACHE_DIR = CACHE_DIR
        try:
            return numba.njit(cache=True, nogil=True, fastmath=set(fastmath), **options)(function)
        finally:
            config.CACHE_DIR = before

    return decorate


kernel = _compiled(FASTMATH)
parallel_kernel = _compiled(FASTMATH, parallel=True)
#: For indirect addressing: free to reorder a sum, LLVM would gather into vectors, slower than one entry after another.
gather_kernel = _compiled({"contract"})
#: For loops that divide: x/0 is inf as in NumPy; the check that would raise instead keeps a loop from being vectorised.
dividing_kernel = _compiled(FASTMATH, error_model="numpy")
#: Sums in the order that they are written in, for the error bounds that count on it. The flags of a sum are its own:
#: what a reordering kernel returns may be added up here, and stays one summand.
ordered_kernel = _compiled({"contract"}, error_model="numpy")
#: Every operation rounds once, in the order written: what error-free transformations and rigorous bounds need.
strict_kernel = _compiled(set())
strict_parallel_kernel = _compiled(set(), parallel=True)


def thread_count(work: float, pieces: int) -> int:
    """Return how many threads should share ``work`` elements in so many pieces: one, or as many as Numba is set to."""
    if work < PARALLEL_WORK or LAYER is None:
        return 1
    return min(numba.get_num_threads(), pieces)


#: A parallel kernel that takes this many times as long as one thread would has no core for its other threads: another
#: process runs there, or the system has woken them on the core of the first.
CROWDED = 1.6

#: After so many such calls in a row, the next ones run on one thread: few at first, more each time that it was no
#: better afterwards.
IN_A_ROW, FEWEST_ALONE, MOST_ALONE = 3, 8, 128

#: Calls after which the pace of one thread is known; the first may load machine code.
SAMPLES = 2


class _Crowd(threading.local):
    """What a Python thread has seen: slow calls in a row, calls still to make on one core, and how many next time."""

    slow, calls, following = 0, 0, FEWEST_ALONE

    def see(self, slow: bool) -> None:
        """Take whether a parallel call was slow."""
        if not slow:
            self.slow, self.following = 0, FEWEST_ALONE
            return
        self.slow += 1
        if self.slow >= IN_A_ROW:
            # One more slow call then suffices.
            self.slow, self.calls = IN_A_ROW - 1, self.following
            self.following = min(2 * self.following, MOST_ALONE)


_crowd = _Crowd()

#: By kernel and binary order of magnitude of the work: how often one thread did it, and its least seconds per unit.
_alone: dict[tuple[object, int], tuple[int, float]] = {}


def together(kernel, work: float, *arguments):
    """Call a parallel kernel on ``work`` elements, on one thread while the cores are crowded.

    Threads get the same shares either way, one after another where there is one thread: results are equal bit by bit.
    """
    key = (kernel, int(work).bit_length())
    samples, pace = _alone.get(key, (0, math.inf))
    alone, threads = _crowd.calls > 0 or samples < SAMPLES, numba.get_num_threads()
    if alone:
        numba.set_num_threads(1)
    started = perf_counter()
    try:
        return kernel(*arguments)
    finally:
        seconds = perf_counter() - started
        if alone:
            numba.set_num_threads(threads)
            _crowd.calls = max(_crowd.calls - 1, 0)
            _alone[key] = (samples + 1, min(pace, seconds / work))
        else:
            _crowd.see(seconds > CROWDED * pace * work)


def shares(total: int, parts: int) -> np.ndarray:
    """Return ``parts + 1`` bounds that cut ``range(total)`` evenly: the same threads always get the same terms."""
    return (np.arange(parts + 1, dtype=np.int64) * total) // parts
