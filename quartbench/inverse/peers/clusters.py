"""Other people's methods for symmetric NMF: SymHALS, coordinate descent on F itself, projected Barzilai–Borwein."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench.errors import number
from quartbench.inverse.contract import Iterate, Method, register
from quartbench.inverse.matrices import require_factors
from quartbench.inverse.misfits import At
from quartbench.kernels import coordinates

#: Between which bounds a step of Barzilai and Borwein stays, relative to the first.
SHORTEST, LONGEST = 1e-6, 1e6

#: Values that a step may not exceed: the largest of so many, and the share of its slope that it must fall by.
REMEMBERED, ARMIJO = 10, 1e-4


@register("symhals")
class SymHALS(Method):
    """SymHALS: alternating least squares on ‖M − XYᵀ‖² + λ‖X − Y‖², column by column.

    Problem
    -------
    min ‖XXᵀ − M‖²_F over X ≥ 0.

    Algorithm
    ---------
    For every column k: xₖ ← max(0, (Ryₖ + λyₖ)/(‖yₖ‖² + λ)) with R = M − Σ_{l≠k} xₗyₗᵀ; then yₖ in the same way.

    Guarantee
    ---------
    Converges to a critical point for λ large enough; F itself may rise on the way.

    Reference
    ---------
    Zhu, Li, Liu & Li, *Dropping symmetry for fast symmetric nonnegative matrix factorization*, NeurIPS 2018.

    Parameters
    ----------
    coupling : float
        λ relative to the largest entry of M·√n.
    """

    peer = True

    def __init__(self, coupling: float = 0.1) -> None:
        self.coupling = number(coupling, "coupling", 0.0)

    def prepare(self, problem):
        """Raise for other problems than XXᵀ ≈ M over the orthant."""
        require_factors(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield X₀, X₁, …; two passes each, and one for the F that the driver judges by, which is not counted."""
        misfit = problem.misfit
        judge, matrix, shape = misfit.twin(), misfit.matrix, misfit.form.shape
        penalty = self.coupling * float(abs(matrix).max()) * np.sqrt(shape[0])
        x = start.reshape(shape).copy()
        y = x.copy()
        while True:
            yield Iterate(judge.evaluate(x.reshape(-1).copy()))
            misfit.charge(2)
            for one, other in ((x, y), (y, x)):
                product, gram = matrix @ other, other.T @ other
                for k in range(shape[1]):
                    top = product[:, k] - one @ gram[:, k] + one[:, k] * gram[k, k] + penalty * other[:, k]
                    one[:, k] = np.maximum(top / (gram[k, k] + penalty), 0.0)


@register("symnmf-cd")
class ExactCD(Method):
    """Coordinate descent on F itself: the exact minimiser over one entry of X after another, M dense.

    Problem
    -------
    min ‖XXᵀ − M‖²_F over X ≥ 0.

    Algorithm
    ---------
    Along an entry F is a quartic; its least point over x ≥ 0 is a root of a cubic or 0. A sweep costs O(n²r), a pass.

    Guarantee
    ---------
    F never rises.

    Reference
    ---------
    Vandaele, Gillis, Lei, Zhong & Dhillon, *Efficient and non-convex coordinate descent for symmetric nonnegative
    matrix factorization*, IEEE Trans. Signal Process. 2016.
    """

    peer = True

    def prepare(self, problem):
        """Raise for other problems than XXᵀ ≈ M over the orthant."""
        require_factors(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield X₀, X₁, …; one pass each, and one for the F that the driver judges by, which is not counted."""
        misfit = problem.misfit
        judge, matrix = misfit.twin(), misfit.matrix
        dense = np.ascontiguousarray(matrix.toarray() if sp.issparse(matrix) else matrix)
        dense = dense if dense.flags.writeable else dense.copy()
        x = start.reshape(misfit.form.shape).copy()
        while True:
            yield Iterate(judge.evaluate(x.reshape(-1).copy()))
            misfit.charge(1)
            coordinates.exact_sweep(dense, x)


@register("projected-bb")
class ProjectedBB(Method):
    """Projected gradients with the steps of Barzilai and Borwein and a nonmonotone line search.

    Problem
    -------
    min F(x) over a cone onto which one can project.

    Algorithm
    ---------
    x ← P_K(x − t∇F(x)), t = ⟨s,s⟩/⟨s,y⟩ for the last step s and change of gradient y, halved until F has fallen below
    the largest of its last ten values.

    Guarantee
    ---------
    Limit points are stationary.

    Reference
    ---------
    Birgin, Martínez & Raydan, *Nonmonotone spectral projected gradient methods on convex sets*, SIAM J. Optim. 2000.
    """

    peer = True

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …."""
        misfit, project = problem.misfit, problem.cone.euclidean
        at: At = misfit.evaluate(start)
        yield Iterate(at)
        values = [at.value]
        size = float(np.linalg.norm(at.gradient))
        first = t = 0.1 * float(np.linalg.norm(start)) / size if size > 0.0 else 1.0
        while True:
            step = project(at.point - t * at.gradient) - at.point
            slope = float(at.gradient @ step)
            if not slope < 0.0:
                return
            share, bar = 1.0, max(values[-REMEMBERED:])
            while True:
                after = misfit.evaluate(at.point + share * step)
                if after.value <= bar + ARMIJO * share * slope:
                    break
                share *= 0.5
                if share < 1e-12:
                    return
            moved, change = after.point - at.point, after.gradient - at.gradient
            curvature = float(moved @ change)
            t = float(moved @ moved) / curvature if curvature > 0.0 else LONGEST * first
            t = min(max(t, SHORTEST * first), LONGEST * first)
            at = after
            values.append(at.value)
            yield Iterate(at, share)
