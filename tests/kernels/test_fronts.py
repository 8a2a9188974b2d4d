"""Kernels of the sparse factor agree with elimination in sets and with dense linear algebra."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, shortest_path

from quartbench.kernels import fronts
from quartbench.linalg.dissection import Dissection


def random_pattern(points, seed, share=0.1):
    """Return a symmetric pattern without diagonal, connected or not."""
    half = sp.csr_matrix(np.triu(np.random.default_rng(seed).random((points, points)) < share, 1), dtype=float)
    return (half + half.T).tocsr()


def pattern_of(matrix):
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)


def columns_of_factor(matrix):
    """Return what lies below the diagonal in each column of the factor, as sets."""
    below = [set(matrix[j].indices[matrix[j].indices > j].tolist()) for j in range(matrix.shape[0])]
    for column in below:
        if column:
            below[min(column)] |= column - {min(column)}
    return below


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_tree_and_counts_are_those_of_the_factor(points, seed):
    matrix = random_pattern(points, seed)
    below = columns_of_factor(matrix)
    parent = fronts.elimination_tree(*pattern_of(matrix))
    assert parent.tolist() == [min(column, default=-1) for column in below]
    assert fronts.column_counts(*pattern_of(matrix), parent).tolist() == [len(column) + 1 for column in below]


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_a_postorder_keeps_subtrees_together_and_the_fill_as_it_was(points, seed):
    matrix = random_pattern(points, seed)
    parent = fronts.elimination_tree(*pattern_of(matrix))
    order = fronts.postorder(parent)
    assert sorted(order) == list(range(points))
    again = fronts.elimination_tree(*pattern_of(matrix[order][:, order]))
    place = np.argsort(order)
    np.testing.assert_array_equal(again, np.where(parent[order] < 0, -1, place[parent[order]]))
    sizes = np.ones(points, dtype=int)
    for j in range(points):
        if again[j] >= 0:
            sizes[again[j]] += sizes[j]
    for j in range(points):
        inside = range(j - sizes[j] + 1, j)
        assert all(j - sizes[j] < again[i] <= j for i in inside)


@given(st.integers(2, 40), st.integers(0, 10**6), st.integers(1, 12), st.floats(0.0, 0.5))
def test_fronts_lie_on_paths_of_the_tree_and_keep_to_their_share_of_zeros(points, seed, small, share):
    matrix = random_pattern(points, seed)
    order = fronts.postorder(fronts.elimination_tree(*pattern_of(matrix)))
    matrix = matrix[order][:, order]
    parent = fronts.elimination_tree(*pattern_of(matrix))
    counts = fronts.column_counts(*pattern_of(matrix), parent)
    starts = fronts.amalgamate(parent, counts, small, share)
    assert (starts[0], starts[-1]) == (0, points - 1)
    for start, stop in itertools.pairwise(starts):
        assert all(start < parent[j] < stop for j in range(start, stop - 1))
        size = stop - start + counts[stop - 1] - 1
        zeros = sum(size - (j - start) - counts[j] for j in range(start, stop))
        assert zeros >= 0
        if stop - start > small:
            assert zeros <= share * (stop - start) * size


def test_without_slack_fronts_are_columns_of_one_pattern():
    matrix = random_pattern(60, 3, 0.05)
    order = fronts.postorder(fronts.elimination_tree(*pattern_of(matrix)))
    matrix = matrix[order][:, order]
    below = columns_of_factor(matrix)
    parent = fronts.elimination_tree(*pattern_of(matrix))
    starts = fronts.amalgamate(parent, fronts.column_counts(*pattern_of(matrix), parent), 1, 0.0)
    for start, stop in itertools.pairwise(starts):
        for j in range(start, stop - 1):
            assert below[j] == below[j + 1] | {j + 1}


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_the_widest_level_is_that_of_a_breadth_first_search(points, seed):
    matrix = random_pattern(points, seed, 0.08)
    levels = shortest_path(matrix, unweighted=True)
    _, label = connected_components(matrix, directed=False)
    roots = [int(np.flatnonzero(label == piece)[0]) for piece in np.unique(label)]
    widest = max(int(np.bincount(levels[root][np.isfinite(levels[root])].astype(int)).max()) for root in roots)
    assert fronts.widest_level(*pattern_of(matrix)) == widest


@pytest.mark.parametrize("points", [2, 30, 150])
def test_panels_hold_the_cholesky_factor(points):
    """Complete graphs are one front, of several blocks of pivots at the largest: its panel is the factor itself."""
    edges = np.stack(np.triu_indices(points, 1), axis=1)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(edges))
    joint = Dissection(points, edges)
    degrees = np.bincount(edges.ravel(), np.repeat(weights, 2))
    places = joint.starts, joint.pointers, joint.offsets, joint.parents, joint.relative, joint.indptr, joint.spots
    diagonal, blocks = degrees[joint.order].reshape(-1, 1, 1), weights.reshape(-1, 1, 1)
    definite, panels = fronts.factor(*places, joint.links, diagonal, blocks)
    matrix = np.diag(degrees)
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = -weights
    matrix = matrix[joint.order][:, joint.order][:-1, :-1]
    found = np.triu(panels.reshape(points - 1, points)[:, :-1])
    np.fill_diagonal(found, 1.0 / found.diagonal())
    assert definite
    np.testing.assert_allclose(found, scipy.linalg.cholesky(matrix), rtol=1e-10, atol=1e-13)


def test_an_indefinite_matrix_is_noticed():
    joint = Dissection(3, np.array([[0, 1], [1, 2]]))
    places = joint.starts, joint.pointers, joint.offsets, joint.parents, joint.relative, joint.indptr, joint.spots
    assert not fronts.factor(*places, joint.links, np.zeros((3, 1, 1)), np.ones((2, 1, 1)))[0]
