"""Rows on disk: each pass reads the files once, the next piece while this one is computed, whatever their size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from quartbench.errors import ProblemError, whole_number
from quartbench.forms import StackedForm
from quartbench.forms.reading import survey

from .blocks import BlockForm, added
from .sources import PIECE_BYTES, ahead, opened


class DiskForm(BlockForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the rows Uᵢᵀ in files that need not fit into memory.

    A pass reads them once, at the speed of the disk. In memory are two pieces of 32 MB, and images (m·r numbers each).
    Rows in float32 halve the traffic; all sums are in float64.

    Parameters
    ----------
    source : path or list of paths
        A ``.npy`` file of shape (m·r, n), float64 or float32 in C order; a directory of such, or of Parquet files (one
        number per column, or one column of lists of one length), in the order of their names; or a list of files.
    rank : int
        The number r of rows of a term; every file has whole terms.

    Examples
    --------
    >>> import tempfile
    >>> A = np.random.default_rng(0).standard_normal((100, 4))
    >>> with tempfile.TemporaryDirectory() as blocks:
    ...     np.save(f"{blocks}/part-0.npy", A[:60])
    ...     np.save(f"{blocks}/part-1.npy", A[60:])
    ...     qb.solve(qb.Problem(qb.DiskForm(blocks), np.ones(4))).success
    True
    """

    rigorous = True

    def __init__(self, source: Any, rank: int = 1) -> None:
        super().__init__()
        self.rank = whole_number(rank, "rank")
        self._files = opened(source, self.rank)
        self.dim = self._files[0].shape[1]
        #: The first row of each file, and the number of all.
        self._starts = np.cumsum([0, *(file.shape[0] for file in self._files)])
        self.terms = int(self._starts[-1]) // self.rank
        self.shape = (self.dim,)
        self._survey()

    def _survey(self) -> None:
        """Look once at every entry: raise at the first that is no number, naming its file and row."""
        used, name = np.zeros(self.dim, dtype=bool), ""

        def tops():
            nonlocal name, used
            for number, start, rows in self._pieces():
                name = f"block {number} ({self._files[number].name!r})"
                if not used.all():
                    used |= (rows != 0).any(axis=0)
                yield start - int(self._starts[number]), np.maximum(rows.max(axis=1), -rows.min(axis=1))

        try:
            self._kept["magnitude"] = survey(tops(), self.rank)
        except ProblemError as error:
            raise ProblemError(f"{name}: {error}") from None
        self._unused = np.flatnonzero(~used)

    # Reading ----------------------------------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Give all rows in pieces of whole terms: the number of the file, that of the first row, and the rows."""

        def all_files():
            for number, file in enumerate(self._files):
                start = int(self._starts[number])
                width = file.dtype.itemsize * self.dim * self.rank
                for rows in file.pieces(self.rank * max(1, PIECE_BYTES // width)):
                    yield number, start, rows
                    start += len(rows)

        return ahead(all_files())

    def _each(self, operation, shared=(), split=(), add=added):
        sums, kept, length = None, [], self.terms * self.rank
        for _, start, rows in self._pieces():
            block = StackedForm(rows, self.rank, self._kept["magnitude"])
            parts = (part[self._slice(part, start, len(rows), length)] for part in split)
            found, own = operation(block, *shared, *parts)
            if found:
                sums = found if sums is None else add(sums, found)
            kept.append(own)
        return sums or (), tuple(np.concatenate(parts) for parts in zip(*kept, strict=True))

    def _slice(self, array: np.ndarray, start: int, count: int, length: int) -> slice:
        """Return where the numbers of some rows, or of their terms, are."""
        each = 1 if len(array) == length else self.rank
        return slice(start // each, (start + count) // each)

    def row_blocks(self, dense=True):
        """Give copies of the rows in float64, piece by piece. One pass."""
        self._read()
        for _, start, rows in self._pieces():
            yield start, rows.astype(np.float64)

    def _picked(self, picked):
        rows = (picked[:, None] * self.rank + np.arange(self.rank)).reshape(-1)
        bounds = np.searchsorted(rows, self._starts)
        return np.concatenate(
            [
                file.picked(rows[bounds[i] : bounds[i + 1]] - self._starts[i])
                for i, file in enumerate(self._files)
                if bounds[i + 1] > bounds[i]
            ]
        )

    def _entries(self):
        return self.terms * self.rank * self.dim

    def signature(self):
        """Return the types of the stored rows too."""
        return (*super().signature(), *{file.dtype for file in self._files})

    def first_block(self):
        """Return the form of the first piece, which calls the same machine code; this one where that is too short."""
        pieces = self._pieces()
        _, _, rows = next(pieces)
        pieces.close()
        block = StackedForm(rows, self.rank, self._kept["magnitude"])
        try:
            block.require_definite()
        except ProblemError:
            return self
        return block.scaled(self.scale)

    def __repr__(self) -> str:
        return f"DiskForm(m={self.terms}, n={self.dim}, r={self.rank})"
