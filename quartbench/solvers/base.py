"""What a solver is, how it is found by name, and the driver that runs it: stopping, tracing, certifying, the clock.

A solver is a generator of iterates and knows nothing of clocks, files or screens. The driver gives it a problem of
moderate numbers, a metric and a start in 𝒞 = K ∩ {⟨c,y⟩ = 1}, and takes the iterates one at a time.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import itertools
import math
import os
import sys
import warnings
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import entry_points
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from quartbench import precondition
from quartbench.errors import ProblemError, unknown_name
from quartbench.model import Bounds, Form, GramForm, GraphForm, Metric, Problem
from quartbench.model import certify as certificate_at
from quartbench.model.certificate import DENSE_DIMENSION, gap
from quartbench.precondition.factor import factored_single, uniform_weights

from .steps import theory

#: The entry point group through which an installed package offers its solvers.
GROUP = "quartbench.solvers"

#: 3/4^{4/3}: f_hom(y) = −(3/4^{4/3}) ρ(y)^{−1/3} where ⟨c,y⟩ = 1.
HOMOGENISED = 3.0 / 4.0 ** (4.0 / 3.0)

#: Relative difference of values that is rounding.
TIE = 2.0 * sys.float_info.epsilon

#: A certificate is sharpened, which costs some ten passes, where it is within this factor of the target.
NEAR = 30.0


class Iterate(NamedTuple):
    """One point of a run. Its arrays are the driver's from then on: the solver does not write to them again.

    Attributes
    ----------
    point : array of shape (n,)
        A point of the cone, at any positive scale: the driver moves it to the best point of its ray.
    value : float
        f there, or already at the best point of the ray.
    step : float
        The step length that led here (NaN at the start).
    restart : bool
        Whether the method restarted here.
    evaluated : tuple, optional
        ρ, ∇ρ and the image of the point where they are known: a certificate then costs a pass less.
    """

    point: np.ndarray
    value: float
    step: float = math.nan
    restart: bool = False
    evaluated: tuple[float, np.ndarray, np.ndarray] | None = None


class Solver:
    """A method: hyper-parameters in the constructor, iterates from a generator. Register it with :func:`register`."""

    name: ClassVar[str] = "solver"
    #: Raised when the iterates of the method change: results of an older version are then not mixed with new ones.
    version: ClassVar[int] = 1
    #: Whether this is somebody else's method, held beside ours for comparison.
    peer: ClassVar[bool] = False
    #: The metric that the method gets where the caller leaves it to the solver; None for what serves the problem best.
    metric: ClassVar[str | None] = None
    #: Whether an iterate costs so much that each is worth a certificate.
    costly: ClassVar[bool] = False
    #: Why the method does what it does, for the message of the result.
    reason: str = ""

    def iterates(self, problem: Problem, metric: Metric, start: np.ndarray) -> Iterator[Iterate]:
        """Yield the start as an iterate, then one iterate after another, for as long as there is progress to make.

        Parameters
        ----------
        problem : Problem
            Not trivial, with numbers of moderate size. Points are flat real vectors.
        metric : Metric
            One whose projections the cone has.
        start : array of shape (n,)
            A point of the cone with ⟨c,start⟩ = 1.
        """
        raise NotImplementedError

    def choose_metric(self, problem: Problem, rel_gap: float | None) -> Metric:
        """Return the metric for a problem where the caller leaves it to the solver."""
        return precondition.metric(problem.form.scaled(1.0), self.metric or automatic_metric(problem))

    def prepare(self, problem: Problem, metric: Metric) -> None:
        """Do once what belongs to the set-up of a run and is timed as such: the constants of a fixed step, say."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if not key.startswith("_"))
        return f"{type(self).__name__}({settings})"


def homogenised(rho: float) -> float:
    """Return f_hom(y) = f(s(y)y) from ρ(y), where ⟨c,y⟩ = 1."""
    return -HOMOGENISED / rho ** (1.0 / 3.0)


def choice(argument: str, value: str, known: tuple[str, ...]) -> str:
    """Return a setting that is one of the known words; raise with the nearest one where it is not."""
    if value not in known:
        raise unknown_name(argument, value, known)
    return value


# The registry ---------------------------------------------------------------------------------------------------------

_registry: dict[str, type[Solver]] = {}
_entry_points_read = False


def register(name: str) -> Callable[[type[Solver]], type[Solver]]:
    """Register a solver class under a name; from then on it is in every list, test, study and benchmark."""

    def decorate(cls: type[Solver]) -> type[Solver]:
        cls.name = name
        _registry[name] = cls
        return cls

    return decorate


def solvers() -> dict[str, type[Solver]]:
    """Return the registered solvers by name, those of installed packages included."""
    global _entry_points_read
    if not _entry_points_read:
        _entry_points_read = True
        for entry in entry_points(group=GROUP):
            try:
                cls = _solver_class(entry.load(), f"entry point {entry.name!r}")
            except Exception as error:
                # A broken package of someone else must not take the solvers of this one with it.
                warnings.warn(f"the solver {entry.name!r} of {entry.value} cannot be loaded: {error}", stacklevel=2)
            else:
                if entry.name not in _registry:
                    register(entry.name)(cls)
    return dict(sorted(_registry.items()))


def describe(solver: type[Solver]) -> str:
    """Return the one line that lists show: the first of the docstring."""
    return inspect.cleandoc(solver.__doc__ or "").partition("\n")[0]


def load_solver(spec: str) -> type[Solver]:
    """Return the solver class that ``"path/to/file.py:MySolver"`` names, and register it under its name.

    A class that registers itself keeps that name; another one is called after its class, in lower case.
    """
    path, _, attribute = spec.rpartition(":")
    if not path or not attribute:
        raise ProblemError(f"solver must be a name or 'path/to/file.py:Class', found {spec!r}")
    file = Path(path)
    if not file.is_file():
        raise ProblemError(f"solver {spec!r}: there is no file {path!r}")
    module_spec = importlib.util.spec_from_file_location(f"quartbench_user_{file.stem}", file)
    if module_spec is None or module_spec.loader is None:
        raise ProblemError(f"solver {spec!r}: {path!r} is not a Python file")
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise ProblemError(f"solver {spec!r}: {path!r} cannot be imported ({error!r})") from error
    if not hasattr(module, attribute):
        classes = (item for item in vars(module).items() if inspect.isclass(item[1]) and hasattr(item[1], "iterates"))
        raise unknown_name(f"class in {path!r}", attribute, dict(classes))
    cls = _solver_class(getattr(module, attribute), repr(spec))
    if _registry.get(cls.name) is not cls:
        register(cls.name if cls.name != Solver.name else attribute.lower())(cls)
    return cls


def _solver_class(found: Any, where: str) -> type[Solver]:
    if not (inspect.isclass(found) and callable(getattr(found, "iterates", None))):
        raise ProblemError(f"{where} must be a class with a method iterates(problem, metric, start), found {found!r}")
    if not hasattr(found, "name"):
        found.name = found.__name__.lower()
    return found


def make_solver(solver: str | Solver | type[Solver]) -> Solver:
    """Return a solver from its name, ``"file.py:Class"``, its class, or itself."""
    if isinstance(solver, str):
        known = solvers()
        if solver in known:
            return known[solver]()
        if ":" in solver or solver.endswith(".py") or os.sep in solver:
            return load_solver(solver)()
        raise unknown_name("solver", solver, known)
    if inspect.isclass(solver):
        return _solver_class(solver, "solver")()
    if not callable(getattr(solver, "iterates", None)):
        raise ProblemError(f"solver must be a name, a Solver or its class, found {type(solver).__name__}")
    return solver


# What a run leaves ----------------------------------------------------------------------------------------------------


class History:
    """The columns of a run, one entry an iterate.

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
    """

    COLUMNS = ("iteration", "passes", "seconds", "value", "gap", "step", "restart")

    def __init__(self, **columns: np.ndarray) -> None:
        for name in self.COLUMNS:
            setattr(self, name, columns[name])

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
    setup_time, solve_time : float
        Seconds to make the metric, and on the clock of the iterations.
    history : History
    solver, metric : str
        Their names.
    """


class State:
    """What a callback sees: the run after an iterate."""

    __slots__ = ("_form", "_point", "_scale", "gap", "iteration", "passes", "seconds", "value")

    def __init__(self, iteration, passes, seconds, value, gap, point, scale, form) -> None:
        self.iteration, self.passes, self.seconds = iteration, passes, seconds
        self.value, self.gap = value, gap
        self._point, self._scale, self._form = point, scale, form

    @property
    def x(self) -> np.ndarray:
        """The point of the iterate, as the method holds it: homogenised methods keep ⟨c,x⟩ fixed, not the scale."""
        return self._form.native(self._scale * self._point)


MESSAGES = {
    "converged": "the certified relative gap {gap:.2e} is at most {rel_gap:.2e}",
    "max_iter": "stopped after {nit} iterations with certified relative gap {gap:.2e}",
    "max_passes": "stopped after {passes} passes with certified relative gap {gap:.2e}",
    "time_limit": "stopped at the time limit with certified relative gap {gap:.2e}",
    "stopped": "stopped by the {by} with certified relative gap {gap:.2e}",
    "stalled": "no further progress is possible at certified relative gap {gap:.2e}",
    "trivial": "c lies in the polar cone, so the minimiser is 0",
}


# The driver -----------------------------------------------------------------------------------------------------------


def solve(
    problem: Problem,
    solver: str | Solver | type[Solver] = "auto",
    metric: str | Metric = "auto",
    rel_gap: float | None = 1e-6,
    max_iter: int | None = 100_000,
    max_passes: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    callback: Callable[[State], Any] | None = None,
    progress: bool = False,
    certify: bool = True,
    dtype: str = "float64",
) -> Result:
    """Minimise f over the cone of a problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem
        Never changed; its form's count of passes neither.
    solver : str, Solver or class
        A registered name, ``"path/to/file.py:Class"``, or a solver with its hyper-parameters.
    metric : str or Metric
        ``"identity"``, ``"uniform"``, ``"lewis"``, ``"diagonal"``, a Metric made for this form, or ``"auto"``: what
        the solver chooses; uniform, for most, where it can be factored and the cone allows it.
    rel_gap : float or None
        Stop when (f − lower bound)/|f| is at most this; None never stops on it.
    max_iter, max_passes : int or None
        Stop after so many iterations, or passes of the method.
    time_limit : float or None
        Stop after so many seconds of set-up and iterations.
    start : array, optional
        Any point with ⟨c,start⟩ > 0; projected onto the cone. Else the minimum-norm point of 𝒞 (ERRATA 7).
    callback : callable, optional
        Called with a :class:`State` after every iterate, off the clock; stops the run by returning False.
    progress : bool
        Show a progress bar with the certified gap.
    certify : bool
        Without certificates nothing is spent on them, no gap is known and none stops the run.
    dtype : {"float64", "float32"}
        With ``"float32"`` dense rows are rounded, which halves the traffic of a pass, until that shows; the rest of
        the way to any gap is in double precision. Certificates always are.

    Returns
    -------
    Result

    Notes
    -----
    The clock runs while the method computes. It stands still for certificates, tracing and callbacks, and starts
    after the kernels are compiled. Ctrl-C ends the run with the best point so far and status ``stopped``.
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem must be a Problem, found {type(problem).__name__}")
    method = make_solver(solver)
    if choice("dtype", dtype, ("float64", "float32")) == "float32":
        from .single import InSingle

        method = InSingle(method)
    require_positive("rel_gap", rel_gap)
    require_positive("max_iter", max_iter, zero=True)
    require_positive("max_passes", max_passes)
    require_positive("time_limit", time_limit, zero=True)
    if problem.trivial:
        return _trivial(problem, method)
    scaled, made_here = problem.normalised(), isinstance(metric, str)
    metric, setup_time = _metric(
        method, scaled.problem, metric, scaled.problem.form.scale / problem.form.scale, rel_gap
    )
    scaled.problem.cone.require_metric(metric)
    if hasattr(method, "prepare"):
        started = perf_counter()
        method.prepare(scaled.problem, metric)
        setup_time += perf_counter() - started
    point = starting_point(scaled.problem, metric, start)
    run = _Run(problem, scaled, method, metric, setup_time)
    run.trusted = made_here
    run.limits(rel_gap if certify else None, max_iter, max_passes, time_limit)
    _warm(method, scaled.problem, metric, point)
    with _bar(method, rel_gap) if progress and certify else nullcontext() as bar:
        status = run.follow(point, callback, certify, bar)
    return run.result(status)


class _Run:
    """One run: its limits, its columns, the best point, and what certificates have shown so far."""

    def __init__(self, problem, scaled, method, metric, setup_time) -> None:
        self.original = problem
        self.problem, self.x_scale, self.f_scale = scaled
        self.method, self.metric, self.setup_time = method, metric, setup_time
        # Certificates read the rows through a twin of the form, so that their passes are not the method's.
        self.judged = copy.copy(self.problem)
        self.judged.form = self.problem.form.scaled(1.0)
        self.judge = metric if metric.tau is not None else None
        self.passes, self.seconds = array("q"), array("d")
        self.values, self.steps, self.restarts = array("d"), array("d"), array("b")
        self.best: Iterate | None = None
        self.judged_point: np.ndarray | None = None
        self.kept: np.ndarray | None = None
        self.value, self.lower, self.gap = math.inf, -math.inf, math.inf
        self.true = -math.inf
        self.by, self.cost, self.trusted = "", 0, False

    def limits(self, rel_gap, max_iter, max_passes, time_limit) -> None:
        """Set when to stop; None is never."""
        self.rel_gap = -1.0 if rel_gap is None else rel_gap
        self.max_iter = math.inf if max_iter is None else max_iter
        self.max_passes = math.inf if max_passes is None else max_passes
        self.time_limit = math.inf if time_limit is None else time_limit - self.setup_time

    def follow(self, start, callback, certify, bar) -> str:
        """Take iterates until something says stop, and return the status."""
        self.certifies = certify
        self.start, self.best = start, Iterate(start, math.inf)
        iterates = self.method.iterates(self.problem, self.metric, start)
        try:
            status = self._loop(iterates, callback, bar)
        except KeyboardInterrupt:
            status, self.by = "stopped", "keyboard"
        finally:
            getattr(iterates, "close", lambda: None)()
        with suppress(KeyboardInterrupt):  # a second Ctrl-C gives up the last certificate, not the result
            self._judge()
        return "converged" if self.gap <= self.rel_gap and status != "stopped" else status

    def _loop(self, iterates, callback, bar) -> str:
        form, best_value = self.problem.form, sys.float_info.max
        schedule = _Schedule(self.rel_gap)
        trace = (self.passes.append, self.seconds.append, self.values.append, self.steps.append, self.restarts.append)
        add_passes, add_seconds, add_value, add_step, add_restart = trace
        max_iter, max_passes, time_limit = self.max_iter, self.max_passes, self.time_limit
        seconds, iteration, check = 0.0, -1, 0
        costly = getattr(self.method, "costly", False)
        resumed = perf_counter()
        for iterate in iterates:
            seconds += perf_counter() - resumed
            iteration += 1
            point, value, step, restart, _ = iterate
            passes = form.passes
            add_passes(passes)
            add_seconds(seconds)
            add_value(value)
            add_step(step)
            add_restart(restart)
            if value <= best_value + TIE * abs(best_value):
                # Of values that rounding cannot tell apart the latest is the closest: certificates see the difference.
                best_value, self.best = min(value, best_value), iterate
            if iteration >= check:
                self._judge()
                # A value below the true one would keep all later points, however good, from being the best.
                best_value = max(best_value, self.true)
                if self.gap <= self.rel_gap:
                    return "converged"
                if schedule.stalled(iteration, best_value, self.gap):
                    return "stalled"
                check = iteration + 1 if costly else schedule.following(iteration, self.gap, self.cost)
                if bar is not None:
                    bar(self.gap, iteration)
            if callback is not None:
                state = State(
                    iteration, passes, seconds, self.f_scale * value, self.gap, point, self.x_scale, self.original.form
                )
                if callback(state) is False:
                    self.by = "callback"
                    return "stopped"
            if iteration >= max_iter:
                return "max_iter"
            if passes >= max_passes:
                return "max_passes"
            if seconds >= time_limit:
                return "time_limit"
            resumed = perf_counter()
        return "stalled"

    def _judge(self) -> None:
        """Certify the best point, unless it was the last one certified."""
        if not self.certifies or self.best.point is self.judged_point:
            return
        before = self.judged.form.passes
        if self.judge is None:
            self.judge, self.trusted = judging_metric(self.judged.form), True
        point, evaluated = self._feasible(self.best)
        if evaluated is None:
            evaluated = self.judged.form.evaluate(point)
        self.judged_point = self.best.point
        found = certificate_at(self.judged, point, self.judge, evaluated, refine=0, trusted=self.trusted)
        value = found.value
        if self.best.evaluated is evaluated and gap(value, found.lower_bound) <= NEAR * self.rel_gap:
            # The bound holds for any image, f for that of the point alone, from which updates of a method may drift.
            value = self.judged.homogenised_value(point)
        self.true = value
        self._keep(point, value)
        self.lower = max(self.lower, found.lower_bound)
        if self.rel_gap < gap(self.value, self.lower) <= NEAR * self.rel_gap:
            sharp = certificate_at(self.judged, point, self.judge, evaluated, trusted=self.trusted)
            self.lower = max(self.lower, sharp.lower_bound)
        self.gap = gap(self.value, self.lower)
        self.cost = self.judged.form.passes - before

    def _feasible(self, iterate: Iterate) -> tuple[np.ndarray, tuple | None]:
        """Return the point of an iterate moved into the cone: a method's slip must not become a false gap."""
        point = iterate.point
        inside = self.judged.cone.euclidean(point)
        if inside is point or np.abs(inside - point).max() <= 1e-13 * np.abs(point).max():
            return point, iterate.evaluated
        return inside, None

    def _keep(self, point: np.ndarray, value: float) -> None:
        if value < self.value:
            self.kept, self.value = point, value

    def result(self, status: str) -> Result:
        """Return what the run found: the best point by values computed here, whatever the method reported."""
        form = self.judged.form
        if self.kept is None or not self.certifies:
            for iterate in (Iterate(self.start, math.nan), self.best):
                point, _ = self._feasible(iterate)
                self._keep(point, self.judged.homogenised_value(point))
        scale = self.judged.best_scale(form.value(self.kept), self.judged.inner(self.kept))
        self.value = -0.75 * scale * self.judged.inner(self.kept)
        if self.certifies:
            self.gap = gap(self.value, self.lower)
        rows = min(map(len, (self.passes, self.seconds, self.values, self.steps, self.restarts)))
        history = self._history(rows)
        nit, passes = max(rows - 1, 0), int(self.passes[rows - 1]) if rows else 0
        words = {"gap": self.gap, "rel_gap": self.rel_gap, "nit": nit, "passes": passes, "by": self.by}
        return Result(
            x=self.original.form.native(self.x_scale * scale * self.kept),
            fun=self.f_scale * self.value,
            gap=self.gap,
            lower_bound=self.f_scale * self.lower,
            status=status,
            success=status == "converged",
            message="; ".join(filter(None, (MESSAGES[status].format(**words), getattr(self.method, "reason", "")))),
            nit=nit,
            passes=passes,
            setup_time=self.setup_time,
            solve_time=float(history.seconds[-1]) if rows else 0.0,
            history=history,
            solver=self.method.name,
            metric=self.metric.name,
        )

    def _history(self, rows: int) -> History:
        # Ctrl-C can fall between two columns: the rows that all of them have are the history.
        values = np.array(self.values[:rows])
        gaps = np.full(rows, np.nan)
        if np.isfinite(self.lower):
            descending = values < 0.0
            gaps[:] = np.inf
            gaps[descending] = np.maximum(self.lower / values[descending] - 1.0, gap(-1.0, -1.0))
        return History(
            iteration=np.arange(rows),
            passes=np.array(self.passes[:rows], dtype=np.int64),
            seconds=np.array(self.seconds[:rows]),
            value=self.f_scale * values,
            gap=gaps,
            step=np.array(self.steps[:rows]),
            restart=np.array(self.restarts[:rows], dtype=bool),
        )


class _Schedule:
    """When to certify: at growing distances, sooner where the gap is about to reach its target; and when to give up."""

    def __init__(self, rel_gap: float) -> None:
        self.rel_gap = rel_gap
        self.progress = 0
        self.value = self.least = math.inf
        self.before = (0, math.inf)

    def stalled(self, iteration: int, value: float, gap: float) -> bool:
        """Say whether neither value nor gap has moved while the number of iterations doubled."""
        if value < self.value - 1e-15 * abs(value) or gap < 0.99 * self.least:
            self.value, self.least, self.progress = min(value, self.value), min(gap, self.least), iteration
        return iteration > 2 * self.progress + 100

    def following(self, iteration: int, gap: float, cost: int) -> int:
        """Return the iteration of the next certificate: 5 to 33 % on, where a line through the log-gaps says.

        A certificate that cost many passes (conjugate gradients without a factor) waits longer, but not above 50 %.
        """
        nearest = iteration + max(1, iteration // 20, min(cost // 8, iteration // 2))
        farthest = max(nearest, iteration + max(4, iteration // 3))
        last, larger = self.before
        self.before = (iteration, gap)
        if not 0.0 < self.rel_gap < gap < larger < math.inf:
            return farthest if iteration else 2
        predicted = iteration + (iteration - last) * math.log(gap / self.rel_gap) / math.log(larger / gap)
        return int(min(max(predicted, nearest), farthest))


# What a run needs before it starts ------------------------------------------------------------------------------------


def starting_point(problem: Problem, metric: Metric, start: Any = None) -> np.ndarray:
    """Return a point y₀ of 𝒞 = K ∩ {⟨c,y⟩ = 1}: the one on the ray of ``start``, or that of least norm (ERRATA 7).

    The latter is P/‖P‖² with P = P_K(B⁻¹c); ⟨c,P⟩ = ‖P‖² by Moreau's theorem.
    """
    if start is None:
        point = problem.cone.project(metric.solve(problem.c), metric)
        return point / (problem.c @ point)
    flat = problem.form.flat(start, "start")
    if not np.isfinite(flat).all():
        raise ProblemError("start must be finite, found NaN or infinity")
    size = float(np.abs(flat).max())
    point = problem.cone.project(flat / size, metric) if size > 0.0 else flat
    inner = float(problem.c @ point)
    if not inner > 0.0:
        raise ProblemError(f"start must have ⟨c,start⟩ > 0 once projected onto the cone, found {inner * size:.3g}")
    return point / inner


def automatic_metric(problem: Problem) -> str:
    """Return the name of the metric that serves a problem best without a look at its numbers."""
    form, cone = problem.form, problem.cone.name
    if isinstance(form, GramForm) or cone == "second-order":
        return "identity"
    if cone == "orthant":
        return "diagonal"
    factored = isinstance(form, GraphForm) or form.dim <= DENSE_DIMENSION
    return "uniform" if factored else "identity"


def judging_metric(form: Form) -> Metric | None:
    """Return B⁽⁰⁾ to certify with where the method's own metric is no B(τ); None where certificates do without."""
    if isinstance(form, GramForm) or not (isinstance(form, GraphForm) or form.dim <= DENSE_DIMENSION):
        return None
    return factored_single(form, uniform_weights(form))


def _metric(
    method: Solver, problem: Problem, given: str | Metric, ratio: float, rel_gap: float | None
) -> tuple[Metric, float]:
    """Return the metric for a problem whose rows are ``ratio`` times the user's, and the seconds it took."""
    form = problem.form
    if isinstance(given, str):
        started = perf_counter()
        if given != "auto":
            made = precondition.metric(form.scaled(1.0), given)
        elif hasattr(method, "choose_metric"):
            made = method.choose_metric(problem, rel_gap)
        else:
            made = precondition.metric(form.scaled(1.0), automatic_metric(problem))
        return made, perf_counter() - started
    if not isinstance(given, Metric):
        raise ProblemError(f"metric must be a name or a Metric, found {type(given).__name__}")
    if given.dim != form.dim:
        raise ProblemError(f"metric must have dimension {form.dim}, found {given.dim}")
    if given._bounds is None:
        given = copy.copy(given)  # a fixed step keeps the bounds it computes with the metric: not with the user's
    return (given if ratio == 1.0 else _Rescaled(given, problem, ratio)), given.setup_seconds


class _Rescaled(Metric):
    """A user's metric B for rows that are ``ratio`` times the user's: sB with s = ‖c‖²_*/‖c‖², of moderate size again.

    B = ΣτᵢBᵢ is sB = Σ(sτᵢ/ratio²)Bᵢ' for the scaled terms, and √ρ' = ratio²√ρ ≤ (ratio²/s)β‖x‖²_{sB}.
    """

    def __init__(self, metric: Metric, problem: Problem, ratio: float) -> None:
        c = problem.c
        self.metric, self.dim, self.name = metric, metric.dim, metric.name
        self.keeps_centred, self.scale = metric.keeps_centred, float(c @ metric.solve(c) / (c @ c))
        self.diagonal = None if metric.diagonal is None else self.scale * metric.diagonal
        self.tau = None if metric.tau is None else (self.scale / ratio**2) * metric.tau
        users = problem.form.scaled(1.0 / ratio)
        self._bounds = lambda: Bounds(*(ratio**2 / self.scale * bound for bound in theory(users, metric)))

    def apply(self, x):
        return self.scale * self.metric.apply(x)

    def solve(self, v):
        return self.metric.solve(v) / self.scale


_warmed: set[tuple] = set()


def _warm(method: Solver, problem: Problem, metric: Metric, start: np.ndarray) -> None:
    """Compile what the run will call by taking its first steps, once for each kind of run in a process.

    The steps are taken on the form itself, through a twin that counts its own passes: a smaller form would choose
    other kernels (serial for parallel ones) where this one reads 4 passes of what a run reads by the hundred.
    """
    if getattr(method, "peer", False):
        return  # nothing of theirs is compiled here, and a few of their iterates may be all of them
    form = problem.form
    rows = getattr(form, "rows", None)
    storage = (type(rows), getattr(rows, "dtype", None), getattr(getattr(rows, "flags", None), "writeable", None))
    parallel = hasattr(form, "_parts") and form._parts() > 1
    kind = (repr(method), type(form), form.scale == 1.0, storage, parallel, type(metric), type(problem.cone))
    if kind in _warmed:
        return
    twin = copy.copy(problem)
    twin.form = form.scaled(1.0)
    iterates = method.iterates(twin, metric, start)
    for _ in itertools.islice(iterates, 4):
        pass
    getattr(iterates, "close", lambda: None)()
    _warmed.add(kind)


@contextmanager
def _bar(method: Solver, rel_gap: float | None) -> Iterator[Callable[[float, int], None]]:
    """Show a bar that fills as the logarithm of the certified gap falls to its target; yield what advances it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("gap {task.fields[gap]}  iteration {task.fields[iteration]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(method.name, total=1.0 if rel_gap else None, gap="–", iteration=0)
        first = math.inf

        def advance(gap: float, iteration: int) -> None:
            nonlocal first
            first = min(first, max(gap, 10.0 * rel_gap)) if rel_gap and first == math.inf else first
            done = math.log(first / gap) / math.log(first / rel_gap) if rel_gap and gap < first < math.inf else 0.0
            display.update(task, completed=min(max(done, 0.0), 1.0), gap=f"{gap:.1e}", iteration=iteration)

        yield advance


def require_positive(name: str, value: Any, zero: bool = False) -> None:
    """Raise where a limit is neither None nor positive (or zero)."""
    if value is None:
        return
    if not isinstance(value, (int, float, np.number)) or not (value > 0 or (zero and value == 0)):
        raise ProblemError(f"{name} must be {'nonnegative' if zero else 'positive'} or None, found {value!r}")


def _trivial(problem: Problem, method: Solver) -> Result:
    empty = {name: np.empty(0, dtype=kind) for name, kind in zip(History.COLUMNS, "qqdddd?", strict=True)}
    return Result(
        x=problem.form.native(np.zeros(problem.dim)),
        fun=0.0,
        gap=0.0,
        lower_bound=0.0,
        status="trivial",
        success=True,
        message=MESSAGES["trivial"],
        nit=0,
        passes=0,
        setup_time=0.0,
        solve_time=0.0,
        history=History(**empty),
        solver=method.name,
        metric="none",
    )
