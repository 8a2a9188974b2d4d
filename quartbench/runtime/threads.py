"""In which threading layer do kernels run? In one that survives two Python threads, or in none."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import numba
from numba import config

#: How long an idle OpenMP thread spins before it sleeps (GNU's unit, some 50 ns each). By default it spins for many
#: milliseconds, and on a machine that is busy with something else the spinning keeps the very thread it waits for from
#: running: a 50 µs kernel took 60 ms on two loaded cores, 1 ms with this count. Below about 5000 threads fall asleep
#: within a region, and waking them takes 200 µs.
SPIN_COUNT = "10000"


def thread_safe_layer() -> str | None:
    """Return a layer of Numba in which two Python threads may run kernels at once, or None (then all run serially).

    Numba's work-queue layer aborts the process there. A layer that the user named in NUMBA_THREADING_LAYER is kept, as
    is one whose threads run already: Numba starts them once per process.
    """
    try:
        running = numba.threading_layer()
    except ValueError:  # none runs yet
        pass
    else:
        return running if running in ("omp", "tbb") else None
    for layer, pool in (("omp", "omppool"), ("tbb", "tbbpool")):
        if config.THREADING_LAYER in (layer, "default", "safe", "threadsafe"):
            try:
                with _short_spin():
                    importlib.import_module(f"numba.np.ufunc.{pool}")
            except ImportError:
                continue
            return layer
    return None


def survives_fork() -> bool:
    """Say whether a forked process may use Numba's threads: where none run yet, or in a layer that starts them anew."""
    try:
        return numba.threading_layer() == "tbb"
    except ValueError:  # none runs yet
        return True


@contextmanager
def _short_spin() -> Iterator[None]:
    """Let an OpenMP library that is loaded inside spin briefly, unless the user has said how long."""
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]
