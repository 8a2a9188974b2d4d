"""Gradient descent on f itself: the baseline that needs no homogenisation."""

from __future__ import annotations

from .contract import Iterate, Solver
from .registry import register
from .steps import Evaluated, LineSearch, PlainStep, evaluate


@register("gd")
class GD(Solver):
    """Euclidean gradient descent on f, projected on the cone, with Armijo's rule.

    Problem
    -------
    min f(x) = ρ(x) − ⟨c,x⟩ over K.

    Algorithm
    ---------
    x_{k+1} = P_K(x_k − t_k B⁻¹∇f(x_k)), with t_k such that D_f(x_{k+1},x_k) ≤ ‖x_{k+1} − x_k‖²/(2t_k), from the best
    point of the ray of the start. B = I gives the Euclidean method of §6.1; another metric preconditions it.

    Guarantee
    ---------
    f decreases at every step by at least ‖x_{k+1} − x_k‖²/(2t_k), and f(x_k) − f* ≤ ‖x_0 − x*‖²/(2k min t_j). As ∇f is
    not Lipschitz continuous, min t_j depends on the level set of the start.

    Reference
    ---------
    Dragomir & Nesterov, *Convex quartic problems: homogenized gradient method and preconditioning* (2023), §6.1.

    Parameters
    ----------
    growth : float
        The factor by which a step that was shorter than it had to be grows.
    """

    def __init__(self, growth: float = 1.03) -> None:
        self.growth = growth

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; about 1.2 passes each."""
        form, step = problem.form, PlainStep(problem, metric)
        rho, gradient, image = form.evaluate(start)
        s = problem.best_scale(rho, 1.0)
        x = Evaluated(s * start, s**4 * rho, s**3 * gradient, s * image)
        yield Iterate(x.point, x.rho - s, evaluated=x[1:])
        search = LineSearch(form, step, x, self.growth)
        while True:
            y, squared = step(x, search.t)
            trial = evaluate(form, y)
            while not search.accepts(form.line_from_images(x.image, trial.image - x.image).tolist(), squared):
                y, squared = search.shorten(x, y, squared)
                trial = evaluate(form, y)
            x = trial
            yield Iterate(x.point, x.rho - float(problem.c @ x.point), search.used, evaluated=x[1:])
