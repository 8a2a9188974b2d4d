"""Seeded instances shared by the suite. Only ever append: a changed instance starts a new series under the old name."""

from functools import lru_cache

import numpy as np

from quartbench.instances import geometric_edges
from quartbench.model import GraphForm, StackedForm

#: Enough samples for asv's test at p < 0.002, two rounds so that drift shows, and a warm-up past any first-call work.
TIMING = {"rounds": 2, "repeat": (5, 12, 20.0), "warmup_time": 1.0}


@lru_cache(maxsize=2)
def dense(m, n, rank=1, dtype="float64"):
    """Return a Gaussian stacked form of m terms and a point."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((m * rank, n)).astype(dtype)
    return StackedForm(rows, rank=rank), rng.standard_normal(n)


@lru_cache(maxsize=2)
def graph(points, degree=10, coordinates=3):
    """Return the form of a geometric graph and a point."""
    edges = geometric_edges(points, dim=coordinates, degree=degree, seed=0)
    return GraphForm(points, coordinates, edges), np.random.default_rng(0).standard_normal((points, coordinates))
