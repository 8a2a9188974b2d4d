"""The metrics B: the norm ‖x‖_B, its dual ‖v‖_{B⁻¹}, products with B and solves. Vectors are flat and real.

Where B = B(τ) = Σ τᵢBᵢ for a form, the metric keeps ``tau``: certificates and Lewis weights need it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from quartbench.errors import ProblemError, real_array

from .bounds import Bounds
from .forms import Form, GraphForm, laplacian
from .laplacians import Dissection, laplacian_solver
from .threads import blas_threads


class Metric:
    """A positive definite operator B on flat vectors of length ``dim``.

    Attributes
    ----------
    dim : int
    diagonal : array of shape (dim,) or None
        The diagonal of B where B is diagonal; some cones need that.
    keeps_centred : bool
        Whether B maps the centred subspace to itself, so that centring is also the B-projection.
    tau : array of shape (m,) or None
        The weights where B = Σ τᵢBᵢ.
    sweeps, setup_seconds : int, float
        What it cost to choose and factor B, as far as ``quartbench.precondition`` made it.
    """

    name = "metric"
    dim: int
    diagonal: np.ndarray | None = None
    keeps_centred = False
    tau: np.ndarray | None = None
    sweeps: int = 0
    setup_seconds: float = 0.0
    _bounds: Bounds | Callable[[], Bounds] | None = None

    @property
    def bounds(self) -> Bounds | None:
        """α and β of the form in this metric, where ``quartbench.precondition`` made it for one.

        They may cost a sweep or an eigenvalue problem, so they are computed when first asked for, and not counted in
        the set-up: no method needs them to run.
        """
        if callable(self._bounds):
            self._bounds = self._bounds()
        return self._bounds

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return Bx."""
        raise NotImplementedError

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return B⁻¹v."""
        raise NotImplementedError

    def norm(self, x: np.ndarray) -> float:
        """Return ‖x‖_B = ⟨Bx,x⟩^½ (ERRATA 1)."""
        return float(np.sqrt(max(x @ self.apply(x), 0.0)))

    def dual_norm(self, v: np.ndarray) -> float:
        """Return ‖v‖_* = ⟨v,B⁻¹v⟩^½, the norm of gradients."""
        return float(np.sqrt(max(v @ self.solve(v), 0.0)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"


class Identity(Metric):
    """B = I, the Euclidean norm."""

    name = "identity"
    keeps_centred = True

    def __init__(self, dim: int) -> None:
        self.dim = int(dim)

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


class Diagonal(Metric):
    """B = diag(d), d > 0."""

    name = "diagonal"

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


#: Triangular solves with one right-hand side, by the type of the factor.
TRIANGULAR = {"f": blas.strsv, "d": blas.dtrsv, "F": blas.ctrsv, "D": blas.ztrsv}


class Cholesky(Metric):
    """A dense B, symmetric or Hermitian, through the Cholesky factor of D⁻¹BD⁻¹ with D² = diag(B).

    Scaling the diagonal to one first makes the factor indifferent to the units of each coordinate.

    Parameters
    ----------
    matrix : array of shape (n, n), or complex of shape (N, N) for points of ℂᴺ (flat length 2N)
    tau : array of shape (m,), optional
        The weights, where B = Σ τᵢBᵢ.
    """

    name = "cholesky"

    def __init__(self, matrix: np.ndarray, tau: np.ndarray | None = None) -> None:
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise ProblemError(f"matrix must be square, found shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ProblemError("matrix must be finite, found NaN or infinity")
        self.matrix = matrix
        self.tau = tau
        self.dim = matrix.shape[0] * (2 if np.iscomplexobj(matrix) else 1)
        squares = matrix.diagonal().real
        if not (squares > 0).all():
            where = int(np.flatnonzero(~(squares > 0))[0])
            raise ProblemError(f"matrix must be positive definite, found {squares[where]} on its diagonal at {where}")
        self.scale = np.sqrt(squares)
        unit = matrix / self.scale / self.scale[:, None]
        try:
            self.lower = np.asfortranarray(scipy.linalg.cholesky(unit, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            raise self._deficient(unit, len(unit) - 1) from None
        # Rounding lets about one deficient matrix in four pass: look again at all that LAPACK estimates as singular.
        condition = lapack.zpocon if np.iscomplexobj(unit) else lapack.dpocon
        if condition(self.lower, np.abs(unit).sum(axis=0).max(), uplo="L")[0] < 10 * len(unit) * np.finfo(float).eps:
            error = self._deficient(unit, len(unit))
            if error is not None:
                raise error

    @classmethod
    def from_factor(cls, lower: np.ndarray, scale: np.ndarray, tau: np.ndarray | None = None) -> Cholesky:
        """Return B = DLLᴴD for a triangular L, D = diag(scale).

        For factors that do not come from B: one from a QR factorisation is accurate where B itself is not any more.
        """
        metric = cls.__new__(cls)
        metric.matrix, metric.lower, metric.scale, metric.tau = None, lower, scale, tau
        metric.dim = lower.shape[0] * (2 if np.iscomplexobj(lower) else 1)
        return metric

    @staticmethod
    def _deficient(unit: np.ndarray, most: int) -> ProblemError | None:
        """Return the error that says the rank, ``most`` at most, and the direction; None where the rank is full."""
        values, vectors = np.linalg.eigh(unit)
        rank = min(int((values > len(unit) * np.finfo(float).eps * values[-1]).sum()), most)
        if rank == len(unit):
            return None
        direction = int(np.argmax(np.abs(vectors[:, 0])))
        return ProblemError(
            f"ρ is not positive definite: numerical rank {rank} of {len(unit)}; "
            f"the missing direction is largest in coordinate {direction}"
        )

    def _viewed(self, vector: np.ndarray) -> np.ndarray:
        return vector.view(np.complex128) if np.iscomplexobj(self.lower) else vector

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

    def solve_columns(self, v: np.ndarray) -> np.ndarray:
        """Return B⁻¹V for real V of n rows, by BLAS-3."""
        solve = lapack.spotrs if self.lower.dtype == np.float32 else lapack.dpotrs
        scaled = v / self.scale[:, None]
        sizes = np.abs(scaled).max(axis=0)
        sizes[sizes == 0.0] = 1.0
        solved = solve(self.lower, np.asfortranarray(scaled / sizes, dtype=self.lower.dtype), lower=1, overwrite_b=1)[0]
        return solved * (sizes / self.scale[:, None])


class Laplacian(Metric):
    """B = L_w ⊗ I_d on N × d points, with w̄/N·11ᵀ added so that it is definite; w̄ is the mean weighted degree.

    On the centred subspace B is L_w itself and B⁻¹ its pseudo-inverse. Only equations with the N × N Laplacian are
    solved: by a dense factor, nested dissection or conjugate gradients, as the graph allows (see ``solver.method``).

    Parameters
    ----------
    points, dim : int
        N and d.
    edges : integer array of shape (m, 2)
    weights : array of shape (m,)
        Positive.
    structure : Dissection, optional
        Of the same graph, where it is known already.
    """

    name = "laplacian"
    keeps_centred = True

    def __init__(
        self, points: int, dim: int, edges: np.ndarray, weights: np.ndarray, structure: Dissection | None = None
    ) -> None:
        weights = real_array(weights, "weights", 1)
        if weights.size != len(edges) or not (weights > 0).all():
            raise ProblemError(f"weights must be {len(edges)} positive numbers, one an edge, found {weights.size}")
        self.points, self.coordinates = int(points), int(dim)
        self.dim = self.points * self.coordinates
        self.laplacian = laplacian(self.points, np.asarray(edges), weights)
        self.mean_degree = 2.0 * weights.sum() / self.points
        self.solver = laplacian_solver(self.laplacian, np.asarray(edges), weights, structure)

    def apply(self, x):
        """Return Bx."""
        point = x.reshape(self.points, self.coordinates)
        return (self.laplacian @ point + self.mean_degree * point.mean(axis=0)).reshape(-1)

    def solve(self, v):
        """Return B⁻¹v."""
        return self.solve_columns(v.reshape(self.points, self.coordinates)).reshape(-1)

    def solve_columns(self, v: np.ndarray) -> np.ndarray:
        """Return (L_w + w̄/N·11ᵀ)⁻¹V for V of N rows."""
        mean = v.mean(axis=0)
        return self.solver.solve(v - mean) + mean / self.mean_degree


def weighted(form: Form, tau: np.ndarray) -> Metric:
    """Return the metric B(τ) = Σ τᵢBᵢ of a form."""
    tau = real_array(tau, "tau", 1)
    if tau.size != form.terms or not (tau > 0).all():
        raise ProblemError(f"tau must be {form.terms} positive numbers, one a term, found {tau.size}")
    if isinstance(form, GraphForm):
        metric = Laplacian(form.points, form.coordinates, form.edges, form.scale**2 * tau, form.dissection())
        metric.tau = tau
        return metric
    return Cholesky(form.weighted_gram(tau), tau)


METRICS = {metric.name: metric for metric in (Identity, Diagonal, Cholesky, Laplacian)}
