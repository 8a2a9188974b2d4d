"""Is what a cone leaves out of a residual polar, and what it calls inside in it? Truth is rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.cones import Centred, Cone, Free, Orthant, SecondOrder
from quartbench.cones.second_order import contains
from quartbench.linalg.known import Known
from tests.cones.unseen import IceCreamAndMore
from tests.forms.random_forms import SEEDS


def rational(numbers):
    return [Fraction(float(v)) for v in numbers]


def in_second_order(x):
    return x[0] >= 0 and x[0] ** 2 >= sum(v * v for v in x[1:])


def draw_known(rng, n, spread):
    hi = rng.standard_normal(n) * 10.0 ** rng.uniform(-spread, spread, n)
    return Known(hi, hi * rng.uniform(-1.0, 1.0, n) * 2.0**-54, np.abs(hi) * 10.0 ** rng.uniform(-33.0, -3.0))


def corners(known, rng, count=6):
    """Yield exact vectors of the box that ``known`` stands for."""
    for _ in range(count):
        signs = rng.choice([-1, 1], known.hi.size)
        yield [
            Fraction(a) + Fraction(b) + int(s) * Fraction(e)
            for a, b, e, s in zip(known.hi, known.lo, known.error, signs, strict=True)
        ]


# Points of the cone, and c in its polar, decided and not rounded to ---------------------------------------------------


@given(SEEDS, st.integers(2, 8), st.integers(-3, 3), st.sampled_from([1.0, 1e-170, 1e170]))
def test_the_second_order_cone_is_decided_exactly(seed, n, steps, scale):
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal(n)
    x[0] = math.hypot(*x[1:])
    for _ in range(abs(steps)):
        x[0] = math.nextafter(x[0], math.copysign(math.inf, steps))
    wanted = in_second_order(rational(x))
    assert contains(x) == wanted
    assert SecondOrder().polar_contains(-x) == wanted
    if scale == 1.0:
        moved = SecondOrder().inside(x)
        assert in_second_order(rational(moved))
        assert moved[0] <= x[0] * (1.0 + 1e-15)
        assert (moved[1:] == x[1:]).all()
        assert (moved is x) == wanted


@given(SEEDS, st.integers(2, 6), st.sampled_from([0, 1, 3, 8, 16]))
def test_points_of_the_second_order_cone_over_many_orders_of_magnitude(seed, n, digits):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) * 10.0 ** rng.uniform(-digits, digits, n)
    x[0] = math.fsum(x[1:] ** 2) ** 0.5 * rng.choice([1.0, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 0.5, 2.0])
    assert contains(x) == in_second_order(rational(x))
    assert in_second_order(rational(SecondOrder().inside(x)))


def test_entries_too_small_to_be_seen_beside_the_largest_count_too():
    assert not contains(np.array([2.0**600, 2.0**600, 2.0**-600]))


def test_a_point_of_the_second_order_cone_that_is_not_positive():
    assert contains(np.zeros(3))
    assert not contains(np.array([-1.0, 0.0]))
    assert not contains(np.array([math.nan, 0.0]))
    assert (SecondOrder().inside(np.array([-3.0, 0.0])) >= 0.0).all()
    assert in_second_order(rational(SecondOrder().inside(np.array([-3.0, 0.3, 0.4]))))


def test_trivial_is_decided_on_c_as_given():
    assert not Orthant().polar_contains(np.array([1.0, -1e14]))
    assert not Orthant().polar_contains(np.array([5e-324, -1e300]))
    assert Orthant().polar_contains(np.array([0.0, -1e14]))
    assert Centred((4, 2)).polar_contains(np.tile([3.0, -5.0], 4))
    assert not Centred((3, 1)).polar_contains(np.array([1.0, 1.0, math.nextafter(1.0, 2.0)]))
    assert SecondOrder().polar_contains(np.array([-5.0, 3.0, 4.0]))
    assert not SecondOrder().polar_contains(np.array([-5.0, 3.0, math.nextafter(4.0, 5.0)]))
    assert Free().polar_contains(np.zeros(2))
    assert not Free().polar_contains(np.array([0.0, 5e-324]))


@given(SEEDS, st.integers(1, 8))
def test_inside_the_orthant_and_free_space(seed, n):
    x = np.random.default_rng(seed).standard_normal(n)
    assert Free().inside(x) is x
    moved = Orthant().inside(x)
    assert (moved >= 0.0).all()
    assert (moved[x >= 0.0] == x[x >= 0.0]).all()
    assert not moved[x < 0.0].any()


# What is left out -----------------------------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 8))
def test_all_of_a_residual_counts_on_free_space(seed, n):
    r = draw_known(np.random.default_rng(seed), n, 3.0)
    assert Free().outside(r) is r
    assert Free().shifts(r.hi, r.hi, 1.0, np.ones(n)) == [None]


@given(SEEDS, st.integers(1, 8), st.sampled_from(["none", "random", "own"]))
def test_what_is_left_out_on_the_orthant_is_polar(seed, n, shift):
    rng = np.random.default_rng(seed)
    r = draw_known(rng, n, 3.0)
    for move in draw_shifts(Orthant(), rng, np.abs(rng.standard_normal(n)) * (rng.random(n) < 0.7), shift):
        w = Orthant().outside(r, move)
        for exact_r in corners(r, rng):
            assert all(a <= Fraction(b) for a, b in zip(exact_r, w.hi, strict=True))
        assert not w.lo.any()
        assert not w.error.any()
        if move is None:  # and it is not more than the positive part, but for what is unknown
            assert (w.hi <= np.maximum(r.hi, 0.0) + 2.0 * r.error + 4e-16 * np.abs(r.hi)).all()


def draw_shifts(cone, rng, x, shift):
    if shift == "none":
        return [None]
    if shift == "random":
        return [np.abs(rng.standard_normal(x.size)) if isinstance(cone, Orthant) else rng.standard_normal(x.size)]
    found = cone.shifts(rng.standard_normal(x.size), x, rng.uniform(0.1, 10.0), 2.0 ** rng.integers(-9, 9, x.size))
    assert found[0] is None
    assert len(found) == (3 if x.any() else 1)
    return found


@given(SEEDS, st.integers(2, 8), st.sampled_from(["none", "random", "own"]), st.booleans())
def test_what_is_left_out_on_the_second_order_cone_is_polar(seed, n, shift, boundary):
    rng = np.random.default_rng(seed)
    r = draw_known(rng, n, 1.0)
    if boundary:  # r almost on the boundary of the polar cone, where what is left is all rounding
        r.hi[0] = -np.linalg.norm(r.hi[1:])
    for move in draw_shifts(SecondOrder(), rng, rng.standard_normal(n), shift):
        w = SecondOrder().outside(r, move)
        for exact_r in corners(r, rng):
            assert in_second_order([Fraction(b) - a for a, b in zip(exact_r, w.hi, strict=True)])
        assert not w.lo.any()
        assert not w.error.any()
        if boundary and move is None and r.error.max() < 1e-25:
            assert np.abs(w.hi).max() <= 1e-14 * np.abs(r.hi).max()


@given(SEEDS, st.integers(2, 8), st.integers(1, 3))
def test_what_is_left_out_on_the_centred_subspace_is_a_translation(seed, points, d):
    rng = np.random.default_rng(seed)
    r = draw_known(rng, points * d, 2.0)
    w = Centred((points, d)).outside(r)
    middle = [Fraction(a) + Fraction(b) for a, b in zip(r.hi, r.lo, strict=True)]
    rest = np.array([Fraction(a) + Fraction(b) for a, b in zip(w.hi, w.lo, strict=True)]).reshape(points, d)
    moved = np.array(middle, dtype=object).reshape(points, d) - rest
    slack = np.array([Fraction(a) - Fraction(b) for a, b in zip(w.error, r.error, strict=True)]).reshape(points, d)
    for k in range(d):  # some translation is within the slack of all entries
        assert max(moved[:, k] - slack[:, k]) <= min(moved[:, k] + slack[:, k])
    # Hardly any translation is left, and hardly anything more unknown.
    assert np.abs(w.rounded.reshape(points, d).mean(axis=0)).max() <= 1e-15 * points * np.abs(r.hi).max()
    assert (w.error <= r.error * (1.0 + 1e-15) + 1e-30 * np.abs(r.hi).max()).all()


@given(SEEDS, st.integers(2, 8), st.sampled_from(["none", "random"]))
def test_a_cone_that_says_nothing_leaves_out_only_what_is_polar(seed, n, shift):
    # By projections alone: the rounding of the default counts as unknown. The truth is that of a cone that says more.
    rng = np.random.default_rng(seed)
    r = draw_known(rng, n, 1.0)
    for cone in (Orthant(), SecondOrder()):
        (move,) = draw_shifts(cone, rng, np.ones(n), shift)
        w = Cone.outside(cone, r, move)
        top = [Fraction(a) + Fraction(e) for a, e in zip(w.hi, w.error, strict=True)]
        for exact_r in corners(r, rng):
            if isinstance(cone, Orthant):
                assert all(a <= b for a, b in zip(exact_r, top, strict=True))
                continue
            # Some vector of the box of w is above r in the order of the cone: the best is within reach in each entry.
            apart = [max(abs(a - Fraction(b)) - Fraction(e), 0) for a, b, e in zip(exact_r, w.hi, w.error, strict=True)]
            assert in_second_order([top[0] - exact_r[0], *apart[1:]])


@given(SEEDS)
def test_what_an_unseen_cone_leaves_out_is_polar(seed):
    rng, cone = np.random.default_rng(seed), IceCreamAndMore()
    r = draw_known(rng, 8, 1.0)
    w = cone.outside(r)
    for exact_r in corners(r, rng):
        rest = np.array([float(a) for a in exact_r]) - w.hi
        inside = cone.euclidean(rest)  # of which the box of w holds at least as much
        assert np.linalg.norm(inside) <= np.linalg.norm(w.error) + 1e-14 * np.linalg.norm(r.hi)
    assert np.linalg.norm(w.hi - cone.euclidean(r.rounded)) <= 1e-15 * np.linalg.norm(r.hi)


# ⟨c,x⟩ of what x stands for -------------------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 9), st.integers(1, 3))
def test_the_inner_product_with_a_centred_point_is_within_its_bound(seed, points, d):
    rng = np.random.default_rng(seed)
    c, x = rng.standard_normal((2, points * d)) + rng.standard_normal(2)[:, None] * 10.0 ** rng.integers(-20, 3)
    exact_c, exact_x = [np.array(rational(y), dtype=object).reshape(points, d) for y in (c, x)]
    wanted = (exact_c * (exact_x - exact_x.sum(axis=0) / points)).sum()
    hi, lo, error = map(Fraction, Centred((points, d)).inner(c, x))
    assert abs(hi + lo - wanted) <= error
    assert error <= Fraction(1, 10**13) * (abs(exact_c).sum() * abs(exact_x).max())


@given(SEEDS, st.integers(1, 30))
def test_the_inner_product_on_other_cones_is_within_its_bound(seed, n):
    rng = np.random.default_rng(seed)
    c, x = rng.standard_normal((2, n)) * 10.0 ** rng.uniform(-8.0, 8.0, (2, n))
    products = [a * b for a, b in zip(rational(c), rational(x), strict=True)]
    for cone in (Free(), Orthant(), SecondOrder()):
        hi, lo, error = map(Fraction, cone.inner(c, x))
        assert abs(hi + lo - sum(products)) <= error <= Fraction(1, 10**25) * sum(map(abs, products))


# What corrections are told --------------------------------------------------------------------------------------------


def test_where_a_point_may_move():
    x = np.array([0.0, 2.0, 0.0, 1.0])
    assert Orthant().support(x).tolist() == [1, 3]
    assert Free().support(x) is None
    assert Orthant().mirror(x) is None
    signs = SecondOrder().mirror(x)
    boundary = np.array([5.0, 3.0, 0.0, -4.0])
    assert boundary @ (signs * boundary) == 0.0
    for cone in (Orthant(), SecondOrder(), IceCreamAndMore()):
        assert cone.shifts(np.ones(4), np.zeros(4), 0.0, np.ones(4)) == [None]


@pytest.mark.parametrize("power", [-1060, -1000, -600, -300, 0, 300, 600, 1000])
def test_a_point_moved_into_the_second_order_cone_is_next_to_it_whatever_its_size(power):
    # Squares of 1e±200 left the range: the first entry became 2⁻⁵⁰⁵ or infinite.
    for seed in range(20):
        x = np.random.default_rng(seed).standard_normal(5)
        x[0] = np.linalg.norm(x[1:]) * (1.0 - 4e-16)
        x = np.ldexp(x, power)
        moved = SecondOrder().inside(x)
        assert contains(moved)
        assert (moved[1:] == x[1:]).all()
        assert moved[0] <= x[0] * (1.0 + 2e-15) + 2e-323
