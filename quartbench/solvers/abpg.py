"""Accelerated Bregman gradients with gain adaptation; with the quadratic kernel, accelerated gradients on f itself."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .bregman import TRIES
from .contract import Iterate, Solver, choice, factor_above_one
from .geometry import KERNELS, Geometry
from .registry import register
from .steps import NOISE, TIGHT, level_lipschitz, level_radius, required_bounds

#: After a step whose level was larger than it had to be the search tries one that is smaller by this factor, but never
#: one below this share of the first.
SHRINK, LEAST = 1.05, 1e-3


@register("abpg")
class ABPG(Solver):
    """Accelerated Bregman proximal gradients with gain adaptation (ABPG-g), in a quartic geometry.

    Problem
    -------
    min f(x) = ρ(x) − ⟨c,x⟩ over K.

    Algorithm
    ---------
    y_k = (1 − θ_k)x_k + θ_k z_k, z_{k+1} = argmin {⟨∇f(y_k),z⟩ + θ_k L_k D_h(z,z_k) : z ∈ K},
    x_{k+1} = (1 − θ_k)x_k + θ_k z_{k+1}, with h as in Bregman descent. The search finds a level L_k, the gain times a
    first L, with D_f(x_{k+1},y_k) ≤ θ_k²L_k D_h(z_{k+1},z_k); θ_0 = 1, and θ_k solves
    (1 − θ_k)/(L_k θ_k²) = 1/(L_{k−1} θ_{k−1}²).

    Guarantee
    ---------
    f(x_k) − f* ≤ θ_{k−1}²L_{k−1} D_h(x*,x_0): O(1/k²) as long as the levels stay bounded, which is certified along the
    run and by no theorem before it. Not monotone.

    Reference
    ---------
    Hanzely, Richtárik & Xiao, *Accelerated Bregman proximal gradient methods for relatively smooth convex
    optimization*, Algorithm 3, with γ = 2; Dragomir & Nesterov, §1.3.2.

    Parameters
    ----------
    kernel : {"quartic", "quartic+quadratic"}
        The kernel h.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.1, seed=0)
    >>> qb.solve(problem, qb.solvers.ABPG(), "uniform", rel_gap=1e-6).status
    'converged'
    """

    def __init__(self, kernel: str = "quartic") -> None:
        self.kernel = choice("kernel", kernel, ("quartic", "quartic+quadratic"))

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; two passes each, and two more for every level that was too small."""
        yield from accelerated(problem, Geometry(problem, metric, *KERNELS[self.kernel]), start)


@register("agd")
class AGD(Solver):
    """Accelerated gradient descent on f, with a line search or the fixed step of a ball.

    Problem
    -------
    min f(x) = ρ(x) − ⟨c,x⟩ over K.

    Algorithm
    ---------
    That of ABPG with h(x) = ½‖x‖². With a fixed step L_k = 12β²R², the Lipschitz constant of ∇f on a ball that holds
    the level set of the start, R = (‖c‖_*/α²)^{1/3}, and z stays in that ball, hence every point does.

    Guarantee
    ---------
    With the fixed step f(x_k) − f* ≤ 2L‖x_0 − x*‖²/(k+1)², the O(LR²/K²) of §1.1; with the line search the same with
    the levels it found. Not monotone.

    Reference
    ---------
    Nesterov, *A method for solving the convex programming problem with convergence rate O(1/k²)*, in the form of
    Auslender & Teboulle, *Interior gradient and proximal methods for convex and conic optimization*; Dragomir &
    Nesterov, §1.1.

    Parameters
    ----------
    step : {"armijo", "fixed"}
        A line search, or 1/L.
    radius : float
        By how much the ball is larger than the one above, for "fixed": what not knowing the level set costs.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.1, seed=0)
    >>> qb.solve(problem, qb.solvers.AGD(), "uniform", rel_gap=1e-6).status
    'converged'
    """

    def __init__(self, step: str = "armijo", radius: float = 1.0) -> None:
        self.step = choice("step", step, ("armijo", "fixed"))
        self.radius = factor_above_one("radius", radius)

    def prepare(self, problem, metric):
        """Compute the bounds that a fixed step needs."""
        if self.step == "fixed":
            required_bounds(metric)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …; two passes each, and two more for every level that was too small."""
        if self.step == "armijo":
            yield from accelerated(problem, Geometry(problem, metric, *KERNELS["quadratic"]), start)
            return
        ball = self.radius * level_radius(problem, metric)
        geometry = Geometry(problem, metric, *KERNELS["quadratic"], radius=ball)
        yield from accelerated(problem, geometry, start, level_lipschitz(problem, metric, self.radius))


def accelerated(problem, geometry: Geometry, start, fixed: float | None = None) -> Iterator[Iterate]:
    """Yield the iterates of ABPG in a geometry: with the level ``fixed``, or with a search for it."""
    form, c = problem.form, problem.c
    rho, gradient, image = form.evaluate(start)
    s = problem.best_scale(rho, 1.0)
    x, image = s * start, s * image
    z, z_image = geometry.at(x), image
    yield Iterate(x, s**4 * rho - s, evaluated=(s**4 * rho, s**3 * gradient, image))
    # The curvature along x itself, relative to that of h: a lower bound on L, to begin the search with.
    first = 12.0 * s**4 * rho / (3.0 * geometry.q * z.square**2 + geometry.a * z.square)
    level, weight = first if fixed is None else fixed, math.inf  # weight is L_{k−1}θ_{k−1}²
    while True:
        for tries in range(TRIES):
            theta = _theta(weight / level)
            y_image = image + theta * (z_image - image)
            _, new = geometry.step(form.gradient_from_image(y_image), z, theta * level)
            new_image = form.image(new.point)
            ahead_image = image + theta * (new_image - image)
            if fixed is not None:
                break
            c0, _, c2, c3, c4 = form.line_from_images(y_image, ahead_image - y_image).tolist()
            distance, allowed = c2 + c3 + c4, theta**2 * level * geometry.distance(z, new)
            if distance <= allowed or distance <= NOISE * c0 or tries == TRIES - 1:
                break
            level *= max(1.4, 1.05 * distance / allowed) if allowed > 0.0 else 2.0
        weight, used = level * theta**2, level
        if fixed is None and distance < TIGHT * allowed:
            level = max(level / SHRINK, LEAST * first)
        x, image, z, z_image = x + theta * (new.point - x), ahead_image, new, new_image
        yield Iterate(x, form.value_from_image(image) - float(c @ x), 1.0 / used)


def _theta(ratio: float) -> float:
    """Return the θ in (0, 1] with θ² = ratio·(1 − θ); 1 where the ratio is infinite."""
    return 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / ratio)) if ratio > 0.0 else 0.0
