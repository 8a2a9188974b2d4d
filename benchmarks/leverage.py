"""Leverage scores: what a sweep costs over every axis, beside bare BLAS, and on sparse rows and graphs."""

from . import common


def bare_blas(rows):
    """Return leverage scores by the bare sequence syrk, Cholesky, triangular solve, row norms."""
    import numpy as np
    from scipy.linalg import blas, lapack

    gram = blas.dsyrk(1.0, rows.T, lower=1)
    lower = lapack.dpotrf(gram, lower=1)[0]
    solved = blas.dtrsm(1.0, lower, rows.T, lower=1).T
    return np.einsum("ij,ij->i", solved, solved)


class AgainstBlas:
    """One sweep over the time of syrk + Cholesky + triangular solve + row norms, interleaved: 1.3 is the promise."""

    params = (["20000×200", "50000×100", "5000×500"],)
    param_names = ("size",)
    version = common.PROBLEM_SET
    timeout = 300

    def track_relative_time(self, size):
        import numba
        import numpy as np

        from quartbench.precondition import leverage
        from quartbench.study.timing import best_times, equal_threads

        m, n = map(int, size.split("×"))
        form = common.instance("heavy_tailed", m=m, n=n, df=1e6).form
        tau = np.full(m, m**-0.5)
        with equal_threads(numba.get_num_threads()):
            ours, bare = best_times([lambda: leverage(form, tau), lambda: bare_blas(form.rows)], rounds=4)
        return ours / bare

    track_relative_time.unit = "× BLAS"


class _Sweep(common.Timed):
    axis = ""

    def setup(self, value):
        self.form = common.MEDIUM.problem(self.axis, value).form

    def time_leverage(self, value):
        from quartbench.precondition import leverage

        leverage(self.form)


class OverTerms(_Sweep):
    """Over m, 200 variables, rank 1: linear in m."""

    axis, params, param_names = "m", (common.MEDIUM.values["m"],), ("m",)


class OverVariables(_Sweep):
    """Over n, 5000 terms of rank 1: quadratic in n."""

    axis, params, param_names = "n", (common.MEDIUM.values["n"],), ("n",)


class OverRank(_Sweep):
    """Over r, 5000 terms of 200 variables: linear in r, as a term has r rows."""

    axis, params, param_names = "r", (common.MEDIUM.values["r"],), ("r",)


class OverConditioning(_Sweep):
    """Over σ_min, 5000 × 200: flat, until a factor loses so many digits that it is made again."""

    axis, params, param_names = "sigma_min", (common.MEDIUM.values["sigma_min"],), ("sigma_min",)


class OverCoherence(_Sweep):
    """Over the coherence γ, 5000 × 200: flat."""

    axis, params, param_names = "gamma", (common.MEDIUM.values["gamma"],), ("gamma",)


class OtherRows(common.Timed):
    """One sweep on sparse rows (CSR, 1 % and 10 % stored) and on complex rows."""

    params = (["sparse 1 %", "sparse 10 %", "complex"],)
    param_names = ("rows",)

    def setup(self, rows):
        if rows == "complex":
            problem = common.instance("complex_gaussian", m=10_000, n=200)
        else:
            problem = common.instance("sparse", m=20_000, n=400, density=0.01 if rows == "sparse 1 %" else 0.1)
        self.form = problem.form

    def time_leverage(self, rows):
        from quartbench.precondition import leverage

        leverage(self.form)


class Memory:
    """Peak memory of one sweep on 20000 × 200 rows of 32 MB, beside that of holding them: 64 MB more at most."""

    version = common.PROBLEM_SET

    def setup(self):
        self.form = common.instance("heavy_tailed", m=20_000, n=200).form

    def peakmem_reference(self):
        pass

    def peakmem_leverage(self):
        from quartbench.precondition import leverage

        leverage(self.form)


class GraphResistance(common.Timed):
    """Resistances of all edges: dense factor, nested dissection, and sketches where nothing splits the graph."""

    params = (["geometric 1000", "geometric 5000", "expander 2000"],)
    param_names = ("graph",)
    timeout = 300

    def setup(self, graph):
        self.form, self.method = dissected(graph)

    def time_effective_resistance(self, graph):
        from quartbench.precondition import effective_resistance

        effective_resistance(self.form, columns=64, method=self.method)


class LargeGraphResistance(common.Timed):
    """The same on graphs of 10000 and 20000 points (large tier)."""

    params = (["geometric 20000", "expander 10000"],)
    param_names = ("graph",)
    timeout = 600

    def setup(self, graph):
        common.require_large()
        self.form, self.method = dissected(graph)

    def time_effective_resistance(self, graph):
        from quartbench.precondition import effective_resistance

        effective_resistance(self.form, columns=64, method=self.method)


def dissected(graph):
    """Return the form of a graph, its dissection done, and the method for its resistances."""
    kind, points = graph.split()
    if kind == "expander":
        return common.instance("regular", points=int(points), degree=20).form, "sketch"
    form = common.instance("geometric", points=int(points), degree=20).form
    form.dissection()
    return form, "exact"
