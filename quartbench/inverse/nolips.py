"""Bregman descent on F: gradient steps relative to ¼‖x‖⁴ + ½‖x‖², whose curvature grows with x as that of F does."""

from __future__ import annotations

import math

import numpy as np

from quartbench.metrics import Metric

from .contract import Iterate, Method, register
from .lines import fall_on

#: By how much a step grows after one that was accepted, and shrinks after one that was not.
GROWTH, SHRINK = 2.0, 0.5

#: Decreases of F below this share of it are rounding.
ROUNDING = 4.0 * float(np.finfo(float).eps)


@register("nolips")
class NoLips(Method):
    """NoLips with an adaptive step: Bregman gradient descent, on any cone.

    Problem
    -------
    min F(x) over K.

    Algorithm
    ---------
    With h(x) = ¼‖x‖⁴ + (σ/2)‖x‖² in the norm of the metric B, σ = ‖x₀‖²:

    1. x⁺ = argmin {⟨∇F(x),u⟩ + D_h(u,x)/λ : u ∈ K} = θ·P_K(p), p = B⁻¹(∇h(x) − λ∇F(x)), where θ solves the cubic
       θ³‖P_K(p)‖² + σθ = 1.
    2. λ doubles after each step, and is halved while D_F(x⁺,x) > D_h(x⁺,x)/λ, which images decide: one pass
       per trial.

    Guarantee
    ---------
    F never rises, and min ‖∇F‖ → 0, as F is smooth relative to h.

    Reference
    ---------
    Bolte, Sabach, Teboulle & Vaisbourd, *First order methods beyond convexity and Lipschitz gradient continuity with
    applications to quadratic inverse problems*, SIAM J. Optim. 2018; Dragomir, d'Aspremont & Bolte, *Quartic
    first-order methods for low-rank minimization*, J. Optim. Theory Appl. 2021.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> found = qb.inverse.solve(problem, method=qb.inverse.NoLips(), max_iter=50)
    >>> bool((np.diff(found.history.value) <= 0).all())
    True
    """

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …."""
        misfit, cone = problem.misfit, problem.cone
        at = misfit.evaluate(start)
        yield Iterate(at)
        square = float(start @ metric.apply(start))
        sigma, step = square, 0.0
        if not square > 0.0:
            return
        while True:
            x = at.point
            square = float(x @ metric.apply(x))
            if step == 0.0:
                step = 0.1 * (square + sigma) * math.sqrt(square) / (metric.dual_norm(at.gradient) or 1.0)
            for _ in range(60):
                p = cone.project((square + sigma) * x - step * metric.solve(at.gradient), metric)
                length = float(p @ metric.apply(p))
                theta = _cubic_root(length, sigma)
                y = theta * p
                moved = misfit.evaluate(y)
                line = misfit.line_to(at.image, moved.image)
                slope = float(at.gradient @ (y - x))
                bregman = _distance(y, x, square, sigma, metric)
                line[1] = slope
                if float(line[2] + line[3] + line[4]) <= bregman / step:
                    break
                step *= SHRINK
            else:
                return
            if fall_on(line, 1.0) <= ROUNDING * at.value:
                return
            at = moved
            yield Iterate(at, step)
            step *= GROWTH


def _cubic_root(length: float, sigma: float) -> float:
    """Return the θ > 0 with θ³·length + σθ = 1."""
    theta = min(1.0 / sigma, length ** (-1.0 / 3.0)) if length > 0.0 else 1.0 / sigma
    for _ in range(60):
        following = theta - (theta**3 * length + sigma * theta - 1.0) / (3.0 * theta**2 * length + sigma)
        if abs(following - theta) <= 1e-15 * theta:
            break
        theta = following
    return theta


def _distance(y: np.ndarray, x: np.ndarray, square: float, sigma: float, metric: Metric) -> float:
    """Return D_h(y,x) = ¼(‖y‖² − ‖x‖²)² + ½(‖x‖² + σ)‖y − x‖², a sum of squares that loses no digits."""
    step = y - x
    cross = float(step @ metric.apply(x + y))
    return 0.25 * cross**2 + 0.5 * (square + sigma) * float(step @ metric.apply(step))
