"""quartbench solve: problems in every kind of file, certified points, and bad input in one clear line."""

import json

import numpy as np
import pytest

from quartbench import Problem, instances

from .common import run, run_alone


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


def test_a_solver_in_a_file_of_ones_own_is_found(files):
    (files / "mine.py").write_text(
        "from quartbench.solvers import HomGD\n\n\nclass Mine(HomGD):\n    '''My own.'''\n    name = 'mine'\n"
    )
    done = run_alone("solve", files / "problem.npz", "--solver", f"{files / 'mine.py'}:Mine")
    assert done.returncode == 0, done.stderr
    assert "mine in the metric" in done.stdout
