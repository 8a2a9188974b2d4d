"""What would a competent NumPy user write for f, its gradient and its Hessian? The functions that peers are given.

Rows are multiplied by BLAS or scipy.sparse, powers are products, and the image of the last point is kept. Every read of
the rows is added to the form's count: a value and its gradient are two passes, a Hessian product two more.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.model import ComplexForm, Form, GramForm, GraphForm, Problem, StackedForm
from quartbench.solvers.base import Iterate

#: How far a point may be from the cone, relative to its size, before f is computed anew at its projection.
SLIP = 1e-12


class LostError(ArithmeticError):
    """A method asked for f̃ at a point that is not a number: its model broke down."""


class Objective:
    """f̃(z) = f(σz)/|f(σz₀)|, so that z₀ of norm one is the best point on the ray of the start and f̃(z₀) = −1.

    Absolute tolerances and trust radii of other people's methods then mean the same on every problem.

    Parameters
    ----------
    problem : Problem
    start : array of shape (n,)
        A point of the cone with ⟨c,start⟩ = 1.
    """

    def __init__(self, problem: Problem, start: np.ndarray) -> None:
        self.form, self.cone = problem.form, problem.cone
        self.terms = terms_kind(problem.form)(problem.form)
        image = self.terms.image(self.form.scale * start)
        rho = self.terms.value(image, self.terms.squares(image))
        s = problem.best_scale(rho, 1.0)
        #: |f(σz₀)|, by which f is divided.
        self.unit = 0.75 * s
        #: σ, by which z is multiplied.
        self.sigma = s * float(np.linalg.norm(start))
        self.z = s * start / self.sigma
        self.form.passes += 1
        self.factor = self.form.scale * self.sigma
        self.c = (self.sigma / self.unit) * problem.c
        #: ∇ρ of a graph is centred by itself; that of another form is projected, and so are Hessian products.
        self._centred = self.cone.name == "centred" and not isinstance(self.form, GraphForm)
        self._remember(self.z, s * image)

    def iterate(self, z: np.ndarray, value: float) -> Iterate:
        """Return σz as an iterate, with f at the best point of its ray; ``value`` is f̃(z).

        A point that has left the cone by more than rounding is moved into it, and f computed anew: one pass.
        """
        raw = self.sigma * z
        point = self.cone.euclidean(raw)
        if point is not raw and np.abs(point - raw).max() > SLIP * np.abs(raw).max():
            z = point / self.sigma
            value = self.value(z)
        inner = float(self.c.dot(z))
        if inner > 0.0:
            value = -0.75 * inner * (inner / (4.0 * (value + inner))) ** (1.0 / 3.0)
        return Iterate(point, self.unit * value)

    def magnify(self, factor: float) -> None:
        """Make f̃ so many times larger from now on."""
        self.unit /= factor
        self.c = factor * self.c

    def value(self, z: np.ndarray) -> float:
        """Return f̃(z). One pass, none where the last image was taken at z."""
        self._look(z)
        value = self.terms.value(self._image, self._squares) / self.unit - float(self.c.dot(z))
        if math.isnan(value):
            raise LostError
        return value

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """Return ∇f̃(z). One pass after ``value``."""
        self._look(z)
        self.form.passes += 1
        gradient = self.terms.gradient(self._image, self._squares)
        return self._within((self.factor / self.unit) * gradient) - self.c

    def hessian_product(self, z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return f̃''(z)v. Two passes after ``value``."""
        self._look(z)
        self.form.passes += 2
        product = self.terms.hessian_product(self._image, self._squares, self.factor * v)
        return self._within((self.factor / self.unit) * product)

    def hessian(self, z: np.ndarray) -> np.ndarray:
        """Return f̃''(z) as a dense matrix by BLAS-3. One pass after ``value``.

        On the centred subspace it is PHP + γ(I − P), which is as definite there as ρ is and has the same Newton steps.
        """
        self._look(z)
        self.form.passes += 1
        hessian = (self.factor**2 / self.unit) * self.terms.hessian(self._image, self._squares)
        if self.cone.name != "centred":
            return hessian
        points, coordinates = self.form.shape
        blocks = hessian.reshape(points, coordinates, points, coordinates)
        blocks -= blocks.mean(axis=0)
        blocks -= blocks.mean(axis=2)[:, :, None]
        translations = np.trace(hessian) / hessian.shape[0] / points
        blocks += translations * np.eye(coordinates)[None, :, None, :]
        return hessian

    def _look(self, z: np.ndarray) -> None:
        if not (z == self._z).all():
            self.form.passes += 1
            self._remember(z.copy(), self.terms.image(self.factor * z))

    def _remember(self, z: np.ndarray, image: np.ndarray) -> None:
        self._z, self._image, self._squares = z, image, self.terms.squares(image)

    def _within(self, vector: np.ndarray) -> np.ndarray:
        return self.cone.euclidean(vector) if self._centred else vector


class Terms:
    """The terms of a form in NumPy: s = Mx of shape (m,) or (m, r), q = ‖sᵢ‖², and what follows from them.

    ∇ρ = 4Mᵀ(qs) and ρ''v = Mᵀ(4qw + 8⟨s,w⟩s) with w = Mv.
    """

    def image(self, x: np.ndarray) -> np.ndarray:
        """Return s = Mx."""
        raise NotImplementedError

    def adjoint(self, weights: np.ndarray) -> np.ndarray:
        """Return Mᵀw as a flat vector."""
        raise NotImplementedError

    def hessian(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return ρ'' as a dense matrix."""
        raise NotImplementedError

    def rows(self) -> np.ndarray | sp.csr_matrix:
        """Return M as a real matrix of m·r rows, dense or sparse."""
        raise NotImplementedError

    def squares(self, s: np.ndarray) -> np.ndarray:
        """Return q."""
        return s * s if s.ndim == 1 else np.einsum("ij,ij->i", s, s)

    def value(self, s: np.ndarray, q: np.ndarray) -> float:
        """Return ρ."""
        return float(q @ q)

    def gradient(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return ∇ρ."""
        return 4.0 * self.adjoint(q * s if s.ndim == 1 else q[:, None] * s)

    def hessian_product(self, s: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ρ''v."""
        w = self.image(v)
        if s.ndim == 1:
            return 12.0 * self.adjoint(q * w)
        along = np.einsum("ij,ij->i", s, w)
        return self.adjoint(4.0 * q[:, None] * w + 8.0 * along[:, None] * s)


class DenseTerms(Terms):
    """Dense rows, multiplied by BLAS; float32 rows become float64 once, not at every product."""

    def __init__(self, form: StackedForm) -> None:
        self.matrix, self.rank = np.asarray(form.rows, dtype=np.float64), form.rank

    def image(self, x):
        """Return s by gemv."""
        s = self.matrix @ x
        return s if self.rank == 1 else s.reshape(-1, self.rank)

    def adjoint(self, weights):
        """Return Mᵀw by gemv."""
        return self.matrix.T @ weights.reshape(-1)

    def hessian(self, s, q):
        """Return 4Mᵀdiag(q)M + 8TᵀT, T the rows sᵢᵀUᵢᵀ, by syrk (which NumPy takes for BᵀB); 12 and one for rank 1."""
        scaled = np.repeat(np.sqrt((12.0 if self.rank == 1 else 4.0) * q), self.rank)[:, None] * self.matrix
        hessian = scaled.T @ scaled
        if self.rank > 1:
            along = np.einsum("ij,ijk->ik", np.sqrt(8.0) * s, self.matrix.reshape(*s.shape, -1))
            hessian += along.T @ along
        return hessian

    def rows(self):
        """Return the rows themselves."""
        return self.matrix


class SparseTerms(Terms):
    """CSR rows, multiplied by scipy.sparse; points of a graph by its incidence matrix, all coordinates at once."""

    def __init__(self, form: StackedForm | GraphForm) -> None:
        self.rank = form.rank
        self.coordinates = form.coordinates if isinstance(form, GraphForm) else 0
        if self.coordinates:
            edges = np.repeat(np.arange(form.terms), 2)
            signs = np.tile([1.0, -1.0], form.terms)
            shape = (form.terms, form.points)
            self.matrix = sp.csr_matrix((signs, (edges, form.edges.reshape(-1))), shape=shape)
        else:
            self.matrix = form.rows.astype(np.float64, copy=False)
        self.transposed = self.matrix.T.tocsr()

    def image(self, x):
        """Return s by a sparse product."""
        if self.coordinates:
            return self.matrix @ x.reshape(-1, self.coordinates)
        s = self.matrix @ x
        return s if self.rank == 1 else s.reshape(-1, self.rank)

    def adjoint(self, weights):
        """Return Mᵀw by a sparse product."""
        return (self.transposed @ (weights if self.coordinates else weights.reshape(-1))).reshape(-1)

    def hessian(self, s, q):
        """Return MᵀWM, W of blocks 4qᵢI + 8sᵢsᵢᵀ."""
        s = s.reshape(len(q), -1)
        blocks = 8.0 * s[:, :, None] * s[:, None, :]
        blocks += (4.0 * q)[:, None, None] * np.eye(s.shape[1])
        count = len(q)
        weights = sp.bsr_matrix((blocks, np.arange(count), np.arange(count + 1)))
        rows = self.rows()
        return (rows.T @ (weights @ rows)).toarray()

    def rows(self):
        """Return the CSR rows; of a graph D ⊗ I."""
        if self.coordinates:
            return sp.kron(self.matrix, sp.identity(self.coordinates), format="csr")
        return self.matrix


class ComplexTerms(Terms):
    """Complex rows qᵢ: s = Q̄x, of shape (m,) and complex; points are the real views of complex vectors."""

    def __init__(self, form: ComplexForm) -> None:
        self.matrix = form.rows

    def image(self, x):
        """Return s = conj(Q x̄), which copies no row."""
        return (self.matrix @ x.view(np.complex128).conj()).conj()

    def adjoint(self, weights):
        """Return Qᵀw."""
        return (self.matrix.T @ weights).view(np.float64)

    def squares(self, s):
        """Return |s|²."""
        return s.real * s.real + s.imag * s.imag

    def hessian_product(self, s, q, v):
        """Return ρ''v, with ⟨s,w⟩ = Re(s̄w)."""
        w = self.image(v)
        along = s.real * w.real + s.imag * w.imag
        return self.adjoint(4.0 * q * w + 8.0 * along * s)

    def hessian(self, s, q):
        """Return 12TᵀT + 4RᵀR, T and R the real views of the rows sᵢqᵢ and i·sᵢqᵢ."""
        along = s[:, None] * self.matrix
        across = (1j * along).view(np.float64)
        along = along.view(np.float64)
        return 12.0 * (along.T @ along) + 4.0 * (across.T @ across)

    def rows(self):
        """Return the real and imaginary parts of q̄ᵢ as rows on (re, im) pairs."""
        m, points = self.matrix.shape
        rows = np.empty((m, 2, points, 2))
        rows[:, 0, :, 0] = rows[:, 1, :, 1] = self.matrix.real
        rows[:, 0, :, 1] = self.matrix.imag
        rows[:, 1, :, 0] = -self.matrix.imag
        return rows.reshape(2 * m, 2 * points)


class GramTerms(Terms):
    """ρ(X) = ‖XᵀX‖²_F: the image is X, and q the Gram matrix G = XᵀX."""

    def __init__(self, form: GramForm) -> None:
        self.shape = form.shape

    def image(self, x):
        """Return X."""
        return x.reshape(self.shape)

    def squares(self, s):
        """Return G."""
        return s.T @ s

    def value(self, s, q):
        """Return ‖G‖²_F."""
        return float(np.vdot(q, q))

    def gradient(self, s, q):
        """Return 4XG."""
        return 4.0 * (s @ q).reshape(-1)

    def hessian_product(self, s, q, v):
        """Return 4(VG + X(VᵀX + XᵀV))."""
        v = v.reshape(self.shape)
        mixed = s.T @ v
        return 4.0 * (v @ q + s @ (mixed + mixed.T)).reshape(-1)

    def hessian(self, s, q):
        """Return 4(I ⊗ G + XXᵀ ⊗ I + K), K of the entries XᵢₗXₖⱼ at (ij, kl)."""
        n, r = self.shape
        twisted = np.einsum("il,kj->ijkl", s, s).reshape(n * r, n * r)
        return 4.0 * (np.kron(np.eye(n), q) + np.kron(s @ s.T, np.eye(r)) + twisted)


def terms_kind(form: Form) -> type[Terms]:
    """Return the class that reads the terms of a form in NumPy; raise where there is none."""
    if isinstance(form, StackedForm):
        return SparseTerms if form.sparse else DenseTerms
    kinds = {ComplexForm: ComplexTerms, GraphForm: SparseTerms, GramForm: GramTerms}
    for kind, terms in kinds.items():
        if isinstance(form, kind):
            return terms
    known = ", ".join(kind.__name__ for kind in (StackedForm, *kinds))
    raise ProblemError(f"peers have functions for {known}, found {type(form).__name__}")
