"""Points without a translation: where the form of a graph is definite."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.kernels import exact, projections
from quartbench.linalg.known import Known, U, raised

from .base import Cone, Conic, register_cone


@register_cone
class Centred(Cone):
    """The subspace {Xᵀ1 = 0} of N × d points: no translation.

    Examples
    --------
    >>> form = qb.GraphForm(3, 2, [[0, 1], [1, 2]])
    >>> problem = qb.Problem(form, [[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]], qb.Centred())
    >>> problem.c.reshape(3, 2)[:, 0]
    array([ 2., -1., -1.])
    """

    name = "centred"
    rigorous = True
    metrics = "any"
    subspace = True
    directions = True

    def __init__(self, shape: tuple[int, int] | None = None) -> None:
        self.shape = shape
        if shape is not None:
            self._even = np.full(shape, 1.0 / shape[0])

    def bind(self, form):
        """Take the shape N × d from the form."""
        if len(form.shape) != 2:
            raise ProblemError(f"the cone Centred needs points of shape (N, d), found shape {form.shape}")
        return Centred(form.shape)

    def euclidean(self, x):
        """Return x less its mean point."""
        return _less_sum(x, self._even)

    def project(self, x, metric):
        """Return x − B⁻¹C(CᵀB⁻¹C)⁻¹Cᵀx with C = 1 ⊗ I_d."""
        return self.projector(metric)(x)

    def slice(self, c, metric):
        """Return y ↦ Py + t PB⁻¹c with the t that gives ⟨c,y⟩ = 1."""
        project = self.projector(metric)
        normal = project(metric.solve(c))
        normal = normal / (c @ normal)

        def onto(y):
            y = project(y)
            return y + (1.0 - c @ y) * normal

        return onto

    def projector(self, metric):
        """Return the projection; the d solves of a metric that mixes translations in are done once, here."""
        if metric.keeps_centred:
            return self.euclidean
        points, coordinates = self.shape
        if metric.diagonal is not None:
            weights = 1.0 / metric.diagonal.reshape(self.shape)
            weights /= weights.sum(axis=0)
            return lambda x: _less_sum(x, weights)
        normals = np.kron(np.ones((points, 1)), np.eye(coordinates))
        solved = np.stack([metric.solve(np.ascontiguousarray(column)) for column in normals.T], axis=1)
        inverse = np.linalg.inv(normals.T @ solved)
        return lambda x: x - solved @ (inverse @ x.reshape(self.shape).sum(axis=0))

    def polar_contains(self, c):
        """Say whether all points of c are the same: then c is orthogonal to all centred points."""
        points = c.reshape(self.shape)
        return bool((points == points[0]).all())

    def inner(self, c, x):
        """Return ⟨c,Px⟩ = ⟨c,x⟩ − Σ (Σc)(Σx)/N, coordinate by coordinate, as a pair with its bound."""
        hi, lo, error = exact.dot(c, x)
        lost = 0.0
        for a, b in zip(c.reshape(self.shape).T, x.reshape(self.shape).T, strict=True):
            (c_hi, c_lo, c_error), (x_hi, x_lo, x_error) = exact.total(a.copy()), exact.total(b.copy())
            c_size, x_size = abs(c_hi + c_lo) + c_error, abs(x_hi + x_lo) + x_error
            lost += (c_hi + c_lo) * (x_hi + x_lo) / self.shape[0]
            # Five roundings of the product, one of the sum, and what the totals are not known by.
            error += (8.0 * U * c_size * x_size + c_error * x_size + c_size * x_error) / self.shape[0]
            error += 2.0 * U * abs(lost)
        return hi, lo - lost, 1.01 * error + 2.0 * U * (abs(lo) + abs(lost))

    def outside(self, r, shift=None):
        """Return r less translations, so that hardly any is left: they are orthogonal to all centred points."""
        mean = np.broadcast_to(r.rounded.reshape(self.shape).mean(axis=0), self.shape).reshape(-1)
        hi, lo = exact.add(r.hi, r.lo, -mean)
        return Known(hi, lo, raised(r.error, 4.0 * U * U * (np.abs(r.hi) + np.abs(mean))))

    def shifts(self, c, x, rho, unit):
        """Return none: all of a residual in the subspace counts."""
        return [None]

    def conic(self, dim):
        """Return Xᵀ1 = 0."""
        points, coordinates = self.shape
        return Conic(sp.kron(np.ones((1, points)), sp.identity(coordinates)), [("zero", coordinates)])

    def plant(self, normal, gradient, rng, active):
        """Return the Gaussian point less its mean, without slack."""
        return self.euclidean(normal), 0.0


def _less_sum(x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    # A read-only array, as c is, would compile the kernel anew.
    return projections.centred(x if x.flags.carray else x.copy(), shares)
