"""What every step of the methods says, computed once more with an inverse and a loop."""

import inspect
import math
import time

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from quartbench import GraphForm, StackedForm, lewis_weights
from quartbench.metrics import Bounds
from quartbench.precondition import coherence, describe, effective_resistance, measured_kappa, methods, metric
from quartbench.precondition.kappa import _Search, measured_bounds
from quartbench.precondition.leverage import sketch_columns
from quartbench.precondition.sweeps import Sweeps, certificate
from quartbench.solvers.accel_homgd import early_length, early_stages

M, N = 40, 4
ROWS = np.random.default_rng(0).standard_normal((M, N)) * np.geomspace(1.0, 30.0, M)[:, None]
POWERS = (1.3, 1.7, 2.0, 3.0)


def traces(tau):
    """Return gᵢ = ⟨uᵢ,B(τ)⁻¹uᵢ⟩."""
    return np.einsum("ij,jk,ik->i", ROWS, np.linalg.inv(ROWS.T @ (tau[:, None] * ROWS)), ROWS)


def unit(tau, p):
    """Return τ scaled to ‖τ‖_q = 1, q = p/(p − 1)."""
    q = p / (p - 1.0)
    return tau / (tau**q).sum() ** (1.0 / q)


def uniform(p):
    return np.full(M, M ** (1.0 / p - 1.0))


def kappa(tau, p):
    """Return ‖τ‖_q maxᵢ (gᵢ/τᵢ^{q−1})^{1/q}, what Proposition 5.3 certifies."""
    q = p / (p - 1.0)
    return (tau**q).sum() ** (1.0 / q) * (traces(tau) / tau ** (q - 1.0)).max() ** (1.0 / q)


def after(sweeps, p, method, **options):
    """Return the result of a method after so many sweeps at most."""
    return lewis_weights(StackedForm(ROWS), p, method, eps=1e-12, max_sweeps=sweeps, **options)


@pytest.mark.parametrize("p", POWERS)
def test_the_certificate_is_that_of_the_proposition(p):
    tau = np.random.default_rng(1).uniform(0.1, 3.0, M)
    q = p / (p - 1.0)
    assert certificate(tau, traces(tau), N, p) * N ** (1.0 / q) == pytest.approx(kappa(tau, p), rel=1e-12)
    assert certificate(tau, traces(tau), N) == certificate(tau, traces(tau), N, 2.0)
    assert certificate(5.0 * tau, traces(5.0 * tau), N, p) == pytest.approx(certificate(tau, traces(tau), N, p))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("method", ["mm", "relaxed"])
def test_damped_methods_take_their_steps(p, method):
    damping = {"mm": 1.0 / p, "relaxed": 2.0 / (p + 1.0)}[method]
    tau = uniform(p)
    for sweeps in range(1, 5):
        found = after(sweeps, p, method)
        assert found.history["kappa_bound"][-1] == pytest.approx(kappa(tau, p), rel=1e-9)
        u = (1.0 - damping) * np.log(tau) + damping * (p - 1.0) * np.log(traces(tau) / N)
        tau = unit(np.exp(u), p)


@pytest.mark.parametrize("p", POWERS)
def test_the_weights_of_mm_are_the_root_of_leverage(p):
    # τᵢ ← (τᵢgᵢ/n)^{1/q}, which has ‖τ‖_q = 1 by itself
    tau = uniform(p)
    tau = (tau * traces(tau) / N) ** ((p - 1.0) / p)
    np.testing.assert_allclose(after(2, p, "mm").tau, tau, rtol=1e-9)


@pytest.mark.parametrize("p", [1.3, 1.7])
@pytest.mark.parametrize("eps", [0.3, 0.01])
def test_algorithm_3_takes_its_steps_and_stops_where_it_says(p, eps):
    tau, count = uniform(p), 0
    while True:
        before, tau = tau, (traces(tau) / N) ** (p - 1.0)
        count += 1
        if np.abs(np.log(tau / before)).max() <= (2.0 - p) / (p - 1.0) * eps:
            break
    found = lewis_weights(StackedForm(ROWS), p, "fixed-point", eps=eps)
    assert (found.iterations, found.sweeps) == (count, count + 1)
    np.testing.assert_allclose(found.tau, unit(tau, p), rtol=1e-9)
    assert found.kappa_bound == pytest.approx(kappa(tau, p), rel=1e-9)


@pytest.mark.parametrize("omega", [1.2, 1.5, 2.5])
def test_the_surrogate_is_algorithm_3_at_its_power(omega):
    spread = math.log(M / N)
    power = 2.0 * spread / (spread + 2.0 * math.log(omega))
    # errata 12 of the documentation
    assert 1.0 / (2.0 - power) == pytest.approx(0.5 + spread / (4.0 * math.log(omega)))
    tau, count = uniform(power), 0
    while True:
        before, tau = tau, (traces(tau) / N) ** (power - 1.0)
        count += 1
        if np.abs(np.log(tau / before)).max() <= (2.0 - power) / (power - 1.0) * 0.01:
            break
    found = lewis_weights(StackedForm(ROWS), 2.0, "surrogate", eps=0.01, omega=omega)
    assert found.iterations == count
    np.testing.assert_allclose(found.tau, unit(tau, 2.0), rtol=1e-9)
    # ‖·‖₂ ≤ ‖·‖_{p'} ≤ m^{1/p'−1/2}‖·‖₂: a bound for W_{p'}^{1/p'} is one for √ρ with that factor.
    through = M ** (1.0 / power - 0.5) * kappa(tau, power)
    assert found.kappa_bound == pytest.approx(min(kappa(tau, 2.0), through), rel=1e-9)


def test_the_surrogate_is_uniform_where_it_has_no_power():
    edge = math.sqrt(M / N)  # m/n = ω²
    for omega, steps in ((1.001 * edge, 0), (0.999 * edge, 1)):
        found = lewis_weights(StackedForm(ROWS), 2.0, "surrogate", eps=0.01, omega=omega)
        assert (found.iterations > 0) == bool(steps)
    np.testing.assert_allclose(lewis_weights(StackedForm(ROWS), 2.0, "surrogate", omega=4.0).tau, uniform(2.0))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("eps", [0.5, 0.1])
def test_averaging_is_the_mean_of_the_iterates_of_mm(p, eps):
    q = p / (p - 1.0)
    count = max(1, math.ceil(math.log(M / N) / (q * math.log1p(eps))))
    tau = uniform(p)
    total = tau.copy()
    for _ in range(count - 1):
        tau = (tau * traces(tau) / N) ** (1.0 / q)
        total += tau
    found = lewis_weights(StackedForm(ROWS), p, "average", eps=eps)
    assert (found.sweeps, found.iterations) == (count, count - 1)
    np.testing.assert_allclose(found.tau, unit(total, p), rtol=1e-9)


@pytest.mark.parametrize("p", POWERS)
def test_the_first_step_of_auto_is_damped_term_by_term(p):
    start = uniform(p)
    residual = (p - 1.0) * np.log(traces(start) / N) - np.log(start)
    tau = unit(np.exp(np.log(start) + residual / (1.0 + (p - 1.0) * np.minimum(start * traces(start), 1.0))), p)
    found = after(2, p, "auto")
    assert list(found.history["step"]) == ["start", "fast"]
    assert found.history["kappa_bound"][1] == pytest.approx(kappa(tau, p), rel=1e-9)


@pytest.mark.parametrize("p", POWERS)
def test_the_steps_behind_auto_are_relaxed_up_to_two_and_those_of_mm_above(p, monkeypatch):
    monkeypatch.setattr(methods, "CREDIT", 1)
    monkeypatch.setattr(methods, "FALL", 0.0)  # no fall is enough: fast steps earn no more
    found = after(4, p, "auto")
    assert list(found.history["step"]) == ["start", "fast", "relaxed", "relaxed"]
    best = [uniform(p), after(2, p, "auto").tau]
    tau = min(best, key=lambda one: kappa(one, p))
    damping = 2.0 / (p + 1.0) if p <= 2.0 else 1.0 / p
    for sweep in (2, 3):
        u = (1.0 - damping) * np.log(tau) + damping * (p - 1.0) * np.log(traces(tau) / N)
        tau = unit(np.exp(u), p)
        assert found.history["kappa_bound"][sweep] == pytest.approx(kappa(tau, p), rel=1e-9)


def test_fast_steps_are_earned_by_a_fall_of_the_logarithm(monkeypatch):
    monkeypatch.setattr(methods, "CREDIT", 1)
    steps = after(8, 2.0, "auto").history["step"].tolist()
    ratios = after(8, 2.0, "auto").history["kappa_bound"] / N**0.5
    least, target, expected = ratios[0], math.inf, ["start"]
    for ratio in ratios[1:]:
        earned = math.log(least) <= target
        if earned:
            target = 0.7 * math.log(least)
        expected.append("fast" if earned else "relaxed")
        least = min(least, ratio)
    assert steps == expected


def test_extrapolation_solves_a_linear_map_in_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(3)
    matrix, target = np.eye(3) + 0.3 * rng.standard_normal((3, 3)), rng.standard_normal(3)
    memory, u = methods.Extrapolation(5), np.zeros(3)
    for _ in range(4):
        u, residual = memory(u, matrix @ (target - u))
        if np.abs(residual).max() > 1e-12:
            u = u + residual
    np.testing.assert_allclose(u, target, atol=1e-10)
    assert np.abs(residual).max() < 1e-10


def test_extrapolation_remembers_as_many_differences_as_it_is_told():
    memory = methods.Extrapolation(2)
    rng = np.random.default_rng(4)
    points, residuals = rng.standard_normal((6, 8)), rng.standard_normal((6, 8))
    for point, residual in zip(points, residuals, strict=True):
        found = memory(point, residual)
    steps, changes = np.diff(points[-3:], axis=0), np.diff(residuals[-3:], axis=0)
    share = np.linalg.lstsq(changes.T, residuals[-1], rcond=None)[0]
    np.testing.assert_allclose(found[0], points[-1] - share @ steps)
    np.testing.assert_allclose(found[1], residuals[-1] - share @ changes)
    memory.forget()
    np.testing.assert_array_equal(memory(points[0], residuals[0]), (points[0], residuals[0]))


@pytest.mark.parametrize(("size", "counts"), [(1.5e-10, True), (0.7e-10, False)])
def test_changes_that_are_alike_to_ten_digits_are_one_change(size, counts):
    # The changes of the residual are (1, 0) and (0, size): the second of them either solves for the rest, or is left.
    memory = methods.Extrapolation(2)
    for residual in ((0.0, 1.0 - size), (1.0, 1.0 - size), (1.0, 1.0)):
        _, left = memory(np.zeros(2), np.array(residual))
    np.testing.assert_allclose(left, [0.0, 0.0 if counts else 1.0], atol=1e-5)


class Noiseless(Sweeps):
    """Sweeps whose sketches are exact."""

    def sketched(self, tau, columns, rng):
        self._record("sketch", np.nan)
        self.seen = [*getattr(self, "seen", []), tau]
        return traces(tau)


@pytest.mark.parametrize("p", POWERS)
def test_sketched_sweeps_are_relaxed_first_and_then_average(p):
    sweeps = Noiseless(StackedForm(ROWS), p, 0.01, 100)
    found = methods.sketched(sweeps, 8, np.random.default_rng(0))
    tau = uniform(p)
    for k in range(10):
        np.testing.assert_allclose(sweeps.seen[k], tau, rtol=1e-9)
        step = 2.0 / (p + 1.0) if k < 3 else 1.0 / (k - 1.0)
        tau = unit(np.exp((1.0 - step) * np.log(tau) + step * (p - 1.0) * np.log(traces(tau) / N)), p)
    np.testing.assert_allclose(found.tau, tau, rtol=1e-9)
    assert (sweeps.count, sweeps.iterations) == (11, 10)
    short = Noiseless(StackedForm(ROWS), p, 0.01, 4)
    methods.sketched(short, 8, np.random.default_rng(0))
    assert (short.count, len(short.seen)) == (4, 3)


def test_a_method_gives_up_where_rounding_allows_no_better():
    sweeps = Sweeps(StackedForm(ROWS), 2.0, 0.01, 1000)
    sweeps(uniform(2.0), "start")
    assert not sweeps.exhausted
    sweeps.best_at, sweeps.count = 1, 30
    assert not sweeps.exhausted
    sweeps.count = 31
    assert sweeps.exhausted
    sweeps.best_at = 31
    assert not sweeps.exhausted
    sweeps.limit = 31
    assert sweeps.exhausted
    sweeps.limit = 1000
    rounding = sweeps.best.metric.rounding
    for share, ended in ((1.9, True), (2.1, False)):
        sweeps.best = type(sweeps.best)(sweeps.best.tau, sweeps.best.g, sweeps.best.metric, 1.0 + share * rounding)
        assert sweeps.exhausted == ended


@pytest.mark.parametrize("method", ["mm", "relaxed", "auto"])
@pytest.mark.parametrize("eps", [0.3, 0.03, 0.003])
def test_methods_stop_as_soon_as_the_certificate_is_good_enough(method, eps):
    found = lewis_weights(StackedForm(ROWS), 2.0, method, eps=eps)
    bounds = found.history["kappa_bound"]
    assert found.converged
    assert (bounds[:-1] > (1.0 + eps) * 2.0).all()
    assert bounds[-1] <= (1.0 + eps) * 2.0
    assert found.iterations == len(bounds) - 1


def test_seconds_are_those_since_the_beginning():
    started = time.perf_counter()
    seconds = lewis_weights(StackedForm(ROWS), eps=1e-9).history["seconds"]
    made = metric(StackedForm(ROWS), "uniform")
    elapsed = time.perf_counter() - started
    assert (np.diff(seconds, prepend=0.0) > 0.0).all()
    assert 0.0 < seconds[-1] <= elapsed
    assert 0.0 < made.setup_seconds <= elapsed
    for one in describe(StackedForm(ROWS)).metrics:
        assert 0.0 < one.seconds <= time.perf_counter() - started


# Numbers that are printed ---------------------------------------------------------------------------------------------


def test_a_sketch_has_32_columns_for_each_unit_of_the_logarithm():
    assert sketch_columns(StackedForm(ROWS)) == math.ceil(32 * math.log(M))
    assert sketch_columns(StackedForm([[2.0]])) == math.ceil(32 * math.log(2))
    assert sketch_columns(StackedForm(ROWS), "gaussian") == sketch_columns(StackedForm(ROWS))
    assert sketch_columns(StackedForm(ROWS), 7) == 7
    ring = GraphForm(12, 2, [(i, (i + 1) % 12) for i in range(12)])
    assert effective_resistance(ring, method="sketch", columns=50).error == pytest.approx(math.sqrt(2.0 / 50.0))
    exact = effective_resistance(ring)
    np.testing.assert_allclose(exact.values, 11.0 / 12.0, rtol=1e-12)  # one edge beside eleven in a row
    assert exact.error < 1e-9


def test_resistances_by_conjugate_gradients_say_how_tight_they_are(monkeypatch):
    ring = GraphForm(12, 2, [(i, (i + 1) % 12) for i in range(12)])
    monkeypatch.setattr("quartbench.linalg.laplacians.DENSE_VERTICES", 1)
    monkeypatch.setattr("quartbench.forms.graph.DENSE_VERTICES", 1)
    monkeypatch.setattr("quartbench.linalg.dissection.DISSECTION_FLOPS", 0.0)
    found = effective_resistance(ring, method="exact")
    assert found.error == 3e-4
    assert (np.abs(found.values / (11.0 / 12.0) - 1.0) <= 3e-4).all()


@pytest.mark.parametrize(("eps", "accuracy"), [(0.01, 1e-6), (1e-7, 1e-8)])
def test_a_sweep_is_ten_times_as_exact_as_the_weights_it_is_for(monkeypatch, eps, accuracy):
    asked = []
    weighted = StackedForm.weighted

    def watched(form, tau, *rest, **options):
        asked.append(options["accuracy"])
        return weighted(form, tau, *rest, **options)

    monkeypatch.setattr(StackedForm, "weighted", watched)
    sweeps = Sweeps(StackedForm(ROWS), 2.0, eps, 10)
    sweeps(sweeps.start, "start")
    assert asked == [pytest.approx(accuracy)]


def test_a_description_says_what_the_metrics_are():
    found = describe(StackedForm(ROWS))
    weights = lewis_weights(StackedForm(ROWS))
    assert (found.metrics[2].sweeps, weights.eps) == (weights.sweeps, 0.01)
    assert inspect.signature(describe).parameters["eps"].default == 0.01
    gamma = traces(np.ones(M)).max()
    assert found.coherence == pytest.approx(gamma, rel=1e-9)
    assert found.coherence == pytest.approx(coherence(StackedForm(ROWS)), rel=1e-12)
    assert found.best_kappa == pytest.approx(2.0)
    for one in found.metrics:
        assert one.kappa == pytest.approx(one.beta / one.alpha)
        made = metric(StackedForm(ROWS), one.name)
        assert (one.alpha, one.beta) == pytest.approx((made.bounds.alpha, made.bounds.beta), rel=1e-9)
    assert [one.sweeps for one in found.metrics][:2] == [0, 1]
    assert found.metrics[1].kappa <= math.sqrt(M * gamma) * (1.0 + 1e-9)


def test_the_diagonal_metric_is_the_diagonal_of_the_uniform_one():
    diagonal = metric(StackedForm(ROWS), "diagonal").diagonal
    np.testing.assert_allclose(diagonal, (ROWS**2).sum(axis=0) / math.sqrt(M), rtol=1e-12)


@pytest.mark.parametrize("sizes", [(1.0, 2.0, 3.0), (0.1, 5.0, 5.0, 0.3)])
def test_measured_extremes_of_a_diagonal_form_are_known(sizes):
    # ρ(x) = Σ dᵢ⁴xᵢ⁴ on ‖x‖ = 1 has the largest root max dᵢ² and the smallest (Σ dᵢ^{−4})^{−1/2}.
    form = StackedForm(np.diag(sizes))
    made = metric(form, "identity")
    found = measured_bounds(form, made)
    assert found.beta == pytest.approx(max(sizes) ** 2, rel=1e-9)
    assert found.alpha == pytest.approx(sum(size**-4 for size in sizes) ** -0.5, rel=1e-9)
    assert measured_kappa(form, made) == pytest.approx(found.beta / found.alpha)


def searched(rows, B, x, sign, steps):
    """Return the extreme of ln(√ρ/‖x‖²_B) after so many steps of Polak and Ribière's conjugate gradients."""

    def rho(x):
        return float(((rows @ x) ** 4).sum())

    x = x / math.sqrt(x @ B @ x)
    value, before, direction = 0.5 * math.log(rho(x)), None, None
    for _ in range(steps):
        gradient = 4.0 * rows.T @ (rows @ x) ** 3
        ascent = sign * (np.linalg.solve(B, gradient) / (2.0 * rho(x)) - 2.0 * x)
        square = ascent @ B @ ascent
        keep = 0.0 if before is None else max((square - ascent @ B @ before) / (before @ B @ before), 0.0)
        direction = ascent if before is None else ascent + keep * direction
        before = ascent

        def along(t, x=x, d=direction):
            y = x + t * d
            return -sign * (0.5 * math.log(rho(y)) - math.log(y @ B @ y))

        angles = np.linspace(-1.57, 1.57, 4001)  # t = tan θ: the whole line, whose best point counts
        best = angles[np.argmin([along(math.tan(angle)) for angle in angles])]
        near = {"bounds": (best - 1e-3, best + 1e-3), "method": "bounded", "options": {"xatol": 1e-13}}
        t = math.tan(minimize_scalar(lambda angle: along(math.tan(angle)), **near).x)
        x = x + t * direction
        x = x / math.sqrt(x @ B @ x)
        value = 0.5 * math.log(rho(x))
    return value


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_search_for_extremes_takes_the_steps_of_conjugate_gradients(sign, steps):
    rows = np.random.default_rng(6).standard_normal((12, 4))
    form = StackedForm(rows)
    made = metric(form, "uniform")
    B = rows.T @ rows / math.sqrt(12.0)
    x = np.array([1.0, -0.4, 0.3, 0.2])
    assert _Search(form, made, steps)(x, sign) == pytest.approx(searched(rows, B, x, sign, steps), abs=1e-7)


# Early stages of Algorithm 2 (errata 7, 8 of the documentation) -------------------------------------------------------


@pytest.mark.parametrize("condition", [1.0, 2.9, 3.1, 5.0, 5.1, 9.0, 17.5, 1000.0])
def test_early_stages_have_the_lengths_of_the_theory(condition):
    bounds = Bounds(0.5, 0.5 * condition)
    assert early_length(bounds) == math.ceil(4.0 * math.sqrt(math.sqrt(27.0) * condition))
    stages, delta = 0, condition - 1.0
    while delta > 2.0:
        stages, delta = stages + 1, delta / 2.0
    assert early_stages(bounds) == stages
