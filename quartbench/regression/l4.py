"""min ‖Ax − b‖₄, certified: with rows (aᵢ, rᵢ) and c = e it is the homogenised problem min ρ(y) on ⟨e,y⟩ = 1.

r is what the least-squares fit leaves, so that rows are not nearly dependent however good the fit, and the start, the
point of least norm, is that fit. What is proved of f* bounds the least norm: f* = −(3/4^{4/3})ρ*^{−1/3}.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult

from quartbench import views
from quartbench.errors import ProblemError, any_array, real_array, require_same_order, whole_number
from quartbench.forms import StackedForm
from quartbench.forms.reading import SIZES
from quartbench.linalg.known import SMALLEST, U, exactly, length
from quartbench.metrics import Cholesky
from quartbench.model import Problem
from quartbench.solvers import History, Result, solve
from quartbench.solvers.contract import HOMOGENISED
from quartbench.solvers.prepared import require_positive

from .least_squares import DependentError, Fit, independent, least_squares

#: Residuals up to so many times what rounding may leave of coefficients that are numbers are those of an exact fit.
EXACT = 8.0

#: The share of the gap asked for that rounding of residuals may take before they are computed in twice the precision.
SHARE = 0.1


#: Entries up to which sparse rows are made dense: that costs nothing, and columns that are dependent can be found.
DENSE = 1_000_000


class Regression(OptimizeResult):
    """What :func:`l4_regression` returns, as a :class:`scipy.optimize.OptimizeResult`.

    Attributes
    ----------
    x : array of shape (n,)
        The coefficients.
    fun : float
        At least ‖Ax − b‖₄ (with weights and groups, as asked for), roundings included.
    lower_bound : float
        No coefficients have a smaller norm. Where columns are dependent to rounding, which the message says, none of
        those that are zero for the columns left out.
    gap : float
        (fun − lower_bound)/fun. Where the fit is exact to rounding there are no digits to compare: it is 1, or 0 where
        nothing is left at all.
    proved : bool
        Whether both bounds are true in exact arithmetic, of A, b and weights as doubles; False where A is too large to
        factor, or columns that are not zero are left out.
    residual : array of shape (m,)
        b − Ax, as computed.
    start : array of shape (n,)
        The least-squares fit that it started from.
    status, success, message, nit, passes, setup_time, solve_time, history
        As in :class:`quartbench.Result`, of the homogenised problem; the status ``exact`` is that of an exact fit.

    Examples
    --------
    >>> fit = qb.l4_regression([[1.0], [1.0]], [0.0, 1.0])
    >>> round(float(fit.x[0]), 8), fit.residual.round(8)
    (0.5, array([-0.5,  0.5]))
    """

    x: np.ndarray
    fun: float
    lower_bound: float
    gap: float
    proved: bool
    residual: np.ndarray
    start: np.ndarray
    status: str
    success: bool
    message: str
    nit: int
    passes: int
    setup_time: float
    solve_time: float
    history: History | None

    def _repr_html_(self) -> str:
        facts = {
            "status": f"{self.status}: {self.message}",
            "‖Ax − b‖₄": f"{self.fun:.12g}",
            "certified": f"no x has less than {self.lower_bound:.12g}, relative gap {self.gap:.2e}",
            "x": views.numbers(self.x),
            "largest residual": f"{np.abs(self.residual).max():.6g}",
        }
        return views.fact_page("ℓ4 regression", facts)


def l4_regression(
    A: Any,
    b: Any,
    weights: Any = None,
    groups: Any = None,
    rel_gap: float = 1e-8,
    max_iter: int | None = 1000,
    time_limit: float | None = None,
) -> Regression:
    """Minimise ‖Ax − b‖₄, the fit in which large residuals count most, to a certified relative gap.

    Between least squares and the minimax fit: the largest residual is at most m^{1/4} times that of the minimax fit,
    and the fit is unique, smooth in the data and quick to find. For heavy tails and outliers it is the wrong norm.

    Parameters
    ----------
    A : array of shape (m, n), scipy.sparse matrix or DataFrame
        Where dense columns are dependent to rounding, x is the shortest of the minimisers.
    b : array of shape (m,)
    weights : array of shape (m,), optional
        Nonnegative: Σ wᵢ(⟨aᵢ,x⟩ − bᵢ)⁴ is minimised. With groups, one for each group.
    groups : int or array of shape (m,), optional
        Rows that count together, by the length of their residual, Σ_g w_g‖A_g x − b_g‖⁴ : so many consecutive ones, or
        those of equal labels (weights then follow the sorted labels).
    rel_gap : float
        The relative gap of the norm to certify.
    max_iter, time_limit
        As for :func:`quartbench.solve`.

    Returns
    -------
    Regression

    Examples
    --------
    >>> import numpy as np, quartbench as qb
    >>> t = np.linspace(-1, 1, 400)
    >>> fit = qb.l4_regression(np.vander(t, 4), np.abs(t))
    >>> print(f"{fit.fun:.6f}", fit.gap <= 1e-8, fit.status)
    0.384351 True converged
    """
    require_positive("rel_gap", rel_gap, needed=True)
    require_same_order(b, "b", getattr(A, "index", None), "the rows of A")
    A, b, top = _read(A, b)
    given, goals, rank = _grouped(A, b, groups)
    data, limits = _Data(given, goals, rank, _roots(weights, goals, rank), top), (rel_gap, max_iter, time_limit)
    rows, aims = data.A, data.b
    try:
        result = _minimised(data, least_squares(rows, aims, data.top), *limits)
    except DependentError:
        span = independent(rows)
        part = _Data(given[:, span.columns], goals, rank, data.roots)
        try:
            fit = least_squares(part.A, aims, part.top) if span.columns.size else Fit(np.empty(0), aims, None)
        except DependentError:
            raise ProblemError("A must have columns in units that are closer: squares of some underflow") from None
        result = _minimised(part, fit, *limits)
        result.x, result.start = span.least_norm(result.x), span.least_norm(result.start)
        result.residual = aims - rows @ result.x
        result.fun = data.norm_above(result.x, result.residual, rel_gap)
        # Rows may have full rank all the same: unless nothing is left out, that they depend is a decision, not a proof.
        if result.lower_bound > 0.0 and given[:, np.delete(np.arange(given.shape[1]), span.columns)].any():
            result.proved = False
            result.lower_bound = max(0.0, result.lower_bound - span.undecided(rows, result.x))
        if result.lower_bound > result.fun:  # what was left out counts for more than that, and nothing is claimed
            result.lower_bound = 0.0
        if result.status != "exact":
            result.gap = _gap(result.fun, result.lower_bound)
            result.message = f"{_within(result.gap)}; {result.message.partition('; ')[2]}"
            if result.status == "converged" and not result.gap <= rel_gap:
                result.status, result.success = "stalled", False
        result.message += f"; of {A.shape[1]} columns {span.columns.size} are independent, and x has the least length"
    if rows is not A:  # of the rows as they were given
        result.residual = b - A @ result.x
    return result


# What is given --------------------------------------------------------------------------------------------------------


def _read(A: Any, b: Any) -> tuple[Any, np.ndarray, float]:
    """Return rows as a C-ordered float64 array or a CSR matrix, what they are to fit, and the largest entry of rows."""
    if sp.issparse(A) and math.prod(A.shape) > DENSE:
        A = StackedForm(A).rows.astype(np.float64)
        top = largest(A.data)
    else:
        A = A.toarray() if sp.issparse(A) else A
        A = any_array(A, "A")
        if A.ndim != 2 or A.size == 0 or A.dtype.kind not in "fiub":
            raise ProblemError(f"A must be an array (m, n) of real numbers, found shape {A.shape} ({A.dtype})")
        A = np.ascontiguousarray(A, dtype=np.float64)
        top = largest(A)
        if not np.isfinite(top):
            real_array(A, "A")  # says where
    b = real_array(b, "b")
    if b.shape not in ((A.shape[0],), (A.shape[0], 1)):
        raise ProblemError(f"b must have one number for each of the {A.shape[0]} rows of A, found shape {b.shape}")
    for name, size in (("A", top), ("b", largest(b))):
        if size > 0.0 and _usual(size) is None:
            raise ProblemError(f"{name} must have a largest entry between {SIZES[0]} and {SIZES[1]}, found {size:.2g}")
    return A, b.reshape(-1), top


def _grouped(A: Any, b: np.ndarray, groups: Any) -> tuple[Any, np.ndarray, int]:
    """Return rows in blocks of equal length, one block per group, filled up with zeros; and that length."""
    if groups is None:
        return A, b, 1
    if np.ndim(groups) == 0:
        rank = whole_number(groups, "groups")
        if len(b) % rank:
            raise ProblemError(f"groups must divide the {len(b)} rows, found {rank}")
        return A, b, rank
    labels = any_array(groups, "groups")
    if labels.shape != b.shape:
        raise ProblemError(f"groups must be one label for each of the {len(b)} rows, found shape {labels.shape}")
    _, group, counts = np.unique(labels, return_inverse=True, return_counts=True)
    rank = int(counts.max())
    order = np.argsort(group, kind="stable")
    within = np.arange(len(b)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = group[order] * rank + within
    move = sp.csr_array((np.ones(len(b)), (places, order)), shape=(counts.size * rank, len(b)))
    return move @ A, move @ b, rank


def _roots(weights: Any, b: np.ndarray, rank: int) -> np.ndarray | None:
    """Return the fourth root of each row's weight, at most 1.5u off; None where there are no weights."""
    if weights is None:
        return None
    weights = real_array(weights, "weights")
    if weights.shape != (len(b) // rank,) or (weights < 0.0).any() or not weights.any():
        raise ProblemError(
            f"weights must be {len(b) // rank} nonnegative numbers, not all zero, found shape {weights.shape}"
            + (f" with {weights.min():.3g}" if weights.size and weights.min() < 0.0 else "")
        )
    return np.repeat(np.sqrt(np.sqrt(weights)), rank)


# The homogenised problem ----------------------------------------------------------------------------------------------


def _minimised(data: _Data, fit: Fit, rel_gap: float, max_iter: int | None, time_limit: float | None) -> Regression:
    """Return the fit of least norm from that of least squares, with what is proved of both."""
    A, b, rank = data.A, data.b, data.rank
    residual, error = data.residual(fit.x, fit.residual, rel_gap)
    least = length(residual)
    if not len(fit.x):
        return _untouched(data, residual, error, rel_gap)
    if least <= EXACT * data.rounding(fit.x, len(fit.x) + 4.0) and data.leaves_only_rounding(fit.x, least):
        return _exact(fit.x, data, residual, error)
    scale = least / (data.size / math.sqrt(len(fit.x)))
    column = residual / scale
    top = max(data.top, largest(column))
    form = StackedForm(_beside(A, column), rank, magnitude=_usual(top))
    c = np.zeros(form.dim)
    c[-1] = unit = math.ldexp(1.0, math.frexp(top)[1])  # f* is then of order one, whatever the units of A
    few = form.small_rows() is not None
    metric = "auto" if few or fit.normal is None else _blocks(fit.normal, least / scale, form.terms)
    inner = solve(Problem(form, c), metric=metric, rel_gap=rel_gap, max_iter=max_iter, time_limit=time_limit)
    x = fit.x - (scale / inner.x[-1]) * inner.x[:-1]
    left = b - A @ x
    upper, begun = data.norm_above(x, left, rel_gap), data.norm_above(fit.x, residual, rel_gap)
    if not upper < begun:
        x, upper, left = fit.x, begun, residual
    lower = 0.0
    if math.isfinite(inner.lower_bound):
        below = unit * (HOMOGENISED / -inner.lower_bound) ** 0.75 * (1.0 - 64.0 * U) * data.kept(form)
        lower = max(0.0, (1.0 - 4.0 * U) * (scale * below - error - 4.0 * U * least) - SMALLEST)
    return _result(x, left, fit, upper, lower, rel_gap, inner)


class _Data:
    """Weighted rows and aims, A = D·given, and residuals with bounds on what rounding made of them.

    BLAS adds n products in any order: |fl(b − Ax) − (b − Ax)| is at most γ(|A||x| + |b|) entry by entry, γ = (n + 4)u
    with the rounding of weights, of which the norm is at most γ(‖A‖_F‖x‖ + ‖b‖). Where b − Ax is small against b that
    says nothing, and the residual of the rows as given is taken in twice the precision, and weighted then.
    """

    def __init__(
        self, given: Any, goals: np.ndarray, rank: int, roots: np.ndarray | None, top: float | None = None
    ) -> None:
        self.given, self.goals, self.rank, self.roots = given, goals, rank, roots
        self.A, self.b = given, goals
        if roots is not None:
            self.A = (sp.diags_array(roots) @ given).tocsr() if sp.issparse(given) else roots[:, None] * given
            self.b = roots * goals
        entries = self.A.data if sp.issparse(self.A) else self.A
        self.top = largest(entries) if top is None or roots is not None else top
        self.size, self.length = length(entries.reshape(-1)), length(self.b)
        self._form: StackedForm | None = None

    def rounding(self, x: np.ndarray, count: float) -> float:
        """Return a bound on the norm of what so many roundings of each product make of b − Ax."""
        if not (x.any() or self.b.any()):
            return 0.0
        lost = count * math.sqrt(len(self.b)) * SMALLEST  # where products underflow
        return count * U * (1.0 + 1e-6) * (self.size * length(x) + self.length) + lost

    def leaves_only_rounding(self, x: np.ndarray, least: float) -> bool:
        """Say whether a residual of that length is no more than rounding makes, each column in its own units.

        ‖A‖_F‖x‖ may be anything where columns differ in size; |A||x| has a norm of Σⱼ|xⱼ|‖Aⱼ‖ at most.
        """
        entries = self.A.power(2).sum(axis=0) if sp.issparse(self.A) else np.einsum("ij,ij->j", self.A, self.A)
        terms = float(np.abs(x) @ np.sqrt(np.asarray(entries).reshape(-1)))
        return least <= EXACT * (len(x) + 4.0) * U * (terms + self.length)

    def residual(self, x: np.ndarray, known: np.ndarray, rel_gap: float) -> tuple[np.ndarray, float]:
        """Return b − Ax, and a bound on the norm of its error that is little against the gap asked for, if possible."""
        error = self.rounding(x, len(x) + 4.0)
        if error <= SHARE * rel_gap * norm(known, self.rank) or not x.any():
            return known, error
        self._form = self._form or StackedForm(self.given)
        image = self._form.known_image(np.ascontiguousarray(x))
        residual, unknown = (self.goals - image.hi) - image.lo, image.error
        if self.roots is not None:
            residual, unknown = self.roots * residual, self.roots * unknown
        # Two roundings of the difference, and two and a half of its weight.
        error = length(unknown) * (1.0 + 1e-6) + 6.0 * U * length(residual)
        return residual, error + 4.0 * math.sqrt(len(residual)) * SMALLEST

    def kept(self, form: StackedForm) -> float:
        """Return 1 − q, for which the least norm on weighted rows that were rounded is the true one times that at most.

        A is off by 3u|A| there, entry by entry. With N(eⱼ) of the rows (A, r), which bounds |yⱼ|/‖(A, r)y‖₄, that
        moves the norm of every residual (A, r)y by a share of q = 3u Σⱼ‖Aⱼ‖₄N(eⱼ) at most. Where all entries are 0, 1
        or −1, nothing but the roots has been rounded: a row counts (1 + δ) times, |δ| ≤ 1.5u, and q ≤ 2u, once r is
        allowed 1.5u more.
        """
        if self.roots is None:
            return 1.0
        sizes = np.abs(self.given.data if sp.issparse(self.given) else self.given)
        if ((sizes == 0.0) | (sizes == 1.0)).all():
            return 1.0 - 4.0 * U
        proof, q = form.proof(), 0.0
        if proof is None:
            return 0.0
        columns = self.A.tocsc() if sp.issparse(self.A) else self.A
        unit = np.zeros(form.dim)
        for j in range(columns.shape[1]):
            column = columns[:, [j]].toarray() if sp.issparse(columns) else columns[:, j]
            unit[j] = 1.0
            q += norm(column.reshape(-1), self.rank) * proof.norm(exactly(unit))
            unit[j] = 0.0
        return max(0.0, 1.0 - 3.0 * U * (1.0 + 1e-6) * q)

    def norm_above(self, x: np.ndarray, known: np.ndarray, rel_gap: float) -> float:
        """Return a number that is at least ‖b − Ax‖₄, from b − Ax as computed."""
        residual, error = self.residual(x, known, rel_gap)
        return (norm(residual, self.rank) + error) * (1.0 + (len(residual) + 8.0) * U)


def largest(array: np.ndarray) -> float:
    """Return the largest absolute value; NaN where there is one."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))


def _usual(magnitude: float) -> float | None:
    """Return the largest entry of rows whose numbers need no other units; None where the form is to look itself."""
    return magnitude if SIZES[0] <= magnitude <= SIZES[1] else None


def norm(residual: np.ndarray, rank: int) -> float:
    """Return (Σ‖r_g‖⁴)^{1/4} over groups of ``rank`` entries."""
    top = float(np.abs(residual).max(initial=0.0))
    if top == 0.0:
        return 0.0
    squares = (residual / top) ** 2
    if rank > 1:
        squares = squares.reshape(-1, rank).sum(axis=1)
    return top * math.sqrt(math.sqrt(float(squares @ squares)))


def _beside(A: Any, column: np.ndarray) -> Any:
    if sp.issparse(A):
        return sp.hstack([A, sp.csr_array(column[:, None])], format="csr")
    rows = np.empty((A.shape[0], A.shape[1] + 1))
    rows[:, :-1], rows[:, -1] = A, column
    return rows


def _blocks(normal: Cholesky, length: float, terms: int) -> Cholesky:
    """Return B⁽⁰⁾ of the rows (aᵢ, rᵢ): as r is orthogonal to the columns, AᵀA and ‖r‖² are its blocks."""
    n = normal.lower.shape[0]
    lower = np.zeros((n + 1, n + 1), dtype=normal.lower.dtype, order="F")
    lower[:n, :n], lower[n, n] = normal.lower, 1.0
    weight = terms**-0.5
    scale = math.sqrt(weight) * np.append(normal.scale, length)
    return Cholesky.from_factor(lower, scale, np.full(terms, weight), normal.factor, normal.rounding)


def _exact(x: np.ndarray, data: _Data, residual: np.ndarray, error: float) -> Regression:
    size = (norm(residual, data.rank) + error) * (1.0 + (len(residual) + 8.0) * U)
    return Regression(
        x=x,
        fun=size,
        lower_bound=0.0,
        gap=1.0 if size > 0.0 else 0.0,
        proved=True,
        residual=residual,
        start=x,
        status="exact",
        success=True,
        message="the fit is exact to rounding",
        nit=0,
        passes=0,
        setup_time=0.0,
        solve_time=0.0,
        history=None,
    )


def _untouched(data: _Data, residual: np.ndarray, error: float, rel_gap: float) -> Regression:
    """Return the fit where no column is other than zero: x = 0 leaves b, and nothing leaves less."""
    fit = _exact(np.empty(0), data, residual, error)
    fit.lower_bound = max(0.0, (norm(residual, data.rank) - error) * (1.0 - (len(residual) + 8.0) * U))
    if fit.lower_bound > 0.0:
        fit.gap = _gap(fit.fun, fit.lower_bound)
        fit.success = fit.gap <= rel_gap
        fit.status = "converged" if fit.success else "stalled"
        fit.message = "the columns are zero, and so every fit leaves b"
    return fit


def _gap(upper: float, lower: float) -> float:
    """Return a number that is at least (upper − lower)/upper."""
    return (upper - lower) / upper * (1.0 + 4.0 * U)


def _within(gap: float) -> str:
    return f"‖Ax − b‖₄ is within the relative gap {gap:.2e} of the least"


def _result(x, residual, fit: Fit, upper: float, lower: float, rel_gap: float, inner: Result) -> Regression:
    gap = _gap(upper, lower)
    status = inner.status if gap <= rel_gap or inner.status != "converged" else "stalled"
    return Regression(
        x=x,
        fun=upper,
        lower_bound=lower,
        gap=gap,
        proved=inner.proved,
        residual=residual,
        start=fit.x,
        status="converged" if gap <= rel_gap else status,
        success=gap <= rel_gap,
        message=f"{_within(gap)}; {inner.message}",
        **{name: inner[name] for name in ("nit", "passes", "setup_time", "solve_time", "history")},
    )
