import numpy as np

from quartbench.instances import coded_diffraction, complex_gaussian, diffraction_masks


def test_coded_diffraction_measures_the_transform_of_the_masked_signal():
    n, masks = 12, 3
    form = coded_diffraction(n, masks, seed=6).form
    rng = np.random.default_rng(0)
    x = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    pattern = np.fft.fft(np.conj(diffraction_masks(n, masks, seed=6)) * x, axis=1).ravel()
    np.testing.assert_allclose(form.rows.conj() @ x, pattern, atol=1e-12)
    np.testing.assert_allclose(form.image(x).view(np.complex128), pattern, atol=1e-12)
    np.testing.assert_allclose(form.value(x), (np.abs(pattern) ** 4).sum(), rtol=1e-12)


def test_coded_diffraction_sums_to_a_diagonal():
    n, masks = 12, 3
    rows = coded_diffraction(n, masks, seed=6).form.rows
    weights = n * (np.abs(diffraction_masks(n, masks, seed=6)) ** 2).sum(axis=0)
    np.testing.assert_allclose(rows.T @ rows.conj(), np.diag(weights), atol=1e-11)


def test_masks_have_the_moments_of_a_complex_gaussian():
    masks = diffraction_masks(1000, 200)
    for power, moment in ((masks, 0.0), (masks**2, 0.0), (np.abs(masks) ** 2, 1.0), (np.abs(masks) ** 4, 2.0)):
        np.testing.assert_allclose(power.mean(), moment, atol=0.02)


def test_masks_are_octanary():
    masks = diffraction_masks(50, 4)
    np.testing.assert_allclose(np.unique(np.round(np.abs(masks), 12)), [np.sqrt(0.5), np.sqrt(3.0)], atol=1e-12)
    np.testing.assert_array_equal(np.unique(np.round(np.angle(masks) / (np.pi / 2)) % 4), [0, 1, 2, 3])


def test_one_mask_is_enough_for_a_definite_form():
    rows = coded_diffraction(8, 1).form.rows
    assert np.linalg.matrix_rank(rows) == 8


def test_complex_gaussian_entries_have_unit_variance_and_no_preferred_phase():
    rows = complex_gaussian(400, 100).form.rows
    np.testing.assert_allclose((np.abs(rows) ** 2).mean(), 1.0, atol=0.02)
    np.testing.assert_allclose((rows**2).mean(), 0.0, atol=0.02)
