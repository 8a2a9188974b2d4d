"""quartbench kernels: measured, written, and refused in clear words."""

import json

import pytest

from .common import run


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
