"""What people and programs read of a verdict."""

import io
import json
from xml.etree import ElementTree

import pytest
from rich.console import Console

from quartbench.gate.report import Report, as_json, in_order, junit, markdown, noise_table, table
from quartbench.gate.suite import errors, read_records
from quartbench.gate.thresholds import measure_noise
from quartbench.gate.verdict import Measurement, Outcome, Record, State, judge

from .common import PAIR, RECORDED


def made(*records):
    return Report("base", "head", in_order([judge(record) for record in records]), "a machine")


@pytest.fixture(scope="module")
def report():
    lines = (RECORDED / "asv.log").read_text(encoding="utf-8").splitlines()
    return made(*read_records(RECORDED, PAIR, ["."], errors(lines)).values())


def count(name, base, head):
    return Record(name, "count", "", *(Measurement(State.MEASURED, float(value)) for value in (base, head)))


def shown(renderable, width=100):
    console = Console(width=width, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_terminal_table_fits_and_loses_nothing(report, width):
    lines = shown(table(report, width), width).splitlines()
    assert max(len(line) for line in lines) <= width
    text = "".join(line.replace(" ", "") for line in lines)
    for word in ("AttributeError:", "regression", "unmeasured", "43.91MB"):
        assert word in text


@pytest.mark.parametrize(("width", "whole"), [(99, False), (100, True)])
def test_names_of_benchmarks_are_whole_in_a_wide_terminal(report, width, whole):
    assert [column.no_wrap for column in table(report, width).columns] == [whole, True, True, True, True, False]


def test_terminal_table_ends_on_what_matters_and_leaves_out_what_is_the_same(report):
    text = shown(table(report))
    lines = text.splitlines()
    assert [word for word in ("benchmark", "base", "head", "ratio", "verdict", "why") if word not in lines[1]] == []
    assert text.count("'grows'") == 1
    assert "regression" in text.split("'grows'")[0].splitlines()[-2]
    assert "[bold]" in text, "markup in an error is text"
    assert text.index("new") < text.index("+10 %") < text.index("Regression. head against base")
    assert "'stays'" not in text
    assert "'skipped'" not in text
    assert "Not listed: 2 skipped or exactly the same." in " ".join(text.split())


def test_summary_counts_every_outcome(report):
    assert report.summary().startswith("Regression. head against base: 1 regression, 5 unmeasured, 1 suspect, ")
    assert ": 2 regressions, 2 fine." in made(*(count(name, 1, 1 + k % 2) for k, name in enumerate("abcd"))).summary()
    assert made(count("a", 1, 1)).summary() == "No regression. head against base: 1 fine."
    assert made(count("a", -1, 1)).summary().startswith("Could not measure everything.")
    new = Record("a", "count", "", Measurement(State.ABSENT), Measurement(State.MEASURED, 1.0))
    assert made(new).summary() == "Nothing was compared. head against base: 1 new."


def test_markdown_shows_what_matters_and_folds_the_rest(report):
    text = markdown(report)
    shown_first, folded = text.split("<details>")
    assert shown_first.startswith("## ❌ Performance gate")
    assert "| `gate.Counts.track_iterations('grows')` | 100 | 110 | 1.10× | **regression** |" in shown_first
    assert "'stays'" not in shown_first
    assert "| `gate.Counts.track_iterations('stays')` | 42 | 42 | 1.00× | fine |" in folded
    assert "a machine" in folded
    assert len({row.count("|") for row in text.splitlines() if row.startswith("|")}) == 1


def test_markdown_survives_bars_and_tags():
    bad = Record("a('x|y')", "count", "", Measurement(State.MEASURED, 1.0), Measurement(State.FAILED, error="<b>|"))
    row = next(line for line in markdown(made(bad)).splitlines() if line.startswith("| `a"))
    assert row == "| `a('x\\|y')` | 1 | failed |  | **unmeasured** | fails: &lt;b>\\| |"
    assert markdown(made(bad)).startswith("## ⚠️")
    assert markdown(made(count("a", 1, 1))).startswith("## ✅")


def test_junit_is_xml_with_the_right_counts(report):
    suite = ElementTree.fromstring(junit(report).encode())
    assert suite.attrib["tests"] == str(len(report.verdicts)) == str(len(suite))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{tag}")) == int(suite.attrib[attribute]) > 0
    (failure,) = suite.findall("testcase/failure/..")
    assert failure.attrib == {"classname": "gate.Counts", "name": "track_iterations('grows')"}


def test_junit_survives_control_characters():
    bad = Record(
        "g.a('\x1b')", "count", "", Measurement(State.MEASURED, 1.0), Measurement(State.FAILED, error="\x1b[31m&<")
    )
    suite = ElementTree.fromstring(junit(made(bad)).encode())
    assert suite.find("testcase").attrib["name"] == "a('')"
    assert "[31m&<" in suite.find("testcase/error").attrib["message"]


def test_json_holds_everything_and_is_strict(report):
    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    found = json.loads(as_json(report), parse_constant=refuse)
    assert found["exit_code"] == 1
    assert len(found["verdicts"]) == len(report.verdicts)
    first = found["verdicts"][0]
    assert (first["outcome"], first["record"]["head"]["value"]) == ("regression", 110)
    slowed = next(one for one in found["verdicts"] if one["outcome"] == "suspect")
    assert len(slowed["record"]["base"]["samples"]) == 16


def test_order_is_that_of_importance(report):
    order = [list(Outcome).index(verdict.outcome) for verdict in report.verdicts]
    assert order == sorted(order)


def test_units_read_well(report):
    text = markdown(report)
    assert "MB |" in text
    assert " ms |" in text
    assert "| 1.0100× |" not in text
    assert "1.0010×" in markdown(made(count("a", 1000, 1001))), "a count that moved does not look equal"


def test_noise_is_listed_with_the_noisiest_last():
    text = shown(noise_table([measure_noise("loud", "time", [1.2]), measure_noise("quiet", "count", [1.0])], 1))
    assert text.index("quiet") < text.index("loud")
    assert "1.200×" in text
    assert "1.40×" in text
