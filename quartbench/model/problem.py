"""The problem: minimise f(x) = ρ(x) − ⟨c,x⟩ over a cone K, and the homogenised problem min √ρ(y) on ⟨c,y⟩ = 1.

f(sy) is a quartic in s ≥ 0, smallest at s(y) = ([⟨c,y⟩]₊ / 4ρ(y))^{1/3}; so every direction y has a best point s(y)y.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError, unknown_name

from .cones import CONES, Cone, Free
from .forms import FORMS, ComplexForm, Form, GramForm, GraphForm, StackedForm

#: The format of saved problems; a file of another one is refused by name.
FILE_VERSION = 1

#: Largest entries of rows whose fourth powers, squared and summed, stay far from the ends of the floating-point range.
MODERATE = (1e-15, 1e15)


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
    form : Form
        ρ, positive definite on the cone.
    c : array
        A nonzero point, in the native shape of the form or flat. Never changed. On ``Centred`` only its centred part
        matters, and is kept.
    cone : Cone
        K; the whole space where not given.
    solution : array, optional
        The minimiser, where it is known.
    optimum : float, optional
        The minimum f*, where it is known.
    origin : dict, optional
        What made the problem: the generator and its arguments, as JSON.
    """

    def __init__(
        self,
        form: Form,
        c: Any,
        cone: Cone | None = None,
        *,
        solution: Any = None,
        optimum: float | None = None,
        origin: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(form, Form):
            raise ProblemError(f"form must be a Form (StackedForm, GraphForm, …), found {type(form).__name__}")
        if cone is not None and not isinstance(cone, Cone):
            raise ProblemError(f"cone must be a Cone (Free(), Orthant(), …), found {cone!r}")
        self.form = form
        self.cone = (cone or Free()).bind(form)
        if isinstance(form, GraphForm) and self.cone.name != "centred":
            raise ProblemError(
                f"ρ of a graph vanishes on translations: its problems need cone=Centred(), found {self.cone!r}"
            )
        form.require_definite()
        flat = _finite(form.flat(c, "c"), "c")
        if not flat.any():
            raise ProblemError("c must not be zero: without it the minimiser is 0 and there is nothing to solve")
        self.trivial = self.cone.polar_contains(flat)
        self.c = self.cone.euclidean(flat) if self.cone.name == "centred" and not self.trivial else flat.copy()
        self.c.flags.writeable = False
        self.solution = None if solution is None else _finite(form.flat(solution, "solution"), "solution")
        if optimum is not None and not (isinstance(optimum, Real) and np.isfinite(optimum)):
            raise ProblemError(f"optimum must be a finite number, found {optimum!r}")
        self.optimum = 0.0 if self.trivial else optimum
        self.origin = origin or {}

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
        """Return the relative gap of s(y)y where √ρ(y) = (1 + δ)√ρ(y*): 1 − (1+δ)^{−2/3} (ERRATA 9)."""
        return float(-np.expm1(-2.0 / 3.0 * np.log1p(delta)))

    # Scale ------------------------------------------------------------------------------------------------------------

    def normalised(self) -> Normalised:
        """Return the same problem with entries of order one, so that rows and c of 1e±60 are harmless.

        With A = aA' and c = bc', f(x) = (b⁴/a⁴)^{1/3} f'(x') for x = (b/a⁴)^{1/3} x'. No row is copied. Rows of
        ``MODERATE`` size stay as they are (a = 1): their fourth powers are safe, and scaling would cost every pass.
        """
        a = self.form.magnitude
        if MODERATE[0] <= a <= MODERATE[1]:
            a = 1.0
        b = float(np.abs(self.c).max())
        x_scale = float(np.exp((np.log(b) - 4.0 * np.log(a)) / 3.0))
        f_scale = b * x_scale
        twin = object.__new__(Problem)
        twin.__dict__.update(self.__dict__)
        twin.form = self.form.scaled(1.0 / a)
        twin.c = self.c / b
        twin.c.flags.writeable = False
        twin.solution = None if self.solution is None else self.solution / x_scale
        twin.optimum = None if self.optimum is None else self.optimum / f_scale
        return Normalised(twin, x_scale, f_scale)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the problem to ``path`` as a compressed ``.npz`` without pickle, and return the path.

        The file appears under its name when it is complete: a killed save leaves no half file there.
        """
        path = Path(path)
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        kind = next((name for name, form in FORMS.items() if type(self.form) is form), None)
        if kind is None:
            raise ProblemError(f"{type(self.form).__name__} cannot be saved (forms that can: {', '.join(FORMS)})")
        head = {"version": FILE_VERSION, "form": kind, "cone": self.cone.name, "origin": self.origin}
        try:
            header = np.array(json.dumps(head))
        except (TypeError, ValueError) as error:
            raise ProblemError(f"origin must be JSON, found something else: {error}") from None
        arrays = {f"form_{name}": array for name, array in self.form._arrays().items()}
        arrays["scale"] = np.array(self.form.scale)
        arrays["c"] = np.asarray(self.c)
        if self.solution is not None:
            arrays["solution"] = self.solution
        if self.optimum is not None:
            arrays["optimum"] = np.array(self.optimum)
        part = path.with_name(f".{path.name}.{os.getpid()}.part.npz")
        try:
            np.savez_compressed(part, head=header, **arrays)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike) -> Problem:
        """Read a problem that ``save`` wrote. Pickled content is refused."""
        head, stored = _opened(path)
        if head.get("version") != FILE_VERSION:
            raise ProblemError(f"{os.fspath(path)!r} has version {head.get('version')}, this reads {FILE_VERSION}")
        if head["cone"] not in CONES:
            raise unknown_name("cone", head["cone"], CONES)
        try:
            form = _restored(head["form"], {k.removeprefix("form_"): v for k, v in stored.items() if k[:5] == "form_"})
        except KeyError as error:
            raise ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: it has no {error}") from None
        scale = float(stored["scale"])
        problem = cls(
            form if scale == 1.0 else form.scaled(scale),
            stored["c"],
            CONES[head["cone"]](),
            solution=stored.get("solution"),
            optimum=float(stored["optimum"]) if "optimum" in stored else None,
            origin=head["origin"],
        )
        problem.c = stored["c"]  # bit for bit: centring what is centred already would round it once more
        problem.c.flags.writeable = False
        return problem

    def __repr__(self) -> str:
        return f"Problem({self.form!r}, cone={self.cone!r})"


def _finite(point: np.ndarray, name: str) -> np.ndarray:
    finite = np.isfinite(point)
    if not finite.all():
        where = int(np.flatnonzero(~finite)[0])
        raise ProblemError(f"{name} must be finite, found {point[where]} at index {where}")
    return point


def _opened(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a saved problem; raise for any other file."""
    try:
        with open(path, "rb") as handle:  # np.load would leave a file open that it cannot read
            file = np.load(handle, allow_pickle=False)
            stored = {name: file[name] for name in file.files} if isinstance(file, Mapping) else {}
        head = json.loads(str(stored.get("head", "null")))
    except FileNotFoundError:
        raise ProblemError(f"no problem file at {os.fspath(path)!r}") from None
    except (ValueError, OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: {error}") from None
    if not isinstance(head, dict) or not {"c", "scale"} <= stored.keys():
        raise ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: it has no header")
    return head, stored


def _restored(kind: str, arrays: dict[str, np.ndarray]) -> Form:
    if kind not in FORMS:
        raise unknown_name("form", kind, FORMS)
    if kind == "graph":
        return GraphForm(int(arrays["points"]), int(arrays["dim"]), arrays["edges"])
    if kind == "gram":
        return GramForm(*(int(size) for size in arrays["size"]))
    if kind == "complex":
        return ComplexForm(arrays["rows"])
    if "data" in arrays:
        shape = (arrays["indptr"].size - 1, int(arrays["columns"]))
        matrix = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        return StackedForm(matrix, int(arrays["rank"]))
    return StackedForm(arrays["rows"], int(arrays["rank"]))
