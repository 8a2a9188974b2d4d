"""Gradient descent in a quartic Bregman geometry: the classical answer to a gradient without a Lipschitz constant."""

from __future__ import annotations

from .contract import Iterate, Solver, choice, factor_above_one
from .geometry import KERNELS, Geometry
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
        The kernel h.
    step : {"adaptive", "fixed"}
        The search for L, or 12β² with the metric's β.
    growth : float
        The factor by which the step 1/L grows after one that was shorter than it had to be.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.1, seed=0)
    >>> kernels = "quartic", "quartic+quadratic"
    >>> [qb.solve(problem, qb.solvers.Bregman(h), "uniform").status for h in kernels]
    ['converged', 'converged']
    """

    def __init__(self, kernel: str = "quartic", step: str = "adaptive", growth: float = 1.05) -> None:
        self.kernel = choice("kernel", kernel, ("quartic", "quartic+quadratic"))
        self.step = choice("step", step, ("adaptive", "fixed"))
        self.growth = factor_above_one("growth", growth)

    def prepare(self, problem, metric):
        """Compute the bounds that a fixed step needs."""
        if self.step == "fixed":
            required_bounds(metric)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; one pass each with a fixed step, one more for every L that was too small."""
        form, c = problem.form, problem.c
        geometry = Geometry(problem, metric, *KERNELS[self.kernel])
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
                point, new = geometry.step(x.gradient, at, level)
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
