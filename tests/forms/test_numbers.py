"""Are corrections, shares, margins and what is taken on trust the numbers that they say? From small equations.

Where iterations stop at a share, one step is made to leave a little more than that: then there has to be another.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from quartbench.forms import GramForm, GraphForm, OperatorForm, StackedForm, coarse, duality, leverage, proof, terms
from quartbench.forms.coarse import Coarse
from quartbench.forms.curvature import BoundaryCurvature, Curvature
from quartbench.forms.proof import Iterated
from quartbench.forms.trusted import Products
from quartbench.linalg.known import exactly
from quartbench.metrics import Diagonal
from tests.forms.random_forms import RowProducts
from tests.kernels import plain

U = 2.0**-53
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (0, 2), (1, 4)])


def rows_of(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def nearly_one(error):
    """Return rows whose Gram matrix is 1 on the diagonal and ``error`` off it, but for its square.

    One step of conjugate gradients for (1, 0) leaves (0, −error), and two steps nothing.
    """
    return np.array([[1.0, error], [0.0, 1.0]])


def length(v):
    return float(np.linalg.norm(v))


# Where iterations stop ------------------------------------------------------------------------------------------------


def test_a_coarse_solve_leaves_a_ten_thousandth_at_most():
    rows = nearly_one(1.5e-4).astype(np.float32)
    made = Coarse(np.ones(2), rows, np.eye(2, dtype=np.float32), 0.25, 2, 1.0)
    assert length(rows.T @ (rows @ made.solve(np.array([1.0, 0.0]))) - [1.0, 0.0]) <= 1e-5


def test_the_least_eigenvalue_is_looked_for_to_a_thousandth():
    v = np.random.default_rng(0).standard_normal(2)
    # Of diag(1, 1 + δ) the first step leaves some δ·|v₁v₂|/‖v‖² of v.
    distance = 1.5e-3 * (v @ v) / abs(v[0] * v[1])
    matrix = np.diag([1.0, 1.0 + distance]).astype(np.float32)
    assert coarse._least(lambda p: matrix @ p, 2) == pytest.approx(1.0, abs=0.01 * distance)
    # Where it leaves less, that is enough: the quotient of v itself.
    matrix = np.diag([1.0, 1.0 + 0.5 * distance]).astype(np.float32)
    seen = (v @ matrix @ v) / (v @ v)
    assert coarse._least(lambda p: matrix @ p, 2) == pytest.approx(seen, abs=0.01 * distance)


def test_a_newton_step_leaves_a_hundredth_at_most():
    rows = nearly_one(1.5e-2)
    form = StackedForm(rows)
    x, v = np.linalg.solve(rows, np.ones(2)), np.array([1.0, 0.0])  # the Hessian is 12 times the Gram matrix
    for metric in (None, Diagonal(np.ones(2))):
        assert length(rows.T @ duality._newton_weights(form, form.image(x), v, metric, 20) - v) <= 1e-3


def test_a_newton_step_without_a_factor_does_not_mind_units():
    form, v = StackedForm(np.diag([1.0, 1e3])), np.array([1.0, 7.0])
    weights = duality._newton_weights(form, np.ones(2), v, None, 1)
    np.testing.assert_allclose(np.diag([1.0, 1e3]) @ weights, v, rtol=1e-12)


def test_solves_without_a_factor_leave_1e_13_at_most():
    rows, v = nearly_one(1.5e-13), np.array([1.0, 0.0])
    form = StackedForm(rows)
    assert duality._without_factor(form, v).leftover <= 1e-15
    assert length(rows.T @ Iterated(form).correction(v, form.image) - v) <= 1e-15


@pytest.mark.parametrize(("error", "again"), [(0.7e-9, False), (1.5e-9, True)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_solve_is_made_again_where_it_leaves_more_than_a_billionth(error, again, size):
    rows = rows_of(12, 3)
    form, v = StackedForm(rows), size * np.array([1.0, -2.0, 0.5])
    metric = form.weighted(np.linspace(0.5, 2.0, 12))
    solve = metric.solve
    metric.solve = lambda v: (1.0 - error) * solve(v)
    metric.dual_norm = lambda v: math.sqrt(v @ solve(v))
    left = length(v - rows.T @ duality._solve(form, v, metric).weights) / length(v)
    assert left == pytest.approx(0.0 if again else error, abs=1e-13)


# Corrections that follow the Hessian ----------------------------------------------------------------------------------


def test_the_hessian_is_raised_by_1e_15_of_its_trace():
    n = 200
    w = np.linspace(1.0, 2.0, n)
    # The Hessian is 12I, and its trace 12n: what is solved for is short by n·10⁻¹⁵.
    short = 1.0 - Curvature(np.eye(n), 1, np.ones(n)).correction(w, w) / w
    np.testing.assert_allclose(short, n * 1e-15, rtol=0.01)


@pytest.mark.parametrize("rank", [1, 2])
def test_the_curvature_of_terms_is_that_of_their_hessian(rank):
    rows, x, w = rows_of(8, 3) * [1.0, 5.0, 0.3], np.array([1.0, -0.5, 2.0]), np.array([1.0, 2.0, -3.0])
    found = Curvature(rows, rank, rows @ x).correction(w, w)
    hessian = np.stack([plain.hessian_product(rows, rank, x, unit) for unit in np.eye(3)], axis=1)
    s, t = ((rows @ v).reshape(-1, rank) for v in (x, np.linalg.solve(hessian, w)))
    wanted = 4.0 * (s**2).sum(axis=1, keepdims=True) * t + 8.0 * (s * t).sum(axis=1, keepdims=True) * s
    np.testing.assert_allclose(found, wanted.reshape(-1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("nearly_dependent", [False, True])
def test_corrections_along_a_boundary_solve_the_equations_of_newton(nearly_dependent):
    rows = rows_of(12, 4) * [1.0, 3.0, 0.5, 2.0]
    if nearly_dependent:
        rows[:, 3] = rows[:, 1] + 1e-7 * rows[:, 3]
    signs = np.array([1.0, -1.0, -1.0, -1.0])
    x, r = np.array([2.0, 1.0, -0.5, 0.7]), np.array([-9.0, 5.0, -2.0, 4.0])  # inside of the cone, not on its boundary
    made = BoundaryCurvature(rows, 1, rows @ x, x, signs)
    hessian = 12.0 * rows.T @ ((rows @ x)[:, None] ** 2 * rows)
    for _ in range(2):
        # (ρ''(x) − νJ)e − δJx = r + νJx and ⟨Jx,e⟩ = −½⟨x,Jx⟩, with the Hessian of the first x.
        normal = signs * x
        multiplier = -(normal @ r) / (normal @ normal)
        assert multiplier > 0.0
        system = np.zeros((5, 5))
        system[:4, :4] = hessian - multiplier * np.diag(signs)
        system[:4, 4] = -normal
        system[4, :4] = normal
        e = np.linalg.solve(system, np.append(r + multiplier * normal, -0.5 * (x @ normal)))[:4]
        found = made.correction(r, r)
        scale = np.abs(found).max()
        s = rows @ np.array([2.0, 1.0, -0.5, 0.7])
        np.testing.assert_allclose(found, 12.0 * s**2 * (rows @ e), atol=1e-6 * scale)
        x = x + e


def test_no_multiplier_of_a_boundary_is_negative():
    rows, signs = rows_of(12, 3), np.array([1.0, -1.0, -1.0])
    x = np.array([2.0, 1.0, -0.5])
    r = 3.0 * signs * x + np.array([0.1, 0.2, -0.1])
    s, normal = rows @ x, signs * x
    system = np.zeros((4, 4))
    system[:3, :3] = 12.0 * rows.T @ (s[:, None] ** 2 * rows)
    system[:3, 3] = -normal
    system[3, :3] = normal
    e = np.linalg.solve(system, np.append(r, -0.5 * (x @ normal)))[:3]
    found = BoundaryCurvature(rows, 1, s, x, signs).correction(r, r)
    np.testing.assert_allclose(found, 12.0 * s**2 * (rows @ e), rtol=1e-9, atol=1e-9)


# What is taken on trust -----------------------------------------------------------------------------------------------


def disagreeing(lengths, error):
    """Return a form of rows diag(lengths), whose adjoint has them larger by a share ``error``."""
    return OperatorForm(
        LinearOperator(
            (lengths.size,) * 2,
            matvec=lambda x: lengths * x.ravel(),
            rmatvec=lambda w: (1.0 + error) * lengths * w.ravel(),
            dtype=float,
        )
    )


LENGTHS = np.array([1.0, 2.0**30, 2.0**-20, 4.0])


@pytest.mark.parametrize(("error", "share"), [(0.0, 0.0), (2.0**-52, 64 * U), (2.0**-51, 64 * U), (2.0**-30, 2.0**-27)])
def test_stored_products_are_trusted_to_64_roundings_or_eight_times_what_they_disagree_by(error, share):
    form = disagreeing(LENGTHS, error)
    found = Products(form, StackedForm(np.diag(LENGTHS)))
    np.testing.assert_array_equal(found.lengths, LENGTHS)
    assert found.share == share


@pytest.mark.parametrize("error", [0.0, 2.0**-30])
def test_many_products_are_trusted_to_64_roundings_or_eight_times_what_four_vectors_tell(error):
    found, rng, apart = Products(disagreeing(LENGTHS, error), None), np.random.default_rng(0), 0.0
    for _ in range(4):  # in the units of the columns Mx is x itself
        x, w = rng.standard_normal(4), rng.standard_normal(4)
        apart = max(apart, error * abs(x @ w) / length(x))
    assert found.share == pytest.approx(max(64 * U, 8.0 * apart), rel=1e-5)
    assert (found.share > 64 * U) == (error > 0.0)


def test_a_column_of_zeros_counts_as_one_of_length_one():
    rows = np.diag([2.0, 0.0])

    def adjoint(w):
        return rows @ w + [0.0, 2.0**-30 * w[1]]

    form = OperatorForm(LinearOperator((2, 2), matvec=lambda x: rows @ x, rmatvec=adjoint, dtype=float))
    assert Products(form, StackedForm(rows)).share == 8 * 2.0**-30


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_lengths_of_columns_do_not_mind_the_size_of_rows(size):
    for products in (None, StackedForm(size * np.diag([3.0, 4.0]))):
        found = Products(disagreeing(size * np.array([3.0, 4.0]), 0.0), products)
        np.testing.assert_allclose(found.lengths, [3.0 * size, 4.0 * size], rtol=1e-12)


@pytest.mark.parametrize("stored", [True, False])
def test_trusted_products_are_off_by_their_share_of_a_column_times_the_vector(stored):
    found = Products(disagreeing(LENGTHS, 2.0**-30), StackedForm(np.diag(LENGTHS)) if stored else None)
    x, w = np.array([3.0, 0.0, 0.0, 1.0]), np.array([0.0, 3.0, -4.0, 0.0])
    image, residual = found.image(x, True), found.residual(0.0 * x, w, 0.0 * w, True)
    np.testing.assert_allclose(image.error, found.share * 5.0, rtol=1e-9)  # ‖(3, 0, 0, 4)‖
    np.testing.assert_allclose(residual.error, found.share * 5.0 * LENGTHS, rtol=1e-9)
    np.testing.assert_allclose(image.rounded, LENGTHS * x)
    np.testing.assert_allclose(residual.rounded, -LENGTHS * w, rtol=1e-8)


def test_low_parts_of_a_dual_point_count_in_a_residual_of_products():
    found = Products(disagreeing(np.ones(2), 0.0), None)
    residual = found.residual(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([2.0**-60, -(2.0**-70)]), True)
    assert residual.rounded.tolist() == [-(2.0**-60), 2.0**-70]


# Proofs ---------------------------------------------------------------------------------------------------------------


def test_the_proof_of_a_form_without_a_factor_is_that_of_its_rows_unscaled(monkeypatch):
    monkeypatch.setattr(terms, "PRODUCT_DIMENSION", 2)
    rows, w = rows_of(12, 3), np.array([1.0, -2.0, 0.5])
    form = OperatorForm(RowProducts(rows))
    found = form.scaled(8.0).proof().norm(exactly(w))
    assert found == pytest.approx(Iterated(StackedForm(rows)).norm(exactly(w)), rel=1e-9)


def test_sums_of_a_gram_matrix_go_through_the_additions_that_are_counted(monkeypatch):
    counted, error = [], proof._gram_error
    monkeypatch.setattr(
        proof, "_gram_error", lambda gram, additions: counted.append(additions) or error(gram, additions)
    )
    monkeypatch.setattr(proof, "GRAM_ROWS", 8)
    for count in (8, 20, 80):
        proof.factor_of_rows(rows_of(count, 2))
        pieces = -(-count // 8)
        # A product and seven additions within a piece, one for every piece; and no more than one to spare.
        assert 0 <= counted.pop() - (8 + pieces) <= 1


@pytest.mark.parametrize("power", [-480, 480])
def test_rows_far_from_one_have_corrections_all_the_same(power):
    rows, w = rows_of(12, 3), np.array([1.0, -2.0, 0.5])
    near = proof.factor_of_rows(rows).correction(w, lambda z: rows @ z)
    far = np.ldexp(rows, power)
    factor = proof.factor_of_rows(far)
    assert abs(math.frexp(float(factor.unit.min()))[1]) > 300
    # μ is of the size of w over that of the rows, z of their square.
    found = factor.correction(np.ldexp(w, -power), lambda z: far @ z)
    np.testing.assert_allclose(np.ldexp(found, 2 * power), near, rtol=1e-12)


def test_the_coarse_proof_is_there_for_squares_of_columns_up_to_two_to_the_900():
    rows = np.vstack([np.eye(3)] * 4)
    for power, there in ((-449, True), (-451, False), (448, True), (449, False)):  # squares are 4·2²ᵖ
        assert (coarse.coarse(np.ldexp(rows, power), 1, 12) is not None) == there


def test_the_slack_of_the_coarse_proof_is_four_units_below_the_square_of_its_root(monkeypatch):
    # 2⁻² as the shift of 1, with no error and exact roots: √s is lowered by 8u, and s by 4u more.
    monkeypatch.setattr(coarse, "_error", lambda *given: 0.0)
    monkeypatch.setattr(coarse, "_least", lambda *given: 1.0)
    monkeypatch.setattr(coarse, "U32", 0.0)
    found = coarse.coarse(np.eye(4), 1, 4)
    assert float((Fraction(found.slack) / Fraction(1, 4) - 1) / Fraction(U)) == pytest.approx(-20.0, abs=1.5)


def test_sizes_of_dual_points_of_the_gram_form_are_those_of_both_parts():
    form = GramForm(3, 2)
    hi, lo = rows_of(2, 6)
    assert form.dual_size(hi, lo) == form.dual_size(hi + lo, 0.0 * lo)


def test_a_flow_goes_with_an_edge_or_against_it():
    # From 0 the tree goes to 2 and from there back to 1, and to 3: once against the edge as it is kept.
    form = GraphForm(4, 1, [(0, 2), (1, 2), (2, 3)])
    assert form.proof().parents.tolist() == [0, 2, 0, 2]
    found = form.proof().correction(np.array([-6.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [-6.0, 1.0, -3.0])  # along (0, 2), (1, 2) and (2, 3)
    np.testing.assert_allclose(form.adjoint(found), [-6.0, 1.0, 2.0, 3.0])


# Margins --------------------------------------------------------------------------------------------------------------


def test_bounds_in_the_norm_of_single_precision_are_right_to_double():
    form, tau = StackedForm(rows_of(30, 4), 2), np.linspace(0.5, 2.0, 15)
    single = form.weighted(tau, "single")
    assert single.precision == "single"
    wanted = form.bounds(form.weighted(tau))
    found = form.bounds(single)
    assert (found.alpha, found.beta) == (wanted.alpha, pytest.approx(wanted.beta, rel=1e-13))


def test_traces_that_are_known_serve_for_terms_of_one_row_alone():
    for rank in (1, 3):
        form = StackedForm(rows_of(30, 4), rank)
        metric = form.weighted(np.linspace(0.5, 2.0, form.terms))
        wanted = leverage.weighted_bounds(form, metric).beta
        before = form.passes
        assert leverage.weighted_bounds(form, metric, form.traces(metric)).beta == pytest.approx(wanted, rel=1e-12)
        # A sweep for the traces, and a Gram matrix; of longer terms one more for the spectral norms.
        assert form.passes - before == (2 if rank == 1 else 3)


def test_a_factor_of_the_rows_keeps_the_digits_of_nearly_dependent_ones():
    rows = rows_of(30, 3)
    rows[:, 2] = rows[:, 0] + 1e-9 * rows[:, 2]
    form, tau = StackedForm(rows), np.linspace(0.5, 2.0, 30)
    metric = form.weighted(tau)
    assert metric.factor == "qr"
    assert leverage.largest(form, tau, metric) == pytest.approx(1.0, abs=1e-6)  # B(τ) relative to itself


def graph_matrix(weights):
    found = np.zeros((5, 5))
    for (i, j), weight in zip(sorted(map(tuple, EDGES)), weights, strict=True):
        found[[i, j], [i, j]] += weight
        found[[i, j], [j, i]] -= weight
    return found


def test_eigenvalues_of_a_graph_are_moved_to_the_safe_side():
    form, weights, tau = GraphForm(5, 2, EDGES), np.linspace(0.5, 2.0, 7), np.linspace(2.0, 1.0, 7)
    d = np.linspace(1.0, 2.0, 5)
    root = np.sqrt(d)
    wanted = np.linalg.eigvalsh(graph_matrix(weights) / np.outer(root, root))[-1]
    metric = Diagonal(np.repeat(d, 2))
    assert (form.largest(weights, metric) / wanted - 1.0) / 1e-10 == pytest.approx(1.0, abs=0.01)
    basis = np.linalg.svd(np.eye(5) - 0.2)[0][:, :4]
    pencil = [basis.T @ graph_matrix(one) @ basis for one in (weights, tau)]
    wanted = np.linalg.eigvals(np.linalg.solve(pencil[1], pencil[0])).real.max()
    made = form.weighted(tau)
    assert (form.largest(weights, made) / wanted - 1.0) / 1e-10 == pytest.approx(1.0, abs=0.01)
    least = np.linalg.eigvals(np.linalg.solve(basis.T @ (d[:, None] * basis), pencil[1])).real.min() / length(tau)
    for rounding in (0.0, 3e-10):
        made.rounding = rounding
        lowered = 1.0 - form.smallest(metric, made) / least
        assert lowered / (1e-10 + rounding) == pytest.approx(1.0, abs=0.01)


def test_errors_of_edges_are_gathered_with_room_for_their_sums():
    leaves = 9
    form = GraphForm(leaves + 1, 1, [(0, i + 1) for i in range(leaves)], np.ones(leaves))
    found = form._gathered(np.ones(leaves))
    for value, degree in zip(found, [leaves] + [1] * leaves, strict=True):
        above = float((Fraction(value) / degree - 1) / Fraction(U))
        # 2(d + 4) units, d the largest degree, and a step.
        assert above == pytest.approx(2 * (leaves + 4) + 1.5, abs=2.0)


def test_a_weighted_misfit_has_the_factor_of_its_rows():
    form = GraphForm(5, 2, EDGES, np.linspace(0.5, 2.0, 7)).scaled(1.5)
    x, b = rows_of(2, 10)
    alpha, beta = np.linspace(0.5, 2.0, 7), np.linspace(2.0, 1.0, 7)
    image = form.image(x)
    matrix = np.stack([form.misfit_product(image, alpha, beta, unit)[0] for unit in np.eye(10)], axis=1)
    shifted = matrix + 0.5 * np.trace(matrix) / 10.0 * np.eye(10)
    np.testing.assert_allclose(form.misfit_factor(image, alpha, beta, 0.5).solve(b), np.linalg.solve(shifted, b), 1e-8)
    rows = form.real_rows().toarray()
    np.testing.assert_allclose(form.row_norms(), 1.5 * np.linalg.norm(rows, axis=1), rtol=1e-12)


def test_parallel_sparse_residuals_are_those_of_one_thread(monkeypatch):
    rows = rows_of(12, 4) * (rows_of(12, 4, seed=1) > 0.0)
    rows[::3] += 1.0
    form = StackedForm(sp.csr_matrix(rows), 3)
    x, c, hi, lo = rows_of(4), rows_of(4, seed=2), rows_of(12, seed=3), 2.0**-55 * rows_of(12, seed=4)
    weights = np.linspace(1.0, 2.0, 12)
    asked = (
        lambda: form.known_image(x),
        lambda: form.known_residual(c, hi, lo),
        lambda: form.column_squares(weights),
        lambda: form.image(x),
        lambda: form.adjoint(hi),
    )
    alone = [ask() for ask in asked]
    monkeypatch.setattr(form, "_parts", lambda: 2, raising=False)
    for ask, wanted in zip(asked, alone, strict=True):
        found = ask()
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-27)
