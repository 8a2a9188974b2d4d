"""Who was fastest, and auto against the peers, on cases computed by hand."""

import math

import numpy as np
import pandas
import pytest

from quartbench.study import costs, summary
from quartbench.study.report.tables import cost_table

from . import frames
from .test_store import row


def run(solver, times, instance="one", peer=False, rel_gap=1e-2, **columns):
    """A run whose gap falls by ten at each of these times; f* = −1, set-up 1 s."""
    gaps = 10.0 ** -np.arange(1.0, len(times) + 1)
    columns = {"status": "converged", "success": True, "metric_asked": "auto", "optimum": -1.0} | columns
    return row(
        "k",
        solver=solver,
        peer=peer,
        instance=instance,
        rel_gap=rel_gap,
        setup_seconds=1.0,
        wall_seconds=10.0 * times[-1],
        trace_seconds=list(times),
        trace_value=list(-1.0 + gaps),
        trace_gap=list(2.0 * gaps),
        **columns,
    )


def frame(*rows):
    return costs.prepare(pandas.DataFrame(rows))


def test_time_counts_set_up_and_the_first_point_within_the_gap_that_was_asked_for():
    runs = frame(
        run("a", [2.0, 3.0, 5.0]),
        run("b", [2.0, 3.0, 5.0], rel_gap=1e-3),
        run("c", [2.0, 3.0, 5.0], optimum=math.nan),  # certified gaps are twice as large: one point later
        run("d", [2.0]),
        run("e", [2.0, 3.0], status="failed"),
        run("f", [2.0, 3.0], status="timeout"),
    )
    runs["rel_gap"] *= 1 + 1e-9
    assert list(summary.times(runs).min()) == [4.0, 6.0, 6.0, math.inf, math.inf, math.inf]


def test_the_terminal_and_the_report_agree_on_what_a_run_cost():
    rows = [
        frames.trivial(setup_seconds=0.5),
        frames.trivial(setup_seconds=0.25, solver="auto", metric_asked="lewis"),
        frames.run(solver="homcg", metric_asked="auto", setup_seconds=1.0),
        frames.run(solver="homnewton", gaps=(1.0, 0.5)),
        frames.run(solver="gd", status="failed", gaps=(1.0, 0.01)),
    ]
    runs = frames.frame(*rows)
    (terminal,) = summary.times(runs).to_dict("records")
    table = cost_table(runs)
    who, time = table.columns.index("contender"), table.columns.index("time")
    assert terminal == {row[who].text: row[time].value for row in table.rows}
    assert terminal == {
        "homgd": 0.5,
        "auto · lewis": 0.25,
        "homcg": 3.0,
        "homnewton · identity": math.inf,
        "gd · identity": math.inf,
    }


def test_times_are_medians_over_seeds_of_medians_over_repeats():
    runs = frame(
        *(run("a", [t], rel_gap=0.5, seed=0) for t in (1.0, 2.0, 9.0)),
        run("a", [4.0], rel_gap=0.5, seed=1),
        run("b", [4.0], rel_gap=1e-9, seed=0),
    )
    table = summary.times(runs)
    assert table.loc[("one", 0.5), "a"] == pytest.approx(1.0 + (2.0 + 4.0) / 2)
    assert math.isnan(table.loc[("one", 0.5), "b"])
    assert math.isinf(table.loc[("one", 1e-9), "b"])


def test_on_a_trivial_problem_auto_and_the_peers_are_even():
    trivial = {"instance": "nothing to do", "rel_gap": 0.5}
    rows = [frames.trivial(**trivial, solver="auto"), frames.trivial(**trivial, solver="scipy-lbfgs", peer=True)]
    (row,) = summary.peers(frames.frame(*rows)).itertuples()
    assert (row.auto, row.peer_time, row.ratio) == (0.0, 0.0, 1.0)


def test_auto_is_compared_with_the_best_peer_and_our_best():
    runs = frame(
        run("auto", [1.0], rel_gap=0.5),
        run("homcg", [0.6], rel_gap=0.5),
        run("homnewton", [4.0], rel_gap=0.5),
        run("scipy-lbfgs", [7.0], peer=True, rel_gap=0.5),
        run("scipy-newton-cg", [5.0], peer=True, rel_gap=0.5),
        run("clarabel", [0.1], peer=True, rel_gap=0.5, success=False, status="stalled", optimum=math.nan),
        run("auto", [3.0], instance="two", rel_gap=0.5),
        run("homcg", [7.0], instance="two", rel_gap=0.5),
        run("scipy-lbfgs", [7.0], instance="two", peer=True, rel_gap=1e-9, success=False),
        run("auto", [3.0], instance="three", rel_gap=0.5),
        run("scipy-lbfgs", [0.0], instance="three", peer=True, rel_gap=0.5),
    )
    table = summary.peers(runs).set_index("instance")
    one = table.loc["one"]
    assert (one["auto"], one["peer"], one["peer_time"], one["ratio"]) == (2.0, "scipy-newton-cg", 6.0, 3.0)
    assert (one["own"], one["overhead"]) == ("homcg", pytest.approx(2.0 / 1.6))
    assert (one["wall"], one["peer_wall"]) == (10.0, 50.0)
    two = table.loc["two"]
    assert (two["peer"], two["ratio"], two["overhead"]) == ("", math.inf, 0.5)
    assert table.loc["three", "ratio"] == 0.25
    assert math.isinf(table.loc["three", "own_time"])
    assert summary.geometric_mean(table["ratio"]) == pytest.approx(math.sqrt(3.0 * 0.25))


def test_an_auto_that_does_not_get_there_loses():
    runs = frame(
        run("auto", [1.0], rel_gap=1e-9, success=False),
        run("scipy-lbfgs", [1.0], peer=True, rel_gap=1e-9, optimum=-0.9),
    )
    (row,) = summary.peers(runs).itertuples()
    assert row.ratio == 0.0


def test_failures_are_counted_by_cause():
    bad = {"status": "failed", "message": "no"}
    runs = frame(run("a", [1.0], **bad), run("a", [1.0], **bad), run("b", [1.0]), run("c", [1.0], status="timeout"))
    assert [(row.solver, row.runs) for row in summary.failures(runs).itertuples()] == [("a", 2), ("c", 1)]


def test_wins_ties_and_losses_are_counted_with_the_noise():
    ratios = pandas.Series([2.0, 1.3, 1.1, 1.0, 0.9, 0.8, 0.5, math.inf, 0.0])
    assert summary.tally(ratios, 0.0) == (4, 1, 4)
    assert summary.tally(ratios, 0.2) == (3, 3, 3)
    assert str(summary.tally(pandas.Series([2.0, 1.0]), 0.1)) == "1 win, 1 tie, 0 losses"


def test_noise_is_the_median_spread_of_repeats():
    rows = [
        run("a", [1.0], repeat=repeat, solve_seconds=seconds - 1.0, instance=name)
        for name, times in {"one": (1.0, 1.5, 1.2), "two": (1.0, 1.1), "three": (4.0,)}.items()
        for repeat, seconds in enumerate(times)
    ]
    assert costs.noise(frame(*rows)) == pytest.approx(0.3)
    assert costs.noise(frame(rows[-1])) == 0.0
