"""How far from optimal a point can be: lower bounds on f* that need no knowledge of the minimiser.

Weak duality: for any λ with ΣUᵢλᵢ − c in the dual cone of K, f* ≥ −3Σ(‖λᵢ‖/4)^{4/3}, as 3(‖λ‖/4)^{4/3} is the
conjugate of ‖s‖⁴. At x the choice λᵢ = 4‖Uᵢᵀx‖²Uᵢᵀx + τᵢUᵢᵀB⁻¹P_K(c − ∇ρ(x)), B = ΣτᵢUᵢUᵢᵀ, is feasible, as
ΣUᵢλᵢ − c = P_K(c − ∇ρ) − (c − ∇ρ) is in K* (Moreau), and tight at the optimum. P_K is the Euclidean projection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from quartbench.errors import ProblemError
from quartbench.kernels import images

from .forms import Form, GramForm, GraphForm
from .metrics import Metric, weighted
from .problem import Problem

#: Dimension up to which B⁽⁰⁾ is formed and factored to certify; beyond, conjugate gradients solve with it.
DENSE_DIMENSION = 6000

EPS = float(np.finfo(float).eps)

#: Rounding that is at most this share of the gap need not be known better.
LITTLE = 0.05

#: Rounds of refinement of a solve with B(τ), and the share of the right-hand side that needs none.
REFINEMENTS, SMALL_REST = 3, 1e-9

#: No relative gap below this is claimed.
ROUNDING = 4.0 * EPS


class Certificate(NamedTuple):
    """What is known of a point: f(x), a lower bound on f*, and the gap (f − lower)/|f|, at least (f − f*)/|f*|."""

    value: float
    lower_bound: float
    gap: float


def certificate_metric(form: Form) -> Metric | None:
    """Return B⁽⁰⁾ = m^{−½}ΣBᵢ where it can be factored; None where certificates do without."""
    if isinstance(form, GramForm):
        return None
    graph = form.shape != (form.dim,) and form.dtype.kind != "c"
    if not graph and form.dim > DENSE_DIMENSION:
        return None
    return weighted(form, np.full(form.terms, form.terms**-0.5))


def certify(
    problem: Problem,
    x: Any,
    metric: Metric | None = None,
    evaluated: tuple[float, np.ndarray, np.ndarray] | None = None,
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
        One with ``tau``, to solve with; without it B⁽⁰⁾ is factored (n ≤ 6000) or solved with by conjugate gradients.
    evaluated : tuple, optional
        ρ(x), ∇ρ(x) and the image of x, flat, where they are known: that saves a pass.
    refine : int
        Steps of conjugate gradients (a pass each) that sharpen the bound, to little more than the true gap near the
        optimum; with 0 a certificate costs two to four passes and can be tens of times the true gap.
    trusted : bool
        Whether the metric is known to be B(τ) of this very form: that saves a pass.

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
    if metric is None or not (trusted or _belongs(metric, form, residuals[0])):
        metric = certificate_metric(form)
    lower = max(_lower_bound(form, image, gradient, residual, metric, refine) for residual in residuals)
    lower -= _rounding(form, flat, image, gradient, value, LITTLE * (value - lower))
    return Certificate(value, lower, gap(value, lower))


def certify_block(
    form: Form,
    c: np.ndarray,
    x: np.ndarray,
    image: np.ndarray,
    gradient: np.ndarray,
    metric: Metric,
    ratio: float = 1.0,
) -> np.ndarray:
    """Return lower bounds on f* for many c at once: those of :func:`certify` on dense rows in free space, unrefined.

    Parameters
    ----------
    form : StackedForm
    c, x, image, gradient : arrays with one column a problem
        Points with ⟨c,x⟩ > 0, their images and gradients of ρ.
    metric : Metric
        B(τ) of the rows 1/``ratio`` times those of the form, with ``solve_columns``.
    """
    inner = np.einsum("ij,ij->j", c, x)
    terms = image.reshape(form.terms, form.rank, -1)
    squares = np.einsum("irk,irk->ik", terms, terms)
    scale = (inner / (4.0 * np.einsum("ik,ik->k", squares, squares))) ** (1.0 / 3.0)
    values = -0.75 * scale * inner
    image, gradient, x = scale * image, scale**3 * gradient, scale * x
    residual = c - gradient
    tau = np.repeat(metric.tau, form.rank)[:, None] / ratio**2
    correction, left = np.zeros_like(image), residual
    for _ in range(2):  # the second solve is for what a factor in single precision leaves
        correction += tau * (form.rows @ (form.scale * metric.solve_columns(left)))
        left = residual - form.scale * (form.rows.T @ correction)
    rest = np.sqrt(np.maximum(np.einsum("ij,ij->j", left, metric.solve_columns(left)), 0.0))
    leftover = 2.0 * rest * float(np.linalg.norm(tau[:: form.rank])) ** 0.5
    bounds = np.empty(inner.size)
    for j in range(inner.size):
        column = np.ascontiguousarray(image[:, j])
        weights = np.empty_like(column)
        images.gradient_weights(column, form.rank, weights)
        bound = -_absorb(images.dual_value(weights + correction[:, j], form.rank), leftover[j])
        little = LITTLE * (values[j] - bound)
        bounds[j] = bound - _rounding(form, x[:, j], column, gradient[:, j], values[j], little)
    return bounds


def _require_inside(problem: Problem, x: np.ndarray) -> None:
    """Raise for a point outside the cone: its f may be below f*, and would look optimal."""
    if problem.cone.name == "free" or isinstance(problem.form, GraphForm):  # f of a graph feels no translation
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


def _rounding(form: Form, x: np.ndarray, image: np.ndarray, gradient: np.ndarray, value: float, little: float) -> float:
    """Return how much rounding may have lifted the bound, or lowered f(x): what ill-conditioned rows cannot know.

    The products 4‖sᵢ‖²sᵢ·Uᵢⱼxⱼ add up to 4ρ(x), and each carries its own rounding; sums over m terms multiply their
    root sum of squares by about √m. An estimate, no proof: against long doubles, on 2376 points that had no part in
    choosing the constants (condition numbers to 1e7, m to 1e5), no certificate was false and bounds exceeded f* by at
    most 0.64 of it. A constant in place of √m, or one random image in place of the sum of squares, was not enough.
    A bound on the sum, with max|xⱼ| for every |xⱼ|, needs no pass and is taken where even that is ``little``.
    """
    root = float(np.sqrt(form.terms))

    def allowance(noise: float) -> float:
        return EPS * ((4.0 + 0.5 * root) * float(noise) + (16.0 + root) * abs(value))

    if isinstance(form, GramForm):
        return allowance(np.linalg.norm(gradient * x))
    weights = np.empty_like(image)
    images.gradient_weights(image, form.rank, weights)
    largest = float(np.abs(weights).max())
    weights /= largest
    bound = allowance(largest * np.linalg.norm(weights * _row_norms(form)) * np.abs(x).max())
    if bound <= little:
        return bound
    return allowance(largest * np.sqrt(form.column_squares(weights**2) @ x**2))


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


def _lower_bound(
    form: Form,
    image: np.ndarray,
    gradient: np.ndarray,
    residual: np.ndarray,
    metric: Metric | None,
    refine: int,
) -> float:
    if isinstance(form, GramForm):
        # ρ is the fourth power of the Schatten 4-norm, so its conjugate is that of the singular values.
        singular = scipy.linalg.svdvals(form.native(gradient + residual)) / form.scale
        return -3.0 * float(((singular / 4.0) ** (4.0 / 3.0)).sum())
    weights = np.empty_like(image)
    images.gradient_weights(image, form.rank, weights)
    correction = _solve(form, residual, metric)
    bound = -_absorb(images.dual_value(weights + correction.image, form.rank), correction.leftover)
    if refine == 0 or not residual.any():
        return bound
    curved = _newton_weights(form, image, residual, metric, refine)
    correction = _solve(form, residual - form.adjoint(curved), metric)
    refined = -_absorb(images.dual_value(weights + curved + correction.image, form.rank), correction.leftover)
    return max(bound, refined)


def _newton_weights(form: Form, image: np.ndarray, v: np.ndarray, metric: Metric | None, steps: int) -> np.ndarray:
    """Return the weights wᵢ of ρ''(x)z = ΣUᵢwᵢ for z near ρ''(x)⁻¹v, by a few steps of conjugate gradients.

    They move λ to what a Newton step would have, so the bound is short of f* by less than f(x) is above it, while the
    weights τᵢUᵢᵀB⁻¹v spend as much on terms that are almost zero at x, whose conjugate is steep.
    """
    if metric is not None:
        precondition = metric.solve
    else:
        diagonal = gram_diagonal(form)

        def precondition(r):
            return r / diagonal

    z, r = np.zeros_like(v), v
    p = y = precondition(r)
    ry = first = r @ y
    for _ in range(steps):
        hp = form.hessian_product_from_image(image, p)
        curvature = p @ hp
        if not curvature > 0.0:
            break
        z = z + ry / curvature * p
        r = r - ry / curvature * hp
        y = precondition(r)
        ry, before = r @ y, ry
        if ry <= 1e-4 * first:
            break
        p = y + ry / before * p
    weights = np.empty_like(image)
    images.hessian_weights(image, form.image(z), form.rank, weights)
    return weights


class _Correction(NamedTuple):
    """τᵢUᵢᵀz for z ≈ B⁻¹v, and a bound on ‖v − Bz‖ in the norm dual to ρ^{1/4}."""

    image: np.ndarray
    leftover: float


def _belongs(metric: Metric, form: Form, v: np.ndarray) -> bool:
    """Say whether the metric is B(τ) of this very form and scale, by ⟨z,B(τ)z⟩ = ⟨z,v⟩ at z = B⁻¹v."""
    if metric.tau is None or metric.tau.size != form.terms:
        return False
    z = metric.solve(v)
    return bool(np.isclose(metric.tau @ images.square_norms(form.image(z), form.rank), z @ v, rtol=1e-4))


def _solve(form: Form, v: np.ndarray, metric: Metric | None) -> _Correction:
    """Solve B(τ)z = v, again for what rounding left where that is much, and measure the rest."""
    if metric is None:
        return _conjugate_gradients(form, v)
    tau = np.repeat(metric.tau, form.rank)
    weighted_image = tau * form.image(metric.solve(v))
    left = v - form.adjoint(weighted_image)
    size, rest = metric.dual_norm(v), metric.dual_norm(left)
    for _ in range(REFINEMENTS):
        if rest <= SMALL_REST * size:
            break
        finer = weighted_image + tau * form.image(metric.solve(left))
        left = v - form.adjoint(finer)
        rest, before = metric.dual_norm(left), rest
        if not rest < before:
            rest = before
            break
        weighted_image = finer
    # ‖x‖²_{B(τ)} ≤ ‖τ‖₂√ρ(x), so ⟨left,x⟩ ≤ ‖left‖_{B⁻¹}‖τ‖₂^½ ρ(x)^{1/4}. A factor in single precision knows the
    # dual norm to a per cent or so: twice as much is safe.
    single = getattr(metric, "lower", v).dtype.char in "fF"
    return _Correction(weighted_image, (1.0 + single) * rest * float(np.linalg.norm(metric.tau)) ** 0.5)


def _absorb(dual: float, leftover: float) -> float:
    """Return the largest |f*| with |f*| ≤ dual + leftover·(|f*|/3)^{1/4}, as ρ(x*) = |f*|/3.

    The map is increasing and concave, so its fixed point is reached from above by iterating from anything larger.
    """
    bound = 2.0 * dual + 2.0 * leftover ** (4.0 / 3.0)
    for _ in range(100):
        bound, before = dual + leftover * (bound / 3.0) ** 0.25, bound
        if before - bound <= 1e-16 * bound:
            break
    return bound


def _conjugate_gradients(form: Form, v: np.ndarray) -> _Correction:
    """Solve B⁽⁰⁾z = v by Jacobi-preconditioned conjugate gradients, for forms too large to factor.

    The leftover's ‖·‖_{B⁻¹} is bounded through the smallest Ritz value of the run, halved for safety.
    """
    tau = form.terms**-0.5
    diagonal = gram_diagonal(form) * tau
    z_image = np.zeros(form.terms * form.rank)
    r = v.copy()
    if not r.any():
        return _Correction(z_image, 0.0)
    p = y = r / diagonal
    ry = first = r @ y
    alphas, betas = [], []
    for _ in range(4 * form.dim):
        p_image = form.image(p)
        bp = form.adjoint(tau * p_image)
        alpha = ry / (p @ bp)
        z_image += alpha * p_image
        r = r - alpha * bp
        y = r / diagonal
        ry, before = r @ y, ry
        alphas.append(alpha)
        betas.append(ry / before)
        if ry <= 1e-26 * first:
            break
        p = y + betas[-1] * p
    ritz = ritz_values(np.array(alphas), np.array(betas))[0]
    left = v - form.adjoint(tau * z_image)
    return _Correction(tau * z_image, float(np.sqrt(left @ (left / diagonal) / (0.5 * ritz))))


def ritz_values(steps: np.ndarray, ratios: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest Ritz value of conjugate gradients with steps αₖ and residual ratios βₖ."""
    main = 1.0 / steps
    main[1:] += ratios[:-1] / steps[:-1]
    beside, last = np.sqrt(ratios[:-1]) / steps[:-1], len(main) - 1
    low, high = (scipy.linalg.eigvalsh_tridiagonal(main, beside, select="i", select_range=(i, i))[0] for i in (0, last))
    return float(low), float(high)


def _row_norms(form: Form) -> np.ndarray:
    """Return the length of every stacked row, computed once for a form and its twins at other scales."""
    if isinstance(form, GraphForm):
        return np.full(form.terms * form.rank, form.scale * np.sqrt(2.0))
    if "row norms" not in form.known:
        if form.dtype.kind == "c":
            reals = form.rows.view(np.float64)
            norms = np.repeat(np.sqrt(np.einsum("ij,ij->i", reals, reals)), 2)
        elif form.sparse:
            norms = np.sqrt(np.asarray(form.rows.power(2).sum(axis=1), dtype=float).ravel())
        else:
            norms = np.sqrt(np.einsum("ij,ij->i", form.rows, form.rows, dtype=np.float64))
        form.passes += 1
        form.known["row norms"] = norms
    return form.scale * form.known["row norms"]


def gram_diagonal(form: Form) -> np.ndarray:
    """Return the diagonal of ΣBᵢ as flat points have it. One pass."""
    return form.column_squares(np.ones(form.terms * form.rank))


def uniform_convexity_gap(gradient_dual_norm: float, alpha: float) -> float:
    """Return the bound f(x) − f* ≤ ¾‖∇f(x)‖_*^{4/3} / (4α²/3)^{1/3} on free space, which needs no dual point.

    From the degree-4 uniform convexity of ρ with constant 4α²/3 (Prop. 3.3 of the paper).
    """
    return 0.75 * gradient_dual_norm ** (4.0 / 3.0) / (4.0 * alpha**2 / 3.0) ** (1.0 / 3.0)
