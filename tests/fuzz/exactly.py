"""f(x) of a point in floating point as a fraction, whether the point is in the cone, and where f* lies.

Nothing here asks the package: forms are written down once more as rows of integers, and f* comes from a planted point,
from singular values, or from ``tests.model.truth``, in 90 digits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

from tests.model import truth

#: Digits of an optimum as text, and the relative error that writing it so may have.
DIGITS, WRITTEN = 50, Fraction(1, 10**48)

#: How far from centred a point may be, relative to its largest entry: no point of floating point is exactly.
CENTRED = 1e-12


class Optimum(NamedTuple):
    """f* is within ``error`` of ``value``."""

    value: Fraction
    error: Fraction

    def written(self) -> list[str]:
        """Return the two numbers as text."""
        with mpmath.workdps(DIGITS):
            return [mpmath.nstr(_mpf(number), DIGITS) for number in self]

    @classmethod
    def read(cls, text: list[str]) -> Optimum:
        """Return what ``written`` wrote, its rounding counted in."""
        value, error = map(Fraction, text)
        return cls(value, error * (1 + WRITTEN) + abs(value) * WRITTEN)


class Integers(NamedTuple):
    """An array of floating point numbers as whole numbers times a power of two."""

    entries: np.ndarray
    power: int

    @classmethod
    def of(cls, array: Any) -> Integers:
        """Return the array, exactly."""
        mantissas, powers = np.frexp(np.asarray(array, dtype=float))
        there = mantissas != 0.0
        least = int(powers[there].min()) if there.any() else 0
        whole = (mantissas * 2.0**53).astype(np.int64).astype(object)
        return cls(whole * 2 ** np.where(there, powers - least, 0).astype(object), least - 53)


def power_of_two(power: int) -> Fraction:
    """Return 2 to the ``power``."""
    return Fraction(2**power) if power >= 0 else Fraction(1, 2**-power)


def fraction(number: mpf) -> Fraction:
    """Return a number of mpmath as it is."""
    sign, mantissa, power, _ = number._mpf_
    return (-1 if sign else 1) * int(mantissa) * power_of_two(power)


def _mpf(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator


class Exact:
    """One problem, exactly: f(x) = ρ(sx) − ⟨c,x⟩ over a cone.

    Parameters
    ----------
    c : array
        Flat.
    cone : {"free", "orthant", "second-order", "centred"}
    scale : float
        s.
    shape : tuple, optional
        N × d, where the cone is that of centred points: f is then that of the point less its mean.
    optimum : Fraction, optional
        f*, where it was planted.
    """

    def __init__(self, c, cone, scale=1.0, shape=None, optimum=None):
        self.c, self.cone, self.scale, self.shape, self.planted = np.asarray(c, float), cone, scale, shape, optimum
        self._c = Integers.of(self.c)

    def rho(self, x: np.ndarray) -> tuple[int, int]:
        """Return ρ of whole numbers x for s = 1, as a whole number and a power of two."""
        raise NotImplementedError

    def value(self, x: Any, power: int = 0, sign: int = 1) -> Fraction:
        """Return f at sign·2^power·x."""
        entries, own = Integers.of(x)
        entries, own, parts = sign * entries, own + power, 1
        if self.cone == "centred":  # N times the point less its mean
            parts = self.shape[0]
            points = entries.reshape(self.shape)
            entries = (parts * points - points.sum(axis=0)).reshape(-1)
        rho, rho_power = self.rho(entries)
        rho = Fraction(self.scale) ** 4 * rho * power_of_two(rho_power + 4 * own) / parts**4
        return rho - int(self._c.entries @ entries) * power_of_two(self._c.power + own) / parts

    def contains(self, x: np.ndarray) -> bool:
        """Say whether a point is in the cone: exactly, but for centred ones."""
        if self.cone == "orthant":
            return bool((x >= 0.0).all())
        if self.cone == "second-order":
            entries = Integers.of(x).entries
            return x[0] >= 0.0 and entries[0] ** 2 >= sum(v * v for v in entries[1:])
        if self.cone == "centred":
            return float(np.abs(x.reshape(self.shape).mean(axis=0)).max()) <= CENTRED * float(np.abs(x).max())
        return True

    def optimum(self) -> Optimum:
        """Return where f* lies."""
        if self.planted is not None:
            return Optimum(self.planted, Fraction(0))
        with mpmath.workdps(truth.DIGITS):
            value, error = self._optimum()
            scale = mpf(self.scale) ** (-mpf(4) / 3)
            # Powers and products round in the last of ninety digits.
            return Optimum(fraction(value * scale), fraction((error + abs(value) * mpf(10) ** -80) * scale))

    def _optimum(self) -> tuple[mpf, mpf]:
        raise NotImplementedError

    def _centred_c(self) -> np.ndarray:
        """Return c less its mean point, in numbers of mpmath, of shape N × d."""
        points = np.array([[mpf(float(v)) for v in row] for row in self.c.reshape(self.shape)], dtype=object)
        return points - points.sum(axis=0) / self.shape[0] if self.cone == "centred" else points


class ExactRows(Exact):
    """ρ(x) = Σ‖Uᵢᵀx‖⁴, by the stacked rows Uᵢᵀ on flat points."""

    def __init__(self, rows, rank, c, cone, **options):
        super().__init__(c, cone, **options)
        self.rows, self.rank = np.asarray(rows, float), rank
        self._rows = Integers.of(self.rows)

    def rho(self, x):
        """Return Σ‖Uᵢᵀx‖⁴."""
        image = (self._rows.entries @ x).reshape(-1, self.rank)
        return int(((image * image).sum(axis=1) ** 2).sum()), 4 * self._rows.power

    def _optimum(self):
        if self.cone != "centred":
            found = truth.truth(self.rows, self.rank, self.c, self.cone)
        else:  # translations cost nothing: the last point stays at 0
            c, kept = self._centred_c(), (self.shape[0] - 1) * self.shape[1]
            if not any(c.flat):
                return mpf(0), mpf(0)
            found = truth.truth(self.rows[:, :kept], self.rank, list(c.flat)[:kept], "free")
        return found.optimum, found.error


class ExactGram(Exact):
    """ρ(X) = ‖XᵀX‖²_F, on free or centred points: f* = −¾ 4^{−1/3} Σσ^{4/3}, σ the singular values of c."""

    def rho(self, x):
        """Return ‖XᵀX‖²_F."""
        x = x.reshape(self.shape)
        return int(((x.T @ x) ** 2).sum()), 0

    def _optimum(self):
        c = self._centred_c()
        singular = mpmath.svd_r(mpmath.matrix(c.tolist()), compute_uv=False)
        power = sum(s ** (mpf(4) / 3) for s in singular)
        # A rank below full leaves singular values of the order of rounding, and they count with a power above one.
        return -mpf(3) / 4 * mpf(4) ** (-mpf(1) / 3) * power, power * mpf(10) ** -70
