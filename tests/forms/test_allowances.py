"""Are the allowances for rounding those that the derivations state, no less and no more?

A bound stays true when its allowance is doubled, and tests of truth do not see it. Here each formula is computed once
more, in rational numbers or from the matrices themselves, and what is found has to agree to a rounding or two.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from quartbench.forms import GramForm, OperatorForm, StackedForm, coarse, proof
from quartbench.forms.coarse import Coarse
from quartbench.forms.gram import Frobenius
from quartbench.forms.proof import Factor, Iterated
from quartbench.forms.tree import spanning_tree
from quartbench.kernels import exact
from quartbench.linalg.known import SMALLEST, Known, exactly
from tests.forms.random_forms import RowProducts

U = Fraction(1, 2**53)


def excess(found, wanted):
    """Return by how many units of rounding a number is above another."""
    return float((Fraction(found) / Fraction(wanted) - 1) / U)


def unknown(error):
    """Return zeros that are known to ±error."""
    zero = np.zeros_like(error)
    return Known(zero, zero, error)


def nearly_dependent(rng, count, distance):
    """Return rows of three columns, the last of which is the first but for so much."""
    rows = rng.standard_normal((count, 3))
    rows[:, 2] = rows[:, 0] + distance * rows[:, 2]
    return rows


# The sharp proof ------------------------------------------------------------------------------------------------------


def test_the_error_of_a_gram_matrix_is_that_of_equation_3():
    gram, additions = np.diag([3.0, 0.5, 2.0, 1.0]), 33
    trace = 1.02 * 6.5
    wanted = (1.02 * (additions + 2) + 1.02 * (2 * 4 + 10)) * trace + 2.0 * 3.0
    assert proof._gram_error(gram, additions) == pytest.approx(wanted * 2.0**-53, rel=1e-14, abs=0.0)


def test_the_shift_is_a_share_of_the_least_eigenvalue_or_four_errors():
    one = np.eye(1)
    for error, shift in ((2.0**-10, 2.0**-6), (2.0**-7, 2.0**-5), (0.0624, 0.2496)):
        lower, slack, plain = proof._shifted(one, error)
        assert lower[0, 0] == pytest.approx(math.sqrt(1.0 - shift), rel=1e-15)
        assert excess(slack, Fraction(shift) - Fraction(error)) == pytest.approx(-4.0, abs=1.5)
        assert plain[0, 0] == 1.0
    assert proof._shifted(one, 0.0626) is None  # four errors are more than a quarter of the eigenvalue
    assert proof._shifted(4.0 * one, 0.2496) is not None
    assert proof._shifted(4.0 * one, 0.2504) is None
    assert proof._shifted(-one, 0.0) is None


def test_the_least_eigenvalue_is_seen_by_three_steps_of_inverse_iteration():
    matrix = np.diag([4.0, 1.0, 9.0])
    v = np.random.default_rng(0).standard_normal(3)
    before, after = v / np.diag(matrix) ** 2, v / np.diag(matrix) ** 3
    wanted = np.linalg.norm(before) / np.linalg.norm(after)
    assert proof._smallest_eigenvalue(np.sqrt(matrix)) == pytest.approx(wanted, rel=1e-13, abs=0.0)


@pytest.mark.parametrize("distance", [1.0, 1e-7, 1e-9, 3e-11])
def test_the_slack_is_the_shift_less_the_error_of_equation_3(distance, monkeypatch):
    monkeypatch.setattr(proof, "GRAM_ROWS", 1)  # so that the number of pieces counts
    rows = nearly_dependent(np.random.default_rng(0), 400, distance)
    found = proof.factor_of_rows(rows, 2)
    gram, u = proof.gram_sums(rows, found.unit, found._basis)[0], 2.0**-53
    trace, largest = np.trace(gram), np.diag(gram).max()
    error = 1.02 * (1 + 400 + 1 + 2 + 2 * 3 + 10) * u * 1.02 * trace + 2.0 * u * largest
    assert (found._basis is None) == (distance == 1.0)
    if distance < 1.0:
        product = 1.02 * 5 * u * np.linalg.norm(rows / found.unit) * np.linalg.norm(found._basis)
        error += 2.02 * math.sqrt(trace) * product + 1.02 * product**2
    lower = found._lower
    shift = np.diag(gram - lower @ lower.T).mean()
    assert shift - found.slack == pytest.approx(error, rel=1e-9, abs=2e-15 * trace)
    assert (found.terms, found.share) == (200, 1.0)
    assert proof.factor_of_rows(rows, 2, of=800).share == 0.25


def test_columns_are_made_orthonormal_with_the_least_shift_that_lets_a_factor_run():
    gram = np.diag([1.0, -5e-10])  # of the shifts 1e-10, 1e-9, … the second is enough
    found = proof._orthonormalising(gram, 1e-10)
    np.testing.assert_allclose(found, np.diag([1.0 - 0.5e-9, 5e-10**-0.5]), rtol=1e-6)
    assert proof._orthonormalising(np.diag([1.0, -1.0]), 1e-10) is None


def test_vectors_are_brought_near_one_by_a_power_of_two():
    v, error, power = proof.near_one(exactly(np.array([4.0, -1.0])), np.ones(2))
    assert (v.tolist(), power) == ([0.5, -0.125], 3)
    assert (error == 3 * SMALLEST).all()  # what scaling may have rounded to zero
    known = Known(np.array([3.0, 1.0]), np.array([0.25, 0.0]), np.array([1.0, 4.0]))
    v, error, power = proof.near_one(known, np.array([2.0, 0.5]))
    assert power == 4  # 1/½ + 4/½ = 10
    assert v.tolist() == [1.5 / 16, 2.0 / 16]
    np.testing.assert_allclose(error, [1.25 / 2 / 16, 8.0 / 16], rtol=1e-15)
    assert proof.near_one(exactly(np.zeros(2)), np.ones(2)) is None
    assert proof.near_one(exactly(np.array([1.0, np.inf])), np.ones(2)) is None


def test_the_bound_of_a_factor_allows_for_its_own_roundings():
    factor = Factor(np.ones(3), None, np.eye(3), 0.25, np.eye(3), 16, 1.0)
    w = np.array([3.0, 0.0, 4.0])
    length = exact.norm_upper(w, np.zeros(3), np.zeros(3))
    # 16^{1/4} = 2, three steps above, which are 6u; and 6u for what is multiplied.
    assert excess(factor.norm(exactly(w)), 2 * Fraction(length)) == pytest.approx(12.0, abs=2.0)
    # What is not known counts 1/√s = 2 times, with √s 4u below; rounding the error up twice gives some 5u more.
    error = np.array([1.0, 2.0, 2.0])
    rest = exact.norm_upper(np.zeros(3), np.zeros(3), error)
    assert excess(factor.norm(unknown(error)), 4 * Fraction(rest)) == pytest.approx(16.0 + 5.0, abs=2.0)


def test_the_bound_of_a_factor_spreads_what_is_not_known_over_its_basis():
    n = 30
    basis = np.triu(np.ones((n, n)))
    factor = Factor(np.ones(n), basis, np.eye(n), 1.0, np.eye(n), 1, 1.0)
    spread = np.cumsum(np.ones(n))
    rest = exact.norm_upper(np.zeros(n), np.zeros(n), spread)
    found = excess(factor.norm(unknown(np.ones(n))), rest)
    # 2(n + 2)u for the products; then the constant, the root, the last product and rounding up as above.
    assert found == pytest.approx(2 * (n + 2) + 16.0 + 5.0, abs=3.0)


@pytest.mark.parametrize("basis", [None, np.array([[1.0, 3.0], [0.0, 2.0]])])
def test_a_factor_gives_rows_and_vectors_in_its_basis(basis):
    unit, matrix = np.array([2.0, 8.0]), np.array([[1.0, 5.0], [-3.0, 7.0], [2.0, 2.0]])
    X = np.diag(1.0 / unit) @ (np.eye(2) if basis is None else basis)
    made = Factor(unit, basis, np.eye(2), 1.0, np.eye(2), 1, 1.0)
    np.testing.assert_allclose(made.basis(), X)
    np.testing.assert_allclose(made.columns(matrix), matrix @ X)
    np.testing.assert_allclose(made.inner(matrix[1]), X.T @ matrix[1])
    np.testing.assert_allclose(made.solve(matrix[1]), X @ X.T @ matrix[1])


def test_a_sample_solves_with_its_share_of_all_rows():
    for distance in (1.0, 1e-7):
        rows = nearly_dependent(np.random.default_rng(1), 40, distance)
        w = rows.T @ np.ones(40)
        found = proof.factor_of_rows(rows, of=80).solve(w)
        np.testing.assert_allclose(rows @ found, 0.5 * rows @ np.linalg.lstsq(rows, np.ones(40), rcond=None)[0], 1e-4)


def test_a_gram_matrix_is_taken_in_powers_of_two_where_nothing_underflowed():
    found = proof.factor_of_gram(np.diag([1.0, 2.0, 4.0, 5.0]), 7, 3, 0.5, np.array([1.0, 2.0, 1.0, 1.0]))
    assert found.unit.tolist() == [1.0, 4.0, 2.0, 4.0]
    assert (found.terms, found.share) == (3, 0.5)
    assert proof.factor_of_gram(np.diag([1.0, 2.0**-899]), 1, 1) is not None
    assert proof.factor_of_gram(np.diag([1.0, 2.0**-901]), 1, 1) is None
    assert proof.factor_of_gram(np.diag([1.0, np.inf]), 1, 1) is None


def test_without_a_factor_the_bound_is_that_of_half_the_least_ritz_value():
    rows = np.random.default_rng(2).standard_normal((12, 4)) * [1.0, 3.0, 0.5, 2.0]
    gram = rows.T @ rows
    diagonal = np.diag(gram)
    least = np.linalg.eigvalsh(gram / np.sqrt(np.outer(diagonal, diagonal)))[0]
    known = Known(np.array([1.0, -2.0, 0.5, 1.0]), np.array([0.5, -0.5, 0.25, 0.0]), np.array([0.5, 0.5, 0.0, 2.0]))
    size = np.array([2.0, 3.0, 0.75, 3.0])
    wanted = 12**0.25 * math.sqrt((size**2 / diagonal).sum() / (0.5 * least))
    found = Iterated(OperatorForm(RowProducts(rows)))
    assert found.norm(known) == pytest.approx(wanted, rel=1e-6)
    assert found.norm(exactly(np.zeros(4))) == 0.0
    # A later solve may see a smaller value, never replace it by a larger one.
    before = found._least
    found.correction(np.linalg.eigh(gram)[1][:, -1], lambda z: z)
    assert found._least <= before


# The coarse proof -----------------------------------------------------------------------------------------------------


def test_the_error_of_the_coarse_proof_is_that_of_equation_2():
    u = 2.0**-24
    assert coarse._error(500, 2.0, 0.0, 0, 9) == pytest.approx(1.03 * 500 * u * 2.0, rel=1e-14, abs=0.0)
    assert coarse._error(500, 0.0, 3.0, 0, 9) == pytest.approx(4.0 * u * 3.0, rel=1e-14, abs=0.0)
    assert coarse._error(500, 0.0, 0.0, 7, 9) == 7 * (9 + 7) * 2.0**-125


def coarse_slack(rows):
    """Return s of (2), √s before its roundings, and the error and eigenvalue that decide whether there is one."""
    squares = (rows**2).sum(axis=0)
    unit = 2.0 ** np.ceil(np.log2(np.sqrt(squares)))
    near = squares / unit**2
    trace, largest, (count, n), u = 1.02 * near.sum(), 1.02 * near.max(), rows.shape, 2.0**-24
    roundings = 256 + count // 256 + 3 + 2 * 128 + 10 + 2 * (n // 128 + 1) + 4
    error = 1.03 * roundings * u * trace + 4.0 * u * largest + n * (count + n) * 2.0**-125
    single = (rows / unit).astype(np.float32)
    least = coarse._least(lambda p: single.T @ (single @ p), n)
    shift = float(np.float32(max(0.25 * least, 1.5 * error)))
    root = math.sqrt(max(shift - error, 0.0)) - 1.01 * u * math.sqrt(trace)
    return root, 1.5 * error <= 0.75 * least


@pytest.mark.parametrize("n", [5, 130])
def test_the_slack_of_the_coarse_proof_is_that_of_equation_2(n):
    rows = np.random.default_rng(n).standard_normal((5 * n + 300, n)) * np.geomspace(1.0, 1e3, n)
    root, _ = coarse_slack(rows)
    found = coarse.coarse(rows, 1, len(rows))
    # √s is lowered by 8u, and s by 4u more.
    assert excess(found.slack, Fraction(root) ** 2) == pytest.approx(-20.0, abs=4.0)


def test_the_slack_of_sparse_rows_counts_the_entries_of_a_column():
    rows = np.random.default_rng(3).standard_normal((90, 6))
    rows[20:, 1:] *= np.random.default_rng(4).random((70, 5)) < 0.3
    few, many = sp.csr_matrix(rows), sp.csr_matrix(np.where(rows == 0.0, 1e-300, rows))
    # Both are the same rows, but for products that are zero; those count as roundings where they are stored.
    assert coarse._rounded(few, np.ones(6))[1] == 90 + 2
    few.data[few.indices == 0] = np.where(np.arange(90) < 50, few.data[few.indices == 0], 0.0)
    few.eliminate_zeros()
    longest = int(np.diff(few.tocsc().indptr).max())
    assert coarse._rounded(few, np.ones(6))[1] == longest + 2
    assert coarse._rounded(many, np.ones(6))[1] == 90 + 2


def test_the_coarse_proof_is_there_up_to_its_limit():
    rng, seen = np.random.default_rng(5), set()
    base = rng.standard_normal((60, 3))
    for distance in np.geomspace(0.005, 0.05, 60):
        rows = base.copy()
        rows[:, 2] = rows[:, 0] + distance * rows[:, 2]
        root, wanted = coarse_slack(rows)
        seen.add(wanted)
        assert (coarse.coarse(rows, 1, 60) is not None) == (wanted and root > 0.0)
    assert seen == {True, False}


def test_the_bound_of_the_coarse_proof_allows_for_its_own_roundings():
    made = Coarse(np.ones(2), np.eye(2), np.eye(2), 0.25, 16, 1.0)
    w = np.array([3.0, 4.0])
    length = exact.norm_upper(w, np.zeros(2), np.zeros(2))
    # 16^{1/4}/√¼ = 4, eight steps above, which are 16u; and 4u for what is multiplied.
    assert excess(made.norm(exactly(w)), 4 * Fraction(length)) == pytest.approx(20.0, abs=2.0)


def test_a_coarse_solve_does_not_mind_how_large_its_right_hand_side_is():
    rows = np.random.default_rng(6).standard_normal((60, 4)) * [1.0, 1e-3, 1e3, 1.0]
    made, w = coarse.coarse(rows, 1, 240), rows.T @ np.ones(60)
    wanted = 0.25 * np.linalg.solve(rows.T @ rows, w)
    np.testing.assert_allclose(rows @ made.solve(w), rows @ wanted, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(made.solve(2.0**300 * w), 2.0**300 * made.solve(w), rtol=1e-5)
    assert not made.solve(0.0 * w).any()
    x = np.array([1.0, 1e3, 1e-3, -1.0])
    np.testing.assert_allclose(made.image(x), rows @ x, rtol=1e-4, atol=1e-5)


# Sizes and values of kinds --------------------------------------------------------------------------------------------


def test_the_size_of_a_dual_point_is_eight_units_above_its_power():
    form, hi = StackedForm(np.eye(3)), np.array([1.0, 2.0, 5.0])
    power = exact.dual_power(hi, np.zeros(3), 1)
    wanted = Fraction(math.isqrt(math.isqrt(int(Fraction(power) ** 3 * 2**600))), 2**150)
    assert excess(form.dual_size(hi, np.zeros(3)), wanted) == pytest.approx(8.0, abs=2.5)


def test_residuals_of_the_gram_form_are_right_to_eight_squares_of_u():
    form = GramForm(2, 1)
    c, hi = np.array([3.0, -1.0]), np.array([-5.0, 0.5])
    found = form.known_residual(c, hi, np.zeros(2))
    np.testing.assert_allclose(found.error, 8.0 * 2.0**-106 * np.array([8.0, 1.5]), rtol=1e-14)


def test_values_of_the_gram_form_allow_for_their_roundings():
    # Of exact entries: 4r² + 24 units; and twice 4(n + 4), as they are squared, of those that are not known at all.
    x = np.eye(6, 5).reshape(-1)
    assert excess(GramForm(6, 5).known_value(exactly(x)), 5) == pytest.approx(4 * 25 + 24, abs=4)
    found = GramForm(64, 1).known_value(unknown(np.ones(64)))
    assert excess(found, 64**2) == pytest.approx(2 * 4 * 68 + 4 + 24, abs=6)
    # |X|ᵀE + Eᵀ|X| + EᵀE, all of it.
    both = GramForm(2, 2).known_value(
        Known(np.array([1.0, -2.0, 3.0, 4.0]), np.zeros(4), np.array([0.5, 1.0, 2.0, 0.25]))
    )
    X, E = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, 1.0], [2.0, 0.25]])
    inner = np.abs(np.array([[10.0, 10.0], [10.0, 20.0]]))
    wanted = (inner + X.T @ E + E.T @ X + E.T @ E) ** 2
    assert both == pytest.approx(wanted.sum(), rel=1e-13, abs=0.0)


@pytest.mark.parametrize(("n", "r"), [(20, 1), (20, 8)])
def test_sizes_of_the_gram_form_allow_for_lapack(n, r):
    found = GramForm(n, r).dual_size(np.eye(n, r).reshape(-1), np.zeros(n * r))
    slack = (16 * (n + r) + 4) * math.sqrt(r)
    assert excess(found / r**0.75, 1) == pytest.approx(slack + 2 * r + 64, abs=3.0)


def test_the_rest_of_the_gram_form_is_the_root_of_the_rank_above_the_norm():
    w = np.array([3.0, 0.0, 0.0, 4.0])
    length = exact.norm_upper(w, np.zeros(4), np.zeros(4))
    assert excess(Frobenius(16).norm(exactly(w)), 2 * Fraction(length)) == pytest.approx(8.0, abs=1.5)


def test_the_bound_of_a_tree_allows_for_its_sums():
    # Two vertices: the flow is the load of one and half of both, all exact but for what is allowed.
    tree = spanning_tree(np.array([0]), np.array([1]), (2, 1))
    w = np.array([1.0, 1.0])
    flow = exact.subtree_sums(tree.order, tree.parents, np.full((2, 1), 2.0))[tree.children].reshape(-1)
    power = Fraction(exact.dual_power(flow, np.zeros(1), 1)) ** 3
    wanted = Fraction(math.isqrt(math.isqrt(int(power * 2**600))), 2**150)
    # 4u of the loads, (N + 4)u of their mean, 8u of the roots.
    assert excess(tree.norm(exactly(w)), wanted) == pytest.approx(4 + 6 + 8, abs=3.0)
    known = Known(np.array([1.0, -1.0]), np.array([-0.25, 0.5]), np.array([0.5, 1.0]))
    assert tree.norm(known) == pytest.approx(2.5 + 0.5 * (1.75 + 2.5), rel=1e-12)


# Conic programs -------------------------------------------------------------------------------------------------------


def test_the_epigraph_of_the_gram_form_bounds_every_row_by_a_semidefinite_matrix():
    points, r, theta, scale = 4, 3, 0.5, 2.0
    form, rng = GramForm(points, r).scaled(scale), np.random.default_rng(8)
    X, parts, total = rng.standard_normal((points, r)), rng.standard_normal((points, r, r)), rng.standard_normal((r, r))
    parts, total = parts + parts.transpose(0, 2, 1), total + total.T
    upper = [(i, j) for j in range(r) for i in range(j + 1)]

    def triangle(matrix):
        size = len(matrix)
        return [matrix[i, j] * (1.0 if i == j else math.sqrt(2.0)) for j in range(size) for i in range(j + 1)]

    found = form.epigraph(theta)
    u = np.concatenate([*map(triangle, parts), triangle(total)])
    slack = found.offset - found.matrix @ np.concatenate([X.reshape(-1), u])
    block = (r + 1) * (r + 2) // 2
    for k in range(points):
        whole = np.ones((r + 1, r + 1))
        whole[:r, :r], whole[:r, r] = parts[k], scale / theta * X[k]
        np.testing.assert_allclose(slack[block * k : block * (k + 1)], triangle(np.triu(whole)), rtol=1e-13)
    np.testing.assert_allclose(
        slack[block * points :], np.array(triangle(total)) - sum(map(np.array, map(triangle, parts)))
    )
    assert found.parts == [("semidefinite", r + 1)] * points + [("zero", len(upper))]
    # Σ wₖuₖ² at T = Σ xₖxₖᵀ in units of θ is ρ.
    best = np.concatenate([np.zeros(points * len(upper)), triangle(scale**2 / theta**2 * X.T @ X)])
    assert found.weights @ best**2 == pytest.approx(form.value(X))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_epigraph_of_terms_bounds_their_squares(kind):
    rows, theta = np.random.default_rng(9).standard_normal((6, 4)), 0.5
    form = StackedForm(kind(rows), rank=2).scaled(3.0)
    found, x, t = form.epigraph(theta), np.array([1.0, -1.0, 2.0, 0.5]), np.array([0.3, 1.0, 4.0])
    slack = (found.offset - found.matrix @ np.append(x, t)).reshape(3, 4)
    np.testing.assert_allclose(slack[:, 0], t + 1.0)
    np.testing.assert_allclose(slack[:, 1:3], 2.0 * 3.0 / theta * (rows @ x).reshape(3, 2))
    np.testing.assert_allclose(slack[:, 3], t - 1.0)
    squares = ((3.0 * rows @ x).reshape(3, 2) ** 2).sum(axis=1)
    assert found.weights @ (squares / theta**2) ** 2 == pytest.approx(form.value(x))
    assert found.parts == [("second-order", 4)] * 3


def test_a_factor_of_single_precision_is_that_of_lapack():
    rows = np.random.default_rng(10).standard_normal((40, 6)).astype(np.float32)
    lower = coarse._gram(rows)
    wanted = scipy.linalg.cholesky(rows.T.astype(float) @ rows.astype(float), lower=True)
    assert coarse._factor(lower)
    np.testing.assert_allclose(np.tril(lower), wanted, rtol=1e-4, atol=1e-5)
