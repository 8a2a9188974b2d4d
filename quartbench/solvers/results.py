"""What does a run leave? Its result, the columns of its history, and the words that say how it ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from quartbench.model import Problem
from quartbench.model.estimate import gap as estimated_gap


class History:
    """The columns of a run, one entry for each iterate.

    Attributes
    ----------
    iteration, passes : arrays of int
        ``passes`` counts those of the method, not those of certificates.
    seconds : array
        On the clock, which stands still while the driver traces and certifies.
    value : array
        f of the iterate.
    gap : array
        The relative gap that the best lower bound of the whole run certifies for it (NaN without certificates).
    step : array
        The step length that led to it.
    restart : array of bool
        Whether the method restarted there.
    rounds, bytes : arrays of int
        How often, and how much, was sent to workers that have the rows, and back; 0 where they are here.
    """

    COLUMNS = ("iteration", "passes", "seconds", "value", "gap", "step", "restart", "rounds", "bytes")

    def __init__(self, passes, seconds, values, lower, f_scale, steps, restarts, traffic=()) -> None:
        """Make the columns of iterates whose ``values`` and bound ``lower`` are in units of ``f_scale``.

        ``traffic`` is (rounds, bytes) for each, or empty where there are none.
        """
        self.iteration = np.arange(len(values))
        self.passes = np.asarray(passes, dtype=np.int64)
        self.seconds = np.asarray(seconds, dtype=float)
        values = np.asarray(values, dtype=float)
        with np.errstate(over="ignore"):  # methods may look at points where f is out of range
            self.value = f_scale * values
        self.gap = np.full(len(values), np.nan)
        if np.isfinite(lower):
            descending = values < 0.0
            self.gap[:] = np.inf
            self.gap[descending] = np.maximum(lower / values[descending] - 1.0, estimated_gap(-1.0, -1.0))
        self.step = np.asarray(steps, dtype=float)
        self.restart = np.asarray(restarts, dtype=bool)
        sent = (
            np.array(traffic, dtype=np.int64).reshape(-1, 2) if len(traffic) else np.zeros((len(values), 2), np.int64)
        )
        self.rounds, self.bytes = sent.T

    def __len__(self) -> int:
        return len(self.iteration)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.COLUMNS:
            raise KeyError(name)
        return vars(self)[name]

    def reached(self, gap: float) -> int | None:
        """Return the first iteration whose gap is at most ``gap``, None where none is."""
        there = np.flatnonzero(self.gap <= gap)
        return int(there[0]) if there.size else None

    def to_frame(self) -> Any:
        """Return the columns as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame({name: self[name] for name in self.COLUMNS})

    def __repr__(self) -> str:
        return f"History({len(self)} iterates: {', '.join(self.COLUMNS)})"


class Result(OptimizeResult):
    """What a solve returns, as a :class:`scipy.optimize.OptimizeResult`.

    Attributes
    ----------
    x : array
        The best point found, in the shape of the problem's form.
    fun : float
        f(x), computed afresh.
    gap, lower_bound : float
        The certified relative gap (f(x) − lower_bound)/|f(x)| ≥ (f(x) − f*)/|f*|; infinite without a certificate.
    status : str
        converged, max_iter, max_passes, time_limit, stopped, stalled or trivial.
    success : bool
        Whether the status is converged or trivial.
    message : str
    nit, passes : int
        Iterations, and passes of the method.
    rounds, bytes : int
        How often, and how much, the method sent to workers that have the rows, and back.
    setup_time, solve_time : float
        Seconds to make the metric, and on the clock of the iterations.
    history : History
    solver, metric : str
        Their names.
    """


#: How a run ended, by its status.
MESSAGES = {
    "converged": "the certified relative gap {gap:.2e} is at most {rel_gap:.2e}",
    "max_iter": "stopped after {nit} iterations with certified relative gap {gap:.2e}",
    "max_passes": "stopped after {passes} passes with certified relative gap {gap:.2e}",
    "time_limit": "stopped at the time limit with certified relative gap {gap:.2e}",
    "stopped": "stopped by the {by} with certified relative gap {gap:.2e}",
    "stalled": "no further progress is possible at certified relative gap {gap:.2e}",
    "trivial": "c lies in the polar cone, so the minimiser is 0",
}


def ended(
    problem: Problem,
    x: np.ndarray,
    value: float,
    lower: float,
    status: str,
    history: History,
    *,
    f_scale: float = 1.0,
    rel_gap: float = 0.0,
    gap: float,
    setup_time: float = 0.0,
    solver: str,
    metric: str,
    reason: str = "",
    by: str = "",
    spent: tuple[int, float] | None = None,
) -> Result:
    """Return the result of a run: every one is built here.

    Parameters
    ----------
    problem : Problem
        As the user gave it.
    x : array of shape (n,)
        The point, flat, in the user's units.
    value, lower : float
        f(x) and the lower bound on f*, in units of ``f_scale``.
    status : str
    history : History
    gap : float
        What was proved of x; infinite without certificates.
    by, reason : str
        Who stopped the run, and why the method did what it did, for the message.
    spent : tuple of (int, float), optional
        Passes and seconds of the run, where it ended within an iteration: else those of its last iterate.
    """
    nit = max(len(history) - 1, 0)
    passes, seconds = spent or ((int(history.passes[-1]), float(history.seconds[-1])) if len(history) else (0, 0.0))
    words = {"gap": gap, "rel_gap": rel_gap, "nit": nit, "passes": passes, "by": by}
    return Result(
        x=problem.form.native(x),
        fun=f_scale * value,
        gap=gap,
        lower_bound=f_scale * lower,
        status=status,
        success=status in ("converged", "trivial"),
        message="; ".join(filter(None, (MESSAGES[status].format(**words), reason))),
        nit=nit,
        passes=passes,
        rounds=int(history.rounds[-1]) if len(history) else 0,
        bytes=int(history.bytes[-1]) if len(history) else 0,
        setup_time=setup_time,
        solve_time=seconds,
        history=history,
        solver=solver,
        metric=metric,
    )


def trivial(problem: Problem, solver: str) -> Result:
    """Return the result of a problem whose minimiser is 0, as c lies in the polar cone."""
    nothing = History([], [], [], -np.inf, 1.0, [], [])
    return ended(problem, np.zeros(problem.dim), 0.0, 0.0, "trivial", nothing, gap=0.0, solver=solver, metric="none")
