"""The table of thresholds: what is read, what is refused, what calibration writes."""

import math

import pytest

from quartbench.errors import ProblemError
from quartbench.gate.thresholds import measure_noise, read_table, write_table
from quartbench.gate.verdict import Limit


def written(tmp_path, text):
    path = tmp_path / "gate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_no_table_means_the_usual_thresholds(tmp_path):
    assert read_table(tmp_path / "gate.toml") == {}


def test_table_is_read(tmp_path):
    path = written(
        tmp_path, '"gate.A.time_b(\'γ\')" = { threshold = 1.4, noise = 1.1 }\n"gate.C" = { higher_is_better = true }'
    )
    assert read_table(path) == {"gate.A.time_b('γ')": Limit(1.4), "gate.C": Limit(None, True)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = {", "is not valid TOML"),
        ("x = 1.25", "must be a table"),
        ("x = { treshold = 1.25 }", "did you mean 'threshold'"),
        ("x = { threshold = 0.9 }", "at least 1, found 0.9"),
        ("x = { threshold = true }", "at least 1, found True"),
        ("x = { threshold = inf }", "at least 1, found inf"),
        ("x = { threshold = nan }", "at least 1, found nan"),
        ("x = { threshold = '1.25' }", "at least 1, found '1.25'"),
        ("x = { higher_is_better = 1 }", "must be true or false, found 1"),
    ],
)
def test_a_bad_table_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(ProblemError, match=r"gate\.toml") as error:
        read_table(written(tmp_path, text))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("kind", "ratios", "largest", "threshold"),
    [
        ("time", [1.0, 1.05, 0.98], 1.05, 1.25),
        ("time", [1.125], 1.125, 1.25),
        ("time", [1.0, 0.8], 1.25, 1.5),
        ("time", [1.13], 1.13, 1.3),
        ("count", [1.0, 1.0], 1.0, 1.02),
        ("count", [1.03], 1.03, 1.1),
        ("value", [0.0], math.inf, math.inf),
    ],
)
def test_a_threshold_leaves_room_for_twice_the_noise(kind, ratios, largest, threshold):
    noise = measure_noise("x", kind, ratios)
    assert noise.largest == pytest.approx(largest)
    assert noise.threshold == pytest.approx(threshold)
    assert noise.runs == len(ratios)


def test_calibration_writes_what_it_measured_and_keeps_the_rest(tmp_path):
    path = written(tmp_path, '"b" = { threshold = 2.0, higher_is_better = true }\n"kept" = { threshold = 3.0 }')
    names = ["b", "gate.A(\"γ = 1\", 'x\\y')", "unsteady"]
    write_table(path, [measure_noise(name, "time", [0.0 if name == "unsteady" else 1.2]) for name in names])
    assert read_table(path) == {"b": Limit(1.4, True), "kept": Limit(3.0), names[1]: Limit(1.4)}
    before = path.read_text(encoding="utf-8")
    write_table(path, [measure_noise("b", "time", [1.2])])
    assert path.read_text(encoding="utf-8") == before, "writing the same again changes nothing"
