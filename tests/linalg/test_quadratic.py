"""Is the minimiser of a quadratic over the ice-cream cone optimal? By its own conditions: x and Hx − q in it, ⊥."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quartbench.cones import SecondOrder
from quartbench.linalg.quadratic import boundary_refined, second_order_minimiser

SEEDS = st.integers(0, 2**32 - 1)


def depth(x):
    """Return how far x is inside the cone."""
    return x[0] - np.linalg.norm(x[1:])


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.integers(2, 12), st.floats(-2.0, 2.0))
def test_it_is_optimal(seed, n, units):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n + 2, n)) * 10.0 ** (units * rng.uniform(-1.0, 1.0, n))
    matrix, q = rows.T @ rows, rows.T @ rng.standard_normal(n + 2)
    x = second_order_minimiser(np.tril(matrix), q)
    slack = matrix @ x - q
    size = np.linalg.norm(q) * max(np.linalg.norm(x), 1e-300)
    assert depth(x) >= -1e-8 * np.linalg.norm(x)
    assert depth(slack) >= -1e-7 * np.linalg.norm(q)
    assert abs(slack @ x) <= 1e-7 * size


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(2, 12), st.floats(4.0, 14.0))
def test_it_is_optimal_where_one_row_hides_the_others(seed, n, digits):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n + 2, n))
    rows[0, 0] = 1.5 * np.linalg.norm(rows[0, 1:])  # positive on the cone
    rows[0] *= 10.0**digits
    matrix, q = rows.T @ rows, rows[0] + 0.5 * np.linalg.norm(rows[0]) * rng.standard_normal(n)
    x = second_order_minimiser(np.tril(matrix), q)
    slack = matrix @ x - q
    assert depth(x) >= -1e-8 * np.linalg.norm(x)
    assert depth(slack) >= -1e-6 * np.linalg.norm(q)
    assert abs(slack @ x) <= 1e-6 * np.linalg.norm(q) * np.linalg.norm(x)


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(2, 12), st.floats(4.0, 16.0), st.sampled_from([-1.0, 0.0, 1.0]))
def test_it_is_optimal_where_its_multiplier_is_next_to_a_pole(seed, n, digits, side):
    # Of H = I the eigenvector in the cone is the axis, of which q has almost nothing.
    rng = np.random.default_rng(seed)
    q = rng.standard_normal(n)
    q[0] = side * 10.0**-digits
    x = second_order_minimiser(np.eye(n), q)
    half = 0.5 * (q[0] + np.linalg.norm(q[1:]))
    np.testing.assert_allclose(x, np.append(half, half * q[1:] / np.linalg.norm(q[1:])), rtol=1e-12)


def test_inside_it_is_that_of_the_whole_space_and_in_the_polar_cone_zero():
    np.testing.assert_allclose(second_order_minimiser(np.diag([1.0, 2.0]), np.array([3.0, 1.0])), [3.0, 0.5])
    np.testing.assert_array_equal(second_order_minimiser(np.eye(3), np.array([-2.0, 1.0, 0.0])), np.zeros(3))


def test_a_coordinate_without_curvature_is_moved_to_the_boundary():
    x = second_order_minimiser(np.diag([1.0, 1.0, 0.0]), np.array([3.0, 1.0, 1.0]))
    assert np.isfinite(x).all()
    assert abs(depth(x)) <= 1e-6 * np.linalg.norm(x)
    rest = second_order_minimiser(np.diag([1.0, 1.0, 0.0]), np.array([1.0, 3.0, 0.0]))
    np.testing.assert_allclose(rest, [2.0, 2.0, 0.0], atol=1e-6)


def test_a_matrix_that_is_not_definite_has_none():
    assert second_order_minimiser(np.diag([1.0, -1.0]), np.ones(2)) is None


@given(SEEDS, st.integers(2, 6))
def test_the_limit_is_where_a_line_leaves_the_cone(seed, n):
    rng = np.random.default_rng(seed)
    cone = SecondOrder()
    point = cone.euclidean(np.append(2.0, rng.standard_normal(n - 1)))
    point[0] += rng.uniform(0.0, 1.0)
    h = rng.standard_normal(n)
    limit = cone.limit(point, h)
    assert limit >= 0.0
    assert depth(point + 0.999 * min(limit, 1e3) * h) >= -1e-9
    if limit < 1e6:
        assert depth(point + (1.001 * limit + 1e-9) * h) < 1e-6
    else:
        assert depth(h) >= -1e-5


@pytest.mark.parametrize("seed", range(5))
def test_newtons_direction_minimises_the_model_in_the_cone(seed):
    rng = np.random.default_rng(seed)
    cone, rows = SecondOrder(), rng.standard_normal((9, 4))
    hessian, r = np.asfortranarray(rows.T @ rows), rng.standard_normal(4)
    point = cone.euclidean(np.append(1.0, rng.standard_normal(3)))
    e = cone.newton_direction(hessian, r, point)
    model = lambda e: 0.5 * e @ hessian @ e - r @ e  # noqa: E731
    assert depth(point + e) >= -1e-9
    for other in rng.standard_normal((200, 4)):
        assert model(e) <= model(cone.euclidean(point + e + 0.1 * other) - point) + 1e-9


def test_a_step_whose_square_is_no_number_is_left_as_it_is():
    # Newton's method on the equations of the boundary went there, for a row of 1e28 beside others.
    point = 1e200 * np.array([1.0, 0.6, -0.7])
    step = np.zeros(3)
    np.testing.assert_array_equal(boundary_refined(np.eye(3), -point, point, step), step)


def test_a_step_to_zero_is_left_as_it_is():
    point = np.array([1.0, 1.0])
    np.testing.assert_array_equal(boundary_refined(np.eye(2), -point, point, -point), -point)
