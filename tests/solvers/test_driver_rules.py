"""When does the driver look, believe, prove, prove again and give up? Its rules on either side of each end."""

import math

import numpy as np
import pytest

import quartbench as qb
from quartbench import instances
from quartbench.errors import LostError
from quartbench.metrics import Identity
from quartbench.model.certificate import Certificate
from quartbench.model.estimate import gap
from quartbench.solvers import HomNewtonCG, Iterate, Solver, driver, starting_point
from quartbench.solvers.driver import Limits, Run, Schedule

EPS = 2.0**-52
PROBLEM = instances.spectrum(120, 30, 0.1, seed=0)
READY = qb.prepare(PROBLEM.form, metric="uniform", solver="homgd")
SCALED = PROBLEM.normalised()
START = starting_point(SCALED.problem, READY.metric)


class Given(Solver):
    """A method whose iterates are given."""

    def __init__(self, *iterates):
        self.given = iterates

    def iterates(self, problem, metric, start):
        yield from self.given


def run_of(rel_gap, *iterates, certify=True, max_iter=None):
    limits = Limits.of(rel_gap, max_iter, None, None)
    return Run(PROBLEM, SCALED, Given(*iterates), READY.metric, READY if certify else None, limits)


def near_solution(size=1e-2):
    """Return a point of 𝒞 that is off the minimiser by about so much."""
    x = qb.solve(PROBLEM, rel_gap=1e-12).x
    point = x * (1.0 + size * np.cos(np.arange(x.size)))
    return point / SCALED.problem.inner(point)


@pytest.fixture
def estimates(monkeypatch):
    """Return the list to which every estimate adds how far it is refined."""
    found, true = [], driver.estimate

    def estimate(*arguments, **options):
        found.append(options.get("refine", "sharp"))
        return true(*arguments, **options)

    monkeypatch.setattr(driver, "estimate", estimate)
    return found


# Which point is the best ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1024.0, 2.0**-10])
@pytest.mark.parametrize(("above", "taken"), [(0.0, True), (1.5, True), (2.5, False), (1e12, False), (-1e3, True)])
def test_of_values_within_two_roundings_the_latest_is_the_best(size, above, taken):
    points = [START, START + 0.0]
    values = [-size, -size + above * EPS * size]
    run = run_of(None, *map(Iterate, points, values), certify=False)
    run.follow(START, None, None)
    assert run.best.point is points[1 if taken else 0]


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("slip", "moved"), [(0.0, False), (0.7e-13, False), (1.4e-13, True), (1e-6, True)])
def test_a_point_is_moved_into_the_cone_where_more_than_rounding_has_led_it_out(size, slip, moved):
    problem = qb.Problem(qb.StackedForm(np.eye(3)), np.ones(3), "orthant")
    run = Run(problem, problem.normalised(), Given(), Identity(3), None, Limits.of(None, None, None, None))
    given = Iterate(size * np.array([0.5, 1.0, -slip]), -1.0, evaluated=(1.0, None, None))
    point, evaluated = run._feasible(given)
    assert (point is given.point) is not moved
    assert (evaluated is given.evaluated) is not moved
    assert not moved or point.min() == 0.0


# When it looks --------------------------------------------------------------------------------------------------------


def looked_at(run):
    """Follow a run; return what it has looked at by the time of the first callback."""
    asked = []
    run.follow(START, lambda state: asked.append(run.looks()) and False, None)
    return asked[0]


@pytest.mark.parametrize(
    ("rel_gap", "decrement", "asked"),
    [(1e-6, 0.99e-3, True), (1e-6, 1.01e-3, False), (1e-8, 0.99e-5, True), (1e-8, 1.01e-5, False), (None, 1e9, True)],
)
def test_a_dual_point_is_looked_at_where_three_per_cent_of_the_decrement_are_thirty_times_the_target(
    rel_gap, decrement, asked
):
    calls = []
    run = run_of(rel_gap, Iterate(START, -1.0, decrement=decrement, dual=lambda: calls.append(1)))
    run._judge = lambda: calls.append(1)
    run.looks = lambda: len(calls)
    assert looked_at(run) == asked


@pytest.mark.parametrize(
    ("rel_gap", "decrement", "asked"),
    [
        *[(1e-6, 2.97e-3, True), (1e-6, 3.03e-3, False), (1e-10, 2.97e-5, True), (1e-10, 3.03e-5, False)],
        *[(1e-6, math.nan, True), (None, 1e9, True)],
    ],
)
@pytest.mark.parametrize("doubted", [False, True])
def test_without_a_dual_point_it_looks_where_the_decrement_is_three_roots_of_the_target(
    rel_gap, decrement, asked, doubted, estimates
):
    dual = (lambda: pytest.fail("nobody believes it")) if doubted else None
    run = run_of(rel_gap, Iterate(START, -1.0, decrement=decrement, dual=dual))
    run.credible = not doubted
    run.looks = lambda: len(estimates)
    assert bool(looked_at(run)) == asked


@pytest.mark.parametrize(
    ("share", "sharpened", "computed"),
    [(1.01, False, True), (0.99, True, True), (1.0 / 29.0, True, True), (1.0 / 31.0, False, False)],
)
def test_an_estimate_is_sharpened_and_its_value_computed_within_thirty_times_the_target(
    share, sharpened, computed, estimates, monkeypatch
):
    point = near_solution()
    given = Iterate(point, -1.0, evaluated=SCALED.problem.form.evaluate(point))
    first = run_of(None, given)
    first.best = given
    first._judge()
    assert estimates == [0]
    estimates.clear()
    values, kind = [], type(SCALED.problem)
    true = kind.homogenised_value
    monkeypatch.setattr(kind, "homogenised_value", lambda problem, x: values.append(1) or true(problem, x))
    run = run_of(share * first.believed, given)
    run.best = given
    run._judge()
    assert estimates == ([0, "sharp"] if sharpened else [0])
    assert len(values) == computed


def test_what_an_estimate_cost_is_its_own_passes():
    run = run_of(1e-14)
    form, before = run.judged.form, run.judged.form.passes
    for size in (0.1, 0.03):
        run.best = Iterate(near_solution(size), -1.0)
        run._judge()
        assert run.cost == form.passes - before > 0
        before = form.passes


def test_the_last_point_is_looked_at_once(estimates):
    run_of(1e-14, Iterate(START, -1.0), max_iter=0).follow(START, None, None)
    assert estimates == [0]


# Dual points that methods bring ---------------------------------------------------------------------------------------


def with_duals(count):
    """Return the iterates of a Newton run that bring dual points."""
    found = []
    for iterate in HomNewtonCG(forcing=1e-3).iterates(SCALED.problem, READY.metric, START):
        if iterate.dual is not None:
            found.append(iterate)
        if len(found) == count:
            return found
    raise AssertionError("the run is too short")


def longer(iterate, size):
    """Return an iterate at another point of its ray."""
    value, slope, image = iterate.evaluated
    return iterate._replace(point=size * iterate.point, evaluated=(size**4 * value, size**3 * slope, size * image))


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_what_a_dual_point_shows_is_the_gap_to_the_value_of_its_point(size):
    first, second, third = (longer(iterate, size) for iterate in with_duals(3))
    run = run_of(1e-14)
    for iterate in (second, third):
        run.best, before = iterate, run.judged.form.passes
        run._judge()
        value = SCALED.problem.homogenised_value(iterate.point)
        assert run.true == pytest.approx(value, rel=1e-12)
        assert run.value == pytest.approx(value, rel=1e-12)
        assert run.believed == pytest.approx(gap(value, run.witnessed), rel=1e-3, abs=1e-14)
        assert run.witnessed <= value + 1e-12 * abs(value)
        assert run.slack == pytest.approx(run.believed / iterate.decrement)
        assert run.cost == run.judged.form.passes - before
    kept = run.witnessed, run.dual, run.slack
    run.best = first._replace(decrement=math.nan)
    run._judge()
    assert (run.witnessed, run.dual, run.slack) == kept  # a bound that is no better, and no decrement to compare with


@pytest.mark.parametrize("doubted", [False, True])
def test_what_a_method_says_of_its_point_counts_until_it_is_doubted(doubted):
    value, slope, image = SCALED.problem.form.evaluate(START)
    run = run_of(1e-14)
    run.credible, run.best = not doubted, Iterate(START, -1.0, evaluated=(0.5 * value, slope, image))
    run._judge()
    # f is proportional to ρ^{−1/3}
    said = SCALED.problem.homogenised_value(START) * (1.0 if doubted else 2.0 ** (1.0 / 3.0))
    assert run.value == pytest.approx(said, rel=1e-12)


def test_doubt_forgets_what_a_dual_point_has_shown_and_nothing_else():
    run = run_of(1e-14)
    run.best = Iterate(START, -1.0)
    run._judge()
    kept = run.kept
    run._doubt()
    assert run.credible
    assert run.kept is kept
    run.best = with_duals(1)[0]
    run._judge()
    run._doubt()
    assert (run.credible, run.witnessed, run.kept, run.value) == (False, -math.inf, None, math.inf)


# Proofs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "tried"), [(0.49, True), (0.51, False), (0.9, False)])
def test_a_proof_that_fell_short_is_tried_again_at_half_the_estimate(share, tried, monkeypatch):
    proofs = []
    monkeypatch.setattr(driver, "prove", lambda *_: proofs.append(1) or (START, Certificate(-1.0, -3.0, 2.0)))
    run = run_of(1e-6)
    run.kept, run.short, run.believed = START, 1e-7, share * 1e-7
    assert run._proves() is False
    assert len(proofs) == tried
    assert run.short == (run.believed if tried else 1e-7)


@pytest.mark.parametrize(
    ("value_proved", "bound_proved", "both"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_gap_is_proved_where_its_value_and_its_bound_are(value_proved, bound_proved, both, monkeypatch):
    found = Certificate(-1.0, -3.0, 2.0, value_proved)
    monkeypatch.setattr(driver, "prove", lambda *_: (START, found))
    run = run_of(1e-6)
    run.kept, run.proved = START, Certificate(-0.5, -2.0, 3.0, bound_proved)
    run._prove()
    assert run.proved[:2] == (-1.0, -2.0)
    assert run.proved.gap == pytest.approx(1.0)
    assert run.proved.proved is both


def test_a_gap_that_is_proved_at_the_end_is_converged_unless_somebody_stopped_the_run():
    x = qb.solve(PROBLEM, rel_gap=1e-12).x
    best = x / SCALED.problem.inner(x)
    # A decrement of one forbids to look during the run.
    unseen = Iterate(best, SCALED.problem.homogenised_value(best), decrement=1.0)
    assert run_of(1e-6, unseen, max_iter=0).follow(START, None, None) == "converged"
    assert run_of(1e-6, unseen).follow(START, lambda state: False, None) == "stopped"
    poor = Iterate(START, -1.0, decrement=1.0)
    assert run_of(1e-6, poor, max_iter=0).follow(START, None, None) == "max_iter"


# Rows that are lost, and time ----------------------------------------------------------------------------------------


class Losing(Solver):
    """A method that loses the rows after its start, three times as long as it need be."""

    def __init__(self, evaluated):
        self.evaluated = evaluated

    def iterates(self, problem, metric, start):
        point = 3.0 * start
        known = problem.form.evaluate(point) if self.evaluated else None
        yield Iterate(point, problem.homogenised_value(point), evaluated=known)
        raise LostError("gone")


@pytest.mark.parametrize("evaluated", [True, False])
def test_an_error_that_rows_are_lost_has_the_best_point_in_the_units_of_the_user(evaluated, monkeypatch):
    monkeypatch.setattr("quartbench.solvers.prepared.warm", lambda *_: None)
    problem = qb.Problem(qb.StackedForm(50.0 * PROBLEM.form.rows), 7.0 * PROBLEM.c)
    metric = Identity(30)
    with pytest.raises(LostError) as lost:
        qb.solve(problem, Losing(evaluated), metric, rel_gap=1e-12, certify=False)
    x, scaled = lost.value.x, problem.normalised()
    start = starting_point(scaled.problem, metric)
    np.testing.assert_allclose(x / np.linalg.norm(x), start / np.linalg.norm(start), rtol=1e-9, atol=1e-12)
    if evaluated:
        assert problem.value(x) == pytest.approx(problem.homogenised_value(x), rel=1e-9)
    else:
        np.testing.assert_allclose(x, scaled.x_scale * 3.0 * start, rtol=1e-9)


def test_a_point_that_was_proved_is_what_an_error_is_given():
    run = run_of(1e-6)
    assert run._so_far() is None
    run.best = Iterate(START, -1.0)
    run.x = np.arange(30.0)
    np.testing.assert_array_equal(run._so_far(), run.x)


class Clock:
    """Time that passes only when told."""

    now = 0.0

    def __call__(self):
        return self.now


class Slow(Solver):
    """A method whose first iterate takes four seconds, and whose second a second a pass."""

    def __init__(self, clock):
        self.clock = clock

    def iterates(self, problem, metric, start):
        problem.form.value(start)
        self.clock.now += 4.0
        yield Iterate(start, -1e-3)
        for _ in range(20):
            self.clock.now += 1.0
            problem.form.value(start)
        yield Iterate(start, -1e-3)


def test_a_time_limit_counts_the_iterations_before_within_the_next(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(driver, "perf_counter", clock)
    found = qb.solve(PROBLEM, Slow(clock), Identity(30), rel_gap=1e-14, time_limit=6.0)
    assert (found.status, found.nit, found.passes) == ("time_limit", 0, 2)  # at 5 s there is time for one, at 6 s not
    assert found.solve_time == 6.0


# Giving up ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("fall", "share", "progress"),
    [(1.5e-15, 1.0, True), (0.7e-15, 1.0, False), (0.0, 0.985, True), (0.0, 0.995, False), (-1.0, 0.985, True)],
)
def test_progress_is_a_value_that_falls_visibly_or_a_gap_that_falls_by_a_hundredth(size, fall, share, progress):
    schedule = Schedule(1e-6)
    schedule.stalled(3, -size, 0.5)
    schedule.stalled(40, -size * (1.0 + fall), 0.5 * share)
    assert schedule.progress == (40 if progress else 3)


@pytest.mark.parametrize("last", [0, 30])
def test_a_run_has_stalled_once_its_iterations_have_doubled_and_a_hundred_more_went_by(last):
    schedule = Schedule(1e-6)
    assert not schedule.stalled(last, -1.0, 0.5)
    assert not schedule.stalled(2 * last + 100, -1.0, 0.5)
    assert schedule.stalled(2 * last + 101, -1.0, 0.5)
