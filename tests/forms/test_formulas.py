"""Bounds and dual values of forms, computed once more from dense matrices: leverage, α, β, Laplacians, leftovers."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq

from quartbench import GraphForm, StackedForm
from quartbench.forms import duality, graph, leverage
from quartbench.metrics import Diagonal

M, N = 30, 4
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((M, N)) * np.geomspace(0.2, 5.0, M)[:, None]
TAU = RNG.uniform(0.2, 2.0, M)
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3), (1, 4), (2, 6), (6, 7)])


def gram(tau, rank=1):
    return ROWS.T @ (np.repeat(tau, rank)[:, None] * ROWS)


def half(B):
    """Return B^{−½}."""
    values, vectors = np.linalg.eigh(B)
    return vectors / np.sqrt(values) @ vectors.T


def whitened(B, rank=1):
    """Return B̃ᵢ = B^{−½}BᵢB^{−½} for every term."""
    rows = (ROWS @ half(B)).reshape(-1, rank, N)
    return np.einsum("irj,irk->ijk", rows, rows)


def sharp(terms):
    """Return β² = λ_max(Σλ_max(B̃ᵢ)B̃ᵢ), and the λ_max(B̃ᵢ)."""
    sizes = np.linalg.eigvalsh(terms)[:, -1]
    return np.linalg.eigvalsh(np.einsum("i,ijk->jk", sizes, terms))[-1], sizes


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_traces_and_spectral_norms_are_those_of_whitened_terms(rank, scale):
    form, tau = StackedForm(ROWS, rank).scaled(scale), TAU[: M // rank]
    made = form.weighted(tau)
    terms = whitened(gram(tau, rank), rank)  # the scale of the rows cancels against that of B(τ)
    np.testing.assert_allclose(form.traces(made), np.trace(terms, axis1=1, axis2=2), rtol=1e-9)
    np.testing.assert_allclose(form.spectral_norms(made), np.linalg.eigvalsh(terms)[:, -1], rtol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_bounds_in_the_norm_of_weights_are_those_of_the_two_facts(rank):
    form, tau = StackedForm(ROWS, rank), TAU[: M // rank]
    made = form.weighted(tau)
    beta_square, sizes = sharp(whitened(gram(tau, rank), rank))
    found = leverage.weighted_bounds(form, made)
    assert found.alpha == pytest.approx(1.0 / math.sqrt((tau**2).sum()), rel=1e-12)
    assert found.beta == pytest.approx(math.sqrt(min(beta_square, (sizes / tau).max())), rel=1e-8)
    assert found.beta >= math.sqrt(min(beta_square, (sizes / tau).max()))


def test_bounds_in_a_diagonal_norm_are_eigenvalues():
    form, diagonal = StackedForm(ROWS), RNG.uniform(0.5, 2.0, N)
    found = form.bounds(Diagonal(diagonal))
    root = 1.0 / np.sqrt(diagonal)
    base = gram(np.full(M, M**-0.5))
    assert found.alpha == pytest.approx(np.linalg.eigvalsh(root[:, None] * base * root)[0], rel=1e-8)
    assert found.beta == pytest.approx(math.sqrt(sharp(whitened(np.diag(diagonal)))[0]), rel=1e-8)


def test_a_sketch_is_right_on_average():
    form = StackedForm(ROWS)
    made = form.weighted(TAU)
    found = form.sketched_traces(made, 20_000, np.random.default_rng(1))
    np.testing.assert_allclose(found, form.traces(made), rtol=0.06)


# Duality --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dual", [0.0, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("leftover", [1e-12, 1e-3, 1.0, 1e3])
def test_a_leftover_is_absorbed_by_the_largest_optimum_it_allows(dual, leftover):
    # |f*| = dual + leftover·(|f*|/3)^{1/4}
    most = 10.0 * (dual + leftover ** (4.0 / 3.0)) + 1.0
    root = brentq(lambda f: f - dual - leftover * (f / 3.0) ** 0.25, max(dual, 1e-25), most, xtol=1e-300, rtol=1e-14)
    assert duality.absorb(dual, leftover) == pytest.approx(root, rel=1e-10)
    assert duality.absorb(dual, 0.0) == dual


@pytest.mark.parametrize("rank", [1, 3])
def test_the_bound_of_a_point_is_that_of_its_corrected_dual_point(rank):
    form, tau = StackedForm(ROWS, rank), TAU[: M // rank]
    x, residual = RNG.standard_normal(N), 0.01 * RNG.standard_normal(N)
    s = (ROWS @ x).reshape(-1, rank)
    weights = 4.0 * (s**2).sum(axis=1, keepdims=True) * s
    weights += tau[:, None] * (ROWS @ np.linalg.solve(gram(tau, rank), residual)).reshape(-1, rank)
    # −ρ*(v) ≥ −Σ (3/4^{4/3})‖λᵢ‖^{4/3} for v = ΣUᵢλᵢ
    value = -0.75 * 0.25 ** (1.0 / 3.0) * (np.linalg.norm(weights, axis=1) ** (4.0 / 3.0)).sum()
    found, dual = form.dual_bound(form.image(x), form.gradient(x), residual, form.weighted(tau), 0)
    assert found == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(dual, weights.reshape(-1), rtol=1e-8, atol=1e-12)


# Graphs ---------------------------------------------------------------------------------------------------------------


def laplacian(weights):
    found = np.zeros((8, 8))
    for (i, j), weight in zip(EDGES, weights, strict=True):
        found[[i, j], [i, j]] += weight
        found[[i, j], [j, i]] -= weight
    return found


def in_order_of_the_form(weights):
    """Return weights of the edges as the form lists them: lexicographically, i < j."""
    return weights[np.lexsort(np.sort(EDGES, axis=1).T[::-1])]


def test_the_metric_of_a_graph_is_its_laplacian_and_the_mean_degree_on_constants():
    tau = RNG.uniform(0.5, 2.0, len(EDGES))
    made = GraphForm(8, 2, EDGES).weighted(in_order_of_the_form(tau))
    degree = 2.0 * tau.sum() / 8.0  # the mean of the weighted degrees
    B = np.kron(laplacian(tau) + degree / 8.0, np.eye(2))
    x = RNG.standard_normal(16)
    np.testing.assert_allclose(made.apply(x), B @ x, rtol=1e-10)
    np.testing.assert_allclose(made.solve(x), np.linalg.solve(B, x), rtol=1e-8)
    assert np.trace(laplacian(tau)) / 8.0 == pytest.approx(degree)


@pytest.mark.parametrize("dense", [True, False])
def test_bounds_of_a_graph_in_a_diagonal_norm(dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(graph, "DENSE_VERTICES", 1)
    form = GraphForm(8, 2, EDGES)
    d = RNG.uniform(0.5, 2.0, 8)
    found = form.bounds(Diagonal(np.repeat(d, 2)))
    given = [1.0 / d[i] + 1.0 / d[j] for i, j in EDGES]
    root = 1.0 / np.sqrt(d)
    if dense:
        square = np.linalg.eigvalsh(root[:, None] * laplacian(given) * root)[-1]
    else:  # Anderson and Morley
        degrees = np.diag(laplacian(given)) / d
        square = max(degrees[i] + degrees[j] for i, j in EDGES)
    assert found.beta == pytest.approx(math.sqrt(square), rel=1e-8)
    uniform = laplacian(np.full(len(EDGES), len(EDGES) ** -0.5))
    # Of ⟨x,Lx⟩/⟨x,Dx⟩ over centred x: the quotient in a basis of them.
    basis = np.linalg.svd(np.eye(8) - 1.0 / 8.0)[0][:, :7]
    pencil = np.linalg.solve(basis.T @ (d[:, None] * basis), basis.T @ uniform @ basis)
    assert found.alpha == pytest.approx(np.linalg.eigvals(pencil).real.min(), rel=1e-6)


def test_resistances_of_a_graph_are_those_of_its_laplacian():
    tau = RNG.uniform(0.5, 2.0, len(EDGES))
    form = GraphForm(8, 3, EDGES)
    inverse = np.linalg.pinv(laplacian(tau))
    expected = [inverse[i, i] + inverse[j, j] - 2.0 * inverse[i, j] for i, j in form.edges]
    np.testing.assert_allclose(form.traces(form.weighted(in_order_of_the_form(tau))), expected, rtol=1e-9)


def test_rows_are_solved_in_one_compiled_call_where_they_are_few_and_as_kernels_take_them():
    few, many = np.ones((400, 100)), np.ones((401, 100))  # 4·10⁶ multiplications of a Hessian
    assert np.shares_memory(StackedForm(few).small_rows(), few)
    assert StackedForm(many).small_rows() is None
    assert StackedForm(few.astype(np.float32)).small_rows() is None
    assert StackedForm(few).scaled(2.0).small_rows() is None
    locked = few.copy()
    locked.flags.writeable = False
    assert StackedForm(locked).small_rows() is None


def test_a_sparse_entry_is_the_work_of_four_dense_ones():
    rows = np.where(np.arange(60).reshape(20, 3) % 4, 1.0, 0.0)
    assert StackedForm(rows)._work == 60
    assert StackedForm(sp.csr_matrix(rows))._work == 4 * np.count_nonzero(rows)


# Corrections of dual points -------------------------------------------------------------------------------------------


def inexact(error, precision="double"):
    """Return B(τ) of the rows, whose solves are wrong by this share."""
    made = StackedForm(ROWS).weighted(TAU)
    solve, made.precision = made.solve, precision
    made.solve = lambda v: (1.0 - error) * solve(v)
    made.dual_norm = lambda v: math.sqrt(v @ solve(v))
    return made


def left_by(weights, v):
    """Return ‖v − Mᵀw‖ in the dual norm of B(τ), times √‖τ‖: what a correction leaves, in the norm dual to ρ^{1/4}."""
    rest = v - ROWS.T @ weights
    return math.sqrt(rest @ np.linalg.solve(gram(TAU), rest) * np.linalg.norm(TAU))


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize(("error", "rounds"), [(1e-12, 0), (1e-6, 1), (1e-2, 3), (0.3, 3), (1.5, 0)])
def test_a_correction_is_solved_again_for_what_is_left_while_that_is_much_and_falls(error, rounds, precision):
    v = np.array([1.0, -2.0, 0.5, 3.0])
    found = duality._solve(StackedForm(ROWS), v, inexact(error, precision))
    exactly = TAU * (ROWS @ np.linalg.solve(gram(TAU), v))
    np.testing.assert_allclose(found.weights, (1.0 - error ** (rounds + 1)) * exactly, rtol=1e-9)
    safety = 2.0 if precision == "single" else 1.0  # its dual norm is known to a per cent or so
    assert found.leftover == pytest.approx(safety * left_by(found.weights, v), rel=1e-3, abs=1e-13)


def test_without_a_factor_what_is_left_is_bounded_by_half_the_least_ritz_value(monkeypatch):
    v, m = np.array([1.0, -2.0, 0.5, 3.0]), M**-0.5
    form = StackedForm(ROWS)
    diagonal = m * (ROWS**2).sum(axis=0)
    B = m * ROWS.T @ ROWS
    # Jacobi-preconditioned conjugate gradients, two steps: the Ritz values are those on their Krylov space.
    root = np.sqrt(diagonal)
    scaled = B / np.outer(root, root)
    space = np.linalg.qr(np.stack([v / root, scaled @ (v / root)], axis=1))[0]
    small = space.T @ scaled @ space
    x = space @ np.linalg.solve(small, space.T @ (v / root)) / root
    left = v - B @ x
    monkeypatch.setattr(duality, "SOLVE_SHARE", 1.001 * np.linalg.norm(left / root) / np.linalg.norm(v / root))
    found = duality._without_factor(form, v)
    np.testing.assert_allclose(found.weights, m * ROWS @ x, rtol=1e-9)
    least = 0.5 * np.linalg.eigvalsh(small)[0]
    assert found.leftover == pytest.approx(math.sqrt(left @ (left / diagonal) / least), rel=1e-9)


def test_nothing_to_correct_leaves_nothing():
    found = duality._without_factor(StackedForm(ROWS), np.zeros(N))
    assert found.leftover == 0.0
    assert not found.weights.any()


@pytest.mark.parametrize("given", [True, False])
def test_a_refined_bound_moves_the_dual_point_to_that_of_newton(given):
    form, x = StackedForm(ROWS), np.array([1.0, -0.5, 2.0, 0.25])
    metric = form.weighted(TAU) if given else None
    residual = 0.01 * form.gradient(x)[::-1]
    s = ROWS @ x
    hessian = 12.0 * ROWS.T @ (s[:, None] ** 2 * ROWS)
    newton = 4.0 * s**3 + 12.0 * s**2 * (ROWS @ np.linalg.solve(hessian, residual))
    value = -3.0 * ((np.abs(newton) / 4.0) ** (4.0 / 3.0)).sum()
    found, dual = duality.bound(form, form.image(x), residual, metric, 20)
    coarse, _ = duality.bound(form, form.image(x), residual, metric, 0)
    assert found == pytest.approx(value, rel=1e-4)
    assert found > coarse
    np.testing.assert_allclose(ROWS.T @ dual, form.gradient(x) + residual, rtol=1e-9)
    assert duality.bound(form, form.image(x), np.zeros(N), metric, 20)[0] == pytest.approx(-3.0 * form.value(x))
