"""L-BFGS on F with compiled directions and exact line searches."""

from __future__ import annotations

import numpy as np

from quartbench.errors import ProblemError, whole_number
from quartbench.kernels import quasi

from .contract import Iterate, Method, register, require_subspace
from .lines import fall_on, lowest
from .misfits import At

#: A unit step that gets this share of the best decrease along its line is taken: the other one costs a pass more.
GOOD = 0.7

#: Decreases of F below this share of it are rounding.
ROUNDING = 4.0 * float(np.finfo(float).eps)


@register("lbfgs")
class LBFGS(Method):
    """L-BFGS with exact quartic line searches: one pass per iteration, two where the unit step is poor.

    Problem
    -------
    min F(x) on free space or a subspace.

    Algorithm
    ---------
    1. h = −H∇F(x) by the two-loop recursion over the last ``memory`` pairs, from B⁻¹ scaled by ⟨s,y⟩/⟨y,B⁻¹y⟩; B is
       diagonal.
    2. Evaluate F, ∇F and the image at x + h, one pass. Images are linear: the quartic along h is then known, and where
       its lowest point is much lower, x moves there instead, for one pass more. Where a form does not fuse value and
       gradient, the image of h and the gradient at the lowest point cost the same, and that is done.

    Guarantee
    ---------
    F falls at every step.

    Reference
    ---------
    Liu & Nocedal, *On the limited memory BFGS method for large scale optimization*, Math. Program. 1989.

    Parameters
    ----------
    memory : int
        The pairs that are kept.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> found = qb.inverse.solve(problem, method=qb.inverse.LBFGS(memory=5))
    >>> found.success
    True
    """

    metric = "diagonal"

    def __init__(self, memory: int = 10) -> None:
        self.memory = whole_number(memory, "memory")

    def prepare(self, problem):
        """Raise for cones that are no subspaces."""
        require_subspace(problem, self.name, "method='dc-accelerated', 'nolips' or 'cd'")

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …."""
        misfit, inside = problem.misfit, problem.cone.euclidean
        if metric.diagonal is None:
            raise ProblemError(f"lbfgs needs a diagonal metric ('identity' or 'diagonal'), found {metric.name!r}")
        inverse = 1.0 / metric.diagonal
        at = misfit.evaluate(start)
        yield Iterate(at)
        steps, changes = np.zeros((self.memory, problem.dim)), np.zeros((self.memory, problem.dim))
        count = 0
        while True:
            direction = inside(quasi.lbfgs_direction(at.gradient, steps, changes, count, inverse))
            slope = float(direction @ at.gradient)
            found, t, line = at, 0.0, None
            if slope < 0.0:
                found, t, line = self._searched(misfit, at, direction, slope, count == 0 or not misfit.fused)
            if t == 0.0 or fall_on(line, t) <= ROUNDING * at.value:
                if count == 0:
                    return
                count = 0  # from the gradient once more, in case the pairs misled
                continue
            count = quasi.keep_pair(steps, changes, count, found.point, at.point, found.gradient, at.gradient)
            at = found
            yield Iterate(at, t)

    @staticmethod
    def _searched(misfit, at: At, direction: np.ndarray, slope: float, exact: bool) -> tuple[At, float, np.ndarray]:
        """Return the point that the search takes, its t and the quartic; the lowest, if ``exact``."""
        if exact:
            along = misfit.image(direction)
            line = misfit.line(at.image, along)
        else:
            there = misfit.evaluate(at.point + direction)
            line = misfit.line_to(at.image, there.image)
        line[1] = slope
        t = lowest(line, low=0.0)
        if not exact and fall_on(line, 1.0) >= GOOD * fall_on(line, t) > 0.0:
            return there, 1.0, line
        if t == 0.0:
            return at, 0.0, line
        if not exact:
            along = there.image - at.image
        return misfit.moved(at.point + t * direction, at.image + t * along), t, line
