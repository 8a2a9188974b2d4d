"""Do the methods find what an interior-point method finds, on every form and cone?"""

import numpy as np
import pytest

from quartbench import testing
from quartbench.errors import ProblemError
from quartbench.model import Problem
from quartbench.solvers import AccelHomGD, Bregman, solve, solvers

from .reference import clarabel_solution

#: Ours: those of others are held to what they promise in tests/solvers/peers, those on samples in tests/distributed.
OWN = [name for name, cls in solvers().items() if not cls.peer and cls.__module__.startswith("quartbench.solvers")]

CASES = testing.problems(seed=3)
VARIANTS = [*OWN, AccelHomGD("scheduled"), AccelHomGD("none"), Bregman("quartic+quadratic")]


def unplanted(problem):
    """Return a problem on the same form and cone whose c was not made from a minimiser."""
    c = np.random.default_rng(7).standard_normal(problem.dim)
    if problem.cone.name == "second-order":
        c[0] = 0.5
    return Problem(problem.form, c, problem.cone)


@pytest.fixture(scope="module")
def references():
    """Return each case as a problem with Clarabel's minimiser and minimum."""
    found = {}
    for name, case in CASES.items():
        problem = unplanted(case)
        found[name] = (problem, *clarabel_solution(problem))
    return found


@pytest.mark.parametrize("solver", VARIANTS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_solver_agrees_with_clarabel(name, solver, references):
    problem, x, value = references[name]
    if problem.cone.name == "second-order" and solver in ("homcg", "homnewton-cg"):
        with pytest.raises(ProblemError, match=r"takes cones with directions .*, found 'second-order'"):
            solve(problem, solver)
        return
    result = solve(problem, solver, rel_gap=1e-9)
    assert result.status == "converged"
    assert result.fun == pytest.approx(value, rel=1e-6)
    assert np.linalg.norm(problem.form.flat(result.x) - x) <= 1e-3 * np.linalg.norm(x)


@pytest.mark.parametrize("name", CASES)
def test_planted_minimiser_is_clarabel_s(name):
    problem = CASES[name]
    _, value = clarabel_solution(problem)
    assert value == pytest.approx(problem.optimum, rel=1e-6)
