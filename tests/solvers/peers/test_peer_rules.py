"""What peers are given and when they end, on either side of each tolerance."""

import math

import numpy as np
import pytest

pytest.importorskip("clarabel")
pytest.importorskip("greenlet")

from quartbench import instances, testing
from quartbench.forms import StackedForm
from quartbench.forms.budget import SpentError
from quartbench.model import Problem
from quartbench.precondition import metric
from quartbench.runtime.blas import CHANGING
from quartbench.solvers import starting_point
from quartbench.solvers.peers import conic, minimisers
from quartbench.solvers.peers.conic import Clarabel, _solved, conic_program
from quartbench.solvers.peers.minimisers import SLSQP, TrustExact, TrustKrylov, _OwnThreads
from quartbench.solvers.peers.objective import Objective

PROBLEM = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((60, 8))), seed=0)


def objective_of(problem=PROBLEM):
    problem = problem.normalised().problem
    return problem, Objective(problem, starting_point(problem, metric(problem.form, "identity")))


# Clarabel -------------------------------------------------------------------------------------------------------------


def tolerances(method, monkeypatch):
    """Return the tolerances of the solves that a run of Clarabel makes."""
    asked, true = [], conic._solved

    def solved(program, tolerance, read):
        asked.append(tolerance)
        return true(program, 1e-6, read)  # which is reached every time

    monkeypatch.setattr(conic, "_solved", solved)
    problem, objective = objective_of()
    list(method.iterates(problem, None, objective.sigma * objective.z / problem.inner(objective.sigma * objective.z)))
    return asked


def test_solves_are_a_hundred_times_tighter_each_as_far_as_thirteen_digits(monkeypatch):
    assert tolerances(Clarabel(), monkeypatch) == pytest.approx([1e-8, 1e-10, 1e-12], rel=1e-9)


@pytest.mark.parametrize(("tolerance", "count"), [(1.4e-13, 1), (0.9e-13, 0), (1.4e-11, 2), (0.9e-11, 1)])
def test_no_solve_is_tried_beyond_thirteen_digits(tolerance, count, monkeypatch):
    assert len(tolerances(Clarabel(tolerance), monkeypatch)) == count


def test_a_limit_ends_a_solve_at_once():
    reads = []

    def read(count):
        reads.append(count)
        if len(reads) == 3:
            raise SpentError("max_passes")

    with pytest.raises(SpentError):
        _solved(conic_program(objective_of()[1]), 1e-8, read)
    assert len(reads) == 3


@pytest.mark.parametrize("rank", [1, 3])
def test_squares_of_images_are_of_order_one_at_the_start(rank, monkeypatch):
    # The fourth powers of images, over the unit that they are divided by, have mean one over the terms.
    form = StackedForm(5.0 * np.random.default_rng(1).standard_normal((60, 8)), rank)
    problem, objective = objective_of(instances.planted(form, seed=0))
    units, true = [], type(problem.form).epigraph
    monkeypatch.setattr(type(problem.form), "epigraph", lambda form, unit: units.append(unit) or true(form, unit))
    conic_program(objective)
    rho = problem.form.value(objective.sigma * objective.z)
    assert rho / units[0] ** 4 / problem.form.terms == pytest.approx(1.0, rel=1e-9)


# SciPy ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TrustKrylov, TrustExact])
def test_a_trust_region_leaves_where_trlib_does_not_yet_take_the_gradient_for_zero(kind):
    # ‖g‖² ≤ 2e-16 is zero to trlib.
    left, zero = kind().arguments(objective_of()[1])["options"]["gtol"], math.sqrt(2e-16)
    assert 2.0 * zero < left < 10.0 * zero


def test_slsqp_goes_on_while_f_falls_by_what_a_double_can_show():
    # f̃ is about −1 and falls: doubles below one are half an ε apart there.
    assert 0.0 < SLSQP().arguments(objective_of()[1])["options"]["ftol"] < 2.0**-53


class Library:
    """Stands for the BLAS of SciPy."""

    def __init__(self, count):
        self.num_threads, self.told = count, []

    def set_num_threads(self, count):
        self.told.append(count)


@pytest.mark.parametrize(("count", "small", "told"), [(4, True, [1, 4]), (1, True, []), (4, False, []), (1, False, [])])
def test_tiny_matrices_have_one_thread_and_give_the_others_back(count, small, told, monkeypatch):
    library = Library(count)
    monkeypatch.setattr(minimisers, "_scipy_blas", lambda: library)
    with _OwnThreads(small):
        assert CHANGING.acquire(blocking=False) is not bool(told)
        if not told:
            CHANGING.release()
    assert library.told == told
    assert CHANGING.acquire(blocking=False)
    CHANGING.release()


def test_threads_that_somebody_else_is_changing_are_left_alone(monkeypatch):
    library = Library(4)
    monkeypatch.setattr(minimisers, "_scipy_blas", lambda: library)
    assert CHANGING.acquire(blocking=False)
    try:
        with _OwnThreads(True):
            pass
    finally:
        CHANGING.release()
    threads = _OwnThreads(True)
    assert CHANGING.acquire(blocking=False)
    try:
        with threads:
            pass
    finally:
        CHANGING.release()
    assert library.told == []


# The functions that they are given ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("slip", "passes"), [(0.0, 0), (0.7e-12, 0), (1.4e-12, 1), (1e-3, 1)])
def test_f_is_computed_anew_where_a_point_has_left_the_cone_by_more_than_rounding(size, slip, passes):
    problem = Problem(StackedForm(np.random.default_rng(0).standard_normal((20, 3))), size * np.ones(3), "orthant")
    objective = Objective(problem, starting_point(problem, metric(problem.form, "identity")))
    z = np.array([0.5, 1.0, -slip])
    value, before = objective.value(z), problem.form.passes
    objective.value(objective.z)
    before = problem.form.passes
    found = objective.iterate(z, value)
    assert problem.form.passes - before == passes
    assert found.value == pytest.approx(problem.homogenised_value(found.point), rel=1e-9)


@pytest.mark.parametrize("name", [name for name in testing.problems(seed=5) if "centred" in name])
def test_translations_have_the_mean_curvature_of_the_rest(name):
    problem, objective = objective_of(testing.problems(seed=5)[name])
    n, x = problem.dim, objective.sigma * objective.z
    onto = np.array([problem.cone.euclidean(unit) for unit in np.eye(n)])
    dense = np.array([problem.form.hessian_product(x, unit) for unit in np.eye(n)])
    inside = objective.sigma**2 / objective.unit * onto @ dense @ onto
    expected = inside + np.trace(inside) / n * (np.eye(n) - onto)
    np.testing.assert_allclose(objective.hessian(objective.z), expected, atol=1e-10 * np.abs(expected).max())
