"""The metrics B: the norm ‖x‖_B, its dual ‖v‖_{B⁻¹}, products with B and solves. Vectors are flat and real.

Where B = B(τ) = Σ τᵢBᵢ for a form, the metric keeps ``tau``: certificates and Lewis weights need it.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from quartbench.errors import ProblemError, real_array

from .forms import Form, GraphForm, laplacian

#: Vertices up to which a Laplacian is factored as a dense matrix: beyond, a sparse factor is smaller and faster.
DENSE_VERTICES = 1500


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
    """

    name = "metric"
    dim: int
    diagonal: np.ndarray | None = None
    keeps_centred = False
    tau: np.ndarray | None = None

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
            self.lower = scipy.linalg.cholesky(unit, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise self._deficient(unit) from None

    @staticmethod
    def _deficient(unit: np.ndarray) -> ProblemError:
        values, vectors = np.linalg.eigh(unit)
        rank = int((values > len(unit) * np.finfo(float).eps * values[-1]).sum())
        direction = int(np.argmax(np.abs(vectors[:, 0])))
        return ProblemError(
            f"ρ is not positive definite: numerical rank {rank} of {len(unit)}; "
            f"the missing direction is largest in coordinate {direction}"
        )

    def _viewed(self, vector: np.ndarray) -> np.ndarray:
        return vector.view(np.complex128) if np.iscomplexobj(self.matrix) else vector

    def apply(self, x):
        """Return Bx."""
        return (self.matrix @ self._viewed(x)).view(np.float64)

    def solve(self, v):
        """Return B⁻¹v by two triangular solves."""
        scaled = self._viewed(v) / self.scale
        solved = scipy.linalg.cho_solve((self.lower, True), scaled, overwrite_b=True, check_finite=False)
        return (solved / self.scale).view(np.float64)


class Laplacian(Metric):
    """B = L_w ⊗ I_d on N × d points, with w̄/N·11ᵀ added so that it is definite; w̄ is the mean weighted degree.

    On the centred subspace B is L_w itself and B⁻¹ its pseudo-inverse. The factor is of the N × N Laplacian: dense for
    small graphs, sparse (one vertex grounded) for large ones.

    Parameters
    ----------
    points, dim : int
        N and d.
    edges : integer array of shape (m, 2)
    weights : array of shape (m,)
        Positive.
    """

    name = "laplacian"
    keeps_centred = True

    def __init__(self, points: int, dim: int, edges: np.ndarray, weights: np.ndarray) -> None:
        weights = real_array(weights, "weights", 1)
        if weights.size != len(edges) or not (weights > 0).all():
            raise ProblemError(f"weights must be {len(edges)} positive numbers, one an edge, found {weights.size}")
        self.points, self.coordinates = int(points), int(dim)
        self.dim = self.points * self.coordinates
        self.laplacian = laplacian(self.points, np.asarray(edges), weights)
        self.mean_degree = 2.0 * weights.sum() / self.points
        if self.points <= DENSE_VERTICES:
            dense = self.laplacian.toarray() + self.mean_degree / self.points
            self._factor = scipy.linalg.cho_factor(dense, lower=True, check_finite=False)
        else:
            grounded = sp.csc_matrix(self.laplacian[:-1, :-1])
            self._factor = splu(
                grounded, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )

    def apply(self, x):
        """Return Bx."""
        point = x.reshape(self.points, self.coordinates)
        return (self.laplacian @ point + self.mean_degree * point.mean(axis=0)).reshape(-1)

    def solve(self, v):
        """Return B⁻¹v."""
        return self.solve_columns(v.reshape(self.points, self.coordinates)).reshape(-1)

    def solve_columns(self, v: np.ndarray) -> np.ndarray:
        """Return (L_w + w̄/N·11ᵀ)⁻¹V for V of N rows."""
        if self.points <= DENSE_VERTICES:
            return scipy.linalg.cho_solve(self._factor, v, check_finite=False)
        mean = v.mean(axis=0)
        grounded = np.zeros_like(v)
        grounded[:-1] = self._factor.solve(np.ascontiguousarray((v - mean)[:-1]))
        return grounded - grounded.mean(axis=0) + mean / self.mean_degree


def weighted(form: Form, tau: np.ndarray) -> Metric:
    """Return the metric B(τ) = Σ τᵢBᵢ of a form."""
    tau = real_array(tau, "tau", 1)
    if tau.size != form.terms or not (tau > 0).all():
        raise ProblemError(f"tau must be {form.terms} positive numbers, one a term, found {tau.size}")
    if isinstance(form, GraphForm):
        metric = Laplacian(form.points, form.coordinates, form.edges, form.scale**2 * tau)
        metric.tau = tau
        return metric
    return Cholesky(form.weighted_gram(tau), tau)


METRICS = {metric.name: metric for metric in (Identity, Diagonal, Cholesky, Laplacian)}
