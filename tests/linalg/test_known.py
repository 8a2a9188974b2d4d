"""Do bounds stay bounds when numbers that are known by them are moved, raised and scaled? Truth is rational."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.linalg.known import SMALLEST, Known, U, exactly, finite, length, raised, up

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SIZES = st.floats(0.0, 1e300, allow_subnormal=True)


@given(st.floats(-1e308, 1e308), st.integers(1, 5))
def test_up_is_above_by_so_many_steps(x, steps):
    found = up(x, steps)
    assert found > x
    for _ in range(steps):
        found = math.nextafter(found, -math.inf)
    assert found == x


def test_nothing_is_above_infinity_and_no_number_says_nothing():
    assert up(math.inf) == math.inf
    assert up(math.nextafter(math.inf, 0.0)) == math.inf
    assert finite(math.nan) == math.inf
    assert finite(math.inf) == math.inf
    assert finite(-1.5) == -1.5


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=8))
def test_a_raised_sum_is_never_too_small_and_hardly_too_large(pairs):
    error, more = (np.array(column) for column in zip(*pairs, strict=True))
    for found, a, b in zip(raised(error, more), error, more, strict=True):
        exact = Fraction(a) + Fraction(b)
        assert exact < Fraction(found) <= exact * (1 + 3 * Fraction(U)) + Fraction(SMALLEST)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_exact_numbers_have_no_error(numbers):
    x = np.array(numbers)
    known = exactly(x)
    assert (known.hi == x).all()
    assert not known.lo.any()
    assert not known.error.any()
    assert (known.rounded == x).all()


def check_scaled(known, power):
    """Assert that all numbers that are known are as well known when they are scaled; return the new bound."""
    scaled = known.scaled(power)
    middle = sum(Fraction(float(part[0])) for part in scaled[:2])
    hi, lo, error = (Fraction(float(part[0])) for part in known)
    for sign in (-1, 0, 1):
        true = (hi + lo + sign * error) * Fraction(2) ** power
        assert abs(true - middle) <= Fraction(float(scaled.error[0]))
    return Fraction(float(scaled.error[0])), error * Fraction(2) ** power


@given(
    st.floats(-1e200, 1e200, allow_subnormal=True),
    st.floats(-1.0, 1.0),
    st.floats(0.0, 1e-308, allow_subnormal=True),
    st.integers(-1100, 300),
)
def test_scaled_numbers_are_known_as_well_as_before(hi, share, error, power):
    # Down to where hi, lo and the error itself are rounded to zero, or to a subnormal number.
    found, wanted = check_scaled(Known(np.array([hi]), np.array([hi * share * 2.0**-54]), np.array([error])), power)
    assert found <= wanted * (1 + 4 * Fraction(U)) + 4 * Fraction(SMALLEST)


def test_what_scaling_rounds_counts_beside_a_large_error_too():
    check_scaled(Known(np.array([1.0]), np.array([0.1 * 2.0**-1020]), np.array([1.0])), -19)


def test_scaling_by_one_changes_nothing():
    known = Known(np.array([1.0]), np.array([1e-17]), np.array([0.0]))
    assert known.scaled(0) is known
    assert known.rounded == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_lengths_whose_squares_are_no_numbers(scale):
    assert length(scale * np.array([3.0, 0.0, -4.0])) == pytest.approx(5.0 * scale, rel=1e-15, abs=0.0)


def test_lengths_of_nothing_and_of_infinity():
    assert length(np.zeros(3)) == 0.0
    assert length(np.zeros(0)) == 0.0
    assert length(np.array([1.0, -np.inf])) == np.inf
