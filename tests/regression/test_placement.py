"""Graphs with weights, and fixed points: the same as graphs without them where that is the same."""

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
