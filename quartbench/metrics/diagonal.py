"""Metrics that cost nothing to solve with: the Euclidean one, and a positive diagonal."""

from __future__ import annotations

import numpy as np

from quartbench.errors import ProblemError, real_array, whole_number

from .base import Metric


class Identity(Metric):
    """B = I, the Euclidean norm.

    Examples
    --------
    >>> float(qb.Identity(2).norm(np.array([3.0, 4.0])))
    5.0
    """

    name = "identity"
    euclidean = True
    keeps_centred = True
    factored = True

    def __init__(self, dim: int) -> None:
        self.dim = whole_number(dim, "dim")

    @property
    def diagonal(self):
        """The ones on the diagonal."""
        return np.ones(self.dim)

    def apply(self, x):
        """Return x."""
        return x

    def solve(self, v):
        """Return v."""
        return v

    def solve_columns(self, v):
        """Return V."""
        return v

    def half_solve(self, v, overwrite=False):
        """Return V."""
        return v

    def half_solve_adjoint(self, v):
        """Return V."""
        return v


class Diagonal(Metric):
    """B = diag(d), d > 0. On complex points both parts of a coordinate have the same entry.

    Examples
    --------
    >>> B = qb.Diagonal(np.array([1.0, 4.0]))
    >>> B.solve(np.array([1.0, 1.0]))
    array([1.  , 0.25])
    >>> float(B.norm(np.array([0.0, 1.0])))
    2.0
    """

    name = "diagonal"
    factored = True

    def __init__(self, diagonal: np.ndarray) -> None:
        self.diagonal = real_array(diagonal, "diagonal", 1)
        if not (self.diagonal > 0).all():
            where = int(np.flatnonzero(~(self.diagonal > 0))[0])
            raise ProblemError(f"diagonal must be positive, found {self.diagonal[where]} at index {where}")
        self.dim = self.diagonal.size

    def apply(self, x):
        """Return d·x."""
        return self.diagonal * x

    def solve(self, v):
        """Return v/d."""
        return v / self.diagonal

    def _entries(self, rows: int) -> np.ndarray:
        """Return d as a column beside V of so many rows: half of them are left where V is complex."""
        return self.diagonal[:: self.dim // rows, None]

    def solve_columns(self, v):
        """Return V/d."""
        return v / self._entries(len(v))

    def half_solve(self, v, overwrite=False):
        """Return V/√d."""
        return np.divide(v, np.sqrt(self._entries(len(v))), out=v if overwrite else None)

    def half_solve_adjoint(self, v):
        """Return V/√d."""
        return self.half_solve(v)
