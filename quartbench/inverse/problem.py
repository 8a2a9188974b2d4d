"""The quadratic inverse problem: minimise F(x) = Σ (⟨x,Bᵢx⟩ − dᵢ)² over a cone (paper §2.1).

F is not convex. F = ρ − φ is a difference of convex functions where every dᵢ is nonnegative, ρ the quartic form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.cones import Cone
from quartbench.errors import ProblemError, any_array
from quartbench.forms import Form, TermForm

from .matrices import MatrixMisfit
from .misfits import Misfit, TermMisfit


class Problem:
    """Minimise F(x) = Σ (⟨x,Bᵢx⟩ − dᵢ)² over a cone; for forms ‖XᵀX‖²_F, ‖XXᵀ − M‖²_F.

    Points are given in the native shape of the form or flat; gradients and products come back in the shape given.

    Parameters
    ----------
    form : Form
        ρ(x) = Σ ⟨x,Bᵢx⟩².
    d : array
        One number for each term, or for a form without terms, as ``GramForm`` is, the symmetric matrix M, which may be
        sparse. Negative numbers (noise) and indefinite matrices are taken; only the DC methods refuse them.
    cone : Cone, optional
        That of the form where it is not given: the whole space for most, ``Centred`` for graphs.
    weights : array, optional
        Nonnegative, one for each term: F(x) = Σ ωᵢ(⟨x,Bᵢx⟩ − dᵢ)². The DC methods take none.

    Examples
    --------
    >>> problem = qb.inverse.Problem(qb.StackedForm(np.eye(2)), [1.0, 4.0])
    >>> problem.value([1.0, 2.0]), problem.value([0.0, 0.0])
    (0.0, 17.0)
    """

    def __init__(self, form: Form, d: Any, cone: Cone | None = None, weights: Any = None) -> None:
        if not isinstance(form, Form):
            raise ProblemError(f"form must be a Form (ComplexForm, GraphForm, …), found {type(form).__name__}")
        if cone is not None and not isinstance(cone, Cone):
            raise ProblemError(f"cone must be a Cone (Free(), Orthant(), …), found {cone!r}")
        self.form = form
        self.cone = (cone or form.cone).bind(form)
        form.require_cone(self.cone)
        self.misfit: Misfit = _misfit(form, d, weights)

    @property
    def dim(self) -> int:
        """The real dimension n."""
        return self.form.dim

    @property
    def size(self) -> float:
        """‖d‖ or ‖M‖_F: residuals are relative to it."""
        return self.misfit.size

    def value(self, x: Any) -> float:
        """Return F(x)."""
        return self.misfit.evaluate(self.form.flat(x)).value

    def gradient(self, x: Any) -> np.ndarray:
        """Return ∇F(x) in the shape of x."""
        return self._like(self.misfit.evaluate(self.form.flat(x)).gradient, x)

    def hessian_product(self, x: Any, v: Any) -> np.ndarray:
        """Return F''(x)v in the shape of v."""
        at = self.misfit.evaluate(self.form.flat(x))
        return self._like(self.misfit.products(at)(self.form.flat(v, "v"))[0], v)

    def gauss_newton_product(self, x: Any, v: Any) -> np.ndarray:
        """Return 2JᵀJv, J the derivative of the terms at x: F'' without what the misfits add."""
        at = self.misfit.evaluate(self.form.flat(x))
        return self._like(self.misfit.products(at, 0.0)(self.form.flat(v, "v"))[0], v)

    def line(self, x: Any, v: Any) -> np.ndarray:
        """Return the five coefficients of t ↦ F(x + t v), constant first."""
        look = self.misfit.image
        return self.misfit.line(look(self.form.flat(x)), look(self.form.flat(v, "v")))

    def residual(self, x: Any) -> float:
        """Return √F(x)/‖d‖."""
        return float(np.sqrt(self.value(x))) / self.size

    def linearised(self, x: Any) -> np.ndarray:
        """Return c = ∇φ(x), that of the convex step min ρ − ⟨c,·⟩ of the DC algorithm, in the shape of x.

        F(y) ≤ ρ(y) − ⟨c,y⟩ + F(x) − ρ(x) + ⟨c,x⟩ for all y, with equality at x. Raises where φ is not convex.
        """
        self.misfit.require_split()
        return self._like(self.misfit.linearised(self.misfit.evaluate(self.form.flat(x))), x)

    def on(self, other: Misfit) -> Problem:
        """Return the same problem with another misfit, as that of a twin or of moderate numbers."""
        made = object.__new__(Problem)
        made.__dict__.update(self.__dict__, misfit=other, form=other.form)
        return made

    def reduced(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the part of the gradient along which F can fall inside the cone, to first order."""
        if self.cone.whole:
            return gradient
        if self.cone.subspace:
            return self.cone.euclidean(gradient)
        free = self.cone.free(x, -gradient)
        if free is not None:
            return np.where(free, gradient, 0.0)
        size = float(np.linalg.norm(gradient))
        step = 1e-6 * (float(np.linalg.norm(x)) or 1.0) / size if size > 0.0 else 1.0
        return (x - self.cone.euclidean(x - step * gradient)) / step

    def _like(self, flat: np.ndarray, given: Any) -> np.ndarray:
        array = np.asarray(given)
        return flat if array.shape == (self.dim,) and array.dtype.kind != "c" else self.form.native(flat)

    def __repr__(self) -> str:
        return f"inverse.Problem({self.form!r}, cone={self.cone!r})"


def _misfit(form: Form, data: Any, weights: Any = None) -> Misfit:
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
