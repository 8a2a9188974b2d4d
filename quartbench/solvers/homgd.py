"""Algorithm 1 of the paper: projected gradient descent on √ρ over 𝒞 = K ∩ {⟨c,y⟩ = 1}."""

from __future__ import annotations

from .contract import Iterate, Solver, choice, factor_above_one, homogenised
from .registry import register
from .steps import LineSearch, RootStep, evaluate, required_bounds


@register("homgd")
class HomGD(Solver):
    """Homogenised gradient descent, Algorithm 1: O(κ²/k²) without any knowledge of the domain.

    Problem
    -------
    min √ρ(y) over y ∈ K, ⟨c,y⟩ = 1; then x = s(y)y minimises f (Prop. 4.2).

    Algorithm
    ---------
    y_{k+1} = argmin {⟨∇√ρ(y_k),y⟩ + ‖y − y_k‖²/(2t) : y ∈ K, ⟨c,y⟩ = 1}, with t = 1/(6β), or found by Armijo's rule.

    Guarantee
    ---------
    With δ_k = √ρ(y_k)/√ρ(y*) − 1 and L/μ = √27 κ, δ decreases by δ_{k+1} ≤ δ_k − (μ/4L) δ_k^{3/2}/√(2+δ_k), so that
    δ_k ≤ δ after (12L/μ)(ln₊(4δ_0) + (δ^{−1/2} − 2)₊) steps (Prop. 4.4): δ_k ≤ 3888κ²/k² past the burn-in, which is a
    relative gap 1 − (1+δ)^{−2/3} ≤ 2592κ²/k² (errata 9 of the documentation). Armijo's steps obey the same recursion
    with 1/t for L.

    Reference
    ---------
    Dragomir & Nesterov, *Convex quartic problems: homogenized gradient method and preconditioning* (2023), Algorithm 1
    and Thm 4.6.

    Parameters
    ----------
    step : {"armijo", "fixed"}
        A line search, or t = 1/(6β) with the metric's β.
    growth : float
        The factor by which a step that was shorter than it had to be grows.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.1, seed=0)
    >>> armijo = qb.solve(problem, qb.solvers.HomGD(), "uniform", rel_gap=1e-8)
    >>> fixed = qb.solve(problem, qb.solvers.HomGD(step="fixed"), "uniform", rel_gap=1e-8)
    >>> armijo.status, fixed.status, armijo.nit < fixed.nit
    ('converged', 'converged', True)
    """

    def __init__(self, step: str = "armijo", growth: float = 1.03) -> None:
        self.step = choice("step", step, ("armijo", "fixed"))
        self.growth = factor_above_one("growth", growth)

    def prepare(self, problem, metric):
        """Compute the bounds that a fixed step needs."""
        if self.step == "fixed":
            required_bounds(metric)

    def iterates(self, problem, metric, start):
        """Yield y₀, y₁, …; one pass each with a fixed step, about 1.2 with the line search."""
        form, step = problem.form, RootStep(problem, metric)
        y = evaluate(form, start)
        yield Iterate(y.point, homogenised(y.rho), evaluated=y[1:])
        if self.step == "fixed":
            t = 1.0 / (6.0 * required_bounds(metric).beta)
            while True:
                y = evaluate(form, step(y, t)[0])
                yield Iterate(y.point, homogenised(y.rho), t, evaluated=y[1:])
        search = LineSearch(form, step, y, self.growth)
        while True:
            point, squared = step(y, search.t)
            trial = evaluate(form, point)
            while not search.accepts(form.line_from_images(y.image, trial.image - y.image).tolist(), squared):
                point, squared = search.shorten(y, point, squared)
                trial = evaluate(form, point)
            y = trial
            yield Iterate(y.point, homogenised(y.rho), search.used, evaluated=y[1:])
