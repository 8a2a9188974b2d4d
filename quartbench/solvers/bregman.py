"""Gradient descent in a quartic Bregman geometry: the classical answer to a gradient without a Lipschitz constant."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .contract import Iterate, Solver, choice
from .registry import register
from .steps import NOISE, TIGHT, Evaluated, evaluate, required_bounds

#: So many levels that were too small mean that the test measures rounding: the step is taken as it is.
TRIES = 60


@register("bregman")
class Bregman(Solver):
    """Bregman gradient descent (NoLips) with the kernel ¼‖x‖⁴, or ¼‖x‖⁴ + ½‖x‖².

    Problem
    -------
    min f(x) = ρ(x) − ⟨c,x⟩ over K.

    Algorithm
    ---------
    x_{k+1} = argmin {⟨∇f(x_k),x⟩ + L D_h(x,x_k) : x ∈ K}, h(x) = ¼‖x‖⁴ + (a/2)‖x‖² with a = 0 or 1. With
    v = (‖x_k‖² + a)x_k − B⁻¹∇f(x_k)/L and u = P_K(v) it is x_{k+1} = σu, where σ³‖u‖² + aσ = 1: closed form for a = 0,
    a cubic root for a = 1. L = 12β², for which ρ is smooth relative to h, or a search for an L with
    D_f(x_{k+1},x_k) ≤ L D_h(x_{k+1},x_k).

    Guarantee
    ---------
    f decreases monotonically, and f(x_k) − f* ≤ L D_h(x*,x_0)/k. From the default start D_h(x*,x_0) ≤ ¼‖x*‖⁴ for a = 0,
    so that L = 12β² gives the relative gap κ²/k: f* = −3ρ(x*) and α²‖x*‖⁴ ≤ ρ(x*).

    Reference
    ---------
    Bauschke, Bolte & Teboulle, *A descent lemma beyond Lipschitz gradient continuity*; Lu, Freund & Nesterov,
    *Relatively smooth convex optimization by first-order methods*; Dragomir & Nesterov, §1.3.2.

    Parameters
    ----------
    kernel : {"quartic", "quartic+quadratic"}
        h.
    step : {"adaptive", "fixed"}
        The search for L, or 12β² with the metric's β.
    growth : float
        The factor by which the step 1/L grows after one that was shorter than it had to be.
    """

    def __init__(self, kernel: str = "quartic", step: str = "adaptive", growth: float = 1.05) -> None:
        self.kernel = choice("kernel", kernel, ("quartic", "quartic+quadratic"))
        self.step = choice("step", step, ("adaptive", "fixed"))
        self.growth = growth

    def prepare(self, problem, metric):
        """Compute the bounds that a fixed step needs."""
        if self.step == "fixed":
            required_bounds(metric)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; one pass each with a fixed step, one more for every L that was too small."""
        form, c = problem.form, problem.c
        geometry = _Geometry(problem, metric, 1.0 if self.kernel == "quartic+quadratic" else 0.0)
        rho, gradient, image = form.evaluate(start)
        s = problem.best_scale(rho, 1.0)
        x = Evaluated(s * start, s**4 * rho, s**3 * gradient, s * image)
        at = geometry.at(x.point)
        yield Iterate(x.point, x.rho - s, evaluated=x[1:])
        fixed = self.step == "fixed"
        # The relative smoothness along x itself is 4ρ/‖x‖⁴: a lower bound on L, to begin the search with.
        level = 12.0 * required_bounds(metric).beta ** 2 if fixed else 4.0 * x.rho / at.square**2
        while True:
            for _ in range(TRIES):
                point, new = geometry.step(x, at, level)
                trial, used = evaluate(form, point), level
                if fixed:
                    break
                _, _, c2, c3, c4 = form.line_from_images(x.image, trial.image - x.image).tolist()
                distance, allowed = c2 + c3 + c4, level * geometry.distance(at, new)
                if distance <= max(allowed, NOISE * x.rho):
                    level = level / self.growth if distance < TIGHT * allowed else level
                    break
                level *= max(1.4, 1.05 * distance / allowed) if allowed > 0.0 else 2.0
            x, at = trial, new
            yield Iterate(x.point, x.rho - float(c @ x.point), 1.0 / used, evaluated=x[1:])


class _Place(NamedTuple):
    """A point x with Bx and ‖x‖²_B."""

    point: np.ndarray
    dual: np.ndarray
    square: float


class _Geometry:
    """h(x) = ¼‖x‖⁴ + (a/2)‖x‖² on a cone: its gradient step and its Bregman distance."""

    def __init__(self, problem, metric, a: float) -> None:
        self.c, self.metric, self.a = problem.c, metric, a
        self.project = problem.cone.projector(metric)

    def at(self, point: np.ndarray) -> _Place:
        dual = self.metric.apply(point)
        return _Place(point, dual, float(point @ dual))

    def step(self, x: Evaluated, at: _Place, level: float) -> tuple[np.ndarray, _Place]:
        """Return argmin ⟨∇f(x_k),x⟩ + L D_h(x,x_k) over K."""
        v = (at.square + self.a) * at.point - self.metric.solve(x.gradient - self.c) / level
        u = self.at(self.project(v))
        sigma = kernel_scale(u.square, self.a)
        new = _Place(sigma * u.point, sigma * u.dual, sigma**2 * u.square)
        return new.point, new

    def distance(self, at: _Place, new: _Place) -> float:
        """Return D_h(x⁺,x) = ¼(2b+e)² + ½(‖x‖²+a)e with b = ⟨x,x⁺−x⟩_B, e = ‖x⁺−x‖²_B: no digits cancel."""
        h = new.point - at.point
        b, e = float(at.dual @ h), float((new.dual - at.dual) @ h)
        return 0.25 * (2.0 * b + e) ** 2 + 0.5 * (at.square + self.a) * e


def kernel_scale(square: float, a: float) -> float:
    """Return the σ ≥ 0 with σ³‖u‖² + aσ = 1 from ‖u‖² ≥ 0.

    σ = w/‖u‖^{2/3} with w³ + pw = 1, p = a/‖u‖^{2/3}: w = 2√(p/3) sinh(asinh(½(p/3)^{−3/2})/3), then one Newton step.
    """
    if square == 0.0:
        return 1.0 / a if a > 0.0 else 0.0
    unit = square ** (-1.0 / 3.0)
    if a == 0.0:
        return unit
    p = a * unit
    root = math.sqrt(p / 3.0)
    w = 2.0 * root * math.sinh(math.asinh(0.5 / root**3) / 3.0)
    return unit * (w - (w**3 + p * w - 1.0) / (3.0 * w**2 + p))
