"""Are the functions that peers are given f, its gradient and its Hessian, and are their passes counted?"""

import numpy as np
import pytest

from quartbench import instances, testing
from quartbench.errors import ProblemError
from quartbench.forms import Form, StackedForm
from quartbench.model import Problem
from quartbench.precondition import metric
from quartbench.solvers import starting_point
from quartbench.solvers.peers.objective import BreakdownError, Objective

CASES = testing.problems(seed=5) | {
    "sparse, rank 2": instances.planted(StackedForm(instances.sparse(60, 8, 0.4, seed=5).form.rows, rank=2), seed=5)
}


def objective_of(problem):
    problem = problem.normalised().problem
    return problem, Objective(problem, starting_point(problem, metric(problem.form, "identity")))


def near(objective, seed=0):
    """Return a point of the cone near the start, in the variables of the objective."""
    noise = 0.3 * np.random.default_rng(seed).standard_normal(objective.z.size) / np.sqrt(objective.z.size)
    return objective.cone.euclidean(objective.z + noise)


def scaled(problem, a, b):
    return Problem(problem.form.scaled(a), b * problem.c, problem.cone)


@pytest.mark.parametrize("scale", [(1.0, 1.0), (1e60, 1e-60), (1e-60, 1e60)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_functions_are_those_of_the_form(name, scale):
    problem, objective = objective_of(scaled(CASES[name], *scale))
    z = near(objective)
    x, unit, sigma = objective.sigma * z, objective.unit, objective.sigma
    value, gradient = problem.value_and_gradient(x)
    onto = problem.cone.euclidean if problem.cone.name == "centred" else lambda v: v
    assert objective.value(z) == pytest.approx(value / unit, rel=1e-12)
    close(objective.gradient(z), onto(gradient) * sigma / unit)
    v = onto(np.random.default_rng(1).standard_normal(z.size))
    product = onto(problem.form.hessian_product(x, v)) * sigma**2 / unit
    close(objective.hessian_product(z, v), product)
    close(objective.hessian(z) @ v, product)


def close(found, wanted):
    assert np.abs(found - wanted).max() <= 1e-11 * np.abs(wanted).max()


@pytest.mark.parametrize("name", [name for name in CASES if "centred" in name])
def test_dense_hessians_are_definite_on_translations_too(name):
    _, objective = objective_of(CASES[name])
    hessian = objective.hessian(objective.z)
    eigenvalues = np.linalg.eigvalsh(hessian)
    assert eigenvalues[0] > 1e-6 * eigenvalues[-1]
    translation = np.tile(np.eye(2)[0], objective.form.shape[0])
    moved = hessian @ translation
    close(moved, (moved @ translation) / (translation @ translation) * translation)


@pytest.mark.parametrize("name", CASES)
def test_the_start_is_the_best_point_of_its_ray_in_units_of_one(name):
    problem, objective = objective_of(CASES[name])
    assert objective.value(objective.z) == pytest.approx(-1.0)
    assert np.linalg.norm(objective.z) == pytest.approx(1.0)
    assert objective.gradient(objective.z) @ objective.z == pytest.approx(0.0, abs=1e-12)
    iterate = objective.iterate(objective.z, -1.0)
    assert iterate.value == pytest.approx(problem.value(iterate.point))


def test_reads_of_the_rows_are_counted():
    problem, objective = objective_of(CASES["dense, free"])
    passes = []
    z = near(objective)
    for call in (
        lambda: objective.gradient(objective.z),  # the image of the start is known
        lambda: objective.value(z),
        lambda: objective.gradient(z),
        lambda: objective.value(z.copy()),
        lambda: objective.hessian_product(z, z),
        lambda: objective.hessian(z),
        lambda: objective.hessian_product(objective.z, z),
    ):
        before = problem.form.passes
        call()
        passes.append(problem.form.passes - before)
    assert passes == [1, 1, 1, 0, 2, 1, 3]


@pytest.mark.parametrize("name", CASES)
def test_iterates_carry_the_value_at_the_best_point_of_the_ray(name):
    problem, objective = objective_of(CASES[name])
    z = 1.1 * near(objective)
    iterate = objective.iterate(z, objective.value(z))
    assert iterate.value == pytest.approx(problem.homogenised_value(iterate.point), rel=1e-12)
    away = objective.iterate(-objective.z, objective.value(-objective.z))
    assert away.value == pytest.approx(problem.value(away.point), abs=1e-12)


def test_points_that_left_the_cone_are_moved_into_it_and_evaluated_there():
    problem, objective = objective_of(CASES["dense, second-order"])
    z = objective.z.copy()
    z[0] *= 0.5
    iterate = objective.iterate(z, objective.value(z))
    assert np.linalg.norm(iterate.point[1:]) <= iterate.point[0] * (1.0 + 1e-14)
    assert iterate.value == pytest.approx(problem.homogenised_value(iterate.point), rel=1e-12)


def test_magnified_values_are_the_same_function():
    _, objective = objective_of(CASES["rank 3, free"])
    z = near(objective)
    value, gradient, iterate = objective.value(z), objective.gradient(z), objective.iterate(z, objective.value(z))
    objective.magnify(1e4)
    assert objective.value(z) == pytest.approx(1e4 * value)
    close(objective.gradient(z), 1e4 * gradient)
    assert objective.iterate(z, objective.value(z)).value == pytest.approx(iterate.value, rel=1e-13)


def test_single_precision_rows_are_read_in_double():
    rows = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    for stored in (rows, instances.sparse(30, 4, 0.5, seed=0).form.rows.astype(np.float32)):
        problem, objective = objective_of(Problem(StackedForm(stored), np.ones(4)))
        assert objective.plain.matrix.dtype == np.float64
        assert objective.value(objective.z) == pytest.approx(-1.0, rel=1e-14)
        assert problem.form.rows.dtype == np.float32


def test_a_point_that_is_no_number_is_refused():
    _, objective = objective_of(CASES["dense, free"])
    with pytest.raises(BreakdownError):
        objective.value(np.full(8, np.nan))


def test_a_form_without_functions_is_named():
    with pytest.raises(ProblemError, match="Form has no functions for peers"):
        Form().plain()
