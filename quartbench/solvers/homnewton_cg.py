"""Newton's method on the homogenised problem with inexact directions: conjugate gradients on fused Hessian products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quartbench.errors import number, whole_number
from quartbench.forms import Form
from quartbench.linalg.conjugate_gradients import conjugate_gradients
from quartbench.metrics import Metric
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

from .contract import Solver
from .plane import Plane, Progress, first, iterate, newton_decrement, require_directions, residual
from .registry import register
from .steps import Evaluated, evaluate

#: Residuals of the Newton system are not driven below this share of their start: the next Hessian knows better.
SMALLEST_SHARE = 1e-4

#: Share of the gap asked for that the last direction may cost a certificate.
PART = 0.5

#: The last direction is solved further where that costs at most this share of one more direction.
WORTH = 0.8

#: Share of its descent that a direction must keep where it is projected onto the orthant.
KEPT = 0.3


@register("homnewton-cg")
class HomNewtonCG(Solver):
    """Homogenised Newton with conjugate gradients: for any form, one pass per product, no Hessian in memory.

    Problem
    -------
    min ρ(y) over y ∈ K, ⟨c,y⟩ = 1, on free space, the centred subspace or the orthant.

    Algorithm
    ---------
    1. r = 4ρ(y)c − ∇ρ(y); solve ρ''(y)e ≈ r by conjugate gradients in the metric B, until the residual has fallen by
       min(forcing, ‖r‖/‖r_before‖) in the dual norm. As ρ''(y)y = 3∇ρ(y), this is the direction ρ''(y)⁻¹c up to a
       multiple of y, but its right-hand side vanishes at the solution: conjugate gradients start at the answer.
    2. y ← the best point of span{y, e}, exactly (a cubic). On the orthant, coordinates at zero that r pushes out stay,
       and y + e is projected first; where that costs most of the descent, e is a step along B⁻¹r (Bertsekas 1982).

    Guarantee
    ---------
    ρ never rises. Near the solution the residual falls superlinearly, by its own ratio, with no system solved further
    than the step after it can use.

    Reference
    ---------
    Eisenstat & Walker, *Choosing the forcing terms in an inexact Newton method*, SIAM J. Sci. Comput. 1996; plane
    searches as in Yuan, *Subspace methods for large scale nonlinear equations and nonlinear least squares*, 2009.

    Parameters
    ----------
    forcing : float
        The largest share of the residual that a direction may leave.
    products : int
        The most products a direction may take.

    Examples
    --------
    >>> graph = qb.instances.geometric(points=200, dim=2, seed=0)
    >>> qb.solve(graph, qb.solvers.HomNewtonCG(), "uniform", rel_gap=1e-10).status
    'converged'
    """

    costly = True

    def __init__(self, forcing: float = 0.5, products: int = 1000) -> None:
        self.forcing = number(forcing, "forcing", 0.0, 1.0, open_low=True)
        self.products = whole_number(products, "products")

    def prepare(self, problem, metric):
        """Raise for cones without directions."""
        require_directions(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield y₀, y₁, …; a pass for each product and one or two for the search."""
        y = evaluate(problem.form, start)
        yield first(y, problem.c)
        yield from newton_cg(Plane(problem), metric, y, self.forcing, self.products)


def newton_cg(
    plane: Plane, metric: Metric, y: Evaluated, forcing: float, products: int, watch=None, last: Last | None = None
):
    """Yield the iterates after y.

    ``watch`` sees the conjugate gradients, and says how many products they may take; ``last`` says how far a direction
    that may be the last is solved.
    """
    progress, before, solve, free_before = Progress(), 0.0, None, None
    ratio = rate = 0.0  # of the decrement to ⟨r,B⁻¹r⟩/ρ, and of what a product leaves
    while y.rho > 0.0:  # it is zero where all of y is rounding, as c may be beside translations of a graph
        r = residual(y, plane.c)
        free = plane.free(y, r)
        if solve is None or (free is not None and (free != free_before).any()):
            solve, free_before = plane.solver(metric, free), free
        deflated = solve if plane.bounded else along(y, solve)
        z = deflated(r)
        size = max(float(r @ z), 0.0)  # where r is all rounding (c almost a translation of a graph) it may fall below
        share = min(forcing, max(math.sqrt(size / before), SMALLEST_SHARE)) if before > 0.0 else forcing
        before = size
        if last is not None and ratio > 0.0:
            share = max(last.share(ratio * size / y.rho, share, rate), SMALLEST_SHARE)
        with blas_threads(ONE_THREAD_WORK):  # vectors are too short to be shared, and idle threads disturb the kernels
            solved = conjugate_gradients(
                product_at(plane.form, y), r, deflated, first=z, share=share, products=products, watch=watch
            )
        e, left = solved.x, solved.residual
        rate = share ** (1.0 / max(1, len(solved.steps)))
        if plane.bounded and r @ (plane.cone.euclidean(y.point + e) - y.point) < KEPT * float(r @ e):
            # Projected, this direction has lost its descent to coordinates near zero; that of the gradient never does.
            curvature = float(z @ plane.form.hessian_product_flat(y.point, y.image, z))
            e = (size / curvature) * z if curvature > 0.0 else z
        decrement = newton_decrement(y, r, e)
        ratio = decrement * y.rho / size if size > 0.0 else 0.0
        step = plane.step(y, r, e)
        found = iterate(step.y, plane.c, step.t, decrement=decrement, dual=plane.dual(y, step, left))
        yield found
        y = step.y
        if step.t == 0.0 or progress.ended(found.value):
            return


def along(y: Evaluated, solve: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return r ↦ B⁻¹r made H-orthogonal to y, for r ⊥ y: as ρ''(y)y = 3∇ρ(y) is known, no product is spent on y."""
    share = y.gradient / (4.0 * y.rho)

    def solved(r: np.ndarray) -> np.ndarray:
        z = solve(r)
        return z - float(share @ z) * y.point

    return solved


class Last(NamedTuple):
    """How far is a direction solved that may be the last? So far that its dual point certifies the gap, if that pays.

    An exact direction leaves about the square of the gap, a residual of a share of r besides share² of it; and the dual
    point pays for that in the metric that corrects it, ``dearer`` times as much.
    """

    target: float
    dearer: float

    def share(self, gap: float, usual: float, rate: float) -> float:
        """Return the share of r to leave.

        Parameters
        ----------
        gap : float
            What the gap is about.
        usual : float
            The share that the next step can use.
        rate : float
            What a product leaves of the residual.
        """
        if not (0.0 < gap * gap <= PART * self.target and 0.0 < rate < 1.0):
            return usual
        needed = min(usual, math.sqrt(PART * self.target / (gap * self.dearer)))
        another = math.log(usual) / math.log(rate) + 2.0  # what one more direction costs, with its search
        return needed if math.log(needed / usual) / math.log(rate) <= WORTH * another else usual


def product_at(form: Form, y: Evaluated) -> Callable[[np.ndarray], tuple[np.ndarray, None]]:
    """Return p ↦ ρ''(y)p, a pass each, as conjugate gradients take it."""
    point, image = y.point, y.image
    return lambda p: (form.hessian_product_flat(point, image, p), None)
