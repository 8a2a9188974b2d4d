"""How does a verdict read in a terminal, in a pull request, in a test report, and to a program?"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from xml.etree import ElementTree

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from quartbench.gate.thresholds import Noise
from quartbench.gate.verdict import Measurement, Outcome, State, Verdict, exit_code
from quartbench.views import duration

COLOURS = {
    Outcome.REGRESSION: "bold red",
    Outcome.UNMEASURED: "bold magenta",
    Outcome.SUSPECT: "bold magenta",
    Outcome.WORSE: "yellow",
    Outcome.IMPROVEMENT: "green",
    Outcome.NEW: "cyan",
    Outcome.FINE: "",
    Outcome.SKIPPED: "dim",
}
HEADINGS = ("benchmark", "base", "head", "ratio", "verdict", "why")
#: Outcomes that a summary leaves out.
QUIET = (Outcome.FINE, Outcome.SKIPPED)
SENTENCES = {0: "No regression.", 1: "Regression.", 2: "Could not measure everything."}


@dataclass(frozen=True)
class Report:
    """All verdicts about two commits, in the order of :class:`Outcome`."""

    base: str
    head: str
    verdicts: tuple[Verdict, ...]
    machine: str = ""

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return exit_code(self.verdicts)

    def summary(self) -> str:
        """Return the verdict as one sentence, then how many benchmarks had which outcome."""
        counts = Counter(verdict.outcome for verdict in self.verdicts)
        listed = ", ".join(_counted(counts[outcome], outcome) for outcome in Outcome if counts[outcome])
        sentence = SENTENCES[self.exit_code]
        if self.exit_code == 2 and not counts[Outcome.UNMEASURED]:
            sentence = "Nothing was compared."
        return f"{sentence} {self.head} against {self.base}: {listed or 'no benchmarks'}."


def in_order(verdicts: list[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts, what matters most first, by name within an outcome."""
    order = list(Outcome)
    return tuple(sorted(verdicts, key=lambda one: (order.index(one.outcome), one.record.name)))


def table(report: Report, width: int = 100) -> Table:
    """Return the table for a terminal of some width: what matters most is at its end, next to the summary.

    What is skipped and what is exactly the same, as most counts are, is only counted.
    """
    flexible = ("why",) if width >= 100 else ("benchmark", "why")
    listed = [
        verdict
        for verdict in reversed(report.verdicts)
        if verdict.outcome != Outcome.SKIPPED and not (verdict.outcome == Outcome.FINE and verdict.ratio == 1)
    ]
    left_out = len(report.verdicts) - len(listed)
    caption = report.summary() + (f" Not listed: {left_out} skipped or exactly the same." if left_out else "")
    colour = {0: "bold green", 1: "bold red", 2: "bold magenta"}[report.exit_code]
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left", caption_style=colour)
    shown.padding = (0, 1, 0, 0)
    for heading in HEADINGS:
        justify = "right" if heading in ("base", "head", "ratio") else "left"
        shown.add_column(heading, justify=justify, no_wrap=heading not in flexible, overflow="fold")
    for verdict in listed:
        cells = [escape(cell) for cell in _cells(verdict)]
        cells[0] = cells[0].replace("(", "\n  (", 1)
        colour = COLOURS[verdict.outcome]
        if colour:
            cells[4] = f"[{colour}]{cells[4]}[/]"
        shown.add_row(*cells)
    return shown


def markdown(report: Report) -> str:
    """Return a comment for a pull request: the sentence, what is worth reading, and everything else folded away."""
    mark = {0: "✅", 1: "❌", 2: "⚠️"}[report.exit_code]
    notable = [verdict for verdict in report.verdicts if verdict.outcome not in QUIET]
    lines = [f"## {mark} Performance gate", "", report.summary(), ""]
    if notable:
        lines += [*_markdown_table(notable), ""]
    quiet = [verdict for verdict in report.verdicts if verdict.outcome in QUIET]
    if quiet:
        lines += [
            "<details>",
            f"<summary>{len(quiet)} without a change worth reading</summary>",
            "",
            *_markdown_table(quiet),
            "",
            "</details>",
            "",
        ]
    if report.machine:
        lines += [f"Measured in turns on {report.machine}. Ratio: head over base.", ""]
    return "\n".join(lines)


def junit(report: Report) -> str:
    """Return JUnit XML: a regression is a failure, what could not be measured an error."""
    counts = Counter(verdict.outcome for verdict in report.verdicts)
    unmeasured = counts[Outcome.UNMEASURED] + counts[Outcome.SUSPECT]
    suite = ElementTree.Element(
        "testsuite",
        name="quartbench gate",
        tests=str(len(report.verdicts)),
        failures=str(counts[Outcome.REGRESSION]),
        errors=str(unmeasured),
        skipped=str(counts[Outcome.SKIPPED]),
    )
    tags = {
        Outcome.REGRESSION: "failure",
        Outcome.UNMEASURED: "error",
        Outcome.SUSPECT: "error",
        Outcome.SKIPPED: "skipped",
    }
    for verdict in report.verdicts:
        function, _, parameters = verdict.record.name.partition("(")
        group, _, name = function.rpartition(".")
        name += f"({parameters}" if parameters else ""
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=_printable(name))
        text = _printable(" · ".join(cell for cell in _cells(verdict)[1:] if cell))
        if verdict.outcome in tags:
            ElementTree.SubElement(case, tags[verdict.outcome], message=text)
        else:
            ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def as_json(report: Report) -> str:
    """Return everything, samples included, as JSON; numbers that JSON cannot hold are null."""
    record = {
        "base": report.base,
        "head": report.head,
        "machine": report.machine,
        "exit_code": report.exit_code,
        "summary": report.summary(),
        "verdicts": [asdict(verdict) for verdict in report.verdicts],
    }
    return json.dumps(finite(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


#: What can be written to a file, by the option that asks for it.
WRITERS: dict[str, Callable[[Report], str]] = {"markdown": markdown, "junit": junit, "json": as_json}


def noise_table(found: list[Noise], runs: int) -> Table:
    """Return the noise floor of this machine, the noisiest benchmark last."""
    title = f"Noise floor: {runs} runs of a commit against itself"
    shown = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    for heading in ("benchmark", "kind", "largest change", "threshold"):
        shown.add_column(heading, justify="left" if heading in ("benchmark", "kind") else "right")
    for one in sorted(found, key=lambda noise: (noise.largest, noise.name)):
        shown.add_row(escape(one.name), one.kind, f"{one.largest:.3f}×", f"{one.threshold:.2f}×")
    return shown


def _counted(count: int, outcome: Outcome) -> str:
    """Return how many had an outcome: 1 regression, 2 regressions; but 2 worse."""
    several = count > 1 and outcome in (Outcome.REGRESSION, Outcome.IMPROVEMENT)
    return f"{count} {outcome}{'s' * several}"


def _cells(verdict: Verdict) -> list[str]:
    record = verdict.record
    sides = [_value(side, record.kind, record.unit) for side in (record.base, record.head)]
    ratio = "" if math.isnan(verdict.ratio) else f"{verdict.ratio:.2f}×"
    if verdict.ratio != 1 and ratio == "1.00×" and record.kind == "count":
        ratio = f"{verdict.ratio:.4f}×"
    return [record.name, *sides, ratio, str(verdict.outcome), verdict.why]


def _value(side: Measurement, kind: str, unit: str) -> str:
    if side.state != State.MEASURED:
        return str(side.state)
    if kind == "time":
        return duration(side.value)
    if unit == "bytes":
        return f"{side.value / 1e6:.4g} MB"
    return f"{side.value:.6g}"


def _markdown_table(verdicts: list[Verdict]) -> list[str]:
    def row(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rows = []
    for verdict in verdicts:
        name, *others = _cells(verdict)
        others[3] = f"**{others[3]}**" if verdict.outcome in (Outcome.REGRESSION, Outcome.UNMEASURED) else others[3]
        rows.append(row([f"`{name}`", *others[:-1], others[-1].replace("<", "&lt;")]))
    return [row(list(HEADINGS)), "|---|---:|---:|---:|---|---|", *rows]


def _printable(text: str) -> str:
    """Return the text without the control characters that XML has no place for."""
    return re.sub(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]", "", text)


def finite(thing: object) -> object:
    """Return a record in which numbers that JSON cannot hold are None."""
    if isinstance(thing, dict):
        return {key: finite(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [finite(value) for value in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing
