"""Leverage scores: what a sweep costs beside bare BLAS, over storage, rank and graphs."""

import numba
import numpy as np
from scipy.linalg import blas, lapack

from quartbench.instances import PROBLEM_SET, complex_gaussian, geometric_edges, regular_edges, sparse
from quartbench.model import GraphForm, StackedForm
from quartbench.precondition import effective_resistance, leverage, lewis_weights
from quartbench.study.timing import best_times, equal_threads

from . import common


def bare_blas(rows):
    """Return leverage scores by the bare sequence syrk, Cholesky, triangular solve, row norms."""
    gram = blas.dsyrk(1.0, rows.T, lower=1)
    lower = lapack.dpotrf(gram, lower=1)[0]
    solved = blas.dtrsm(1.0, lower, rows.T, lower=1).T
    return np.einsum("ij,ij->i", solved, solved)


class SweepAgainstBlas:
    """One sweep over the time of syrk + Cholesky + triangular solve + row norms, interleaved: 1.3 is the promise."""

    params = ([(20_000, 200), (50_000, 100), (5000, 500)],)
    param_names = ("size",)
    version = f"{PROBLEM_SET}"
    timeout = 300

    def setup_cache(self):
        return {size: common.dense(*size)[0] for size in self.params[0]}

    def track_relative_time(self, cache, size):
        form = cache[size]
        tau = np.full(form.terms, form.terms**-0.5)
        with equal_threads(numba.get_num_threads()):
            ours, bare = best_times([lambda: leverage(form, tau), lambda: bare_blas(form.rows)], rounds=8)
        return ours / bare

    track_relative_time.unit = "BLAS times"


class DenseSweep:
    """One sweep over the rank of the terms, the number of rows fixed: the rank should not matter."""

    params = ([1, 2, 5],)
    param_names = ("r",)
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup_cache(self):
        return {r: common.dense(20_000 // r, 200, r)[0] for r in self.params[0]}

    def time_leverage(self, cache, r):
        leverage(cache[r])


class SweepMemory:
    """Peak memory of one sweep on 20000 × 200 rows of 32 MB, beside that of holding the rows: 64 MB more at most."""

    params = ([1, 5],)
    param_names = ("r",)
    version = f"{PROBLEM_SET}"

    def setup_cache(self):
        return {r: common.dense(20_000 // r, 200, r)[0] for r in self.params[0]}

    def peakmem_reference(self, cache, r):
        pass

    def peakmem_leverage(self, cache, r):
        leverage(cache[r])


class OtherRows:
    """One sweep on sparse rows (CSR, 1 % and 10 % stored) and on complex rows."""

    params = (["sparse 1 %", "sparse 10 %", "complex"],)
    param_names = ("rows",)
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup_cache(self):
        return {
            "sparse 1 %": sparse(20_000, 400, 0.01).form,
            "sparse 10 %": sparse(20_000, 400, 0.1).form,
            "complex": complex_gaussian(10_000, 200).form,
        }

    def time_leverage(self, cache, rows):
        leverage(cache[rows])


class GraphResistance:
    """Resistances of all edges: dense factor, nested dissection, and sketches where nothing splits the graph."""

    params = (["geometric 1000", "geometric 5000", "geometric 20000", "expander 10000"],)
    param_names = ("graph",)
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = 2, (3, 6, 30.0), 1.0
    timeout = 300

    def setup_cache(self):
        graphs = {}
        for name in self.params[0]:
            kind, points = name.split()
            make = geometric_edges if kind == "geometric" else regular_edges
            edges = make(int(points), degree=20) if kind == "expander" else make(int(points), 3, 20)
            graphs[name] = GraphForm(int(points), 3, edges)
            graphs[name].dissection()
        return graphs

    def time_effective_resistance(self, cache, graph):
        effective_resistance(cache[graph], columns=64, method="sketch" if "expander" in graph else "exact")


class GraphAgainstDenseRows:
    """Weights of a graph of 2000 points over those of its edges as dense rows, the least that could be: a tenth."""

    version = f"{PROBLEM_SET}"
    timeout = 600

    def setup_cache(self):
        graph = GraphForm(2000, 3, geometric_edges(2000, 3, 10))
        rows = np.zeros((graph.terms, graph.points))
        rows[np.arange(graph.terms), graph.heads] = 1.0
        rows[np.arange(graph.terms), graph.tails] = -1.0
        return graph, StackedForm(rows[:, 1:])

    def track_relative_time(self, cache):
        graph, dense = cache
        graph.dissection()
        with equal_threads(numba.get_num_threads()):
            ours, theirs = best_times(
                [lambda: lewis_weights(graph, eps=0.05), lambda: lewis_weights(dense, eps=0.05)], rounds=1
            )
        return ours / theirs

    track_relative_time.unit = "dense times"
