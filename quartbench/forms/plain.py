"""What would a competent NumPy user write for ρ, its gradient and its Hessian? What peers are given.

Rows are multiplied by BLAS or scipy.sparse and powers are products. Every read of the rows is counted with the passes
of the form: an image is one, a gradient one more, a Hessian product two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from .base import Form


class PlainForm:
    """The terms of a form in NumPy, unscaled: s = Mx of shape (m,) or (m, r), q = ‖sᵢ‖², and what follows from them.

    ∇ρ = 4Mᵀ(qs) and ρ''v = Mᵀ(4qw + 8⟨s,w⟩s) with w = Mv.

    Parameters
    ----------
    form : Form
        Whose passes are counted.
    """

    def __init__(self, form: Form) -> None:
        self._form = form

    def _products(self, x: np.ndarray) -> np.ndarray:
        """Return s = Mx."""
        raise NotImplementedError

    def _adjoint(self, weights: np.ndarray) -> np.ndarray:
        """Return Mᵀw as a flat vector."""
        raise NotImplementedError

    def _matrix(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return ρ'' as a dense matrix."""
        raise NotImplementedError

    def image(self, x: np.ndarray) -> np.ndarray:
        """Return s = Mx. One pass."""
        self._form._read()
        return self._products(x)

    def squares(self, s: np.ndarray) -> np.ndarray:
        """Return q."""
        return s * s if s.ndim == 1 else np.einsum("ij,ij->i", s, s)

    def value(self, s: np.ndarray, q: np.ndarray) -> float:
        """Return ρ."""
        return float(q @ q)

    def gradient(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return ∇ρ. One pass."""
        self._form._read()
        return 4.0 * self._adjoint(q * s if s.ndim == 1 else q[:, None] * s)

    def hessian_product(self, s: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ρ''v. Two passes."""
        self._form._read(2)
        return self._second(s, q, v)

    def _second(self, s: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        w = self._products(v)
        if s.ndim == 1:
            return 12.0 * self._adjoint(q * w)
        along = np.einsum("ij,ij->i", s, w)
        return self._adjoint(4.0 * q[:, None] * w + 8.0 * along[:, None] * s)

    def hessian(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return ρ'' as a dense matrix. One pass."""
        self._form._read()
        return self._matrix(s, q)

    def read(self, passes: int) -> None:
        """Count reads of the rows that a peer makes by itself."""
        self._form._read(passes)


class DensePlain(PlainForm):
    """Dense rows, multiplied by BLAS; float32 rows become float64 once, not at every product."""

    def __init__(self, form: Form, rows: np.ndarray, rank: int) -> None:
        super().__init__(form)
        self.matrix, self.rank = np.asarray(rows, dtype=np.float64), rank

    def _products(self, x):
        s = self.matrix @ x
        return s if self.rank == 1 else s.reshape(-1, self.rank)

    def _adjoint(self, weights):
        return self.matrix.T @ weights.reshape(-1)

    def _matrix(self, s, q):
        # 4Mᵀdiag(q)M + 8TᵀT, T the rows sᵢᵀUᵢᵀ, by syrk (which NumPy takes for BᵀB); 12 and one for rank 1.
        scaled = np.repeat(np.sqrt((12.0 if self.rank == 1 else 4.0) * q), self.rank)[:, None] * self.matrix
        hessian = scaled.T @ scaled
        if self.rank > 1:
            along = np.einsum("ij,ijk->ik", np.sqrt(8.0) * s, self.matrix.reshape(*s.shape, -1))
            hessian += along.T @ along
        return hessian


class SparsePlain(PlainForm):
    """CSR rows, multiplied by scipy.sparse; points of a graph by its incidence matrix, all coordinates at once.

    Parameters
    ----------
    form : Form
    matrix : CSR matrix
        The rows, or the incidence matrix of a graph.
    rank : int
    coordinates : int
        Those of a vertex where the matrix is an incidence matrix, else 0.
    """

    def __init__(self, form: Form, matrix: sp.csr_matrix, rank: int, coordinates: int = 0) -> None:
        super().__init__(form)
        self.rank, self.coordinates = rank, coordinates
        self.matrix = matrix.astype(np.float64, copy=False)
        self.transposed = self.matrix.T.tocsr()

    def _products(self, x):
        if self.coordinates:
            return self.matrix @ x.reshape(-1, self.coordinates)
        s = self.matrix @ x
        return s if self.rank == 1 else s.reshape(-1, self.rank)

    def _adjoint(self, weights):
        return (self.transposed @ (weights if self.coordinates else weights.reshape(-1))).reshape(-1)

    def _matrix(self, s, q):
        # MᵀWM, W of blocks 4qᵢI + 8sᵢsᵢᵀ.
        s = s.reshape(len(q), -1)
        blocks = 8.0 * s[:, :, None] * s[:, None, :]
        blocks += (4.0 * q)[:, None, None] * np.eye(s.shape[1])
        count = len(q)
        weights = sp.bsr_matrix((blocks, np.arange(count), np.arange(count + 1)))
        rows = self.matrix
        if self.coordinates:
            rows = sp.kron(rows, sp.identity(self.coordinates), format="csr")
        return (rows.T @ (weights @ rows)).toarray()


class ComplexPlain(PlainForm):
    """Complex rows qᵢ: s = Q̄x, of shape (m,) and complex; points are the real views of complex vectors."""

    def __init__(self, form: Form, rows: np.ndarray) -> None:
        super().__init__(form)
        self.matrix = rows

    def _products(self, x):
        # conj(Q x̄), which copies no row
        return (self.matrix @ x.view(np.complex128).conj()).conj()

    def _adjoint(self, weights):
        return (self.matrix.T @ weights).view(np.float64)

    def squares(self, s):
        """Return |s|²."""
        return s.real * s.real + s.imag * s.imag

    def _second(self, s, q, v):
        # ⟨s,w⟩ = Re(s̄w)
        w = self._products(v)
        along = s.real * w.real + s.imag * w.imag
        return self._adjoint(4.0 * q * w + 8.0 * along * s)

    def _matrix(self, s, q):
        # 12TᵀT + 4RᵀR, T and R the real views of the rows sᵢqᵢ and i·sᵢqᵢ.
        along = s[:, None] * self.matrix
        across = (1j * along).view(np.float64)
        along = along.view(np.float64)
        return 12.0 * (along.T @ along) + 4.0 * (across.T @ across)


class GramPlain(PlainForm):
    """ρ(X) = ‖XᵀX‖²_F: the image is X, and q the Gram matrix G = XᵀX."""

    def __init__(self, form: Form, shape: tuple[int, int]) -> None:
        super().__init__(form)
        self.shape = shape

    def _products(self, x):
        return x.reshape(self.shape)

    def squares(self, s):
        """Return G."""
        return s.T @ s

    def value(self, s, q):
        """Return ‖G‖²_F."""
        return float(np.vdot(q, q))

    def gradient(self, s, q):
        """Return 4XG. One pass."""
        self._form._read()
        return 4.0 * (s @ q).reshape(-1)

    def _second(self, s, q, v):
        # 4(VG + X(VᵀX + XᵀV))
        v = v.reshape(self.shape)
        mixed = s.T @ v
        return 4.0 * (v @ q + s @ (mixed + mixed.T)).reshape(-1)

    def _matrix(self, s, q):
        # 4(I ⊗ G + XXᵀ ⊗ I + K), K of the entries XᵢₗXₖⱼ at (ij, kl)
        n, r = self.shape
        twisted = np.einsum("il,kj->ijkl", s, s).reshape(n * r, n * r)
        return 4.0 * (np.kron(np.eye(n), q) + np.kron(s @ s.T, np.eye(r)) + twisted)


class ProductsPlain(PlainForm):
    """Any terms, through the products of their form: rows that are functions have no other way."""

    def __init__(self, form: Any) -> None:
        super().__init__(form)
        self.rank = form.rank

    def _products(self, x):
        s = self._form._image(x)
        return s if self.rank == 1 else s.reshape(-1, self.rank)

    def _adjoint(self, weights):
        return self._form._adjoint(np.ascontiguousarray(weights.reshape(-1)))

    def _matrix(self, s, q):
        return np.array([self._second(s, q, column) for column in np.eye(self._form.dim)])
