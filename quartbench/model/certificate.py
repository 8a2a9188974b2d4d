"""How far from optimal a point can be: lower bounds on f* that need no knowledge of the minimiser.

Weak duality: f* ≥ −ρ*(v) for any v with v − c in the dual cone of K, ρ* the conjugate of ρ, which each form bounds in
its own way (``form.dual_bound``). At x the choice v = ∇ρ(x) + P_K(c − ∇ρ(x)) is feasible, as v − c = P_K(c − ∇ρ) −
(c − ∇ρ) is in K* (Moreau), and tight at the optimum. P_K is the Euclidean projection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quartbench.errors import ProblemError
from quartbench.forms import Form, TermForm
from quartbench.forms.duality import absorb
from quartbench.metrics import Metric

from .problem import Problem

EPS = float(np.finfo(float).eps)

#: Rounding that is at most this share of the gap need not be known better.
LITTLE = 0.05

#: No relative gap below this is claimed.
ROUNDING = 4.0 * EPS


class Certificate(NamedTuple):
    """What is known of a point: f(x), a lower bound on f*, and the gap (f − lower)/|f|, at least (f − f*)/|f*|."""

    value: float
    lower_bound: float
    gap: float


def certifying_metric(form: Form, precision: str = "double") -> Metric | None:
    """Return B⁽⁰⁾ = m^{−½}ΣBᵢ where it can be factored; None where certificates do without."""
    if not (isinstance(form, TermForm) and form.factorable):
        return None
    return form.weighted(form.uniform_weights(), precision)


def certify(
    problem: Problem,
    x: Any,
    metric: Metric | None = None,
    evaluated: tuple[float, np.ndarray, Any] | None = None,
    refine: int = 8,
    trusted: bool = False,
) -> Certificate:
    """Certify a point: f(x), a lower bound on f*, and their relative distance.

    Parameters
    ----------
    problem : Problem
    x : array
        A point of the cone. It is moved to the best point of its ray first, so its scale does not matter.
    metric : Metric, optional
        One with ``tau``, to solve with; without it B⁽⁰⁾ is factored where the form allows, else solved with by
        conjugate gradients.
    evaluated : tuple, optional
        ρ(x), ∇ρ(x) and the image of x, flat, where they are known: that saves a pass.
    refine : int
        Steps of conjugate gradients (a pass each) that sharpen the bound, to little more than the true gap near the
        optimum; with 0 a certificate costs two to four passes and can be tens of times the true gap.
    trusted : bool
        Whether the metric is known to be B(τ) of this very form (or None on purpose): that saves a pass.

    Returns
    -------
    Certificate
    """
    if problem.trivial:
        return Certificate(0.0, 0.0, 0.0)
    form, flat = problem.form, problem.form.flat(x)
    _require_inside(problem, flat)
    rho, gradient, image = form.evaluate(flat) if evaluated is None else evaluated
    scale = problem.best_scale(rho, problem.inner(flat))
    if scale == 0.0:
        return Certificate(0.0, -np.inf, np.inf)
    value = -0.75 * scale * problem.inner(flat)
    flat, image, gradient = scale * flat, scale * image, scale**3 * gradient
    residuals = _residuals(problem, flat, gradient)
    if not (trusted or belongs(metric, form, residuals[0])):
        metric = certifying_metric(form)
    lower = max(form.dual_bound(image, gradient, residual, metric, refine) for residual in residuals)
    lower -= _rounding(form, flat, image, gradient, value, LITTLE * (value - lower))
    return Certificate(value, lower, gap(value, lower))


def certify_columns(
    form: TermForm,
    c: np.ndarray,
    x: np.ndarray,
    image: np.ndarray,
    gradient: np.ndarray,
    metric: Metric,
) -> np.ndarray:
    """Return lower bounds on f* for many c at once: those of :func:`certify` in free space, unrefined.

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
    bounds = np.empty(inner.size)
    for j in range(inner.size):
        column = np.ascontiguousarray(image[:, j])
        bound = -absorb(form.dual_value(form.gradient_weights(column) + correction[:, j]), leftover[j])
        little = LITTLE * (values[j] - bound)
        bounds[j] = bound - _rounding(form, x[:, j], column, gradient[:, j], values[j], little)
    return bounds


def _require_inside(problem: Problem, x: np.ndarray) -> None:
    """Raise for a point outside the cone: its f may be below f*, and would look optimal."""
    if problem.cone.whole or not problem.form.cone.whole:  # where ρ does not see what is outside, nor does f
        return
    distance, norm = np.linalg.norm(x - problem.cone.euclidean(x)), np.linalg.norm(x)
    if distance > 1e-12 * norm:
        raise ProblemError(
            f"x must lie in the cone {problem.cone!r}, found it outside by {distance / norm:.2g} of its norm"
        )


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


def _residuals(problem: Problem, x: np.ndarray, gradient: np.ndarray) -> list[np.ndarray]:
    """Return choices of w with w − (c − ∇ρ(x)) in the dual cone: P_K(dx + c − ∇ρ) − dx for d = 0 and one d > 0.

    Both are feasible (Moreau). With d = 0 the bound on a cone is short of f* by the first power of the residual where x
    is inside; with d of the order of the Hessian, w is the residual there, and the bound short by its square.
    """
    residual = problem.c - gradient
    if problem.cone.subspace:
        return [problem.cone.euclidean(residual)]
    shift = 0.1 * float(np.linalg.norm(gradient) / np.linalg.norm(x)) * x
    return [problem.cone.euclidean(residual), problem.cone.euclidean(shift + residual) - shift]


def belongs(metric: Metric | None, form: Form, v: np.ndarray) -> bool:
    """Say whether the metric is B(τ) of this very form and scale, by ⟨z,B(τ)z⟩ = ⟨z,v⟩ at z = B⁻¹v."""
    if metric is None or metric.tau is None or not isinstance(form, TermForm) or metric.tau.size != form.terms:
        return False
    z = metric.solve(v)
    return bool(np.isclose(metric.tau @ form.term_squares(form.image(z)), z @ v, rtol=1e-4))
