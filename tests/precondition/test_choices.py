"""What the methods do where terms have a rank, are zero or are sampled; defaults, options and names of metrics."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import quartbench as qb
from quartbench.errors import ProblemError
from quartbench.precondition import automatic_metric, leverage, lewis_weights, methods, metric
from quartbench.precondition import sweeps as sweeps_module
from quartbench.precondition.methods import Extrapolation
from quartbench.precondition.sweeps import Sweep, Sweeps

M, N, R = 60, 5, 3


def rows_of_rank():
    """Return terms of rank 3 on five unknowns, the first alone on three of them: its leverage is 3."""
    rows = np.zeros((M, R, N))
    rows[0, :, :R] = 5.0 * np.eye(R)
    rows[1:, :, R:] = np.random.default_rng(0).standard_normal((M - 1, R, N - R))
    return rows.reshape(-1, N)


ROWS = rows_of_rank()
FORM = qb.StackedForm(ROWS, R)


def traces(tau, rows=ROWS, rank=R):
    """Return gᵢ = Tr(B(τ)⁻¹Bᵢ)."""
    inverse = np.linalg.inv(rows.T @ (np.repeat(tau, rank)[:, None] * rows))
    return np.einsum("ij,jk,ik->i", rows, inverse, rows).reshape(-1, rank).sum(axis=1)


def unit(tau, q=2.0):
    return tau / (tau**q).sum() ** (1.0 / q)


# Terms of higher rank -------------------------------------------------------------------------------------------------


def through(tau, omega):
    """Return the bound on κ through p' < 2, m^{1/p'−1/2}‖τ‖_{q'} maxᵢ (gᵢ/τᵢ^{q'−1})^{1/q'}."""
    spread = math.log(M / N)
    p = 2.0 * spread / (spread + 2.0 * math.log(omega))
    q = p / (p - 1.0)
    return M ** (1.0 / p - 0.5) * (tau**q).sum() ** (1.0 / q) * (traces(tau) / tau ** (q - 1.0)).max() ** (1.0 / q)


@pytest.mark.parametrize(("omega", "better"), [(1.2, False), (2.0, True)])
def test_the_surrogate_certifies_through_its_own_power_where_that_is_better(omega, better):
    found = lewis_weights(FORM, 2.0, "surrogate", eps=1e-3, omega=omega)
    direct = np.linalg.norm(found.tau) * math.sqrt((traces(found.tau) / found.tau).max())
    assert (through(found.tau, omega) < 0.99 * direct) == better
    assert found.kappa_bound == pytest.approx(min(direct, through(found.tau, omega)), rel=1e-9)


def test_the_way_through_another_power_allows_for_rounding():
    class Rough(Sweeps):
        def __call__(self, tau, step):
            return Sweep(tau, traces(tau), SimpleNamespace(rounding=0.25), math.inf)

    rough = Rough(FORM, 2.0, 1e-3, 50)
    rough.count = 0
    found = methods.surrogate(rough, 2.0)
    assert found.ratio * math.sqrt(N) == pytest.approx(1.25 * through(found.tau, 2.0), rel=1e-9)


def test_the_fast_step_is_damped_by_leverage_of_at_most_one():
    tau = np.full(M, M**-0.5)
    scores = tau * traces(tau)
    assert scores.max() == pytest.approx(3.0)
    residual = np.log(traces(tau) / N) - np.log(tau)
    wanted = unit(np.exp(np.log(tau) + residual / (1.0 + np.minimum(scores, 1.0))))
    found = lewis_weights(FORM, eps=1e-12, max_sweeps=2)
    assert list(found.history["step"]) == ["start", "fast"]
    kappa = np.linalg.norm(wanted) * math.sqrt((traces(wanted) / wanted).max())
    assert found.history["kappa_bound"][1] == pytest.approx(kappa, rel=1e-9)


# Back to the best point -----------------------------------------------------------------------------------------------


def test_relaxed_steps_begin_at_the_best_point_and_not_where_a_fast_one_led_astray(monkeypatch):
    monkeypatch.setattr(methods, "CREDIT", 1)
    monkeypatch.setattr(Extrapolation, "__call__", lambda self, u, residual: (u, -3.0 * residual))
    found = lewis_weights(FORM, eps=1e-12, max_sweeps=3)
    assert list(found.history["step"]) == ["start", "fast", "relaxed"]
    bounds = found.history["kappa_bound"]
    assert bounds[1] > bounds[0]
    tau = np.full(M, M**-0.5)
    tau = unit(np.exp(np.log(tau) / 3.0 + 2.0 / 3.0 * np.log(traces(tau) / N)))
    assert bounds[2] == pytest.approx(np.linalg.norm(tau) * math.sqrt((traces(tau) / tau).max()), rel=1e-9)


# Samples --------------------------------------------------------------------------------------------------------------

SQUARE = np.random.default_rng(1).standard_normal((2 * 200, 4)) * np.repeat(np.geomspace(1.0, 9.0, 200), 2)[:, None]


class Noiseless(Sweeps):
    """Sweeps whose samples and sketches are exact, and that remember what they were asked."""

    def sampled(self, tau, drawn, columns, rng):
        self._record("sample", np.nan)
        self.seen = [*getattr(self, "seen", []), (tau, *drawn)]
        return traces(tau, SQUARE, 2)

    def rated(self, terms, kept, weights, columns, rng):
        self.ratings = [*getattr(self, "ratings", []), (terms, kept, weights)]
        return traces(np.ones(200), SQUARE, 2)[terms]


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_sampled_sweeps_draw_by_leverage_and_take_the_steps_of_a_sketch(p):
    q = p / (p - 1.0)
    sweeps = Noiseless(qb.StackedForm(SQUARE, 2), p, 0.01, 100)
    found = methods.sampled(sweeps, 8, np.random.default_rng(0))
    size = 10 * 4 / 2
    tau, scores = unit(np.ones(200), q), traces(np.ones(200), SQUARE, 2)
    for k, (seen, picked, chances) in enumerate(sweeps.seen):
        np.testing.assert_allclose(seen, tau, rtol=1e-9)
        wanted = np.minimum(size * scores / scores.sum(), 1.0)
        np.testing.assert_allclose(chances, wanted[picked], rtol=1e-9)
        assert 0.3 * size < picked.size < 2.0 * size
        scores = tau * traces(tau, SQUARE, 2)
        step = 2.0 / (p + 1.0) if k < 2 else 1.0 / k
        tau = unit(np.exp((1.0 - step) * np.log(tau) + step * (p - 1.0) * np.log(traces(tau, SQUARE, 2))), q)
    np.testing.assert_allclose(found.tau, tau, rtol=1e-9)
    assert (len(sweeps.seen), sweeps.iterations, sweeps.count) == (8, 8, 9)
    short = Noiseless(qb.StackedForm(SQUARE, 2), p, 0.01, 4)
    methods.sampled(short, 8, np.random.default_rng(0))
    assert (len(short.seen), short.count) == (3, 4)


def test_the_first_scores_come_from_samples_that_double():
    sweeps = Noiseless(qb.StackedForm(SQUARE, 2), 2.0, 0.01, 100)
    scores = methods._first_scores(sweeps, 20.0, 8, np.random.default_rng(0))
    exact = traces(np.ones(200), SQUARE, 2)
    np.testing.assert_allclose(scores, exact, rtol=1e-12)
    assert [len(terms) for terms, _, _ in sweeps.ratings] == [40, 80, 160, 200]
    np.testing.assert_array_equal(sweeps.ratings[0][2], np.ones(20))
    for (terms, _, _), (_, kept, weights) in zip(sweeps.ratings[:-1], sweeps.ratings[1:], strict=True):
        # Each was kept with probability min(1, sℓ/Σℓ) among those rated before, and weighs its inverse.
        assert set(kept) <= set(terms)
        chances = np.minimum(20.0 * exact[kept] / exact[terms].sum(), 1.0)
        np.testing.assert_allclose(weights, 1.0 / chances, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_samples_of_all_terms_without_a_sketch_are_exact(scale):
    # As many columns as unknowns: no sketch. What is left is the ridge.
    sweeps = Sweeps(qb.StackedForm(SQUARE, 2).scaled(scale), 2.0, 0.01, 100)
    tau, everything = np.linspace(0.5, 2.0, 200), np.arange(200)
    rng = np.random.default_rng(0)
    found = sweeps.sampled(tau, (everything, np.full(200, 0.25)), 4, rng)
    np.testing.assert_allclose(found, traces(4.0 * tau, SQUARE, 2), rtol=1e-5)
    some = np.array([5, 50, 199])
    rated = sweeps.rated(some, everything, np.full(200, 2.0), 4, rng)
    np.testing.assert_allclose(rated, traces(np.full(200, 2.0), SQUARE, 2)[some], rtol=1e-5)
    assert sweeps.history[0][1] == "sample"
    # With fewer columns it is a sketch, which is no more than near.
    sketched = sweeps.sampled(tau, (everything, np.full(200, 0.25)), 3, rng)
    assert np.abs(sketched / found - 1.0).max() > 0.1


def test_a_direction_that_a_sample_does_not_see_gets_a_share_of_all_terms():
    rows = np.vstack([np.eye(3)[:2], 4.0 * np.eye(3)[2:], np.eye(3)[:1]])
    sweeps = Sweeps(qb.StackedForm(rows), 2.0, 0.01, 100)
    made = sweeps._of_sample(np.array([0, 1]), np.array([2.0, 6.0]))
    share = sweeps_module.RIDGE * (2.0 + 6.0) / 4.0
    for j, wanted in enumerate((2.0 + share * 2.0, 6.0 + share, share * 16.0)):
        assert made.apply(np.eye(3)[j])[j] == pytest.approx(wanted, rel=1e-12)
    assert 0.0 < share < 1e-4


# Terms that are zero --------------------------------------------------------------------------------------------------


def test_terms_that_are_zero_weigh_nothing_and_change_nothing():
    rows = np.random.default_rng(2).standard_normal((30, 4))
    more = np.zeros((36, 4))
    where = np.setdiff1d(np.arange(36), [0, 7, 8, 20, 34, 35])
    more[where] = rows
    for options in ({}, {"sketch": 3}, {"method": "sampled"}):
        found = lewis_weights(qb.StackedForm(more), **options)
        assert found.tau.shape == (36,)
        assert not np.delete(found.tau, where).any()
        assert (found.tau[where] > 0.0).all()
        assert np.linalg.norm(found.tau) == pytest.approx(1.0)
    wanted = lewis_weights(qb.StackedForm(rows), eps=1e-9)
    found = lewis_weights(qb.StackedForm(more), eps=1e-9)
    np.testing.assert_allclose(found.tau[where], wanted.tau, rtol=1e-7)
    assert found.kappa_bound == pytest.approx(wanted.kappa_bound, rel=1e-9)


def test_weights_are_scaled_without_leaving_the_range():
    sweeps = Sweeps(FORM, 2.0, 0.01, 10)
    for shift in (0.0, 1000.0, -1000.0):
        np.testing.assert_allclose(sweeps.normalised(np.full(M, shift)), M**-0.5, rtol=1e-12)


# Defaults, options and names ------------------------------------------------------------------------------------------


def test_omega_is_one_and_a_half_where_it_is_not_given():
    wanted = lewis_weights(FORM, method="surrogate", omega=1.5)
    np.testing.assert_array_equal(lewis_weights(FORM, method="surrogate").tau, wanted.tau)
    np.testing.assert_array_equal(methods.surrogate(Sweeps(FORM, 2.0, 0.01, 1000)).tau, wanted.tau)
    assert not np.allclose(lewis_weights(FORM, method="surrogate", omega=3.0).tau, wanted.tau, rtol=1e-3)


@pytest.mark.parametrize("name", ["p", "eps", "omega"])
def test_numbers_that_are_not_finite_are_refused(name):
    for wrong in (np.nan, np.inf):
        with pytest.raises(ProblemError, match=f"{name} must lie in "):
            lewis_weights(FORM, **{name: wrong})


def test_weights_are_shown_with_their_sketch_where_there_is_one():
    form = qb.StackedForm(np.random.default_rng(3).standard_normal((50, 12)))
    plain, sketched = lewis_weights(form), lewis_weights(form, sketch=7)
    assert "auto, B(τ) by cholesky<" in plain._repr_html_()
    assert "auto, B(τ) by cholesky, 7 columns<" in sketched._repr_html_()


def test_single_precision_is_an_option_of_the_uniform_metric_alone():
    x = np.array([1.0, -2.0, 0.5, 3.0, 1.0])
    double, single = metric(FORM, "uniform"), metric(FORM, "uniform", precision="single")
    assert single.solve(double.apply(x)) == pytest.approx(x, rel=1e-3)
    with pytest.raises(ProblemError, match="metric 'identity' has no options, found 'precision'"):
        metric(FORM, "identity", precision="single")
    with pytest.raises(ProblemError, match="metric 'uniform' has no options, found 'precision', 'eps'"):
        metric(FORM, "uniform", precision="single", eps=0.1)
    assert metric(FORM, "lewis", eps=0.1, p=2.0).name == "lewis"
    assert metric(FORM, "diagonal-best", eps=0.1).name == "diagonal-best"


def test_the_automatic_metric_is_the_best_that_a_cone_and_a_form_allow(monkeypatch):
    assert automatic_metric(FORM, qb.Free()) == "uniform"
    assert automatic_metric(FORM, qb.Orthant()) == "diagonal"
    assert automatic_metric(FORM, qb.SecondOrder()) == "identity"
    assert automatic_metric(qb.GramForm(3, 2), qb.Free()) == "identity"
    assert automatic_metric(qb.GramForm(3, 2), qb.Orthant()) == "identity"
    monkeypatch.setattr(type(FORM), "factorable", False)
    assert automatic_metric(qb.StackedForm(np.eye(3)), qb.Free()) == "identity"
    assert automatic_metric(qb.StackedForm(np.diag([1.0, 1e9, 1e-9])), qb.Free()) == "diagonal"


def test_leverage_is_a_weight_times_a_trace():
    tau = np.linspace(0.5, 2.0, M)
    np.testing.assert_allclose(leverage(FORM, tau), tau * traces(tau), rtol=1e-9)
