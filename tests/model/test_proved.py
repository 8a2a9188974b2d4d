"""Are the two numbers of a certificate true in exact arithmetic, on hostile problems too, and close to each other?"""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import quartbench as qb
from quartbench import instances
from quartbench.model import certificate as module
from quartbench.model.certificate import Certificate, Units, improve, prove, relative_gap
from tests.cones.unseen import IceCreamAndMore
from tests.forms.random_forms import SEEDS, RowProducts, dense_rows
from tests.forms.unseen import Smoothness

from . import truth
from .planted import CASES, exact, planted

CONES = {"free": qb.Free, "orthant": qb.Orthant, "second-order": qb.SecondOrder}

#: Relative distances from the minimiser: rounding, and what methods leave that stop early.
DISTANCES = (0.0, 1e-10, 1e-5, 1e-2)


@cache
def hostile(seed):
    """Return a hostile problem and its truth, found once."""
    problem = truth.hostile(seed)
    return problem, truth.truth(problem.rows, problem.rank, problem.c, problem.cone)


def given_to(problem):
    """Return a hostile problem as a user states it."""
    return qb.Problem(qb.StackedForm(problem.rows, problem.rank), problem.c, CONES[problem.cone]())


def point(found, cone, distance, seed):
    """Return a point at a relative distance from the minimiser, in the cone but for rounding."""
    x = np.array([float(v) for v in found.x])
    x = x * (1.0 + distance * np.random.default_rng(seed).standard_normal(x.size))
    return np.abs(x) if cone == "orthant" else x


def in_cone(cone, x):
    """Say whether a point is in a cone, exactly."""
    if cone == "orthant":
        return bool((x >= 0.0).all())
    if cone == "second-order":
        return x[0] >= 0.0 and Fraction(float(x[0])) ** 2 >= sum(Fraction(float(v)) ** 2 for v in x[1:])
    return True


def check_true(problem, found, x, certificate):
    """Assert that a certificate (or what a result says) is true, and return the true relative gap."""
    upper, lower, gap = certificate[:3]
    assert in_cone(problem.cone, x)
    assert np.isfinite(x).all()
    assert not math.isnan(upper + gap)
    with mpmath.workdps(70):
        value = truth.value(problem.rows, problem.rank, problem.c, x)
        assert upper >= value
        assert lower <= found.optimum
        if found.optimum == 0:
            return 0.0
        assert gap >= (value - found.optimum) / abs(found.optimum)
        return float((value - found.optimum + found.error) / abs(found.optimum))


def fuzz(seeds):
    """Certify points near the minimisers of hostile problems; return (problem, distance, true gap, certified gap)."""
    results = []
    for seed in seeds:
        problem, found = hostile(seed)
        stated = given_to(problem)
        if stated.trivial:
            assert found.optimum == 0
            assert qb.certify(stated, np.zeros(stated.dim)) == (0.0, 0.0, 0.0, True)
            continue
        assert found.optimum < 0
        for distance in DISTANCES:
            x, certificate = prove(stated, point(found, problem.cone, distance, seed), None, 0.0)
            assert certificate.proved
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


# Whole solves ---------------------------------------------------------------------------------------------------------


def check_solve(problem, found, solver, rel_gap):
    """Solve a hostile problem and assert that all that is said of it is true; return the result, None if refused."""
    try:
        result = qb.solve(given_to(problem), solver, rel_gap=rel_gap, max_iter=500, time_limit=5.0)
    except qb.ProblemError as error:
        assert "f* must be a number of floating point" in str(error)  # noqa: PT017
        assert problem.kind == "scaled"
        return None
    check_true(problem, found, result.x, (result.fun, result.lower_bound, result.gap))
    assert math.isfinite(result.fun)
    assert result.lower_bound < math.inf
    assert (result.status == "trivial") == (found.optimum == 0)
    assert result.success == (result.status in ("converged", "trivial"))
    assert result.status != "converged" or result.gap <= rel_gap
    return result


@pytest.mark.parametrize("solver", ["auto", "homgd", "homnewton"])
def test_an_optimum_out_of_range_is_refused(solver):
    twice = np.vstack([np.eye(2)] * 2)
    for rows, c in ((1e-150, 1e91), (1e150, 1e-91)):
        with pytest.raises(qb.ProblemError, match=r"f\* must be a number of floating point"):
            qb.solve(qb.Problem(qb.StackedForm(rows * twice), [c, c]), solver)


# The minimal cases that were false before -----------------------------------------------------------------------------


def false_before():
    """Give (problem, solver, gap asked for)."""
    rng, t = np.random.default_rng(2), 1e6
    units = np.array([1.0, t, 1.0 / t])
    rows = rng.standard_normal((6, 3)) * units
    yield truth.Hostile(rows, 1, rng.standard_normal(3) * units, "orthant", "units"), "homgd", 1e-10
    rows = np.array([[1e7, 1e7], [1.0, 0.0], [0.0, 1.0]])
    yield truth.Hostile(rows, 1, np.array([1.0, 1.0 + 1e-9]), "free", "dominant"), "homgd", 1e-9
    rows = np.vstack([np.eye(3), np.ones((1, 3))])
    yield truth.Hostile(rows, 1, np.array([-1.0, 1.0 + 1e-8, 0.0]), "second-order", "polar"), "auto", 1e-8
    twice = np.vstack([np.eye(2)] * 2)
    yield truth.Hostile(twice, 1, np.array([1.0, -1e14]), "orthant", "trivial?"), "auto", 1e-6
    yield truth.Hostile(twice, 1, np.array([1.0, -1e12]), "orthant", "infeasible"), "auto", 1e-6


@pytest.mark.parametrize("number", range(5))
def test_the_minimal_cases_that_were_false_are_certified_truthfully(number):
    problem, *_ = list(false_before())[number]
    found = truth.truth(problem.rows, problem.rank, problem.c, problem.cone)
    for distance in DISTANCES:
        x, certificate = prove(given_to(problem), point(found, problem.cone, distance, number), None, 0.0)
        true = check_true(problem, found, x, certificate)
        if distance == 0.0:
            assert certificate.gap <= 3.0 * true + 1e-13


@pytest.mark.parametrize("number", range(5))
def test_the_minimal_cases_that_were_false_are_solved_truthfully(number):
    problem, solver, rel_gap = list(false_before())[number]
    found = truth.truth(problem.rows, problem.rank, problem.c, problem.cone)
    assert found.optimum < 0
    for method in {solver, "auto", "homgd"}:
        result = check_solve(problem, found, method, rel_gap)
        assert result.status != "trivial"
        if number >= 3:
            assert result.status == "converged"
            assert result.fun == pytest.approx(-0.375, rel=1e-6)
            assert result.x[1] == 0.0
        elif number < 2:
            assert result.status == "converged"


def test_an_infeasible_point_is_not_accepted_as_it_is():
    problem = qb.Problem(qb.StackedForm(np.vstack([np.eye(2)] * 2)), np.array([1.0, -1e12]), qb.Orthant())
    x, certificate = prove(problem, np.array([0.5, -5e-13]), None, 0.0)
    assert x.tolist() == [0.5, 0.0]
    assert certificate.value >= -0.375  # f*
    assert certificate.gap <= 1e-14
    found = qb.certify(problem, [1.0, -5e-13])
    assert found.lower_bound <= -0.375 <= found.value
    with pytest.raises(qb.ProblemError, match="x must lie in the cone"):
        qb.certify(problem, [1.0, -1e-9])


@pytest.mark.parametrize("solver", ["auto", "accel-homgd", "homnewton-cg"])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_whose_products_underflow_are_certified_truthfully(solver, sparse):
    # Of the Gram matrix of these rows rounding leaves the identity, and it is singular to 1e-17.
    r = math.sqrt(0.5) * 2.0**-537
    a, b = r * (1.0 + 1e-9), r * (1.0 - 1e-9) ** 2
    rows = np.array([[1e-151, 0.0, 0.0], [0.0, a, b], [0.0, b, a], [1e-151, 0.0, 0.0]])
    c = np.array([1e-151, 0.1 * a, -0.1 * a])
    problem = qb.Problem(qb.StackedForm(sp.csr_matrix(rows) if sparse else rows), c)
    found = qb.solve(problem, solver, max_iter=30)
    with mpmath.workdps(60):
        image = [mpmath.fsum(mpmath.mpf(u) * v for u, v in zip(row, (0, 1, -1), strict=True)) for row in rows.tolist()]
        rho, inner = mpmath.fsum(s**4 for s in image), mpmath.mpf(c[1]) - mpmath.mpf(c[2])
        attained = -0.75 * mpmath.cbrt(inner / (4 * rho)) * inner
        assert found.lower_bound <= attained
    assert found.lower_bound <= found.fun


def test_a_value_below_the_bound_certifies_nothing():
    assert relative_gap(-1.0, -1.0) == 0.0
    assert relative_gap(-1.0 - 1e-15, -1.0) == math.inf


def test_points_whose_squares_overflow_are_certified():
    form = qb.StackedForm(1e-120 * np.vstack([np.eye(2)] * 2))
    found = qb.certify(qb.Problem(form, [1.0, 1.0], qb.Orthant()), [1e160, 1e160])
    assert found.gap <= 1e-12


def test_trivial_is_said_where_c_is_polar_exactly_and_nowhere_else():
    twice, small = np.vstack([np.eye(2)] * 2), np.vstack([np.eye(3)] * 2)
    above = math.nextafter(5.0, 6.0)
    for rows, c, cone, wanted in (
        (twice, [0.0, -1e14], "orthant", True),
        (twice, [1e-300, -1.0], "orthant", False),
        (small, [-5.0, 3.0, 4.0], "second-order", True),
        (small, [-above, 3.0, 4.0], "second-order", True),
        (small, [-math.nextafter(5.0, 4.0), 3.0, 4.0], "second-order", False),
        (small, [-5.0, 3.0, math.nextafter(4.0, 5.0)], "second-order", False),
    ):
        problem = qb.Problem(qb.StackedForm(rows), c, CONES[cone]())
        assert problem.trivial == wanted
        if wanted:
            result = qb.solve(problem)
            assert (result.status, result.fun, result.lower_bound, result.gap) == ("trivial", 0.0, 0.0, 0.0)


@pytest.mark.parametrize("cone", CONES)
def test_at_zero_f_is_zero_and_the_gap_infinite(cone):
    problem = qb.Problem(qb.StackedForm(np.vstack([np.eye(2)] * 2)), np.array([1.0, -0.5]), CONES[cone]())
    x, certificate = prove(problem, np.zeros(2), None, 0.0)
    assert not x.any()
    assert 0.0 <= certificate.value <= 1e-300
    assert -math.inf < certificate.lower_bound < -0.375
    assert certificate.gap == math.inf
    assert qb.certify(problem, np.zeros(2)).gap == math.inf


# The two numbers ------------------------------------------------------------------------------------------------------


def test_the_constant_is_above_three_quarters_of_the_cube_root_of_a_quarter():
    # (K/¾)³·4 = 1 for the exact constant K.
    assert 1 < (Fraction(module.CONSTANT) * 4 / 3) ** 3 * 4 < 1 + Fraction(1, 10**15)


#: Sizes of rows and c, and scales of the form: powers of two and others.
POWERS = st.sampled_from([-140.0, -60.0, -1.0, 0.0, 1.0, 60.0, 140.0])
SCALES = st.sampled_from([1.0, 2.0, 3.7, 0.1, 1e-9, 1e9, 1.0 / 3.0])


def draw(seed, row_power, c_power, scale, cone="free"):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((9, 3)) * 10.0**row_power
    c = rng.standard_normal(3) * 10.0**c_power
    return rows, qb.Problem(qb.StackedForm(rows).scaled(scale), c, CONES[cone]())


@given(SEEDS, POWERS, POWERS, SCALES)
def test_units_bring_a_problem_near_one_and_bound_its_value(seed, row_power, c_power, scale):
    rows, problem = draw(seed, row_power, c_power, scale)
    units = Units(problem)
    assert 0.5 <= np.ldexp(np.abs(rows).max(), -units.a) <= 1.0
    assert 0.5 <= np.abs(units.c).max() < 1.0
    assert 2.0**-8 <= units.g <= 2.0**5
    x = np.random.default_rng([seed, 1]).standard_normal(3)
    hi, lo, error = problem.cone.inner(units.c, x)
    for precise in (False, True):
        found = units.value(units.image(x, precise), (hi, lo, error))
        with mpmath.workdps(60):
            # f(2ᵉx') = 2^{b+e}(gρ'(x') − ⟨c',x'⟩), g exactly.
            image = [mpmath.fdot(map(float, row), map(float, x)) * mpf(2) ** -units.a for row in rows]
            g = mpf(scale) ** 4 * mpf(2) ** (4 * units.a + 3 * units.e - units.b)
            assert abs(units.g - g) <= 3 * mpf(2) ** -53 * g
            rho = g * sum(s**4 for s in image)
            inner = mpmath.fdot(map(float, units.c), map(float, x))
            assert 0 <= found - (rho - inner) <= 1e-13 * float(rho + abs(inner))


@given(SEEDS, POWERS, POWERS, SCALES, st.floats(1e-60, 1e60))
def test_lower_bound_is_below_its_formula_and_close(seed, row_power, c_power, scale, size):
    units = Units(draw(seed, row_power, c_power, scale)[1])
    with mpmath.workdps(50):
        g = mpf(scale) ** 4 * mpf(2) ** (4 * units.a + 3 * units.e - units.b)
        wanted = -mpf(3) / 4 * (4 * g) ** (-mpf(1) / 3) * mpf(size) ** (mpf(4) / 3)
        assert wanted * (1 + mpf(10) ** -14) <= units.lower_bound(size) <= wanted


@given(SEEDS, POWERS, POWERS, SCALES)
def test_residuals_and_rests_in_units_are_those_of_the_scaled_rows(seed, row_power, c_power, scale):
    rows, problem = draw(seed, row_power, c_power, scale)
    units, rng = Units(problem), np.random.default_rng([seed, 2])
    hi = rng.standard_normal(9)
    lo = 2.0**-54 * hi
    exact_rows = [[Fraction(float(v)) / Fraction(2) ** units.a for v in row] for row in rows]
    weights = [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(hi, lo, strict=True)]
    r = units.residual(hi, lo, True)
    for j in range(3):
        true = Fraction(float(units.c[j])) - sum(row[j] * v for row, v in zip(exact_rows, weights, strict=True))
        assert abs(Fraction(float(r.hi[j])) + Fraction(float(r.lo[j])) - true) <= Fraction(float(r.error[j])) < 1e-25
    # N of rows M', to a factor m^{1/4}: between those is no more.
    found = units.rest(problem.form.proof(), r)
    m = np.array([[float(v) for v in row] for row in exact_rows])
    w = r.rounded
    quadratic = float(np.sqrt(w @ np.linalg.solve(m.T @ m, w)))
    assert quadratic <= found <= 2.0 * 9**0.25 * quadratic


@settings(max_examples=20)
@given(SEEDS, POWERS, POWERS, SCALES, st.sampled_from(sorted(CONES)), st.sampled_from([0.0, 1e-6]))
def test_certificates_at_any_scale_are_true_and_close(seed, row_power, c_power, scale, cone, distance):
    rows, problem = draw(seed, row_power, c_power, scale, cone)
    if problem.trivial or abs(4.0 / 3.0 * (c_power - row_power - math.log10(scale))) > 280.0:
        return
    found = truth.truth(rows, 1, problem.c, cone)
    with mpmath.workdps(70):
        # Rows s times as large: x* = s^{−4/3}x*(1), f* = s^{−4/3}f*(1).
        factor = mpf(scale) ** (-mpf(4) / 3)
        x = point(found._replace(x=[factor * v for v in found.x]), cone, distance, seed)
        for rel_gap in (0.0, 1e-6):
            moved, certificate = prove(problem, x, None, rel_gap)
            assert in_cone(cone, moved)
            exactly = [mpf(float(v)) for v in moved]
            image = [mpf(scale) * mpmath.fdot(map(float, row), exactly) for row in rows]
            value = sum(s**4 for s in image) - mpmath.fdot(map(float, problem.c), exactly)
            assert certificate.lower_bound <= factor * found.optimum
            assert value <= certificate.value
            true = (value - factor * found.optimum) / abs(factor * found.optimum)
            assert true <= certificate.gap
            if rel_gap == 0.0 and row_power <= 100.0:
                assert certificate.gap <= 3.0 * true + 1e-12


@pytest.mark.parametrize("row_power", [140.0, 150.0])
def test_certificates_of_large_rows_are_close(row_power):
    rows, problem = draw(0, row_power, 0.0, 1.0)
    found = truth.truth(rows, 1, problem.c, "free")
    assert prove(problem, point(found, "free", 0.0, 0), None, 0.0)[1].gap <= 1e-12


def test_bounds_out_of_range_say_nothing():
    units = Units(draw(0, 0.0, 0.0, 1.0)[1])
    assert units.lower_bound(math.inf) == -math.inf
    assert units.lower_bound(math.nan) == -math.inf
    assert units.lower_bound(1e200) == -math.inf
    assert relative_gap(-1.0, -math.inf) == math.inf
    assert relative_gap(1.0, -1.0) == math.inf
    assert relative_gap(0.0, -1.0) == math.inf
    assert relative_gap(-1.0, -1.0) == 0.0


@given(st.floats(-1e200, -1e-200), st.floats(0.0, 1e3))
def test_the_gap_of_two_numbers_is_never_too_small(value, share):
    lower = value * (1.0 + share)
    exactly = (Fraction(value) - Fraction(lower)) / -Fraction(value)
    assert exactly <= Fraction(relative_gap(value, lower)) <= exactly * (1 + Fraction(1, 10**15))


def carried(units):
    """Return the correction that the proof of a form makes, on rows M'."""
    form = units.form
    return lambda w, r: 2.0**units.a * form.proof().correction(w, form.twin_image)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_any_dual_point_gives_a_true_bound(kind):
    # λ may be any numbers: what is far from feasible costs, and is never believed.
    for seed in range(12):
        rng = np.random.default_rng(seed)
        problem = truth.hostile(seed, "plain", "free")
        rows = problem.rows if kind == "dense" else sp.csr_matrix(problem.rows)
        stated = qb.Problem(qb.StackedForm(rows, problem.rank), problem.c)
        found = truth.truth(*problem[:4])
        units, proof = Units(stated), stated.form.proof()
        for size in (0.0, 1e-3, 1.0, 1e3):
            weights = size * rng.standard_normal(len(problem.rows))
            for corrections in ([], [carried(units)]):
                pair = (weights, np.zeros_like(weights))
                bound = improve(units, pair, proof, stated.cone, None, corrections, lambda _: False, True)
                with mpmath.workdps(50):
                    assert bound * mpf(2) ** (units.b + units.e) <= found.optimum


@pytest.mark.parametrize(("left", "calls"), [(0.4, 4), (0.6, 2)])
def test_a_correction_gives_way_to_the_next_where_it_no_longer_halves_what_is_left(left, calls):
    problem = planted("dense", "free", 1)
    units = Units(problem)
    route, called = carried(units), []

    def slow(w, r):
        called.append("slow")
        return (1.0 - left) * route(w, r)

    def full(w, r):
        called.append("full")
        return route(w, r)

    weights = 0.999 * route(units.c, None)  # N of what is left is some 1e-3: to halve it is not to come to a half
    pair, proof = (weights, np.zeros_like(weights)), problem.form.proof(True)
    improve(units, pair, proof, problem.cone, None, [slow, full], lambda _: False, True)
    assert called[:calls] == ["slow"] * calls
    assert "slow" not in called[calls:]
    assert ("full" in called) == (left > 0.5)


# Every form -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "cone"), CASES)
def test_planted_solutions_are_certified_to_rounding(kind, cone):
    for seed in range(4):
        problem = planted(kind, cone, seed)
        best, c = Fraction(problem.optimum), [Fraction(float(v)) for v in problem.c]
        for distance in (0.0, 1e-12, 1e-9):
            x = problem.solution * (1.0 + distance * np.random.default_rng(seed).standard_normal(problem.dim))
            x, found = prove(problem, x, None, 0.0)
            assert found.proved
            assert found.lower_bound <= best <= found.value
            assert found.gap <= 1e-13 + 1e3 * distance
            if cone != "centred":
                value = exact(problem.form, x) - sum(a * Fraction(float(b)) for a, b in zip(c, x, strict=True))
                assert best <= value <= found.value
                assert (value - best) / -best <= found.gap


@pytest.mark.parametrize("cone", ["free", "orthant"])
def test_gram_forms_are_certified_truthfully(cone):
    # On free space f* = −¾ 4^{−1/3} N(c)^{4/3} with the Schatten norm N; on the orthant it is planted.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        if cone == "free":
            form = qb.GramForm(int(rng.integers(1, 6)), int(rng.integers(1, 4)))
            problem = qb.Problem(form.scaled(rng.choice([1.0, 3.7])), rng.standard_normal(form.dim))
            with mpmath.workdps(50):
                singular = mpmath.svd_r(mpmath.matrix(problem.c.reshape(form.shape).tolist()), compute_uv=False)
                power = sum(s ** (mpf(4) / 3) for s in singular)
                optimum = -mpf(3) / 4 * mpf(4) ** (-mpf(1) / 3) * power / mpf(problem.form.scale) ** (mpf(4) / 3)
        else:
            problem = planted("gram", cone, seed)
            optimum = mpf(problem.optimum)
        result = qb.solve(problem, rel_gap=1e-9)
        x = result.x.reshape(-1)
        with mpmath.workdps(60):
            value = exact(problem.form, x)
            value = mpf(problem.form.scale) ** 4 * mpf(value.numerator) / value.denominator
            value -= mpmath.fdot(map(float, problem.c), map(float, x))
            assert result.lower_bound <= optimum
            assert value <= result.fun
            assert (value - optimum) / abs(optimum) <= result.gap <= 1e-9
        assert in_cone(cone, x)


# Forms by their products alone, and unseen ones: true as far as their products are ------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_operators_and_unseen_forms_are_certified_truthfully(seed):
    rng = np.random.default_rng(seed)
    if seed % 3:
        problem = truth.hostile(seed, ("plain", "polar")[seed % 2], ("free", "orthant", "second-order")[seed % 3])
        form, rows = qb.OperatorForm(RowProducts(problem.rows), problem.rank), problem.rows
    else:  # whose entries are exact numbers
        form = Smoothness(2, 3)
        rows = form.real_rows()
        problem = truth.Hostile(rows, 3, rng.standard_normal(form.dim), ("free", "orthant")[seed % 2], "unseen")
    stated = qb.Problem(form, problem.c, CONES[problem.cone]())
    found = truth.truth(rows, problem.rank, problem.c, problem.cone)
    if stated.trivial:
        assert found.optimum == 0
        return
    result = check_form_solve(problem, found, stated, 1e-8)
    for distance in DISTANCES:
        x, certificate = prove(stated, point(found, problem.cone, distance, seed), None, 0.0)
        check_true(problem, found, x, certificate)
        found_again = qb.certify(stated, stated.cone.inside(point(found, problem.cone, distance, seed)))
        assert found_again.lower_bound <= found.optimum <= found_again.value
    assert isinstance(qb.certify(stated, result.x), Certificate)


def check_form_solve(problem, found, stated, rel_gap):
    result = qb.solve(stated, rel_gap=rel_gap)
    check_true(problem, found, result.x.reshape(-1), (result.fun, result.lower_bound, result.gap))
    assert result.status != "converged" or result.gap <= rel_gap
    return result


@pytest.mark.parametrize("kind", ["operator", "unseen"])
def test_planted_problems_of_forms_by_their_products_are_certified(kind):
    for seed in range(3):
        if kind == "operator":  # of small integers: f* is exact
            base = planted("dense", "orthant" if seed % 2 else "free", seed)
            form = qb.OperatorForm(RowProducts(dense_rows(base.form)))
            problem = qb.Problem(form, base.c, base.cone, solution=base.solution, optimum=base.optimum)
            slack = 0.0
        else:  # planted to rounding
            problem, slack = instances.planted(Smoothness(4, 5), seed=seed), 1e-15
        result = qb.solve(problem, rel_gap=1e-10)
        assert result.status == "converged"
        assert result.lower_bound <= problem.optimum * (1.0 - slack)
        assert result.fun >= problem.optimum * (1.0 + slack)
        found = qb.certify(problem, problem.solution)
        assert found.lower_bound <= problem.optimum * (1.0 - slack)
        assert found.value >= problem.optimum * (1.0 + slack)
        assert found.gap <= 1e-11


@pytest.mark.parametrize(
    "form", [qb.OperatorForm(RowProducts(np.eye(3))), Smoothness(2, 3)], ids=["operator", "unseen"]
)
def test_what_rests_on_trust_is_not_called_proved(form):
    assert not qb.certify(qb.Problem(form, np.ones(form.dim)), np.ones(form.dim)).proved


def test_a_form_without_a_factor_is_certified_and_not_called_proved(monkeypatch):
    monkeypatch.setattr("quartbench.forms.terms.PRODUCT_DIMENSION", 2)
    problem = truth.hostile(1, "plain", "free")
    found = truth.truth(*problem[:4])
    stated = qb.Problem(qb.OperatorForm(RowProducts(problem.rows), problem.rank), problem.c)
    certificate = qb.certify(stated, point(found, "free", 1e-6, 0))
    assert not certificate.proved
    assert certificate.lower_bound <= found.optimum <= certificate.value


# c as it was given ----------------------------------------------------------------------------------------------------


def test_the_bound_on_a_graph_is_that_of_c_as_given():
    # On a path the flow is known: f* = −3Σ(|λ|/4)^{4/3}. Roundings of c at one end add up along it.
    points = 4000
    rng, flow = np.random.default_rng(0), np.ones(points - 1)
    flow[: points // 2] += rng.uniform(0.1, 0.9) * (np.arange(points // 2) % 2)
    c = np.zeros(points)
    c[:-1] += flow
    c[1:] -= flow
    c += rng.uniform(0.1, 3.0)
    x = np.concatenate([[0.0], np.cumsum(-np.cbrt(flow / 4.0))])
    problem = qb.Problem(qb.GraphForm(points, 1, np.stack([np.arange(points - 1), np.arange(1, points)], axis=1)), c)
    _, certificate = prove(problem, x - x.mean(), None, 0.0)
    given_c = [Fraction(float(v)) for v in c]
    mean, so_far = sum(given_c) / points, Fraction(0)
    with mpmath.workdps(40):
        optimum = mpf(0)
        for v in given_c[:-1]:
            so_far += v - mean
            optimum -= 3 * (abs(mpf(so_far.numerator) / so_far.denominator) / 4) ** (mpf(4) / 3)
        assert certificate.lower_bound <= optimum


def test_the_dual_point_of_a_rounded_point_is_corrected():
    # With a dominant row the rounding of x costs its own dual point eight digits; corrections win them back.
    rows = np.array([[1e9, 1e9], [1.0, 0.0], [0.0, 1.0]])
    problem = truth.Hostile(rows, 1, np.array([1.0, 1.0 + 1e-9]), "free", "dominant")
    found, stated = truth.truth(*problem[:4]), given_to(problem)
    x, certificate = prove(stated, np.array([float(v) for v in found.x]), None, 0.0)
    assert certificate.gap <= check_true(problem, found, x, certificate) + 1e-14
    units, proof = Units(stated), stated.form.proof()

    def gap(hi, lo):
        rest = units.rest(proof, units.residual(hi, lo, True))
        bound = units.lower_bound(stated.form.dual_size(hi, lo) + rest)
        return relative_gap(certificate.value, math.ldexp(bound, units.b + units.e))

    hi, lo = stated.form.dual_start(units.image(np.ldexp(x, -units.e), True))
    assert gap(units.g * hi, units.g * lo) > 1e-10
    with mpmath.workdps(70):  # the dual point of the minimiser itself needs none
        image = [mpmath.fdot(map(float, row), found.x) * mpf(2) ** (-units.a - units.e) for row in rows]
        dual = [4 * mpf(units.g) * s**3 for s in image]
        hi = np.array([float(v) for v in dual])
        lo = np.array([float(v - mpf(float(v))) for v in dual])
    assert gap(hi, lo) <= 1e-13


# What is not known exactly --------------------------------------------------------------------------------------------


def test_c_that_does_not_fit_into_one_range_is_not_called_proved():
    wide, near = (qb.Problem(qb.StackedForm(np.eye(2)), c) for c in ([1e300, 3e-323], [1e300, 3.0]))
    assert not Units(wide).exact
    assert Units(near).exact
    for problem, proved in ((wide, False), (near, True)):
        assert prove(problem, np.array([1e100, 1.0]), None, 1.0)[1].proved == proved


def test_a_projection_of_ones_own_is_taken_on_trust():
    problem = qb.Problem(qb.StackedForm(np.eye(5)), [1.0, 0.1, 0.2, 0.3, 0.4], IceCreamAndMore())
    assert not qb.solve(problem).proved
    assert not qb.certify(problem, qb.solve(problem).x).proved
    trivial = qb.Problem(problem.form, [-1.0, 0.0, 0.0, 0.0, -1.0], IceCreamAndMore())
    assert qb.solve(trivial).status == "trivial"
    assert not qb.solve(trivial).proved
    assert not qb.certify(trivial, np.zeros(5)).proved
    assert qb.solve(qb.Problem(problem.form, [-1.0, 0.0, 0.0, 0.0, -1.0], "second-order")).proved


def test_a_point_that_rounding_takes_out_of_the_cone_is_not_certified():
    # Of 1e-320, the last bit is one part in some thousands: the tip of the cone moves that much.
    form = qb.StackedForm(1e150 * np.eye(3))
    c = np.array([1.0, 0.9, 0.3]) * 1e-300
    problem = qb.Problem(form, c, qb.SecondOrder())
    for steps in range(40):
        x = np.array([5e-324 * (1999 + steps), 5e-324 * 1900, 5e-324 * 633])
        x, found = prove(problem, x, None, 1.0)
        if found.value < math.inf:
            assert in_cone("second-order", x)
            exact_x = [Fraction(float(v)) for v in x]
            value = sum((Fraction(1e150) * v) ** 4 for v in exact_x)
            value -= sum(Fraction(float(a)) * v for a, v in zip(c, exact_x, strict=True))
            assert Fraction(found.value) >= value
