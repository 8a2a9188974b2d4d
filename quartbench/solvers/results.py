"""What does a run leave? Its result, the columns of its history, and the words that say how it ended."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

from quartbench import views
from quartbench.errors import ProblemError
from quartbench.forms import Form
from quartbench.model import Problem
from quartbench.model.estimate import gap as estimated_gap

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    Examples
    --------
    >>> problem = qb.Problem(np.eye(3), [1.0, 2.0, 3.0])
    >>> history = qb.solve(problem, "homgd", rel_gap=1e-9).history
    >>> last = len(history) - 1
    >>> len(history), bool(history.gap[last] <= 1e-9), history.reached(1e-9) == last
    (9, True, True)
    """

    COLUMNS = ("iteration", "passes", "seconds", "value", "gap", "step", "restart", "rounds", "bytes")

    iteration: np.ndarray
    passes: np.ndarray
    seconds: np.ndarray
    value: np.ndarray
    gap: np.ndarray
    step: np.ndarray
    restart: np.ndarray
    rounds: np.ndarray
    bytes: np.ndarray

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

    @classmethod
    def later(cls, make: Callable[..., History], *arguments: Any) -> History:
        """Return ``make(*arguments)``, made when a column is first asked for: most histories are never looked at."""
        history = object.__new__(cls)
        history._made_by = make, arguments
        return history

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there: a column that is yet to be made, or nothing.
        if name not in self.COLUMNS or "_made_by" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        make, arguments = self._made_by
        vars(self).update(vars(make(*arguments)))
        return vars(self)[name]

    def __len__(self) -> int:
        return len(self.iteration)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.COLUMNS:
            raise KeyError(name)
        return getattr(self, name)

    def reached(self, gap: float) -> int | None:
        """Return the first iteration whose gap is at most ``gap``, None where none is."""
        there = np.flatnonzero(self.gap <= gap)
        return int(there[0]) if there.size else None

    def to_frame(self) -> Any:
        """Return the columns as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame({name: self[name] for name in self.COLUMNS})

    def plot(self, against: Sequence[str] = ("passes", "seconds")) -> Figure:
        """Draw the certified gap against passes and seconds (see :func:`quartbench.plot`), and return the figure."""
        from .plots import plot

        return plot(self, against=against)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> History:
        """Return the history of columns by name, as ``to_json`` of a result keeps them."""
        made = cls.__new__(cls)
        for name in cls.COLUMNS:
            kind = {
                "iteration": np.int64,
                "passes": np.int64,
                "restart": bool,
                "rounds": np.int64,
                "bytes": np.int64,
            }.get(name, float)
            setattr(made, name, np.asarray(columns[name], dtype=kind))
        return made

    def __repr__(self) -> str:
        return f"History({len(self)} iterates: {', '.join(self.COLUMNS)})"


class Result(OptimizeResult):
    """What a solve returns, as a :class:`scipy.optimize.OptimizeResult`.

    Attributes
    ----------
    x : array
        The best point found, in the shape of the problem's form.
    fun : float
        f(x), computed afresh, and rounded up where it is certified. Where the status is unbounded, x shows a direction
        in which f falls without end, and this is −∞, or where that is so to rounding alone, what f is proved to fall
        to.
    gap, lower_bound : float
        The certified relative gap (f(x) − lower_bound)/|f(x)| ≥ (f(x) − f*)/|f*|; infinite without a certificate.
    proved : bool
        Whether ``fun`` and ``lower_bound`` are true in exact arithmetic; False where the form's products or the cone's
        projections are taken on trust (those of one's own kinds), where the form is too large to factor, where the rank
        of its rows is a decision, and without a certificate.
    status : str
        converged, max_iter, max_passes, time_limit, stopped, stalled, trivial or unbounded.
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

    Examples
    --------
    >>> result = qb.solve(qb.Problem(qb.StackedForm(np.eye(2)), [4.0, 4.0]), rel_gap=1e-9)
    >>> result.x.round(6), round(result.fun, 6), result.status
    (array([1., 1.]), -6.0, 'converged')
    >>> result.lower_bound <= -6.0 <= result.fun
    True
    >>> again = qb.Result.from_json(result.to_json())
    >>> bool((again.x == result.x).all()), again.gap == result.gap
    (True, True)
    >>> len(again.history) == len(result.history)
    True
    """

    x: np.ndarray
    fun: float
    gap: float
    lower_bound: float
    proved: bool
    status: str
    success: bool
    message: str
    nit: int
    passes: int
    rounds: int
    bytes: int
    setup_time: float
    solve_time: float
    history: History
    solver: str
    metric: str

    def to_json(self, path: str | os.PathLike | None = None) -> str:
        """Return the result, history included, as JSON with every digit; write it to a file where a path is given.

        Infinities and NaN, which JSON has not, are the words "inf", "-inf" and "nan".
        """
        record: dict[str, Any] = {"quartbench": "result"} | {name: self[name] for name in RECORDED}
        record["x"] = {"shape": self.x.shape, "complex": self.x.dtype.kind == "c", "numbers": _reals(self.x)}
        record["history"] = {name: self.history[name].tolist() for name in History.COLUMNS}
        text = json.dumps(_worded(record), allow_nan=False, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike) -> Result:
        """Return the result that ``to_json`` wrote, from its text or its file."""
        text = str(source) if isinstance(source, str) and source.lstrip()[:1] == "{" else _file(source)
        try:
            record = json.loads(text)
            if record.pop("quartbench") != "result":
                raise KeyError("quartbench")
            kept, columns = record.pop("x"), record.pop("history")
            numbers = np.array(kept["numbers"], dtype=float)
            x = numbers.view(complex) if kept["complex"] else numbers
            history = History.of_columns(columns)
            found = {name: float(record[name]) if name in NUMBERS else record[name] for name in RECORDED}
            return cls(x=x.reshape(kept["shape"]), history=history, **found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProblemError(f"source must be a result written by to_json, found something else: {error}") from None

    def _repr_html_(self) -> str:
        facts = {
            "status": f"{self.status}: {self.message}",
            "f(x)": f"{self.fun:.12g}",
            "certified": views.certified(self.lower_bound, self.gap, self.proved),
            "x": views.numbers(self.x.reshape(-1)),
            "work": views.work(self.nit, self.passes),
            "time": f"set-up {views.duration(self.setup_time)}, solve {views.duration(self.solve_time)}",
        }
        return views.fact_page(f"{self.solver} in the metric {self.metric}", facts)


#: What of a result is a number that may be infinite, and all that is kept of it in JSON beside x and history.
NUMBERS = ("fun", "gap", "lower_bound", "setup_time", "solve_time")
RECORDED = (*NUMBERS, "proved", "status", "success", "message", "nit", "passes", "rounds", "bytes", "solver", "metric")


def _reals(x: np.ndarray) -> list[float]:
    return np.ascontiguousarray(x).view(float).reshape(-1).tolist()


def _worded(value: Any) -> Any:
    """Return a record with words for the numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: _worded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_worded(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _file(path: str | os.PathLike) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(
            f"source must be a result as JSON or its file, found {os.fspath(path)!r:.80}: {error}"
        ) from None


#: How a run ended, by its status.
MESSAGES = {
    "converged": "the certified relative gap {gap:.2e} is at most {rel_gap:.2e}",
    "max_iter": "stopped after {nit} with certified relative gap {gap:.2e}",
    "max_passes": "stopped after {passes} with certified relative gap {gap:.2e}",
    "time_limit": "stopped at the time limit with certified relative gap {gap:.2e}",
    "stopped": "stopped by the {by} with certified relative gap {gap:.2e}",
    "stalled": "no further progress is possible at certified relative gap {gap:.2e}",
    "unbounded": "f is unbounded below along x",
    "trivial": "c lies in the polar cone, so the minimiser is 0",
}


def ended(
    form: Form,
    x: np.ndarray,
    value: float,
    lower: float,
    status: str,
    history: History,
    *,
    rel_gap: float = 0.0,
    gap: float,
    proved: bool,
    setup_time: float = 0.0,
    solver: str,
    metric: str,
    reason: str = "",
    by: str = "",
    nit: int | None = None,
    spent: tuple[int, float] | None = None,
) -> Result:
    """Return the result of a run: every one is built here.

    Parameters
    ----------
    form : Form
        As the user gave it.
    x : array of shape (n,)
        The point, flat, in the user's units.
    value, lower : float
        f(x) and the lower bound on f*.
    status : str
    history : History
    gap : float
        The certified gap of x; infinite without certificates.
    proved : bool
        Whether ``value`` and ``lower`` are true in exact arithmetic.
    by, reason : str
        Who stopped the run, and why the method did what it did, for the message.
    nit : int, optional
        Iterations, and
    spent : tuple of (int, float), optional
        passes and seconds of the run, where they are known, or where it ended within an iteration: else those that the
        history tells.
    """
    nit = max(len(history) - 1, 0) if nit is None else nit
    passes, seconds = spent or ((int(history.passes[-1]), float(history.seconds[-1])) if len(history) else (0, 0.0))
    rounds, sent = (int(history.rounds[-1]), int(history.bytes[-1])) if form.remote and len(history) else (0, 0)
    words = {"gap": gap, "rel_gap": rel_gap, "by": by}
    words |= {"nit": views.counted(nit, "iteration"), "passes": views.counted(passes, "pass", "passes")}
    return Result(
        x=form.native(x),
        fun=value,
        gap=gap,
        lower_bound=lower,
        proved=proved,
        status=status,
        success=status in ("converged", "trivial"),
        message="; ".join(filter(None, (MESSAGES[status].format(**words), reason))),
        nit=nit,
        passes=passes,
        rounds=rounds,
        bytes=sent,
        setup_time=setup_time,
        solve_time=seconds,
        history=history,
        solver=solver,
        metric=metric,
    )


def trivial(problem: Problem, solver: str) -> Result:
    """Return the result of a problem whose minimiser is 0, as c lies in the polar cone."""
    nothing = History([], [], [], -np.inf, 1.0, [], [])
    x = np.zeros(problem.dim)
    known = {"gap": 0.0, "proved": problem.cone.rigorous, "solver": solver, "metric": "none"}
    return ended(problem.form, x, 0.0, 0.0, "trivial", nothing, **known)
