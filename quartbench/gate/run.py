"""What is the verdict on two commits, and how noisy is this machine? Measures, confirms, judges."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from quartbench.errors import ProblemError
from quartbench.gate.commits import Pair
from quartbench.gate.report import Report, in_order
from quartbench.gate.suite import TIER, Suite, Watcher, matches
from quartbench.gate.thresholds import TABLE, Noise, measure_noise, read_table
from quartbench.gate.verdict import ABSENT, Limit, Outcome, Record, Verdict, judge


def compare(root: Path, pair: Pair, watch: Watcher, bench: Iterable[str] = (TIER,)) -> Report:
    """Measure both commits, measure again what looks like a regression, and return the verdicts."""
    limits = read_table(root / TABLE)
    suite, bench = _suite(root), check_patterns(bench)
    shutil.rmtree(suite.work, ignore_errors=True)
    records = suite.measure(pair, bench, watch)
    if not records:
        raise ProblemError(f"no benchmark matches {' or '.join(bench)}")
    add_expected(records, limits, bench)
    suspects = [name for name, record in records.items() if _judged(record, limits).outcome == Outcome.SUSPECT]
    if suspects:

        def confirming(done: float, text: str) -> None:
            watch(done, f"second run: {text}")

        second = suite.measure(pair, [f"^{re.escape(name)}$" for name in suspects], confirming, label="second")
        for name in suspects:
            # A suspect that gives nothing in the second run is judged as such.
            again = (second[name].base, second[name].head) if name in second else (ABSENT, ABSENT)
            records[name] = replace(records[name], again=again)
    verdicts = [_judged(record, limits) for record in records.values()]
    return Report(*pair.names(), in_order(verdicts), machine=_machine(suite))


def calibrate(
    root: Path, pair: Pair, runs: int, watch: Watcher, bench: Iterable[str] = (TIER,)
) -> tuple[list[Report], list[Noise]]:
    """Compare a commit with its twin ``runs`` times; return the verdicts and the noise of every benchmark."""
    reports = []
    for index in range(runs):

        def counted(done: float, text: str, index: int = index) -> None:
            watch((index + done) / runs, f"run {index + 1}/{runs}: {text}")

        reports.append(compare(root, pair, counted, bench))
    return reports, noise(reports)


def noise(reports: Iterable[Report]) -> list[Noise]:
    """Return the noise of every benchmark that was measured on both sides, from A/A reports."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for report in reports:
        for verdict in report.verdicts:
            if not math.isnan(verdict.ratio):
                ratios.setdefault((verdict.record.name, verdict.record.kind), []).append(verdict.ratio)
    return [measure_noise(name, kind, found) for (name, kind), found in ratios.items()]


def add_expected(records: dict[str, Record], limits: dict[str, Limit], bench: Iterable[str]) -> None:
    """Add an absent record for every benchmark of the table that should have been measured and is not there."""
    for name in limits:
        if name not in records and matches(name, bench):
            records[name] = Record(name, "value", "", ABSENT, ABSENT)


def _judged(record: Record, limits: dict[str, Limit]) -> Verdict:
    return judge(record, limits.get(record.name))


def check_patterns(bench: Iterable[str], default: str = TIER) -> list[str]:
    """Return the regular expressions of --bench, or the default where there is none; raise where one is not."""
    patterns = list(bench) or [default]
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ProblemError(f"--bench {pattern!r} is not a regular expression: {error}") from error
    return patterns


def _suite(root: Path) -> Suite:
    try:
        import asv  # noqa: F401
    except ImportError:
        raise ProblemError("the gate runs asv, which is not installed: pip install 'quartbench[bench]'") from None
    return Suite(root)


def _machine(suite: Suite) -> str:
    for path in sorted((suite.work / "first").glob("*/machine.json")):
        about = json.loads(path.read_text(encoding="utf-8"))
        return f"{about.get('cpu') or about.get('arch')}, {about.get('num_cpu')} cores, {about.get('os')}"
    return ""
