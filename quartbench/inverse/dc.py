"""The DC algorithm of the paper (§2.1): one convex quartic problem after another, each solved to a certified gap."""

from __future__ import annotations

from quartbench import solvers
from quartbench.errors import number

from .contract import Iterate, Method, register

#: The relative gaps between which an inner solve is asked for.
LOOSEST, TIGHTEST = 1e-2, 1e-12

#: A decrease below this share of the gap that was asked for is that of a solve that ended where it began: it says
#: nothing about what the step can give.
SHOWN = 1e-3

#: F counts as risen beyond this share of ‖d‖², which is rounding.
ROUNDING = 1e-13


@register("dc")
class DC(Method):
    """The paper's DC algorithm: certified convex steps of adaptive accuracy, F falling at every step.

    Problem
    -------
    min F(x) = ρ(x) − φ(x) over K, ρ and φ convex.

    Algorithm
    ---------
    xₖ₊₁ ∈ argmin ρ(x) − ⟨∇φ(xₖ),x⟩ over K. One form is prepared once, each solve starts at xₖ, and ends where its
    certified gap is at most ``accuracy`` times the decrease of the convex model that it found.

    Guarantee
    ---------
    F(xₖ) − F(xₖ₊₁) is at least the decrease of the model, and that at least 1/(1 + accuracy) of the exact step's. So
    F falls at every step, which is checked, and limit points are stationary.

    Reference
    ---------
    Dragomir & Nesterov, *Convex quartic problems: homogenized gradient method and preconditioning* (2023), §2.1; Tao &
    An, *Convex analysis approach to DC programming*, 1997.

    Parameters
    ----------
    accuracy : float
        The certified gap of a step, as a share of its decrease.
    solver : str
        Of the convex steps.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> found = qb.inverse.solve(problem, method=qb.inverse.DC(), max_iter=20)
    >>> bool((np.diff(found.history.value) < 0).all())
    True
    """

    version = 2

    def __init__(self, accuracy: float = 0.1, solver: str = "auto") -> None:
        self.accuracy, self.solver = number(accuracy, "accuracy", 0.0, open_low=True), solver

    def prepare(self, problem):
        """Raise where F is no difference of convex functions, or ρ is not definite."""
        problem.misfit.require_split()
        problem.form.require_definite()

    def choose_metric(self, problem):
        """Return None: the solver of the convex steps chooses its own."""
        return None

    def iterates(self, problem, metric, start):
        """Yield x₀, x₁, …."""
        misfit = problem.misfit
        given = "auto" if metric is None else metric
        prepared = solvers.prepare(misfit.form.twin(), problem.cone, given, self.solver)
        at = misfit.evaluate(start)
        yield Iterate(at)
        rel_gap = LOOSEST
        while True:
            c = misfit.linearised(at)
            model = misfit.rho(at.image) - float(c @ at.point)
            found, rel_gap = self._step(problem, prepared, c, at.point, model, rel_gap)
            after = misfit.evaluate(problem.form.flat(found.x))
            if after.value > at.value + ROUNDING * problem.size**2:
                raise ArithmeticError(
                    f"a DC step raised F from {at.value:.17g} to {after.value:.17g}, which its convex model excludes"
                )
            if not after.value < at.value:
                return
            at = after
            yield Iterate(at, gap=found.gap)

    def _step(self, problem, prepared, c, x, model, rel_gap) -> tuple[solvers.Result, float]:
        """Return the solution of a convex step from x, of value ``model`` there, and the gap to ask for next."""
        start = x
        while True:
            found = prepared.solve(c, start, rel_gap)
            # In passes of the misfit; for a matrix these are products with M, of which there are none here.
            problem.misfit.charge(found.passes if problem.misfit.convex_steps_read else 0)
            fall = model - found.fun
            wanted = min(max(self.accuracy * fall / abs(found.fun), TIGHTEST), LOOSEST) if found.fun else TIGHTEST
            if found.gap <= wanted or rel_gap <= TIGHTEST or found.status == "stalled":
                return found, wanted
            shown = fall > SHOWN * rel_gap * abs(found.fun)
            rel_gap, start = max(min(wanted if shown else LOOSEST, 0.1 * rel_gap), TIGHTEST), found.x
