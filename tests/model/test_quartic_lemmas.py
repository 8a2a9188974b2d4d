"""The lemmas and propositions of the paper's §2.1, §3 and §5.1, as properties of random forms of every kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.cones import Centred, Free
from quartbench.forms import GramForm, GraphForm, StackedForm
from quartbench.metrics import Bounds, Identity
from quartbench.model import Problem
from tests.forms.random_forms import SEEDS, WITH_TERMS, connected_edges, dense_rows, forms, make, pairs, point
from tests.kernels import plain
from tests.model import paper_bounds as bounds

#: Rounding that an inequality may lose, relative to the largest of the numbers that it compares.
SLACK = 1e-11


#: Graphs whose edges weigh alike, as the paper's do.
alike = forms(("graph",)).filter(lambda form: type(form) is GraphForm)


def at_most(small, large, *terms):
    """Assert small ≤ large up to the rounding of the terms that they were made of."""
    scale = max(abs(number) for number in (small, large, *terms))
    assert small <= large + SLACK * scale


def squares(form, x):
    """Return ⟨x,Bᵢx⟩ for every term, by plain NumPy."""
    return ((dense_rows(form) @ x).reshape(-1, form.rank) ** 2).sum(axis=1)


def problem_of(form):
    """Return some problem of the form, for the functions of ρ that problems know."""
    rng = np.random.default_rng(0)
    return Problem(form, point(form, rng), Centred() if isinstance(form, GraphForm) else Free())


def metrics(form):
    """Yield metrics with the constants that the propositions give for them."""
    yield Identity(form.dim), bounds.euclidean(form)
    if not isinstance(form, GramForm):
        tau = np.random.default_rng(form.terms).uniform(0.1, 2.0, form.terms)
        metric = form.weighted(tau)
        yield metric, bounds.weighted(tau, leverage(form, tau))


def leverage(form, tau):
    """Return ℓᵢ = τᵢTr(UᵢᵀB⁻¹Uᵢ) by plain NumPy, one solve a row."""
    metric = form.weighted(tau)
    rows = dense_rows(form)
    scores = np.array([row @ metric.solve(row.copy()) for row in rows])
    return tau * scores.reshape(-1, form.rank).sum(axis=1)


def block_norms(form, tau):
    """Return τᵢλ_max(UᵢᵀB⁻¹Uᵢ), which may stand for the leverage (errata 13 of the documentation)."""
    metric = form.weighted(tau)
    blocks = plain.blocks(dense_rows(form), form.rank)
    tops = [np.linalg.eigvalsh(u @ np.stack([metric.solve(row.copy()) for row in u], axis=1))[-1] for u in blocks]
    return tau * np.array(tops)


# §3.1: the symmetric 4-linear form Q, and √ρ --------------------------------------------------------------------------


@given(st.data())
def test_hessian_is_twelve_times_the_symmetrised_form(data):
    # errata 2 of the documentation: Q averages the three pairings, so Q[x]²[y]² = (1/3) Σ ⟨x,Bᵢx⟩⟨y,Bᵢy⟩ + 2⟨x,Bᵢy⟩².
    form = data.draw(forms(WITH_TERMS))
    x, y = data.draw(pairs(form))
    rows = dense_rows(form)
    s, t = (rows @ x).reshape(-1, form.rank), (rows @ y).reshape(-1, form.rank)
    wanted = ((s**2).sum(1) * (t**2).sum(1) + 2.0 * (s * t).sum(1) ** 2).sum() / 3.0
    assert form.hessian_product(x, y) @ y / 12.0 == pytest.approx(wanted, rel=1e-10)


@given(st.data())
def test_the_quartic_cauchy_inequalities(data):
    # Lemma 3.1, with Q[x]³[y] = ⟨∇ρ(x),y⟩/4 and Q[x]²[y]² = ⟨ρ''(x)y,y⟩/12.
    form = data.draw(forms())
    x, y = data.draw(pairs(form))
    xxxx, yyyy = form.value(x), form.value(y)
    xxxy = form.gradient(x) @ y / 4.0
    xxyy = form.hessian_product(x, y) @ y / 12.0
    assert xxyy >= 0.0
    at_most(xxyy**2, xxxx * yyyy)
    at_most(xxxy**2, xxxx * xxyy)


@given(st.data())
def test_the_root_of_a_form_is_convex(data):
    form = data.draw(forms())
    x, y = data.draw(pairs(form))
    problem = problem_of(form)
    (f, g), (other, _) = problem.root_and_gradient(x), problem.root_and_gradient(y)
    at_most(f + g @ (y - x), other, f, g @ x)
    t = data.draw(st.floats(0.0, 1.0))
    at_most(np.sqrt(form.value((1.0 - t) * x + t * y)), (1.0 - t) * f + t * other)


@given(st.data())
def test_the_root_of_a_form_has_a_gradient_of_lipschitz_constant_6_beta(data):
    # Prop. 3.2, also where 0 lies between the two points.
    form = data.draw(forms())
    x, y = data.draw(pairs(form))
    problem = problem_of(form)
    (_, g), (_, h) = problem.root_and_gradient(x), problem.root_and_gradient(y)
    for metric, constants in metrics(form):
        at_most(metric.dual_norm(g - h), 6.0 * constants.beta * metric.norm(x - y), metric.dual_norm(g))


@given(st.data())
def test_forms_are_uniformly_convex_of_degree_four(data):
    # Prop. 3.3, with the constant α²/3.
    form = data.draw(forms())
    x, y = data.draw(pairs(form))
    value, (at_y, gradient) = form.value(x), form.value_and_gradient(y)
    slope = gradient @ (x - y)
    for metric, constants in metrics(form):
        at_most(constants.alpha**2 / 3.0 * metric.norm(x - y) ** 4, value - at_y - slope, value, at_y, slope)


# §2.1: condition numbers ----------------------------------------------------------------------------------------------


@given(st.data())
def test_constants_bracket_the_root_of_a_form(data):
    # α‖x‖² ≤ √ρ(x) ≤ β‖x‖²: Prop. 2.1 for stacked and complex rows, its graph and Gram versions for the others.
    form = data.draw(forms())
    x, y = data.draw(pairs(form))
    for metric, constants in metrics(form):
        for at in (x, y):
            at_most(constants.alpha * metric.norm(at) ** 2, np.sqrt(form.value(at)))
            at_most(np.sqrt(form.value(at)), constants.beta * metric.norm(at) ** 2)
        assert constants.kappa >= 1.0 - SLACK


@given(forms(("dense", "float32", "sparse", "complex")))
def test_general_constants_are_the_extreme_eigenvalues(form):
    rows = dense_rows(form)
    values = np.linalg.eigvalsh(rows.T @ rows)
    found = bounds.general(form)
    assert found.alpha == pytest.approx(values[0] / np.sqrt(form.terms), rel=1e-6)
    assert found.beta == pytest.approx(values[-1], rel=1e-9)
    assert bounds.euclidean(form) == found


@given(alike)
def test_the_spectrum_of_a_graph_lies_between_its_gap_and_twice_its_degree(form):
    # errata 3 of the documentation, on the centred subspace: without the centring term.
    incidence = plain.incidence(form.points, form.edges)
    laplacian = incidence.T @ incidence
    values = np.linalg.eigvalsh(laplacian)
    found = bounds.graph(form)
    assert found.alpha == pytest.approx(values[1] / np.sqrt(form.terms), rel=1e-9)
    assert found.beta == 2.0 * laplacian.diagonal().max()
    at_most(values[-1], found.beta)


@given(st.data())
def test_the_centring_term_of_a_graph_bounds_the_whole_space(data):
    # errata 3 of the documentation, with the centring term (‖Σxᵢ‖²/N)²:
    # min(λ₁,1)²/(|Ω|+1)‖X‖⁴ ≤ ρ(X) ≤ max(2d̄,1)²‖X‖⁴ for every X.
    form = data.draw(alike)
    rng = np.random.default_rng(data.draw(SEEDS))
    x = rng.standard_normal(form.shape) + data.draw(st.sampled_from([0.0, 1.0, 100.0])) * rng.standard_normal()
    rho = form.value(x) + (np.linalg.norm(x.sum(axis=0)) ** 2 / form.points) ** 2
    centred = bounds.graph(form)
    gap = min(centred.alpha * np.sqrt(form.terms), 1.0)
    norm = np.linalg.norm(x)
    at_most(gap**2 / (form.terms + 1) * norm**4, rho)
    at_most(rho, max(centred.beta, 1.0) ** 2 * norm**4)


@pytest.mark.parametrize("points", [60, 1600])
def test_the_spectral_gap_of_a_ring_is_known(points):
    # λ₁ = 2 − 2cos(2π/N): the dense and the sparse way to it.
    form = GraphForm(points, 1, np.stack([np.arange(points), (np.arange(points) + 1) % points], axis=1))
    found = bounds.graph(form)
    wanted = (2.0 - 2.0 * np.cos(2.0 * np.pi / points)) / np.sqrt(points)
    assert found == (pytest.approx(wanted, rel=1e-8), 4.0)


@given(st.integers(1, 6), st.integers(1, 4))
def test_gram_constants_are_attained(n, r):
    # κ = √r: β by a matrix of rank one, α by orthonormal columns (which need n ≥ r).
    form = GramForm(n, r)
    constants = bounds.gram(form)
    assert constants.kappa == pytest.approx(np.sqrt(r))
    x = np.zeros((n, r))
    x[0, 0] = 1.0
    assert form.value(x) == pytest.approx(constants.beta**2)
    if n >= r:
        assert form.value(np.eye(n, r)) == pytest.approx(constants.alpha**2 * r**2)


def test_scaled_forms_have_scaled_constants():
    rng = np.random.default_rng(0)
    for kind in ("dense", "sparse", "complex", "graph", "gram"):
        form = make(kind, 4, 2, 5, "gaussian", 1)
        scaled = form.scaled(10.0)
        before, after = bounds.euclidean(form), bounds.euclidean(scaled)
        plain.close(after, 100.0 * np.array(before))
        x = point(form, rng)
        at_most(after.alpha * (x @ x), np.sqrt(scaled.value(x)))
        at_most(np.sqrt(scaled.value(x)), after.beta * (x @ x))


# §5.1: leverage scores and the norm of B(τ) ---------------------------------------------------------------------------


@given(forms(WITH_TERMS), SEEDS)
def test_leverage_sums_to_the_dimension_and_is_at_most_the_rank(form, seed):
    # Lemma 5.2 (i) and (ii); on a graph the dimension is that of the centred subspace (errata 5 of the documentation).
    tau = np.random.default_rng(seed).uniform(0.05, 3.0, form.terms)
    scores = leverage(form, tau)
    dimension = form.dim - form.coordinates if isinstance(form, GraphForm) else form.dim
    assert scores.sum() == pytest.approx(dimension, rel=1e-9)
    assert scores.min() >= 0.0
    assert scores.max() <= form.rank * (1.0 + SLACK)


@given(st.data())
def test_leverage_bounds_the_share_of_a_term(data):
    # Lemma 5.2 (iii), and the sharper spectral norm of errata 13 of the documentation.
    form = data.draw(forms(WITH_TERMS))
    x, _ = data.draw(pairs(form))
    tau = np.random.default_rng(data.draw(SEEDS)).uniform(0.05, 3.0, form.terms)
    square = form.weighted(tau).norm(x) ** 2
    shares = tau * squares(form, x)
    spectral, scores = block_norms(form, tau), leverage(form, tau)
    assert (shares <= spectral * square * (1.0 + 1e-9) + SLACK * square).all()
    assert (spectral <= scores * (1.0 + 1e-9)).all()


@given(st.data())
def test_both_sides_of_the_comparison_with_a_weighted_norm(data):
    # Prop. 5.3, for powers p between 1 and 4, with traces and with spectral norms.
    form = data.draw(forms(WITH_TERMS))
    x, y = data.draw(pairs(form))
    p = data.draw(st.sampled_from([1.2, 1.5, 2.0, 3.0, 4.0]))
    tau = np.random.default_rng(data.draw(SEEDS)).uniform(0.05, 3.0, form.terms)
    metric = form.weighted(tau)
    for scores in (leverage(form, tau), block_norms(form, tau)):
        constants = bounds.weighted(tau, scores, p)
        for at in (x, y):
            total = (squares(form, at) ** p).sum() ** (1.0 / p)
            at_most(constants.alpha * metric.norm(at) ** 2, total)
            at_most(total, constants.beta * metric.norm(at) ** 2)


@given(forms(WITH_TERMS), SEEDS, st.sampled_from([1.5, 2.0, 3.0]))
def test_no_weights_beat_the_power_of_the_dimension(form, seed, p):
    # Prop. 5.4: for ‖τ‖_q = 1 the upper constant is at least n^{1/q}.
    q = p / (p - 1.0)
    tau = np.random.default_rng(seed).uniform(0.05, 3.0, form.terms)
    scores = leverage(form, tau)
    constants = bounds.weighted(tau, scores, p)
    assert constants.kappa >= scores.sum() ** (1.0 / q) * (1.0 - SLACK)


@given(st.data())
def test_the_coherence_bound_holds_in_the_uniform_metric(data):
    # §5.3: in the norm of B⁽⁰⁾ = m^{−½}ΣBᵢ, 1 ≤ √ρ/‖x‖² ≤ √(mγ) with γ the largest leverage.
    form = data.draw(forms(WITH_TERMS))
    x, _ = data.draw(pairs(form))
    tau = np.full(form.terms, form.terms**-0.5)
    scores = leverage(form, tau)
    constants = bounds.uniform(form.terms, scores.max())
    plain.close(constants, bounds.weighted(tau, scores), 1e-9)
    metric = form.weighted(tau)
    at_most(metric.norm(x) ** 2, np.sqrt(form.value(x)))
    at_most(np.sqrt(form.value(x)), constants.beta * metric.norm(x) ** 2)


def test_the_centring_operator_has_the_largest_leverage():
    # errata 5 of the documentation: while it is one of the terms, its leverage is d, the maximum, so γ = dγ(Ω) fails
    # for the printed set.
    rng = np.random.default_rng(3)
    points, d = 7, 2
    rows = plain.edge_rows(points, d, connected_edges(rng, points, 20))
    centring = np.kron(np.full((1, points), points**-0.5), np.eye(d))
    terms = plain.blocks(np.vstack([rows, centring]), d)
    inverse = np.linalg.inv(sum(u.T @ u for u in terms))
    scores = [np.trace(u @ inverse @ u.T) for u in terms]
    assert scores[-1] == pytest.approx(d)
    assert max(scores[:-1]) < d - 0.1


@given(forms(WITH_TERMS), SEEDS)
def test_the_metric_of_the_weights_is_their_weighted_sum(form, seed):
    rng = np.random.default_rng(seed)
    tau = rng.uniform(0.05, 3.0, form.terms)
    rows = dense_rows(form)
    x = point(form, rng)
    wanted = rows.T @ (np.repeat(tau, form.rank) * (rows @ x))
    plain.close(form.weighted(tau).apply(x), wanted, 1e-11)


def test_lewis_constants_are_the_root_of_the_dimension():
    assert bounds.lewis(49) == Bounds(1.0, 7.0)
    # The identity rows attain them: √n‖x‖₄² ≥ ‖x‖₂² ≥ ‖x‖₄² is tight at 1 and at e₁ (remark after Thm 5.6).
    form = StackedForm(np.eye(49))
    tau = np.full(49, 49.0**-0.5)
    metric = form.weighted(tau)
    ones, first = np.ones(49), np.eye(49)[0]
    assert np.sqrt(form.value(ones)) == pytest.approx(metric.norm(ones) ** 2)
    assert np.sqrt(form.value(first)) == pytest.approx(7.0 * metric.norm(first) ** 2)
