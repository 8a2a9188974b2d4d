"""When does a change of a benchmark block? The whole rule, as one pure function over typed records.

On a shared machine medians of identical code moved by factors up to 2.3, the best of samples taken in turns by up to
1.2. So counts, which do not depend on the machine, are held tightly, and times block only where the best of many
samples, statistics on all of them and a second run agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

#: What a benchmark may worsen by where the table of thresholds says nothing, by kind.
THRESHOLDS = {"time": 1.25, "count": 1.02, "value": 1.25}
#: Times below this many seconds on base never block.
LEAST_TIME = 0.010
#: asv's own level for the Mann–Whitney test.
SIGNIFICANCE = 0.002
#: Changes from here on are reported, whether they block or not.
REPORTED = 1.1


class State(StrEnum):
    """What asv has of a benchmark on one commit."""

    MEASURED = "measured"
    FAILED = "failed"  # it raised, crashed, timed out, or the commit could not be built
    SKIPPED = "skipped"  # its setup asked for that
    ABSENT = "absent"


class Outcome(StrEnum):
    """The words of the verdict, in the order in which the table lists them."""

    REGRESSION = "regression"
    UNMEASURED = "unmeasured"
    SUSPECT = "suspect"  # a regression once a second run confirms it
    WORSE = "worse"  # reported, does not block
    IMPROVEMENT = "improvement"
    NEW = "new"
    FINE = "fine"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Measurement:
    """One benchmark on one commit: its value (of a time the best sample), the samples (times only), or its error."""

    state: State
    value: float = math.nan
    samples: tuple[float, ...] = ()
    error: str = ""


ABSENT = Measurement(State.ABSENT)


@dataclass(frozen=True)
class Record:
    """One benchmark on both commits; ``again`` holds base and head of the confirming run, where there was one."""

    name: str
    kind: str  # "time" in seconds, "count" (deterministic) or "value" (memory, ratios, gaps)
    unit: str
    base: Measurement
    head: Measurement
    again: tuple[Measurement, Measurement] | None = None


@dataclass(frozen=True)
class Limit:
    """What one benchmark is held to; ``threshold`` None means that of its kind."""

    threshold: float | None = None
    higher_is_better: bool = False


@dataclass(frozen=True)
class Verdict:
    """The outcome for one record; ``ratio`` is head over base, ``change`` how many times worse (≥ 1: worse)."""

    record: Record
    outcome: Outcome
    why: str
    ratio: float = math.nan
    change: float = math.nan


def judge(record: Record, limit: Limit | None = None) -> Verdict:
    """Decide about one benchmark.

    A count blocks where it grew by more than its threshold. A time blocks where base took at least 10 ms, head is
    ``threshold`` times slower, the Mann–Whitney test gives p < 0.002, and all of that but the size holds in a second
    run too. Any other value (memory, a ratio, a gap) has no samples to test: threshold and second run decide.
    """
    limit = limit or Limit()
    threshold = limit.threshold or THRESHOLDS[record.kind]
    base, head = record.base, record.head

    unusable = _unusable(base, head)
    if unusable is not None:
        return Verdict(record, *unusable)
    ratio, change = _ratios(base, head, limit.higher_is_better)

    def verdict(outcome: Outcome, why: str) -> Verdict:
        return Verdict(record, outcome, why, ratio, change)

    if record.kind == "count":
        if change > threshold:
            return verdict(Outcome.REGRESSION, f"{_percent(ratio)}, at most {_percent(threshold)} allowed")
        if change < 1 / threshold:
            return verdict(Outcome.IMPROVEMENT, _percent(ratio))
        return verdict(Outcome.FINE, "same count" if ratio == 1 else f"{_percent(ratio)}, within the allowance")

    timed = record.kind == "time"
    p = p_value(base.samples, head.samples) if timed else 0.0
    if change < threshold:
        if change >= REPORTED:
            return verdict(Outcome.WORSE, f"below its threshold of {threshold:.3g}×")
        if change > 1 / REPORTED:
            return verdict(Outcome.FINE, "")
        if p >= SIGNIFICANCE:
            return verdict(Outcome.FINE, f"p = {p:.2g}: may be chance")
        return verdict(Outcome.IMPROVEMENT, f"p = {p:.1g}" if timed else _percent(ratio))
    if timed and base.value < LEAST_TIME:
        return verdict(Outcome.WORSE, f"base is under {1000 * LEAST_TIME:.0f} ms, too short to block")
    if timed and least_p_value(len(base.samples), len(head.samples)) >= SIGNIFICANCE:
        counts = f"{len(base.samples)} and {len(head.samples)} samples"
        return verdict(Outcome.UNMEASURED, f"{counts} cannot show p < {SIGNIFICANCE}; raise its repeat or rounds")
    if p >= SIGNIFICANCE:
        return verdict(Outcome.WORSE, f"p = {p:.2g}: may be chance")

    seen = f"threshold {threshold:.3g}×" + (f", p = {p:.1g}" if timed else "")
    if record.again is None:
        return verdict(Outcome.SUSPECT, f"{seen}, to be confirmed")
    if any(one.state != State.MEASURED for one in record.again):
        return verdict(Outcome.UNMEASURED, f"{seen}, but the second run gave no result")
    again_ratio, again_change = _ratios(*record.again, limit.higher_is_better)
    again_p = p_value(*(one.samples for one in record.again)) if timed else 0.0
    if again_change >= threshold and again_p < SIGNIFICANCE:
        return verdict(Outcome.REGRESSION, f"{seen}; second run {again_ratio:.2f}×")
    return verdict(Outcome.WORSE, f"not confirmed: {again_ratio:.2f}× in a second run")


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0 fine, 1 a regression, 2 no regression seen but something (or everything) could not be measured."""
    outcomes = {verdict.outcome for verdict in verdicts}
    if Outcome.REGRESSION in outcomes:
        return 1
    if outcomes & {Outcome.UNMEASURED, Outcome.SUSPECT}:
        return 2
    compared = outcomes & {Outcome.WORSE, Outcome.IMPROVEMENT, Outcome.FINE}
    return 0 if compared else 2


def p_value(base: tuple[float, ...], head: tuple[float, ...]) -> float:
    """Return the exact two-sided p of the Mann–Whitney test, 1 where a side has no samples."""
    from scipy.stats import mannwhitneyu

    if not base or not head:
        return 1.0
    return float(mannwhitneyu(base, head, method="exact").pvalue)


def least_p_value(base: int, head: int) -> float:
    """Return the smallest p that so many samples a side can give: 7 against 6 reach 0.002, 6 against 6 do not."""
    return 2 / math.comb(base + head, base)


def _unusable(base: Measurement, head: Measurement) -> tuple[Outcome, str] | None:
    """Return the outcome where there are no two values to compare."""
    measured = State.MEASURED
    if head.state == State.FAILED:
        where = "" if base.state == measured else ", on base too" if base.state == State.FAILED else ", new"
        return Outcome.UNMEASURED, f"fails{where}: {head.error or 'no message'}"
    if head.state == State.ABSENT:
        return Outcome.UNMEASURED, "expected, but asv has no result"
    if head.state == State.SKIPPED:
        if base.state == measured:
            return Outcome.UNMEASURED, "measured on base, skipped on head"
        return Outcome.SKIPPED, "asks to be skipped"
    if base.state != measured:
        error = f": {base.error}" if base.error else ""
        return Outcome.NEW, f"{base.state} on base{error}"
    if not (math.isfinite(base.value) and math.isfinite(head.value)) or min(base.value, head.value) < 0:
        return Outcome.UNMEASURED, "only finite values of 0 or more have a ratio"
    return None


def _ratios(base: Measurement, head: Measurement, higher_is_better: bool) -> tuple[float, float]:
    """Return head over base, and how many times worse head is."""

    def over(a: float, b: float) -> float:
        return a / b if b else (1.0 if a == b else math.inf)

    ratio = over(head.value, base.value)
    return ratio, over(base.value, head.value) if higher_is_better else ratio


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.3g} %"
