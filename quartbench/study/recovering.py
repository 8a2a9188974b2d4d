"""How does one recovery of a study happen? Data are made, a method fits them, and the study measures the error itself.

F is not convex: nothing is certified here but the convex steps of the DC algorithm, whose gaps are in the trace.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np

from quartbench import inverse
from quartbench.inverse.recoveries import RECOVERIES, Recovery

from .bench import Bench
from .rows import HONEST, kept, lie

#: Iterations of the run that compiles what another calls.
WARMING = 2


class RecoveryBench(Bench):
    """One recovery at a time, with one start for all methods."""

    def make(self, request):
        """Make the data and the start."""
        make = RECOVERIES[request["generator"]]
        self.recovery: Recovery = make(**json.loads(request["arguments"]), seed=request["seed"])
        form = self.recovery.problem.form
        return {"m": form.terms, "n": form.dim, "r": form.rank, "cone": self.recovery.problem.cone.name}

    def arrays(self):
        """Return the start and the form."""
        return [self.recovery.start, *self.recovery.problem.form.arrays().values()]

    def known(self, request):
        """Return no optimum: F is not convex."""
        return {"optimum": math.nan}

    def solved(self, request, known):
        """Return the columns of a recovery by one method from the start of all."""
        recovery = self.recovery
        given = json.loads(request["given"])
        restarts = given.pop("restarts", 0)
        options = {"metric": request["metric"], "tol": request["rel_gap"]}
        kind = tuple(request[name] for name in ("spec", "given", "metric", "generator", "arguments"))
        if kind not in self.warmed:
            self.announce("warming", known)
            recovery.solve(made(request["spec"], given), max_iter=WARMING, **options)
            self.warmed.add(kind)
        method = made(request["spec"], given)
        self.announce("solving", known)
        began = time.perf_counter()
        with np.errstate(all="ignore"):  # a method may diverge: that is its result, not the user's worry
            result = recovery.solve(
                method, max_iter=request["max_iter"], time_limit=request["time_limit"], restarts=restarts, **options
            )
        wall = time.perf_counter() - began
        self.announce("checking", known)
        return self._columns(result, wall) | self._contradiction(result)

    def _columns(self, result: inverse.Result, wall: float) -> dict[str, Any]:
        recovery = self.recovery
        begun = [stage for stage in result.stages if stage.name.endswith("start") and stage.passes + stage.seconds > 0]
        shared = not begun  # the one start of all methods was made before
        start_seconds = recovery.start_seconds if shared else sum(stage.seconds for stage in begun)
        start_passes = recovery.start_passes if shared else sum(stage.passes for stage in begun)
        error = recovery.error(recovery.problem.form.flat(result.x))
        passes = result.passes - (0 if shared else start_passes)
        before = result.stages[:-1] if shared else [stage for stage in result.stages[:-1] if stage not in begun]
        history = result.history
        points = kept(len(history))
        return {
            "status": result.status,
            "success": recovery.recovered(error, result),
            "message": result.message,
            "value": float(result.fun),
            "error": float(error),
            "residual": float(result.residual),
            "nit": int(sum(stage.nit for stage in result.stages)),
            "passes": int(passes),
            "start_passes": int(start_passes),
            "setup_seconds": float(start_seconds),
            "solve_seconds": wall if shared else wall - start_seconds,
            "wall_seconds": wall + (start_seconds if shared else 0.0),
            "trace_iteration": history.iteration[points].tolist(),
            "trace_passes": (history.passes[points] + sum(stage.passes for stage in before)).tolist(),
            "trace_seconds": (history.seconds[points] + sum(stage.seconds for stage in before)).tolist(),
            "trace_value": history.value[points].tolist(),
            "trace_gap": history.gap[points].tolist(),
            "trace_restart": [False] * len(points),
            "rounds": 0,
            "bytes": 0,
            "trace_rounds": [0] * len(points),
            "trace_bytes": [0] * len(points),
        }

    def _contradiction(self, result: inverse.Result) -> dict[str, Any]:
        """Return a failure where the point does not have the F that is reported; nothing where it has."""
        problem = self.recovery.problem
        value = problem.value(problem.cone.euclidean(problem.form.flat(result.x)))
        if abs(value - result.fun) > HONEST * max(value, HONEST * problem.size**2):
            return lie(f"the run reports F = {result.fun:.12g}, and F is {value:.12g} at its point")
        return {}


def made(name: str, settings: dict[str, Any]) -> str | inverse.Method:
    """Return the method of a registered name with its settings; ``auto`` is the user's call, which picks itself."""
    return name if name == "auto" else inverse.methods()[name](**settings)
