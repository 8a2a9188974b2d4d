"""What does a run leave? Its result, the stages it went through, and the columns of its history."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult


class History:
    """The columns of a run, one entry for each iterate.

    Attributes
    ----------
    iteration, passes : arrays of int
    seconds : array
        On the clock of the method.
    value : array
        F.
    residual : array
        √F/‖d‖.
    stationarity : array
        ‖∇F‖·‖x‖/(4‖d‖²), the gradient inside the cone.
    step, gap : arrays
        The step length, and the certified relative gap of the convex step that led to the iterate.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> history = qb.inverse.solve(problem, start=truth + 0.1).history
    >>> bool((np.diff(history.value) < 0).all()), bool(history.residual[-1] < 1e-6)
    (True, True)
    """

    COLUMNS = ("iteration", "passes", "seconds", "value", "residual", "stationarity", "step", "gap")

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add(self, *row: float) -> None:
        """Add an iterate: all columns but its number."""
        self._rows.append((len(self._rows), *row))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.COLUMNS:
            raise KeyError(name)
        column = np.array([row[self.COLUMNS.index(name)] for row in self._rows], dtype=float)
        return column.astype(np.int64) if name in ("iteration", "passes") else column

    def __getattr__(self, name: str) -> np.ndarray:
        if name in type(self).COLUMNS:
            return self[name]
        raise AttributeError(name)

    def to_frame(self) -> Any:
        """Return the columns as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame({name: self[name] for name in self.COLUMNS})

    def __repr__(self) -> str:
        return f"History({len(self)} iterates: {', '.join(self.COLUMNS)})"


class Stage(NamedTuple):
    """One part of a run: a start, a solve in more dimensions, a solve.

    Attributes
    ----------
    name : str
        What was done: "start", "relaxed", "solve", …
    method : str
        By which method.
    nit, passes : int
    seconds : float
        On the clock of the wall.
    fun : float
        F at its end, in the user's units (NaN where it has none).
    history : History or None
        Its iterates, where it has some.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> [stage.name for stage in qb.inverse.phase(rows, d).stages]
    ['spectral start', 'weighted solve', 'solve']
    """

    name: str
    method: str
    nit: int
    passes: int
    seconds: float
    fun: float
    history: History | None = None


class Result(OptimizeResult):
    """What a solve returns, as a :class:`scipy.optimize.OptimizeResult`.

    Attributes
    ----------
    x : array
        The point, in the shape of the form.
    fun, residual, stationarity : float
        F(x), √F(x)/‖d‖, and how far x is from a stationary point (see :class:`History`).
    status : str
        fitted, stationary, max_iter, max_passes, time_limit, stopped or stalled.
    success : bool
        Whether the status is fitted or stationary. That says nothing of the recovery of a signal: F is not convex, and
        what is certified is each convex step of the DC methods, never that x is the point the data came from.
    message : str
    nit, passes : int
        Iterations, and passes of the whole run, its start included.
    seconds : float
        On the clock of the wall, start and set-up included.
    stages : list of Stage
    history : History
        That of the last stage.
    method : str

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> found = qb.inverse.phase(rows, d)
    >>> found.success, found.residual < 1e-6, found.passes > 0
    (True, True, True)
    """


#: How a run ended, by its status.
MESSAGES = {
    "fitted": "the data are fitted to a relative residual of {residual:.2e}",
    "stationary": "a stationary point at relative residual {residual:.2e}: F does not fall to first order",
    "max_iter": "stopped after {nit} at relative residual {residual:.2e}",
    "max_passes": "stopped after {passes} at relative residual {residual:.2e}",
    "time_limit": "stopped at the time limit at relative residual {residual:.2e}",
    "stopped": "stopped by the {by} at relative residual {residual:.2e}",
    "stalled": "no further progress is possible at relative residual {residual:.2e}",
}

#: What no run can promise.
CAVEAT = "F is not convex: a convex step may be certified, the recovery never is"
