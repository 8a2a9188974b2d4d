"""How far is XXᵀ from a matrix? The misfit of symmetric NMF, and what is asked of the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from quartbench.errors import ProblemError, real_array
from quartbench.forms import Form, Image
from quartbench.kernels import gram

from .misfits import At, Misfit

#: Rows up to which the least eigenvalue comes from a dense solver, and the steps of Lanczos's method beyond.
DENSE_MATRIX, LANCZOS = 500, 60

#: How negative an eigenvalue may be by rounding, relative to ‖M‖_F.
INDEFINITE = 1e-10

#: How far M may be from its transpose, relative to its largest entry.
ASYMMETRIC = 1e-10


class MatrixMisfit(Misfit):
    """F(X) = ρ(X) − 2⟨MX,X⟩ + ‖M‖²_F, which is ‖XXᵀ − M‖²_F for ρ(X) = ‖XᵀX‖²_F. The image is the pair (X, MX).

    A pass is a product with M: everything else is r × r matrices.
    """

    convex_steps_read = False

    def __init__(self, form: Form, matrix: Any) -> None:
        self.form = form
        self.matrix = symmetric(matrix, form.shape[0])
        entries = self.matrix.data if sp.issparse(self.matrix) else self.matrix
        if not entries.size or not entries.any():
            raise ProblemError("M must not be all zero: the solution is X = 0 and there is nothing to solve")
        self._largest = float(np.abs(entries).max())
        self.size = self._largest * float(np.linalg.norm(entries / self._largest))
        self._shift: float | None = None

    @property
    def passes(self):
        """Products with M so far."""
        return self._charged

    def twin(self):
        """Return the same with a count of its own."""
        made = object.__new__(MatrixMisfit)
        made.__dict__.update(self.__dict__, form=self.form.twin(), _charged=0)
        return made

    def normalised(self):
        """Return M divided by its largest entry."""
        largest = self._largest
        return MatrixMisfit(self.form.twin(), self.matrix / largest), float(np.sqrt(largest)), largest * largest

    def image(self, v):
        """Return (V, MV). One pass."""
        self._charged += 1
        shaped = v.reshape(self.form.shape)
        out = np.empty((2, *shaped.shape))
        # M is symmetric, and BLAS takes half the time for a few rows times M that it takes for M times a few columns.
        out[0], out[1] = shaped, self.matrix @ shaped if sp.issparse(self.matrix) else (shaped.T @ self.matrix).T
        return out

    def evaluate(self, x):
        """Return F, ∇F and (X, MX)."""
        return self.moved(x, self.image(x))

    def moved(self, x, image):
        """Return F and ∇F = 4X(XᵀX) − 4MX. No pass."""
        value, gradient = gram.misfit(image[0], image[1])
        return At(x, max(value + self.size**2, 0.0), gradient.reshape(-1), image)

    def products(self, at, a=1.0):
        """Return V ↦ 4(V XᵀX + X VᵀX) + a·4(X XᵀV − MV) and (V, MV)."""
        x = at.image[0]
        square = x.T @ x

        def product(v: np.ndarray) -> tuple[np.ndarray, Image]:
            image = self.image(v)
            shaped = image[0]
            total = shaped @ square + x @ (shaped.T @ x)
            if a:
                total += a * (x @ (x.T @ shaped) - image[1])
            return 4.0 * total.reshape(-1), image

        return product

    def line(self, image, direction):
        """Return the coefficients of ‖(X + tV)(X + tV)ᵀ − M‖²_F."""
        out = gram.line(image[0], direction[0])
        out[0] += self.size**2 - 2.0 * float(np.vdot(image[0], image[1]))
        out[1] -= 4.0 * float(np.vdot(direction[0], image[1]))
        out[2] -= 2.0 * float(np.vdot(direction[0], direction[1]))
        return out

    def linearised(self, at):
        """Return 4MX. No pass."""
        return 4.0 * at.image[1].reshape(-1)

    def split(self, x, slope, image):
        """Return F, ∇F and 4MX."""
        pair = self.image(x)
        at = self.moved(x, pair)
        return at, self.linearised(at)

    def rho(self, image):
        """Return ρ(X)."""
        return gram.value(image[0])

    def shift(self) -> float:
        """Return the least σ ≥ 0 with M + σI positive semidefinite, 0 up to rounding; looks once."""
        if self._shift is None:
            least = least_eigenvalue(self.matrix)
            self._shift = -least if least < -INDEFINITE * self.size else 0.0
        return self._shift

    def require_split(self):
        """Raise where M has a negative eigenvalue beyond rounding."""
        if self.shift() > 0.0:
            raise ProblemError(
                "F is a difference of convex functions where M is positive semidefinite, found the eigenvalue "
                f"{-self.shift():.6g}; take method='cd', which shifts the split and fits the same M, or add "
                f"{self.shift():.6g} to the diagonal of M, which changes what is fitted there"
            )


def require_factors(problem: Any, name: str) -> None:
    """Raise for other problems than XXᵀ ≈ M over the orthant."""
    if not isinstance(problem.misfit, MatrixMisfit) or not problem.cone.nonnegative(problem.dim):
        raise ProblemError(f"{name} needs a matrix M and the cone Orthant(), found {problem!r}")


def symmetric(matrix: Any, size: int | None = None) -> np.ndarray | sp.csr_matrix:
    """Return a finite symmetric matrix, dense or CSR; raise where it is none."""
    found = sp.csr_matrix(matrix, dtype=np.float64) if sp.issparse(matrix) else real_array(matrix, "M", 2)
    if found.shape[0] != found.shape[1] or (size is not None and found.shape[0] != size):
        wanted = "square" if size is None else f"of shape {(size, size)}"
        raise ProblemError(f"M must be {wanted}, found shape {found.shape}")
    if sp.issparse(found) and not np.isfinite(found.data).all():
        raise ProblemError("M must be finite, found NaN or infinity")
    if found.shape[0] == 0:
        raise ProblemError("M must not be empty, found shape (0, 0)")
    apart, largest = float(abs(found - found.T).max()), float(abs(found).max())
    if apart > ASYMMETRIC * largest:
        raise ProblemError(
            f"M must be symmetric, found entries of M and its transpose apart by {apart:.3g}; take (M + M.T)/2"
        )
    return found


def least_eigenvalue(matrix: np.ndarray | sp.csr_matrix) -> float:
    """Return the least eigenvalue of a symmetric matrix; for a large one the least that Lanczos's method sees.

    That is never less than the true one, and where M has many eigenvalues 0 as good as it: restarts until convergence,
    as ARPACK makes them, would not end there.
    """
    size = matrix.shape[0]
    if size <= DENSE_MATRIX:
        return float(np.linalg.eigvalsh(matrix.toarray() if sp.issparse(matrix) else matrix)[0])
    basis, diagonal, beside = np.zeros((LANCZOS + 1, size)), [], []
    basis[0] = np.random.default_rng(0).standard_normal(size)
    basis[0] /= np.linalg.norm(basis[0])
    for k in range(LANCZOS):
        v = matrix @ basis[k]
        diagonal.append(float(v @ basis[k]))
        v -= basis[: k + 1].T @ (basis[: k + 1] @ v)
        v -= basis[: k + 1].T @ (basis[: k + 1] @ v)
        beside.append(float(np.linalg.norm(v)))
        if beside[-1] <= 1e-12 * max(map(abs, diagonal)):
            break
        basis[k + 1] = v / beside[-1]
    return float(scipy.linalg.eigh_tridiagonal(diagonal, beside[:-1], eigvals_only=True)[0])
