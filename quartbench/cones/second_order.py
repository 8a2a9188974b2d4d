"""The ice-cream cone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.kernels import exact, projections
from quartbench.linalg.known import U, exactly, ldexp, raised, up
from quartbench.linalg.quadratic import boundary_refined, second_order_minimiser
from quartbench.metrics import Cholesky

from .base import Cone, Conic, register_cone, rms


@register_cone
class SecondOrder(Cone):
    """The second-order cone {(s, v) : ‖v‖ ≤ s}, in a metric that is a multiple of the identity.

    Examples
    --------
    >>> problem = qb.Problem(qb.StackedForm(np.eye(3)), [1.0, 3.0, 1.0], qb.SecondOrder())
    >>> x = qb.solve(problem).x
    >>> bool(np.hypot(x[1], x[2]) <= x[0])
    True
    """

    name = "second-order"
    rigorous = True
    models = True

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

    def polar_contains(self, c):
        """Say whether −c is in the cone, exactly."""
        return contains(-c)

    def inside(self, x):
        """Return x, or where it is outside a copy whose first entry is the norm of the others, rounded up."""
        if contains(x):
            return x
        x = x.copy()
        power = math.frexp(float(np.abs(x).max()))[1]  # squares of 1e±200 would leave the range
        near = np.ldexp(x[1:], -power)
        x[0] = up(ldexp(up(math.fsum(exact.norm(near, np.zeros_like(near)))), power))
        return x

    def outside(self, r, shift=None):
        """Return a w with w − r in the cone: P(shift + r) − shift, its first entry raised for rounding.

        K° = −K, so w₀ ≥ r₀ + ‖w_v − r_v‖ is what must be proved, in twice the precision: on the boundary both are large
        and their sum is small.
        """
        w = projections.second_order(r.rounded if shift is None else shift + r.rounded)
        if shift is not None:
            w = w - shift
        hi, lo = exact.add(-r.hi[1:], -r.lo[1:], w[1:])
        # The pairs of w_v − r_v carry two roundings of their second parts: 4u² of the sizes is more than enough.
        error = raised(r.error[1:], 4.0 * U * U * (np.abs(r.hi[1:]) + np.abs(w[1:])))
        distance = exact.norm(hi, lo)
        spread = exact.norm_upper(error, np.zeros_like(error), np.zeros_like(error))
        w[0] = up(math.fsum([r.hi[0], r.lo[0], r.error[0], *distance, spread]))
        return exactly(w)

    def shifts(self, c, x, rho, unit):
        """Return none, one of the order of the Hessian, and a large one along the boundary."""
        if not x.any():
            return [None]
        return [None, 0.4 * rho / float(x @ x) * x, 1e3 * np.abs(c).max() / np.abs(x).max() * x]

    def mirror(self, x):
        """Return (1, −1, …, −1)."""
        return np.where(np.arange(x.size) == 0, 1.0, -1.0)

    def limit(self, point, h):
        """Return the first root of ⟨x,Jx⟩ along the line, J = diag(1, −1, …)."""
        a, b, c = (float(u[0] * v[0] - u[1:] @ v[1:]) for u, v in ((h, h), (point, h), (point, point)))
        c = max(c, 0.0)
        if b >= 0.0 and a >= 0.0:
            return math.inf
        root = math.sqrt(max(b * b - a * c, 0.0))
        # The smaller positive root of at² + 2bt + c, without cancellation.
        if b < 0.0:
            return c / (root - b) if b * b >= a * c else math.inf
        return (b + root) / -a

    def newton_direction(self, hessian, r, point):
        """Return the minimiser of the model over the cone; where H is singular to rounding, that of the whole space."""
        inside = Cholesky.regularised(hessian).solve(r)
        moved = point + inside
        if moved[0] >= np.linalg.norm(moved[1:]):
            return inside
        matrix = np.tril(hessian) + np.tril(hessian, -1).T
        found = second_order_minimiser(matrix, r + matrix @ point)
        return inside if found is None else boundary_refined(matrix, r, point, found - point)

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


def contains(x: np.ndarray) -> bool:
    """Say whether ‖v‖ ≤ s for x = (s, v), exactly."""
    if not x[0] >= 0.0:
        return False
    near = np.ldexp(x, -math.frexp(float(np.abs(x).max()))[1])  # squares of 1e±200 would leave the range
    hi, lo, error = exact.norm(np.ascontiguousarray(near[1:]), np.zeros(x.size - 1))
    excess = math.fsum([hi, lo, -near[0]])
    if abs(excess) > 2.0 * error:
        return excess < 0.0
    return Fraction(float(x[0])) ** 2 >= sum(Fraction(float(v)) ** 2 for v in x[1:])
