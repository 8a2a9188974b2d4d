"""Symmetric NMF by extrapolated DC steps, each a single sweep of coordinate descent on the convex model."""

from __future__ import annotations

import numpy as np

from quartbench.errors import whole_number
from quartbench.kernels import coordinates

from .contract import Iterate, Method, register
from .matrices import MatrixMisfit, require_factors

#: The extrapolation at first, its growth after a step that lowered F, and its shrinkage after one that did not.
FIRST, GROWTH, SHRINK = 0.7, 1.2, 0.7

#: The limit of the extrapolation grows more slowly.
LIMIT_GROWTH = 1.1

#: Decreases of F below this share of ‖M‖² are rounding; so many steps in a row without more end the run.
ROUNDING, PATIENCE = 1e-16, 5


@register("cd")
class CD(Method):
    """DC for symmetric NMF with one sweep of coordinate descent per step, extrapolated; monotone.

    Problem
    -------
    min F(X) = ‖XXᵀ − M‖²_F over X ≥ 0.

    Algorithm
    ---------
    F = (ρ + 2σ‖X‖²) − φ_σ with φ_σ(X) = 2⟨(M + σI)X,X⟩ − ‖M‖², convex for σ ≥ −λ_min(M); σ = 0 until F rises, which
    shows that M is indefinite.

    1. Y = Xₖ + β(Xₖ − Xₖ₋₁), C = 4(M + σI)Y, known from products with X, as they are linear.
    2. Xₖ₊₁ is max(Y, 0) after one sweep that minimises ρ(X) + 2σ‖X‖² − ⟨C,X⟩ over one coordinate after another: each a
       cubic, O(r) operations.
    3. One product MXₖ₊₁ gives F. Where it rose, β shrinks and the step is made again from Xₖ without extrapolation.

    Guarantee
    ---------
    F falls at every step, and X is nonnegative throughout.

    Reference
    ---------
    Vandaele, Gillis, Lei, Zhong & Dhillon, *Efficient and non-convex coordinate descent for symmetric nonnegative
    matrix factorization*, IEEE Trans. Signal Process. 2016, for the cubics; Ang & Gillis, *Accelerating nonnegative
    matrix factorization algorithms using extrapolation*, Neural Comput. 2019, for β. Sweeps on the DC model are this
    project's.

    Parameters
    ----------
    sweeps : int
        Sweeps per step. They cost O(nr²), a product with a dense M O(n²r).

    Examples
    --------
    >>> M = qb.instances.partition_similarity(30, 3, p_in=0.9, p_out=0.05, seed=0).matrix
    >>> problem = qb.inverse.Problem(qb.GramForm(30, 3), M, qb.Orthant())
    >>> found = qb.inverse.solve(problem, method=qb.inverse.CD(), tol=1e-4)
    >>> found.success, bool((found.x >= 0).all())
    (True, True)
    """

    def __init__(self, sweeps: int = 1) -> None:
        self.sweeps = whole_number(sweeps, "sweeps")

    def prepare(self, problem):
        """Raise for other problems than XXᵀ ≈ M over the orthant."""
        require_factors(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield X₀, X₁, …; one pass each, two where an extrapolation failed."""
        misfit = problem.misfit
        sigma = 0.0
        at = misfit.evaluate(start)
        yield Iterate(at)
        before, beta, limit, idle = at, 0.0, 1.0, 0
        while idle < PATIENCE:
            ahead = at.image + beta * (at.image - before.image)
            after = self._swept(misfit, ahead, sigma)
            if after.value > at.value and beta > 0.0:
                limit, beta = beta, SHRINK * beta
                after = self._swept(misfit, at.image, sigma)
            elif beta > 0.0:
                beta, limit = min(limit, GROWTH * beta), min(1.0, LIMIT_GROWTH * limit)
            else:
                beta = FIRST
            fall = at.value - after.value
            if fall < -ROUNDING * problem.size**2 and (sigma == 0.0 or sigma < misfit.shift()):
                sigma, before, beta = misfit.shift(), at, 0.0  # the model is no bound: M is indefinite
                if sigma > 0.0:
                    continue
            if fall < 0.0:
                return
            idle = 0 if fall > ROUNDING * problem.size**2 else idle + 1
            before, at = at, after
            yield Iterate(at, beta)

    def _swept(self, misfit: MatrixMisfit, image: np.ndarray, sigma: float):
        """Return the point after the sweeps on the model at a point with this image. One pass."""
        x = np.maximum(image[0], 0.0)
        c = 4.0 * (image[1] + sigma * image[0])
        for _ in range(self.sweeps):
            coordinates.convex_sweep(x, c, sigma)
        return misfit.evaluate(x.reshape(-1))
