"""The searches of the methods trial by trial: levels, stages, lengths and brackets, on either side of each end."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import quartbench as qb
from quartbench.errors import ProblemError
from quartbench.metrics import Cholesky, Identity
from quartbench.solvers import (
    ABPG,
    AGD,
    GD,
    AccelHomGD,
    Bregman,
    HomCG,
    HomGD,
    HomNewton,
    HomNewtonCG,
    abpg,
    accel_homgd,
    bregman,
    starting_point,
)
from quartbench.solvers.geometry import Geometry, kernel_scale
from quartbench.solvers.homnewton_cg import Last, newton_cg
from quartbench.solvers.plane import Plane, Progress, Step, iterate, minimiser, residual, value_on
from quartbench.solvers.steps import LineSearch, PlainStep, evaluate

EPS = 2.0**-52

RNG = np.random.default_rng(0)
ROWS, C = RNG.standard_normal((25, 5)) * np.linspace(0.5, 2.0, 5), RNG.standard_normal(5)
PROBLEM = qb.Problem(qb.StackedForm(ROWS), C)
METRICS = {name: qb.metric(PROBLEM.form, name) for name in ("identity", "uniform")}


def rho(x):
    return float(((ROWS @ x) ** 4).sum())


def gradient(x):
    return 4.0 * ROWS.T @ (ROWS @ x) ** 3


def matrix(metric):
    return np.array([metric.apply(unit) for unit in np.eye(5)])


def taken(method, metric, count, problem=PROBLEM, start=None):
    start = starting_point(problem, metric) if start is None else start
    return list(itertools.islice(method.iterates(problem, metric, start), count))


# What methods are given -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "needs"),
    [
        *[(kind(), False) for kind in (HomGD, GD, AGD, Bregman, AccelHomGD)],
        *[(kind(step="fixed"), True) for kind in (HomGD, GD, AGD, Bregman, AccelHomGD)],
        (AccelHomGD(early=True), True),
    ],
    ids=repr,
)
def test_bounds_of_the_metric_are_asked_for_in_the_set_up_where_they_are_needed(method, needs):
    unknown = Cholesky(np.eye(5) + 0.1)
    if needs:
        with pytest.raises(ProblemError, match="needs the constant β"):
            method.prepare(PROBLEM, unknown)
    else:
        method.prepare(PROBLEM, unknown)
    assert method.prepare(PROBLEM, METRICS["uniform"]) is None


@pytest.mark.parametrize("kind", [GD, AGD])
def test_the_ball_is_that_of_the_level_set_unless_told_otherwise(kind):
    methods = kind("fixed"), kind("fixed", radius=1.0), kind("fixed", radius=2.0)
    one, same, larger = (taken(method, METRICS["uniform"], 3)[2] for method in methods)
    np.testing.assert_array_equal(one.point, same.point)
    assert np.abs(one.point - larger.point).max() > 1e-6


@pytest.mark.parametrize("kind", [HomGD, GD])
def test_line_searches_take_about_one_pass_and_a_fifth(kind):
    problem = qb.instances.spectrum(200, 30, 0.1, seed=0).normalised().problem
    form = problem.form.twin()
    metric = qb.metric(form, "identity")
    found = taken(kind(), metric, 200, problem.on(form))
    assert 1.02 < form.passes / len(found) < 1.3


@pytest.mark.parametrize("size", [0.2, 5.0])
@pytest.mark.parametrize("method", [GD(), AGD(), ABPG(), Bregman(), HomGD(), AccelHomGD()], ids=repr)
def test_what_is_told_of_the_start_is_true(method, size):
    problem = qb.Problem(PROBLEM.form, size * C)
    first = taken(method, METRICS["uniform"], 1, problem)[0]
    value, slope, image = first.evaluated
    assert value == pytest.approx(rho(first.point), rel=1e-12)
    np.testing.assert_allclose(slope, gradient(first.point), rtol=1e-10)
    np.testing.assert_allclose(image, ROWS @ first.point, rtol=1e-10)
    assert first.value == pytest.approx(problem.homogenised_value(first.point), rel=1e-12)


# Levels of Bregman methods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("method", "q", "a"), [(ABPG(), 1.0, 0.0), (ABPG("quartic+quadratic"), 1.0, 1.0), (AGD(), 0.0, 1.0)], ids=repr
)
def test_accelerated_methods_search_for_their_levels(name, method, q, a):
    # From the curvature along x, 12ρ over that of h: up by two fifths or 5 % more than was missing, then down by 5 %.
    metric = METRICS[name]
    B = matrix(metric)

    def kernel_distance(new, old):
        square, other = new @ B @ new, old @ B @ old
        slope = (q * other + a) * (B @ old)
        return 0.25 * q * (square**2 - other**2) + 0.5 * a * (square - other) - slope @ (new - old)

    found = taken(method, metric, 25)
    x = z = found[0].point
    level = 12.0 * rho(x) / (3.0 * q * (x @ B @ x) ** 2 + a * (x @ B @ x))
    weight, trials = math.inf, 0
    for one in found[1:]:
        while True:
            trials += 1
            ratio = weight / level
            theta = 1.0 if math.isinf(ratio) else (math.sqrt(ratio**2 + 4.0 * ratio) - ratio) / 2.0
            y = (1.0 - theta) * x + theta * z
            v = (q * (z @ B @ z) + a) * z - np.linalg.solve(B, gradient(y) - C) / (theta * level)
            roots = np.roots([q * (v @ B @ v), 0.0, a, -1.0])
            new = roots[np.abs(roots.imag) < 1e-9].real.max() * v
            ahead = (1.0 - theta) * x + theta * new
            used = rho(ahead) - rho(y) - gradient(y) @ (ahead - y)
            allowed = theta**2 * level * kernel_distance(new, z)
            if used <= allowed:
                break
            level *= max(1.4, 1.05 * used / allowed)
        assert one.step == pytest.approx(1.0 / level, rel=1e-6)
        np.testing.assert_allclose(one.point, ahead, rtol=1e-5)
        weight = level * theta**2
        level = level / 1.05 if used < 0.9 * allowed else level
        x, z = ahead, new
    assert trials > len(found)


class Fixed(Geometry):
    """A geometry whose step leads to a given point, or nowhere, at a given distance."""

    def __init__(self, metric, q, to=None, allowed=0.0):
        super().__init__(PROBLEM, metric, q, 0.0)
        self.to, self.allowed = to, allowed

    def step(self, gradient, at, level):
        new = at if self.to is None else self.at(self.to)
        return new.point, new

    def distance(self, at, new):
        return self.allowed


def test_a_level_falls_to_a_thousandth_of_the_first_and_no_further():
    metric = METRICS["uniform"]
    geometry = Fixed(metric, 1.0, allowed=1.0)
    run = abpg.accelerated(PROBLEM, geometry, starting_point(PROBLEM, metric))
    x = next(run).point
    first = 4.0 * rho(x) / metric.norm(x) ** 4
    steps = np.array([one.step for one in itertools.islice(run, 200)])
    # The logarithm of 1000 takes 142 steps of 5 %.
    np.testing.assert_allclose(steps[:140], 1.05 ** np.arange(140) / first, rtol=1e-9)
    np.testing.assert_allclose(steps[150:], 1000.0 / first, rtol=1e-9)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("share", "noise"), [(0.6, True), (1.6, False)])
@pytest.mark.parametrize("method", ["accelerated", "plain"])
def test_a_distance_below_a_tenth_of_the_rounding_of_rho_forbids_no_step(method, share, noise, size, monkeypatch):
    # D_f(x⁺,x) = ½⟨h,ρ''(x)h⟩ to first order, against ε ρ(x)/10 = 2⁻⁵²ρ(x)/10; the kernel allows nothing.
    metric = METRICS["uniform"]
    problem = qb.Problem(PROBLEM.form, size * C)
    start = starting_point(problem, metric)
    x = (1.0 / (4.0 * rho(start))) ** (1.0 / 3.0) * start
    h = np.roll(x, 1)
    second = 6.0 * float((ROWS @ x) ** 2 @ (ROWS @ h) ** 2)
    to = x + math.sqrt(share * 0.1 * EPS * rho(x) / second) * h
    geometry = Fixed(metric, 1.0, to)
    if method == "accelerated":
        run = abpg.accelerated(problem, geometry, start)
    else:
        monkeypatch.setattr(bregman, "Geometry", lambda *_: geometry)
        run = Bregman().iterates(problem, metric, start)
    x = next(run).point
    first = 4.0 * rho(x) / metric.norm(x) ** 4
    # Where the kernel has no distance, each level is twice the one before: sixty are tried, and the last is taken.
    assert next(run).step * first == pytest.approx(1.0 if noise else 2.0**-59, rel=1e-9)


@pytest.mark.parametrize("a", [0.25, 1.0, 4.0])
def test_the_scale_of_a_kernel_is_right_to_the_last_digits(a):
    assert kernel_scale(0.0, a) == pytest.approx(1.0 / a)
    for square in np.geomspace(1e-290, 1e290, 400).tolist():
        sigma = Fraction(kernel_scale(square, a))
        left = sigma**3 * Fraction(square) + Fraction(a) * sigma - 1
        # The error of σ by one step of Newton's method in exact arithmetic.
        error = left / (3 * sigma**2 * Fraction(square) + Fraction(a)) / sigma
        # A power of −1/3 has the rounding of its exponent besides, and that counts ln‖u‖² times.
        assert abs(error) <= (8.0 + 0.5 * abs(math.log(square))) * 2.0**-53


@pytest.mark.parametrize("a", [0.4, 2.5])
def test_a_quadratic_kernel_of_any_weight_makes_the_step_of_a_gradient(a):
    metric = METRICS["uniform"]
    geometry = Geometry(PROBLEM, metric, 0.0, a)
    x = starting_point(PROBLEM, metric)
    point, _ = geometry.step(gradient(x), geometry.at(x), 3.0)
    np.testing.assert_allclose(point, x - np.linalg.solve(matrix(metric), gradient(x) - C) / (3.0 * a), rtol=1e-9)


# Stages of accelerated descent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("identity", 100), ("uniform", 40)])
def test_a_stage_ends_when_its_momentum_points_uphill(name, count):
    metric = METRICS[name]
    B, t = matrix(metric), 1.0 / (6.0 * metric.bounds.beta)
    normal = np.linalg.solve(B, C)
    best = normal / (C @ normal)
    points, restarts, stages = [best], [False], 0
    while len(points) < count:
        z = before = best
        for k in itertools.count():
            slope = gradient(z) / (2.0 * math.sqrt(rho(z)))
            y = z - t * np.linalg.solve(B, slope)
            y = y + (1.0 - C @ y) / (C @ normal) * normal
            points.append(y)
            restarts.append(stages > 0 and k == 0)
            if k > 0 and slope @ (y - before) > 0.0:
                break
            z, before = y + k / (k + 3.0) * (y - before), y
        stages += 1
        best = y if rho(y) <= rho(best) else best
    found = taken(AccelHomGD(step="fixed"), metric, count)
    assert stages > 1
    assert [one.restart for one in found] == restarts[:count]
    for one, y in zip(found, points, strict=False):
        np.testing.assert_allclose(one.point, y, rtol=1e-5, atol=1e-9)


class Accepting:
    """A line search that accepts every step."""

    def __init__(self, form, step, z, growth):
        self.t, self.growth = 1e-3, growth

    def accepts(self, line, squared):
        return True


def test_steps_may_be_longer_by_a_half_after_a_long_stage(monkeypatch):
    monkeypatch.setattr(accel_homgd, "LineSearch", Accepting)
    found = taken(AccelHomGD("scheduled"), METRICS["uniform"], 127)
    steps = np.array([one.step for one in found[1:]]) / 1e-3
    np.testing.assert_allclose(steps[: 1 + 2 + 4 + 8], 1.0)
    np.testing.assert_allclose(steps[31:63], 1.5 * steps[15])
    np.testing.assert_allclose(steps[63:], 2.25 * steps[15])


@pytest.mark.parametrize("restart", ["none", "scheduled", "adaptive"])
def test_steps_never_grow_within_a_stage(restart):
    problem = qb.instances.spectrum(60, 20, 0.02, seed=0).normalised().problem
    found = taken(AccelHomGD(restart), qb.metric(problem.form, "identity"), 150, problem)[1:]
    assert len({one.step for one in found}) > 1
    for before, now in itertools.pairwise(found):
        assert now.restart or now.step <= before.step


# The plane search -----------------------------------------------------------------------------------------------------


def safeguarded_newton(line, limit):
    """Return where Newton's method on the derivative stops, from its step at 0 on, halving the bracket it leaves."""
    slope = Polynomial(line).deriv()
    low, high = 0.0, min(-slope(0.0) / slope.deriv()(0.0), limit)
    while slope(high) < 0.0:
        low, high = high, min(2.0 * high, limit)
    t, halved = high, 0
    while True:
        low, high = (t, high) if slope(t) < 0.0 else (low, t)
        following = t - slope(t) / slope.deriv()(t)
        if not low < following < high:
            following, halved = 0.5 * (low + high), halved + 1
        if abs(following - t) <= 1e-12 * t:
            return t, halved
        t = following


def test_the_minimiser_of_a_line_is_found_by_newtons_method():
    rng, halvings, doublings = np.random.default_rng(3), 0, 0
    for _ in range(300):
        a, b = rng.standard_normal((2, 3)) * [[1.0, 0.3, 3.0], [1.0, 3.0, 0.1]]
        b = -b if (a**3 * b).sum() > 0.0 else b
        line = [(a**4).sum(), 4 * (a**3 * b).sum(), 6 * (a**2 * b**2).sum(), 4 * (a * b**3).sum(), (b**4).sum()]
        expected, halved = safeguarded_newton(line, math.inf)
        halvings, doublings = halvings + halved, doublings + (expected > -0.5 * line[1] / line[2])
        assert minimiser(line) == pytest.approx(expected, rel=1e-14)
        assert value_on(line, expected) <= min(value_on(line, (1.0 + share) * expected) for share in (-1e-3, 1e-3))
    assert halvings > 0
    assert doublings > 0


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_the_residual_and_the_value_of_a_point_do_not_depend_on_its_scale_otherwise_than_rho(size):
    y = evaluate(PROBLEM.form, size * starting_point(PROBLEM, METRICS["identity"]))
    r = residual(y, C)
    assert r @ y.point == pytest.approx(0.0, abs=1e-10 * y.rho)
    np.testing.assert_allclose(r + gradient(y.point), 4.0 * rho(y.point) / (C @ y.point) * C, rtol=1e-9)
    assert iterate(y, C).value == pytest.approx(PROBLEM.homogenised_value(y.point), rel=1e-12)


@pytest.mark.parametrize(("share", "taken_as_it_is"), [(0.8e-3, True), (1.25e-3, False)])
def test_a_point_that_misses_less_than_a_thousandth_of_the_gain_is_taken(share, taken_as_it_is):
    # In the plane ρ(y + t h) is known: z is put beyond the best point where ρ is so much above the least.
    problem = qb.Problem(qb.StackedForm(np.eye(2)), np.ones(2))
    y = evaluate(problem.form, np.array([0.8, 0.2]))
    h = np.array([-1.0, 1.0])  # ρ is least at t = 0.3

    def value(t):
        return (0.8 - t) ** 4 + (0.2 + t) ** 4

    low, high = 0.3, 0.5
    for _ in range(200):
        t = 0.5 * (low + high)
        low, high = (t, high) if value(t) - value(0.3) < share * (value(0.0) - value(0.3)) else (low, t)
    found = Plane(problem).step(y, residual(y, problem.c), t * h)
    np.testing.assert_allclose(found.y.point, y.point + (t if taken_as_it_is else 0.3) * h, atol=1e-9)
    assert (found.t == 1.0) is taken_as_it_is


def test_a_step_on_the_orthant_ends_where_the_point_ahead_is():
    # The point ahead is on the boundary; ρ would fall on beyond it.
    problem = qb.Problem(qb.StackedForm(np.eye(2)), np.array([1.0, -0.5]), "orthant")
    y = evaluate(problem.form, np.array([1.0, 0.2]))
    found = Plane(problem).step(y, residual(y, problem.c), np.array([0.0, -0.2]))
    assert found.t == 1.0
    np.testing.assert_allclose(found.y.point, [0.9, 0.0], atol=1e-15)


def test_a_direction_that_leads_nowhere_has_no_dual_point():
    plane = Plane(PROBLEM)
    y = evaluate(PROBLEM.form, starting_point(PROBLEM, METRICS["identity"]))
    assert plane.dual(y, Step(y, 0.0), None) is None


@pytest.mark.parametrize(("fall", "seen"), [(1.5e-15, True), (0.6e-15, False)])
def test_a_fall_of_a_value_is_visible_above_its_rounding(fall, seen):
    progress = Progress()
    ended = [progress.ended(-1.0 - (k if seen else min(k, 1)) * fall) for k in range(4)]
    assert ended[-1] is not seen


@pytest.mark.parametrize("method", [HomNewton(), HomNewtonCG()], ids=repr)
def test_newton_methods_end_at_the_solution(method):
    # With one unknown the start is the solution: there is no step, and the method ends with it.
    line = qb.Problem(qb.StackedForm(np.array([[1.0], [2.0]])), [3.0])
    assert len(taken(method, Identity(1), 20, line)) == 2
    # Else it ends after a few values that do not fall.
    assert len(taken(method, METRICS["uniform"], 60)) < 30


def test_directions_are_solved_to_half_of_the_residual_at_first():
    problem = qb.instances.spectrum(60, 20, 0.02, seed=0).normalised().problem
    rows, c, metric = problem.form.rows, problem.c, Identity(20)
    y = starting_point(problem, metric)
    s = rows @ y
    value, slope = float((s**4).sum()), 4.0 * rows.T @ s**3
    hessian, r = 12.0 * rows.T @ (s[:, None] ** 2 * rows), 4.0 * value / (c @ y) * c - slope

    def deflated(v):
        return v - (slope @ v) / (4.0 * value) * y

    # Conjugate gradients, until ⟨r,B⁻¹r⟩ is a quarter of what it was.
    e, rest, z = np.zeros(20), r, deflated(r)
    p, products = z, 0
    while rest @ z > 0.25 * (r @ deflated(r)):
        before = rest @ z
        step = before / (p @ hessian @ p)
        e, rest = e + step * p, rest - step * hessian @ p
        z = deflated(rest)
        p, products = z + (rest @ z) / before * p, products + 1
    assert products > 1
    form = problem.form.twin()
    found = taken(HomNewtonCG(), metric, 2, problem.on(form))[1]
    np.testing.assert_allclose(found.point, Plane(problem).step(evaluate(problem.form, y), r, e).y.point, rtol=1e-6)
    assert form.passes in (1 + products + 1, 1 + products + 2)


def test_no_direction_is_solved_beyond_a_ten_thousandth_of_its_residual():
    rates, products = [], []

    class Greedy(Last):
        """Wants all that there is, and notes what a product has left before."""

        def share(self, gap, usual, rate):
            rates.append(rate)
            return 1e-9

    class Counting:
        """Sees conjugate gradients: how many products each direction took."""

        products = 1000

        def begin(self):
            products.append(0)

        def add(self, step, ratio):
            products[-1] += 1

    metric = METRICS["identity"]
    y = evaluate(PROBLEM.form, starting_point(PROBLEM, metric))
    list(itertools.islice(newton_cg(Plane(PROBLEM), metric, y, 0.5, 1000, Counting(), Greedy(1e-8, 1.0)), 3))
    assert len(rates) == 2  # of the first direction, and of the second, which was the first to be greedy
    assert rates[1] ** products[1] == pytest.approx(1e-4, rel=1e-9)


# Conjugate gradients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "fresh"), [(0.7e-8, True), (1.4e-8, False)])
@pytest.mark.parametrize("size", [1.0, 1e3])
def test_an_image_is_computed_afresh_where_rho_has_fallen_to_a_hundred_millionth(share, fresh, size):
    # With two unknowns the plane is all of space, and the first step leads to the solution.
    form = qb.StackedForm(np.eye(2))
    problem = qb.Problem(form, np.full(2, size))
    least = 2.0 * (0.5 / size) ** 4
    far = (0.5 * least / share) ** 0.25  # x₁⁴ + x₂⁴ at (1/2c ± far), nearly
    for _ in range(50):
        far *= (least / share / ((0.5 / size + far) ** 4 + (0.5 / size - far) ** 4)) ** 0.25
    passes, twin = [], form.twin()
    start = np.array([0.5 / size + far, 0.5 / size - far])
    for one in itertools.islice(HomCG().iterates(problem.on(twin), Identity(2), start), 2):
        passes.append(twin.passes)
        rho_now = float((one.point**4).sum())
    assert rho_now == pytest.approx(least, rel=1e-3)
    assert np.diff(passes).tolist() == [3 if fresh else 2]


@pytest.mark.parametrize("size", [0.2, 1.0, 5.0])
def test_homcg_searches_the_plane_from_a_point_of_any_scale(size):
    y = evaluate(PROBLEM.form, size * starting_point(PROBLEM, METRICS["identity"]))
    r, d = residual(y, C), RNG.standard_normal(5)
    d = d if r @ d > 0.0 else -d
    found, _ = HomCG._search(Plane(PROBLEM), y, r, d, 1.0)
    assert C @ found.point == pytest.approx(C @ y.point, rel=1e-12)
    # The best point of the plane: neither y nor d leads below it.
    least = PROBLEM.homogenised_value(found.point)
    assert found.rho == pytest.approx(rho(found.point), rel=1e-10)
    for share in (-1e-3, 1e-3):
        assert PROBLEM.homogenised_value(found.point + share * np.linalg.norm(y.point) / np.linalg.norm(d) * d) > least


def on_orthant(rows, c, y):
    problem = qb.Problem(qb.StackedForm(rows), c, "orthant")
    at = evaluate(problem.form, np.array(y))
    return Plane(problem), at, residual(at, problem.c)


def test_the_next_trial_of_homcg_is_at_least_a_thousandth_of_the_last():
    # ρ = x₁⁴ + 10¹²x₂⁴: the best point has x₂ = x₁/10⁴, a hundred-thousandth of the way to the trial.
    plane, y, r = on_orthant(np.diag([1.0, 1000.0]), np.ones(2), [1.0, 0.0])
    found, t = HomCG._search(plane, y, r, np.array([0.0, 10.0]), 4.0)
    assert found.point[1] / found.point[0] == pytest.approx(1e-4, rel=1e-6)
    assert t == pytest.approx(4e-3, rel=1e-12)


def test_the_next_trial_of_homcg_stays_in_the_range_of_floating_point():
    plane, y, r = on_orthant(np.array([[1.0, 0.0], [1.0, 1.0]]), np.ones(2), [1.0, 0.0])
    found, t = HomCG._search(plane, y, r, np.array([0.0, 1e-130]), 1.0)
    assert found.point[1] > 0.1
    assert t == pytest.approx(1e100)


def test_homcg_tries_the_gradient_at_full_length_after_a_direction_that_leads_nowhere(monkeypatch):
    given, true = [], HomCG._search

    def search(plane, y, r, d, t):
        given.append((r.copy(), d.copy(), t))
        found, t = true(plane, y, r, d, t)
        return (y, 0.0) if len(given) == 3 else (found, t)

    monkeypatch.setattr(HomCG, "_search", staticmethod(search))
    found = taken(HomCG(), METRICS["identity"], 6)
    assert (found[3].step, found[4].restart) == (0.0, True)
    r, d, t = given[3]
    assert t == 1.0
    np.testing.assert_allclose(d / np.linalg.norm(d), r / np.linalg.norm(r), rtol=1e-9)


# Line searches --------------------------------------------------------------------------------------------------------


class Curve(PlainStep):
    """A step along a curve, which is taken to the point [t]."""

    straight = False

    def __init__(self):
        self.trials = []

    def __call__(self, z, t):
        self.trials.append(t)
        return np.array([t]), t**2


def searching(step, t=2.0, growth=1.05):
    search = object.__new__(LineSearch)
    search.form, search.step, search.growth, search.t, search.used = None, step, growth, t, t
    search.line, search.ratio, search.rejected, search.tried = (), 0.0, 0, 0.0
    return search


LINE = PlainStep(PROBLEM, METRICS["identity"])


def of_distance(distance, rho=1.0):
    return (rho, 0.0, 0.5 * distance, 0.3 * distance, 0.2 * distance)


@pytest.mark.parametrize("t", [0.5, 2.0])
@pytest.mark.parametrize(
    ("distance", "accepted", "grown"), [(0.5, True, 1.05), (0.89, True, 1.05), (0.91, True, 1.0), (1.01, False, 1.0)]
)
def test_a_step_is_taken_where_its_distance_is_allowed_and_longer_where_it_was_short(t, distance, accepted, grown):
    search = searching(LINE, t)
    assert search.accepts(of_distance(distance), 2.0 * t) is accepted  # ‖y − z‖²/(2t) = 1
    assert search.t == pytest.approx(grown * t)
    assert search.rejected == (not accepted)
    if not accepted:
        assert search.tried == t
        assert search.ratio == pytest.approx(1.0 / distance)


@pytest.mark.parametrize(("distance", "ratio"), [(1.25, 0.8), (60.0, 1.0 / 60.0), (99.0, 1.0 / 99.0), (1e6, 0.01)])
def test_a_rejected_step_says_by_how_much_it_was_too_long_up_to_a_hundred(distance, ratio):
    search = searching(LINE)
    assert not search.accepts(of_distance(distance), 4.0)
    assert search.ratio == pytest.approx(ratio)


def test_a_distance_that_is_rounding_forbids_nothing():
    search = searching(LINE)
    assert search.accepts(of_distance(1.6, 17.0 / EPS), 4.0)  # a tenth of ε ρ is 1.7
    assert search.t == 2.0
    assert not search.accepts(of_distance(1.6, 15.0 / EPS), 4.0)


def test_after_thirty_rejections_a_step_is_taken_and_the_length_is_what_it_was():
    search = searching(LINE)
    for _ in range(30):
        assert not search.accepts(of_distance(1e9), 2.0 * search.t)
        search.t *= 0.5
    assert search.tried == 2.0
    assert search.accepts(of_distance(1e9), 2.0 * search.t)
    assert (search.t, search.used, search.rejected) == (2.0, 2.0, 0)


@pytest.mark.parametrize(("ratio", "shorter"), [(0.99, 0.7), (0.72, 0.7), (0.68, 0.68), (0.01, 0.01)])
def test_on_a_curve_a_shorter_step_is_by_what_was_missing_or_three_tenths(ratio, shorter):
    search = searching(Curve())
    search.ratio = ratio
    y, squared = search.shorten(None, None, math.nan)
    assert search.step.trials == [search.t] == pytest.approx([2.0 * shorter])
    assert (y[0], squared) == (search.t, search.t**2)


@pytest.mark.parametrize(
    ("line", "rejections"),
    [
        ((1.0, 0.0, 4.0, 0.0, 0.0), 0),  # D is a square: 5 % less than what was missing is enough
        ((1.0, 0.0, 10.0, -6.0, 0.0), 4),  # 10φ² − 6φ³ ≤ φ after four times a fifth less than 0.95/4
        ((1.0, 0.0, 1.0, 1.0, 2.0), 0),
    ],
)
def test_on_a_line_a_shorter_step_is_by_a_fifth_until_it_passes(line, rejections):
    search, z = searching(LINE), evaluate(PROBLEM.form, np.ones(5))
    assert not search.accepts(line, 4.0)
    fraction = Fraction(95, 100) / Fraction(sum(line[2:]))
    count = 0
    while sum(Fraction(line[k]) * fraction**k for k in (2, 3, 4)) > fraction:
        fraction, count = fraction * Fraction(4, 5), count + 1
    assert count == rejections
    y, squared = search.shorten(z, z.point + np.arange(5.0), 4.0)
    assert search.t == pytest.approx(2.0 * float(fraction), rel=1e-12)
    np.testing.assert_allclose(y, 1.0 + float(fraction) * np.arange(5.0), rtol=1e-12)
    assert squared == pytest.approx(4.0 * float(fraction) ** 2, rel=1e-12)


def test_on_a_line_a_step_whose_distance_is_rounding_is_short_enough():
    search, z = searching(LINE), evaluate(PROBLEM.form, np.ones(5))
    search.line, search.ratio = (1.0 / EPS, 0.0, 1.0, 0.0, 0.0), 0.2  # a hundredth of it is noise: 0.036 < 0.1
    search.shorten(z, z.point, 1e-9)
    assert search.t == pytest.approx(2.0 * 0.19)


@pytest.mark.parametrize("size", [0.1, 10.0])
def test_the_first_length_is_that_of_the_curvature_to_a_ten_thousandth(size):
    # ρ = x⁴ at x = 1: along h its distance is 6h² + 4h³τ + h⁴τ², for τ → 0 the curvature alone.
    problem = qb.Problem(qb.StackedForm([[1.0]]), [size])
    step, z = PlainStep(problem, Identity(1)), evaluate(problem.form, np.ones(1))
    t = step.guess(z)
    h = -t * (4.0 - size)
    found = LineSearch(problem.form, step, z, 1.0).t
    assert abs(12.0 * found - 1.0) <= 1.5e-4 * abs(2.0 * h / 3.0)


def test_the_first_length_is_the_guess_where_there_is_no_step():
    problem = qb.Problem(qb.StackedForm([[1.0]]), [4.0])  # of which 1 is the solution
    step, z = PlainStep(problem, Identity(1)), evaluate(problem.form, np.ones(1))
    assert LineSearch(problem.form, step, z, 1.0).t == step.guess(z) == pytest.approx(1.0 / 16.0)
