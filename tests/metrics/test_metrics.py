"""Are metrics what they say: B, its inverse, and the two norms, at every scale and by every factor?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.errors import ProblemError
from quartbench.forms import StackedForm
from quartbench.linalg import dissection, laplacians
from quartbench.metrics import Cholesky, Diagonal, Identity, Laplacian
from tests.forms.random_forms import SEEDS, WITH_TERMS, connected_edges, dense_rows, forms, make, point
from tests.kernels import plain


def some_metrics():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((9, 6))
    q = rng.standard_normal((7, 3)) + 1j * rng.standard_normal((7, 3))
    edges = connected_edges(rng, 3, 2)
    lower = np.linalg.cholesky(a.T @ a)
    return {
        "identity": Identity(6),
        "diagonal": Diagonal(rng.uniform(0.1, 5.0, 6)),
        "cholesky": Cholesky(a.T @ a),
        "hermitian": Cholesky(q.T @ q.conj()),
        "from factor": Cholesky.from_factor(np.asfortranarray(lower), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        "laplacian": Laplacian(3, 2, edges, rng.uniform(0.1, 5.0, len(edges))),
        "stacked weights": StackedForm(a, 3).weighted(np.array([0.5, 1.0, 2.0])),
        "complex weights": make("complex", 3, 1, 4, "gaussian", 0).weighted(np.linspace(0.5, 2.0, 10)),
        "graph weights": make("graph", 2, 2, 0, "gaussian", 0).weighted(np.array([0.5, 2.0])),
    }


METRIC_NAMES = list(some_metrics())


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_solve_undoes_apply(name):
    metric = some_metrics()[name]
    x = np.random.default_rng(1).standard_normal(metric.dim)
    plain.close(metric.solve(metric.apply(x)), x, 1e-12)
    plain.close(metric.apply(metric.solve(x)), x, 1e-12)
    kept = x.copy()
    metric.solve(x), metric.apply(x), metric.norm(x), metric.dual_norm(x)
    plain.identical(x, kept)


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_metrics_are_symmetric_and_positive(name):
    metric = some_metrics()[name]
    matrix = np.stack([metric.apply(column.copy()) for column in np.eye(metric.dim)], axis=1)
    plain.close(matrix, matrix.T, 1e-14)
    assert np.linalg.eigvalsh(matrix)[0] > 0.0
    x = np.random.default_rng(1).standard_normal(metric.dim)
    assert metric.norm(x) == pytest.approx(np.sqrt(x @ matrix @ x))
    assert metric.dual_norm(x) == pytest.approx(np.sqrt(x @ np.linalg.solve(matrix, x)))
    if metric.diagonal is not None:
        plain.close(np.diag(metric.diagonal), matrix)


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_the_norms_are_dual(name):
    # ⟨v,x⟩ ≤ ‖v‖_*‖x‖, with equality at x = B⁻¹v.
    metric = some_metrics()[name]
    rng = np.random.default_rng(2)
    v = rng.standard_normal(metric.dim)
    for _ in range(10):
        x = rng.standard_normal(metric.dim)
        assert v @ x <= metric.dual_norm(v) * metric.norm(x) * (1.0 + 1e-13)
    x = metric.solve(v)
    assert v @ x == pytest.approx(metric.dual_norm(v) * metric.norm(x))


@given(forms(WITH_TERMS), SEEDS)
def test_weighted_metrics_solve_with_the_sum_of_their_terms(form, seed):
    rng = np.random.default_rng(seed)
    tau = rng.uniform(0.05, 3.0, form.terms)
    metric = form.scaled(3.0).weighted(tau)
    assert metric.tau is tau or (metric.tau == tau).all()
    rows = dense_rows(form)
    x = point(form, rng)
    image = rows @ metric.solve(x)
    plain.close(9.0 * rows.T @ (np.repeat(tau, form.rank) * image), x, 1e-9)


@pytest.mark.parametrize("exponent", [-8, 8, -60, 60])
def test_the_factor_is_indifferent_to_the_units_of_coordinates(exponent):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((9, 5))
    units = 10.0 ** (exponent * np.array([0.0, 1.0, -1.0, 0.5, 1.0]))
    metric, scaled = Cholesky(a.T @ a), Cholesky((a * units).T @ (a * units))
    v = rng.standard_normal(5)
    plain.close(scaled.solve(v * units) * units, metric.solve(v), 1e-12)
    assert scaled.dual_norm(v * units) == pytest.approx(metric.dual_norm(v), rel=1e-12)


# Laplacians -----------------------------------------------------------------------------------------------------------


def graph_of(kind, points):
    rng = np.random.default_rng(points)
    if kind == "ring":
        return np.stack([np.arange(points), (np.arange(points) + 1) % points], axis=1)
    if kind == "star":
        return np.stack([np.zeros(points - 1, dtype=int), np.arange(1, points)], axis=1)
    if kind == "grid":
        side = int(np.sqrt(points))
        grid = np.arange(side * side).reshape(side, side)
        across, down = np.stack([grid[:, :-1], grid[:, 1:]], -1), np.stack([grid[:-1], grid[1:]], -1)
        return np.concatenate([across.reshape(-1, 2), down.reshape(-1, 2)])
    return connected_edges(rng, points, 3 * points)


@pytest.mark.parametrize("kind", ["ring", "star", "grid", "random"])
@pytest.mark.parametrize("method", ["dense", "dissection", "conjugate gradients"])
def test_every_factor_of_a_laplacian_gives_the_same_metric(kind, method, monkeypatch):
    points, d = 400, 2
    edges = graph_of(kind, points)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.1, 5.0, len(edges))
    if method != "dense":
        monkeypatch.setattr(laplacians, "DENSE_VERTICES", 0)
    if method == "conjugate gradients":
        monkeypatch.setattr(dissection, "DISSECTION_FLOPS", 0.0)
        monkeypatch.setattr(dissection, "DISSECTION_ENTRIES", 0.0)
    metric = Laplacian(points, d, edges, weights)
    assert metric.solver.method == method
    incidence = plain.incidence(points, edges)
    matrix = incidence.T @ (weights[:, None] * incidence) + metric.mean_degree / points
    x = rng.standard_normal((points, d))
    plain.close(metric.apply(x.ravel()).reshape(points, d), matrix @ x, 1e-12)
    plain.close(metric.solve(x.ravel()).reshape(points, d), np.linalg.solve(matrix, x), 1e-9)
    column = rng.standard_normal((points, 5))
    plain.close(metric.solve_vertices(column), np.linalg.solve(matrix, column), 1e-9)
    flat = rng.standard_normal((points * d, 3))
    plain.close(metric.solve_columns(flat), np.stack([metric.solve(v.copy()) for v in flat.T], axis=1), 1e-12)


def test_on_the_centred_subspace_a_laplacian_metric_is_the_pseudo_inverse():
    edges = graph_of("random", 12)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(edges))
    incidence = plain.incidence(12, edges)
    matrix = incidence.T @ (weights[:, None] * incidence)
    metric = Laplacian(12, 1, edges, weights)
    v = np.random.default_rng(1).standard_normal(12)
    v -= v.mean()
    plain.close(metric.solve(v), np.linalg.pinv(matrix) @ v, 1e-11)
    plain.close(metric.apply(v), matrix @ v, 1e-12)
    assert abs(metric.solve(v).sum()) <= 1e-12
    # A translation is seen too, so that B is definite on the whole space.
    assert metric.norm(np.ones(12)) > 0.1


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_laplacians_take_weights_of_every_size(scale):
    edges = graph_of("random", 30)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(edges))
    v = np.random.default_rng(1).standard_normal(60)
    small, large = Laplacian(30, 2, edges, weights), Laplacian(30, 2, edges, scale * weights)
    plain.close(scale * large.solve(v), small.solve(v), 1e-12)


# What they refuse -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_a_deficient_matrix_is_refused_with_its_rank(kind, seed):
    # Half of all such matrices pass a plain Cholesky factorisation: rounding makes the last pivot positive.
    rng = np.random.default_rng(seed)
    n, rank = int(rng.integers(3, 12)), int(rng.integers(1, 3))
    a = rng.standard_normal((20, n - rank)) @ rng.standard_normal((n - rank, n))
    if kind == "complex":
        a = a + 1j * rng.standard_normal((20, n - rank)) @ rng.standard_normal((n - rank, n))
        a = a[:, : n - rank] @ (rng.standard_normal((n - rank, n)) + 1j * rng.standard_normal((n - rank, n)))
    with pytest.raises(ProblemError, match=rf"ρ is not positive definite: numerical rank {n - rank} of {n}"):
        Cholesky(a.conj().T @ a)


def test_the_missing_direction_is_named():
    a = np.random.default_rng(0).standard_normal((20, 6))
    a[:, 4] = 1e-3 * a[:, 1]
    with pytest.raises(ProblemError, match=r"rank 5 of 6; the missing direction is largest in coordinate [14]"):
        Cholesky(a.T @ a)


@pytest.mark.parametrize("condition", [1e3, 1e5, 1e7])
def test_an_ill_conditioned_matrix_is_not_refused(condition):
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.standard_normal((40, 8)))
    v, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    a = u * np.geomspace(1.0, 1.0 / condition, 8) @ v.T
    metric = Cholesky(a.T @ a)
    x = rng.standard_normal(8)
    plain.close(metric.solve(metric.apply(x)), x, 1e-15 * condition**2)


@pytest.mark.parametrize(
    ("make_metric", "message"),
    [
        (lambda: Diagonal([1.0, 0.0]), "diagonal must be positive, found 0.0 at index 1"),
        (lambda: Diagonal([1.0, -2.0, 3.0]), "diagonal must be positive, found -2.0 at index 1"),
        (lambda: Diagonal([1.0, np.nan]), r"diagonal must be finite, found nan at index \(1,\)"),
        (lambda: Diagonal(np.ones((2, 2))), r"diagonal must have 1 dimension, found shape \(2, 2\)"),
        (lambda: Diagonal("abc"), "diagonal must be an array of numbers, found str"),
        (lambda: Diagonal([1j]), "diagonal must be real"),
        (lambda: Cholesky(np.ones((2, 3))), r"matrix must be square, found shape \(2, 3\)"),
        (lambda: Cholesky(np.ones((0, 0))), r"matrix must be square, found shape \(0, 0\)"),
        (lambda: Cholesky(np.array([[1.0, np.nan], [np.nan, 1.0]])), "matrix must be finite"),
        (lambda: Cholesky(np.diag([1.0, -1.0])), "matrix must be positive definite, found -1.0 on its diagonal at 1"),
        (lambda: Cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])), "not positive definite: numerical rank 1 of 2"),
        (lambda: Laplacian(3, 1, [(0, 1), (1, 2)], [1.0]), "weights must be 2 positive numbers, one per edge, found 1"),
        (lambda: Laplacian(3, 1, [(0, 1), (1, 2)], [1.0, -1.0]), "weights must be 2 positive numbers"),
        (lambda: StackedForm(np.eye(3)).weighted([1.0, 2.0]), "tau must be 3 positive numbers, one per term, found 2"),
        (lambda: StackedForm(np.eye(3)).weighted([1.0, 2.0, 0.0]), "tau must be 3 positive numbers"),
        (lambda: StackedForm(np.eye(3)).weighted([1.0, 2.0, np.inf]), "tau must be finite"),
    ],
)
def test_bad_metrics_say_what_is_wrong(make_metric, message):
    with pytest.raises(ProblemError, match=message):
        make_metric()


def test_metrics_say_their_name_and_size():
    assert [kind.name for kind in (Identity, Diagonal, Cholesky, Laplacian)] == [
        "identity",
        "diagonal",
        "cholesky",
        "laplacian",
    ]
    assert repr(Identity(4)) == "Identity(dim=4)"


@given(st.integers(1, 9))
def test_the_identity_is_the_euclidean_norm(n):
    metric = Identity(n)
    x = np.arange(1.0, n + 1)
    assert metric.norm(x) == metric.dual_norm(x) == np.linalg.norm(x)
    assert (metric.diagonal == 1.0).all()
    assert metric.solve(x) is x
