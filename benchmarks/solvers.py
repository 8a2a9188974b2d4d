"""The solvers: what an iteration costs against plain NumPy, and what a certified gap costs over κ and coherence."""

from functools import lru_cache

import numba
import numpy as np

from quartbench import instances, precondition
from quartbench.instances import PROBLEM_SET
from quartbench.model import Problem, StackedForm
from quartbench.solvers import GD, AccelHomGD, Bregman, HomGD, solve
from quartbench.study.timing import best_times, equal_threads

from . import common, transcription

METHODS = {
    "gd": GD(),
    "bregman": Bregman(),
    "homgd": HomGD(),
    "accel-homgd": AccelHomGD(),
    "accel-homgd scheduled": AccelHomGD("scheduled"),
    "accel-homgd none": AccelHomGD("none"),
}


#: The certified relative gap that runs are timed and counted to.
GAP = 1e-6


@lru_cache(maxsize=1)
def gaussian(m, n):
    """Return a problem with Gaussian rows."""
    rng = np.random.default_rng(0)
    return Problem(StackedForm(rng.standard_normal((m, n))), rng.standard_normal(n))


@lru_cache(maxsize=4)
def spectrum(m, n, sigma_min):
    """Return an instance of the paper's Figure 1."""
    return instances.spectrum(m, n, sigma_min, seed=0)


@lru_cache(maxsize=16)
def coherent(gamma, metric):
    """Return an instance of the paper's Figure 2 and a metric for it."""
    problem = instances.coherent(500, 20, gamma, cond=100.0, seed=0, kind="generic")
    return problem, precondition.metric(problem.form, metric)


def iterate(problem, method, count):
    """Run so many iterations, driver and history included."""
    return solve(problem, METHODS[method], "identity", certify=False, max_iter=count)


def reached(result):
    """Return the iteration that reached the gap: the last where only its best point on the ray did."""
    first = result.history.reached(GAP)
    return result.nit if first is None else first


class AgainstNumPy:
    """An iteration of accel-homgd over one of Algorithm 2 in NumPy, interleaved: lower is better."""

    params = (["500x20", "2000x100", "20000x1000"], ["accelerated", "lean"])
    param_names = ("size", "transcription")
    version = f"{PROBLEM_SET}"
    timeout = 300

    def setup(self, size, name):
        m, n = map(int, size.split("x"))
        # Ill-conditioned where it is cheap to make so: a run that reaches the rounding level ends before its count.
        self.problem = gaussian(m, n) if m > 10_000 else spectrum(m, n, 0.01)
        self.count = 31 if m > 10_000 else 511
        self.plain = getattr(transcription, name)
        assert iterate(self.problem, "accel-homgd scheduled", self.count).nit == self.count

    def track_relative_time(self, size, name):
        rows, c = self.problem.form.rows, np.array(self.problem.c)
        with equal_threads(numba.config.NUMBA_NUM_THREADS):
            ours, theirs = best_times(
                [
                    lambda: iterate(self.problem, "accel-homgd scheduled", self.count),
                    lambda: self.plain(rows, c, self.count),
                ],
                rounds=3,
            )
        return ours / theirs

    track_relative_time.unit = "NumPy times"


class Iteration:
    """Many iterations at small size: overhead counts."""

    params = (list(METHODS), [500, 2000], [20, 100])
    param_names = ("method", "m", "n")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup(self, method, m, n):
        self.problem = spectrum(m, n, 0.01)

    def time_300_iterations(self, method, m, n):
        iterate(self.problem, method, 300)


class Conditioning:
    """To a certified gap over σ_min, 1000 × 200, in the Euclidean norm: time and the counts that explain it."""

    params = (list(METHODS), [1.0, 0.5, 0.2, 0.1, 0.05])
    param_names = ("method", "sigma_min")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup(self, method, sigma_min):
        self.problem = spectrum(1000, 200, sigma_min)

    def time_to_gap(self, method, sigma_min):
        solve(self.problem, METHODS[method], "identity", rel_gap=GAP)

    def track_iterations(self, method, sigma_min):
        return float(reached(solve(self.problem, METHODS[method], "identity", rel_gap=GAP)))

    def track_passes(self, method, sigma_min):
        run = solve(self.problem, METHODS[method], "identity", rel_gap=GAP)
        return float(run.history.passes[reached(run)])

    def track_gap_at_budget(self, method, sigma_min):
        return solve(self.problem, METHODS[method], "identity", rel_gap=1e-14, max_passes=100).gap

    track_iterations.unit = "iterations"
    track_passes.unit = "passes"
    track_gap_at_budget.unit = "certified relative gap"


class Coherence:
    """To a certified gap over the coherence, 500 × 20 of condition 100, in each metric (set-up not included)."""

    params = (["homgd", "accel-homgd"], ["uniform", "lewis"], [0.04, 0.1, 0.3, 0.9, 0.999])
    param_names = ("method", "metric", "gamma")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup(self, method, metric, gamma):
        self.problem, self.metric = coherent(gamma, metric)

    def time_to_gap(self, method, metric, gamma):
        solve(self.problem, METHODS[method], self.metric, rel_gap=GAP)

    def track_iterations(self, method, metric, gamma):
        return float(reached(solve(self.problem, METHODS[method], self.metric, rel_gap=GAP)))

    track_iterations.unit = "iterations"
