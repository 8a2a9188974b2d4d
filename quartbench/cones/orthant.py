"""Nonnegative coordinates."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.kernels import projections
from quartbench.linalg.known import exactly, raised
from quartbench.linalg.quadratic import bounded_minimiser
from quartbench.metrics import Cholesky

from .base import Cone, Conic, register_cone, rms


@register_cone
class Orthant(Cone):
    """The nonnegative orthant. Its projection is coordinatewise in a diagonal metric; in another it is a QP.

    Examples
    --------
    >>> problem = qb.Problem(qb.StackedForm(np.eye(2)), [4.0, -1.0], qb.Orthant())
    >>> qb.solve(problem, rel_gap=1e-12).x.round(6)
    array([1., 0.])
    """

    name = "orthant"
    rigorous = True
    metrics = "diagonal"
    directions = True

    def bind(self, form):
        """Raise for complex points: they have no order."""
        if form.dtype.kind == "c":
            raise ProblemError("the cone Orthant needs real points, found complex ones")
        return self

    def euclidean(self, x):
        """Return the positive part."""
        return np.maximum(x, 0.0)

    def project(self, x, metric):
        """Return the positive part."""
        self.require_metric(metric)
        return np.maximum(x, 0.0)

    def slice(self, c, metric):
        """Return the exact projection by sorted breakpoints, O(n log n)."""
        self.require_metric(metric)
        c, diagonal = np.array(c), np.array(metric.diagonal)  # read-only arrays would compile the kernel anew
        return lambda y: projections.orthant_slice(y, c, diagonal)

    def polar_contains(self, c):
        """Say whether no entry of c is positive."""
        return bool((c <= 0.0).all())

    def outside(self, r, shift=None):
        """Return a w ≥ r: max(r, −shift), for a shift ≥ 0 that is zero where x is."""
        top = raised(r.hi, raised(r.lo, r.error))
        return exactly(np.maximum(top, 0.0 if shift is None else -shift))

    def shifts(self, c, x, rho, unit):
        """Return none, one of the order of the Hessian in units of the columns, and all where x is positive."""
        if not x.any():
            return [None]
        return [None, 0.4 * rho / float(np.sum((unit * x) ** 2)) * unit**2 * x, np.where(x > 0.0, 1e300, 0.0)]

    def support(self, x):
        """Return where x is positive."""
        return np.flatnonzero(x > 0.0)

    def free(self, point, r):
        """Return all coordinates but those at zero that r pushes out."""
        return (point > 0.0) | (r > 0.0)

    def limit(self, point, h):
        """Return where the first coordinate reaches zero."""
        out = h < 0.0
        return float((point[out] / -h[out]).min()) if out.any() else math.inf

    def newton_direction(self, hessian, r, point):
        """Return the minimiser of the model over point + e ≥ 0, by block pivoting."""
        return bounded_minimiser(hessian, r, point, lambda part, rest: Cholesky.regularised(part).solve(rest))

    def lower_bounds(self, dim):
        """Return zeros."""
        return np.zeros(dim)

    def conic(self, dim):
        """Return x itself in the nonnegative cone."""
        return Conic(sp.identity(dim, format="csr"), [("nonnegative", dim)])

    def plant(self, normal, gradient, rng, active):
        """Return |normal| with a share ``active`` of zeros, and a positive slack there."""
        point, dim = np.abs(normal), normal.size
        zeros = min(max(round(active * dim), 1), dim - 1)
        where = rng.permutation(dim)[:zeros]
        point[where] = 0.0
        slack = np.zeros(dim)
        slack[where] = rng.uniform(0.1, 1.0, zeros) * rms(gradient(point))
        return point, slack
