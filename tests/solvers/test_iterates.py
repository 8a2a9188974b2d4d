"""The iterates of the methods on free space, computed once more with dense matrices from their docstrings."""

import itertools
import math

import numpy as np
import pytest

import quartbench as qb
from quartbench.metrics import Bounds
from quartbench.solvers import ABPG, AGD, GD, AccelHomGD, Bregman, HomCG, HomGD, HomNewton, HomNewtonCG, starting_point
from quartbench.solvers.accel_homgd import early_length, early_stages
from quartbench.solvers.driver import Schedule
from quartbench.solvers.plane import Plane, Progress
from quartbench.solvers.steps import LineSearch, PlainStep, RootStep, evaluate

#: f_hom(y) = min over s of s⁴ρ − s⟨c,y⟩ = −(3/4)(⟨c,y⟩⁴/4ρ)^{1/3}
HOMOGENISED = 0.75 * 0.25 ** (1.0 / 3.0)

RNG = np.random.default_rng(0)
ROWS, C = RNG.standard_normal((25, 5)) * np.linspace(0.5, 2.0, 5), RNG.standard_normal(5)
PROBLEM = qb.Problem(qb.StackedForm(ROWS), C)
METRICS = {name: qb.metric(PROBLEM.form, name) for name in ("identity", "uniform", "lewis")}


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


def matrix(metric):
    return np.array([metric.apply(unit) for unit in np.eye(5)])


def rho(x):
    return float(((ROWS @ x) ** 4).sum())


def gradient(x):
    return 4.0 * ROWS.T @ (ROWS @ x) ** 3


def onto(y, B):
    """Return the B-projection onto {⟨c,y⟩ = 1}."""
    normal = np.linalg.solve(B, C)
    return y + (1.0 - C @ y) / (C @ normal) * normal


def taken(method, metric, count):
    start = starting_point(PROBLEM, metric)
    return list(itertools.islice(method.iterates(PROBLEM, metric, start), count))


def test_the_start_is_the_point_of_least_norm(metric):
    B = matrix(metric)
    np.testing.assert_allclose(starting_point(PROBLEM, metric), onto(np.zeros(5), B), rtol=1e-10)


def test_homgd_with_fixed_steps(metric):
    # y ← P(y − t∇√ρ(y)), t = 1/(6β)
    B, t = matrix(metric), 1.0 / (6.0 * metric.bounds.beta)
    y = onto(np.zeros(5), B)
    for found in taken(HomGD("fixed"), metric, 6):
        np.testing.assert_allclose(found.point, y, rtol=1e-9)
        assert found.value == pytest.approx(-HOMOGENISED / rho(y) ** (1.0 / 3.0), rel=1e-12)
        assert math.isnan(found.step) or found.step == pytest.approx(t)
        y = onto(y - t * np.linalg.solve(B, gradient(y) / (2.0 * math.sqrt(rho(y)))), B)


@pytest.mark.parametrize("restart", ["none", "scheduled"])
def test_accelerated_homgd_with_fixed_steps(metric, restart):
    # y ← P(z − t∇√ρ(z)), z ← y + (k/(k+3))(y − y before); stages of 1, 2, 4, … steps from the best end so far
    B, t = matrix(metric), 1.0 / (6.0 * metric.bounds.beta)
    best = onto(np.zeros(5), B)
    expected, restarts = [best], [False]
    for stage in range(6):
        length = 2**stage if restart == "scheduled" else 100
        z = before = best
        for k in range(length):
            y = onto(z - t * np.linalg.solve(B, gradient(z) / (2.0 * math.sqrt(rho(z)))), B)
            expected.append(y)
            restarts.append(stage > 0 and k == 0)
            theta = 0.0 if k + 1 == length else k / (k + 3.0)
            z, before = y + theta * (y - before), y
        if rho(z) <= rho(best):
            best = z
    for found, y, restarted in zip(
        taken(AccelHomGD(restart, step="fixed"), metric, 30), expected, restarts, strict=False
    ):
        np.testing.assert_allclose(found.point, y, rtol=1e-8, atol=1e-12)
        assert found.value == pytest.approx(-HOMOGENISED / rho(y) ** (1.0 / 3.0), rel=1e-9)
        assert found.restart == restarted


@pytest.mark.parametrize(("kernel", "a"), [("quartic", 0.0), ("quartic+quadratic", 1.0)])
def test_bregman_descent_with_fixed_steps(metric, kernel, a):
    # v = (‖x‖² + a)x − B⁻¹∇f(x)/L, x ← σv with σ³‖v‖² + aσ = 1, L = 12β²
    B, level = matrix(metric), 12.0 * metric.bounds.beta**2
    y = onto(np.zeros(5), B)
    x = (1.0 / (4.0 * rho(y))) ** (1.0 / 3.0) * y
    for found in taken(Bregman(kernel, "fixed"), metric, 6):
        np.testing.assert_allclose(found.point, x, rtol=1e-9)
        assert found.value == pytest.approx(rho(x) - C @ x, rel=1e-12)
        assert math.isnan(found.step) or found.step == pytest.approx(1.0 / level)
        v = (x @ B @ x + a) * x - np.linalg.solve(B, gradient(x) - C) / level
        roots = np.roots([v @ B @ v, 0.0, a, -1.0])
        x = roots[np.abs(roots.imag) < 1e-9].real.max() * v


def ball(metric, factor):
    """Return R with f > 0 beyond it, ‖c‖_* ≤ α²R³, times a factor, and the Lipschitz constant 12β²R² of ∇ρ within."""
    alpha, beta = metric.bounds
    size = math.sqrt(C @ np.linalg.solve(matrix(metric), C))
    radius = factor * (size / alpha**2) ** (1.0 / 3.0)
    return radius, 12.0 * beta**2 * radius**2


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_gradient_descent_with_the_fixed_step_of_a_ball(metric, factor):
    B = matrix(metric)
    _, lipschitz = ball(metric, factor)
    y = onto(np.zeros(5), B)
    x = (1.0 / (4.0 * rho(y))) ** (1.0 / 3.0) * y
    for found in taken(GD("fixed", radius=factor), metric, 6):
        np.testing.assert_allclose(found.point, x, rtol=1e-9)
        assert found.value == pytest.approx(rho(x) - C @ x, rel=1e-12)
        x = x - np.linalg.solve(B, gradient(x) - C) / lipschitz


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_accelerated_gradients_with_the_fixed_step_of_a_ball(metric, factor):
    # z ← z − B⁻¹∇f(y)/(θL) in the ball, x ← (1 − θ)x + θz, θ₊² = θ²(1 − θ₊)
    B = matrix(metric)
    radius, lipschitz = ball(metric, factor)
    y = onto(np.zeros(5), B)
    x = z = (1.0 / (4.0 * rho(y))) ** (1.0 / 3.0) * y
    theta = 1.0
    for found in taken(AGD("fixed", radius=factor), metric, 12):
        np.testing.assert_allclose(found.point, x, rtol=1e-8)
        assert found.value == pytest.approx(rho(x) - C @ x, rel=1e-9)
        z = z - np.linalg.solve(B, gradient((1.0 - theta) * x + theta * z) - C) / (theta * lipschitz)
        z = z * min(1.0, radius / math.sqrt(z @ B @ z))
        x = (1.0 - theta) * x + theta * z
        theta = (math.sqrt(theta**4 + 4.0 * theta**2) - theta**2) / 2.0


def test_the_ball_holds_the_level_set(metric):
    radius, _ = ball(metric, 1.0)
    for _ in range(50):
        direction = RNG.standard_normal(5)
        x = radius * direction / metric.norm(direction)
        assert rho(x) - C @ x >= 0.0


@pytest.mark.parametrize(("kernel", "a"), [("quartic", 0.0), ("quartic+quadratic", 1.0)])
def test_accelerated_bregman_descent_solves_its_recursion(metric, kernel, a):
    B = matrix(metric)
    found = taken(ABPG(kernel), metric, 15)
    x = z = found[0].point
    weight = math.inf
    for one in found[1:]:
        level = 1.0 / one.step
        ratio = weight / level
        theta = 1.0 if math.isinf(ratio) else (math.sqrt(ratio**2 + 4.0 * ratio) - ratio) / 2.0
        y = (1.0 - theta) * x + theta * z
        v = (z @ B @ z + a) * z - np.linalg.solve(B, gradient(y) - C) / (theta * level)
        roots = np.roots([v @ B @ v, 0.0, a, -1.0])
        new = roots[np.abs(roots.imag) < 1e-9].real.max() * v
        ahead = (1.0 - theta) * x + theta * new
        h = [0.25 * (p @ B @ p) ** 2 + 0.5 * a * (p @ B @ p) for p in (new, z)]
        kernel_distance = h[0] - h[1] - (z @ B @ z + a) * ((B @ z) @ (new - z))
        used = rho(ahead) - rho(y) - gradient(y) @ (ahead - y)
        assert used <= theta**2 * level * kernel_distance * (1.0 + 1e-6) + 1e-14
        np.testing.assert_allclose(one.point, ahead, rtol=1e-6)
        x, z, weight = ahead, new, level * theta**2


@pytest.mark.parametrize(("kernel", "a"), [("quartic", 0.0), ("quartic+quadratic", 1.0)])
def test_every_level_of_bregman_descent_passes_its_test(metric, kernel, a):
    # D_f(x⁺,x) ≤ L D_h(x⁺,x) with h = ¼‖x‖⁴ + (a/2)‖x‖², and L falls by 5 % only where D_f is below nine tenths of it.
    B = matrix(metric)

    def distance(F, slope, x, y):
        return F(y) - F(x) - slope(x) @ (y - x)

    def kernel_value(x):
        return 0.25 * (x @ B @ x) ** 2 + 0.5 * a * (x @ B @ x)

    def kernel_gradient(x):
        return (x @ B @ x + a) * (B @ x)

    found = taken(Bregman(kernel), metric, 12)
    for before, now, following in zip(found, found[1:], found[2:], strict=False):
        level = 1.0 / now.step
        used = distance(rho, gradient, before.point, now.point)
        allowed = level * distance(kernel_value, kernel_gradient, before.point, now.point)
        assert used <= allowed * (1.0 + 1e-7) + 1e-14
        least = level / 1.05 if used < 0.9 * allowed * (1.0 + 1e-7) else level
        assert 1.0 / following.step >= least * (1.0 - 1e-9)
        assert now.value < before.value


# The line search ------------------------------------------------------------------------------------------------------


def test_the_distance_of_a_step_is_that_of_bregman(metric):
    # D(y,z) = F(y) − F(z) − ⟨∇F(z),y − z⟩ for F = √ρ and for ρ
    z, y = RNG.standard_normal(5), RNG.standard_normal(5)
    form = PROBLEM.form
    line = form.line(z, y - z).tolist()
    slope = gradient(z) @ (y - z)
    root, _ = RootStep(PROBLEM, metric).distance(line)
    assert root == pytest.approx(math.sqrt(rho(y)) - math.sqrt(rho(z)) - slope / (2.0 * math.sqrt(rho(z))), rel=1e-9)
    plain, _ = PlainStep(PROBLEM, metric).distance(line)
    assert plain == pytest.approx(rho(y) - rho(z) - slope, rel=1e-9)


def test_steps_are_those_of_projected_gradients(metric):
    B, t = matrix(metric), 0.03
    point = onto(RNG.standard_normal(5), B)
    z = evaluate(PROBLEM.form, point)
    y, squared = RootStep(PROBLEM, metric)(z, t)
    expected = onto(point - t * np.linalg.solve(B, gradient(point) / (2.0 * math.sqrt(rho(point)))), B)
    np.testing.assert_allclose(y, expected, rtol=1e-9)
    assert squared == pytest.approx((y - point) @ B @ (y - point), rel=1e-9)
    y, squared = PlainStep(PROBLEM, metric)(z, t)
    np.testing.assert_allclose(y, point - t * np.linalg.solve(B, gradient(point) - C), rtol=1e-9)
    assert squared == pytest.approx((y - point) @ B @ (y - point), rel=1e-9)


def test_the_first_guess_of_a_step_is_that_of_the_curvature_along_the_gradient(metric):
    B = matrix(metric)
    z = evaluate(PROBLEM.form, onto(RNG.standard_normal(5), B))
    squared = z.gradient @ np.linalg.solve(B, z.gradient)
    assert RootStep(PROBLEM, metric).guess(z) == pytest.approx(4.0 * z.rho**1.5 / squared, rel=1e-9)
    assert PlainStep(PROBLEM, metric).guess(z) == pytest.approx(z.rho / squared, rel=1e-9)


@pytest.mark.parametrize("kind", [RootStep, PlainStep])
def test_a_search_that_begins_at_the_minimiser_goes_no_way_back(kind):
    # Rounding made the squared length of a step negative, and with it the step length: the search climbed.
    for seed in range(60):
        c = np.random.default_rng(seed).standard_normal(3)
        problem = qb.Problem(qb.GraphForm(3, 1, [(0, 1), (1, 2), (0, 2)]), c).normalised().problem
        x = qb.solve(problem, "homnewton", rel_gap=1e-15).x.reshape(-1)
        z = evaluate(problem.form, x / float(problem.c @ x) if kind is RootStep else x)
        step = kind(problem, qb.metric(problem.form, "uniform"))
        assert LineSearch(problem.form, step, z, 1.03).t > 0.0


@pytest.mark.parametrize("kind", [RootStep, PlainStep])
def test_the_first_step_of_a_search_is_one_over_the_curvature(metric, kind):
    # L = d²F/dτ² along h, over ‖h‖²_B, so that t = ‖h‖²/F''.
    step, form = kind(PROBLEM, metric), PROBLEM.form
    z = evaluate(form, starting_point(PROBLEM, metric))
    y, squared = step(z, step.guess(z))
    h = y - z.point
    second = float(h @ form.hessian_product(z.point, h))
    if kind is RootStep:
        second = second / (2.0 * math.sqrt(z.rho)) - (z.gradient @ h) ** 2 / (4.0 * z.rho**1.5)
    assert LineSearch(form, step, z, 1.05).t == pytest.approx(squared / second, rel=1e-3)


@pytest.mark.parametrize("method", [HomGD(), GD()])
def test_every_step_of_a_search_passes_its_test_and_grows_only_where_it_was_short(metric, method):
    # D(y,z) ≤ ‖y − z‖²/(2t), and t grows by 5 % where D is below nine tenths of that.
    B, form = matrix(metric), PROBLEM.form
    kind = RootStep if isinstance(method, HomGD) else PlainStep
    step = kind(PROBLEM, metric)
    found = taken(method, metric, 12)
    for before, now, following in zip(found, found[1:], found[2:], strict=False):
        h = now.point - before.point
        line = form.line(before.point, h).tolist()
        distance, noise = step.distance(line)
        allowed = float(h @ B @ h) / (2.0 * now.step)
        assert distance <= allowed * (1.0 + 1e-9) or distance <= noise
        grown = method.growth if distance < 0.9 * allowed else 1.0
        assert following.step <= grown * now.step * (1.0 + 1e-12)


# Faster methods -------------------------------------------------------------------------------------------------------


def along_line(y, h):
    """Return the t where ρ(y + th) is least: a root of the cubic in which it is level."""
    s, w = ROWS @ y, ROWS @ h
    cubic = [4.0 * (w**4).sum(), 12.0 * (s * w**3).sum(), 12.0 * (s**2 * w**2).sum(), 4.0 * (s**3 * w).sum()]
    roots = np.roots(cubic)
    return float(roots[np.abs(roots.imag).argmin()].real)


def hom_residual(y):
    return 4.0 * rho(y) / (C @ y) * C - gradient(y)


def hom_value(y):
    return -HOMOGENISED / (rho(y) / (C @ y) ** 4) ** (1.0 / 3.0)


@pytest.mark.parametrize("method", [HomNewton(), HomNewtonCG(forcing=1e-13)], ids=repr)
def test_newton_methods_move_to_the_best_point_of_the_plane(metric, method):
    y = starting_point(PROBLEM, metric)
    # The start has no model: it says how much of ∇ρ is residual.
    decrement = float((hom_residual(y) ** 2).sum() / (gradient(y) ** 2).sum())
    for found in taken(method, metric, 3):  # the next ones are at rounding
        np.testing.assert_allclose(found.point / (C @ found.point), y / (C @ y), rtol=1e-7)
        assert found.value == pytest.approx(hom_value(y), rel=1e-10)
        assert found.decrement == pytest.approx(decrement, rel=1e-5, abs=1e-13, nan_ok=True)
        r = hom_residual(y)
        e = newton(y, r)
        decrement = float(r @ e) / (6.0 * rho(y))
        z = (C @ y) / (C @ (y + e)) * (y + e)
        t = along_line(y, z - y)
        best = rho(y + t * (z - y))
        # z itself is taken where it misses less than a thousandth of what the best point gains.
        y = z if rho(z) - best <= 1e-3 * (rho(y) - best) + 1e-15 * rho(y) else y + t * (z - y)


def newton(y, r):
    """Return ρ''(y)⁻¹r for rows of rank one: ρ'' = 12 Σ ⟨u,y⟩² uuᵀ."""
    return np.linalg.solve(12.0 * ROWS.T @ ((ROWS @ y) ** 2 * ROWS.T).T, r)


def test_homcg_takes_the_steps_of_conjugate_gradients(metric):
    B = matrix(metric)
    y = starting_point(PROBLEM, metric)
    d, before, size_before, unit = np.zeros(5), None, 1.0, None
    for found in taken(HomCG(), metric, 7):
        np.testing.assert_allclose(found.point / (C @ found.point), y / (C @ y), rtol=1e-6)
        assert found.value == pytest.approx(hom_value(y), rel=1e-9)
        r = hom_residual(y) / rho(y)
        v = np.linalg.solve(B, r)
        unit = unit or np.abs(y).max() / np.abs(v).max()
        v = unit * v
        beta = 0.0 if before is None else max(0.0, float((r - before) @ v) / size_before)
        d = v + beta * d
        before, size_before = r, float(r @ v)
        h = d - (C @ d) / (C @ y) * y
        y = y + along_line(y, h) * h


@pytest.mark.parametrize("value", [-1.0, -1e-30])
def test_progress_ends_after_three_values_that_do_not_fall(value):
    progress = Progress()
    assert not progress.ended(value)
    assert not progress.ended(value * (1.0 + 1e-14))
    assert [progress.ended(value) for _ in range(3)] == [False, False, True]
    assert not progress.ended(2.0 * value)
    assert [progress.ended(2.0 * value * (1.0 + 2e-16)) for _ in range(3)] == [False, False, True]


# Searches, trial by trial ---------------------------------------------------------------------------------------------


def test_distances_below_a_tenth_of_the_rounding_of_the_objective_are_noise(metric):
    line = [9.0, 1.0, 2.0, 3.0, 4.0]
    assert RootStep(PROBLEM, metric).distance(line)[1] == pytest.approx(0.1 * 2.0**-52 * 3.0, rel=1e-12, abs=0.0)
    assert PlainStep(PROBLEM, metric).distance(line)[1] == pytest.approx(0.1 * 2.0**-52 * 9.0, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(("kernel", "a"), [("quartic", 0.0), ("quartic+quadratic", 1.0)])
def test_bregman_descent_searches_upwards_by_two_fifths_or_by_what_was_missing(metric, kernel, a):
    # From L = 4ρ/‖x‖⁴: the next L is 5 % above the ratio of the distances, or 1.4 times as large; then 5 % smaller.
    B = matrix(metric)
    y = onto(np.zeros(5), B)
    x = (1.0 / (4.0 * rho(y))) ** (1.0 / 3.0) * y
    level = 4.0 * rho(x) / (x @ B @ x) ** 2
    found = taken(Bregman(kernel), metric, 10)
    trials = 0
    for iterate in found[1:]:
        while True:
            v = (x @ B @ x + a) * x - np.linalg.solve(B, gradient(x) - C) / level
            roots = np.roots([v @ B @ v, 0.0, a, -1.0])
            new = roots[np.abs(roots.imag) < 1e-9].real.max() * v
            used = rho(new) - rho(x) - gradient(x) @ (new - x)
            kernels = [0.25 * (z @ B @ z) ** 2 + 0.5 * a * (z @ B @ z) for z in (new, x)]
            allowed = level * (kernels[0] - kernels[1] - (x @ B @ x + a) * (x @ B @ (new - x)))
            trials += 1
            if used <= allowed:
                break
            level *= max(1.4, 1.05 * used / allowed)
        np.testing.assert_allclose(iterate.point, new, rtol=1e-6)
        assert iterate.step == pytest.approx(1.0 / level, rel=1e-6)
        x, level = new, level / 1.05 if used < 0.9 * allowed else level
    assert a or metric.name != "identity" or trials > len(found)


def test_bregman_descent_accepts_what_only_rounding_forbids():
    # At the solution D_f and D_h are of the order of rounding: a step is taken at once, whatever they compare to.
    metric = METRICS["lewis"]
    x = qb.solve(PROBLEM, rel_gap=1e-14).x
    form = PROBLEM.form.twin()
    found = list(itertools.islice(Bregman().iterates(PROBLEM.on(form), metric, x / (C @ x)), 40))
    assert form.passes <= len(found) + 12


@pytest.mark.parametrize("kappa", [1.0, 2.9, 10.0, 1000.0])
def test_early_stages_halve_what_is_missing_until_it_is_below_two(kappa):
    # ⌈4√(L/μ)⌉ steps with L/μ = √27 κ, ⌈log₂((κ − 1)/2)⌉₊ times
    bounds = Bounds(1.0, kappa)
    assert early_length(bounds) == math.ceil(4.0 * 27.0**0.25 * kappa**0.5)
    stages = 0
    while (kappa - 1.0) / 2.0**stages > 2.0:
        stages += 1
    assert early_stages(bounds) == stages


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_a_direction_that_was_solved_in_part_has_a_dual_point_for_all_but_what_it_left(metric, size):
    plane = Plane(PROBLEM)
    y = evaluate(PROBLEM.form, size * starting_point(PROBLEM, metric))
    r = hom_residual(y.point)
    e = newton(y.point, r) * np.array([1.0, 0.9, 0.8, 0.9, 1.0])
    left = r - 12.0 * ROWS.T @ ((ROWS @ y.point) ** 2 * (ROWS @ e))
    weights, rest = plane.dual(y, plane.step(y, r, e), left)()
    np.testing.assert_allclose(ROWS.T @ weights + rest, C, rtol=1e-9)
    assert np.linalg.norm(rest) > 1e-3 * np.linalg.norm(C)


@pytest.mark.parametrize("method", [HomGD(), GD()])
def test_a_step_that_passes_its_test_is_taken_as_it_is(metric, method):
    form, kind = PROBLEM.form, RootStep if isinstance(method, HomGD) else PlainStep
    step = kind(PROBLEM, metric)
    search = LineSearch(form, step, evaluate(form, taken(method, metric, 1)[0].point), method.growth)
    start, found = taken(method, metric, 2)
    x = evaluate(form, start.point)
    y, squared = step(x, search.t)
    distance, _ = step.distance(form.line(x.point, y - x.point).tolist())
    if distance <= squared / (2.0 * search.t):
        assert found.step == pytest.approx(search.t, rel=1e-12)
    else:
        assert found.step < search.t


def test_the_next_certificate_is_due_where_a_line_through_the_logarithms_of_the_gaps_says():
    def after(last, iteration, gap, cost=0, rel_gap=5e-4):
        pace = Schedule(rel_gap)
        pace.before = last
        return pace.following(iteration, gap, cost)

    assert after((0, math.inf), 0, math.inf) == 2
    assert after((0, math.inf), 90, math.inf) == 120  # a third further where nothing is known
    assert after((0, math.inf), 6, math.inf) == 10  # but four at least
    assert after((50, 1e-2), 100, 1e-3) == 100 + int(50 * math.log10(2.0))
    assert after((50, 1e-2), 100, 1e-3, rel_gap=1e-6) == 133
    assert after((50, 1e-2), 100, 1e-3, rel_gap=0.99e-3) == 105  # a twentieth further at the least
    assert after((50, 1e-2), 100, 1e-3, cost=160) == 120  # an iteration for every eight passes that it cost
    assert after((50, 1e-2), 100, 1e-3, cost=8000) == 150  # a half at the most
