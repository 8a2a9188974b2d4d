"""Are small problems solved by one compiled call, with the results of the driver; and thousands of them at once?"""

import math
import pickle
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import quartbench as qb
from quartbench import instances
from quartbench.errors import ProblemError
from quartbench.forms.dense import COMPILED_WORK
from quartbench.solvers import compiled, prepared


@pytest.fixture
def calls(monkeypatch):
    """Return the list to which every compiled call adds its dimension."""
    found, true = [], compiled.Compiled.solve

    def solve(self, c, *arguments):
        found.append(c.size)
        return true(self, c, *arguments)

    monkeypatch.setattr(compiled.Compiled, "solve", solve)
    return found


@pytest.mark.parametrize("cone", [qb.Free(), qb.Orthant()], ids=repr)
@pytest.mark.parametrize(("m", "n", "rank"), [(10, 3, 1), (100, 10, 1), (500, 20, 1), (60, 8, 3), (1, 1, 1)])
def test_it_finds_what_the_driver_finds(m, n, rank, cone, calls):
    form = qb.StackedForm(np.random.default_rng(m).standard_normal((m * rank, n)), rank)
    if n == 1 and isinstance(cone, qb.Orthant):
        return
    problem = instances.planted(form, seed=1, cone=cone)
    for gap in (1e-6, 1e-11):
        calls.clear()
        small = qb.solve(problem, rel_gap=gap)
        assert calls == [n]
        driven = qb.solve(problem, rel_gap=gap, callback=lambda state: None)
        assert len(calls) == 1
        assert small.success
        assert driven.success
        for one in (small, driven):
            assert one.lower_bound <= problem.optimum + 1e-14 * abs(problem.optimum)
            assert problem.optimum - 1e-14 * abs(problem.optimum) <= one.fun
            assert one.gap == pytest.approx((one.fun - one.lower_bound) / -one.fun, rel=1e-9, abs=1e-14)
        assert small.keys() == driven.keys()
        assert (small.solver, small.metric, small.message.split(";")[-1]) == (
            driven.solver,
            driven.metric,
            driven.message.split(";")[-1],
        )
        history = small.history
        assert len(history) == small.nit + 1
        assert history.passes[-1] == small.passes
        assert history.seconds[-1] == small.solve_time
        assert (np.diff(history.value) <= 1e-14 * abs(small.fun)).all()
        assert history.to_frame().shape == (small.nit + 1, 9)


def test_what_a_caller_asks_of_the_driver_keeps_it_from_being_used(calls):
    problem = instances.spectrum(60, 8, 0.2)
    for options in (
        {"callback": lambda state: None},
        {"start": np.array(problem.c)},
        {"max_passes": 50},
        {"certify": False},
        {"rel_gap": None, "max_iter": 3},
        {"metric": "identity"},
        {"solver": "homnewton"},
        {"dtype": "float32"},
    ):
        qb.solve(problem, **options)
        assert calls == [], options
    for other in (
        qb.Problem(qb.StackedForm(problem.form.rows.astype(np.float32)), problem.c),
        qb.Problem(problem.form.scaled(2.0), problem.c),
        qb.Problem(problem.form, problem.c, qb.SecondOrder()),
        instances.spectrum(2 * COMPILED_WORK // 50**2, 50, 0.5),
    ):
        assert qb.solve(other).success
        assert calls == []


def test_a_solver_derived_from_auto_keeps_its_own_iterates(calls):
    class Mine(qb.solvers.Auto):
        """Somebody's method."""

        def iterates(self, problem, metric, start):
            return qb.solvers.HomGD().iterates(problem, metric, start)

    assert qb.solve(instances.spectrum(60, 8, 0.2), Mine()).success
    assert calls == []


def test_its_clock_does_not_run_while_the_kernel_is_loaded(monkeypatch):
    true, seen = compiled.kernels.solve_range, []

    class Unloaded:
        """The kernel as it is before its first call."""

        overloads: ClassVar[dict] = {}

        def __call__(self, *arguments):
            seen.append(("call", arguments[5]))
            self.overloads["float64"] = None
            return true(*arguments)

    def clock():
        seen.append("clock")
        return 0.0

    monkeypatch.setattr(compiled.kernels, "solve_range", Unloaded())
    monkeypatch.setattr(compiled, "perf_counter", clock)
    problem = instances.spectrum(100, 10, 0.5, seed=0)
    assert qb.solve(problem, max_iter=50).success
    assert seen == [("call", 0), "clock", ("call", 50), "clock"]
    seen.clear()
    assert qb.solve(problem, max_iter=50).success
    assert seen == ["clock", ("call", 50), "clock"]


def test_where_it_does_not_get_there_the_driver_goes_on(calls):
    rows = np.random.default_rng(0).standard_normal((30, 5)) * [1.0, 1.0, 1.0, 1.0, 1.0]
    rows[:, -1] = rows[:, 0] + 1e-7 * rows[:, -1]
    problem = instances.planted(qb.StackedForm(rows), seed=0)
    result = qb.solve(problem, rel_gap=1e-10)
    assert calls
    assert result.lower_bound <= problem.optimum * (1.0 - 1e-13)
    assert result.success


def test_columns_of_its_history_are_made_when_asked_for_and_travel():
    result = qb.solve(instances.spectrum(60, 8, 0.2))
    assert "value" not in vars(result.history)
    copied = pickle.loads(pickle.dumps(result)).history
    assert len(copied) == len(result.history) == result.nit + 1
    assert copied.to_frame().equals(result.history.to_frame())
    assert result.history["gap"] is result.history.gap
    assert "value" in vars(result.history)
    with pytest.raises(AttributeError, match="no attribute 'speed'"):
        _ = result.history.speed


@pytest.mark.parametrize(
    ("c", "words"),
    [
        ([np.nan, 1.0, 1.0], "c must be finite"),
        ([1.0, np.inf, 1.0], "c must be finite"),
        ([0.0, 0.0, 0.0], "c must not be zero"),
        ([1.0, 2.0], "c must have shape"),
        ("abc", "c must"),
    ],
)
def test_a_bad_c_is_refused_by_prepared_problems(c, words):
    ready = qb.prepare(qb.StackedForm(np.random.default_rng(0).standard_normal((10, 3))))
    with pytest.raises(ProblemError, match=words):
        ready.solve(c)


def test_c_in_the_polar_cone_is_trivial_for_prepared_problems():
    ready = qb.prepare(qb.StackedForm(np.random.default_rng(0).standard_normal((10, 3))), qb.Orthant())
    result = ready.solve([-1.0, -2.0, 0.0])
    assert (result.status, result.fun, result.gap) == ("trivial", 0.0, 0.0)


def test_prepared_problems_use_it_too(calls):
    problem = instances.spectrum(100, 10, 0.2)
    ready = qb.prepare(problem.form, rel_gap=1e-9)
    for scale in (1.0, 1e5, 1e-30):
        assert ready.solve(scale * np.array(problem.c)).success
    assert len(calls) == 3


def test_iterations_are_limited(calls):
    problem = instances.spectrum(500, 20, 0.02)
    assert qb.solve(problem, rel_gap=1e-12, max_iter=1).status == "max_iter"


# Batches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", [None, qb.Orthant()], ids=repr)
def test_a_batch_is_what_its_problems_are_one_by_one(cone, threads):
    rng = np.random.default_rng(0)
    rows, C = rng.standard_normal((40, 30, 5)), rng.standard_normal((40, 5))
    C[0] = -1.0  # trivial on the orthant
    rows[1] *= 1e-145
    C[1] *= 1e-170  # out of the range of the compiled call's squares
    batch = qb.solve_batch(rows, C, cone, rel_gap=1e-9)
    assert batch.success.all()
    for j in range(40):
        one = qb.solve(qb.Problem(qb.StackedForm(rows[j]), C[j], cone or qb.Free()), rel_gap=1e-9)
        assert batch.fun[j] == pytest.approx(one.fun, rel=1e-8, abs=1e-300)
        assert batch.lower_bound[j] <= one.fun
        assert batch.gap[j] <= 1e-9
    assert batch.x.shape == (40, 5)


def test_bad_batches_say_what_is_wrong():
    rows, C = np.ones((3, 4, 2)), np.ones((3, 2))
    for arguments, options, message in (
        ((rows, C[:2]), {}, r"rows \(k, m·r, n\) and C \(k, n\) must fit"),
        ((rows[0], C), {}, "rows must have 3 dimensions"),
        ((rows, C), {"rank": 3}, "rows must come in blocks of rank=3"),
        ((rows, C), {"cone": qb.SecondOrder()}, "solve_batch takes the whole space and the orthant"),
        ((rows, C), {"rel_gap": 0.0}, "rel_gap must be positive, found 0.0"),
        ((rows, C), {"rel_gap": None}, "rel_gap must be positive, found None"),
        ((np.full((3, 4, 2), np.nan), C), {}, "rows must be finite"),
        ((rows, C), {"max_iter": 0}, "max_iter must be at least 1"),
    ):
        with pytest.raises(ProblemError, match=message):
            qb.solve_batch(*arguments, **options)


def test_an_optimum_out_of_range_is_refused():
    assert math.isfinite(prepared.REPRESENTABLE[1])
    with pytest.raises(ProblemError, match=r"f\* must be a number of floating point"):
        qb.solve(qb.Problem(qb.StackedForm(1e-150 * np.eye(2)), [1e100, 1.0]))


@pytest.mark.parametrize(("rows", "c"), [(1e-130, 1e120), (1e130, 1e-120)])
def test_a_batch_with_an_optimum_out_of_range_is_refused(rows, c):
    drawn = np.random.default_rng(0).standard_normal((3, 6, 2))
    for cone in (qb.Free(), qb.Orthant()):
        with pytest.raises(ProblemError, match=r"f\* must be a number of floating point"):
            qb.solve_batch(rows * drawn, np.full((3, 2), c), cone, rel_gap=1e-4)


# Proved of the cone and of the point that are the user's --------------------------------------------------------------


class Half(qb.Cone):
    """{x : x₀ ≥ 0}."""

    name = "half"
    metrics = "diagonal"

    def project(self, x, metric):
        return np.where(np.arange(x.size) == 0, np.maximum(x, 0.0), x)

    def lower_bounds(self, dim):
        return np.where(np.arange(dim) == 0, 0.0, -np.inf)


class Rising(qb.Orthant):
    """{x : 0 ≤ x₀ ≤ x₁ ≤ …}, which derives from another set."""

    name = "rising"
    directions = False

    def euclidean(self, x):
        return np.maximum(isotonic_regression(x).x, 0.0)

    def project(self, x, metric):
        return self.euclidean(x)


def test_a_half_space_is_not_the_orthant(calls):
    # It was solved as one: f* ≥ −3 was said to be proved, where f(1, −1) = −6.
    found = qb.solve(np.eye(2), [4.0, -4.0], Half())
    assert not calls
    assert found.fun == pytest.approx(-6.0, rel=1e-6)
    assert found.lower_bound <= -6.0
    assert not found.proved
    with pytest.raises(ProblemError, match="takes the whole space and the orthant, found Half"):
        qb.solve_batch(np.eye(2)[None], [[4.0, -4.0]], Half())


def test_a_cone_that_derives_from_the_orthant_is_its_own(calls):
    found = qb.solve(np.eye(2), [8.0, 1.0], Rising(), solver="auto")
    assert not calls
    assert not Rising().rigorous
    assert not Rising().nonnegative(2)
    x = (9.0 / 8.0) ** (1.0 / 3.0)  # x₀ = x₁, as c falls
    np.testing.assert_allclose(found.x, [x, x], rtol=1e-3)
    assert found.lower_bound <= 2.0 * x**4 - 9.0 * x


def test_the_orthant_is_known_by_what_it_says():
    assert qb.Orthant().nonnegative(3)
    assert not any(cone.nonnegative(3) for cone in (qb.Free(), Half(), qb.SecondOrder()))
    assert all(cone.rigorous for cone in (qb.Free(), qb.Orthant(), qb.SecondOrder(), qb.Centred()))


@pytest.mark.parametrize(("row", "c"), [(1e290, 1e85), (1e-250, 1e-60)])
def test_a_point_out_of_range_is_not_claimed(row, c):
    # x = 0 and x = ∞ were, with the value of what they were rounded from.
    with pytest.raises(ProblemError, match="must have a largest entry between"):
        qb.solve_batch(np.full((1, 1, 1), row), [[c]])


@pytest.mark.parametrize(("row", "c"), [(3e255, 1e62), (1e255, 7e61), (1.7e254, 1e60)])
def test_bounds_are_those_of_the_point_that_is_rounded(row, c):
    # x is some 1e-321, with three digits: f there is not what it is at the point before it was rounded.
    found = qb.solve_batch(np.full((1, 1, 1), row), [[c]], rel_gap=1e-2)
    assert found.success.all()
    x = Fraction(float(found.x[0, 0]))
    value = (Fraction(row) * x) ** 4 - Fraction(c) * x
    assert value <= Fraction(float(found.fun[0]))
    assert found.gap[0] >= found.fun[0] / found.lower_bound[0] - 1.0


def test_columns_in_extreme_units_are_refused_or_right(calls):
    rows, c = np.diag([1.0, 1e-299]), [1.0, 1e-100]
    with pytest.raises(ProblemError):  # the second coordinate of the minimiser is 1e366
        qb.solve(rows, c)
