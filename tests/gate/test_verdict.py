"""The rule of the gate: every way in which a benchmark can block, be reported, or pass."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from quartbench.gate.verdict import (
    ABSENT,
    LEAST_TIME,
    SIGNIFICANCE,
    Limit,
    Measurement,
    Outcome,
    Record,
    State,
    Verdict,
    exit_code,
    judge,
    least_p_value,
    p_value,
)

FAILED = Measurement(State.FAILED, error="ValueError: no")
SKIPPED = Measurement(State.SKIPPED)


def measured(value, samples=()):
    return Measurement(State.MEASURED, value, tuple(samples))


def timed(seconds, count=12, spread=0.01):
    """Samples around a time, all within ``spread`` of it."""
    return measured(seconds, [seconds * (1 + spread * (2 * k / (count - 1) - 1)) for k in range(count)])


def record(kind, base, head, again=None):
    return Record("gate.It.does", kind, "", base, head, again)


def outcome(kind, base, head, again=None, **limit):
    return judge(record(kind, base, head, again), Limit(**limit)).outcome


# results that are not there


def test_a_benchmark_that_fails_on_head_is_unmeasured_and_the_error_is_told():
    verdict = judge(record("time", timed(1.0), FAILED))
    assert verdict.outcome == Outcome.UNMEASURED
    assert verdict.why == "fails: ValueError: no"
    assert math.isnan(verdict.ratio)


@pytest.mark.parametrize("base", [FAILED, SKIPPED, ABSENT])
def test_a_benchmark_that_fails_on_head_is_unmeasured_whatever_base_did(base):
    assert outcome("count", base, FAILED) == Outcome.UNMEASURED


@pytest.mark.parametrize("base", [measured(1.0), FAILED, SKIPPED, ABSENT])
def test_an_expected_result_that_is_absent_is_unmeasured(base):
    assert outcome("count", base, ABSENT) == Outcome.UNMEASURED


def test_a_result_that_head_skips_although_base_has_it_is_unmeasured():
    assert outcome("count", measured(1.0), SKIPPED) == Outcome.UNMEASURED


@pytest.mark.parametrize("base", [FAILED, SKIPPED, ABSENT])
def test_what_head_skips_and_base_does_not_have_is_skipped(base):
    assert outcome("count", base, SKIPPED) == Outcome.SKIPPED


@pytest.mark.parametrize("base", [FAILED, SKIPPED, ABSENT])
def test_what_base_does_not_have_is_new(base):
    verdict = judge(record("count", base, measured(3.0)))
    assert verdict.outcome == Outcome.NEW
    assert verdict.why.startswith(f"{base.state} on base")


@pytest.mark.parametrize(("base", "head"), [(-1.0, 1.0), (1.0, -1.0), (math.inf, 1.0), (1.0, math.inf)])
def test_values_without_a_ratio_are_unmeasured(base, head):
    assert outcome("value", measured(base), measured(head)) == Outcome.UNMEASURED


# counts


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (100, 103, Outcome.REGRESSION),
        (100, 102, Outcome.FINE),
        (100, 100, Outcome.FINE),
        (100, 99, Outcome.FINE),
        (100, 97, Outcome.IMPROVEMENT),
        (0, 0, Outcome.FINE),
        (0, 1, Outcome.REGRESSION),
        (1, 0, Outcome.IMPROVEMENT),
    ],
)
def test_a_count_blocks_above_two_percent(base, head, expected):
    assert outcome("count", measured(float(base)), measured(float(head))) == expected


def test_a_count_says_by_how_much_it_grew():
    assert "+10 %" in judge(record("count", measured(100.0), measured(110.0))).why


def test_a_count_follows_its_own_threshold():
    assert outcome("count", measured(100.0), measured(110.0), threshold=1.2) == Outcome.FINE
    assert outcome("count", measured(100.0), measured(101.0), threshold=1.0) == Outcome.REGRESSION


def test_where_higher_is_better_less_is_a_regression_and_more_an_improvement():
    less = judge(record("count", measured(100.0), measured(90.0)), Limit(higher_is_better=True))
    assert less.outcome == Outcome.REGRESSION
    assert (less.ratio, less.change) == (pytest.approx(0.9), pytest.approx(100 / 90))
    assert outcome("count", measured(100.0), measured(110.0), higher_is_better=True) == Outcome.IMPROVEMENT
    assert outcome("count", measured(100.0), measured(0.0), higher_is_better=True) == Outcome.REGRESSION


# times

SLOW = (timed(0.1), timed(0.15))


def test_a_slower_time_is_a_suspect_until_a_second_run_confirms_it():
    assert outcome("time", *SLOW) == Outcome.SUSPECT
    assert outcome("time", *SLOW, again=SLOW) == Outcome.REGRESSION


def test_a_confirmed_time_tells_both_runs():
    why = judge(record("time", *SLOW, again=(timed(0.1), timed(0.148)))).why
    assert "threshold 1.25×" in why
    assert "second run 1.48×" in why


@pytest.mark.parametrize("again", [(timed(0.1), timed(0.11)), (timed(0.1, spread=0.9), timed(0.15, spread=0.9))])
def test_a_second_run_that_is_not_slow_enough_or_not_sure_does_not_confirm(again):
    verdict = judge(record("time", *SLOW, again=again))
    assert verdict.outcome == Outcome.WORSE
    assert "not confirmed" in verdict.why


@pytest.mark.parametrize("again", [(timed(0.1), FAILED), (ABSENT, ABSENT)])
def test_a_second_run_without_a_result_is_unmeasured(again):
    assert outcome("time", *SLOW, again=again) == Outcome.UNMEASURED


def test_a_time_under_ten_milliseconds_on_base_never_blocks():
    under, at = LEAST_TIME * 0.99, LEAST_TIME
    assert outcome("time", timed(under), timed(3 * under)) == Outcome.WORSE
    assert outcome("time", timed(at), timed(3 * at)) == Outcome.SUSPECT


def test_a_time_below_its_threshold_is_reported_from_a_tenth_on():
    assert outcome("time", timed(0.1), timed(0.12)) == Outcome.WORSE
    assert outcome("time", timed(0.1), timed(0.1099)) == Outcome.FINE
    assert outcome("time", timed(0.1), timed(0.12), threshold=1.15) == Outcome.SUSPECT
    assert outcome("time", timed(0.1), timed(0.15), threshold=1.6) == Outcome.WORSE


def test_a_time_that_may_be_slow_by_chance_does_not_block():
    verdict = judge(record("time", timed(0.1, spread=0.9), timed(0.15, spread=0.9)))
    assert verdict.outcome == Outcome.WORSE
    assert "may be chance" in verdict.why


def test_a_slow_time_with_too_few_samples_is_unmeasured_not_passed():
    assert outcome("time", timed(0.1, 6), timed(0.3, 6)) == Outcome.UNMEASURED
    assert outcome("time", timed(0.1, 7), timed(0.3, 6)) == Outcome.SUSPECT
    assert outcome("time", measured(0.1), measured(0.3)) == Outcome.UNMEASURED


def test_a_faster_time_is_an_improvement_where_it_is_sure():
    assert outcome("time", timed(0.1), timed(0.08)) == Outcome.IMPROVEMENT
    assert outcome("time", timed(0.1), timed(0.095)) == Outcome.FINE
    chance = judge(record("time", timed(0.1, spread=0.9), timed(0.08, spread=0.9)))
    assert chance.outcome == Outcome.FINE
    assert "may be chance" in chance.why


# other values


def test_memory_blocks_by_its_threshold_once_confirmed():
    more = (measured(1e8), measured(1.3e8))
    assert outcome("value", *more) == Outcome.SUSPECT
    assert outcome("value", *more, again=more) == Outcome.REGRESSION
    assert outcome("value", *more, again=(measured(1e8), measured(1e8))) == Outcome.WORSE
    assert outcome("value", measured(1e8), measured(1.2e8)) == Outcome.WORSE
    assert outcome("value", measured(1e8), measured(0.8e8)) == Outcome.IMPROVEMENT
    assert outcome("value", measured(1e8), measured(1e8)) == Outcome.FINE


# the sum of it


def verdicts(*outcomes):
    return [Verdict(record("count", ABSENT, ABSENT), one, "") for one in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome.FINE, Outcome.WORSE, Outcome.IMPROVEMENT, Outcome.NEW, Outcome.SKIPPED], 0),
        ([Outcome.FINE, Outcome.REGRESSION], 1),
        ([Outcome.FINE, Outcome.UNMEASURED], 2),
        ([Outcome.FINE, Outcome.SUSPECT], 2),
        ([Outcome.REGRESSION, Outcome.UNMEASURED], 1),
        ([Outcome.NEW, Outcome.SKIPPED], 2),
        ([], 2),
    ],
)
def test_exit_code(outcomes, code):
    assert exit_code(verdicts(*outcomes)) == code


@given(st.permutations(range(13)), st.integers(1, 12))
def test_least_p_value_is_a_lower_bound_that_is_reached(order, cut):
    least = least_p_value(cut, 13 - cut)
    assert p_value(tuple(order[:cut]), tuple(order[cut:])) >= min(1.0, least) * (1 - 1e-12)
    assert mannwhitneyu(range(cut), range(cut, 13), method="exact").pvalue == pytest.approx(min(1.0, least))


def test_p_value_agrees_with_that_of_asv():
    from asv._stats import mann_whitney_u

    base, head = [1.0, 2.0, 3.5, 4.0, 9.0, 9.5, 11.0], [2.5, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 13.0]
    assert p_value(base, head) == pytest.approx(mann_whitney_u(base, head)[1])
    assert p_value((), (1.0,)) == 1.0
    assert least_p_value(6, 6) > SIGNIFICANCE > least_p_value(7, 6)


# what is said


@pytest.mark.parametrize(
    ("kind", "base", "head", "why"),
    [
        ("count", measured(100.0), measured(100.0), "same count"),
        ("count", measured(1000.0), measured(1010.0), "+1 %, within the allowance"),
        ("count", measured(1000.0), measured(1500.0), "+50 %, at most +2 % allowed"),
        ("count", measured(1000.0), measured(500.0), "-50 %"),
        ("time", timed(0.005), timed(0.05), "base is under 10 ms, too short to block"),
        ("time", timed(1.0), timed(1.01), ""),
        ("value", measured(1000.0), measured(250.0), "-75 %"),
        ("time", timed(1.0), FAILED, "fails: ValueError: no"),
        ("time", FAILED, FAILED, "fails, on base too: ValueError: no"),
        ("time", ABSENT, FAILED, "fails, new: ValueError: no"),
        ("time", SKIPPED, FAILED, "fails, new: ValueError: no"),
        ("time", FAILED, timed(1.0), "failed on base: ValueError: no"),
    ],
)
def test_every_reason_is_told_in_its_own_words(kind, base, head, why):
    assert judge(record(kind, base, head)).why == why


@pytest.mark.parametrize(("kind", "edge"), [("count", 1.02), ("time", 1.25), ("value", 1.25)])
def test_thresholds_are_where_they_say(kind, edge):
    from quartbench.gate.verdict import THRESHOLDS

    make = timed if kind == "time" else measured
    assert THRESHOLDS[kind] == pytest.approx(edge)
    for share, blocks in ((0.999, False), (1.001, True)):
        head = make(edge * share)
        found = judge(record(kind, make(1.0), head, again=(make(1.0), head)))
        assert (found.outcome == Outcome.REGRESSION) == blocks
