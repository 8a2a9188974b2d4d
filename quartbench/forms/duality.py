"""Which dual point bounds f* from below, on a sum of squared terms?

For any λ with ΣUᵢλᵢ = c, f* ≥ −3Σ(‖λᵢ‖/4)^{4/3}, as 3(‖λ‖/4)^{4/3} is the conjugate of ‖s‖⁴. At x, with the residual
r = c − ∇ρ(x), λᵢ = 4‖Uᵢᵀx‖²Uᵢᵀx + τᵢUᵢᵀB⁻¹r for B = ΣτᵢUᵢUᵢᵀ is such a point, and tight at the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quartbench.linalg.conjugate_gradients import conjugate_gradients, ritz_values
from quartbench.metrics import Metric

if TYPE_CHECKING:
    from .base import Image
    from .terms import TermForm

#: Rounds of refinement of a solve with B(τ), and the share of the right-hand side that needs none.
REFINEMENTS, SMALL_REST = 3, 1e-9

#: The share of a Newton system's residual at which a bound is sharp enough, and that of a solve without a factor.
NEWTON_SHARE, SOLVE_SHARE = 1e-2, 1e-13

#: The smallest Ritz value of a run of conjugate gradients is taken for so much of the smallest eigenvalue.
RITZ_SAFETY = 0.5


def bound(
    form: TermForm, image: Image, residual: np.ndarray, metric: Metric | None, refine: int
) -> tuple[float, Image]:
    """Return the bound on f* of the dual point at x, moved towards Newton's by ``refine`` products, and that point."""
    weights = form.gradient_weights(image)
    correction = _solve(form, residual, metric)
    dual = weights + correction.weights
    found = -absorb(form.dual_value(dual), correction.leftover)
    if refine == 0 or not residual.any():
        return found, dual
    curved = _newton_weights(form, image, residual, metric, refine)
    correction = _solve(form, residual - form.adjoint(curved), metric)
    refined = weights + curved + correction.weights
    better = -absorb(form.dual_value(refined), correction.leftover)
    return (better, refined) if better > found else (found, dual)


def _newton_weights(form: TermForm, image: Image, v: np.ndarray, metric: Metric | None, steps: int) -> Image:
    """Return the weights wᵢ of ρ''(x)z = ΣUᵢwᵢ for z near ρ''(x)⁻¹v, by a few steps of conjugate gradients.

    They move λ to what a Newton step would have, so the bound is short of f* by less than f(x) is above it, while the
    weights τᵢUᵢᵀB⁻¹v spend as much on terms that are almost zero at x, whose conjugate is steep.
    """
    if metric is not None:
        precondition = metric.solve
    else:
        diagonal = form.gram_diagonal()

        def precondition(r):
            return r / diagonal

    solved = conjugate_gradients(
        lambda p: (form.hessian_product_from_image(image, p), None), v, precondition, share=NEWTON_SHARE, products=steps
    )
    return form.hessian_weights(image, form.image(solved.x))


class _Correction(NamedTuple):
    """τᵢUᵢᵀz for z ≈ B⁻¹v, and a bound on ‖v − Bz‖ in the norm dual to ρ^{1/4}."""

    weights: Image
    leftover: float


def _solve(form: TermForm, v: np.ndarray, metric: Metric | None) -> _Correction:
    """Solve B(τ)z = v, again for what rounding left where that is much, and measure the rest."""
    if metric is None:
        return _without_factor(form, v)
    tau = metric.tau
    weights = form.weighted_image(tau, form.image(metric.solve(v)))
    left = v - form.adjoint(weights)
    size, rest = metric.dual_norm(v), metric.dual_norm(left)
    for _ in range(REFINEMENTS):
        if rest <= SMALL_REST * size:
            break
        finer = weights + form.weighted_image(tau, form.image(metric.solve(left)))
        left = v - form.adjoint(finer)
        rest, before = metric.dual_norm(left), rest
        if not rest < before:
            rest = before
            break
        weights = finer
    # ‖x‖²_{B(τ)} ≤ ‖τ‖₂√ρ(x), so ⟨left,x⟩ ≤ ‖left‖_{B⁻¹}‖τ‖₂^½ ρ(x)^{1/4}. A factor in single precision knows the
    # dual norm to a per cent or so: twice as much is safe.
    safety = 2.0 if metric.precision == "single" else 1.0
    return _Correction(weights, safety * rest * float(np.linalg.norm(tau)) ** 0.5)


def _without_factor(form: TermForm, v: np.ndarray) -> _Correction:
    """Solve B⁽⁰⁾z = v by Jacobi-preconditioned conjugate gradients, for forms too large to factor.

    The leftover's ‖·‖_{B⁻¹} is bounded through the smallest Ritz value of the run, halved for safety.
    """
    tau = form.uniform_weights()
    diagonal = form.gram_diagonal() * tau[0]

    def product(p):
        weights = form.weighted_image(tau, form.image(p))
        return form.adjoint(weights), weights

    solved = conjugate_gradients(product, v, lambda r: r / diagonal, share=SOLVE_SHARE, products=4 * form.dim)
    if not solved.steps:
        return _Correction(form.weighted_image(tau, form.image(np.zeros_like(v))), 0.0)
    left = v - form.adjoint(solved.companion)
    smallest = RITZ_SAFETY * ritz_values(np.array(solved.steps), np.array(solved.ratios))[0]
    return _Correction(solved.companion, float(np.sqrt(left @ (left / diagonal) / smallest)))


def absorb(dual: float, leftover: float) -> float:
    """Return the largest |f*| with |f*| ≤ dual + leftover·(|f*|/3)^{1/4}, as ρ(x*) = |f*|/3.

    The map is increasing and concave, so its fixed point is reached from above by iterating from anything larger.
    """
    found = 2.0 * dual + 2.0 * leftover ** (4.0 / 3.0)
    for _ in range(100):
        found, before = dual + leftover * (found / 3.0) ** 0.25, found
        if before - found <= 1e-16 * found:
            break
    return found
