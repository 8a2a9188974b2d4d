"""How far a measurement is, as it is told: shares that rise from 0 to 1, turn by turn and run by run."""

import json

import pytest

from quartbench.gate import run as gate_run
from quartbench.gate.commits import choose
from quartbench.gate.suite import TURNS, Suite


def test_turns_of_a_measurement_share_its_progress(checkout, recorded_asv):
    told = []
    Suite(checkout.path).measure(choose(checkout.path), ["Times"], lambda done, text: told.append((done, text)))
    assert len(told) == 2 * TURNS
    for number, (done, text) in enumerate(told):
        assert done == pytest.approx((number + 1) / (2 * TURNS))
        assert text.startswith(f"turn {number // 2 + 1} of {TURNS}, commit ")


def test_runs_of_a_calibration_share_its_progress(checkout, recorded_asv):
    told, runs = [], 3
    gate_run.calibrate(
        checkout.path,
        choose(checkout.path),
        runs,
        lambda done, text: told.append((done, text)),
        ["Counts.*stays"],  # counts take one turn on each side
    )
    assert len(told) == 2 * runs
    for number, (done, text) in enumerate(told):
        run, side = divmod(number, 2)
        assert done == pytest.approx((run + (side + 1) / (2 * TURNS)) / runs)
        assert text.startswith(f"run {run + 1}/{runs}: turn 1 of {TURNS}, commit ")


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"cpu": "An abacus", "arch": "beads", "num_cpu": "2", "os": "Linux"}, "An abacus, 2 cores, Linux"),
        ({"cpu": "", "arch": "beads", "num_cpu": "4", "os": "Linux"}, "beads, 4 cores, Linux"),
    ],
)
def test_the_machine_is_its_processor_or_its_architecture(tmp_path, about, words):
    suite = Suite(tmp_path)
    assert gate_run._machine(suite) == ""
    folder = suite.work / "first" / "here"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps(about))
    assert gate_run._machine(suite) == words
