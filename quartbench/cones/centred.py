"""Points without a translation: where the form of a graph is definite."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.kernels import projections

from .base import Cone, Conic, register_cone


@register_cone
class Centred(Cone):
    """The subspace {Xᵀ1 = 0} of N × d points: no translation."""

    name = "centred"
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
