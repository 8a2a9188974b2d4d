"""Do rows in single precision end at the answer in double? Do many right-hand sides give what each gives alone?"""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import quartbench as qb
from quartbench import instances
from quartbench.cones import Centred, Orthant, SecondOrder
from quartbench.errors import ProblemError
from quartbench.forms import StackedForm
from quartbench.model import Problem
from quartbench.solvers import HomCG, solve, solve_many
from quartbench.solvers.single import InSingle

METHODS = ("auto", "homcg", "homnewton", "homnewton-cg", "accel-homgd")
ROWS = np.random.default_rng(0).standard_normal((90, 30))
C = np.random.default_rng(1).standard_normal((5, 30))


# Single precision -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "problem",
    [
        instances.planted(StackedForm(ROWS), seed=0),
        instances.planted(StackedForm(ROWS), seed=0, cone=Orthant()),
        instances.planted(StackedForm(1e60 * ROWS), seed=0),
        instances.planted(StackedForm(1e-60 * ROWS), seed=0),
        instances.spectrum(90, 30, 1e-4, seed=0),  # rounded rows have another f*, far from this one
    ],
    ids=["free", "orthant", "1e60", "1e-60", "spectrum 1e-4"],
)
def test_float32_is_refined_to_any_gap(name, problem):
    result = solve(problem, name, rel_gap=1e-10, dtype="float32")
    assert result.status == "converged"
    assert result.message.endswith("rows in float32 first")
    exact = solve(problem, name, rel_gap=1e-10)
    assert result.fun == pytest.approx(exact.fun, rel=2e-10)
    assert result.fun == pytest.approx(problem.value(result.x), rel=1e-12)
    assert result.lower_bound <= exact.fun
    assert problem.form.rows.dtype == np.float64


def test_float32_needs_dense_rows_in_double_precision():
    for form in (StackedForm(sp.csr_matrix(ROWS)), StackedForm(ROWS.astype(np.float32)), qb.GramForm(6, 2)):
        with pytest.raises(ProblemError, match="dtype='float32' is for dense rows in float64"):
            solve(instances.planted(form, seed=0), dtype="float32")
    with pytest.raises(ProblemError, match="unknown dtype 'float16'"):
        solve(Problem(StackedForm(ROWS), C[0]), dtype="float16")


def test_values_in_single_precision_count_their_rounding_against_them():
    # Else a point of rounded rows could be kept before a better one of the rows themselves.
    problem = Problem(StackedForm(ROWS), C[0])
    metric = qb.metric(problem.form, "uniform")
    start = qb.solvers.starting_point(problem, metric)
    method = InSingle(HomCG()).planned(problem, metric, 1e-9)
    single = Problem(StackedForm(ROWS.astype(np.float32)), C[0])
    found, exact = next(method.iterates(problem, metric, start)), single.homogenised_value(start)
    assert (found.value - exact) / abs(exact) == pytest.approx(3e-7, rel=1e-3)


# Many right-hand sides ------------------------------------------------------------------------------------------------


def check(form, right, results, cone=None, rel_gap=1e-9):
    """Check each result against the problem solved alone, by another method."""
    assert len(results) == len(right)
    for c, result in zip(right, results, strict=True):
        problem = Problem(form, c, cone)
        alone = solve(problem, "accel-homgd", rel_gap=0.1 * rel_gap)
        assert (result.status, result.success, result.gap <= rel_gap) == ("converged", True, True)
        assert result.fun == pytest.approx(alone.fun, rel=2.0 * rel_gap)
        assert result.fun == pytest.approx(problem.value(result.x), rel=1e-11)
        assert result.lower_bound <= alone.fun + 1e-13 * abs(alone.fun)
        difference = problem.form.flat(result.x) - problem.form.flat(alone.x)
        assert np.linalg.norm(difference) <= 1e-3 * np.linalg.norm(alone.x)
        assert result.nit == len(result.history) - 1
        assert result.solver == "accel-homgd" or (np.diff(result.history.value) <= 1e-13 * abs(result.fun)).all()


@pytest.mark.parametrize("metric", ["auto", "uniform", "lewis", "identity", "diagonal"])
@pytest.mark.parametrize("rank", [1, 3])
def test_each_of_many_is_what_it_is_alone(metric, rank):
    form = StackedForm(ROWS, rank=rank)
    check(form, C, solve_many(form, C, metric=metric, rel_gap=1e-9))


def newton_in_step(rank, c, B, count):
    """Return passes, value and step of each Newton iterate in the metric B, by dense matrices."""
    blocks = ROWS.reshape(-1, rank, ROWS.shape[1])
    y, before, passes = np.linalg.solve(B, c), 0.0, 2
    y = y / (c @ y)
    found = []
    step = math.nan
    for _ in range(count + 1):
        s = blocks @ y
        q = (s**2).sum(axis=1)
        rho = float(q @ q)
        found.append((passes, -0.75 * ((c @ y) ** 4 / (4.0 * rho)) ** (1.0 / 3.0), step))
        gradient = 4.0 * np.einsum("i,ij,ijk->k", q, s, blocks)
        along = np.einsum("ij,ijk->ik", s, blocks)
        hessian = 4.0 * np.einsum("i,ijk,ijl->kl", q, blocks, blocks) + 8.0 * along.T @ along
        r = 4.0 * rho / (c @ y) * c - gradient
        # Conjugate gradients, until ⟨r,B⁻¹r⟩ has fallen by the square of ½, or of its own root ratio to the one before.
        e, rest, z = np.zeros_like(y), r, np.linalg.solve(B, r)
        size = rz = float(r @ z)
        share = min(max(math.sqrt(size / before), 1e-4), 0.5) if before > 0.0 else 0.5
        p, before = z, size
        while True:
            passes += 2
            a = rz / float(p @ hessian @ p)
            e, rest = e + a * p, rest - a * hessian @ p
            z = np.linalg.solve(B, rest)
            rz, last = float(rest @ z), rz
            if rz <= share**2 * size:
                break
            p = z + rz / last * p
        h = (c @ y) / (c @ (y + e)) * (y + e) - y
        w = blocks @ h
        b, f = (s * w).sum(axis=1), (w**2).sum(axis=1)
        line = [4.0 * f @ f, 12.0 * b @ f, 8.0 * b @ b + 4.0 * q @ f, 4.0 * q @ b]
        roots = np.roots(line)
        step = float(roots[np.abs(roots.imag).argmin()].real)
        y, passes = y + step * h, passes + 2
    return found


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("name", ["uniform", "lewis"])
def test_lockstep_takes_the_steps_of_newton_with_conjugate_gradients(rank, name):
    form = StackedForm(ROWS, rank=rank)
    metric = qb.metric(form, name)
    B = np.array([metric.apply(unit) for unit in np.eye(30)])
    for c, result in zip(C, solve_many(form, C, metric=metric, rel_gap=1e-15, max_iter=3), strict=True):
        expected = newton_in_step(rank, c, B, 3)
        history = result.history
        assert history.passes.tolist() == [passes for passes, _, _ in expected]
        np.testing.assert_allclose(history.value, [value for _, value, _ in expected], rtol=1e-9)
        np.testing.assert_allclose(history.step[1:3], [step for *_, step in expected[1:3]], rtol=1e-4)


@pytest.mark.parametrize(("a", "b"), [(1e60, 1e-60), (1e-60, 1e60)])
@pytest.mark.filterwarnings("error")
def test_many_at_any_scale(a, b):
    form = StackedForm(a * ROWS)
    check(form, b * C, solve_many(form, b * C, rel_gap=1e-9))
    uneven = C * np.array([1e-100, 1e-5, 1.0, 1e5, 1e100])[:, None]
    check(StackedForm(ROWS), uneven, solve_many(StackedForm(ROWS), uneven, rel_gap=1e-9))


def test_many_on_other_forms_and_cones():
    form = StackedForm(ROWS)
    check(form, np.abs(C), solve_many(form, np.abs(C), cone=Orthant(), rel_gap=1e-9), Orthant())
    inside = np.abs(C) + 9.0 * np.eye(30)[0]
    check(form, inside, solve_many(form, inside, cone=SecondOrder(), rel_gap=1e-9), SecondOrder())
    for other in (StackedForm(sp.csr_matrix(ROWS)), StackedForm(ROWS.astype(np.float32))):
        check(other, C, solve_many(other, C, rel_gap=1e-9))
    graph = instances.geometric(12, 2, degree=4, seed=0).form
    right = [c - c.mean(axis=0) for c in np.random.default_rng(0).standard_normal((3, 12, 2))]
    check(graph, right, solve_many(graph, right, cone=Centred(), rel_gap=1e-9), Centred())


def test_many_where_terms_vanish_at_the_solution():
    right = C.copy()
    right[:, ::2] = 0.0
    check(StackedForm(np.eye(30)), right, solve_many(StackedForm(np.eye(30)), right, rel_gap=1e-9))


def test_columns_that_are_solved_to_the_last_bit_stay_so():
    # The residual of one was zero while others went on: its direction was 0/0, and its x NaN.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        form, c = StackedForm(rng.standard_normal((10, 2))), rng.standard_normal(2)
        for result in solve_many(form, [sign * 8.0**k * c for k in (-3, 0, 2) for sign in (1.0, -1.0)], rel_gap=1e-12):
            assert result.status == "converged"
            assert np.isfinite(result.x).all()


def test_good_starts_are_used_and_bad_ones_not():
    form = StackedForm(ROWS)
    cold = solve_many(form, C, rel_gap=1e-9)
    warm = solve_many(form, C + 1e-4, rel_gap=1e-9, starts=[result.x for result in cold])
    check(form, C + 1e-4, warm)
    assert sum(result.passes for result in warm) < sum(result.passes for result in cold)
    check(form, C, solve_many(form, C, rel_gap=1e-9, starts=-C))


def test_none_and_one():
    assert solve_many(StackedForm(ROWS), []) == []
    form = StackedForm(np.array([[1.0], [2.0]]))
    check(form, [[3.0], [-1.0]], solve_many(form, [[3.0], [-1.0]], rel_gap=1e-9))


@pytest.mark.parametrize(
    ("right", "options", "message"),
    [
        (np.ones((2, 31)), {}, "c must have shape"),
        (np.ones(30), {}, "c must have shape"),
        (np.full((2, 30), math.nan), {}, "c must be finite"),
        (np.zeros((2, 30)), {}, "c must not be zero"),
        (C, {"starts": C[:2]}, "starts must be one for each right-hand side, found 2 for 5"),
        (C, {"starts": np.ones((5, 31))}, "start must have shape"),
        (C, {"metric": "louis"}, "unknown metric 'louis'"),
        (C, {"metric": 3}, "metric must be a name or a Metric"),
        (C, {"rel_gap": -1.0}, "rel_gap must be positive"),
    ],
)
def test_bad_arguments_of_many_are_named(right, options, message):
    with pytest.raises(ProblemError, match=message):
        solve_many(StackedForm(ROWS), right, **options)
    with pytest.raises(ProblemError, match="form must be a Form"):
        solve_many("rows", C)
