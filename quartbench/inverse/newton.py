"""Newton's method on F: directions by truncated conjugate gradients or a factor, the lowest point of every line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from quartbench.errors import number, whole_number
from quartbench.linalg.conjugate_gradients import conjugate_gradients
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

from .contract import Iterate, Method, register, require_subspace
from .lines import fall_on, lowest
from .misfits import At
from .problem import Problem

#: Residuals of a direction are not driven below this share of their start.
SMALLEST_SHARE = 1e-3

#: The gradient is to fall by this factor a step; where it does not so many times in a row, the true Hessian takes over.
SLOW, PATIENCE = 0.5, 5

#: Steps after which the image is computed afresh: until then it is updated, and each update rounds.
REFRESH = 20

#: Decreases of F below this share of it are rounding.
ROUNDING = 4.0 * float(np.finfo(float).eps)

#: The damping of a factor, relative to its mean diagonal: at first, and between which bounds.
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-13, 1e2

#: Factors take over once products have cost this share of what a factor does: where so many were needed, more will be.
PATIENT = 0.1

Solve = Callable[[np.ndarray], np.ndarray]


@register("newton")
class Newton(Method):
    """Truncated Gauss–Newton with an exact quartic line search; the true Hessian, or a factor, where that is slow.

    Problem
    -------
    min F(x) = Σ (⟨x,Bᵢx⟩ − dᵢ)² on free space or a subspace.

    Algorithm
    ---------
    1. Solve 2JᵀJh ≈ −∇F(x) by conjugate gradients in the metric B, until the residual has fallen by min(forcing,
       ‖∇F‖/‖∇F_before‖). A product is one pass and gives the image of its argument; so the image of h is known (for
       graphs it is made at the end, one pass).
    2. x ← x + t h for the t where the quartic F(x + t h) is least, from images: no pass. One pass for ∇F there.
    3. Where the gradient does not halve in several steps (data that no x fits), F''(x) takes the place of 2JᵀJ; where
       it curves downwards, conjugate gradients end there and the line search goes on.
    4. Where products have cost a tenth of what a factor of 2JᵀJ does (rods and bridges of graphs), factors take over:
       h = −(2JᵀJ + λI)⁻¹∇F(x), with λ after Levenberg and Marquardt.

    Guarantee
    ---------
    F falls at every step. Where the data are fitted exactly and J has full rank but for symmetries, the gradient
    falls superlinearly.

    Reference
    ---------
    Eisenstat & Walker, *Choosing the forcing terms in an inexact Newton method*, SIAM J. Sci. Comput. 1996; Gao & Xu,
    *Phaseless recovery using the Gauss–Newton method*, IEEE Trans. Signal Process. 2017; Marquardt, *An algorithm for
    least-squares estimation of nonlinear parameters*, J. SIAM 1963.

    Parameters
    ----------
    forcing : float
        The largest share of the gradient that a direction may leave.
    products : int
        The most products a direction may take.
    direct : bool
        Whether to begin with factors, where the form has them.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> found = qb.inverse.solve(problem, method=qb.inverse.Newton(), start=truth + 0.1)
    >>> found.success, qb.inverse.phase_error(found.x, truth) < 1e-6
    (True, True)
    """

    metric = "diagonal"

    def __init__(self, forcing: float = 0.1, products: int = 500, direct: bool = False) -> None:
        self.forcing = number(forcing, "forcing", 0.0, 1.0, open_low=True)
        self.products, self.direct = whole_number(products, "products"), bool(direct)

    def prepare(self, problem):
        """Raise for cones that are no subspaces."""
        require_subspace(problem, self.name, "method='dc-accelerated', 'nolips' or 'cd'")

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; a pass for each product and one for the gradient, or two for a factor."""
        misfit = problem.misfit
        project = problem.cone.projector(metric)
        # Where F does not see what the cone leaves out, it is enough to leave it out of whole directions.
        form, cone = problem.form, problem.cone
        bare = cone.whole or (form.blind and isinstance(cone, type(form.cone)))
        solve = metric.solve if bare else lambda v: project(metric.solve(v))
        cost = misfit.factor_cost()
        directions = _Factors(problem) if self.direct and cost < math.inf else _Products(problem, solve, self)
        reason = directions.reason
        at = misfit.evaluate(start)
        yield Iterate(at, reason=reason)
        before, slow, count, spent, a, visible = 0.0, 0, 0, 0, 0.0, True
        while True:
            z = solve(-at.gradient)
            size = -float(at.gradient @ z)
            if not size > 0.0:
                return
            ratio = math.sqrt(size / before) if before > 0.0 else 1.0
            if not visible and ratio > SLOW:  # F shows no more progress, and neither does the gradient
                return
            slow = slow + 1 if before > 0.0 and ratio > SLOW else 0
            if slow >= PATIENCE and a == 0.0:
                a, slow, reason = 1.0, 0, "the true Hessian took over where Gauss–Newton was slow"
            before = size
            h, along, taken = directions(at, a, z, ratio)
            line = misfit.line(at.image, along)
            line[1] = float(at.gradient @ h)
            t = lowest(line)
            directions.see(t)
            visible = fall_on(line, t) > ROUNDING * at.value
            if t == 0.0:
                if a == 0.0:  # once more with the true Hessian, in case Gauss and Newton's matrix misled
                    a, before, reason = 1.0, 0.0, "the true Hessian took over where Gauss–Newton found no descent"
                    continue
                return
            spent += taken
            if spent > PATIENT * cost:
                directions, a, spent = _Factors(problem), 0.0, 0
                reason = directions.reason
            count += 1
            x = at.point + t * h
            at = misfit.evaluate(x) if count % REFRESH == 0 else misfit.moved(x, at.image + t * along)
            yield Iterate(at, t, reason=reason)


class _Products:
    """Directions by conjugate gradients."""

    reason = ""

    def __init__(self, problem: Problem, solve: Solve, method: Newton) -> None:
        self.misfit, self.inside, self.solve, self.method = problem.misfit, problem.cone.euclidean, solve, method

    def __call__(self, at: At, a: float, z: np.ndarray, ratio: float) -> tuple[np.ndarray, Any, int]:
        """Return a direction, its image and the products it took; ``z`` is the preconditioned gradient."""
        share = min(self.method.forcing, max(ratio, SMALLEST_SHARE))
        with blas_threads(ONE_THREAD_WORK):  # vectors are too short to be shared
            found = conjugate_gradients(
                self.misfit.products(at, a),
                -at.gradient,
                self.solve,
                first=z,
                share=share,
                products=self.method.products,
            )
        h = self.inside(found.x)
        along = self.misfit.image(h) if found.companion is None else found.companion
        return h, along, len(found.steps)

    def see(self, t: float) -> None:
        """Take the step that was made."""


class _Factors:
    """Directions by a factor of the damped matrix."""

    reason = "factors took over where conjugate gradients were slow"

    def __init__(self, problem: Problem) -> None:
        self.misfit, self.inside, self.damping = problem.misfit, problem.cone.euclidean, FIRST_DAMPING

    def __call__(self, at: At, a: float, z: np.ndarray, ratio: float) -> tuple[np.ndarray, Any, int]:
        """Return a direction and its image."""
        factor = self.misfit.factor(at, a, self.damping) if a else None
        while factor is None:
            factor = self.misfit.factor(at, 0.0, self.damping)
            if factor is None:
                self.damping = min(10.0 * self.damping, MOST_DAMPING)
        h = self.inside(factor.solve(-at.gradient))
        return h, self.misfit.image(h), 0

    def see(self, t: float) -> None:
        """Damp less where the model was right, more where its step was far too long."""
        factor = 0.1 if 0.5 <= t <= 3.0 else 0.5 if t > 3.0 else 4.0
        self.damping = min(max(factor * self.damping, LEAST_DAMPING), MOST_DAMPING)
