"""Graphs with weights, and fixed points: the same as graphs without them where that is the same."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import quartbench as qb
from quartbench.regression import edge_rows, placement

RNG = np.random.default_rng(0)
EDGES = np.array([(i, j) for i in range(8) for j in range(i + 1, 8) if (i * j) % 3 != 1])


def test_unit_weights_are_the_graph_itself():
    c = RNG.standard_normal((8, 2))
    c -= c.mean(axis=0)
    free = qb.solve(qb.Problem(qb.GraphForm(8, 2, EDGES), c), rel_gap=1e-10)
    held = qb.solve(edge_rows(8, 2, EDGES)[:, :-2], c[:-1].reshape(-1), rank=2, rel_gap=1e-10)
    assert held.fun == pytest.approx(free.fun, rel=1e-9)
    x = np.vstack([held.x.reshape(-1, 2), np.zeros(2)])
    np.testing.assert_allclose(x - x.mean(axis=0), free.x, rtol=1e-4, atol=1e-6)


def test_a_weight_is_that_of_the_fourth_power():
    weights = RNG.uniform(0.5, 2.0, len(EDGES))
    form = qb.StackedForm(edge_rows(8, 3, EDGES, weights), rank=3)
    x = RNG.standard_normal((8, 3))
    lengths = np.linalg.norm(x[EDGES[:, 0]] - x[EDGES[:, 1]], axis=1)
    assert form.value(x.reshape(-1)) == pytest.approx(weights @ lengths**4)


def test_points_are_placed_as_scipy_places_them():
    positions = RNG.standard_normal((8, 2))
    positions[3:] = np.nan
    weights = RNG.uniform(0.5, 2.0, len(EDGES))
    found = placement(positions, EDGES, weights)
    assert found.gap <= 1e-8
    np.testing.assert_array_equal(found.points[:3], positions[:3])

    def value(x):
        points = np.vstack([positions[:3], x.reshape(-1, 2)])
        difference = points[EDGES[:, 0]] - points[EDGES[:, 1]]
        return float(weights @ (difference**2).sum(axis=1) ** 2)

    start = RNG.standard_normal(10)
    other = minimize(value, start, method="BFGS", options={"gtol": 1e-9})
    assert found.fun**4 == pytest.approx(other.fun, rel=1e-7)
    assert value(found.points[3:].reshape(-1)) <= found.fun**4 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("positions", "edges", "weights", "message"),
    [
        ([0.0, np.nan], [(0, 1)], None, r"positions must have shape \(N, d\)"),
        ([[np.nan], [np.nan]], [(0, 1)], None, "finite for some points"),
        ([[0.0], [1.0]], [(0, 1)], None, "NaN for some to be placed"),
        ([[0.0], [np.nan], [np.nan]], [(0, 1)], None, "found that point 2 is not"),
        ([[0.0], [np.nan]], [(0, 2)], None, "edges must join two of the points 0 to 1"),
        ([[0.0], [np.nan]], [0, 1], None, r"edges must be whole numbers of shape \(m, 2\)"),
        ([[0.0], [np.nan]], [(0, 1)], [-1.0], "weights must be 1 positive numbers"),
    ],
)
def test_what_cannot_be_placed_is_said(positions, edges, weights, message):
    with pytest.raises(qb.ProblemError, match=message):
        placement(positions, edges, weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_proved_is_true_of_the_points_where_these_leave_rounding_alone(weighted):
    # Fixed points times the roots of weights, and differences of fixed points, were rounded before they cancelled.
    for seed in range(30):
        rng = np.random.default_rng(seed)
        positions, count = rng.standard_normal((7, 2)), int(rng.integers(1, 6))
        positions[count:] = np.nan
        edges = [(int(rng.integers(0, i)), i) for i in range(1, 7)] + [(0, 6), (0, 5), (1, 6)]
        edges = list(dict.fromkeys(edges))
        weights = 10.0 ** rng.uniform(-20.0, 20.0, len(edges)) if weighted else None
        fits = [placement(positions, edges, weights, rel_gap=rel_gap) for rel_gap in (1e-3, 1e-12)]
        found = [length(fit.points, edges, weights) for fit in fits]
        for fit, one in zip(fits, found, strict=True):
            assert fit.proved
            assert one <= Fraction(fit.fun) ** 4
            assert Fraction(fit.lower_bound) ** 4 <= min(found)


def length(points, edges, weights):
    """Return Σ w‖xᵢ − xⱼ‖⁴ as a fraction."""
    places = [[Fraction(float(one)) for one in point] for point in points]
    squares = [sum((a - b) ** 2 for a, b in zip(places[i], places[j], strict=True)) for i, j in edges]
    weights = np.ones(len(edges)) if weights is None else weights
    return sum(Fraction(float(weight)) * square**2 for weight, square in zip(weights, squares, strict=True))
