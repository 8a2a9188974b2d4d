"""Does every script of the gallery run, draw its picture, and say what it is?"""

import ast
import runpy
from pathlib import Path

import matplotlib
import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))


@pytest.fixture
def shown(monkeypatch):
    """Return what was drawn when a script showed it: the axes of every figure that has something in them."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = []

    def show():
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            figure.canvas.draw()
            found.append([axes for axes in figure.axes if axes.has_data()])
        pyplot.close("all")

    monkeypatch.setattr(pyplot, "show", show)
    yield found
    pyplot.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_draws_its_picture(script, shown):
    runpy.run_path(str(script), run_name="__main__")
    assert shown
    assert all(axes for axes in shown)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_and_a_sentence(script):
    title, line, blank, *text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()
    assert line == "=" * len(title)
    assert not blank
    assert text
