"""The DC algorithm with a few steps in place of each solve, and its acceleration by exact extrapolation."""

from __future__ import annotations

from itertools import islice

import numpy as np

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

#: An extrapolation by t multiplies the rounding of the point before by t. Once that has grown so many times, image and
#: ∇φ are computed anew: left to itself it reached 10⁻³ of F in a hundred steps.
GROWN = 1e4


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

    extrapolates = False

    def __init__(self, steps: int = 3) -> None:
        self.steps = steps

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
        idle, growth = 0, 1.0
        while idle < PATIENCE:
            found = self._stepped(problem, metric, at, c)
            if found is None:
                return
            after, slope = found
            t = 0.0
            if self.extrapolates:
                after, slope, t = _extrapolated(problem, at, c, after, slope)
                growth = 1.0 + t * (1.0 + growth)
                if growth > GROWN:
                    after, growth = misfit.evaluate(after.point), 1.0
                    slope = misfit.linearised(after)
            idle = 0 if after.value < (1.0 - ROUNDING) * at.value else idle + 1
            at, c = after, slope
            yield Iterate(at, t)

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
    """Inexact DC, extrapolated along the last step to where F is least: monotone, and exact without a search.

    Problem
    -------
    min F(x) = ρ(x) − φ(x) over K, ρ and φ convex.

    Algorithm
    ---------
    1. y is xₖ after ``steps`` inner steps on the convex model at xₖ.
    2. xₖ₊₁ = y + t(y − xₖ) with the t ≥ 0 in K where the quartic F is least: images give its coefficients, and ∇φ is
       linear, so that the extrapolation costs one pass.

    Guarantee
    ---------
    F falls at every step, as it does without extrapolation.

    Reference
    ---------
    Phan, Le & Le Thi, *Accelerated difference of convex functions algorithm*, IJCAI 2018, whose safeguard the exact
    search makes unnecessary.

    Parameters
    ----------
    steps : int
        Inner steps, two passes each.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> plain, fast = (qb.inverse.solve(problem, method=name, tol=1e-4) for name in ("dc-inexact", "dc-accelerated"))
    >>> fast.success, fast.passes < plain.passes
    (True, True)
    """

    extrapolates = True
    version = 2

    def __init__(self, steps: int = 2) -> None:
        super().__init__(steps)


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
