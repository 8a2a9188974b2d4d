"""Is the ℓ4 fit that of SciPy, are both its bounds true, and is everything that people bring fitted?"""

from fractions import Fraction

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import quartbench as qb
from quartbench.regression.least_squares import least_squares


def data(m, n, seed=0, condition=1.0, noise=1.0):
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.standard_normal((m, n)))[0] * np.geomspace(1.0, 1.0 / condition, n) * np.sqrt(m)
    A = A @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    return A, A @ rng.standard_normal(n) + noise * rng.standard_normal(m)


def by_scipy(A, b, rank=1, weights=None):
    """Return the least norm that SciPy's trust region finds from the least-squares fit, with the exact Hessian."""
    weights = np.ones(len(b) // rank) if weights is None else weights
    start = np.linalg.lstsq(A, b, rcond=None)[0]
    scale = np.abs(b - A @ start).max()

    def terms(x):
        r = ((A @ x - b) / scale).reshape(-1, rank)
        return r, (r**2).sum(axis=1)

    def value(x):
        return float(weights @ terms(x)[1] ** 2)

    def gradient(x):
        r, q = terms(x)
        return 4.0 / scale * A.T @ ((weights * q)[:, None] * r).reshape(-1)

    found = minimize(value, start, jac=gradient, method="BFGS", options={"gtol": 1e-11, "maxiter": 2000})
    return scale * found.fun**0.25


def exactly(A, b, x, weights=None):
    """Return Σ wᵢ(⟨aᵢ,x⟩ − bᵢ)⁴ as a fraction."""
    x = [Fraction(float(one)) for one in x]
    weights = np.ones(len(b)) if weights is None else weights
    rows = zip(A.tolist(), b.tolist(), weights.tolist(), strict=True)
    return sum(
        Fraction(w) * (sum(Fraction(a) * xj for a, xj in zip(row, x, strict=True)) - Fraction(bi)) ** 4
        for row, bi, w in rows
    )


@pytest.mark.parametrize(("m", "n"), [(40, 3), (300, 12), (3000, 80)])
@pytest.mark.parametrize("condition", [1.0, 1e3])
def test_the_fit_is_that_of_scipy(m, n, condition):
    A, b = data(m, n, condition=condition)
    fit = qb.l4_regression(A, b)
    assert fit.status == "converged"
    assert fit.gap <= 1e-8
    assert fit.lower_bound <= fit.fun
    assert fit.fun == pytest.approx(by_scipy(A, b), rel=1e-6 if condition > 1.0 else 1e-8)
    np.testing.assert_allclose(fit.residual, b - A @ fit.x)
    assert np.linalg.norm(b - A @ fit.start) < np.linalg.norm(fit.residual)  # which starts from least squares


@pytest.mark.parametrize("noise", [1.0, 1e-6, 1e-11])
def test_both_bounds_are_true_however_good_the_fit(noise):
    A, b = data(60, 4, seed=1, noise=noise)
    fit = qb.l4_regression(A, b, rel_gap=1e-7)
    assert fit.status == "converged"
    assert exactly(A, b, fit.x) <= Fraction(fit.fun) ** 4
    tighter = qb.l4_regression(A, b, rel_gap=1e-10)
    assert Fraction(fit.lower_bound) ** 4 <= exactly(A, b, tighter.x)
    assert fit.fun - fit.lower_bound <= 1e-7 * fit.fun


def test_weights_count_as_often():
    A, b = data(50, 4, seed=2)
    weights = np.random.default_rng(0).integers(0, 4, 50)
    fit = qb.l4_regression(A, b, weights)
    again = qb.l4_regression(np.repeat(A, weights, axis=0), np.repeat(b, weights))
    assert fit.fun == pytest.approx(again.fun, rel=1e-8)
    np.testing.assert_allclose(fit.x, again.x, rtol=1e-5)
    assert exactly(A, b, fit.x, weights) <= Fraction(fit.fun) ** 4 * (1 + Fraction(1, 10**14))


def test_groups_count_by_their_length():
    A, b = data(60, 4, seed=3)
    fit = qb.l4_regression(A, b, groups=3)
    assert fit.fun == pytest.approx(by_scipy(A, b, rank=3), rel=1e-8)
    labels, order = np.repeat(np.arange(20), 3), np.random.default_rng(0).permutation(60)
    assert qb.l4_regression(A[order], b[order], groups=labels[order]).fun == pytest.approx(fit.fun, rel=1e-8)
    weights = np.linspace(1.0, 2.0, 20)
    weighted = qb.l4_regression(A, b, weights, groups=3)
    assert weighted.fun == pytest.approx(by_scipy(A, b, 3, weights), rel=1e-8)


def test_groups_of_different_sizes_are_those_filled_up_with_zeros():
    A, b = data(9, 2, seed=4)
    labels = np.array(list("abbcccccd"))
    fit = qb.l4_regression(A, b, groups=labels)

    def value(x):
        r = A @ x - b
        return sum(float(r[labels == one] @ r[labels == one]) ** 2 for one in "abcd")

    found = minimize(value, fit.x, method="BFGS", options={"gtol": 1e-12})
    assert fit.fun == pytest.approx(found.fun**0.25, rel=1e-7)


def test_an_exact_fit_says_so():
    A, _ = data(30, 5)
    x = np.arange(5.0)
    fit = qb.l4_regression(A, A @ x)
    assert (fit.status, fit.success, fit.lower_bound, fit.gap) == ("exact", True, 0.0, 1.0)
    np.testing.assert_allclose(fit.x, x, rtol=1e-12, atol=1e-12)
    assert fit.fun < 1e-12
    assert qb.l4_regression(A, np.zeros(30)).fun == 0.0
    assert qb.l4_regression(A[:3], np.ones(3)).status == "exact"


@pytest.mark.parametrize("seed", range(30))
def test_the_gap_of_dependent_columns_in_other_units_is_no_less_than_nothing_and_what_was_asked_for(seed):
    # The shortest x has terms of 1e7 that cancel, and what rounding leaves of them: a better fit than the bound, or one
    # that had converged with a gap above the one asked for.
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 2)) * [1e5, 1e-3]
    A, b, rel_gap = np.column_stack([A, A[:, 0] + A[:, 1]]), rng.standard_normal(6), 10.0 ** rng.uniform(-13.0, -6.0)
    fit = qb.l4_regression(A, b, rel_gap=rel_gap)
    assert 0.0 <= fit.lower_bound <= fit.fun
    assert fit.gap >= 0.0
    assert fit.success == (fit.gap <= rel_gap) == (fit.status == "converged")


def test_dependent_columns_give_the_shortest_coefficients():
    A, b = data(40, 3, seed=5)
    fit = qb.l4_regression(A, b)
    wider = np.column_stack([A, A[:, 0], np.zeros(40), A[:, 1] - 2.0 * A[:, 2]])
    more = qb.l4_regression(wider, b)
    assert "of 6 columns 3 are independent" in more.message
    assert more.gap <= 1e-8
    assert more.fun == pytest.approx(fit.fun, rel=1e-8)
    shortest = np.linalg.lstsq(wider, A @ fit.x, rcond=None)[0]
    np.testing.assert_allclose(more.x, shortest, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array, pandas.DataFrame, np.ndarray.tolist])
def test_rows_are_taken_as_they_come(kind):
    A, b = data(50, 4, seed=6)
    assert qb.l4_regression(kind(A), b[:, None]).fun == pytest.approx(qb.l4_regression(A, b).fun, rel=1e-8)


def test_large_sparse_rows_stay_sparse():
    rng = np.random.default_rng(7)
    A = sp.random_array((9000, 120), density=0.05, rng=rng, format="csr")
    b = A @ rng.standard_normal(120) + rng.standard_normal(9000)
    fit = qb.l4_regression(A, b, rel_gap=1e-7)
    assert fit.status == "converged"
    assert fit.fun == pytest.approx(qb.l4_regression(A.toarray(), b).fun, rel=1e-7)


@pytest.mark.parametrize("size", [1e-40, 1e40])
def test_units_do_not_matter(size):
    A, b = data(50, 4, seed=8)
    plain = qb.l4_regression(A, b)
    assert qb.l4_regression(A, size * b).fun == pytest.approx(size * plain.fun, rel=1e-8)
    assert qb.l4_regression(size * A, b).fun == pytest.approx(plain.fun, rel=1e-8)
    uneven = A * [1.0, 1e6, 1e-6, 1e3]
    assert qb.l4_regression(uneven, b).fun == pytest.approx(plain.fun, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), np.ones(3)), r"A must be an array \(m, n\) of real numbers, found shape \(3,\)"),
        ((np.eye(3) * 1j, np.ones(3)), r"A must be an array \(m, n\) of real numbers, .* \(complex128\)"),
        (([[1.0], [np.nan]], np.ones(2)), r"A must be finite, found nan at index \(1, 0\)"),
        ((np.eye(3), np.ones(2)), r"b must have one number for each of the 3 rows of A, found shape \(2,\)"),
        ((np.eye(3), [1.0, np.inf, 0.0]), r"b must be finite, found inf at index \(1,\)"),
        ((np.eye(3), np.ones(3), [1.0, -1.0, 1.0]), "weights must be 3 nonnegative numbers.* with -1"),
        ((np.eye(3), np.ones(3), np.zeros(3)), "weights must be 3 nonnegative numbers, not all zero"),
        ((np.eye(3), np.ones(3), None, 2), "groups must divide the 3 rows, found 2"),
        ((np.eye(3), np.ones(3), None, [1, 2]), r"groups must be one label for each of the 3 rows, found shape \(2,\)"),
        ((np.ma.masked_equal(np.eye(3), 0.0), np.ones(3)), "A must have no masked entries"),
        ((np.eye(3), np.ones(3), None, None, None), "rel_gap must be positive, found None"),
        ((np.eye(3), np.ones(3), None, None, -1.0), "rel_gap must be positive, found -1.0"),
    ],
)
def test_what_cannot_be_fitted_is_said(arguments, message):
    with pytest.raises(qb.ProblemError, match=message):
        qb.l4_regression(*arguments)


def test_least_squares_is_that_of_lapack():
    for condition in (1.0, 1e3, 1e7):
        A, b = data(200, 10, condition=condition)
        fit = least_squares(A, b, np.abs(A).max())
        expected = np.linalg.norm(b - A @ np.linalg.lstsq(A, b, rcond=None)[0])
        assert np.linalg.norm(fit.residual) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("noise", [1e-5, 1e-8, 1e-11])
def test_both_bounds_are_true_with_weights(noise, rank):
    # Rows were weighted and rounded before they cancelled: in half of such cases one of the bounds was false.
    for seed in range(8):
        A, b = data(30, 3, seed=seed, noise=noise)
        weights = np.random.default_rng(seed).uniform(0.1, 5.0, 30 // rank)
        fit = qb.l4_regression(A, b, weights, groups=None if rank == 1 else rank)
        found = weighted(A, b, fit.x, weights, rank)
        assert fit.proved
        assert Fraction(fit.lower_bound) ** 4 <= found <= Fraction(fit.fun) ** 4
        assert fit.gap <= max(1e-8, 1e-19 / noise)


def weighted(A, b, x, weights, rank):
    """Return Σ w_g‖A_g x − b_g‖⁴ as a fraction."""
    x = [Fraction(float(one)) for one in x]
    squares = [
        (sum(Fraction(a) * xj for a, xj in zip(row, x, strict=True)) - Fraction(bi)) ** 2
        for row, bi in zip(A.tolist(), b.tolist(), strict=True)
    ]
    terms = [sum(squares[i : i + rank]) for i in range(0, len(squares), rank)]
    return sum(Fraction(w) * term**2 for w, term in zip(weights.tolist(), terms, strict=True))


@pytest.mark.parametrize("shift", [1e-3, 1e-7])
def test_the_price_of_rounded_weights_is_that_of_nearly_dependent_columns(shift):
    A, b = data(40, 3, seed=9)
    A[:, 2] = A[:, 0] + shift * A[:, 2]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    fit = qb.l4_regression(A, b, weights, rel_gap=1e-12)
    small, wide = 1e-15, 1e-15 / shift
    assert fit.lower_bound <= float(weighted(A, b, fit.x, weights, 1)) ** 0.25 * (1.0 + 1e-15)
    assert small <= fit.gap <= 1e-12 + 1e3 * wide


@pytest.mark.parametrize("size", [1e-150, 1e-120, 1e120, 1e150])
def test_small_and_large_numbers_are_no_exact_fit(size):
    # Their squares underflow, and the fit was said to be exact.
    fit = qb.l4_regression(size * np.ones((3, 1)), size * np.array([0.0, 1.0, 5.0]))
    assert fit.status == "converged"
    assert fit.fun == pytest.approx(3.0153455636291 * size, rel=1e-12)
    assert exactly(size * np.ones((3, 1)), size * np.array([0.0, 1.0, 5.0]), fit.x) <= Fraction(fit.fun) ** 4


@pytest.mark.parametrize("size", [1e8, 1e12, 1e20])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_columns_in_other_units_are_no_exact_fit(size, wrap):
    # The product of ‖A‖ and ‖x‖ is large then, and its rounding was taken for that of the residual.
    A, b = data(60, 3)
    units = np.array([1.0 / size, 1.0, size])
    fit, same = qb.l4_regression(wrap(A * units), b), qb.l4_regression(A, b)
    assert fit.status == same.status == "converged"
    assert fit.fun == pytest.approx(same.fun, rel=1e-7)
    np.testing.assert_allclose(fit.x * units, same.x, rtol=1e-3, atol=1e-5)
    assert qb.l4_regression(wrap(A * units), A.sum(axis=1)).status == "exact"


def test_units_too_far_apart_are_one_clear_error():
    A, b = data(30, 3)
    with pytest.raises(qb.ProblemError, match="A must have columns in units that are closer"):
        qb.l4_regression(A * [1e-100, 1.0, 1e100], b)


def test_columns_of_zeros_leave_b_and_that_is_certified():
    # It was called an exact fit, with a gap of 1.
    A, b = np.zeros((7, 2)), np.arange(1.0, 8.0)
    fit = qb.l4_regression(A, b)
    assert (fit.status, fit.success, fit.proved) == ("converged", True, True)
    assert fit.gap <= 1e-14
    np.testing.assert_array_equal(fit.x, [0.0, 0.0])
    assert Fraction(fit.lower_bound) ** 4 <= exactly(A, b, fit.x) <= Fraction(fit.fun) ** 4
    assert qb.l4_regression(A, b, rel_gap=1e-18).status == "stalled"
    assert qb.l4_regression(A, np.zeros(7)).status == "exact"


def test_aims_with_the_labels_of_the_rows_in_another_order_are_an_error():
    A, b = data(30, 3)
    rows, aims = pandas.DataFrame(A), pandas.Series(b)
    assert qb.l4_regression(rows, aims).fun == qb.l4_regression(A, b).fun
    with pytest.raises(qb.ProblemError, match="b must have its entries in the order of the rows of A"):
        qb.l4_regression(rows, aims.sort_values())


def test_dates_are_no_numbers():
    with pytest.raises(qb.ProblemError, match="b must be an array of numbers, found dtype datetime64"):
        qb.l4_regression(np.eye(3), pandas.Series(pandas.date_range("2020", periods=3)))


@pytest.mark.parametrize("size", [1e-170, 1e200])
def test_numbers_out_of_range_are_refused(size):
    for A, b, name in ((size, 1.0, "A"), (1.0, size, "b")):
        with pytest.raises(qb.ProblemError, match=f"{name} must have a largest entry between 1e-151 and 1e.151"):
            qb.l4_regression(A * np.ones((3, 1)), b * np.array([0.0, 1.0, 5.0]))


@pytest.mark.parametrize("step", [2.0**-52, 1e-14])
def test_nothing_is_proved_where_columns_are_left_out(step):
    # The third column differs from the first in one row alone: exactly, large coefficients fit that row at no cost.
    A, b = data(30, 3, seed=5)
    A[:, 2] = A[:, 0]
    A[3, 2] *= 1.0 + step
    b[3] = 50.0
    fit = qb.l4_regression(A, b)
    without = qb.l4_regression(np.delete(A[:, :2], 3, axis=0), np.delete(b, 3))
    assert "2 are independent" in fit.message
    assert without.proved
    assert without.fun < fit.lower_bound
    assert not fit.proved


def test_columns_of_zeros_are_left_out_exactly():
    A, b = data(30, 3, seed=5)
    fit = qb.l4_regression(np.insert(A, 1, 0.0, axis=1), b)
    assert fit.proved
    assert fit.status == "converged"
