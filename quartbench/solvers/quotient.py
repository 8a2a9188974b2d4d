"""Solving where ρ vanishes on a subspace: on the quotient by it, or a direction in which f falls without end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from quartbench.errors import ProblemError
from quartbench.model import Problem
from quartbench.model.certificate import relative_gap, value_at
from quartbench.model.quotient import Quotient, falling

from .driver import State, Wanted
from .results import History, Result, ended

if TYPE_CHECKING:
    from .prepared import Prepared


class OnQuotient:
    """What solves for one c after another in coordinates of the quotient.

    Parameters
    ----------
    quotient : Quotient
    prepared : Prepared
        Of the form in these coordinates.
    seconds : float
        What the quotient took to make: a part of the set-up.
    """

    def __init__(self, quotient: Quotient, prepared: Prepared, seconds: float) -> None:
        self.quotient, self.prepared, self.seconds = quotient, prepared, seconds

    def run(self, problem: Problem, wanted: Wanted) -> Result:
        """Return the result for a problem on the whole space."""
        quotient, name = self.quotient, self.prepared.method.name
        along = quotient.unseen(problem.given)
        if along is not None:
            where = int(np.abs(along).argmax())
            return unbounded(problem, along, -math.inf, f"no term sees coordinate {where}, where c is not 0", name)
        share, direction = quotient.outside(problem.given)
        if share > quotient.angle:
            point, value = falling(problem, direction)
            why = (
                f"as far as rounding tells: {quotient.words()}, and {share:.2g} of c lies in its kernel; "
                f"f(x) ≤ {value:.3g} is proved"
            )
            return unbounded(problem, point, value, why, name)
        start, callback, time_limit, paid = wanted.start, wanted.callback, wanted.time_limit, wanted.paid
        if start is not None:
            start = quotient.coordinates(problem.form.flat(start, "start"))
        if time_limit is not None and not paid:
            time_limit = max(time_limit - self.seconds, 0.0)
        seen = None if callback is None else lambda state: callback(Whole(state, problem, quotient))
        reduced = Problem(quotient.form, quotient.linear(problem.given))
        found = self.prepared.run(reduced, wanted._replace(start=start, callback=seen, time_limit=time_limit))
        return self._of_whole(problem, found, share, wanted.rel_gap, 0.0 if paid else self.seconds)

    def _of_whole(self, problem: Problem, found: Result, share: float, rel_gap: float | None, seconds: float) -> Result:
        """Return a result in coordinates of the quotient as one of the problem."""
        quotient = self.quotient
        x = quotient.point(found.x)
        found.x = problem.form.native(x)
        found.setup_time += seconds
        words = f"{quotient.words()}, and c is perpendicular to its kernel"
        found.proved = found.proved and problem.form.rigorous  # rows that were written down say nothing of products
        if quotient.exact:
            found.message += f"; {words}: x is 0 there"
            return found
        found.fun, found.proved = value_at(problem, x), False
        if found.lower_bound > -math.inf:
            found.lower_bound = min(found.lower_bound, found.fun)
            found.gap = relative_gap(found.fun, found.lower_bound)
        if found.status == "converged" and not found.gap <= rel_gap:
            found.status, found.success = "stalled", False
            found.message = f"no further progress is possible at certified relative gap {found.gap:.2e}"
        found.message += (
            f"; {words} but for {share:.1e} of it, which is left out: the lower bound is that of f on the complement "
            "of the kernel, up to the rounding of a basis"
        )
        return found


class Whole(State):
    """What a callback sees of a run on the quotient: the same, but points of the whole space."""

    __slots__ = ("_inner", "_problem", "_quotient")

    def __init__(self, state: State, problem: Problem, quotient: Quotient) -> None:
        for name in ("gap", "iteration", "passes", "seconds", "value"):
            setattr(self, name, getattr(state, name))
        self._inner, self._problem, self._quotient = state, problem, quotient

    @property
    def x(self) -> np.ndarray:
        """The point of the iterate, as the method holds it."""
        return self._problem.form.native(self._quotient.point(self._inner.x))


def unbounded(problem: Problem, x: np.ndarray, value: float, why: str, solver: str) -> Result:
    """Return the result of a problem without a minimum: f falls along x, to ``value`` at least."""
    nothing = History([], [], [], -np.inf, 1.0, [], [])
    if value == math.inf:
        raise ProblemError(f"f falls along a direction of the kernel, but nothing can be proved of it: {why}")
    return ended(
        problem.form,
        x,
        value,
        -math.inf,
        "unbounded",
        nothing,
        gap=math.inf,
        # Where no term sees a coordinate; else the kernel is a decision.
        proved=value == -math.inf and problem.form.rigorous,
        solver=solver,
        metric="none",
        reason=why,
    )
