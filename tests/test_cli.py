"""What a person types, and what they read."""

import json

import pytest
from click.testing import CliRunner

from quartbench import __version__
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
