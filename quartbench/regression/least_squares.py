"""The least-squares fit that ℓ4 regression starts from, and the factor of its normal equations, which it keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from quartbench.errors import ProblemError
from quartbench.forms.blocks import gram_of_rows, mirrored
from quartbench.metrics import Cholesky

#: Steps of refinement at most, and the share of the residual that may still be explained: it is a start, not the end.
STEPS, EXPLAINED = 20, 1e-4

#: The same for sparse rows, whose iterations have no factor and go on slowly.
SPARSE_EXPLAINED = 1e-6

#: The relative rounding of normal equations up to which refinement converges fast.
ROUGH = 1e-3


class DependentError(ProblemError):
    """The columns of A are dependent to rounding."""


class Fit(NamedTuple):
    """A least-squares fit: the coefficients, what they leave, and AᵀA factored (None for sparse rows)."""

    x: np.ndarray
    residual: np.ndarray
    normal: Cholesky | None


class Span(NamedTuple):
    """Columns that span all others to rounding, and an orthonormal basis of the space of the rows, as columns."""

    columns: np.ndarray
    basis: np.ndarray

    def least_norm(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients of least norm that fit as x on the columns does."""
        return self.basis @ (self.basis[self.columns].T @ x)

    @staticmethod
    def undecided(A: np.ndarray, x: np.ndarray) -> float:
        """Return how far Ax may be from a combination of the columns kept: what counts as rounding of each."""
        lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
        return _rounding(A) * float(lengths @ np.abs(x))


def _rounding(A: np.ndarray) -> float:
    """Return the share of its length up to which what a column has beside others is rounding."""
    return max(A.shape) * float(np.finfo(float).eps)


def independent(A: np.ndarray) -> Span:
    """Return fewer columns that span all, by a QR factorisation with pivots."""
    scale = np.sqrt(np.einsum("ij,ij->j", A, A))
    upper, pivots = scipy.linalg.qr(A / np.where(scale > 0.0, scale, 1.0), mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(upper.diagonal()) > _rounding(A)))
    rank = min(rank, A.shape[1] - 1)
    rows = np.empty((rank, A.shape[1]))
    rows[:, pivots] = upper[:rank] * scale[pivots]
    return Span(np.sort(pivots[:rank]), scipy.linalg.qr(rows.T, mode="economic")[0])


def least_squares(A: Any, b: np.ndarray, top: float) -> Fit:
    """Return the least-squares fit of b by the columns of A; raise where dense ones are dependent.

    ``top`` is the largest entry of A in absolute value.
    """
    if sp.issparse(A):
        x = lsmr(A, b, atol=SPARSE_EXPLAINED, btol=SPARSE_EXPLAINED)[0]
        return Fit(x, b - A @ x, None)
    normal = _normal(A, top or 1.0)
    x = np.zeros(A.shape[1])
    residual = b
    for _ in range(STEPS):
        gradient = A.T @ residual
        step = normal.solve(gradient)
        explained = float(gradient @ step)
        if not explained > EXPLAINED**2 * float(residual @ residual):
            break
        x = x + step
        residual = b - A @ x
    return Fit(x, residual, normal)


def _normal(A: np.ndarray, size: float) -> Cholesky:
    """Return AᵀA factored: in single precision, in double, or by a QR factorisation, as nearly as columns depend."""
    if A.shape[0] < A.shape[1]:
        raise DependentError(f"A must have as many rows as columns, found shape {A.shape}")
    weights = np.full(len(A), 1.0 / size)
    made = Cholesky.in_single(gram_of_rows(A, weights, single=True))
    try:
        if made is None:
            made = Cholesky(mirrored(gram_of_rows(A, weights, single=False)))
        if made.rounding > ROUGH:
            raise ProblemError("columns are too nearly dependent for normal equations")
    except ProblemError:
        try:
            made = Cholesky.from_rows(lambda: [A / size], A.shape[1], A.dtype)
        except ProblemError as error:
            raise DependentError(str(error)) from None
    return Cholesky.from_factor(made.lower, size * made.scale, factor=made.factor, rounding=made.rounding)
