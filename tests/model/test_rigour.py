"""Are the two numbers of a certificate true in exact arithmetic, on hostile problems too, and close to each other?"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quartbench.kernels import exact
from quartbench.model import rigour
from tests.kernels import plain

from . import truth
from .planted import planted
from .random_forms import connected_edges, dense_rows

SEEDS = st.integers(0, 2**32 - 1)

#: Relative distances from the minimiser: rounding, and what methods leave that stop early.
DISTANCES = (0.0, 1e-10, 1e-5, 1e-2)


def point(found, cone, distance, seed):
    """Return a point at a relative distance from the minimiser, in the cone but for rounding."""
    x = np.array([float(v) for v in found.x])
    x = x * (1.0 + distance * np.random.default_rng(seed).standard_normal(x.size))
    return np.abs(x) if cone == "orthant" else x


def check_true(problem, found, x, certificate):
    """Assert that a certificate is true, and return the true relative gap."""
    with mpmath.workdps(70):
        value = truth.value(problem.rows, problem.rank, problem.c, x)
        assert certificate.value >= value
        assert certificate.lower_bound <= found.optimum
        gap = (value - found.optimum + found.error) / abs(found.optimum)
        assert certificate.gap >= (value - found.optimum) / abs(found.optimum)
        if problem.cone == "orthant":
            assert (x >= 0.0).all()
        elif problem.cone == "second-order":
            assert Fraction(float(x[0])) ** 2 >= sum(Fraction(float(v)) ** 2 for v in x[1:])
            assert x[0] >= 0.0
        return float(gap)


def fuzz(seeds):
    """Certify points near the minimisers of hostile problems; return (problem, distance, true gap, certified gap)."""
    results = []
    for seed in seeds:
        problem = truth.hostile(seed)
        found = truth.truth(problem.rows, problem.rank, problem.c, problem.cone)
        for distance in DISTANCES:
            x = point(found, problem.cone, distance, seed)
            x, certificate = rigour.certify_rows(problem.rows, problem.rank, problem.c, x, problem.cone)
            if found.optimum == 0:
                assert certificate == (0.0, 0.0, 0.0)
                break
            results.append((problem, distance, check_true(problem, found, x, certificate), certificate.gap))
    return results


def test_no_certificate_of_a_hostile_problem_is_false():
    for problem, distance, true, certified in fuzz(range(100)):
        if distance == 0.0 and problem.cone != "second-order":
            # At the minimiser, rounded: free space and the orthant are certified at every scale and condition.
            assert certified <= true + 1e-13
        elif distance == 0.0 and problem.kind not in ("conditioned", "polar"):
            assert certified <= 3.0 * true + 1e-12
        if problem.kind in ("plain", "scaled") and distance > 0.0:
            assert certified <= 3.0 * true + 1e-13


@pytest.mark.slow
def test_no_certificate_of_thousands_of_hostile_problems_is_false():
    assert len(fuzz(range(1000, 4000))) > 10_000


# The minimal cases of issue 14 ----------------------------------------------------------------------------------------


def issue_cases():
    rng, t = np.random.default_rng(2), 1e6
    units = np.array([1.0, t, 1.0 / t])
    yield truth.Hostile(rng.standard_normal((6, 3)) * units, 1, rng.standard_normal(3) * units, "orthant", "units")
    yield truth.Hostile(
        np.array([[1e7, 1e7], [1.0, 0.0], [0.0, 1.0]]), 1, np.array([1.0, 1.0 + 1e-9]), "free", "dominant"
    )
    rows = np.vstack([np.eye(3), np.ones((1, 3))])
    yield truth.Hostile(rows, 1, np.array([-1.0, 1.0 + 1e-8, 0.0]), "second-order", "polar")
    yield truth.Hostile(np.vstack([np.eye(2)] * 2), 1, np.array([1.0, -1e14]), "orthant", "trivial?")


@pytest.mark.parametrize("number", range(4))
def test_the_minimal_cases_of_issue_14_are_certified_truthfully(number):
    problem = list(issue_cases())[number]
    found = truth.truth(problem.rows, problem.rank, problem.c, problem.cone)
    for distance in DISTANCES:
        x = point(found, problem.cone, distance, number)
        x, certificate = rigour.certify_rows(problem.rows, problem.rank, problem.c, x, problem.cone)
        true = check_true(problem, found, x, certificate)
        if distance == 0.0:
            assert certificate.gap <= 3.0 * true + 1e-13


def test_an_infeasible_point_is_not_accepted_as_it_is():
    rows, c = np.vstack([np.eye(2)] * 2), np.array([1.0, -1e12])
    x, certificate = rigour.certify_rows(rows, 1, c, np.array([0.5, -5e-13]), "orthant")
    assert x[1] == 0.0
    assert certificate.value >= -0.375  # f*


@pytest.mark.parametrize("cone", ["free", "orthant", "second-order"])
def test_at_zero_f_is_zero_and_the_gap_infinite(cone):
    rows = np.vstack([np.eye(2)] * 2)
    x, certificate = rigour.certify_rows(rows, 1, np.array([1.0, -0.5]), np.zeros(2), cone)
    assert not x.any()
    assert 0.0 <= certificate.value <= 1e-300
    assert -math.inf < certificate.lower_bound < -0.375
    assert certificate.gap == math.inf


def test_trivial_is_decided_on_c_as_given():
    assert not rigour.polar_orthant(np.array([1.0, -1e14]))
    assert rigour.polar_orthant(np.array([0.0, -1e14]))
    assert rigour.polar_centred(np.tile([3.0, -5.0], 4), (4, 2))
    assert not rigour.polar_centred(np.array([1.0, 1.0, math.nextafter(1.0, 2.0)]), (3, 1))


# The two numbers ------------------------------------------------------------------------------------------------------


def test_the_constant_is_above_three_quarters_of_the_cube_root_of_a_quarter():
    # (K/¾)³·4 = 1 for the exact constant K.
    assert 1 < (Fraction(rigour.CONSTANT) * 4 / 3) ** 3 * 4 < 1 + Fraction(1, 10**15)


@given(st.floats(1e-80, 1e80), st.floats(0.0, 1e60))
def test_lower_bound_is_below_its_formula_and_close(power, rest):
    with mpmath.workdps(50):
        norm = mpmath.mpf(power) ** (mpmath.mpf(3) / 4) + mpmath.mpf(rest)
        wanted = -mpmath.mpf(3) / 4 * mpmath.mpf(4) ** (-mpmath.mpf(1) / 3) * norm ** (mpmath.mpf(4) / 3)
        assert wanted * (1 + mpmath.mpf(10) ** -14) <= rigour.lower_bound(power, rest) <= wanted


def test_bounds_out_of_range_say_nothing():
    assert rigour.lower_bound(math.inf, 0.0) == -math.inf
    assert rigour.lower_bound(1.0, math.inf) == -math.inf
    assert rigour.relative_gap(-1.0, -math.inf) == math.inf
    assert rigour.relative_gap(1.0, -1.0) == math.inf


@given(st.integers(-500, 500), st.integers(-500, 500))
def test_powers_of_two_change_no_bit(rows, c):
    a, b, x, f = rigour.powers_of_two(1.5 * 2.0**rows, 1.1 * 2.0**c)
    assert 3 * x == b - 4 * a
    assert f == b + x
    assert 0.5 <= 1.5 * 2.0 ** (rows - a) < 1.0
    assert 0.25 <= 1.1 * 2.0 ** (c - b) < 2.0


# Cones ----------------------------------------------------------------------------------------------------------------


def in_second_order(x):
    return x[0] >= 0 and x[0] ** 2 >= sum(v * v for v in x[1:])


@given(SEEDS, st.integers(2, 8), st.integers(-3, 3), st.sampled_from([1.0, 1e-170, 1e170]))
def test_the_second_order_cone_is_decided_exactly(seed, n, steps, scale):
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal(n)
    x[0] = math.hypot(*x[1:])
    for _ in range(abs(steps)):
        x[0] = math.nextafter(x[0], math.copysign(math.inf, steps))
    wanted = in_second_order([Fraction(float(v)) for v in x])
    assert rigour.inside_second_order(x) == wanted
    assert rigour.polar_second_order(-x) == wanted
    if scale == 1.0:
        moved = rigour.into_second_order(x)
        assert in_second_order([Fraction(float(v)) for v in moved])
        assert moved[0] <= x[0] * (1.0 + 1e-15)
        assert (moved is x) == wanted


def draw_known(rng, n, spread):
    hi = rng.standard_normal(n) * 10.0 ** rng.uniform(-spread, spread, n)
    return rigour.Known(hi, hi * rng.uniform(-1.0, 1.0, n) * 2.0**-54, np.abs(hi) * 10.0 ** rng.uniform(-33.0, -3.0))


def corners(known, rng, count=6):
    """Yield exact vectors of the box that ``known`` stands for."""
    for _ in range(count):
        signs = rng.choice([-1, 1], known.hi.size)
        yield [
            Fraction(a) + Fraction(b) + int(s) * Fraction(e)
            for a, b, e, s in zip(known.hi, known.lo, known.error, signs, strict=True)
        ]


@given(SEEDS, st.integers(1, 8), st.booleans())
def test_what_is_left_out_on_the_orthant_is_polar(seed, n, shifted):
    rng = np.random.default_rng(seed)
    r = draw_known(rng, n, 3.0)
    w = rigour.outside_orthant(r, np.abs(rng.standard_normal(n))) if shifted else rigour.outside_orthant(r)
    for exact_r in corners(r, rng):
        assert all(a - Fraction(b) <= 0 for a, b in zip(exact_r, w.hi, strict=True))
    assert not w.lo.any()
    assert not w.error.any()


@given(SEEDS, st.integers(2, 8), st.booleans(), st.booleans())
def test_what_is_left_out_on_the_second_order_cone_is_polar(seed, n, shifted, boundary):
    rng = np.random.default_rng(seed)
    r = draw_known(rng, n, 1.0)
    if boundary:  # r almost on the boundary of the polar cone, where what is left is all rounding
        r.hi[0] = -np.linalg.norm(r.hi[1:])
    w = rigour.outside_second_order(r, rng.standard_normal(n)) if shifted else rigour.outside_second_order(r)
    for exact_r in corners(r, rng):
        assert in_second_order([Fraction(b) - a for a, b in zip(exact_r, w.hi, strict=True)])
    if boundary and not shifted and r.error.max() < 1e-25:
        assert np.abs(w.hi).max() <= 1e-14 * np.abs(r.hi).max()


@given(SEEDS, st.integers(2, 8), st.integers(1, 3))
def test_what_is_left_out_on_the_centred_subspace_is_a_translation(seed, points, d):
    rng = np.random.default_rng(seed)
    r = draw_known(rng, points * d, 2.0)
    w = rigour.outside_centred(r, (points, d))
    middle = [Fraction(a) + Fraction(b) for a, b in zip(r.hi, r.lo, strict=True)]
    rest = np.array([Fraction(a) + Fraction(b) for a, b in zip(w.hi, w.lo, strict=True)]).reshape(points, d)
    moved = np.array(middle, dtype=object).reshape(points, d) - rest
    slack = np.array([Fraction(a) - Fraction(b) for a, b in zip(w.error, r.error, strict=True)]).reshape(points, d)
    for k in range(d):  # some translation is within the slack of all entries
        assert max(moved[:, k] - slack[:, k]) <= min(moved[:, k] + slack[:, k])


@given(SEEDS, st.integers(2, 9), st.integers(1, 3))
def test_the_inner_product_with_a_centred_point_is_within_its_bound(seed, points, d):
    rng = np.random.default_rng(seed)
    c, x = rng.standard_normal((2, points * d)) + rng.standard_normal(2)[:, None] * 10.0 ** rng.integers(-20, 3)
    exact_c, exact_x = [np.array([Fraction(v) for v in y], dtype=object).reshape(points, d) for y in (c, x)]
    wanted = (exact_c * (exact_x - exact_x.sum(axis=0) / points)).sum()
    hi, lo, error = map(Fraction, rigour.centred_inner(c, x, (points, d)))
    assert abs(hi + lo - wanted) <= error
    assert error <= Fraction(1, 10**13) * (abs(exact_c).sum() * abs(exact_x).max())


# What N of a rest is bounded by ---------------------------------------------------------------------------------------


def dual_norm(rows, w):
    """Return ‖w‖ in the inverse of the Gram matrix of the rows, to many digits."""
    with mpmath.workdps(60):
        m, w = mpmath.matrix(rows.tolist()), mpmath.matrix(list(map(float, w)))
        return mpmath.sqrt((w.T * mpmath.lu_solve(m.T * m, w))[0])


@given(SEEDS)
def test_a_factor_bounds_the_dual_norm(seed):
    problem = truth.hostile(seed % 10**6)
    assume(problem.kind != "scaled")
    rows, rng = problem.rows, np.random.default_rng(seed)
    terms = len(rows) // problem.rank
    factor = rigour.factor_of_rows(rows, problem.rank)
    assert factor is not None
    assert factor.slack > 0.0
    for w in (rows.T @ rng.standard_normal(len(rows)), rng.standard_normal(rows.shape[1]) * factor.unit):
        bound = factor.norm(rigour.Known(w, np.zeros_like(w), np.zeros_like(w)))
        wanted = dual_norm(rows, w) * mpmath.mpf(terms) ** 0.25
        assert bound >= wanted
        assert bound <= 2.0 * wanted


@given(SEEDS)
def test_a_factor_of_a_sample_bounds_the_dual_norm_of_all_rows(seed):
    rng = np.random.default_rng(seed)
    rows, w = rng.standard_normal((240, 5)) * 10.0 ** rng.uniform(-5.0, 5.0, 5), rng.standard_normal(5)
    factor = rigour.factor_of_rows(rows, 2, sample=30)
    known = rigour.Known(w, np.zeros(5), np.zeros(5))
    assert factor.terms == 30
    full = rigour.factor_of_rows(rows, 2).norm(known)
    assert dual_norm(rows, w) * mpmath.mpf(120) ** 0.25 <= full
    assert 0.8 * full <= factor.norm(known) <= 4.0 * full


def test_a_factor_of_a_given_gram_matrix_bounds_the_dual_norm():
    rng = np.random.default_rng(0)
    rows, w = rng.standard_normal((300, 20)), rng.standard_normal(20)
    factor = rigour.factor_of_gram(rows.T @ rows, 300, 300)
    known = rigour.Known(w, np.zeros(20), np.zeros(20))
    assert 1.0 <= factor.norm(known) / float(dual_norm(rows, w) * mpmath.mpf(300) ** 0.25) <= 1.1
    np.testing.assert_allclose(factor.solve(w), np.linalg.solve(rows.T @ rows, w), rtol=0.1)


def test_nothing_is_claimed_of_dependent_columns():
    rows = np.random.default_rng(0).standard_normal((20, 4))
    rows[:, 3] = rows[:, 0] + rows[:, 1]
    assert rigour.factor_of_rows(rows) is None or rigour.factor_of_rows(rows).slack > 0.0
    rows = np.round(8.0 * rows)
    rows[:, 3] = rows[:, 0] + rows[:, 1]  # exactly so
    assert rigour.factor_of_rows(rows) is None
    assert rigour.factor_of_gram(rows.T @ rows, 20, 20) is None
    assert rigour.factor_of_rows(np.zeros((3, 2))) is None


def test_unknown_entries_count_as_what_is_left():
    rng = np.random.default_rng(0)
    rows, w = rng.standard_normal((50, 6)), rng.standard_normal(6)
    factor = rigour.factor_of_rows(rows)
    error = 0.1 * np.abs(w)
    bound = factor.norm(rigour.Known(w, np.zeros(6), error))
    for signs in rng.choice([-1.0, 1.0], (50, 6)):
        assert bound >= dual_norm(rows, w + signs * error) * mpmath.mpf(50) ** 0.25


@given(SEEDS, st.integers(2, 12), st.integers(1, 3))
def test_a_tree_bounds_n_on_the_centred_points(seed, points, d):
    rng = np.random.default_rng(seed)
    edges = connected_edges(rng, points, 4)
    tree = rigour.spanning_tree(*np.ascontiguousarray(edges.T), (points, d))
    w = rng.standard_normal((points, d))
    known = rigour.Known(w.reshape(-1), np.zeros(w.size), np.zeros(w.size))
    bound, rows = tree.norm(known), plain.edge_rows(points, d, edges)
    for _ in range(5):
        x = rng.standard_normal((points, d))
        x -= x.mean(axis=0)
        assert np.sum(w * x) <= bound * plain.value(rows, d, x.reshape(-1)) ** 0.25 * (1.0 + 1e-9)
    flow = tree.correction(None, w.reshape(-1), w.reshape(-1))
    plain.close(rows.T @ flow, (w - w.mean(axis=0)).reshape(-1))


# Every kind of rows ---------------------------------------------------------------------------------------------------


def access(form):
    """Return the exact access to the rows of a form, and what bounds N."""
    rows = dense_rows(form)
    kind = type(form).__name__
    if kind == "GraphForm":
        tree = rigour.spanning_tree(form.heads, form.tails, form.shape)
        return rigour.Edges(form.heads, form.tails, form.shape), tree
    factor = rigour.factor_of_rows(rows, form.rank)
    if kind == "ComplexForm":
        return rigour.ComplexRows(form.rows.view(np.float64)), factor
    if form.sparse:
        return rigour.SparseRows(form.rows.data, form.rows.indices, form.rows.indptr, form.rank), factor
    return rigour.DenseRows(form.rows, form.rank), factor


@pytest.mark.parametrize(
    ("kind", "cone"),
    [(kind, "free") for kind in ("dense", "block", "float32", "sparse", "complex")]
    + [(kind, "orthant") for kind in ("dense", "block", "float32", "sparse")]
    + [("dense", "second-order"), ("graph", "centred")],
)
def test_planted_solutions_are_certified_to_rounding(kind, cone):
    for seed in range(4):
        problem = planted(kind, cone, seed)
        form, factor = access(problem.form)
        shape, inner = problem.form.shape, None
        outside = {
            "free": rigour.outside_free,
            "orthant": rigour.outside_orthant,
            "second-order": rigour.outside_second_order,
            "centred": lambda r, shape=shape: rigour.outside_centred(r, shape),
        }[cone]
        for distance in (0.0, 1e-12, 1e-9):
            x = problem.solution * (1.0 + distance * np.random.default_rng(seed).standard_normal(problem.dim))
            if cone == "second-order":
                x = rigour.into_second_order(x)
            elif cone == "centred":
                inner = rigour.centred_inner(problem.c, x, shape)
            found = rigour.certify(form, np.array(problem.c), x, factor, outside, inner=inner)
            assert found.lower_bound <= problem.optimum <= found.value
            assert found.gap <= 1e-13 + 1e3 * distance


def test_the_dual_point_is_a_pair_because_one_double_is_not_enough():
    # Rows that are dependent to 1e-9: rounding λ to doubles costs eight digits.
    rows = np.array([[1e9, 1e9], [1.0, 0.0], [0.0, 1.0]])
    problem = truth.Hostile(rows, 1, np.array([1.0, 1.0 + 1e-9]), "free", "dominant")
    found = truth.truth(*problem[:4])
    x, certificate = rigour.certify_rows(rows, 1, problem.c, np.array([float(v) for v in found.x]))
    assert certificate.gap <= check_true(problem, found, x, certificate) + 1e-14
    form, factor = rigour.DenseRows(rows), rigour.factor_of_rows(rows)
    image = form.image(x)
    hi, _ = exact.cubic_weights(image.hi, image.lo, 1)
    rest = factor.norm(form.residual(problem.c, hi, np.zeros(3)))
    assert (
        rigour.relative_gap(certificate.value, rigour.lower_bound(exact.dual_power(hi, np.zeros(3), 1), rest)) > 1e-10
    )
