"""The data of examples: what they are said to be, the same each time, and without a network."""

import numpy as np
import pytest

import quartbench as qb
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


def test_clouds_are_joined_by_bridges_alone():
    truth, pairs = examples.clouds(3, 10, bridges=2)
    assert truth.shape == (30, 3)
    across = pairs[pairs[:, 0] // 10 != pairs[:, 1] // 10]
    assert len(across) == 4
    assert len(pairs) == 3 * 45 + 4
    assert len(examples.clouds(2, 30, 1, neighbours=4)[1]) < 2 * 30 * 4 + 1


def share_of_passes(solver, count, points, neighbours, warm):
    """Return the passes in the metric lewis over those in uniform to a certified gap of 1e-8, the median over seeds.

    Of a DC step at a point near the truth, from there or from the start that solve makes.
    """
    shares = []
    for seed in range(5):
        truth, pairs = examples.clouds(count, points, 1, neighbours, seed)
        form = qb.GraphForm(len(truth), 3, pairs)
        last = truth + 0.05 * truth.std() * np.random.default_rng(100 + seed).standard_normal(truth.shape)
        last -= last.mean(axis=0)
        c = inverse.Problem(form, examples.lengths(truth, pairs) ** 2).linearised(last)
        passes = []
        for metric in ("lewis", "uniform"):
            found = qb.solve(qb.Problem(form, c), solver, metric, rel_gap=1e-8, start=last if warm else None)
            assert found.success
            passes.append(int(found.history.passes[found.history.reached(1e-8)]))
        shares.append(np.divide(*passes))
    return np.median(shares)


@pytest.mark.parametrize("solver", ["homgd", "accel-homgd", "homnewton-cg"])
def test_where_a_bridge_joins_clouds_the_lewis_metric_saves_passes(solver):
    """A bridge has leverage 1 where edges in clouds have little: uniform weights make it an outlying eigenvalue."""
    assert share_of_passes(solver, 2, 100, None, warm=False) <= 0.7


@pytest.mark.parametrize(("count", "points", "neighbours"), [(2, 100, 20), (10, 20, None)])
@pytest.mark.parametrize(("solver", "most"), [("homgd", 0.7), ("accel-homgd", 0.7), ("homnewton-cg", 1.0)])
def test_from_a_near_point_the_lewis_metric_saves_passes_of_gradient_methods(solver, most, count, points, neighbours):
    """Conjugate gradients need one product for each outlier, and that only far from the solution."""
    assert share_of_passes(solver, count, points, neighbours, warm=True) <= most


def test_a_bridge_joins_two_cubes():
    truth = examples.bridge(300)
    assert truth.shape == (300, 3)
    beam = truth[(truth[:, 0] > 1.05) & (truth[:, 0] < 2.95)]
    assert 8 <= len(beam) <= 12
    assert np.ptp(beam[:, 1]) <= 0.1
