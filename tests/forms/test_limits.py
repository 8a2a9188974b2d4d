"""On which side of a limit is what? Sizes that are refused, work that is shared, rows that are kept, orders looked for.

A limit is tried just below and just above, and a message has to name what is wrong where the rest is right.
"""

import itertools
from contextlib import nullcontext
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from quartbench.cones import Orthant
from quartbench.errors import ProblemError
from quartbench.forms import (
    FORMS,
    ComplexForm,
    DenseForm,
    DiffractionForm,
    GramForm,
    GraphForm,
    OperatorForm,
    StackedForm,
    TermForm,
    blocks,
    coarse,
    dense,
    diffraction,
    form_of,
    graph,
    proof,
    reading,
    sampling,
    terms,
)
from quartbench.forms import complex as complex_
from quartbench.forms.budget import Budget, SpentError
from quartbench.forms.sampling import Proving
from quartbench.kernels import jit
from quartbench.metrics import Cholesky
from tests.forms.random_forms import RowProducts

EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (0, 2), (1, 4)])


def rows_of(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# What is given --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [StackedForm, ComplexForm, OperatorForm])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_rows_of_either_size_nought_are_empty(make, shape):
    with pytest.raises(ProblemError, match=r"must not be empty, found shape \(\d, \d\)$"):
        make(np.ones(shape, dtype=complex if make is ComplexForm else float))


@pytest.mark.parametrize(("size", "allowed"), [(1.5e-151, True), (0.7e-151, False), (0.7e151, True), (1.5e151, False)])
def test_the_largest_entry_is_between_1e_151_and_1e151(size, allowed):
    for rows in (size * np.eye(2), sp.csr_matrix(size * np.eye(2))):
        with nullcontext() if allowed else pytest.raises(ProblemError, match="rows must have a largest entry between"):
            assert StackedForm(rows).magnitude == size


@pytest.mark.parametrize(
    ("count", "rank", "allowed"), [(200, 1, True), (201, 1, False), (400, 2, True), (402, 2, False)]
)
def test_sparse_rows_have_an_entry_in_every_hundred_terms(count, rank, allowed):
    rows = sp.csr_matrix(([1.0, 1.0], ([0, 1], [0, 1])), shape=(count, 2))
    with nullcontext() if allowed else pytest.raises(ProblemError, match=f"almost all empty, found {count} of them"):
        assert StackedForm(rows, rank).terms == count // rank


def test_arrays_of_a_sparse_matrix_are_each_looked_at():
    for array in ("indices", "indptr"):
        matrix = sp.csr_matrix(np.eye(5))
        setattr(matrix, array, getattr(matrix, array).astype(float))
        with pytest.raises(ProblemError, match="rows must have whole indices"):
            StackedForm(matrix)


def test_a_survey_needs_no_list_of_zero_terms():
    assert reading.survey([(0, np.array([0.0, 2.0])), (2, np.array([1.0, 0.0]))], 1) == 2.0
    zeros = []
    assert reading.survey([(0, np.array([0.0, 0.0])), (2, np.array([3.0, 0.0, 0.0, 0.0]))], 2, zeros) == 3.0
    assert zeros == [0, 2]


def test_a_graph_may_claim_any_number_of_points():
    with pytest.raises(ProblemError, match=f"found {10**15 - 1} components"):
        GraphForm(10**15, 1, [(0, 7)])
    with pytest.raises(ProblemError, match="found 4 components"):
        GraphForm(6, 1, [(0, 1), (2, 3)])
    with pytest.raises(ProblemError, match="found 2 components"):
        GraphForm(6, 1, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    assert GraphForm(3, 1, [(0, 1), (1, 2)]).terms == 2


@pytest.mark.parametrize(("weights", "found"), [([1.0], r"\(1,\)"), ([], r"\(0,\)"), ([1.0, 0.0], r"\(2,\) with 0")])
def test_weights_are_named_where_they_are_not_positive(weights, found):
    with pytest.raises(ProblemError, match=rf"weights must be 3 positive numbers, found shape {found}$"):
        GraphForm(3, 1, [(0, 1), (1, 2), (0, 2)], weights)


def test_masks_have_patterns_and_light_and_no_size_of_their_own_where_they_are_dark():
    for masks in (np.ones(4), np.ones((2, 0)), np.ones((0, 2))):
        with pytest.raises(ProblemError, match=r"masks must have shape \(patterns, …\)"):
            DiffractionForm(masks)
    form = DiffractionForm(np.zeros((2, 3)))
    assert form.magnitude == 1.0
    with pytest.raises(ProblemError, match=r"all masks are 0 at \(0,\)"):
        form.require_definite()


@pytest.mark.parametrize("given", ["rows", b"rows", None, len])
def test_what_is_no_form_and_has_no_rows_is_said(given):
    with pytest.raises(ProblemError, match=f"form must be a Form .* or rows, found {type(given).__name__}"):
        form_of(given)


def test_rows_find_their_form():
    rows = rows_of(6, 2)
    assert form_of(rows, 3).rank == 3
    assert form_of(sp.csr_matrix(rows)).kind == "stacked"
    assert isinstance(form_of(rows + 1j), ComplexForm)
    with pytest.raises(ProblemError, match="complex rows have one row per term, found rank=2"):
        form_of(rows + 1j, 2)
    products = SimpleNamespace(matvec=lambda x: rows @ x)
    with pytest.raises(ProblemError, match="OperatorForm takes rows by their products"):
        form_of(products)
    with pytest.raises(ProblemError, match="has its own, found rank=2"):
        form_of(StackedForm(rows), 2)


@pytest.mark.parametrize("bad", ["image", "adjoint"])
def test_both_products_of_an_operator_are_finite(bad):
    rows = rows_of(4, 2)
    wrong = np.full((4, 2), np.nan)
    image, adjoint = (wrong if bad == which else rows for which in ("image", "adjoint"))
    operator = LinearOperator((4, 2), matvec=lambda x: image @ x, rmatvec=lambda w: adjoint.T @ w, dtype=float)
    with pytest.raises(ProblemError, match="operator must give finite products"):
        OperatorForm(operator)


@pytest.mark.parametrize("bad", ["image", "adjoint"])
def test_both_products_of_an_operator_have_their_length(bad):
    more = {"image": 0, "adjoint": 0, bad: 1}
    operator = SimpleNamespace(
        shape=(4, 2),
        dtype=np.dtype(float),
        matvec=lambda x: np.ones(4 + more["image"]),
        rmatvec=lambda w: np.ones(2 + more["adjoint"]),
    )
    form = OperatorForm(RowProducts(rows_of(4, 2)))
    form.operator = operator
    with pytest.raises(ProblemError, match=f"products of length {4 if bad == 'image' else 2}, found"):
        form.image(np.ones(2)) if bad == "image" else form.adjoint(np.ones(4))


def test_an_operator_counts_the_rows_of_all_its_terms():
    OperatorForm(RowProducts(rows_of(4, 4)), rank=2).require_definite()
    with pytest.raises(ProblemError, match="its rank is at most 4, but n = 5"):
        OperatorForm(RowProducts(rows_of(4, 5)), rank=2).require_definite()


def test_only_forms_are_registered_as_such():
    assert FORMS._accept(GramForm, "here") is GramForm
    for found in (dict, GramForm(2, 1), "gram"):
        with pytest.raises(ProblemError, match="here must be a subclass of quartbench"):
            FORMS._accept(found, "here")


def test_images_in_single_precision_are_taken_in_double():
    form = StackedForm(rows_of(6, 2), 2)
    image = form.image(np.ones(2)).astype(np.float32)
    found = form.gradient_weights(image)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, form.gradient_weights(image.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_points_of_any_type_and_shape_are_flat_in_double_precision(dtype):
    form, point = GramForm(3, 2), (np.arange(6) % 2).astype(dtype)
    for given in (
        point,
        point.reshape(3, 2),
        point.reshape(3, 2).astype(float),
        np.asfortranarray(point.reshape(3, 2)),
    ):
        found = form.flat(given)
        assert (found.dtype, found.shape) == (np.float64, (6,))
        np.testing.assert_array_equal(found, point)
    point = point.astype(float)
    assert form.flat(point) is point
    assert form.flat(np.repeat(point, 2)[::2]).flags.carray
    point.flags.writeable = False
    assert form.flat(point).flags.writeable


@pytest.mark.parametrize(("share", "allowed"), [(0.7e-9, True), (1.5e-9, False)])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_cone_has_translations_in_it_from_a_billionth_on(share, allowed, side):
    cone = SimpleNamespace(euclidean=lambda v: share * v * (np.sign(v.sum()) == side))
    with nullcontext() if allowed else pytest.raises(ProblemError, match="vanishes on translations"):
        GraphForm(5, 2, EDGES).require_cone(cone)


def test_the_orthant_has_translations_in_it():
    with pytest.raises(ProblemError, match="vanishes on translations"):
        GraphForm(5, 2, EDGES).require_cone(Orthant())


# Passes and seconds ---------------------------------------------------------------------------------------------------


def test_a_budget_ends_at_its_passes_or_seconds_but_not_before_the_first_pass():
    now, seen = [100.0], []
    budget = Budget(3, 2.0, lambda: now[0], seen.append)
    now[0] = 101.5
    assert budget.elapsed == 1.5
    budget[0] = 1
    budget[0] = 2
    budget[0] = 3
    with pytest.raises(SpentError, match="max_passes"):
        budget[0] = 4
    now[0] = 102.0
    budget[0] = 1
    with pytest.raises(SpentError, match="time_limit"):
        budget[0] = 2
    assert (budget[0], seen) == (1, [1, 2, 3, 1])


def test_rows_held_here_cost_their_share_of_a_pass():
    assert StackedForm(rows_of(60, 3), rank=3).driver_cost(15) == 0.25


def test_a_factor_of_products_with_terms_of_several_rows_counts_them_all():
    form = OperatorForm(RowProducts(rows_of(30, 6)), rank=3)  # ten terms
    assert form.factor_cost() == pytest.approx(6 + 6**3 / (3 * 20 * 30 * 6))
    assert form.solve_cost() == pytest.approx(6 * 6 / (30 * 6))
    assert form.gram_work() == pytest.approx(30 * 6 * 6 / 2 + 6**3 / 3)


def test_a_bound_that_is_not_refined_reads_the_rows_twice():
    form = StackedForm(rows_of(20, 3))
    x = np.array([1.0, -1.0, 0.5])
    image, gradient, metric = form.image(x), form.gradient(x), form.weighted(form.uniform_weights())
    for residual, refine in ((0.01 * gradient[::-1], 0), (0.0 * gradient, 5)):
        before = form.passes
        form.dual_bound(image, gradient, residual, metric, refine)
        assert form.passes - before == 2  # an image and an adjoint


# What machine code is called ------------------------------------------------------------------------------------------


def test_a_signature_says_whether_there_is_a_scale_and_several_threads(monkeypatch):
    forms = StackedForm(rows_of(4, 2)), StackedForm(sp.csr_matrix(rows_of(4, 2))), ComplexForm(rows_of(4, 2) + 1j)
    for form in forms:
        assert [form.scaled(scale).signature()[1] for scale in (1.0, 2.0, 0.5)] == [True, False, False]
        place = 3 if type(form).__name__ != "ComplexForm" else -1
        for parts in (1, 2):
            monkeypatch.setattr(type(form), "_parts", lambda self, parts=parts: parts)
            assert form.signature()[place] is (parts > 1)
    form = GraphForm(5, 2, EDGES)
    for parts, gatherers in itertools.product((1, 2), (1, 3)):
        monkeypatch.setattr(form, "_parts", lambda parts=parts: parts, raising=False)
        monkeypatch.setattr(form, "_gatherers", lambda gatherers=gatherers: gatherers, raising=False)
        assert form.signature()[-2:] == (parts > 1, gatherers > 1)


def test_many_columns_at_once_are_for_rows_in_double_precision():
    rows = rows_of(4, 2)
    assert StackedForm(rows).in_columns
    assert not StackedForm(rows.astype(np.float32)).in_columns
    assert not StackedForm(sp.csr_matrix(rows)).in_columns


def test_many_columns_at_once_are_those_of_the_scaled_rows():
    rows, x, w = rows_of(6, 2), rows_of(2, 3, seed=1), rows_of(6, 4, seed=2)
    for form in (StackedForm(rows), OperatorForm(RowProducts(rows))):
        scaled, before = form.scaled(4.0), form.passes
        np.testing.assert_allclose(scaled.image_columns(x), 4.0 * rows @ x, rtol=1e-12)
        np.testing.assert_allclose(scaled.adjoint_columns(w), 4.0 * rows.T @ w, rtol=1e-12)
        assert (form.passes, scaled.passes) == (before, 3 + 4)


def test_a_scale_of_two_is_one():
    rows = rows_of(6, 2)
    x, v = rows_of(2, 2, seed=1)
    for form in (StackedForm(rows, 2), GramForm(2, 1)):
        twice = form.scaled(2.0)
        np.testing.assert_allclose(twice.evaluate_flat(x)[1], 16.0 * form.gradient(x), rtol=1e-12)
        product = twice.hessian_product_flat(x, twice.image(x), v)
        np.testing.assert_allclose(product, 16.0 * form.hessian_product(x, v), rtol=1e-12)
    np.testing.assert_array_equal(StackedForm(rows).scaled(2.0).rounded().rows, (2.0 * rows).astype(np.float32))


def test_flows_are_gathered_by_threads_where_there_are_more_than_five(monkeypatch):
    form, kernels = GraphForm(8, 2, [(i, i + 1) for i in range(7)]), []
    wanted = form.adjoint(np.arange(14.0))

    def counted(kernel, work, *arguments):
        kernels.append(kernel)
        return kernel(*arguments)

    monkeypatch.setattr(graph, "together", counted)
    for parts, shared in ((5, 0), (6, 1)):
        kernels.clear()
        monkeypatch.setattr(form, "_parts", lambda parts=parts: parts, raising=False)
        np.testing.assert_allclose(form.adjoint(np.arange(14.0)), wanted)
        assert len(kernels) == shared


def test_transforms_have_all_threads_from_so_many_entries_on(monkeypatch):
    numba.set_num_threads(2)
    form = DiffractionForm(np.ones((2, 4)))
    for entries, wanted in ((8, 2), (9, 1)):
        monkeypatch.setattr(diffraction, "PARALLEL_ENTRIES", entries)
        assert form._workers() == wanted


def test_blas_is_told_of_the_multiplications_that_it_makes(monkeypatch):
    told = []
    for module in (coarse, complex_, dense, proof, sampling):
        monkeypatch.setattr(module, "blas_threads", lambda work: told.append(work) or nullcontext())
    rows, x = np.sign(rows_of(400, 4)), np.ones(4)
    form, signal = StackedForm(rows, 2), ComplexForm(rows[:, :2] + 1j * rows[:, 2:])
    for operation, count in (
        (lambda: form.dense_hessian(x, form.image(x)), 400 * 4 * 4 / 2),  # half of a symmetric matrix
        (lambda: signal.dense_hessian(x, signal.image(x)), 2 * 400 * 4 * 4 / 2),  # of two real rows each
        (lambda: form.sampled(-np.inf), 2 * (40 + 1) * 4 * 4 / 2),
        (lambda: proof.factor_of_rows(rows), 400 * 4 * 4),
        (lambda: coarse.coarse(rows, 1, 400), 400 * 4 * 4),
    ):
        told.clear()
        operation()
        assert told == [count]


# Blocks of rows -------------------------------------------------------------------------------------------------------


def some_forms():
    rows = rows_of(21, 3)
    return [
        StackedForm(rows, 3),
        StackedForm(sp.csr_matrix(rows), 3),
        OperatorForm(RowProducts(rows), 3),
        ComplexForm(rows + 1j * rows_of(21, 3, seed=1)),
    ]


@pytest.mark.parametrize("number", range(4))
def test_blocks_of_rows_do_not_change_leverage_nor_matrices(number, monkeypatch):
    form = some_forms()[number].scaled(2.0)
    tau = np.linspace(0.5, 2.0, form.terms)
    metric = form.weighted(tau)

    def found(form):
        answers = form.traces(metric), form.spectral_norms(metric), form.weighted_gram(tau)
        norms = form.weighted_gram(tau, single=True), form.row_norms(), form.gram_diagonal()
        sketch = form.sketched_traces(metric, 3, np.random.default_rng(0))
        return *answers, *norms, sketch, form.weighted(tau, accuracy=0.0).apply(np.ones(form.dim))

    at_once = found(form)
    # Two terms at a time, and one that is left over.
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2 * 3 * form.leverage_rank * form.row_dtype.itemsize)
    for one, many in zip(at_once, found(form.fresh()), strict=True):
        close = 1e-5 if one.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(many, one, rtol=close, atol=close)


def test_gram_matrices_are_summed_in_blocks_of_so_many_bytes(monkeypatch):
    rows, weights, sizes = rows_of(100, 3), np.linspace(0.5, 2.0, 100), []
    scale_rows = blocks.scale_rows
    monkeypatch.setattr(blocks, "scale_rows", lambda part, w, out: sizes.append(len(part)) or scale_rows(part, w, out))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 7 * 3 * 8)
    found = blocks.mirrored(blocks.gram_of_rows(rows, weights, False))
    np.testing.assert_allclose(found, rows.T @ (weights[:, None] ** 2 * rows), rtol=1e-12)
    assert sizes == [7] * 14 + [2]


def test_rows_are_scaled_by_several_threads_where_they_are_many(monkeypatch):
    numba.set_num_threads(2)
    rows, weights, shared, together = rows_of(10, 3), np.linspace(0.5, 2.0, 10), [], jit.together
    monkeypatch.setattr(blocks, "together", lambda *given: shared.append(given) or together(*given))
    for work, wanted in ((31, 0), (30, 1)):
        monkeypatch.setattr(jit, "PARALLEL_WORK", work)
        shared.clear()
        out = np.empty((10, 3))
        blocks.scale_rows(rows, weights, out)
        np.testing.assert_allclose(out, weights[:, None] * rows, rtol=1e-15)
        assert len(shared) == wanted


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_terms_are_mixed_by_the_root_of_their_weights(rank):
    rows, s = rows_of(4 * rank, 3), rows_of(4, rank, seed=1)
    s[2] = 0.0
    found = blocks.mixed(rows.copy(), s.copy(), 1.5)
    wanted = np.zeros((3, 3))
    for term, one in zip(rows.reshape(4, rank, 3), s, strict=True):
        wanted += 1.5**2 * term.T @ (4.0 * (one @ one) * np.eye(rank) + 8.0 * np.outer(one, one)) @ term
    np.testing.assert_allclose(found.T @ found, wanted, rtol=1e-12, atol=1e-12)
    assert not found.reshape(4, rank, 3)[2].any()


def test_columns_are_looked_at_in_blocks_of_whole_rows(monkeypatch):
    monkeypatch.setattr(dense, "SURVEY_BYTES", 64)
    rows = np.ones((60, 3))
    rows[:-1, 2] = 0.0
    assert StackedForm(rows).used_columns().tolist() == [True, True, True]
    rows[-1, 2] = 0.0
    assert StackedForm(rows).used_columns().tolist() == [True, True, False]


def test_rows_of_products_are_kept_where_they_take_so_many_bytes(monkeypatch):
    rows = rows_of(12, 3)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5 * 2 * 3 * 8)  # five terms
    for allowed, first, again in ((8 * 12 * 3, 3 + 1, 1), (8 * 12 * 3 - 1, 12, 12)):
        monkeypatch.setattr(terms, "KEPT_BYTES", allowed)
        form = OperatorForm(RowProducts(rows), 2)
        for passes in (first, again):
            before = form.passes
            np.testing.assert_allclose(form.real_rows(), rows, rtol=1e-15)
            assert form.passes - before == passes
        assert (form._written() is None) == (allowed < 8 * 12 * 3)
    monkeypatch.setattr(terms, "KEPT_BYTES", 1 << 20)
    assert form._written().rank == 2
    monkeypatch.setattr(terms, "PRODUCT_DIMENSION", 2)
    assert form._written() is None


def test_terms_of_products_that_are_zero_are_found_in_every_block(monkeypatch):
    rows = rows_of(12, 3)
    rows[[2, 3, 5, 10, 11]] = 0.0
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2 * 2 * 3 * 8)
    assert OperatorForm(RowProducts(rows), 2).zero_terms().tolist() == [1, 5]


# What is chosen -------------------------------------------------------------------------------------------------------


def test_products_tell_their_magnitude_by_one_vector_of_signs():
    assert OperatorForm(RowProducts(7.0 * np.eye(4))).scaled(3.0).magnitude == pytest.approx(3.0 * 7.0 / 2.0)
    assert OperatorForm(RowProducts(np.zeros((4, 4)))).magnitude == 1.0


def test_the_rows_of_a_graph_are_of_size_one():
    form = GraphForm(5, 2, EDGES)
    assert form.scaled(3.0).magnitude == 3.0 * np.abs(form.real_rows()).max()


@pytest.mark.parametrize(("ratio", "uneven"), [(15.5, False), (16.5, True)])
def test_columns_are_uneven_where_one_is_sixteen_times_as_long(ratio, uneven):
    for size in (1e-3, 1.0, 1e3):
        assert StackedForm(size * np.diag([1.0, 3.0, ratio])).uneven_columns() == uneven


def test_kernels_are_found_of_rows_in_memory_with_few_unknowns(monkeypatch):
    form = StackedForm(rows_of(6, 3))
    assert form.reducible
    assert not GraphForm(5, 2, EDGES).reducible
    monkeypatch.setattr(DenseForm, "resident", False)
    assert not form.reducible
    assert not OperatorForm(RowProducts(rows_of(1001, 1001))).reducible


@pytest.mark.parametrize(("cost", "wanted"), [(29.0, Cholesky), (31.0, Proving)])
def test_dual_points_are_corrected_by_the_factor_of_the_proof_where_another_costs_thirty_passes(cost, wanted):
    form = StackedForm(rows_of(30, 3))
    form.factor_cost = lambda: cost
    assert isinstance(form.correcting(), wanted)


def test_complex_rows_are_not_corrected_by_the_factor_of_the_proof():
    form = ComplexForm(rows_of(30, 3) + 1j * rows_of(30, 3, seed=1))
    assert form.proof().factored
    assert form.proving() is None


def test_masks_that_are_changed_later_are_those_of_before():
    # Products took half of what was changed: a form whose gradient was not that of its values.
    masks, x = rows_of(4, 3) + 1j, rows_of(1, 6)[0]
    kept, form = DiffractionForm(masks.copy()), DiffractionForm(masks)
    masks *= 5.0
    np.testing.assert_array_equal(form.masks, kept.masks)
    np.testing.assert_array_equal(form.gradient(x), kept.gradient(x))


@pytest.mark.parametrize("form", [StackedForm(rows_of(8, 2)), DiffractionForm(rows_of(4, 2) + 1j)], ids=["rows", "FFT"])
@pytest.mark.parametrize(("rounding", "factor"), [(0.9e-6, "cholesky"), (1.1e-6, "qr")])
def test_rows_are_factored_by_qr_where_traces_would_lose_a_millionth(form, rounding, factor, monkeypatch):
    class Rounded(Cholesky):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.rounding = rounding

    monkeypatch.setattr(terms, "Cholesky", Rounded)
    assert form.weighted(np.linspace(1.0, 2.0, form.terms)).factor == factor


def test_single_precision_is_for_rows_of_moderate_size():
    form = StackedForm(rows_of(30, 3))
    for scale, precision in ((1.0, "single"), (1e-17, "double"), (1e17, "double")):
        assert form.scaled(scale).weighted(form.uniform_weights(), "single").precision == precision
    assert form.weighted(form.uniform_weights()).precision == "double"


def test_equal_weights_behind_a_mask_have_a_diagonal_metric():
    form = DiffractionForm(rows_of(2, 3) + 1j)
    assert form.weighted(np.repeat([0.5, 2.0], 3)).diagonal is not None
    assert form.weighted(np.linspace(0.5, 2.0, 6)).diagonal is None


def test_sparse_rows_are_proved_by_their_sparse_gram_matrix(monkeypatch):
    monkeypatch.setattr(TermForm, "_sharp", lambda *arguments: pytest.fail("rows were made dense"))
    assert StackedForm(sp.csr_matrix(rows_of(20, 3))).proof(sharp=True).terms == 12


# Graphs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("band", "fronts", "sensible", "wanted"),
    [
        (2.9e8, 1e7, True, "band"),  # not looked for
        (3.1e8, 1e7, True, "fronts"),
        (3.1e8, 1e7, False, "band"),
        (9e8, 2.9e8, True, "fronts"),
        (9e8, 3.1e8, True, "band"),  # a multiplication takes three times as long in fronts
    ],
)
def test_fronts_are_taken_where_a_band_is_wide_and_they_save_two_thirds(band, fronts, sensible, wanted, monkeypatch):
    form, looked = GraphForm(5, 2, EDGES), []
    form._kept["band"] = SimpleNamespace(work=band, name="band")
    form._kept["dissection"] = SimpleNamespace(sensible=sensible)
    monkeypatch.setattr(
        graph, "BlockFronts", lambda *given: looked.append(given) or SimpleNamespace(work=fronts, name="fronts")
    )
    assert form._ordered().name == wanted
    assert bool(looked) == (band > 3e8 and sensible)


def test_small_graphs_have_no_dissection(monkeypatch):
    form = GraphForm(5, 2, EDGES)
    monkeypatch.setattr(graph, "DENSE_VERTICES", 5)
    assert form.dissection() is None
    monkeypatch.setattr(graph, "DENSE_VERTICES", 4)
    assert form.dissection() is not None


def test_leverage_on_a_graph_needs_resistances_of_its_own_edges():
    form = GraphForm(5, 2, EDGES)
    other = GraphForm(5, 2, EDGES[:-1])
    for metric in (
        SimpleNamespace(diagonal=None, resistances=lambda: None, name="none"),
        other.weighted(other.uniform_weights()),
    ):
        with pytest.raises(ProblemError, match="leverage on a graph needs its Laplacian or a diagonal metric"):
            form.traces(metric)
    assert form.traces(form.weighted(form.uniform_weights())).size == 7


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 7)])
def test_a_sketch_of_a_graph_has_as_many_columns_as_asked_for(weights):
    form, widths = GraphForm(5, 2, EDGES, weights), []
    metric = form.weighted(np.linspace(1.0, 2.0, 7))
    solve = metric.solve_vertices
    metric.solve_vertices = lambda v, **options: widths.append(v.shape[1]) or solve(v, **options)
    form.sketched_traces(metric, 70, np.random.default_rng(0))
    assert widths == [32, 32, 6]
    found = form.sketched_traces(metric, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(found, form.traces(metric), rtol=0.08)


def test_a_form_by_its_products_alone_knows_its_noise():
    # The products that ρ(x) adds up are those of x and its gradient where nothing else is known.
    form, x = GramForm(3, 2).scaled(2.0), np.linspace(0.5, 3.0, 6)
    gradient = form.gradient(x)
    wanted = np.sqrt(sum((a * b) ** 2 for a, b in zip(gradient, x, strict=True)))
    assert form.rounding_noise(x, form.image(x), gradient, 0.0) == pytest.approx(wanted, rel=1e-12)
