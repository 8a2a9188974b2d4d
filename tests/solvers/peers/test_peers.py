"""Do peers solve what they take, refuse what they do not, and run under the driver like any other method?"""

import copy
import math
import os
import signal
import subprocess
import threading

import numpy as np
import pytest

pytest.importorskip("clarabel")
pytest.importorskip("greenlet")

from threadpoolctl import ThreadpoolController

from quartbench import instances, testing
from quartbench.cones import Orthant
from quartbench.errors import ProblemError
from quartbench.forms import GramForm, StackedForm
from quartbench.forms.plain import DensePlain
from quartbench.model import Problem
from quartbench.precondition import metric
from quartbench.solvers import solve, solvers, starting_point
from quartbench.solvers.peers.conic import Clarabel, _solved, conic_program
from quartbench.solvers.peers.minimisers import LBFGS, SLSQP, TrustExact
from quartbench.solvers.peers.objective import Objective

#: The cones that each peer takes.
TAKES = {
    "clarabel": {"free", "centred", "orthant", "second-order"},
    "scipy-lbfgs": {"free", "centred", "orthant"},
    "scipy-newton-cg": {"free", "centred"},
    "scipy-slsqp": {"free", "centred", "orthant", "second-order"},
    "scipy-trust-exact": {"free", "centred"},
    "scipy-trust-krylov": {"free", "centred"},
}
SCIPY = [name for name in TAKES if name.startswith("scipy")]
CASES = testing.problems(seed=3)
PROBLEM = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((60, 8))), seed=0)


def unplanted(problem):
    """Return a problem on the same form and cone whose c was not made from a minimiser."""
    c = np.random.default_rng(7).standard_normal(problem.dim)
    if problem.cone.name == "second-order":
        c[0] = 0.5
    return Problem(problem.form, c, problem.cone)


def started(name, problem=PROBLEM):
    """Return the iterates of a peer, the first taken already."""
    problem = problem.normalised().problem
    identity = metric(problem.form, "identity")
    iterates = solvers()[name]().iterates(problem, identity, starting_point(problem, identity))
    next(iterates)
    return iterates


def test_peers_are_registered_as_peers_with_a_metric_that_costs_nothing():
    peers = {name: cls for name, cls in solvers().items() if getattr(cls, "peer", False)}
    assert set(peers) == set(TAKES)
    for cls in peers.values():
        assert cls.metric == "identity"
        text = cls.__doc__
        positions = [text.index(f"{word}\n") for word in ("Problem", "Algorithm", "Guarantee", "Reference")]
        assert positions == sorted(positions)


@pytest.mark.parametrize("missing", ["clarabel", "greenlet"])
def test_a_peer_whose_package_is_missing_is_not_registered(missing, run_python):
    script = f"""
import sys
sys.modules[{missing!r}] = None
from quartbench.solvers import peers, solvers
print(*(name for name, cls in solvers().items() if cls.peer))
"""
    kept = [name for name in sorted(TAKES) if (name == "clarabel") == (missing == "greenlet")]
    assert run_python(script).split() == kept


@pytest.mark.parametrize("missing", ["clarabel", "greenlet"])
def test_a_peer_whose_package_is_missing_is_asked_for_in_vain_and_the_extra_is_named(missing, run_python):
    script = f"""
import sys
sys.modules[{missing!r}] = None
from quartbench import ProblemError
from quartbench.cli import main
from quartbench.errors import EXTRAS
from quartbench.solvers import make_solver
for name, (package, extra) in EXTRAS.items():
    try:
        make_solver(name)
    except ProblemError as error:
        print(name, "pip install 'quartbench[peers]'" in str(error))
main(["list"], standalone_mode=False)
"""
    found = run_python(script)
    named = [line.removesuffix(" True") for line in found.splitlines() if line.endswith(" True")]
    assert set(named) & set(TAKES) == {name for name in TAKES if (name == "clarabel") == (missing == "clarabel")}
    assert f"with pip install 'quartbench[peers]' also {named[0]}" in " ".join(found.split())


def test_clarabel_is_imported_with_the_first_solver_not_with_the_package_nor_on_the_clock(run_python):
    script = """
import sys
from quartbench.solvers import make_solver, peers
print("clarabel" in sys.modules)
make_solver("clarabel")
print("clarabel" in sys.modules)
"""
    assert run_python(script).split() == ["False", "True"]


@pytest.mark.parametrize("name", TAKES)
def test_peers_keep_the_contract_on_the_cones_they_take(name):
    for case, line in testing.check_solver(name).items():
        cone = CASES[case.rpartition(", ")[0]].cone.name
        if cone in TAKES[name]:
            assert line.endswith(("iteration", "iterations")), (case, line)
        else:
            assert f"{name} takes subspaces" in line, (case, line)


@pytest.fixture(scope="module")
def answers():
    """Return each case as a problem with the answer of accel-homgd."""
    problems = {case: unplanted(problem) for case, problem in CASES.items()}
    return {case: (problem, solve(problem, "accel-homgd", rel_gap=1e-10)) for case, problem in problems.items()}


@pytest.mark.parametrize("name", TAKES)
def test_peers_agree_with_accel_homgd(name, answers):
    for case, (problem, ours) in answers.items():
        if problem.cone.name not in TAKES[name]:
            continue
        theirs = solve(problem, name, "identity", rel_gap=1e-9)
        assert theirs.status == "converged", case
        assert theirs.fun == pytest.approx(ours.fun, rel=2e-9), case
        distance = np.linalg.norm(problem.form.flat(theirs.x) - problem.form.flat(ours.x))
        assert distance <= 1e-3 * np.linalg.norm(problem.form.flat(ours.x)), case


@pytest.mark.parametrize("name", TAKES)
def test_tight_gaps_are_reached_and_beyond_rounding_the_method_ends(name):
    assert solve(PROBLEM, name, "identity", rel_gap=1e-12).status == "converged"
    beyond = solve(PROBLEM, name, "identity", rel_gap=1e-17)
    assert (beyond.status, beyond.gap < 1e-13) == ("stalled", True)
    assert beyond.nit < 200


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 1), (4, 4), (200, 2)])
@pytest.mark.parametrize("name", TAKES)
def test_tiny_problems_are_solved(name, m, n):
    form = StackedForm(np.random.default_rng(m).standard_normal((m, n)) + np.eye(m, n))
    problem = instances.planted(form, seed=1)
    result = solve(problem, name, "identity", rel_gap=1e-9)
    assert result.status == "converged"
    assert result.fun == pytest.approx(problem.optimum, rel=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1e60, 1e-60), (1e-60, 1e60), (1e-10, 1.0), (1e10, 1.0)])
@pytest.mark.parametrize("name", TAKES)
def test_scaling_is_harmless(name, a, b):
    rng = np.random.default_rng(0)
    rows, c = rng.standard_normal((40, 5)), rng.standard_normal(5)
    plain = solve(Problem(StackedForm(rows), c), name, "identity", rel_gap=1e-9)
    scaled = solve(Problem(StackedForm(a * rows), b * c), name, "identity", rel_gap=1e-9)
    assert scaled.status == plain.status == "converged"
    assert scaled.fun == pytest.approx(math.exp(4.0 / 3.0 * math.log(b / a)) * plain.fun, rel=1e-8)
    assert scaled.passes == plain.passes


@pytest.mark.parametrize("name", TAKES)
def test_ill_conditioned_problems_are_solved(name):
    problem = instances.planted(instances.spectrum(200, 20, 1e-3, seed=0).form, seed=0)
    result = solve(problem, name, "identity", rel_gap=1e-8)
    assert result.status == "converged"
    assert result.fun == pytest.approx(problem.optimum, rel=1e-8)


# What they refuse -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TAKES)
def test_a_cone_that_a_peer_does_not_take_is_refused_before_any_work(name):
    for problem in CASES.values():
        if problem.cone.name not in TAKES[name]:
            with pytest.raises(ProblemError, match=f"{name} takes .*, found the cone {problem.cone.name}"):
                solve(problem, name, "identity")


@pytest.mark.parametrize("solver", [TrustExact, SLSQP])
def test_more_unknowns_than_dense_matrices_allow_are_refused(solver):
    problem = Problem(GramForm(solver.largest + 1, 1), np.ones(solver.largest + 1))
    with pytest.raises(ProblemError, match=f"up to {solver.largest} unknowns, found {solver.largest + 1}"):
        solve(problem, solver, "identity")


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-8, math.nan])
def test_a_tolerance_that_is_none_is_named(tolerance):
    with pytest.raises(ProblemError, match="tolerance must lie between 0 and 1"):
        Clarabel(tolerance)


# How they run ---------------------------------------------------------------------------------------------------------


def test_every_step_of_clarabel_is_two_passes():
    problem = PROBLEM.normalised().problem
    start = starting_point(problem, metric(problem.form, "identity"))
    reads = []
    found = _solved(conic_program(Objective(problem, start)), 1e-8, reads.append)
    assert found.iterations > 3
    assert sum(reads) == 2 * found.iterations
    assert len([read for read in reads if read]) >= found.iterations  # one at a time, so that limits are seen


def test_passes_are_the_reads_of_their_functions():
    result = solve(PROBLEM, LBFGS(), "identity", rel_gap=1e-8)
    steps = np.diff(result.history.passes)
    assert result.history.passes[0] == 1  # the value at the start
    assert steps[0] >= 3  # its gradient, then value and gradient at the first point
    assert (steps[1:] >= 2).all()
    assert (steps[1:] % 2 == 0).all()
    exact = solve(PROBLEM, "scipy-trust-exact", "identity", rel_gap=1e-8)
    assert (np.diff(exact.history.passes)[1:] == 3).all()


def test_the_first_solve_of_clarabel_reaches_its_tolerance_and_counts_its_steps():
    result = solve(PROBLEM, Clarabel(1e-6), "identity", rel_gap=1e-6)
    assert result.history.reached(1e-5) == 1
    assert 10 < result.history.passes[1] < 100


@pytest.mark.parametrize("name", TAKES)
def test_iterates_descend_to_the_point_of_the_result(name):
    result = solve(PROBLEM, name, "identity", rel_gap=1e-8)
    assert result.fun == pytest.approx(result.history.value.min(), rel=1e-9)
    assert result.history.reached(1e-8) is not None


@pytest.mark.parametrize("name", TAKES)
def test_threads_of_kernels_do_not_change_the_history(name, threads):
    runs = [solve(PROBLEM, name, "identity", rel_gap=1e-6) for _ in range(2)]
    for column in ("passes", "value", "gap"):
        assert np.array_equal(runs[0].history[column], runs[1].history[column])


@pytest.mark.parametrize("name", TAKES)
def test_a_closed_generator_leaves_no_thread_and_no_setting_behind(name):
    def counts():
        return [library.num_threads for library in ThreadpoolController().lib_controllers]

    before, errors, alive = counts(), np.geterr(), threading.active_count()
    iterates = started(name)
    for _ in range(2):
        next(iterates)
        assert counts() == before
    iterates.close()
    assert (counts(), np.geterr(), threading.active_count()) == (before, errors, alive)


def test_two_runs_in_two_threads_agree_with_one():
    problem = instances.spectrum(400, 100, 0.1, seed=0)
    alone = solve(problem, "scipy-lbfgs", "identity", rel_gap=1e-8)
    before = [library.num_threads for library in ThreadpoolController().lib_controllers]
    found = [None, None]

    def work(k):
        found[k] = solve(problem, "scipy-lbfgs", "identity", rel_gap=1e-8)

    workers = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [library.num_threads for library in ThreadpoolController().lib_controllers] == before
    for other in found:
        assert other.fun == pytest.approx(alone.fun, rel=1e-7)


class Fault:
    """An adjoint that does something at its fourth call."""

    def __init__(self, monkeypatch, act):
        self.act, self.calls, self.true = act, 0, DensePlain._adjoint
        monkeypatch.setattr(DensePlain, "_adjoint", lambda terms, weights: self(terms, weights))

    def __call__(self, terms, weights):
        self.calls += 1
        if self.calls == 4:
            self.act()
        return self.true(terms, weights)


@pytest.mark.parametrize("name", SCIPY)
def test_an_exception_in_a_function_reaches_the_caller(name, monkeypatch):
    def fail():
        raise ZeroDivisionError("inside")

    iterates = started(name)
    Fault(monkeypatch, fail)
    with pytest.raises(ZeroDivisionError, match="inside"):
        list(iterates)


@pytest.mark.parametrize("name", SCIPY)
def test_ctrl_c_in_a_function_returns_the_best_point(name, monkeypatch):
    Fault(monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
    result = solve(PROBLEM, name, "identity", rel_gap=1e-14)
    assert (result.status, "keyboard" in result.message) == ("stopped", True)
    assert result.nit < 6
    assert result.fun <= result.history.value[0] * (1.0 - 1e-12)


def test_ctrl_c_ends_a_solve_of_clarabel():
    iterates = started("clarabel", instances.spectrum(4000, 100, 0.02, seed=0))
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -INT {os.getpid()}"])
    with pytest.raises(KeyboardInterrupt):
        next(iterates)
    killer.wait()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_clarabel_runs_outside_the_main_thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(solve(PROBLEM, "clarabel", "identity", rel_gap=1e-8)))
    worker.start()
    worker.join()
    assert found[0].status == "converged"


def test_a_good_start_costs_no_iteration():
    for name in TAKES:
        result = solve(PROBLEM, name, "identity", start=7.0 * PROBLEM.solution, rel_gap=1e-9)
        assert (result.status, result.nit) == ("converged", 0), name


def test_nothing_given_is_changed():
    rows, c = np.random.default_rng(1).standard_normal((60, 8)), np.random.default_rng(2).standard_normal(8)
    given = rows.copy(), c.copy()
    problem = Problem(StackedForm(rows), c, Orthant())
    before = copy.copy(problem.form.passes)
    for name in ("scipy-lbfgs", "scipy-slsqp", "clarabel"):
        solve(problem, name, "identity")
    assert np.array_equal(rows, given[0])
    assert np.array_equal(c, given[1])
    assert problem.form.passes == before
