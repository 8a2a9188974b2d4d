"""A dense metric through a triangular factor, from a Gram matrix in double or single precision, or from its rows by QR.

Cholesky of the diagonally scaled matrix where that is accurate, QR of the weighted rows where columns are nearly
collinear (the error grows with the condition number of the rows, not with its square), and an error that names the
missing direction beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from quartbench.errors import DeficientError, ProblemError
from quartbench.runtime.blas import blas_threads

from .base import Metric

EPS = float(np.finfo(np.float64).eps)

#: Triangular solves with one right-hand side, with many, and of the equations of a Cholesky factor; by type.
TRIANGULAR = {"f": blas.strsv, "d": blas.dtrsv, "F": blas.ctrsv, "D": blas.ztrsv}
TRIANGULAR_COLUMNS = {"d": blas.dtrsm, "D": blas.ztrsm}
FACTOR_SOLVE = {"f": lapack.spotrs, "d": lapack.dpotrs, "F": lapack.cpotrs, "D": lapack.zpotrs}

#: Reciprocal condition number of D⁻¹BD⁻¹ above which a factor in single precision is that of B to a per cent.
SINGLE_CONDITION = 3e-7

#: Squared length of a column above which products with it keep their digits in single precision.
SINGLE_SQUARE = 1e-30

#: The unit diagonal is raised by this where a factorisation must not fail and does, and tenfold each time after.
RIDGE = 1e-14


class Cholesky(Metric):
    """A dense B, symmetric or Hermitian, through the Cholesky factor of D⁻¹BD⁻¹ with D² = diag(B).

    Scaling the diagonal to one first makes the factor indifferent to the units of each coordinate.

    Parameters
    ----------
    matrix : array of shape (n, n), or complex of shape (N, N) for points of ℂᴺ (flat length 2N)
    tau : array of shape (m,), optional
        The weights, where B = Σ τᵢBᵢ.

    Examples
    --------
    >>> B = qb.Cholesky(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> B.solve(B.apply(np.array([1.0, -1.0]))).round(12)
    array([ 1., -1.])
    >>> round(B.norm(np.array([2.0, 0.0])) ** 2, 12)
    8.0
    """

    name = "cholesky"
    factored = True

    def __init__(self, matrix: np.ndarray, tau: np.ndarray | None = None) -> None:
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise ProblemError(f"matrix must be square, found shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ProblemError("matrix must be finite, found NaN or infinity")
        squares = matrix.diagonal().real
        if not (squares > 0).all():
            where = int(np.flatnonzero(~(squares > 0))[0])
            raise ProblemError(f"matrix must be positive definite, found {squares[where]} on its diagonal at {where}")
        scale = np.sqrt(squares)
        unit = matrix / scale / scale[:, None]
        try:
            lower = np.asfortranarray(scipy.linalg.cholesky(unit, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            raise _deficient(unit, len(unit) - 1) from None
        condition = lapack.zpocon if np.iscomplexobj(unit) else lapack.dpocon
        reciprocal = float(condition(lower, np.abs(unit).sum(axis=0).max(), uplo="L")[0])
        # Rounding lets about one deficient matrix in four pass: look again at all that LAPACK estimates as singular.
        if reciprocal < 10 * len(unit) * EPS:
            error = _deficient(unit, len(unit))
            if error is not None:
                raise error
        self._take(lower, scale, tau, "cholesky", 4.0 * EPS / max(reciprocal, EPS**2))
        self.matrix = matrix

    def _take(self, lower: np.ndarray, scale: np.ndarray, tau: np.ndarray | None, factor: str, rounding: float) -> None:
        self.matrix: np.ndarray | None = None
        self.lower, self.scale, self.tau = lower, scale, tau
        self.factor, self.rounding = factor, rounding
        self.precision = "single" if lower.dtype.char in "fF" else "double"
        self.on_complex = np.iscomplexobj(lower)
        self.dim = lower.shape[0] * (2 if self.on_complex else 1)
        self._product: np.ndarray | None = None

    @classmethod
    def from_factor(
        cls,
        lower: np.ndarray,
        scale: np.ndarray,
        tau: np.ndarray | None = None,
        factor: str = "cholesky",
        rounding: float = 0.0,
    ) -> Cholesky:
        """Return B = DLLᴴD for a triangular L, D = diag(scale).

        For factors that do not come from B: one from a QR factorisation is accurate where B itself is not any more.
        """
        metric = cls.__new__(cls)
        metric._take(lower, scale, tau, factor, rounding)
        return metric

    @classmethod
    def in_single(cls, gram: np.ndarray, tau: np.ndarray | None = None) -> Cholesky | None:
        """Return the metric of a Gram matrix in single precision (its lower triangle), which is overwritten.

        None where columns are too nearly collinear for single precision or out of its range.
        """
        squares = gram.diagonal().real
        if not (squares.min() > SINGLE_SQUARE and np.isfinite(squares).all()):
            return None
        scale = np.sqrt(squares)
        gram /= scale
        gram /= scale[:, None]
        factorise, condition = (
            (lapack.cpotrf, lapack.cpocon) if np.iscomplexobj(gram) else (lapack.spotrf, lapack.spocon)
        )
        sizes = np.abs(gram)
        norm = (sizes.sum(axis=0) + sizes.sum(axis=1)).max()  # of the lower triangle and its mirror image
        lower, failed = factorise(gram, lower=1, overwrite_a=1)
        if failed or not condition(lower, norm, uplo="L")[0] > SINGLE_CONDITION:
            return None
        return cls.from_factor(lower, scale.astype(np.float64), tau)

    @classmethod
    def from_rows(
        cls, blocks: Callable[[], Iterable[np.ndarray]], columns: int, dtype: np.dtype, tau: np.ndarray | None = None
    ) -> Cholesky:
        """Return B = Σ rowᴴrow from a QR factorisation of its rows, columns scaled to length one, block by block.

        Parameters
        ----------
        blocks : callable
            Gives the blocks of rows, anew each time it is called.
        columns : int
        dtype : dtype
            Of the rows: float64 or complex128.
        tau : array, optional
        """
        lengths = np.sqrt(sum(np.einsum("ij,ij->j", part, part.conj()).real for part in blocks()))
        if not lengths.all():
            missing = int(np.flatnonzero(lengths == 0)[0])
            raise DeficientError(f"ρ is not positive definite: no term sees coordinate {missing}")
        upper = np.empty((0, columns), dtype=dtype)
        for part in blocks():
            stacked = np.concatenate([upper, part.conj() / lengths])
            upper = scipy.linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][:columns]
        function = lapack.ztrcon if np.iscomplexobj(upper) else lapack.dtrcon
        reciprocal = float(function(upper, norm="1", uplo="U")[0])
        if reciprocal <= 4.0 * EPS * np.sqrt(columns):
            raise missing_direction(upper)
        phase = np.sign(upper.diagonal()) if upper.dtype.kind == "f" else upper.diagonal() / np.abs(upper.diagonal())
        lower = np.asfortranarray((upper / phase[:, None]).conj().T)
        return cls.from_factor(lower, lengths, tau, "qr", 4.0 * EPS / reciprocal)

    @classmethod
    def regularised(cls, matrix: np.ndarray) -> Cholesky:
        """Return the factor of a real matrix (its lower triangle), its diagonal raised where it is singular."""
        squares = matrix.diagonal()
        seen = squares > 0.0
        # A coordinate that nothing sees still needs a positive pivot; one that is only measured in other units than
        # the rest keeps its own.
        least = float(squares[seen].min()) if seen.any() else 1.0
        scale = np.sqrt(np.where(seen, squares, max(1e-30 * least, np.finfo(float).tiny)))
        unit = matrix / scale
        unit /= scale[:, None]
        ridge = 0.0
        with blas_threads(len(unit) ** 3 / 6.0):
            while True:
                np.fill_diagonal(unit, 1.0 + ridge)
                lower, failed = lapack.dpotrf(unit, lower=1)
                if not failed:
                    return cls.from_factor(lower, scale)
                if ridge > len(unit):  # by then dominated by its diagonal, whatever the entries
                    raise ProblemError("the matrix has entries that are NaN or infinite")
                ridge = max(10.0 * ridge, RIDGE)

    def _viewed(self, vector: np.ndarray) -> np.ndarray:
        return vector.view(np.complex128) if self.on_complex else vector

    def apply(self, x):
        """Return Bx."""
        if self.matrix is None:
            product = self.lower @ (self.lower.conj().T @ (self.scale * self._viewed(x)))
            return (self.scale * product).view(np.float64)
        return (self.matrix @ self._viewed(x)).view(np.float64)

    def solve(self, v):
        """Return B⁻¹v by two triangular solves."""
        scaled, size = self._viewed(v) / self.scale, 1.0
        if self.lower.itemsize < scaled.itemsize:  # columns in very different units leave the range of single precision
            size = float(np.abs(scaled).max()) or 1.0
            scaled = (scaled / size).astype(self.lower.dtype)
        # For one right-hand side, BLAS-2 takes a third of the time of LAPACK's potrs.
        solve = TRIANGULAR[self.lower.dtype.char]
        with blas_threads(self.lower.size):
            solved = solve(self.lower, scaled, lower=1, overwrite_x=1)
            solved = solve(self.lower, solved, lower=1, trans=2, overwrite_x=1)
        return (solved * (size / self.scale)).view(np.float64)

    def solve_columns(self, v):
        """Return B⁻¹V by BLAS-3."""
        scaled = v / self.scale[:, None]
        sizes = np.abs(scaled).max(axis=0)
        sizes[sizes == 0.0] = 1.0
        right = np.asfortranarray(scaled / sizes, dtype=self.lower.dtype)
        solved = FACTOR_SOLVE[self.lower.dtype.char](self.lower, right, lower=1, overwrite_b=1)[0]
        return solved * (sizes / self.scale[:, None])

    def _triangle(self) -> np.ndarray:
        """Return F = DL in double precision (made once)."""
        if self._product is None:
            dtype = np.complex128 if np.iscomplexobj(self.lower) else np.float64
            self._product = np.asfortranarray(self.scale[:, None] * self.lower, dtype=dtype)
        return self._product

    def half_solve(self, v, overwrite=False):
        """Return F⁻¹V, F = DL; V in Fortran order and of the type of F is overwritten where it may be."""
        factor = self._triangle()
        solve = TRIANGULAR_COLUMNS[factor.dtype.char]
        return solve(1.0, factor, np.asarray(v, dtype=factor.dtype), lower=1, overwrite_b=int(overwrite))

    def half_solve_adjoint(self, v):
        """Return F⁻ᴴV."""
        factor = self._triangle()
        return TRIANGULAR_COLUMNS[factor.dtype.char](1.0, factor, np.asarray(v, dtype=factor.dtype), lower=1, trans_a=2)


def _deficient(unit: np.ndarray, most: int) -> DeficientError | None:
    """Return the error that says the rank, ``most`` at most, and the direction; None where the rank is full."""
    values, vectors = np.linalg.eigh(unit)
    rank = min(int((values > len(unit) * EPS * values[-1]).sum()), most)
    if rank == len(unit):
        return None
    direction = int(np.argmax(np.abs(vectors[:, 0])))
    return DeficientError(
        f"ρ is not positive definite: numerical rank {rank} of {len(unit)}; "
        f"the missing direction is largest in coordinate {direction}"
    )


def missing_direction(upper: np.ndarray) -> DeficientError:
    """Return the error that names the direction in which rows, columns of length one, vanish to rounding."""
    values, vectors = scipy.linalg.svd(upper, full_matrices=False)[1:]
    rank = int((values > len(upper) * EPS * values[0]).sum())
    direction = vectors[-1].conj()
    direction = direction / direction[np.argmax(np.abs(direction))]
    largest = [int(i) for i in np.argsort(-np.abs(direction), kind="stable")[:3] if abs(direction[i]) > 0.1]
    named = " ".join(
        f"{direction[i].real:+.3g}·e{i}" if np.isrealobj(direction) else f"({direction[i]:.3g})·e{i}" for i in largest
    )
    return DeficientError(
        f"ρ is not positive definite to rounding: numerical rank {rank} of {len(upper)}; every term vanishes along "
        f"{named}{' …' if (np.abs(direction) > 0.1).sum() > len(largest) else ''} (each eᵢ in units of 1/‖column i‖)"
    )
