r"""The gate tier: the few benchmarks that decide about a pull request, as ``asv run --bench '^gate\.'``.

Times are of calls above 10 ms on one thread, so that a busy second core moves them little; counts are exact.
"""

from . import common

#: Small problems, each with the metric that its runs take: counts on them are the same on every run.
COUNTED = {
    "spectrum 500×20": ("identity", "spectrum", {"m": 500, "n": 20, "sigma_min": 0.1}),
    "coherent 500×20": ("uniform", "coherent", {"m": 500, "n": 20, "gamma": 0.9, "kind": "generic"}),
    "graph of 200 points": ("uniform", "geometric", {"points": 200}),
    "orthant 500×20": ("diagonal", "orthant", {"m": 500, "n": 20}),
}

#: 400 calls on each take 20 to 200 ms, and each is small enough that one thread would serve anyway.
FORMS = {
    "dense 1000×250": ("spectrum", {"m": 1000, "n": 250, "sigma_min": 0.1}),
    "sparse 10000×500": ("sparse", {"m": 10_000, "n": 500, "density": 0.02}),
    "graph of 4000 points": ("geometric", {"points": 4000}),
}
CALLS = 400


class Kernels(common.Gated):
    """400 calls of the fused kernels on forms that fit in cache."""

    params = (list(FORMS),)
    param_names = ("form",)

    def setup(self, form):
        common.one_thread()
        generator, arguments = FORMS[form]
        self.form = common.instance(generator, **arguments).form
        self.x = common.point(self.form)

    def time_400_evaluations(self, form):
        for _ in range(CALLS):
            self.form.value_and_gradient(self.x)

    def time_400_hessian_products(self, form):
        for _ in range(CALLS):
            self.form.hessian_product(self.x, self.x)


class Preconditioning(common.Gated):
    """One leverage sweep, and Lewis weights to κ ≤ 1.01 √n, on 10000 × 100 rows of coherence 0.98."""

    def setup(self):
        common.one_thread()
        self.form = common.instance("coherent", m=10_000, n=100, gamma=0.98).form

    def time_leverage(self):
        from quartbench.precondition import leverage

        leverage(self.form)

    def time_lewis_weights(self):
        from quartbench.precondition import lewis_weights

        lewis_weights(self.form, eps=0.01)


class LewisCounts:
    """Sweeps that Lewis weights take to κ ≤ (1 + 1e-9) √n, and the κ that they certify."""

    params = (["spectrum 500×20", "coherent 500×20", "graph of 200 points"],)
    param_names = ("problem",)
    version = common.PROBLEM_SET

    def setup_cache(self):
        return common.table(((name,), lambda name=name: self.weights(name)) for name in self.params[0])

    def weights(self, name):
        """Return the counts of one problem."""
        from quartbench.precondition import lewis_weights

        _, generator, arguments = COUNTED[name]
        found = lewis_weights(common.instance(generator, **arguments).form, eps=1e-9)
        return {"sweeps": float(found.sweeps), "kappa": found.kappa_bound / found.best_kappa}

    def setup(self, cache, problem):
        self.found = common.cell(cache, problem)

    def track_sweeps(self, cache, problem):
        return self.found["sweeps"]

    def track_kappa_bound(self, cache, problem):
        return self.found["kappa"]

    track_sweeps.unit = "sweeps"
    track_kappa_bound.unit = "√n"


class SolverTimes(common.Gated):
    """To a certified gap of 1e-9 on 1000 × 200 rows in the Euclidean norm: the whole call of solve."""

    params = (common.GATED,)
    param_names = ("solver",)

    def setup(self, solver):
        common.one_thread()
        common.require_solver(solver)
        self.problem = common.instance("spectrum", m=1000, n=200, sigma_min=0.2)

    def time_to_gap(self, solver):
        common.solve(self.problem, solver, "identity", 1e-9)


class SolverCounts:
    """Iterations and passes to a certified gap of 1e-8 on small problems: exact, so that 2 % more is a regression."""

    params = (list(COUNTED), common.GATED)
    param_names = ("problem", "solver")
    version = common.PROBLEM_SET

    def setup_cache(self):
        pairs = [(name, solver) for name in COUNTED for solver in common.GATED]
        return common.table((pair, lambda pair=pair: self.run(*pair)) for pair in pairs)

    def run(self, name, solver):
        """Return the counts of one run."""
        metric, generator, arguments = COUNTED[name]
        return common.counted(common.instance(generator, **arguments), solver, metric, 1e-8)

    def setup(self, cache, problem, solver):
        self.counts = common.cell(cache, problem, solver)

    def track_iterations(self, cache, problem, solver):
        return self.counts["iterations"]

    def track_passes(self, cache, problem, solver):
        return self.counts["passes"]

    track_iterations.unit = "iterations"
    track_passes.unit = "passes"
