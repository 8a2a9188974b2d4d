"""Is bad input refused before any work, with an error that names the argument, what was found and what is needed?"""

import numpy as np
import pytest
import scipy.sparse as sp

from quartbench.cones import Centred, Free, Orthant, SecondOrder
from quartbench.errors import DeficientError, ProblemError, complex_array, real_array, unknown_name
from quartbench.forms import ComplexForm, GramForm, GraphForm, StackedForm
from quartbench.metrics import Cholesky, Diagonal, Identity, Laplacian
from quartbench.model import Problem, certify
from tests.forms.random_forms import KINDS, make, point
from tests.model import paper_bounds as bounds

EYE = StackedForm(np.eye(3))
SIGNAL = ComplexForm(np.eye(3))
PATH = GraphForm(4, 2, [(0, 1), (1, 2), (2, 3)])


def with_entry(value, at=(2, 1), dtype=float, shape=(6, 3)):
    rows = np.ones(shape, dtype=dtype)
    rows[at] = value
    return rows


def refused(make_it, message):
    with pytest.raises(ProblemError, match=message):
        make_it()


# Rows -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: StackedForm(np.ones(3)), r"rows must have 2 dimensions \(m·r, n\), found shape \(3,\)"),
        (lambda: StackedForm(np.ones((2, 3, 4))), r"rows must have 2 dimensions \(m·r, n\), found shape \(2, 3, 4\)"),
        (lambda: StackedForm(None), r"rows must have 2 dimensions"),
        (lambda: StackedForm([[1.0, 2.0], [3.0]]), "rows must be an array of numbers, found list"),
        (lambda: StackedForm([["a", "b"]]), "rows must be an array of numbers, found dtype <U1"),
        (
            lambda: StackedForm(np.array([[1, None]], dtype=object)),
            "rows must be an array of numbers, found dtype object",
        ),
        (lambda: StackedForm(np.ones((2, 2)) + 1j), "rows must be real, found complex values; use ComplexForm"),
        (
            lambda: StackedForm(sp.csr_matrix(np.ones((2, 2)) + 1j)),
            "rows must be real, found complex values; use Compl",
        ),
        (lambda: StackedForm(sp.coo_array(np.ones(3))), r"rows must have 2 dimensions \(m·r, n\), found shape \(3,\)"),
        (lambda: StackedForm(np.ones((0, 3))), r"rows must not be empty, found shape \(0, 3\)"),
        (lambda: StackedForm(np.ones((3, 0))), r"rows must not be empty, found shape \(3, 0\)"),
        (lambda: StackedForm(sp.csr_matrix((0, 3))), r"rows must not be empty, found shape \(0, 3\)"),
        (lambda: StackedForm(with_entry(np.nan)), "rows must be finite, found NaN or infinity in row 2"),
        (lambda: StackedForm(with_entry(-np.inf)), "rows must be finite, found NaN or infinity in row 2"),
        (lambda: StackedForm(with_entry(np.nan), rank=2), "rows must be finite, found NaN or infinity in row 2"),
        (lambda: StackedForm(with_entry(np.inf, dtype=np.float32)), "rows must be finite, found .* in row 2"),
        (lambda: StackedForm(sp.csr_matrix(with_entry(np.nan))), "rows must be finite, found .* in row 2"),
        (lambda: StackedForm(sp.csr_matrix(with_entry(np.inf)), 3), "rows must be finite, found .* in row 2"),
        (lambda: StackedForm(np.zeros((6, 3))), "rows must have a largest entry between .* found 0"),
        (
            lambda: StackedForm(sp.csr_matrix((600, 3))),
            "rows must not be almost all empty, found 600 .* 0 entries",
        ),
        (
            lambda: StackedForm(np.ma.masked_less([[1.0, 2.0], [3.0, 4.0]], 2.5)),
            r"masked .* at index \(0, 0\)",
        ),
        (
            lambda: ComplexForm(np.ma.masked_less([[1.0, 2.0], [3.0, 4.0]], 1.5)),
            r"masked .* at index \(0, 0\)",
        ),
        (lambda: StackedForm(np.ones((7, 3)), rank=2), "rows must come in blocks of rank=2, found 7 rows"),
        (lambda: StackedForm(np.ones((6, 3)), rank=0), "rank must be at least 1, found 0"),
        (lambda: StackedForm(np.ones((6, 3)), rank=-2), "rank must be at least 1, found -2"),
        (lambda: StackedForm(np.ones((6, 3)), rank=1.5), "rank must be a whole number, found 1.5"),
        (lambda: StackedForm(np.ones((6, 3)), rank=np.nan), "rank must be a whole number, found nan"),
        (lambda: StackedForm(np.ones((6, 3)), rank=np.inf), "rank must be a whole number, found inf"),
        (lambda: StackedForm(np.ones((6, 3)), rank=None), "rank must be a whole number, found None"),
        (lambda: StackedForm(np.ones((6, 3)), rank="two"), "rank must be a whole number, found 'two'"),
        (lambda: ComplexForm(np.ones(3)), r"rows must have 2 dimensions, found shape \(3,\)"),
        (lambda: ComplexForm(np.ones((0, 3))), r"rows must not be empty, found shape \(0, 3\)"),
        (
            lambda: ComplexForm(with_entry(np.nan + 1j, dtype=complex)),
            r"rows must be finite, found .* at index \(2, 1\)",
        ),
        (lambda: ComplexForm("abc"), "rows must be an array of numbers, found str"),
        (lambda: ComplexForm([[1.0, 2.0], [3.0]]), "rows must be an array of numbers, found list"),
        (lambda: GramForm(0, 2), "n must be at least 1, found 0"),
        (lambda: GramForm(2, -1), "r must be at least 1, found -1"),
        (lambda: GramForm(2.5, 1), "n must be a whole number, found 2.5"),
        (lambda: GramForm("a", 1), "n must be a whole number, found 'a'"),
    ],
)
def test_bad_rows_say_what_is_wrong(make_it, message):
    refused(make_it, message)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("wrong", [5, -1, 2**31 - 1])
def test_sparse_indices_that_lead_out_of_their_matrix_are_refused(kind, wrong):
    # SciPy checks them neither when a matrix is made nor when it is converted, and kernels read what they say.
    matrix = kind(np.eye(5))
    matrix.indices[2] = wrong
    refused(lambda: StackedForm(matrix), f"rows must have indices of 0 to 4, found {wrong} in the cs[rc] matrix")


def test_blocks_of_a_sparse_matrix_that_lead_out_of_it_are_refused():
    matrix = sp.bsr_matrix(np.eye(6), blocksize=(2, 3))
    matrix.indices[0] = 2
    refused(lambda: StackedForm(matrix), "rows must have indices of 0 to 1, found 2 in the bsr matrix")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda indptr: np.r_[0, 9, indptr[2:]],
        lambda indptr: np.r_[indptr[:2], -1, indptr[3:]],
        lambda indptr: np.r_[1, indptr[1:]],
        lambda indptr: np.r_[indptr[:-1], 6],
        lambda indptr: indptr[:-1],
    ],
)
def test_pointers_of_a_sparse_matrix_that_do_not_rise_to_its_entries_are_refused(spoil):
    matrix = sp.csr_matrix(np.eye(5))
    matrix.indptr = spoil(matrix.indptr).astype(np.int32)
    refused(lambda: StackedForm(matrix), "rows must have 6 pointers that rise from 0 to at most 5 stored entries")


def test_indices_that_are_no_whole_numbers_are_refused():
    matrix = sp.csr_matrix(np.eye(5))
    matrix.indices = matrix.indices.astype(float)
    refused(lambda: StackedForm(matrix), "rows must have whole indices, found float64")


@pytest.mark.parametrize("position", [0, 7, 499])
def test_a_bad_row_is_found_in_every_block(position, monkeypatch):
    monkeypatch.setattr("quartbench.forms.dense.SURVEY_BYTES", 300)
    rows = np.ones((500, 3))
    rows[position] = 0.0
    np.testing.assert_array_equal(StackedForm(rows).zero_terms(), [position])
    rows[position] = np.nan
    refused(lambda: StackedForm(rows), f"found NaN or infinity in row {position}$")


# Edges ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 4)], r"edges must join vertices 0 to 3, found \(1, 4\)"),
        ([(0, 1), (-1, 2)], r"edges must join vertices 0 to 3, found \(-1, 2\)"),
        ([(0, 1), (2, 2)], r"edges must join two vertices, found the self-loop \(2, 2\)"),
        ([(0, 1), (1, 2), (2, 3), (1, 0)], "edges must be listed once each, found 1 repeated"),
        ([(0, 1), (0, 1), (0, 1), (1, 2), (2, 3)], "edges must be listed once each, found 2 repeated"),
        ([(0, 1), (2, 3)], "the graph must be connected, found 2 components"),
        ([(0, 1)], "the graph must be connected, found 3 components"),
        ([(0.0, 1.0)], "edges must be integers, found dtype float64"),
        ([], r"edges must have shape \(m, 2\) with m ≥ 1, found shape \(0,\)"),
        ([0, 1], r"edges must have shape \(m, 2\) with m ≥ 1, found shape \(2,\)"),
        ([(0, 1, 2)], r"edges must have shape \(m, 2\) with m ≥ 1, found shape \(1, 3\)"),
        (np.empty((0, 2), dtype=int), r"edges must have shape \(m, 2\) with m ≥ 1, found shape \(0, 2\)"),
        ([(0, 1), (2,)], "edges must be an array of numbers, found list"),
        ("abc", r"edges must have shape \(m, 2\)"),
    ],
)
def test_bad_edges_say_what_is_wrong(edges, message):
    refused(lambda: GraphForm(4, 2, edges), message)


@pytest.mark.parametrize(
    ("points", "dim", "message"),
    [
        (1, 2, "points must be at least 2, found 1"),
        (2.5, 2, "points must be a whole number, found 2.5"),
        ("many", 2, "points must be a whole number, found 'many'"),
        (2, 0, "dim must be at least 1, found 0"),
        (2, 1.5, "dim must be a whole number, found 1.5"),
        (2, None, "dim must be a whole number, found None"),
    ],
)
def test_bad_sizes_of_graphs_say_what_is_wrong(points, dim, message):
    refused(lambda: GraphForm(points, dim, [(0, 1)]), message)


# Points and images ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ask", ["value", "gradient", "evaluate", "image", "value_and_gradient"])
def test_points_of_the_wrong_shape_are_refused(kind, ask):
    form = make(kind, 4, 2, 6, "gaussian", 0)
    for bad in (np.ones(form.dim + 1), np.ones((2, form.dim)), 3.0, np.ones((form.dim, 1, 1))):
        refused(
            lambda bad=bad: getattr(form, ask)(bad), rf"x must have shape .* or be flat of length {form.dim}, found"
        )


def test_directions_are_named_too():
    refused(lambda: EYE.hessian_product(np.ones(3), np.ones(4)), r"v must have shape \(3,\) .* found shape \(4,\)")
    refused(lambda: EYE.value(np.ones(3) + 1j), r"x must have shape \(3,\) \(float64\) .* \(complex128\)")
    refused(lambda: EYE.value(["a", "b", "c"]), r"x must .*found shape \(3,\) \(<U1\)")
    refused(lambda: EYE.value([[1.0, 2.0], [3.0]]), "x must be an array of numbers, found list")
    refused(lambda: PATH.value(np.ones((2, 4))), r"x must have shape \(4, 2\)")
    refused(lambda: SIGNAL.value(np.ones(4)), r"x must have shape \(3,\) \(complex128\) or be flat of length 6")


@pytest.mark.parametrize("kind", KINDS)
def test_images_of_the_wrong_length_are_refused(kind):
    # Kernels do not look at lengths: without this check they would read whatever lies behind the array.
    form = make(kind, 4, 2, 6, "gaussian", 0)
    x = point(form, np.random.default_rng(0))
    image = form.image(x)
    short = image[:-1]
    message = rf"must be {image.size} real numbers, found shape \({image.size - 1},\)"
    refused(lambda: form.value_from_image(short), "image " + message)
    refused(lambda: form.gradient_from_image(short), "image " + message)
    refused(lambda: form.hessian_product_from_image(short, x), "image " + message)
    refused(lambda: form.line_from_images(image, short), "direction " + message)
    refused(lambda: form.value_from_image(image + 1j), r"image must be .* real numbers, found .* \(complex128\)")
    if kind != "gram":
        refused(lambda: form.adjoint(short), "weights " + message)


# Problems -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: Problem("A.npy", np.ones(3)), r"form must be a Form \(StackedForm, GraphForm, …\) or rows, found str"),
        (lambda: Problem(None, np.ones(3)), "form must be a Form .* or rows, found NoneType"),
        (lambda: Problem(np.ones(3), np.ones(3)), r"rows must have 2 dimensions \(m·r, n\), found shape \(3,\)"),
        (
            lambda: Problem(EYE, np.ones(3), rank=3),
            r"rank is for rows, and StackedForm.* has its own, found rank=3",
        ),
        (lambda: Problem(1j * np.eye(3), np.ones(3), rank=3), "complex rows have one row per term, found rank=3"),
        (lambda: Problem(EYE, np.ma.masked_equal([1.0, 0.0, 2.0], 0.0)), r"c must have no masked .* at index \(1,\)"),
        (lambda: Problem(EYE, np.ones((1, 3))), r"c must have shape \(3,\) .* found shape \(1, 3\)"),
        (
            lambda: Problem(EYE, sp.coo_array((10**12, 1))),
            "c must have 3 entries in one column, found a spars",
        ),
        (lambda: Problem(EYE, np.ones(4)), r"c must have shape \(3,\) \(float64\) .*, found shape \(4,\) \(float64\)"),
        (lambda: Problem(EYE, np.ones(3) + 1j), r"c must have shape \(3,\) \(float64\) .* \(complex128\)"),
        (lambda: Problem(EYE, "abc"), r"c must have shape \(3,\) .* found shape \(\)"),
        (lambda: Problem(EYE, ["a", "b", "c"]), r"c must .* found shape \(3,\) \(<U1\)"),
        (lambda: Problem(EYE, [1.0, np.nan, 2.0]), "c must be finite, found nan at index 1"),
        (lambda: Problem(EYE, [1.0, 0.0, -np.inf]), "c must be finite, found -inf at index 2"),
        (lambda: Problem(SIGNAL, [1.0, np.nan * 1j, 0.0]), "c must be finite, found nan at index"),
        (lambda: Problem(EYE, np.zeros(3)), "c must not be zero"),
        (lambda: Problem(PATH, np.zeros((4, 2)), Centred()), "c must not be zero"),
        (
            lambda: Problem(EYE, np.ones(3), 3),
            r"cone must be a Cone \(Free\(\), Orthant\(\), …\) or its name, found 3",
        ),
        (lambda: Problem(EYE, np.ones(3), "octant"), "unknown cone 'octant'; did you mean 'orthant'?"),
        (lambda: Problem(EYE, np.ones(3), Orthant), "cone must be a Cone .* found <class"),
        (
            lambda: Problem(PATH, np.ones((4, 2)), Free()),
            r"vanishes on translations: .* need cone=Centred\(\), found Free\(\)",
        ),
        (lambda: Problem(PATH, np.ones((4, 2)), Orthant()), r"need cone=Centred\(\), found Orthant\(\)"),
        (lambda: Problem(EYE, np.ones(3), Centred()), r"Centred needs points of shape \(N, d\), found shape \(3,\)"),
        (lambda: Problem(SIGNAL, np.ones(3), Orthant()), "Orthant needs real points, found complex ones"),
        (lambda: Problem(SIGNAL, np.ones(3), SecondOrder()), r"SecondOrder needs real vectors .*\(complex128\)"),
        (lambda: Problem(GramForm(2, 2), np.ones(4), SecondOrder()), r"SecondOrder needs real vectors .* \(2, 2\)"),
        (lambda: Problem(StackedForm([[1.0]]), [1.0], SecondOrder()), r"vectors of length ≥ 2, found shape \(1,\)"),
        (lambda: Problem(EYE, np.ones(3), solution=np.ones(4)), r"solution must have shape \(3,\)"),
        (
            lambda: Problem(EYE, np.ones(3), solution=[1.0, np.nan, 1.0]),
            "solution must be finite, found nan at index 1",
        ),
        (lambda: Problem(EYE, np.ones(3), optimum=np.nan), "optimum must be a finite number, found nan"),
        (lambda: Problem(EYE, np.ones(3), optimum="low"), "optimum must be a finite number, found 'low'"),
    ],
)
def test_bad_problems_say_what_is_wrong(make_it, message):
    refused(make_it, message)


# Forms that are not positive definite ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_form", "message"),
    [
        (
            lambda: StackedForm(np.ones((2, 3))),
            "not positive definite: its rank is at most m·r = 2, but n = 3; add terms",
        ),
        (lambda: StackedForm(sp.csr_matrix(np.ones((2, 3)))), "its rank is at most m·r = 2, but n = 3"),
        (lambda: StackedForm(np.ones((4, 6)), rank=2), "its rank is at most m·r = 4, but n = 6"),
        (lambda: StackedForm(with_entry(0.0, at=(slice(None), 2))), "at most 2 of n = 3; no term sees coordinate 2"),
        (lambda: StackedForm(sp.csr_matrix(with_entry(0.0, at=(slice(None), 2)))), "no term sees coordinate 2"),
        (lambda: ComplexForm(np.ones((2, 3))), "its rank is at most m = 2, but N = 3; add measurements"),
    ],
)
def test_forms_that_are_seen_to_be_deficient_make_no_problem_on_a_cone(make_form, message):
    form = make_form()
    assert isinstance(form.deficiency(), DeficientError)
    refused(form.require_definite, message)
    if form.dtype.kind != "c":  # no cone but the whole space takes complex points
        refused(lambda: Problem(form, np.ones(form.dim), "orthant"), f"{message}.*no direction d of the cone has ρ")


@pytest.mark.parametrize("kind", ["dense", "sparse", "complex"])
def test_hidden_deficiency_is_found_where_a_factor_is_made(kind):
    # A column that is the sum of two others: nothing a few passes would see.
    rows = np.random.default_rng(0).standard_normal((30, 5))
    rows[:, 4] = rows[:, 0] - rows[:, 2]
    form = {"dense": lambda: StackedForm(rows), "sparse": lambda: StackedForm(sp.csr_matrix(rows))}.get(
        kind, lambda: ComplexForm(rows)
    )()
    problem = Problem(form, np.ones(form.dim))
    refused(
        lambda: certify(problem, np.ones(form.dim)), "ρ is not positive definite to rounding: numerical rank 4 of 5"
    )
    refused(lambda: bounds.general(form), "ρ is not positive definite: numerical rank 4 of 5")


def test_what_is_no_problem_and_no_metric_is_not_certified():
    refused(lambda: certify(np.eye(3), np.ones(3)), "problem must be a Problem, found ndarray")
    refused(lambda: certify(Problem(EYE, np.ones(3)), np.ones(3), "uniform"), "metric must be a Metric, found str")


def test_a_column_that_only_late_rows_see_is_seen(monkeypatch):
    monkeypatch.setattr("quartbench.forms.dense.SURVEY_BYTES", 400)
    rows = with_entry(0.0, at=(slice(None), 2), shape=(200, 3))
    rows[199, 2] = 1.0
    assert Problem(StackedForm(rows), np.ones(3)).dim == 3


# Metrics that a cone cannot use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cone", "metric", "message"),
    [
        (
            Orthant(),
            Cholesky(np.eye(3) + 1.0),
            "Orthant needs a diagonal metric .*, found 'cholesky'.*quadratic program",
        ),
        (Orthant(), Laplacian(3, 1, [(0, 1), (1, 2)], [1.0, 1.0]), "Orthant needs a diagonal metric .*'laplacian'"),
        (SecondOrder(), Diagonal([1.0, 2.0, 3.0]), "SecondOrder needs the metric 'identity' or a multiple of it"),
        (SecondOrder(), Cholesky(np.eye(3) + 1.0), "SecondOrder needs the metric 'identity' .*, found 'cholesky'"),
    ],
)
def test_metrics_that_a_cone_cannot_use_are_refused(cone, metric, message):
    for attempt in (
        lambda: cone.require_metric(metric),
        lambda: cone.project(np.ones(3), metric),
        lambda: cone.projector(metric),
        lambda: cone.slice(np.ones(3), metric),
    ):
        refused(attempt, message)


@pytest.mark.parametrize("metric", [Identity(3), Diagonal([2.0, 2.0, 2.0]), Cholesky(np.eye(3) + 1.0)])
def test_free_space_takes_every_metric(metric):
    Free().require_metric(metric)
    assert Free().slice(np.ones(3), metric)(np.zeros(3)).sum() == pytest.approx(1.0)


# The words ------------------------------------------------------------------------------------------------------------


def test_unknown_names_suggest_the_nearest():
    error = unknown_name("solver", "homgdd", ["homgd", "bregman", "newton"])
    assert isinstance(error, ProblemError)
    assert isinstance(error, ValueError)
    assert str(error) == "unknown solver 'homgdd'; did you mean 'homgd'? (known: bregman, homgd, newton)"
    assert str(unknown_name("metric", "xyz", ["lewis"])) == "unknown metric 'xyz' (known: lewis)"
    assert str(unknown_name("metric", None, ["lewis"])) == "unknown metric None (known: lewis)"


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (real_array, "abc", "a must be an array of numbers, found str"),
        (real_array, [[1.0], [1.0, 2.0]], "a must be an array of numbers, found list"),
        (real_array, [1j], "a must be real, found complex values"),
        (real_array, [[1.0]], r"a must have 1 dimension, found shape \(1, 1\)"),
        (real_array, 3.0, r"a must have 1 dimension, found shape \(\)"),
        (real_array, [1.0, np.inf], r"a must be finite, found inf at index \(1,\)"),
        (complex_array, "abc", "a must be an array of numbers, found str"),
        (complex_array, [1.0, np.nan * 1j], r"a must be finite, found .* at index \(1,\)"),
        (complex_array, [[1.0]], r"a must have 1 dimension, found shape \(1, 1\)"),
    ],
)
def test_arrays_are_checked_with_their_name(check, value, message):
    refused(lambda: check(value, "a", 1), message)


def test_good_arrays_are_not_copied():
    real, signal = np.ones(3), np.ones(3, dtype=complex)
    assert real_array(real, "a") is real
    assert complex_array(signal, "a") is signal
    assert real_array([1, 2], "a", 1).dtype == np.float64


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        ([(0, 1), (1, 3)], "edges must join vertices 0 to 2, found 0 to 3"),
        ([(0, 1), (-1, 2)], "edges must join vertices 0 to 2, found -1 to 2"),
        ([0, 1], r"edges must be whole numbers of shape \(m, 2\)"),
        ([(0.0, 1.0), (1.0, 2.0)], "edges must be whole numbers"),
    ],
)
def test_the_edges_of_a_laplacian_are_named(edges, found):
    with pytest.raises(ProblemError, match=found):
        Laplacian(3, 1, edges, [1.0, 1.0])
