"""Problems, and clusters to solve them on."""

import logging
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

import quartbench as qb

METHODS = ("homgd", "accel-homgd", "homcg", "homnewton", "homnewton-cg", "auto")
KINDS = ("dense", "sparse", "rank 3")


def rows_of(kind, terms=120, columns=12, seed=0):
    """Return the rows of a kind, and their rank."""
    rng = np.random.default_rng(seed)
    rank = 3 if kind == "rank 3" else 1
    rows = rng.standard_normal((terms * rank, columns))
    if kind == "sparse":
        rows *= rng.random(rows.shape) < 0.3
        rows[:, 0] += ~rows.any(axis=1)
        rows = sp.csr_matrix(rows)
    return rows, rank


def blocks_of(rows, rank, count=3):
    """Return the rows in blocks of unequal length."""
    bounds = rank * np.linspace(0.0, (rows.shape[0] // rank) ** 0.5, count + 1).astype(int) ** 2
    bounds[-1] = rows.shape[0]
    return [rows[start:stop] for start, stop in pairwise(bounds)]


def linear(columns=12):
    """Return a vector c."""
    return np.random.default_rng(2).standard_normal(columns)


@contextmanager
def local(workers=2, processes=True, **options):
    """Give a client of workers with one thread each, on this machine."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL} | options
    with LocalCluster(n_workers=workers, processes=processes, **options) as cluster, Client(cluster) as client:
        yield client


def check_methods(client, kind, methods=METHODS):
    """Assert that methods, and Lewis weights, give the answer of one process to 1e-10, certified."""
    rows, rank = rows_of(kind)
    form, same = qb.DaskForm(blocks_of(rows, rank), client, rank), qb.StackedForm(rows, rank)
    for method in methods:
        found = qb.solve(qb.Problem(form, linear()), method, rel_gap=1e-10)
        assert found.success, found.message
        wanted = qb.solve(qb.Problem(same, linear()), method, rel_gap=1e-10)
        assert abs(found.fun - wanted.fun) <= 1e-10 * abs(wanted.fun)
    assert qb.certify(qb.Problem(form, linear()), found.x, rel_gap=1e-9).proved
    np.testing.assert_allclose(qb.lewis_weights(form).tau, qb.lewis_weights(same).tau, rtol=1e-10)
