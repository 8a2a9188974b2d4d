"""How are the runs of a study spread over machines? Problem by problem over the workers of a Dask cluster.

A worker has one run at a time, in a process of its own there, as it has on one machine. All runs of a problem are made
by one worker, so that what they are compared by is one machine's time; where it is lost, the run under way is made
again by another.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import platform
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from quartbench.errors import LostError, ProblemError

from . import store, system
from .runner import Runner, Worker

#: Seconds between two looks at the workers, and for which a study may be without one.
POLL, ALONE = 0.5, 60.0

#: Facts of a machine that may differ from worker to worker: which one it was is in the row.
OWN = ("processor", "cores", "system", "threading layer")


class FarmedRunner(Runner):
    """A study whose runs are made by the workers of a Dask cluster; the results are written here.

    Parameters
    ----------
    client : distributed.Client
    study, out, threads, command, restart
        As those of :class:`~quartbench.study.runner.Runner`; ``threads`` are those of each run on its worker.
    """

    def __init__(self, client: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.farm = Farm(client, self.threads, self.system)

    def _check_threads(self, threads: int) -> None:
        """Leave it to the workers, whose machines may have more cores than this one."""

    def _all(self, problems: list[list], progress: Callable[[str, int], None]) -> None:
        """Let as many threads as there are workers take one problem after another."""
        waiting: queue.SimpleQueue = queue.SimpleQueue()
        for problem in problems:
            waiting.put(problem)

        def take() -> None:
            while not self.farm.stopped.is_set():
                try:
                    cells = waiting.get_nowait()
                except queue.Empty:
                    return
                with Place(self.farm) as place:
                    self._turns(cells, progress, place)

        count = min(len(problems), max(1, len(self.farm.addresses())))
        with ThreadPoolExecutor(count, thread_name_prefix="quartbench-farm") as threads:
            asked = [threads.submit(take) for _ in range(count)]
            try:
                for one in wait(asked, return_when=FIRST_EXCEPTION).done:
                    one.result()
            finally:
                self.farm.stopped.set()


class Farm:
    """The workers of a cluster, each with the same packages as this process, one run at a time."""

    def __init__(self, client: Any, threads: int, facts: dict[str, Any]) -> None:
        self.client, self.threads, self.facts = client, threads, facts
        self.free = threading.Condition()
        self.busy: set[str] = set()
        self.stopped = threading.Event()
        self.machines: dict[str, str] = {}
        if not self.addresses():
            raise ProblemError("the scheduler has no workers: start some with 'dask worker ADDRESS'")

    def addresses(self) -> list[str]:
        """Return the workers that are there now."""
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def taken(self) -> tuple[str, str]:
        """Wait for a free worker; return its address and its machine in words."""
        seen = time.monotonic()
        with self.free:
            while True:
                self._go_on()
                here = self.addresses() if self.client.status == "running" else []
                found = [one for one in here if one not in self.busy]
                if found:
                    self.busy.add(found[0])
                    break
                seen = time.monotonic() if here else seen
                if time.monotonic() - seen > ALONE:
                    raise LostError(f"there has been no worker for {ALONE:.0f} s; what is done is kept")
                self.free.wait(POLL)
        try:
            return found[0], self._machine(found[0])
        except BaseException:
            self.left(found[0])
            raise

    def _go_on(self) -> None:
        if self.stopped.is_set():
            raise LostError("the study was stopped")

    def left(self, address: str) -> None:
        """Say that a worker has nothing to do."""
        with self.free:
            self.busy.discard(address)
            self.free.notify()

    def _machine(self, address: str) -> str:
        """Return the machine of a worker in words; raise where it has other packages than this one."""
        if address not in self.machines:
            name, there = self.asked(address, described)
            mine, theirs = ({k: v for k, v in one.items() if k not in OWN} for one in (self.facts, there))
            differs = store.difference(mine, theirs)
            if differs or there["quartbench"] != self.facts["quartbench"]:
                differs = differs or f"quartbench {self.facts['quartbench']} / {there['quartbench']}"
                raise ProblemError(f"the worker {address} has other packages than this process ({differs})")
            if there["cores"] < self.threads:
                raise ProblemError(f"threads must be at most {there['cores']} on the worker {address}")
            self.machines[address] = f"{name}, {there['processor']}, {there['cores']} cores"
        return self.machines[address]

    def asked(self, address: str, function: Callable, *arguments: Any) -> Any:
        """Return what a function gives on a worker; raise ``LostError`` where that goes before it is done."""
        from distributed import CancelledError, KilledWorker
        from distributed import wait as done
        from distributed.comm import CommClosedError

        future = self.client.submit(function, *arguments, workers=[address], pure=False, retries=0)
        try:
            while True:
                try:
                    done(future, timeout=POLL)
                    return future.result()
                except TimeoutError:
                    self._go_on()
                    if self.client.status != "running" or address not in self.addresses():
                        raise LostError(f"the worker {address} is gone") from None
        except (CancelledError, KilledWorker, CommClosedError, OSError) as error:
            raise LostError(f"the worker {address} is lost: {error}") from error
        finally:
            future.cancel()


class Place:
    """Where the runs of a problem are made: one worker, and another one where that is lost. Takes runs as a Worker."""

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        self.address = self.stage = self.machine = ""

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        if self.address:
            self.farm.left(self.address)
        self.address = ""

    def run(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """Return the columns of a run, made again by another worker where one is lost."""
        while True:
            try:
                if not self.address:
                    self.address, self.machine = self.farm.taken()
                row, self.stage = self.farm.asked(self.address, made, request, limit, self.farm.threads)
                return row | {"machine": self.machine}
            except LostError:
                gone = self.address
                self._leave()
                if not gone:
                    raise


# What runs on workers -------------------------------------------------------------------------------------------------

#: What Dask sets in the environment of its workers.
LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

#: What keeps runs apart where a worker has many threads.
ALONE_HERE = threading.Lock()


def described() -> tuple[str, dict[str, Any]]:
    """Return the name of the machine and its facts."""
    return platform.node(), system.describe()


def made(request: dict[str, Any], limit: float, threads: int) -> tuple[dict[str, Any], str]:
    """Return the columns of a run in the process of this worker, and the last stage that it was in."""
    with ALONE_HERE:
        worker = _process(threads)
        with _parent():
            return worker.run(request, limit), worker.stage


@functools.cache
def _process(threads: int) -> Worker:
    return Worker(threads)


@contextmanager
def _parent() -> Iterator[None]:
    """Let a worker of Dask start a process, which multiprocessing forbids to daemons; that one leaves with it anyhow.

    Dask also keeps its workers to one thread of BLAS by their environment, where a run sets its own.
    """
    config = multiprocessing.current_process()._config
    before = {name: config.pop(name) for name in ("daemon",) if name in config}
    limits = {name: os.environ.pop(name) for name in LIMITS if name in os.environ}
    try:
        yield
    finally:
        config.update(before)
        os.environ.update(limits)
