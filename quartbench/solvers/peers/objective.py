"""Which functions are peers given? f in variables of norm one, on top of what a NumPy user would write for ρ.

That is ``form.plain()``, which counts every read of the rows; the image of the last point is kept. A value and its
gradient are two passes, a Hessian product two more.
"""

from __future__ import annotations

import math

import numpy as np

from quartbench.model import Problem
from quartbench.solvers.contract import Iterate

#: How far a point may be from the cone, relative to its size, before f is computed anew at its projection.
SLIP = 1e-12


class BreakdownError(ArithmeticError):
    """A method asked for f̃ at a point that is not a number: its model broke down."""


class Objective:
    """f̃(z) = f(σz)/|f(σz₀)|, so that z₀ of norm one is the best point on the ray of the start and f̃(z₀) = −1.

    Absolute tolerances and trust radii of other people's methods then mean the same on every problem.

    Parameters
    ----------
    problem : Problem
    start : array of shape (n,)
        A point of the cone with ⟨c,start⟩ = 1.
    """

    def __init__(self, problem: Problem, start: np.ndarray) -> None:
        self.form, self.cone = problem.form, problem.cone
        self.plain = self.form.plain()
        image = self.plain.image(self.form.scale * start)
        rho = self.plain.value(image, self.plain.squares(image))
        s = problem.best_scale(rho, 1.0)
        #: |f(σz₀)|, by which f is divided.
        self.unit = 0.75 * s
        #: σ, by which z is multiplied.
        self.sigma = s * float(np.linalg.norm(start))
        self.z = s * start / self.sigma
        self.factor = self.form.scale * self.sigma
        self.c = (self.sigma / self.unit) * problem.c
        # Where ρ does not see what is outside the subspace, ∇ρ lies in it by itself; else it is projected.
        self._projected = self.cone.subspace and self.form.cone.whole and not self.cone.whole
        self._remember(self.z, s * image)

    def iterate(self, z: np.ndarray, value: float) -> Iterate:
        """Return σz as an iterate, with f at the best point of its ray; ``value`` is f̃(z).

        A point that has left the cone by more than rounding is moved into it, and f computed anew: one pass.
        """
        raw = self.sigma * z
        point = self.cone.euclidean(raw)
        if point is not raw and np.abs(point - raw).max() > SLIP * np.abs(raw).max():
            z = point / self.sigma
            value = self.value(z)
        inner = float(self.c.dot(z))
        if inner > 0.0 and value + inner > 0.0:
            value = -0.75 * inner * (inner / (4.0 * (value + inner))) ** (1.0 / 3.0)
        return Iterate(point, self.unit * value)

    def magnify(self, factor: float) -> None:
        """Make f̃ so many times larger from now on."""
        self.unit /= factor
        self.c = factor * self.c

    def value(self, z: np.ndarray) -> float:
        """Return f̃(z). One pass, none where the last image was taken at z."""
        self._look(z)
        value = self.plain.value(self._image, self._squares) / self.unit - float(self.c.dot(z))
        if math.isnan(value):
            raise BreakdownError
        return value

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """Return ∇f̃(z). One pass after ``value``."""
        self._look(z)
        gradient = self.plain.gradient(self._image, self._squares)
        return self._within((self.factor / self.unit) * gradient) - self.c

    def hessian_product(self, z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return f̃''(z)v. Two passes after ``value``."""
        self._look(z)
        product = self.plain.hessian_product(self._image, self._squares, self.factor * v)
        return self._within((self.factor / self.unit) * product)

    def hessian(self, z: np.ndarray) -> np.ndarray:
        """Return f̃''(z) as a dense matrix by BLAS-3. One pass after ``value``.

        On a subspace it is PHP + γ(I − P), which is as definite there as ρ is and has the same Newton steps.
        """
        self._look(z)
        hessian = self.factor * (self.factor / self.unit) * self.plain.hessian(self._image, self._squares)
        if self.cone.whole or not self.cone.subspace:
            return hessian
        project = self.cone.euclidean
        hessian = np.array([project(row) for row in hessian])
        hessian = np.array([project(column) for column in hessian.T])
        outside = np.eye(len(hessian)) - np.array([project(unit) for unit in np.eye(len(hessian))])
        return hessian + np.trace(hessian) / len(hessian) * outside

    def _look(self, z: np.ndarray) -> None:
        if not (z == self._z).all():
            self._remember(z.copy(), self.plain.image(self.factor * z))

    def _remember(self, z: np.ndarray, image: np.ndarray) -> None:
        self._z, self._image, self._squares = z, image, self.plain.squares(image)

    def _within(self, vector: np.ndarray) -> np.ndarray:
        return self.cone.euclidean(vector) if self._projected else vector
