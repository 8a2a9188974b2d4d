"""A study survives what its solvers do, goes on where it was killed, and loses nothing on a full disk."""

import contextlib
import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.errors import ProblemError
from quartbench.solvers import History, HomGD, Result
from quartbench.study import grid, rows, runner, store, worker

BAD_SOLVERS = Path(__file__).with_name("bad_solvers.py")
SMALL = """
name = "small"
repeats = 1
[[group]]
name = "catalogue"
instances = [{ generator = "spectrum", m = 120, n = 10, sigma_min = 0.2 }, { generator = "orthant", m = 100, n = 8 }]
solvers = ["homgd", "accel-homgd"]
metrics = ["identity", "diagonal"]
seeds = [0, 1]
rel_gaps = [1e-8]
"""
#: Columns that two runs of the same study need not agree in.
TIMES = ["setup_seconds", "solve_seconds", "wall_seconds", "trace_seconds", "created"]


def study_file(folder, text=SMALL):
    path = folder / "small.toml"
    path.write_text(text)
    return path


def run(path, out, **options):
    made = runner.Runner(grid.read_study(str(path)), out, 1, **options)
    made.run()
    return made


def same(one, other):
    for frame in (one, other):
        assert not frame["key"].duplicated().any()
    one, other = (frame.sort_values("key", ignore_index=True).drop(columns=TIMES) for frame in (one, other))
    pandas.testing.assert_frame_equal(one, other)


@pytest.fixture(scope="module", autouse=True)
def _no_pauses():
    """Times do not matter here: no run waits for the threads of the one before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "PAUSE", 0.0)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that nothing has disturbed: its file and its results. Tests do not write there."""
    folder = tmp_path_factory.mktemp("finished")
    path = study_file(folder)
    made = run(path, folder / "out")
    assert (made.done, made.kept) == (16, 0)
    return path, folder / "out"


@pytest.fixture
def copy(finished, tmp_path):
    """The finished study once more, to write in."""
    import shutil

    return study_file(tmp_path), Path(shutil.copytree(finished[1], tmp_path / "out"))


# What is written ------------------------------------------------------------------------------------------------------


def test_results_are_read_in_one_line(finished):
    frame = pandas.read_parquet(finished[1])
    assert list(frame.columns) == [column.name for column in store.COLUMNS]
    assert len(frame) == 16
    same(frame, store.read(finished[1]))
    assert {path.stem for path in (finished[1] / "runs").iterdir()} == set(frame["key"])


def test_rows_say_what_happened(finished):
    frame = store.read(finished[1])
    assert set(frame["status"]) == {"converged"}
    assert frame["success"].all()
    assert (frame["gap"] <= 1e-8).all()
    np.testing.assert_allclose(frame["value"], frame["optimum"], rtol=1.1e-8)
    assert set(frame["instance"]) == {"spectrum 120×10 σ_min=0.2", "orthant 100×8"}
    assert set(frame["metric"]) == {"identity", "diagonal"}
    assert (frame["m"].isin([120, 100]) & frame["n"].isin([10, 8]) & (frame["r"] == 1)).all()
    assert (frame["threads"] == 1).all()
    for row in frame.itertuples():
        assert row.trace_iteration[0] == 0
        assert row.trace_iteration[-1] == row.nit
        assert row.trace_seconds[-1] == row.solve_seconds
        assert row.wall_seconds > row.solve_seconds
        assert json.loads(row.arguments)["sigma_min"] == row.sigma_min


def test_the_study_says_what_made_it(finished):
    about = store.settings(finished[1])
    assert about["study"] == "small"
    assert about["problem_set"] == 1
    assert about["finished"] >= about["created"]
    assert about["config"]["groups"][0]["metrics"] == ["identity", "diagonal"]
    assert about["system"]["cores"] == os.cpu_count()


# Resuming -------------------------------------------------------------------------------------------------------------


def test_what_is_there_is_kept(copy, finished):
    path, out = copy
    made = run(path, out)
    assert (made.done, made.kept) == (0, 16)
    pandas.testing.assert_frame_equal(store.read(out), store.read(finished[1]))


def test_what_is_missing_or_spoiled_is_made_again(copy, finished):
    path, out = copy
    first, second, *_ = sorted((out / "runs").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:1000])
    (out / "runs" / ".half.parquet.part").write_bytes(b"PAR1")
    made = run(path, out)
    assert (made.done, made.kept) == (2, 14)
    same(store.read(out), store.read(finished[1]))
    assert not list((out / "runs").glob(".*"))


def test_a_new_version_makes_its_runs_again_and_no_others(copy, monkeypatch):
    path, out = copy
    before = store.read(out)
    monkeypatch.setattr(HomGD, "version", 2)
    made = run(path, out)
    assert (made.done, made.kept) == (8, 8)
    after = store.read(out)
    assert len(after) == 16
    assert set(after.loc[after["method"] == "homgd", "version"]) == {2}
    kept = before[before["method"] != "homgd"]
    assert set(kept["key"]) == set(after.loc[after["method"] != "homgd", "key"])
    assert len(pandas.read_parquet(out)) == 16, "what was replaced is read no more"


def test_fewer_repeats_or_solvers_throw_nothing_away(copy):
    path, out = copy
    path.write_text(SMALL.replace('"homgd", ', ""))
    made = run(path, out)
    assert (made.done, made.kept) == (0, 8)
    assert len(store.read(out)) == 16


def test_restart_makes_everything_anew(copy, finished):
    path, out = copy
    made = run(path, out, restart=True)
    assert (made.done, made.kept) == (16, 0)
    same(store.read(out), store.read(finished[1]))


def test_another_study_or_system_is_refused(copy):
    path, out = copy
    path.write_text(SMALL.replace('name = "small"', 'name = "other"'))
    with pytest.raises(ProblemError, match="holds the study 'small'"):
        run(path, out)
    about = store.settings(out)
    about["system"]["processor"] = "an abacus"
    store.describe(out, about)
    with pytest.raises(ProblemError, match="another system \\(processor an abacus / "):
        run(study_file(path.parent), out)


def test_two_studies_do_not_write_to_one_directory(copy):
    path, out = copy
    with store.opened(out), pytest.raises(ProblemError, match="another study is writing"):
        run(path, out)


# Killing --------------------------------------------------------------------------------------------------------------


def started(path, out):
    """Start the study in a process of its own."""
    command = [sys.executable, "-m", "quartbench", "compare", "--study", str(path), "--out", str(out), "--threads", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(out, count, process):
    """Wait until so many runs are written."""
    end = time.monotonic() + 120
    while len(list((out / "runs").glob("*.parquet"))) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_killed_study_goes_on_as_if_nothing_had_happened(finished, tmp_path):
    path, out = study_file(tmp_path), tmp_path / "out"

    process = started(path, out)
    wait_for(out, 3, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "runs, which are kept; to go on: quartbench compare --study" in said
    interrupted = len(store.read(out))
    assert 3 <= interrupted < 16

    process = started(path, out)
    wait_for(out, interrupted + 3, process)
    workers = children(process.pid)
    process.kill()
    process.communicate(timeout=60)
    killed = len(store.read(out))
    assert interrupted < killed < 16
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers):
        assert time.monotonic() < end, "the worker of a killed study must end"
        time.sleep(0.05)

    process = started(path, out)
    printed, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"{16 - killed} runs made, {killed} kept" in said
    assert "time to the gap" in printed
    same(store.read(out), store.read(finished[1]))
    assert {file.suffix for file in (out / "runs").iterdir()} == {".parquet"}


# Solvers that misbehave -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def misbehaved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("misbehaved")
    names = [
        "Honest",
        "Raises",
        "Dies",
        "Hangs",
        "ReturnsNaN",
        "LiesAboutValues",
        "LiesALittle",
        "LiesAboutTheGap",
    ]
    text = f"""
time_limit = 1
grace = 2
repeats = 1
[[group]]
name = "catalogue"
instances = [{{ generator = "spectrum", m = 120, n = 10, sigma_min = 0.02 }}]
solvers = {[f"{BAD_SOLVERS}:{name}" for name in names]}
metrics = ["identity"]
[[group]]
name = "catalogue"
instances = [{{ generator = "spectrum", m = 5, n = 10, sigma_min = 0.02 }}, {{ generator = "orthant", m = 100, n = 8 }}]
solvers = ["homgd"]
metrics = ["uniform"]
"""
    run(study_file(folder, text), folder / "out")
    return store.read(folder / "out").set_index("solver")


def test_an_honest_solver_among_them_is_believed(misbehaved):
    row = misbehaved.loc["honest"]
    assert row["status"] == "converged"
    assert row["success"]


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("raises", "failed", "RuntimeError: no such luck"),
        ("dies", "failed", r"the process died \(exit code 7\) while solving"),
        ("hangs", "timeout", r"killed after 4 s of solving: it did not stop by itself"),
        ("returnsnan", "failed", "f is nan at iteration 6"),
        ("liesaboutvalues", "failed", "f is reported as .* below the minimum"),
        ("liesalittle", "failed", "f is reported as .* at iteration .*, where it is"),
        ("liesaboutthegap", "stalled", "no further progress is possible at certified relative gap"),
    ],
)
def test_a_solver_that_misbehaves_is_a_failure_with_its_reason(misbehaved, name, status, message):
    row = misbehaved.loc[name]
    assert row["status"] == status
    assert not row["success"]
    assert re.search(message, row["message"])
    assert (row["m"], row["n"]) == (120, 10)
    assert row["optimum"] == misbehaved.loc["honest", "optimum"]


def test_the_gap_of_a_liar_is_the_true_one(misbehaved):
    row = misbehaved.loc["liesaboutthegap"]
    assert row["gap"] > 1e-3
    assert row["gap"] >= (row["value"] - row["optimum"]) / abs(row["optimum"])


def request(**columns):
    """Return what the runner asks the worker for."""
    given = {"seed": 0, "optimum": None, "given": "{}", "metric": "auto", "rel_gap": 1e-10, "max_iter": 10_000}
    return given | {"time_limit": 60.0, "bounds": False, "kappa": False, "cluster": 0, "blocks": 0} | columns


def test_a_gap_that_a_known_optimum_bears_out_is_no_lie():
    # The last point of homcg gives 7e-10 here by itself; its run had a dual point that gives 5e-12.
    arguments = json.dumps({"m": 10_000, "n": 400, "density": 0.01})
    row = worker.ConvexBench(lambda *_: None).run(request(generator="sparse", arguments=arguments, spec="homcg"))
    assert row["success"], row["message"]
    assert row["lower_bound"] <= row["optimum"]
    assert 0.0 <= row["gap"] <= 1e-10


@pytest.mark.parametrize("asked", [True, False])
def test_kappa_is_measured_where_it_is_asked_for(asked):
    arguments = json.dumps({"m": 60, "n": 8, "sigma_min": 0.2})
    given = request(generator="spectrum", arguments=arguments, spec="homgd", metric="lewis", bounds=True, kappa=asked)
    row = worker.ConvexBench(lambda *_: None).run(given)
    if asked:
        assert 1.0 <= row["kappa_measured"] <= row["kappa_bound"] * (1.0 + 1e-9)
    else:
        assert np.isnan(row["kappa_measured"])


def test_bad_problems_and_metrics_are_failures_too(misbehaved):
    rows = misbehaved.loc["homgd"].set_index("generator")
    assert set(rows["status"]) == {"failed"}
    assert "m must be at least 10" in rows.loc["spectrum", "message"]
    assert "diagonal" in rows.loc["orthant", "message"]
    assert rows.loc["orthant", "n"] == 8


def test_a_worker_that_cannot_start_is_no_failure_of_a_run(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(worker, "serve", os._exit)  # called with two arguments, it raises
    told = r"the process for the runs does not start \(exit code 1\); a script must compare under 'if __name__ == "
    with pytest.raises(ProblemError, match=told):
        run(study_file(tmp_path), tmp_path / "out")
    assert len(store.read(tmp_path / "out")) == 0
    assert "TypeError" in capfd.readouterr().err


def test_a_solver_that_hangs_at_once_has_the_limits_of_its_run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "COMPILING", 0.5)
    text = f"""
time_limit = 0.5
grace = 1
repeats = 1
[[group]]
name = "catalogue"
instances = [{{ generator = "spectrum", m = 120, n = 10, sigma_min = 0.02 }}]
solvers = ["{BAD_SOLVERS}:HangsAtOnce"]
"""
    run(study_file(tmp_path, text), tmp_path / "out")
    row = store.read(tmp_path / "out").iloc[0]
    assert (row["status"], row["m"]) == ("timeout", 120)
    assert row["message"] == "killed after 2.5 s of warming: it did not stop by itself"


def test_a_solver_that_writes_to_the_rows_spoils_no_run_but_its_own(tmp_path):
    def rows(name, *solvers):
        specs = [solver if solver.islower() else f"{BAD_SOLVERS}:{solver}" for solver in solvers]
        text = f"""
repeats = 1
[[group]]
name = "catalogue"
instances = [{{ generator = "spectrum", m = 120, n = 10, sigma_min = 0.02 }}]
solvers = {specs}
metrics = ["identity"]
"""
        folder = tmp_path / name
        folder.mkdir()
        run(study_file(folder, text), folder / "out")
        return store.read(folder / "out").set_index("solver")

    alone = rows("alone", "homgd")
    beside = rows("beside", "Overwrites", "homgd", "OverwritesAndRaises", "gd")
    for name in ("overwrites", "overwritesandraises"):
        assert beside.loc[name, "status"] == "failed"
        assert "it wrote to the rows or to c of its problem" in beside.loc[name, "message"]
    for column in ("status", "value", "lower_bound", "nit", "passes", "optimum"):
        assert beside.loc["homgd", column] == alone.loc["homgd", column]
    assert beside.loc["gd", "optimum"] == alone.loc["homgd", "optimum"]


# Repeats --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "times", "settled"),
    [
        ("converged", [1.0], False),
        ("converged", [1.0, 1.0], False),
        ("converged", [1.0, 1.0, 1.0], True),
        ("converged", [1.0, 1.2, 1.0], False),  # medians 1.1, 1.0
        ("converged", [1.0, 1.2, 1.0, 1.04], True),  # medians 1.0, 1.02
        ("converged", [runner.LONG], True),
        ("time_limit", [0.1], True),
        ("failed", [float("nan")], True),
    ],
)
def test_runs_are_repeated_until_the_median_is_stable(status, times, settled):
    assert runner._settled(status, times) is settled


def test_methods_take_turns(tmp_path):
    text = SMALL.replace("repeats = 1", "repeats = 2").replace("seeds = [0, 1]", "seeds = [0]")
    out = tmp_path / "out"
    seen = []
    made = runner.Runner(grid.read_study(str(study_file(tmp_path, text))), out, 1)
    made.run(lambda label, steps: seen.append(steps))
    frame = store.read(out)
    assert sum(seen) == made.planned == 16
    for _, problem in frame.groupby("generator"):
        assert list(problem["repeat"]) == [0] * 4 + [1] * 4
    plain = [name for name in frame.columns if name not in [*TIMES, "key", "repeat"]]
    one, other = (frame.loc[frame["repeat"] == repeat, plain].reset_index(drop=True) for repeat in (0, 1))
    pandas.testing.assert_frame_equal(one, other)
    assert store.settings(out)["noise"]["floor"] > 0


def test_a_trace_keeps_its_ends():
    history = History(*[np.arange(100_000)] * 3, -np.inf, 1.0, *[np.arange(100_000)] * 2)
    kept = worker.thinned(Result(history=history))["trace_iteration"]
    assert kept[:3] == [0, 1, 2]
    assert kept[-1] == 99_999
    assert 300 < len(kept) <= rows.TRACE


# Disks ----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def largest_file(size):
    """Limit the size of files, as a full disk does. Not for longer than needed: pytest may be writing to one, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_keeps_what_was_written(finished, tmp_path):
    path, out = study_file(tmp_path), tmp_path / "out"
    calls = []
    with contextlib.ExitStack() as full:

        def fill(label, steps):
            calls.append(label)
            if len(calls) == 7:  # three runs are done, the fourth is under way
                full.enter_context(largest_file(1000))

        with pytest.raises(OSError, match="File too large") as error:
            runner.Runner(grid.read_study(str(path)), out, 1).run(fill)
    assert error.value.errno == errno.EFBIG
    assert len(store.read(out)) == 3
    assert not list((out / "runs").glob(".*")), "the half file is gone"
    run(path, out)
    same(store.read(out), store.read(finished[1]))


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def test_a_full_disk_is_a_clear_error(tmp_path):
    with largest_file(100):
        result = compare("--study", "quick", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert f"Error: cannot write to {tmp_path / 'out'}: File too large" in result.output


def test_an_unwritable_directory_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = compare("--study", "quick", "--out", tmp_path / "file" / "below")
    assert result.exit_code == 1
    assert "cannot write to" in result.output
    assert "Not a directory" in result.output
