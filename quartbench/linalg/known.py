"""Numbers with proven bounds: what is known of a vector, and how bounds are rounded so that they stay bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

#: The unit roundoff: fl(a ∘ b) = (a ∘ b)(1 + δ), |δ| ≤ u.
U = 2.0**-53

#: The smallest positive number, which scaling may round to zero.
SMALLEST = 5e-324


class Known(NamedTuple):
    """Numbers that lie within ``error`` of hi + lo, entry by entry; |lo| is at most u|hi|."""

    hi: np.ndarray
    lo: np.ndarray
    error: np.ndarray

    @property
    def rounded(self) -> np.ndarray:
        """The sum hi + lo, as it comes."""
        return self.hi + self.lo

    def scaled(self, power: int) -> Known:
        """Return 2ᵖ times the numbers; what underflows counts as error."""
        if power == 0:
            return self
        error = raised(np.ldexp(self.error, power), np.full_like(self.error, 3.0 * SMALLEST))
        return Known(np.ldexp(self.hi, power), np.ldexp(self.lo, power), error)

    def times(self, factors: np.ndarray) -> Known:
        """Return each of the numbers times a nonnegative factor: exact in the first parts, three roundings beside."""
        product, slip = _product(self.hi, factors)
        low = self.lo * factors
        second = slip + low
        hi = product + second
        lo = (product - hi) + second  # product + second − hi, exactly (Dekker): |second| is at most a few u|product|
        rounding = 4.0 * U * (np.abs(slip) + np.abs(low)) + 32.0 * SMALLEST
        return Known(hi, lo, raised(np.nextafter(self.error * factors, np.inf), rounding))


#: Splits a number into two of 26 bits (Veltkamp).
SPLIT = 2.0**27 + 1.0


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return fl(ab) and ab − fl(ab), exactly where nothing under- or overflows (Dekker)."""
    product = a * b
    halves = []
    for number in (a, b):
        large = SPLIT * number
        high = large - (large - number)
        halves.append((high, number - high))
    (a_high, a_low), (b_high, b_low) = halves
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def exactly(x: np.ndarray) -> Known:
    """Return numbers that are known exactly."""
    return Known(x, np.zeros_like(x), np.zeros_like(x))


def together(first: Known, second: Known) -> Known:
    """Return the sum of two: exact in the first parts, two roundings in the second, which count as error."""
    total = first.hi + second.hi
    part = total - first.hi
    slip = (first.hi - (total - part)) + (second.hi - part)  # first.hi + second.hi − total, exactly (Knuth)
    low = (slip + first.lo) + second.lo
    hi = total + low
    part = hi - total
    lo = (total - (hi - part)) + (low - part)
    rounding = 4.0 * U * (np.abs(slip) + np.abs(first.lo) + np.abs(second.lo)) + 3.0 * SMALLEST
    return Known(hi, lo, raised(raised(first.error, second.error), rounding))


def up(x: float, steps: int = 1) -> float:
    """Return a number so many steps above x."""
    for _ in range(steps):
        x = math.nextafter(x, math.inf)
    return x


def raised(error: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return error + more, rounded up: a sum that is rounded down would forget what is small."""
    return np.nextafter(error + more, np.inf)


def finite(x: float) -> float:
    """Return x, or infinity where it is no number."""
    return x if x == x else math.inf


def ldexp(x: float, power: int) -> float:
    """Return 2ᵖx, infinite where that is too large."""
    try:
        return math.ldexp(x, power)
    except OverflowError:
        return math.copysign(math.inf, x)


def length(v: np.ndarray) -> float:
    """Return ‖v‖₂, as it comes, also where squares under- or overflow."""
    size = float(np.abs(v).max(initial=0.0))
    return size * float(np.linalg.norm(v / size)) if 0.0 < size < math.inf else size
