"""Rows given as a matrix: ``StackedForm`` reads what the user gave, and hands it to the kind that stores it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.errors import DeficientError, ProblemError, whole_number
from quartbench.kernels.jit import shares, thread_count, together

from .base import register_form
from .reading import read_only, stacked_rows
from .terms import DENSE_DIMENSION, FACTOR, TermForm


@register_form("stacked")
class StackedForm(TermForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the Uᵢᵀ stacked as rows: a :class:`DenseForm`, or a :class:`SparseForm`.

    Parameters
    ----------
    rows : array of shape (m·r, n), scipy.sparse matrix, or numpy.memmap
        Rows i·r to (i+1)·r − 1 are Uᵢᵀ. Dense float64 and float32 arrays in C order and CSR matrices are used as they
        are (sums are in float64 all the same); anything else is copied once, as doubles. Rows must not change while a
        form is in use: what was proved of them is kept.
    rank : int
        The number r of rows of a term.
    magnitude : float, optional
        The largest entry, where rows are a part of such as were surveyed before: they are not looked at again.

    Examples
    --------
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> qb.StackedForm(A).value([1.0, 2.0])
    98.0
    >>> qb.StackedForm(np.vstack([A, A]), rank=2).terms
    3
    """

    def __new__(cls, rows: Any = None, rank: int = 1, magnitude: float | None = None) -> StackedForm:
        """Return a form of the kind that stores such rows, as ``pathlib.Path`` does for paths."""
        if cls is StackedForm:
            from .dense import DenseForm
            from .sparse import SparseForm

            cls = SparseForm if sp.issparse(rows) else DenseForm
        return object.__new__(cls)

    def __init__(self, rows: Any, rank: int = 1, magnitude: float | None = None) -> None:
        super().__init__()
        rank = whole_number(rank, "rank")
        self._rows = stacked_rows(rows, rank)
        count, self.dim = self._rows.shape
        if count == 0 or self.dim == 0:
            raise ProblemError(f"rows must not be empty, found shape {self._rows.shape}")
        if count % rank:
            raise ProblemError(f"rows must come in blocks of rank={rank}, found {count} rows")
        self.rank = rank
        self.terms = count // self.rank
        self.shape = (self.dim,)
        if magnitude is None:
            zeros: list[int] = []
            magnitude = self._survey(zeros)
            self._kept["zero terms"] = np.array(zeros, dtype=np.int64)
        self._kept["magnitude"] = magnitude

    @property
    def rows(self) -> np.ndarray | sp.csr_matrix:
        """The rows, as a view that cannot be written to: everybody who has this form shares them."""
        return read_only(self._rows)

    # What a kind says of its storage ----------------------------------------------------------------------------------

    def _survey(self, zeros: list[int]) -> float:
        """Return the largest entry, and list the terms that are zero; raise at the first NaN or infinity."""
        raise NotImplementedError

    def _entries(self) -> int:
        """Return how many entries are stored."""
        raise NotImplementedError

    def used_columns(self) -> np.ndarray:
        """Return which columns have an entry that is not zero."""
        raise NotImplementedError

    #: What an entry costs, in entries of a dense array that streams by.
    _entry_cost = 1

    # ------------------------------------------------------------------------------------------------------------------

    @property
    def factorable(self):
        """Whether it is sensible to factor B⁽⁰⁾ without being asked to."""
        return self.dim <= DENSE_DIMENSION

    def solve_cost(self):
        """Return n² over the stored entries."""
        return self.dim**2 / self._entries()

    def _factoring(self) -> float:
        """Return the passes of the Cholesky factor, once there is a Gram matrix."""
        return self.dim**3 / (3.0 * FACTOR * self._entries())

    def gram_work(self):
        """Return the multiplications of a Gram matrix with its factor."""
        return 0.5 * self._entries() * self.dim + self.dim**3 / 3.0

    def hessian_cost(self):
        """Return what a factor of B(τ) costs: the Hessian is such a matrix."""
        return self.factor_cost()

    def require_dense(self):
        """Allow a dense Hessian of any size: BLAS-3 makes it from the rows."""

    @property
    def _work(self) -> int:
        return self._entry_cost * self._entries()

    def _parts(self) -> int:
        return thread_count(self._work, self.terms)

    def _together(self, kernel, *arguments):
        return together(kernel, self._work, *arguments)

    def _shares(self, total: int, parts: int) -> np.ndarray:
        key = ("shares", total, parts)
        if key not in self._kept:
            self._kept[key] = shares(total, parts)
        return self._kept[key]

    def signature(self):
        """Return the types of the stored rows too, and whether they are read in parallel."""
        return (*super().signature(), self._rows.dtype, self._parts() > 1)

    def _check_definite(self) -> None:
        """Raise where there are fewer rows than columns, or a column of zeros."""
        count = self._rows.shape[0]
        if count < self.dim:
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most m·r = {count}, but n = {self.dim}; "
                "add terms or restrict x"
            )
        used = self.used_columns()
        if not used.all():
            missing = np.flatnonzero(~used)
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most {self.dim - missing.size} of n = {self.dim}; "
                f"no term sees coordinate {int(missing[0])}"
            )

    def __repr__(self) -> str:
        return f"StackedForm(m={self.terms}, n={self.dim}, r={self.rank})"

    @classmethod
    def from_arrays(cls, arrays):
        """Return the form of dense or CSR rows that a file kept."""
        if "data" in arrays:
            shape = (arrays["indptr"].size - 1, whole_number(arrays["columns"], "columns"))
            rows = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        else:
            rows = arrays["rows"]
        return StackedForm(rows, arrays["rank"])
