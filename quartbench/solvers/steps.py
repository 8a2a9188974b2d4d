"""The projected gradient step of each objective, and the line search that the methods share.

The search asks one thing of a step from z to y = z + h: is the Bregman distance D(y,z) = φ(y) − φ(z) − ⟨∇φ(z),h⟩ at
most ‖h‖²/(2t)? On a straight line that is Armijo's rule with constant ½; on a cone it is what projected descent needs.
D comes from the five coefficients of τ ↦ ρ(z + τh), hence from images: it costs no pass and, as φ(z) and the slope
cancel on paper, no digits either.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from quartbench.errors import ProblemError
from quartbench.forms import Form, Image
from quartbench.kernels import steps as kernels
from quartbench.metrics import Bounds, Metric
from quartbench.model import Problem

#: A distance below this share of φ is rounding: no step is rejected for it.
NOISE = 0.1 * np.finfo(float).eps

#: Times that a rejected step is shortened at once, by a fifth each.
SHORTENINGS = 200

#: So many rejections of one step mean that the test measures rounding (a second trial passes on a straight line): the
#: step is taken as it is, and t as long as it was.
PATIENCE = 30

#: A step whose distance is above this share of what is allowed is as long as it should be: t does not grow.
TIGHT = 0.9


class Evaluated(NamedTuple):
    """A point with what one pass tells of it."""

    point: np.ndarray
    rho: float
    gradient: np.ndarray
    image: Image


def evaluate(form: Form, point: np.ndarray) -> Evaluated:
    """Return ρ, ∇ρ and the image at a point. One pass."""
    # What Evaluated(…) does, without its call: half a microsecond of the ten that a small iteration takes.
    return tuple.__new__(Evaluated, (point, *form.evaluate_flat(point)))


def required_bounds(metric: Metric) -> Bounds:
    """Return the α and β that a fixed step needs; raise where the metric knows none for this form."""
    bounds = metric.bounds
    if bounds is None:
        raise ProblemError(
            f"a fixed step needs the constant β of the metric, but {metric.name!r} has no bounds on this form; "
            "take a metric by name ('identity', 'uniform', 'lewis') or a line search"
        )
    return bounds


def level_radius(problem: Problem, metric: Metric) -> float:
    """Return R with ‖x‖ ≤ R wherever f(x) ≤ 0: α²‖x‖⁴ ≤ ρ(x) ≤ ⟨c,x⟩ ≤ ‖c‖_*‖x‖."""
    return float(np.cbrt(metric.dual_norm(problem.c) / required_bounds(metric).alpha ** 2))


def level_lipschitz(problem: Problem, metric: Metric, factor: float = 1.0) -> float:
    """Return 12β²R², the Lipschitz constant of ∇f on a ball ``factor`` times as large as that of the level set."""
    return 12.0 * (required_bounds(metric).beta * factor * level_radius(problem, metric)) ** 2


class Step:
    """The map (z, t) ↦ argmin {⟨∇φ(z),y⟩ + ‖y − z‖²/(2t)} over a set; ``straight`` where the set is affine."""

    straight: bool

    def __call__(self, z: Evaluated, t: float) -> tuple[np.ndarray, float]:
        """Return the point y of the step and ‖y − z‖²_B."""
        raise NotImplementedError

    def guess(self, z: Evaluated) -> float:
        """Return φ(z)/‖∇φ(z)‖²_*, a step of the right order."""
        raise NotImplementedError

    def distance(self, line: tuple[float, ...]) -> tuple[float, float]:
        """Return D(y,z) and what counts as rounding beside it, from the coefficients of τ ↦ ρ(z + τ(y − z))."""
        raise NotImplementedError


class RootStep(Step):
    """A step for √ρ on 𝒞 = K ∩ {⟨c,y⟩ = 1}: line 3 of Algorithm 1, line 5 of Algorithm 2."""

    def __init__(self, problem: Problem, metric: Metric) -> None:
        # A copy, as kernels are compiled once more for arrays that cannot be written to, and a problem's c is one.
        cone, self.c, self.metric = problem.cone, problem.c.copy(), metric
        self.straight = cone.subspace
        if self.straight:
            project = cone.projector(metric)
            normal = project(metric.solve(self.c))
            self.share = 1.0 / float(self.c @ normal)
            self.normal = self.share * normal
            if not cone.whole:
                self.ascent = lambda gradient: project(metric.solve(gradient))
            else:
                self.ascent = None if metric.euclidean else metric.solve
        else:
            self.onto = cone.slice(self.c, metric)

    def __call__(self, z, t):
        """Return the minimiser y on 𝒞 of ⟨∇√ρ(z),y⟩ + ‖y − z‖²/(2t), and ‖y − z‖²_B."""
        point, rho, gradient, _ = z
        if self.straight:
            v = gradient if self.ascent is None else self.ascent(gradient)
            y, slope = kernels.slice_step(point, v, gradient, rho, self.c, self.normal, self.share, t)
            return y, t * t * slope
        y = self.onto(point - (0.5 * t / math.sqrt(rho)) * self.metric.solve(gradient))
        h = y - point
        return y, float(h @ self.metric.apply(h))

    def accelerated(
        self, z: Evaluated, t: float, before: np.ndarray, theta: float
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return y, y + θ(y − before), ‖y − z‖²_B and ⟨∇ρ(z), y − before⟩."""
        point, rho, gradient, _ = z
        if self.straight:
            v = gradient if self.ascent is None else self.ascent(gradient)
            y, ahead, slope, uphill = kernels.accelerated_step(
                point, v, gradient, rho, self.c, self.normal, self.share, t, before, theta
            )
            return y, ahead, t * t * slope, uphill
        y, squared = self(z, t)
        ahead, uphill = kernels.extrapolate(y, before, theta, gradient)
        return y, ahead, squared, uphill

    def guess(self, z):
        """Return 4ρ^{3/2}/‖∇ρ‖²_*."""
        return 4.0 * z.rho**1.5 / self.metric.dual_norm(z.gradient) ** 2

    def distance(self, line):
        """Return D for √ρ: [s − c₁(c₁+s)/(2√ρ_z·S)]/S with s = c₂+c₃+c₄ and S = √ρ_z + √ρ_y; all of second order."""
        c0, c1, c2, c3, c4 = line
        second = c2 + c3 + c4
        root = math.sqrt(c0)
        total = root + math.sqrt(max(c0 + c1 + second, 0.0))
        return (second - c1 * (c1 + second) / (2.0 * root * total)) / total, NOISE * root


class PlainStep(Step):
    """A step for f on K: the projected gradient step of Euclidean descent, in the norm of the metric."""

    def __init__(self, problem: Problem, metric: Metric) -> None:
        self.c, self.metric = problem.c, metric
        self.straight = problem.cone.subspace
        self.project = problem.cone.projector(metric)

    def __call__(self, z, t):
        """Return P_K(z − tB⁻¹∇f(z)) and its squared distance from z."""
        slope = z.gradient - self.c
        if self.straight:
            h = t * self.project(self.metric.solve(slope))
            # Slopes of 1e200 have no squares, but short steps; beside the minimiser rounding can make it negative.
            return z.point - h, max(float((t * slope) @ h), 0.0)
        y = self.project(z.point - t * self.metric.solve(slope))
        h = y - z.point
        return y, float(h @ self.metric.apply(h))

    def guess(self, z):
        """Return ρ/‖∇ρ‖²_*."""
        return z.rho / self.metric.dual_norm(z.gradient) ** 2

    def distance(self, line):
        """Return D for f, which is that of ρ: c₂ + c₃ + c₄."""
        return line[2] + line[3] + line[4], NOISE * line[0]


class LineSearch:
    """The step length t, tried once an iteration and shortened only where the test D(y,z) ≤ ‖y − z‖²/(2t) fails.

    A trial point is evaluated with its gradient, so an accepted trial is also the next pass. A rejected one costs one
    pass more, and only one on a straight line, where the same coefficients say how far to go.

    Parameters
    ----------
    form : Form
    step : Step
    z : Evaluated
        Where the search begins. One pass looks at the curvature along the first step there.
    growth : float
        The factor by which t grows after a step that was shorter than it had to be.
    """

    def __init__(self, form: Form, step: Step, z: Evaluated, growth: float) -> None:
        self.form, self.step, self.growth = form, step, growth
        self.line: tuple[float, ...] = ()
        self.ratio = 0.0
        self.rejected, self.tried = 0, 0.0
        self.t = self.used = self._first(z)

    def _first(self, z: Evaluated) -> float:
        """Return 1/L for the curvature L along a short step from z."""
        t = self.step.guess(z)
        y, squared = self.step(z, t)
        if squared <= 0.0:
            return t
        h = y - z.point
        line = self.form.line_from_images(z.image, self.form.image(h)).tolist()
        shrink = 1e-4  # far inside the region where the quartic is its own second-order model
        small = [coefficient * shrink**power for power, coefficient in enumerate(line)]
        distance, _ = self.step.distance(small)
        return 0.5 * squared * shrink**2 / distance if distance > 0.0 else t

    def accepts(self, line: tuple[float, ...], squared: float) -> bool:
        """Say whether a step to y is short enough, and set the next t where it is.

        Parameters
        ----------
        line : five floats
            The coefficients of τ ↦ ρ(z + τ(y − z)).
        squared : float
            ‖y − z‖²_B.
        """
        self.line = line
        distance, noise = self.step.distance(line)
        allowed = self._allowed(squared)
        if distance <= allowed or distance <= noise or self.rejected >= PATIENCE:
            if self.rejected >= PATIENCE:
                self.t = self.tried
            self.rejected = 0
            self.used = self.t
            if distance < TIGHT * allowed:
                self.t *= self.growth
            return True
        if self.rejected == 0:
            self.tried = self.t
        self.rejected += 1
        self.ratio = max(allowed / distance, 0.01)
        return False

    def shorten(self, z: Evaluated, y: np.ndarray, squared: float) -> tuple[np.ndarray, float]:
        """Return a shorter step in place of the rejected one, and its squared length; t becomes its length."""
        if not self.step.straight:
            self.t *= min(0.7, self.ratio)
            return self.step(z, self.t)
        fraction = 0.95 * self.ratio
        for _ in range(SHORTENINGS):  # where numbers have left their range no fraction passes
            if self._passes(fraction, squared):
                break
            fraction *= 0.8
        self.t *= fraction
        return z.point + fraction * (y - z.point), fraction * fraction * squared

    def _passes(self, fraction: float, squared: float) -> bool:
        line = [coefficient * fraction**power for power, coefficient in enumerate(self.line)]
        distance, noise = self.step.distance(line)
        return distance <= self._allowed(fraction * squared) or distance <= noise

    def _allowed(self, squared: float) -> float:
        """Return ‖y − z‖²/(2t); any distance where t has underflowed, as no shorter step is left to try."""
        return squared / (2.0 * self.t) if self.t > 0.0 else math.inf
