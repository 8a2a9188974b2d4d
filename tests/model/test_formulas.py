"""Are the numbers of estimates and certificates those of their formulas, allowances included? Computed once more."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse.linalg

import quartbench as qb
from quartbench.forms.duality import absorb
from quartbench.kernels import exact
from quartbench.linalg.known import Known, exactly
from quartbench.model import certificate, estimate
from quartbench.model.certificate import Units, improve, relative_gap

RNG = np.random.default_rng(0)
M, N = 20, 4
ROWS = RNG.standard_normal((M, N)) * np.geomspace(0.3, 3.0, M)[:, None]
FORM = qb.StackedForm(ROWS)
X = np.array([1.0, -0.5, 2.0, 0.25])
U, EPS = Fraction(1, 2**53), 2.0**-52


def excess(found, wanted):
    """Return by how many units of rounding a number is above another."""
    return float((Fraction(found) / Fraction(wanted) - 1) / U)


# Certificates ---------------------------------------------------------------------------------------------------------


def test_values_allow_six_units_for_the_scale_and_six_for_the_sum():
    units = Units(qb.Problem(qb.StackedForm(np.eye(2)).scaled(3.0), [1.0, 2.0]))
    image, zero = exactly(np.array([1.0, 2.0])), exactly(np.zeros(2))
    rho = Fraction(units.g) * Fraction(units.form.known_value(image))
    assert excess(units.value(image, (0.0, 0.0, 0.0)), rho) == pytest.approx(12.0, abs=2.0)
    for inner in ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)):
        assert excess(units.value(zero, inner), 1) == pytest.approx(6.0, abs=1.5)
    assert units.value(image, (1.0, 0.5, 0.25)) == pytest.approx(float(rho) - 1.0 - 0.5 + 0.25, rel=1e-14)


def test_lower_bounds_allow_sixteen_units_and_two_steps():
    problem = qb.Problem(qb.StackedForm(np.eye(2)), [0.5, 0.25])
    units = Units(problem)
    units.g = 1.0
    for size in (1.0, 1.3, 1.7):
        power = Fraction(exact.dual_power(np.array([size]), np.zeros(1), 1))
        found = excess(-units.lower_bound(size), Fraction(certificate.CONSTANT) * power)
        assert found == pytest.approx(16.0 + 3.0, abs=3.0)
    units.g = 8.0
    assert units.lower_bound(1.0) == pytest.approx(-0.5 * 0.75 * 0.25 ** (1.0 / 3.0), rel=1e-14)


def test_a_bound_adds_the_size_of_the_dual_point_and_the_rest_with_four_units():
    problem = qb.Problem(FORM, FORM.gradient(X))
    units, proof = Units(problem), FORM.proof()
    point = np.ldexp(X, -units.e)
    hi, lo = FORM.dual_start(units.image(point, True))
    weights = (units.g * hi, units.g * lo)
    r = units.residual(*weights, True)
    size, rest = FORM.dual_size(*weights), units.rest(proof, problem.cone.outside(r))
    found = improve(units, weights, proof, problem.cone, None, [], lambda bound: True, True)
    assert found == units.lower_bound((size + rest) * (1.0 + 4.0 * 2.0**-53))
    assert found < units.lower_bound(size + rest)


@pytest.mark.parametrize(("share", "wanted"), [(0.6, ["one"] * 4), (0.4, ["one", "one", "other", "other"])])
def test_a_correction_that_leaves_more_than_half_gives_way_to_the_next(share, wanted):
    problem = qb.Problem(FORM, FORM.gradient(X))
    units, called = Units(problem), []

    def correction(name, part):
        # Of μ = Mz with Mᵀμ = w on the rows M' so much.
        def correct(w, r):
            called.append(name)
            rows = np.ldexp(ROWS, -units.a)
            return part * rows @ np.linalg.solve(rows.T @ rows, w)

        return correct

    start = (np.zeros(M), np.zeros(M))
    ways = [correction("one", share), correction("other", 0.9)]
    improve(units, start, FORM.proof(), problem.cone, None, ways, lambda bound: False, True)
    assert called == wanted


def test_the_gap_is_three_steps_above_its_quotient():
    for value, lower in ((-1.0, -1.5), (-3.0, -4.0), (-7.0, -7.5)):
        quotient = (value - lower) / -value
        assert relative_gap(value, lower) > quotient
        assert np.nextafter(np.nextafter(np.nextafter(quotient, 9.0), 9.0), 9.0) == relative_gap(value, lower)
    assert relative_gap(-1.0, -0.5) == math.inf  # a contradiction


def test_a_point_is_moved_into_the_cone_from_a_trillionth_of_its_size_and_no_more():
    problem = qb.Problem(qb.StackedForm(np.eye(2)), [1.0, 1.0], qb.Orthant())
    for scale in (1.0, 2.0**600, 2.0**-600):
        assert qb.certify(problem, scale * np.array([1.0, -0.7e-12])).gap < math.inf
        with pytest.raises(qb.ProblemError, match=r"outside by 1\.5e-12"):
            qb.certify(problem, scale * np.array([1.0, -1.5e-12]))


def test_the_distance_from_the_cone_is_relative_to_the_length_of_the_point():
    problem = qb.Problem(qb.StackedForm(np.eye(5)), np.ones(5), qb.Orthant())
    assert qb.certify(problem, [1.0, 1.0, 1.0, 1.0, -1.5e-12]).proved
    with pytest.raises(qb.ProblemError, match=r"outside by 1\.5e-12"):
        qb.certify(problem, [1.0, 1.0, 1.0, 1.0, -3e-12])


@pytest.fixture
def reads(monkeypatch):
    """Note what a proof asks of dense rows: images, and residuals of dual points, in twice the precision or not."""
    noted, kind = [], type(FORM)

    def noting(name, asked):
        return lambda form, *arguments: noted.append((name, bool(arguments[-1]))) or asked(form, *arguments)

    for name in ("known_image", "known_residual"):
        monkeypatch.setattr(kind, name, noting(name, getattr(kind, name)))
    return noted


def test_a_proof_asks_for_no_more_than_the_gap_needs(reads):
    form = FORM.scaled(3.0)
    problem = qb.Problem(form, form.gradient(X))
    for rel_gap, precise in ((1.0, False), (1e-9, False), (0.99e-9, True)):
        reads.clear()
        x, found = certificate.prove(problem, X, None, rel_gap)
        assert reads == [("known_image", precise), ("known_residual", precise)]
        assert found.proved
        assert found.gap <= rel_gap
        assert found.value == pytest.approx(problem.value(X), rel=1e-12)
        assert found.lower_bound == pytest.approx(problem.value(X), rel=1e-8)
        np.testing.assert_array_equal(x, X)
    # At a point that is far from optimal everything is tried, the dual point that was given first.
    reads.clear()
    inner = problem.normalised().problem
    given = certificate.Dual(inner, 0.0 * FORM.image(X), None)
    far = certificate.prove(problem, X + 0.1, given, 1e-12)[1]
    assert {name for name, _ in reads} == {"known_image", "known_residual"}
    assert reads.count(("known_image", True)) == 1
    assert len(reads) > 6
    assert far.gap > 1e-12


def test_what_rests_on_products_is_not_called_proved():
    form = qb.OperatorForm(scipy.sparse.linalg.aslinearoperator(ROWS))
    problem = qb.Problem(form, FORM.gradient(X))
    found = qb.certify(problem, X)
    assert not found.proved
    assert found.gap < 1e-9


def test_the_length_of_a_point_may_be_any_that_a_number_has():
    problem = qb.Problem(FORM, [1.0, 2.0, -1.0, 0.5])
    x = qb.solve(problem, rel_gap=1e-3).x
    found = qb.certify(problem, x)
    assert found.gap < 0.1
    for power in (-900, 900):
        assert qb.certify(problem, np.ldexp(x, power)).gap == pytest.approx(found.gap, rel=1e-6)


def test_a_metric_of_the_form_serves_whatever_its_scale():
    for scale in (1.0, 1e3):
        form = FORM.scaled(scale)
        problem = qb.Problem(form, [1.0, 2.0, -1.0, 0.5])
        x = qb.solve(problem, rel_gap=1e-5).x
        given, made = qb.certify(problem, x, form.weighted(form.uniform_weights())), qb.certify(problem, x)
        assert given.gap == pytest.approx(made.gap, rel=1e-6)


# Estimates ------------------------------------------------------------------------------------------------------------


def noise():
    """Return the root sum of squares of the products 4s³·Mⱼxⱼ, and the bound with max|xⱼ| for every |xⱼ|."""
    weights = 4.0 * (ROWS @ X) ** 3
    products = weights[:, None] * ROWS * X
    return np.linalg.norm(products), np.linalg.norm(weights[:, None] * ROWS) * np.abs(X).max()


def test_rounding_is_estimated_from_the_products_that_f_adds_up():
    image, gradient = FORM.image(X), FORM.gradient(X)
    sharp, rough = noise()
    per_noise, rest = EPS * (4.0 + 0.5 * math.sqrt(M)), EPS * (16.0 + math.sqrt(M)) * 7.0

    def found(little):
        return estimate._rounding(FORM, X, image, gradient, -7.0, little)

    assert rough > 1.1 * sharp
    assert found(0.0) == pytest.approx(per_noise * sharp + rest, rel=1e-12, abs=0.0)
    # The rough bound, which takes no pass, where all of it is little enough.
    assert found(1.001 * (per_noise * rough + rest)) == pytest.approx(per_noise * rough + rest, rel=1e-12, abs=0.0)
    assert found(0.999 * (per_noise * rough + rest)) == pytest.approx(per_noise * sharp + rest, rel=1e-12, abs=0.0)


def test_an_estimate_is_the_dual_bound_less_what_rounding_may_have_lifted_it():
    problem = qb.Problem(FORM, [1.0, 2.0, 1.0, 0.5])
    metric = FORM.weighted(FORM.uniform_weights())
    found = estimate.estimate(problem, X, metric, refine=0)
    scale = (problem.c @ X / (4.0 * FORM.value(X))) ** (1.0 / 3.0)
    x = scale * X
    assert found.value == pytest.approx(FORM.value(x) - problem.c @ x, rel=1e-12)
    bound, dual = FORM.dual_bound(FORM.image(x), FORM.gradient(x), problem.c - FORM.gradient(x), metric, 0)
    assert bound - 1e-12 * abs(bound) < found.lower_bound < bound
    assert found.gap == pytest.approx((found.value - bound) / -found.value, rel=1e-9)
    np.testing.assert_allclose(found.dual, dual, rtol=1e-9)
    # At the optimum itself, rounding is all there is.
    best = qb.Problem(FORM, FORM.gradient(X))
    at = estimate.estimate(best, X, metric, refine=0)
    sharp, _ = noise()
    allowed = EPS * ((4.0 + 0.5 * math.sqrt(M)) * sharp + (16.0 + math.sqrt(M)) * 3.0 * FORM.value(X))
    assert 0.75 * allowed <= -3.0 * FORM.value(X) - at.lower_bound <= 1.25 * allowed
    # Many columns are moved to the best points of their rays in the same way.
    image, gradient = 2.0 * FORM.image(X)[:, None], 8.0 * FORM.gradient(X)[:, None]
    columns = estimate.estimate_columns(FORM, best.c[:, None], 2.0 * X[:, None], image, gradient, metric)[0]
    assert 0.75 * allowed <= -3.0 * FORM.value(X) - columns[0] <= 1.25 * allowed


def test_rounding_takes_a_pass_where_the_gap_is_so_small_that_it_matters():
    passes = []
    for distance in (1e-1, 1e-14):
        form = FORM.twin()
        problem = qb.Problem(form, FORM.gradient(X * (1.0 + distance * np.array([1.0, -1.0, 1.0, 0.0]))))
        before = form.passes
        estimate.estimate(problem, X, FORM.weighted(FORM.uniform_weights()), refine=0)
        passes.append(form.passes - before)
    assert passes[1] == passes[0] + 1


def test_a_gap_is_at_least_four_roundings_and_infinite_above_zero():
    assert estimate.gap(-1.0, -1.0) == 4.0 * EPS
    assert estimate.gap(-2.0, -3.0) == 0.5
    assert estimate.gap(0.0, -1.0) == math.inf
    assert estimate.gap(-1.0, -1.0 - 3.0 * EPS) == 4.0 * EPS


def test_what_counts_of_a_residual_is_its_projection_alone_and_about_a_tenth_of_the_hessian():
    problem = qb.Problem(qb.StackedForm(ROWS), [1.0, 2.0, -1.0, 0.5], qb.Orthant())
    x, r = np.array([1.0, 0.0, 2.0, 3.0]), np.array([-5.0, 0.2, 0.1, -0.05])
    shift = 0.1 * np.linalg.norm(problem.c - r) / np.linalg.norm(x) * x
    plain, shifted = estimate._residuals(problem, x, r)
    np.testing.assert_allclose(plain, np.maximum(r, 0.0))
    np.testing.assert_allclose(shifted, np.maximum(r + shift, 0.0) - shift)
    free = estimate._residuals(qb.Problem(FORM, problem.c), x, r)
    assert len(free) == 1
    np.testing.assert_array_equal(free[0], r)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_dual_point_of_a_method_is_corrected_to_feasibility(rank):
    form = qb.StackedForm(ROWS, rank)
    problem, weights = qb.Problem(form, [1.0, 2.0, -1.0, 0.5]), RNG.standard_normal(M)
    metric = form.weighted(form.uniform_weights())
    bound, dual, used = estimate.estimate_dual(problem, X, weights, None, lambda: metric)
    np.testing.assert_allclose(ROWS.T @ dual, problem.c, atol=1e-10)
    sizes = np.linalg.norm(dual.reshape(-1, rank), axis=1)
    assert bound == pytest.approx(-3.0 * ((sizes / 4.0) ** (4.0 / 3.0)).sum(), rel=1e-12)
    assert used is metric
    known = estimate.estimate_dual(problem, X, weights, problem.c - ROWS.T @ weights, lambda: metric)
    assert known[0] == pytest.approx(bound, rel=1e-12)
    assert estimate.estimate_dual(problem, X, weights, None, lambda: None) is None


def test_many_columns_have_the_estimates_of_each():
    metric = FORM.weighted(FORM.uniform_weights())
    points = np.stack([X, X[::-1], np.abs(X)], axis=1)
    c = np.stack([FORM.gradient(x) + 0.1 * RNG.standard_normal(N) for x in points.T], axis=1)
    images = ROWS @ points
    gradients = np.stack([FORM.gradient(x) for x in points.T], axis=1)
    bounds, duals = estimate.estimate_columns(FORM, c, points, images, gradients, metric)
    for j in range(3):
        one = estimate.estimate(qb.Problem(FORM, c[:, j]), points[:, j], metric, refine=0)
        assert bounds[j] == pytest.approx(one.lower_bound, rel=1e-11)
        np.testing.assert_allclose(duals[:, j], one.dual, rtol=1e-9, atol=1e-12)


def test_what_solves_with_many_columns_leave_is_counted_twice():
    metric = FORM.weighted(3.0 * FORM.uniform_weights())
    exactly = metric.solve_columns
    metric.solve_columns = lambda v: 0.9 * exactly(v)  # a factor that is wrong by a tenth leaves a hundredth
    c = 1.5 * FORM.gradient(X) + 0.5
    x, gradient = 2.0 * X, FORM.gradient(2.0 * X)
    found, duals = estimate.estimate_columns(
        FORM, c[:, None], x[:, None], FORM.image(x)[:, None], gradient[:, None], metric
    )
    scale = (c @ x / (4.0 * FORM.value(x))) ** (1.0 / 3.0)
    residual = c - scale**3 * gradient
    inverse = np.linalg.inv(ROWS.T @ (metric.tau[:, None] * ROWS))
    weights = 4.0 * (scale * ROWS @ x) ** 3 + 0.99 * metric.tau * (ROWS @ inverse @ residual)
    rest = math.sqrt(0.9 * residual @ inverse @ residual) * 0.01
    dual = 3.0 * ((np.abs(weights) / 4.0) ** (4.0 / 3.0)).sum()
    np.testing.assert_allclose(duals[:, 0], weights, rtol=1e-9, atol=1e-9)
    wanted = absorb(dual, 2.0 * rest * np.linalg.norm(metric.tau) ** 0.5)
    assert found[0] == pytest.approx(-wanted, rel=1e-11)


def test_a_metric_belongs_to_a_form_to_a_ten_thousandth():
    form, cone = FORM, qb.Free()
    for error, wanted in ((0.0, True), (0.7e-4, True), (1.5e-4, False), (-1.5e-4, False)):
        metric = form.weighted(form.uniform_weights())
        metric.tau = (1.0 + error) * metric.tau
        assert estimate.belongs(metric, form, cone) == wanted
    assert not estimate.belongs(form.weighted(form.uniform_weights()), qb.StackedForm(ROWS[1:]), cone)
    assert not estimate.belongs(qb.Identity(N), form, cone)


def test_known_numbers_of_the_gram_form_do_not_mind_a_part_that_is_small():
    form, x = qb.GramForm(2, 2), np.array([1.0, 2.0, 3.0, 4.0])
    small = Known(x, 1e-3 * x, np.zeros(4))
    assert form.known_value(small) == pytest.approx(1.001**4 * form.value(x), rel=1e-12)
