"""Section 5 of the paper as its errata correct it, on random forms of rank 1 to 5: what the methods rest on is true."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from quartbench.forms import StackedForm
from quartbench.instances import barbell, complex_gaussian
from quartbench.precondition import coherence, leverage, lewis_weights, metric
from quartbench.precondition.sweeps import Sweeps, certificate
from tests.model import paper_bounds as bounds

from .plain import (
    fixed_point_map,
    log_distance,
    potential,
    stacked_forms,
    terms_of,
    traces_of,
    weighted_sum,
    weights_for,
)


def iteration_bound(form, p, eps):
    """errata 11 of the documentation: 1 + ln₊(ln(rm)/((2−p)ε))/(2−p)."""
    return 1 + np.log(max(np.log(form.rank * form.terms) / ((2 - p) * eps), 1.0)) / (2 - p)


POWERS = st.sampled_from([1.1, 1.3, 1.5, 1.7, 1.9])


@given(st.data())
def test_leverage_scores_lie_between_zero_and_the_rank_and_add_up_to_n(data):
    form = data.draw(stacked_forms())
    scores = leverage(form, data.draw(weights_for(form)))
    assert (scores >= 0).all()
    assert (scores <= form.rank * (1 + 1e-10)).all()
    assert scores.sum() == pytest.approx(form.dim, rel=1e-9)


@given(st.data())
def test_a_term_is_at_most_its_spectral_leverage_times_the_norm(data):
    form = data.draw(stacked_forms())
    tau = data.draw(weights_for(form))
    terms, total = terms_of(form), weighted_sum(terms_of(form), tau)
    sizes = form.spectral_norms(form.weighted(tau))
    assert (sizes <= form.traces(form.weighted(tau)) * (1 + 1e-9)).all()
    x = np.random.default_rng(0).standard_normal((20, form.dim))
    values = np.einsum("aj,ijk,ak->ai", x, terms, x)
    squares = np.einsum("aj,jk,ak->a", x, total, x)
    assert (values <= sizes * squares[:, None] * (1 + 1e-9)).all()


@given(st.data(), st.sampled_from([1.2, 1.5, 2.0, 3.0]))
def test_the_form_lies_between_the_bounds_of_any_weights(data, p):
    form = data.draw(stacked_forms())
    tau = data.draw(weights_for(form))
    low, high = bounds.weighted(tau, leverage(form, tau), p)
    x = np.random.default_rng(1).standard_normal((20, form.dim))
    terms = terms_of(form)
    root = (np.einsum("aj,ijk,ak->ai", x, terms, x) ** p).sum(axis=1) ** (1 / p)
    squares = np.einsum("aj,jk,ak->a", x, weighted_sum(terms, tau), x)
    assert (low * squares <= root * (1 + 1e-9)).all()
    assert (root <= high * squares * (1 + 1e-9)).all()
    assert high / low >= form.dim ** (1 - 1 / p) * (1 - 1e-9)
    assert high / low == pytest.approx(
        certificate(tau, leverage(form, tau) / tau, form.dim, p) * form.dim ** (1 - 1 / p)
    )


@given(st.data(), POWERS)
def test_the_fixed_point_map_contracts_the_log_distance(data, p):
    form = data.draw(stacked_forms())
    one, two = data.draw(weights_for(form)), data.draw(weights_for(form))
    before, after = log_distance(one, two), log_distance(fixed_point_map(form, one, p), fixed_point_map(form, two, p))
    assert after <= (p - 1) * before * (1 + 1e-7) + 1e-8


@given(st.data(), POWERS)
def test_fixed_point_iterates_converge_at_the_corrected_rate(data, p):
    """Prop. 5.8 with errata 10 of the documentation: D_L(τ⁽ᵏ⁾, τ*) ≤ ((p−1)^{k+1}/p) ln(rm) for k ≥ 1."""
    form = data.draw(stacked_forms())
    best = lewis_weights(form, p=p, eps=1e-12).tau
    tau = form.uniform_weights(p)
    for k in range(1, 9):
        tau = fixed_point_map(form, tau, p)
        assert log_distance(tau, best) <= (p - 1) ** (k + 1) / p * np.log(form.rank * form.terms) + 1e-7


@given(st.data(), POWERS, st.sampled_from([0.3, 0.01, 1e-4]))
def test_algorithm_3_stops_in_time_and_keeps_its_promise(data, p, eps):
    """Prop. 5.9: so many iterations at most, then κ ≤ e^{2ε}n^{1−1/p}."""
    form = data.draw(stacked_forms())
    weights = lewis_weights(form, p=p, method="fixed-point", eps=eps)
    assert weights.iterations <= iteration_bound(form, p, eps)
    assert weights.sweeps == weights.iterations + 1
    assert weights.kappa_bound <= np.exp(2 * eps) * form.dim ** (1 - 1 / p) * (1 + 1e-9)


@given(st.data(), st.sampled_from([1.05, 1.2, 1.5, 2.0]))
def test_the_surrogate_loses_no_more_than_omega(data, omega):
    """Corollary 5.10 with errata 12 of the documentation; where m/n ≤ ω² it is B⁽⁰⁾."""
    form = data.draw(stacked_forms())
    ratio = form.terms / form.dim
    weights = lewis_weights(form, method="surrogate", omega=omega, eps=0.01)
    if ratio <= omega**2:
        np.testing.assert_array_equal(weights.tau, form.uniform_weights())
        assert weights.kappa_bound <= omega * np.sqrt(form.rank * form.dim) * (1 + 1e-9)
        return
    power = 2 * np.log(ratio) / (np.log(ratio) + 2 * np.log(omega))
    assert 1 / (2 - power) == pytest.approx(0.5 + np.log(ratio) / (4 * np.log(omega)))
    assert weights.kappa_bound <= np.exp(0.02) * omega * np.sqrt(form.dim) * (1 + 1e-9)
    assert weights.iterations <= iteration_bound(form, power, 0.01)


@given(st.data(), st.sampled_from([1.5, 2.0, 3.0]), st.integers(1, 12))
def test_averaged_iterates_keep_the_guarantee_given_beforehand(data, p, count):
    form = data.draw(stacked_forms())
    weights = lewis_weights(form, p=p, method="average", eps=1e-3, max_sweeps=count)
    exponent = 1 - 1 / p
    spread = (form.terms * form.rank / form.dim) ** (exponent / weights.sweeps)
    assert weights.sweeps <= count
    assert weights.kappa_bound <= form.dim**exponent * spread * (1 + 1e-9)


@given(st.data())
def test_averaging_asks_for_just_the_sweeps_that_its_guarantee_needs(data):
    form = data.draw(stacked_forms())
    weights = lewis_weights(form, method="average", eps=0.1)
    assert weights.kappa_bound <= 1.1 * np.sqrt(form.dim) * (1 + 1e-9)
    assert weights.converged
    assert weights.sweeps == max(1, np.ceil(np.log(form.terms * form.rank / form.dim) / (2 * np.log(1.1))))


@given(st.data(), st.sampled_from([1.3, 2.0, 4.0]))
def test_mm_lowers_the_potential_at_unit_norm(data, p):
    form = data.draw(stacked_forms())
    q = p / (p - 1)
    tau = form.uniform_weights(p)
    for _ in range(4):
        after = (tau * traces_of(form, tau) / form.dim) ** (1 / q)
        assert np.linalg.norm(after, q) == pytest.approx(1.0)
        assert potential(form, after, p) <= potential(form, tau, p) + 1e-9
        tau = after


@given(st.data(), st.sampled_from([1.5, 2.0, 3.0]))
def test_the_linearised_map_is_row_stochastic_with_spectrum_in_the_unit_interval(data, p):
    """The ground of all damping: u ↦ ln g(e^u) has the Jacobian −P."""
    form = data.draw(stacked_forms(most=12, spreads=(0.0,)))
    tau = data.draw(weights_for(form, spread=0.5))
    u, step = np.log(tau), 1e-4
    jacobian = np.empty((form.terms, form.terms))
    for j in range(form.terms):
        shift = step * np.eye(form.terms)[j]
        ahead, behind = traces_of(form, np.exp(u + shift)), traces_of(form, np.exp(u - shift))
        jacobian[:, j] = (np.log(ahead) - np.log(behind)) / (2 * step)
    np.testing.assert_allclose(jacobian.sum(axis=1), -1.0, atol=1e-4)
    values = np.linalg.eigvals(-jacobian)
    assert np.abs(values.imag).max() < 1e-4
    assert values.real.min() > -1e-4
    assert values.real.max() < 1 + 1e-4
    # The damping of ``auto``: the diagonal is at most min(ℓ, 1), and ℓ for rank 1.
    scores = np.minimum(leverage(form, tau), 1.0)
    assert (-jacobian.diagonal() <= scores + 1e-5).all()
    if form.rank == 1:
        np.testing.assert_allclose(-jacobian.diagonal(), scores, atol=1e-5)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_lewis_weights_minimise_the_potential(p, rank):
    rng = np.random.default_rng(rank)
    form = StackedForm(rng.standard_normal((7 * rank, 4)), rank)
    found = scipy.optimize.minimize(
        lambda u: potential(form, np.exp(u), p), np.zeros(7), method="BFGS", jac="3-point", options={"gtol": 1e-9}
    )
    weights = lewis_weights(form, p=p, eps=1e-11)
    np.testing.assert_allclose(weights.tau, np.exp(found.x), rtol=1e-6)
    assert potential(form, weights.tau, p) <= found.fun + 1e-10


@given(st.data())
def test_lewis_weights_and_metric_are_invariant_under_linear_maps(data):
    """B* of x ↦ ρ(Tx) is TᵀB*T, and τ* is the same."""
    form = data.draw(stacked_forms())
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    transform = np.linalg.qr(rng.standard_normal((form.dim, form.dim)))[0] * np.exp(rng.standard_normal(form.dim))
    turned = StackedForm(form.rows @ transform, form.rank)
    one, two = lewis_weights(form, eps=1e-11), lewis_weights(turned, eps=1e-11)
    np.testing.assert_allclose(one.tau, two.tau, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        form.weighted_gram(one.tau),
        np.linalg.solve(transform.T, np.linalg.solve(transform.T, turned.weighted_gram(two.tau)).T),
        rtol=1e-6,
        atol=1e-6 * np.abs(form.weighted_gram(one.tau)).max(),
    )


@given(st.data(), st.integers(2, 4))
def test_repeated_terms_share_their_weight(data, copies):
    """k copies of every term: ρ becomes kρ, τ* becomes τ*/√k each, and B* becomes √k B*."""
    form = data.draw(stacked_forms())
    again = StackedForm(np.tile(form.rows, (copies, 1)), form.rank)
    one, two = lewis_weights(form, eps=1e-11), lewis_weights(again, eps=1e-11)
    np.testing.assert_allclose(two.tau, np.tile(one.tau, copies) / np.sqrt(copies), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        again.weighted_gram(two.tau),
        np.sqrt(copies) * form.weighted_gram(one.tau),
        rtol=1e-6,
        atol=1e-8 * np.abs(form.rows).max() ** 2,
    )


@given(st.data(), st.integers(2, 5))
def test_one_term_repeated_is_one_term_scaled(data, copies):
    """k copies of Bᵢ and one √k·Bᵢ make the same ρ, so they have the same B*; the weight of the one is √k τᵢ."""
    form = data.draw(stacked_forms())
    rows, rank = form.rows, form.rank
    repeated = StackedForm(np.concatenate([rows, np.tile(rows[:rank], (copies - 1, 1))]), rank)
    scaled_rows = rows.copy()
    scaled_rows[:rank] *= copies**0.25
    scaled = StackedForm(scaled_rows, rank)
    one, two = lewis_weights(repeated, eps=1e-11), lewis_weights(scaled, eps=1e-11)
    np.testing.assert_allclose(one.tau[1 : form.terms], two.tau[1:], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(two.tau[0], np.sqrt(copies) * one.tau[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        repeated.weighted_gram(one.tau), scaled.weighted_gram(two.tau), rtol=1e-7, atol=1e-9 * np.abs(rows).max() ** 2
    )


def test_all_terms_scaled_leave_the_weights_alone():
    rng = np.random.default_rng(0)
    form = StackedForm(rng.standard_normal((60, 6)), 2)
    weights = lewis_weights(form, eps=1e-10)
    for factor in (1e-60, 1e60):
        for twin in (form.scaled(factor), StackedForm(factor * form.rows, 2)):
            found = lewis_weights(twin, eps=1e-10)
            np.testing.assert_allclose(found.tau, weights.tau, rtol=1e-8)
            x = rng.standard_normal(6)
            assert found.metric.norm(x) == pytest.approx(factor * weights.metric.norm(x), rel=1e-8)


def test_complex_rows_have_half_the_leverage_of_their_real_embedding():
    """In ℂᴺ the scores add up to N; as rank-2 terms on ℝ²ᴺ to 2N.

    See errata 13 of the documentation: the spectral norm is that of ℂᴺ.
    """
    form = complex_gaussian(40, 5).form
    q = form.rows
    embedded = np.empty((80, 10))
    embedded[0::2, 0::2], embedded[0::2, 1::2] = q.real, q.imag
    embedded[1::2, 0::2], embedded[1::2, 1::2] = -q.imag, q.real
    real = StackedForm(embedded, 2)
    tau = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    np.testing.assert_allclose(leverage(real, tau), 2 * leverage(form, tau), rtol=1e-10)
    np.testing.assert_allclose(tau * real.spectral_norms(real.weighted(tau)), leverage(form, tau), rtol=1e-10)
    assert leverage(form, tau).sum() == pytest.approx(5)
    assert lewis_weights(form).kappa_bound <= 1.01 * np.sqrt(5)


def test_graph_leverage_is_that_of_its_rank_d_terms_on_the_centred_subspace():
    """errata 5 of the documentation: without the centring term γ(𝓑) = dγ(Ω); computed on N vertices, κ* ≤ √(N−1)."""
    form = barbell(12, dim=2).form
    edges = np.zeros((form.terms, form.points))
    edges[np.arange(form.terms), form.heads], edges[np.arange(form.terms), form.tails] = 1.0, -1.0
    basis = np.linalg.svd(np.ones((1, form.points)))[2][1:].T
    stacked = StackedForm(np.kron(edges @ basis, np.eye(2)), 2)
    tau = np.random.default_rng(0).uniform(0.5, 2.0, form.terms)
    np.testing.assert_allclose(leverage(stacked, tau), 2 * leverage(form, tau), rtol=1e-10)
    assert leverage(form, tau).sum() == pytest.approx(form.points - 1)
    assert coherence(form) == pytest.approx(1.0)
    assert coherence(stacked) == pytest.approx(2.0)
    assert lewis_weights(form, eps=1e-9).kappa_bound <= (1 + 1e-9) * np.sqrt(form.points - 1)


def test_the_centring_term_would_have_the_largest_leverage():
    """errata 5 of the documentation: the centring operator as a Bᵢ has leverage r, the maximum; it is dropped."""
    form = barbell(10, dim=2).form
    edges = np.zeros((form.terms, form.points))
    edges[np.arange(form.terms), form.heads], edges[np.arange(form.terms), form.tails] = 1.0, -1.0
    rows = np.kron(np.concatenate([edges, np.full((1, form.points), form.points**-0.5)]), np.eye(2))
    scores = leverage(StackedForm(rows, 2))
    assert scores[-1] == pytest.approx(2.0)
    assert scores.max() <= scores[-1] * (1 + 1e-12)


def test_coherence_lies_between_its_limits_and_gives_the_uniform_bound():
    rng = np.random.default_rng(3)
    for rank in (1, 3):
        form = StackedForm(rng.standard_normal((40 * rank, 6)), rank)
        gamma = coherence(form)
        assert 6 / 40 <= gamma <= rank
        assert metric(form, "uniform").bounds.kappa <= bounds.uniform(40, gamma).kappa * (1 + 1e-9)


def test_a_sweep_counts_one_however_it_is_used():
    form = StackedForm(np.random.default_rng(0).standard_normal((30, 4)))
    sweeps = Sweeps(form, 2.0, 0.01, 100)
    for k in range(3):
        sweeps(sweeps.start, "again")
        assert sweeps.count == k + 1
