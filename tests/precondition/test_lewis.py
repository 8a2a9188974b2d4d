"""Lewis weights reach √n within few sweeps, whatever the form; all methods agree; every certificate is true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quartbench.errors import ProblemError
from quartbench.forms import GramForm, StackedForm
from quartbench.instances import (
    barbell,
    blocks,
    coded_diffraction,
    coherent,
    complex_gaussian,
    geometric,
    heavy_tailed,
    regular,
    ring,
    sparse,
)
from quartbench.precondition import leverage, lewis_weights, measured_kappa
from quartbench.precondition.methods import METHODS, Extrapolation, auto
from quartbench.precondition.sweeps import Sweeps
from tests.model import paper_bounds as bounds

from .plain import stacked_forms, traces_of

FORMS = {
    "γ = n/m": lambda: coherent(500, 20, 20 / 500),
    "γ = 0.3": lambda: coherent(500, 20, 0.3),
    "γ = 0.999": lambda: coherent(500, 20, 0.999),
    "γ = 0.3, generic": lambda: coherent(500, 20, 0.3, kind="generic"),
    "γ = 0.999, generic": lambda: coherent(500, 20, 0.999, kind="generic"),
    "γ = 0.98, large": lambda: coherent(20000, 50, 0.98),
    "rank 1": lambda: blocks(120, 30, 1, seed=1),
    "rank 2": lambda: blocks(120, 30, 2, seed=2),
    "rank 3": lambda: blocks(120, 30, 3, seed=3),
    "rank 4": lambda: blocks(120, 30, 4, seed=4),
    "rank 5": lambda: blocks(120, 30, 5, seed=5),
    "complex": lambda: complex_gaussian(200, 20),
    "coded diffraction": lambda: coded_diffraction(32, 6),
    "heavy tails": lambda: heavy_tailed(2000, 30, df=1.0),
    "sparse": lambda: sparse(2000, 100, 0.03),
    "barbell": lambda: barbell(60),
    "barbell, long bridge": lambda: barbell(100, bridge=10),
    "ring": lambda: ring(100, neighbours=3),
    "geometric": lambda: geometric(300),
    "expander": lambda: regular(200, 6),
}


@pytest.fixture(scope="module", params=FORMS, ids=FORMS.keys())
def form(request):
    return FORMS[request.param]().form


def test_kappa_is_within_one_percent_after_at_most_10_sweeps(form):
    weights = lewis_weights(form)
    assert weights.kappa_bound <= 1.01 * np.sqrt(form.freedom)
    assert weights.converged
    assert weights.sweeps <= 10


def test_kappa_is_exact_to_1e_9_after_at_most_30_sweeps(form):
    weights = lewis_weights(form, eps=1e-9)
    assert weights.kappa_bound <= (1 + 1e-9) * np.sqrt(form.freedom)
    assert weights.kappa_bound >= np.sqrt(form.freedom) * (1 - 1e-12)
    assert weights.sweeps <= 30
    assert np.linalg.norm(weights.tau) == pytest.approx(1.0)


def test_the_result_says_what_happened(form):
    weights = lewis_weights(form, eps=1e-3)
    history = weights.history
    assert weights.method == "auto"
    assert weights.metric.tau is weights.tau
    assert (weights.metric.name, weights.metric.sweeps) == ("lewis", weights.sweeps)
    assert set(history) == {"sweep", "step", "kappa_bound", "seconds"}
    np.testing.assert_array_equal(history["sweep"], np.arange(1, weights.sweeps + 1))
    assert history["kappa_bound"].min() == weights.kappa_bound
    assert history["kappa_bound"][0] == pytest.approx(bounds.uniform(form.terms, leverage(form).max()).kappa, rel=1e-8)
    assert (np.diff(history["seconds"]) >= 0).all()
    assert weights.metric.setup_seconds == history["seconds"][-1]
    assert weights.metric.bounds.alpha == pytest.approx(1.0)
    assert weights.metric.bounds.kappa <= weights.kappa_bound * (1 + 1e-9)


@pytest.mark.parametrize("method", ["auto", "relaxed", "mm", "average", "fixed-point", "surrogate"])
@settings(max_examples=12)
@given(data=st.data())
def test_every_method_certifies_the_truth(method, data):
    drawn = data.draw(stacked_forms())
    p = 1.5 if method == "fixed-point" else 2.0
    weights = lewis_weights(drawn, p=p, method=method, eps=0.05)
    low, high = bounds.weighted(weights.tau, weights.tau * traces_of(drawn, weights.tau), p)
    if method == "surrogate":  # it may certify through p' < 2 what Prop. 5.3 does not see at p = 2
        assert measured_kappa(drawn, weights.metric, starts=2, steps=20) <= weights.kappa_bound * (1 + 1e-9)
    else:
        assert weights.kappa_bound == pytest.approx(high / low, rel=1e-6)
    assert (
        weights.converged or method == "surrogate" or (method == "fixed-point" and weights.kappa_bound <= np.exp(0.1))
    )


@pytest.mark.parametrize("p", [1.2, 1.5, 1.8, 2.0, 3.0])
@settings(max_examples=12)
@given(data=st.data())
def test_methods_agree_on_the_weights(p, data):
    drawn = data.draw(stacked_forms(spreads=(0.0, 1.0)))
    found = {name: lewis_weights(drawn, p=p, method=name, eps=1e-11).tau for name in ("auto", "relaxed", "mm")}
    if p < 2.0:
        found["fixed-point"] = lewis_weights(drawn, p=p, method="fixed-point", eps=1e-11).tau
    for name, tau in found.items():
        np.testing.assert_allclose(tau, found["auto"], rtol=0, atol=1e-8, err_msg=name)


def test_averaging_comes_as_near_as_its_guarantee():
    problem = blocks(40, 10, 2).form
    exact = lewis_weights(problem, eps=1e-10).tau
    averaged = lewis_weights(problem, method="average", eps=1e-3)
    assert averaged.kappa_bound <= 1.001 * np.sqrt(10)
    assert np.abs(averaged.tau - exact).max() <= 1e-3


@given(st.data(), st.sampled_from([1.1, 1.5, 2.0, 3.0, 6.0]))
def test_auto_converges_for_any_power(data, p):
    drawn = data.draw(stacked_forms())
    weights = lewis_weights(drawn, p=p, eps=1e-7)
    assert weights.converged
    q = p / (p - 1)
    np.testing.assert_allclose(weights.tau * traces_of(drawn, weights.tau), drawn.dim * weights.tau**q, atol=1e-5)


def test_auto_falls_back_to_relaxed_steps_and_still_converges(monkeypatch):
    """The safeguard: with extrapolation that leads astray, relaxed steps take over."""
    monkeypatch.setattr(Extrapolation, "__call__", lambda self, u, residual: (u, -residual))
    weights = lewis_weights(heavy_tailed(300, 10, df=1.0).form, eps=1e-6)
    assert weights.converged
    assert (weights.history["step"] == "relaxed").any()


def test_the_undamped_map_may_cycle_where_auto_does_not():
    """Two terms on one line, leverage 1 together, make T a reflection."""
    form = StackedForm(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]]))
    tau = np.array([0.9, 0.3, 0.3])
    twice = tau
    for _ in range(2):
        twice = traces_of(form, twice) / 2
    assert np.abs(np.log(twice[0] / tau[0])) < 1e-12
    weights = lewis_weights(form, eps=1e-10)
    assert weights.converged
    assert weights.tau[2] / weights.tau[1] == pytest.approx(9.0)


def test_the_limit_of_sweeps_is_kept_and_the_best_point_returned():
    form = heavy_tailed(500, 20, df=1.0).form
    for method in METHODS:
        p = 1.7 if method == "fixed-point" else 2.0
        weights = lewis_weights(form, p=p, method=method, eps=1e-12, max_sweeps=3)
        assert weights.sweeps <= 3
        assert not weights.converged
        assert np.isfinite(weights.kappa_bound)
    assert lewis_weights(form, eps=1e-12, max_sweeps=1).sweeps == 1


def test_an_accuracy_beyond_rounding_ends_all_the_same():
    weights = lewis_weights(coherent(200, 10, 0.9).form, eps=1e-17)
    assert not weights.converged
    assert weights.sweeps < 100
    assert weights.kappa_bound <= (1 + 1e-9) * np.sqrt(10)


def test_auto_beats_the_surrogate_on_coherent_rows():
    """20 sweeps and κ ≤ 9.35 through p' < 2, a few sweeps and √n directly. Time is an asv benchmark."""
    form = coherent(20000, 50, 0.98).form
    direct, through = lewis_weights(form, eps=0.05), lewis_weights(form, method="surrogate", omega=1.5)
    assert direct.kappa_bound < through.kappa_bound
    assert 4 * direct.sweeps < through.sweeps


@pytest.mark.parametrize(
    "problem", [coherent(1200, 260, 0.9, cond=10.0), complex_gaussian(1000, 260)], ids=["real", "complex"]
)
def test_sketched_weights_are_certified_exactly_once(problem):
    form = problem.form
    weights = lewis_weights(form, sketch="gaussian")
    assert weights.sketch == int(np.ceil(32 * np.log(form.terms)))
    assert np.isnan(weights.history["kappa_bound"][:-1]).all()
    assert list(weights.history["step"][-2:]) == ["sketch", "certify"]
    assert weights.sweeps == weights.history["sweep"][-1]
    exact = form.traces(weights.metric)
    true = np.linalg.norm(weights.tau) * np.sqrt((exact / weights.tau).max())
    assert weights.kappa_bound == pytest.approx(true, rel=1e-9)
    assert weights.kappa_bound <= 1.15 * np.sqrt(form.freedom)
    again = lewis_weights(form, sketch="gaussian")
    np.testing.assert_array_equal(again.tau, weights.tau)


def test_a_sketch_wider_than_the_space_is_exact_instead():
    form = coherent(500, 20, 0.5).form
    weights = lewis_weights(form, sketch="gaussian")
    assert weights.sketch is None
    assert weights.converged
    assert lewis_weights(form, sketch=10).sketch == 10


def test_sketches_follow_their_seed():
    form = coherent(300, 30, 0.5).form
    one, two = lewis_weights(form, sketch=20, seed=1), lewis_weights(form, sketch=20, seed=2)
    assert not np.array_equal(one.tau, two.tau)


def test_sweeps_remember_the_best_point():
    form = coherent(300, 10, 0.9).form
    sweeps = Sweeps(form, 2.0, 1e-6, 100)
    found = auto(sweeps)
    assert found is sweeps.best
    assert found.ratio == min(kappa for _, _, kappa, _ in sweeps.history) / np.sqrt(10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "relax"}, "unknown method 'relax'; did you mean 'relaxed'"),
        ({"method": ["auto"]}, r"unknown method \['auto'\]"),
        ({"p": 1.0}, r"p must lie in \(1, inf\), found 1.0"),
        ({"p": np.nan}, r"p must lie in \(1, inf\), found nan"),
        ({"p": "2"}, "p must be a real number, found '2'"),
        ({"eps": 0.0}, r"eps must lie in \(0, inf\), found 0.0"),
        ({"eps": None}, "eps must be a real number, found None"),
        ({"omega": 1.0}, r"omega must lie in \(1, inf\), found 1.0"),
        ({"max_sweeps": 0}, "max_sweeps must be at least 1"),
        ({"method": "fixed-point"}, "'fixed-point' needs p < 2"),
        ({"method": "surrogate", "p": 1.5}, "'surrogate' is for p = 2"),
        ({"method": "mm", "sketch": 3}, "sketch needs the method 'auto' or 'relaxed'"),
        ({"sketch": "fourier"}, "sketch must be None, 'gaussian' or a positive number"),
        ({"sketch": 0}, "sketch must be None, 'gaussian' or a positive number"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    form = StackedForm(np.random.default_rng(0).standard_normal((10, 3)))
    with pytest.raises(ProblemError, match=message):
        lewis_weights(form, **arguments)
    with pytest.raises(ProblemError, match="GramForm has no terms"):
        lewis_weights(GramForm(4, 2))
