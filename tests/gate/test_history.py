"""Does the history say what asv measured, mark what changed and nothing else, and survive damaged files?"""

import json
import math
import statistics

import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.errors import ProblemError
from quartbench.gate import history, page

from .measured import benchmark, describe, keep, wave

COUNT = 24
TIME = benchmark("gate.SolverTimes.time_to_gap", [["homgd", "auto"]])
PASSES = benchmark("gate.SolverCounts.track_passes", [["rows", "graph"], ["homgd", "auto"]], "passes")
RATIO = benchmark("kernels.Dense.track_relative_time", (), "× NumPy")
SECONDS = benchmark("peers.Peers.track_seconds_to_gap", [["rows"]], "seconds")


def values(place):
    """Return what commit number ``place`` gave: auto gains at 8, homgd takes more passes and time from 15 on."""
    slow = 1.6 if place >= 15 else 1.0
    fast = 0.5 if place >= 8 else 1.0
    samples = [[0.05 * level * wave(7 * place + k) for k in range(8)] for level in (slow, fast)]
    passes = [40.0 * slow, 11.0, None if place == 3 else 70.0, math.nan]
    return [(TIME, samples), (PASSES, passes), (RATIO, [0.8 * wave(place)]), (SECONDS, [0.2 * wave(place)])]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return asv's results of 24 commits."""
    folder = tmp_path_factory.mktemp("asv") / "results"
    describe(folder, [TIME, PASSES, RATIO, SECONDS])
    for place in range(COUNT):
        keep(folder, f"{place:08x}" + "0" * 32, 1_700_000_000_000 + 86_400_000 * place, values(place))
    return folder


@pytest.fixture(scope="module")
def found(results):
    return history.read(results)


def by_name(found, name):
    (one,) = [series for series in found.series if series.name == name]
    return one


def test_series_hold_what_asv_kept(found):
    assert [commit.hash[:8] for commit in found.commits] == [f"{place:08x}" for place in range(COUNT)]
    assert len(found.series) == 2 + 3 + 1 + 1, "what never gave a number is no series"
    passes = by_name(found, "gate.SolverCounts.track_passes('graph', 'homgd')")
    assert passes.values == (70.0, 70.0, 70.0, None, *[70.0] * (COUNT - 4))
    assert passes.counts
    times = by_name(found, "gate.SolverTimes.time_to_gap('auto')")
    assert times.times
    assert times.values[0] == pytest.approx(statistics.median(values(0)[0][1][1])), "asv keeps the median"
    assert by_name(found, "peers.Peers.track_seconds_to_gap('rows')").times


def test_planted_changes_are_found_and_nothing_else(found):
    marked = {(series.name, change.place, change.worse) for series, change in found.changes()}
    assert marked == {
        ("gate.SolverTimes.time_to_gap('homgd')", 15, True),
        ("gate.SolverTimes.time_to_gap('auto')", 8, False),
        ("gate.SolverCounts.track_passes('rows', 'homgd')", 15, True),
    }
    sizes = [change.size for _, change in found.changes()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes == pytest.approx([2.0, 1.6, 1.6], rel=0.05)


def test_a_count_that_moves_at_all_has_changed_and_a_time_must_move_more():
    for kind, least in (("count", True), ("time", False), ("value", False)):
        _, changes = history.detect([100.0] * 6 + [101.0] * 6, [None] * 12, kind)
        assert bool(changes) is least, kind
    _, (change,) = history.detect([1.0] * 6 + [2.0] * 6, [None] * 12, "value", higher=True)
    assert not change.worse, "more is better there"


def test_the_last_commit_alone_is_enough_for_a_count():
    _, (change,) = history.detect([42.0] * 9 + [50.0], [None] * 10, "count")
    assert (change.place, change.before, change.after) == (9, 42.0, 50.0)


def test_times_lead_to_the_counts_of_the_same_runs_and_back(found):
    place = {series.name: number for number, series in enumerate(found.series)}
    related = found.related()
    homgd = place["gate.SolverTimes.time_to_gap('homgd')"]
    counts = [place[f"gate.SolverCounts.track_passes('{rows}', 'homgd')"] for rows in ("graph", "rows")]
    assert sorted(related[homgd]) == sorted(counts)
    assert all(homgd in related[count] for count in counts)
    assert place["kernels.Dense.track_relative_time"] not in related


def test_results_of_another_version_of_a_benchmark_do_not_count(results, tmp_path):
    keep(tmp_path, "ab" * 20, 1, [(RATIO, [5.0])], version="0")
    keep(tmp_path, "cd" * 20, 2, [(RATIO, [6.0])])
    describe(tmp_path, [RATIO])
    assert history.read(tmp_path).series[0].values == (None, 6.0)


def test_machines_are_kept_apart(tmp_path):
    describe(tmp_path, [RATIO])
    for machine, value in (("one", 1.0), ("two", 2.0)):
        keep(tmp_path, "ab" * 20, 1, [(RATIO, [value])], machine=machine)
    found = history.read(tmp_path)
    assert [(series.machine, series.values) for series in found.series] == [("one", (1.0,)), ("two", (2.0,))]
    assert set(found.machines) == {"one", "two"}


def test_git_gives_subjects_order_and_an_address(checkout):
    results = checkout.path / ".asv" / "results"
    describe(results, [RATIO])
    for name in reversed(checkout.hashes):
        keep(results, name, 1, [(RATIO, [1.0])])  # commits of one second, as a script makes them
    assert [one.subject for one in history.read(results, root=checkout.path).commits] == ["a", "b", "c"]
    assert history.read(results, root=checkout.path).url == ""
    for remote in (
        "git@example.org:who/what.git",
        "https://token@example.org/who/what",
        "ssh://git@example.org:22/who/what",
    ):
        checkout.git("remote", "add", "origin", remote)
        assert history.read(results, root=checkout.path).url == "https://example.org/who/what/commit/"
        checkout.git("remote", "remove", "origin")
    checkout.git("remote", "add", "origin", str(checkout.path))
    assert history.read(results, root=checkout.path).url == "", "a directory is no address"


def test_how_long_it_takes_is_known_from_the_last_commit(results, tmp_path):
    assert history.expected(results) == pytest.approx(60.0 + 4 * 30.0)
    assert history.expected(tmp_path) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 2}', '{"version": 1}', "null", "[" * 100_000])
def test_a_damaged_result_is_named_and_left_out(results, tmp_path, damage):
    describe(tmp_path, [RATIO])
    keep(tmp_path, "ab" * 20, 1, [(RATIO, [1.0])])
    (tmp_path / "bench-1" / "deadbeef-env.json").write_text(damage)
    found = history.read(tmp_path)
    assert found.unreadable == ["bench-1/deadbeef-env.json"]
    assert len(found.commits) == 1


@pytest.mark.parametrize(
    ("key", "value"), [("date", "today"), ("commit_hash", "<b>"), ("results", {"x": 3}), ("params", 1)]
)
def test_results_with_nonsense_in_them_are_left_out(tmp_path, key, value):
    describe(tmp_path, [RATIO])
    keep(tmp_path, "ab" * 20, 1, [(RATIO, [1.0])])
    (path,) = (tmp_path / "bench-1").glob("abab*.json")
    (tmp_path / "bench-1" / "deadbeef-env.json").write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    assert history.read(tmp_path).unreadable == ["bench-1/deadbeef-env.json"]


def test_bad_input_is_one_clear_line(tmp_path, results):
    with pytest.raises(ProblemError, match="make bench"):
        history.read(tmp_path / "nowhere")
    describe(tmp_path, [RATIO])
    with pytest.raises(ProblemError, match="no results in"):
        history.read(tmp_path)
    (tmp_path / "benchmarks.json").write_text('{"a": 1}')
    with pytest.raises(ProblemError, match="is not asv's list of benchmarks"):
        history.read(tmp_path)
    with pytest.raises(ProblemError, match="matches nothing"):
        history.read(results, ["nothing"])
    with pytest.raises(ProblemError, match=r"must end in \.html"):
        page.write(history.read(results), tmp_path / "x.txt")


def test_the_command_shows_the_changes_and_writes_the_page(results, tmp_path):
    result = CliRunner().invoke(main, ["history", "--results", str(results), "--out", str(tmp_path / "h.html")])
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert "7 series over 24 commits, 00000000 to 00000017: 3 changes, 2 for the worse and 1 for the better." in words
    assert (tmp_path / "h.html").exists()
    result = CliRunner().invoke(main, ["history", "--results", str(results), "--expect"])
    assert result.output == "the last commit took 3 minutes, its build included\n"
    result = CliRunner().invoke(main, ["history", "--results", str(results), "--bench", "("])
    assert result.exit_code == 2
    assert "is not a regular expression" in result.output


def test_the_page_escapes_what_names_hold(tmp_path):
    nasty = benchmark("gate.Names.track_passes", [["<script>alert(1)</script>", "a & b"]], "passes")
    describe(tmp_path, [nasty])
    keep(tmp_path, "ab" * 20, 1, [(nasty, [1.0, 2.0])])
    text = page.write(history.read(tmp_path), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "a &amp; b" in text
