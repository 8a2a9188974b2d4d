"""Small inverse problems of every kind, with a point that the data came from."""

import numpy as np

from quartbench import ComplexForm, GramForm, GraphForm, Orthant, StackedForm
from quartbench.inverse import Problem


def phase(n=8, m=64, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, n)) + 1j * rng.standard_normal((m, n))
    truth = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    return Problem(ComplexForm(rows), np.abs(rows.conj() @ truth) ** 2), truth


def real_rows(n=6, m=40, rank=2, seed=0):
    rng = np.random.default_rng(seed)
    form = StackedForm(rng.standard_normal((m * rank, n)), rank=rank)
    truth = rng.standard_normal(n)
    return Problem(form, form.term_squares(form.image(truth))), truth


def distances(points=14, dim=3, degree=9, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((points, dim))
    edges = [(i, (i + k) % points) for i in range(points) for k in range(1, degree // 2 + 1)]
    form = GraphForm(points, dim, edges)
    d = np.linalg.norm(truth[form.edges[:, 0]] - truth[form.edges[:, 1]], axis=1) ** 2
    return Problem(form, d), truth - truth.mean(axis=0)


def clusters(n=12, r=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.maximum(rng.standard_normal((n, r)), 0.0)
    return Problem(GramForm(n, r), truth @ truth.T, Orthant()), truth


KINDS = {"phase": phase, "rows": real_rows, "distances": distances, "clusters": clusters}
