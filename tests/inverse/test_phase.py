"""Signals from squared moduli: dense rows, coded diffraction patterns, noise, and errors up to a global phase."""

import numpy as np
import pytest

import quartbench as qb
from quartbench import ProblemError, inverse
from quartbench.instances.signals import diffraction_masks
from quartbench.testing import check_form


def gaussian(n, m, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, n)) + 1j * rng.standard_normal((m, n))
    truth = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    return rows, truth, np.abs(rows.conj() @ truth) ** 2


def diffraction(shape, patterns, seed):
    masks = diffraction_masks(int(np.prod(shape)), patterns, seed).reshape(patterns, *shape)
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return masks, truth, np.abs(np.fft.fftn(masks.conj() * truth, axes=range(1, masks.ndim))) ** 2


def test_gaussian_rows_give_the_signal_up_to_its_phase():
    for seed in range(5):
        rows, truth, d = gaussian(32, 192, seed)
        found = inverse.phase(rows, d)
        assert inverse.phase_error(found.x, truth) < 1e-6
        assert [stage.name for stage in found.stages] == ["spectral start", "weighted solve", "solve"]
        assert found.passes == sum(stage.passes for stage in found.stages)


def test_real_rows_give_the_signal_up_to_its_sign():
    rng = np.random.default_rng(0)
    rows, truth = rng.standard_normal((120, 20)), rng.standard_normal(20)
    found = inverse.phase(rows, (rows @ truth) ** 2)
    assert found.x.dtype == float
    assert inverse.phase_error(found.x, truth) < 1e-6


def test_an_entry_that_no_measurement_sees_is_named():
    rows, d, _ = inverse.examples.gaussian_phase(8, 64, seed=0)
    with pytest.raises(ProblemError, match="its rank is at most 8 of N = 9; no measurement sees entry 8"):
        inverse.phase(np.column_stack([rows, np.zeros(64)]), d)


def test_restarts_do_not_depend_on_the_unit_of_the_data():
    # F itself underflows there: it says nothing of which run was better.
    rng = np.random.default_rng(0)
    rows, d = rng.standard_normal((40, 10)), np.abs(rng.standard_normal(40))
    plain, found = inverse.phase(rows, d), inverse.phase(rows, 1e-200 * d)
    assert len(plain.stages) > 3
    assert len(found.stages) == len(plain.stages)
    assert found.residual == pytest.approx(plain.residual, rel=1e-6)


@pytest.mark.parametrize("shape", [(60,), (8, 9), (4, 3, 5)])
def test_masks_of_any_shape_give_the_image(shape):
    masks, truth, d = diffraction(shape, 8, 1)
    found = inverse.phase(masks, d)
    assert found.x.shape == shape
    assert inverse.phase_error(found.x, truth) < 1e-6


def test_the_form_of_masks_is_that_of_its_rows():
    masks, truth, d = diffraction((12,), 4, 0)
    form, rows = qb.DiffractionForm(masks), qb.instances.coded_diffraction(12, 4, 0).form
    assert np.allclose(masks, diffraction_masks(12, 4, 0))
    assert form.value(truth) == pytest.approx(rows.value(truth))
    assert np.allclose(form.gradient(truth), rows.gradient(truth))
    assert np.allclose(form.term_squares(form.image(truth)), d.ravel())


def test_the_form_of_masks_keeps_the_contract():
    report = check_form(qb.DiffractionForm(diffraction_masks(12, 4, 3).reshape(4, 3, 4)))
    assert report["file"] == "arrays and back"


def test_the_uniform_metric_of_masks_is_diagonal_and_right():
    form = qb.DiffractionForm(diffraction_masks(10, 3, 0)).scaled(2.0)
    metric = qb.metric(form, "uniform")
    assert metric.diagonal is not None
    x = np.random.default_rng(0).standard_normal(20)
    tau = form.uniform_weights()
    assert np.allclose(metric.apply(x), form.adjoint(form.weighted_image(tau, form.image(x))))
    assert np.allclose(form.gram_diagonal(), np.sqrt(form.terms) * metric.diagonal)


def test_an_entry_behind_no_mask_is_named():
    masks = diffraction_masks(6, 3, 0)
    masks[:, 4] = 0.0
    with pytest.raises(qb.DeficientError, match=r"all masks are 0 at \(4,\)"):
        inverse.phase(qb.DiffractionForm(masks), np.arange(1.0, 19.0))


def test_measurements_that_are_all_alike_prefer_no_start():
    rows = np.random.default_rng(0).standard_normal((24, 12)).view(np.complex128)
    found = inverse.phase(rows, np.ones(24))
    assert found.status in ("converged", "stationary")
    assert 0.0 < found.residual < 1.0


def test_loss_with_noise_is_graceful():
    rows, truth, d = gaussian(32, 256, 4)
    noise = np.random.default_rng(1).standard_normal(d.size)
    noise *= np.linalg.norm(d) / np.linalg.norm(noise)
    errors = [inverse.phase_error(inverse.phase(rows, d + level * noise).x, truth) for level in (1e-3, 1e-2, 1e-1)]
    assert all(error < 3.0 * level for error, level in zip(errors, (1e-3, 1e-2, 1e-1), strict=True))


def test_counts_of_photons_are_fitted_better_by_their_own_model():
    rows, truth, d = gaussian(32, 256, 2)
    light = 20.0 / d.mean()
    errors = {"gaussian": [], "poisson": []}
    for seed in range(10):
        counts = np.random.default_rng(seed).poisson(light * d) / light
        for noise, seen in errors.items():
            seen.append(inverse.phase_error(inverse.phase(rows, counts, noise=noise).x, truth))
    assert np.mean(errors["poisson"]) < np.mean(errors["gaussian"])


def test_a_poor_start_is_run_again_and_every_run_is_a_stage():
    rows, truth, d = gaussian(16, 40, 5)
    noise = np.random.default_rng(0).exponential(1.0, d.size)  # no signal has such data
    found = inverse.phase(rows, noise * d.mean(), restarts=3)
    assert sum(stage.name == "spectral start" for stage in found.stages) >= 2
    assert found.residual > 0.03
    assert inverse.phase_error(inverse.phase(rows, d, restarts=20).x, truth) < 1e-5


def test_any_method_may_be_asked_for():
    rows, truth, d = gaussian(16, 120, 0)
    for method in ("newton", "dc-accelerated", "reshaped-wirtinger"):
        found = inverse.phase(rows, d, method=method, tol=1e-6)
        assert found.method == method
        assert inverse.phase_error(found.x, truth) < 1e-4


def test_heavy_tailed_masks_are_taken_in_their_own_metric():
    rng = np.random.default_rng(0)
    masks = diffraction_masks(200, 12, 0) * np.abs(rng.standard_cauchy(200)).clip(1e-2, 1e2)
    truth = rng.standard_normal(200) + 1j * rng.standard_normal(200)
    d = np.abs(np.fft.fft(masks.conj() * truth)) ** 2
    found = inverse.phase(masks, d, tol=1e-10)
    assert inverse.phase_error(found.x, truth) < 1e-4


def test_the_error_knows_the_phase_alone():
    x = np.array([1.0 + 1j, 2.0, -1j])
    assert inverse.phase_error(np.exp(0.7j) * x, x) < 1e-12
    assert inverse.phase_error(x.conj(), x) > 0.1
    assert inverse.phase_error(0.0 * x, x) == 1.0
    with pytest.raises(ProblemError, match="size of the truth"):
        inverse.phase_error(x[:2], x)


@pytest.mark.parametrize(
    ("measurements", "d", "options", "message"),
    [
        (np.ones((4, 3)), np.ones(5), {}, r"found shapes \(4, 3\) and \(5,\)"),
        (np.zeros((0, 3)), np.zeros(0), {}, "empty"),
        (np.ones(3), np.ones(3), {}, "rows of shape"),
        (np.ones((4, 3)), np.ones(4), {"noise": "pink"}, "noise must be"),
        (np.ones((4, 3)), np.full(4, np.nan), {}, "finite"),
        (np.ones((4, 3)), np.zeros(4), {}, "all zero"),
        (np.ones((4, 3)), np.ones(4), {"restarts": -1}, "restarts must be"),
    ],
)
def test_bad_measurements_are_named(measurements, d, options, message):
    with pytest.raises(ProblemError, match=message):
        inverse.phase(measurements, d, **options)
