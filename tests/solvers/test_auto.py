"""Does the automatic choice suit the problem, say what it chose, and change its mind where that pays?"""

import numpy as np
import pytest

from quartbench import instances, testing
from quartbench.cones import Orthant
from quartbench.forms import StackedForm
from quartbench.linalg.conjugate_gradients import conjugate_gradients
from quartbench.model import Problem
from quartbench.solvers import solve
from quartbench.solvers.auto import CHEAP, SMALL, Auto, Conditioning
from quartbench.solvers.homnewton_cg import product_at
from quartbench.solvers.steps import evaluate

#: Of so many unknowns that a factor is not made without a look at the conditioning.
UNDECIDED = (600, 520)


def test_solve_uses_it_and_the_message_says_what_and_why():
    problem = instances.spectrum(200, 20, 0.1)
    result = solve(problem)
    assert (result.solver, result.success) == ("auto", True)
    assert result.message.endswith("; homnewton, as n = 20 is small")
    assert "the certified relative gap" in result.message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dense, free", "homnewton, as n = 8 is small"),
        ("dense, orthant", "homnewton, as n = 8 is small"),
        ("dense, second-order", "homnewton, as n = 8 is small"),
        ("graph, centred", "homnewton, as n = 24 is small"),
        ("Gram, free", "homnewton-cg as no metric is better on this form"),
    ],
)
def test_choice_by_form_and_cone(name, said):
    assert said in solve(testing.problems()[name]).message


def test_choice_by_size():
    cheap = solve(instances.spectrum(500, SMALL + 40, 0.1))
    assert (cheap.metric, cheap.success) == ("uniform", True)
    assert "homnewton-cg preconditioned by uniform, which costs" in cheap.message
    many = instances.orthant(700, 5 * SMALL + 1)
    assert "in the metric diagonal, as the cone is the orthant" in solve(many).message


def test_it_makes_a_factor_during_the_run_where_that_pays():
    problem = instances.spectrum(*UNDECIDED, 0.005, seed=0)
    assert problem.form.factor_cost() > CHEAP
    result = solve(problem, rel_gap=1e-10)
    assert result.success
    assert "at first without a factor; conjugate gradients saw a condition number of some" in result.message
    without = solve(problem, "homnewton-cg", "identity", rel_gap=1e-10)
    assert result.passes < without.passes


def test_it_makes_no_factor_where_rows_are_well_conditioned():
    problem = instances.spectrum(*UNDECIDED, 0.9, seed=0)
    result = solve(problem)
    assert result.success
    assert result.metric == "identity"
    assert "without a factor, which would cost more than it saves" in result.message


def test_a_stopped_run_does_not_tell_of_a_factor_that_it_never_made():
    problem = instances.spectrum(*UNDECIDED, 0.005, seed=0)
    for _ in range(2):  # the first takes a few steps to warm up, on which it may have made one
        assert "at first" not in solve(problem, Auto(), max_iter=0, rel_gap=1e-14).message


def test_one_instance_serves_one_problem_after_another():
    method, cases = Auto(), testing.problems()
    for name in ("dense, free", "dense, second-order", "graph, centred", "dense, orthant"):
        assert solve(cases[name], method).message == solve(cases[name], "auto").message


def test_tighter_gaps_are_reached():
    for sigma_min in (0.005, 0.3):
        problem = instances.spectrum(*UNDECIDED, sigma_min, seed=1)
        assert solve(problem, rel_gap=1e-12).success


@pytest.mark.parametrize("condition", [10.0, 1e3])
def test_conditioning_is_that_of_the_matrix(condition):
    # Identity rows at x make the Hessian diagonal, 12xᵢ², and B = I: the condition number is known.
    n = 30
    form = StackedForm(np.eye(n))
    y = evaluate(form, np.sqrt(np.geomspace(1.0, condition, n)))
    r = np.random.default_rng(0).standard_normal(n)
    watch = Conditioning(1000)
    e = conjugate_gradients(product_at(form, y), r, lambda v: v, share=1e-10, watch=watch).x
    hessian = np.diag(12.0 * y.point**2)
    assert hessian @ e == pytest.approx(r, rel=1e-6)
    assert watch.condition() == pytest.approx(np.linalg.cond(hessian), rel=0.05)


def test_conditioning_in_a_metric_is_that_of_the_preconditioned_matrix():
    rng = np.random.default_rng(0)
    form = StackedForm(rng.standard_normal((60, 12)))
    y = evaluate(form, rng.standard_normal(12))
    hessian = np.array([form.hessian_product(y.point, column) for column in np.eye(12)])
    factor = np.linalg.cholesky(np.diag(rng.uniform(1.0, 50.0, 12)))
    r = rng.standard_normal(12)
    watch = Conditioning(1000)

    def solve_with(v):
        return np.linalg.solve(factor @ factor.T, v)

    conjugate_gradients(product_at(form, y), r, solve_with, share=1e-10, watch=watch)
    inner = np.linalg.inv(factor)
    assert watch.condition() == pytest.approx(np.linalg.cond(inner @ hessian @ inner.T), rel=0.05)


def test_conditioning_knows_nothing_at_first():
    assert Conditioning(5).condition() == 1.0


def test_a_metric_of_the_user_is_used():
    problem = Problem(StackedForm(np.random.default_rng(0).standard_normal((200, 70))), np.ones(70))
    for metric in ("identity", "lewis", "diagonal"):
        result = solve(problem, "auto", metric, rel_gap=1e-9)
        assert (result.metric, result.success) == (metric, True)
    assert solve(Problem(problem.form, problem.c, Orthant()), "auto", "identity").metric == "identity"
