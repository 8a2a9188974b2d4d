"""The best diagonal: its gradient, its certificate, and what it gains where a few entries are large."""

import numpy as np
import pytest
from scipy.optimize import check_grad

import quartbench as qb
from quartbench.precondition.diagonals import log_kappa

RNG = np.random.default_rng(0)

FORMS = {
    "t(2) entries": qb.StackedForm(RNG.standard_t(2, (300, 8))),
    "rank 2": qb.StackedForm(RNG.standard_normal((200, 8)) * np.logspace(0, 1, 8), rank=2),
    "sparse": qb.instances.sparse(300, 10, 0.3, seed=0).form,
    "positive": qb.StackedForm(np.abs(RNG.standard_normal((200, 6)))),
}


@pytest.mark.parametrize("rank", [1, 2])
def test_the_gradient_is_that_of_the_smoothed_bound(rank):
    rows = RNG.standard_normal((40, 5))
    base = rows.T @ (rows * RNG.uniform(0.1, 1.0, 40)[:, None])
    arguments = (rows, base, rank)
    u = RNG.standard_normal(5)
    assert check_grad(
        lambda u: log_kappa(u, *arguments)[0], lambda u: log_kappa(u, *arguments)[1], u
    ) < 1e-5 * np.linalg.norm(log_kappa(u, *arguments)[1])


def test_the_smoothed_bound_is_the_bound_but_for_power_means():
    rows = RNG.standard_normal((40, 5))
    base = rows.T @ rows / np.sqrt(40.0)
    d = RNG.uniform(0.5, 2.0, 5)
    bounds = qb.Diagonal(d).declared(bounds=qb.StackedForm(rows).bounds).bounds
    smooth = np.exp(log_kappa(np.log(d), rows, base, 1)[0])
    assert bounds.kappa <= smooth * (1.0 + 1e-8) <= bounds.kappa * 5.0 ** (1.5 / 8.0) * (1.0 + 1e-8)


@pytest.mark.parametrize("name", FORMS)
def test_it_is_never_worse_than_the_diagonal_of_the_gram_matrix(name):
    form = FORMS[name]
    best, plain = qb.metric(form, "diagonal-best"), qb.metric(form, "diagonal")
    assert best.bounds.kappa <= plain.bounds.kappa * (1.0 + 1e-12)
    assert qb.measured_kappa(form, best, starts=3) <= best.bounds.kappa


@pytest.mark.parametrize("name", FORMS)
def test_no_diagonal_nearby_has_a_much_smaller_bound(name):
    # A minimum of the smoothed bound, which is within n^{1.5/8} of the certified one.
    form = FORMS[name]
    best = qb.metric(form, "diagonal-best")
    rng = np.random.default_rng(1)
    slack = form.dim ** (1.5 / 8.0)
    for size in (0.1, 0.5, 1.0):
        other = qb.Diagonal(best.diagonal * np.exp(size * rng.standard_normal(form.dim)))
        assert best.bounds.kappa <= slack * other.declared(bounds=form.bounds).bounds.kappa


def test_large_entries_cost_half_the_passes():
    problem = qb.instances.orthant(2000, 50, df=2.0, seed=0)
    best, plain = (qb.metric(problem.form, name) for name in ("diagonal-best", "diagonal"))
    assert best.bounds.kappa < 0.6 * plain.bounds.kappa
    passes = {metric.name: qb.solve(problem, "homgd", metric.name, rel_gap=1e-8).passes for metric in (best, plain)}
    assert passes["diagonal-best"] < 0.7 * passes["diagonal"]


def test_units_do_not_matter():
    rows = RNG.standard_t(2, (200, 6))
    units = np.logspace(-4, 4, 6)
    plain, scaled = (qb.metric(qb.StackedForm(one), "diagonal-best") for one in (rows, 1e30 * rows * units))
    assert scaled.bounds.kappa == pytest.approx(plain.bounds.kappa, rel=0.02)
