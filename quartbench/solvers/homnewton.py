"""Newton's method on the homogenised problem, with the dense Hessian by BLAS-3 and the exact search in a plane."""

from __future__ import annotations

import numpy as np

from quartbench.precondition.hessian import dense_hessian, factored_hessian, require_dense

from .base import Solver, register
from .plane import ROUNDING, Plane, Progress, iterate, require_directions, residual
from .steps import evaluate

#: Exchanges of whole blocks that may fail to reduce the number of wrong coordinates before single ones are exchanged.
PIVOTS = 3


@register("homnewton")
class HomNewton(Solver):
    """Homogenised Newton: the direction ρ''(x)⁻¹c from a dense factor, three to eight iterations to full accuracy.

    Problem
    -------
    min ρ(y) over y ∈ K, ⟨c,y⟩ = 1, on free space, the centred subspace or the orthant.

    Algorithm
    ---------
    1. H = ρ''(y) = Σ 4qᵢBᵢ + 8Bᵢyyᵀ Bᵢ by BLAS-3 on row blocks; factor it.
    2. e = H⁻¹r with r = 4ρ(y)c − ∇ρ(y): as Hy = 3∇ρ(y), span{y, e} = span{y, H⁻¹c}, and y + e is Newton's step on f.
    3. y ← the best point of span{y, e}, exactly (a cubic): at least as good as Newton's step at any scale. On the
       orthant, e minimises the quadratic model over y + e ≥ 0.

    Guarantee
    ---------
    ρ never rises; quadratic convergence where ρ''(x*) is definite. Where it is not (‖Uᵢᵀx*‖ = 0 for terms that alone
    see a direction), Newton's step there is x⁺ = (2/3)x, and the gap falls by (2/3)⁴ ≈ 0.2 an iteration.

    Reference
    ---------
    Newton's method with a plane search is this project's; the metric serves the start only.
    """

    costly = True

    def prepare(self, problem, metric):
        """Raise for cones without directions and forms without a dense Hessian."""
        require_directions(problem, self.name)
        require_dense(problem.form)

    def iterates(self, problem, metric, start):
        """Yield y₀, y₁, …; one factor and two or three passes each."""
        form, plane, progress = problem.form, Plane(problem), Progress()
        y = evaluate(form, start)
        yield iterate(y, plane.c)
        while True:
            r = residual(y, plane.c)
            hessian = dense_hessian(form, y.point, y.image)
            if plane.bounded:
                e = bounded_direction(hessian, r, y.point)
            else:
                e = problem.cone.euclidean(factored_hessian(hessian).solve(r))
            y, t = plane.step(y, r, e)
            found = iterate(y, plane.c, t)
            yield found
            if t == 0.0 or progress.ended(found.value):
                return


def bounded_direction(hessian: np.ndarray, r: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the minimiser of ½⟨e,He⟩ − ⟨r,e⟩ over point + e ≥ 0, by block principal pivoting.

    Coordinates below zero are fixed there, those whose multiplier has the wrong sign are freed, all at once; where the
    number of wrong ones stops falling, one of them at a time, which ends (Júdice & Pires 1994).
    """
    hessian = np.tril(hessian) + np.tril(hessian, -1).T
    free = (point > 0.0) | (r > 0.0)
    fewest, tries = len(r) + 1, PIVOTS
    for _ in range(10 * len(r)):
        e = np.where(free, 0.0, -point)
        if free.any():
            part = np.asfortranarray(hessian[np.ix_(free, free)])
            e[free] = factored_hessian(part).solve((r - hessian @ e)[free])
        rest = r - hessian @ e
        wrong = np.where(free, point + e < 0.0, rest > ROUNDING * np.abs(r).max())
        count = int(wrong.sum())
        if count == 0:
            break
        if count < fewest:
            fewest, tries = count, PIVOTS
        elif tries > 0:
            tries -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return np.maximum(e, -point)
