"""Gradient descent on f itself: the baseline that needs no homogenisation."""

from __future__ import annotations

from .contract import Iterate, Solver, choice, factor_above_one
from .registry import register
from .steps import Evaluated, LineSearch, PlainStep, evaluate, level_lipschitz


@register("gd")
class GD(Solver):
    """Euclidean gradient descent on f, projected on the cone, with Armijo's rule or the fixed step of a ball.

    Problem
    -------
    min f(x) = ρ(x) − ⟨c,x⟩ over K.

    Algorithm
    ---------
    x_{k+1} = P_K(x_k − t_k B⁻¹∇f(x_k)), from the best point of the ray of the start, with t_k such that
    D_f(x_{k+1},x_k) ≤ ‖x_{k+1} − x_k‖²/(2t_k), or t = 1/L with L = 12β²R², the Lipschitz constant of ∇f on a ball
    that holds the level set of the start, R = (‖c‖_*/α²)^{1/3}. B = I gives the Euclidean method of §6.1; another
    metric preconditions it.

    Guarantee
    ---------
    f decreases at every step by at least ‖x_{k+1} − x_k‖²/(2t_k), and f(x_k) − f* ≤ ‖x_0 − x*‖²/(2k min t_j). As ∇f is
    not Lipschitz continuous, min t_j depends on the level set of the start; with the fixed step the bound is
    L‖x_0 − x*‖²/(2k), the O(LR²/K) of §1.1.

    Reference
    ---------
    Dragomir & Nesterov, *Convex quartic problems: homogenized gradient method and preconditioning* (2023), §1.1 and
    §6.1.

    Parameters
    ----------
    step : {"armijo", "fixed"}
        A line search, or t = 1/L.
    growth : float
        The factor by which a step that was shorter than it had to be grows.
    radius : float
        By how much the ball is larger than the one above, for "fixed": what not knowing the level set costs.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.2, seed=0)
    >>> near = qb.solve(problem, qb.solvers.GD(step="fixed"), "uniform", max_iter=200)
    >>> far = qb.solve(problem, qb.solvers.GD("fixed", radius=4.0), "uniform", max_iter=200)
    >>> near.fun < far.fun  # a larger ball has shorter steps
    True
    """

    version = 2

    def __init__(self, step: str = "armijo", growth: float = 1.03, radius: float = 1.0) -> None:
        self.step = choice("step", step, ("armijo", "fixed"))
        self.growth = factor_above_one("growth", growth)
        self.radius = factor_above_one("radius", radius)

    def prepare(self, problem, metric):
        """Compute the bounds that a fixed step needs."""
        if self.step == "fixed":
            level_lipschitz(problem, metric, self.radius)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; one pass each with a fixed step, about 1.2 with the line search."""
        form, step = problem.form, PlainStep(problem, metric)
        rho, gradient, image = form.evaluate(start)
        s = problem.best_scale(rho, 1.0)
        x = Evaluated(s * start, s**4 * rho, s**3 * gradient, s * image)
        yield Iterate(x.point, x.rho - s, evaluated=x[1:])
        if self.step == "fixed":
            t = 1.0 / level_lipschitz(problem, metric, self.radius)
            while True:
                x = evaluate(form, step(x, t)[0])
                yield Iterate(x.point, x.rho - float(problem.c @ x.point), t, evaluated=x[1:])
        search = LineSearch(form, step, x, self.growth)
        while True:
            y, squared = step(x, search.t)
            trial = evaluate(form, y)
            while not search.accepts(form.line_from_images(x.image, trial.image - x.image).tolist(), squared):
                y, squared = search.shorten(x, y, squared)
                trial = evaluate(form, y)
            x = trial
            yield Iterate(x.point, x.rho - float(problem.c @ x.point), search.used, evaluated=x[1:])
