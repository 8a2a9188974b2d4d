"""Rows in single precision: the same method at half the traffic until rounding shows, then in double precision."""

from __future__ import annotations

import copy

import numpy as np

from quartbench.errors import ProblemError
from quartbench.model import Metric, Problem, StackedForm

from .base import Iterate, Solver

#: What rounding of the rows to single precision may change f by, relatively; it counts against the first iterates.
ROUNDED = 3e-7

#: The relative decrease of f, over a fifth of the iterations, below which double precision takes over.
SETTLED = 3e-7


class InSingle(Solver):
    """A method that reads rows in single precision first; sums are in double precision all along.

    Parameters
    ----------
    method : Solver
    """

    def __init__(self, method: Solver) -> None:
        self.method = method
        self.name = method.name
        for name in ("version", "metric", "peer", "costly"):
            setattr(self, name, getattr(method, name, getattr(Solver, name)))
        self._form: StackedForm | None = None

    @property
    def reason(self) -> str:
        """What the method says, and where precision comes in."""
        return "; ".join(filter(None, (self.method.reason, "rows in float32 first")))

    def choose_metric(self, problem: Problem, rel_gap: float | None) -> Metric:
        """Return the metric that the method chooses."""
        return self.method.choose_metric(problem, rel_gap)

    def prepare(self, problem: Problem, metric: Metric) -> None:
        """Round the rows, and let the method prepare."""
        form = problem.form
        if not isinstance(form, StackedForm) or form.sparse or form.rows.dtype != np.float64:
            raise ProblemError(
                f"dtype='float32' is for dense rows in float64, found {type(form).__name__}"
                + (
                    f" with {'sparse' if form.sparse else form.rows.dtype} rows"
                    if isinstance(form, StackedForm)
                    else ""
                )
            )
        # Rows of 1e±60 are in range once they are scaled.
        self._form = form.scaled(1.0 / form.scale)
        self._form.rows = (form.rows if form.scale == 1.0 else form.scale * form.rows).astype(np.float32)
        self._form.known = {}
        self.method.prepare(problem, metric)

    def iterates(self, problem, metric, start):
        """Yield the iterates on rounded rows until they settle, then those on the rows themselves."""
        rounded = copy.copy(problem)
        rounded.form = self._form.scaled(1.0)
        values, point, last = [], start, problem.form.passes
        for found in self.method.iterates(rounded, metric, start):
            problem.form.passes = last + rounded.form.passes
            values.append(found.value)
            point = found.point
            yield Iterate(point, found.value + ROUNDED * abs(found.value), found.step, found.restart)
            before = values[-1 - max(1, len(values) // 5)] if len(values) > 1 else np.inf
            if before - found.value < SETTLED * abs(found.value):
                break
        yield from self.method.iterates(problem, metric, point / float(problem.c @ point))
