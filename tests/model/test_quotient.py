"""What is decided of a form that vanishes on a subspace, against singular values and exact arithmetic of one's own."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import quartbench as qb
from quartbench.model.certificate import value_at
from quartbench.model.quotient import falling, quotient

U = 2.0**-53

#: Units of columns, far apart.
UNITS = np.exp2([0, 40, -40, 20, -20, 3, 0])


def dependent(m=40, n=7, rank=4, seed=0):
    """Return rows of a rank, the first column a spike and the others even: lengths and largest entries differ."""
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((m, rank))
    left[:, 0] = 1e-3 * left[:, 0]
    left[0, 0] = 8.0
    right = rng.standard_normal((rank, n))
    right[1:, 0] = 0.0
    return left @ right


def units_of(rows):
    """Return powers of two near the lengths of columns: as large, and less than twice as large."""
    return np.exp2(np.floor(np.log2(np.linalg.norm(rows, axis=0))) + 1.0)


def exact_value(rows, c, x):
    x = [Fraction(float(v)) for v in x]
    images = [sum(Fraction(float(a)) * b for a, b in zip(row, x, strict=True)) for row in rows]
    return sum(s**4 for s in images) - sum(Fraction(float(a)) * b for a, b in zip(c, x, strict=True))


# The rank -------------------------------------------------------------------------------------------------------------


def nearly(columns, sine):
    """Return the identity with a last column that is the one before but for a small sine: σ are √2, 1, …, sine/√2."""
    rows = np.eye(columns)
    rows[-2, -1], rows[-1, -1] = 1.0, sine
    return rows


def test_singular_values_count_from_n_roundings_of_the_largest_on():
    least = 2.0 * U * 64 * math.sqrt(2.0)
    found = quotient(qb.StackedForm(nearly(64, 0.7 * math.sqrt(2.0) * least)))
    assert (found.rank, found.dim, found.exact) == (63, 64, False)
    assert found.words() == "ρ has numerical rank 63 of 64"
    with pytest.raises(qb.DeficientError, match=r"of 64 columns fall to .* without a clear step"):
        quotient(qb.StackedForm(nearly(64, 1.5 * math.sqrt(2.0) * least)))


def test_full_rank_is_refused_with_the_share_of_the_least_singular_value():
    # Of two columns of length one with the cosine 0.6: √0.4 and √1.6.
    with pytest.raises(qb.DeficientError, match=r"of 2 columns fall to 5\.0e-01 of the largest"):
        quotient(qb.StackedForm(np.array([[1.0, 0.6], [0.0, 0.8]])))


def clear(angle, m=40):
    """Return rows with two columns alike and a third at such a distance from them that the range is known to an angle.

    With cosine √(1 − δ²) between columns of length one, σ² are about 3 and 2δ²/3.
    """
    sine = 2.0 * U * m * math.sqrt(3.0) / angle / math.sqrt(2.0 / 3.0)
    rows = np.zeros((m, 3))
    rows[0], rows[1, 2] = 1.0, sine
    return rows


def test_a_range_is_clear_up_to_an_angle_of_a_thousandth():
    found = quotient(qb.StackedForm(clear(0.7e-3)))
    assert (found.rank, found.exact) == (2, False)
    assert found.angle == pytest.approx(0.7e-3, rel=1e-3)
    with pytest.raises(qb.DeficientError, match="its rank cannot be told"):
        quotient(qb.StackedForm(clear(1.5e-3)))


def test_the_angle_is_that_of_the_singular_values_that_count():
    rows = dependent()
    sizes = np.linalg.svd(rows / units_of(rows), compute_uv=False)
    found = quotient(qb.StackedForm(rows))
    assert found.rank == 4
    assert found.angle == pytest.approx(40 * 2.0 * U * sizes[0] / sizes[3], rel=1e-9)


# Forms without a quotient ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [qb.GramForm(3, 2), qb.GraphForm(3, 1, [(0, 1), (1, 2)])], ids=["gram", "graph"])
def test_a_kernel_is_looked_for_in_rows_on_the_whole_space_alone(form):
    with pytest.raises(qb.DeficientError, match=r"^ρ is not positive definite; its kernel is looked for in rows"):
        quotient(form)


def test_what_is_known_of_the_deficiency_is_said(monkeypatch):
    monkeypatch.setattr("quartbench.forms.stacked.StackedForm.reducible", False, raising=False)
    with pytest.raises(qb.DeficientError, match=r"its rank is at most m·r = 2, but n = 3.*; its kernel is looked for"):
        quotient(qb.StackedForm(np.ones((2, 3))))


# Coordinates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [1.0, 2.0, 3.0])
def test_unseen_coordinates_are_left_out_whatever_the_scale(make, scale):
    rows = np.random.default_rng(0).standard_normal((20, 6))
    rows[:, [1, 4]] = 0.0
    found = quotient(qb.StackedForm(make(rows)).scaled(scale))
    assert (found.rank, found.dim, found.exact, found.angle) == (4, 6, True, 0.0)
    assert found.words() == "no term sees 2 of 6 coordinates"
    z, c = np.array([1.0, -2.0, 0.5, 3.0]), np.array([1.0, -3.0, 2.0, 5.0, 6.0, -7.0])
    assert found.form.value(z) == pytest.approx(((scale * rows[:, [0, 2, 3, 5]] @ z) ** 4).sum(), rel=1e-12)
    np.testing.assert_array_equal(found.point(z), [1.0, 0.0, -2.0, 0.5, 0.0, 3.0])
    np.testing.assert_array_equal(found.coordinates(found.point(z)), z)
    np.testing.assert_array_equal(found.linear(c), [1.0, 2.0, 5.0, -7.0])
    np.testing.assert_array_equal(found.unseen(c), [0.0, -0.5, 0.0, 0.0, 1.0, 0.0])
    c[[1, 4]] = 0.0
    assert found.unseen(c) is None
    assert found.outside(c)[0] == 0.0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_coordinates_of_the_quotient_have_the_same_form_and_linear_part(make):
    rows = dependent() * UNITS
    form = qb.StackedForm(make(rows)).scaled(2.0)
    found = quotient(form)
    assert (found.rank, found.dim) == (4, 7)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(7) / UNITS
    z = found.coordinates(x)
    wanted = ((2.0 * rows @ x) ** 4).sum()
    assert found.form.value(z) == pytest.approx(wanted, rel=1e-9)
    assert form.value(found.point(z)) == pytest.approx(wanted, rel=1e-9)
    c = rows.T @ rng.standard_normal(40)
    assert found.linear(c) @ z == pytest.approx(c @ x, rel=1e-9)
    assert found.outside(c)[0] <= found.angle


def test_rows_that_come_in_pieces_are_all_counted(monkeypatch):
    rows = dependent()
    whole = quotient(qb.StackedForm(rows))
    monkeypatch.setattr("quartbench.model.quotient.PIECE", 8 * 7 * 6)
    found = quotient(qb.StackedForm(rows))
    assert found.rank == 4
    assert found.angle == pytest.approx(whole.angle, rel=1e-9)
    x = np.random.default_rng(2).standard_normal(7)
    assert found.form.value(found.coordinates(x)) == pytest.approx(((rows @ x) ** 4).sum(), rel=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e200, 1e-200])
def test_the_share_of_c_in_the_kernel_is_that_in_units_of_the_columns(size):
    rows = dependent() * UNITS
    found = quotient(qb.StackedForm(rows))
    c = np.random.default_rng(3).standard_normal(7) * UNITS
    c[2] = 0.0
    units = units_of(rows)
    kernel = np.linalg.svd(rows / units)[2][4:]
    scaled = c / units
    rest = kernel.T @ (kernel @ scaled)
    share, direction = found.outside(size * c)
    assert share == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(scaled), rel=1e-9)
    # The part of c there, as a direction: x with x·units in the kernel of the rows in those units.
    wanted = rest / units
    np.testing.assert_allclose(direction * units / np.linalg.norm(direction * units), rest / np.linalg.norm(rest), 1e-8)
    assert direction @ wanted > 0.0
    assert np.abs(rows @ direction).max() <= 1e-12 * np.abs(rows * direction).max()


# Where f falls without end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 2.0**40, 2.0**-40])
def test_a_value_is_at_least_f_and_no_more_than_rounding_above(size):
    rows = np.random.default_rng(4).standard_normal((12, 3))
    c, x = size * np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7, -1.1])
    found = Fraction(value_at(qb.Problem(qb.StackedForm(rows), c), x))
    true = exact_value(rows, c, x)
    scale = exact_value(rows, np.zeros(3), x) + abs(exact_value(np.zeros((1, 3)), c, x))
    assert true <= found <= true + scale * Fraction(64) * Fraction(U)


def ray(entry, size=3.0):
    """Return a problem whose second coordinate is seen by one small entry, so that ρ of that direction is its ⁴."""
    return qb.Problem(qb.StackedForm(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, entry]])), [0.0, size])


def best(entry, size=3.0):
    """Return the best point of the second axis and f there: t⁴ρ − size·t is least at t³ = size/4ρ."""
    t = (size / (4.0 * entry**4)) ** (1.0 / 3.0)
    return t, -0.75 * size * t


def test_a_form_of_more_than_1e_80_along_a_direction_is_told_from_zero():
    axis = np.array([0.0, 1.0])
    for rho in (1e-60, 1.5e-80):
        point, value = falling(ray(rho**0.25), axis)
        t, wanted = best(rho**0.25)
        assert point[1] == pytest.approx(t, rel=1e-9)
        assert value == pytest.approx(wanted, rel=1e-9)
    # Below, the point is the best one for a form of 1e-80.
    point, value = falling(ray(0.7e-80**0.25), axis)
    assert point[1] == pytest.approx(best(1e-20)[0], rel=1e-9)
    assert value > best(0.7e-80**0.25)[1] * (1.0 - 1e-3)


@pytest.mark.parametrize("length", [1e-30, 1.0, 1e30])
def test_the_length_of_a_direction_does_not_matter(length):
    point, value = falling(ray(1e-10), length * np.array([0.0, 1.0]))
    t, wanted = best(1e-10)
    assert point[1] == pytest.approx(t, rel=1e-9)
    assert value == pytest.approx(wanted, rel=1e-9)
    assert exact_value(ray(1e-10).form.rows, [0.0, 3.0], point) <= Fraction(value)


@pytest.mark.parametrize("entry", [1e-12, 1e-10, 1e-8])
def test_a_form_that_vanishes_by_luck_takes_the_point_closer_by_tens(entry, monkeypatch):
    problem = ray(entry)
    monkeypatch.setattr(type(problem.form), "value", lambda form, x: 0.0)
    point, value = falling(problem, np.array([0.0, 1.0]))
    exactly = exact_value(problem.form.rows, problem.c, point)
    assert exactly <= Fraction(value) < 0
    assert exact_value(problem.form.rows, problem.c, 10.0 * point) >= 0
    decades = math.log10(best(1e-20)[0] / point[1])
    assert decades == pytest.approx(round(decades), abs=1e-9)
    assert decades > 3.0


def test_a_direction_along_which_nothing_falls_proves_nothing():
    direction = np.array([0.0, -1.0])
    point, value = falling(ray(1e-10), direction)
    assert value == math.inf
    np.testing.assert_array_equal(point, direction)


def test_a_place_that_is_dark_behind_all_masks_is_a_coordinate_that_no_term_sees():
    masks = np.random.default_rng(0).standard_normal((3, 10)).view(np.complex128)
    masks[:, 3] = 0.0
    form = qb.DiffractionForm(masks)
    assert isinstance(form.deficiency(), qb.DeficientError)
    c = np.arange(1.0, 6.0) + 0.0j
    assert qb.solve(form, c).status == "unbounded"
    c[3] = 0.0
    found = qb.solve(form, c, rel_gap=1e-9)
    seen = np.array([0, 1, 2, 4])
    waves = np.exp(2j * np.pi / 5 * np.outer(np.arange(5), np.arange(5)))
    rows = (masks[:, None, :] * waves).reshape(15, 5)[:, seen]
    assert found.success
    assert found.x[3] == 0.0
    assert found.fun == pytest.approx(qb.solve(qb.ComplexForm(rows), c[seen], rel_gap=1e-9).fun, rel=1e-8)
