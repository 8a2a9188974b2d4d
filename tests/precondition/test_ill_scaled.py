"""Ill-scaled and nearly dependent rows: the certificate stays true, or the missing direction is named.

The truth is computed in rational arithmetic from the very floating-point rows and weights.
"""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, StackedForm
from quartbench.precondition import coherence, leverage, lewis_weights, measured_kappa, metric

from .plain import exact_traces


def true_kappa_bound(rows, tau):
    """Return ‖τ‖₂ max √(gᵢ/τᵢ) with exact traces."""
    ratios = [float(g) / t for g, t in zip(exact_traces(rows, tau), tau, strict=True)]
    return np.linalg.norm(tau) * np.sqrt(max(ratios))


def columns_apart(decades):
    return np.random.default_rng(0).standard_normal((14, 4)) * np.logspace(-decades, decades, 4)


def nearly_collinear(distance):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((14, 4))
    rows[:, 3] = rows[:, 1] + distance * rng.standard_normal(14)
    return rows


CASES = {
    "columns 1e±8": columns_apart(8),
    "columns 1e±40": columns_apart(40),
    "collinear to 1e-4": nearly_collinear(1e-4),
    "collinear to 1e-7": nearly_collinear(1e-7),
    "collinear to 1e-9": nearly_collinear(1e-9),
    "collinear to 1e-11": nearly_collinear(1e-11),
    "both": nearly_collinear(1e-7) * np.logspace(-8, 8, 4),
}


@pytest.mark.parametrize("rows", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("eps", [0.01, 1e-9])
def test_the_certificate_is_true(rows, eps):
    weights = lewis_weights(StackedForm(rows), eps=eps)
    true = true_kappa_bound(rows, weights.tau)
    assert true * (1 - 1e-14) <= weights.kappa_bound <= true * (1 + 2.1 * weights.metric.rounding)
    assert weights.converged == (weights.kappa_bound <= (1 + eps) * 2.0)
    assert weights.converged or weights.metric.rounding > 0.1 * eps


@pytest.mark.parametrize("rows", CASES.values(), ids=CASES.keys())
def test_traces_are_as_accurate_as_they_claim(rows):
    form, tau = StackedForm(rows), np.random.default_rng(2).uniform(0.5, 2.0, 14)
    for accuracy in (1.0, 1e-12):  # Cholesky as long as it can, and QR
        factor = form.weighted(tau, accuracy=accuracy)
        true = np.array([float(g) for g in exact_traces(rows, tau)])
        np.testing.assert_allclose(form.traces(factor), true, rtol=2 * factor.rounding + 1e-14)


def test_qr_serves_where_cholesky_is_not_accurate():
    assert lewis_weights(StackedForm(nearly_collinear(1e-3)), eps=1e-6).factor == "cholesky"
    assert lewis_weights(StackedForm(nearly_collinear(1e-9)), eps=1e-3).factor == "qr"
    assert lewis_weights(StackedForm(nearly_collinear(1e-9)), eps=1e-3).converged


def test_the_metric_from_qr_is_the_metric():
    for make in (lambda x: StackedForm(x), lambda x: StackedForm(sp.csr_matrix(x)), lambda x: StackedForm(x, 2)):
        form = make(nearly_collinear(1e-2))
        tau = np.random.default_rng(0).uniform(0.5, 2.0, form.terms)
        one, two = form.weighted(tau, accuracy=1.0), form.weighted(tau, accuracy=0.0)
        assert (one.factor, two.factor) == ("cholesky", "qr")
        x = np.random.default_rng(1).standard_normal(4)
        for operation in ("apply", "solve"):
            np.testing.assert_allclose(getattr(one, operation)(x), getattr(two, operation)(x), rtol=1e-8)
        np.testing.assert_allclose(two.solve(two.apply(x)), x, rtol=1e-8)
        assert two.norm(x) == pytest.approx(one.norm(x), rel=1e-10)


def test_the_complex_metric_from_qr_is_the_metric():
    rng = np.random.default_rng(0)
    form = ComplexForm(rng.standard_normal((12, 3)) + 1j * rng.standard_normal((12, 3)))
    tau = rng.uniform(0.5, 2.0, 12)
    one, two = form.weighted(tau, accuracy=1.0), form.weighted(tau, accuracy=0.0)
    x = rng.standard_normal(6)
    np.testing.assert_allclose(one.apply(x), two.apply(x), rtol=1e-10)
    np.testing.assert_allclose(one.solve(x), two.solve(x), rtol=1e-10)
    np.testing.assert_allclose(form.traces(one), form.traces(two), rtol=1e-10)


def test_qr_works_block_by_block(monkeypatch):
    form, tau = StackedForm(nearly_collinear(1e-6)), np.ones(14)
    whole = form.traces(form.weighted(tau, accuracy=0.0))
    monkeypatch.setattr("quartbench.forms.blocks.BLOCK_BYTES", 100)
    np.testing.assert_allclose(form.traces(form.weighted(tau, accuracy=0.0)), whole, rtol=1e-9)


def test_a_missing_direction_is_named():
    rows = np.random.default_rng(0).standard_normal((20, 5)) * np.logspace(-8, 8, 5)
    for distance in (0.0, 1e-17):
        twin = rows.copy()
        twin[:, 4] = twin[:, 1] * (1 + distance)
        for compute in (coherence, leverage, lewis_weights):
            with pytest.raises(ProblemError, match=r"numerical rank 4 of 5; every term vanishes along .*e1.*e4|e4.*e1"):
                compute(StackedForm(twin))
    blind = rows.copy()
    blind[:, 2] = 0.0
    with pytest.raises(ProblemError, match="no term sees coordinate 2"):
        lewis_weights(StackedForm(blind))


def test_a_missing_complex_direction_is_named():
    rows = np.random.default_rng(0).standard_normal((10, 3)) + 1j
    rows[:, 2] = 1j * rows[:, 0]
    with pytest.raises(ProblemError, match=r"numerical rank 2 of 3; every term vanishes along"):
        coherence(ComplexForm(rows))


def test_a_complex_coordinate_that_no_term_sees_is_named():
    rows = np.random.default_rng(0).standard_normal((10, 3)) + 1j
    rows[:, 1] = 0.0
    with pytest.raises(ProblemError, match="no measurement sees entry 1"):
        coherence(ComplexForm(rows))


@pytest.mark.parametrize("rows", [CASES["columns 1e±8"], CASES["collinear to 1e-7"]], ids=["columns", "collinear"])
@pytest.mark.parametrize("name", ["identity", "uniform", "lewis", "diagonal"])
def test_every_metric_keeps_a_true_bound(rows, name):
    form = StackedForm(rows)
    made = metric(form, name)
    assert 0 < made.bounds.alpha <= made.bounds.beta < np.inf
    assert measured_kappa(form, made, starts=3, steps=60) <= made.bounds.kappa * (1 + 1e-6)


def sharp_beta(rows, tau):
    """Return the root of λ_max(Σ λ_max(B̃ᵢ)B̃ᵢ), the whitened terms computed in sixty digits."""
    with mpmath.workdps(60):
        exact = mpmath.matrix(rows.tolist())
        weights = mpmath.diag([mpmath.mpf(t) for t in tau])
        whitened = exact * (mpmath.cholesky(exact.T * weights * exact) ** -1).T
        sizes = mpmath.diag([sum(x**2 for x in whitened[i, :]) for i in range(whitened.rows)])
        return float(mpmath.sqrt(max(mpmath.eigsy(whitened.T * sizes * whitened, eigvals_only=True))))


@pytest.mark.parametrize("distance", [1e-6, 1e-9, 1e-10, 1e-11, 1e-12])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_on_beta_is_true_where_the_gram_matrix_has_lost_its_digits(distance, seed):
    # It was up to 3 % below √ρ/‖x‖² of points: B(w) was rounded before it was whitened.
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((25, 5))
    rows[:, 4] = rows[:, 0] + distance * rows[:, 4]
    made = metric(StackedForm(rows), "uniform")
    true = sharp_beta(rows, made.tau)
    assert true <= made.bounds.beta <= true * (1.0 + 2.1 * made.rounding + 1e-9)


def test_the_bound_on_beta_holds_for_complex_rows_that_are_nearly_dependent():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 4)) + 1j * rng.standard_normal((30, 4))
    rows[:, 3] = rows[:, 0] + 1e-10 * rows[:, 3]
    form = ComplexForm(rows)
    made = metric(form, "uniform")
    assert measured_kappa(form, made) <= made.bounds.kappa <= 5.0
