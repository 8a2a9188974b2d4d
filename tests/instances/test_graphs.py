import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from quartbench import instances as qi

GRAPHS = {
    "geometric": (80, qi.geometric_edges(80, 3, 6, seed=1)),
    "scattered geometric": (80, qi.geometric_edges(80, 2, 1, seed=1)),
    "complete geometric": (12, qi.geometric_edges(12, 5, 11)),
    "line": (50, qi.geometric_edges(50, 1, 2)),
    "regular": (50, qi.regular_edges(50, 3, seed=2)),
    "dense regular": (20, qi.regular_edges(20, 15)),
    "cycle": (20, qi.regular_edges(20, 2)),
    "ring": (11, qi.ring_edges(11, 5)),
    "barbell": (15, qi.barbell_edges(15)),
    "long barbell": (16, qi.barbell_edges(16, 7)),
    "grid": (64, qi.grid_edges(4, 3)),
}


def _degrees(points, edges):
    return np.bincount(edges.ravel(), minlength=points)


def _components(points, edges):
    return connected_components(coo_matrix((np.ones(len(edges)), edges.T), shape=(points, points)), directed=False)[0]


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_simple_connected_and_in_lexicographic_order(name):
    points, edges = GRAPHS[name]
    assert edges.dtype == np.int64
    assert edges.min() == 0
    assert edges.max() == points - 1
    assert (edges[:, 0] < edges[:, 1]).all()
    assert (np.diff(edges[:, 0] * points + edges[:, 1]) > 0).all()
    assert _components(points, edges) == 1


@pytest.mark.parametrize("maker", ["geometric", "regular", "ring", "barbell"])
def test_problems_use_exactly_these_edges(maker):
    arguments = {"geometric": {"dim": 3, "degree": 4}, "regular": {"degree": 4}}.get(maker, {})
    edges = getattr(qi, f"{maker}_edges")(points=20, **arguments)
    np.testing.assert_array_equal(qi.make(maker, points=20, **arguments).form.edges, edges)


def test_geometric_graphs_join_the_nearest_pairs():
    place = qi.geometric_points(200, 3, seed=5)
    edges = qi.geometric_edges(200, 3, 12, seed=5)
    joined = np.zeros((200, 200), dtype=bool)
    joined[edges[:, 0], edges[:, 1]] = True
    distance = squareform(pdist(place))
    upper = np.triu_indices(200, 1)
    assert len(edges) == 1200
    assert distance[joined].max() <= distance[upper][~joined[upper]].min()


def test_connecting_a_geometric_graph_adds_one_edge_a_component_at_most():
    points = 300
    edges = qi.geometric_edges(points, 2, 2, seed=3)
    place = qi.geometric_points(points, 2, seed=3)
    length = np.linalg.norm(place[edges[:, 0]] - place[edges[:, 1]], axis=1)
    shortest = edges[np.argsort(length)[:points]]
    apart = _components(points, shortest)
    assert apart > 10
    assert len(edges) - points == apart - 1


def test_geometric_solutions_are_the_points_themselves():
    problem = qi.geometric(40, 2, 5, seed=8)
    place = qi.geometric_points(40, 2, seed=8)
    np.testing.assert_allclose(problem.solution.reshape(40, 2), place - place.mean(axis=0), atol=1e-15)


@given(points=st.integers(3, 24), degree=st.integers(2, 23), seed=st.integers(0, 3))
def test_regular_graphs_have_the_same_degree_everywhere(points, degree, seed):
    assume(degree < points and points * degree % 2 == 0)
    edges = qi.regular_edges(points, degree, seed)
    np.testing.assert_array_equal(_degrees(points, edges), degree)
    assert len(np.unique(edges, axis=0)) == points * degree // 2
    assert _components(points, edges) == 1


def test_regular_graphs_of_half_the_complete_degree_are_simple():
    edges = qi.regular_edges(201, 100)
    np.testing.assert_array_equal(_degrees(201, edges), 100)
    assert len(np.unique(edges, axis=0)) == len(edges)


def test_rings_reach_their_neighbours():
    np.testing.assert_array_equal(qi.ring_edges(4), [(0, 1), (0, 3), (1, 2), (2, 3)])
    np.testing.assert_array_equal(_degrees(11, qi.ring_edges(11, 3)), 6)


@pytest.mark.parametrize(("points", "bridge"), [(4, 1), (9, 1), (10, 1), (10, 2), (11, 6), (12, 9)])
def test_barbells_are_two_complete_graphs_and_a_path(points, bridge):
    edges = qi.barbell_edges(points, bridge)
    left = (points - bridge + 2) // 2
    right = points - bridge + 1 - left
    assert left - right in (0, 1)
    assert right >= 2
    assert len(edges) == left * (left - 1) // 2 + right * (right - 1) // 2 + bridge
    gap = np.diff(edges, axis=1).ravel()
    between = (edges[:, 0] >= left - 1) & (edges[:, 1] <= left - 1 + bridge)
    np.testing.assert_array_equal(gap[between], 1)
    assert between.sum() == bridge


def test_cutting_a_bridge_of_a_barbell_parts_it():
    edges = qi.barbell_edges(12, 3)
    assert [_components(12, np.delete(edges, i, axis=0)) for i in range(len(edges))].count(2) == 3


def test_grids_join_neighbours_of_the_lattice():
    np.testing.assert_array_equal(qi.grid_edges(2, 2), [(0, 1), (0, 2), (1, 3), (2, 3)])
    edges = qi.grid_edges(5, 3)
    assert len(edges) == 3 * 4 * 25
    corners = np.stack(np.unravel_index(edges, (5, 5, 5)), axis=-1)
    np.testing.assert_array_equal(np.abs(np.diff(corners, axis=1)).sum(axis=(1, 2)), 1)
    assert qi.grid(3, 2).form.shape == (9, 2)


def test_a_hundred_thousand_points_are_no_trouble():
    points = 100_000
    edges = qi.geometric_edges(points)
    assert points * 5 <= len(edges) <= points * 5.01
    assert _components(points, edges) == 1
    edges = qi.regular_edges(points, 10)
    np.testing.assert_array_equal(_degrees(points, edges), 10)
