"""What do a pass, a round and a byte cost on a cluster? A model of seconds, with constants that were fitted.

A round sends numbers to every block, and adds up in a tree what comes back: :data:`FAN` sums at a time, on the workers,
and the last few at the driver. Whatever a block costs the scheduler is paid one block after another.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from quartbench.errors import ProblemError

#: Sums that one task adds up.
FAN = 8

#: The constants that come with the package, and what they were fitted to: ``quartbench scale --fit`` makes it.
SHIPPED = Path(__file__).with_name("rates.json")


@dataclass(frozen=True)
class Rates:
    """What a cluster does in a second, and what it waits for.

    Attributes
    ----------
    latency : float
        Seconds of a round before anything is computed, for each level of the tree.
    task : float
        Seconds that the scheduler takes for each block of a round.
    bandwidth : float
        Bytes per second of one link of the network.
    memory : float
        Bytes per second at which a worker reads its rows.
    flops : float
        Floating-point operations per second of a worker where matrices are multiplied.

    Examples
    --------
    >>> units = {"task": 1e-3, "bandwidth": 1e8, "memory": 1e10, "flops": 1e11}
    >>> slow = qb.distributed.Rates(latency=0.05, **units)
    >>> form = qb.DaskForm("blocks/", client, rates=slow)  # doctest: +SKIP
    """

    latency: float
    task: float
    bandwidth: float
    memory: float
    flops: float

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ProblemError(f"{one.name} must be a number of at least 0, found {value!r}")
        for name in ("bandwidth", "memory", "flops"):
            if getattr(self, name) == 0.0:
                raise ProblemError(f"{name} must be positive, found 0")

    def round(self, blocks: int, down: float, up: float, fetched: float = 0.0) -> float:
        """Return the seconds of a round beside its work.

        Parameters
        ----------
        blocks : int
        down, up : float
            Bytes that go to each block, and that come back from each.
        fetched : float
            Bytes that come to the driver as they are, from all blocks together.
        """
        return round_load(blocks, down, up, fetched).seconds(self)

    def reading(self, count: float) -> float:
        """Return the seconds in which a worker reads so many bytes."""
        return count / self.memory

    def changed(self, **given: float | None) -> Rates:
        """Return the rates with those given in the place of their own; None leaves one as it is."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


class Load(NamedTuple):
    """What is asked of a cluster, one after another: waits, tasks, bytes over a link, bytes read, operations."""

    waits: float
    tasks: float
    bytes: float
    read: float
    flops: float

    def __add__(self, other: Load) -> Load:  # type: ignore[override]
        return Load(*(a + b for a, b in zip(self, other, strict=True)))

    def __rmul__(self, factor: float) -> Load:  # type: ignore[override]
        return Load(*(factor * a for a in self))

    def seconds(self, rates: Rates) -> float:
        """Return how long a cluster takes."""
        waiting = rates.latency * self.waits + rates.task * self.tasks
        return waiting + self.bytes / rates.bandwidth + self.read / rates.memory + self.flops / rates.flops


def round_load(blocks: int, down: float, up: float, fetched: float = 0.0) -> Load:
    """Return what a round asks for beside its work; see :meth:`Rates.round`."""
    return Load(levels(blocks), blocks, down * blocks + up * arriving(blocks) + fetched, 0.0, 0.0)


def levels(blocks: int) -> int:
    """Return how many times sums are added up one after another: by tasks, and once at the driver."""
    count = 1
    while blocks > FAN:
        blocks, count = -(-blocks // FAN), count + 1
    return count


def arriving(blocks: int) -> int:
    """Return how many sums come in one after another on the way to the driver: ``FAN`` at a level, fewer at the top."""
    count = 0
    while blocks > FAN:
        blocks, count = -(-blocks // FAN), count + FAN
    return count + blocks


def read(path: Path = SHIPPED) -> tuple[Rates, dict[str, Any]]:
    """Return the rates in a file, and the rest of it: what they were fitted to, and how well."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return Rates(**found.pop("rates")), found
    except FileNotFoundError:
        raise ProblemError(f"there is no file {str(path)!r} of rates") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProblemError(f"{str(path)!r} holds no rates of 'quartbench scale --fit': {error}") from None


def write(path: Path, rates: Rates, about: dict[str, Any]) -> None:
    """Write rates with what they were fitted to."""
    text = json.dumps({"rates": asdict(rates), **about}, indent=2, ensure_ascii=False, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")
