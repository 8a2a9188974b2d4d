"""How every solver in every metric scales: seconds and passes to a certified gap of 1e-6, axis by axis.

All runs of a class are made once, in its ``setup_cache``; a run that needs more than 3000 passes has no figure.
"""

from . import common

GAP = 1e-6


class _Scaling:
    version = common.PROBLEM_SET
    axis = ""

    def measured(self):
        """Return the figures of every solver in every metric at every value."""
        values, cells = self.params[2], []
        for value in values:  # outermost, as few instances are kept
            cells += [(s, metric, value) for metric in common.METRICS for s in common.SOLVERS]
        return common.table((cell, lambda cell=cell: self.run(*cell)) for cell in cells)

    def run(self, solver, metric, value):
        """Return the figures of one solver in one metric at one value: the best time of two runs."""
        problem = common.SMALL.problem(self.axis, value)
        return common.counted(problem, solver, metric, GAP, repeats=2, max_passes=3000)

    def setup(self, cache, solver, metric, value):
        self.figures = common.cell(cache, solver, metric, value)

    def track_seconds_to_gap(self, cache, solver, metric, value):
        return self.figures["seconds"]

    def track_passes(self, cache, solver, metric, value):
        return self.figures["passes"]

    track_seconds_to_gap.unit = "seconds"
    track_passes.unit = "passes"


class OverTerms(_Scaling):
    """Over m, 50 variables, rank 1, σ_min = 0.1: counts fall with m, seconds are linear in it."""

    axis = "m"
    params = (common.SOLVERS, common.METRICS, common.SMALL.values["m"])
    param_names = ("solver", "metric", "m")

    def setup_cache(self):
        return self.measured()

    setup_cache.timeout = 600


class OverVariables(_Scaling):
    """Over n, 1000 terms of rank 1, σ_min = 0.1: counts grow, in B⁽⁰⁾ and B* with √n at most."""

    axis = "n"
    params = (common.SOLVERS, common.METRICS, common.SMALL.values["n"])
    param_names = ("solver", "metric", "n")

    def setup_cache(self):
        return self.measured()

    setup_cache.timeout = 600


class OverRank(_Scaling):
    """Over r, 1000 terms of 50 variables, σ_min = 0.1: seconds are linear in r, as a term has r rows."""

    axis = "r"
    params = (common.SOLVERS, common.METRICS, common.SMALL.values["r"])
    param_names = ("solver", "metric", "r")

    def setup_cache(self):
        return self.measured()

    setup_cache.timeout = 600


class OverConditioning(_Scaling):
    """Over σ_min, 1000 × 50: the Euclidean norm pays for it, B⁽⁰⁾ and B* do not see it."""

    axis = "sigma_min"
    params = (common.SOLVERS, common.METRICS, common.SMALL.values["sigma_min"])
    param_names = ("solver", "metric", "sigma_min")

    def setup_cache(self):
        return self.measured()

    setup_cache.timeout = 600


class OverCoherence(_Scaling):
    """Over the coherence γ, 1000 × 50 of condition 10: gradient methods pay for it in B⁽⁰⁾, not in B*."""

    axis = "gamma"
    params = (common.SOLVERS, common.METRICS, common.SMALL.values["gamma"])
    param_names = ("solver", "metric", "gamma")

    def setup_cache(self):
        return self.measured()

    setup_cache.timeout = 600
