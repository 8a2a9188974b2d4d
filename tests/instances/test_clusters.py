import numpy as np
import pytest

from quartbench.cones import Orthant
from quartbench.forms import GramForm
from quartbench.instances import partition_similarity, planted_partition


@pytest.mark.parametrize(("p_in", "p_out"), [(0.6, 0.05), (1.0, 0.0), (0.02, 0.0), (0.0, 0.0), (0.3, 0.3)])
def test_similarities_are_symmetric_nonnegative_and_positive_semidefinite(p_in, p_out):
    matrix, _ = partition_similarity(60, 4, p_in, p_out, seed=1)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix.min() >= 0.0
    assert np.linalg.eigvalsh(matrix).min() >= -1e-13
    np.testing.assert_array_equal(np.diag(matrix), 1.0)


def test_clusters_are_even_and_in_random_order():
    labels = partition_similarity(62, 4, 0.5, 0.1).labels
    assert sorted(np.bincount(labels)) == [15, 15, 16, 16]
    assert (np.diff(labels) < 0).any()


def test_edges_are_as_frequent_as_asked_for():
    matrix, labels = partition_similarity(600, 3, 0.4, 0.05)
    joined, same = matrix > 0.0, labels[:, None] == labels
    np.fill_diagonal(joined, False)
    np.testing.assert_allclose(joined[~same].mean(), 0.05, atol=0.005)
    np.testing.assert_allclose(joined[same].mean(), 0.4, atol=0.01)


def test_clusters_show_in_the_leading_eigenvectors():
    matrix, labels = partition_similarity(90, 3, 0.7, 0.05)
    leading = np.linalg.eigh(matrix)[1][:, -3:]
    centres = np.stack([leading[labels == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(leading[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.95


def test_the_problem_is_the_first_dc_step_of_symmetric_nmf():
    n, clusters = 30, 3
    problem = planted_partition(n, clusters, 0.6, 0.1, seed=2)
    assert isinstance(problem.form, GramForm)
    assert isinstance(problem.cone, Orthant)
    matrix, _ = partition_similarity(n, clusters, 0.6, 0.1, seed=2)
    start = np.linalg.solve(matrix, problem.c.reshape(n, clusters) / 4.0)
    assert start.min() >= -1e-12
    assert start.max() <= 2.0 * np.sqrt(matrix.mean() / clusters)
    assert not problem.trivial
