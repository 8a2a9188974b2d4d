"""Symmetric NMF: nonnegative factors, clusters, indefinite matrices, and what labels are worth."""

import numpy as np
import pytest
import scipy.sparse as sp

import quartbench as qb
from quartbench import ProblemError, inverse
from quartbench.instances.clusters import partition_similarity
from quartbench.inverse.matrices import least_eigenvalue
from quartbench.kernels import coordinates, factors

NAMES = [
    "cd",
    "projected-lbfgs",
    "dc",
    "dc-accelerated",
    "nolips",
    "projected-bb",
    "symhals",
    "symnmf-cd",
    "scipy-lbfgs",
]


def separable(n=40, r=4, seed=0):
    """A matrix that is XXᵀ exactly, for a sparse X ≥ 0."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, r)) * (rng.random((n, r)) < 0.4)
    return truth @ truth.T, truth


def test_an_exact_factor_is_found_up_to_the_order_of_its_columns():
    matrix, truth = separable()
    found = inverse.symnmf(matrix, 4, restarts=5, tol=1e-9, max_iter=5000)
    assert found.residual < 1e-4
    similar = (found.x / np.linalg.norm(found.x, axis=0)).T @ (truth / np.linalg.norm(truth, axis=0))
    assert np.allclose(similar.max(axis=0), 1.0, atol=1e-2)
    assert (found.x >= 0.0).all()


def test_planted_clusters_are_found_dense_or_sparse():
    matrix, labels = partition_similarity(90, 3, 0.5, 0.05, seed=0)
    for given in (matrix, sp.csr_matrix(matrix)):
        found = inverse.symnmf(given, 3, restarts=2)
        assert inverse.clustering_accuracy(found.labels, labels) > 0.95
        assert inverse.normalised_mutual_information(found.labels, labels) > 0.8


def test_dense_and_sparse_matrices_give_the_same_steps():
    matrix, _ = partition_similarity(40, 2, 0.5, 0.1, seed=1)
    dense, sparse = inverse.symnmf(matrix, 2, max_iter=20), inverse.symnmf(sp.csr_matrix(matrix), 2, max_iter=20)
    assert np.allclose(dense.x, sparse.x, rtol=1e-8, atol=1e-10)


def test_an_indefinite_matrix_is_fitted_as_it_is():
    matrix, labels = partition_similarity(60, 3, 0.6, 0.05, seed=2)
    matrix = matrix - np.diag(np.diag(matrix))
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    found = inverse.symnmf(matrix, 3, restarts=3)
    assert (np.diff(found.history.value) <= 1e-12 * found.history.value[0]).all()
    assert found.status in ("stationary", "stalled")
    assert found.stationarity < 1e-5
    assert inverse.clustering_accuracy(found.labels, labels) > 0.9


def test_every_method_for_clusters_fits_a_matrix_that_can_be_fitted():
    matrix, _ = separable(30, 3, 1)
    values = {name: inverse.symnmf(matrix, 3, method=name, seed=3, tol=1e-7, max_iter=3000).fun for name in NAMES}
    assert max(values.values()) <= 0.05 * np.linalg.norm(matrix) ** 2


@pytest.mark.parametrize("indefinite", [False, True])
def test_projected_lbfgs_is_nonnegative_and_monotone_to_a_stationary_point(indefinite):
    rng = np.random.default_rng(4)
    half = rng.random((50, 6)) + 0.5  # columns that overlap, for which the metric is there
    matrix = half @ half.T - (30.0 * np.eye(50) if indefinite else 0.0)
    seen = []
    found = inverse.symnmf(matrix, 4, method="projected-lbfgs", tol=1e-9, callback=lambda state: seen.append(state.x))
    assert all((x >= 0.0).all() for x in seen)
    assert (np.diff(found.history.value) <= 0.0).all()
    assert found.stationarity < 1e-7


def test_the_metric_of_rows_is_that_of_dense_blocks():
    rng = np.random.default_rng(5)
    x, gradient = rng.random((7, 3)) * (rng.random((7, 3)) < 0.7), rng.standard_normal((7, 3))
    free = (x > 0.0) | (gradient < 0.0)
    wanted = np.zeros_like(x)
    for i, row in enumerate(free):
        block = (x.T @ x + np.outer(x[i], x[i]))[np.ix_(row, row)]
        wanted[i, row] = -0.25 * np.linalg.solve(block, gradient[i, row]) if row.any() else 0.0
    none = np.zeros((2, x.size))
    assert np.allclose(factors.direction(x, gradient, none, none, 0, 0.0), wanted, atol=1e-7)


def test_directions_satisfy_the_secant_equation_of_the_last_pair():
    """H y = s on what is free, for whatever metric."""
    rng = np.random.default_rng(6)
    x, s = rng.random((2, 8, 3)) + 0.1
    y = s + 0.1 * rng.random((8, 3))
    for overlap in (0.0, 1.0):
        found = factors.direction(x, -y, s.reshape(1, -1).copy(), y.reshape(1, -1).copy(), 1, overlap)
        assert np.allclose(found, s)


def test_a_sweep_minimises_over_every_coordinate():
    rng = np.random.default_rng(0)
    x, c = rng.random((6, 3)), 8.0 * rng.random((6, 3))

    def model(x, sigma):
        return np.linalg.norm(x.T @ x) ** 2 + 2.0 * sigma * np.linalg.norm(x) ** 2 - np.vdot(c, x)

    for sigma in (0.0, 0.7):
        found = x.copy()
        for _ in range(300):
            coordinates.convex_sweep(found, c, sigma)
        for i, k in np.ndindex(found.shape):
            for step in (-1e-4, 1e-4):
                other = found.copy()
                other[i, k] = max(other[i, k] + step, 0.0)
                assert model(other, sigma) >= model(found, sigma) - 1e-12


def test_a_sweep_on_f_itself_minimises_over_every_coordinate():
    matrix, _ = separable(8, 2, 3)
    matrix -= 0.3 * np.eye(8)  # slopes that fall and rise again
    x = np.random.default_rng(1).random((8, 2))
    for _ in range(500):
        coordinates.exact_sweep(matrix, x)
    for i, k in np.ndindex(x.shape):
        for value in np.linspace(0.0, 2.0, 41):
            other = x.copy()
            other[i, k] = value
            gap = np.linalg.norm(other @ other.T - matrix) ** 2 - np.linalg.norm(x @ x.T - matrix) ** 2
            assert gap >= -1e-10


def test_the_least_eigenvalue_is_seen_in_a_large_matrix():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((600, 20))
    low = half @ half.T
    assert abs(least_eigenvalue(low)) < 1e-8 * np.linalg.norm(low)
    v = rng.standard_normal(600)
    assert least_eigenvalue(low - np.outer(v, v)) < -100.0
    assert least_eigenvalue(sp.diags(np.linspace(-1.0, 5.0, 700)).tocsr()) == pytest.approx(-1.0, abs=1e-2)


def test_labels_are_compared_up_to_their_names():
    truth = np.repeat([0, 1, 2], 10)
    renamed = (truth + 1) % 3
    assert inverse.clustering_accuracy(renamed, truth) == 1.0
    assert inverse.normalised_mutual_information(renamed, truth) == pytest.approx(1.0)
    assert inverse.clustering_accuracy(np.zeros(30, dtype=int), truth) == pytest.approx(1 / 3)
    assert inverse.normalised_mutual_information(np.zeros(30, dtype=int), truth) == 0.0
    half = np.where(np.arange(30) % 10 < 5, truth, 9)
    assert 0.0 < inverse.normalised_mutual_information(half, truth) < 1.0


def test_similarities_of_separate_groups_are_blocks():
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + 50.0])
    found = inverse.similarity(data)
    assert abs(found - found.T).max() < 1e-15
    assert found[:40, 40:].nnz == 0
    assert np.abs(np.linalg.eigvalsh(found.toarray())).max() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inverse.symnmf([[1.0, 2.0], [0.0, 1.0]], 1), "symmetric"),
        (lambda: inverse.symnmf(np.ones((2, 3)), 1), "square"),
        (lambda: inverse.symnmf(np.eye(3), 4), "rank must be at most 3"),
        (lambda: inverse.symnmf(np.eye(3), 0), "rank must be at least 1"),
        (lambda: inverse.symnmf(np.zeros((3, 3)), 1), "all zero"),
        (lambda: inverse.symnmf(np.full((2, 2), np.nan), 1), "finite"),
        (lambda: inverse.symnmf(np.zeros((0, 0)), 1), "empty"),
        (lambda: inverse.similarity(np.ones((3, 2))), "at least 9"),
        (lambda: inverse.clustering_accuracy([0, 1], [0]), "as many"),
        (lambda: inverse.solve(inverse.Problem(qb.GramForm(3, 1), np.eye(3)), "symhals"), "Orthant"),
    ],
)
def test_bad_matrices_are_named(call, message):
    with pytest.raises(ProblemError, match=message):
        call()
