"""Do compiled solves of small problems find the minimiser, and are their bounds true in exact arithmetic?"""

from fractions import Fraction
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import quartbench as qb
from quartbench.kernels import newton as kernels
from quartbench.kernels import panels
from quartbench.solvers.compiled import newton_batch

from . import plain, precise

SHAPES = [(terms, n, rank) for terms, n, rank in plain.SHAPES if n <= 33]


class Answer(NamedTuple):
    """What one call of the kernel leaves; ``trace`` has a row (value, gap, step) for the start and every iteration."""

    x: np.ndarray
    value: float
    upper: float
    lower: float
    gap: float
    iterations: int
    code: int
    dual: np.ndarray
    leftover: np.ndarray
    trace: np.ndarray


def newton(rows, c, rank=1, orthant=False, rel_gap=1e-8, limit=100, trace=0):
    """Return what the kernel finds for one problem."""
    rows, c = np.array(rows, dtype=float), np.array(c, dtype=float)
    x, numbers, steps = np.empty((1, c.size)), np.empty((1, 6)), np.empty((1, trace, 3))
    dual, leftover = np.empty((1, rows.shape[0])), np.empty((1, c.size))
    kernels.solve_range(rows[None], rank, c[None], orthant, rel_gap, limit, 0, 1, x, numbers, dual, leftover, steps)
    value, upper, lower, gap, iterations, code = numbers[0].tolist()
    known = steps[0, : int(iterations) + 1]
    return Answer(x[0], value, upper, lower, gap, int(iterations), int(code), dual[0], leftover[0], known)


def laid_out(rows, rank):
    """Return rows in panels, unscaled, and memory for images, buffers, matrices and vectors."""
    n = rows.shape[1]
    count, width = panels.shape(rows.shape[0] // rank, rank)
    memory = np.empty((count, n, rank * width)), np.zeros((4, count, rank * width)), np.empty((3, width))
    vectors, matrices = np.ones((6, n)), np.zeros((3, n, n))
    panels.lay_out(rows, rank, vectors, 0, memory[0])
    return *memory, matrices, vectors


def stacked(image, rank, terms):
    """Return an image in panels as the stacked vector that it is."""
    return image.reshape(len(image), rank, -1).transpose(0, 2, 1).reshape(-1)[: terms * rank]


def spread(values, rank, shape):
    """Return a stacked vector as an image in panels."""
    count, length = shape
    full = np.zeros(count * length)
    full[: values.size] = values
    return full.reshape(count, length // rank, rank).transpose(0, 2, 1).reshape(shape)


def gaussian(terms, n, rank, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((terms * rank, n)), rng.standard_normal(n)


def planted(rows, rank, x):
    """Return the c whose minimiser is x."""
    return plain.gradient(rows, rank, x)


def assert_true(rows, rank, c, answer, orthant=False):
    """Assert that both bounds and the gap hold in exact arithmetic, as far as the truth can be had."""
    exact = precise.value(rows, rank, c, answer.x)
    assert Fraction(answer.upper) >= exact
    assert not orthant or answer.x.min() >= 0.0
    if answer.x.any() and np.isfinite(answer.lower):
        optimum = precise.optimum(rows, rank, c, answer.x, orthant)
        if optimum is not None:
            assert Fraction(answer.lower) <= optimum
            assert exact - optimum <= Fraction(answer.gap) * -optimum


# Panels ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("terms", "n", "rank"), SHAPES)
def test_passes_over_panels_agree_with_numpy(terms, n, rank):
    rows, x = gaussian(terms, n, rank, 0)
    form, images, _, _, vectors = laid_out(rows, rank)
    vectors[1] = x
    panels.image(form, vectors, 1, images, 0)
    plain.close(stacked(images[0], rank, terms), rows @ x)
    panels.image_moduli(form, vectors, 1, images, 1)
    plain.close(stacked(images[1], rank, terms), np.abs(rows) @ np.abs(x))
    weights, dual = np.random.default_rng(1).standard_normal((2, terms * rank))
    images[2], images[3] = (spread(values, rank, images[0].shape) for values in (weights, dual))
    panels.adjoints(form, images, 2, 3, vectors, 2, 3, 4)
    plain.close(vectors[2], weights @ rows)
    plain.close(vectors[3], dual @ rows)
    plain.close(vectors[4], np.abs(dual) @ np.abs(rows))


@pytest.mark.parametrize(("terms", "n", "rank"), SHAPES)
def test_what_images_tell_agrees_with_numpy(terms, n, rank):
    rows, x = gaussian(terms, n, rank, 0)
    d = np.random.default_rng(1).standard_normal(n)
    form, images, buffers, matrices, _ = laid_out(rows, rank)
    s, w = rows @ x, rows @ d
    images[0], images[1] = (spread(values, rank, images[0].shape) for values in (s, w))
    plain.close(panels.value(images, 0, buffers), plain.value(rows, rank, x))
    plain.close(panels.weights(images, 0, buffers, 2), plain.value(rows, rank, x))
    plain.close(stacked(images[2], rank, terms) @ rows, plain.gradient(rows, rank, x))
    plain.close(panels.line(images, 0, 1, buffers), plain.line(rows, rank, x, d)[2:])
    panels.newton_dual(images, 0, 1, 0.5, buffers, 3)
    wanted = 0.5 * (plain.gradient(rows, rank, x) + plain.hessian_product(rows, rank, x, d))
    plain.close(stacked(images[3], rank, terms) @ rows, wanted)
    norms = np.linalg.norm(w.reshape(-1, rank), axis=1)
    plain.close(panels.dual_norm(images, 1, buffers), (norms ** (4 / 3)).sum() ** 0.75)
    panels.hessian(form, images, 0, buffers, form[:1].copy(), matrices, 0)
    wanted = np.transpose([plain.hessian_product(rows, rank, x, column) for column in np.eye(n)])
    plain.close(np.triu(matrices[0]), np.triu(wanted))


def test_cube_roots_are_right_to_the_last_bits():
    p = 10.0 ** np.random.default_rng(0).uniform(-195.0, 195.0, 4000)
    buffers, images = np.zeros((3, 8)), np.zeros((1, 1, 8))
    for value in p:
        images[0, 0, 0] = np.sqrt(value)
        # The others are zero, and count for nothing.
        assert panels.dual_norm(images, 0, buffers) == pytest.approx(np.sqrt(value), rel=1e-15)


@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_a_factor_solves_and_its_inverse_is_known_in_modulus(n):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((2 * n, n))
    gram, right = a.T @ a, rng.standard_normal(n)
    matrices, vectors = np.stack([gram, gram]), np.stack([right, right])
    assert not panels.factor(matrices, 0, n)
    panels.substitute(matrices, 0, n, vectors, 0)
    plain.close(vectors[0], np.linalg.solve(gram, right), 1e-9)
    panels.inverse_moduli(matrices, 0, 1)
    plain.close(matrices[1], np.abs(np.linalg.inv(np.linalg.cholesky(gram))), 1e-9)
    wanted = np.linalg.norm(np.abs(np.linalg.inv(np.linalg.cholesky(gram))) @ right)
    assert panels.norm_of_product(matrices, 1, vectors, 1) == pytest.approx(wanted)


def test_a_singular_matrix_is_noticed_and_its_factor_finite():
    matrices = np.ones((1, 3, 3))
    assert panels.factor(matrices, 0, 3)
    assert np.isfinite(matrices).all()


# Answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("terms", "n", "rank"), [(10, 3, 1), (100, 10, 1), (500, 20, 1), (40, 12, 3), (130, 7, 2)])
@pytest.mark.parametrize("rel_gap", [1e-6, 1e-12])
def test_a_planted_minimiser_is_found(terms, n, rank, rel_gap):
    rows, x = gaussian(terms, n, rank, terms)
    c = planted(rows, rank, x)
    answer = newton(rows, c, rank, rel_gap=rel_gap, trace=20)
    assert answer.code == kernels.CONVERGED
    assert answer.gap <= rel_gap
    optimum = -3.0 * plain.value(rows, rank, x)
    assert answer.lower <= optimum * (1.0 - 1e-13)
    assert answer.upper >= optimum * (1.0 + 1e-13)
    assert answer.value == pytest.approx(optimum, rel=rel_gap + 1e-13)
    assert np.linalg.norm(answer.x - x) <= 4.0 * np.sqrt(rel_gap) * np.linalg.norm(x)


@pytest.mark.parametrize("orthant", [False, True])
@pytest.mark.parametrize(("terms", "n", "rank"), [(10, 3, 1), (60, 8, 1), (30, 9, 3)])
def test_the_driver_finds_the_same(terms, n, rank, orthant):
    rows, c = gaussian(terms, n, rank, 5)
    answer = newton(rows, c, rank, orthant, rel_gap=1e-12)
    problem = qb.Problem(qb.StackedForm(rows, rank=rank), c, qb.Orthant() if orthant else None)
    result = qb.solve(problem, "homnewton", rel_gap=1e-12)
    assert answer.code == kernels.CONVERGED
    assert answer.value == pytest.approx(result.fun, rel=2e-12)
    assert answer.x == pytest.approx(result.x, rel=1e-5, abs=1e-6)


@given(
    st.integers(1, 40), st.integers(1, 5), st.integers(1, 3), st.booleans(), st.integers(0, 10**6), st.integers(2, 11)
)
def test_bounds_are_true_and_as_close_as_asked_for(terms, n, rank, orthant, seed, digits):
    assume(terms * rank >= n)
    rows, c = gaussian(terms, n, rank, seed)
    assume(np.linalg.cond(rows) < 1e3)
    answer = newton(rows, c, rank, orthant, rel_gap=10.0**-digits)
    if answer.code == kernels.TRIVIAL:
        assert orthant
        assert (c <= 0.0).all()
        return
    assert answer.code == kernels.CONVERGED
    assert answer.gap <= 10.0**-digits
    assert_true(rows, rank, c, answer, orthant)


@pytest.mark.parametrize("orthant", [False, True])
def test_the_dual_point_is_what_the_lower_bound_says(orthant):
    rows, c = gaussian(50, 6, 2, 3)
    answer = newton(rows, c, 2, orthant, rel_gap=1e-10)
    left = c - answer.dual @ rows
    np.testing.assert_allclose(answer.leftover, left, atol=1e-14)
    assert (left if orthant else np.abs(left)).max() <= 1e-13
    norms = np.linalg.norm(answer.dual.reshape(-1, 2), axis=1)
    assert -3.0 * ((norms / 4.0) ** (4.0 / 3.0)).sum() == pytest.approx(answer.lower, rel=1e-11)


def test_the_trace_falls_to_the_answer():
    rows, c = gaussian(100, 10, 1, 0)
    answer = newton(rows, c, rel_gap=1e-10, trace=20)
    assert len(answer.trace) == answer.iterations + 1
    value, gap, step = answer.trace.T
    assert (np.diff(value) <= 1e-15).all()
    assert (np.diff(gap[1:]) <= 0.0).all()
    assert value[-1] == pytest.approx(answer.value, rel=1e-14)
    assert gap[-1] <= 1e-10
    assert np.isnan(step[0])
    assert step[-1] == pytest.approx(1.0, abs=1e-2)
    assert len(newton(rows, c, rel_gap=1e-10, trace=2).trace) == 2


def test_the_limit_ends_a_solve_with_what_it_has():
    rows, c = gaussian(100, 10, 1, 0)
    answer = newton(rows, c, rel_gap=1e-14, limit=1)
    assert (answer.code, answer.iterations) == (kernels.LIMIT, 1)
    assert 1e-8 < answer.gap < 1e-1
    assert newton(rows, c, limit=0).code == kernels.LIMIT


def test_input_is_left_alone_and_may_be_read_only():
    rows, c = gaussian(20, 4, 1, 0)
    kept = rows.copy(), c.copy()
    rows.flags.writeable = c.flags.writeable = False
    before = len(kernels.solve_range.signatures) if not numba.config.DISABLE_JIT else 0
    newton_batch(rows[None], c[None])
    newton_batch(rows[None].astype(np.float32), c[None])
    newton_batch(np.asfortranarray(rows[None]), c[None])
    plain.identical((rows, c), kept)
    if before:
        assert len(kernels.solve_range.signatures) == before


# Hostile problems -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orthant", [False, True])
def test_units_that_are_powers_of_two_change_no_bit(orthant):
    rows, c = gaussian(30, 5, 1, 1)
    units = 2.0 ** np.array([-300, -30, 0, 30, 300])
    one, other = (newton(rows * d, c * d, orthant=orthant, rel_gap=1e-11) for d in (1.0, units))
    plain.identical(other.x * units, one.x)
    assert other[1:7] == one[1:7]


@pytest.mark.parametrize("seed", range(12))
def test_units_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    rows, c = gaussian(12, 4, 1, seed)
    units = 10.0 ** rng.uniform(-8.0, 8.0, 4)
    for orthant in (False, True):
        answer = newton(rows * units, c * units, orthant=orthant, rel_gap=1e-11)
        assert answer.code == kernels.CONVERGED or (c <= 0.0).all()
        assert_true(rows * units, 1, c * units, answer, orthant)


def test_scales_of_rows_and_c_do_not_matter():
    rows, c = gaussian(12, 4, 1, 0)
    wanted = newton(rows, c, rel_gap=1e-10)
    for a in (1e-60, 1e60):
        for b in (1e-60, 1e60):
            answer = newton(a * rows, b * c, rel_gap=1e-10)
            assert answer.code == kernels.CONVERGED
            ratio = (b / a) ** (1.0 / 3.0) / a
            assert answer.x == pytest.approx(ratio * wanted.x, rel=1e-10, abs=0.0)


@pytest.mark.parametrize("orthant", [False, True])
def test_a_start_that_is_far_off_leaves_no_rounding_behind(orthant):
    # With c in other units than the columns, ρ may fall by thirty orders of magnitude in the first step. An image that
    # was moved that far, not computed anew, was wrong in the ninth digit ever after, and so was the value by it.
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows, c = rng.standard_normal((14, 5)), rng.standard_normal(5)
        rows *= 10.0 ** rng.uniform(-8.0, 8.0, 5)
        answer = newton(rows, c, 2, orthant, rel_gap=1e-10, trace=20)
        assert answer.code == kernels.CONVERGED or (c <= 0.0).all()
        if answer.code == kernels.CONVERGED:
            assert answer.trace[-1, 0] == pytest.approx(answer.value, rel=1e-13)


@pytest.mark.parametrize("size", [1e3, 1e6])
@pytest.mark.parametrize("seed", range(6))
def test_a_dominant_row_is_certified(size, seed):
    rows, c = gaussian(15, 4, 1, seed)
    rows[0] *= size
    answer = newton(rows, c, rel_gap=1e-9)
    assert answer.code == kernels.CONVERGED
    assert_true(rows, 1, c, answer)


def test_the_cases_that_were_once_certified_falsely():
    t = 1e6
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((6, 3)) * [1.0, t, 1.0 / t]
    c = rng.standard_normal(3) * [1.0, t, 1.0 / t]
    answer = newton(rows, c, orthant=True, rel_gap=1e-10)
    assert answer.code == kernels.CONVERGED
    assert_true(rows, 1, c, answer, orthant=True)
    rows, c = np.array([[1e7, 1e7], [1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0 + 1e-9])
    assert_true(rows, 1, c, newton(rows, c, rel_gap=1e-9))
    rows, c = np.vstack([np.eye(2)] * 2), np.array([1.0, -1e14])
    answer = newton(rows, c, orthant=True, rel_gap=1e-10)
    assert answer.code == kernels.CONVERGED
    assert answer.value == pytest.approx(-0.375)


@pytest.mark.parametrize("exponent", [2, 4, 6])
@pytest.mark.parametrize("seed", range(4))
def test_nearly_dependent_columns_are_solved_and_never_certified_falsely(exponent, seed):
    rows, c = gaussian(12, 4, 1, seed)
    rows[:, 3] = rows[:, 0] + 10.0**-exponent * rows[:, 3]
    answer = newton(rows, c, rel_gap=1e-10)
    assert answer.code == kernels.CONVERGED or exponent > 2
    assert_true(rows, 1, c, answer)
    optimum = precise.optimum(rows, 1, c, answer.x)
    assert precise.value(rows, 1, c, answer.x) - optimum <= Fraction(1e-10) * -optimum


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_a_hessian_that_is_singular_at_the_solution_costs_iterations_only(seen):
    # All but ``seen`` rows are orthogonal to x*, which need not be planted exactly: c is what it is.
    rows, x = gaussian(20, 5, 1, seen)
    rows[seen:] -= np.outer(rows[seen:] @ x, x) / (x @ x)
    c = planted(rows, 1, x)
    answer = newton(rows, c, rel_gap=1e-10)
    assert answer.code == kernels.CONVERGED
    assert answer.iterations <= 30
    assert_true(rows, 1, c, answer)


def test_a_start_that_misses_a_coordinate_is_no_trouble():
    # G⁻¹c has its third entry zero, where no row sees it at first.
    rows, c = np.eye(3), np.array([1.0, 2.0, 0.0])
    answer = newton(rows, c, rel_gap=1e-10)
    assert answer.code == kernels.CONVERGED
    plain.close(answer.x, np.cbrt(c / 4.0), 1e-5)


@pytest.mark.parametrize("orthant", [False, True])
def test_one_unknown_is_solved_at_once(orthant):
    answer = newton(np.array([[2.0], [1.0]]), np.array([3.0]), orthant=orthant, rel_gap=1e-12)
    assert answer.code == kernels.CONVERGED
    assert answer.x[0] == pytest.approx((3.0 / (4.0 * 17.0)) ** (1.0 / 3.0))


def test_singular_rows_are_said_to_be_singular():
    rows, c = gaussian(10, 3, 1, 0)
    rows[:, 2] = rows[:, 0]
    for bad in (rows, gaussian(2, 3, 1, 0)[0], np.ones((4, 3)), rows * [1.0, 0.0, 1.0]):
        answer = newton(bad, c)
        assert answer.code == kernels.SINGULAR
        assert answer.gap == np.inf
        assert answer.lower == -np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e301])
def test_what_is_not_finite_is_said_to_be(bad):
    rows, c = gaussian(10, 3, 1, 0)
    spoilt = rows.copy()
    spoilt[4, 1] = bad
    answer = newton(spoilt, c)
    assert (answer.code, answer.gap) == (kernels.NOT_FINITE, np.inf)
    if not np.isfinite(bad):
        assert newton(rows, np.array([1.0, bad, 1.0])).code == kernels.NOT_FINITE


def test_c_in_the_polar_cone_is_trivial_only_where_it_is():
    rows, _ = gaussian(10, 3, 1, 0)
    for c, orthant in ((np.zeros(3), False), (np.zeros(3), True), (-np.ones(3), True)):
        answer = newton(rows, c, orthant=orthant)
        assert (answer.code, answer.gap, answer.value) == (kernels.TRIVIAL, 0.0, 0.0)
        assert not answer.x.any()
    c = np.array([1e-12, -1.0, -1.0])
    answer = newton(rows, c, orthant=True)
    assert answer.code == kernels.CONVERGED
    assert answer.value < 0.0


# Batches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orthant", [False, True])
def test_a_batch_is_its_problems_bit_for_bit(orthant, threads):
    rng = np.random.default_rng(0)
    rows, c = rng.standard_normal((150, 24, 4)), rng.standard_normal((150, 4))
    rows[7, :, 1] = rows[7, :, 2]
    c[7], c[9] = 1.0, np.nan
    answers = newton_batch(rows, c, 2, orthant, rel_gap=1e-9)
    for p in range(len(c)):
        alone = newton(rows[p], c[p], 2, orthant, rel_gap=1e-9)
        plain.identical(tuple(answer[p] for answer in answers), (alone.x, *map(np.asarray, alone[1:7])))
    good = answers.code == kernels.CONVERGED
    assert good.sum() >= 130
    assert answers.gap[good].max() <= 1e-9
    assert (answers.code[7], answers.code[9]) == (kernels.SINGULAR, kernels.NOT_FINITE)


def test_batches_of_one_and_of_none():
    rows, c = gaussian(10, 3, 1, 0)
    assert newton_batch(rows[None], c[None]).code.tolist() == [kernels.CONVERGED]
    assert newton_batch(np.empty((0, 10, 3)), np.empty((0, 3))).x.shape == (0, 3)
