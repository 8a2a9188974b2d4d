"""Ours and the peers of ℓ4 regression reach the same norm, and a peer ends where it is told to."""

import math

import numpy as np
import pytest

from quartbench.errors import ProblemError
from quartbench.regression import l4_regression, methods
from quartbench.regression.data import REGRESSIONS, regression_gaussian
from quartbench.regression.methods import EndedError, Goal, Irls, Lbfgs, Ours, Watch, least_norm

SETTINGS = [("irls", "lstsq"), ("irls", "normal"), ("scipy-lbfgs", "lstsq"), ("scipy-lbfgs", "normal")]


def norm(A, b, x):
    return float((((A @ x - b).astype(np.longdouble)) ** 4).sum() ** 0.25)


def test_a_bound_below_every_norm_is_within_1e_11_of_the_least():
    A, b = regression_gaussian(300, 7)
    least, other = least_norm(A, b), Irls().fit(A, b, Goal(1e-15, 0.0, max_iter=30))
    assert least <= norm(A, b, other.x) <= least * (1.0 + 1e-11)


@pytest.mark.parametrize(("name", "least_squares"), SETTINGS)
@pytest.mark.parametrize("cond", [1.0, 1e3])
def test_peers_end_at_their_first_point_within_the_gap(name, least_squares, cond):
    A, b = regression_gaussian(400, 8, cond, seed=1)
    target = least_norm(A, b) * (1.0 + 1e-7)
    found = methods()[name](least_squares=least_squares).fit(A, b, Goal(1e-7, target))
    assert found.status == "converged"
    assert norm(A, b, found.x) <= target * (1.0 + 1e-14)
    assert min(found.norms[:-1]) > target >= found.norms[-1]
    assert np.diff(found.seconds).min() >= 0.0
    # Both start at the least-squares fit.
    start = np.linalg.lstsq(A, b, rcond=None)[0]
    assert found.norms[0] == pytest.approx(norm(A, b, start), rel=1e-12)


def test_reweighted_least_squares_take_newtons_steps():
    A, b = regression_gaussian(300, 7)
    limit = Goal(1e-15, 0.0, max_iter=2)
    start, found = np.linalg.lstsq(A, b, rcond=None)[0], Irls().fit(A, b, limit)
    r = b - A @ start
    newton = start + np.linalg.solve(12.0 * A.T @ (r[:, None] ** 2 * A), 4.0 * A.T @ r**3)
    assert found.norms[1] == pytest.approx(norm(A, b, newton), rel=1e-12)
    assert found.norms[1] < found.norms[0]


def test_the_conic_program_has_the_minimiser_of_the_norm():
    pytest.importorskip("clarabel")
    A, b = regression_gaussian(200, 5, seed=2)
    found = methods()["clarabel"]().fit(A, b, Goal(1e-9, least_norm(A, b) * (1.0 + 1e-9)))
    assert found.status == "converged"
    np.testing.assert_allclose(found.x, l4_regression(A, b, rel_gap=1e-12).x, atol=1e-4)


def test_ours_is_the_whole_call_with_its_certificate():
    A, b = regression_gaussian(300, 7)
    found = Ours().fit(A, b, Goal(1e-8, math.inf))
    assert found.certified.gap <= 1e-8
    assert found.norms == [found.certified.fun]


def test_what_a_peer_may_take_ends_it():
    A, b = regression_gaussian(300, 7)
    assert Lbfgs().fit(A, b, Goal(1e-8, 0.0, max_iter=5)).status == "max_iter"
    assert Irls().fit(A, b, Goal(1e-8, 0.0, time_limit=0.0)).status == "time_limit"
    watch = Watch(Goal(1e-8, 1.0))
    watch.see(np.array([2.0]), 2.0)
    watch.see(np.array([3.0]), 3.0)
    with pytest.raises(EndedError, match="converged"):
        watch.see(np.array([1.0]), 1.0)
    assert (watch.x, watch.norms) == ([1.0], [2.0, 3.0, 1.0])


def test_data_are_seeded_and_of_the_condition_that_is_asked_for():
    first, again = (regression_gaussian(60, 6, 1e4, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])
    assert np.linalg.cond(first[0]) == pytest.approx(1e4, rel=1e-6)
    assert not np.array_equal(first[1], regression_gaussian(60, 6, 1e4, seed=4)[1])
    rows, aims = REGRESSIONS["regression_polynomial"](50, 3)
    assert rows.shape == (50, 4)
    assert aims.min() >= 0.0
    for wrong in ({"m": 3, "n": 5}, {"m": 5, "n": 3, "cond": 0.5}, {"m": 5, "n": 0}):
        with pytest.raises(ProblemError):
            regression_gaussian(**wrong)
    with pytest.raises(ProblemError, match="m must be more than the 4 coefficients"):
        REGRESSIONS["regression_polynomial"](4, 3)
