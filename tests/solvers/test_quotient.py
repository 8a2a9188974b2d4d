"""ρ that vanishes on a subspace: solved on the quotient, or shown to be unbounded; and what is claimed of either."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import quartbench as qb
from quartbench.model.quotient import quotient


def rng_rows(m=40, n=7, rank=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))


def with_unseen(m=40, n=6, unseen=(1, 4), seed=0):
    rows = np.random.default_rng(seed).standard_normal((m, n))
    rows[:, list(unseen)] = 0.0
    return rows


def exact_value(rows, c, x):
    """f(x) in exact arithmetic."""
    x = [Fraction(v) for v in x]
    images = [sum((Fraction(a) * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in rows.tolist()]
    return sum((s**4 for s in images), Fraction(0)) - sum(Fraction(a) * b for a, b in zip(c.tolist(), x, strict=True))


def minimum(rows, c):
    """f* by SciPy from the least-norm point of the range of the rows, which BFGS does not leave."""
    found = scipy.optimize.minimize(
        lambda x: ((rows @ x) ** 4).sum() - c @ x,
        np.linalg.pinv(rows) @ np.ones(len(rows)) * 0.1,
        jac=lambda x: 4.0 * rows.T @ (rows @ x) ** 3 - c,
        method="BFGS",
        options={"gtol": 1e-10, "maxiter": 5000},
    )
    return found.fun


# Coordinates that no term sees: exact ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "homgd", "homnewton-cg", "accel-homgd"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_unseen_coordinates_are_left_out_and_nothing_else_changes(solver, make):
    rows = with_unseen()
    c = np.array([1.0, 0.0, -2.0, 3.0, 0.0, 0.5])
    seen = [0, 2, 3, 5]
    found = qb.solve(make(rows), c, solver=solver, rel_gap=1e-8)
    alone = qb.solve(make(rows[:, seen]), c[seen], solver=solver, rel_gap=1e-8)
    assert found.success
    assert found.gap <= 1e-8
    assert "no term sees 2 of 6 coordinates" in found.message
    assert not found.x[[1, 4]].any()
    np.testing.assert_array_equal(found.x[seen], alone.x)
    assert (found.fun, found.lower_bound, found.passes) == (alone.fun, alone.lower_bound, alone.passes)
    assert exact_value(rows, c, found.x) <= Fraction(found.fun)


def test_c_at_an_unseen_coordinate_is_unbounded_and_the_direction_proves_it():
    rows = with_unseen()
    c = np.array([1.0, 1e-300, -2.0, 3.0, 0.0, 0.5])
    found = qb.solve(rows, c)
    assert (found.status, found.success, found.fun, found.lower_bound) == ("unbounded", False, -np.inf, -np.inf)
    assert found.gap == np.inf
    assert not (rows @ found.x).any()
    assert c @ found.x > 0.0
    again = qb.Result.from_json(found.to_json())
    assert again.fun == -np.inf
    assert again.status == "unbounded"
    np.testing.assert_array_equal(again.x, found.x)


# Columns that depend on each other to rounding ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "homgd", "homnewton-cg"])
@pytest.mark.parametrize("metric", ["auto", "identity", "uniform", "lewis"])
def test_dependent_columns_are_solved_on_the_quotient(solver, metric):
    rows = rng_rows()
    c = rows.T @ np.random.default_rng(1).standard_normal(len(rows))
    found = qb.solve(rows, c, solver=solver, metric=metric, rel_gap=1e-8)
    assert found.success
    assert "numerical rank 4 of 7" in found.message
    assert "left out" in found.message
    best = minimum(rows, c)
    assert found.fun == pytest.approx(best, rel=1e-7)
    assert found.lower_bound <= best * (1.0 - 1e-12)
    assert exact_value(rows, c, found.x) <= Fraction(found.fun)
    # x is the point of least norm: perpendicular to the kernel.
    kernel = np.linalg.svd(rows)[2][4:]
    scale = np.exp2(np.frexp(np.linalg.norm(rows, axis=0))[1])
    assert np.abs(np.linalg.svd(rows / scale)[2][4:] @ (scale * found.x)).max() < 1e-12 * np.abs(scale * found.x).max()
    assert np.abs(kernel @ c).max() < 1e-12 * np.linalg.norm(c)


def test_kappa_on_the_quotient_is_at_most_the_root_of_the_rank():
    reduced = quotient(qb.StackedForm(rng_rows(m=200, n=20, rank=9)))
    assert (reduced.rank, reduced.dim, reduced.exact) == (9, 20, False)
    assert qb.metric(reduced.form, "lewis").bounds.kappa <= 1.01 * 3.0


def test_fewer_rows_than_columns_are_solved_in_their_span():
    rows = np.random.default_rng(2).standard_normal((3, 8))
    found = qb.solve(rows, rows.T @ [1.0, -2.0, 3.0], rel_gap=1e-9)
    # With independent rows the images are free: min Σs⁴ − ⟨μ,s⟩ is −¾·4^{−1/3} Σ|μ|^{4/3}.
    assert found.success
    assert found.fun == pytest.approx(-0.75 * 4.0 ** (-1 / 3) * (1.0 + 2.0 ** (4 / 3) + 3.0 ** (4 / 3)), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_c_in_the_kernel_is_unbounded_and_what_is_said_is_proved(seed):
    rows = rng_rows(seed=seed)
    c = np.random.default_rng(seed + 10).standard_normal(7)
    found = qb.solve(rows, c)
    assert (found.status, found.success) == ("unbounded", False)
    assert "as far as rounding tells" in found.message
    # Far below anything of the problem's own size, and true in exact arithmetic.
    assert found.fun < -1e12
    assert exact_value(rows, c, found.x) <= Fraction(found.fun)
    assert found.lower_bound == -np.inf


@pytest.mark.parametrize("rank", [2, 3])
def test_terms_of_higher_rank(rank):
    rows = rng_rows(m=60, n=8, rank=5)
    form = qb.StackedForm(rows, rank=rank)
    c = rows.T @ np.ones(60)
    found = qb.solve(qb.Problem(form, c), rel_gap=1e-8)
    assert found.success
    gradient = form.gradient(found.x)
    assert np.linalg.norm(gradient - c) < 1e-3 * np.linalg.norm(c)


def test_complex_rows():
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((30, 3), (3, 5)))
    form = qb.ComplexForm(left @ right)
    c = form.gradient(rng.standard_normal(5) + 1j * rng.standard_normal(5))
    found = qb.solve(qb.Problem(form, c), rel_gap=1e-8)
    assert found.success
    assert found.x.shape == (5,)
    assert np.iscomplexobj(found.x)
    assert np.linalg.norm(form.gradient(found.x) - c) < 1e-3 * np.linalg.norm(c)


# Hostile scales -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("linear", [1e-60, 1e60])
def test_the_decision_does_not_depend_on_units(size, linear):
    units = np.exp2([0, 40, -40, 20, -20, 3, 0])
    rows = rng_rows()
    inside, outside = rows.T @ np.ones(len(rows)), np.random.default_rng(5).standard_normal(7)
    scaled = size * rows * units
    found = qb.solve(scaled, linear * (inside * units))
    assert found.success
    assert "numerical rank 4 of 7" in found.message
    plain = qb.solve(rows, inside)
    factor = (linear / size) ** (4.0 / 3.0)
    assert found.fun == pytest.approx(factor * plain.fun, rel=1e-5)
    assert qb.solve(scaled, linear * (outside * units)).status == "unbounded"


def test_a_rank_that_rounding_does_not_show_is_refused():
    # Singular values that fall evenly from 1 to 1e-20: there is no step between those that count and those that do not.
    rng = np.random.default_rng(0)
    left, right = np.linalg.qr(rng.standard_normal((40, 21)))[0], np.linalg.qr(rng.standard_normal((21, 21)))[0]
    rows = left * np.logspace(0, -20, 21) @ right
    with pytest.raises(qb.DeficientError, match="its rank cannot be told"):
        qb.solve(rows, np.ones(21))


def test_rows_that_are_nearly_dependent_are_not_taken_to_be_dependent():
    rows = rng_rows(n=5, rank=4)
    rows[0, 4] += 1e-6
    found = qb.solve(rows, np.ones(5))
    assert "numerical rank" not in found.message
    assert found.lower_bound <= found.fun < 0.0


# The other ways in ----------------------------------------------------------------------------------------------------


def test_prepared_and_many_and_callbacks_see_points_of_the_whole_space():
    rows = rng_rows()
    C = rows[:3]
    seen = []
    prepared = qb.prepare(rows)
    first = prepared.solve(C[0], callback=lambda state: seen.append(state.x))
    assert first.success
    assert all(x.shape == (7,) for x in seen)
    many = qb.solve_many(rows, np.vstack([C, np.ones(7)]))
    assert [one.status for one in many] == ["converged"] * 3 + ["unbounded"]
    assert many[0].fun == pytest.approx(first.fun, rel=1e-5)
    warm = prepared.solve(C[0], start=first.x)
    assert warm.success
    assert warm.nit <= first.nit


def test_a_metric_that_was_made_is_refused():
    with pytest.raises(qb.ProblemError, match="metric must be a name"):
        qb.solve(with_unseen(), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], metric=qb.Identity(6))


@pytest.mark.parametrize("rows", [with_unseen(), rng_rows(n=6)], ids=["unseen", "dependent"])
@pytest.mark.parametrize("cone", ["orthant", "second-order"])
def test_on_cones_the_error_says_what_would_be_needed(rows, cone):
    with pytest.raises(qb.DeficientError, match="no direction d of the cone has ρ"):
        qb.solve(rows, np.ones(6), cone)


def test_the_command_says_unbounded(tmp_path):
    from click.testing import CliRunner

    from quartbench.cli import main

    np.save(tmp_path / "A.npy", with_unseen())
    np.save(tmp_path / "c.npy", np.ones(6))
    ran = CliRunner().invoke(main, ["solve", str(tmp_path / "A.npy"), str(tmp_path / "c.npy")])
    assert "unbounded" in ran.output
    assert ran.exit_code != 0


def test_rows_that_no_factor_takes_but_have_full_rank_are_refused_once(monkeypatch):
    # On the border of rounding a factor may fail where singular values do not: there is no quotient to solve on.
    def fails(*arguments, **options):
        raise qb.DeficientError("ρ is not positive definite to rounding")

    rows = np.random.default_rng(0).standard_normal((30, 4))
    monkeypatch.setattr("quartbench.precondition.metric", fails)
    with pytest.raises(qb.DeficientError, match="its rank cannot be told"):
        qb.solve(rows, np.ones(4), solver="homgd", metric="uniform")


@pytest.mark.parametrize("c", [[1.0, 0.0, 2.0], [1.0, 3.0, 2.0]])
def test_products_that_are_taken_on_trust_prove_nothing_of_coordinates_that_no_term_sees(c):
    rows = np.random.default_rng(0).standard_normal((20, 3))
    rows[:, 1] = 0.0
    trusted = qb.solve(qb.Problem(qb.OperatorForm(aslinearoperator(rows)), c))
    known = qb.solve(qb.Problem(qb.StackedForm(rows), c))
    assert known.status == trusted.status
    assert known.proved
    assert not trusted.proved
