"""Many at once: what is shared, when it is certified, how a batch is spread; and rows in single precision first."""

import itertools
import math

import numba
import numpy as np
import pytest

import quartbench as qb
from quartbench.forms import TermForm
from quartbench.metrics import Identity
from quartbench.solvers import Iterate, Solver, compiled, many, prepared, solve_many
from quartbench.solvers.many import _Block
from quartbench.solvers.prepared import Prepared
from quartbench.solvers.single import InSingle

ROWS = np.random.default_rng(0).standard_normal((90, 30))
C = np.random.default_rng(1).standard_normal((5, 30))
FORM = qb.StackedForm(ROWS)


# Lockstep -------------------------------------------------------------------------------------------------------------


def test_the_gap_is_a_millionth_unless_told_otherwise():
    rows, c = qb.StackedForm(ROWS[:, :5]), C[0, :5]
    for result in (
        solve_many(FORM, C)[0],
        qb.solve(FORM, C[0], solver="homgd"),
        qb.prepare(FORM, solver="homgd").solve(C[0]),
        Prepared(FORM, solver="homgd").solve(C[0]),
        qb.solve(rows, c),
    ):
        assert "is at most 1.00e-06" in result.message


def test_problems_come_back_in_their_order_whatever_the_size_of_a_block(monkeypatch):
    whole = solve_many(FORM, C, rel_gap=1e-9)
    monkeypatch.setattr(many, "BLOCK", 2 * 90 + 1)  # two at a time
    sizes, true = [], _Block.solve
    monkeypatch.setattr(_Block, "solve", lambda block, *rest: sizes.append(len(block.problems)) or true(block, *rest))
    starts = [result.x for result in whole]
    for one, other in zip(whole, solve_many(FORM, C, rel_gap=1e-9, starts=starts), strict=True):
        np.testing.assert_allclose(other.x, one.x, rtol=1e-3, atol=1e-6)
    assert sizes == [2, 2, 1]
    sizes.clear()
    solve_many(qb.StackedForm(ROWS, rank=3), C[:2])
    assert sizes == [2]


def test_many_share_a_factor_in_single_precision(monkeypatch):
    made, true = [], TermForm.weighted

    def weighted(form, tau, precision="double", accuracy=1e-6):
        made.append(precision)
        return true(form, tau, precision, accuracy)

    monkeypatch.setattr(TermForm, "weighted", weighted)
    solve_many(FORM, C)
    assert made == ["single"]


@pytest.mark.parametrize("size", [0.1, 3.0])
def test_the_scale_of_the_points_in_lockstep_does_not_matter(size):
    problems = [qb.Problem(FORM, c) for c in C]
    metric = qb.metric(problems[0].normalised().problem.form, "uniform")
    plain, scaled = (_Block(problems, metric, None, many.Budget(math.inf, math.inf)) for _ in range(2))
    scaled.Y *= size
    for one, other in zip(plain.solve(1e-9, 50, 0.0), scaled.solve(1e-9, 50, 0.0), strict=True):
        np.testing.assert_allclose(other.history.value, one.history.value, rtol=1e-10)
        assert other.passes == one.passes


class Ticking:
    """A clock that is a second on at every look."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_seconds_in_lockstep_are_those_since_the_start(monkeypatch):
    monkeypatch.setattr(many, "perf_counter", Ticking())
    for result in solve_many(FORM, C[:2], rel_gap=1e-15, max_iter=3):
        assert result.history.seconds.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_lockstep_ends_where_values_do_not_fall_any_more():
    for result in solve_many(FORM, C, rel_gap=1e-17):
        assert result.status == "stalled"
        assert result.nit < 20
        assert result.gap < 1e-12


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize(("fall", "visible"), [(1.5e-15, True), (0.6e-15, False), (0.0, False), (-1e-3, False)])
def test_a_value_in_lockstep_has_fallen_where_more_than_rounding_is_gone(size, fall, visible):
    block = object.__new__(_Block)
    block.passes, block.traces = [1], [[]]
    block.S, block.Y, block.C = np.ones((1, 1, 1)), np.ones((1, 1)), np.full((1, 1), size)
    value = -0.75 * (size**4 / 4.0) ** (1.0 / 3.0)  # ρ = 1 and ⟨c,y⟩ = size
    block.best = np.array([value * (1.0 - fall)])
    assert block._note(np.array([0]), 0.5, np.array([2.0])).tolist() == [visible]
    assert block.best[0] <= value * (1.0 - 4e-15) or not visible or block.best[0] == pytest.approx(value, rel=1e-14)
    assert block.traces[0] == [(0.5, pytest.approx(value, rel=1e-12), 2.0, 1)]


def test_lockstep_is_certified_once_the_gap_before_a_step_is_the_root_of_the_target(monkeypatch):
    # ⟨r,e⟩/(6ρ) at the second step, from the histories of r and e that the block itself goes through.
    seen, steps, true = [], [], _Block._step

    def step(block, active, Y, S, R, E, inner):
        image = ROWS @ Y[:, 0]
        scale = (S[:, 0, 0] @ image) / (image @ image)  # of the rows that the block works with
        steps.append(float(R[:, 0] @ E[:, 0]) / (6.0 * float(((scale * image) ** 4).sum())))
        return true(block, active, Y, S, R, E, inner)

    monkeypatch.setattr(_Block, "_step", step)
    metric = qb.metric(FORM, "uniform")
    solve_many(FORM, C[:1], metric=metric, rel_gap=1e-15, max_iter=3)
    decrement = steps[1]
    assert steps[0] > 3.0 * decrement > 9.0 * steps[2]
    certify = _Block._certify

    def certified(block, columns):
        seen.extend(len(block.traces[j]) for j in columns)
        certify(block, columns)

    monkeypatch.setattr(_Block, "_certify", certified)
    for share in (1.02, 0.98):
        seen.clear()
        solve_many(FORM, C[:1], metric=metric, rel_gap=(share * decrement) ** 2, max_iter=3)
        assert seen[:2] == ([1, 3] if share > 1.0 else [1, 4])  # by the iterates that there were


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_gaps_of_the_history_of_many_are_those_of_the_results(size):
    for result in solve_many(FORM, size * C, rel_gap=1e-9):
        gaps = (result.history.value - result.lower_bound) / -result.history.value
        np.testing.assert_allclose(result.history.gap, gaps, rtol=1e-6, atol=1e-13)


# One after another ----------------------------------------------------------------------------------------------------


def test_one_after_another_each_has_the_time_that_the_others_left(monkeypatch):
    class Clocked(many.Budget):
        """A budget of which each look takes three seconds."""

        looks = 0

        @property
        def elapsed(self):
            Clocked.looks += 1
            return 3.0 * Clocked.looks

    given, true = [], Prepared.solve
    monkeypatch.setattr(many, "Budget", Clocked)
    monkeypatch.setattr(
        Prepared, "solve", lambda ready, c, start, **limits: given.append(limits) or true(ready, c, start)
    )
    metric = Identity(30).declared(setup_seconds=2.0)
    solve_many(FORM, np.abs(C), "orthant", metric, time_limit=12.0)
    assert [limits["time_limit"] for limits in given] == pytest.approx([7.0, 4.0, 1.0, 0.0, 0.0], abs=1e-2)


def test_what_is_trivial_has_no_set_up():
    metric = Identity(30).declared(setup_seconds=60.0)
    given = [np.abs(C[0]), -np.abs(C[1]), np.abs(C[2])]
    results = solve_many(FORM, given, "orthant", metric)
    assert [result.status for result in results] == ["converged", "trivial", "converged"]
    assert [result.setup_time for result in results] == pytest.approx([20.0, 0.0, 20.0], abs=1e-2)


# Compiled -------------------------------------------------------------------------------------------------------------


SMALL = qb.StackedForm(np.random.default_rng(2).standard_normal((40, 6)))


def test_a_compiled_run_shares_its_seconds_evenly_and_counts_three_passes_a_step(monkeypatch):
    monkeypatch.setattr(compiled, "perf_counter", Ticking())
    result = qb.solve(SMALL, np.ones(6), rel_gap=1e-10)
    count = result.nit + 1
    assert count > 2
    assert result.solve_time == 1.0
    assert result.passes == 2 + 3 * result.nit  # two for the first point
    history = result.history
    np.testing.assert_allclose(history.seconds, np.arange(1, count + 1) / count)
    assert history.passes.tolist() == [2 + 3 * k for k in range(count)]
    assert history.value[-1] == pytest.approx(result.fun, rel=1e-9)
    gaps = (history.value - result.lower_bound) / -history.value
    np.testing.assert_allclose(history.gap, gaps, rtol=1e-6, atol=1e-13)


def test_a_compiled_run_has_room_for_every_iterate(monkeypatch):
    shapes, true = [], compiled.kernels.solve_range

    def watched(*arguments):
        shapes.append((arguments[5], arguments[-1].shape[1]))
        return true(*arguments)

    watched.overloads = true.overloads or {"float64": None}
    monkeypatch.setattr(compiled.kernels, "solve_range", watched)
    for limit in (None, 3):
        qb.solve(SMALL, np.ones(6), max_iter=limit, rel_gap=1e-3)
    assert [limit for limit, _ in shapes] == [100, 3]
    assert all(rows >= limit + 1 for limit, rows in shapes)


def power(rows, optimum):
    """Return the c for which the minimum of Σ(rows·x)⁴ − c x, one unknown, is so much: −¾c(c/4a⁴)^{1/3}."""
    return float((-optimum / 0.75) ** 0.75 * (4.0 * rows**4) ** 0.25)


@pytest.mark.parametrize(
    ("optimum", "fits"), [(-0.7e-280, False), (-1.4e-280, True), (-0.7e280, True), (-1.4e280, False)]
)
def test_a_compiled_answer_is_kept_where_f_is_between_1e_280_and_1e280(optimum, fits):
    found = compiled.Compiled.of(qb.StackedForm([[1.0]]), qb.Free(), "auto")
    result = found.solve(np.array([power(1.0, optimum)]), 1e-6, math.inf)
    assert (result is not None) is fits
    assert not fits or result.fun == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(("size", "fits"), [(0.7e-280, False), (1.4e-280, True), (0.7e280, True), (1.4e280, False)])
def test_an_optimum_is_representable_between_1e_280_and_1e280(size, fits):
    if fits:
        prepared.require_representable(size)
    else:
        with pytest.raises(qb.ProblemError, match="too large" if size > 1.0 else "too small"):
            prepared.require_representable(size)


def test_a_batch_is_solved_once(monkeypatch):
    monkeypatch.setattr(prepared, "solve", lambda *_, **__: pytest.fail("solved again"))
    rng = np.random.default_rng(0)
    rows, right = rng.standard_normal((4000, 8, 3)), rng.standard_normal((4000, 3))
    found = qb.solve_batch(rows, right)
    assert found.success.all()
    assert found.gap.max() <= 1e-6
    assert compiled.newton_batch(rows, right, rel_gap=1e-6).gap.max() > 1e-8
    assert compiled.newton_batch(rows, right).gap.max() <= 1e-8


@pytest.mark.parametrize(
    ("rows", "right"), [((3, 4, 2), (2, 2)), ((3, 4, 2), (3, 1)), ((0, 4, 2), (0, 2)), ((3, 0, 2), (3, 2))]
)
def test_batches_that_do_not_fit_or_are_empty_are_refused(rows, right):
    with pytest.raises(qb.ProblemError, match="rows"):
        qb.solve_batch(np.ones(rows), np.ones(right))


@pytest.mark.parametrize(
    ("threads", "count", "shares"), [(1, 50, [50]), (2, 1, [1]), (2, 40, [5] * 8), (2, 600, [64] * 9 + [24])]
)
def test_a_batch_is_spread_in_shares_of_a_thread(threads, count, shares, monkeypatch):
    ranges, true = [], compiled.kernels.solve_range

    def watched(*arguments):
        ranges.append(arguments[6:8])
        return true(*arguments)

    monkeypatch.setattr(compiled.kernels, "solve_range", watched)
    numba.set_num_threads(threads)
    rng = np.random.default_rng(0)
    compiled.newton_batch(rng.standard_normal((count, 6, 2)), rng.standard_normal((count, 2)))
    ranges.sort()
    assert [stop - start for start, stop in ranges] == shares
    assert [start for start, _ in ranges] == [0, *itertools.accumulate(shares)][:-1]


# Single precision -----------------------------------------------------------------------------------------------------


class Values(Solver):
    """A method with given values, whose point is three times its start, and says so at its first iterate."""

    def __init__(self, values, reason=""):
        self.values, self.said = values, reason
        self.starts = []

    def iterates(self, problem, metric, start):
        self.starts.append(start)
        for count, value in enumerate(self.values):
            yield Iterate(3.0 * start, value, reason=self.said if count == 0 else "")


def in_single(values, reason=""):
    """Return how many of the values were taken on rounded rows, all iterates, and the method."""
    method, problem = Values(values, reason), qb.Problem(FORM, C[0])
    single = InSingle(method).planned(problem, Identity(30), 1e-6)
    start = qb.solvers.starting_point(problem, Identity(30))
    found = list(single.iterates(problem, Identity(30), start))
    return len(found) - len(values), found, method


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize(("fall", "settled"), [(2e-7, True), (4e-7, False)])
def test_rows_are_doubles_again_where_a_step_gains_less_than_their_rounding(size, fall, settled):
    taken, _, _ = in_single([-size, -size * (1.0 + fall), -2.0 * size, -3.0 * size])
    assert taken == (2 if settled else 4)


@pytest.mark.parametrize(("fall", "expected"), [(0.7e-7, 23), (0.8e-7, 30)])
def test_what_is_gained_is_looked_at_over_a_fifth_of_the_iterations(fall, expected):
    # Of 20 to 24 iterations that is four: with the 23rd all of them gained little, in sum less than 3e-7 or not.
    values = [-(2.0**k) for k in range(19)] + [-(2.0**18) * (1.0 + fall * k) for k in range(1, 12)]
    assert in_single(values)[0] == expected


def test_the_method_goes_on_from_the_last_point_on_the_slice_and_says_so():
    _, found, method = in_single([-1.0, -1.0], "because")
    first, second = method.starts
    np.testing.assert_allclose(second, first, rtol=1e-12)
    assert [one.reason for one in found] == ["because; rows in float32 first", "", "because; rows in float32 first", ""]
    assert [one.reason for one in in_single([-1.0, -1.0])[1]] == [""] * 4
