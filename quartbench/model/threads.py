"""How many threads should BLAS use? One for small work: sharing costs more than it saves, above all on busy cores.

The threads of the kernels are counted in ``kernels/jit.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

#: Multiplications up to which one thread serves. Two save a millisecond or two there, but each of their many meetings
#: takes a time slice where another process has the second core: up to 40 times slower on a busy machine.
ONE_THREAD_WORK = 5e7

_INSIDE = threading.Lock()


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # once: it looks through all loaded libraries


@contextmanager
def blas_threads(work: float) -> Iterator[None]:
    """Run ``work`` multiplications in BLAS: on one thread where that is little, else on as many as are set.

    The setting belongs to the whole process. So one Python thread at a time changes it and puts it back; others that
    come meanwhile leave it alone, or the last to leave would restore what it found in between.
    """
    if work > ONE_THREAD_WORK or not _INSIDE.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _INSIDE.release()
