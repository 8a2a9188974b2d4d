"""Are the bounds of the strict kernels true, and of the size they promise? Truth is rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from quartbench.kernels import exact
from quartbench.kernels.jit import shares

from . import plain

U = Fraction(1, 2**53)

SEEDS = st.integers(0, 2**32 - 1)
#: Powers of two of the data: moderate ones, and so small that products underflow.
SCALES = st.sampled_from([0, 0, 0, 40, -40, -530, -1040])


def rational(array):
    return [Fraction(float(number)) for number in np.asarray(array).reshape(-1)]


def numbers(rng, *shape, scale=0):
    """Return numbers over 30 binary orders of magnitude, some of them zero, around a power of two."""
    mantissas = rng.standard_normal(shape) * (rng.random(shape) < 0.9)
    return np.ldexp(mantissas, scale // 2 + rng.integers(-15, 16, shape))


def nearly_orthogonal(rng, rows, x):
    """Change one column so that rows·x all but cancels."""
    if rows.shape[1] > 1 and x[0] != 0.0:
        with np.errstate(all="ignore"):
            first = -(rows[:, 1:].astype(float) @ x[1:]) / x[0]
        rows[:, 0] = np.where(np.isfinite(first) & (np.abs(first) < 1e30), first, rows[:, 0])
    return rows


def pair(rng, w):
    """Return w as the first part of pairs whose second part is at most its rounding."""
    return w, w * 2.0**-53 * rng.uniform(-1.0, 1.0, w.shape)


def check(found, truths, sizes, counts):
    """Assert that each truth is within its error of hi + lo, and the error of the order u² of the sizes."""
    counts = np.broadcast_to(counts, len(truths))
    for hi, lo, error, truth, size, count in zip(*found, truths, sizes, counts, strict=True):
        assert abs(Fraction(hi) + Fraction(lo) - truth) <= Fraction(error)
        assert abs(lo) <= 2.0**-53 * abs(hi)
        steps = int(count) + 40
        assert Fraction(error) <= 2 * steps**2 * U**2 * size + steps * Fraction(2) ** -1010


def image_truth(rows, x):
    rows, x = [rational(row) for row in rows], rational(x)
    products = [[a * b for a, b in zip(row, x, strict=True)] for row in rows]
    return [sum(row) for row in products], [sum(map(abs, row)) for row in products]


def residual_truth(rows, c, w, low):
    w = [a + b for a, b in zip(rational(w), rational(low), strict=True)]
    truths, sizes = [], []
    for j, number in enumerate(rational(c)):
        products = [a * b for a, b in zip(rational(rows[:, j]), w, strict=True)]
        truths.append(number - sum(products))
        sizes.append(abs(number) + sum(map(abs, products)))
    return truths, sizes


@given(SEEDS, st.integers(1, 40), st.integers(1, 70), SCALES, st.booleans(), st.integers(1, 3))
def test_dense_images_and_residuals_are_within_their_bounds(seed, m, n, scale, single, parts):
    rng = np.random.default_rng(seed)
    x = numbers(rng, n, scale=scale)
    rows = numbers(rng, m, n, scale=scale)
    rows = nearly_orthogonal(rng, rows, x)
    if single:
        rows = np.clip(rows, -1e30, 1e30).astype(np.float32)
    truths = image_truth(rows, x)
    check(exact.image(rows, x), *truths, n)
    check(exact.image_parallel(rows, x, shares(m, parts)), *truths, n)
    c, (w, low) = numbers(rng, n, scale=scale), pair(rng, numbers(rng, m, scale=scale))
    truths = residual_truth(rows, c, w, low)
    check(exact.residual(rows, c, w, low), *truths, m)
    check(exact.residual_parallel(rows, c, w, low, shares(m, parts)), *truths, m)


def test_long_sums_are_within_their_bounds():
    rng = np.random.default_rng(0)
    rows, x = rng.standard_normal((3, 5000)), rng.standard_normal(5000)
    rows = nearly_orthogonal(rng, rows, x)
    check(exact.image(rows, x), *image_truth(rows, x), 5000)
    w, low = pair(rng, x)
    check(
        exact.residual(np.ascontiguousarray(rows.T), np.ones(3), w, low),
        *residual_truth(rows.T, np.ones(3), w, low),
        5000,
    )


@given(SEEDS, st.integers(1, 6), st.integers(1, 20), SCALES, st.integers(1, 3))
def test_complex_images_and_residuals_are_within_their_bounds(seed, m, n, scale, parts):
    rng = np.random.default_rng(seed)
    rows, x = numbers(rng, m, 2 * n, scale=scale), numbers(rng, 2 * n, scale=scale)
    real = plain.embedding(rows.view(complex))
    truths = image_truth(real, x)
    check(exact.image_complex(rows, x), *truths, 2 * n)
    check(exact.image_complex_parallel(rows, x, shares(m, parts)), *truths, 2 * n)
    c, (w, low) = numbers(rng, 2 * n, scale=scale), pair(rng, numbers(rng, 2 * m, scale=scale))
    truths = residual_truth(real, c, w, low)
    check(exact.residual_complex(rows, c, w, low), *truths, 2 * m)
    check(exact.residual_complex_parallel(rows, c, w, low, shares(m, parts)), *truths, 2 * m)


@given(SEEDS, st.integers(1, 12), st.integers(1, 20), SCALES, st.integers(1, 3))
def test_sparse_images_and_residuals_are_within_their_bounds(seed, m, n, scale, parts):
    rng = np.random.default_rng(seed)
    rows = numbers(rng, m, n, scale=scale) * (rng.random((m, n)) < 0.4)
    matrix = sp.csr_matrix(rows)
    csr = matrix.data, matrix.indices, matrix.indptr
    x = numbers(rng, n, scale=scale)
    truths = image_truth(rows, x)
    check(exact.image_sparse(*csr, x), *truths, n)
    check(exact.image_sparse_parallel(*csr, x, shares(m, parts)), *truths, n)
    c, (w, low) = numbers(rng, n, scale=scale), pair(rng, numbers(rng, m, scale=scale))
    truths = residual_truth(rows, c, w, low)
    check(exact.residual_sparse(*csr, c, w, low), *truths, m)
    check(exact.residual_sparse_parallel(*csr, c, w, low, shares(m, parts)), *truths, m)


@given(SEEDS, st.integers(2, 9), st.integers(1, 3), SCALES, st.integers(1, 3))
def test_edges_are_exact_and_their_residuals_within_bounds(seed, points, d, scale, parts):
    rng = np.random.default_rng(seed)
    edges = np.array([(i, j) for i in range(points) for j in range(i + 1, points) if j == i + 1 or rng.random() < 0.4])
    heads, tails = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    rows, x = plain.edge_rows(points, d, edges), numbers(rng, points, d, scale=scale)
    truths, _ = image_truth(rows, x)
    for found in (
        exact.image_edges(heads, tails, x),
        exact.image_edges_parallel(heads, tails, x, shares(len(edges), parts)),
    ):
        assert [Fraction(a) + Fraction(b) for a, b in zip(*found[:2], strict=True)] == truths
        assert not found[2].any()
    c, (w, low) = numbers(rng, points, d, scale=scale), pair(rng, numbers(rng, len(edges) * d, scale=scale))
    truths = residual_truth(rows, c.reshape(-1), w, low)
    check(exact.residual_edges(heads, tails, c, w, low), *truths, points)


@given(SEEDS, st.integers(1, 700), st.integers(1, 6), SCALES, st.booleans(), st.integers(1, 3))
def test_the_first_stage_is_within_its_bounds(seed, m, n, scale, single, parts):
    rng = np.random.default_rng(seed)
    rows, x = numbers(rng, m, n, scale=scale), numbers(rng, n, scale=scale)
    if single:
        rows = rows.astype(np.float32)
    truths, sizes = image_truth(rows, x)
    for out, error in (exact.image_bounded(rows, x), exact.image_bounded_parallel(rows, x, shares(m, parts))):
        for a, b, truth, size in zip(out, error, truths, sizes, strict=True):
            assert abs(Fraction(a) - truth) <= Fraction(b) <= 2 * (n + 3) * U * size + n * Fraction(2) ** -1009
    c, w = numbers(rng, n, scale=scale), numbers(rng, m, scale=scale)
    truths, sizes = residual_truth(rows, c, w, np.zeros(m))
    calls = exact.residual_bounded(rows, c, w), exact.residual_bounded_parallel(rows, c, w, shares(m, parts))
    for out, error in calls:
        for a, b, truth, size in zip(out, error, truths, sizes, strict=True):
            assert abs(Fraction(a) - truth) <= Fraction(b) <= 2 * (90 + m // 256) * U * size + m * Fraction(2) ** -1006


@given(SEEDS, st.integers(1, 60), SCALES)
def test_vector_kernels_are_within_their_bounds(seed, n, scale):
    rng = np.random.default_rng(seed)
    x, y = numbers(rng, n, scale=scale), numbers(rng, n, scale=scale)
    products = [a * b for a, b in zip(rational(x), rational(y), strict=True)]
    check([[part] for part in exact.dot(x, y)], [sum(products)], [sum(map(abs, products))], n)
    check([[part] for part in exact.total(x)], [sum(rational(x))], [sum(map(abs, rational(x)))], n)


@given(SEEDS, st.integers(1, 60))
def test_norms_are_within_their_bounds(seed, n):
    rng = np.random.default_rng(seed)
    x, low = pair(rng, numbers(rng, n))
    square = sum((a + b) ** 2 for a, b in zip(rational(x), rational(low), strict=True))
    hi, lo, error = map(Fraction, exact.norm(x, low))
    assert max(hi + lo - error, 0) ** 2 <= square <= (hi + lo + error) ** 2
    assert error <= 4 * (n + 40) ** 2 * U**2 * hi + n * Fraction(2) ** -500
    known = np.abs(numbers(rng, n)) * 1e-10
    upper = Fraction(exact.norm_upper(x, low, known))
    largest = sum((abs(a + b) + e) ** 2 for a, b, e in zip(*map(rational, (x, low, known)), strict=True))
    assert largest <= upper**2 <= largest * (1 + 60 * U) + Fraction(2) ** -480


@given(SEEDS, st.integers(1, 300), st.integers(1, 4))
def test_quartic_is_an_upper_bound(seed, m, rank):
    rng = np.random.default_rng(seed)
    (s, low), known = pair(rng, numbers(rng, m * rank)), np.abs(numbers(rng, m * rank)) * 1e-9
    entries = [abs(a + b) + e for a, b, e in zip(*map(rational, (s, low, known)), strict=True)]
    truth = sum(sum(v * v for v in entries[i : i + rank]) ** 2 for i in range(0, m * rank, rank))
    assert (
        truth <= Fraction(exact.quartic(s, low, known, rank)) <= truth * (1 + (4 * rank + 40) * U) + Fraction(2) ** -990
    )


@given(SEEDS, st.integers(1, 4), st.integers(-230, 230))
def test_dual_power_is_an_upper_bound_term_by_term(seed, rank, exponent):
    # q^{2/3} ≤ b if and only if q² ≤ b³, which fractions decide.
    rng = np.random.default_rng(seed)
    w, low = pair(rng, np.ldexp(rng.standard_normal(rank), exponent))
    square = sum((a + b) ** 2 for a, b in zip(rational(w), rational(low), strict=True))
    bound = Fraction(exact.dual_power(w, low, rank))
    assert square**2 <= bound**3 <= square**2 * (1 + 3 * (3 * rank + 30) * U)


@given(SEEDS, st.integers(1, 600))
def test_dual_power_adds_up_its_terms(seed, m):
    rng = np.random.default_rng(seed)
    w, low = pair(rng, numbers(rng, m))
    terms = [Fraction(exact.dual_power(w[i : i + 1], low[i : i + 1], 1)) for i in range(m)]
    assert abs(Fraction(exact.dual_power(w, low, 1)) - sum(terms)) <= 20 * U * sum(terms)


def test_dual_power_of_what_is_out_of_range():
    assert exact.dual_power(np.array([1e100]), np.zeros(1), 1) == np.inf
    assert 0.0 < exact.dual_power(np.zeros(3), np.zeros(3), 1) < 1e-90
    assert not exact.dual_power(np.array([np.nan, 1.0]), np.zeros(2), 1) < np.inf


@given(SEEDS, st.integers(1, 20), st.integers(1, 3))
def test_cubic_weights_are_right_to_thirty_digits(seed, m, rank):
    rng = np.random.default_rng(seed)
    s, low = pair(rng, numbers(rng, m * rank))
    hi, lo = exact.cubic_weights(s, low, rank)
    truth = [a + b for a, b in zip(rational(s), rational(low), strict=True)]
    for i in range(0, m * rank, rank):
        square = sum(v * v for v in truth[i : i + rank])
        for k in range(i, i + rank):
            assert abs(Fraction(hi[k]) + Fraction(lo[k]) - 4 * square * truth[k]) <= 200 * U**2 * 4 * square * abs(
                truth[k]
            )
            assert abs(lo[k]) <= 2.0**-53 * abs(hi[k])


@given(SEEDS, st.integers(1, 40), st.integers(1, 3))
def test_subtree_sums_are_upper_bounds(seed, points, d):
    rng = np.random.default_rng(seed)
    parents = np.array([0] + [int(rng.integers(i)) for i in range(1, points)])
    loads = np.abs(numbers(rng, points, d))
    sums = [[Fraction(v) for v in row] for row in loads]
    for i in range(points - 1, 0, -1):
        sums[parents[i]] = [a + b for a, b in zip(sums[parents[i]], sums[i], strict=True)]
    found = exact.subtree_sums(np.arange(points), parents, loads)
    for truth, number in zip((v for row in sums for v in row), found.reshape(-1), strict=True):
        assert truth <= Fraction(number) <= truth * (1 + 4 * (points + 3) * U)


@pytest.mark.parametrize("processor", ["", "generic"])
def test_fma_rounds_once_on_every_processor(run_python, processor, tmp_path):
    # Without the instruction the C library's function stands in: the bits are the same.
    script = """
import numpy as np
from quartbench.kernels import exact
rng = np.random.default_rng(0)
x, y = rng.standard_normal((2, 1000))
print([number.hex() for number in exact.dot(x, y)])
"""
    found = (
        run_python(script, NUMBA_CPU_NAME=processor, NUMBA_CACHE_DIR=str(tmp_path)) if processor else run_python(script)
    )
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1000))
    assert found == str([number.hex() for number in exact.dot(x, y)])
