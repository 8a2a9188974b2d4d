"""Do extreme numbers end in an answer or in one clear error, and never in NaN, infinities or an exception?"""

import json
import math
from contextlib import suppress

import numpy as np
import pytest

import quartbench as qb
from quartbench.solvers import solvers

RNG = np.random.default_rng(0)
ROWS, C = RNG.standard_normal((30, 6)), RNG.standard_normal(6)

#: Rows that have broken methods; each is definite, if only just.
HARD = {
    "one large row": np.vstack([np.eye(6), 1e6 * np.ones(6)]),
    "a row that hides the others": np.vstack([1e9 * np.ones(6), np.eye(6)]),
    "columns 1e±8": ROWS * np.geomspace(1e-8, 1e8, 6),
    "columns 1e±24": ROWS * np.geomspace(1e-24, 1e24, 6),
    "rows 1e±20": ROWS * np.geomspace(1e-20, 1e20, 30)[:, None],
    "nearly of rank 1": ROWS[:, :5] @ np.ones((5, 6)) + 1e-13 * ROWS,
}


def said_truly(result):
    """Say whether a result is made of numbers, and its record is JSON."""
    assert math.isfinite(result.fun)
    assert np.isfinite(result.x).all()
    assert not math.isnan(result.gap)
    assert result.lower_bound <= result.fun
    assert json.loads(json.dumps({"fun": result.fun, "nit": result.nit}, allow_nan=False))


@pytest.mark.parametrize("cone", [qb.Free(), qb.Orthant()], ids=repr)
@pytest.mark.parametrize("name", sorted(solvers()))
@pytest.mark.parametrize("rows", HARD.values(), ids=HARD.keys())
def test_every_method_ends_on_hard_rows(rows, name, cone):
    # accel-homgd ended in complex numbers, homgd, clarabel and slsqp in divisions by zero.
    c = np.abs(C) if not cone.whole else C
    with suppress(qb.ProblemError):  # not for this cone, or not definite to rounding: that is an answer too
        said_truly(
            qb.solve(qb.Problem(qb.StackedForm(rows), c, cone), name, rel_gap=1e-8, max_iter=60, max_passes=2000)
        )


@pytest.mark.parametrize("size", [1e-145, 1e-60, 1e60, 1e145])
@pytest.mark.parametrize("name", ["auto", "accel-homgd", "homgd", "gd", "homcg"])
def test_rows_and_c_of_any_size_are_solved_as_well_as_others(name, size):
    c = C * size**1.2  # f* stays a number
    result = qb.solve(qb.Problem(qb.StackedForm(size * ROWS), c), name, rel_gap=1e-8)
    assert result.status == "converged"
    said_truly(result)


@pytest.mark.parametrize("size", [1e-140, 1e-100, 1e100, 1e140])
@pytest.mark.parametrize("cone", [qb.Free(), qb.Orthant(), qb.SecondOrder()], ids=repr)
def test_many_right_hand_sides_on_rows_of_any_size(size, cone):
    given = np.abs(RNG.standard_normal((3, 6)))
    for result in qb.solve_many(qb.StackedForm(size * ROWS), given, cone, rel_gap=1e-8):
        assert result.success
        said_truly(result)


@pytest.mark.parametrize("size", [1e-200, 5e-324, 1e200, 1e307])
def test_rows_whose_squares_are_no_numbers_are_refused(size):
    with pytest.raises(qb.ProblemError, match="rows must have a largest entry between 1e-151 and 1e\\+151, found"):
        qb.StackedForm(np.full((3, 2), size))
    with pytest.raises(qb.ProblemError, match="rows must have a largest entry"):
        qb.ComplexForm(np.full((3, 2), size + 0j))


@pytest.mark.parametrize("name", ["homgd", "accel-homgd", "gd", "bregman", "homcg", "homnewton", "homnewton-cg"])
def test_columns_in_units_too_far_apart_are_refused(name):
    problem = qb.Problem(qb.StackedForm(ROWS * np.geomspace(1e-50, 1e50, 6)), np.ones(6))
    with pytest.raises(qb.ProblemError, match="columns of the rows must be in comparable units"):
        qb.solve(problem, name)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_columns_whose_start_is_no_number_are_refused_without_a_warning(kind):
    # c over the squares of the columns is 1e320.
    rows = ROWS[:, :2] * [1e80, 1e-80]
    form = qb.StackedForm(rows) if kind == "real" else qb.ComplexForm(rows + 1j * rows[::-1])
    with pytest.raises(qb.ProblemError, match="by a factor out of the range of floating point"):
        qb.solve(qb.Problem(form, np.ones(2, dtype=form.dtype)), "homgd", metric="uniform")


@pytest.mark.parametrize("name", ["homgd", "accel-homgd"])
def test_columns_as_far_apart_as_c_are_solved_without_a_warning(name):
    # The unknowns are 1e±160 apart, and their squares no numbers.
    units = np.array([1e80, 1e-80])
    rows = ROWS[:, :2] * units + 1j * (ROWS[::-1, :2] * units)
    result = qb.solve(qb.Problem(qb.ComplexForm(rows), units * (1.0 + 1.0j)), name, rel_gap=1e-8)
    assert result.success
    assert result.proved


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_an_optimum_that_is_no_number_is_refused(size):
    with pytest.raises(qb.ProblemError, match=r"f\* must be a number of floating point"):
        qb.solve(qb.Problem(qb.StackedForm(ROWS), size * C))


@pytest.mark.parametrize("points", [2, 3, 10, 300])
@pytest.mark.parametrize("shape", ["star", "path"])
@pytest.mark.parametrize("name", ["uniform", "lewis", "diagonal", "identity"])
def test_bounds_on_trees_are_found_and_true(points, shape, name):
    # LAPACK's search for one eigenvalue fails on multiples of the identity, as whitened trees are.
    edges = [(0 if shape == "star" else i - 1, i) for i in range(1, points)]
    form = qb.GraphForm(points, 2, edges)
    made = qb.metric(form, name)
    assert math.isfinite(made.bounds.kappa)
    x = np.random.default_rng(0).standard_normal((points, 2))
    x -= x.mean(axis=0)
    ratio = math.sqrt(form.value(x)) / made.norm(x.reshape(-1)) ** 2
    assert made.bounds.alpha * (1.0 - 1e-12) <= ratio <= made.bounds.beta * (1.0 + 1e-12)


@pytest.mark.parametrize("spread", [3, 10, 50, 100])
def test_lewis_weights_of_rows_in_any_units_are_certified_or_refused(spread):
    # The bound was NaN at 1e±100: by then the large rows alone are seen, and where they are too few that is said.
    rows = np.random.default_rng(1).standard_normal((60, 8)) * 10.0 ** np.linspace(-spread, spread, 60)[:, None]
    if spread == 100:
        with pytest.raises(qb.ProblemError, match="not positive definite to rounding"):
            qb.lewis_weights(qb.StackedForm(rows))
        return
    weights = qb.lewis_weights(qb.StackedForm(rows))
    assert math.sqrt(8.0) <= weights.kappa_bound <= 1.01 * math.sqrt(8.0)
