"""The DC algorithm with a few steps in place of each solve, and its acceleration, by Anderson or by extrapolation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from quartbench.errors import whole_number
from quartbench.metrics import Metric
from quartbench.model import Problem as ConvexProblem
from quartbench.precondition import automatic_metric
from quartbench.solvers import HomCG, HomGD

from .contract import Iterate, Method, register
from .lines import fall_on, lowest
from .misfits import At
from .problem import Problem

#: Decreases of F below this share of it are rounding; so many steps in a row without more end the run.
ROUNDING, PATIENCE = 4.0 * float(np.finfo(float).eps), 3

#: Extrapolations and combinations multiply the rounding of the points that they are made of. Once that has grown so
#: many times, image and ∇φ are computed anew: left to itself it reached 10⁻³ of F in a hundred steps.
GROWN = 1e4

#: What is added to the diagonal of the products of changes, relative to their sum: they are nearly dependent.
RIDGE = 1e-12


@register("dc-inexact")
class DCInexact(Method):
    """DC with a few steps of homogenised conjugate gradients in place of each convex solve.

    Problem
    -------
    min F(x) = ρ(x) − φ(x) over K, ρ and φ convex.

    Algorithm
    ---------
    xₖ₊₁ is xₖ after ``steps`` steps of HomCG (of HomGD on cones without directions) on ρ(x) − ⟨∇φ(xₖ),x⟩.

    Guarantee
    ---------
    The steps lower the convex model, hence F: it falls at every step.

    Reference
    ---------
    As for ``dc``; that inexact steps suffice is folklore.

    Parameters
    ----------
    steps : int
        Inner steps, two passes each.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> qb.inverse.solve(problem, method=qb.inverse.DCInexact(steps=2), tol=1e-4).success
    True
    """

    def __init__(self, steps: int = 3) -> None:
        self.steps = whole_number(steps, "steps")

    def prepare(self, problem):
        """Raise where F is no difference of convex functions, or ρ is not definite."""
        problem.misfit.require_split()
        problem.form.require_definite()

    def choose_metric(self, problem):
        """Return what serves convex problems on this form and cone."""
        return automatic_metric(problem.form, problem.cone)

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …."""
        misfit = problem.misfit
        at = misfit.evaluate(start)
        c = misfit.linearised(at)
        yield Iterate(at)
        further = self._beyond(problem)
        idle, growth = 0, 1.0
        while idle < PATIENCE:
            found = self._stepped(problem, metric, at, c)
            if found is None:
                return
            after, slope, t, growth = further(at, c, *found, growth)
            if growth > GROWN:
                after, growth = misfit.evaluate(after.point), 1.0
                slope = misfit.linearised(after)
            idle = 0 if after.value < (1.0 - ROUNDING) * at.value else idle + 1
            at, c = after, slope
            yield Iterate(at, t)

    def _beyond(self, problem: Problem) -> Callable[..., tuple[At, np.ndarray, float, float]]:
        """Return what takes x, ∇φ(x), the point after the steps, ∇φ there and how often the rounding of x has grown.

        It gives where to go on from, ∇φ there, how far beyond that is, and how often rounding has grown there.
        """
        return lambda at, c, after, slope, growth: (after, slope, 0.0, 1.0)

    def _stepped(self, problem: Problem, metric: Metric, at: At, c: np.ndarray) -> tuple[At, np.ndarray] | None:
        """Return the point after a few steps on the convex model at x, and ∇φ there; None where nothing moves."""
        inner = float(c @ at.point)
        if not inner > 0.0:
            return None
        misfit = problem.misfit
        model = ConvexProblem(misfit.form.counting_with(misfit.form), c, problem.cone)
        method = HomCG() if problem.cone.directions else HomGD()
        *_, last = islice(method.iterates(model, metric, at.point / inner), self.steps + 1)
        rho, slope, image = last.evaluated if last.evaluated is not None else model.form.evaluate_flat(last.point)
        scale = model.best_scale(rho, float(c @ last.point))
        return misfit.split(scale * last.point, scale**3 * slope, scale * image)


@register("dc-accelerated")
class DCAccelerated(DCInexact):
    """Inexact DC with Anderson's acceleration, or extrapolated along the last step to where F is least: monotone.

    Problem
    -------
    min F(x) = ρ(x) − φ(x) over K, ρ and φ convex.

    Algorithm
    ---------
    1. yₖ is xₖ after ``steps`` inner steps on the convex model at xₖ.
    2. On subspaces, xₖ₊₁ = Σ γᵢyᵢ over the last ``memory`` steps, Σγᵢ = 1, for which ‖Σ γᵢ(yᵢ − xᵢ)‖ is least; where F
       is not less there than at yₖ, or K is no subspace:
    3. xₖ₊₁ = yₖ + t(yₖ − xₖ) with the t ≥ 0 in K where the quartic F is least.

    Images and ∇φ are linear, so that F is known at all these points, and either of them costs one pass.

    Guarantee
    ---------
    F falls at every step, as it does without acceleration.

    Reference
    ---------
    Phan, Le & Le Thi, *Accelerated difference of convex functions algorithm*, IJCAI 2018, whose safeguard exact values
    make unnecessary; Walker & Ni, *Anderson acceleration for fixed-point iterations*, SIAM J. Numer. Anal. 2011.

    Parameters
    ----------
    steps : int
        Inner steps, two passes each.
    memory : int
        The last steps that are combined; 1 for none. With 5, phase retrieval and distances take 0.5 to 0.8 of the
        passes, with 3 or 10 a little more.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> plain = qb.inverse.solve(problem, method="dc-inexact", tol=1e-4)
    >>> fast = qb.inverse.solve(problem, method="dc-accelerated", tol=1e-4)
    >>> fast.success, fast.passes < plain.passes
    (True, True)
    """

    version = 2

    def __init__(self, steps: int = 2, memory: int = 5) -> None:
        super().__init__(steps)
        self.memory = whole_number(memory, "memory")

    def _beyond(self, problem):
        """Return what combines the last steps, or extrapolates the last one."""
        kept: list[tuple[np.ndarray, At, np.ndarray]] = []

        def further(at, c, after, slope, growth):
            if problem.cone.subspace:
                kept.append((after.point - at.point, after, slope))
                del kept[: -self.memory]
                combined = _combined(problem, kept)
                if combined is not None:
                    beyond, there, spread = combined
                    return beyond, there, 1.0, spread
            beyond, there, t = _extrapolated(problem, at, c, after, slope)
            return beyond, there, t, 1.0 + t * (1.0 + growth)

        return further


def _combined(problem: Problem, kept: list[tuple[np.ndarray, At, np.ndarray]]) -> tuple[At, np.ndarray, float] | None:
    """Return the combination of the last steps that changes least, ∇φ there, and Σ|shares|; None where F is no less."""
    changes = np.stack([change for change, _, _ in kept])
    square = changes @ changes.T
    if len(kept) < 2 or not np.trace(square) > 0.0:
        return None
    shares = np.linalg.solve(square + RIDGE * np.trace(square) * np.eye(len(kept)), np.ones(len(kept)))
    total = float(shares.sum())
    if not np.isfinite(shares).all() or total == 0.0:
        return None
    shares /= total
    image = sum(share * after.image for share, (_, after, _) in zip(shares, kept, strict=True))
    if not problem.misfit.line(image, image)[0] < kept[-1][1].value:
        return None
    point = sum(share * after.point for share, (_, after, _) in zip(shares, kept, strict=True))
    slope = sum(share * found for share, (_, _, found) in zip(shares, kept, strict=True))
    return problem.misfit.moved(point, image), slope, float(np.abs(shares).sum())


def _extrapolated(problem: Problem, before: At, c_before: np.ndarray, at: At, c: np.ndarray):
    """Return the point beyond ``at`` where F is least, ∇φ there, and how far beyond it is."""
    misfit = problem.misfit
    step, along = at.point - before.point, at.image - before.image
    line = misfit.line(at.image, along)
    t = lowest(line, low=0.0, high=problem.cone.limit(at.point, step))
    if not fall_on(line, t) > ROUNDING * at.value:
        return at, c, 0.0
    point = at.point + t * step
    if not problem.cone.subspace:
        point = problem.cone.euclidean(point)
    return misfit.moved(point, at.image + t * along), c + t * (c - c_before), t
