"""How does a study get done? Cell by cell in a worker process, the methods taking turns, every run on disk at once.

A run that crashes or hangs is recorded as such and costs the worker, which is replaced; the study goes on.
"""

from __future__ import annotations

import math
import multiprocessing
import statistics
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numba

from quartbench.errors import ProblemError
from quartbench.instances import PROBLEM_SET

from . import grid, samples, store, system, weights, worker
from .rows import NOTHING, NOWHERE
from .timing import PAUSE

#: Runs of at least this many seconds are not repeated: their noise is small beside them.
LONG = 2.0

#: Relative change of the median, by one repeat more, below which it is stable; asked from the third repeat on.
STABLE, ENOUGH = 0.05, 3

#: Seconds for each step around a run: making its problem, certifying f*, checking what it found.
PREPARING = 900.0

#: Seconds for compilation in the first steps of a method, beside those that its run has.
COMPILING = 120.0


#: Seconds in which a process that has nothing to do ends, and its own workers with it.
LEAVING = 60.0


class Worker:
    """The process that does the runs, started when it is needed and replaced when it has died."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.process: Any = None
        self.stage = ""

    def run(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """Return the columns that a run has by itself: those of the worker, or of its death.

        ``limit`` is in seconds of solving; what comes before it has its own.
        """
        if self.process is None:
            self._start()
        self.stage, known = "ready", {}
        try:
            self.pipe.send(request)
            limits = {"warming": COMPILING + limit, "solving": limit}
            while self.pipe.poll(waited := limits.get(self.stage, PREPARING)):
                reply = self.pipe.recv()
                if "stage" not in reply:
                    return reply
                self.stage, known = reply["stage"], reply["known"]
        except (EOFError, OSError):
            self.process.join()
            status, message = "failed", f"the process died ({_exit(self.process.exitcode)}) while {self.stage}"
        else:
            status, message = "timeout", f"killed after {waited:.3g} s of {self.stage}: it did not stop by itself"
        self.end()
        nothing = NOWHERE | NOTHING | {"optimum": math.nan}
        return nothing | known | {"metric": request["metric"], "status": status, "message": message}

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # threads of OpenMP and BLAS do not survive a fork
        self.pipe, other = context.Pipe()
        # No daemon: it may have workers of its own. It leaves with this process all the same.
        process = context.Process(target=worker.serve, args=(other, self.threads), daemon=False)
        process.start()
        self.process = process
        other.close()
        try:
            if not self.pipe.poll(PREPARING):
                raise EOFError
            self.pipe.recv()
        except (EOFError, OSError):
            # Not the fault of a run: all of them would fail in the same way.
            self.process.join(1.0)
            code = self.process.exitcode
            self.end()
            # It imports the script that asked for it: one that asks as it is imported would ask for ever.
            script = hasattr(sys.modules["__main__"], "__file__")
            hint = "; a script must compare under 'if __name__ == \"__main__\":'" if script else ""
            raise ProblemError(f"the process for the runs does not start ({_exit(code)}){hint}") from None

    def close(self) -> None:
        """Let the process end by itself, with what it has started, where it has nothing to do."""
        if self.process is not None:
            self.pipe.close()
            self.process.join(LEAVING)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _exit(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


class Runner:
    """A study under way: what is planned, what is done, what comes next.

    Parameters
    ----------
    study : grid.Study
    out : Path
        The directory of the results; those that it has and that are still right are kept.
    threads : int
        For every contender.
    command : str
        What made the results, for the record.
    restart : bool
        Make every run anew.
    """

    def __init__(self, study: grid.Study, out: Path, threads: int, command: str = "", restart: bool = False) -> None:
        self._check_threads(threads)
        self.study, self.out, self.threads, self.command = study, Path(out), threads, command
        self.restart = restart
        self.cells = grid.cells(study, threads)
        self.system = system.describe()
        self.worker = Worker(threads)
        self.seconds: dict[grid.Cell, list[float]] = {}
        self.optima: dict[tuple, float] = {}
        self.broken: dict[tuple, dict[str, Any]] = {}
        self.done = self.kept = 0
        self.counting = threading.Lock()  # runs may end in several threads at once

    def _check_threads(self, threads: int) -> None:
        """Raise where the runs cannot have so many threads."""
        if threads > numba.config.NUMBA_NUM_THREADS:
            raise ProblemError(f"threads must be at most {numba.config.NUMBA_NUM_THREADS} here, found {threads}")

    @property
    def planned(self) -> int:
        """Runs that the study has when every cell needs all its repeats: those that are stable sooner need fewer."""
        return sum(cell.repeats for cell in self.cells)

    def run(self, progress: Callable[[str, int], None] = lambda label, steps: None) -> None:
        """Do what is missing. ``progress`` is told what is under way, and how many planned runs that settled."""
        with store.opened(self.out):
            self._prepare()
            try:
                self._all([list(cells) for _, cells in groupby(self.cells, key=lambda cell: cell.problem)], progress)
                self.worker.close()
            finally:
                self.worker.end()
            self._describe(finished=True)

    # Before -----------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self.created = _now()
        if (self.out / store.ABOUT).exists() and not self.restart:
            before = store.settings(self.out)
            if before["study"] != self.study.name:
                raise ProblemError(
                    f"{str(self.out)!r} holds the study {before['study']!r}: use another directory for "
                    f"{self.study.name!r}, and 'quartbench merge' to unite the two"
                )
            differs = store.difference(before["system"], self.system)
            if differs:
                raise ProblemError(
                    f"the results in {str(self.out)!r} were made on another system ({differs}), so their times cannot "
                    "be compared with new ones: use another directory, or --restart to make all of them anew"
                )
            self.created = before["created"]
        self.rows = self._valid_rows()
        self._describe()

    def _valid_rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows of this study that are on disk, and move aside those that are out of date."""
        store.keys(self.out)
        places: dict[tuple, list[grid.Cell]] = {}
        for cell in self.cells:
            places.setdefault(tuple(cell.place.values()), []).append(cell)
        names = [*self.cells[0].place]
        columns = [*names, "key", "repeat", "problem_set", "status", "setup_seconds", "solve_seconds", "optimum"]
        rows = {row["key"]: row for row in store.read(self.out)[columns].to_dict("records")}

        def out_of_date(row: dict[str, Any]) -> bool:
            here = places.get(tuple(row[name] for name in names), ())
            replaced = here and all(cell.key(row["repeat"]) != row["key"] for cell in here)
            return bool(self.restart or row["problem_set"] != PROBLEM_SET or replaced)

        stale = {key for key, row in rows.items() if out_of_date(row)}
        store.supersede(self.out, stale)
        return {key: row for key, row in rows.items() if key not in stale}

    def _describe(self, finished: bool = False) -> None:
        repeated = [times for times in self.seconds.values() if len(times) > 1 and math.isfinite(sum(times))]
        spreads = [max(times) / min(times) - 1.0 for times in repeated if min(times) > 0.0]
        about = {
            "study": self.study.name,
            "config": grid.as_dict(self.study),
            "system": self.system,
            "command": self.command,
            "problem_set": PROBLEM_SET,
            "threads": self.threads,
            "created": self.created,
            "finished": _now() if finished else None,
            "notes": list(self.study.notes),
            "noise": {"floor": statistics.median(spreads) if spreads else None, "cells": len(spreads)},
        }
        if finished and self.study.weights:
            about["weights"] = weights.measure()
        if finished and self.study.samples:
            about["samples"] = samples.measure()
        store.describe(self.out, about)

    # Turns ------------------------------------------------------------------------------------------------------------

    def _all(self, problems: list[list[grid.Cell]], progress: Callable[[str, int], None]) -> None:
        """Do the runs of all problems, here one after another."""
        for cells in problems:
            self._turns(cells, progress, self.worker)

    def _turns(self, cells: list[grid.Cell], progress: Callable[[str, int], None], worker: Any) -> None:
        """Let the cells of one problem take turns until each has repeats enough: drift hits all alike."""
        for repeat in range(max(cell.repeats for cell in cells)):
            unsettled = []
            for cell in cells:
                label = f"{cell.label} · {cell.method.label}"
                progress(label, 0)
                row = self._row(cell, repeat, worker)
                times = self.seconds.setdefault(cell, [])
                times.append(row["setup_seconds"] + row["solve_seconds"])
                if repeat + 1 == cell.repeats or _settled(row["status"], times):
                    progress(label, cell.repeats - repeat)
                else:
                    unsettled.append(cell)
                    progress(label, 1)
            cells = unsettled

    def _row(self, cell: grid.Cell, repeat: int, worker: Any) -> dict[str, Any]:
        key = cell.key(repeat)
        if key in self.rows:
            with self.counting:
                self.kept += 1
            row = self.rows[key]
            if not math.isnan(row["optimum"]):
                self.optima.setdefault(cell.problem, row["optimum"])
            return row
        found = self._measured(cell, worker)
        row = (
            {"machine": ""}
            | found
            | {
                "key": key,
                "study": self.study.name,
                "application": cell.instance.kind.application(cell.instance.generator),
                "instance": cell.label,
                "problem_set": PROBLEM_SET,
                **cell.place,
                "method": cell.method.name,
                "settings": cell.method.settings,
                "version": cell.method.version,
                "peer": cell.method.peer,
                "repeat": repeat,
                "threads": cell.threads,
                "workers": cell.cluster,
                "blocks": cell.blocks or cell.cluster,
                "time_limit": cell.time_limit,
                "max_iter": cell.max_iter,
                "commit": self.system["commit"],
                "created": _now(),
            }
        )
        store.write(self.out, row)
        with self.counting:
            self.done += 1
        return row

    def _measured(self, cell: grid.Cell, worker: Any) -> dict[str, Any]:
        if cell.problem in self.broken:
            return self.broken[cell.problem] | {"metric": cell.metric}
        time.sleep(PAUSE)
        request = {
            "generator": cell.instance.generator,
            "arguments": cell.instance.json,
            "seed": cell.seed,
            "optimum": self.optima.get(cell.problem),
            "spec": cell.method.spec,
            "given": cell.method.given,
            # A peer has no metric: this one costs it nothing.
            "metric": "identity" if cell.method.peer else cell.metric,
            "rel_gap": cell.rel_gap,
            "max_iter": cell.max_iter,
            "time_limit": cell.time_limit,
            "bounds": cell.bounds,
            "kappa": cell.kappa,
            "cluster": cell.cluster,
            "blocks": cell.blocks or cell.cluster,
        }
        # Certificates stand off the clock that the time limit reads: they may take as long again.
        limit = 2.0 * cell.time_limit + self.study.grace
        row = worker.run(request, limit)
        if row["m"] == 0 and worker.stage == "certifying f*":
            # The reference died, not the contender: it has its run without f*.
            self.optima[cell.problem] = math.nan
            row = worker.run(request | {"optimum": math.nan}, limit)
        if row["m"] > 0:
            self.optima.setdefault(cell.problem, row["optimum"])
        elif worker.stage == "making the problem":
            self.broken[cell.problem] = row
        return row


def _settled(status: str, times: list[float]) -> bool:
    """Say whether a cell needs no repeat more: it failed, it is long, or its median is stable."""
    if status in ("failed", "timeout", "time_limit") or not times[-1] < LONG:
        return True
    if len(times) < ENOUGH:
        return False
    before, now = statistics.median(times[:-1]), statistics.median(times)
    return abs(now - before) <= STABLE * now


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
