"""Conjugate gradients on the homogenised problem: Polak–Ribière directions in the metric, exact line searches."""

from __future__ import annotations

import math

import numpy as np

from .contract import Solver
from .plane import Plane, Progress, iterate, minimiser, require_directions, residual
from .registry import register
from .steps import Evaluated, evaluate

#: Iterations after which the image is computed afresh: until then it is updated, and each update rounds.
REFRESH = 50

#: Share of ρ at the last fresh image below which it is computed afresh too: it has the rounding of what it was then.
SHRUNK = 1e-8

#: The longest trial step on the orthant, in units of the first direction: beyond lies the range of floating point.
LONGEST = 1e100


@register("homcg")
class HomCG(Solver):
    """Homogenised conjugate gradients (Polak–Ribière+): two passes per iteration, no parameter, no factor needed.

    Problem
    -------
    min ρ(y) over y ∈ K, ⟨c,y⟩ = 1, on free space, the centred subspace or the orthant.

    Algorithm
    ---------
    1. v = B⁻¹r with r = μc − ∇ρ(y), μ = ⟨∇ρ(y),y⟩/⟨c,y⟩; both scaled by 1/ρ(y), which makes them the gradient of ln ρ.
    2. d = v + β₊ d_before with β = ⟨r − r_before, v⟩/⟨r_before, v_before⟩; d = v where that is no descent.
    3. y ← the best point of span{y, d}, exactly: the root of a cubic from the images of y and d.

    On the orthant, coordinates at zero that r pushes out stay, y + t d is projected for the last t before the search,
    and d starts anew when the free coordinates change.

    Guarantee
    ---------
    ρ never rises; on a quadratic these are the conjugate gradients of Hestenes and Stiefel, so near the solution the
    gap falls by a factor of ((√κ′−1)/(√κ′+1))² per iteration, κ′ the condition number of B⁻¹ρ''(x*).

    Reference
    ---------
    Polak & Ribière 1969; Nocedal & Wright, *Numerical Optimization*, §5.2; the search on the homogenised problem is
    this project's.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.1, seed=0)
    >>> result = qb.solve(problem, qb.solvers.HomCG(), "identity", rel_gap=1e-10)
    >>> result.status, result.passes <= 2 * result.nit + 4
    ('converged', True)
    """

    def prepare(self, problem, metric):
        """Raise for cones without directions."""
        require_directions(problem, self.name)

    def iterates(self, problem, metric, start):
        """Yield y₀, y₁, …; two passes each."""
        form, plane, progress = problem.form, Plane(problem), Progress()
        c = plane.c
        y = evaluate(form, start)
        yield iterate(y, c)
        before = free_before = None  # the last residual with the square of its norm, and where it was free
        fresh = y.rho
        d, t, count = np.zeros_like(start), 1.0, 0
        while y.rho > 0.0:  # it is zero where all of y is rounding, as c may be beside translations of a graph
            r = residual(y, c) / y.rho
            free = plane.free(y, r)
            if count == 0 or (free is not None and (free != free_before).any()):
                solve, before = plane.solver(metric, free), None
            v = solve(r)
            if count == 0:  # the first direction is as long as y, at any scale of the metric
                unit = float(np.abs(y.point).max()) / (float(np.abs(v).max()) or 1.0)
            v = unit * v
            size = float(r @ v)
            if not math.isfinite(size):  # out of the range of floating point: no direction is left
                return
            beta = 0.0 if before is None else max(0.0, float((r - before[0]) @ v) / before[1])
            d = v + beta * d if math.isfinite(beta) else v
            restart = before is None or beta == 0.0
            if not float(r @ d) > 0.0:
                d, restart = v, True
            y, t = self._search(plane, y, r * y.rho, d, t)
            before, free_before = (r, size), free
            count += 1
            if count % REFRESH == 0 or y.rho < SHRUNK * fresh:
                y = evaluate(form, y.point)
                fresh = y.rho
            found = iterate(y, c, t, restart and count > 1)
            yield found
            if t == 0.0:
                if restart:
                    return
                before, t = None, 1.0
            elif progress.ended(found.value):
                return

    @staticmethod
    def _search(plane: Plane, y: Evaluated, r: np.ndarray, d: np.ndarray, t: float) -> tuple[Evaluated, float]:
        """Return the best point along d, and its t. Two passes: the image of the direction, and the gradient there."""
        form, c, inner = plane.form, plane.c, float(plane.c @ y.point)
        if plane.bounded:
            for _ in range(60):
                z = plane.cone.euclidean(y.point + t * d)
                there = float(c @ z)
                if there > 0.0 and r @ (z - y.point) > 0.0:
                    break
                t *= 0.5
            else:
                return y, 0.0
            h = (inner / there) * z - y.point
            slope = -(inner / there) * float(r @ (z - y.point))
        else:
            h, slope = d - (float(c @ d) / inner) * y.point, -float(r @ d)
        along = form.image(h)
        line = form.line_from_images(y.image, along).tolist()
        line[1] = slope
        share = minimiser(line, plane.cone.limit(y.point, h))
        image, point = y.image + share * along, y.point + share * h
        if plane.bounded:
            point = plane.cone.euclidean(point)
            # The next trial begins where this one ended, unless that was out of any range.
            t = min(max(t * share, 1e-3 * t), LONGEST) if share > 0.0 else 0.0
        else:
            t = share
        return Evaluated(point, form.value_from_image(image), form.gradient_from_image(image), image), t
