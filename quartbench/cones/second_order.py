"""The ice-cream cone."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.kernels import projections

from .base import Cone, Conic, register_cone, rms


@register_cone
class SecondOrder(Cone):
    """The second-order cone {(s, v) : ‖v‖ ≤ s}, in a metric that is a multiple of the identity."""

    name = "second-order"

    def bind(self, form):
        """Raise for points that are not real vectors of length 2 or more."""
        if len(form.shape) != 1 or form.dtype.kind == "c" or form.dim < 2:
            raise ProblemError(
                f"the cone SecondOrder needs real vectors of length ≥ 2, found shape {form.shape} ({form.dtype})"
            )
        return self

    def euclidean(self, x):
        """Return the projection, in closed form."""
        return projections.second_order(x)

    def project(self, x, metric):
        """Return the projection, in closed form."""
        self.require_metric(metric)
        return projections.second_order(x)

    def slice(self, c, metric):
        """Return the projection by the root of a nondecreasing scalar function, compiled."""
        self.require_metric(metric)
        c = np.array(c)
        return lambda y: projections.second_order_slice(y, c)

    def inequality(self):
        """Return s − ‖v‖ and its gradient."""
        return (
            lambda x: x[0] - np.linalg.norm(x[1:]),
            lambda x: np.concatenate([[1.0], -x[1:] / max(np.linalg.norm(x[1:]), 1e-300)]),
        )

    def conic(self, dim):
        """Return x itself in the second-order cone."""
        return Conic(sp.identity(dim, format="csr"), [("second-order", dim)])

    def plant(self, normal, gradient, rng, active):
        """Return a point of the boundary, with slack along the ray of the cone that is orthogonal to it."""
        point = normal.copy()
        point[0] = np.linalg.norm(point[1:])
        opposite = np.concatenate([point[:1], -point[1:]])
        return point, 0.5 * rms(gradient(point)) / rms(point) * opposite
