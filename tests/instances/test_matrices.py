import numpy as np
import pytest

from quartbench.errors import ProblemError
from quartbench.instances import blocks, degenerate, heavy_tailed, orthant, sparse, spectrum
from quartbench.instances.matrices import SMALL, bernoulli_positions, haar, spectral_rows

from .common import leverage


def test_spectrum_has_singular_values_in_the_interval():
    for sigma_min in (0.02, 0.2, 1.0):
        sigma = np.linalg.svd(spectrum(200, 50, sigma_min, seed=3).form.rows, compute_uv=False)
        assert sigma.min() >= sigma_min - 1e-12
        assert sigma.max() <= 1.0 + 1e-12


def test_spectrum_fills_the_interval_evenly():
    sigma = np.linalg.svd(spectrum(300, 200, 0.1).form.rows, compute_uv=False)
    counts = np.histogram(sigma, bins=4, range=(0.1, 1.0))[0]
    assert counts.sum() == 200
    assert counts.min() > 25


def test_c_is_a_unit_vector():
    for problem in (spectrum(30, 7, 0.1), blocks(10, 7, 2), heavy_tailed(30, 7), sparse(30, 7, 0.5)):
        np.testing.assert_allclose(np.linalg.norm(problem.c), 1.0, rtol=1e-14)


@pytest.mark.parametrize(("m", "n"), [(5, 5), (9, 5), (40, 1), (60, 30)])
def test_rows_have_exactly_the_singular_values_asked_for(m, n):
    sigma = np.geomspace(1.0, 0.01, n)
    rows = spectral_rows(m, sigma, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.svd(rows, compute_uv=False), sigma, atol=1e-13)


def test_large_orthonormal_columns_by_cholesky_are_orthonormal():
    m, n = 12_000, 100
    assert m * n > SMALL
    q = haar(m, n, np.random.default_rng(0))
    np.testing.assert_allclose(q.T @ q, np.eye(n), atol=1e-13)


def test_cholesky_and_householder_give_the_same_columns(monkeypatch):
    householder = haar(300, 20, np.random.default_rng(0))
    monkeypatch.setattr("quartbench.instances.matrices.SMALL", 0)
    np.testing.assert_allclose(haar(300, 20, np.random.default_rng(0)), householder, atol=1e-13)


def test_haar_columns_have_no_preferred_sign():
    corners = np.array([haar(3, 3, np.random.default_rng(seed))[0] for seed in range(400)])
    assert np.abs(corners.mean(axis=0)).max() < 0.12


def test_blocks_stack_m_terms_of_their_rank():
    form = blocks(25, 10, 3, sigma_min=0.3).form
    assert (form.terms, form.rank, form.dim) == (25, 3, 10)
    sigma = np.linalg.svd(form.rows, compute_uv=False)
    assert sigma.min() >= 0.3 - 1e-12
    assert sigma.max() <= 1.0 + 1e-12


def test_blocks_may_have_fewer_terms_than_variables():
    assert blocks(4, 10, 3).form.terms == 4


def test_heavier_tails_are_more_coherent():
    gamma = [leverage(heavy_tailed(2000, 10, df=df).form.rows).max() for df in (1.0, 3.0, 1e6)]
    assert gamma[0] > gamma[1] > gamma[2]
    assert gamma[0] > 0.5


@pytest.mark.parametrize(
    ("m", "n", "density"), [(12, 12, 1 / 12), (50, 12, 1 / 12), (50, 12, 0.3), (7, 3, 1.0), (5, 1, 1.0)]
)
def test_sparse_rows_are_never_empty_cover_every_column_and_have_full_rank(m, n, density):
    rows = sparse(m, n, density, seed=4).form.rows
    assert np.diff(rows.indptr).min() >= 1
    assert np.bincount(rows.indices, minlength=n).min() >= 1
    assert np.linalg.matrix_rank(rows.toarray()) == n


def test_sparse_rows_have_the_density_asked_for():
    rows = sparse(3000, 200, 0.03).form.rows
    np.testing.assert_allclose(rows.nnz / (3000 * 200), 0.03, rtol=0.03)
    assert sparse(30, 20, 1.0).form.rows.nnz == 600


def test_sparse_rows_are_canonical():
    rows = sparse(300, 20, 0.2).form.rows
    assert rows.has_sorted_indices
    assert rows.has_canonical_format


def test_coins_fall_independently_and_in_order():
    rng = np.random.default_rng(0)
    positions = bernoulli_positions(100_000, 0.2, rng)
    assert (np.diff(positions) > 0).all()
    assert positions.min() >= 0
    assert positions.max() < 100_000
    np.testing.assert_allclose(len(positions), 20_000, rtol=0.03)
    np.testing.assert_allclose((np.diff(positions) == 1).mean(), 0.2, atol=0.01)
    np.testing.assert_array_equal(bernoulli_positions(9, 1.0, rng), np.arange(9))
    assert len(bernoulli_positions(9, 0.0, rng)) == 0


@pytest.mark.parametrize(("active", "zeros"), [(0.5, 10), (0.25, 5), (1e-3, 1), (1.0, 19)])
def test_orthant_solutions_have_the_share_of_zeros_asked_for(active, zeros):
    problem = orthant(60, 20, active=active)
    assert problem.solution.min() == 0.0
    assert (problem.solution == 0.0).sum() == zeros


def test_orthant_constraints_are_strictly_active():
    problem = orthant(60, 20)
    gradient = problem.gradient(problem.solution)
    zero = problem.solution == 0.0
    assert gradient[zero].min() > 0.0
    np.testing.assert_array_equal(gradient[~zero], 0.0)


def test_orthant_rows_are_those_of_spectrum():
    np.testing.assert_array_equal(orthant(30, 6, 0.2, seed=9).form.rows, spectrum(30, 6, 0.2, seed=9).form.rows)


def test_the_hessian_of_a_degenerate_problem_sees_the_active_rows_alone():
    problem = degenerate(60, 20, 5, seed=3)
    image = problem.form.rows @ problem.solution
    assert np.abs(image[:5]).min() > 1e-3
    assert np.abs(image[5:]).max() <= 1e-15
    hessian = (12.0 * image**2 * problem.form.rows.T) @ problem.form.rows
    assert np.linalg.matrix_rank(hessian, tol=1e-10 * np.trace(hessian)) == 5
    with pytest.raises(ProblemError, match="m must be at least 25"):
        degenerate(24, 20, 5)
