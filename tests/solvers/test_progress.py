"""Does the bar fill as the logarithm of a number falls to its target?"""

import math

import pytest
import rich.progress

from quartbench.solvers.progress import bar


class Recorded:
    """Stands for the display of rich: keeps what it is told."""

    def __init__(self, *columns, console, transient):
        self.columns, self.told = columns, {}
        Recorded.last = self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def add_task(self, name, **fields):
        self.told |= {"name": name} | fields
        return 7

    def update(self, task, **fields):
        assert task == 7
        self.told |= fields


@pytest.fixture(autouse=True)
def _recorded(monkeypatch):
    monkeypatch.setattr(rich.progress, "Progress", Recorded)


def filled(target, *numbers):
    """Return how full the bar is after each number, and what it says at last."""
    found = []
    with bar("name", target) as (advance, _):
        for iteration, number in enumerate(numbers):
            advance(number, iteration)
            found.append(Recorded.last.told["completed"])
    return found


def test_it_fills_by_the_share_of_the_digits_that_are_gone():
    assert filled(1e-6, 1e-2, 1e-3, 1e-4, 1e-6) == pytest.approx([0.0, 0.25, 0.5, 1.0])
    assert filled(1e-6, 1e2, 1e-2) == pytest.approx([0.0, 0.5])
    assert filled(1e-6, 1e-2, 1.0, 1e-7) == [0.0, 0.0, 1.0]  # neither below nothing nor above all of it


def test_it_starts_at_the_first_number_that_is_finite():
    assert filled(1e-6, math.inf, 1e-2, 1e-4) == pytest.approx([0.0, 0.0, 0.5])


def test_a_first_number_near_the_target_counts_as_ten_times_the_target():
    assert filled(1e-6, 5e-6, 1e-6) == pytest.approx([math.log10(2.0), 1.0])
    assert filled(1e-6, 1.5e-5, 1.5e-5, 1e-6) == pytest.approx([0.0, 0.0, 1.0])
    assert filled(1e-6, 1e-6) == [1.0]


def test_nothing_left_is_all_of_it():
    assert filled(1e-6, 1e-2, 0.0) == [0.0, 1.0]
    assert filled(None, 0.0) == [1.0]


def test_without_a_target_it_shows_the_number_and_no_share():
    assert filled(None, 1e-2, 1e-8) == [0.0, 0.0]
    assert Recorded.last.told["total"] is None
    assert Recorded.last.told["number"] == "1.0e-08"
    assert Recorded.last.told["iteration"] == 1


def test_it_says_what_falls_the_iteration_and_the_pass():
    with bar("homgd", 1e-6, "misfit") as (advance, watch):
        advance(0.5, 3)
        watch(12)
    told = Recorded.last.told
    assert (told["name"], told["total"], told["number"], told["iteration"], told["passes"]) == (
        *("homgd", 1.0, "5.0e-01"),
        *(3, 12),
    )
    said = Recorded.last.columns[2].text_format
    assert said.startswith("misfit {task.fields[number]}")
