"""Is anything false that two thousand solves say of hostile problems? And would the fuzz see it?"""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import quartbench as qb
from quartbench.cones.base import CONES as REGISTERED_CONES
from quartbench.precondition import METRICS
from quartbench.solvers import solvers

from .__main__ import TRUTHS, count, main, run
from .cases import CONES
from .exactly import Exact, Integers, Optimum
from .planted import HUGE
from .problems import FEATURES, FORMS, case
from .solves import BAD, MOST_SOLVING, Judge, Units
from .table import Record, table, well_posed

KEPT = json.loads(TRUTHS.read_text())


def truth(number):
    """Return the truth that is kept of a problem; planted ones know theirs."""
    return Optimum.read(KEPT[str(number)]) if str(number) in KEPT else case(number).exact.optimum()


@pytest.fixture(scope="module")
def records():
    """Return what all solves of the first problems say."""
    numbers = range(max(map(int, KEPT)) + 1)
    return [run(number, truth(number)) for number in numbers]


@pytest.mark.parametrize("verdict", BAD)
def test_of_two_thousand_hostile_solves_none_is(verdict, records):
    assert sum(map(count, records)) >= 2000
    found = [(record.number, said) for record in records for said in record.solves if said.verdict == verdict]
    assert not found


def test_every_well_posed_problem_is_certified_to_ten_digits(records):
    posed = [record for record in records if record.judged()]
    assert len(posed) >= 40
    assert sum(record.form == "operator" for record in posed) >= 4
    assert [record.number for record in posed if record.short()] == []


def test_a_row_that_hides_the_others_does_not_hide_the_boundary_of_the_cone():
    problem = case(10_013).problem
    assert qb.solve(problem, rel_gap=1e-10).success


def test_columns_that_almost_depend_do_not_hide_the_boundary_of_the_cone():
    # The multiplier of the model is next to a pole, and was not found.
    operator = case(4805).problem
    stored = qb.Problem(qb.StackedForm(operator.form.operator.rows), operator.c, operator.cone)
    assert qb.solve(operator, rel_gap=1e-10).success
    assert qb.solve(stored, rel_gap=1e-10).success


def test_small_rows_that_almost_depend_are_corrected_without_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert qb.solve(case(60_140).problem, solver="abpg", rel_gap=1e-6, max_iter=300).fun < 0.0


def test_most_solves_converge_and_few_are_refused(records):
    slow = ("agd", "abpg", *MOST_SOLVING)  # baselines, and what is cut short here
    said = [said for record in records for said in record.solves if said.verdict != "declined"]
    said = [one for one in said if one.solver not in slow]
    assert sum(one.status in ("converged", "trivial") for one in said) >= 0.75 * len(said)
    assert sum(one.verdict == "refused" for one in said) <= 0.05 * len(said)


def test_everything_that_is_registered_is_tried(records):
    said = [said for record in records for said in record.solves if said.verdict == "true"]
    assert {record.form for record in records} == set(FORMS)
    assert {record.cone for record in records} == set(CONES) == set(REGISTERED_CONES)
    assert {one.solver for one in said if one.how == "solve"} == set(solvers())
    assert {one.metric for one in said} == {"auto", *METRICS}
    assert {one.how for one in said} == {
        "solve", "certify", "driver", "few", "float32", "prepared", "many", "started", "batch",
        "derived", "l4",
    }  # fmt: skip
    assert {feature for record in records for feature in record.features} == {*FEATURES, "large"}


def test_kept_truths_are_those_that_are_found():
    for number in (0, 1, 3, 6, 13, 17):
        found, kept = case(number).exact.optimum(), truth(number)
        assert abs(found.value - kept.value) <= kept.error
        assert kept.error <= abs(kept.value) / 10**30


# The exact twins ------------------------------------------------------------------------------------------------------


def test_exact_values_are_those_of_the_problems_but_for_rounding():
    for number in range(60):
        one = case(number)
        if "scaled" in one.features:
            continue
        x = one.problem.cone.euclidean(np.random.default_rng(number).standard_normal(one.problem.dim))
        form = one.problem.form
        size = form.value(x) + abs(one.problem.inner(x))
        assert abs(one.exact.value(x) - Fraction(one.problem.value(x))) <= 1e-12 * size
        assert one.exact.contains(one.problem.cone.inside(x))
        if one.cone in ("free", "centred"):
            assert one.exact.value(x, power=3, sign=-1) == one.exact.value(-8.0 * x)


def test_integers_are_the_numbers_of_an_array():
    array = np.array([0.0, 1.5, -3.0e-300, 1e200, 5e-324])
    entries, power = Integers.of(array)
    assert [Fraction(int(v)) * Fraction(2) ** power for v in entries] == [Fraction(float(v)) for v in array]
    assert not Integers.of(np.zeros(2)).entries.any()


@pytest.mark.parametrize("number", [*range(24, 400, 25), *range(HUGE + 24, HUGE + 199, 25)])
def test_planted_points_are_optimal(number):
    # ⟨c,x*⟩ = 4ρ(x*) there, so that f* = −3ρ(x*) = −¾⟨c,x*⟩; and what auto proves closes in on it.
    one = case(number)
    result = qb.solve(one.problem, rel_gap=1e-10)
    assert result.status == "converged"
    assert result.lower_bound <= one.exact.planted <= result.fun


# The judge ------------------------------------------------------------------------------------------------------------


class Quartic(Exact):
    """x⁴ in one unknown, with a slack that costs nothing."""

    def rho(self, x):
        return int(x[0] ** 4), 0


#: min x⁴ − 4x = −3 at 1.
JUDGE = Judge(Quartic([4.0], "orthant"), Optimum(Fraction(-3), Fraction(0)), proved=True)
BELOW, ABOVE = math.nextafter(-3.0, -4.0), math.nextafter(-3.0, 0.0)


@pytest.mark.parametrize(
    ("x", "fun", "lower", "gap", "status", "wanted"),
    [
        (1.0, -3.0, -3.0, 0.0, "converged", "true"),
        (1.0, -3.0, BELOW, 1e-15, "converged", "true"),
        (1.0, BELOW, BELOW, 1e-15, "converged", "false"),
        (1.0, -3.0, ABOVE, 0.0, "converged", "false"),
        (1.125, -2.5, -3.1, 0.2, "max_iter", "true"),
        (1.125, -2.5, -3.1, 0.03, "max_iter", "false"),  # the true gap is 0.0339
        (-1e-300, 1e-200, -math.inf, math.inf, "stalled", "false"),  # outside of the cone
        (0.0, 0.0, -math.inf, math.inf, "stalled", "true"),
        (1.0, -3.0, -3.0, 0.0, "trivial", "false"),
        (1.0, -3.0, -3.1, 0.04, "converged", "overclaimed"),
        (math.nan, -3.0, -3.0, 0.0, "converged", "nonfinite"),
        (1.0, math.inf, -3.0, 0.0, "stalled", "nonfinite"),
        (1.0, -3.0, -3.0, math.nan, "stalled", "nonfinite"),
        (1.0, -3.0, math.nan, 0.1, "stalled", "nonfinite"),
    ],
)
def test_the_judge_sees_what_is_false(x, fun, lower, gap, status, wanted):
    assert JUDGE.verdict(np.array([x]), fun, lower, gap, status, 1e-6)[0] == wanted


def test_the_judge_knows_other_units():
    # 8c: x is twice as large, f sixteen times.
    assert JUDGE.verdict(np.array([2.0]), -48.0, -48.0, 0.0, "converged", 1e-6, Units(1, 4))[0] == "true"
    assert JUDGE.verdict(np.array([2.0]), 16 * BELOW, -49.0, 0.1, "stalled", 1e-6, Units(1, 4))[0] == "false"


def test_what_is_taken_on_trust_may_be_off_by_rounding():
    trusted = Judge(JUDGE.exact, JUDGE.optimum, proved=False)
    assert trusted.verdict(np.array([1.0]), BELOW, BELOW, 0.0, "converged", 1e-6)[0] == "true"
    assert trusted.verdict(np.array([1.0]), -3.0 - 1e-9, -3.1, 0.1, "stalled", 1e-6)[0] == "false"


# The command ----------------------------------------------------------------------------------------------------------


def test_a_run_that_was_cut_short_goes_on(tmp_path, capsys):
    path = tmp_path / "solves.jsonl"
    arguments = ["--out", str(path), "--first", "9000"]
    assert main([*arguments, "--solves", "30"]) == 0
    whole = path.read_text()
    assert whole.count("\n") >= 2
    path.write_text(whole[:-40])
    assert main([*arguments, "--solves", "30"]) == 0
    assert path.read_text() == whole
    assert "worst excess" in capsys.readouterr().out
    assert main([*arguments, "--solves", "1000000", "--list"]) == 0
    assert path.read_text() == whole


def test_the_table_says_what_is_wrong_and_the_command_fails(tmp_path, capsys):
    record = Record.read(json.loads(json.dumps(run(17)._asdict())))
    first = record.solves[0]
    wrong = record._replace(
        well_posed=True,
        proved=True,
        solves=[first._replace(verdict="false", excess=1e-3, gap=1e-9), *record.solves[1:]],
    )
    assert "not: 17" in well_posed([wrong])[0]
    assert "false: number 17" in table([wrong])
    path = tmp_path / "solves.jsonl"
    path.write_text(json.dumps(wrong._asdict()) + "\n")
    assert main(["--out", str(path), "--list"]) == 1
    assert "1e-03" in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_that_twenty_thousand_hostile_solves_say_is_false(tmp_path):
    assert main(["--out", str(tmp_path / "solves.jsonl"), "--first", "20000", "--solves", "20000"]) == 0
