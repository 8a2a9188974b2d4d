"""How does one run of a study happen? In a process of its own, which makes the problem, solves it, checks the answer.

The process stays for many runs, so that kernels stay compiled; what crashes or hangs in it takes no result with it.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from quartbench import instances, precondition
from quartbench.errors import ProblemError
from quartbench.model import Problem, certify
from quartbench.model.estimate import certifying_metric
from quartbench.solvers import Result, Solver, State, load_solver, make_solver, solve, solvers

from .bench import Bench
from .grid import kind_of
from .recovering import RecoveryBench
from .regressing import RegressionBench
from .rows import HONEST, TRACED, kept, lie
from .spreading import Spread
from .timing import equal_threads

#: What makes f* where nothing is planted, in this order: the first that certifies it well enough.
REFERENCES = ("homnewton", "homnewton-cg", "auto", "accel-homgd")
REFERENCE_GAP, REFERENCE_ENOUGH, REFERENCE_SECONDS = 1e-12, 1e-11, 30.0

#: Searches for the least and for the largest √ρ/‖x‖² each.
KAPPA_STARTS = 4

#: Iterations after which workers have loaded what a method calls.
SPREAD = 2

#: How much weaker than the run's best certificate that of its last point may be.
WEAKER = 3.0


def serve(connection: multiprocessing.connection.Connection, threads: int) -> None:
    """Do the runs that come through a connection until it closes. The target of the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    threading.Thread(target=_leave_with_parent, daemon=True).start()

    def announce(stage: str, known: dict[str, Any]) -> None:
        connection.send({"stage": stage, "known": known})

    made: dict[str, Any] = {"convex": ConvexBench, "recovery": RecoveryBench, "regression": RegressionBench}
    benches = {kind: bench(announce) for kind, bench in made.items()}
    with equal_threads(threads):
        announce("ready", {})
        while True:
            try:
                request = connection.recv()
                bench = benches[kind_of(request["generator"]).name]
                connection.send(bench.run(request))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                benches["convex"].spread.close()
                return


def _leave_with_parent() -> None:
    """End this process when the one that started it has gone, however long the run under way still is."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


class ConvexBench(Bench):
    """One convex problem at a time, with its f*, bounds of metrics, and the judge's factor."""

    identifying = ("generator", "arguments", "seed", "cluster", "blocks")
    shared = "the rows or to c"

    def __init__(self, announce: Callable[[str, dict[str, Any]], None]) -> None:
        super().__init__(announce)
        self.spread = Spread()

    # The problem ------------------------------------------------------------------------------------------------------

    def make(self, request):
        """Make the problem, and spread its rows over workers where they are to be there."""
        arguments = json.loads(request["arguments"])
        self.problem: Problem = instances.make(request["generator"], **arguments, seed=request["seed"])
        #: What methods are given: the same problem, its rows perhaps on workers; what checks them has them here.
        self.given = self.problem
        if request["cluster"]:
            self.given = self.spread.over(self.problem, request["cluster"], request["blocks"])
        self.optimum: float | None = self.problem.optimum
        self.coherence: float | None = None
        self.bounds: dict[str, tuple[int, float]] = {}
        self.kappas: dict[str, float] = {}
        self.judge: Any = None
        form = self.problem.form
        sigma_min = arguments.get("sigma_min", 1.0 / arguments["cond"] if "cond" in arguments else math.nan)
        return {
            "m": form.terms,
            "n": form.dim,
            "r": form.rank,
            "cone": self.problem.cone.name,
            "sigma_min": float(sigma_min),
            "coherence": float(arguments.get("gamma", math.nan)),
        }

    def arrays(self):
        """Return c and the form."""
        return [self.problem.c, *self.problem.form.arrays().values()]

    def known(self, request):
        """Return f*, and the coherence where it is asked for."""
        known = {"optimum": self._optimum(request["optimum"])}
        return known | {"coherence": self._coherence()} if request["bounds"] else known

    def _optimum(self, known: float | None) -> float:
        """Return f*: planted, told, or found by one of our methods and certified; NaN where none can."""
        if self.optimum is None and known is not None:
            self.optimum = known
        if self.optimum is None:
            self.announce("certifying f*", {})
            self.optimum = reference(self.problem)
        return self.optimum

    def _coherence(self) -> float:
        if not math.isnan(self.facts["coherence"]):
            return self.facts["coherence"]
        if self.coherence is None:
            try:
                self.coherence = float(precondition.coherence(self.problem.form))
            except ProblemError:
                self.coherence = math.nan
        return self.coherence

    def _metric_facts(self, name: str, bounds: bool) -> dict[str, Any]:
        """Return the sweeps of a metric and, where asked for, its bound on κ: both off the record, once a problem."""
        if not bounds and name != "lewis":
            return {"sweeps": 0, "kappa_bound": math.nan}
        if name not in self.bounds and name in precondition.METRICS:
            made = precondition.metric(self.problem.form.scaled(1.0), name)
            found = made.bounds if bounds else None
            self.bounds[name] = (made.sweeps, math.nan if found is None else float(found.kappa))
        sweeps, kappa = self.bounds.get(name, (0, math.nan))
        return {"sweeps": sweeps, "kappa_bound": kappa}

    def _kappa(self, name: str) -> float:
        """Return the measured κ of a metric by name: a lower estimate, off the record, once a problem."""
        if name not in self.kappas and name in precondition.METRICS:
            form = self.problem.form.scaled(1.0)
            self.kappas[name] = precondition.measured_kappa(form, precondition.metric(form, name), starts=KAPPA_STARTS)
        return self.kappas.get(name, math.nan)

    # The run ----------------------------------------------------------------------------------------------------------

    def solved(self, request, known):
        """Return the columns of a solve, checked from its point."""
        options = {"metric": request["metric"], "rel_gap": request["rel_gap"]}
        self._warm(request, options, known)
        method = made(request["spec"], json.loads(request["given"]))
        witness = Witness()
        self.announce("solving", known)
        started = time.perf_counter()
        # As a user calls it: what a run before has computed once of the rows is not there.
        result = solve(
            self.given.on(self.given.form.fresh()),
            method,
            **options,
            max_iter=request["max_iter"],
            time_limit=request["time_limit"],
            callback=None if method.in_one_call() else witness,  # ours, checked by the tests, may be one compiled call
        )
        wall = time.perf_counter() - started
        self.announce("checking", known)
        row = {
            "metric": result.metric,
            "status": result.status,
            "success": result.success,
            "message": result.message,
            "value": float(result.fun),
            "lower_bound": float(result.lower_bound),
            "gap": float(result.gap),
            "nit": int(result.nit),
            "passes": int(result.passes),
            "rounds": int(result.rounds),
            "bytes": int(result.bytes),
            "setup_seconds": float(result.setup_time),
            "solve_seconds": float(result.solve_time),
            "wall_seconds": wall,
            **thinned(result),
            **self._metric_facts(result.metric, request["bounds"]),
            "kappa_measured": self._kappa(result.metric) if request["kappa"] else math.nan,
        }
        if result.status == "trivial":
            return row
        return row | self._checked(result, witness, known["optimum"], request["rel_gap"])

    def _warm(self, request: dict[str, Any], options: dict[str, Any], known: dict[str, Any]) -> None:
        """Compile what the run calls before its clock starts, once for each solver, metric and instance."""
        kind = tuple(request[name] for name in ("spec", "given", "metric", "generator", "arguments", "cluster"))
        method = made(request["spec"], json.loads(request["given"]))
        if kind in self.warmed or method.peer:  # nothing of a peer is compiled
            return
        self.announce("warming", known)
        steps = SPREAD if request["cluster"] else 0  # what workers run, they have to load first
        solve(self.given, method, **options, max_iter=steps, time_limit=request["time_limit"])
        self.warmed.add(kind)

    # The check --------------------------------------------------------------------------------------------------------

    def _checked(self, result: Result, witness: Witness, optimum: float, rel_gap: float) -> dict[str, Any]:
        """Recompute value and gap from the point alone; return what changes in the row, a failure where it lied."""
        problem = self.problem
        values = result.history.value
        if not np.isfinite(values).all():
            where = int(np.flatnonzero(~np.isfinite(values))[0])
            return lie(f"f is {values[where]} at iteration {where}")
        if self.judge is None:
            self.judge = (certifying_metric(problem.form.twin(), "single"),)
        fresh = certify(problem, result.x, self.judge[0], max(rel_gap, result.gap))
        found = {"value": fresh.value, "lower_bound": fresh.lower_bound, "gap": float(fresh.gap)}
        if abs(fresh.value - result.fun) > HONEST * abs(fresh.value):
            return found | lie(f"the run reports f = {result.fun:.12g}, and f is {fresh.value:.12g} at its point")
        if result.success and fresh.gap > WEAKER * rel_gap and not _borne_out(result, fresh.value, optimum, rel_gap):
            return found | lie(f"the run reports the gap {result.gap:.2e}, and its point has {fresh.gap:.2e}")
        if result.success and fresh.gap > rel_gap:
            # The best bound of the run is from an earlier point; the last one agrees with it within its slack.
            found |= {"lower_bound": float(result.lower_bound), "gap": float(result.gap)}
        floor = max(found["lower_bound"], optimum) if math.isfinite(optimum) else found["lower_bound"]
        least = int(values.argmin()) if len(values) else 0
        if len(values) and values[least] < floor - HONEST * abs(floor):
            return found | lie(f"f is reported as {values[least]:.12g} at iteration {least}, below the minimum")
        return found | witness.contradiction(problem)


class Witness:
    """A callback that keeps the points of iterations 1, 2, 4, 8, …: after the run their values are recomputed."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float, np.ndarray]] = []
        self.next = 1

    def __call__(self, state: State) -> None:
        """Keep what the solver says here."""
        if state.iteration >= self.next:
            self.seen.append((state.iteration, state.value, np.array(state.x)))
            self.next = 2 * state.iteration

    def contradiction(self, problem: Problem) -> dict[str, Any]:
        """Return a failure where a value was reported that its point does not have; nothing where all are true."""
        for iteration, reported, x in self.seen:
            value = problem.homogenised_value(problem.cone.euclidean(problem.form.flat(x)))
            if reported < value - HONEST * abs(value):
                return lie(f"f is reported as {reported:.12g} at iteration {iteration}, where it is {value:.12g}")
        return {}


def _borne_out(result: Result, value: float, optimum: float, rel_gap: float) -> bool:
    """Say whether a known f* bears out the gap of a run: its point is as good, and its bound below f*.

    The bound of a run may be from a dual point that its last point alone does not give again: of homcg on sparse
    10000×400, 5e-12 against 7e-10.
    """
    if not math.isfinite(optimum):
        return False
    return value - optimum <= rel_gap * abs(optimum) and result.lower_bound <= optimum + 1e-12 * abs(optimum)


def made(spec: str, given: dict[str, Any]) -> Solver:
    """Return the solver of a registered name or ``file.py:Class`` with its settings."""
    if spec in solvers():
        return solvers()[spec](**given)
    return load_solver(spec)(**given) if ":" in spec else make_solver(spec)


def reference(problem: Problem) -> float:
    """Return f(x) of a point that one of our methods certifies to 1e-11; NaN where none does."""
    for name in REFERENCES:
        if name not in solvers():
            continue
        try:
            result = solve(problem, name, rel_gap=REFERENCE_GAP, time_limit=REFERENCE_SECONDS)
        except Exception:  # a method that cannot take the problem, or fails on it, is no reference for it
            continue
        if result.gap <= REFERENCE_ENOUGH:
            return float(result.fun)
    return math.nan


def thinned(result: Result) -> dict[str, list]:
    """Return the columns of a trace, of which not all points are kept."""
    history = result.history
    points = kept(len(history))
    return {f"trace_{name}": history[name][points].tolist() for name in TRACED}
