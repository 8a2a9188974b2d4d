"""The data of examples: what they are said to be, the same each time, and without a network."""

import numpy as np

from quartbench import inverse
from quartbench.inverse import examples


def test_ubiquitin_is_a_chain_of_bonded_atoms():
    atoms = examples.ubiquitin()
    assert atoms.shape == (602, 3)
    bonds = examples.lengths(atoms, examples.close_pairs(atoms, 1.9))
    assert 600 <= bonds.size <= 640
    assert 1.1 < bonds.min() < bonds.max() < 1.9


def test_pairs_are_those_that_were_asked_for():
    truth = examples.box(200, seed=1)
    close = examples.close_pairs(truth, 0.2)
    assert examples.lengths(truth, close).max() <= 0.2
    half = examples.close_pairs(truth, 0.2, 0.5, seed=3)
    assert 0.4 < len(half) / len(close) < 0.6
    near = examples.near_pairs(truth, 5)
    assert (np.bincount(near.ravel()) >= 5).all()
    assert 0.27 < len(examples.random_pairs(100, 0.3)) / 4950 < 0.33


def test_points_that_are_left_out_take_their_pairs_along():
    pairs = np.array([[0, 1], [1, 2], [3, 4], [2, 5]])
    kept = inverse.largest_part(6, pairs)
    assert kept.tolist() == [0, 1, 2, 5]
    assert examples.among(pairs, kept).tolist() == [[0, 1], [1, 2], [2, 3]]


def test_measurements_are_those_of_the_truth():
    rows, d, truth = examples.gaussian_phase(5, 30, seed=2)
    assert np.allclose(d, np.abs(rows.conj() @ truth) ** 2)
    assert np.array_equal(rows, examples.gaussian_phase(5, 30, seed=2)[0])
    image = examples.portrait(16)
    assert image.shape == (16, 16)
    assert 0.0 <= image.min() < image.max() <= 1.0
    assert examples.portrait(16, colour=True).shape == (16, 16, 3)
    masks, d, _ = examples.coded_image(image, 3, heavy=True)
    assert np.allclose(d[1], np.abs(np.fft.fft2(masks[1].conj() * image)) ** 2)


def test_a_bridge_joins_two_cubes():
    truth = examples.bridge(300)
    assert truth.shape == (300, 3)
    beam = truth[(truth[:, 0] > 1.05) & (truth[:, 0] < 2.95)]
    assert 8 <= len(beam) <= 12
    assert np.ptp(beam[:, 1]) <= 0.1
