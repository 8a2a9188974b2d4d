"""Rows as people have them: arrays, sparse matrices, tables, columns for c, cones by name, and rows of zeros."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

import quartbench as qb

RNG = np.random.default_rng(0)
ROWS, C = RNG.standard_normal((40, 5)), RNG.standard_normal(5)
OPTIMUM = qb.solve(qb.Problem(qb.StackedForm(ROWS), C), rel_gap=1e-12).fun


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        ROWS.tolist(),
        sp.csr_matrix(ROWS),
        sp.coo_array(ROWS),
        pandas.DataFrame(ROWS),
        pandas.DataFrame(ROWS).convert_dtypes(),
        qb.StackedForm(ROWS),
    ],
    ids=lambda rows: type(rows).__name__,
)
@pytest.mark.parametrize("c", [C, C.reshape(-1, 1), pandas.Series(C), pandas.DataFrame({"c": C}), sp.csr_matrix(C).T])
def test_rows_and_c_are_taken_as_they_come(rows, c):
    assert qb.solve(rows, c, rel_gap=1e-9).fun == pytest.approx(OPTIMUM, rel=1e-8)
    assert qb.Problem(rows, c).dim == 5


def test_a_cone_has_a_name_everywhere():
    asked = qb.Problem(ROWS, C, qb.Orthant())
    expected = qb.solve(asked, rel_gap=1e-9).fun
    assert qb.solve(ROWS, C, "orthant", rel_gap=1e-9).fun == expected
    assert qb.solve(ROWS, C, cone="orthant", solver="homgd").fun == pytest.approx(expected, rel=1e-5)
    assert qb.prepare(ROWS, "orthant").solve(C, rel_gap=1e-9).fun == pytest.approx(expected, rel=1e-8)
    assert qb.solve_many(ROWS, [C], "orthant", rel_gap=1e-9)[0].fun == pytest.approx(expected, rel=1e-8)
    assert qb.solve_batch(ROWS[None], C[None], "orthant", rel_gap=1e-9).fun[0] == pytest.approx(expected, rel=1e-8)


def test_terms_of_more_rows_and_complex_rows_need_no_form():
    assert qb.solve(ROWS, C, rank=2).fun == pytest.approx(qb.solve(qb.Problem(qb.StackedForm(ROWS, 2), C)).fun)
    waves = ROWS + 1j * ROWS[::-1]
    assert qb.solve(waves, C + 0j).fun == pytest.approx(qb.solve(qb.Problem(qb.ComplexForm(waves), C + 0j)).fun)


def test_what_follows_a_problem_is_its_solver_and_metric():
    result = qb.solve(qb.Problem(ROWS, C), "homgd", "uniform")
    assert (result.solver, result.metric) == ("homgd", "uniform")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((ROWS,), {}, "problem must be a Problem, or rows with c beside them, found ndarray"),
        ((ROWS, "homgd"), {}, "problem must be a Problem, or rows with c beside them, found ndarray"),
        ((qb.Problem(ROWS, C), C), {}, "problem has a c, a cone and a rank of its own"),
        ((qb.Problem(ROWS, C),), {"cone": qb.Free()}, "problem has a c, a cone and a rank of its own"),
        ((qb.Problem(ROWS, C),), {"rank": 2}, "problem has a c, a cone and a rank of its own"),
        (
            (pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), C[:2]),
            {},
            "rows must be numbers in every column, found .* in column 'b'",
        ),
        ((pandas.DataFrame({"a": [1.0, None], "b": [2, 3]}), C[:2]), {}, "rows must be finite, found NaN"),
        ((pandas.DataFrame({"a": [1.0, None]}).convert_dtypes(), C[:1]), {}, "rows must be finite, found NaN"),
    ],
)
def test_what_cannot_be_a_problem_is_said(arguments, options, message):
    with pytest.raises(qb.ProblemError, match=message):
        qb.solve(*arguments, **options)


# Rows of zeros --------------------------------------------------------------------------------------------------------

KINDS = {
    "few": (60, 6, 1),
    "blocks": (60, 6, 2),
    "many": (1500, 90, 1),
    "tall": (30000, 30, 1),
    "sparse": (800, 70, 1),
    "complex": (200, 12, 1),
    "operator": (80, 5, 1),
}


def padded(kind):
    """Return a form, the same with a fifth of zero terms among its own, where its own stand there, and some c."""
    m, n, rank = KINDS[kind]
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((m, rank, n))
    if kind == "complex":
        rows = rows + 1j * rng.standard_normal(rows.shape)
    if kind == "sparse":
        rows *= rng.random(rows.shape) < 0.1
        rows[:n, 0] += np.eye(n)
    where = np.sort(rng.choice(m + m // 5, m, replace=False))
    more = np.zeros((m + m // 5, rank, n), dtype=rows.dtype)
    more[where] = rows
    make = {"complex": qb.ComplexForm, "operator": qb.OperatorForm}.get(kind, lambda rows: qb.StackedForm(rows, rank))
    kept = sp.csr_matrix if kind == "sparse" else np.asarray
    forms = [make(kept(one.reshape(-1, n))) for one in (rows, more)]
    return *forms, where, rng.standard_normal(n).astype(rows.dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_zeros_change_nothing(kind):
    form, more, where, c = padded(kind)
    zeros = np.setdiff1d(np.arange(more.terms), where)
    np.testing.assert_array_equal(more.zero_terms(), zeros)
    for metric in ("auto", "lewis"):
        one, other = (qb.solve(one, c, metric=metric, rel_gap=1e-9) for one in (form, more))
        assert one.status == other.status == "converged"
        assert other.fun == pytest.approx(one.fun, rel=1e-8)
        assert other.gap <= 1e-9
    np.testing.assert_allclose(qb.leverage(more)[where], qb.leverage(form), rtol=1e-9)
    weights, others = qb.lewis_weights(form), qb.lewis_weights(more)
    np.testing.assert_allclose(others.tau[where], weights.tau, rtol=1e-7)
    assert not others.tau[zeros].any()
    assert others.kappa_bound == pytest.approx(weights.kappa_bound)
    assert others.metric.bounds == pytest.approx(weights.metric.bounds)
    np.testing.assert_allclose(qb.leverage(more, others.tau)[where], qb.leverage(form, weights.tau), rtol=1e-7)


def test_a_term_that_is_not_zero_has_a_weight():
    form = padded("few")[1]
    tau = np.ones(form.terms)
    tau[form.zero_terms()] = 0.0
    form.weighted(tau)
    tau[np.setdiff1d(np.arange(form.terms), form.zero_terms())[3]] = 0.0
    with pytest.raises(qb.ProblemError, match="tau must be 72 positive numbers, one per term"):
        form.weighted(tau)


@pytest.mark.parametrize("solver", sorted(set(qb.solvers.solvers()) - {"gd", "bregman"}))
def test_every_method_takes_rows_of_zeros(solver):
    form, more, _, c = padded("few")
    one, other = (qb.solve(one, c, solver=solver, rel_gap=1e-8) for one in (form, more))
    assert other.status == one.status == "converged"
    assert other.fun == pytest.approx(one.fun, rel=1e-7)


def test_a_form_as_if_just_made_knows_its_zero_terms_still():
    graph = qb.GraphForm(4, 2, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert qb.lewis_weights(graph.fresh()).tau == pytest.approx(qb.lewis_weights(graph).tau)
    more = padded("few")[1]
    np.testing.assert_array_equal(more.fresh().zero_terms(), more.zero_terms())
    assert more.fresh().passes == 0


@pytest.mark.parametrize("make", [lambda c: c, pandas.Series.to_frame], ids=["Series", "DataFrame"])
def test_labels_in_another_order_are_an_error_and_not_taken_by_position(make):
    rows = pandas.DataFrame(ROWS, columns=list("abcde"))
    c = pandas.Series(C, index=list("abcde"))
    assert qb.solve(rows, make(c), rel_gap=1e-9).fun == pytest.approx(OPTIMUM, rel=1e-8)
    turned = c[::-1]
    with pytest.raises(qb.ProblemError, match="c must have its entries in the order of the columns of the rows"):
        qb.solve(rows, make(turned))
    assert qb.solve(rows, make(turned.loc[rows.columns]), rel_gap=1e-9).fun == pytest.approx(OPTIMUM, rel=1e-8)
    assert qb.solve(rows, make(pandas.Series(C)), rel_gap=1e-9).fun == pytest.approx(OPTIMUM, rel=1e-8)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pandas.date_range("2020", periods=3), "datetime64.* in column 'b'"),
        (pandas.to_timedelta([1, 2, 3], unit="s"), "timedelta64.* in column 'b'"),
        (["low", "high", "low"], "in column 'b'"),
        (pandas.Categorical(["low", "high", "low"]), "category in column 'b'"),
    ],
    ids=["dates", "durations", "words", "categories"],
)
def test_a_column_that_holds_no_numbers_is_named(column, found):
    with pytest.raises(qb.ProblemError, match=f"rows must be numbers in every column, found .*{found}"):
        qb.Problem(pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": column}), [1.0, 1.0])


def test_a_table_of_complex_numbers_keeps_its_imaginary_parts():
    waves = ROWS + 1j * ROWS[::-1]
    assert qb.solve(pandas.DataFrame(waves), C + 0j).fun == qb.solve(waves, C + 0j).fun


@pytest.mark.parametrize("rows", [ROWS.T, sp.csr_array(ROWS.T), qb.StackedForm(ROWS.T)])
def test_rows_the_wrong_way_round_are_told(rows):
    with pytest.raises(qb.ProblemError, match=r"found shape \(5,\) .*: there are as many rows; are they transposed"):
        qb.Problem(rows, C)
    with pytest.raises(qb.ProblemError, match=r"found shape \(4,\) \(float64\)$"):
        qb.Problem(rows, C[:4])


def test_a_solver_in_the_place_of_the_cone_is_told():
    with pytest.raises(qb.ProblemError, match=r"a cone stands third, after rows and c, .* solver='homgd'"):
        qb.solve(ROWS, C, "homgd")
