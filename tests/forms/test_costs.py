"""What do forms say of their cost, their samples and their misfits? The stated rules, computed once more.

Costs are in passes, and decide what solvers choose: a rule is checked on both sides of where it changes.
"""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from quartbench.forms import (
    ComplexForm,
    DiffractionForm,
    GramForm,
    GraphForm,
    OperatorForm,
    StackedForm,
    graph,
    leverage,
    sampling,
)
from quartbench.forms.sampling import Proving, picks, product
from quartbench.metrics import Diagonal, Identity
from tests.forms.random_forms import RowProducts
from tests.kernels import plain

RNG = np.random.default_rng(0)
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 4)])


# Costs ----------------------------------------------------------------------------------------------------------------


def test_a_factor_of_products_costs_one_for_each_column_and_its_own_work():
    form = OperatorForm(RowProducts(RNG.standard_normal((30, 6))))
    assert form.factor_cost() == pytest.approx(6 + 6**2 / (3.0 * 20.0 * 30))
    assert form.solve_cost() == pytest.approx(6 / 30)
    assert form.gram_work() == pytest.approx(0.5 * 30 * 6**2 + 6**3 / 3.0)


def test_a_factor_of_stored_rows_costs_its_gram_matrix_and_its_own_work():
    dense = StackedForm(RNG.standard_normal((60, 6)), rank=3)
    sparse = StackedForm(sp.csr_matrix(np.eye(6)[np.arange(60) % 6]), rank=3)
    for form, entries, gram in ((dense, 360, 6 / 20.0), (sparse, 60, 1.0)):  # BLAS-3; the entries of a row
        assert form.factor_cost() == form.hessian_cost() == pytest.approx(gram + 6**3 / (3.0 * 20.0 * entries))
        assert form.solve_cost() == pytest.approx(6**2 / entries)
        assert form.gram_work() == pytest.approx(0.5 * entries * 6 + 6**3 / 3.0)
    rows = ComplexForm(RNG.standard_normal((30, 6)) + 1j)
    assert rows.factor_cost() == rows.hessian_cost() == pytest.approx(6 / 20.0 + 6**3 / (3.0 * 20.0 * 180))
    assert rows.solve_cost() == pytest.approx(6**2 / 180)
    assert (rows.columns, rows.freedom, rows._work) == (6, 6, 2 * 360)
    assert OperatorForm(RowProducts(RNG.standard_normal((30, 6)))).hessian_cost() == 6.0


def test_a_factor_of_a_graph_costs_nothing_where_it_is_small(monkeypatch):
    form = GraphForm(5, 2, EDGES)
    assert (form.factor_cost(), form.solve_cost()) == (0.0, 0.0)
    assert form._work == 4 * 7 * 2
    assert form.freedom == 4
    monkeypatch.setattr(graph, "DENSE_VERTICES", 4)
    assert (form.factor_cost(), form.solve_cost()) == (100.0, 25.0)
    monkeypatch.setattr(graph, "DENSE_VERTICES", 5)
    assert form.factor_cost() == 0.0


def test_a_factor_of_a_misfit_costs_what_its_band_takes_and_all_where_edges_are_many(monkeypatch):
    form = GraphForm(5, 2, EDGES)
    assert form.misfit_factor_cost() == pytest.approx(0.15 * form._band().work / form._work)
    monkeypatch.setattr(graph, "FACTORED_EDGES", 7 / 5)
    assert form.misfit_factor_cost() < math.inf
    monkeypatch.setattr(graph, "FACTORED_EDGES", 6.9 / 5)
    assert form.misfit_factor_cost() == math.inf


def test_vertices_are_gathered_by_more_threads_than_that_takes_more_work(monkeypatch):
    form = GraphForm(5, 2, EDGES)
    for parts, edges, wanted in ((1, 0, 1), (2, 7, 1), (2, 6, 2), (3, 7, 3)):
        monkeypatch.setattr(form, "_parts", lambda parts=parts: parts, raising=False)
        monkeypatch.setattr(graph, "CACHED_EDGES", edges)
        assert form._gatherers() == wanted
    assert form._gatherers(overhead=5.0) == 1


# Samples --------------------------------------------------------------------------------------------------------------


def test_a_sample_for_a_proof_is_drawn_where_it_saves_a_third():
    for terms, wanted in ((31, 1), (30, 1), (46, 2), (45, 1)):
        form = StackedForm(RNG.standard_normal((2 * terms, 10)), rank=2)
        found = picks(form, 6)  # 6·10/2 = 30 terms
        assert len(found) == wanted
        assert found[-1] is None
        if wanted == 2:
            assert found[0].size == 30
            assert (np.diff(found[0]) > 0).all()
    assert picks(StackedForm(RNG.standard_normal((303, 5)), rank=3), 4)[0].size == 7  # 20/3, rounded up


def test_a_sampled_metric_is_b_of_its_terms_with_equal_weights():
    rows = RNG.standard_normal((8000, 4))
    form = StackedForm(rows, rank=2).scaled(3.0)
    found = form.sampled(0.0)
    picked = np.flatnonzero(found.tau)
    assert picked.size == 40 * 4 // 2 + 1  # 40 rows for each unknown, as a twentieth of all would be more
    np.testing.assert_allclose(found.tau[picked], 4000**-0.5 * 4000 / picked.size)
    chosen = 3.0 * rows.reshape(4000, 2, 4)[picked].reshape(-1, 4)
    matrix = found.tau[picked[0]] * chosen.T @ chosen
    v = RNG.standard_normal(4)
    np.testing.assert_allclose(found.solve(v), np.linalg.solve(matrix, v), rtol=1e-4)
    # It spreads v over those terms: their adjoint is v.
    np.testing.assert_allclose(3.0 * rows.T @ form.spread(found, v), v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("m", "wanted"), [(399, 81), (1000, 81), (2400, 121), (3200, 161), (9000, 161)])
def test_a_sampled_metric_has_twenty_to_forty_rows_for_each_unknown(m, wanted):
    found = StackedForm(np.sign(RNG.standard_normal((m, 4)))).sampled(0.0)
    assert np.count_nonzero(found.tau) == wanted


def test_a_sampled_metric_is_made_where_it_saves_and_terms_are_even(monkeypatch):
    rows = np.sign(RNG.standard_normal((1000, 4)))
    form = StackedForm(rows)
    saves = form.factor_cost() * (1.0 - 81 / 1000)
    assert form.sampled(0.999 * saves) is not None
    assert form.sampled(1.001 * saves) is None
    assert StackedForm(rows[:161]).sampled(0.0) is None  # more than half of all
    assert StackedForm(rows[:163]).sampled(0.0) is not None
    picked = sampling.drawn(1000, 81)
    for size, even in ((3.9, True), (4.3, False)):
        uneven = rows.copy()
        uneven[picked[0]] *= math.sqrt(size)
        assert (StackedForm(uneven).sampled(0.0) is not None) == even
    monkeypatch.setattr(sampling, "MODERATE", (2.0, 3.0))
    assert form.sampled(0.0) is None
    assert form.scaled(2.5).sampled(0.0) is not None
    assert ComplexForm(rows + 1j * rows).sampled(0.0) is None


def test_products_in_single_precision_do_not_mind_the_size_of_a_point():
    rows = RNG.standard_normal((5, 3)).astype(np.float32)
    for size in (1e-200, 1.0, 1e200):
        x = size * np.array([1.0, -2.0, 0.5])
        np.testing.assert_allclose(product(rows, x), rows.astype(float) @ x, rtol=1e-5)
    assert not product(rows, np.zeros(3)).any()


@pytest.mark.parametrize("m", [15, 2000])
def test_the_metric_of_a_proof_solves_with_the_terms_it_rests_on(m):
    rows = RNG.standard_normal((m, 3))
    form = StackedForm(rows).scaled(2.0)
    found, v = form.proving(), RNG.standard_normal(3)
    assert isinstance(found, Proving)
    picked = np.flatnonzero(found.tau)
    assert picked.size == (m if m == 15 else 4 * 3)
    matrix = 4.0 * rows[picked].T @ rows[picked]
    np.testing.assert_allclose(found.solve(v), np.linalg.solve(matrix, v), rtol=1e-9)
    np.testing.assert_allclose(2.0 * rows.T @ form.spread(found, v), v, rtol=1e-9)


# Terms that come as products, and in other units ----------------------------------------------------------------------


def test_squares_of_many_columns_are_sketched(monkeypatch):
    rows, weights = RNG.standard_normal((40, 5)), RNG.uniform(0.5, 2.0, 40)
    form = OperatorForm(RowProducts(rows)).scaled(2.0)
    wanted = 4.0 * weights @ rows**2
    np.testing.assert_allclose(form.column_squares(weights), wanted, rtol=1e-12)
    np.testing.assert_allclose(form.row_norms(), 2.0 * np.linalg.norm(rows, axis=1))
    monkeypatch.setattr("quartbench.forms.terms.EXACT_COLUMNS", 4)
    monkeypatch.setattr("quartbench.forms.terms.SKETCH", 4000)
    np.testing.assert_allclose(form.column_squares(weights), wanted, rtol=0.1)
    fresh = OperatorForm(RowProducts(rows))
    assert fresh.row_norms() is None


def test_terms_that_are_zero_are_found_in_every_block_and_may_weigh_nothing(monkeypatch):
    rows = RNG.standard_normal((12, 3))
    rows[[4, 5, 9]] = 0.0
    monkeypatch.setattr("quartbench.forms.blocks.BLOCK_BYTES", 4 * 3 * 8)
    form = StackedForm(rows, rank=2)
    assert form.zero_terms().tolist() == [2]
    tau = np.ones(6)
    tau[2] = 0.0
    assert form.require_weights(tau) is not None
    for wrong in (np.where(np.arange(6) == 1, 0.0, 1.0), np.where(np.arange(6) == 2, -1.0, 1.0), np.ones(5)):
        with pytest.raises(ValueError, match="tau must be 6 positive numbers"):
            form.require_weights(wrong)


def test_equal_weights_have_norm_one_in_the_dual_exponent():
    form = StackedForm(RNG.standard_normal((30, 2)))
    for p in (1.5, 2.0, 4.0):
        assert np.linalg.norm(form.uniform_weights(p), p / (p - 1.0)) == pytest.approx(1.0)


def test_the_dual_point_of_a_newton_step_gives_its_gradient():
    rows = RNG.standard_normal((12, 3))
    form, (x, z) = StackedForm(rows, rank=2), RNG.standard_normal((2, 3))
    wanted = plain.gradient(rows, 2, x) + plain.hessian_product(rows, 2, x, z - x)
    np.testing.assert_allclose(form.adjoint(form.newton_weights(form.image(x), form.image(z))), wanted, rtol=1e-10)


def test_the_noise_of_f_is_that_of_the_products_it_adds_up():
    rows, x = RNG.standard_normal((12, 3)), RNG.standard_normal(3)
    form = StackedForm(rows, rank=2).scaled(2.0)
    s = 2.0 * (rows @ x).reshape(-1, 2)
    weights = (4.0 * (s**2).sum(axis=1, keepdims=True) * s).reshape(-1)
    sharp = np.linalg.norm(weights[:, None] * 2.0 * rows * x)
    rough = np.linalg.norm(weights[:, None] * 2.0 * rows) * np.abs(x).max()
    for enough, wanted in ((0.0, sharp), (0.999 * rough, sharp), (1.001 * rough, rough)):
        assert form.rounding_noise(x, form.image(x), form.gradient(x), enough) == pytest.approx(wanted, rel=1e-12)


def test_points_behind_an_extrapolated_one_have_its_image():
    class Plain(OperatorForm):
        line_behind = OperatorForm.__mro__[2].line_behind  # of every form, by its linear images

    form = Plain(RowProducts(RNG.standard_normal((6, 3))))
    x, y, before = RNG.standard_normal((3, 3))
    theta = 0.7
    images = [form.image(point) for point in (x, y + theta * (y - before), before)]
    image, line = form.line_behind(*images, theta)
    np.testing.assert_allclose(image, form.image(y), rtol=1e-12)
    np.testing.assert_allclose(line, form.line(x, y - x), rtol=1e-9, atol=1e-9)


def test_rows_are_made_moderate_only_where_their_powers_might_leave_the_range(monkeypatch):
    monkeypatch.setattr("quartbench.forms.base.MODERATE", (0.5, 4.0))
    rows = np.array([[1.0, 0.25], [-2.0, 1.0]])
    for scale, wanted in ((1.0, 1.0), (2.0, 2.0), (2.1, 0.5), (0.25, 0.25), (0.2, 0.5)):
        assert StackedForm(rows).scaled(scale).moderate().scale == pytest.approx(wanted)


def test_patterns_behind_masks_have_the_numbers_of_their_rows():
    masks = RNG.standard_normal((3, 2, 2)) + 1j * RNG.standard_normal((3, 2, 2))
    form = DiffractionForm(masks).scaled(1.5)
    rows = 1.5 * np.stack([form.twin_image(unit) for unit in np.eye(8)], axis=1)
    assert (form.entries, form.dim, form.terms) == (4, 8, 12)
    assert form.magnitude == pytest.approx(1.5 * np.abs(masks).max())
    np.testing.assert_allclose(form.row_norms(), np.linalg.norm(rows, axis=1), rtol=1e-10)
    w = np.random.default_rng(0).standard_normal(24)
    np.testing.assert_allclose(form.adjoint(w), rows.T @ w, rtol=1e-10)
    even, uneven = np.repeat(RNG.uniform(0.5, 2.0, 12), 2), RNG.uniform(0.5, 2.0, 24)
    for weights in (even, uneven):
        np.testing.assert_allclose(form.column_squares(weights), weights @ rows**2, rtol=1e-10)
    v = RNG.standard_normal(8)
    for tau in (np.repeat([0.5, 1.0, 2.0], 4), RNG.uniform(0.5, 2.0, 12)):
        B = rows.T @ (np.repeat(tau, 2)[:, None] * rows)
        np.testing.assert_allclose(form.weighted(tau).solve(v), np.linalg.solve(B, v), rtol=1e-9)


def test_an_adjoint_is_one_to_a_millionth():
    rows = RNG.standard_normal((12, 4))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(4), rng.standard_normal(12)  # what it is checked with
    share = np.linalg.norm(rows @ x) * np.linalg.norm(w) / abs(w @ rows @ x)

    def operator(error):
        wrong = (1.0 + error * share) * rows.T
        return LinearOperator((12, 4), matvec=lambda v: rows @ v, rmatvec=lambda v: wrong @ v, dtype=float)

    OperatorForm(operator(0.9e-6))
    with pytest.raises(ValueError, match=r"apart by 1\.5e-06"):
        OperatorForm(operator(1.5e-6))


# Misfits of data ------------------------------------------------------------------------------------------------------


def misfit_forms():
    rows = RNG.standard_normal((12, 4))
    pairs = RNG.standard_normal((5, 2)) + 1j * RNG.standard_normal((5, 2))
    return [
        StackedForm(rows, rank=2),
        StackedForm(sp.csr_matrix(rows), rank=2),
        OperatorForm(RowProducts(rows)),
        GraphForm(5, 2, EDGES),
        ComplexForm(pairs),
    ]


@pytest.mark.parametrize("number", range(5))
def test_misfits_their_gradients_products_and_lines_are_those_of_the_squares(number):
    form = misfit_forms()[number].scaled(1.5)
    rng = np.random.default_rng(number)
    rows = 1.5 * np.stack([form.twin_image(unit) for unit in np.eye(form.dim)], axis=1)
    x, v = rng.standard_normal((2, form.dim))
    d, omega = rng.uniform(0.5, 2.0, (2, form.terms))

    def squares(point):
        return ((rows @ point).reshape(form.terms, -1) ** 2).sum(axis=1)

    def value(point):
        return float((omega * (squares(point) - d) ** 2).sum())

    def gradient(point):
        weights = 4.0 * omega * (squares(point) - d)
        return rows.T @ (weights[:, None] * (rows @ point).reshape(form.terms, -1)).reshape(-1)

    found, slope, image = form.evaluate_misfit(x, d, omega)
    assert found == pytest.approx(value(x))
    np.testing.assert_allclose(slope, gradient(x), rtol=1e-9, atol=1e-9)
    again, slope = form.misfit_from_image(image, d, omega)
    assert again == pytest.approx(value(x))
    np.testing.assert_allclose(slope, gradient(x), rtol=1e-9, atol=1e-9)
    h = 1e-4
    wanted = (gradient(x + h * v) - gradient(x - h * v)) / (2.0 * h)
    alpha, beta = 4.0 * omega * (squares(x) - d), 8.0 * omega
    second, direction = form.misfit_product(image, alpha, beta, v)
    np.testing.assert_allclose(second, wanted, rtol=1e-5, atol=1e-4)
    assert direction is None or np.allclose(direction, form.image(v))
    line = form.misfit_line(image, form.image(v), d, omega)
    for t in (-1.0, 0.5, 2.0):
        assert line @ t ** np.arange(5) == pytest.approx(value(x + t * v))
    to = form.misfit_line_to(image, form.image(v), d, omega)
    assert to @ 0.3 ** np.arange(5) == pytest.approx(value(x + 0.3 * (v - x)))


def test_the_factor_of_a_misfit_solves_with_its_matrix():
    form = GraphForm(5, 2, EDGES).scaled(1.5)
    x, b = RNG.standard_normal((2, 10))
    alpha, beta = RNG.uniform(0.5, 2.0, (2, 7))
    image = form.image(x)
    matrix = np.stack([form.misfit_product(image, alpha, beta, unit)[0] for unit in np.eye(10)], axis=1)
    shifted = matrix + 0.5 * np.trace(matrix) / 10.0 * np.eye(10)
    np.testing.assert_allclose(form.misfit_factor(image, alpha, beta, 0.5).solve(b), np.linalg.solve(shifted, b), 1e-8)


# Graphs at another scale ----------------------------------------------------------------------------------------------


def test_a_graph_at_another_scale_has_the_numbers_of_its_rows():
    form = GraphForm(5, 2, EDGES).scaled(3.0)
    rows, w = 3.0 * plain.edge_rows(5, 2, form.edges), RNG.standard_normal((5, 2))
    w = (w - w.mean(axis=0)).reshape(-1)
    np.testing.assert_allclose(rows.T @ form.routed(w), w, atol=1e-12)
    tau = RNG.uniform(0.5, 2.0, 7)
    incidence = 3.0 * plain.edge_rows(5, 1, form.edges)
    np.testing.assert_allclose(form.laplacian(tau).toarray(), incidence.T @ (tau[:, None] * incidence), rtol=1e-12)
    weights = RNG.uniform(0.5, 2.0, 14)
    np.testing.assert_allclose(form.column_squares(weights), weights @ rows**2, rtol=1e-12)
    np.testing.assert_allclose(form.row_norms(), np.linalg.norm(rows, axis=1), rtol=1e-12)
    made = form.weighted(tau)
    inverse = np.linalg.pinv(incidence.T @ (tau[:, None] * incidence))
    np.testing.assert_allclose(form.traces(made), np.einsum("ij,jk,ik->i", incidence, inverse, incidence), rtol=1e-9)
    sketch = form.sketched_traces(made, 4000, np.random.default_rng(1))
    np.testing.assert_allclose(sketch, form.traces(made), rtol=0.15)
    diagonal = np.repeat(RNG.uniform(0.5, 2.0, 5), 2)
    wanted = (incidence**2) @ (1.0 / diagonal[::2])
    np.testing.assert_allclose(form.traces(Diagonal(diagonal)), wanted, rtol=1e-12)


def test_the_hessian_of_a_graph_has_its_mean_diagonal_on_translations():
    form = GraphForm(5, 2, EDGES).scaled(2.0)
    x = RNG.standard_normal(10)
    found = form.dense_hessian(x, form.image(x))
    rows = 2.0 * plain.edge_rows(5, 2, form.edges)
    hessian = np.stack([plain.hessian_product(rows, 2, x, unit) for unit in np.eye(10)], axis=1)
    translation = np.kron(np.ones((5, 5)) / 5.0, np.eye(2))
    np.testing.assert_allclose(found, hessian + np.trace(hessian) / 10.0 * translation, rtol=1e-10, atol=1e-10)


def test_eigenvalues_are_moved_to_the_safe_side_by_a_margin_of_their_own():
    rows, diagonal = RNG.standard_normal((20, 3)), np.array([1.0, 2.0, 0.5])
    form, metric = StackedForm(rows), Diagonal(np.array([1.0, 2.0, 0.5]))
    weights, root = RNG.uniform(0.5, 2.0, 20), 1.0 / np.sqrt(diagonal)
    wanted = np.linalg.eigvalsh(root[:, None] * (rows.T @ (weights[:, None] * rows)) * root)[-1]
    assert (leverage.largest(form, weights, metric) / wanted - 1.0) / 1e-10 == pytest.approx(1.0, abs=0.01)
    least = np.linalg.eigvalsh(root[:, None] * (rows.T @ rows / math.sqrt(20)) * root)[0]
    base = form.weighted(form.uniform_weights())
    lowered = 1.0 - leverage.smallest(form, metric, base) / least
    assert lowered == pytest.approx(1e-10 + base.rounding, rel=0.01)


def test_sparse_rows_go_through_a_factor_by_its_inverse_where_a_twentieth_of_their_entries_is_there():
    for entries, inverted in ((39, True), (40, False)):  # of 800
        rows = np.zeros(800)
        rows[RNG.permutation(800)[:entries]] = 1.0
        form = StackedForm(sp.csr_matrix(rows.reshape(40, 20)))
        metric, shapes = Diagonal(np.linspace(1.0, 2.0, 20)), []
        half_solve = metric.half_solve
        metric.half_solve = lambda v, f=half_solve, seen=shapes, **options: seen.append(v.shape) or f(v, **options)
        found = np.concatenate([block for _, block in form.whitened_blocks(metric)])
        np.testing.assert_allclose(found, rows.reshape(40, 20) / np.sqrt(np.linspace(1.0, 2.0, 20)), rtol=1e-12)
        assert shapes == [(20, 20) if inverted else (20, 40)]


def test_the_dual_bound_of_the_gram_form_is_that_of_its_singular_values():
    form, x, r = GramForm(3, 2).scaled(2.0), RNG.standard_normal(6), 0.1 * RNG.standard_normal(6)
    gradient = form.gradient(x)
    found, dual = form.dual_bound(x, gradient, r, None, 0)
    # In the rows as they are stored c is half as large.
    np.testing.assert_allclose(dual, (gradient + r) / 2.0)
    sizes = np.linalg.svd(((gradient + r) / 2.0).reshape(3, 2), compute_uv=False)
    assert found == pytest.approx(-3.0 * ((sizes / 4.0) ** (4.0 / 3.0)).sum(), rel=1e-12)
    assert form.dual_bound(x, gradient, 0.0 * r, None, 0)[0] == pytest.approx(-3.0 * form.value(x), rel=1e-12)
    assert form.bounds(Diagonal(np.ones(6))) is None
    found = form.bounds(Identity(6))
    assert (found.alpha, found.beta) == (pytest.approx(4.0 / math.sqrt(2.0)), 4.0)


# What others are given ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(6))
def test_what_peers_are_given_has_the_derivatives_of_the_form(number):
    form = [*misfit_forms(), GramForm(3, 2)][number]
    x, v = np.random.default_rng(number).standard_normal((2, form.dim))
    given, before = form.plain(), form.passes
    s = given.image(x)
    q = given.squares(s)
    value, gradient, second, hessian = (
        given.value(s, q),
        given.gradient(s, q),
        given.hessian_product(s, q, v),
        given.hessian(s, q),
    )
    given.read(3)
    assert form.passes - before == 1 + 1 + 2 + 1 + 3
    assert value == pytest.approx(form.value(x))
    np.testing.assert_allclose(gradient, form.gradient(x), rtol=1e-9, atol=1e-9)
    for found in (second, hessian @ v):
        np.testing.assert_allclose(found, form.hessian_product(x, v), rtol=1e-9, atol=1e-9)


def test_forms_without_a_factor_have_no_metric_of_one(monkeypatch):
    assert GraphForm(5, 2, EDGES).proving() is None
    form = OperatorForm(RowProducts(RNG.standard_normal((30, 6))))
    assert form.proving() is not None
    monkeypatch.setattr("quartbench.forms.terms.PRODUCT_DIMENSION", 5)
    assert form.fresh().proving() is None
    assert not form.factorable
    assert form.correcting() is None


def test_rows_from_1e_15_to_1e15_are_moderate():
    for size, stays in ((1.1e-15, True), (0.9e-15, False), (0.9e15, True), (1.1e15, False)):
        assert (StackedForm(np.array([[size, 0.0], [0.0, size]])).moderate().scale == 1.0) == stays


def test_a_factor_of_the_rows_themselves_gives_the_same_bounds():
    rows, tau = RNG.standard_normal((20, 3)), RNG.uniform(0.5, 2.0, 20)
    form = StackedForm(rows).scaled(2.0)
    made = form.weighted(tau, accuracy=0.0)
    assert made.factor == "qr"
    B, weights = 4.0 * rows.T @ (tau[:, None] * rows), RNG.uniform(0.5, 2.0, 20)
    wanted = np.linalg.eigvals(np.linalg.solve(B, 4.0 * rows.T @ (weights[:, None] * rows))).real.max()
    assert (leverage.largest(form, weights, made) / wanted - 1.0) / 1e-10 == pytest.approx(1.0, abs=0.01)
    # β is raised by what rounding may have moved it.
    before = leverage.weighted_bounds(form, made).beta / (1.0 + made.rounding)
    made.rounding = 0.25
    assert leverage.weighted_bounds(form, made).beta == pytest.approx(1.25 * before, rel=1e-12)


def test_a_sketch_of_complex_rows_is_right_on_average():
    form = ComplexForm(RNG.standard_normal((12, 3)) + 1j * RNG.standard_normal((12, 3))).scaled(2.0)
    made = form.weighted(RNG.uniform(0.5, 2.0, 12))
    found = form.sketched_traces(made, 8000, np.random.default_rng(1))
    np.testing.assert_allclose(found, form.traces(made), rtol=0.06)


def test_rows_are_rounded_at_their_scale():
    rows = RNG.standard_normal((6, 3))
    for scale in (1.0, 2.5):
        found = StackedForm(rows, rank=2).scaled(scale).rounded()
        np.testing.assert_array_equal(found.rows, (scale * rows).astype(np.float32))
        assert found.scale == 1.0
        with pytest.raises(ValueError, match="found DenseForm with float32 rows"):
            found.rounded()


def test_the_rows_of_some_terms_are_theirs():
    rows, picked = RNG.standard_normal((8, 3)), np.array([1, 3])
    for form in (StackedForm(rows, rank=2), StackedForm(sp.csr_matrix(rows), rank=2)):
        found = form.term_rows(picked)
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, rows[[2, 3, 6, 7]])


def test_an_operator_needs_as_many_rows_as_unknowns():
    OperatorForm(RowProducts(RNG.standard_normal((4, 4)))).require_definite()
    with pytest.raises(ValueError, match="its rank is at most 3, but n = 4"):
        OperatorForm(RowProducts(RNG.standard_normal((3, 4)))).require_definite()
