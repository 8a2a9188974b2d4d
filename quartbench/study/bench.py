"""How does a run of a study happen, whatever it solves? A problem is made once and given to one method after another.

Whatever a method does is its own result: it may raise, it may lie, and it must not change what the others are given.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from quartbench.errors import ProblemError

from .rows import NOTHING, NOWHERE, fingerprint, lie


class Bench(ABC):
    """One problem at a time, with what was computed once for it.

    ``announce`` is told of every stage of a run with what is known of it, which is all that a crash leaves.
    """

    #: What of a request tells one problem from another, and what of a problem methods share, in words.
    identifying: ClassVar[tuple[str, ...]] = ("generator", "arguments", "seed")
    shared: ClassVar[str] = "the data"

    def __init__(self, announce: Callable[[str, dict[str, Any]], None]) -> None:
        self.announce = announce
        self.identity: tuple | None = None
        self.warmed: set[tuple] = set()
        self.facts: dict[str, Any] = NOWHERE
        self.fingerprint = 0

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of a run, those of a failure where it fails."""
        row = self._row(request)
        if self.identity is not None and fingerprint(self.arrays()) != self.fingerprint:
            self.identity = None  # the next run has the problem made anew
            row |= lie(f"it wrote to {self.shared} of its problem, which other methods are given too")
        return row

    def _row(self, request: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = NOWHERE | {"optimum": math.nan}
        try:
            self._take(request)
            known = self.facts | self.known(request)
            return known | NOTHING | {"metric": request["metric"]} | self.solved(request, known)
        except ProblemError as error:
            message = str(error)
        except Exception as error:  # whatever a method of somebody else raises is its result
            message = f"{type(error).__name__}: {error}"
        return known | NOTHING | {"metric": request["metric"]} | lie(message)

    def _take(self, request: dict[str, Any]) -> None:
        identity = tuple(request[name] for name in self.identifying)
        if identity == self.identity:
            return
        self.identity = None
        self.announce("making the problem", {})
        self.facts = NOWHERE | self.make(request)
        self.fingerprint = fingerprint(self.arrays())
        self.identity = identity

    @abstractmethod
    def make(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the problem of a request, forget what was computed for another, and return the facts of it."""

    @abstractmethod
    def arrays(self) -> list[np.ndarray]:
        """Return the numbers that methods share."""

    @abstractmethod
    def known(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what is computed once for a problem, its optimum first."""

    @abstractmethod
    def solved(self, request: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
        """Run the method of a request, and return the columns that it gives, checked."""
