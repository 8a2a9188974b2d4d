"""Do the findings of the paper's §6 come out, at its sizes or half of them, and does an iteration cost one pass?"""

import numpy as np
import pytest

from quartbench import instances
from quartbench.forms import StackedForm
from quartbench.metrics import Bounds, Diagonal
from quartbench.model import Problem
from quartbench.solvers import GD, AccelHomGD, Bregman, HomGD, solve


@pytest.fixture(scope="module", params=[0.2, 0.02], ids=["σ_min = 0.2", "σ_min = 0.02"])
def spectrum(request):
    """Return the instance of Figure 1 and σ_min; the slow one at half its size, as σ_min alone decides the counts."""
    m, n = {0.2: (2000, 1000), 0.02: (1000, 500)}[request.param]
    return instances.spectrum(m, n, request.param, seed=0), request.param


@pytest.fixture(scope="module")
def descents(spectrum):
    """Return the runs of GD and HomGD to 1e-2 in the Euclidean norm."""
    return {name: solve(spectrum[0], name, "identity", rel_gap=1e-2, max_iter=4000) for name in ("gd", "homgd")}


@pytest.fixture(scope="module")
def accelerated(spectrum):
    """Return the runs of the accelerated method with restarts to 1e-10."""
    return {
        restart: solve(spectrum[0], AccelHomGD(restart), "identity", rel_gap=1e-10, max_iter=4000)
        for restart in ("scheduled", "adaptive")
    }


def test_gd_and_homgd_take_about_as_many_iterations(descents):
    gd, homgd = descents["gd"], descents["homgd"]
    assert gd.status == homgd.status == "converged"
    assert 0.5 <= gd.nit / homgd.nit <= 2.0


def test_acceleration_helps_where_the_problem_is_ill_conditioned(spectrum, descents, accelerated):
    if spectrum[1] == 0.02:
        for run in accelerated.values():
            assert 3 * run.history.reached(1e-2) <= descents["homgd"].history.reached(1e-2)


def test_restarts_are_not_just_a_theoretical_construct(spectrum, accelerated):
    reached = {restart: run.history.reached(1e-10) for restart, run in accelerated.items()}
    assert None not in reached.values()
    enough = int(1.5 * max(reached.values()))
    without = solve(spectrum[0], AccelHomGD("none"), "identity", certify=False, max_iter=enough)
    lower = max(run.lower_bound for run in accelerated.values())
    assert (without.history.value.min() - lower) / -lower > 1e-10


@pytest.mark.parametrize("step", ["fixed", "armijo"])
@pytest.mark.parametrize("active", [1, 5])
def test_on_degenerate_rows_the_schedule_is_behind_and_adaptive_restarts_are_not(active, step):
    gaps = {}
    for restart in ("none", "scheduled", "adaptive"):
        problems = [instances.degenerate(60, 20, active, seed=seed) for seed in range(5)]
        runs = [solve(one, AccelHomGD(restart, step), "identity", certify=False, max_iter=3000) for one in problems]
        ends = [run.history.value.min() / one.optimum for run, one in zip(runs, problems, strict=True)]
        gaps[restart] = np.median(1.0 - np.array(ends))
    assert gaps["scheduled"] > 20.0 * gaps["none"]
    assert gaps["adaptive"] < 10.0 * gaps["none"]


def test_line_searches_take_at_most_a_quarter_pass_more_than_one_an_iteration(descents, accelerated):
    for run in (descents["homgd"], *accelerated.values()):
        assert run.passes / run.nit <= 1.25


@pytest.fixture(scope="module")
def tall():
    """Return a 2000 × 1000 problem in a metric whose β is at hand: the diagonal of B⁽⁰⁾ for rows of one entry."""
    rows = np.zeros((2000, 1000))
    rows[np.arange(2000), np.arange(2000) % 1000] = np.linspace(1.0, 2.0, 2000)
    problem = Problem(StackedForm(rows), np.ones(1000))
    metric = Diagonal((rows**2).sum(axis=0))
    metric._bounds = Bounds(2.0**-0.5, 1.0)  # (a² + b²)²/2 ≤ a⁴ + b⁴ ≤ (a² + b²)² in every coordinate
    return problem, metric


@pytest.mark.parametrize(
    "solver",
    [HomGD("fixed"), AccelHomGD("none", "fixed"), AccelHomGD("scheduled", "fixed"), AccelHomGD(step="fixed")],
    ids=repr,
)
def test_fixed_steps_take_exactly_one_pass_an_iteration(tall, solver):
    run = solve(tall[0], solver, tall[1], certify=False, max_iter=40)
    assert run.history.passes.tolist() == list(range(1, 42))


@pytest.mark.parametrize("metric", ["identity", "uniform", "lewis"])
@pytest.mark.parametrize("solver", [GD(), Bregman(), HomGD(), AccelHomGD("scheduled"), AccelHomGD()], ids=repr)
def test_line_searches_cost_little_on_small_problems_too(solver, metric):
    problem = instances.spectrum(200, 50, 0.05, seed=1)
    run = solve(problem, solver, metric, certify=False, max_iter=150)
    assert run.passes / run.nit <= 1.25


@pytest.fixture(scope="module", params=["generic", "givens"])
def coherent(request):
    """Return the two instances of Figure 2. Of the Givens rows five are coherent: one alone hardly slows a search."""
    peaks = {"generic": 1, "givens": 5}[request.param]
    low = instances.coherent(500, 20, gamma=20 / 500, cond=100.0, seed=1, kind=request.param)
    return {"low": low, "high": instances.coherent(500, 20, 0.999, 100.0, seed=1, kind=request.param, peaks=peaks)}


@pytest.mark.parametrize("coherence", ["low", "high"])
def test_both_preconditioners_beat_the_euclidean_norm_tenfold(coherent, coherence):
    problem = coherent[coherence]
    counts = [solve(problem, HomGD(), metric, rel_gap=1e-6).history.reached(1e-6) for metric in ("uniform", "lewis")]
    plain = solve(problem, HomGD(), "identity", rel_gap=1e-6, max_iter=10 * max(counts))
    assert plain.status == "max_iter"


def test_lewis_weights_beat_uniform_ones_only_where_the_rows_are_coherent(coherent):
    def counts(problem, solver):
        runs = [solve(problem, solver, metric, rel_gap=1e-6) for metric in ("uniform", "lewis")]
        assert all(run.success for run in runs)
        return [run.history.reached(1e-6) for run in runs]

    for solver in (HomGD(), HomGD("fixed"), AccelHomGD()):
        uniform, lewis = counts(coherent["low"], solver)
        assert 0.8 <= uniform / lewis <= 1.25
        uniform, lewis = counts(coherent["high"], solver)
        assert uniform >= 1.5 * lewis


def test_one_coherent_row_slows_the_fixed_step_of_the_uniform_metric():
    problem = instances.coherent(500, 20, gamma=0.999, cond=100.0, seed=0)
    uniform, lewis = (solve(problem, HomGD("fixed"), metric, rel_gap=1e-6).nit for metric in ("uniform", "lewis"))
    assert uniform >= 3 * lewis


def test_preconditioned_runs_reach_every_accuracy():
    problem = instances.planted(instances.spectrum(300, 100, 0.02, seed=0).form, seed=0)
    for metric in ("uniform", "lewis"):
        run = solve(problem, AccelHomGD(), metric, rel_gap=1e-13)
        assert run.success
        distance = np.linalg.norm(run.x - problem.solution) / np.linalg.norm(problem.solution)
        assert distance <= 1e-5
