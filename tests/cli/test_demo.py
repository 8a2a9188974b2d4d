"""A picture of each application in one command."""

import re
import sys

import pytest

from .common import run


@pytest.mark.parametrize(
    ("what", "good"),
    [
        ("distances", r"RMSD \de-0[6-9]"),
        ("protein", r"RMSD \de-(0[4-9]|1\d) Å of the 59\d atoms"),
        pytest.param("phase", r"relative error \de-0[6-9]", marks=pytest.mark.slow),
    ],
)
def test_a_demo_recovers_its_data_and_draws_them(what, good, tmp_path):
    path = tmp_path / "picture.png"
    result = run("demo", what, "--out", path)
    assert result.exit_code == 0, result.output
    assert re.search(good, result.output)
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert path.stat().st_size > 20_000


def test_digits_say_what_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = run("demo", "clusters", "--out", tmp_path / "x.png")
    assert result.exit_code == 2
    assert "pip install 'quartbench[data]'" in result.output


def test_a_picture_needs_a_name_that_can_be_drawn(tmp_path):
    result = run("demo", "distances", "--out", tmp_path / "x.gif")
    assert result.exit_code == 2
    assert ".png" in result.output
