"""What the page of the history draws and says, by examples worked by hand."""

import json
import math
import re

import pytest

from quartbench.errors import ProblemError
from quartbench.gate import history, page
from quartbench.gate.history import Change, Commit, History, Series

from .measured import benchmark, describe, keep

DAY = 86_400_000


def series(*values, name="gate.A.track_passes('x')", kind="count", unit="passes", levels=(), changes=(), machine="one"):
    return Series(name, machine, kind, unit, values, levels, changes)


def commits(count):
    return [Commit(f"{place:08x}" + "0" * 32, 1_700_000_000_000 + DAY * place) for place in range(count)]


def points(text):
    """Return the corners of the line of a drawing."""
    (line,) = re.findall(r'<polyline points="([^"]*)"', text)
    return [tuple(float(number) for number in corner.split(",")) for corner in line.split()]


# Drawings -------------------------------------------------------------------------------------------------------------


def test_a_drawing_has_its_line_levels_and_marks_where_they_belong():
    # 320 × 90 with 8 around: commits at 8, 160 and 312, the least value at 82, the largest at 8.
    drawn = page.drawing(series(1.0, 2.0, 3.0, levels=((0, 1, 1.0), (2, 2, 3.0)), changes=(Change(2, 1.0, 3.0, True),)))
    assert 'viewBox="0 0 320 90"' in drawn
    assert points(drawn) == [(8, 82), (160, 45), (312, 8)]
    assert 'class="level" d="M5.0 82.0H163.0M309.0 8.0H315.0"' in drawn
    assert '<path class="worse" d="M312.0 0V90"/>' in drawn
    assert "track_passes(&#x27;x&#x27;), 1 change" in drawn
    assert 'data-said="1 passes|2 passes|3 passes"' in drawn


def test_a_line_the_size_of_a_word_has_a_dot_at_its_change():
    # 120 × 24 with 3 around.
    change = Change(1, 1.0, 3.0, False)
    drawn = page.sparkline(series(1.0, 3.0, 2.0, changes=(change,)), change)
    assert 'viewBox="0 0 120 24"' in drawn
    assert points(drawn) == [(3, 21), (60, 3), (117, 12)]
    assert '<circle class="better" cx="60.0" cy="3.0" r="2.6"/>' in drawn


def test_what_moves_by_less_than_a_tenth_is_drawn_as_little():
    # The height stands for a tenth of the largest: of 200 that is 20, and 4 of them are a fifth of the 74 there are.
    (_, low), (_, high) = points(page.drawing(series(196.0, 200.0)))
    assert low - high == pytest.approx(74.0 / 5.0, abs=0.11)
    assert low + high == 90.0
    (_, low), (_, high) = points(page.drawing(series(170.0, 200.0)))
    assert (low, high) == (82.0, 8.0)


@pytest.mark.parametrize(("largest", "logarithmic"), [(19.0, False), (21.0, True), (39.0, True)])
def test_values_over_twenty_times_the_least_are_drawn_by_their_logarithms(largest, logarithmic):
    middle = math.sqrt(largest) if logarithmic else (1.0 + largest) / 2.0
    assert points(page.drawing(series(1.0, middle, largest))) == [(8, 82), (160, 45), (312, 8)]


def test_zeros_have_no_logarithm_and_no_height():
    assert points(page.drawing(series(0.0, 5.0, 10.0))) == [(8, 82), (160, 45), (312, 8)]
    assert points(page.drawing(series(0.0, 0.0))) == [(8, 45), (312, 45)]


def test_a_single_commit_is_drawn_in_the_middle_and_a_missing_one_left_out():
    assert points(page.drawing(series(7.0))) == [(160, 45)]
    assert points(page.drawing(series(1.0, None, 3.0))) == [(8, 82), (312, 8)]
    assert points(page.drawing(series(1.0, 3.0))) == [(8, 82), (312, 8)]


# Words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "unit", "value", "words"),
    [
        ("time", "seconds", 0.25, "250 ms"),
        ("time", "seconds", 0.0, "0 s"),
        ("value", "seconds", 0.25, "250 ms"),
        ("value", "bytes", 12_340_000.0, "12.34 MB"),
        ("count", "passes", 40.0, "40 passes"),
        ("value", "twelve chars", 2.0, "2 twelve chars"),
        ("value", "thirteen char", 2.0, "2"),
        ("value", "", 2.0, "2"),
    ],
)
def test_values_are_told_with_a_unit_that_is_a_word(kind, unit, value, words):
    assert page.value_words(series(value, kind=kind, unit=unit), value) == words


def test_the_answer_counts_changes_by_side_and_those_of_the_last_commit():
    worse, better = Change(1, 1.0, 2.0, True), Change(2, 2.0, 1.0, False)
    last_worse = Change(2, 1.0, 3.0, True)
    found = History(
        commits(3),
        [
            series(1.0, 2.0, 1.0, changes=(worse, better)),
            series(1.0, 1.0, 3.0, kind="time", unit="seconds", changes=(last_worse,)),
            series(1.0, 1.0, 1.0),
        ],
        {},
    )
    assert page.answer(found) == [
        "3 series over 3 commits, 00000000 to 00000002: 3 changes, 2 for the worse and 1 for the better.",
        "The last commit changed 2: 1 for the worse, 1 for the better.",
        "2 of the changes are of counts, which no machine moves.",
    ]
    one = History(commits(3), [series(1.0, 2.0, 2.0, changes=(worse,))], {})
    assert page.answer(one) == [
        "1 series over 3 commits, 00000000 to 00000002: 1 change, 1 for the worse and 0 for the better.",
        "1 of the changes is of counts, which no machine moves.",
    ]
    assert page.answer(History(commits(1), [series(1.0)], {})) == [
        "1 series over 1 commit: 00000000. A second one has something to be compared with."
    ]


# The page as a whole --------------------------------------------------------------------------------------------------


def test_the_page_lists_what_changed_where_and_when(monkeypatch):
    changes = (Change(1, 1.0, 2.0, True), Change(2, 2.0, 1.0, False))
    found = History(
        commits(3),
        [series(1.0, 2.0, 1.0, changes=changes), series(1.0, 1.0, 1.0, name="gate.A.track_sweeps")],
        {"one": "A processor"},
    )
    monkeypatch.setattr(page, "MOST", 1)
    shown = page._context(found)
    assert shown["left_out"] == 1
    assert len(shown["changes"]) == 1
    assert shown["days"] == ("2023-11-14", "2023-11-16")
    assert [(one["day"], len(one["changes"])) for one in shown["commits"]] == [
        ("2023-11-16", 1),
        ("2023-11-15", 1),
        ("2023-11-14", 0),
    ]
    assert shown["commits"][0]["changes"][0][1] is changes[1]
    (module,) = shown["modules"]
    assert (module["name"], module["changed"], module["total"]) == ("gate", 1, 2)
    panels = [panel for one in module["benchmarks"] for panel in one["panels"]]
    assert [panel["label"] for panel in panels] == ["x", "track_sweeps"]
    assert [panel["machine"] for panel in panels] == ["", ""]
    # The script finds a commit under the pointer by the share of the room in the width.
    first = points(page.drawing(found.series[0]))[0][0]
    assert shown["room"] == pytest.approx(first / 320.0)
    monkeypatch.setattr(page, "MOST", 5)
    assert page._context(found)["left_out"] == 0


def test_machines_are_named_where_there_are_several():
    found = History(commits(1), [series(1.0), series(2.0, machine="two")], {})
    (module,) = page._context(found)["modules"]
    assert [panel["machine"] for one in module["benchmarks"] for panel in one["panels"]] == ["one", "two"]


def test_what_stands_in_the_way_of_a_page_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    found = History(commits(1), [series(1.0)], {})
    with pytest.raises(ProblemError, match=r"cannot write .*/file: "):
        page.write(found, tmp_path / "file" / "page.html")
    assert page.write(found, tmp_path / "new" / "page.HTML").exists()


# The history behind it ------------------------------------------------------------------------------------------------


def related(*names):
    """Return which of two series leads to the other: times are called time_…"""
    found = History(
        commits(1),
        [series(1.0, name=name, kind="time" if ".time_" in name else "count", unit="") for name in names],
        {},
    ).related()
    assert found in ({}, {0: [1], 1: [0]})
    return bool(found)


def test_times_and_counts_belong_together_by_their_parameters_or_their_class():
    assert related("gate.A.time_x('a')", "gate.B.track_y('a')")
    assert related("gate.A.time_x('a')", "gate.B.track_y('a', 'b')")
    assert related("gate.A.time_x('a', 'b')", "gate.B.track_y('a')")
    assert not related("gate.A.time_x('a')", "gate.A.track_y('b')")
    assert not related("gate.A.time_x('a')", "other.A.track_y('a')")
    assert related("gate.A.time_x", "gate.A.track_y")
    assert not related("gate.A.time_x", "gate.B.track_y")
    assert not related("gate.A.time_x", "gate.A.track_y('a')")
    assert not related("gate.A.time_x('a')", "gate.A.track_y")


RATIO = benchmark("kernels.Dense.track_relative_time", (), "× NumPy")
PASSES = benchmark("gate.A.track_passes", (), "passes")


def test_machines_are_told_by_their_processor_or_their_architecture(tmp_path):
    describe(tmp_path, [RATIO])
    for machine in ("one", "two", "three"):
        keep(tmp_path, "ab" * 20, 1, [(RATIO, [1.0])], machine=machine)
    path = tmp_path / "two" / "machine.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu": ""}))
    (tmp_path / "three" / "machine.json").write_text("{")
    assert history.read(tmp_path).machines == {"one": "A processor, 2 cores, Linux", "two": "x86_64, 2 cores, Linux"}


def test_the_time_to_expect_is_that_of_the_last_commit_alone(tmp_path):
    # A build takes a minute and a benchmark half of one.
    keep(tmp_path, "ab" * 20, 1, [(RATIO, [1.0]), (PASSES, [1.0])])
    keep(tmp_path, "cd" * 20, 2, [(RATIO, [1.0])])
    assert history.expected(tmp_path) == pytest.approx(90.0)


def test_what_was_measured_last_counts_where_a_commit_was_measured_twice(tmp_path):
    describe(tmp_path, [RATIO])
    keep(tmp_path, "ab" * 20, 1_700_000_000_000, [(RATIO, [5.0])])
    (path,) = (tmp_path / "bench-1").glob("abab*.json")
    first = path.with_name(path.name.replace("env", "a"))
    path.rename(first)
    keep(tmp_path, "ab" * 20, 1_600_000_000_000, [(RATIO, [6.0])])  # by its clock, long before
    assert sorted([first.name, path.name]) == [first.name, path.name]
    assert history.read(tmp_path).series[0].values == (5.0,)


def test_a_change_from_or_to_nothing_is_infinite():
    assert Change(1, 0.0, 2.0, True).size == math.inf
    assert Change(1, 2.0, 0.0, False).size == math.inf
    assert Change(1, 2.0, 0.5, False).size == 4.0


def test_levels_reach_from_their_first_commit_to_their_last():
    levels, _ = history.detect([1.0] * 6 + [2.0] * 5, [None] * 11, "count")
    assert levels == ((0, 5, 1.0), (6, 10, 2.0))
