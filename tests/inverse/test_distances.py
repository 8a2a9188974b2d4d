"""Points from some of their distances: random and local ones, anchors, weights, and points that nothing holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

import quartbench as qb
from quartbench import ProblemError, inverse
from quartbench.inverse.embeddings import landmark_start, spectral_start
from quartbench.linalg.banded import Band
from quartbench.linalg.blocks import BlockFronts
from quartbench.linalg.dissection import Dissection


def cloud(points, share, seed=0, dim=3):
    rng = np.random.default_rng(1000 + seed)
    truth = rng.standard_normal((points, dim))
    first, second = np.triu_indices(points, 1)
    known = rng.random(first.size) < share
    return truth, np.stack([first[known], second[known]], axis=1)


def near(truth, degree):
    _, neighbours = cKDTree(truth).query(truth, k=degree + 1)
    edges = np.stack([np.repeat(np.arange(len(truth)), degree), neighbours[:, 1:].ravel()], axis=1)
    return np.unique(np.sort(edges, axis=1), axis=0)


def lengths(truth, edges):
    return np.linalg.norm(truth[edges[:, 0]] - truth[edges[:, 1]], axis=1)


def completed(truth, edges, **options):
    return inverse.distances(lengths(truth, edges), edges, dim=truth.shape[1], **options)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_points_are_found_up_to_a_motion_in_any_dimension(dim):
    truth, edges = cloud(40, 0.6, dim=dim)
    found = completed(truth, edges)
    assert found.x.shape == truth.shape
    assert inverse.rmsd(found.x, truth) < 1e-6
    assert found.rmse < 1e-6
    assert np.abs(found.x.mean(axis=0)).max() < 1e-9


def test_a_matrix_with_nan_is_the_same_as_edges():
    truth, edges = cloud(30, 0.5)
    matrix = np.full((30, 30), np.nan)
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = lengths(truth, edges)
    np.fill_diagonal(matrix, 0.0)
    found, other = inverse.distances(matrix), completed(truth, edges[::-1, ::-1])
    assert np.array_equal(found.x, other.x)
    assert inverse.rmsd(found.x, truth) < 1e-6


def test_local_distances_are_completed_from_landmarks():
    truth = np.random.default_rng(0).random((150, 3)) * [3.0, 1.0, 1.0]
    found = completed(truth, near(truth, 16))
    assert found.stages[0].method == "landmarks"
    assert inverse.rmsd(found.x, truth) < 1e-6


@pytest.mark.parametrize("start", [spectral_start, landmark_start])
def test_starts_are_exact_where_all_distances_are_known(start):
    truth, edges = cloud(80, 1.0)
    found = start(80, edges, lengths(truth, edges), 3)
    assert inverse.rmsd(found, truth) < 1e-6


def test_more_dimensions_lead_out_of_a_wrong_valley():
    truth, edges = cloud(60, 0.22, seed=3)
    wrong = [seed for seed in range(12) if completed(truth, edges, start="random", relax=0, seed=seed).rmse > 1e-4]
    assert wrong  # there are such valleys
    for seed in wrong:
        found = completed(truth, edges, start="random", seed=seed)
        assert found.rmse < 1e-6
        assert any(stage.name.startswith("relaxed") for stage in found.stages)


def test_noise_is_not_taken_for_a_wrong_valley_for_ever():
    truth, edges = cloud(60, 0.4)
    rng = np.random.default_rng(0)
    noisy = lengths(truth, edges) * (1.0 + 0.05 * rng.standard_normal(len(edges)))
    found = inverse.distances(noisy, edges)
    relaxed = sum(stage.name.startswith("relaxed") for stage in found.stages)
    assert relaxed < 20
    assert inverse.rmsd(found.x, truth) < 0.2


def test_weights_decide_what_is_fitted():
    truth, edges = cloud(30, 0.8)
    given = lengths(truth, edges)
    wrong = given.copy()
    wrong[::7] *= 1.5
    weights = np.ones(len(edges))
    weights[::7] = 1e-9
    assert inverse.rmsd(inverse.distances(wrong, edges, weights=weights, attempts=2).x, truth) < 1e-3
    assert inverse.rmsd(inverse.distances(wrong, edges, attempts=2).x, truth) > 1e-2


def test_weights_of_a_matrix_are_those_of_its_edges():
    truth, edges = cloud(20, 0.7)
    given = lengths(truth, edges) * np.random.default_rng(0).uniform(0.9, 1.1, len(edges))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(edges))
    matrix, heavy = np.full((2, 20, 20), np.nan)
    for square, entries in ((matrix, given), (heavy, weights)):
        square[edges[:, 0], edges[:, 1]] = square[edges[:, 1], edges[:, 0]] = entries
    found = inverse.distances(matrix, weights=heavy, attempts=0)
    assert np.array_equal(found.x, inverse.distances(given, edges, weights=weights, attempts=0).x)


def test_anchors_give_the_places_themselves():
    truth, edges = cloud(40, 0.5)
    anchors = {int(i): truth[i] for i in (3, 17, 22, 30, 38)}
    found = completed(truth, edges, anchors=anchors)
    assert np.abs(found.x - truth).max() < 1e-6


def test_the_method_may_be_chosen():
    truth, edges = cloud(40, 0.6)
    for method in ("dc-accelerated", "nolips", "lbfgs"):
        found = completed(truth, edges, method=method, tol=1e-6, attempts=0)
        assert found.method == method
        assert inverse.rmsd(found.x, truth) < 1e-3


# A factor in place of conjugate gradients -----------------------------------------------------------------------------


def test_the_factor_within_a_band_is_that_of_the_products():
    truth, edges = cloud(25, 0.3)
    form = qb.GraphForm(25, 3, edges).scaled(1.3)
    problem = inverse.Problem(form, np.random.default_rng(0).random(form.terms))
    x = problem.cone.euclidean(truth.ravel())
    at = problem.misfit.evaluate(x)
    shift = 0.1
    mean = np.mean([problem.gauss_newton_product(x, unit)[k] for k, unit in enumerate(np.eye(75))])
    v = np.random.default_rng(1).standard_normal(75)
    solved = problem.misfit.factor(at, 0.0, shift).solve(v)
    assert np.allclose(problem.gauss_newton_product(x, solved) + shift * mean * solved, v)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", ["near", "random", "star"])
def test_a_factor_by_fronts_is_that_within_a_band(dim, kind):
    truth, edges = cloud(60, 0.1, dim=dim)
    edges = {"near": near(truth, 6), "random": edges, "star": np.stack([np.zeros(59, int), np.arange(1, 60)], axis=1)}[
        kind
    ]
    points = int(edges.max()) + 1
    rng = np.random.default_rng(0)
    s, alpha, beta = rng.standard_normal(dim * len(edges)), rng.random(len(edges)), rng.random(len(edges))
    v = rng.standard_normal(points * dim)
    fronts = BlockFronts(Dissection(points, edges), dim)
    band = Band(points, dim, *np.ascontiguousarray(edges.T))
    for shift in (1e-3, 1.0):
        assert np.allclose(fronts.factor(s, alpha, beta, shift).solve(v), band.factor(s, alpha, beta, shift).solve(v))


def test_an_indefinite_matrix_has_no_factor():
    truth, edges = cloud(10, 0.8)
    s = (truth[edges[:, 0]] - truth[edges[:, 1]]).ravel()
    for made in (Band(10, 3, *np.ascontiguousarray(edges.T)), BlockFronts(Dissection(10, edges), 3)):
        assert made.factor(s, -np.ones(len(edges)), np.zeros(len(edges)), 0.0) is None


def test_fronts_take_the_place_of_a_wide_band():
    """Two clouds and a few points between them: a band is as wide as a cloud, fronts are not."""
    truth = inverse.examples.bridge(1000)
    form = qb.GraphForm(1000, 3, inverse.examples.near_pairs(truth, 20))
    problem = inverse.Problem(form, form.term_squares(form.image(truth.ravel())))
    at = problem.misfit.evaluate(problem.cone.euclidean(truth.ravel()))
    made = problem.misfit.factor(at, 0.0, 1e-3)
    assert type(made).__name__ == "BlockFactor"
    v = np.random.default_rng(0).standard_normal(3000)
    solved = made.solve(v)
    mean = problem.form.column_squares(np.repeat(8.0, form.terms * 3) * at.image**2).mean()
    assert np.allclose(problem.gauss_newton_product(at.point, solved) + 1e-3 * mean * solved, v)


def test_factors_take_over_on_a_rod():
    truth = np.random.default_rng(0).random((300, 3)) * [30.0, 1.0, 1.0]
    edges = near(truth, 16)
    problem = inverse.Problem(qb.GraphForm(300, 3, edges), lengths(truth, edges) ** 2)
    start = truth + 0.02 * np.random.default_rng(1).standard_normal(truth.shape)
    found = inverse.solve(problem, "newton", start=start, tol=1e-9)
    assert "factors took over" in found.message
    assert found.residual < 1e-8
    assert found.nit < 60


# Points that nothing holds --------------------------------------------------------------------------------------------


def test_a_point_that_too_few_distances_hold_is_named():
    truth, edges = cloud(30, 0.8)
    held = edges[(edges != 7).all(axis=1)]
    edges = np.concatenate([held, [[1, 7], [2, 7]]])
    found = completed(truth, edges, attempts=1)
    assert found.loose.tolist() == [7]
    assert "point 7" in found.message
    others = np.delete(np.arange(30), 7)
    assert inverse.rmsd(found.x[others], truth[others]) < 1e-6


def test_points_behind_loose_points_are_loose():
    ring = np.array([(i, (i + 1) % 9) for i in range(9)])
    assert inverse.loose_points(9, ring, 2).tolist() == list(range(9))
    assert not inverse.loose_points(5, np.stack(np.triu_indices(5, 1), axis=1), 3).size
    assert not inverse.loose_points(3, np.stack(np.triu_indices(3, 1), axis=1), 3).size


def complete(points):
    """Return all pairs among points."""
    points = np.asarray(points)
    first, second = np.triu_indices(points.size, 1)
    return np.stack([points[first], points[second]], axis=1)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_parts_that_share_a_point_turn_about_it(dim):
    edges = np.concatenate([complete(range(8)), complete(range(7, 13))])
    assert inverse.hinges(13, edges).tolist() == [7]
    assert inverse.movable_points(13, edges, dim).tolist() == [8, 9, 10, 11, 12]


def test_a_bridge_has_a_hinge_at_either_end():
    edges = np.concatenate([complete(range(8)), complete(range(8, 14)), [[7, 8]]])
    assert inverse.hinges(14, edges).tolist() == [7, 8]
    assert inverse.movable_points(14, edges, 3).tolist() == [8, 9, 10, 11, 12, 13]


def test_parts_that_share_a_line_turn_about_it_in_space_but_not_in_the_plane():
    edges = np.unique(np.concatenate([complete(range(8)), complete(range(6, 12))]), axis=0)
    assert not inverse.hinges(12, edges).size
    assert inverse.movable_points(12, edges, 3).tolist() == [8, 9, 10, 11]
    assert not inverse.movable_points(12, edges, 2).size


@given(st.integers(4, 14), st.integers(0, 10**6))
def test_hinges_are_the_points_without_which_others_are_apart(points, seed):
    rng = np.random.default_rng(seed)
    tree = np.array([(int(rng.integers(i)), i) for i in range(1, points)])
    more = complete(range(points))[rng.random(points * (points - 1) // 2) < 0.1]
    edges = np.unique(np.concatenate([tree, more]), axis=0)
    wanted = []
    for i in range(points):
        rest = edges[(edges != i).all(axis=1)]
        kept = np.delete(np.arange(points), i)
        if inverse.largest_part(points, rest).size < points - 1 and kept.size > 1:
            wanted.append(i)
    assert inverse.hinges(points, edges).tolist() == wanted


def test_a_cloud_with_enough_distances_is_rigid():
    truth, edges = cloud(100, 0.2)
    assert not inverse.movable_points(100, edges, 3).size
    truth = inverse.examples.box(120, (12.0, 1.0, 1.0))
    assert not inverse.movable_points(120, near(truth, 14), 3).size


def test_parts_that_turn_are_named_with_their_hinges():
    truth = np.random.default_rng(0).standard_normal((16, 3))
    edges = np.concatenate([complete(range(9)), complete(range(8, 16))])
    found = completed(truth, edges, attempts=1)
    assert found.movable.tolist() in ([9, 10, 11, 12, 13, 14, 15], list(range(8)))
    assert found.hinges.tolist() == [8]
    assert "can move together about the hinge at point 8" in found.message
    plane = np.unique(np.concatenate([complete(range(9)), complete(range(7, 14))]), axis=0)
    found = completed(truth[:14], plane, attempts=1)
    assert found.movable.tolist() == [9, 10, 11, 12, 13]
    assert "points 9, 10, 11, 12, 13 can move together and keep all known distances" in found.message


def test_parts_that_no_distance_joins_are_named():
    truth, edges = cloud(20, 0.9)
    apart = edges[(edges < 17).all(axis=1) | (edges >= 17).all(axis=1)]
    with pytest.raises(ProblemError, match=r"2 parts that no distance joins: points 17, 18, 19 cannot be placed"):
        completed(truth, apart)


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**-300, 2.0**-200, 2.0**200, 2.0**230])
def test_a_search_does_not_depend_on_the_unit(unit):
    truth, edges = cloud(30, 0.35, dim=2)
    plain = completed(truth, edges)
    found = completed(unit * truth, edges)
    assert found.success
    assert len(plain.stages) > 5  # one run is not enough here; powers of two round nothing on the way
    assert [stage.name for stage in found.stages] == [stage.name for stage in plain.stages]
    assert found.rmse <= 1e-7 * unit


def test_distances_whose_fourth_powers_are_no_numbers_are_refused():
    with pytest.raises(ProblemError, match="D must not hold distances above 1e\\+70, found 1e\\+80"):
        inverse.distances([1e80, 1.0, 1.0], [(0, 1), (0, 2), (1, 2)], dim=2)


def test_points_in_no_edge_are_named_before_anything_of_their_number_is_made():
    with pytest.raises(ProblemError, match=r"edges must hold every point .* found none at point 2"):
        inverse.distances([1.0, 1.0], [(0, 1), (1, 2**40)], dim=2)


def test_motions_are_no_error():
    truth, _ = cloud(20, 1.0)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    mirrored = truth @ turn * [-1.0, 1.0, 1.0] + 5.0
    assert inverse.rmsd(mirrored, truth) < 1e-12
    assert np.allclose(inverse.procrustes(mirrored, truth), truth)


@pytest.mark.parametrize(
    ("D", "options", "message"),
    [
        (np.ones((3, 4)), {}, "N × N"),
        (np.full((4, 4), np.nan), {}, "at least one distance"),
        ([[0.0, 1.0], [2.0, 0.0]], {}, "symmetric"),
        ([[0.0, np.nan], [2.0, 0.0]], {}, "symmetric"),
        ([[0.0, -1.0], [-1.0, 0.0]], {}, "not be negative"),
        ([[0.0, np.inf], [np.inf, 0.0]], {}, "found infinity"),
        ([[0.0, 1.0], [1.0, 0.0]], {"weights": [1.0]}, "weights must be of the shape of D"),
        ([1.0], {"edges": [[0, 1], [1, 2]]}, "edges must be 1 pairs"),
        ([1.0], {"edges": [[-1, 1]]}, "found -1"),
        ([1.0], {"edges": [[1, 1]]}, "self-loop"),
        ([1.0, 1.0], {"edges": [[0, 1], [1, 0]]}, "repeated"),
        ([1.0], {"edges": [[0, 1]], "weights": [1.0, 2.0]}, "weights must be 1"),
        ([np.inf], {"edges": [[0, 1]]}, "finite"),
        ([1.0], {"edges": [[0, 1]], "dim": 0}, "dim must be"),
        ([1.0], {"edges": [[0, 1]], "start": "best"}, "start must be"),
        ([1.0], {"edges": [[0, 1]], "anchors": {5: [0, 0, 0]}}, "anchors must be points"),
        ([1.0], {"edges": [[0, 1]], "anchors": {0: [0, 0, 0]}}, "at least 4 points"),
        ([0.0], {"edges": [[0, 1]]}, "all zero"),
    ],
)
def test_bad_distances_are_named(D, options, message):
    with pytest.raises(ProblemError, match=message):
        inverse.distances(D, **options)
