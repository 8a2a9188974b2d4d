"""How is a dual point searched for: from which one, with which corrections, and when is it enough?"""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import quartbench as qb
from quartbench.model import certificate, estimate
from quartbench.model.certificate import Dual, Units, improve, prove

RNG = np.random.default_rng(0)
M, N = 20, 4
ROWS = RNG.standard_normal((M, N)) * np.geomspace(0.3, 3.0, M)[:, None]
FORM = qb.StackedForm(ROWS)
X = np.array([1.0, -0.5, 2.0, 0.25])


def never(bound):
    return False


def noted(monkeypatch, owner, name):
    """Note the arguments of every call of a function."""
    calls, asked = [], getattr(owner, name)

    def noting(*arguments):
        calls.append(arguments)
        return asked(*arguments)

    monkeypatch.setattr(owner, name, noting)
    return calls


# Corrections of one dual point ----------------------------------------------------------------------------------------


def corrections(units, *shares):
    """Return a correction that takes such shares of w away, one call after another, and what it was given."""
    rows, seen = np.ldexp(ROWS, -units.a), []

    def correct(w, r):
        seen.append(w)
        return shares[len(seen) - 1] * rows @ np.linalg.solve(rows.T @ rows, w)

    return correct, seen


@pytest.mark.parametrize(
    ("shares", "left"),
    [
        ((0.6, 0.6, 0.6, 0.6), [1.0, 0.4, 0.16, 0.064]),  # each begins where the one before ended
        ((0.6, -1.0, 0.6, 0.6), [1.0, 0.4, 0.4, 0.16]),  # but for what made it worse
        ((-1.0, 0.6, 0.6, 0.6), [1.0, 2.0, 0.8, 0.32]),  # the first is kept in any case: it may have been a shift
    ],
)
def test_corrections_go_on_from_the_best_dual_point(shares, left):
    problem = qb.Problem(FORM, FORM.gradient(X))
    units, start = Units(problem), np.zeros(M)
    correct, seen = corrections(units, *shares)
    improve(units, (start, start), FORM.proof(), problem.cone, None, [correct] * 4, never, True)
    np.testing.assert_allclose(seen, np.outer(left, units.c), rtol=1e-9)


@pytest.mark.parametrize(("share", "wanted"), [(0.7e-17, 0), (1.5e-17, 4)])
def test_a_rest_below_a_tenth_of_a_rounding_of_the_whole_is_not_corrected(share, wanted):
    problem = qb.Problem(FORM, FORM.gradient(X))
    units = Units(problem)
    hi, lo = (units.g * part for part in FORM.dual_start(units.image(np.ldexp(X, -units.e), True)))
    hi, lo = 8.0 * hi, 8.0 * lo  # any numbers are a dual point
    size = (np.abs(hi) ** (4.0 / 3.0)).sum() ** 0.75
    assert size > 2.0
    proof = SimpleNamespace(norm=lambda w: math.ldexp(share * size, -units.a))
    correct, seen = corrections(units, 0.0, 0.0, 0.0, 0.0)
    improve(units, (hi, lo), proof, problem.cone, None, [correct] * 4, never, True)
    assert len(seen) == wanted


def test_the_first_round_alone_is_shifted():
    problem = qb.Problem(FORM, FORM.gradient(X), qb.Orthant())
    units, start = Units(problem), np.zeros(M)
    shift = np.array([0.1, 0.2, 0.3, 0.4])
    correct, seen = corrections(units, 0.0, 0.0, 0.0, 0.0)
    bounds, plain = [], []
    given = (start, start), FORM.proof(), problem.cone
    improve(units, *given, shift, [correct] * 4, lambda bound: bounds.append(bound) or False, True)
    np.testing.assert_allclose(seen[0], np.maximum(units.c, -shift), rtol=1e-15)
    for w in seen[1:]:
        np.testing.assert_allclose(w, np.maximum(units.c, 0.0), rtol=1e-15)
    assert len(bounds) == 4  # of five rounds, as the shifted one bounds nothing
    improve(units, *given, None, [], lambda bound: plain.append(bound) or False, True)
    assert plain == bounds[:1]


# The dual point that is given -----------------------------------------------------------------------------------------


@pytest.fixture
def residuals(monkeypatch):
    return noted(monkeypatch, type(FORM), "known_residual")


def stated(scale, size, row_power=0):
    """Return a problem of any scale whose minimiser is X, in its units, and the dual point of the normalised one."""
    form = qb.StackedForm(ROWS * 2.0**row_power).scaled(scale)
    problem = qb.Problem(form, size * form.gradient(X))
    x = size ** (1.0 / 3.0) * X
    inner, x_scale, _ = problem.normalised()
    return problem, x, inner, inner.form.gradient_weights(inner.form.image(x / x_scale))


@pytest.mark.parametrize(
    ("scale", "size", "row_power"), [(1.0, 1.0, 0), (3.0, 1e5, 0), (0.3, 1e-7, 9), (1.0, 7.0, 200)]
)
def test_a_good_dual_point_is_taken_at_its_word(residuals, scale, size, row_power):
    problem, x, inner, weights = stated(scale, size, row_power)
    found = prove(problem, x, Dual(inner, weights, None), 1e-9)[1]
    assert found.gap <= 1e-9
    assert [precise for *_, precise in residuals] == [False]  # in the first turn, by plain sums


@pytest.mark.parametrize("by_metric", [True, False], ids=["metric", "proof"])
@pytest.mark.parametrize(
    ("scale", "size", "row_power"), [(1.0, 1.0, 0), (3.0, 1e5, 0), (0.3, 1e-7, 9), (1.0, 7.0, 200)]
)
def test_a_dual_point_that_is_a_little_off_is_corrected_once(residuals, by_metric, scale, size, row_power):
    problem, x, inner, weights = stated(scale, size, row_power)
    off = weights * (1.0 + 1e-6 * np.random.default_rng(1).standard_normal(M))
    metric = inner.form.weighted(inner.form.uniform_weights()) if by_metric else None
    found = prove(problem, x, Dual(inner, off, metric), 1e-9)[1]
    assert found.gap <= 1e-9
    assert [precise for *_, precise in residuals] == [False, False]


@pytest.mark.parametrize("power", [0, 200, -200])
def test_a_metric_is_carried_to_the_normalised_problem(monkeypatch, power):
    form = qb.StackedForm(ROWS * 2.0**power)
    problem = qb.Problem(form, [1.0, 2.0, 1.0, 0.5])
    proofs = noted(monkeypatch, certificate, "prove")
    tau = np.linspace(0.5, 2.0, M)
    qb.certify(problem, X, form.weighted(tau))
    _, point, dual, _ = proofs[0]
    # B(τ) of the normalised rows: Σσᵢ⟨aᵢ,z⟩² = ⟨z,v⟩ at z = B⁻¹v, with σ a multiple of τ.
    z = dual.metric.solve(X)
    rows = dual.problem.form.scale * ROWS * 2.0**power
    assert dual.metric.tau @ (rows @ z) ** 2 == pytest.approx(z @ X, rel=1e-9)
    np.testing.assert_allclose(dual.metric.tau / dual.metric.tau[0], tau / tau[0], rtol=1e-9)
    # And the point is the best of its ray.
    t = np.cbrt(problem.c @ X / (4.0 * ((ROWS @ X) ** 4).sum())) * 2.0 ** (-4.0 * power / 3.0)
    np.testing.assert_allclose(point, t * X, rtol=1e-9)


# The dual point of x --------------------------------------------------------------------------------------------------


def test_shifts_are_made_with_the_form_in_the_units_of_the_proof(monkeypatch):
    form = FORM.scaled(3.0)
    problem = qb.Problem(form, 50.0 * form.gradient(X), qb.Orthant())
    calls = noted(monkeypatch, type(problem.cone), "shifts")
    x = np.abs(X)
    prove(problem, x, None, 0.0)
    units = Units(problem)
    assert calls
    for _, c, _, rho, unit in calls:
        np.testing.assert_array_equal(c, units.c)
        assert rho == pytest.approx(((3.0 * ROWS @ x) ** 4).sum() * 2.0 ** -(units.b + units.e), rel=1e-12)
        assert unit.shape == (N,)


@pytest.mark.parametrize(("n", "wanted"), [(99, True), (100, True), (101, False)])
def test_up_to_a_hundred_unknowns_are_corrected_along_the_hessian(monkeypatch, n, wanted):
    rows = np.vstack([np.eye(n), np.eye(n)[::-1] + 0.1])
    problem = qb.Problem(qb.StackedForm(rows), np.ones(n))
    made = noted(monkeypatch, certificate, "_curvatures")
    prove(problem, np.linspace(0.5, 1.0, n), None, 0.0)
    assert bool(made) == wanted


@pytest.mark.parametrize("g", [1.0, 0.2])
def test_corrections_along_the_hessian_are_newton_steps_of_the_dual_point(g):
    x, w = np.array([2.0, 0.3, -0.4, 0.5]), np.array([0.1, -0.2, 0.3, 0.05])
    image = ROWS @ x
    hessian = 12.0 * g * (ROWS.T * image**2) @ ROWS
    (correct,) = certificate._curvatures(qb.Free(), ROWS, 1, image, x, g, True)
    np.testing.assert_allclose(
        correct(w, w), 12.0 * g * image**2 * (ROWS @ np.linalg.solve(hessian, w)), rtol=1e-6, atol=1e-12
    )
    # On the second-order cone, unless shifted, also along the boundary: (ρ'' − νJ)e − δJx = r + νJx, ⟨Jx,e⟩ = −½⟨x,Jx⟩.
    cone = qb.SecondOrder()
    assert len(list(certificate._curvatures(cone, ROWS, 1, image, x, g, False))) == 1
    _, turned = certificate._curvatures(cone, ROWS, 1, image, x, g, True)
    signs = np.diag([1.0, -1.0, -1.0, -1.0])
    normal = signs @ x
    r = w - 0.7 * normal
    nu = -(normal @ r) / (normal @ normal)
    system = np.block([[hessian - nu * signs, -normal[:, None]], [-normal[None, :], np.zeros((1, 1))]])
    e = np.linalg.solve(system, np.append(r + nu * normal, 0.5 * normal @ x))[:N]
    np.testing.assert_allclose(turned(w, r), 12.0 * g * image**2 * (ROWS @ e), rtol=1e-6, atol=1e-10)


# What is proved -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rigorous", "proved"), [(True, True), (True, False), (False, True), (False, False)])
def test_both_the_products_and_the_factor_must_be_proved(monkeypatch, rigorous, proved):
    form = qb.StackedForm(ROWS)
    monkeypatch.setattr(type(form), "rigorous", rigorous)
    for sharp in (False, True):
        monkeypatch.setattr(type(form.proof(sharp)), "proved", proved)
    found = prove(qb.Problem(form, form.gradient(X)), X, None, 1e-6)[1]
    assert found.gap <= 1e-6
    assert found.proved == (rigorous and proved)


# What counts as little ------------------------------------------------------------------------------------------------


def estimated(distance, columns):
    """Return the share of the rough rounding in the gap of an estimate, and the passes that it took."""
    form = FORM.twin()
    metric = FORM.weighted(FORM.uniform_weights())
    c = FORM.gradient(X * (1.0 + distance * np.array([1.0, -1.0, 1.0, 0.0])))
    x = (c @ X / (4.0 * FORM.value(X))) ** (1.0 / 3.0) * X
    image, gradient, value = ROWS @ x, FORM.gradient(x), -0.75 * c @ x
    bound = FORM.dual_bound(image, gradient, c - gradient, metric, 0)[0]
    rough = np.linalg.norm((4.0 * image**3)[:, None] * ROWS) * np.abs(x).max()
    allowed = 2.0**-52 * ((4.0 + 0.5 * math.sqrt(M)) * rough - (16.0 + math.sqrt(M)) * value)
    before = form.passes
    if columns:
        estimate.estimate_columns(form, c[:, None], x[:, None], image[:, None], gradient[:, None], metric)
    else:
        estimate.estimate(qb.Problem(form, c), x, metric, refine=0)
    return allowed / (value - bound), form.passes - before


@pytest.mark.parametrize("columns", [False, True], ids=["one", "many"])
def test_rounding_of_more_than_a_twentieth_of_the_gap_is_looked_at(columns):
    found = [estimated(distance, columns) for distance in np.geomspace(1e-7, 1e-5, 60)]
    little = [passes for share, passes in found if 0.01 < share < 0.047]
    much = [passes for share, passes in found if 0.053 < share < 0.095]
    assert len(little) >= 3
    assert len(much) >= 3
    assert set(much) == {little[0] + 1}
    assert set(little) == {little[0]}
