"""What are data compared with? The terms of a form with numbers, or the product XXᵀ with a matrix.

Both give F, its gradient, products with its second derivatives and its restriction to a line, all from images, and the
split F = ρ − φ of the DC algorithm. Points are flat real vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from quartbench.errors import ProblemError, any_array, real_array
from quartbench.forms import Form, Image, TermForm
from quartbench.kernels import gram

#: Rows up to which the least eigenvalue comes from a dense solver, and the steps of Lanczos's method beyond.
DENSE_MATRIX, LANCZOS = 500, 60

#: How negative an eigenvalue may be by rounding, relative to ‖M‖_F.
INDEFINITE = 1e-10

#: How far M may be from its transpose, relative to its largest entry.
ASYMMETRIC = 1e-10


class At(NamedTuple):
    """A point with what is known there."""

    point: np.ndarray
    value: float
    gradient: np.ndarray
    image: Image


class Misfit:
    """F as methods see it.

    Attributes
    ----------
    form : Form
        ρ.
    size : float
        ‖d‖ or ‖M‖_F, in which residuals √F are measured.
    passes : int
        Reads of the rows of the form, or products with M, so far.
    """

    form: Form
    size: float
    #: Whether F, ∇F and the image at a point take one pass; else the gradient takes one more.
    fused = False
    #: Whether a convex step of the DC algorithm reads what passes count.
    convex_steps_read = True
    _charged = 0

    @property
    def passes(self) -> int:
        """Reads of the rows so far."""
        return self.form.passes + self._charged

    def charge(self, passes: int) -> None:
        """Count passes that were made elsewhere, as those of a convex step on a form of its own."""
        self._charged += passes

    def twin(self) -> Misfit:
        """Return the same with a count of passes of its own."""
        raise NotImplementedError

    def normalised(self) -> tuple[Misfit, float, float]:
        """Return the same in moderate numbers, with the factors back: x = x_scale·x', F = f_scale·F'."""
        raise NotImplementedError

    def evaluate(self, x: np.ndarray) -> At:
        """Return F, ∇F and the image at a point. One pass where the form fuses them."""
        raise NotImplementedError

    def moved(self, x: np.ndarray, image: Image) -> At:
        """Return the same at a point whose image is known. One pass."""
        raise NotImplementedError

    def image(self, v: np.ndarray) -> Image:
        """Return the image of a vector. One pass."""
        raise NotImplementedError

    def products(self, at: At, a: float = 1.0) -> Callable[[np.ndarray], tuple[np.ndarray, Image | None]]:
        """Return v ↦ F''(x)v and the image of v; with a = 0 the product is with Gauss and Newton's matrix.

        The image is None where it is cheaper to make once, for what directions are added up to.
        """
        raise NotImplementedError

    def factor_cost(self) -> float:
        """Return the passes that a factor of these matrices costs; infinite where there is none."""
        return math.inf

    def factor(self, at: At, a: float, shift: float) -> Any:
        """Return a factor of such a matrix plus ``shift`` times its mean diagonal; None where that is indefinite."""
        raise NotImplementedError

    def line(self, image: Image, direction: Image) -> np.ndarray:
        """Return the five coefficients of t ↦ F(x + t v), constant first, from the images of x and v. No pass."""
        raise NotImplementedError

    def line_to(self, image: Image, ahead: Image) -> np.ndarray:
        """Return the coefficients of t ↦ F(x + t(y − x)) from the images of x and y. No pass."""
        return self.line(image, ahead - image)

    def linearised(self, at: At) -> np.ndarray:
        """Return c = ∇φ(x), with which F ≤ ρ − ⟨c,·⟩ + const and both are equal at x; linear in x. One pass."""
        raise NotImplementedError

    def split(self, x: np.ndarray, slope: np.ndarray, image: Image) -> tuple[At, np.ndarray]:
        """Return F, ∇F = ∇ρ − ∇φ and ∇φ at a point where ∇ρ is ``slope`` and the form's image is known. One pass."""
        raise NotImplementedError

    def rho(self, image: Image) -> float:
        """Return ρ from an image. No pass."""
        raise NotImplementedError

    def require_split(self) -> None:
        """Raise where φ is not convex, so that F = ρ − φ is no difference of convex functions."""
        raise NotImplementedError


class TermMisfit(Misfit):
    """F(x) = Σ ωᵢ(⟨x,Bᵢx⟩ − dᵢ)², with φ(x) = Σ (2dᵢ⟨x,Bᵢx⟩ − dᵢ²) where all weights ω are 1."""

    def __init__(self, form: TermForm, d: Any, weights: Any = None) -> None:
        self.form, self.fused = form, form.fuses_misfit
        self.d = _per_term(d, "d", form.terms)
        if not self.d.any():
            raise ProblemError("d must not be all zero: the solution is x = 0 and there is nothing to solve")
        self.weighted = weights is not None
        self.weights = _per_term(weights, "weights", form.terms) if self.weighted else np.ones(form.terms)
        if not (self.weights >= 0.0).all() or not (self.weights * np.abs(self.d)).any():
            raise ProblemError("weights must not be negative, nor zero wherever d is not")
        self._largest = float(np.abs(self.d).max())
        self._heaviest = float(self.weights.max())
        relative = self.d / self._largest * np.sqrt(self.weights / self._heaviest)
        self.size = self._largest * float(np.sqrt(self._heaviest)) * float(np.linalg.norm(relative))

    def twin(self):
        """Return the same on a twin of the form."""
        return TermMisfit(self.form.twin(), self.d, self.weights if self.weighted else None)

    def normalised(self):
        """Return d and the weights divided by their largest entries, on rows of moderate size."""
        form = self.form.moderate()
        ratio, largest, heaviest = self.form.scale / form.scale, self._largest, self._heaviest
        made = TermMisfit(form, self.d / largest, self.weights / heaviest if self.weighted else None)
        return made, float(np.sqrt(largest)) / ratio, largest * largest * heaviest

    def evaluate(self, x):
        """Return F, ∇F and the image at a point."""
        value, gradient, image = self.form.evaluate_misfit(x, self.d, self.weights)
        return At(x, value, gradient, image)

    def moved(self, x, image):
        """Return F and ∇F from the image. One pass."""
        return At(x, *self.form.misfit_from_image(image, self.d, self.weights), image)

    def image(self, v):
        """Return the image of a vector. One pass."""
        return self.form.image(v)

    def products(self, at, a=1.0):
        """Return v ↦ Mᵀ(4aωᵢ(qᵢ − dᵢ)tᵢ + 8ωᵢ⟨sᵢ,tᵢ⟩sᵢ) and t, the image of v, or None."""
        form, image = self.form, at.image
        alpha, beta = self._curvature(image, a)
        return lambda v: form.misfit_product(image, alpha, beta, v)

    def _curvature(self, image: np.ndarray, a: float) -> tuple[np.ndarray, np.ndarray]:
        """Return α and β of ``misfit_product``."""
        beta = 8.0 * self.weights
        if a == 0.0:
            return np.zeros_like(beta), beta
        return (4.0 * a) * self.weights * (self.form.term_squares(image) - self.d), beta

    def factor_cost(self):
        """Return what the form says."""
        return self.form.misfit_factor_cost()

    def factor(self, at, a, shift):
        """Return the factor that the form has."""
        return self.form.misfit_factor(at.image, *self._curvature(at.image, a), shift)

    def line(self, image, direction):
        """Return the coefficients of Σ ωᵢ(qᵢ(x + t v) − dᵢ)²."""
        return self.form.misfit_line(image, direction, self.d, self.weights)

    def line_to(self, image, ahead):
        """Return the coefficients of Σ ωᵢ(qᵢ(x + t(y − x)) − dᵢ)²."""
        return self.form.misfit_line_to(image, ahead, self.d, self.weights)

    def linearised(self, at):
        """Return 4Σ dᵢBᵢx. One pass."""
        return self.form.adjoint(4.0 * self.form.weighted_image(self.d, at.image))

    def split(self, x, slope, image):
        """Return F from misfits and not as ρ − φ, which would lose its digits near a fit."""
        c = self.form.adjoint(4.0 * self.form.weighted_image(self.d, image))
        return At(x, float(self.line(image, image)[0]), slope - c, image), c

    def rho(self, image):
        """Return Σ qᵢ²."""
        return self.form.value_from_image(image)

    def require_split(self):
        """Raise where some dᵢ is negative, or ρ is not that of the form."""
        if self.weighted:
            raise ProblemError(
                "the convex steps of the DC methods weigh all terms alike, found weights; take method='newton', "
                "'lbfgs' or 'nolips', or put the weights into the rows of the form"
            )
        if (self.d < 0.0).any():
            where = int(self.d.argmin())
            raise ProblemError(
                f"F is a difference of convex functions where every d is at least 0, found {self.d[where]:.6g} at "
                f"index {where}; clip d at 0 (squared moduli and distances have no negative values but noise), or take "
                "method='newton' or 'lbfgs', which need no split"
            )


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
    lower = problem.cone.lower_bounds(problem.dim)
    if not isinstance(problem.misfit, MatrixMisfit) or lower is None or lower.any():
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


def _per_term(value: Any, name: str, terms: int) -> np.ndarray:
    """Return one finite number for each term, as an array that kernels take without another compilation."""
    array = real_array(value, name).reshape(-1)
    if array.size != terms:
        raise ProblemError(f"{name} must have one number for each of the {terms} terms, found {array.size}")
    return array if array.flags.writeable else array.copy()


def misfit(form: Form, data: Any, weights: Any = None) -> Misfit:
    """Return what compares a form with data: with numbers where it has terms, else with a symmetric matrix."""
    if isinstance(form, TermForm):
        if sp.issparse(data) or any_array(data, "d").dtype.kind == "c":
            raise ProblemError(f"d must be real numbers, one for each term, found {type(data).__name__}")
        return TermMisfit(form, data, weights)
    if weights is not None:
        raise ProblemError(f"weights are for forms with terms, found {type(form).__name__}")
    if len(form.shape) != 2:
        raise ProblemError(f"{type(form).__name__} has neither terms nor points X of n × r: it cannot be fitted")
    return MatrixMisfit(form, data)
