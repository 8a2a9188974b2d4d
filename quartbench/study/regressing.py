"""How does one regression of a study happen? Rows and aims are made, a method fits them, and the study checks the norm.

Ours is the whole call as a user makes it, with its certificate. Peers have none: they are told the norm to reach, which
a reference run has proved to be within the gap of the least.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np

from quartbench.regression.data import REGRESSIONS
from quartbench.regression.methods import Fitted, Goal, least_norm, methods

from .bench import Bench
from .rows import HONEST, kept, lie

#: The part of the gap that a peer is told to reach, so that rounding of the norm does not decide whether it did.
WITHIN = 1.0 - 1e-6

#: By how much a proved bound may be above another of the same least norm: that of the reference is known so well.
AGREE = 1e-10


class RegressionBench(Bench):
    """One regression at a time."""

    def make(self, request):
        """Make rows and aims."""
        self.data = REGRESSIONS[request["generator"]](**json.loads(request["arguments"]), seed=request["seed"])
        self.least: float | None = None
        m, n = self.data[0].shape
        return {"m": m, "n": n, "r": 1, "cone": "free"}

    def arrays(self):
        """Return rows and aims."""
        return list(self.data)

    def known(self, request):
        """Return the least norm."""
        return {"optimum": self._least(request["optimum"])}

    def _least(self, known: float | None) -> float:
        """Return a proved bound below every norm, within 1e-11 of the least: told, or found here."""
        if self.least is None:
            self.least = known
        if self.least is None:
            self.announce("certifying f*", {})
            self.least = least_norm(*self.data)
        return self.least

    def solved(self, request, known):
        """Return the columns of a fit by one method."""
        least, rel_gap = known["optimum"], request["rel_gap"]
        method = methods()[request["spec"]](**json.loads(request["given"]))
        limits = (request["max_iter"], request["time_limit"])
        kind = (request["spec"], request["generator"], request["arguments"])
        if not method.peer and kind not in self.warmed:  # nothing of a peer is compiled
            self.announce("warming", known)
            method.fit(*self.data, Goal(rel_gap, math.inf, *limits))
            self.warmed.add(kind)
        self.announce("solving", known)
        started = time.perf_counter()
        with np.errstate(all="ignore"):  # a method may diverge: that is its result, not the user's worry
            found = method.fit(*self.data, Goal(rel_gap, least * (1.0 + WITHIN * rel_gap), *limits))
        wall = time.perf_counter() - started
        self.announce("checking", known)
        return self._columns(found, wall, least) | self._checked(found, least, rel_gap)

    def _columns(self, found: Fitted, wall: float, least: float) -> dict[str, Any]:
        points = kept(len(found.norms))
        norms, seconds = np.array(found.norms), np.array(found.seconds)
        proof = found.certified
        return {
            "status": found.status,
            "message": proof.message if proof is not None else "",
            "lower_bound": least if proof is None else float(proof.lower_bound),
            "nit": len(norms) if proof is None else int(proof.nit),
            "passes": 0 if proof is None else int(proof.passes),
            "setup_seconds": 0.0,
            "solve_seconds": wall,
            "wall_seconds": wall,
            "trace_iteration": points.tolist(),
            "trace_passes": [0] * len(points),
            "trace_seconds": seconds[points].tolist(),
            "trace_value": norms[points].tolist(),
            "trace_gap": ((norms[points] - least) / norms[points]).tolist(),
            "trace_restart": [False] * len(points),
        }

    def _checked(self, found: Fitted, least: float, rel_gap: float) -> dict[str, Any]:
        """Return norm and gap by the study's own sums; a failure where the method reports better ones."""
        A, b = self.data
        residual = A.astype(np.longdouble) @ found.x - b
        norm = float((residual**4).sum() ** 0.25)
        below = least if found.certified is None else found.certified.lower_bound
        gap = (norm - below) / norm if norm > 0.0 else 0.0
        row = {"value": norm, "gap": gap, "success": bool(gap <= rel_gap)}
        said = min(found.norms, default=math.inf)
        if said < norm * (1.0 - HONEST):
            return row | lie(f"the run reports the norm {said:.12g}, and it is {norm:.12g} at its point")
        if below > least * (1.0 + AGREE):
            return row | lie(f"the run reports that no norm is below {below:.12g}, and there is one of {least:.12g}")
        return row
