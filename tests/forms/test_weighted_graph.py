"""Edges with weights: the same as the rows w^{1/4}(eᵢ − eⱼ)ᵀ ⊗ I, which are written out here, and as repeated edges."""

from fractions import Fraction

import numpy as np
import pytest

import quartbench as qb
from quartbench.forms import WeightedGraphForm
from quartbench.linalg.known import Known
from quartbench.precondition import leverage
from quartbench.regression import edge_rows
from quartbench.testing import check_form


def weighted(points=12, dim=2, seed=0, spread=1.0):
    """Return a graph, its edges shuffled and turned round, weights of 10^±spread, and c that adds up to zero."""
    rng = np.random.default_rng(seed)
    ring = [(i, (i + 1) % points) for i in range(points)]
    chords = {tuple(sorted(map(int, rng.choice(points, 2, replace=False)))) for _ in range(points)}
    edges = np.array(sorted({tuple(sorted(edge)) for edge in ring} | chords))
    edges = edges[rng.permutation(len(edges))]
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned][:, ::-1]
    c = rng.standard_normal((points, dim))
    return points, dim, edges, 10.0 ** rng.uniform(-spread, spread, len(edges)), c - c.mean(axis=0)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_the_battery_of_forms(dim):
    points, dim, edges, weights, _ = weighted(dim=dim, spread=2.0)
    check_form(qb.GraphForm(points, dim, edges, weights))


def test_the_battery_beyond_dense_matrices():
    rng = np.random.default_rng(1)
    graph = qb.instances.geometric(700, 2, seed=0).form
    check_form(qb.GraphForm(700, 2, graph.edges, 10.0 ** rng.uniform(-1, 1, graph.terms)))


def test_weights_stay_with_their_edges():
    points, dim, edges, weights, _ = weighted()
    form = qb.GraphForm(points, dim, edges, weights)
    assert isinstance(form, WeightedGraphForm)
    given = {tuple(sorted(map(int, edge))): weight for edge, weight in zip(edges, weights, strict=True)}
    assert given == {tuple(map(int, edge)): weight for edge, weight in zip(form.edges, form.weights, strict=True)}
    x = np.random.default_rng(1).standard_normal((points, dim))
    direct = sum(w * float(((x[i] - x[j]) ** 2).sum()) ** 2 for w, (i, j) in zip(weights, edges, strict=True))
    assert form.value(x) == pytest.approx(direct, rel=1e-13)


def test_weights_of_one_change_nothing():
    points, dim, edges, _, c = weighted()
    plain, ones = qb.GraphForm(points, dim, edges), qb.GraphForm(points, dim, edges, np.ones(len(edges)))
    assert not isinstance(plain, WeightedGraphForm)
    first, second = (qb.solve(qb.Problem(form, c), rel_gap=1e-10) for form in (plain, ones))
    np.testing.assert_allclose(first.x, second.x, atol=1e-5)
    for metric in ("uniform", "diagonal"):
        bounds = [qb.metric(form, metric).bounds for form in (plain, ones)]
        np.testing.assert_allclose(bounds[0], bounds[1], rtol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "homcg", "homnewton", "homnewton-cg", "accel-homgd"])
def test_the_minimum_is_that_of_rows_with_one_point_held(solver):
    points, dim, edges, weights, c = weighted(spread=1.5)
    rows = edge_rows(points, dim, edges, weights)[:, :-dim]
    held = qb.solve(rows, c[:-1].reshape(-1), rank=dim, rel_gap=1e-12)
    metric = "lewis" if solver == "accel-homgd" else "auto"
    found = qb.solve(qb.Problem(qb.GraphForm(points, dim, edges, weights), c), solver, metric, rel_gap=1e-9)
    assert found.status == "converged"
    assert found.lower_bound <= held.fun
    assert found.fun == pytest.approx(held.fun, rel=2e-9)


def test_leverage_is_that_of_the_rows():
    points, dim, edges, weights, _ = weighted(dim=1, spread=2.0)
    form = qb.GraphForm(points, dim, edges, weights)
    tau = np.random.default_rng(2).uniform(0.5, 2.0, form.terms)
    rows = form.real_rows().toarray()
    gram = np.linalg.pinv((tau[:, None] * rows).T @ rows)
    expected = tau * np.einsum("ij,jk,ik->i", rows, gram, rows)
    np.testing.assert_allclose(leverage(form, tau), expected, rtol=1e-8)


def test_lewis_weights_and_kappa():
    points, dim, edges, weights, _ = weighted(spread=3.0)
    form = qb.GraphForm(points, dim, edges, weights)
    found = qb.lewis_weights(form)
    x = np.random.default_rng(3).standard_normal((200, points, dim))
    x -= x.mean(axis=1, keepdims=True)
    metric = qb.metric(form, "lewis")
    ratios = [np.sqrt(form.value(one)) / metric.norm(one.reshape(-1)) ** 2 for one in x]
    assert max(ratios) / min(ratios) <= found.kappa_bound * (1.0 + 1e-9)


def test_certificates_are_true_in_exact_arithmetic():
    """f(x) and a dual point, both in rational numbers, on either side of what is reported."""
    for seed in range(12):
        points, dim, edges, weights, c = weighted(6, 2, seed, spread=4.0)
        form = qb.GraphForm(points, dim, edges, weights)
        problem = qb.Problem(form, c)
        result = qb.solve(problem, rel_gap=1e-6 if seed % 2 else 1e-13)
        lengths = [Fraction(float(one)) for one in np.sqrt(np.sqrt(form.weights))]
        x = [[Fraction(float(one)) for one in row] for row in result.x]
        f = -sum(
            Fraction(float(a)) * b
            for row, at in zip(problem.c.reshape(points, dim), x, strict=True)
            for a, b in zip(row, at, strict=True)
        )
        for length, (i, j) in zip(lengths, form.edges, strict=True):
            f += (length**2 * sum((a - b) ** 2 for a, b in zip(x[i], x[j], strict=True))) ** 2
        assert Fraction(result.fun) >= f
        assert result.lower_bound <= float(f)
        best = qb.solve(problem, "homnewton", rel_gap=1e-14, max_iter=50)
        assert result.lower_bound <= best.fun
        assert result.gap <= 1e-6


def test_known_numbers_times_a_factor_lie_within_their_bounds():
    rng = np.random.default_rng(4)
    hi = rng.standard_normal(400) * 10.0 ** rng.integers(-200, 100, 400)
    lo = hi * rng.uniform(-1, 1, 400) * 2.0**-54
    error = np.abs(hi) * 2.0**-80 * rng.random(400)
    factors = 10.0 ** rng.uniform(-110, 40, 400)
    found = Known(hi, lo, error).times(factors)
    for a, b, e, f, p, q, bound in zip(hi, lo, error, factors, *found, strict=True):
        off = abs((Fraction(a) + Fraction(b)) * Fraction(f) - Fraction(p) - Fraction(q)) + Fraction(e) * Fraction(f)
        assert off <= Fraction(bound)
        assert bound <= 2.0**-75 * abs(p) + 1e-300
        assert abs(q) <= 2.0**-53 * abs(p)


def test_weighted_problems_are_saved(tmp_path):
    points, dim, edges, weights, c = weighted()
    problem = qb.Problem(qb.GraphForm(points, dim, edges, weights), c)
    again = qb.Problem.load(problem.save(tmp_path / "p.npz"))
    np.testing.assert_array_equal(again.form.weights, problem.form.weights)
    np.testing.assert_array_equal(again.form.edges, problem.form.edges)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"weights must be 3 positive numbers, found shape \(1,\)"),
        ([1.0, 0.0, 1.0], r"weights must be 3 positive numbers, found shape \(3,\) with 0"),
        ([1.0, -2.0, 1.0], "with -2"),
        ([1.0, np.nan, 1.0], "weights must be finite"),
    ],
)
def test_what_is_wrong_with_weights_is_said(weights, message):
    with pytest.raises(qb.ProblemError, match=message):
        qb.GraphForm(3, 1, [[0, 1], [1, 2], [2, 0]], weights)


def test_inverse_problems_do_not_take_weights_for_distances():
    form = qb.GraphForm(3, 1, [[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 3.0])
    with pytest.raises(qb.ProblemError, match="GraphForm without weights"):
        qb.effective_resistance(form)


def test_what_a_spanning_tree_carries_is_w_and_bounds_its_dual_norm():
    rng = np.random.default_rng(5)
    points, dim, edges, weights, w = weighted(spread=6.0)
    form = qb.GraphForm(points, dim, edges, weights)
    np.testing.assert_allclose(form.adjoint(form.routed(w.reshape(-1))), w.reshape(-1), atol=1e-12)
    # N(w) = max ⟨w,x⟩/ρ(x)^{1/4}, from many x: the minimisers of ρ(x) − ⟨w,x⟩ too, where it is attained.
    bound = form.proof().norm(Known(w.reshape(-1), np.zeros(w.size), np.zeros(w.size)))
    best = qb.solve(qb.Problem(form, w), rel_gap=1e-8).x
    for x in [best, *rng.standard_normal((50, points, dim))]:
        assert float((w * x).sum()) <= bound * form.value(x) ** 0.25
    # On a path the flow is the only one: with w at both ends, and all weights alike, N = |w|·(Σ s^{−4/3})^{3/4}.
    path = qb.GraphForm(5, 1, [[0, 1], [1, 2], [2, 3], [3, 4]], np.full(4, 1e-8))
    ends = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    bound = path.proof().norm(Known(ends, np.zeros(5), np.zeros(5)))
    assert bound >= 4**0.75 / 1e-2
    assert bound <= 4.0 * 4**0.75 / 1e-2
