"""What a person types, and what they read."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from click.testing import CliRunner

from quartbench import Problem, __version__, instances
from quartbench.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_version_is_printed():
    assert __version__ in run("--version").output


def test_every_command_explains_itself():
    names = main.list_commands(None)
    assert names
    for name in names:
        result = run(name, "--help")
        assert result.exit_code == 0
        first = result.output.splitlines()[2].strip()
        assert first.endswith("."), f"{name}: its help must start with a sentence that fits the command list"
        assert first.rstrip(".") in run("--help").output


def test_info_names_versions_and_threads():
    facts = json.loads(run("info", "--json").output)
    assert {"quartbench", "numpy", "numba", "threads", "threading layer", "commit"} <= facts.keys()
    assert "numba" in run("info").output


def test_kernel_table_is_measured_and_written(tmp_path):
    result = run("kernels", "--case", "dense-200x20", "--rounds", 1, "--out", tmp_path / "new")
    assert result.exit_code == 0, result.output
    assert "dense 200×20" in result.output
    record = json.loads((tmp_path / "new" / "kernels.json").read_text())
    (row,) = record["rows"]
    assert row["ratio"] == pytest.approx(row["baseline_seconds"] / row["seconds"])
    assert "| dense 200×20 |" in (tmp_path / "new" / "kernels.md").read_text()


def test_unknown_case_suggests_the_nearest():
    result = run("kernels", "--case", "dense-200x2")
    assert result.exit_code == 2
    assert "did you mean 'dense-200x20'" in result.output


def test_unwritable_directory_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("kernels", "--case", "dense-200x20", "--rounds", 1, "--out", tmp_path / "file" / "below")
    assert result.exit_code == 1
    assert "cannot write to" in result.output


@pytest.fixture
def files(tmp_path):
    problem = instances.spectrum(m=60, n=8, sigma_min=0.2, seed=0)
    np.save(tmp_path / "A.npy", problem.form.rows)
    np.save(tmp_path / "c.npy", problem.c)
    scipy.io.mmwrite(tmp_path / "A.mtx", sp.coo_matrix(problem.form.rows))
    problem.save(tmp_path / "problem.npz")
    return tmp_path


def test_a_problem_in_three_kinds_of_file_has_one_solution(files):
    for arguments in (["A.npy", "c.npy"], ["A.mtx", "c.npy"], ["problem.npz"]):
        paths = [files / name for name in arguments]
        result = run("solve", *paths, "--rel-gap", "1e-9", "--out", files / "x.npy", "--json")
        assert result.exit_code == 0, result.output
        record = json.loads(result.stdout)
        assert record["status"] == "converged"
        assert record["gap"] <= 1e-9
        assert record["fun"] == pytest.approx(json.loads(run("solve", files / "problem.npz", "--json").stdout)["fun"])
        problem = Problem.load(files / "problem.npz")
        assert problem.value(np.load(files / "x.npy")) == pytest.approx(record["fun"], rel=1e-12)


def test_complex_rows_are_solved_as_phase_retrieval_forms(tmp_path):
    problem = instances.complex_gaussian(40, 5, seed=0)
    np.save(tmp_path / "Q.npy", problem.form.rows)
    np.save(tmp_path / "c.npy", problem.form.native(problem.c))
    record = json.loads(run("solve", tmp_path / "Q.npy", tmp_path / "c.npy", "--json").stdout)
    assert record["fun"] == pytest.approx(problem.optimum, rel=1e-5)


def test_result_is_printed_and_the_gap_is_drawn(files):
    result = run("solve", files / "problem.npz", "--plot", files / "gap.svg")
    assert result.exit_code == 0, result.output
    assert "certified" in result.output
    assert "converged" in result.output
    assert "</svg>" in (files / "gap.svg").read_text()


def test_an_unreached_gap_is_exit_code_1_and_the_point_is_kept(files):
    result = run("solve", files / "problem.npz", "--solver", "gd", "--max-iter", 2, "--out", files / "x.npy")
    assert result.exit_code == 1
    assert "max_iter" in result.output
    assert np.isfinite(np.load(files / "x.npy")).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A.npy"], "rows need a vector c"),
        (["problem.npz", "c.npy"], "holds its own c"),
        (["c.npy", "c.npy"], "rows must have 2 dimensions"),
        (["A.npy", "c.npy", "--rank", "7"], "rows must come in blocks of rank=7"),
        (["A.npy", "c.npy", "--solver", "homgb"], "did you mean 'homgd'"),
        (["A.npy", "c.npy", "--metric", "levis"], "did you mean 'lewis'"),
        (["A.npy", "c.npy", "--cone", "octant"], "did you mean 'orthant'"),
        (["A.npy", "c.npy", "--plot", "gap.bmp"], "a plot must end in"),
        (["text.npy", "c.npy"], "is not a .npy file"),
        (["pickle.npy", "c.npy"], "is not a .npy file"),
    ],
)
def test_bad_input_is_one_clear_line(files, arguments, message):
    (files / "text.npy").write_text("not an array")
    np.save(files / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    named = [files / a if a.endswith((".npy", ".npz", ".mtx")) else a for a in arguments]
    result = run("solve", *named)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_preconditioners_are_compared(files):
    found = json.loads(run("precondition", files / "A.npy", "--json").stdout)
    kappas = [one["kappa"] for one in found["metrics"]]
    assert [one["name"] for one in found["metrics"]] == ["identity", "uniform", "lewis"]
    assert kappas[2] <= 1.01 * found["best_kappa"]
    assert "█" in run("precondition", files / "A.npy").output


def test_everything_that_has_a_name_is_listed():
    # In a process of its own, as other tests register solvers here.
    command = [sys.executable, "-m", "quartbench", "list", "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert {"gd", "bregman", "homgd", "accel-homgd"} <= found["solvers"].keys()
    assert {"identity", "uniform", "lewis", "diagonal"} == found["metrics"].keys()
    assert all(line for entries in found.values() for line in entries.values()), "each with one line"
    assert "[sigma_min, 1]" in found["instances"]["spectrum"]
    assert "[sigma_min, 1]" in " ".join(run("list").output.split())


def test_a_solver_in_a_file_of_ones_own_is_found(files):
    (files / "mine.py").write_text(
        "from quartbench.solvers import HomGD\n\n\nclass Mine(HomGD):\n    '''My own.'''\n    name = 'mine'\n"
    )
    result = run("solve", files / "problem.npz", "--solver", f"{files / 'mine.py'}:Mine")
    assert result.exit_code == 0, result.output
    assert "mine in the metric" in result.output
