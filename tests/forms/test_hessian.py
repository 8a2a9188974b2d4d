"""Is the dense Hessian that of the form, and its factor usable where it is singular? Is a single factor one of B?"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from quartbench import instances, precondition
from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, GramForm, GraphForm, OperatorForm, StackedForm
from quartbench.forms.base import DENSE_UNKNOWNS
from quartbench.metrics import Cholesky
from tests.forms import random_forms


def whole(matrix):
    """Return the symmetric matrix whose lower triangle counts."""
    return np.tril(matrix) + np.tril(matrix, -1).T


@given(random_forms.forms(), st.integers(0, 2**32 - 1))
def test_what_peers_are_given_is_the_same_quartic(form, seed):
    rng = np.random.default_rng(seed)
    x, v = random_forms.point(form, rng), random_forms.point(form, rng)
    plain = form.plain()
    s = plain.image(x)
    q = plain.squares(s)
    value, gradient, _ = form.evaluate(x)
    product = form.hessian_product(x, v)
    assert plain.value(s, q) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(plain.gradient(s, q), gradient, rtol=1e-8, atol=1e-9 * np.abs(gradient).max())
    close = {"rtol": 1e-8, "atol": 1e-9 * np.abs(product).max()}
    np.testing.assert_allclose(plain.hessian_product(s, q, v), product, **close)
    np.testing.assert_allclose(plain.hessian(s, q) @ v, product, **close)


@given(random_forms.forms(), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.37]))
def test_dense_hessian_is_that_of_the_products(form, seed, scale):
    form = form.scaled(scale)
    rng = np.random.default_rng(seed)
    x, v = random_forms.point(form, rng), random_forms.point(form, rng)
    image = form.image(x)
    before = form.passes
    matrix = whole(form.dense_hessian(x, image))
    assert form.passes - before == (2 * form.dim if isinstance(form, OperatorForm) else 1)
    product = form.hessian_product(x, v)
    assert matrix @ v == pytest.approx(product, rel=1e-9, abs=1e-10 * np.abs(matrix).max() * np.abs(v).max())
    assert form.hessian_product_flat(x, image, v) == pytest.approx(product, rel=1e-9, abs=1e-10 * np.abs(product).max())


@pytest.mark.parametrize("kind", random_forms.KINDS)
def test_dense_hessian_is_the_derivative_of_the_gradient(kind):
    form = random_forms.make(kind, 5, 3 if kind != "graph" else 2, 6, "gaussian", 3)
    rng = np.random.default_rng(0)
    x = random_forms.point(form, rng)
    matrix = whole(form.dense_hessian(x, form.image(x)))
    step = 1e-5
    for _ in range(4):
        v = random_forms.point(form, rng)  # centred on a graph, where translations have a weight of their own
        difference = (form.gradient(x + step * v) - form.gradient(x - step * v)) / (2.0 * step)
        assert matrix @ v == pytest.approx(difference, rel=1e-6, abs=1e-7 * np.abs(difference).max())


def test_hessian_of_a_graph_is_definite_and_maps_centred_to_centred():
    form = instances.geometric(12, 2, degree=4, seed=0).form
    x = random_forms.point(form, np.random.default_rng(0))
    matrix = whole(form.dense_hessian(x, form.image(x)))
    assert np.linalg.eigvalsh(matrix)[0] > 0.0
    moved = (matrix @ x).reshape(form.shape)
    assert np.abs(moved.sum(axis=0)).max() <= 1e-12 * np.abs(moved).max() * len(moved)


def test_blocks_of_rows_do_not_change_the_hessian(monkeypatch):
    rng = np.random.default_rng(0)
    forms = [StackedForm(rng.standard_normal((90, 7)), rank=3), StackedForm(rng.standard_normal((50, 7)))]
    forms.append(ComplexForm(rng.standard_normal((40, 4)) + 1j * rng.standard_normal((40, 4))))
    for form in forms:
        x = rng.standard_normal(form.dim)
        at_once = form.dense_hessian(x, form.image(x))
        monkeypatch.setattr("quartbench.forms.blocks.BLOCK_BYTES", 8 * form.rank * form.dim * 7)
        assert np.tril(form.dense_hessian(x, form.image(x))) == pytest.approx(np.tril(at_once), rel=1e-12)
        monkeypatch.undo()


def test_large_forms_without_a_dense_hessian_are_refused():
    form = GramForm(DENSE_UNKNOWNS, 2)
    with pytest.raises(ProblemError, match="take the solver 'homnewton-cg'"):
        form.dense_hessian(np.ones(form.dim), np.ones(form.dim))


# The factor -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_factor_of_a_definite_matrix_solves_with_it(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3 * n, n))
    matrix = rows.T @ rows
    v = rng.standard_normal(n)
    assert Cholesky.regularised(matrix).solve(v) == pytest.approx(np.linalg.solve(matrix, v), rel=1e-8, abs=1e-10)


@given(st.integers(2, 8), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_factor_of_a_singular_matrix_solves_in_its_range(n, lost, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((max(1, n - lost), n))
    matrix, v = rows.T @ rows, rows.T @ rng.standard_normal(len(rows))
    e = Cholesky.regularised(matrix).solve(v)
    assert np.isfinite(e).all()
    assert v @ e > 0.0
    assert matrix @ e == pytest.approx(v, abs=1e-4 * np.abs(v).max())


def test_factor_where_no_term_sees_a_coordinate():
    e = Cholesky.regularised(np.diag([4.0, 0.0, 1.0])).solve(np.array([4.0, 0.0, 1.0]))
    assert e == pytest.approx([1.0, 0.0, 1.0])
    assert np.isfinite(Cholesky.regularised(np.zeros((3, 3))).solve(np.ones(3))).all()


def test_factor_keeps_coordinates_in_other_units():
    # The pivots had a floor of 1e-30 of the largest: Newton's method then crept where columns span 1e20.
    units = np.geomspace(1e-40, 1e40, 6)
    rows = np.random.default_rng(0).standard_normal((20, 6))
    gram = rows.T @ rows
    e = Cholesky.regularised(units[:, None] * gram * units).solve(units * (gram @ np.ones(6)))
    assert units * e == pytest.approx(np.ones(6), rel=1e-9)


# The factor in single precision ---------------------------------------------------------------------------------------


def rows_of(kind, rng, m=60, n=8):
    rows = rng.standard_normal((m, n))
    if kind == "sparse":
        return StackedForm(sp.csr_matrix(rows * (rng.random((m, n)) < 0.5) + np.eye(m, n)))
    if kind == "complex":
        return ComplexForm(rows + 1j * rng.standard_normal((m, n)))
    return StackedForm(rows.astype(np.float32) if kind == "float32" else rows, rank=3 if kind == "block" else 1)


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "block", "complex"])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_single_factor_is_near_the_double_one(kind, scale):
    rng = np.random.default_rng(0)
    form = rows_of(kind, rng).scaled(scale)
    tau = rng.uniform(0.1, 1.0, form.terms)
    single, double = form.weighted(tau, "single"), form.weighted(tau)
    assert single.lower.dtype.itemsize == double.lower.dtype.itemsize // 2
    assert np.array_equal(single.tau, tau)
    v = rng.standard_normal(form.dim)
    near = {"rel": 1e-4, "abs": 1e-5 * np.abs(double.solve(v)).max()}
    assert single.solve(v).dtype == np.float64
    assert single.solve(v) == pytest.approx(double.solve(v), **near)
    assert single.apply(single.solve(v)) == pytest.approx(v, rel=1e-4, abs=1e-4)
    assert single.dual_norm(v) == pytest.approx(double.dual_norm(v), rel=1e-4)


def test_single_factor_falls_back_to_double_where_columns_are_nearly_collinear():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 8))
    rows[:, 1] = rows[:, 0] + 1e-5 * rows[:, 1]
    form = StackedForm(rows)
    made = form.weighted(form.uniform_weights(), "single")
    assert made.lower.dtype == np.float64
    v = rng.standard_normal(8)
    assert made.solve(v) == pytest.approx(form.weighted(form.uniform_weights()).solve(v), rel=1e-9)


def test_single_factor_of_a_graph_is_the_laplacian():
    form = GraphForm(4, 2, [(0, 1), (1, 2), (2, 3)])
    assert form.weighted(form.uniform_weights(), "single").name == form.weighted(form.uniform_weights()).name


@pytest.mark.parametrize("spread", [8, 15, 30, 60])
def test_single_factor_survives_columns_in_other_units(spread):
    # Squares of short columns, and v/scale, leave the range of single precision; the solve became infinite.
    rng = np.random.default_rng(0)
    units = np.geomspace(10.0**-spread, 1.0, 8)
    rows = rng.standard_normal((60, 8))
    form, tau = StackedForm(rows * units), np.full(60, 60**-0.5)
    made = form.weighted(tau, "single")
    for v in (rng.standard_normal(8), units * rng.standard_normal(8), 1e30 * rng.standard_normal(8), np.zeros(8)):
        exact = np.linalg.solve(rows.T @ (tau[:, None] * rows), v / units)
        assert units * made.solve(v) == pytest.approx(exact, rel=1e-3, abs=1e-4 * np.abs(exact).max())


def test_precision_is_an_option_of_the_uniform_metric_alone():
    form = rows_of("dense", np.random.default_rng(0))
    assert precondition.metric(form, "uniform", precision="single").lower.dtype == np.float32
    assert precondition.metric(form, "uniform", precision="double").lower.dtype == np.float64
    with pytest.raises(ProblemError, match="unknown precision 'half'"):
        precondition.metric(form, "uniform", precision="half")
    with pytest.raises(ProblemError, match="has no options"):
        precondition.metric(form, "identity", precision="single")


def test_the_hessian_that_peers_are_given_of_complex_rows():
    rng = np.random.default_rng(0)
    form = ComplexForm(rng.standard_normal((9, 3)) + 1j * rng.standard_normal((9, 3)))
    x, v = rng.standard_normal((2, 6))
    plain = form.plain()
    s = plain.image(x)
    np.testing.assert_allclose(plain.hessian(s, plain.squares(s)) @ v, form.hessian_product(x, v), rtol=1e-9)
