"""Small dense problems without the driver: homogenised Newton as one compiled call, and batches on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

import numba
import numpy as np

from quartbench.cones import Cone, Free, cone_of
from quartbench.errors import ProblemError, real_array, whole_number
from quartbench.forms import Form, StackedForm
from quartbench.kernels import newton as kernels
from quartbench.model import Problem
from quartbench.precondition import automatic_metric

from .homnewton import HomNewton
from .results import History, Result, ended

#: The sizes of f that leave room for its digits on both sides.
REPRESENTABLE = (1e-280, 1e280)

#: Passes over the rows of a compiled run: for the first point, and per iteration (Hessian, direction, dual point).
FIRST_PASSES, PASSES = 2, 3

#: The most iterations of a compiled run: Newton's method needs ten, or more than it is worth trying here.
MOST = 100

#: Where a kernel's answer is not asked for.
NOTHING = np.empty((1, 0))

#: Problems that a thread of a batch solves before it asks for more, at most: a millisecond of work, where a call takes
#: microseconds, so that threads end together.
SHARE = 64


class Compiled:
    """Newton's method in one compiled call, for the small rows of a form and free space or the orthant.

    Both bounds are proved, with every rounding bounded a priori.

    Parameters
    ----------
    form : Form
    cone : Cone
    solver : str
        The name that results carry.
    """

    def __init__(self, form: Form, cone: Cone, solver: str) -> None:
        self._form, self._solver = form, solver
        self._rows = form.small_rows()[None]
        self._rank, self._orthant = form.rank, not cone.whole
        self._metric = automatic_metric(form, cone)
        self._reason = f"{HomNewton.name}, as n = {form.dim} is small"

    @classmethod
    def of(cls, form: Form, cone: Cone, solver: str) -> Compiled | None:
        """Return the compiled method for a form on a cone, None where they are not for it."""
        if form.small_rows() is None or not form.rigorous:
            return None
        if not ((cone.whole and cone.rigorous) or cone.nonnegative(form.dim)):
            return None
        return cls(form, cone, solver)

    def solve(self, c: np.ndarray, rel_gap: float, max_iter: float) -> Result | None:
        """Return the result for one c, None where the gap was not reached: then c may be anything, not finite even.

        The clock is read before and after the call, so that the seconds of a history are even shares of it; loading or
        compiling the kernel, once in a process, is not on it.
        """
        x, numbers, trace = np.empty((1, c.size)), np.empty((1, 6)), np.empty((1, MOST + 1, 3))
        limit = int(min(max_iter, MOST))
        problem = (self._rows, self._rank, c[None], self._orthant, rel_gap)
        if not kernels.solve_range.overloads:
            kernels.solve_range(*problem, 0, 0, 1, x, numbers, NOTHING, NOTHING, trace)
        started = perf_counter()
        kernels.solve_range(*problem, limit, 0, 1, x, numbers, NOTHING, NOTHING, trace)
        seconds = perf_counter() - started
        _, upper, lower, gap, iterations, _ = numbers[0].tolist()
        if not (gap <= rel_gap and REPRESENTABLE[0] < -upper <= -lower < REPRESENTABLE[1]):
            return None
        nit = int(iterations)
        return ended(
            self._form,
            x[0],
            upper,
            lower,
            "converged",
            History.later(_history, trace[0, : nit + 1], lower, seconds),
            rel_gap=rel_gap,
            gap=gap,
            proved=True,
            solver=self._solver,
            metric=self._metric,
            reason=self._reason,
            nit=nit,
            spent=(FIRST_PASSES + PASSES * nit, seconds),
        )


def _history(trace: np.ndarray, lower: float, seconds: float) -> History:
    """Return the history of a compiled run from its rows (value, gap, step)."""
    iterations = np.arange(len(trace))
    values, _, steps = trace.T
    return History(
        FIRST_PASSES + PASSES * iterations,
        seconds * (iterations + 1) / len(iterations),
        values,
        lower,
        1.0,
        steps,
        np.zeros(len(iterations), dtype=bool),
    )


class Batch(NamedTuple):
    """What :func:`solve_batch` returns, one entry or row per problem.

    Attributes
    ----------
    x : array of shape (k, n)
    fun, lower_bound, gap : arrays of shape (k,)
        Proved: f(x) ≤ fun, f* ≥ lower_bound, and gap ≥ (f(x) − f*)/|f*|.
    nit : array of int
    success : array of bool
        Whether the gap asked for was reached.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = qb.solve_batch(rng.standard_normal((10, 30, 4)), rng.standard_normal((10, 4)))
    >>> found.x.shape, bool((found.lower_bound <= found.fun).all())
    ((10, 4), True)
    """

    x: np.ndarray
    fun: np.ndarray
    lower_bound: np.ndarray
    gap: np.ndarray
    nit: np.ndarray
    success: np.ndarray


def solve_batch(
    rows: Any, C: Any, cone: Cone | str | None = None, rank: int = 1, rel_gap: float = 1e-6, max_iter: int = MOST
) -> Batch:
    """Solve many different small problems min ρⱼ(x) − ⟨cⱼ,x⟩, each with rows of its own, on all cores.

    Parameters
    ----------
    rows : array of shape (k, m·r, n)
        The stacked rows of each problem.
    C : array of shape (k, n)
        The right-hand sides.
    cone : Cone or str, optional
        The whole space, or the orthant.
    rank : int
        Rows per term.
    rel_gap : float
        The certified relative gap to reach.
    max_iter : int
        The most iterations of each, 100 unless given; a problem that needs more, or is beyond this method, is solved
        by ``quartbench.solve``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows, C = rng.standard_normal((1000, 30, 5)), rng.standard_normal((1000, 5))
    >>> found = qb.solve_batch(rows, C)
    >>> found.x.shape, bool(found.success.all()), bool((found.gap <= 1e-6).all())
    ((1000, 5), True, True)
    """
    from .prepared import require_positive, solve

    rows, C = real_array(rows, "rows", 3), real_array(C, "C", 2)
    rank, cone = whole_number(rank, "rank"), cone_of(cone, Free())
    require_positive("rel_gap", rel_gap, needed=True)
    if rows.shape[0] != C.shape[0] or rows.shape[2] != C.shape[1]:
        raise ProblemError(f"rows (k, m·r, n) and C (k, n) must fit, found shapes {rows.shape} and {C.shape}")
    if rows.shape[1] % rank or rows.size == 0:
        raise ProblemError(f"rows must come in blocks of rank={rank}, found shape {rows.shape}")
    nonnegative = cone.nonnegative(C.shape[1])
    if not ((cone.whole and cone.rigorous) or nonnegative):
        raise ProblemError(f"solve_batch takes the whole space and the orthant, found {cone!r}")
    found = newton_batch(rows, C, rank, nonnegative, rel_gap, whole_number(max_iter, "max_iter"))
    reached = (found.gap <= rel_gap) & (REPRESENTABLE[0] < -found.upper) & (-found.lower < REPRESENTABLE[1])
    batch = Batch(found.x, found.upper, found.lower, found.gap, found.iterations, reached)
    for j in np.flatnonzero(~batch.success):
        one = solve(Problem(StackedForm(rows[j], rank), C[j], cone), rel_gap=rel_gap)
        batch.x[j], batch.fun[j], batch.lower_bound[j] = one.x, one.fun, one.lower_bound
        batch.gap[j], batch.nit[j], batch.success[j] = one.gap, one.nit, one.success
    return batch


class Answers(NamedTuple):
    """What :func:`newton_batch` returns, one entry or row per problem."""

    x: np.ndarray
    value: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    gap: np.ndarray
    iterations: np.ndarray
    code: np.ndarray


def newton_batch(
    rows: np.ndarray,
    c: np.ndarray,
    rank: int = 1,
    orthant: bool = False,
    rel_gap: float = 1e-8,
    limit: int = MOST,
) -> Answers:
    """Solve many small problems at once, on as many threads as Numba is set to.

    Parameters
    ----------
    rows : array (count, m·r, n)
    c : array (count, n)
    rank : int
        r, rows per term.
    orthant : bool
        Whether x ≥ 0.
    rel_gap : float
        The relative gap to certify.
    limit : int
        The most iterations of each.

    Returns
    -------
    Answers
    """
    rows, c = _usable(rows), _usable(c)
    count, n = c.shape
    x, numbers = np.empty((count, n)), np.empty((count, 6))
    nothing, no_trace = np.empty((count, 0)), np.empty((count, 0, 3))

    def solve(start: int, stop: int) -> None:
        kernels.solve_range(rows, rank, c, orthant, rel_gap, limit, start, stop, x, numbers, nothing, nothing, no_trace)

    threads = min(numba.get_num_threads(), count)
    if threads > 1:
        step = max(1, min(SHARE, count // (4 * threads)))
        starts = range(0, count, step)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda start: solve(start, min(start + step, count)), starts))
    else:
        solve(0, count)
    value, upper, lower, gap, iterations, code = numbers.T.copy()
    return Answers(x, value, upper, lower, gap, iterations.astype(int), code.astype(int))


def _usable(array: np.ndarray) -> np.ndarray:
    """Return the array as the kernels take it: float64, C order, writeable, or Numba would compile them again."""
    array = np.ascontiguousarray(array, dtype=float)
    return array if array.flags.writeable else array.copy()
