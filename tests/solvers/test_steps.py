"""Are the steps and the line search what their formulas say, down to rounding?"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench import Problem, instances, precondition, testing
from quartbench.forms import StackedForm
from quartbench.metrics import Identity
from quartbench.solvers import starting_point
from quartbench.solvers.geometry import Geometry, kernel_scale
from quartbench.solvers.steps import Evaluated, LineSearch, PlainStep, RootStep, evaluate

PROBLEMS = {name: problem.normalised().problem for name, problem in testing.problems(seed=1).items()}
CASES = [(name, metric) for name, problem in PROBLEMS.items() for metric in testing.solvers._metrics(problem)]
IDS = [f"{name}, {metric.name}" for name, metric in CASES]


def inside(problem, metric, seed):
    """Return a point of 𝒞 = K ∩ {⟨c,y⟩ = 1} away from the minimiser."""
    noise = np.random.default_rng(seed).standard_normal(problem.dim)
    start = starting_point(problem, metric)
    onto = problem.cone.slice(np.array(problem.c), metric)
    return onto(start + 0.3 * np.linalg.norm(start) * noise / np.linalg.norm(noise))


@pytest.mark.parametrize(("name", "metric"), CASES, ids=IDS)
def test_root_step_is_the_projected_gradient_step(name, metric):
    problem = PROBLEMS[name]
    step, z = RootStep(problem, metric), evaluate(problem.form, inside(problem, metric, 0))
    root, gradient = problem.root_and_gradient(z.point)
    t = 0.3 * step.guess(z)
    y, squared = step(z, t)
    onto = problem.cone.slice(np.array(problem.c), metric)
    assert np.allclose(y, onto(z.point - t * metric.solve(gradient)), rtol=1e-8, atol=1e-10 * np.abs(y).max())
    assert squared == pytest.approx(metric.norm(y - z.point) ** 2, rel=1e-6)
    assert problem.inner(y) == pytest.approx(1.0, abs=1e-12)
    # The minimum of the model, not only a projection: any other point of 𝒞 has a larger ⟨∇g,·⟩ + ‖· − z‖²/(2t).
    model = gradient @ y + squared / (2.0 * t)
    for seed in range(5):
        other = inside(problem, metric, seed + 1)
        assert gradient @ other + metric.norm(other - z.point) ** 2 / (2.0 * t) >= model - 1e-9 * root


@pytest.mark.parametrize(("name", "metric"), CASES, ids=IDS)
def test_accelerated_step_is_the_step_and_its_extrapolation(name, metric):
    problem = PROBLEMS[name]
    step, z = RootStep(problem, metric), evaluate(problem.form, inside(problem, metric, 0))
    before, t = inside(problem, metric, 1), 0.3 * step.guess(z)
    y, squared = step(z, t)
    y_too, ahead, squared_too, uphill = step.accelerated(z, t, before, 0.4)
    assert np.array_equal(y, y_too)
    assert squared == squared_too
    assert np.allclose(ahead, y + 0.4 * (y - before), rtol=1e-13, atol=1e-14)
    assert uphill == pytest.approx(z.gradient @ (y - before), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("name", "metric"), CASES, ids=IDS)
def test_plain_step_is_the_projected_gradient_step(name, metric):
    problem = PROBLEMS[name]
    step, x = PlainStep(problem, metric), evaluate(problem.form, inside(problem, metric, 0))
    t = 0.3 * step.guess(x)
    y, squared = step(x, t)
    wanted = problem.cone.project(x.point - t * metric.solve(problem.gradient(x.point)), metric)
    assert np.allclose(y, wanted, rtol=1e-10, atol=1e-12)
    assert squared == pytest.approx(metric.norm(y - x.point) ** 2, rel=1e-6)


@pytest.mark.parametrize(("name", "metric"), CASES, ids=IDS)
def test_image_behind_an_extrapolation_is_the_image_of_the_point(name, metric):
    form, rng = PROBLEMS[name].form, np.random.default_rng(0)
    x, y, before = rng.standard_normal((3, form.dim))
    out = np.empty_like(form.image(x))
    image, line = form.line_behind(form.image(x), form.image(y + 0.7 * (y - before)), form.image(before), 0.7, out)
    assert np.allclose(image, form.image(y), rtol=1e-12, atol=1e-12)
    assert line == pytest.approx(form.line(x, y - x).tolist(), rel=1e-10, abs=1e-10)


def exact_distance(rows, z, h, root):
    """Return D(z+h, z) of ρ or √ρ, and the scale of its rounding, with rational arithmetic up to the square roots."""
    exact = [[Fraction(float(entry)) for entry in row] for row in rows]

    def image(x):
        return [sum(a * Fraction(float(b)) for a, b in zip(row, x, strict=True)) for row in exact]

    s, w = image(z), image(h)
    rho, moved = sum(a**4 for a in s), sum((a + b) ** 4 for a, b in zip(s, w, strict=True))
    slope = sum(4 * a**3 * b for a, b in zip(s, w, strict=True))
    if not root:
        return float(moved - rho - slope)
    # √ρ' − √ρ − slope/(2√ρ) = [(ρ' − ρ)·2√ρ − slope·(√ρ' + √ρ)] / (2√ρ(√ρ' + √ρ)), with 60 digits in the roots.
    scale = 10**120

    def square_root(value):
        from math import isqrt

        return Fraction(isqrt(int(value * scale)), 10**60)

    a, b = square_root(rho), square_root(moved)
    return float(b - a - slope / (2 * a))


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-2, 1e-4, 1e-6]), st.booleans())
def test_distances_lose_no_digits_to_cancellation(seed, size, root):
    rng = np.random.default_rng(seed)
    form = StackedForm(rng.standard_normal((7, 3)))
    problem = instances.planted(form, seed=0)
    step = (RootStep if root else PlainStep)(problem, Identity(3))
    z, h = rng.standard_normal(3), size * rng.standard_normal(3)
    line = form.line_from_images(form.image(z), form.image(h)).tolist()
    distance, _ = step.distance(line)
    assert distance == pytest.approx(exact_distance(form.rows, z, h, root), rel=1e-9)


@pytest.mark.parametrize("kind", [RootStep, PlainStep])
@pytest.mark.parametrize(("name", "metric"), CASES, ids=IDS)
def test_shortened_steps_pass_the_test_and_long_ones_do_not(name, metric, kind):
    problem = PROBLEMS[name]
    form, step = problem.form, kind(problem, metric)
    z = evaluate(form, inside(problem, metric, 0))
    search = LineSearch(form, step, z, growth=1.03)
    search.t *= 1e3
    long = search.t
    y, squared = step(z, search.t)
    trials = 0
    while not search.accepts(form.line_from_images(z.image, form.image(y) - z.image).tolist(), squared):
        y, squared = search.shorten(z, y, squared)
        trials += 1
    assert trials >= 1
    assert search.used < long
    if step.straight:
        assert trials == 1  # the coefficients of the rejected trial say how far to go
    assert squared == pytest.approx(metric.norm(y - z.point) ** 2, rel=1e-6)
    value, slope = (problem.root_and_gradient if kind is RootStep else problem.value_and_gradient)(z.point)
    after = (problem.root_and_gradient if kind is RootStep else problem.value_and_gradient)(y)[0]
    assert after <= value + slope @ (y - z.point) + squared / (2.0 * search.used) + 1e-12 * abs(value)


@pytest.mark.parametrize("kind", [RootStep, PlainStep])
def test_first_step_is_the_curvature_along_the_gradient(kind):
    problem = PROBLEMS["dense, free"]
    metric = precondition.metric(problem.form, "uniform")
    step, z = kind(problem, metric), evaluate(problem.form, inside(problem, metric, 0))
    t = LineSearch(problem.form, step, z, 1.0).t
    y, squared = step(z, 1e-5 * t)
    h, f = y - z.point, (lambda x: np.sqrt(problem.form.value(x))) if kind is RootStep else problem.value
    curvature = (f(z.point + 100 * h) - 2.0 * f(z.point) + f(z.point - 100 * h)) / (1e4 * squared)
    assert t == pytest.approx(1.0 / curvature, rel=1e-3)


@given(st.floats(1e-300, 1e300), st.sampled_from([0.0, 1.0]))
def test_kernel_scale_solves_its_cubic(square, a):
    sigma = kernel_scale(square, a)
    assert sigma > 0.0
    assert sigma**3 * square + a * sigma == pytest.approx(1.0, rel=1e-12)


def test_kernel_scale_at_zero():
    assert kernel_scale(0.0, 0.0) == 0.0
    assert kernel_scale(0.0, 1.0) == 1.0


@pytest.mark.parametrize(("q", "a"), [(1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("share", [1.0, 0.7], ids=["free", "in a ball"])
@pytest.mark.parametrize(("name", "metric"), CASES, ids=IDS)
def test_bregman_step_minimises_its_model(name, metric, q, a, share):
    problem = PROBLEMS[name]
    geometry = Geometry(problem, metric, q, a)
    x = evaluate(problem.form, inside(problem, metric, 0))
    at, level = geometry.at(x.point), 5.0 * x.rho / metric.norm(x.point) ** 4
    point, new = geometry.step(x.gradient, at, level)
    if share < 1.0:  # a ball that the step would leave
        radius = share * metric.norm(point)
        geometry = Geometry(problem, metric, q, a, radius)
        point, new = geometry.step(x.gradient, at, level)
        assert metric.norm(point) == pytest.approx(radius, rel=1e-12)

    def h(y):
        return 0.25 * q * metric.norm(y) ** 4 + 0.5 * a * metric.norm(y) ** 2

    def model(y):
        dual = (q * at.square + a) * at.dual
        return (x.gradient - problem.c) @ y + level * (h(y) - h(x.point) - dual @ (y - x.point))

    assert geometry.distance(at, new) == pytest.approx(
        h(point) - h(x.point) - ((q * at.square + a) * at.dual) @ (point - x.point), rel=1e-6
    )
    assert np.allclose(new.dual, metric.apply(point), rtol=1e-9, atol=1e-12)
    lowest = model(point)
    for seed in range(1, 6):
        other = inside(problem, metric, seed)
        for weight in (1e-3, 0.1, 1.0):
            moved = point + weight * (other * metric.norm(point) / metric.norm(other) - point)
            assert model(moved) >= lowest - 1e-9 * abs(lowest)


def test_a_search_ends_where_numbers_have_left_their_range():
    problem = instances.spectrum(30, 5, sigma_min=0.5, seed=0)
    step, y = RootStep(problem, Identity(5)), evaluate(problem.form, problem.c)
    search = LineSearch(problem.form, step, y, 1.2)
    search.line, search.ratio = (np.nan,) * 5, 0.5
    point, _ = search.shorten(y, y.point + 1.0, 5.0)
    np.testing.assert_allclose(point, y.point, atol=1e-15)


@pytest.mark.parametrize(("size", "t"), [(1e200, 1e-200), (1e300, 1e-290)], ids=["as long as x", "longer"])
def test_a_plain_step_from_a_slope_that_has_no_square(size, t):
    problem = Problem(StackedForm(np.eye(2)), [1.0, 1.0])
    step = PlainStep(problem, Identity(2))
    y, squared = step(Evaluated(np.zeros(2), 1.0, size * np.array([3.0, 4.0]), None), t)
    assert y == pytest.approx([-3.0 * size * t, -4.0 * size * t], rel=1e-12)
    assert squared == pytest.approx(25.0 * (size * t) ** 2, rel=1e-12)
