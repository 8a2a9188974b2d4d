"""Which method for which problem? What measurements of this package say."""

from __future__ import annotations

from .contract import METHODS, Method, register
from .problem import Problem

#: The passes that a factor of second derivatives may cost for Newton's method: that of 1000 near points in a cube costs
#: 1500, and random pairs of as many points 7000, where L-BFGS needs 40 passes in all.
FACTORS = 3000.0


@register("auto")
class Auto(Method):
    """Picks by the cone and the form, and says why.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> qb.inverse.solve(problem, method=qb.inverse.Auto()).method
    'lbfgs'
    """

    def chosen(self, problem: Problem) -> tuple[Method, str]:
        """Return the method that runs on a problem, and why."""
        if problem.cone.subspace and problem.misfit.factor_cost() <= FACTORS:
            return METHODS.find("newton")(), "auto took newton: a factor is near where products are slow"
        if problem.cone.subspace:
            return METHODS.find("lbfgs")(), "auto took lbfgs: no factor is near, and it takes the fewest passes"
        if not problem.misfit.convex_steps_read and problem.cone.nonnegative(problem.dim):
            return METHODS.find("projected-lbfgs")(), "auto took projected-lbfgs: XXᵀ has a metric on the orthant"
        return METHODS.find("dc-accelerated")(), "auto took dc-accelerated: the cone is no subspace"
