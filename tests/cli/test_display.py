"""How the command line shows things: bars on narrow screens, help that fits, and places that cannot be written to."""

import io

import pytest
from rich.console import Console

from quartbench.cli import main
from quartbench.cli.display import progress, study_progress
from quartbench.precondition import METRICS

from .common import run, run_alone


@pytest.mark.parametrize("width", [50, 60, 80, 120])
@pytest.mark.parametrize("make", [progress, study_progress])
def test_a_narrow_screen_cuts_the_label_of_a_bar_and_none_of_its_numbers(make, width):
    console = Console(width=width, file=io.StringIO())
    bar = make(console)
    bar.add_task("coherent 500×20 γ=0.999 peaks=10 · accel-homgd restart=scheduled", total=6676, completed=1165)
    console.print(bar.get_renderable())
    (line,) = console.file.getvalue().splitlines()
    assert len(line) <= width
    assert "coheren" in line
    assert "1165/6676 0:00:00" in line
    assert make is progress or line.rstrip().endswith("left -:--:--")


def test_a_label_is_no_markup():
    console = Console(width=120, file=io.StringIO())
    bar = progress(console)
    bar.add_task("[gate] time_solve", total=1)
    console.print(bar.get_renderable())
    assert "[gate] time_solve" in console.file.getvalue()


@pytest.mark.parametrize("name", ["", *main.list_commands(None)])
def test_help_fits_a_terminal_of_80_columns(name):
    lines = run_alone(*filter(None, [name]), "--help", COLUMNS="80").stdout.splitlines()
    assert lines
    assert [line for line in lines if len(line) > 80 or (line.endswith("...") and not line.startswith("Usage"))] == []


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_the_help_of_metric_names_all_of_them(command):
    text = "".join(run(command, "--help").output.split())  # a line may break at the hyphen of a name
    assert f"{','.join(METRICS)}orauto." in text


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("solve", "--out", "x.npy"),
        ("solve", "--plot", "gap.svg"),
        ("demo", "--out", "picture.png"),
        ("compare", "--curves", "gaps.svg"),
    ],
)
def test_a_place_that_is_not_there_is_found_before_any_work(command, option, name, files, monkeypatch):
    def work(*_, **__):
        raise AssertionError("it began")

    monkeypatch.setattr("quartbench.solvers.solve", work)
    monkeypatch.setattr("quartbench.inverse.phase", work)
    monkeypatch.setattr("quartbench.study.runner.Runner.run", work)
    arguments = {"solve": [files / "problem.npz"], "demo": ["phase"], "compare": ["--out", files / "results"]}[command]
    result = run(command, *arguments, option, files / "nowhere" / name)
    assert result.exit_code == 2
    assert f"there is no directory {files / 'nowhere'}" in " ".join(result.output.split())
