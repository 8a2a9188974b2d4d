"""quartbench solve: problems in every kind of file, certified points, and bad input in one clear line."""

import json

import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse as sp

from quartbench import Problem, instances, solve
from quartbench.errors import ProblemError
from quartbench.model.matrices import read_matrix
from quartbench.study.files import read_problem

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


def written(matrix, path):
    """Write a matrix as the end of the path says; a vector becomes one column."""
    column = matrix.reshape(len(matrix), -1)
    match path.name.partition(".")[2]:
        case "csv" if path.stem == "A":
            pandas.DataFrame(column, columns=[f"a {j}" for j in range(column.shape[1])]).to_csv(path, index=False)
        case "csv" | "tsv" | "txt" as ending:
            np.savetxt(path, column, delimiter={"csv": ",", "tsv": "\t", "txt": " "}[ending], header="numbers")
        case "parquet":
            pandas.DataFrame(column, columns=[f"a{j}" for j in range(column.shape[1])]).to_parquet(path)
        case "mtx":
            scipy.io.mmwrite(path, column, precision=17)
        case "npy":
            np.save(path, column)
        case "one.npz":
            np.savez_compressed(path, rows=column)
        case "npz":
            sp.save_npz(path, sp.coo_array(column) if path.stem == "A" else sp.csc_matrix(column))
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "parquet", "mtx", "npy", "npz", "one.npz"])
def test_rows_and_c_are_read_in_every_format(tmp_path, ending):
    problem = instances.spectrum(m=60, n=8, sigma_min=0.2, seed=0)
    rows, c = written(problem.form.rows, tmp_path / f"A.{ending}"), written(problem.c, tmp_path / f"c.{ending}")
    found = read_problem(rows, c)
    np.testing.assert_array_equal(found.c, problem.c)
    np.testing.assert_array_equal(found.form.image(np.eye(8)[3]), problem.form.rows[:, 3])
    result = run("solve", rows, c, "--rel-gap", "1e-9", "--json")
    assert json.loads(result.stdout)["fun"] == pytest.approx(solve(problem, rel_gap=1e-9).fun, rel=1e-8)


def test_a_table_without_headings_is_all_numbers(tmp_path):
    path = tmp_path / "A.csv"
    path.write_text("1,2\n3,4.5e-3\n")
    np.testing.assert_array_equal(read_matrix(path, "rows"), [[1.0, 2.0], [3.0, 4.5e-3]])
    path.write_text("\ufeffx y,z\n\n1, 2\n3,4\n", encoding="utf-8")
    np.testing.assert_array_equal(read_matrix(path, "rows"), [[1.0, 2.0], [3.0, 4.0]])


def test_a_spreadsheet_may_separate_columns_by_semicolons(tmp_path):
    path = tmp_path / "A.csv"
    for headings in ("", "a;b\n"):
        path.write_text(f"{headings}1;2\n3;4.5\n")
        np.testing.assert_array_equal(read_matrix(path, "rows"), [[1.0, 2.0], [3.0, 4.5]])
    path.write_text("1,5;2\n3;4\n")
    with pytest.raises(ProblemError, match="decimal commas"):
        read_matrix(path, "rows")


def test_c_may_be_one_row(tmp_path):
    (tmp_path / "A.csv").write_text("1,2\n3,4\n5,-1\n")
    (tmp_path / "c.csv").write_text("1,2\n")
    np.testing.assert_array_equal(read_problem(tmp_path / "A.csv", tmp_path / "c.csv").c, [1.0, 2.0])


def test_an_npz_of_two_arrays_named_a_and_c_holds_both(files):
    A, c = np.load(files / "A.npy"), np.load(files / "c.npy")
    np.savez(files / "both.npz", A=A, c=c)
    found = read_problem(files / "both.npz", cone="orthant")
    np.testing.assert_array_equal(found.form.rows, A)
    np.testing.assert_array_equal(found.given, c)
    assert found.cone.name == "orthant"
    np.save(files / "other.npy", 2.0 * c)
    np.testing.assert_array_equal(read_problem(files / "both.npz", files / "other.npy").given, 2.0 * c)
    said = json.loads(run("solve", files / "both.npz", "--json").stdout)["fun"]
    assert said == pytest.approx(json.loads(run("solve", files / "A.npy", files / "c.npy", "--json").stdout)["fun"])
    assert run("precondition", files / "both.npz").exit_code == 0


def test_the_cone_of_a_saved_problem_can_be_another(files):
    free, orthant = (
        json.loads(run("solve", files / "problem.npz", *cone, "--json").stdout) for cone in ([], ["--cone", "orthant"])
    )
    problem = Problem.load(files / "problem.npz")
    assert min(free["x"]) < 0.0 <= min(orthant["x"])
    again = solve(Problem(problem.form, problem.c, "orthant"))
    assert orthant["fun"] == pytest.approx(again.fun, rel=1e-6) != pytest.approx(free["fun"], rel=1e-6)
    assert run("solve", files / "problem.npz", "--rank", 1).exit_code == 0


def test_the_point_is_shown_written_and_in_json(files):
    result = run("solve", files / "problem.npz", "--out", files / "x.csv")
    assert result.exit_code == 0, result.output
    x = np.loadtxt(files / "x.csv")
    assert f"{x[0]:.6g}, {x[1]:.6g}" in result.output
    np.testing.assert_array_equal(json.loads(run("solve", files / "problem.npz", "--json").stdout)["x"], x)


def test_complex_rows_are_solved_as_phase_retrieval_forms(tmp_path):
    problem = instances.complex_gaussian(40, 5, seed=0)
    np.save(tmp_path / "Q.npy", problem.form.rows)
    np.save(tmp_path / "c.npy", problem.form.native(problem.c))
    record = json.loads(run("solve", tmp_path / "Q.npy", tmp_path / "c.npy", "--json").stdout)
    x = np.array(record["x"]) @ [1.0, 1.0j]
    assert problem.value(x) == pytest.approx(record["fun"], rel=1e-10)
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
        (["problem.npz", "--rank", "2"], "a saved problem has its own: it is 1, found 2"),
        (["problem.npz", "--cone", "octant"], "did you mean 'orthant'"),
        (["A.npy", "c.npy", "--out", "x.xlsx"], "--out must end in .npy, .csv"),
        (["A.ods", "c.npy"], "must end in .csv, .tsv, .txt, .parquet, .mtx, .mtx.gz, .npy, .npz"),
        (["words.csv", "c.npy"], "could not convert string 'x' to float64 at row 0, column 2"),
        (["holes.csv", "c.npy"], "could not convert string '' to float64 at row 1, column 2"),
        (["pickle.npz", "c.npy"], "is not a .npz file of numbers: it holds something else"),
        (["two.npz", "c.npy"], "must be one array, two named A and c, a matrix of scipy.sparse.save_npz or a problem"),
        (["text.parquet", "c.npy"], "is not a .parquet file"),
        (["words.parquet", "c.npy"], "column 'b' must be numbers, found 'x'"),
        (["holes.parquet", "c.npy"], "no number may be missing, found none in row 1 of column 'b'"),
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
    for name in ("text.npy", "A.ods", "text.parquet"):
        (files / name).write_text("not an array")
    (files / "words.csv").write_text("a,b\n1,x\n2,y\n")
    (files / "holes.csv").write_text("a,b\n1,2\n3,\n")
    pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_parquet(files / "words.parquet")
    pandas.DataFrame({"a": [1, 2], "b": [3, None]}).to_parquet(files / "holes.parquet")
    np.savez(files / "pickle.npz", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(files / "two.npz", a=np.eye(2), b=np.eye(2))
    np.save(files / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    named = [files / a if (files / a).is_file() else a for a in arguments]
    result = run("solve", *named)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert "allow_pickle" not in result.output


def test_a_solver_in_a_file_of_ones_own_is_found(files):
    (files / "mine.py").write_text(
        "from quartbench.solvers import HomGD\n\n\nclass Mine(HomGD):\n    '''My own.'''\n    name = 'mine'\n"
    )
    done = run_alone("solve", files / "problem.npz", "--solver", f"{files / 'mine.py'}:Mine")
    assert done.returncode == 0, done.stderr
    assert "mine in the metric" in done.stdout


def test_a_solver_on_the_command_line_may_carry_settings(files):
    found = json.loads(run("solve", files / "problem.npz", "--solver", "homgd:step=fixed", "--json").stdout)
    assert (found["solver"], found["status"]) == ("homgd", "converged")
    result = run("solve", files / "problem.npz", "--solver", "homgd:stp=fixed")
    assert result.exit_code == 2
    assert "unknown setting of homgd 'stp'; did you mean 'step'?" in result.output


def test_one_iteration_is_not_many(files):
    result = run("solve", files / "problem.npz", "--solver", "gd", "--max-iter", 1, "--rel-gap", 1e-12)
    assert result.exit_code == 1
    assert "stopped after 1 iteration with" in " ".join(result.output.split())
