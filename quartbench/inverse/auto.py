"""Which method for which problem? What measurements of this package say."""

from __future__ import annotations

from .contract import METHODS, Method, register
from .problem import Problem


@register("auto")
class Auto(Method):
    """Picks by the cone and the form, and says why."""

    def chosen(self, problem: Problem) -> tuple[Method, str]:
        """Return the method that runs on a problem, and why."""
        if problem.cone.subspace:
            return METHODS.find("newton")(), "auto took newton: directions are free, and products give images"
        if not problem.misfit.convex_steps_read and problem.cone.lower_bounds(problem.dim) is not None:
            return METHODS.find("cd")(), "auto took cd: coordinates of XXᵀ on the orthant are minimised one by one"
        return METHODS.find("dc-accelerated")(), "auto took dc-accelerated: the cone is no subspace"
