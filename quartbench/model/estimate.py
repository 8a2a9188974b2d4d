"""About how far from optimal is a point? A dual bound at the price of a pass or two, with rounding estimated.

Weak duality: f* ≥ −ρ*(v) for any v with v − c in the dual cone of K, ρ* the conjugate of ρ, which each form bounds in
its own way (``form.dual_bound``). At x the choice v = ∇ρ(x) + P_K(c − ∇ρ(x)) is feasible, as v − c = P_K(c − ∇ρ) −
(c − ∇ρ) is in K* (Moreau), and tight at the optimum. P_K is the Euclidean projection. What is claimed to anybody is
proved first, from the dual point found here: see :mod:`.certificate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quartbench.cones import Cone
from quartbench.forms import Form, TermForm
from quartbench.forms.duality import absorb
from quartbench.metrics import Metric

from .problem import Problem

EPS = float(np.finfo(float).eps)

#: Rounding that is at most this share of the gap need not be known better.
LITTLE = 0.05

#: No relative gap below this is claimed.
ROUNDING = 4.0 * EPS


class Estimate(NamedTuple):
    """What is believed of a point: f(x), a lower bound on f*, the gap (f − lower)/|f|, and the dual point behind it."""

    value: float
    lower_bound: float
    gap: float
    dual: Any = None


def certifying_metric(form: Form, precision: str = "double") -> Metric | None:
    """Return a metric B(τ) to correct dual points with; None where certificates do without."""
    return form.correcting(precision) if isinstance(form, TermForm) else None


def estimate(
    problem: Problem,
    x: np.ndarray,
    metric: Metric | None,
    evaluated: tuple[float, np.ndarray, Any] | None = None,
    refine: int = 8,
) -> Estimate:
    """Estimate how far from optimal a flat point of the cone is.

    Parameters
    ----------
    problem : Problem
        Not trivial.
    x : array of shape (n,)
        Moved to the best point of its ray first, so its scale does not matter.
    metric : Metric or None
        B(τ) of the form, to solve with; None for conjugate gradients without a factor.
    evaluated : tuple, optional
        ρ(x), ∇ρ(x) and the image of x, where they are known: that saves a pass.
    refine : int
        Steps of conjugate gradients (a pass each) that sharpen the bound, to little more than the true gap near the
        optimum; with 0 an estimate costs two to four passes and can be tens of times the true gap.
    """
    form, flat = problem.form, x
    rho, gradient, image = form.evaluate(flat) if evaluated is None else evaluated
    scale = problem.best_scale(rho, problem.inner(flat))
    if scale == 0.0:
        return Estimate(0.0, -np.inf, np.inf)
    value = -0.75 * scale * problem.inner(flat)
    flat, image, gradient = scale * flat, scale * image, scale**3 * gradient
    found = (
        form.dual_bound(image, gradient, residual, metric, refine)
        for residual in _residuals(problem, flat, problem.c - gradient)
    )
    lower, dual = max(found, key=lambda pair: pair[0])
    lower -= _rounding(form, flat, image, gradient, value, LITTLE * (value - lower))
    return Estimate(value, lower, gap(value, lower), dual)


def estimate_dual(
    problem: Problem, x: np.ndarray, weights: Any, residual: np.ndarray | None, metric: Callable[[], Metric | None]
) -> tuple[float, Any, Metric | None] | None:
    """Return the bound on f* of a dual point λ that a method found, λ corrected, and the metric that corrected it.

    One pass, two where the residual is not known, and none of them to measure what the correction left: the proof does.
    None where there is nothing to correct it with.

    Parameters
    ----------
    problem : Problem
    x : array of shape (n,)
        A point of the cone near the optimum, the best of its ray.
    weights, residual : Image, array or None
        λ, and c − Mᵀλ where it is known.
    metric : callable
        Gives B(τ) of the form to correct λ with, for forms that cannot without; or None.
    """
    form = problem.form
    if residual is None:
        residual = problem.c - form.adjoint(weights)
    w = _residuals(problem, x, residual)[-1]
    routed, used = form.routed(w), None
    if routed is None:
        used = metric()
        if used is None:
            return None
        routed = form.spread(used, w)
    dual = weights + routed
    return -form.dual_value(dual), dual, used


def estimate_columns(
    form: TermForm,
    c: np.ndarray,
    x: np.ndarray,
    image: np.ndarray,
    gradient: np.ndarray,
    metric: Metric,
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower bounds on f* and the dual points behind them for many c: as :func:`estimate`, free and unrefined.

    Parameters
    ----------
    form : TermForm
    c, x, image, gradient : arrays with one column for each problem
        Points with ⟨c,x⟩ > 0, their images and gradients of ρ.
    metric : Metric
        B(τ) of the form.
    """
    inner = np.einsum("ij,ij->j", c, x)
    terms = image.reshape(form.terms, form.rank, -1)
    squares = np.einsum("irk,irk->ik", terms, terms)
    scale = (inner / (4.0 * np.einsum("ik,ik->k", squares, squares))) ** (1.0 / 3.0)
    values = -0.75 * scale * inner
    image, gradient, x = scale * image, scale**3 * gradient, scale * x
    residual = c - gradient
    tau = np.repeat(metric.tau, form.rank)[:, None]
    correction, left = np.zeros_like(image), residual
    for _ in range(2):  # the second solve is for what a factor in single precision leaves
        correction += tau * form.image_columns(metric.solve_columns(left))
        left = residual - form.adjoint_columns(correction)
    rest = np.sqrt(np.maximum(np.einsum("ij,ij->j", left, metric.solve_columns(left)), 0.0))
    leftover = 2.0 * rest * float(np.linalg.norm(metric.tau)) ** 0.5
    bounds, duals = np.empty(inner.size), np.empty_like(image)
    for j in range(inner.size):
        column = np.ascontiguousarray(image[:, j])
        duals[:, j] = dual = form.gradient_weights(column) + correction[:, j]
        bound = -absorb(form.dual_value(dual), leftover[j])
        little = LITTLE * (values[j] - bound)
        bounds[j] = bound - _rounding(form, x[:, j], column, gradient[:, j], values[j], little)
    return bounds, duals


def gap(value: float, lower_bound: float) -> float:
    """Return the relative gap that f(x) and a lower bound certify: an upper bound on (f(x) − f*)/|f*|."""
    if not value < 0.0:
        return np.inf
    return max((value - lower_bound) / -value, ROUNDING)


def _rounding(form: Form, x: np.ndarray, image: Any, gradient: np.ndarray, value: float, little: float) -> float:
    """Return how much rounding may have lifted the bound, or lowered f(x): what ill-conditioned rows cannot know.

    The products that f adds up each carry their own rounding; sums over m terms multiply their root sum of squares by
    about √m. An estimate, no proof: against long doubles, on 2376 points that had no part in choosing the constants
    (condition numbers to 1e7, m to 1e5), no certificate was false and bounds exceeded f* by at most 0.64 of it. A
    constant in place of √m, or one random image in place of the sum of squares, was not enough.
    """
    root = float(np.sqrt(form.terms))
    per_noise, rest = EPS * (4.0 + 0.5 * root), EPS * (16.0 + root) * abs(value)
    return per_noise * form.rounding_noise(x, image, gradient, (little - rest) / per_noise) + rest


def _residuals(problem: Problem, x: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
    """Return choices of w with w − r in the dual cone, r = c − Mᵀλ: P_K(dx + r) − dx for d = 0 and one d > 0.

    Both are feasible (Moreau). With d = 0 the bound on a cone is short of f* by the first power of r where x is inside;
    with d of the order of the Hessian, w is r there, and the bound short by its square.
    """
    if problem.cone.subspace:
        return [problem.cone.euclidean(r)]
    shift = 0.1 * float(np.linalg.norm(problem.c - r) / np.linalg.norm(x)) * x
    return [problem.cone.euclidean(r), problem.cone.euclidean(shift + r) - shift]


def belongs(metric: Metric, form: Form, cone: Cone) -> bool:
    """Say whether a metric is B(τ) of this very form and scale, by ⟨z,B(τ)z⟩ = ⟨z,v⟩ at z = B⁻¹v, v random."""
    if metric.tau is None or not isinstance(form, TermForm) or metric.tau.size != form.terms:
        return False
    v = cone.euclidean(np.random.default_rng(0).standard_normal(form.dim))
    z = metric.solve(v)
    return bool(np.isclose(metric.tau @ form.term_squares(form.image(z)), z @ v, rtol=1e-4))
