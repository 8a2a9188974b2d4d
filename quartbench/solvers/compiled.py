"""Small dense problems without the driver: homogenised Newton as one compiled call, and batches on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

import numba
import numpy as np

from quartbench.cones import Cone, Free
from quartbench.errors import ProblemError, real_array, whole_number
from quartbench.forms import StackedForm
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

#: Problems that a thread of a batch solves before it asks for more, at most: a millisecond of work, where a call takes
#: microseconds, so that threads end together.
SHARE = 64


def solve_compiled(problem: Problem, rel_gap: float, max_iter: float, solver: str) -> Result | None:
    """Return the result of one compiled call; None where rows or cone are not for it, or the gap was not reached.

    Both bounds are proved, with every rounding bounded a priori. The clock is read before and after the call, so that
    the seconds of a history are even shares of it.
    """
    rows, cone = problem.form.small_rows(), problem.cone
    nonnegative = cone.lower_bounds(problem.dim) is not None
    if rows is None or not (cone.whole or nonnegative):
        return None
    started = perf_counter()
    found = newton(rows, problem.c, problem.form.rank, nonnegative, rel_gap, int(min(max_iter, MOST)), MOST + 1)
    seconds = perf_counter() - started
    if not (found.gap <= rel_gap and REPRESENTABLE[0] < -found.upper <= -found.lower < REPRESENTABLE[1]):
        return None
    iterations = np.arange(len(found.trace))
    values, _, steps = found.trace.T
    history = History(
        FIRST_PASSES + PASSES * iterations,
        seconds * (iterations + 1) / len(iterations),
        values,
        found.lower,
        1.0,
        steps,
        np.zeros(len(iterations), dtype=bool),
    )
    return ended(
        problem,
        found.x,
        found.upper,
        found.lower,
        "converged",
        history,
        rel_gap=rel_gap,
        gap=found.gap,
        solver=solver,
        metric=automatic_metric(problem.form, cone),
        reason=f"{HomNewton.name}, as n = {problem.dim} is small",
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
    """

    x: np.ndarray
    fun: np.ndarray
    lower_bound: np.ndarray
    gap: np.ndarray
    nit: np.ndarray
    success: np.ndarray


def solve_batch(
    rows: Any, C: Any, cone: Cone | None = None, rank: int = 1, rel_gap: float = 1e-6, max_iter: int = MOST
) -> Batch:
    """Solve many different small problems min ρⱼ(x) − ⟨cⱼ,x⟩, each with rows of its own, on all cores.

    Parameters
    ----------
    rows : array of shape (k, m·r, n)
        The stacked rows of each problem.
    C : array of shape (k, n)
        The right-hand sides.
    cone : Cone, optional
        The whole space, or the orthant.
    rank : int
        Rows per term.
    rel_gap : float
        The certified relative gap to reach.
    max_iter : int
        The most iterations of each; a problem that needs more, or is beyond this method, is solved by
        ``quartbench.solve``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = qb.solve_batch(rng.standard_normal((1000, 30, 5)), rng.standard_normal((1000, 5)))
    >>> found.x.shape, bool(found.success.all()), bool((found.gap <= 1e-6).all())
    ((1000, 5), True, True)
    """
    from .prepared import require_positive, solve

    rows, C = real_array(rows, "rows", 3), real_array(C, "C", 2)
    rank, cone = whole_number(rank, "rank"), cone or Free()
    require_positive("rel_gap", rel_gap)
    if rows.shape[0] != C.shape[0] or rows.shape[2] != C.shape[1]:
        raise ProblemError(f"rows (k, m·r, n) and C (k, n) must fit, found shapes {rows.shape} and {C.shape}")
    if rows.shape[1] % rank or rows.size == 0:
        raise ProblemError(f"rows must come in blocks of rank={rank}, found shape {rows.shape}")
    nonnegative = cone.lower_bounds(C.shape[1]) is not None
    if not (cone.whole or nonnegative):
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


class Answer(NamedTuple):
    """What :func:`newton` returns: f(x) as computed, proved bounds f(x) ≤ upper and f* ≥ lower, and how it ended.

    ``gap`` is (upper − lower)/|upper|; ``code`` one of those of ``quartbench.kernels.newton``; ``dual`` the λ of the
    lower bound, stacked as the rows are, ``leftover`` c − Uλ as computed; ``trace`` has a row (value, gap, step) for
    the start and every iteration, as far as there was room.
    """

    x: np.ndarray
    value: float
    upper: float
    lower: float
    gap: float
    iterations: int
    code: int
    dual: np.ndarray
    leftover: np.ndarray
    trace: np.ndarray


def newton(
    rows: np.ndarray,
    c: np.ndarray,
    rank: int = 1,
    orthant: bool = False,
    rel_gap: float = 1e-8,
    limit: int = 100,
    trace: int = 0,
) -> Answer:
    """Minimise Σ‖Uᵢᵀx‖⁴ − ⟨c,x⟩ over free space or the orthant, on one thread, and certify the answer.

    Parameters
    ----------
    rows : array (m·r, n)
    c : array (n,)
    rank : int
        r, rows per term.
    orthant : bool
        Whether x ≥ 0.
    rel_gap : float
        The relative gap to certify.
    limit : int
        The most iterations.
    trace : int
        The most rows of the trace.

    Returns
    -------
    Answer
    """
    rows, c = _usable(rows), _usable(c)
    n, stacked = c.size, rows.shape[0]
    x, numbers, steps = np.empty((1, n)), np.empty((1, 6)), np.empty((1, trace, 3))
    dual, leftover = np.empty((1, stacked)), np.empty((1, n))
    kernels.solve_range(rows[None], rank, c[None], orthant, rel_gap, limit, 0, 1, x, numbers, dual, leftover, steps)
    value, upper, lower, gap, iterations, code = numbers[0].tolist()
    known = steps[0, : int(iterations) + 1]
    return Answer(x[0], value, upper, lower, gap, int(iterations), int(code), dual[0], leftover[0], known)


def newton_batch(
    rows: np.ndarray,
    c: np.ndarray,
    rank: int = 1,
    orthant: bool = False,
    rel_gap: float = 1e-8,
    limit: int = 100,
) -> Answers:
    """Solve many small problems at once, on as many threads as Numba is set to.

    Parameters
    ----------
    rows : array (count, m·r, n)
    c : array (count, n)
    rank, orthant, rel_gap, limit
        As for :func:`newton`.

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
