"""How many threads should BLAS use? One for small work: sharing costs more than it saves, above all on busy cores.

The threads of the kernels are counted in ``kernels/jit.py``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  loads SciPy's own BLAS beside NumPy's, before they are looked for
from threadpoolctl import ThreadpoolController

#: Multiplications up to which one thread serves. Two save a millisecond or two there, but each of their many meetings
#: takes a time slice where another process has the second core: up to 40 times slower on a busy machine.
ONE_THREAD_WORK = 5e7

#: Multiplications up to which BLAS takes one thread by itself.
NO_THREAD_WORK = 9e3

#: Binary logarithm of the processor cycles for which OpenBLAS's idle threads spin before they sleep: under a
#: millisecond. By default it is a tenth of a second, in which kernels on all cores take four times as long.
SPIN = 20

#: Held by the Python thread that has changed the number of BLAS's threads.
CHANGING = threading.Lock()


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    # Once, as this looks through all loaded libraries; they are then set one by one, as a limit of threadpoolctl takes
    # longer than the work of a small problem.
    return ThreadpoolController().select(user_api="blas").lib_controllers


def shorten_spin() -> None:
    """Let idle BLAS threads sleep sooner, unless the user has chosen. Called once, by ``configure``.

    OpenBLAS reads its environment when it is loaded and its threads are made. So it is told to read again, and its
    threads, idle now, are ended: the next call makes new ones. A library without these functions is left as it is.
    """
    if "OPENBLAS_THREAD_TIMEOUT" in os.environ or threading.active_count() > 1:
        return
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = str(SPIN)
    for library in _libraries():
        with suppress(AttributeError):
            read, end = library.dynlib.openblas_read_env, library.dynlib.blas_thread_shutdown_
            read()
            end()


def sleeps_soon() -> bool:
    """Say whether idle threads of every BLAS here sleep within some milliseconds: ``shorten_spin`` reached them all."""
    known = os.environ.get("OPENBLAS_THREAD_TIMEOUT") == str(SPIN)
    return known and all(library.internal_api == "openblas" for library in _libraries())


@contextmanager
def blas_threads(work: float) -> Iterator[None]:
    """Run ``work`` multiplications in BLAS: on one thread where that is little, else on as many as are set.

    The setting belongs to the whole process. So one Python thread at a time changes it and puts it back; others that
    come meanwhile leave it alone, or the last to leave would restore what it found in between.
    """
    if not NO_THREAD_WORK < work <= ONE_THREAD_WORK or not CHANGING.acquire(blocking=False):
        yield
        return
    before = [library.get_num_threads() for library in _libraries()]
    try:
        for library in _libraries():
            library.set_num_threads(1)
        yield
    finally:
        for library, count in zip(_libraries(), before, strict=True):
            library.set_num_threads(count)
        CHANGING.release()
