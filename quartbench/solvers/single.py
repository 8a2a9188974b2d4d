"""Rows in single precision: the same method at half the traffic until rounding shows, then in double precision."""

from __future__ import annotations

import numpy as np

from quartbench.forms import Form
from quartbench.metrics import Metric
from quartbench.model import Problem

from .contract import Iterate, Solver

#: What rounding of the rows to single precision may change f by, relatively; it counts against the first iterates.
ROUNDED = 3e-7

#: The relative decrease of f, over a fifth of the iterations, below which double precision takes over.
SETTLED = 3e-7


class InSingle(Solver):
    """A method that reads rows in single precision first; sums are in double precision all along.

    Parameters
    ----------
    method : Solver
    form : Form, optional
        The rows, rounded; made when the method is planned.
    """

    def __init__(self, method: Solver, form: Form | None = None) -> None:
        self.method, self._form = method, form
        self.name, self.version, self.metric = method.name, method.version, method.metric
        self.peer, self.costly = method.peer, method.costly
        self.reason = self._reason(method.reason)

    @staticmethod
    def _reason(reason: str) -> str:
        return "; ".join(filter(None, (reason, "rows in float32 first")))

    def choose_metric(self, problem: Problem, rel_gap: float | None) -> Metric:
        """Return the metric that the method chooses."""
        return self.method.choose_metric(problem, rel_gap)

    def planned(self, problem: Problem, metric: Metric, rel_gap: float | None) -> InSingle:
        """Return the method planned, with the rows rounded."""
        rounded = problem.form.rounded()
        return InSingle(self.method.planned(problem, metric, rel_gap), rounded)

    def iterates(self, problem, metric, start):
        """Yield the iterates on rounded rows until they settle, then those on the rows themselves."""
        values, point = [], start
        for found in self.method.iterates(problem.on(self._form.counting_with(problem.form)), metric, start):
            values.append(found.value)
            point = found.point
            reason = found.reason and self._reason(found.reason)
            yield Iterate(point, found.value + ROUNDED * abs(found.value), found.step, found.restart, reason=reason)
            before = values[-1 - max(1, len(values) // 5)] if len(values) > 1 else np.inf
            if before - found.value < SETTLED * abs(found.value):
                break
        for found in self.method.iterates(problem, metric, point / float(problem.c @ point)):
            yield found._replace(reason=self._reason(found.reason)) if found.reason else found
