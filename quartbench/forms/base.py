"""What is a quartic form? An interface: what every kind answers, in the shape and at the scale it was asked in.

A point is given in its native shape (a vector, N × d, a complex vector) or as the flat real vector of length ``dim``
that solvers use. Inputs of another memory order or dtype are copied once. A kind implements the hooks, which see flat
unscaled vectors; scale, shapes and the count of passes are handled here.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np

from quartbench.cones import Cone, Free
from quartbench.errors import DeficientError, ProblemError, any_array
from quartbench.kernels.exact import add
from quartbench.linalg.known import Known
from quartbench.metrics import Bounds, Metric
from quartbench.registry import Registry

from .budget import Budget
from .epigraph import Epigraph
from .plain import PlainForm

#: Opaque outside the form that made it: images are added and scaled, everything else is asked of their form.
Image = Any

#: Largest entries of rows whose fourth powers, squared and summed, stay far from the ends of the floating-point range.
MODERATE = (1e-15, 1e15)

#: Unknowns up to which a dense Hessian is made from Hessian products, a pass each.
DENSE_UNKNOWNS = 4000


class Form:
    """A convex quartic form ρ.

    Attributes
    ----------
    dim : int
        The real dimension n of a point.
    terms, rank : int
        The number of terms m and the rank r of each.
    shape : tuple of int
        The native shape of a point.
    dtype : numpy.dtype
        The native dtype of a point, float64 or complex128.
    passes : int
        Full reads of the rows so far: the deterministic unit of cost.
    rounds, bytes : int
        How often, and how much, was sent to workers that have the rows, and back.
    scale : float
        The factor that this form puts before its stored rows.
    magnitude : float
        The size of the largest entries of the rows; problems are normalised by it.
    cone : Cone
        Where ρ is definite, and problems live unless they say otherwise: the whole space, for most.
    rigorous : bool
        Whether the bounds of ``known_image`` and ``known_residual`` are proved, and not taken on trust. A class says so
        of itself: what derives from it may be another function.
    factorable : bool
        Whether it is sensible to factor B⁽⁰⁾ of this form without being asked to.
    blind : bool
        Whether images do not see what ``cone`` leaves out, as those of a graph do not see translations.
    remote : bool
        Whether the rows are elsewhere, so that ``rounds`` and ``bytes`` count; ``round_cost`` says what they are worth.
    bare_metric : str
        The metric by name that serves where no factor pays: it costs a pass at most.

    Examples
    --------
    >>> form = qb.GramForm(3, 2)
    >>> isinstance(form, qb.Form)
    True
    >>> value, gradient = form.value_and_gradient(np.ones((3, 2)))
    >>> value, form.passes
    (36.0, 1)
    >>> bool(np.isclose((gradient * np.ones((3, 2))).sum(), 4 * value))
    True
    """

    kind: ClassVar[str] = ""
    dim: int
    terms: int
    rank: int
    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.float64)
    cone: Cone = Free()
    blind = False
    rigorous = False
    factorable = False
    remote = False
    bare_metric = "identity"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.rigorous = cls.__dict__.get("rigorous", False)

    def __init__(self) -> None:
        self._count = [0]
        self._traffic = [0, 0]
        self.scale = 1.0
        #: What was computed once of the rows, whatever their scale; shared by all twins of the form.
        self._kept: dict[Any, Any] = {}

    # Hooks: what a kind implements, on flat real vectors, scale not applied and passes not counted --------------------

    def _image(self, x: np.ndarray) -> Image:
        raise NotImplementedError

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray, Image]:
        raise NotImplementedError

    def _hessian_product(self, x: np.ndarray | None, image: Image | None, v: np.ndarray) -> np.ndarray:
        # x, its image, or both are given.
        raise NotImplementedError

    # Points -----------------------------------------------------------------------------------------------------------

    def flat(self, x: Any, name: str = "x") -> np.ndarray:
        """Return a point as a flat, C-ordered real vector of length ``dim`` (a view where possible).

        A read-only point is copied: to Numba it is another type, and kernels would be compiled anew for it.
        """
        if type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 1 and x.size == self.dim:
            return x if x.flags.carray else x.copy()
        array = any_array(x, name)
        if array.shape == self.shape and array.dtype.kind in ("fiubc" if self.dtype.kind == "c" else "fiub"):
            return np.require(array, self.dtype, "CAW").reshape(-1).view(np.float64)
        if array.shape == (self.dim,) and array.dtype.kind in "fiub":
            return np.require(array, np.float64, "CAW")
        raise ProblemError(
            f"{name} must have shape {self.shape} ({self.dtype}) or be flat of length {self.dim}, "
            f"found shape {array.shape} ({array.dtype})"
        )

    def native(self, flat: np.ndarray) -> np.ndarray:
        """Return a flat vector as a point of the native shape (a view)."""
        return flat.view(self.dtype).reshape(self.shape)

    def _like(self, flat: np.ndarray, given: Any) -> np.ndarray:
        array = np.asarray(given)
        return flat if array.shape == (self.dim,) and array.dtype.kind != "c" else self.native(flat)

    # Operations -------------------------------------------------------------------------------------------------------

    @property
    def passes(self) -> int:
        """Full reads of the rows so far."""
        return self._count[0]

    @property
    def rounds(self) -> int:
        """How often numbers were sent to where the rows are, and waited for, so far: none where they are here."""
        return self._traffic[0]

    @property
    def bytes(self) -> int:
        """The bytes that went to where the rows are and back, so far."""
        return self._traffic[1]

    def _read(self, passes: int = 1) -> None:
        """Count passes."""
        self._count[0] += passes

    def image(self, x: Any) -> Image:
        """Return the image of a point, from which values, lines and weights follow without a pass. One pass."""
        self._count[0] += 1
        return self._image(self._scaled(self.flat(x)))

    def value(self, x: Any) -> float:
        """Return ρ(x). One pass."""
        return self.value_from_image(self.image(x))

    def gradient(self, x: Any) -> np.ndarray:
        """Return ∇ρ(x) in the shape of x. One pass."""
        return self.evaluate(x)[1]

    def value_and_gradient(self, x: Any) -> tuple[float, np.ndarray]:
        """Return ρ(x) and ∇ρ(x) together, in one pass."""
        return self.evaluate(x)[:2]

    def evaluate(self, x: Any) -> tuple[float, np.ndarray, Image]:
        """Return ρ(x), ∇ρ(x) and the image of x together, in one pass."""
        flat = self.flat(x)
        value, gradient, image = self.evaluate_flat(flat)
        return value, gradient if flat is x else self._like(gradient, x), image

    def evaluate_flat(self, x: np.ndarray) -> tuple[float, np.ndarray, Image]:
        """Return what ``evaluate`` does for a flat, C-ordered float64 vector, unchecked: solvers' loops call this."""
        self._count[0] += 1
        if self.scale == 1.0:
            return self._evaluate(x)
        value, gradient, image = self._evaluate(self.scale * x)
        return value, self.scale * gradient, image

    def hessian_product(self, x: Any, v: Any) -> np.ndarray:
        """Return ρ''(x)v in the shape of v (errata 2 of the documentation). One pass."""
        self._count[0] += 1
        product = self._hessian_product(self._scaled(self.flat(x)), None, self._scaled(self.flat(v, "v")))
        return self._like(self._scaled(product), v)

    def hessian_product_from_image(self, image: Image, v: Any) -> np.ndarray:
        """Return ρ''(x)v from the image of x, in the shape of v. One pass."""
        self._count[0] += 1
        v_flat = self._scaled(self.flat(v, "v"))
        return self._like(self._scaled(self._hessian_product(None, image, v_flat)), v)

    def hessian_product_flat(self, x: np.ndarray, image: Image, v: np.ndarray) -> np.ndarray:
        """Return ρ''(x)v for flat, C-ordered float64 x and v and the image of x, unchecked: for solvers' loops."""
        self._count[0] += 1
        if self.scale == 1.0:
            return self._hessian_product(x, image, v)
        return self.scale * self._hessian_product(self.scale * x, image, self.scale * v)

    def line(self, x: Any, d: Any) -> np.ndarray:
        """Return the five coefficients of t ↦ ρ(x + t d), constant first. Two passes; none from images."""
        return self.line_from_images(self.image(x), self.image(d))

    # From images: no pass, but for the gradient -----------------------------------------------------------------------

    def value_from_image(self, image: Image) -> float:
        """Return ρ from the image of a point. No pass."""
        raise NotImplementedError

    def gradient_from_image(self, image: Image) -> np.ndarray:
        """Return ∇ρ, flat, from the image of a point. One pass."""
        raise NotImplementedError

    def line_from_images(self, image: Image, direction: Image) -> np.ndarray:
        """Return the five coefficients of t ↦ ρ(x + t d) from the images of x and d. No pass."""
        raise NotImplementedError

    def line_behind(
        self, at: Image, ahead: Image, before: Image, theta: float, out: Image | None = None
    ) -> tuple[Image, tuple[float, ...]]:
        """Return the image of y and the coefficients of t ↦ ρ(x + t(y − x)). No pass.

        ``at``, ``ahead`` and ``before`` are the images of x, of y + θ(y − before) and of before: images are linear, and
        errors do not grow, as θ/(1+θ) ≤ ½. ``out`` is an image that nobody needs any more, or None.
        """
        image = (1.0 / (1.0 + theta)) * (ahead + theta * before)
        return image, tuple(self.line_from_images(at, image - at).tolist())

    # The same form at another scale -----------------------------------------------------------------------------------

    def scaled(self, factor: float) -> Form:
        """Return the form with rows ``factor`` times as large: the same storage, its own count of passes."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._count, twin._traffic = [0], [0, 0]
        twin.scale = self.scale * factor
        return twin

    def moderate(self) -> Form:
        """Return the form with rows of moderate size, so that entries of 1e±60 are harmless. No row is copied.

        Rows whose fourth powers are safe stay as they are: scaling would cost every pass.
        """
        size = self.magnitude
        return self.scaled(1.0 if MODERATE[0] <= size <= MODERATE[1] else 1.0 / size)

    def twin(self) -> Form:
        """Return the same form with a count of passes of its own."""
        return self.scaled(1.0)

    def same_rows(self, other: Form) -> bool:
        """Say whether another form is this one, or a twin of it."""
        return self is other or (self._kept is other._kept and self.scale == other.scale)

    def fresh(self) -> Form:
        """Return the same form as if it had just been made: nothing that was computed once of its rows is kept."""
        twin = self.twin()
        twin._kept = {name: self._kept[name] for name in ("magnitude", "zero terms") if name in self._kept}
        return twin

    def counting_with(self, other: Form) -> Form:
        """Return the same form, whose passes are counted with those of another."""
        twin = self.scaled(1.0)
        twin._count, twin._traffic = other._count, other._traffic
        return twin

    def within(self, budget: Budget) -> Form:
        """Return the same form, whose passes are counted by a budget, and ended by it where that is spent."""
        twin = self.scaled(1.0)
        twin._count = budget
        return twin

    def rounded(self) -> Form:
        """Return the form with rows in single precision; raise where a kind has none."""
        raise ProblemError(f"dtype='float32' is for dense rows in float64, found {type(self).__name__}")

    def _scaled(self, vector: np.ndarray) -> np.ndarray:
        return vector if self.scale == 1.0 else self.scale * vector

    @property
    def magnitude(self) -> float:
        """The size of the largest entries of the rows."""
        return self.scale

    def signature(self) -> tuple:
        """Return what decides which machine code the operations of this form call, beside its class."""
        return (type(self), self.scale == 1.0)

    def first_block(self) -> Form:
        """Return a form that calls the same machine code, and takes no longer: itself, or of some of its rows."""
        return self

    # What is known of ρ -----------------------------------------------------------------------------------------------

    @property
    def reducible(self) -> bool:
        """Whether the kernel of ρ can be found, and problems with one be solved on the quotient by it."""
        return False

    def deficiency(self) -> DeficientError | None:
        """Return the error where ρ is seen to vanish on more than 0, as far as a few passes tell. Looks once."""
        if "deficiency" not in self._kept:
            try:
                self._check_definite()
                self._kept["deficiency"] = None
            except DeficientError as error:
                self._kept["deficiency"] = str(error)
        found = self._kept["deficiency"]
        return None if found is None else DeficientError(found)

    def require_definite(self) -> None:
        """Raise where ρ is seen to vanish on more than 0."""
        found = self.deficiency()
        if found is not None:
            raise found

    def _check_definite(self) -> None:
        """Raise where ρ is seen to vanish on more than 0."""

    def require_cone(self, cone: Cone) -> None:
        """Raise where ρ vanishes on more than 0 in a cone."""

    def bounds(self, metric: Metric) -> Bounds | None:
        """Return α and β of ρ in the norm of a metric, certain ones; None where nothing is known."""
        return None

    def small_rows(self) -> np.ndarray | None:
        """Return the rows as a dense array where they are so few that one compiled call solves a problem; else None."""
        return None

    def hessian_cost(self) -> float:
        """Return the passes that a dense Hessian costs: one for each unknown where it is made from products."""
        return float(self.dim)

    def round_cost(self, numbers: float, fetched: float = 0.0) -> float:
        """Return what a round takes beside the work of its operation, in passes: nought where the rows are at hand.

        Parameters
        ----------
        numbers : float
            How many come back from where rows are, added up on the way: n for a gradient, n² for a Hessian.
        fetched : float
            How many are fetched as they are, such as rows of a sample.
        """
        return 0.0

    def driver_cost(self, rows: float) -> float:
        """Return what a pass over so many rows held here takes, in passes: more than their share where all share it."""
        return rows / (self.terms * self.rank)

    def dense_hessian(self, x: np.ndarray, image: Image) -> np.ndarray:
        """Return ρ''(x) as a dense matrix in Fortran order, of which only the lower triangle counts.

        Where ρ vanishes outside ``cone``, directions there get the weight of the rest. By products, a pass each, where
        a kind knows no better way.

        Parameters
        ----------
        x, image : array, Image
            A flat point and its image.
        """
        self.require_dense()
        return np.asfortranarray([self.hessian_product_flat(x, image, column) for column in np.eye(self.dim)])

    def require_dense(self) -> None:
        """Raise where a form has no dense Hessian."""
        if self.dim > DENSE_UNKNOWNS:
            raise ProblemError(
                f"a dense Hessian of {type(self).__name__} is made up to {DENSE_UNKNOWNS} unknowns, found {self.dim}; "
                "take the solver 'homnewton-cg'"
            )

    def dual_bound(
        self, image: Image, gradient: np.ndarray, residual: np.ndarray, metric: Metric | None, refine: int
    ) -> tuple[float, Any]:
        """Return an estimate of −ρ*(∇ρ(x) + residual), at most f* where that is c, and the dual point that gives it.

        Parameters
        ----------
        image, gradient : Image, array
            Those of a point x.
        residual : array
            What is left of c: c − ∇ρ(x), or its part in the cone.
        metric : Metric or None
            B(τ) of this form, to solve with.
        refine : int
            Steps of conjugate gradients (a pass each) that may sharpen the bound.
        """
        raise NotImplementedError

    def newton_weights(self, image: Image, ahead: Image) -> Any:
        """Return λ with Mᵀλ = ∇ρ(x) + ρ''(x)(z − x) from the images of x and z; None where a kind has none. No pass."""
        return None

    def routed(self, w: np.ndarray) -> Any:
        """Return λ with Mᵀλ = w where a kind has one that takes no factor; else None."""
        return None

    def rounding_noise(self, x: np.ndarray, image: Image, gradient: np.ndarray, enough: float) -> float:
        """Return the root sum of squares of the products that ρ(x) adds up, or any bound on it up to ``enough``."""
        return float(np.linalg.norm(gradient * x))

    # Proofs: numbers with bounds that hold in exact arithmetic, on the rows as they are stored, whatever the scale ----

    def known_image(self, x: np.ndarray, exact: bool = True) -> Known:
        """Return the image of a flat point with bounds on its rounding: of twice the precision, or of plain sums."""
        raise NotImplementedError

    def known_residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray, exact: bool = True) -> Known:
        """Return c − Mᵀλ for a dual point λ = hi + lo with bounds on its rounding."""
        raise NotImplementedError

    def known_value(self, image: Known) -> float:
        """Return a number that is at least ρ, for every image within its bounds."""
        raise NotImplementedError

    def dual_start(self, image: Known) -> tuple[np.ndarray, np.ndarray]:
        """Return the dual point of x, λ with Mᵀλ ≈ ∇ρ(x), as a pair."""
        raise NotImplementedError

    def dual_moved(self, hi: np.ndarray, lo: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the dual point hi + lo + step, as a pair."""
        return add(hi, lo, step)

    def dual_size(self, hi: np.ndarray, lo: np.ndarray) -> float:
        """Return a number that is at least N(Mᵀλ) = max {⟨Mᵀλ,x⟩ : ρ(x) ≤ 1}, λ = hi + lo."""
        raise NotImplementedError

    def twin_image(self, x: np.ndarray) -> Image:
        """Return the image on the rows as they are stored, unscaled and uncounted: for corrections of dual points."""
        return self._image(x)

    def proof(self, sharp: bool = False) -> Any:
        """Return what bounds N(w) = max {⟨w,x⟩ : ρ(x) ≤ 1}, by ``norm``, and corrects dual points; made once.

        None where nothing is known: then no bound on f* is claimed. Where a kind has a coarse one, which costs less and
        is enough for small w, that one, unless a ``sharp`` one is asked for. Raises where the rows are seen to have
        changed since, as a proof is one of the rows that it was made of.
        """
        key = "sharp proof" if sharp else "proof"
        if key not in self._kept:
            self._kept.setdefault("sample", self._sample())
            twin = self.twin()
            twin.scale = 1.0
            self._kept[key] = twin._proof() if sharp else twin._coarse_proof() or self.proof(sharp=True)
        if not np.array_equal(self._sample(), self._kept["sample"]):
            raise ProblemError("the rows of this form have been changed since it was made; make a new form of them")
        return self._kept[key]

    def _sample(self) -> np.ndarray:
        """Return a copy of some entries of arrays that are the user's too, evenly spaced; none where it has its own."""
        return np.empty(0)

    def _proof(self) -> Any:
        return None

    def _coarse_proof(self) -> Any:
        return None

    # What others are given --------------------------------------------------------------------------------------------

    def plain(self) -> PlainForm:
        """Return ρ as a NumPy user would write it, for methods that are compared with ours."""
        raise ProblemError(f"{type(self).__name__} has no functions for peers")

    def epigraph(self, theta: float) -> Epigraph:
        """Return ρ as a conic program in units where images are of size θ."""
        raise ProblemError(f"{type(self).__name__} has no conic program")

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file keeps of this form, unscaled."""
        raise ProblemError(f"{type(self).__name__} cannot be saved: it does not say what a file should keep")

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Form:
        """Return the form of which ``arrays`` were kept."""
        raise ProblemError(f"{cls.__name__} cannot be read from a file")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.terms}, n={self.dim}, r={self.rank})"


def _form_class(found: Any, where: str) -> type[Form]:
    if not (inspect.isclass(found) and issubclass(found, Form)):
        raise ProblemError(f"{where} must be a subclass of quartbench.forms.Form, found {found!r}")
    return found


#: The forms that files know by name; an installed package offers its own through the group ``quartbench.forms``.
FORMS = Registry("form", "quartbench.forms", _form_class)


def register_form(kind: str):
    """Register a form under the name that files have for it: problems with it are then saved and read.

    Examples
    --------
    >>> @qb.register_form("sum-of-fourth-powers")
    ... class Powers(qb.TermForm):
    ...     '''ρ(x) = Σxᵢ⁴.'''
    ...
    ...     def __init__(self, n):
    ...         super().__init__()
    ...         self.dim = self.terms = n
    ...         self.rank, self.shape = 1, (n,)
    ...
    ...     def _image(self, x):
    ...         return x.copy()
    ...
    ...     def _adjoint(self, weights):
    ...         return weights.copy()
    >>> Powers.kind, Powers(2).value([1.0, 2.0])
    ('sum-of-fourth-powers', 17.0)
    """

    def decorate(cls: type[Form]) -> type[Form]:
        cls.kind = kind
        return FORMS.register(kind, cls)

    return decorate
