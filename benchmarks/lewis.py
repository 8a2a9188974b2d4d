"""Lewis weights: time, sweeps and the κ that they buy, over every axis, by every method, on graphs and by sketches."""

from . import common

#: Forms of every kind and of hard weights, for :class:`Exactness`.
EXACT = {
    "γ = n/m": ("coherent", {"m": 500, "n": 20, "gamma": 0.04}),
    "γ = 0.999": ("coherent", {"m": 500, "n": 20, "gamma": 0.999}),
    "rank 3": ("blocks", {"m": 500, "n": 50, "rank": 3}),
    "complex": ("complex_gaussian", {"m": 500, "n": 30}),
    "heavy tails": ("heavy_tailed", {"m": 2000, "n": 30, "df": 1.0}),
    "barbell": ("barbell", {"points": 100}),
    "geometric": ("geometric", {"points": 500}),
}


class _Sweep(common.Timed):
    axis = ""

    def measured(self):
        """Return sweeps and κ bounds for every value."""
        return common.table(((value,), lambda value=value: self.weights(value)) for value in self.params[0])

    def weights(self, value):
        """Return sweeps and κ bounds for one value."""
        from quartbench.precondition import lewis_weights, metric

        form = common.MEDIUM.problem(self.axis, value).form
        found, uniform = lewis_weights(form, eps=0.01), metric(form, "uniform").bounds
        return {"sweeps": float(found.sweeps), "lewis": found.kappa_bound, "uniform": uniform.beta / uniform.alpha}

    def setup(self, cache, value):
        self.found = common.cell(cache, value)

    def time_lewis_weights(self, cache, value):
        from quartbench.precondition import lewis_weights

        lewis_weights(common.MEDIUM.problem(self.axis, value).form, eps=0.01)

    def track_sweeps(self, cache, value):
        return self.found["sweeps"]

    def track_kappa_bound(self, cache, value):
        return self.found["lewis"]

    def track_kappa_bound_of_uniform(self, cache, value):
        return self.found["uniform"]

    track_sweeps.unit = "sweeps"
    track_kappa_bound.unit = track_kappa_bound_of_uniform.unit = "κ"


class OverTerms(_Sweep):
    """Over m, 200 variables, rank 1, to κ ≤ 1.01 √n."""

    axis, params, param_names = "m", (common.MEDIUM.values["m"],), ("m",)

    def setup_cache(self):
        return self.measured()


class OverVariables(_Sweep):
    """Over n, 5000 terms of rank 1, to κ ≤ 1.01 √n."""

    axis, params, param_names = "n", (common.MEDIUM.values["n"],), ("n",)

    def setup_cache(self):
        return self.measured()


class OverRank(_Sweep):
    """Over r, 5000 terms of 200 variables, to κ ≤ 1.01 √n: the bound for B⁽⁰⁾ sees r, and may be less than √n."""

    axis, params, param_names = "r", (common.MEDIUM.values["r"],), ("r",)

    def setup_cache(self):
        return self.measured()


class OverConditioning(_Sweep):
    """Over σ_min, 5000 × 200, to κ ≤ 1.01 √n: flat, as B* does not see it."""

    axis, params, param_names = "sigma_min", (common.MEDIUM.values["sigma_min"],), ("sigma_min",)

    def setup_cache(self):
        return self.measured()


class OverCoherence(_Sweep):
    """Over the coherence γ, 5000 × 200, to κ ≤ 1.01 √n: the κ of the uniform metric is √(mγ) at most."""

    axis, params, param_names = "gamma", (common.MEDIUM.values["gamma"],), ("gamma",)

    def setup_cache(self):
        return self.measured()


class OverPower(common.Timed):
    """Over the power p on 2000 × 20 rows of coherence 0.9: Algorithm 3 as printed beside ours, to 1 %."""

    params = (["fixed-point", "average", "auto"], [1.2, 1.5, 1.8, 1.95])
    param_names = ("method", "p")
    timeout = 300

    def setup_cache(self):
        pairs = [(method, p) for method in self.params[0] for p in self.params[1]]
        return common.table((pair, lambda pair=pair: self.weights(*pair)) for pair in pairs)

    def weights(self, method, p):
        """Return sweeps and κ of one method at one power."""
        found = self.run(method, p)
        return {"sweeps": float(found.sweeps), "kappa": found.kappa_bound / found.best_kappa}

    def run(self, method, p):
        """Compute the weights by one method at one power."""
        from quartbench.precondition import lewis_weights

        form = common.instance("coherent", m=2000, n=20, gamma=0.9, kind="generic").form
        return lewis_weights(form, p=p, method=method, eps=0.01)

    def setup(self, cache, method, p):
        self.found = common.cell(cache, method, p)

    def time_lewis_weights(self, cache, method, p):
        self.run(method, p)

    def track_sweeps(self, cache, method, p):
        return self.found["sweeps"]

    def track_kappa_over_best(self, cache, method, p):
        return self.found["kappa"]

    track_sweeps.unit = "sweeps"
    track_kappa_over_best.unit = "× n^(1 − 1/p)"


class Methods(common.Timed):
    """Every method on 20000 × 50 rows of coherence 0.98, where B⁽⁰⁾ has κ = 140 and B* has 7.07."""

    params = (["auto", "relaxed", "mm", "surrogate", "average", "sampled"],)
    param_names = ("method",)
    timeout = 300

    def setup_cache(self):
        return common.table(((method,), lambda method=method: self.weights(method)) for method in self.params[0])

    def weights(self, method):
        """Return sweeps and κ of one method."""
        found = self.run(method)
        return {"sweeps": float(found.sweeps), "kappa": found.kappa_bound / found.best_kappa}

    def run(self, method):
        """Compute the weights by one method."""
        from quartbench.precondition import lewis_weights

        return lewis_weights(common.instance("coherent", m=20_000, n=50, gamma=0.98).form, method=method, eps=0.01)

    def setup(self, cache, method):
        self.found = common.cell(cache, method)

    def time_lewis_weights(self, cache, method):
        self.run(method)

    def track_sweeps(self, cache, method):
        return self.found["sweeps"]

    def track_kappa_bound(self, cache, method):
        return self.found["kappa"]

    track_sweeps.unit = "sweeps"
    track_kappa_bound.unit = "√n"


class AgainstSurrogate:
    """Time of "auto" to eps = 0.05 over that of the paper's surrogate with ω = 1.5, interleaved: ½ is the promise."""

    version = common.PROBLEM_SET
    timeout = 300

    def track_relative_time(self):
        import numba

        from quartbench.precondition import lewis_weights
        from quartbench.study.timing import best_times, equal_threads

        form = common.instance("coherent", m=20_000, n=50, gamma=0.98).form
        contenders = [
            lambda: lewis_weights(form, eps=0.05),
            lambda: lewis_weights(form, method="surrogate", omega=1.5),
        ]
        with equal_threads(numba.get_num_threads()):
            ours, theirs = best_times(contenders, rounds=4)
        return ours / theirs

    track_relative_time.unit = "× surrogate"


class Exactness:
    """Sweeps of "auto" to κ ≤ (1 + eps) √n: at most 10 for one percent, at most 30 for 1e-9."""

    params = (list(EXACT), [0.01, 1e-9])
    param_names = ("form", "eps")
    version = common.PROBLEM_SET

    def setup_cache(self):
        cells = [(name, eps) for name in EXACT for eps in self.params[1]]
        return common.table((cell, lambda cell=cell: self.sweeps(*cell)) for cell in cells)

    def sweeps(self, name, eps):
        """Return the sweeps that one problem takes."""
        from quartbench.precondition import lewis_weights

        generator, arguments = EXACT[name]
        return float(lewis_weights(common.instance(generator, **arguments).form, eps=eps).sweeps)

    def setup(self, cache, form, eps):
        self.found = common.cell(cache, form, eps)

    def track_sweeps(self, cache, form, eps):
        return self.found

    track_sweeps.unit = "sweeps"


class Sketched:
    """Sketched sweeps with one exact certificate beside exact sweeps: what they cost, and what κ they lose."""

    params = (["exact", "gaussian"],)
    param_names = ("kind",)
    version = common.PROBLEM_SET
    rounds, repeat, warmup_time = 1, (2, 4, 4.0), 0.1
    timeout = 300

    def setup(self, kind):
        self.form = common.instance("coherent", m=6000, n=600, gamma=0.9, cond=10.0).form

    def run(self, kind):
        """Compute the weights."""
        from quartbench.precondition import lewis_weights

        return lewis_weights(self.form, eps=0.05, sketch=None if kind == "exact" else kind)

    def time_lewis_weights(self, kind):
        self.run(kind)

    def track_kappa_bound(self, kind):
        found = self.run(kind)
        return found.kappa_bound / found.best_kappa

    track_kappa_bound.unit = "√n"


class Sampled:
    """Sweeps on samples of the rows, certified once on all of them, beside exact ones, on heavy-tailed rows."""

    params = ([50, 200], [10, 100, 1000, 10_000])
    param_names = ("n", "m/n")
    version = common.PROBLEM_SET
    timeout = 1800

    def setup(self, n, ratio):
        if n * n * ratio > 10**8:
            common.require_large()
        self.form = common.instance("heavy_tailed", m=ratio * n, n=n, df=1.0).form

    def run(self, method):
        """Compute the weights by one method."""
        from quartbench.precondition import lewis_weights

        return lewis_weights(self.form, method=method)

    def times(self):
        """Return the best seconds of exact sweeps and of sampled ones, in turns."""
        import numba

        from quartbench.study.timing import best_times, equal_threads

        with equal_threads(numba.get_num_threads()):
            return best_times([lambda: self.run("auto"), lambda: self.run("sampled")], rounds=2)

    def track_relative_time(self, n, ratio):
        exact, sampled = self.times()
        return sampled / exact

    def track_kappa_bound(self, n, ratio):
        found = self.run("sampled")
        return found.kappa_bound / found.best_kappa

    track_relative_time.unit = "× exact"
    track_kappa_bound.unit = "√n"


class OverGraphs(common.Timed):
    """Weights of geometric graphs over their points, twenty edges at each: dense factor, then nested dissection."""

    params = ([200, 500, 1000, 2000, 4000],)
    param_names = ("points",)
    timeout = 300

    def setup(self, points):
        self.form = common.instance("geometric", points=points, degree=20).form
        self.form.dissection()

    def time_lewis_weights(self, points):
        from quartbench.precondition import lewis_weights

        lewis_weights(self.form)


class GraphAgainstDenseRows:
    """Time of a graph's weights, 1000 points, over that of the same weights from its edges as dense rows."""

    version = common.PROBLEM_SET
    timeout = 600

    def track_relative_time(self):
        import numba
        import numpy as np

        from quartbench import StackedForm
        from quartbench.precondition import lewis_weights
        from quartbench.study.timing import best_times, equal_threads

        graph = common.instance("geometric", points=1000).form
        rows = np.zeros((graph.terms, graph.points))
        rows[np.arange(graph.terms), graph.heads] = 1.0
        rows[np.arange(graph.terms), graph.tails] = -1.0
        dense = StackedForm(rows[:, 1:])
        graph.dissection()
        with equal_threads(numba.get_num_threads()):
            ours, theirs = best_times(
                [lambda: lewis_weights(graph, eps=0.05), lambda: lewis_weights(dense, eps=0.05)], rounds=2
            )
        return ours / theirs

    track_relative_time.unit = "× dense rows"


class LargeGraphs(common.Timed):
    """Weights of geometric graphs of 20000 and 50000 points (large tier)."""

    params = ([20_000, 50_000],)
    param_names = ("points",)
    timeout = 1200

    def setup(self, points):
        common.require_large()
        self.form = common.instance("geometric", points=points, degree=20).form
        self.form.dissection()

    def time_lewis_weights(self, points):
        from quartbench.precondition import lewis_weights

        lewis_weights(self.form)
