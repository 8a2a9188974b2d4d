"""What are data compared with? The terms of a form with numbers, or (in ``matrices.py``) the product XXᵀ with a matrix.

Both give F, its gradient, products with its second derivatives and its restriction to a line, all from images, and the
split F = ρ − φ of the DC algorithm. Points are flat real vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quartbench.errors import ProblemError, real_array
from quartbench.forms import Form, Image, TermForm


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


def _per_term(value: Any, name: str, terms: int) -> np.ndarray:
    """Return one finite number for each term, as an array that kernels take without another compilation."""
    array = real_array(value, name).reshape(-1)
    if array.size != terms:
        raise ProblemError(f"{name} must have one number for each of the {terms} terms, found {array.size}")
    return array if array.flags.writeable else array.copy()
