"""How are equations solved whose matrix has the pattern of a long, thin graph? By a Cholesky factor within a band."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee

from quartbench.kernels import banded
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

from .edges import adjacency


class Band:
    """An order of the vertices of a graph in which its edges are short, for matrices of d × d blocks on them.

    Parameters
    ----------
    points, block : int
        N and d.
    heads, tails : integer arrays of shape (m,)
    lists : pair of arrays, optional
        The neighbours of every vertex as CSR arrays, where they are known.

    Attributes
    ----------
    width : int
        Of the lower band, the diagonal not counted.
    work : float
        Multiplications of a factor.
    """

    def __init__(
        self,
        points: int,
        block: int,
        heads: np.ndarray,
        tails: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        if lists is None:
            links = adjacency(points, np.stack([heads, tails], axis=1))
        else:
            links = sp.csr_matrix((np.ones(2 * heads.size, dtype=np.int8), *lists[::-1]), shape=(points, points))
        order = reverse_cuthill_mckee(links, symmetric_mode=True)
        self.places = np.empty(points, dtype=np.int64)
        self.places[order] = np.arange(points)
        self.points, self.block, self.heads, self.tails = points, block, heads, tails
        span = int(np.abs(self.places[heads] - self.places[tails]).max())
        self.width = span * block + block - 1
        self.work = float(points * block) * self.width**2

    def factor(self, s: np.ndarray, alpha: np.ndarray, beta: np.ndarray, shift: float) -> BandFactor | None:
        """Return the factor of Σ (eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ ⊗ (αI + βssᵀ) + shift·μI, μ its mean diagonal; None if indefinite."""
        band = np.zeros((self.width + 1, self.points * self.block), order="F")
        banded.add_edges(self.heads, self.tails, s, alpha, beta, self.places, band)
        band[0] += shift * float(np.abs(band[0]).mean())
        with blas_threads(ONE_THREAD_WORK):  # blocks are small: two threads would meet thousands of times
            found, info = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
        return BandFactor(found, self.places, self.block) if info == 0 else None


class BandFactor:
    """A Cholesky factor within a band, and the order of its vertices."""

    def __init__(self, factor: np.ndarray, places: np.ndarray, block: int) -> None:
        self._factor, self._places, self._block = factor, places, block

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the solution for a flat right-hand side."""
        ordered = np.empty((self._places.size, self._block))
        ordered[self._places] = v.reshape(-1, self._block)
        solved, _ = lapack.dpbtrs(self._factor, ordered.reshape(-1), lower=1)
        return np.ascontiguousarray(solved.reshape(-1, self._block)[self._places]).reshape(-1)
