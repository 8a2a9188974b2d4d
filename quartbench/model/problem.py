"""The problem: minimise f(x) = ρ(x) − ⟨c,x⟩ over a cone K, and the homogenised problem min √ρ(y) on ⟨c,y⟩ = 1.

f(sy) is a quartic in s ≥ 0, smallest at s(y) = ([⟨c,y⟩]₊ / 4ρ(y))^{1/3}; so every direction y has a best point s(y)y.
"""

from __future__ import annotations

import os
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from quartbench import views
from quartbench.cones import Cone, cone_of
from quartbench.errors import DeficientError, ProblemError, any_array, require_same_order
from quartbench.forms import Form, form_of


class Normalised(NamedTuple):
    """A problem of moderate numbers, and the way back: x = x_scale·x', f = f_scale·f'."""

    problem: Problem
    x_scale: float
    f_scale: float


class Problem:
    """Minimise f(x) = ρ(x) − ⟨c,x⟩ over a cone.

    Points are given in the native shape of the form or flat; gradients and points come back in the shape given.

    Parameters
    ----------
    form : Form, array of shape (m·r, n), scipy.sparse matrix or DataFrame
        ρ, positive definite on the cone; or the stacked rows of its terms, real or complex. On the whole space ρ may
        vanish on a subspace: see :func:`solve`.
    c : array
        A nonzero point, in the native shape of the form, flat or one column. Never changed. On a subspace only its
        part there matters, and is kept.
    cone : Cone or str
        K, or its name; where not given, that of the form: the whole space for most, ``Centred`` for graphs.
    rank : int
        Rows per term, where rows are given.
    solution : array, optional
        The minimiser, where it is known.
    optimum : float, optional
        The minimum f*, where it is known.
    origin : dict, optional
        What made the problem: the generator and its arguments, as JSON.

    Examples
    --------
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> problem = qb.Problem(qb.StackedForm(A), [1.0, 0.0])
    >>> problem.value([1.0, 0.0])
    1.0
    >>> problem.gradient([1.0, 0.0])
    array([7., 4.])
    """

    def __init__(
        self,
        form: Form | Any,
        c: Any,
        cone: Cone | str | None = None,
        *,
        rank: int = 1,
        solution: Any = None,
        optimum: float | None = None,
        origin: dict[str, Any] | None = None,
    ) -> None:
        require_same_order(c, "c", getattr(form, "columns", None), "the columns of the rows")
        self.form = form = form_of(form, rank)
        self.cone = cone_of(cone, form.cone).bind(form)
        form.require_cone(self.cone)
        self._require_definite()
        flat = _finite(_flat(c, form), "c")
        if not flat.any():
            raise ProblemError("c must not be zero: without it the minimiser is 0 and there is nothing to solve")
        self.trivial = self.cone.polar_contains(flat)
        within = self.cone.euclidean(flat) if self.cone.subspace and not self.trivial else flat
        self.c = within.copy() if within is flat else within
        self.c.flags.writeable = False
        #: c as it was given: what is proved is proved of it, and projecting it has rounded.
        self.given = self.c if within is flat else flat.copy()
        self.solution = None if solution is None else _finite(form.flat(solution, "solution"), "solution")
        if optimum is not None and not (isinstance(optimum, Real) and np.isfinite(optimum)):
            raise ProblemError(f"optimum must be a finite number, found {optimum!r}")
        self.optimum = 0.0 if self.trivial else optimum
        self.origin = origin or {}

    def _require_definite(self) -> None:
        """Raise where ρ is seen to vanish on more than 0; on the whole space there is a quotient to solve on."""
        found = self.form.deficiency()
        if found is not None and not (self.cone.whole and self.form.reducible):
            raise found if self.cone.whole else over_cone(found, self.cone)

    @property
    def dim(self) -> int:
        """The real dimension n."""
        return self.form.dim

    # f ----------------------------------------------------------------------------------------------------------------

    def inner(self, x: Any) -> float:
        """Return ⟨c,x⟩."""
        return float(self.c @ self.form.flat(x))

    def value(self, x: Any) -> float:
        """Return f(x). One pass."""
        return self.form.value(x) - self.inner(x)

    def gradient(self, x: Any) -> np.ndarray:
        """Return ∇f(x) in the shape of x. One pass."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Any) -> tuple[float, np.ndarray]:
        """Return f(x) and ∇f(x) in the shape of x. One pass."""
        rho, gradient = self.form.value_and_gradient(x)
        return rho - self.inner(x), gradient - self.c.view(gradient.dtype).reshape(gradient.shape)

    # The homogenised problem ------------------------------------------------------------------------------------------

    def best_scale(self, rho: float, inner: float) -> float:
        """Return s(y) = ([⟨c,y⟩]₊ / 4ρ(y))^{1/3} from ρ(y) and ⟨c,y⟩."""
        return float(np.cbrt(max(inner, 0.0) / (4.0 * rho))) if rho > 0.0 else 0.0

    def homogenised_value(self, y: Any) -> float:
        """Return f_hom(y) = min over s ≥ 0 of f(sy) = −3/4^{4/3} ([⟨c,y⟩]₊⁴ / ρ(y))^{1/3}. One pass."""
        rho, inner = self.form.value(y), self.inner(y)
        return -0.75 * self.best_scale(rho, inner) * max(inner, 0.0)

    def root_and_gradient(self, y: Any) -> tuple[float, np.ndarray]:
        """Return √ρ(y) and its gradient ∇ρ(y)/(2√ρ(y)), in the shape of y. One pass."""
        rho, gradient = self.form.value_and_gradient(y)
        root = float(np.sqrt(rho))
        return root, gradient / (2.0 * root) if root > 0.0 else gradient

    def point(self, y: Any) -> np.ndarray:
        """Return x = s(y)y, the best point on the ray of y, in the shape of y. One pass."""
        return self.best_scale(self.form.value(y), self.inner(y)) * np.asarray(y)

    @staticmethod
    def relative_gap(delta: float) -> float:
        """Return the relative gap of s(y)y where √ρ(y) = (1 + δ)√ρ(y*): 1 − (1+δ)^{−2/3}.

        See errata 9 of the documentation.
        """
        return float(-np.expm1(-2.0 / 3.0 * np.log1p(delta)))

    # Scale ------------------------------------------------------------------------------------------------------------

    def on(self, form: Form) -> Problem:
        """Return the same problem on a twin of its form, with a count of passes of its own."""
        twin = object.__new__(Problem)
        twin.__dict__.update(self.__dict__)
        twin.form = form
        return twin

    def normalised(self) -> Normalised:
        """Return the same problem with entries of order one, so that rows and c of 1e±60 are harmless.

        With A = aA′ and c = bc′, f(x) = (b⁴/a⁴)^{1/3} f′(x′) for x = (b/a⁴)^{1/3} x′.
        """
        form = self.form.moderate()
        a, b = self.form.scale / form.scale, float(np.abs(self.c).max())
        x_scale = float(np.exp((np.log(b) - 4.0 * np.log(a)) / 3.0))
        f_scale = b * x_scale
        twin = object.__new__(Problem)
        twin.__dict__.update(self.__dict__)
        twin.form = form
        twin.c = twin.given = self.c / b
        twin.c.flags.writeable = False
        twin.solution = None if self.solution is None else self.solution / x_scale
        twin.optimum = None if self.optimum is None else self.optimum / f_scale
        return Normalised(twin, x_scale, f_scale)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the problem to ``path`` as a compressed ``.npz`` without pickle, and return the path.

        The file appears under its name when it is complete: a killed save leaves no half file there.
        """
        from .files import save

        return save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Problem:
        """Read a problem that ``save`` wrote. Pickled content is refused."""
        from .files import load

        return load(path)

    def __repr__(self) -> str:
        return f"Problem({self.form!r}, cone={self.cone!r})"

    def _repr_html_(self) -> str:
        form = self.form
        facts = {
            "form": f"{form!r}",
            "size": f"m = {form.terms} terms of rank {form.rank}, n = {form.dim}",
            "cone": self.cone.name,
            "c": views.numbers(form.native(self.c).reshape(-1)),
        }
        if self.trivial:
            facts["minimiser"] = "0, as c lies in the polar cone"
        elif self.optimum is not None:
            facts["f*"] = f"{self.optimum:.12g}"
        if self.origin:
            facts["made by"] = ", ".join(f"{name} = {value}" for name, value in self.origin.items())
        return views.fact_page("minimise ρ(x) − ⟨c,x⟩ over a cone", facts)


def over_cone(found: DeficientError, cone: Cone) -> DeficientError:
    """Return the error that says what ρ with a kernel would need on a cone that is not the whole space."""
    return DeficientError(
        f"{found}; on {cone!r} f is bounded below where no direction d of the cone has ρ(d) = 0 and ⟨c,d⟩ > 0, which "
        "is not decided here: add terms that see the missing directions, or drop them from the rows"
    )


def _flat(c: Any, form: Form) -> np.ndarray:
    """Return c as a flat vector; where it has as many entries as there are rows, say that these may be transposed."""
    column = _column(c, form)
    try:
        return form.flat(column, "c")
    except ProblemError as error:
        if np.size(column) != form.terms * form.rank or np.iscomplexobj(column):
            raise
        raise ProblemError(f"{error}: there are as many rows; are they transposed? Each row is one of a term") from None


def _column(c: Any, form: Form) -> Any:
    """Return c as it is, or the vector that stands in one column, which may be sparse."""
    if type(c) is np.ndarray and c.ndim == 1:
        return c
    if sp.issparse(c):
        if c.shape not in ((form.dim, 1), (form.dim,)):  # said before anything of its size is made
            raise ProblemError(f"c must have {form.dim} entries in one column, found a sparse matrix of {c.shape}")
        return c.toarray().reshape(-1)
    array = any_array(c, "c")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 and array.shape != form.shape else array


def _finite(point: np.ndarray, name: str) -> np.ndarray:
    finite = np.isfinite(point)
    if not finite.all():
        where = int(np.flatnonzero(~finite)[0])
        raise ProblemError(f"{name} must be finite, found {point[where]} at index {where}")
    return point
