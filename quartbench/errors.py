"""The exceptions of the package, and the words they use."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Real
from typing import Any

import numpy as np


class ProblemError(ValueError):
    """Bad input: names the argument, what was found and what is needed.

    Examples
    --------
    >>> qb.Problem(qb.StackedForm(np.eye(2)), [1.0, 0.0, 0.0])
    Traceback (most recent call last):
        ...
    quartbench.errors.ProblemError: c must have shape (2,) ..., found shape (3,) (float64)
    """


class DeficientError(ProblemError):
    """ρ vanishes on more than 0: the rows do not span the space, exactly or to rounding.

    On the whole space :func:`quartbench.solve` answers all the same, on the quotient by that subspace.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [2.0, 0.0]])
    >>> try:
    ...     qb.leverage(qb.StackedForm(rows))
    ... except qb.DeficientError as error:
    ...     print(error)
    ρ is not positive definite: its rank is at most 1 of n = 2; no term sees coordinate 1
    >>> qb.solve(rows, [1.0, 0.0]).status, qb.solve(rows, [1.0, 1.0]).status
    ('converged', 'unbounded')
    """


class LostError(RuntimeError):
    """The rows are out of reach: the cluster, or what held them, is gone.

    Attributes
    ----------
    x : array or None
        The best point of the run that it ended, in the user's units; nothing of it is certified.

    Examples
    --------
    >>> lost = qb.LostError("the scheduler is gone")
    >>> lost.x is None
    True
    """

    x: np.ndarray | None = None


#: Names that are registered once the packages of an extra are here, with a package that tells.
EXTRAS = {"clarabel": ("clarabel", "peers")} | {
    f"scipy-{name}": ("greenlet", "peers")
    for name in ("lbfgs", "lbfgs-kernels", "newton-cg", "slsqp", "trust-exact", "trust-krylov")
}


def absent() -> dict[str, str]:
    """Return the names that are not registered, as packages are not here, each with the extra that has them."""
    return {name: extra for name, (package, extra) in EXTRAS.items() if find_spec(package) is None}


def unknown_name(kind: str, name: object, known: Iterable[str]) -> ProblemError:
    """The error for a name that is not registered, with the nearest one that is."""
    known = sorted(known)
    extra = absent().get(str(name))
    if extra is not None:
        return ProblemError(f"{kind} {name!r} needs packages that are not here: pip install 'quartbench[{extra}]'")
    near = get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ProblemError(f"unknown {kind} {name!r}{hint} (known: {', '.join(known)})")


def whole_number(value: Any, name: str, least: int = 1, most: int | None = None, why: str = "") -> int:
    """Return ``value`` as an integer in [least, most] (3.0 is one; 3.5, "3" and True are not); ``why`` says why."""
    try:
        number = None if isinstance(value, str | bool | np.bool_) else int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != value:
        raise ProblemError(f"{name} must be a whole number, found {value!r}")
    if number < least or (most is not None and number > most):
        wanted = f"at least {least}" if number < least else f"at most {most}"
        raise ProblemError(f"{name} must be {wanted}{f' ({why})' if why else ''}, found {value}")
    return number


def number(value: Any, name: str, low: float, high: float = np.inf, why: str = "", open_low: bool = False) -> float:
    """Return ``value`` as a finite float in [low, high], or in (low, high] where ``open_low``; ``why`` says why."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ProblemError(f"{name} must be a real number, found {value!r}")
    value = float(value)
    if not np.isfinite(value) or not low <= value <= high or (open_low and value == low):
        interval = f"{'(' if open_low else '['}{low:.12g}, {high:.12g}{')' if high == np.inf else ']'}"
        raise ProblemError(f"{name} must lie in {interval}{f' ({why})' if why else ''}, found {value!r}")
    return value


def any_array(value: object, name: str) -> np.ndarray:
    """Return ``value`` as an array of whatever dtype; raise where it is none, as a list of unequal lists."""
    _require_unmasked(value, name)
    try:
        if hasattr(value, "columns") and hasattr(value, "to_numpy"):
            return _of_table(value, name)
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{name} must be an array of numbers, found {type(value).__name__}") from None


def _of_table(table: Any, name: str) -> np.ndarray:
    """Return the numbers of a DataFrame, whose columns may be nullable; raise where one holds something else."""
    kinds = [getattr(kind, "kind", "O") for kind in table.dtypes]
    if "c" in kinds:
        return table.to_numpy()
    for at, kind in enumerate(kinds):  # pandas makes numbers of dates, and of objects whatever float() takes
        column = table.iloc[:, at]
        try:
            if kind in "mM":
                raise TypeError
            if kind == "O":
                column.to_numpy(dtype=float, na_value=np.nan)
        except (TypeError, ValueError):
            raise ProblemError(
                f"{name} must be numbers in every column, found {column.dtype} in column {table.columns[at]!r}"
            ) from None
    return table.to_numpy(dtype=float, na_value=np.nan)


def require_same_order(vector: Any, name: str, labels: Any, of: str) -> None:
    """Raise where a Series has the labels of a DataFrame in another order: entries go by position, never by label."""
    index: Any = getattr(vector, "index", None)
    if not hasattr(index, "equals") or not hasattr(labels, "equals") or index.equals(labels):
        return
    if len(index) == len(labels) and set(index) == set(labels):
        raise ProblemError(
            f"{name} must have its entries in the order of {of}, found the same labels in another: "
            f"{name}.loc of those labels has the right one, {name}.to_numpy() is taken as it is"
        )


def _require_unmasked(value: Any, name: str) -> None:
    """Raise where entries are masked: an array without the mask would hold whatever lies below it."""
    if np.ma.is_masked(value):
        where = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(value))[0])
        raise ProblemError(f"{name} must have no masked entries, found one at index {where}; fill or drop them")


def real_array(value: object, name: str, ndim: int | None = None) -> np.ndarray:
    """Return ``value`` as a finite, C-ordered float64 array (copied only when it is not one already)."""
    _require_unmasked(value, name)
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            raise ProblemError(f"{name} must be real, found complex values")
        if array.dtype.kind in "mM":
            raise ProblemError(f"{name} must be an array of numbers, found dtype {array.dtype}")
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{name} must be an array of numbers, found {type(value).__name__}") from error
    return _checked(array, np.asarray(value), name, ndim)


def complex_array(value: object, name: str, ndim: int | None = None) -> np.ndarray:
    """Return ``value`` as a finite, C-ordered complex128 array (copied only when it is not one already)."""
    _require_unmasked(value, name)
    try:
        array = np.ascontiguousarray(value, dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{name} must be an array of numbers, found {type(value).__name__}") from error
    return _checked(array, np.asarray(value), name, ndim)


def _checked(array: np.ndarray, given: np.ndarray, name: str, ndim: int | None) -> np.ndarray:
    if ndim is not None and given.ndim != ndim:
        raise ProblemError(f"{name} must have {ndim} dimension{'s' * (ndim != 1)}, found shape {given.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ProblemError(f"{name} must be finite, found {array[where]} at index {where}")
    return array
