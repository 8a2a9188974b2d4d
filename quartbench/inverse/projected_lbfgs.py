"""Symmetric NMF by L-BFGS on the entries of X that are free, in a metric that knows how its columns overlap."""

from __future__ import annotations

import numpy as np

from quartbench.errors import whole_number
from quartbench.kernels import factors, quasi

from .contract import Iterate, Method, register
from .lines import fall_on, lowest
from .matrices import require_factors
from .misfits import At
from .problem import Problem

#: The least squared cosine between two columns of X for which the metric knows of them. Clusters of near neighbours
#: have 0.001, and the metric would take half of the time; cosines of images 0.7, and without it three times the steps
#: are taken. A uniform start has 0.56 until columns part, for which it gets so many steps.
OVERLAP, PARTING = 0.3, 10

#: A projected step is taken as it is where the slope at its end is at most this share of that at its start.
FLAT = 0.8

#: Where no descent is found along the path of projections, it is shortened by this factor, so often.
SHORTEN, TRIALS = 0.25, 10

#: Decreases of F below this share of ‖M‖² are rounding; so many steps in a row without more end the run.
ROUNDING, PATIENCE = 1e-16, 5


@register("projected-lbfgs")
class ProjectedLBFGS(Method):
    """L-BFGS over X ≥ 0 for symmetric NMF, on free entries only, in the metric of the rows of X; monotone.

    Problem
    -------
    min F(X) = ‖XXᵀ − M‖²_F over X ≥ 0.

    Algorithm
    ---------
    1. Free are the entries that are positive, or zero with a negative slope. H is that of L-BFGS on them. It starts
       from the inverse of the metric B with the block XᵀX + xᵢxᵢᵀ for every row xᵢ where columns of X overlap, as they
       do for similarities that are all large; else from the identity.
    2. W = max(X − H∇F, 0), one pass. X moves to W where F is lower and nearly flat there; else to the lowest point of
       the quartic F on the line between X and W: images give it without a pass.

    Guarantee
    ---------
    F falls at every step, and X is nonnegative throughout.

    Reference
    ---------
    Bertsekas, *Projected Newton methods for optimization problems with simple constraints*, SIAM J. Control Optim.
    1982, for what is free; Tong, Ma & Chi, *Accelerating ill-conditioned low-rank matrix estimation via scaled gradient
    descent*, J. Mach. Learn. Res. 2021, for the metric XᵀX. To put them together is this project's.

    Parameters
    ----------
    memory : int
        The pairs that are kept.

    Examples
    --------
    >>> M = qb.instances.partition_similarity(30, 3, p_in=0.9, p_out=0.05, seed=0).matrix
    >>> problem = qb.inverse.Problem(qb.GramForm(30, 3), M, qb.Orthant())
    >>> found = qb.inverse.solve(problem, method=qb.inverse.ProjectedLBFGS(), tol=1e-4)
    >>> found.success, bool((found.x >= 0).all())
    (True, True)
    """

    version = 2

    def __init__(self, memory: int = 3) -> None:
        self.memory = whole_number(memory, "memory")

    def prepare(self, problem):
        """Raise for other problems than XXᵀ ≈ M over the orthant."""
        require_factors(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield X₀, X₁, …; one pass each."""
        misfit, rounding = problem.misfit, ROUNDING * problem.size**2
        at = misfit.evaluate(start)
        yield Iterate(at)
        steps, changes = np.zeros((2, self.memory, problem.dim))
        count = idle = 0
        parting = PARTING
        while idle < PATIENCE:
            x, slopes = at.image[0], at.gradient.reshape(at.image[0].shape)
            v = factors.direction(x, slopes, steps, changes, count, 1.0 if parting > 0 else OVERLAP)
            found = _searched(problem, at, x, slopes, v)
            if found is None:
                if count == 0 and parting > 0:
                    return
                count, parting = 0, PARTING  # from the gradient once more, in case the pairs or the metric misled
                continue
            after, t = found
            count = quasi.keep_pair(steps, changes, count, after.point, at.point, after.gradient, at.gradient)
            idle = 0 if at.value - after.value > rounding else idle + 1
            at, parting = after, parting - 1
            yield Iterate(at, t)


def _searched(problem: Problem, at: At, x: np.ndarray, slopes: np.ndarray, v: np.ndarray) -> tuple[At, float] | None:
    """Return a lower point on a line to a projection of X + V, and its place there; None where there is none."""
    misfit, length = problem.misfit, 1.0
    for _ in range(TRIALS):
        ahead, slope = factors.toward(x, slopes, v, length)
        length *= SHORTEN
        if not slope < 0.0:
            continue
        there = misfit.evaluate(ahead.reshape(-1))
        step = there.point - at.point
        if there.value < at.value and abs(float(there.gradient @ step)) <= -FLAT * slope:
            return there, 1.0
        along = there.image - at.image
        line = misfit.line(at.image, along)
        line[1] = slope
        t = lowest(line, low=0.0, high=1.0)
        if t > 0.0:
            image = at.image + t * along
            image[0] = np.maximum(image[0], 0.0)  # rounding
            after = misfit.moved(image[0].reshape(-1), image)
            if fall_on(line, t) > 0.0 and after.value <= at.value:
                return after, t
    return None
