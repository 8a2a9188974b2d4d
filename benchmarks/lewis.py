"""Lewis weights: sweeps, κ and time of every method, on coherent rows, ranks, graphs and sketches."""

import numba

from quartbench.instances import (
    PROBLEM_SET,
    barbell,
    blocks,
    coherent,
    complex_gaussian,
    geometric,
    heavy_tailed,
)
from quartbench.precondition import lewis_weights
from quartbench.study.timing import best_times, equal_threads

from . import common


class CoherentRows:
    """Every method on 20000 × 50 rows of coherence 0.98, where B⁽⁰⁾ has κ = 140 and B* has 7.07."""

    params = (["auto", "relaxed", "mm", "surrogate"], [0.05, 0.01])
    param_names = ("method", "eps")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]
    timeout = 300

    def setup_cache(self):
        return coherent(20_000, 50, 0.98).form

    def time_lewis_weights(self, form, method, eps):
        lewis_weights(form, method=method, eps=eps)

    def track_sweeps(self, form, method, eps):
        return float(lewis_weights(form, method=method, eps=eps).sweeps)

    def track_kappa(self, form, method, eps):
        weights = lewis_weights(form, method=method, eps=eps)
        return weights.kappa_bound / weights.best_kappa

    track_sweeps.unit = "sweeps"
    track_kappa.unit = "√n"


class AutoAgainstSurrogate:
    """Time of "auto" to eps = 0.05 over that of the paper's surrogate with ω = 1.5, interleaved: ½ is the promise."""

    version = f"{PROBLEM_SET}"
    timeout = 300

    def setup_cache(self):
        return coherent(20_000, 50, 0.98).form

    def track_relative_time(self, form):
        contenders = [
            lambda: lewis_weights(form, eps=0.05),
            lambda: lewis_weights(form, method="surrogate", omega=1.5),
        ]
        with equal_threads(numba.get_num_threads()):
            ours, theirs = best_times(contenders, rounds=4)
        return ours / theirs

    track_relative_time.unit = "surrogate times"


class Exactness:
    """Sweeps of "auto" to κ ≤ (1 + eps)√n: at most 10 for one percent, at most 30 for 1e-9."""

    params = (
        ["γ = n/m", "γ = 0.3", "γ = 0.999", "rank 3", "rank 5", "complex", "heavy tails", "barbell", "geometric"],
        [0.01, 1e-9],
    )
    param_names = ("form", "eps")
    version = f"{PROBLEM_SET}"

    def setup_cache(self):
        return {
            "γ = n/m": coherent(500, 20, 20 / 500).form,
            "γ = 0.3": coherent(500, 20, 0.3).form,
            "γ = 0.999": coherent(500, 20, 0.999).form,
            "rank 3": blocks(500, 50, 3).form,
            "rank 5": blocks(500, 50, 5).form,
            "complex": complex_gaussian(500, 30).form,
            "heavy tails": heavy_tailed(2000, 30, df=1.0).form,
            "barbell": barbell(100).form,
            "geometric": geometric(500).form,
        }

    def track_sweeps(self, forms, form, eps):
        return float(lewis_weights(forms[form], eps=eps).sweeps)

    def track_kappa(self, forms, form, eps):
        weights = lewis_weights(forms[form], eps=eps)
        return weights.kappa_bound / weights.best_kappa

    track_sweeps.unit = "sweeps"
    track_kappa.unit = "√n"


class Sketched:
    """Sketched sweeps with one exact certificate beside exact sweeps: what they cost, and what κ they lose."""

    params = ([None, "gaussian"],)
    param_names = ("sketch",)
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = 2, (3, 6, 30.0), 1.0
    timeout = 300

    def setup_cache(self):
        return coherent(8000, 800, 0.9, cond=10.0).form

    def time_lewis_weights(self, form, sketch):
        lewis_weights(form, eps=0.05, sketch=sketch)

    def track_kappa(self, form, sketch):
        weights = lewis_weights(form, eps=0.05, sketch=sketch)
        return weights.kappa_bound / weights.best_kappa

    track_kappa.unit = "√n"


class GraphWeights:
    """Weights of geometric graphs on N vertices: dense factor, then nested dissection."""

    params = ([1000, 2000, 20_000],)
    param_names = ("points",)
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = 2, (3, 6, 30.0), 1.0
    timeout = 600

    def setup_cache(self):
        forms = {points: geometric(points, degree=20).form for points in self.params[0]}
        for form in forms.values():
            form.dissection()
        return forms

    def time_lewis_weights(self, forms, points):
        lewis_weights(forms[points])

    def track_sweeps(self, forms, points):
        return float(lewis_weights(forms[points]).sweeps)

    track_sweeps.unit = "sweeps"
