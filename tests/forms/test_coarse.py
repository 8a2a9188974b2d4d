"""Is the coarse proof, in single precision, a bound on the least eigenvalue and on N that holds?"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import quartbench as qb
from quartbench.forms import coarse as module
from quartbench.forms.coarse import U32, Coarse, coarse
from quartbench.forms.proof import Factor
from quartbench.linalg.known import Known

SEEDS = st.integers(0, 2**32 - 1)


def exactly(w):
    return Known(w, np.zeros_like(w), np.zeros_like(w))


def hostile(rng, n):
    """Return rows of some shape, spectrum and units."""
    count = int(n * rng.uniform(1.0, 6.0)) + 1
    rows = rng.standard_normal((count, n))
    if rng.random() < 0.3:
        rows = rng.standard_t(2.0, (count, n))
    if rng.random() < 0.5:  # a spectrum that falls
        u, _, v = np.linalg.svd(rows, full_matrices=False)
        rows = (u * np.geomspace(1.0, 10.0 ** rng.uniform(-5.0, 0.0), n)) @ v
    if rng.random() < 0.3:
        rows[:, 0] = rows[:, 1] + 10.0 ** rng.uniform(-8.0, -1.0) * rows[:, 0]
    return rows * 10.0 ** rng.uniform(-8.0, 8.0, n) if rng.random() < 0.5 else rows


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_the_slack_is_at_most_the_least_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    rows = hostile(rng, n)
    found = coarse(rows, 1, len(rows))
    if found is None:
        return
    assert 0.0 < found.slack <= np.linalg.svd(rows / found.unit, compute_uv=False)[-1] ** 2 * (1.0 + 1e-9)
    assert (np.log2(found.unit) == np.round(np.log2(found.unit))).all()


@pytest.mark.parametrize(("count", "n"), [(240, 61), (600, 128), (700, 129), (900, 300), (2100, 700)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_of_even_leverage_are_proved(count, n, kind):
    rng = np.random.default_rng(n)
    rows = rng.standard_normal((count, n)) * 10.0 ** rng.uniform(-8.0, 8.0, n)
    if kind == "sparse":
        rows = rows * (rng.random((count, n)) < 0.3)
    found = coarse(sp.csr_matrix(rows) if kind == "sparse" else rows, 1, count)
    least = np.linalg.svd(rows / found.unit, compute_uv=False)[-1] ** 2
    assert 0.05 * least <= found.slack <= least


def test_sparse_and_dense_rows_have_the_same_proof():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 80)) * (rng.random((400, 80)) < 0.2)
    dense, sparse = coarse(rows, 2, 900), coarse(sp.csr_matrix(rows), 2, 900)
    assert sparse.slack == pytest.approx(dense.slack, rel=1e-2)
    assert dense.share == sparse.share == 200 / 900
    w = rng.standard_normal(80)
    np.testing.assert_allclose(dense.solve(w), sparse.solve(w), rtol=1e-2, atol=1e-3 * np.abs(dense.solve(w)).max())


@pytest.mark.parametrize("n", [1, 64, 127, 128, 129, 300])
def test_the_factor_errs_by_no_more_than_the_derivation_says(n):
    rng = np.random.default_rng(n)
    rows = rng.standard_normal((3 * n + 5, n)).astype(np.float32) / np.float32(np.sqrt(3 * n))
    matrix = module._gram(rows)
    exact = rows.astype(float).T @ rows.astype(float)
    error = np.tril(np.abs(matrix - exact))
    absolute = np.abs(rows.astype(float))
    allowed = (module.ROWS + len(rows) // module.ROWS + 3) * U32 * (absolute.T @ absolute)
    assert (error <= np.tril(allowed)).all()
    lower = matrix.copy()
    assert module._factor(lower)
    factor = np.tril(lower).astype(float)
    roundings = 2 * module.FACTORED + 10 + 2 * (n // module.FACTORED + 1) + 4
    assert (np.abs(factor @ factor.T - mirrored(matrix)) <= roundings * U32 * (np.abs(factor) @ np.abs(factor.T))).all()


def mirrored(matrix):
    lower = np.tril(matrix).astype(float)
    return lower + np.tril(lower, -1).T


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_the_norm_bounds_what_points_attain(seed, rank):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((60 * rank, 9)) * 10.0 ** rng.uniform(-3.0, 3.0, 9)
    found, w = coarse(rows, rank, 60), rng.standard_normal(9) * 10.0 ** rng.uniform(-60.0, 60.0)
    bound = found.norm(exactly(w))
    x = np.linalg.solve(rows.T @ rows, w)
    for point in (x, *(x + 0.3 * np.linalg.norm(x) * rng.standard_normal((20, 9)) / 3.0)):
        squares = ((rows @ point) ** 2).reshape(60, rank).sum(axis=1)
        assert float(w @ point) <= bound * float((squares**2).sum()) ** 0.25
    assert bound <= found.norm(Known(w, np.zeros_like(w), 1e-3 * np.abs(w)))
    assert found.norm(exactly(np.zeros(9))) == 0.0
    assert found.norm(exactly(np.full(9, np.inf))) == np.inf


def test_a_solve_is_right_to_a_few_digits_whatever_the_shift():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, 100)) * 10.0 ** rng.uniform(-6.0, 6.0, 100)
    w = rows.T @ rng.standard_normal(300)
    wanted = np.linalg.lstsq(rows.T / rows.std(axis=0)[:, None], w / rows.std(axis=0), rcond=None)[0]
    assert np.linalg.norm(rows @ coarse(rows, 1, 300).solve(w) - wanted) <= 1e-2 * np.linalg.norm(wanted)


def test_dependent_rows_are_not_proved():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 80))
    rows[:, 3] = rows[:, 5]
    assert coarse(rows, 1, 200) is None
    rows[:, 3] = 0.0
    assert coarse(rows, 1, 200) is None
    rows[:, 3] = np.inf
    assert coarse(rows, 1, 200) is None


def test_a_form_has_a_coarse_proof_where_that_pays_and_a_sharp_one_where_asked():
    rng = np.random.default_rng(0)
    form = qb.StackedForm(rng.standard_normal((1000, 80)))
    assert isinstance(form.proof(), Coarse)
    assert isinstance(form.proof(sharp=True), Factor)
    assert form.proof() is form.twin().proof()
    assert form.proof().picked.size == 3 * 80
    few = qb.StackedForm(rng.standard_normal((1000, 8)))
    assert few.proof() is few.proof(sharp=True)
    ill = qb.StackedForm(rng.standard_normal((1000, 80)) @ np.vander(np.linspace(0.1, 1.0, 80), 80))
    assert not isinstance(ill.proof(), Coarse)


def test_columns_whose_squares_underflow_are_left_to_the_sharp_proof():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 80))
    assert coarse(rows * np.where(np.arange(80) == 3, 1e-160, 1.0), 1, 300) is None
    assert coarse(rows * np.where(np.arange(80) == 3, 1e151, 1.0), 1, 300) is None
