"""No restriction."""

from __future__ import annotations

import scipy.sparse as sp

from .base import Cone, Conic, register_cone


@register_cone
class Free(Cone):
    """The whole space.

    Examples
    --------
    >>> qb.Problem(qb.StackedForm(np.eye(2)), [1.0, 0.0], qb.Free()).cone.whole
    True
    """

    name = "free"
    rigorous = True
    metrics = "any"
    subspace = True
    whole = True
    directions = True

    def euclidean(self, x):
        """Return x."""
        return x

    def project(self, x, metric):
        """Return x."""
        return x

    def slice(self, c, metric):
        """Return y ↦ y + (1 − ⟨c,y⟩)/‖c‖²_* B⁻¹c."""
        normal = metric.solve(c)
        normal = normal / (c @ normal)
        return lambda y: y + (1.0 - c @ y) * normal

    def polar_contains(self, c):
        """Say whether c is zero."""
        return not c.any()

    def outside(self, r, shift=None):
        """Return all of r."""
        return r

    def shifts(self, c, x, rho, unit):
        """Return none: all of a residual counts."""
        return [None]

    def conic(self, dim):
        """Return no condition at all."""
        return Conic(sp.csr_matrix((0, dim)), [])

    def plant(self, normal, gradient, rng, active):
        """Return the Gaussian point itself, without slack."""
        return normal, 0.0
