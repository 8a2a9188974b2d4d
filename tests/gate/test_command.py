"""quartbench gate as people type it, over results that asv recorded."""

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.gate.suite import TURNS


def run(*arguments):
    return CliRunner().invoke(main, ["gate", *arguments])


def words(result):
    return " ".join(result.output.split())


@pytest.fixture
def gate(checkout, recorded_asv):
    """Return the command in a checkout where asv plays its recording back."""
    checkout.asv = recorded_asv
    return checkout


STEADY = ["--bench", "Counts.*stays", "--bench", "Memory"]


def test_nothing_worse_is_exit_code_0(gate):
    result = run(*STEADY)
    assert result.exit_code == 0, result.output
    assert f"No regression. {gate.hashes[2][:8]} against {gate.hashes[1][:8]}: 2 fine." in words(result)


def test_a_grown_count_is_exit_code_1(gate):
    result = run("--bench", "Counts")
    assert result.exit_code == 1
    assert "1 regression, 1 improvement, 1 fine" in words(result)
    assert [call[0] for call in gate.asv if call[0] != "machine"] == ["run", "run"], "a count needs one turn, one run"


def test_a_slow_time_is_measured_again_alone_and_is_exit_code_1(gate):
    result = run("--bench", "Times")
    assert result.exit_code == 1
    assert f"turn {TURNS} of {TURNS}, commit" in words(result)
    assert f"second run: turn {TURNS} of {TURNS}, commit" in words(result)
    again = gate.asv[-1]
    assert [again[k + 1] for k, word in enumerate(again) if word == "--bench"] == [
        r"^gate\.Times\.time_wait\('slowed'\)$"
    ]
    assert {path.name for path in (gate.path / ".asv" / "gate").iterdir()} == {"first", "second"}


@pytest.mark.parametrize("bench", ["'raises'", "'ends'", "'late'", "'gone'", "Prepared"])
def test_a_benchmark_without_a_result_is_exit_code_2(gate, bench):
    result = run("--bench", bench, *STEADY)
    assert result.exit_code == 2
    assert "1 unmeasured, 2 fine" in words(result)


def test_only_new_benchmarks_compare_nothing(gate):
    result = run("--bench", "'new'")
    assert result.exit_code == 2
    assert "Nothing was compared." in words(result)


def test_an_expected_benchmark_that_is_gone_is_exit_code_2(gate):
    (gate.path / "benchmarks" / "gate.toml").write_text('"gate.Memory.peakmem_gone" = {}\n"other.One" = {}\n')
    result = run("--bench", r"^gate\.Memory")
    assert result.exit_code == 2
    assert "1 unmeasured, 1 fine" in words(result), "what --bench leaves out is not expected"


def test_thresholds_of_the_table_hold(gate):
    table = gate.path / "benchmarks" / "gate.toml"
    table.write_text("\"gate.Counts.track_iterations('grows')\" = { threshold = 1.2 }\n")
    assert run("--bench", "Counts").exit_code == 0
    table.write_text("\"gate.Counts.track_iterations('shrinks')\" = { higher_is_better = true }\n")
    assert run("--bench", "shrinks").exit_code == 1
    table.write_text("x = 1")
    result = run("--bench", "Counts")
    assert result.exit_code == 2
    assert "must be a table" in words(result)


def test_reports_are_written(gate):
    result = run("--bench", "Counts", "--markdown", "gate.md", "--junit", "gate.xml", "--json", "gate.json")
    assert result.exit_code == 1
    assert "written: gate.md" in result.output
    assert (gate.path / "gate.md").read_text(encoding="utf-8").startswith("## ❌")
    assert ElementTree.parse(gate.path / "gate.xml").getroot().attrib["failures"] == "1"
    assert json.loads((gate.path / "gate.json").read_text(encoding="utf-8"))["exit_code"] == 1


def test_a_report_on_standard_output_stands_alone(gate):
    result = run("--bench", "Counts", "--json", "-")
    assert json.loads(result.stdout)["base"] == gate.hashes[1][:8]
    assert "regression" in result.stderr


def test_a_commit_against_itself_is_told_as_such(gate):
    result = run("HEAD", "HEAD", *STEADY)
    assert result.exit_code == 0, result.output
    assert f"{gate.hashes[2][:8]} (again)" in result.output


def test_calibration_shows_the_noise_and_writes_thresholds(gate):
    table = gate.path / "benchmarks" / "gate.toml"
    result = run("--calibrate", "--runs", "2", "--bench", "'equal'", "--bench", "stays")
    assert result.exit_code == 0, result.output
    assert "2 of 2 runs pass" in result.output
    assert not table.exists()
    result = run("--calibrate", "--runs", "2", "--bench", "'equal'", "--bench", "stays", "--write")
    assert "gate.Times.time_wait('equal')\" = { threshold = 1.25, noise = 1.0" in table.read_text(encoding="utf-8")
    assert "\"gate.Counts.track_iterations('stays')\" = { threshold = 1.02, noise = 1.0 }" in table.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "unknown commit 'nowhere'"),
        (["--bench", "("], "is not a regular expression"),
        (["--bench", "nothing"], "no benchmark matches nothing"),
        (["--write"], "--write needs --calibrate"),
        (["HEAD", "--calibrate"], "--calibrate measures HEAD alone"),
        (["--calibrate", "--json", "-"], "--calibrate measures HEAD alone"),
        (["--markdown", "no/such/file"], "there is no directory no/such"),
    ],
)
def test_bad_input_is_exit_code_2_and_one_clear_line(gate, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in words(result)


def test_an_interruption_decides_nothing(gate, monkeypatch):
    from quartbench.gate.suite import Suite

    def interrupted(self, arguments, watch):
        raise KeyboardInterrupt

    monkeypatch.setattr(Suite, "_asv", interrupted)
    result = run(*STEADY)
    assert result.exit_code == 2
    assert "nothing is decided" in result.output


def test_uncommitted_changes_are_warned_of(gate):
    (gate.path / "quartbench").mkdir()
    (gate.path / "quartbench" / "new.py").write_text("")
    assert "uncommitted changes of the package are not measured" in words(run(*STEADY))
