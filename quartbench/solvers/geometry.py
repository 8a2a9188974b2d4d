"""The geometries of Bregman methods: a kernel h on a cone, its gradient step and its distance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from quartbench.metrics import Metric
from quartbench.model import Problem

#: Kernels h(x) = (q/4)‖x‖⁴ + (a/2)‖x‖² by name, as (q, a).
KERNELS = {"quartic": (1.0, 0.0), "quartic+quadratic": (1.0, 1.0), "quadratic": (0.0, 1.0)}


class Place(NamedTuple):
    """A point x with Bx and ‖x‖²_B."""

    point: np.ndarray
    dual: np.ndarray
    square: float


class Geometry:
    """h(x) = (q/4)‖x‖⁴ + (a/2)‖x‖² on a cone, or on its part in a ball around 0.

    Parameters
    ----------
    problem : Problem
    metric : Metric
    q, a : float
        The weights of the kernel; one of them is positive.
    radius : float
        Of the ball.
    """

    def __init__(self, problem: Problem, metric: Metric, q: float, a: float, radius: float = math.inf) -> None:
        self.c, self.metric, self.q, self.a, self.radius = problem.c, metric, q, a, radius
        self.project = problem.cone.projector(metric)

    def at(self, point: np.ndarray) -> Place:
        """Return a point with what its norm is made of."""
        dual = self.metric.apply(point)
        return Place(point, dual, float(point @ dual))

    def step(self, gradient: np.ndarray, at: Place, level: float) -> tuple[np.ndarray, Place]:
        """Return argmin ⟨∇f,x⟩ + L D_h(x,x_k) over K from ∇ρ; in the ball it lies on the same ray."""
        v = (self.q * at.square + self.a) * at.point - self.metric.solve(gradient - self.c) / level
        u = self.at(self.project(v))
        sigma = kernel_scale(u.square, self.a) if self.q else 1.0 / self.a
        if sigma * math.sqrt(u.square) > self.radius:
            sigma = self.radius / math.sqrt(u.square)
        new = Place(sigma * u.point, sigma * u.dual, sigma**2 * u.square)
        return new.point, new

    def distance(self, at: Place, new: Place) -> float:
        """Return D_h(x⁺,x) = (q/4)(2b+e)² + ½(q‖x‖²+a)e with b = ⟨x,x⁺−x⟩_B, e = ‖x⁺−x‖²_B: no digits cancel."""
        h = new.point - at.point
        b, e = float(at.dual @ h), float((new.dual - at.dual) @ h)
        return 0.25 * self.q * (2.0 * b + e) ** 2 + 0.5 * (self.q * at.square + self.a) * e


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
