"""Results that asv wrote are read as they are: values, samples, failures with their reason, skips."""

import json
import math
import shutil

import pytest

from quartbench.errors import ProblemError
from quartbench.gate.suite import PROGRESS, Suite, errors, full_names, matches, read_records
from quartbench.gate.verdict import Outcome, State, judge

from .common import PAIR, RECORDED


@pytest.fixture(scope="module")
def records():
    lines = (RECORDED / "asv.log").read_text(encoding="utf-8").splitlines()
    return read_records(RECORDED, PAIR, [r"^gate\."], errors(lines))


def test_kinds_follow_the_type_and_unit_that_asv_has(records):
    kinds = {name.split("(")[0]: record.kind for name, record in records.items()}
    assert kinds == {
        "gate.Times.time_wait": "time",
        "gate.Counts.track_iterations": "count",
        "gate.Failures.track_passes": "count",
        "gate.Prepared.track_kappa": "value",
        "gate.Memory.peakmem_list": "value",
    }


def test_every_parameter_is_a_record_of_its_own(records):
    assert records["gate.Counts.track_iterations('grows')"].head.value == 110
    assert records["gate.Counts.track_iterations('stays')"].head.value == 42


def test_samples_of_all_rounds_are_there(records):
    record = records["gate.Times.time_wait('slowed')"]
    assert len(record.base.samples) == len(record.head.samples) == 16
    assert record.base.value == min(record.base.samples)


@pytest.mark.parametrize(
    ("case", "base", "head", "error"),
    [
        ("raises", State.MEASURED, State.FAILED, "ValueError: rows must be finite [bold]"),
        ("ends", State.MEASURED, State.FAILED, ""),
        ("late", State.MEASURED, State.FAILED, "benchmark timed out (timeout 5s)"),
        ("gone", State.MEASURED, State.SKIPPED, ""),
        ("skipped", State.SKIPPED, State.SKIPPED, ""),
    ],
)
def test_results_without_a_number_keep_their_reason(records, case, base, head, error):
    record = records[f"gate.Failures.track_passes('{case}')"]
    assert (record.base.state, record.head.state, record.head.error) == (base, head, error)
    assert math.isnan(record.head.value)


def test_a_failure_on_base_keeps_its_reason_too(records):
    record = records["gate.Failures.track_passes('new')"]
    assert judge(record).outcome == Outcome.NEW
    assert record.base.error == "AttributeError: no attribute 'new'"


def test_a_failing_setup_cache_is_the_reason_of_its_benchmarks(records):
    record = records["gate.Prepared.track_kappa"]
    assert record.head.error == "setup_cache: RuntimeError: no instance"


def test_recorded_outcomes(records):
    found = {name: judge(record).outcome for name, record in records.items()}
    assert found["gate.Times.time_wait('slowed')"] == Outcome.SUSPECT
    assert found["gate.Times.time_wait('equal')"] == Outcome.FINE
    assert found["gate.Times.time_wait('short')"] == Outcome.WORSE
    assert found["gate.Counts.track_iterations('grows')"] == Outcome.REGRESSION
    assert found["gate.Counts.track_iterations('shrinks')"] == Outcome.IMPROVEMENT


def test_only_what_is_asked_for_is_read():
    assert list(read_records(RECORDED, PAIR, ["Memory"])) == ["gate.Memory.peakmem_list"]


def test_results_of_a_commit_that_are_not_there_are_not_invented(tmp_path):
    shutil.copytree(RECORDED, tmp_path / "copy")
    for path in (tmp_path / "copy").glob(f"*/{PAIR.base[:8]}-*"):
        path.unlink()
    with pytest.raises(FileNotFoundError):
        read_records(tmp_path / "copy", PAIR, ["."])


def test_names_are_those_that_asv_selects_by():
    assert full_names("a.b", []) == ["a.b"]
    assert full_names("a.b", [["1", "2"], ["'x'"]]) == ["a.b(1, 'x')", "a.b(2, 'x')"]
    assert matches("a.b(1, 'x')", [r"^a\.c", r"\(1,"])
    assert not matches("a.b(1, 'x')", [r"^b"])


def test_progress_is_read_from_the_lines_of_asv():
    text = (RECORDED / "asv.log").read_text(encoding="utf-8")
    steps = [float(found["percent"]) for found in map(PROGRESS.match, text.splitlines()) if found]
    assert steps[-1] == 100
    assert "Running (gate.Times.time_wait" in text


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project, and a home of its own for asv's description of the machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "asv.conf.json").write_text(
        '// a comment\n{"repo": ".", "benchmark_dir": "b", "env_dir": "e", "html_dir": "h", "results_dir": "r"}'
    )
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def test_the_results_of_everyday_runs_are_left_alone(project):
    from asv import util

    results = project / ".asv" / "gate" / "first"
    results.mkdir(parents=True)
    path = Suite(project)._configuration(results)
    found = util.load_json(str(path))
    assert found["results_dir"] == str(results)
    assert found["env_dir"] == str((project / "e").resolve()), "environments are shared"
    assert (results / "pyproject.toml").exists()


@pytest.mark.parametrize(
    ("known", "asks"),
    [(None, True), ({"HERE": {}}, False), ({"other": {}}, False), ({"other": {}, "another": {}}, True)],
)
def test_a_machine_that_asv_knows_is_not_described_again(project, monkeypatch, known, asks):
    from asv.machine import Machine

    here = Machine.get_unique_machine_name()
    path = project / ".asv-machine.json"
    if known is not None:
        path.write_text(json.dumps({"version": 1} | {here if k == "HERE" else k: v for k, v in known.items()}))
    calls = []
    monkeypatch.setattr(Suite, "_asv", lambda self, arguments, watch: calls.append(arguments) or [])
    Suite(project)._know_machine()
    assert calls == ([["machine", "--yes"]] if asks else [])


def test_asv_that_cannot_run_is_a_clear_error(project):
    with pytest.raises(ProblemError, match="asv measured nothing"):
        Suite(project).measure(PAIR, ["."], lambda done, text: None)


def play_asv(project, script):
    """Let ``python -m asv`` in this directory run a script."""
    (project / "asv").mkdir()
    (project / "asv" / "__init__.py").touch()
    (project / "asv" / "__main__.py").write_text(script, encoding="utf-8")


def test_the_output_is_followed_while_it_is_written(project):
    """A program that prints as asv does, in pieces that cut lines and characters in two."""
    text = (
        "· Discovering benchmarks\n[25.00%] · For demo commit 155b90ff <main> (round 2/2):\n[25.00%] ·· Building\n"
        "[30.00%] ··· Running (gate.A.time_a--)..\n[55.00%] ··· gate.B.time_b      failed\n"
    ).encode()
    pieces = [text[:1], text[1:20], text[20:100], text[100:]]
    play_asv(
        project,
        f"import sys, time\nfor piece in {pieces!r}:\n"
        "    sys.stdout.buffer.write(piece)\n    sys.stdout.buffer.flush()\n    time.sleep(0.05)\n",
    )
    seen = []
    lines = Suite(project)._asv([], lambda done, text: seen.append((done, text)))
    assert lines == text.decode().splitlines()
    assert (0.25, "commit 155b90ff") in seen
    assert (0.3, "gate.A.time_a") in seen
    assert seen[-1] == (0.55, "gate.B.time_b")


def test_an_interruption_also_ends_asv(project):
    play_asv(
        project,
        "import signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n    print('[ 5.00%] · For demo commit 155b90ff (round 1/2):', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    open('ended', 'w').close()\n",
    )

    def interrupt(done, text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Suite(project)._asv([], interrupt)
    assert (project / "ended").exists()
