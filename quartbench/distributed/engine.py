"""How do operations get to blocks on the workers of a Dask cluster, and their sums back, whatever fails on the way?

Every answer is a task that Dask can run again: a block is read anew by another worker where the one that had it is
lost, and so is everything that was computed from it. What Dask cannot mend, a lost scheduler or no worker that is left,
is an error within a bounded time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from quartbench.errors import LostError, ProblemError
from quartbench.forms import StackedForm

from .blocks import added, image_at, operation
from .pieces import Pieces
from .rates import FAN

#: Seconds between two looks at whether the cluster is still there, and for which it may be without a worker.
POLL, ALONE = 0.5, 30.0


#: Seconds in which a scheduler has to answer.
ANSWER = 30.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give a client of a scheduler at ``tcp://…`` or ``tls://…``; certificates come from Dask's configuration.

    Examples
    --------
    >>> with qb.distributed.connected("tcp://10.0.0.1:8786") as client:  # doctest: +SKIP
    ...     result = qb.solve(qb.Problem(qb.DaskForm("blocks/", client), c))
    """
    try:
        from distributed import Client
    except ImportError:
        raise ProblemError("a cluster needs Dask: pip install 'quartbench[cluster]'") from None
    try:
        client = Client(address, timeout=ANSWER)
    except (OSError, ValueError, TypeError) as error:
        raise ProblemError(f"no scheduler can be reached at {address!r}: {error}") from error
    with client:
        yield client


class Found(NamedTuple):
    """What all blocks have answered: the sums, what stays with the blocks, and the bytes that went either way."""

    sums: tuple
    kept: tuple[Pieces, ...]
    bytes: int


class Facts(NamedTuple):
    """What a block says of itself."""

    rows: int
    columns: int
    entries: int
    magnitude: float
    sparse: bool
    used: np.ndarray


class Engine:
    """The blocks of a form on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    makers : list of tuple
        (name, function, arguments): what makes the rows of each block, on a worker. Arguments may be futures.
    rank : int
    timeout : float
        The seconds that a round may take.
    """

    def __init__(self, client: Any, makers: list[tuple], rank: int, timeout: float) -> None:
        self.client, self.rank, self.timeout = client, rank, timeout
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        #: Workers that have a block at first, each as many as the others.
        self.homes = max(1, min(len(workers), len(makers)))
        self.blocks = []
        for number, (name, make, arguments) in enumerate(makers):
            # In turns, so that all workers have as many; another one takes the block where this one is lost.
            home = {"workers": [workers[number % len(workers)]], "allow_other_workers": True} if workers else {}
            said = f"block {number} ({name})" if name else f"block {number}"
            self.blocks.append(self._submit(_made, said, make, arguments, rank, **home))
        self.facts: list[Facts] = self._result([self._submit(_facts, block) for block in self.blocks])
        for number, fact in enumerate(self.facts):
            if fact.columns != self.facts[0].columns:
                name = makers[number][0]
                raise ProblemError(
                    f"blocks must have rows of one width, found {fact.columns} columns in block {number}"
                    f"{f' ({name})' if name else ''} and {self.facts[0].columns} in block 0"
                )
        self.counts = [fact.rows for fact in self.facts]
        self.starts = np.cumsum([0, *self.counts])

    # Operations -------------------------------------------------------------------------------------------------------

    def each(
        self,
        work: Callable,
        shared: tuple = (),
        split: tuple = (),
        add: Callable = added,
        blocks: bool = True,
    ) -> Found:
        """Run an operation on every block, or with ``blocks=False`` on pieces alone; see ``BlockForm._each``.

        Sums are waited for, which is a round; where there are none nothing is waited for.
        """
        pieces = [part if isinstance(part, Pieces) else self._cut(part) for part in split]
        places = [part.place if isinstance(part, Pieces) else None for part in pieces]
        asked = [
            self._submit(
                _answer,
                work,
                block if blocks else None,
                shared,
                [part.futures[i] if isinstance(part, Pieces) else part[i] for part in pieces],
                places,
            )
            for i, block in enumerate(self.blocks)
        ]
        sent = len(asked) * _bytes(shared) + sum(_bytes(part) for part in pieces if not isinstance(part, Pieces))
        length = int(self.starts[-1]) // (self.rank if work.by_term else 1) if blocks else split[0].size
        depth = 1 + max((part.depth for part in pieces if isinstance(part, Pieces)), default=0)
        kept = tuple(Pieces(self, asked, place, length, depth) for place in range(work.keeps))
        if not work.sums:
            return Found((), kept, sent)
        sums = self._summed(asked, bool(kept), add)
        return Found(sums, kept, sent + len(asked) * _bytes(sums))

    def _summed(self, asked: list, kept: bool, add: Callable) -> tuple:
        """Return the sums of all blocks, added up in a tree: on the workers, and the last few of them here.

        What blocks have ``kept`` stays where it is.
        """
        futures = [self._submit(_sums, future) for future in asked] if kept or len(asked) > FAN else asked
        while len(futures) > FAN:
            groups = [futures[i : i + FAN] for i in range(0, len(futures), FAN)]
            futures = [self._submit(_added, add, group) for group in groups]
        found = self._result(futures)
        return reduce(add, (answer[0] for answer in found) if futures is asked else found)

    def _cut(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the part of each block of an array with one or ``rank`` numbers for each term."""
        each = 1 if len(array) == self.starts[-1] else self.rank
        return [array[start // each : stop // each] for start, stop in pairwise(self.starts)]

    def image(self, x: np.ndarray) -> Pieces:
        """Return Mx."""
        found = self.each(image_at, (x,)).kept[0]
        found.point = x
        return found

    def placed(self, array: np.ndarray) -> Pieces:
        """Return an array as pieces on the workers."""
        return self.each(_given, (), (array,)).kept[0]

    def fetched(self, pieces: Pieces) -> list[np.ndarray]:
        """Return the pieces themselves."""
        return self._result([self._submit(_piece, future, pieces.place) for future in pieces.futures])

    def on_block(self, number: int, function: Callable, *arguments: Any) -> Any:
        """Return what a function of one block gives."""
        return self._result([self._submit(_called, function, self.blocks[number], arguments)])[0]

    def on_blocks(self, function: Callable, arguments: list[tuple]) -> list:
        """Return what a function gives for every block, with arguments of its own."""
        return self._result(
            [self._submit(_called, function, block, own) for block, own in zip(self.blocks, arguments, strict=True)]
        )

    # The cluster ------------------------------------------------------------------------------------------------------

    def _submit(self, function: Callable, *arguments: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            # n² numbers of a factor travel with the task: scattered, they would be lost with the worker that has them.
            warnings.filterwarnings("ignore", message="Sending large graph")
            try:
                return self.client.submit(function, *arguments, pure=False, **options)
            except Exception as error:  # whatever a client says whose scheduler is gone
                raise self._lost(f"the scheduler takes no tasks: {error}") from error

    def _result(self, futures: list) -> list:
        """Wait for futures, and return what they give; raise where the cluster has been lost."""
        from distributed import CancelledError, KilledWorker, wait
        from distributed.comm import CommClosedError

        started = seen = time.monotonic()
        while True:
            try:
                wait(futures, timeout=POLL)
                return self.client.gather(futures, errors="raise")
            except TimeoutError:
                pass
            except (CancelledError, CommClosedError, KilledWorker, OSError) as error:
                raise self._lost(f"{type(error).__name__}: {error}") from error
            now = time.monotonic()
            if self.client.status != "running":
                raise self._lost(f"the scheduler is gone (the client is {self.client.status})")
            if self.client.scheduler_info(n_workers=1)["n_workers"]:
                seen = now
            if now - seen > min(ALONE, self.timeout):
                raise self._lost(f"there has been no worker for {now - seen:.0f} s")
            if now - started > self.timeout:
                raise self._lost(f"a round has taken {now - started:.0f} s, the most that was allowed")

    def _lost(self, why: str) -> LostError:
        return LostError(f"the rows on the cluster are out of reach: {why}")


# What runs on workers -------------------------------------------------------------------------------------------------


def _made(name: str, make: Callable, arguments: tuple, rank: int) -> StackedForm:
    """Return the form of a block, all of whose entries have been looked at."""
    try:
        return StackedForm(make(*arguments), rank)
    except ProblemError as error:
        raise ProblemError(f"{name}: {error}") from None


def _facts(block: StackedForm) -> Facts:
    sparse = sp.issparse(block.rows)
    entries = block.rows.nnz if sparse else block.rows.size
    return Facts(*block.rows.shape, entries, block.magnitude, sparse, block.used_columns())


def _answer(work: Callable, block: StackedForm | None, shared: tuple, given: list, places: list) -> tuple:
    """Run an operation on a block, with as many threads as the worker has."""
    _thread_limit()
    parts = [part if place is None else part[1][place] for part, place in zip(given, places, strict=True)]
    return work(*(() if block is None else (block,)), *map(writeable, shared), *map(writeable, parts))


def writeable(value: Any) -> Any:
    """Return an array, or CSR rows, that kernels take: what has travelled may be read-only and out of line."""
    if isinstance(value, np.ndarray):
        return value if value.flags.carray else value.copy()
    return value.copy() if sp.issparse(value) and not value.data.flags.carray else value


def _thread_limit() -> None:
    from distributed import get_worker

    threads = min(get_worker().state.nthreads, numba.config.NUMBA_NUM_THREADS)
    if numba.get_num_threads() != threads:
        numba.set_num_threads(threads)


def _sums(answer: tuple) -> tuple:
    return answer[0]


def _piece(answer: tuple, place: int) -> np.ndarray:
    return answer[1][place]


def _added(add: Callable, sums: list[tuple]) -> tuple:
    return reduce(add, sums)


def _called(function: Callable, block: StackedForm, arguments: tuple) -> Any:
    _thread_limit()
    return function(block, *arguments)


@operation(keeps=1)
def _given(block: StackedForm, part: np.ndarray) -> tuple:
    return (), (part,)


def _bytes(value: Any) -> int:
    """Return the bytes of all arrays in what is sent, and eight for anything else."""
    if isinstance(value, tuple | list):
        return sum(map(_bytes, value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    inside = getattr(value, "__dict__", {})
    return sum(map(_bytes, inside.values())) if inside and not callable(value) else 8
