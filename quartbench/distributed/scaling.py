"""How long would a solve take on more rows, and on more machines? Rounds, bytes, seconds and memory of each method.

A method is what it asks for: rounds, passes, Hessians, a sample. Each of these is a :class:`~.rates.Load`, of which the
rates of a cluster make seconds; the counts are those of measured runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from quartbench.errors import ProblemError

from .rates import Load, Rates, round_load

#: Bytes of a number.
NUMBER = 8.0

#: What is usual on machines of today: where runs do not tell a rate, it stays near this one.
USUAL = Rates(latency=5e-3, task=1e-3, bandwidth=1e9, memory=5e9, flops=2e10)

#: How much a factor e away from what is usual weighs, as an error by so many e in one run.
WEAK = 0.03


class Shape(NamedTuple):
    """A form on a cluster: rows and columns, workers, and the blocks, one for each worker unless given.

    ``at_once`` is how many of the workers have a core of their own, all unless given.
    """

    rows: float
    columns: float
    workers: int
    blocks: int = 0
    at_once: int = 0

    @property
    def parts(self) -> int:
        """How many blocks there are."""
        return self.blocks or self.workers

    @property
    def share(self) -> float:
        """The share of the rows that is read one after another."""
        return 1.0 / max(1, min(self.workers, self.at_once or self.workers))


@dataclass(frozen=True)
class Counts:
    """What a method asks for until its gap, beside what it does once.

    Attributes
    ----------
    rounds, passes, hessians : float
        Of the iterations; the rounds of Hessians are among all.
    factors : float
        Reductions of B⁽⁰⁾ before them.
    sample, inner : float
        Rows for each unknown that are fetched, and how often each round the driver solves with a Hessian of these.
    """

    rounds: float
    passes: float
    hessians: float = 0.0
    factors: float = 0.0
    sample: float = 0.0
    inner: float = 0.0

    def times(self, factor: float) -> Counts:
        """Return the counts of a run with so many times the digits; what is done once stays."""
        return replace(self, rounds=factor * self.rounds, passes=factor * self.passes, hessians=factor * self.hessians)


class Prediction(NamedTuple):
    """What a method takes: rounds, bytes over one link, seconds in all and per round, bytes of memory."""

    method: str
    rounds: float
    bytes: float
    seconds: float
    per_round: float
    worker_memory: float
    driver_memory: float
    fits: bool


def iterating(shape: Shape, counts: Counts, sample_rows: float | None = None) -> Load:
    """Return the load of the iterations. ``sample_rows`` are those of the driver, where they are known."""
    n = shape.columns
    held = counts.sample * n if sample_rows is None else sample_rows
    small = (counts.rounds - counts.hessians) * round_load(shape.parts, NUMBER * n, NUMBER * n)
    reading = Load(0.0, 0.0, 0.0, counts.passes * NUMBER * shape.rows * n * shape.share, 0.0)
    driver = Load(0.0, 0.0, 0.0, 0.0, counts.rounds * counts.inner * (held * n**2 + n**3 / 3.0))
    return small + reading + counts.hessians * reduction(shape) + driver


def reduction(shape: Shape) -> Load:
    """Return the load of a Hessian, or of B⁽⁰⁾: n² numbers from every block, and a factor at the driver."""
    n = shape.columns
    flops = shape.rows * shape.share * n**2 + n**3 / 3.0
    return round_load(shape.parts, NUMBER * n, NUMBER * n**2) + Load(0.0, 0.0, 0.0, 0.0, flops)


def beginning(shape: Shape, counts: Counts) -> Load:
    """Return the load of what is done once: factors of B⁽⁰⁾, and a sample with its own."""
    n, found = shape.columns, counts.factors * reduction(shape)
    if counts.sample:
        rows = counts.sample * n
        found += round_load(shape.parts, NUMBER, 0.0, NUMBER * rows * n)
        found += Load(0.0, 0.0, 0.0, 0.0, rows * n**2 + n**3 / 3.0)
    return found


def predict(
    shape: Shape,
    methods: dict[str, Counts],
    rates: Rates,
    worker_memory: float = math.inf,
    driver_memory: float = math.inf,
) -> list[Prediction]:
    """Return what every method takes on a cluster, the one to choose first: the least seconds of those that fit."""
    if not (shape.rows >= shape.columns >= 1.0 and shape.workers >= 1):
        raise ProblemError(
            f"a prediction needs rows ≥ columns ≥ 1 and a worker, found {shape.rows:g} rows, {shape.columns:g} columns "
            f"and {shape.workers} workers"
        )
    found = []
    for name, counts in methods.items():
        load = beginning(shape, counts) + iterating(shape, counts)
        each = iterating(shape, counts).seconds(rates) / max(counts.rounds, 1.0)
        held = memory(shape, counts)
        fits = held[0] <= worker_memory and held[1] <= driver_memory and counts.sample * shape.columns <= shape.rows
        found.append(Prediction(name, counts.rounds, load.bytes, load.seconds(rates), each, *held, fits))
    return sorted(found, key=lambda one: (not one.fits, one.seconds))


def memory(shape: Shape, counts: Counts) -> tuple[float, float]:
    """Return the bytes that a worker holds, rows and images and sums, and those of the driver."""
    n, rows = shape.columns, shape.rows / shape.workers
    squares = n**2 if counts.hessians or counts.factors else 0.0
    sample = counts.sample * n**2 + (n**2 if counts.sample else 0.0)
    return NUMBER * (rows * n + 3.0 * rows + 2.0 * squares), NUMBER * (10.0 * n + 2.0 * squares + sample)


# The fit --------------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """Rates, and how well they predict each run from the others: the factors by which they are off."""

    rates: Rates
    errors: np.ndarray

    @property
    def usual(self) -> float:
        """The median factor."""
        return float(np.median(self.errors))

    @property
    def worst(self) -> float:
        """The largest factor."""
        return float(self.errors.max())


def fitted(loads: Sequence[Load], seconds: Sequence[float]) -> Fit:
    """Return the rates whose predictions are off by the least factors, in least squares.

    Each error is that of rates fitted to the other runs.
    """
    if len(loads) < 5:
        raise ProblemError(f"five rates need at least 5 runs with rows on workers, found {len(loads)}")
    asked, measured = np.array(loads, dtype=float), np.asarray(seconds, dtype=float)
    rates, errors = _fitted(asked, measured), []
    for place in range(len(measured)):
        others = np.arange(len(measured)) != place
        found = Load(*asked[place]).seconds(_fitted(asked[others], measured[others]))
        errors.append(math.exp(abs(math.log(found / measured[place]))))
    return Fit(rates, np.array(errors))


def _fitted(asked: np.ndarray, measured: np.ndarray) -> Rates:
    usual = np.array(astuple(USUAL))
    slow = np.array([one.name in ("latency", "task") for one in fields(Rates)])
    costs = np.where(slow, usual, 1.0 / usual)  # seconds per wait, task, byte, byte read and operation
    weight = WEAK * math.sqrt(len(measured))

    def off(logs: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(asked @ (costs * np.exp(logs)) / measured), weight * logs])

    # One run that another process disturbed is not to move all: beyond a factor e its weight falls.
    found = costs * np.exp(least_squares(off, np.zeros(len(costs)), loss="soft_l1").x)
    return Rates(*np.where(slow, found, 1.0 / found).tolist())
