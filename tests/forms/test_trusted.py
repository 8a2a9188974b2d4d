"""Do units matter where rows are functions? And does what is taken on trust of them hold?"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import quartbench as qb
from quartbench.forms.trusted import TRUSTED, Products
from quartbench.linalg.known import U

from .random_forms import RowProducts


def rows_in_units(decades, m=30, n=6, seed=0):
    """Return rows whose columns are in units over ±decades, and a c in the same."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-decades, decades, n)
    return rng.standard_normal((m, n)) * units, rng.standard_normal(n) * units


def contains(found, truth):
    """Say whether known numbers hold a truth in long double."""
    return (np.abs(truth - found.hi.astype(np.longdouble) - found.lo) <= found.error).all()


@pytest.mark.parametrize("cone", ["free", "orthant"])
@pytest.mark.parametrize("decades", [3.0, 8.0])
@pytest.mark.parametrize("n", [6, 40])
def test_columns_in_any_units_are_certified_to_ten_digits(decades, n, cone):
    rows, c = rows_in_units(decades, 5 * n, n)
    operator = qb.solve(qb.Problem(qb.OperatorForm(RowProducts(rows)), c, cone), rel_gap=1e-10)
    stored = qb.solve(qb.Problem(qb.StackedForm(rows), c, cone), rel_gap=1e-10)
    assert operator.success
    assert stored.success
    assert operator.lower_bound <= stored.fun
    assert stored.lower_bound <= operator.fun


@pytest.mark.parametrize("solver", ["auto", "homgd"])
def test_many_columns_in_different_units_are_seen_by_a_sketch(solver):
    rng = np.random.default_rng(0)
    n = 1200
    units = 10.0 ** rng.uniform(-6.0, 6.0, n)
    mixed = sp.random(3 * n, n, density=0.005, random_state=1, data_rvs=rng.standard_normal)
    rows = ((mixed + sp.vstack([sp.identity(n)] * 3)) @ sp.diags(units)).tocsr()
    form, c = qb.OperatorForm(aslinearoperator(rows)), rng.standard_normal(n) * units
    assert not form.factorable
    assert form.uneven_columns()
    result = qb.solve(qb.Problem(form, c), solver, rel_gap=1e-10 if solver == "auto" else 1e-4)
    stored = qb.solve(qb.Problem(qb.StackedForm(rows), c), rel_gap=1e-10)
    assert result.success
    assert result.lower_bound <= stored.fun
    assert stored.lower_bound <= result.fun


def test_columns_of_one_unit_keep_the_euclidean_norm():
    rng = np.random.default_rng(0)
    form = qb.OperatorForm(RowProducts(rng.standard_normal((1500, 1100))))
    assert not form.uneven_columns()
    assert qb.precondition.automatic_metric(form, qb.Free()) == "identity"


class Steps(qb.TermForm):
    """Differences of neighbours, each unknown in its own unit: an image and an adjoint, nothing else."""

    def __init__(self, units):
        super().__init__()
        self.units = units
        self.dim = self.terms = units.size
        self.rank, self.shape = 1, units.shape

    def _image(self, x):
        return np.diff(self.units * x, prepend=0.0)

    def _adjoint(self, weights):
        return self.units * (weights - np.append(weights[1:], 0.0))


def test_a_form_of_image_and_adjoint_alone_is_certified_in_any_units():
    units = 10.0 ** np.random.default_rng(0).uniform(-8.0, 8.0, 12)
    result = qb.solve(qb.Problem(Steps(units), units * np.arange(1.0, 13.0)), rel_gap=1e-10)
    assert result.success
    assert not qb.certify(qb.Problem(Steps(units), units), 1.0 / units).proved


# What is taken on trust -----------------------------------------------------------------------------------------------


def test_rows_that_both_products_agree_on_are_known_as_stored_ones_are():
    rows, c = rows_in_units(8.0)
    operator, stored = qb.OperatorForm(RowProducts(rows)), qb.StackedForm(rows)
    x, w = 1.0 / np.abs(rows).max(axis=0), np.ones(30)
    for ours, theirs in (
        (operator.known_image(x), stored.known_image(x)),
        (operator.known_residual(c, w, 0.0 * w), stored.known_residual(c, w, 0.0 * w)),
    ):
        for found, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("written", [True, False])
def test_what_products_disagree_by_is_allowed_for(written):
    # An adjoint that is off by 1e-9: the truth may be either matrix.
    rows, c = rows_in_units(4.0)
    other = rows * (1.0 + 1e-9 * np.random.default_rng(1).uniform(-1.0, 1.0, rows.shape))
    form = qb.OperatorForm(
        LinearOperator(rows.shape, matvec=lambda x: rows @ x.ravel(), rmatvec=lambda w: other.T @ w.ravel())
    )
    products = Products(form, qb.StackedForm(rows) if written else None)
    assert 1e-11 < products.share < 1e-8
    x, w = 1.0 / np.abs(rows).max(axis=0), np.random.default_rng(2).standard_normal(30)
    for truth in (rows.astype(np.longdouble), other.astype(np.longdouble)):
        assert contains(products.image(x, True), truth @ x)
        assert contains(products.residual(c, w, 0.0 * w, True), c - truth.T @ w)


def test_transforms_are_known_to_their_rounding():
    n, weights = 16, 10.0 ** np.linspace(-6.0, 6.0, 16)
    form = qb.OperatorForm(
        LinearOperator(
            (n, n),
            matvec=lambda x: np.fft.fft(weights * x.ravel()),
            rmatvec=lambda w: weights * np.fft.ifft(w.ravel(), norm="forward"),
            dtype=complex,
        )
    )
    angles = 2 * np.arccos(np.longdouble(-1)) * np.outer(np.arange(n), np.arange(n)) / n
    real, imaginary = np.cos(angles) * weights, -np.sin(angles) * weights
    exact = np.empty((2 * n, 2 * n), dtype=np.longdouble)
    exact[0::2, 0::2], exact[0::2, 1::2], exact[1::2, 0::2], exact[1::2, 1::2] = real, -imaginary, imaginary, real
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(2 * n) / np.repeat(weights, 2), rng.standard_normal(2 * n)
    image, residual = form.known_image(x), form.known_residual(0.0 * x, w, 0.0 * w)
    assert contains(image, exact @ x)
    assert contains(residual, -exact.T @ w)
    assert image.error.max() <= 1e3 * U * np.abs(image.hi).max()
    assert (residual.error <= 1e3 * U * np.repeat(weights, 2) * n).all()


def test_lengths_of_many_columns_are_right_to_a_third():
    rows = np.random.default_rng(0).standard_normal((1300, 1100)) * 10.0 ** np.linspace(-5.0, 5.0, 1100)
    products = Products(qb.OperatorForm(RowProducts(rows)), None)
    np.testing.assert_allclose(products.lengths, np.linalg.norm(rows, axis=0), rtol=0.5)
    assert products.share <= TRUSTED * U
