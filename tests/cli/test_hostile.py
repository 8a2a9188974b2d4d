"""Files and names that somebody hostile, or a full disk, could have made: one clear line each, never a traceback."""

import gzip
import json

import numpy as np
import pytest

from .common import run, run_alone

COORDINATES = "%%MatrixMarket matrix coordinate {kind} general\n{size}\n1 1 {first}\n2 2 1\n3 1 1\n"


def claims(shape, descr="'<f8'"):
    """Return a .npy file whose header claims a shape that its few bytes do not have."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(400)


def market(kind="real", size="3 2 3", first="1"):
    return COORDINATES.format(kind=kind, size=size, first=first).encode()


FILES = {
    "a header of petabytes.npy": claims("(1000000000, 1000000)"),
    "a header of gigabytes.npy": claims("(1000000, 100000)"),
    "a negative shape.npy": claims("(-1, 4)"),
    "a shape beyond integers.npy": claims("(99999999999999999999999999, 4)"),
    "a shape of text.npy": claims("('a', 4)"),
    "unclosed brackets.npy": claims("((((((3, 4)"),
    "texts.npy": claims("(3, 4)", "'<U4'"),
    "records.npy": claims("(3, 4)", "[('a', '<f8')]"),
    "dates.npy": claims("(3, 4)", "'<M8[s]'"),
    "nothing known.npy": claims("(3, 4)", "'|V8'"),
    "no type.npy": claims("(3, 4)", "'nonsense'"),
    "another version.npy": b"\x93NUMPY\x09\x00" + bytes(100),
    "a zip that ends early.npy": b"PK\x03\x04" + bytes(200),
    "empty.npy": b"",
    "an index out of range.mtx": market(first="1\n2 9 1"),
    "index zero.mtx": market().replace(b"1 1 1", b"0 1 1"),
    "negative sizes.mtx": market(size="-3 2 3"),
    "more rows than memory.mtx": market(size="99999999999999 2 3"),
    "more columns than rows.mtx": market(size="3 99999999999 3"),
    "more entries than lines.mtx": market(size="3 2 300000"),
    "an array larger than memory.mtx": b"%%MatrixMarket matrix array real general\n99999999999 2\n1\n",
    "not a number.mtx": market(first="nan"),
    "complex.mtx": market("complex", first="1 1").replace(b"2 2 1", b"2 2 1 0").replace(b"3 1 1", b"3 1 1 0"),
    "bytes.mtx": b"\x00\xff" * 100,
    "no gzip.mtx.gz": market(),
    "half a gzip.mtx.gz": gzip.compress(market() * 1000)[:50],
    "no problem.npz": b"PK\x05\x06" + bytes(18),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["solve", "precondition"])
def test_a_hostile_file_is_one_clear_line(tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    np.save(tmp_path / "c.npy", np.ones(2))
    linear = [tmp_path / "c.npy"] if command == "solve" and path.suffix != ".npz" else []
    result = run(command, path, *linear)
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    assert "Error: " in result.output


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".npy")])
def test_a_hostile_c_is_one_clear_line(files, name):
    (files / name).write_bytes(FILES[name])
    result = run("solve", files / "A.npy", files / name)
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert "Error: c" in result.output


# Markup ---------------------------------------------------------------------------------------------------------------

MINE = '''
from quartbench.solvers import HomGD


class Mine(HomGD):
    """[/b] My own."""

    name = "[/b]|<i>mine"
    reason = "[/red] why not"
'''


@pytest.fixture
def brackets(files):
    """Return a folder whose name would be markup, with a problem and a solver of such a name in it."""
    folder = files / "x["
    folder.mkdir()
    (files / "mine.py").write_text(MINE)
    return folder


def test_names_with_brackets_are_written_and_shown(files, brackets):
    paths = [brackets / "b].npy", brackets / "i].svg"]
    result = run("solve", files / "A.npy", files / "c.npy", "--out", paths[0], "--plot", paths[1])
    assert result.exit_code == 0, result.output
    for path in paths:
        assert path.exists()
        assert f"written: {path}" in result.output


def test_a_solver_with_brackets_in_its_name_is_shown(files, brackets):
    result = run_alone("solve", files / "A.npy", files / "c.npy", "--solver", f"{files / 'mine.py'}:Mine")
    assert result.returncode == 0, result.stderr
    assert "[/b]|<i>mine in the metric" in result.stdout
    assert "[/red] why not" in result.stdout


def test_a_study_with_brackets_in_its_names_is_run_and_reported(files, brackets):
    (files / "mine.toml").write_text(
        f"""
name = "[/b]"
repeats = 1
[[group]]
name = "[/red]|group"
instances = ["spectrum:m=50,n=4,sigma_min=0.1"]
solvers = ["{files / "mine.py"}:Mine", "gd"]
"""
    )
    out = brackets / "b]"
    result = run_alone("compare", "--study", files / "mine.toml", "--out", out, "--threads", 1)
    assert result.returncode == 0, result.stderr
    assert "[/red]|group: time to the gap" in result.stdout
    assert "2 runs made" in result.stderr
    result = run_alone("report", out)
    assert result.returncode == 0, result.stderr
    assert "[/b]|<i>mine" in result.stdout
    page = (out / "_report" / "report.html").read_text(encoding="utf-8")
    assert "<i>mine" not in page
    assert "&lt;i&gt;mine" in page
    summary = (out / "_report" / "report.md").read_text(encoding="utf-8")
    assert r"\[/b\]\|\<i\>mine" in summary
    rows = [line for line in summary.splitlines() if line.startswith("|") and "mine" in line]
    assert rows
    heading = next(line for line in summary.splitlines() if line.startswith("| instance"))
    assert {line.replace(r"\|", "").count("|") for line in rows if "spectrum" in line} == {heading.count("|")}
    result = run_alone("merge", brackets / "[/merged", out)
    assert result.returncode == 0, result.stderr


# JSON -----------------------------------------------------------------------------------------------------------------


def no_constants(name):
    raise AssertionError(f"{name} is not JSON")


def test_what_is_not_known_is_null_in_json(tmp_path):
    # Rows so nearly dependent that nothing is certified: the gap was printed as Infinity, which JSON has not.
    rows = np.random.default_rng(0).standard_normal((30, 6))
    np.save(tmp_path / "A.npy", rows[:, :5] @ np.ones((5, 6)) + 1e-13 * rows)
    np.save(tmp_path / "c.npy", np.ones(6))
    arguments = ["--solver", "gd", "--metric", "identity", "--max-iter", 5, "--json"]
    result = run("solve", tmp_path / "A.npy", tmp_path / "c.npy", *arguments)
    record = json.loads(result.stdout, parse_constant=no_constants)
    assert (record["gap"], record["lower_bound"]) == (None, None)
    assert record["fun"] < 0.0
