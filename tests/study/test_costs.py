"""What a gap cost, from traces that can be read off by hand."""

import numpy as np
import pytest

from quartbench.study import costs

from .frames import frame, run, trivial


def first(runs):
    return next(costs.each(runs))


def test_cost_is_that_of_the_first_point_within_the_gap():
    runs = frame(run(gaps=(1.0, 0.5, 0.05, 0.02), iterations=(0, 3, 7, 20), passes=(1, 4, 9, 25)))
    assert costs.cost(first(runs), [0.5, 0.1, 0.02], "iterations").tolist() == [3, 7, 20]
    assert costs.cost(first(runs), [0.5, 0.1, 0.02], "passes").tolist() == [4, 9, 25]


def test_a_gap_that_was_not_reached_costs_infinity():
    assert costs.cost(first(frame(run(gaps=(1.0, 0.5)))), [0.4], "passes").tolist() == [np.inf]


def test_seconds_include_the_set_up():
    runs = frame(run(gaps=(1.0, 0.1), seconds=(0.0, 2.0), setup_seconds=0.5))
    assert costs.cost(first(runs), [0.1], "seconds").tolist() == [2.5]


def test_a_method_that_rises_again_is_judged_by_when_it_first_got_there():
    runs = frame(run(gaps=(1.0, 0.1, 0.7, 0.01)))
    assert costs.cost(first(runs), [0.2, 0.05], "iterations").tolist() == [1, 3]


@pytest.mark.parametrize("status", ["failed", "timeout"])
def test_a_broken_run_reaches_nothing_whatever_its_trace_says(status):
    assert costs.cost(first(frame(run(status=status))), [0.1], "iterations").tolist() == [np.inf]


@pytest.mark.parametrize(("unit", "cost"), [("iterations", 0.0), ("passes", 0.0), ("seconds", 0.5)])
def test_a_run_on_a_trivial_problem_reached_every_gap_with_its_set_up(unit, cost):
    runs = frame(trivial(setup_seconds=0.5))
    assert costs.cost(first(runs), [0.1, 1e-12], unit).tolist() == [cost, cost]
    assert costs.table(runs, 0.01, unit).to_numpy().tolist() == [[cost]]


def test_each_run_is_held_against_its_own_gap_or_all_against_one():
    runs = frame(run(gaps=(1.0, 0.1, 0.01), rel_gap=0.1), run(gaps=(1.0, 0.1, 0.01), rel_gap=0.01, solver="other"))
    assert costs.to_gap(runs, runs.rel_gap, "iterations").tolist() == [1, 2]
    assert costs.to_gap(runs, 0.5, "iterations").tolist() == [1, 1]


def test_the_gap_is_from_the_known_optimum_else_certified_never_from_the_best_value_found():
    known = run(gaps=(1.0, 0.5), trace_gap=[2.0, 0.9])
    unknown = run(gaps=(1.0, 0.5), trace_gap=[2.0, 0.9], optimum=float("nan"), solver="other")
    runs = frame(known, unknown).set_index("solver")
    np.testing.assert_allclose(runs.trace_true["homgd"], [1.0, 0.5])
    np.testing.assert_allclose(runs.trace_true["other"], [2.0, 0.9])


def test_repeats_of_a_cell_are_one_median():
    runs = frame(*(run(gaps=(1.0, 0.1), seconds=(0.0, s), repeat=i) for i, s in enumerate((1.0, 9.0, 2.0))))
    assert costs.table(runs, 0.1, "seconds").to_numpy().tolist() == [[2.0]]


def test_contender_names_the_metric_that_was_asked_for():
    runs = frame(run(metric="uniform"), run(solver="auto", method="auto", metric="uniform", metric_asked="auto"))
    assert sorted(runs.contender) == ["auto", "homgd · uniform"]


def test_runs_with_a_looser_target_do_not_spoil_the_cost_of_a_tighter_gap():
    short, whole = run(gaps=(1.0, 0.1), rel_gap=0.1), run(gaps=(1.0, 0.1, 0.01), rel_gap=0.01)
    runs = frame(short, whole)
    assert costs.target(runs) == 0.01
    assert costs.table(runs, 0.01, "iterations").to_numpy().tolist() == [[2.0]]
    assert costs.table(runs, 0.1, "iterations").to_numpy().tolist() == [[1.0]]
    assert costs.tightest(runs).rel_gap.tolist() == [0.01]


def test_runs_to_learn_from_are_those_with_a_trace():
    statuses = ("converged", "max_iter", "trivial", "failed", "timeout", "stalled")
    runs = frame(*(run(status=status) for status in statuses))
    assert costs.iterated(runs).status.tolist() == ["converged", "max_iter", "stalled"]


@pytest.mark.parametrize(
    ("above", "below", "ratio"),
    [(6.0, 2.0, 3.0), (0.0, 2.0, 0.0), (2.0, 0.0, np.inf), (0.0, 0.0, 1.0), (np.inf, 2.0, np.inf), (2.0, np.inf, 0.0)],
)
def test_ratios_of_nothing_and_of_what_was_not_reached(above, below, ratio):
    assert costs.ratio(above, below) == ratio
    assert np.isnan(costs.ratio(np.inf, np.inf))


def test_block_is_the_largest_part_where_everybody_ran_everywhere():
    rows = [run(instance=f"p{i}", solver=s) for i in range(3) for s in ("a", "b")] + [run(instance="p9", solver="c")]
    kept = costs.block(costs.table(frame(*rows), 0.1, "passes"))
    assert list(kept.columns) == ["a · identity", "b · identity"]
    assert len(kept) == 3
