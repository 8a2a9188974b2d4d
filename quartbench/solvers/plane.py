"""The search that the fast methods share: the best point of a plane span{y,z} inside the cone, exactly.

Up to scale these are the points y + t h with h = z·⟨c,y⟩/⟨c,z⟩ − y, on which ⟨c,·⟩ does not change, and ρ(y + t h) is a
convex quartic in t: its coefficients come from images, its minimiser is the root of a cubic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quartbench.errors import ProblemError
from quartbench.metrics import Metric
from quartbench.model import Problem

from .contract import Iterate, homogenised
from .steps import Evaluated, evaluate

#: A point that misses less than this share of what the best point of the plane gains is as good as that one, and its
#: gradient is known already.
SHARE = 1e-3

#: No method can see changes of ρ below this share of it.
ROUNDING = 1e-15

#: Iterations without a visible decrease after which there is no progress left to make.
PATIENCE = 3


def require_directions(problem: Problem, method: str, dense: bool = False) -> None:
    """Raise for cones in which the fast methods have no directions; those with ``dense`` Hessians have more."""
    if not (problem.cone.directions or (dense and problem.cone.models)):
        raise ProblemError(
            f"the solver {method!r} takes cones with directions (free, centred, orthant), found "
            f"{problem.cone.name!r}; take 'accel-homgd'"
        )


def residual(y: Evaluated, c: np.ndarray) -> np.ndarray:
    """Return μc − ∇ρ(y) with μ = ⟨∇ρ(y),y⟩/⟨c,y⟩: where ρ falls on {⟨c,·⟩ = ⟨c,y⟩}, before any metric. It is ⊥ y."""
    return (4.0 * y.rho / float(c @ y.point)) * c - y.gradient


def fourth_power(x: float) -> float:
    """Return x⁴, infinite where that is too large: a power of Python's raises there."""
    square = x * x
    return square * square


def iterate(
    y: Evaluated,
    c: np.ndarray,
    t: float = math.nan,
    restart: bool = False,
    decrement: float = math.nan,
    dual: Callable | None = None,
) -> Iterate:
    """Return y as the driver takes it, with f at the best point of its ray."""
    value = homogenised(y.rho / fourth_power(float(c @ y.point)))
    return Iterate(y.point, value, t, restart, y[1:], decrement=decrement, dual=dual)


def first(y: Evaluated, c: np.ndarray) -> Iterate:
    """Return the start as the driver takes it; it is certified where its residual is small, as a good one has it."""
    r, size = residual(y, c), float(y.gradient @ y.gradient)
    return iterate(y, c, decrement=float(r @ r) / size if size > 0.0 else math.nan)


def newton_decrement(y: Evaluated, r: np.ndarray, e: np.ndarray) -> float:
    """Return ⟨r,e⟩/(6ρ(y)), the relative gap at y in the quadratic model whose minimiser is y + e."""
    return float(r @ e) / (6.0 * y.rho)


def minimiser(line: list[float], limit: float = math.inf) -> float:
    """Return the t in [0, limit] where a convex quartic, coefficients constant first, is least."""
    _, c1, c2, c3, c4 = line
    if not c1 < 0.0:
        return 0.0

    def slope(t: float) -> float:
        return c1 + t * (2.0 * c2 + t * (3.0 * c3 + t * 4.0 * c4))

    # Newton's step from 0: as long as t, in whatever unit the direction is.
    low, high = 0.0, min((-0.5 * c1 / c2 if c2 > 0.0 else 1.0) or 1.0, limit)
    while slope(high) < 0.0:
        if high == limit:
            return high
        if high > 1e300:  # ρ grows along every line: one without curvature is all rounding
            return 0.0
        low, high = high, min(2.0 * high, limit)
    t = high
    for _ in range(100):  # Newton's method, halving the bracket where it leaves it
        value = slope(t)
        low, high = (t, high) if value < 0.0 else (low, t)
        curvature = 2.0 * c2 + t * (6.0 * c3 + t * 12.0 * c4)
        following = t - value / curvature if curvature > 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) <= 1e-12 * t:
            break
        t = following
    return t


class Step(NamedTuple):
    """Where a search along a direction ended, with its t; and where the direction led: the image of share·z."""

    y: Evaluated
    t: float
    ahead: tuple[Any, float] | None = None


class Plane:
    """Directions and steps in the cone of a problem: what HomCG, HomNewton and HomNewtonCG share.

    Parameters
    ----------
    problem : Problem
        On a cone with ``directions``: free space, the centred subspace, the orthant.
    """

    def __init__(self, problem: Problem) -> None:
        self.form, self.c, self.cone = problem.form, problem.c.copy(), problem.cone
        self.bounded = not problem.cone.subspace

    def free(self, y: Evaluated, r: np.ndarray) -> np.ndarray | None:
        """Return which coordinates may move; None for all."""
        return self.cone.free(y.point, r)

    def solver(self, metric: Metric, free: np.ndarray | None):
        """Return r ↦ B⁻¹r inside the subspace, or the free coordinates."""
        if free is not None:
            diagonal = np.where(free, 1.0 / metric.diagonal, 0.0)
            return lambda v: diagonal * v
        if self.cone.whole:
            return metric.solve
        project = self.cone.projector(metric)
        return lambda v: project(metric.solve(v))

    def step(self, y: Evaluated, r: np.ndarray, e: np.ndarray) -> Step:
        """Return the best point of span{y, y + e} in the cone; one pass, or two where t is not near 1.

        On the orthant y + e is projected first, and shortened until ρ falls towards it.
        """
        z = y.point + e
        if self.bounded:
            z = self.cone.euclidean(z)
            for _ in range(40):
                if r @ (z - y.point) > 0.0 and self.c @ z > 0.0:
                    break
                e = 0.5 * e
                z = self.cone.euclidean(y.point + e)
        inner, there = float(self.c @ y.point), float(self.c @ z)
        gain = float(r @ (z - y.point))
        if not (gain > 0.0 and there > 0.0):
            return Step(y, 0.0)
        share = inner / there
        limit = max(1.0, self.cone.limit(y.point, share * z - y.point))
        found = self._along(y, z, share, -share * gain, limit)
        # Where all of ⟨c,y⟩ is rounding, as for c next to the polar cone, there is no value to compare.
        return found if fourth_power(float(self.c @ found.y.point)) > 0.0 else Step(y, 0.0)

    def _along(self, y: Evaluated, z: np.ndarray, share: float, slope: float, limit: float) -> Step:
        """Search from y through share·z; the slope comes from vectors, as images lose its digits near the solution."""
        form = self.form
        there = evaluate(form, share * z)
        along = there.image - y.image
        line = form.line_from_images(y.image, along).tolist()
        line[1] = slope
        t = minimiser(line, limit)
        best = value_on(line, t)
        if value_on(line, 1.0) - best <= SHARE * (line[0] - best) + ROUNDING * line[0]:
            return Step(there, 1.0, (there.image, share))
        point = y.point + t * (there.point - y.point)
        if self.bounded:
            point = self.cone.euclidean(point)
        return Step(evaluate(form, point), t, (there.image, share))

    def dual(self, y: Evaluated, step: Step, left: np.ndarray | None) -> Callable | None:
        """Return what gives the dual point that the direction from y has paid for; None where there is none.

        With z = y + e, λ = the weights of ∇ρ(y) + ρ''(y)e have Mᵀλ = 4ρ(y)c − r₂, where r₂ is what conjugate gradients
        left of r (``left``; None where z was projected, and nothing is known). Over 4ρ(y)/⟨c,y⟩, that is c nearly.
        """
        form, multiplier = self.form, 4.0 * y.rho / float(self.c @ y.point)
        if step.ahead is None or not multiplier > 0.0:
            return None

        def found():
            image, share = step.ahead
            weights = form.newton_weights(y.image, (1.0 / share) * image)
            if weights is None:
                return None
            return (1.0 / multiplier) * weights, None if left is None or self.bounded else left / multiplier

        return found


class Progress:
    """Says when a method that converges fast has nothing left to gain, so that it need not run on to be sure."""

    def __init__(self) -> None:
        self.least, self.idle = math.inf, 0

    def ended(self, value: float) -> bool:
        """Take the value of an iterate; True after a few that did not fall visibly."""
        if value < self.least - ROUNDING * abs(value):
            self.least, self.idle = value, 0
        else:
            self.idle += 1
        return self.idle >= PATIENCE


def value_on(line: list[float], t: float) -> float:
    """Return the quartic at t."""
    return line[0] + t * (line[1] + t * (line[2] + t * (line[3] + t * line[4])))
