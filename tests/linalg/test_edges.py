"""Lists of edges say what loops over the edges say."""

import numpy as np
import pytest

from quartbench.linalg.edges import adjacency, in_order, incidence

EDGES = np.array([[3, 1], [0, 2], [4, 0], [2, 1], [0, 1], [4, 3]])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint64])
def test_edges_come_in_lexicographic_order_with_the_lesser_end_first(dtype):
    low, high, order = in_order(EDGES.astype(dtype))
    expected = sorted((min(pair), max(pair)) for pair in EDGES.tolist())
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == expected
    assert [tuple(sorted(EDGES[k].tolist())) for k in order] == expected
    assert low.dtype == high.dtype == np.int64


def test_edges_that_are_in_order_are_not_sorted_again():
    ordered = np.array(sorted(tuple(sorted(pair)) for pair in EDGES.tolist()))
    low, high, order = in_order(ordered[:, ::-1])  # which end is named first does not matter
    assert order is None
    np.testing.assert_array_equal(np.stack([low, high], axis=1), ordered)


@pytest.mark.parametrize(
    "edges", [[[0, 1], [0, 3], [0, 2]], [[1, 2], [0, 3]], [[0, 2], [1, 3], [1, 2]]], ids=["ends", "starts", "last"]
)
def test_one_edge_out_of_order_is_seen(edges):
    low, high, order = in_order(np.array(edges))
    assert order is not None
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == sorted(map(tuple, edges))


def test_edges_given_twice_stand_beside_each_other():
    low, high, order = in_order(np.array([[1, 0], [0, 1], [1, 2]]))
    assert order is None
    assert low.tolist() == [0, 0, 1]
    assert high.tolist() == [1, 1, 2]


def test_a_vertex_lists_the_edges_it_heads_and_then_those_it_ends():
    heads, tails = EDGES.T
    indptr, neighbours, incident = incidence(heads, tails, 6)
    for vertex in range(6):
        expected = [(tails[k], k) for k in range(6) if heads[k] == vertex]
        expected += [(heads[k], k) for k in range(6) if tails[k] == vertex]
        here = slice(indptr[vertex], indptr[vertex + 1])
        assert list(zip(neighbours[here], incident[here], strict=True)) == expected
    assert indptr.dtype == neighbours.dtype == incident.dtype == np.int64


def test_the_adjacency_matrix_is_one_where_an_edge_is():
    expected = np.zeros((6, 6))
    for i, j in EDGES:
        expected[i, j] = expected[j, i] = 1.0
    np.testing.assert_array_equal(adjacency(6, EDGES).toarray(), expected)
