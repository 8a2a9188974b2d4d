"""Is the search in a plane exact, inside the cone, and never worse than the step that it is given?"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quartbench.cones import Orthant, SecondOrder
from quartbench.errors import ProblemError
from quartbench.forms import StackedForm
from quartbench.metrics import Cholesky
from quartbench.model import Problem
from quartbench.solvers.plane import Plane, Progress, minimiser, require_directions, residual, value_on
from quartbench.solvers.steps import evaluate
from tests.forms import random_forms

NUMBERS = st.floats(-3.0, 3.0)


@st.composite
def quartics(draw):
    """Draw t ↦ Σ(aᵢ + t bᵢ)⁴, which is convex, with t in units of 1e±20."""
    pairs = draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
    a, b = np.array(pairs).T
    assume(min(np.abs(a).max(), np.abs(b).max()) > 1e-2)
    b = b * 10.0 ** draw(st.integers(-20, 20))
    return [(a**4).sum(), 4 * (a**3 * b).sum(), 6 * (a**2 * b**2).sum(), 4 * (a * b**3).sum(), (b**4).sum()]


def least(line, limit):
    """Return the smallest value of a quartic on [0, limit], by the roots of its derivative."""
    unit = (line[0] / line[4]) ** 0.25 if line[0] > 0.0 else line[4] ** -0.25
    scaled = [coefficient * unit**power for power, coefficient in enumerate(line)]
    roots = np.roots([power * scaled[power] for power in (4, 3, 2, 1)])
    candidates = [0.0, *(root.real for root in roots if 0.0 < root.real < limit / unit)]
    if math.isfinite(limit):
        candidates.append(limit / unit)
    return min(value_on(scaled, t) for t in candidates)


@given(quartics(), st.sampled_from([math.inf, 1.0, 0.3, 7.0]))
def test_minimiser_is_the_best_root_of_the_cubic(line, limit):
    t = minimiser(line, limit)
    assert 0.0 <= t <= limit
    assert value_on(line, t) <= least(line, limit) + 1e-12 * line[0]


def test_minimiser_stays_where_there_is_no_descent():
    assert minimiser([1.0, 0.0, 1.0, 0.0, 1.0]) == 0.0
    assert minimiser([1.0, 2.0, 1.0, 0.0, 1.0]) == 0.0
    assert minimiser([1.0, math.nan, 1.0, 0.0, 1.0]) == 0.0


def test_minimiser_stays_on_a_line_that_rounding_left_without_curvature():
    # It went to 1e300 once: the images of two points that differ by rounding were the same, their slope was not.
    assert minimiser([1.0, -1e-33, 0.0, 0.0, 0.0]) == 0.0
    assert minimiser([1.0, -1e-33, 0.0, 0.0, 0.0], 2.0) == 2.0


def started(form, rng, cone=None):
    """Return a problem with a point y of its cone, evaluated, and its residual."""
    c = np.abs(rng.standard_normal(form.dim)) + 0.1
    problem = Problem(form, c, cone)
    y = np.abs(random_forms.point(form, rng)) if cone is not None else random_forms.point(form, rng)
    assume(problem.inner(y) > 1e-2)
    y = evaluate(form, y / problem.inner(y))
    return problem, y, residual(y, problem.c)


@given(random_forms.forms(("dense", "float32", "sparse", "complex", "gram")), st.integers(0, 2**32 - 1))
def test_the_plane_search_never_does_worse_than_the_newton_step(form, seed):
    problem, y, r = started(form, np.random.default_rng(seed))
    e = Cholesky.regularised(form.dense_hessian(y.point, y.image)).solve(r)
    found, t = Plane(problem).step(y, r, e)[:2]
    here = problem.homogenised_value(y.point)
    newton = problem.homogenised_value(y.point + e) if problem.inner(y.point + e) > 0.0 else here
    best = min(here, newton)
    value = problem.homogenised_value(found.point)
    # A point that misses less than a thousandth of the gain is taken as it is: its gradient is known.
    assert value <= best + 2e-3 * (here - best) + 1e-13 * abs(best)
    assert t >= 0.0


@given(random_forms.forms(("dense", "sparse", "gram")), st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0))
def test_steps_on_the_orthant_stay_in_it_and_descend(form, seed, length):
    rng = np.random.default_rng(seed)
    problem, y, r = started(form, rng, Orthant())
    e = 10.0**length * rng.standard_normal(form.dim)
    found, _ = Plane(problem).step(y, r, e)[:2]
    assert (found.point >= 0.0).all()
    assert problem.inner(found.point) > 0.0
    assert problem.homogenised_value(found.point) <= problem.homogenised_value(y.point) * (1.0 - 1e-13)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_bounded_direction_meets_the_optimality_conditions(n, seed, at_zero, singular):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((max(1, n - 2) if singular else 2 * n, n))
    hessian = rows.T @ rows
    point = np.abs(rng.standard_normal(n)) * (rng.random(n) < (0.5 if at_zero else 1.1))
    # In the range of the Hessian, or there is no minimiser where it is singular.
    r = hessian @ rng.standard_normal(n)
    e = Orthant().newton_direction(np.asfortranarray(np.tril(hessian)), r, point)
    assert (point + e >= 0.0).all()
    value = 0.5 * e @ hessian @ e - r @ e
    size = np.abs(r).max() + 1e-300
    # Multipliers of the model are nonnegative, and zero where the coordinate is free.
    rest = hessian @ e - r
    assert (rest >= -1e-6 * size).all()
    assert abs(rest @ (point + e)) <= 1e-6 * (size * (1.0 + np.abs(point + e).sum()) + abs(value))


def test_bounded_direction_of_a_hessian_that_sees_little_is_finite():
    # Once the one coordinate that is seen has gone to its bound, the block that stays free is all zeros.
    hessian = np.diag([12.0, 0.0, 0.0])
    e = Orthant().newton_direction(hessian, np.array([-100.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.0]))
    assert np.isfinite(e).all()
    assert e[0] == -1.0
    assert (e[1:] > 0.0).all()


def test_bounded_direction_ends_where_multipliers_are_zero():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((90, 60))
    hessian, point = rows.T @ rows, np.where(np.arange(60) % 2, np.abs(rng.standard_normal(60)), 0.0)
    e = np.where(point > 0.0, -0.5 * point, 0.0)
    found = Orthant().newton_direction(hessian, hessian @ e, point)
    assert found == pytest.approx(e, abs=1e-9)


def test_cones_without_directions_are_refused_by_name():
    form = StackedForm(np.eye(3))
    require_directions(Problem(form, np.ones(3), Orthant()), "homcg")
    with pytest.raises(ProblemError, match=r"'homcg' takes cones with directions .*, found 'second-order'"):
        require_directions(Problem(form, np.ones(3), SecondOrder()), "homcg")


def test_progress_ends_after_a_few_values_that_did_not_fall():
    progress = Progress()
    assert [progress.ended(value) for value in (-1.0, -2.0, -2.0, -2.0, -2.0)] == [False, False, False, False, True]
