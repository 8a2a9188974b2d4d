"""Do limits hold within an iteration too, and does every search end? A method knows nothing of either."""

import itertools

import numpy as np
import pytest

import quartbench as qb
from quartbench.forms.budget import Budget, SpentError
from quartbench.solvers import Iterate, Solver, driver, many, prepared, solvers

ROWS = np.random.default_rng(0).standard_normal((400, 60)) * np.geomspace(1e-3, 1.0, 60)
PROBLEM = qb.Problem(qb.StackedForm(ROWS), np.random.default_rng(1).standard_normal(60))

OWN = [name for name, cls in solvers().items() if not cls.peer and cls.__module__.startswith("quartbench.solvers")]
PEERS = [name for name, cls in solvers().items() if cls.peer]


class Lost(Solver):
    """A method whose first search never ends, though it catches every error it knows."""

    def iterates(self, problem, metric, start):
        yield Iterate(start, problem.homogenised_value(start))
        while True:
            try:
                problem.form.value(start)
            except Exception:
                continue


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@pytest.mark.parametrize("name", OWN)
def test_no_method_takes_more_passes_than_it_was_given(name, limit):
    result = qb.solve(PROBLEM, name, "identity", rel_gap=1e-14, max_passes=limit)
    assert result.passes <= limit
    assert result.status == "max_passes"
    assert f"stopped after {result.passes} pass{'es' * (result.passes != 1)} with" in result.message
    assert result.fun < 0.0
    assert (np.diff(result.history.passes) >= 0).all()
    assert result.history.passes[-1] <= result.passes


@pytest.mark.parametrize("limit", [2, 3, 7, 20])
@pytest.mark.parametrize("name", PEERS)
def test_no_peer_takes_more_passes_than_it_was_given(name, limit):
    result = qb.solve(PROBLEM, name, rel_gap=1e-14, max_passes=limit)
    assert result.passes <= limit
    assert result.status == "max_passes"


class Ticking:
    """A clock that is a second on at every look, so that a limit of time is one of looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("name", [*OWN, *PEERS])
def test_time_is_up_within_a_pass_in_other_peoples_code_too(name, monkeypatch):
    # The clock is looked at before every pass, or two where a product and its adjoint are read at once.
    monkeypatch.setattr(driver, "perf_counter", Ticking())
    result = qb.solve(PROBLEM, name, "identity", rel_gap=1e-14, time_limit=6.0)
    assert result.status == "time_limit"
    assert result.passes <= 2 * 6 + 1


def test_time_is_up_within_a_set_up_at_the_next_sweep(monkeypatch):
    budgets = []

    def watched(*limits):
        budgets.append(Budget(*limits, Ticking()))
        return budgets[-1]

    monkeypatch.setattr(prepared, "Budget", watched)
    result = qb.solve(PROBLEM, "homgd", "lewis", rel_gap=1e-6, time_limit=3.0)
    assert (result.status, result.nit, result.solver) == ("time_limit", 0, "homgd")
    assert "the set-up was not finished" in result.message
    assert result.fun < 0.0
    assert budgets[0][0] <= 4
    assert result.setup_time >= 3.0
    for result in qb.solve_many(PROBLEM.form, [PROBLEM.c, -PROBLEM.c], metric="lewis", time_limit=3.0):
        assert (result.status, result.nit) == ("time_limit", 0)
    # With the time that it takes, it takes what it takes.
    assert qb.solve(PROBLEM, "homgd", "lewis", rel_gap=1e-2, time_limit=1e9).status == "converged"
    assert budgets[-1].seconds > 1e8


def test_a_search_that_never_ends_is_ended_by_its_passes():
    result = qb.solve(PROBLEM, Lost(), "identity", rel_gap=1e-14, max_passes=1000)
    assert (result.status, result.passes, result.nit) == ("max_passes", 1000, 0)


def test_a_search_that_never_ends_is_ended_by_its_time():
    result = qb.solve(PROBLEM, Lost(), "identity", rel_gap=1e-14, time_limit=0.05)
    assert (result.status, result.nit) == ("time_limit", 0)
    assert result.setup_time + result.solve_time >= 0.05
    assert result.passes > 1


def test_a_budget_counts_until_it_is_spent():
    now = [0.0]
    budget = Budget(3, 10.0, lambda: now[0])
    form = PROBLEM.form.within(budget)
    now[0] = 20.0
    form.value(np.ones(60))  # the first pass is always there
    now[0] = 9.0
    form.value(np.ones(60))
    now[0] = 10.0
    with pytest.raises(SpentError, match="time_limit"):
        form.value(np.ones(60))
    now[0] = 0.0
    form.value(np.ones(60))
    with pytest.raises(SpentError, match="max_passes"):
        form.hessian_product(np.ones(60), np.ones(60))
    assert form.passes == 3
    assert not issubclass(SpentError, Exception)


def test_warming_ends_where_a_method_does_not():
    prepared._warmed.clear()
    start = qb.solvers.starting_point(PROBLEM, qb.metric(PROBLEM.form, "identity"))
    prepared.warm(Lost(), PROBLEM, qb.metric(PROBLEM.form, "identity"), start)
    assert any("Lost" in kind[0] for kind in prepared._warmed)


def test_the_search_of_bregman_ends_where_rounding_is_all_it_sees():
    # It never left its line search: no level was large enough for a test that measures rounding.
    problem = qb.Problem(qb.StackedForm([[1e9, 1e9], [1.0, 0.0], [0.0, 1.0]]), [1.0, 1.0 + 1e-9])
    result = qb.solve(problem, "bregman", rel_gap=1e-12, max_passes=5000)
    assert result.passes <= 5000


@pytest.mark.parametrize("cone", [qb.Free(), qb.Orthant(), qb.SecondOrder()])
def test_many_right_hand_sides_keep_their_iterations_and_their_time(cone):
    C = np.abs(np.random.default_rng(2).standard_normal((3, 60)))
    C[:, 0] += 20.0
    for result in qb.solve_many(PROBLEM.form, C, cone, rel_gap=1e-14, max_iter=2):
        assert (result.status, result.nit) == ("max_iter", 2)
    for result in qb.solve_many(PROBLEM.form, C, cone, rel_gap=1e-14, time_limit=0.0):
        assert result.status == "time_limit"
        assert result.fun < 0.0
        assert result.gap > 1e-14
    with pytest.raises(qb.ProblemError, match="time_limit must be nonnegative or None, found -1"):
        qb.solve_many(PROBLEM.form, C, cone, time_limit=-1)


@pytest.mark.parametrize(("limit", "status"), [(50.0, "time_limit"), (500.0, "converged")])
def test_many_right_hand_sides_share_the_time_that_the_set_up_leaves(limit, status):
    metric = PROBLEM.form.weighted(PROBLEM.form.uniform_weights()).declared(setup_seconds=100.0)
    C = np.random.default_rng(3).standard_normal((2, 60))
    for result in qb.solve_many(PROBLEM.form, C, metric=metric, time_limit=limit):
        assert result.status == status
        assert result.setup_time == pytest.approx(50.0)


def test_lockstep_stops_within_a_direction(monkeypatch):
    form, C = PROBLEM.form, np.random.default_rng(3).standard_normal((4, 60))
    ticks = itertools.count(1.0)
    monkeypatch.setattr(many, "Budget", lambda *limits: Budget(*limits, lambda: next(ticks)))
    results = qb.solve_many(form, C, metric="uniform", rel_gap=1e-14, time_limit=6.0)
    assert {result.status for result in results} == {"time_limit"}
    assert max(result.passes for result in results) <= 8
    assert all(result.gap < 10.0 for result in results)
