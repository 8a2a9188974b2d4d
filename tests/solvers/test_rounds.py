"""What rounds and bytes cost decides where rows are elsewhere: the costs by hand, and what follows from their order."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import quartbench as qb
from quartbench.errors import ProblemError
from quartbench.metrics import Identity
from quartbench.solvers import Iterate, Solver, auto, rounds, starting_point
from quartbench.solvers.auto import AdaptiveNewton, Auto, Safeguarded, spread_out
from quartbench.solvers.plane import Plane
from quartbench.solvers.rounds import Plan
from quartbench.solvers.steps import evaluate

ROWS = np.random.default_rng(0).standard_normal((900, 12))
FORM = qb.StackedForm(ROWS)
PROBLEM = qb.Problem(FORM, np.random.default_rng(1).standard_normal(12))


class Elsewhere:
    """What a form says of itself where its rows are on a cluster."""

    def __init__(self, dim=10, terms=1000, rank=2, **said):
        self.dim, self.terms, self.rank, self.row_dtype = dim, terms, rank, np.dtype(float)
        self.factorable = self.reads_terms = True
        vars(self).update(said)

    def round_cost(self, numbers, fetched=0.0):
        return 0.7 + 0.01 * numbers + 0.003 * fetched

    def factor_cost(self):
        return 6.0

    def hessian_cost(self):
        return 11.0

    def driver_cost(self, rows):
        return 0.002 * rows


@pytest.mark.parametrize("digits", [1.0, 6.0])
def test_costs_of_the_plans_are_their_rounds_and_what_is_sent_once(monkeypatch, digits):
    # Rounds a digit: 3/4 for Newton, a third of them Hessians; 1.3 with a factor, 2 with one of a sample, 1.7 for SPAG.
    monkeypatch.setattr(rounds, "solvers", lambda: {"spag": None})
    a_pass, with_matrix = 1.0 + 0.7 + 0.01 * 10, 0.7 + 0.01 * 100
    sample, larger = 20 * 10, 40 * 10  # rows of the samples, of 2000
    on_the_driver = 5.0 * 11.0 * (0.002 * larger)  # five Hessians for each round of SPAG
    expected = {
        "newton": (0.75, 100, 6.0 + with_matrix + digits * (0.25 * (11.0 + with_matrix) + 0.5 * a_pass)),
        "factor": (1.3, 100, 6.0 + with_matrix + digits * 1.3 * a_pass),
        "sample": (2.0, 2000, 0.7 + 0.003 * 2000 + 6.0 / 10.0 + digits * 2.0 * a_pass),
        "spag": (1.7, 4000, 0.7 + 0.003 * 4000 + digits * 1.7 * (a_pass + on_the_driver)),
    }
    known = rounds.plans(Elsewhere(), digits)
    assert [plan.cost for plan in known] == sorted(plan.cost for plan in known)
    assert {plan.name for plan in known} == set(expected)
    assert sample < larger <= 2000 / 2
    for plan in known:
        a_digit, numbers, cost = expected[plan.name]
        assert plan.rounds == pytest.approx(a_digit * digits)
        assert plan.numbers == numbers
        assert plan.cost == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"terms": 400, "rank": 2}, {"newton", "factor", "sample", "spag"}),
        ({"terms": 798, "rank": 1}, {"newton", "factor", "sample"}),  # SPAG's sample would be more than half of all
        ({"terms": 400, "rank": 1}, {"newton", "factor", "sample"}),
        ({"terms": 398, "rank": 1}, {"newton", "factor"}),
        ({"factorable": False}, {"spag"}),
        ({"reads_terms": False}, {"newton", "factor"}),
        ({"row_dtype": np.dtype(complex)}, {"newton", "factor"}),
        ({"row_dtype": np.dtype(np.float32)}, {"newton", "factor", "sample", "spag"}),
    ],
)
def test_a_sample_is_at_most_half_of_rows_that_can_be_read_one_by_one(monkeypatch, said, names):
    monkeypatch.setattr(rounds, "solvers", lambda: {"spag": None})
    assert {plan.name for plan in rounds.plans(Elsewhere(**said), 6.0)} == names


def test_a_method_that_is_not_registered_is_no_plan(monkeypatch):
    monkeypatch.setattr(rounds, "solvers", dict)
    assert {plan.name for plan in rounds.plans(Elsewhere(), 6.0)} == {"newton", "factor", "sample"}


@pytest.mark.parametrize(("terms", "rank", "share"), [(1000, 2, 0.2), (4000, 1, 0.1), (100, 2, 1.0), (500, 1, 0.8)])
def test_the_sample_of_spag_is_forty_rows_for_each_unknown(terms, rank, share):
    assert rounds.share(Elsewhere(terms=terms, rank=rank)) == pytest.approx(share)


def test_words_name_rounds_numbers_and_the_cheapest_of_the_others():
    chosen, other, last = Plan("newton", 1.4, 100, 7.0), Plan("factor", 9.0, 50, 8.0), Plan("spag", 3.0, 20, 9.0)
    assert rounds.words(chosen, [chosen]) == "some 1 rounds of up to 100 numbers"
    assert rounds.words(chosen._replace(rounds=0.2), []) == "some 1 rounds of up to 100 numbers"
    said = rounds.words(other, [chosen, other, last])
    assert said == "some 9 rounds of up to 50 numbers cost about 8 passes, against 7 for Newton's method"


# What auto makes of them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lacking", [None, "remote", "terms", "metrics", "directions", "subspace"])
def test_rounds_decide_where_rows_are_elsewhere_and_nothing_else_is_in_the_way(lacking):
    kind = qb.TermForm if lacking != "terms" else qb.forms.Form
    form = object.__new__(type("Far", (kind,), {"remote": lacking != "remote"}))
    cone = SimpleNamespace(
        metrics="any" if lacking != "metrics" else "diagonal",
        directions=lacking != "directions",
        subspace=lacking != "subspace",
    )
    assert spread_out(form, cone) is (lacking is None)


@pytest.fixture
def far(monkeypatch):
    """Return what sets the plans of a form whose rows count as being elsewhere, in their order."""
    monkeypatch.setattr(type(FORM), "remote", True)

    def planned(*names):
        known = [Plan(name, 3.0, 144.0, float(k)) for k, name in enumerate(names)]
        monkeypatch.setattr(rounds, "plans", lambda form, digits: known)

    return planned


def chosen():
    method = Auto()
    metric = method.choose_metric(PROBLEM, 1e-6)
    return metric, method.planned(PROBLEM, metric, 1e-6)


@pytest.mark.parametrize(
    ("names", "metric", "said"),
    [
        (("newton", "factor"), "uniform", "homnewton, as some 3 rounds"),
        (("factor", "newton"), "uniform", "homnewton-cg in B⁽⁰⁾, as some 3 rounds"),
        (("sample", "factor"), "sample", "homnewton-cg in the metric of a sample, as some 3 rounds"),
        ((), "identity", "homnewton-cg without a factor, as n² numbers are too many for a round"),
    ],
)
def test_the_cheapest_plan_is_taken(far, names, metric, said):
    far(*names)
    made, method = chosen()
    assert (made.sample is not None) == (metric == "sample")
    assert metric == "sample" or made.name == metric
    assert method.reason.startswith(said)


def test_a_sample_that_does_not_see_enough_leaves_it_to_the_next(far, monkeypatch):
    asked = []
    monkeypatch.setattr(type(FORM), "sampled", lambda form, saved: asked.append(saved))
    far("sample", "factor")
    made, method = chosen()
    assert asked == [0.0]
    assert (made.name, made.sample) == ("uniform", None)
    assert method.reason.startswith("homnewton-cg in B⁽⁰⁾, as")


class Sampled(Solver):
    """Stands for SPAG: yields the same point again and again, five times as long as it need be."""

    name = "spag"

    def __init__(self, share=1.0):
        self.share_given = share

    def planned(self, problem, metric, rel_gap):
        return self

    def iterates(self, problem, metric, start):
        value = problem.homogenised_value(start)
        for count in itertools.count():
            yield Iterate(5.0 * start, value, reason="begun" if count == 0 else "")


class Blind(Sampled):
    """A sample that does not see every direction."""

    def planned(self, problem, metric, rel_gap):
        raise ProblemError("blind")


def test_spag_is_taken_in_a_metric_without_a_factor_and_left_where_its_sample_is_blind(far, monkeypatch):
    monkeypatch.setattr(auto, "solvers", lambda: {"spag": Sampled})
    far("spag", "factor")
    made, method = chosen()
    assert made.diagonal is not None
    assert isinstance(method, Safeguarded)
    assert method.reason.startswith("spag, as some 3 rounds")
    assert method.method.share_given == pytest.approx(40 * 12 / 900)
    far("spag", "factor", "sample")  # a factor that was made for another plan is used by that one
    said = Auto().planned(PROBLEM, FORM.sampled(0.0), 1e-6).reason
    assert said.startswith("homnewton-cg in the metric of a sample, as")
    far("spag", "factor")
    said = Auto().planned(PROBLEM, qb.metric(FORM, "uniform"), 1e-6).reason
    assert said.startswith("homnewton-cg in B⁽⁰⁾, as")
    far("spag")
    monkeypatch.setattr(auto, "solvers", lambda: {"spag": Blind})
    assert "without a factor" in Auto().planned(PROBLEM, made, 1e-6).reason


@pytest.mark.parametrize("digits", [1.0, 3.0])
def test_a_sample_has_twice_the_rounds_that_it_should_take(digits):
    metric = Identity(12)
    start = starting_point(PROBLEM, metric)
    found = list(itertools.islice(Safeguarded(Sampled(), digits, "spag").iterates(PROBLEM, metric, start), 40))
    allowed = 2.0 * 1.7 * digits
    own = [one for one in found if np.array_equal(one.point, 5.0 * start)]
    assert len(own) == math.ceil(allowed) + 1  # the start is no round
    assert own[0].reason == "spag; begun"
    then = found[len(own) :]
    assert then
    assert all(one.reason.startswith("spag; its sample is unlike the whole, so then homnewton-cg") for one in then)
    for one in then:
        assert PROBLEM.inner(one.point) == pytest.approx(1.0, rel=1e-9)
    assert then[-1].value < own[-1].value


@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("better", [True, False])
def test_once_a_factor_pays_the_run_goes_on_from_its_start_if_that_is_better(monkeypatch, size, better):
    monkeypatch.setattr(AdaptiveNewton, "_factor_pays", lambda self, form, condition: True)
    problem = qb.Problem(FORM, size * PROBLEM.c)
    solution = qb.solve(problem, rel_gap=1e-9).x
    # Near the solution, one step leads where B⁻¹c is not; from a start in which one row hides the others, it does not.
    start = np.eye(12)[int(np.argmax(problem.c))] if better else solution
    y = evaluate(FORM, start / problem.inner(start))
    if better:
        monkeypatch.setattr(auto, "newton_cg", lambda *_: iter([Iterate(y.point, 0.0, evaluated=y[1:])]))
    run = AdaptiveNewton(8.0, "")._without_factor(Plane(problem), Identity(12), y, "")
    last = next(run)
    with pytest.raises(StopIteration) as ended:
        next(run)
    after, metric, _ = ended.value.value
    fresh = np.linalg.solve(ROWS.T @ ROWS, problem.c)
    values = [problem.homogenised_value(point) for point in (fresh, last.point)]
    assert (values[0] < values[1]) is better
    assert np.ptp(metric.tau) == 0.0
    assert problem.homogenised_value(after.point) == pytest.approx(min(values), rel=1e-6)


@pytest.mark.parametrize(
    ("cone", "c", "said"),
    [
        ("orthant", [1.0, -1.0, -1.0], "homnewton,"),
        ("orthant", [1e-6, -1.0, -1.0], "homnewton,"),
        ("second-order", [0.0, 1.0, 0.0], "homnewton,"),
        ("second-order", [-1.0 + 1e-6, 1.0, 0.0], "accel-homgd,"),
    ],
)
def test_a_cone_without_directions_has_models_unless_c_is_nearly_polar(cone, c, said):
    problem = qb.Problem(qb.StackedForm(ROWS[:20, :3]), c, cone)
    assert Auto().planned(problem, Identity(3), 1e-6).reason.startswith(said)


def test_a_condition_number_beyond_double_precision_counts_as_its_end():
    watch = auto.Conditioning(10)
    watch.begin()
    for step, ratio in ((1.0, 1.0), (math.inf, 1.0)):  # Lanczos' matrix of ones, which is singular
        watch.add(step, ratio)
    assert watch.condition() == pytest.approx(1e16)
