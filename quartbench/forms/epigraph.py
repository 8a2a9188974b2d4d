"""What is ρ to a solver of conic programs? The least of a sum of squares over an intersection of cones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Epigraph(NamedTuple):
    """ρ(x) = min {Σ wₖuₖ² : b − A(x,u) ∈ K₁ × K₂ × …}, for solvers of conic programs.

    Attributes
    ----------
    matrix : sparse matrix
        A, its first ``dim`` columns for x.
    offset : array
        b.
    weights : array
        w, one for each further variable u.
    parts : list of (str, int)
        The Kᵢ: "zero", "nonnegative", "second-order" (the first entry is the bound) or "semidefinite" (the scaled upper
        triangle, by columns), and their sizes (the order of the matrix for the last).
    """

    matrix: sp.csc_matrix
    offset: np.ndarray
    weights: np.ndarray
    parts: list[tuple[str, int]]


def of_terms(rows: np.ndarray | sp.csr_matrix, terms: int, scale: float, theta: float) -> Epigraph:
    """Return ρ = Σtᵢ² with ‖Uᵢᵀx‖² ≤ tᵢ as ‖(2Uᵢᵀx, tᵢ − 1)‖ ≤ tᵢ + 1, in units where Uᵢᵀx is of size θ.

    Parameters
    ----------
    rows : array or CSR matrix of shape (m·r, n)
        The Uᵢᵀ, real and stacked, to be multiplied by ``scale``.
    terms : int
    scale, theta : float
    """
    (count, n), m = rows.shape, terms
    rank = count // m
    first = (rank + 2) * np.arange(m)
    places = (first[:, None] + np.arange(1, rank + 1)).reshape(-1)
    factor = -2.0 * scale / theta
    if sp.issparse(rows):
        columns = rows.tocsc()
        data, indices, indptr = factor * columns.data, places[columns.indices], columns.indptr
    else:
        data, indices = factor * rows.T.reshape(-1), np.tile(places, n)
        indptr = count * np.arange(n + 1)
    ends = np.stack([first, first + rank + 1], axis=1).reshape(-1)
    matrix = sp.csc_matrix(
        (
            np.concatenate([data, np.full(2 * m, -1.0)]),
            np.concatenate([indices, ends]),
            np.concatenate([indptr, indptr[-1] + 2 * np.arange(1, m + 1)]),
        ),
        shape=((rank + 2) * m, n + m),
    )
    offset = np.zeros(matrix.shape[0])
    offset[first], offset[first + rank + 1] = 1.0, -1.0
    return Epigraph(matrix, offset, np.full(m, theta**4), [("second-order", rank + 2)] * m)
