"""Rows on a Dask cluster: they stay on the workers, points go there, and sums come back."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError, any_array, whole_number
from quartbench.forms import StackedForm
from quartbench.forms.blocks import block_count
from quartbench.kernels import images, misfit
from quartbench.kernels.exact import add, cubic_weights, dual_power, quartic
from quartbench.linalg.known import U, finite, length, up

from .blocks import Answer, BlockForm, added, operation
from .engine import Engine, writeable
from .pieces import Pieces
from .rates import Rates, read
from .sources import File, opened

#: How many arrays of weights stay on the workers after they were sent there.
PLACED = 4


class DaskForm(BlockForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the rows Uᵢᵀ on the workers of a Dask cluster.

    An evaluation sends x (n numbers) to the blocks and adds up value and gradient on the way back, in a tree. Images
    stay on the workers. A worker that is lost costs what it had: its blocks are read again, by others. Where the
    scheduler is lost, or no worker is left, :class:`quartbench.LostError` says so and has the best point so far.

    Parameters
    ----------
    source : list of arrays or CSR matrices, dask.array.Array, path, or list of paths
        Blocks of rows, each of which fits into the memory of a worker: the row chunks of a dask array; a directory of
        ``.npy`` or Parquet files, a block each, that all workers can read; or arrays, of which the scheduler keeps a
        copy, so that a lost block can be made again.
    client : distributed.Client
        Connected to the cluster; the package is installed there too.
    rank : int
        The number r of rows of a term; every block has whole terms.
    timeout : float
        The most seconds of one round, after which the cluster counts as lost. Dask gives up a worker that hangs after
        its ``distributed.scheduler.worker-ttl``, five minutes unless set otherwise.
    rates : quartbench.distributed.Rates, optional
        What a round and a byte cost here, by which ``auto`` chooses; those that come with the package unless given.

    Attributes
    ----------
    rounds, bytes : int
        How often sums of all blocks were waited for; what was sent to each block and came back from it.

    Examples
    --------
    A cluster of threads in this process stands for one of many machines:

    >>> from distributed import Client
    >>> A = np.random.default_rng(0).standard_normal((100, 4))
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     form = qb.DaskForm([A[:60], A[60:]], client)
    ...     qb.solve(qb.Problem(form, np.ones(4))).success
    True
    """

    rigorous = True
    remote = True

    def __init__(
        self, source: Any, client: Any, rank: int = 1, timeout: float = 900.0, rates: Rates | None = None
    ) -> None:
        super().__init__()
        self.rates = rates or read()[0]
        self.rank = whole_number(rank, "rank")
        if not callable(getattr(client, "submit", None)):
            raise ProblemError(f"client must be a distributed.Client, found {type(client).__name__}")
        self.engine = Engine(client, _makers(source, self.rank, client), self.rank, timeout)
        facts = self.engine.facts
        self.dim, self.shape = facts[0].columns, (facts[0].columns,)
        self.terms = int(self.engine.starts[-1]) // self.rank
        self._stored, self._sparse = sum(fact.entries for fact in facts), facts[0].sparse
        self._kept["magnitude"] = max(fact.magnitude for fact in facts)
        self._unused = np.flatnonzero(~np.any([fact.used for fact in facts], axis=0))
        self._placed: list[tuple[np.ndarray, Pieces]] = []
        if self._sparse:
            self.bare_metric = "diagonal"

    def round_cost(self, numbers, fetched=0.0):
        """Return what a round takes by the rates of the cluster, in the time of a pass."""
        return self.rates.round(len(self.engine.counts), 8.0 * self.dim, 8.0 * numbers, 8.0 * fetched) / self._pass()

    def driver_cost(self, rows):
        """Return what a pass over so many rows held by the driver takes: as by one worker alone."""
        return self.engine.homes * super().driver_cost(rows)

    def _pass(self) -> float:
        """Return the seconds in which the workers read their rows."""
        return self.rates.reading(8.0 * self._stored / self.engine.homes)

    def _image(self, x):
        return super()._image(x).at(x.copy())

    def _evaluate(self, x):
        value, gradient, image = super()._evaluate(x)
        return value, gradient, image.at(x.copy())

    # What is asked of the blocks --------------------------------------------------------------------------------------

    def _each(self, operation, shared=(), split=(), add=added):
        return self._counted(self.engine.each(operation, shared, split, add))

    def _over(self, operation: Any, shared: tuple, *split: Any, add: Any = added) -> Answer:
        """Return what an operation on pieces alone answers, without a pass."""
        return self._counted(self.engine.each(operation, shared, split, add, blocks=False))

    def _counted(self, found: Any) -> Answer:
        self._traffic[0] += bool(found.sums)
        self._traffic[1] += found.bytes
        return found.sums, found.kept

    def _fetched(self, found: Any, count: int) -> Any:
        """Count a round that fetched so many bytes."""
        self._traffic[0] += 1
        self._traffic[1] += count
        return found

    def _array(self, kept):
        array = np.asarray(kept)
        return self._fetched(array, array.nbytes)

    def _entries(self):
        return self._stored

    def _sent(self, array: Any) -> Pieces:
        """Return numbers for each term, or row, as pieces."""
        if isinstance(array, Pieces):
            return array
        self._traffic[1] += array.nbytes
        return self.engine.placed(array)

    def _weights(self, tau: np.ndarray) -> Pieces:
        """Return numbers for each term that do not change as pieces: the last few arrays are sent once."""
        for known, pieces in self._placed:
            if known is tau:
                return pieces
        pieces = self._sent(tau)
        self._placed[:] = [(tau, pieces), *self._placed[: PLACED - 1]]
        return pieces

    def _stacked(self, image, name="image"):
        if isinstance(image, Pieces):
            if image.size != self.terms * self.rank:
                raise ProblemError(f"{name} must be {self.terms * self.rank} numbers, found {image.size}")
            return image
        return self._sent(super()._stacked(image, name))

    # From images: no pass, a round where a number comes back ----------------------------------------------------------

    def value_from_image(self, image):
        """Return ρ from the image of a point. No pass."""
        return self._over(_value, (self.rank,), self._stacked(image))[0][0]

    def line_from_images(self, image, direction):
        """Return the five coefficients of t ↦ ρ(x + t d) from the images of x and d. No pass."""
        return self._over(_line, (self.rank,), self._stacked(image), self._stacked(direction, "direction"))[0][0]

    def line_behind(self, at, ahead, before, theta, out=None):
        """Return the image of y and the coefficients of t ↦ ρ(x + t(y − x)). No pass."""
        (line,), (image,) = self._over(_line_behind, (theta, self.rank), at, ahead, before)
        if ahead.point is not None and before.point is not None:
            image = image.at((ahead.point + theta * before.point) / (1.0 + theta))
        return image, tuple(line.tolist())

    def gradient_weights(self, image):
        """Return wᵢ = 4‖sᵢ‖²sᵢ, of which ∇ρ is the adjoint. No pass."""
        return self._over(_gradient_weights, (self.rank,), self._stacked(image))[1][0]

    def hessian_weights(self, image, direction):
        """Return wᵢ = 4‖sᵢ‖²tᵢ + 8⟨sᵢ,tᵢ⟩sᵢ, of which ρ''(x)v is the adjoint. No pass."""
        return self._over(_hessian_weights, (self.rank,), image, direction)[1][0]

    def term_squares(self, image):
        """Return qᵢ = ‖sᵢ‖² for every term, which are fetched. No pass."""
        squares = np.asarray(self._stacked(image)).reshape(-1, self.rank) ** 2
        return self._fetched(squares.sum(axis=1), squares.nbytes)

    def dual_value(self, weights):
        """Return Σᵢ 3(‖λᵢ‖/4)^{4/3}. No pass."""
        return self._over(_dual_value, (self.rank,), self._stacked(weights, "weights"))[0][0]

    def weighted_image(self, tau, image):
        """Return τᵢsᵢ for every term. No pass."""
        return self._over(_weighted_image, (self.rank,), self._stacked(image), self._weights(tau))[1][0]

    def spread(self, metric, w):
        """Return λ = τᵢUᵢᵀB⁻¹w, of which w is the adjoint, in a metric B(τ). One pass."""
        return self.weighted_image(metric.tau, self.image(metric.solve(w)))

    def weighted_gram(self, tau, single=False):
        """Return B(τ) = Σ τᵢUᵢUᵢᵀ as a dense matrix. One pass, n² numbers from each block."""
        return super().weighted_gram(self._sent(np.asarray(tau, dtype=np.float64)), single)

    def rounding_noise(self, x, image, gradient, enough):
        """Return the root sum of squares of the products 4‖sᵢ‖²sᵢ·Uᵢⱼxⱼ, which add up to 4ρ(x). One pass."""
        self._read()
        largest, squares = self._each(_noise, (), (image,), _larger)[0]
        return self.scale * largest * length(np.sqrt(squares) * x)

    # Misfits: d and ω are numbers of the terms, and stay on the workers once they were there --------------------------

    def _evaluate_misfit(self, x, d, omega):
        return super()._evaluate_misfit(x, self._weights(d), self._weights(omega))

    def _misfit_product(self, image, alpha, beta, v):
        return super()._misfit_product(image, self._sent(alpha), self._sent(beta), v)

    def misfit_from_image(self, image, d, omega):
        """Return F and its gradient from an image. One pass."""
        split = (self._stacked(image), self._weights(d), self._weights(omega))
        (value,), (weights,) = self._over(_misfit_weights, (self.rank,), *split)
        return value, self.adjoint(weights)

    def misfit_line(self, image, direction, d, omega):
        """Return the five coefficients of t ↦ F(x + t v) from the images of x and v. No pass."""
        split = (image, direction, self._weights(d), self._weights(omega))
        return self._over(_misfit_line, (self.rank,), *split)[0][0]

    def misfit_line_to(self, image, ahead, d, omega):
        """Return the five coefficients of t ↦ F(x + t(y − x)) from the images of x and y. No pass."""
        split = (image, ahead, self._weights(d), self._weights(omega))
        return self._over(_misfit_line_to, (self.rank,), *split)[0][0]

    # Proofs -----------------------------------------------------------------------------------------------------------

    def known_value(self, image):
        """Return a number that is at least Σ‖sᵢ‖⁴."""
        return self._over(_known_value, (self.rank,), *image, add=upwards)[0][0]

    def dual_start(self, image):
        """Return 4‖sᵢ‖²sᵢ."""
        return self._over(_dual_start, (self.rank,), image.hi, image.lo)[1]

    def dual_moved(self, hi, lo, step):
        """Return the dual point hi + lo + step, as a pair."""
        return self._over(_dual_moved, (), hi, lo, step)[1]

    def dual_size(self, hi, lo):
        """Return a number that is at least (Σ‖λᵢ‖^{4/3})^{3/4} (Hölder)."""
        power = self._over(_dual_power, (self.rank,), hi, lo, add=upwards)[0][0]
        root = math.sqrt(power) if power < math.inf else math.inf
        return finite(root * math.sqrt(root) * (1.0 + 8.0 * U))

    # Rows, which are fetched ------------------------------------------------------------------------------------------

    def row_blocks(self, dense=True):
        """Give copies of the rows in float64, 16 MB at a time. One pass, and all rows are fetched."""
        self._read()
        step = block_count(self.dim, self.rank, np.dtype(np.float64))
        for number, count in enumerate(self.engine.counts):
            for start in range(0, count, step):
                part = self.engine.on_block(number, _rows, start, min(start + step, count))
                yield int(self.engine.starts[number]) + start, self._fetched(part, part.nbytes)

    def _picked(self, picked):
        bounds = np.searchsorted(picked * self.rank, self.engine.starts)
        firsts = self.engine.starts // self.rank
        own = [(picked[bounds[i] : bounds[i + 1]] - firsts[i],) for i in range(len(self.engine.counts))]
        parts = [part for part in self.engine.on_blocks(_picked_rows, own) if part is not None]
        rows = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
        return self._fetched(rows, rows.data.nbytes)

    def sampled(self, saved):
        """Return B(τ) with equal weights on a sample of the terms; None on sparse rows, which have a diagonal one."""
        return None if self._sparse else super().sampled(saved)

    def _gram_cost(self):
        return self._stored / (self.terms * self.rank) if self._sparse else super()._gram_cost()

    def __repr__(self) -> str:
        return f"DaskForm(m={self.terms}, n={self.dim}, r={self.rank}, blocks={len(self.engine.counts)})"


def _makers(source: Any, rank: int, client: Any) -> list[tuple]:
    """Return the name of each block, and what makes its rows on a worker."""
    if callable(getattr(source, "to_delayed", None)) and callable(getattr(source, "rechunk", None)):
        if source.ndim != 2:
            raise ProblemError(f"blocks must have 2 dimensions (m·r, n), found a dask array of shape {source.shape}")
        return [("", _same, (future,)) for future in client.compute(list(source.rechunk({1: -1}).to_delayed().flat))]
    many = isinstance(source, Sequence) and not isinstance(source, str)
    if isinstance(source, str | os.PathLike) or (many and source and isinstance(source[0], str | os.PathLike)):
        return [(repr(file.name), _whole, (file,)) for file in opened(source, rank)]
    if many and source:
        return [("", _same, (block if sp.issparse(block) else any_array(block, "blocks"),)) for block in source]
    raise ProblemError(
        f"blocks must be a list of arrays or files, a dask array or a directory, found {type(source).__name__}"
    )


# What workers do ------------------------------------------------------------------------------------------------------


def _same(rows: Any) -> Any:
    return writeable(rows)


def _whole(file: File) -> np.ndarray:
    return next(file.pieces(file.shape[0]))


def _rows(block: StackedForm, start: int, stop: int) -> np.ndarray:
    part = block.rows[start:stop]
    return (part.toarray() if sp.issparse(part) else part).astype(np.float64)


def _picked_rows(block: StackedForm, picked: np.ndarray) -> Any:
    return block.term_rows(picked) if picked.size else None


@operation(sums=True)
def _value(rank: int, image: np.ndarray) -> Answer:
    return (images.value(image, rank),), ()


@operation(sums=True)
def _line(rank: int, image: np.ndarray, direction: np.ndarray) -> Answer:
    return (np.asarray(images.line(image, direction, rank)),), ()


@operation(sums=True, keeps=1)
def _line_behind(theta: float, rank: int, at: np.ndarray, ahead: np.ndarray, before: np.ndarray) -> Answer:
    image = np.empty_like(at)
    return (np.array(images.line_behind(at, ahead, before, theta, rank, image)),), (image,)


@operation(keeps=1)
def _gradient_weights(rank: int, image: np.ndarray) -> Answer:
    weights = np.empty_like(image)
    images.gradient_weights(image, rank, weights)
    return (), (weights,)


@operation(keeps=1)
def _hessian_weights(rank: int, image: np.ndarray, direction: np.ndarray) -> Answer:
    weights = np.empty_like(image)
    images.hessian_weights(image, direction, rank, weights)
    return (), (weights,)


@operation(sums=True)
def _dual_value(rank: int, weights: np.ndarray) -> Answer:
    return (images.dual_value(weights, rank),), ()


@operation(keeps=1)
def _weighted_image(rank: int, image: np.ndarray, tau: np.ndarray) -> Answer:
    return (), (np.repeat(tau, rank) * image,)


@operation(sums=True, keeps=1)
def _misfit_weights(rank: int, image: np.ndarray, d: np.ndarray, omega: np.ndarray) -> Answer:
    weights = np.empty_like(image)
    return (misfit.gradient_weights(image, rank, d, omega, weights),), (weights,)


@operation(sums=True)
def _misfit_line(rank: int, image: np.ndarray, direction: np.ndarray, d: np.ndarray, omega: np.ndarray) -> Answer:
    return (np.asarray(misfit.line(image, direction, rank, d, omega)),), ()


@operation(sums=True)
def _misfit_line_to(rank: int, image: np.ndarray, ahead: np.ndarray, d: np.ndarray, omega: np.ndarray) -> Answer:
    return (np.asarray(misfit.line_to(image, ahead, rank, d, omega)),), ()


@operation(sums=True)
def _noise(block: StackedForm, image: np.ndarray) -> Answer:
    weights = block.gradient_weights(image)
    largest = float(np.abs(weights).max()) or 1.0
    return (largest, block.column_squares((weights / largest) ** 2)), ()


def _larger(first: tuple, second: tuple) -> tuple:
    """Return two sums of squares, each in units of its own, as one."""
    unit = max(first[0], second[0])
    return unit, (first[0] / unit) ** 2 * first[1] + (second[0] / unit) ** 2 * second[1]


def upwards(first: tuple, second: tuple) -> tuple:
    """Return a number that is at least the sum of two."""
    return (up(first[0] + second[0]),)


@operation(sums=True)
def _known_value(rank: int, hi: np.ndarray, lo: np.ndarray, error: np.ndarray) -> Answer:
    return (quartic(hi, lo, error, rank),), ()


@operation(keeps=2)
def _dual_start(rank: int, hi: np.ndarray, lo: np.ndarray) -> Answer:
    return (), tuple(cubic_weights(hi, lo, rank))


@operation(keeps=2)
def _dual_moved(hi: np.ndarray, lo: np.ndarray, step: np.ndarray) -> Answer:
    return (), tuple(add(hi, lo, step))


@operation(sums=True)
def _dual_power(rank: int, hi: np.ndarray, lo: np.ndarray) -> Answer:
    return (dual_power(hi, lo, rank),), ()
