"""What the whole suite shares: names, timing rules, seeded instances, counted runs. Only ever append to the names.

Nothing here or at the top of a benchmark file imports quartbench: asv starts a process for every parameter, and one
that only looks up what ``setup_cache`` counted then starts in a quarter of the time.
"""

import math
import os
import time
from functools import lru_cache

#: The version of every benchmark: that of ``quartbench.instances`` (a test compares them).
PROBLEM_SET = "1"

#: Every method of ours, written out, as asv's parameters must not depend on the commit. One that the measured commit
#: does not have is skipped.
SOLVERS = ["gd", "bregman", "homgd", "accel-homgd", "homcg", "homnewton", "homnewton-cg", "auto", "agd", "abpg"]
#: Those that the gate guards; the others are baselines, for comparison only.
GATED = [name for name in SOLVERS if name not in ("agd", "abpg")]
METRICS = ["identity", "uniform", "lewis"]


class Timed:
    """For calls from 1 ms on: asv takes at least six samples, all that its test at p < 0.002 needs."""

    version = PROBLEM_SET
    rounds, repeat, warmup_time = 1, (6, 12, 3.0), 0.3


class Gated:
    """For the gate, which runs two commits in turns, one round each.

    Times are those of the processor, not of the wall: these benchmarks run on one thread, and then what else the
    machine does costs them little.
    """

    version = PROBLEM_SET
    timer = time.process_time
    rounds, repeat, warmup_time = 1, (4, 12, 1.0), 0.3


@lru_cache(maxsize=4)
def instance(generator, **arguments):
    """Return a problem of ``quartbench.instances``, the same object for every call in a process."""
    from quartbench.instances import make

    return make(generator, **arguments)


class Axes:
    """Problems along the axes of difficulty: m, n, r, σ_min and the coherence γ. One moves, the others stand still."""

    def __init__(self, m, n, values):
        self.m, self.n, self.values = m, n, values

    def problem(self, axis, value):
        """Return the problem that stands at ``value`` on an axis."""
        shape = {"m": self.m, "n": self.n}
        if axis in shape:
            return instance("spectrum", sigma_min=0.1, **shape | {axis: value})
        if axis == "r":
            return instance("blocks", rank=value, **shape)
        if axis == "sigma_min":
            return instance("spectrum", sigma_min=value, **shape)
        return instance("coherent", gamma=value, cond=10.0, kind="generic", **shape)


#: For kernels and sweeps: 8 MB of rows in the middle, so that reading them is what takes the time.
MEDIUM = Axes(
    m=5000,
    n=200,
    values={
        "m": [1000, 2000, 5000, 10_000, 20_000],
        "n": [25, 50, 100, 200, 400],
        "r": [1, 2, 3, 4, 5],
        "sigma_min": [1.0, 0.3, 0.1, 0.03, 0.01],
        "gamma": [0.04, 0.1, 0.3, 0.9, 0.999],
    },
)

#: For runs of solvers: milliseconds each, on one thread.
SMALL = Axes(
    m=1000,
    n=50,
    values={
        "m": [200, 500, 1000, 2000, 5000],
        "n": [10, 20, 50, 100, 200],
        "r": [1, 2, 3, 4, 5],
        "sigma_min": [1.0, 0.5, 0.2, 0.1, 0.05],
        "gamma": [0.05, 0.1, 0.3, 0.9, 0.999],
    },
)


def point(form):
    """Return a seeded point in the shape that the form takes."""
    import numpy as np

    return form.native(np.random.default_rng(0).standard_normal(form.dim))


def require_large():
    """Skip unless QUARTBENCH_LARGE=1: the parameters stay the same, so that the series do."""
    if os.environ.get("QUARTBENCH_LARGE") != "1":
        raise NotImplementedError("large: set QUARTBENCH_LARGE=1 to run it")


@lru_cache(maxsize=1)
def one_thread():
    """Keep BLAS and the kernels of this process to one thread, so that a second core's load is not measured."""
    import numba
    from threadpoolctl import threadpool_limits

    import quartbench  # noqa: F401 (loads every BLAS that is to be limited)

    numba.set_num_threads(1)
    return threadpool_limits(1)


def require_solver(name):
    """Skip a solver that the measured commit does not have, or whose package is not installed."""
    from quartbench.solvers import solvers

    if name not in solvers():
        raise NotImplementedError(f"this commit has no solver {name!r}")


def solve(problem, solver, metric, gap, **limits):
    """Run a solver to a certified relative gap."""
    from quartbench.solvers import solve

    return solve(problem, solver=solver, metric=metric, rel_gap=gap, **limits)


def counted(problem, solver, metric, gap, repeats=1, **limits):
    """Return the iterations, passes and seconds of a run to a certified gap; NaN where its limits end it before.

    Seconds are those of set-up and iterations, the best of ``repeats`` runs; certificates are off the clock.
    """
    require_solver(solver)
    seconds = math.inf
    for _ in range(repeats):
        run = solve(problem, solver, metric, gap, **limits)
        if not run.success:
            return dict.fromkeys(("iterations", "passes", "seconds"), math.nan)
        first = run.history.reached(gap)
        if first is None:  # only the best point on the ray of the last iterate has the gap
            first = run.nit
        seconds = min(seconds, run.setup_time + float(run.history.seconds[first]))
    # asv compares by factors: no iteration, where the start has the gap already, counts as one.
    counts = {"iterations": first, "passes": run.history.passes[first]}
    return {name: max(float(count), 1.0) for name, count in counts.items()} | {"seconds": seconds}


def gap_at_budget(problem, solver, metric, passes):
    """Return the certified relative gap that so many passes buy; 1e-12 where it is less, as rounding decides there."""
    return max(solve(problem, solver, metric, 1e-12, max_passes=passes).gap, 1e-12)


def table(calls):
    """Return what each call gave by its key, for ``setup_cache``: one that fails must not take the others with it."""
    found = {}
    for key, call in calls:
        try:
            found[key] = call()
        except NotImplementedError:
            continue
        except Exception as error:
            found[key] = repr(error)
    return found


def cell(cache, *key):
    """Return an entry of a table, in ``setup``: skip what was skipped, raise what was raised."""
    if key not in cache:
        raise NotImplementedError("skipped in setup_cache")
    if isinstance(cache[key], str):
        raise RuntimeError(cache[key])
    return cache[key]
