"""Does the driver stop for the right reason, count and time only the method, and return an honest best point?"""

import copy
import math
import signal
import threading

import numba
import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from quartbench import instances, precondition, testing
from quartbench.cones import Orthant, SecondOrder
from quartbench.errors import ProblemError
from quartbench.forms import StackedForm
from quartbench.metrics import Cholesky, Diagonal, Identity
from quartbench.model import Problem
from quartbench.runtime import stopwatch
from quartbench.solvers import (
    GD,
    AccelHomGD,
    Bregman,
    HomGD,
    Iterate,
    Solver,
    driver,
    prepared,
    solve,
    solvers,
    starting_point,
)
from quartbench.solvers.results import History

#: Ours: those of others are held to what they promise in tests/solvers/peers.
OWN = [name for name, cls in solvers().items() if not cls.peer and cls.__module__.startswith("quartbench.solvers")]

PROBLEM = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((60, 8))), seed=0)


class Scripted(Solver):
    """A solver that yields what it is told, on a clock of its own."""

    def __init__(self, values=(), endless=False, clock=None, spend=0.0, raises=None):
        self.values, self.endless, self.clock, self.spend, self.raises = values, endless, clock, spend, raises

    def iterates(self, problem, metric, start):
        if self.clock is not None:
            self.clock.now += self.spend
        yield Iterate(start, problem.homogenised_value(start))
        for value in self.values:
            if self.clock is not None:
                self.clock.now += self.spend
            yield Iterate(start.copy(), value)
        if self.raises is not None:
            raise self.raises
        while self.endless:
            yield Iterate(start.copy(), problem.homogenised_value(start))


class Clock:
    """Time that passes only when told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


# The result -----------------------------------------------------------------------------------------------------------


def test_result_is_an_optimize_result_with_the_fields_of_the_design():
    result = solve(PROBLEM, "homgd", rel_gap=1e-8)
    assert isinstance(result, OptimizeResult)
    assert {
        *("x", "fun", "gap", "lower_bound", "status", "success", "message", "nit", "passes"),
        *("setup_time", "solve_time", "history", "solver", "metric"),
    } <= set(result)
    assert (result.status, result.success, result.solver) == ("converged", True, "homgd")
    assert result.fun == pytest.approx(PROBLEM.value(result.x), rel=1e-12)
    assert result.lower_bound <= PROBLEM.optimum <= result.fun * (1 - 1e-14)
    assert (result.fun - PROBLEM.optimum) / -PROBLEM.optimum <= result.gap <= 1e-8
    assert (result.fun - result.lower_bound) / -result.fun == pytest.approx(result.gap, rel=1e-6, abs=1e-15)


def test_points_come_back_in_the_native_shape():
    for name, problem in testing.problems().items():
        x = solve(problem).x
        assert (x.shape, x.dtype) == (problem.form.shape, problem.form.dtype), name


def test_history_is_columns_and_a_pandas_frame():
    pandas = pytest.importorskip("pandas")
    result = solve(PROBLEM, AccelHomGD("scheduled"), "identity", rel_gap=1e-9)
    history = result.history
    frame = history.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame.columns) == (
        "iteration",
        "passes",
        "seconds",
        "value",
        "gap",
        "step",
        "restart",
        "rounds",
        "bytes",
    )
    assert len(frame) == len(history) == result.nit + 1
    assert history.iteration.tolist() == list(range(result.nit + 1))
    assert history["passes"][-1] == result.passes
    assert (np.diff(history.seconds) >= 0.0).all()
    assert history.seconds[-1] == result.solve_time
    assert np.isnan(history.step[0])
    assert (history.step[1:] > 0.0).all()
    assert history.restart.dtype == bool
    assert history.restart.sum() == math.floor(math.log2(result.nit))  # stages of 1, 2, 4, … steps
    with pytest.raises(KeyError):
        history["nothing"]


def test_history_certifies_every_iterate_by_the_best_lower_bound():
    result = solve(PROBLEM, "homgd", "identity", rel_gap=1e-10)
    history = result.history
    true = (history.value - PROBLEM.optimum) / -history.value
    assert (history.gap >= true - 1e-14).all()
    assert (history.gap <= true + 1e-9).all()
    assert history.reached(1e-4) == int(np.argmax(history.gap <= 1e-4)) > 0
    assert history.reached(0.0) is None


def test_inputs_are_never_changed():
    rows, c = np.random.default_rng(1).standard_normal((60, 8)), np.random.default_rng(2).standard_normal(8)
    start = c + 0.1
    given = [rows.copy(), c.copy(), start.copy()]
    problem = Problem(StackedForm(rows), c)
    metric = problem.form.weighted(np.full(60, 60**-0.5))
    before, passes = copy.deepcopy(vars(metric)), problem.form.passes
    for name in OWN:
        solve(problem, name, metric, start=start)
    for mine, theirs in zip(given, (rows, c, start), strict=True):
        assert np.array_equal(mine, theirs)
    assert problem.form.passes == passes
    assert before.keys() == vars(metric).keys()
    assert np.array_equal(before["tau"], metric.tau)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("size", [(60, 8), (400, 200)], ids=["serial", "parallel"])
def test_same_seed_and_threads_give_the_same_history_bit_for_bit(name, size, threads):
    problem = Problem(
        StackedForm(np.random.default_rng(0).standard_normal(size)), np.random.default_rng(1).standard_normal(size[1])
    )
    runs = [solve(problem, name, "identity", rel_gap=1e-5, max_iter=60) for _ in range(2)]
    for column in ("iteration", "passes", "value", "gap", "step", "restart"):
        assert np.array_equal(runs[0].history[column], runs[1].history[column], equal_nan=True), column
    assert np.array_equal(runs[0].x, runs[1].x)


def test_two_solves_at_once_in_two_threads():
    form = StackedForm(np.random.default_rng(0).standard_normal((400, 200)))
    problems = [Problem(form, np.random.default_rng(seed).standard_normal(200)) for seed in (1, 2)]
    alone = [solve(problem, "accel-homgd", "identity", max_iter=80) for problem in problems]
    found = [None, None]

    def work(k):
        found[k] = solve(problems[k], "accel-homgd", "identity", max_iter=80)

    workers = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for one, other in zip(alone, found, strict=True):
        assert np.array_equal(one.x, other.x)
        assert one.passes == other.passes


# Why it stops ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("rel_gap", [1e-2, 1e-6, 1e-12])
def test_converged_means_the_gap_is_certified(name, rel_gap):
    result = solve(PROBLEM, name, rel_gap=rel_gap)
    assert (result.status, result.success) == ("converged", True)
    assert (result.fun - PROBLEM.optimum) / -PROBLEM.optimum - 1e-14 <= result.gap <= rel_gap
    assert f"{rel_gap:.2e}" in result.message


def test_max_iter_and_max_passes_stop_where_they_say():
    result = solve(PROBLEM, "homgd", "identity", rel_gap=1e-15, max_iter=7)
    assert (result.status, result.nit, result.success) == ("max_iter", 7, False)
    assert math.isfinite(result.gap)
    result = solve(PROBLEM, HomGD("fixed"), "identity", rel_gap=1e-15, max_passes=9)
    assert (result.status, result.passes, result.nit) == ("max_passes", 9, 8)
    result = solve(PROBLEM, "homgd", max_iter=0, rel_gap=1e-15)
    assert (result.status, result.nit, result.passes, len(result.history)) == ("max_iter", 0, 1, 1)
    assert result.fun == pytest.approx(PROBLEM.homogenised_value(result.x))


def test_callback_stops_by_returning_false_and_sees_the_run():
    seen = []

    def callback(state):
        seen.append((state.iteration, state.passes, state.seconds, state.value, state.gap, state.x))
        return state.iteration < 5

    result = solve(PROBLEM, "gd", rel_gap=1e-14, callback=callback)
    assert (result.status, result.nit, result.success) == ("stopped", 5, False)
    assert "callback" in result.message
    assert [entry[0] for entry in seen] == list(range(6))
    assert [entry[3] for entry in seen] == result.history.value.tolist()
    for _, _, _, value, _, x in seen:
        assert PROBLEM.value(x) == pytest.approx(value, rel=1e-10)
    assert solve(PROBLEM, callback=lambda state: None).status == "converged"


@pytest.mark.parametrize("solver", ["homgd", "accel-homgd", "auto"])
def test_callback_sees_every_iterate_the_last_one_too(solver):
    seen = []
    result = solve(PROBLEM, solver, rel_gap=1e-9, callback=seen.append)
    assert result.status == "converged"
    assert [state.iteration for state in seen] == list(range(result.nit + 1))
    np.testing.assert_array_equal([state.value for state in seen], result.history.value)
    assert seen[-1].gap <= 1e-9
    # What it returns there cannot undo what is proved already.
    last = solve(PROBLEM, solver, rel_gap=1e-9, callback=lambda state: state.iteration < result.nit)
    assert last.status == "converged"


def test_ctrl_c_returns_the_best_point():
    def interrupt(state):
        if state.iteration == 6:
            signal.raise_signal(signal.SIGINT)

    result = solve(PROBLEM, "homgd", "identity", rel_gap=1e-14, callback=interrupt)
    assert (result.status, result.nit) == ("stopped", 6)
    assert "keyboard" in result.message
    assert result.fun == pytest.approx(result.history.value.min(), rel=1e-12)
    assert result.gap < 1.0


def test_ctrl_c_inside_the_method_returns_the_best_point():
    problem = PROBLEM.normalised().problem
    solver = Scripted([-0.1, -0.05], raises=KeyboardInterrupt())
    prepared._warmed.add(warm_kind(solver, problem, "identity"))
    result = solve(PROBLEM, solver, "identity", rel_gap=1e-14)
    assert (result.status, result.nit) == ("stopped", 2)


def test_a_second_ctrl_c_keeps_the_result(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "estimate", interrupted)
    result = solve(PROBLEM, "homgd", "identity")
    assert (result.status, result.gap) == ("stopped", math.inf)
    assert result.fun == pytest.approx(PROBLEM.homogenised_value(result.x))


def warm_kind(solver, problem, name):
    """Return the kind under which the driver remembers that a run needs no warm-up."""
    before = set(prepared._warmed)
    prepared.warm(Scripted(), problem, precondition.metric(problem.form, name), starting_point(problem, Identity(8)))
    kind = next(kind for kind in prepared._warmed if kind[0] == repr(Scripted()))
    prepared._warmed.intersection_update(before)
    return (repr(solver), *kind[1:])


def test_time_limit_counts_the_method_and_nothing_else(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(driver, "perf_counter", clock)
    monkeypatch.setattr(stopwatch, "perf_counter", clock)

    def slow_callback(state):
        clock.now += 1000.0

    solver = Scripted([-1e-3] * 50, clock=clock, spend=1.0)
    result = solve(PROBLEM, solver, Identity(8), rel_gap=1e-14, time_limit=20.0, callback=slow_callback)
    assert (result.status, result.nit) == ("time_limit", 19)
    assert result.history.seconds.tolist() == [float(k) for k in range(1, 21)]
    assert (result.solve_time, result.setup_time) == (20.0, 0.0)


def test_warm_up_is_neither_timed_nor_counted(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(driver, "perf_counter", clock)
    monkeypatch.setattr(stopwatch, "perf_counter", clock)
    prepared._warmed.clear()
    result = solve(PROBLEM, Scripted([-1e-3] * 3, clock=clock, spend=5.0), Identity(8), rel_gap=1e-14)
    assert result.history.seconds.tolist() == [5.0, 10.0, 15.0, 20.0]
    assert clock.now > 20.0  # the warm-up took its share
    result = solve(PROBLEM, "homgd", rel_gap=1e-14)
    assert result.history.passes[0] == 1


def test_set_up_counts_towards_the_time_limit(monkeypatch):
    metric = Identity(8)
    metric.setup_seconds = 15.0
    clock = Clock()
    monkeypatch.setattr(driver, "perf_counter", clock)
    monkeypatch.setattr(stopwatch, "perf_counter", clock)
    solver = Scripted([-1e-3] * 50, clock=clock, spend=1.0)
    result = solve(PROBLEM, solver, metric, rel_gap=1e-14, time_limit=20.0)
    assert (result.status, result.nit, result.setup_time) == ("time_limit", 4, 15.0)


def test_constants_of_a_fixed_step_are_set_up():
    calls = []

    class Prepared(HomGD):
        def prepare(self, problem, metric):
            calls.append(callable(metric._bounds))
            super().prepare(problem, metric)

        def iterates(self, problem, metric, start):
            calls.append(callable(metric._bounds))
            return super().iterates(problem, metric, start)

    given = PROBLEM.form.weighted(np.full(60, 60**-0.5))
    assert solve(PROBLEM, Prepared("fixed"), given).success
    assert calls[0]
    assert not any(calls[1:])
    assert given.bounds is None  # the user's metric is left as it was


def test_no_progress_is_called_stalled():
    assert solve(PROBLEM, Scripted(endless=True), rel_gap=1e-10).status == "stalled"
    assert solve(PROBLEM, Scripted([-1e-3] * 5), rel_gap=1e-10).status == "stalled"  # the method ended by itself
    # Below the rounding of sums nothing can be certified: the run must end all the same, at the optimum.
    for name in OWN:
        result = solve(PROBLEM, name, rel_gap=1e-17)
        assert result.status == "stalled", name
        assert result.nit < 5000, name
        assert result.gap < 1e-13, name


def test_trivial_problems_are_solved_by_zero():
    form = StackedForm(np.random.default_rng(0).standard_normal((20, 4)))
    for cone, c in ((Orthant(), -np.ones(4)), (SecondOrder(), np.array([-2.0, 1.0, 0.0, 0.0]))):
        for name in OWN:
            result = solve(Problem(form, c, cone), name)
            assert (result.status, result.success, result.fun, result.gap) == ("trivial", True, 0.0, 0.0)
            assert not result.x.any()
            assert len(result.history) == 0


# Certificates ---------------------------------------------------------------------------------------------------------


def test_without_certificates_nothing_is_spent_on_them(monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("a certificate was computed")

    monkeypatch.setattr(driver, "estimate", fail)
    monkeypatch.setattr(driver, "prove", fail)
    monkeypatch.setattr(prepared, "certifying_metric", fail)
    result = solve(PROBLEM, "accel-homgd", "identity", certify=False, max_iter=30)
    assert (result.status, result.gap, result.lower_bound) == ("max_iter", math.inf, -math.inf)
    assert np.isnan(result.history.gap).all()
    assert result.fun == pytest.approx(PROBLEM.optimum, rel=1e-4)


def test_certificates_are_not_passes_of_the_method():
    with_them = solve(PROBLEM, "homgd", "identity", rel_gap=1e-9)
    without = solve(PROBLEM, "homgd", "identity", certify=False, max_iter=with_them.nit)
    assert with_them.passes == without.passes
    assert np.array_equal(with_them.history.value, without.history.value)


def test_problems_too_ill_conditioned_for_a_cholesky_factor_are_certified():
    problem = instances.coherent(200, 20, 0.5, cond=1e8, seed=0)
    result = solve(problem, "homgd", "uniform", rel_gap=1e-8)
    assert result.status == "converged"
    plain = solve(problem, "accel-homgd", "identity", rel_gap=1e-8, max_iter=50)
    assert plain.lower_bound <= result.fun


@pytest.mark.parametrize("name", ["dense, orthant", "dense, second-order", "Gram, orthant"])
def test_certificates_on_cones_are_as_sharp_as_the_point_is_good(name):
    # With the projected residual alone the gap falls like the root of the true one: 1e-8 certified took 1e-16.
    problem = testing.problems()[name]
    result = solve(problem, "homgd", rel_gap=1e-9)
    true = (result.fun - problem.optimum) / -problem.optimum
    assert result.gap <= 100.0 * true


def test_certificates_are_few(monkeypatch):
    counted = []
    true = driver.estimate
    monkeypatch.setattr(driver, "estimate", lambda *a, **k: counted.append(k) or true(*a, **k))
    result = solve(instances.spectrum(100, 50, 0.02, seed=0), "homgd", "identity", rel_gap=1e-4)
    assert result.status == "converged"
    assert result.nit > 500
    assert len(counted) < 60


def test_gap_schedule_does_not_overshoot():
    result = solve(instances.spectrum(100, 50, 0.02, seed=0), "accel-homgd", "identity", rel_gap=1e-9)
    assert result.nit <= 1.35 * result.history.reached(1e-9) + 4


def test_a_lying_solver_is_not_believed():
    liar = Scripted([-1e9] * 20, endless=True)
    result = solve(PROBLEM, liar, rel_gap=1e-6)
    start = starting_point(PROBLEM, precondition.metric(PROBLEM.form, "uniform"))
    assert result.status == "stalled"
    assert result.fun == pytest.approx(PROBLEM.homogenised_value(start))
    assert (result.fun - PROBLEM.optimum) / -PROBLEM.optimum <= result.gap


class Astray(Solver):
    """A solver that leaves the cone, where f is lower."""

    def iterates(self, problem, metric, start):
        yield Iterate(start, problem.homogenised_value(start))
        while True:
            yield Iterate(problem.c.copy(), problem.homogenised_value(problem.c))


def test_a_point_outside_the_cone_is_not_believed():
    form = StackedForm(np.random.default_rng(0).standard_normal((20, 4)))
    problem = Problem(form, np.array([1.0, -3.0, -3.0, -3.0]), Orthant())
    result = solve(problem, Astray(), rel_gap=1e-6)
    assert (result.x >= 0.0).all()
    assert result.fun >= solve(problem, "homgd", rel_gap=1e-10).lower_bound


class Broken(Solver):
    """A solver that yields NaN after its start."""

    def iterates(self, problem, metric, start):
        yield Iterate(start, problem.homogenised_value(start))
        while True:
            yield Iterate(np.full_like(start, np.nan), math.nan)


@pytest.mark.parametrize("certify", [True, False])
def test_nan_never_becomes_the_result(certify):
    result = solve(PROBLEM, Broken(), max_iter=1000, certify=certify)
    assert np.isfinite(result.x).all()
    assert result.fun < 0.0


@pytest.mark.parametrize("given", [np.ones(8), (np.ones(8), 0.0), None], ids=["a point", "a pair", "nothing"])
def test_a_solver_that_yields_no_iterate_is_told(given):
    # An array of eight numbers was taken apart as an iterate, others were "not enough values to unpack".
    class Bare(Solver):
        name = "bare"

        def iterates(self, problem, metric, start):
            yield given

    with pytest.raises(TypeError, match=rf"^bare must yield Iterate\(point, value\), found {type(given).__name__}$"):
        solve(PROBLEM, Bare())


# Scale, starts, metrics -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(("a", "b"), [(1e60, 1e60), (1e60, 1e-60), (1e-60, 1e60), (1e-60, 1e-60), (1e-30, 1e5)])
def test_scaling_is_harmless(name, a, b):
    rng = np.random.default_rng(0)
    rows, c = rng.standard_normal((40, 5)), rng.standard_normal(5)
    plain = solve(Problem(StackedForm(rows), c), name, rel_gap=1e-9)
    scaled = solve(Problem(StackedForm(a * rows), b * c), name, rel_gap=1e-9)
    assert scaled.status == plain.status == "converged"
    factor = math.exp((math.log(b) - 4.0 * math.log(a)) / 3.0)
    assert scaled.x == pytest.approx(factor * plain.x, rel=1e-3, abs=1e-3 * factor * np.abs(plain.x).max())
    assert scaled.fun == pytest.approx(b * factor * plain.fun, rel=1e-8)


@pytest.mark.parametrize("a", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize(
    "solver", [HomGD("fixed"), AccelHomGD("scheduled", "fixed"), Bregman(step="fixed"), GD()], ids=repr
)
def test_metric_made_for_the_users_own_rows_works_at_any_scale(a, solver):
    rng = np.random.default_rng(0)
    rows, c = rng.standard_normal((40, 5)), rng.standard_normal(5)
    runs = []
    for scale in (1.0, a):
        problem = Problem(StackedForm(scale * rows), c)
        made = precondition.metric(problem.form, "lewis")
        runs.append([solve(problem, solver, metric, rel_gap=1e-6) for metric in (made, "lewis")])
    for mine, named in runs:
        assert mine.status == named.status == "converged"
        assert mine.nit == named.nit
    assert runs[0][0].nit == runs[1][0].nit


def test_start_is_the_minimum_norm_point_of_the_slice():
    for name, problem in testing.problems().items():
        for metric in testing.solvers._metrics(problem):
            y = starting_point(problem, metric)
            assert problem.inner(y) == pytest.approx(1.0), name
            onto = problem.cone.slice(np.array(problem.c), metric)
            assert np.allclose(onto(np.zeros(problem.dim)), y, rtol=1e-9, atol=1e-12), name
            inside = problem.cone.euclidean(y)
            assert np.allclose(inside, y, rtol=1e-12, atol=1e-14), name


def test_a_good_start_is_used():
    near = PROBLEM.solution * 7.0  # scale does not matter
    for name in OWN:
        result = solve(PROBLEM, name, start=near, rel_gap=1e-9)
        assert (result.status, result.nit) == ("converged", 0), name


def test_a_start_outside_the_cone_is_projected():
    problem = testing.problems()["dense, orthant"]
    start = problem.solution - 1e-3
    assert solve(problem, start=start, max_iter=0, rel_gap=1e-15).fun == pytest.approx(problem.optimum, rel=1e-2)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.ones(3), "start must have shape"),
        (np.full(8, np.nan), "start must be finite"),
        (-PROBLEM.c, "⟨c,start⟩ > 0"),
    ],
)
def test_bad_starts_are_named(start, message):
    with pytest.raises(ProblemError, match=message):
        solve(PROBLEM, start=start)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rel_gap": -1.0}, "rel_gap must be positive"),
        ({"rel_gap": "small"}, "rel_gap must be positive"),
        ({"rel_gap": math.nan}, "rel_gap must be positive"),
        ({"max_iter": -1}, "max_iter must be nonnegative"),
        ({"max_passes": 0}, "max_passes must be positive"),
        ({"time_limit": -2.0}, "time_limit must be nonnegative"),
        ({"callback": 3}, "callback must be callable, found int"),
        ({"solver": "homgb"}, "did you mean 'homgd'"),
        ({"solver": 3}, "solver must be a name"),
        ({"solver": dict}, "must be a class with a method iterates"),
        ({"metric": "louis"}, "unknown metric 'louis'"),
        ({"metric": 3}, "metric must be a name or a Metric"),
        ({"metric": Identity(5)}, "metric must have dimension 8, found 5"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ProblemError, match=message):
        solve(PROBLEM, **options)
    with pytest.raises(ProblemError, match="problem must be a Problem"):
        solve(PROBLEM.form)


def test_methods_name_the_words_they_know():
    with pytest.raises(ProblemError, match="did you mean 'scheduled'"):
        AccelHomGD(restart="schedule")
    with pytest.raises(ProblemError, match="unknown step 'wolfe'"):
        HomGD(step="wolfe")
    with pytest.raises(ProblemError, match="unknown kernel"):
        Bregman(kernel="cubic")


@pytest.mark.parametrize("name", OWN)
def test_a_metric_that_the_cone_cannot_use_is_refused_with_one_that_it_can(name):
    problem = testing.problems()["dense, orthant"]
    with pytest.raises(ProblemError, match="Orthant needs a diagonal metric \\('identity' or 'diagonal'\\)"):
        solve(problem, name, "uniform")
    with pytest.raises(ProblemError, match="SecondOrder needs the metric 'identity'"):
        solve(testing.problems()["dense, second-order"], name, "lewis")


def test_a_fixed_step_in_a_metric_of_unknown_bounds_is_refused():
    with pytest.raises(ProblemError, match="needs the constant β"):
        solve(PROBLEM, HomGD("fixed"), Cholesky(np.eye(8) + 0.1))
    assert solve(PROBLEM, HomGD("fixed"), Diagonal(np.arange(1.0, 9.0))).success
    assert solve(PROBLEM, "homgd", Cholesky(np.eye(8) + 0.1)).success


def test_automatic_metric_suits_form_and_cone():
    chosen = {name: solve(problem).metric for name, problem in testing.problems().items()}
    assert chosen == {
        "dense, free": "uniform",
        "dense, orthant": "diagonal",
        "dense, second-order": "identity",
        "rank 3, free": "uniform",
        "sparse, free": "uniform",
        "complex, free": "uniform",
        "graph, centred": "uniform",
        "Gram, free": "identity",
        "Gram, orthant": "identity",
        "Gram, centred": "identity",
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_other_storage_are_solved(dtype, tmp_path):
    rows = np.random.default_rng(0).standard_normal((60, 8)).astype(dtype)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    c = np.ones(8)
    plain = solve(Problem(StackedForm(rows.astype(float)), c), rel_gap=1e-9)
    for stored in (rows, mapped, np.asfortranarray(rows)):
        assert solve(Problem(StackedForm(stored), c), rel_gap=1e-9).fun == pytest.approx(plain.fun, rel=1e-8)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 1), (4, 4), (200, 2)])
@pytest.mark.parametrize("name", OWN)
def test_tiny_problems_are_solved(m, n, name):
    form = StackedForm(np.random.default_rng(m).standard_normal((m, n)) + np.eye(m, n))
    problem = instances.planted(form, seed=1)
    result = solve(problem, name, rel_gap=1e-9)
    assert result.status == "converged"
    assert result.fun == pytest.approx(problem.optimum, rel=1e-9)


def test_progress_shows_the_falling_gap(capsys):
    assert solve(PROBLEM, "gd", rel_gap=1e-9, progress=True).success
    assert solve(PROBLEM, "gd", rel_gap=None, max_iter=5, progress=True).status == "max_iter"
    assert solve(PROBLEM, "gd", max_iter=5, progress=True, certify=False).status == "max_iter"
    assert capsys.readouterr().out == ""  # a bar belongs to the error stream, results to the other


def test_threads_do_not_change_the_answer():
    problem = Problem(StackedForm(np.random.default_rng(0).standard_normal((400, 200))), np.ones(200))
    found = []
    for count in (1, 2):
        numba.set_num_threads(count)
        found.append(solve(problem, "accel-homgd", "identity", rel_gap=1e-8).fun)
    assert found[0] == pytest.approx(found[1], rel=1e-8)


def test_gaps_of_a_history_are_those_to_the_best_bound():
    columns = {"passes": [1, 2, 3, 4], "seconds": [0.0] * 4, "steps": [1.0] * 4, "restarts": [False] * 4}
    history = History(values=[0.5, -1.0, -2.0, -3.0], lower=-3.0, f_scale=7.0, **columns)
    np.testing.assert_allclose(history.value, [3.5, -7.0, -14.0, -21.0])
    # (f − lower)/|f|, infinite where f is not below 0, and never zero: the bound is known to rounding only.
    np.testing.assert_allclose(history.gap[:3], [np.inf, 2.0, 0.5])
    assert 0.0 < history.gap[3] < 1e-13
    assert np.isnan(History(values=[-1.0] * 4, lower=-np.inf, f_scale=1.0, **columns).gap).all()
