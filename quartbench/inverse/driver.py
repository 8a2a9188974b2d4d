"""How is an inverse problem solved? A start, a method, and the rules that stop it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from quartbench import precondition, views
from quartbench.errors import ProblemError
from quartbench.metrics import Metric
from quartbench.solvers.prepared import require_positive
from quartbench.solvers.progress import bar

from .contract import Iterate, Method, make_method
from .problem import Problem
from .results import CAVEAT, MESSAGES, History, Result, Stage


class State(NamedTuple):
    """What a callback sees.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> seen = []
    >>> see = lambda state: seen.append(state.residual)
    >>> found = qb.inverse.phase(rows, d, callback=see)
    >>> seen[-1] < 1e-6 < seen[0]
    True
    """

    iteration: int
    passes: int
    seconds: float
    fun: float
    residual: float
    stationarity: float
    x: np.ndarray


def solve(
    problem: Problem,
    method: str | Method | type[Method] = "auto",
    start: Any = "auto",
    metric: str | Metric = "auto",
    tol: float = 1e-8,
    max_iter: int | None = 10_000,
    max_passes: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    callback: Callable[[State], Any] | None = None,
    progress: bool = False,
    stages: list[Stage] | None = None,
) -> Result:
    """Minimise F over the cone of an inverse problem from a start.

    Parameters
    ----------
    problem : Problem
        Never changed; its form's count of passes neither.
    method : str, Method or class
        A registered name, or a method with its hyper-parameters; ``auto`` picks by the problem and says why.
    start : "auto", "random" or array
        A point of the cone, or a random one; the run begins at the point of its ray that fits d best. ``auto`` is
        random here; :func:`~quartbench.inverse.phase` and its like have better ones.
    metric : str or Metric
        As for :func:`quartbench.solve`; ``auto`` leaves it to the method.
    tol : float
        Stop when √F/‖d‖ or the stationarity ‖∇F‖·‖x‖/(4‖d‖²) is at most this.
    max_iter, max_passes, time_limit
        Stop after so many iterations, passes or seconds.
    seed : int
        Of the random start.
    callback : callable, optional
        Called with a :class:`State` after every iterate; stops the run by returning False.
    progress : bool
        Show a progress bar with the residual, or the stationarity where that is less: one of them falls to ``tol``.
    stages : list of Stage, optional
        What was done before, as a start: it counts with the run.

    Returns
    -------
    Result

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(16, 100, seed=0)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> found = qb.inverse.solve(problem, start=truth + 0.1)
    >>> found.success, found.residual < 1e-6
    (True, True)
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem must be an inverse.Problem, found {type(problem).__name__}")
    if not (isinstance(tol, int | float) and tol > 0.0):
        raise ProblemError(f"tol must be a positive number, found {tol!r}")
    require_positive("max_iter", max_iter, zero=True)
    require_positive("max_passes", max_passes)
    require_positive("time_limit", time_limit, zero=True)
    began = perf_counter()
    scaled, x_scale, f_scale = problem.misfit.normalised()
    inner = problem.on(scaled)
    chosen, reason = make_method(method).chosen(inner)
    chosen.prepare(inner)
    made = _metric(inner, chosen, metric)
    if made is not None:
        problem.cone.require_metric(made)
    point = _start(problem, inner, start, seed)
    run = _Run(problem, inner, chosen, x_scale, f_scale, reason, tol)
    limits = [math.inf if limit is None else limit for limit in (max_iter, max_passes, time_limit)]
    with bar(chosen.name, tol, "residual") if progress else nullcontext((None, None)) as (advance, passing):
        status = run.follow(chosen.iterates(inner, made, point), limits, callback, advance, passing)
    return run.result(status, perf_counter() - began, list(stages or ()))


def _metric(problem: Problem, method: Method, metric: str | Metric) -> Metric | None:
    if isinstance(metric, Metric):
        return metric
    name = method.choose_metric(problem) if metric == "auto" else metric
    return None if name is None else precondition.metric(problem.form.twin(), name)


def _start(problem: Problem, scaled: Problem, start: Any, seed: int) -> np.ndarray:
    """Return a nonzero point of the cone at the best scale of its ray, in moderate numbers."""
    if isinstance(start, str):
        if start not in ("auto", "random"):
            raise ProblemError(f"start must be 'auto', 'random' or a point, found {start!r}")
        return random_start(scaled, seed)
    flat = problem.form.flat(start, "start")
    if not np.isfinite(flat).all():
        raise ProblemError("start must be finite, found NaN or infinity")
    largest = float(np.abs(flat).max())
    point = problem.cone.euclidean(flat / (largest or 1.0))
    if not point.any():
        raise ProblemError("start must not be zero once projected onto the cone: F is stationary at 0")
    return best_scale(scaled, point) * point


def random_start(problem: Problem, seed: int) -> np.ndarray:
    """Return a Gaussian point of the cone, at the scale where it fits the data best."""
    draw = np.random.default_rng(seed).standard_normal(problem.dim)
    if not problem.cone.subspace:
        draw = np.abs(draw)
    point = problem.cone.euclidean(draw)
    return best_scale(problem, point) * point


def best_scale(problem: Problem, point: np.ndarray) -> float:
    """Return the s > 0 at which F(s·x) = ρs⁴ − φ₂s² + const is least: s² = φ₂/(2ρ); 1 where there is none. One pass."""
    image = problem.misfit.image(point)
    line = problem.misfit.line(0.0 * image, image)
    return math.sqrt(-0.5 * line[2] / line[4]) if line[2] < 0.0 < line[4] else 1.0


class _Run:
    """One run of one method: follows its iterates until a rule stops them."""

    def __init__(self, original, problem, method, x_scale, f_scale, reason, tol) -> None:
        self.original, self.problem, self.method = original, problem, method
        self.x_scale, self.f_scale, self.reason, self.tol = x_scale, f_scale, reason, tol
        self.history, self.best = History(), None
        self.by = ""

    def follow(self, iterates, limits, callback, advance, passing) -> str:
        """Take iterates until the end, and say which rule ended them."""
        max_iter, max_passes, time_limit = limits
        clock, resumed = 0.0, perf_counter()
        try:
            for count, found in enumerate(iterates):
                clock += perf_counter() - resumed
                residual, stationarity = self._note(found, clock)
                if not math.isfinite(found.at.value):
                    return "stalled"
                if advance is not None:
                    advance(min(residual, stationarity), count)
                    passing(self.problem.misfit.passes)
                if callback is not None:
                    state = State(
                        count,
                        self.problem.misfit.passes,
                        clock,
                        self.f_scale * found.at.value,
                        residual,
                        stationarity,
                        self.original.form.native(self.x_scale * found.at.point),
                    )
                    if callback(state) is False:
                        self.by = "callback"
                        return "stopped"
                if residual <= self.tol:
                    return "fitted"
                if stationarity <= self.tol:
                    return "stationary"
                if count >= max_iter:
                    return "max_iter"
                if self.problem.misfit.passes >= max_passes:
                    return "max_passes"
                if clock >= time_limit:
                    return "time_limit"
                resumed = perf_counter()
        except KeyboardInterrupt:
            self.by = "user"
            return "stopped"
        return "stalled"

    def _note(self, found: Iterate, clock: float) -> tuple[float, float]:
        problem, at = self.problem, found.at
        size = problem.size
        residual = math.sqrt(max(at.value, 0.0)) / size
        inside = problem.reduced(at.point, at.gradient)
        stationarity = float(np.linalg.norm(inside)) * float(np.linalg.norm(at.point)) / (4.0 * size * size)
        self.history.add(
            problem.misfit.passes, clock, self.f_scale * at.value, residual, stationarity, found.step, found.gap
        )
        self.reason = found.reason or self.reason
        if self.best is None or at.value <= self.best[0].value:
            self.best = (at, residual, stationarity)
        return residual, stationarity

    def result(self, status: str, seconds: float, stages: list[Stage]) -> Result:
        """Return what the run found: its best point."""
        if self.best is None:
            raise ProblemError(f"{self.method.name} gave no iterate: F at the start must be finite")
        at, residual, stationarity = self.best
        nit, fun = len(self.history) - 1, self.f_scale * at.value
        stages = [
            *stages,
            Stage("solve", self.method.name, nit, self.problem.misfit.passes, seconds, fun, self.history),
        ]
        passes = sum(stage.passes for stage in stages)
        words = {"residual": residual, "by": self.by}
        words |= {"nit": views.counted(nit, "iteration"), "passes": views.counted(passes, "pass", "passes")}
        return Result(
            x=self.original.form.native(self.x_scale * at.point),
            fun=fun,
            residual=residual,
            stationarity=stationarity,
            status=status,
            success=status in ("fitted", "stationary"),
            message="; ".join(filter(None, (MESSAGES[status].format(**words), self.reason, CAVEAT))),
            nit=nit,
            passes=passes,
            seconds=sum(stage.seconds for stage in stages),
            stages=stages,
            history=self.history,
            method=self.method.name,
        )
