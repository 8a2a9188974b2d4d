"""Do forms give ρ, its derivatives and its lines, whatever their storage, their input and the number of threads?"""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from quartbench.forms import (
    FORMS,
    ComplexForm,
    DiffractionForm,
    GramForm,
    GraphForm,
    StackedForm,
    WeightedGraphForm,
    blocks,
    graph,
    stacked,
)
from quartbench.forms import complex as complex_
from quartbench.kernels import jit
from tests.kernels import plain

from .random_forms import KINDS, WITH_TERMS, connected_edges, dense_rows, forms, make, pairs, point

RNG = np.random.default_rng(20)
ROWS = RNG.standard_normal((24, 5))
X, V = RNG.standard_normal((2, 5))


@pytest.fixture
def always_parallel(monkeypatch):
    """Let forms use parallel kernels however little work there is."""
    monkeypatch.setattr("quartbench.kernels.jit.PARALLEL_WORK", 0)
    monkeypatch.setattr(GraphForm, "_gatherers", lambda self, overhead=2.0: self._parts())


def large(kind):
    """Return a form of some thousand terms."""
    rng = np.random.default_rng(5)
    if kind == "graph":
        return GraphForm(6000, 3, connected_edges(rng, 6000, 3000))
    if kind == "complex":
        return ComplexForm(rng.standard_normal((1500, 11)) + 1j * rng.standard_normal((1500, 11)))
    rows = rng.standard_normal((4002, 15))
    if kind == "sparse":
        return StackedForm(sp.csr_matrix(rows * (rng.random(rows.shape) < 0.4)), 3)
    return StackedForm(rows.astype(np.float32) if kind == "float32" else rows, 3)


def answers(form, x, v):
    """Return everything that a form says of a point and a direction."""
    value, gradient, image = form.evaluate(x)
    return {
        "value": form.value(x),
        "value too": value,
        "gradient": form.gradient(x),
        "gradient too": gradient,
        "image": image,
        "image too": form.image(x),
        "product": form.hessian_product(x, v),
        "line": form.line(x, v),
        "adjoint": 0.0 if isinstance(form, GramForm) else form.adjoint(np.cos(image)),
        "column squares": 0.0 if isinstance(form, GramForm) else form.column_squares(np.cos(image) ** 2),
        "from images": form.gradient_from_image(image),
        "product from images": form.hessian_product_from_image(image, v),
        "value from images": form.value_from_image(image),
        "line from images": form.line_from_images(image, form.image(v)),
    }


# Against plain NumPy --------------------------------------------------------------------------------------------------


@given(st.data())
def test_forms_say_what_their_rows_say(data):
    form = data.draw(forms(WITH_TERMS))
    x, v = data.draw(pairs(form))
    rows, found = dense_rows(form), answers(form, x, v)
    close = lambda name, wanted: plain.close(found[name], wanted, 1e-10)  # noqa: E731
    for name in ("value", "value too", "value from images"):
        close(name, plain.value(rows, form.rank, x))
    for name in ("gradient", "gradient too", "from images"):
        close(name, plain.gradient(rows, form.rank, x))
    for name in ("image", "image too"):
        close(name, rows @ x)
    for name in ("product", "product from images"):
        close(name, plain.hessian_product(rows, form.rank, x, v))
    for name in ("line", "line from images"):
        close(name, plain.line(rows, form.rank, x, v))
    close("adjoint", rows.T @ np.cos(rows @ x))
    close("column squares", np.cos(rows @ x) ** 2 @ rows**2)
    assert rows.shape == (form.terms * form.rank, form.dim)


@pytest.mark.parametrize("kind", WITH_TERMS)
@pytest.mark.parametrize("extra", [0, 1, 7, 40])
def test_parallel_forms_say_what_their_rows_say(kind, extra, always_parallel, threads):
    form = make(kind, 3, 2, extra, "gaussian", extra)
    rng = np.random.default_rng(0)
    x, v = point(form, rng), point(form, rng)
    rows, found = dense_rows(form), answers(form, x, v)
    plain.close(found["value too"], plain.value(rows, form.rank, x))
    plain.close(found["gradient"], plain.gradient(rows, form.rank, x))
    plain.close(found["image too"], rows @ x)
    plain.close(found["product"], plain.hessian_product(rows, form.rank, x, v))
    plain.close(found["product from images"], plain.hessian_product(rows, form.rank, x, v))
    plain.close(found["adjoint"], rows.T @ np.cos(rows @ x))


@given(st.data())
def test_the_gram_form_is_the_square_of_the_gram_matrix(data):
    form = data.draw(forms(("gram",)))
    x, v = data.draw(pairs(form))
    big, step = form.native(x), form.native(v)
    found = answers(form, x, v)
    for name in ("value", "value too", "value from images"):
        plain.close(found[name], np.linalg.norm(big @ big.T) ** 2)
    for name in ("gradient", "gradient too", "from images"):
        plain.close(found[name], (4.0 * big @ big.T @ big).ravel())
    for name in ("product", "product from images"):
        wanted = 4.0 * (step @ big.T @ big + big @ step.T @ big + big @ big.T @ step)
        plain.close(found[name], wanted.ravel(), 1e-10)


@given(st.data())
def test_lines_are_quartics_through_the_values(data):
    form = data.draw(forms())
    x, d = data.draw(pairs(form))
    coefficients = form.line(x, d)
    for t in (-2.0, -0.5, 0.0, 1.0, 3.0):
        terms = coefficients * t ** np.arange(5)
        assert form.value(x + t * d) == pytest.approx(terms.sum(), rel=1e-10, abs=1e-11 * np.abs(terms).max())


# Derivatives ----------------------------------------------------------------------------------------------------------


@given(st.data())
def test_gradients_agree_with_differences_of_values(data):
    form = data.draw(forms())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, v = point(form, rng), point(form, rng)
    h = 1e-3
    # The error of the five-point rule is h⁴·f⁽⁵⁾, and the fifth derivative of a quartic is zero: only rounding is left.
    sides = [form.value(x + k * h * v) for k in (-2, -1, 1, 2)]
    slope = (sides[0] - 8.0 * sides[1] + 8.0 * sides[2] - sides[3]) / (12.0 * h)
    assert form.gradient(x) @ v == pytest.approx(slope, rel=1e-8, abs=1e-10 * max(sides) / h)


@given(st.data())
def test_hessian_products_agree_with_differences_of_gradients(data):
    form = data.draw(forms())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, v = point(form, rng), point(form, rng)
    h = 1e-3
    sides = [form.gradient(x + k * h * v) for k in (-2, -1, 1, 2)]
    slope = (sides[0] - 8.0 * sides[1] + 8.0 * sides[2] - sides[3]) / (12.0 * h)
    plain.close(form.hessian_product(x, v), slope, 1e-8)


@given(st.data())
def test_hessians_are_symmetric_and_positive(data):
    form = data.draw(forms())
    x, v = data.draw(pairs(form))
    w = point(form, np.random.default_rng(1))
    hv, hw = form.hessian_product(x, v), form.hessian_product(x, w)
    assert hv @ w == pytest.approx(hw @ v, rel=1e-9, abs=1e-11 * np.linalg.norm(hv) * np.linalg.norm(w))
    assert hv @ v >= 0.0


@given(st.data())
def test_eulers_identities(data):
    # ρ is homogeneous of degree 4: ⟨∇ρ(x),x⟩ = 4ρ(x) and ρ''(x)x = 3∇ρ(x).
    form = data.draw(forms())
    x, _ = data.draw(pairs(form))
    value, gradient = form.value_and_gradient(x)
    assert gradient @ x == pytest.approx(4.0 * value, rel=1e-11)
    plain.close(form.hessian_product(x, x), 3.0 * gradient, 1e-10)


# What points look like ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_points_keep_the_shape_they_were_given_in(kind):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    flat = point(form, np.random.default_rng(1))
    native = form.native(flat)
    assert (native.shape, native.dtype) == (form.shape, form.dtype)
    assert flat.size == form.dim
    by_flat, by_native = answers(form, flat, flat), answers(form, native, native)
    for name in ("gradient", "gradient too", "product", "product from images"):
        assert by_flat[name].shape == (form.dim,)
        assert by_native[name].shape == form.shape
        assert by_native[name].dtype == form.dtype
        plain.identical(form.flat(by_native[name]), by_flat[name])
    for name in ("value", "image", "line", "adjoint"):
        plain.identical(by_native[name], by_flat[name])
    mixed = form.hessian_product(native, flat)
    assert mixed.shape == (form.dim,)


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_any_order_stride_and_type_are_accepted_and_not_changed(kind):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    native = form.native(np.round(4.0 * point(form, np.random.default_rng(1))))
    wanted = form.gradient(native)
    strided = np.repeat(native, 2, axis=0)[::2]
    read_only = native.copy()
    read_only.flags.writeable = False
    narrow = np.complex64 if form.dtype.kind == "c" else np.float32
    variants = [np.asfortranarray(native), strided, read_only, native.astype(narrow), native.tolist()]
    variants.append(native.astype(native.dtype.newbyteorder()))
    if form.dtype.kind != "c":
        variants += [native.astype(np.int64), native.astype(np.int8)]
    for variant in variants:
        before = np.array(variant)
        plain.close(form.gradient(variant), wanted)
        assert (np.asarray(variant) == before).all()
    flat = form.flat(native)
    plain.close(form.gradient(np.repeat(flat, 3)[::3]), form.flat(wanted))


def test_real_points_of_a_complex_form_are_complex_points():
    form = make("complex", 4, 1, 6, "gaussian", 0)
    plain.close(form.gradient(np.arange(4.0)), form.gradient(np.arange(4.0) + 0j))


def test_the_gradient_of_a_complex_form_is_the_real_one():
    # d/dt ρ(x + t v) = Re⟨∇ρ(x),v⟩, and the first direction of steepest ascent is ∇ρ(x) itself.
    form = make("complex", 3, 1, 6, "gaussian", 0)
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    gradient = form.gradient(x)
    assert form.line(x, v)[1] == pytest.approx(np.vdot(gradient, v).real)
    assert np.vdot(x, gradient) == pytest.approx(4.0 * form.value(x))


# What rows look like --------------------------------------------------------------------------------------------------


def rows_variants():
    strided = np.repeat(np.repeat(ROWS, 2, axis=0), 2, axis=1)[::2, ::2]
    read_only = ROWS.copy()
    read_only.flags.writeable = False
    return {
        "C order": ROWS,
        "Fortran order": np.asfortranarray(ROWS),
        "strided": strided,
        "reversed": ROWS[::-1][::-1],
        "read-only": read_only,
        "transposed": np.ascontiguousarray(ROWS.T).T,
        "lists": ROWS.tolist(),
        "long double": ROWS.astype(np.longdouble),
        "other byte order": ROWS.astype(np.dtype(float).newbyteorder()),
        "csr_matrix": sp.csr_matrix(ROWS),
        "csr_array": sp.csr_array(ROWS),
        "csc": sp.csc_matrix(ROWS),
        "coo": sp.coo_matrix(ROWS),
        "bsr": sp.bsr_matrix(ROWS),
        "lil": sp.lil_matrix(ROWS),
    }


@pytest.mark.parametrize("variant", rows_variants())
@pytest.mark.parametrize("rank", [1, 3])
def test_rows_of_any_order_and_type_are_accepted_and_not_changed(variant, rank):
    given_rows = rows_variants()[variant]
    before = given_rows.copy() if hasattr(given_rows, "copy") else given_rows
    form = StackedForm(given_rows, rank)
    plain.close(form.value(X), plain.value(ROWS, rank, X))
    plain.close(form.gradient(X), plain.gradient(ROWS, rank, X))
    plain.close(form.hessian_product(X, V), plain.hessian_product(ROWS, rank, X, V))
    after, before = (m.toarray() if sp.issparse(m) else np.asarray(m) for m in (given_rows, before))
    assert (after == before).all()


def operations(kind, form, x, v):
    """Return the operations of a form that have a kernel for one thread and one for several."""
    image = form.image(x)
    exact = image.reshape(-1)
    some = {
        "image": lambda: form.image(x),
        "adjoint": lambda: form.adjoint(image),
        "evaluate": lambda: form.evaluate(x),
        "product": lambda: form.hessian_product(x, v),
        "product from an image": lambda: form.hessian_product_from_image(image, v),
        "known image": lambda: form.known_image(x),
        "bounded image": lambda: form.known_image(x, exact=False),
    }
    if kind != "graph":
        weights = np.ones(form.terms * form.rank)
        some |= {
            "known residual": lambda: form.known_residual(x, exact, 0.0 * exact),
            "bounded residual": lambda: form.known_residual(x, exact, 0.0 * exact, exact=False),
            "column squares": lambda: form.column_squares(weights),
        }
    if kind == "complex":
        squares = np.ones(form.terms)
        some |= {
            "misfit": lambda: form._evaluate_misfit(x, squares, squares),
            "misfit's product": lambda: form._misfit_product(image, squares, squares, v),
        }
    return some


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "complex", "graph"])
def test_little_work_is_never_shared_and_much_always_is(kind, monkeypatch):
    numba.set_num_threads(2)
    shared = []

    def counted(kernel, work, *arguments):
        shared.append(kernel)
        return jit.together(kernel, work, *arguments)

    for module in (blocks, complex_, graph, stacked):
        monkeypatch.setattr(module, "together", counted)
    form = large(kind)
    x, v = (point(form, RNG) for _ in range(2))
    for much in (False, True):
        monkeypatch.setattr(jit, "PARALLEL_WORK", 0 if much else 1 << 60)
        monkeypatch.setattr(GraphForm, "_gatherers", lambda self, overhead=2.0: self._parts())
        for name, operation in operations(kind, form, x, v).items():
            shared.clear()
            operation()
            assert bool(shared) == much, name


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool, np.float16])
def test_rows_of_small_numbers_are_exact(dtype):
    rows = (np.arange(24).reshape(8, 3) % 2 + 1 - (dtype is bool)).astype(dtype)
    rows[rows.sum(axis=1) == 0] = 1
    form = StackedForm(rows)
    assert form.value([1.0, 2.0, 3.0]) == ((rows.astype(float) @ [1.0, 2.0, 3.0]) ** 4).sum()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_need_no_copy_are_not_copied(dtype):
    dense, csr = ROWS.astype(dtype), sp.csr_matrix(ROWS.astype(dtype))
    assert np.shares_memory(StackedForm(dense).rows, dense)
    assert np.shares_memory(StackedForm(csr).rows.data, csr.data)
    signal = ROWS + 1j * ROWS
    assert np.shares_memory(ComplexForm(signal).rows, signal)


@pytest.mark.parametrize("kind", ["dense", "float32", "csr", "complex"])
def test_rows_are_handed_out_as_views_that_cannot_be_written_to(kind):
    given = {"dense": ROWS.copy(), "float32": ROWS.astype(np.float32), "csr": sp.csr_matrix(ROWS), "complex": 1j * ROWS}
    given = given[kind]
    form = ComplexForm(given) if kind == "complex" else StackedForm(given)
    parts = ("data", "indices", "indptr") if kind == "csr" else ("real",)
    value = form.value(np.ones(5))
    for part in parts:
        handed = getattr(form.rows, part)
        assert np.shares_memory(handed, getattr(given, part))
        with pytest.raises(ValueError, match="read-only"):
            handed[...] = 0
        with pytest.raises(ValueError, match="read-only"):
            getattr(form.twin().rows, part)[...] = 0
        assert getattr(given, part).flags.writeable  # the user's own array is as it was
    assert form.value(np.ones(5)) == value
    # A form of rows that were handed out runs the same kernels: to Numba, read-only arrays are another type.
    again = type(form)(form.rows)
    assert np.shares_memory(getattr(again.rows, parts[0]), getattr(given, parts[0]))
    assert again.signature() == form.signature()
    assert getattr(again._rows, parts[0]).flags.writeable


def test_rows_that_the_user_made_read_only_stay_so():
    part = ROWS[:20]
    part.flags.writeable = False
    own = ROWS.copy()
    own.flags.writeable = False
    for rows in (part, own):
        assert not StackedForm(rows)._rows.flags.writeable


def test_a_memory_mapped_file_is_read_in_place(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    for mode in ("r", "c", "r+"):
        mapped = np.load(tmp_path / "rows.npy", mmap_mode=mode)
        form = StackedForm(mapped)
        assert np.shares_memory(form.rows, mapped)
        plain.close(form.value(X), plain.value(ROWS, 1, X))
        plain.close(form.gradient(X), plain.gradient(ROWS, 1, X))
    assert (np.load(tmp_path / "rows.npy") == ROWS).all()


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_may_be_unsorted_repeated_and_empty_inside_a_term(index):
    # Row 1 is empty inside its rank-2 term; row 2 has its columns out of order and one of them twice.
    data, columns, starts = [1.0, 3.0, 1.0, 2.0, 5.0], [0, 2, 1, 2, 0], [0, 1, 1, 4, 5]
    parts = np.array(data), np.array(columns, dtype=index), np.array(starts, dtype=index)
    matrix = sp.csr_matrix((4, 3))
    matrix.data, matrix.indices, matrix.indptr = parts
    form = StackedForm(matrix, rank=2)
    dense = np.array([[1.0, 0, 0], [0, 0, 0], [0, 1, 5], [5, 0, 0]])
    x = np.array([1.0, -2.0, 0.5])
    plain.close(form.value(x), plain.value(dense, 2, x))
    plain.close(form.gradient(x), plain.gradient(dense, 2, x))
    assert (matrix.data == data).all()
    assert (matrix.indices == columns).all()


def test_edges_are_kept_once_each_in_order():
    form = GraphForm(4, 2, [(3, 2), (1, 0), (2, 1), (0, 3)])
    assert form.edges.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    assert form.edges.dtype == np.int64
    assert (form.heads < form.tails).all()
    assert (form.points, form.coordinates, form.dim, form.terms, form.rank) == (4, 2, 8, 4, 2)
    assert GraphForm(4, 2, np.array([(0, 1), (1, 2), (2, 3)], dtype=np.uint8)).terms == 3


@given(forms(("graph",)))
def test_a_graph_does_not_feel_translations(form):
    x = form.native(point(form, np.random.default_rng(0)))
    moved = x + np.arange(1.0, form.coordinates + 1)
    assert form.value(moved) == pytest.approx(form.value(x), rel=1e-11)
    plain.close(form.gradient(moved), form.gradient(x), 1e-11)
    gradient = form.gradient(x)
    assert np.abs(gradient.sum(axis=0)).max() <= 1e-13 * np.abs(gradient).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_the_unchecked_ways_of_solvers_agree_with_the_checked_ones(kind, factor):
    form = make(kind, 4, 2, 6, "gaussian", 0).scaled(factor)
    rng = np.random.default_rng(1)
    x, y, b = (point(form, rng) for _ in range(3))
    for found, wanted in zip(form.evaluate_flat(x), form.evaluate(x), strict=True):
        plain.identical(found, wanted)
    out = np.empty_like(form.image(y))
    for spare in (out, None):
        image, line = form.line_behind(form.image(x), form.image(y + 0.5 * (y - b)), form.image(b), 0.5, spare)
        plain.close(line, form.line(x, y - x), 1e-10)
        plain.close(image, form.image(y), 1e-11)
    plain.close(out, form.image(y), 1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_share_no_memory_with_questions(kind):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    x = point(form, np.random.default_rng(0))
    image = form.image(x)
    for answer in (image, form.gradient(x), form.evaluate(x)[2], form.hessian_product(x, x)):
        assert not np.shares_memory(answer, x)
    for answer in (form.gradient_from_image(image), form.hessian_product_from_image(image, x)):
        assert not np.shares_memory(answer, image)
    if kind in WITH_TERMS:
        answer = form.adjoint(image)
        assert not np.shares_memory(answer, image)


# Passes, threads and scale --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_passes_are_counted(kind):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    x = point(form, np.random.default_rng(0))
    image = form.image(x)
    fused = kind != "operator"  # products alone read the rows once for the image and once more for the adjoint
    for operation, passes in [
        (lambda: form.value(x), 1),
        (lambda: form.gradient(x), 1 if fused else 2),
        (lambda: form.value_and_gradient(x), 1 if fused else 2),
        (lambda: form.evaluate(x), 1 if fused else 2),
        (lambda: form.hessian_product(x, x), 1 if fused else 3),
        (lambda: form.image(x), 1),
        *([(lambda: form.adjoint(image), 1)] if kind in WITH_TERMS else []),
        (lambda: form.gradient_from_image(image), 1),
        (lambda: form.hessian_product_from_image(image, x), 1 if fused else 2),
        (lambda: form.line(x, x), 2),
        (lambda: form.value_from_image(image), 0),
        (lambda: form.line_from_images(image, image), 0),
    ]:
        before = form.passes
        operation()
        assert form.passes - before == passes


@pytest.mark.parametrize("kind", WITH_TERMS)
def test_one_thread_and_two_agree_and_repeat_bit_for_bit(kind, always_parallel):
    form = large(kind)
    rng = np.random.default_rng(9)
    x, v = point(form, rng), point(form, rng)
    found = {}
    for threads in (1, 2):
        numba.set_num_threads(threads)
        assert form._parts() == threads
        found[threads] = answers(form, x, v)
        for name, again in answers(form, x, v).items():
            plain.identical(again, found[threads][name])
    for name, one in found[1].items():
        plain.close(found[2][name], one, 1e-11)


@pytest.mark.parametrize("kind", WITH_TERMS)
def test_large_forms_say_what_their_images_say(kind, threads, always_parallel):
    form = large(kind)
    rng = np.random.default_rng(9)
    x, v = point(form, rng), point(form, rng)
    found = answers(form, x, v)
    s, t = found["image"].reshape(-1, form.rank), form.image(v).reshape(-1, form.rank)
    square, cross = (s**2).sum(1, keepdims=True), (s * t).sum(1, keepdims=True)
    plain.close(found["value too"], (square**2).sum())
    plain.close(found["gradient"], form.adjoint(4.0 * square * s), 1e-11)
    plain.close(found["product"], form.adjoint(4.0 * square * t + 8.0 * cross * s), 1e-11)
    # ⟨Mx,w⟩ = ⟨x,Mᵀw⟩ ties the image to its adjoint.
    weights = np.cos(found["image"])
    assert found["image"] @ weights == pytest.approx(x @ found["adjoint"], rel=1e-9)


def test_long_sparse_rows_are_shared_fairly(always_parallel):
    # Shares have evenly many stored entries, so that a few full rows among thin ones do not all go to one thread.
    rng = np.random.default_rng(0)
    rows = np.eye(3000, 20)
    rows[np.arange(3000), np.arange(3000) % 20] = 1.0
    rows[:700] = rng.standard_normal((700, 20))
    form = StackedForm(sp.csr_matrix(rows))
    bounds = form._term_shares(2)
    entries = np.add.reduceat(np.diff(form.rows.indptr), bounds[:-1])
    assert abs(entries[0] - entries[1]) <= 40
    x = rng.standard_normal(20)
    plain.close(form.gradient(x), plain.gradient(rows, 1, x))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [3.0, 1e60, 1e-60])
def test_a_scaled_form_is_the_form_of_scaled_rows(kind, factor):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    scaled = form.scaled(factor)
    rng = np.random.default_rng(2)
    x, v = point(form, rng), point(form, rng)
    before, after = answers(form, x, v), answers(scaled, x, v)
    for name in ("value", "gradient", "gradient too", "product", "line"):
        plain.close(np.asarray(after[name]) / factor**4, before[name])
    for name in ("image", "image too"):
        plain.close(after[name] / factor, before[name])
    for name in ("value from images", "from images", "product from images"):
        plain.close(np.asarray(after[name]) / factor**4, before[name])
    assert scaled.magnitude == factor * form.magnitude
    assert scaled.scaled(1.0 / factor).scale == pytest.approx(1.0)
    assert form.scale == 1.0
    scaled.value(x)
    assert scaled.passes > 0
    assert form.scaled(2.0).passes == 0


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "complex"])
def test_the_weighted_gram_matrix_is_the_sum_of_its_terms(kind, monkeypatch):
    monkeypatch.setattr("quartbench.forms.dense.SURVEY_BYTES", 200)  # many small blocks
    form = make(kind, 4, 2, 9, "gaussian", 0).scaled(3.0)
    tau = np.random.default_rng(1).uniform(0.1, 2.0, form.terms)
    if kind == "complex":
        wanted = sum(t * np.outer(row, row.conj()) for t, row in zip(tau, form.rows, strict=True))
    else:
        rows = dense_rows(form)
        wanted = rows.T @ (np.repeat(tau, form.rank)[:, None] * rows)
    found = form.weighted_gram(tau)
    plain.close(found, 9.0 * wanted)
    plain.close(found, found.conj().T, 1e-15)


def test_blocks_of_the_survey_find_the_largest_entry(monkeypatch):
    monkeypatch.setattr("quartbench.forms.dense.SURVEY_BYTES", 100)
    rows = ROWS.copy()
    rows[17, 3] = -50.0
    assert StackedForm(rows).magnitude == 50.0
    assert StackedForm(rows, rank=3).magnitude == 50.0
    assert StackedForm(sp.csr_matrix(rows)).magnitude == 50.0


def test_forms_are_known_by_name():
    known = {"stacked": StackedForm, "complex": ComplexForm, "graph": GraphForm, "gram": GramForm}
    known |= {"diffraction": DiffractionForm, "weighted-graph": WeightedGraphForm}
    assert known == dict(FORMS)
    assert repr(StackedForm(ROWS, 3)) == "StackedForm(m=8, n=5, r=3)"
