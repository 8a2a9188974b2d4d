"""How does a run get its rows spread over workers? On a cluster of this process alone, on loopback, closed with it."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import numpy as np

from quartbench.distributed import DaskForm
from quartbench.errors import ProblemError
from quartbench.forms import TermForm
from quartbench.model import Problem

#: Seconds in which the workers have to be there, and to leave.
STARTING, LEAVING = 120.0, 20.0


class Spread:
    """Workers with one thread each, started when they are first needed and kept from one problem to the next."""

    def __init__(self) -> None:
        self.cluster: Any = None
        self.client: Any = None
        self.workers = 0

    def over(self, problem: Problem, workers: int, blocks: int) -> Problem:
        """Return a problem with its rows on so many workers, in so many blocks."""
        form = problem.form
        if not (isinstance(form, TermForm) and form.reads_terms and form.row_dtype.kind == "f"):
            raise ProblemError(f"cluster = {workers} needs real rows to spread, found {type(form).__name__}")
        self._start(workers)
        rows = form.term_rows(None)
        bounds = form.rank * np.linspace(0, form.terms, blocks + 1).astype(int)
        parts = [rows[start:stop] for start, stop in pairwise(bounds)]
        return problem.on(DaskForm(parts, self.client, form.rank))

    def _start(self, workers: int) -> None:
        if workers == self.workers:
            return
        self.close()
        from distributed import Client, LocalCluster

        self.cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
        self.client = Client(self.cluster, timeout=STARTING)
        self.client.wait_for_workers(workers, timeout=STARTING)
        self.workers = workers

    def close(self) -> None:
        """End the workers."""
        if self.cluster is not None:
            self.client.close(timeout=LEAVING)
            self.cluster.close(timeout=LEAVING)
        self.cluster = self.client = None
        self.workers = 0
