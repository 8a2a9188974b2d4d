"""Recoveries run as every run of a study does: resumed, caught when they lie, with the error measured for them."""

import json

import numpy as np
import pandas
import pytest

from quartbench import inverse
from quartbench.inverse.contract import METHODS
from quartbench.study import costs, grid, outcomes, recovering, runner, store

STUDY = """
name = "waves"
repeats = 1
max_iter = 500
rel_gaps = [1e-6]
[[group]]
name = "phase-measurements"
instances = [{ generator = "phase_gaussian", n = 8, ratio = 6.0 }]
solvers = ["auto", { method = "auto", restarts = 2 }, "dc", "scipy-lbfgs", "cd"]
seeds = [0, 1]
[[group]]
name = "distances-share"
instances = [{ generator = "distances_random", points = 12, share = 0.05 }]
solvers = ["auto"]
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of recoveries that nothing has disturbed, and its directory."""
    folder = tmp_path_factory.mktemp("waves")
    path = folder / "waves.toml"
    path.write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "PAUSE", 0.0)
        made = runner.Runner(grid.read_study(str(path)), folder / "out", 1)
        made.run()
    assert (made.done, made.kept) == (11, 0)
    return path, folder / "out"


def test_rows_say_what_was_recovered_and_at_what_cost(study):
    frame = store.read(study[1])
    waves = frame[(frame.application == "phase") & (frame.method != "cd")]
    assert waves.success.all()
    assert (waves.error < 1e-3).all()
    assert waves.optimum.isna().all()
    assert (waves.start_passes > 0).all()
    assert (waves.setup_seconds > 0).all()
    assert (waves.wall_seconds > waves.solve_seconds).all()
    for run in waves.itertuples():
        assert run.trace_passes[-1] <= run.passes
        np.testing.assert_allclose(outcomes.residuals(run).min(), run.residual, rtol=1e-6)
    steps = np.concatenate([run.trace_gap for run in waves[waves.method == "dc"].itertuples()])
    assert np.nanmax(steps) <= 1e-2, "each convex step of DC is certified"
    assert waves[waves.method != "dc"].trace_gap.map(lambda gaps: np.isnan(gaps).all()).all()


def test_one_start_serves_all_methods_of_a_problem(study):
    frame = store.read(study[1])
    shared = frame[(frame.application == "phase") & frame.solver.isin(["dc", "scipy-lbfgs"])]
    assert (shared.groupby("seed").setup_seconds.nunique() == 1).all()
    first = shared.groupby("seed").trace_value.apply(lambda traces: {round(trace[0], 9) for trace in traces})
    assert all(len(values) == 1 for values in first)


def test_what_a_method_cannot_take_or_data_cannot_be_made_of_is_a_failure_with_its_reason(study):
    frame = store.read(study[1])
    bad = frame[frame.status == "failed"]
    assert set(bad.method) == {"cd", "auto"}
    assert bad[bad.method == "cd"].message.str.contains("cd needs").all()
    assert "there is nothing to recover" in bad[bad.application == "distances"].message.iloc[0]
    assert not bad.success.any()


def test_recoveries_are_kept_when_the_study_is_run_again(study, monkeypatch):
    monkeypatch.setattr(runner, "PAUSE", 0.0)
    path, out = study
    before = store.read(out)
    again = runner.Runner(grid.read_study(str(path)), out, 1)
    again.run()
    assert (again.done, again.kept) == (0, 11)
    pandas.testing.assert_frame_equal(store.read(out), before)


# What methods may do --------------------------------------------------------------------------------------------------


class Flatterer(inverse.LBFGS):
    """Reports half of F."""

    def iterates(self, problem, metric, start):
        for found in super().iterates(problem, metric, start):
            yield found._replace(at=found.at._replace(value=0.5 * found.at.value))


class Vandal(inverse.LBFGS):
    """Writes to the start that all methods are given."""

    def iterates(self, problem, metric, start):
        VICTIM[0].start[:] = 0.0
        yield from super().iterates(problem, metric, start)


VICTIM = []


def request(method, **more):
    asked = {
        "generator": "phase_gaussian",
        "arguments": json.dumps({"n": 8, "ratio": 6.0, "noise": 0.0}),
        "seed": 0,
        "spec": method,
        "given": "{}",
        "metric": "auto",
        "rel_gap": 1e-6,
        "max_iter": 500,
        "time_limit": 10.0,
        "optimum": None,
        "bounds": False,
    }
    return asked | more


@pytest.fixture
def bench(monkeypatch):
    """A bench, and two methods that it should catch."""
    known = dict(METHODS._found) | {"flatterer": Flatterer, "vandal": Vandal}
    monkeypatch.setattr(METHODS, "_found", known)
    return recovering.RecoveryBench(lambda stage, known: None)


def test_a_method_that_reports_a_lower_f_than_it_has_is_caught(bench):
    assert bench.run(request("lbfgs"))["success"]
    row = bench.run(request("flatterer", rel_gap=1e-2))
    assert (row["status"], row["success"]) == ("failed", False)
    assert "the run reports F =" in row["message"]


def test_a_method_that_writes_to_its_data_is_caught_and_harms_no_other(bench):
    assert bench.run(request("lbfgs"))["success"]
    VICTIM[:] = [bench.recovery]
    row = bench.run(request("vandal"))
    assert "it wrote to the data of its problem" in row["message"]
    assert bench.run(request("lbfgs"))["success"]


def test_time_limits_end_a_run(bench):
    row = bench.run(request("nolips", arguments='{"n": 64, "ratio": 2.0, "noise": 0.0}', time_limit=1e-3))
    assert row["status"] == "time_limit"
    assert not row["success"]


def test_a_method_that_diverges_ends_without_a_warning(bench):
    row = bench.run(request("wirtinger", arguments='{"n": 64, "ratio": 2.0, "noise": 0.0}'))
    assert row["status"] == "stalled"
    assert not row["success"]


def test_results_of_before_there_were_recoveries_are_convex(study):
    frame = store.read(study[1])
    old = costs.prepare(frame.assign(application=None))
    assert len(costs.convex(old)) == len(old)
    assert costs.recoveries(old).empty
