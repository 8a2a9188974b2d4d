"""Newton's method on F: directions by truncated conjugate gradients, the lowest point of every line exactly."""

from __future__ import annotations

import math

import numpy as np

from quartbench.linalg.conjugate_gradients import conjugate_gradients
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

from .contract import Iterate, Method, register, require_subspace
from .lines import fall_on, lowest

#: Residuals of a direction are not driven below this share of their start.
SMALLEST_SHARE = 1e-3

#: The gradient is to fall by this factor a step; where it does not so many times in a row, the true Hessian takes over.
SLOW, PATIENCE = 0.5, 3

#: Steps after which the image is computed afresh: until then it is updated, and each update rounds.
REFRESH = 20

#: Decreases of F below this share of it are rounding.
ROUNDING = 4.0 * float(np.finfo(float).eps)


@register("newton")
class Newton(Method):
    """Truncated Gauss–Newton with an exact quartic line search; the true Hessian where Gauss–Newton is slow.

    Problem
    -------
    min F(x) = Σ (⟨x,Bᵢx⟩ − dᵢ)² on free space or a subspace.

    Algorithm
    ---------
    1. Solve 2JᵀJh ≈ −∇F(x) by conjugate gradients in the metric B, until the residual has fallen by min(forcing,
       ‖∇F‖/‖∇F_before‖). A product is one pass and gives the image of its argument; so the image of h is known.
    2. x ← x + t h for the t where the quartic F(x + t h) is least, from images: no pass. One pass for ∇F there.
    3. Where the gradient does not halve in several steps (data that no x fits), F''(x) takes the place of 2JᵀJ; where
       it curves downwards, conjugate gradients end there and the line search goes on.

    Guarantee
    ---------
    F falls at every step. Where the data are fitted exactly and J has full rank but for symmetries, the gradient
    falls superlinearly.

    Reference
    ---------
    Eisenstat & Walker, *Choosing the forcing terms in an inexact Newton method*, SIAM J. Sci. Comput. 1996; Gao & Xu,
    *Phaseless recovery using the Gauss–Newton method*, IEEE Trans. Signal Process. 2017.

    Parameters
    ----------
    forcing : float
        The largest share of the gradient that a direction may leave.
    products : int
        The most products a direction may take.
    """

    metric = "diagonal"

    def __init__(self, forcing: float = 0.3, products: int = 500) -> None:
        self.forcing, self.products = forcing, products

    def prepare(self, problem):
        """Raise for cones that are no subspaces."""
        require_subspace(problem, self.name, "method='dc-accelerated', 'nolips' or 'cd'")

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; a pass for each product and one for the gradient."""
        misfit = problem.misfit
        project = problem.cone.projector(metric)
        solve = metric.solve if problem.cone.whole else lambda v: project(metric.solve(v))
        at = misfit.evaluate(start)
        yield Iterate(at)
        before, slow, count, a, reason, visible = 0.0, 0, 0, 0.0, "", True
        while True:
            z = solve(-at.gradient)
            size = -float(at.gradient @ z)
            if not size > 0.0:
                return
            ratio = math.sqrt(size / before) if before > 0.0 else 1.0
            slow = slow + 1 if before > 0.0 and ratio > SLOW else 0
            if slow >= PATIENCE and a == 0.0:
                a, slow, reason = 1.0, 0, "the true Hessian took over where Gauss–Newton was slow"
            if not visible and ratio > SLOW:  # F shows no more progress, and neither does the gradient
                return
            before = size
            share = min(self.forcing, max(ratio, SMALLEST_SHARE))
            with blas_threads(ONE_THREAD_WORK):  # vectors are too short to be shared
                found = conjugate_gradients(
                    misfit.products(at, a),
                    -at.gradient,
                    solve,
                    first=z,
                    share=share,
                    products=self.products,
                )
            line = misfit.line(at.image, found.companion)
            line[1] = float(at.gradient @ found.x)
            t = lowest(line)
            visible = fall_on(line, t) > ROUNDING * at.value
            if t == 0.0:
                if a == 0.0:  # once more with the true Hessian, in case Gauss and Newton's matrix misled
                    a, reason = 1.0, "the true Hessian took over where Gauss–Newton found no descent"
                    continue
                return
            count += 1
            x = at.point + t * found.x
            at = misfit.evaluate(x) if count % REFRESH == 0 else misfit.moved(x, at.image + t * found.companion)
            yield Iterate(at, t, reason=reason)
