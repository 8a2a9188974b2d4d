"""What a person types to compare solvers, and what they read."""

from pathlib import Path

import pandas
import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.study import runner, store

from .common import run_alone

BAD_SOLVERS = Path(__file__).parents[1] / "study" / "bad_solvers.py"
INSTANCE = ("--instance", "spectrum:m=120,n=10,sigma_min=0.2")


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(runner, "PAUSE", 0.0)


def test_flags_alone_make_a_study_with_a_table(tmp_path):
    mine = f"{BAD_SOLVERS}:Honest"
    flags = ("--rel-gap", "1e-6", "--rel-gap", "1e-9", "--seed", 3, "--repeats", 1, "--threads", 1, "--out", tmp_path)
    solvers = ("--solver", "homgd", "--solver", mine, "--solver", f"{BAD_SOLVERS}:Raises")
    done = run_alone("compare", *INSTANCE, *solvers, *flags, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert "time to the gap" in done.stdout
    assert "RuntimeError: no such luck" in done.stdout
    assert "6 runs made, 0 kept" in done.stderr
    frame = pandas.read_parquet(tmp_path)
    assert set(frame["solver"]) == {"homgd", "honest", "raises"}
    assert set(frame["rel_gap"]) == {1e-6, 1e-9}
    assert set(frame["seed"]) == {3}
    assert set(frame["threads"]) == {1}
    about = store.settings(tmp_path)
    assert about["study"] == "flags"
    assert about["command"].startswith(f"quartbench compare {' '.join(INSTANCE)}")


def test_a_metric_is_named_once_where_all_share_it_and_with_each_contender_where_they_differ(tmp_path):
    flags = (*INSTANCE, "--solver", "homgd", "--repeats", 1, "--threads", 1, "--rel-gap", "1e-3", "--out", tmp_path)
    done = compare(*flags, "--metric", "identity")
    assert "catalogue: time to the gap in the metric identity, fastest first" in done.output
    assert "·" not in done.output
    done = compare(*flags, "--metric", "identity", "--metric", "auto")
    assert "catalogue: time to the gap, fastest first" in done.output
    assert "homgd · identity" in done.output
    assert "homgd · auto" not in done.output


def test_recoveries_are_compared_by_what_they_recover(tmp_path):
    flags = ("--instance", "phase_gaussian:n=8,ratio=6", "--solver", "auto", "--solver", "wirtinger", "--seed", 0)
    done = compare(*flags, "--repeats", 1, "--threads", 1, "--rel-gap", "1e-6", "--max-iter", 2000, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "recoveries: recovered of seeds, median error" in done.output
    assert "auto 1/1" in done.output
    assert "time to the gap" not in done.output


def test_quiet_is_quiet(tmp_path):
    done = compare(*INSTANCE, "--solver", "homgd", "--repeats", 1, "--quiet", "--out", tmp_path)
    assert (done.exit_code, done.output) == (0, "")


def test_studies_and_columns_are_listed():
    listed = compare("--studies").output
    assert all(name in listed for name in ("quick", "paper", "scaling", "peers", "inverse", "full"))
    explained = compare("--columns").output
    assert all(column.name in explained for column in store.COLUMNS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--study", "quik", "--out", "x"), "did you mean 'quick'?"),
        (("--study", "quick"), "Missing option '--out'"),
        ((*INSTANCE, "--solver", "homgdd", "--out", "x"), "did you mean 'homgd'?"),
        ((*INSTANCE, "--metric", "levis", "--out", "x"), "did you mean 'lewis'?"),
        ((*INSTANCE, "--solver", "nowhere.py:Mine", "--out", "x"), "there is no file"),
        ((*INSTANCE, "--rel-gap", "-1", "--out", "x"), "rel_gap must be a positive number"),
        (("--instance", __file__, "--out", "x"), "a problem in a file is a .npz of Problem.save"),
        (("--instance", "spectrum:m=10", "--out", "x"), "spectrum needs 'n' and 'sigma_min'"),
        ((*INSTANCE, "--solver", "homgd", "--threads", "4096", "--out", "x"), "threads must be at most"),
    ],
)
def test_bad_flags_are_refused_before_any_work(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = compare(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("done", "words"),
    [(0, "before the first run was done"), (1, "after 1 run, which is kept"), (2, "after 2 runs, which are kept")],
)
def test_a_study_that_is_stopped_says_what_is_kept_and_how_to_go_on(done, words, tmp_path, monkeypatch):
    def stopped(runner, _):
        runner.done = done
        raise KeyboardInterrupt

    monkeypatch.setattr("quartbench.study.runner.Runner.run", stopped)
    result = compare(*INSTANCE, "--out", tmp_path)
    assert result.exit_code == 130
    assert f"stopped {words}; to go on: quartbench " in result.output
