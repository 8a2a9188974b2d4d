"""Does a problem know f, its homogenisation and its scale?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from quartbench.cones import Centred, Free, Orthant, SecondOrder
from quartbench.forms import GramForm, GraphForm, StackedForm
from quartbench.model import Problem
from tests.forms.random_forms import KINDS, forms, make, pairs, point
from tests.kernels import plain

from .planted import CASES, exact, near, planted, true_gap


def problem_of(form, rng):
    return Problem(form, point(form, rng), Centred() if isinstance(form, GraphForm) else Free())


# f --------------------------------------------------------------------------------------------------------------------


@given(st.data())
def test_f_is_the_form_less_a_linear_function(data):
    form = data.draw(forms())
    x, v = data.draw(pairs(form))
    problem = problem_of(form, np.random.default_rng(0))
    value, gradient = problem.value_and_gradient(x)
    size = form.value(x) + abs(problem.c @ x)
    assert value == pytest.approx(form.value(x) - problem.c @ x, abs=1e-14 * size)
    assert problem.value(x) == pytest.approx(value, abs=1e-14 * size)
    plain.close(gradient, form.gradient(x) - problem.c)
    plain.identical(problem.gradient(x), gradient)
    assert problem.inner(v) == problem.c @ v
    assert problem.dim == form.dim


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_c_keep_their_shape(kind):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    rng = np.random.default_rng(1)
    c, x = point(form, rng), point(form, rng)
    cone = Centred() if kind == "graph" else Free()
    flat, native = Problem(form, c, cone), Problem(form, form.native(c), cone)
    plain.identical(flat.c, native.c)
    for ask in ("gradient", "point"):
        answer = getattr(flat, ask)(form.native(x))
        assert (answer.shape, answer.dtype) == (form.shape, form.dtype)
        plain.close(form.flat(answer), getattr(flat, ask)(x), 1e-15)
    assert flat.root_and_gradient(form.native(x))[1].shape == form.shape
    assert flat.value(form.native(x)) == flat.value(x)


def test_c_is_kept_safe():
    c = np.array([1.0, 2.0])
    problem = Problem(StackedForm(np.eye(2)), c)
    c[0] = 7.0
    assert problem.c.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        problem.c[0] = 3.0


def test_each_question_costs_one_pass():
    problem = problem_of(make("dense", 4, 2, 6, "gaussian", 0), np.random.default_rng(0))
    x = np.ones(4)
    for ask in ("value", "gradient", "value_and_gradient", "homogenised_value", "root_and_gradient", "point"):
        before = problem.form.passes
        getattr(problem, ask)(x)
        assert problem.form.passes - before == 1


# The homogenised problem ----------------------------------------------------------------------------------------------


@given(st.data())
def test_the_best_point_of_a_ray_minimises_f_along_it(data):
    form = data.draw(forms())
    y, _ = data.draw(pairs(form))
    problem = problem_of(form, np.random.default_rng(0))
    if problem.inner(y) < 0.0:
        y = -y
    s = problem.best_scale(form.value(y), problem.inner(y))
    found = problem.homogenised_value(y)
    # Eq. (4.2): f_hom(y) = f(s(y)y) = −3/4^{4/3} ([⟨c,y⟩]₊⁴/ρ(y))^{1/3}.
    assert found == pytest.approx(problem.value(s * y), rel=1e-9)
    assert found == pytest.approx(-3.0 / 4.0 ** (4.0 / 3.0) * np.cbrt(problem.inner(y) ** 4 / form.value(y)), rel=1e-11)
    plain.close(problem.point(y), s * y)
    ray = minimize_scalar(lambda t: problem.value(t * s * y), bounds=(0.0, 4.0), method="bounded")
    assert found <= ray.fun + 1e-12 * abs(found)
    assert ray.x == pytest.approx(1.0, abs=1e-4)


@given(st.data())
def test_the_homogenised_value_depends_on_the_direction_only(data):
    form = data.draw(forms())
    y, _ = data.draw(pairs(form))
    problem = problem_of(form, np.random.default_rng(0))
    wanted = problem.homogenised_value(y)
    assert problem.homogenised_value(1e3 * y) == pytest.approx(wanted, rel=1e-11)
    assert problem.homogenised_value(-y) == 0.0 or problem.homogenised_value(y) == 0.0


@given(st.data())
def test_the_root_and_its_gradient(data):
    form = data.draw(forms())
    y, v = data.draw(pairs(form))
    problem = problem_of(form, np.random.default_rng(0))
    root, gradient = problem.root_and_gradient(y)
    assert root == pytest.approx(np.sqrt(form.value(y)))
    # √ρ has degree 2: ⟨∇√ρ(y),y⟩ = 2√ρ(y); and it is the derivative along v, by the line of ρ.
    assert gradient @ y == pytest.approx(2.0 * root, rel=1e-11)
    assert gradient @ v == pytest.approx(form.line(y, v)[1] / (2.0 * root), rel=1e-9, abs=1e-11 * root)


def test_the_root_is_differentiable_at_zero():
    problem = problem_of(make("dense", 4, 2, 6, "gaussian", 0), np.random.default_rng(0))
    root, gradient = problem.root_and_gradient(np.zeros(4))
    assert root == 0.0
    assert not gradient.any()
    assert problem.point(np.zeros(4)).tolist() == [0.0] * 4
    assert problem.homogenised_value(np.zeros(4)) == 0.0


@pytest.mark.parametrize(("kind", "cone"), CASES)
def test_the_relative_gap_follows_from_the_homogenised_one(kind, cone):
    # errata 9 of the documentation: for y on ⟨c,y⟩ = 1 with √ρ(y) = (1+δ)√ρ(y*), the gap of s(y)y is
    # 1 − (1+δ)^{−2/3} exactly.
    problem = planted(kind, cone, 1)
    best = problem.solution / problem.inner(problem.solution)
    for distance in (0.3, 1e-2, 1e-4):
        x = near(problem, distance)
        y = x / problem.inner(x)
        delta = np.sqrt(problem.form.value(y) / problem.form.value(best)) - 1.0
        assert problem.relative_gap(delta) == pytest.approx(true_gap(problem, x), rel=1e-6, abs=1e-13)
        by_values = 1.0 - problem.homogenised_value(y) / problem.optimum
        assert problem.relative_gap(delta) == pytest.approx(by_values, rel=1e-6, abs=1e-13)


def test_the_relative_gap_keeps_its_digits_when_it_is_small():
    for delta in (1e-18, 1e-12, 1e-3):
        assert Problem.relative_gap(delta) == pytest.approx(2.0 / 3.0 * delta * (1.0 - 5.0 / 6.0 * delta), rel=1e-5)
    assert Problem.relative_gap(0.0) == 0.0
    assert Problem.relative_gap(np.inf) == 1.0


@pytest.mark.parametrize(("kind", "cone"), CASES)
def test_at_the_optimum_f_is_three_quarters_of_the_linear_part(kind, cone):
    # f* = −¾⟨c,x*⟩ = −3ρ(x*), s(x*) = 1, and no point of the cone is better.
    for seed in range(3):
        problem = planted(kind, cone, seed)
        x, optimum = problem.solution, problem.optimum
        assert optimum == -3.0 * float(exact(problem.form, x))
        assert problem.value(x) == pytest.approx(optimum, rel=1e-13)
        assert -0.75 * problem.inner(x) == pytest.approx(optimum, rel=1e-13)
        assert problem.best_scale(problem.form.value(x), problem.inner(x)) == pytest.approx(1.0, rel=1e-13)
        for distance in (1.0, 1e-2, 1e-4):
            assert problem.homogenised_value(near(problem, distance)) >= optimum * (1.0 + 1e-13)


# Scale ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c_scale", [1e-60, 3.0, 1e60])
@pytest.mark.parametrize("row_scale", [1e-60, 3.0, 1e60])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "complex"])
def test_a_normalised_problem_has_moderate_numbers_and_a_way_back(kind, row_scale, c_scale):
    if kind == "float32" and row_scale != 3.0:
        row_scale = {1e-60: 1e-30, 1e60: 1e30}[row_scale]
    form = make(kind, 4, 2, 6, "gaussian", 0)
    rng = np.random.default_rng(0)
    c, x = c_scale * point(form, rng), point(form, rng)
    rows = form.rows * form.rows.dtype.type(row_scale)
    big = type(form)(rows) if kind == "complex" else StackedForm(rows, form.rank)
    problem = Problem(big, c, solution=x, optimum=-1.0)
    twin, x_scale, f_scale = problem.normalised()
    assert 1e-15 <= twin.form.magnitude <= 1e15
    assert np.abs(twin.c).max() == pytest.approx(1.0)
    assert np.isfinite([x_scale, f_scale]).all()
    # f(x) = f_scale·f'(x/x_scale): compare in logarithms, as f itself may leave the floating-point range.
    there = twin.value(x)
    assert np.isfinite(there)
    assert np.log(abs(problem.value(x_scale * x))) == pytest.approx(np.log(f_scale) + np.log(abs(there)), rel=1e-12)
    plain.close(twin.solution * x_scale, x)
    assert twin.optimum * f_scale == pytest.approx(-1.0)
    assert np.shares_memory(twin.form.rows if kind != "sparse" else twin.form.rows.data, big.rows.data)
    assert twin.cone is problem.cone
    assert problem.form.scale == 1.0


@pytest.mark.parametrize("scale", [1e-60, 1e60])
@pytest.mark.parametrize(("kind", "cone"), [("graph", "centred"), ("gram", "orthant")])
def test_forms_without_rows_are_normalised_by_c(kind, cone, scale):
    problem = planted(kind, cone, 1)
    scaled = Problem(problem.form, scale * problem.c, problem.cone)
    twin, x_scale, f_scale = scaled.normalised()
    x = near(problem, 0.1)
    assert problem.homogenised_value(x) * scale ** (4.0 / 3.0) == pytest.approx(f_scale * twin.homogenised_value(x))
    assert x_scale**3 == pytest.approx(np.abs(scaled.c).max())


def test_the_optimum_scales_as_the_theory_says():
    # f*(A·a, c·b) = (b/a)^{4/3} f*(A, c).
    problem = planted("dense", "free", 1)
    a, b = 7.0, 0.3
    scaled = Problem(StackedForm(a * problem.form.rows), b * problem.c)
    assert scaled.homogenised_value(problem.solution) == pytest.approx((b / a) ** (4.0 / 3.0) * problem.optimum)


# Trivial problems -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "c", "cone"),
    [
        (StackedForm(np.eye(3)), [-1.0, 0.0, -2.0], Orthant()),
        (StackedForm(np.eye(3)), [-5.0, 3.0, 4.0], SecondOrder()),
        (GramForm(2, 2), -np.ones((2, 2)), Orthant()),
        (GraphForm(3, 2, [(0, 1), (1, 2)]), np.tile([0.1, 0.7], (3, 1)), Centred()),
    ],
    ids=["orthant", "second-order", "gram orthant", "centred"],
)
@pytest.mark.parametrize("scale", [1.0, 1e60, 1e-60, 1e-170])
def test_c_in_the_polar_cone_is_no_error_and_its_minimum_is_zero(form, c, cone, scale):
    problem = Problem(form, scale * np.array(c), cone)
    assert problem.trivial
    assert problem.optimum == 0.0
    assert problem.normalised().problem.trivial


@pytest.mark.parametrize("scale", [1.0, 1e60, 1e-60, 1e170, 1e-170])
def test_other_problems_are_not_trivial(scale):
    for cone in (Free(), Orthant(), SecondOrder()):
        assert not Problem(StackedForm(np.eye(3)), scale * np.array([1.0, 0.2, -0.3]), cone).trivial


def test_only_the_centred_part_of_c_matters():
    form = make("graph", 4, 2, 6, "gaussian", 0)
    c = point(form, np.random.default_rng(0)).reshape(form.shape)
    moved = Problem(form, c + np.array([3.0, -7.0]), Centred())
    plain.close(moved.c, c.ravel(), 1e-14)
    assert np.abs(moved.c.reshape(form.shape).sum(axis=0)).max() <= 1e-14
    assert "Centred" in repr(moved)
    assert "GraphForm" in repr(moved)
