"""Clarabel on the problem as a conic program, written by hand: what a modeller would pose, without the modelling layer.

minimise Σtᵢ² − ⟨c,x⟩ with ‖Uᵢᵀx‖² ≤ tᵢ as ‖(2Uᵢᵀx, tᵢ − 1)‖ ≤ tᵢ + 1, in units where tᵢ is of order one at the start.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.model import GramForm
from quartbench.solvers.base import Solver, register

from .objective import Objective, terms_kind

if TYPE_CHECKING:
    import clarabel

#: The tolerance beyond which no solve is tried, and the factor from one to the next.
FINEST, FINER = 1e-13, 1e-2


@register("clarabel")
class Clarabel(Solver):
    """Clarabel's interior-point method on the second-order cone program (the Gram form: semidefinite).

    Problem
    -------
    min Σtᵢ² − ⟨c,x⟩ over x ∈ K and ‖Uᵢᵀx‖² ≤ tᵢ; for the Gram form min ‖Σ Tₖ‖²_F − ⟨C,X⟩ over Tₖ ⪰ xₖxₖᵀ, xₖ the rows
    of X, which is XᵀX ⪯ Σ Tₖ in cones of size r + 1.

    Algorithm
    ---------
    A primal-dual interior-point method with a sparse LDL factor a step. It shows no point before its last, so that an
    iterate is a whole solve, the next one a hundred times tighter. Passes count one for building the program and two
    for the residuals of a step; what its factors cost is not in them.

    Guarantee
    ---------
    Polynomial: O(√m ln(1/ε)) steps, in practice 10 to 30.

    Reference
    ---------
    Goulart & Chen, *Clarabel: an interior-point solver for conic programs with quadratic objectives*.

    Parameters
    ----------
    tolerance : float
        Of the first solve: the relative gap and infeasibility at which it stops. Users ask for the gap they want.
    """

    peer = True
    costly = True
    metric: ClassVar[str] = "identity"

    def __init__(self, tolerance: float = 1e-8) -> None:
        if not 0.0 < tolerance < 1.0:
            raise ProblemError(f"tolerance must lie between 0 and 1, found {tolerance!r}")
        self.tolerance = tolerance
        import_module("clarabel")  # here, where no clock runs

    def prepare(self, problem, metric):
        """Raise where the form has no conic program."""
        terms_kind(problem.form)

    def iterates(self, problem, metric, start):
        """Yield the start, then the points of solves with tighter and tighter tolerances."""
        objective = Objective(problem, start)
        yield objective.iterate(objective.z, -1.0)
        program = conic_program(objective)
        problem.form.passes += 1
        tolerance = self.tolerance
        while tolerance >= FINEST:
            found = _solved(program, tolerance)
            problem.form.passes += 2 * found.iterations
            z = np.array(found.x[: problem.dim])
            if np.isfinite(z).all():
                yield objective.iterate(z, objective.value(z))
            if str(found.status) != "Solved":
                return
            tolerance *= FINER


class Program(NamedTuple):
    """min ½⟨v,Pv⟩ + ⟨q,v⟩ over b − Av ∈ K₁ × K₂ × …, the first n entries of v being z."""

    P: sp.csc_matrix
    q: np.ndarray
    A: sp.csc_matrix
    b: np.ndarray
    cones: list[Any]


def _solved(program: Program, tolerance: float) -> clarabel.DefaultSolution:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = numba.get_num_threads()  # as many as the kernels have
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    solver = clarabel.DefaultSolver(*program, settings)
    with _interruptible(solver):
        return solver.solve()


@contextmanager
def _interruptible(solver: clarabel.DefaultSolver) -> Iterator[None]:
    """Let Ctrl-C end a solve after the step under way, and raise when it has ended.

    Clarabel prints and forgets an exception in a callback of its own, so that the handler may only leave a note.
    """
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C does not come here, nor may handlers be set
        yield
        return
    interrupted = False

    def note(*_: object) -> None:
        nonlocal interrupted
        interrupted = True

    solver.set_termination_callback(lambda info: interrupted)
    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if interrupted:
        signal.raise_signal(signal.SIGINT)


def conic_program(objective: Objective) -> Program:
    """Return the program in the variables z of an objective, built without a copy of the rows beyond its own."""
    gram = isinstance(objective.form, GramForm)
    program = _gram_program(objective) if gram else _terms_program(objective)
    return _within_cone(program, objective)


def _terms_program(objective: Objective) -> Program:
    import clarabel

    form, n = objective.form, objective.form.dim
    rows = objective.terms.rows()
    count, m = rows.shape[0], form.terms
    rank = count // m
    # Images are divided by θ = (ρ(z₀)/m)^{1/4}, so that tᵢ is of order one; ρ(σz₀) is a third of |f(σz₀)|.
    theta = (objective.unit / (3.0 * m)) ** 0.25
    first = (rank + 2) * np.arange(m)
    places = (first[:, None] + np.arange(1, rank + 1)).reshape(-1)
    factor = -2.0 * objective.factor / theta
    if sp.issparse(rows):
        columns = rows.tocsc()
        data, indices, indptr = factor * columns.data, places[columns.indices], columns.indptr
    else:
        data, indices = factor * rows.T.reshape(-1), np.tile(places, n)
        indptr = count * np.arange(n + 1)
    ends = np.stack([first, first + rank + 1], axis=1).reshape(-1)
    A = sp.csc_matrix(
        (
            np.concatenate([data, np.full(2 * m, -1.0)]),
            np.concatenate([indices, ends]),
            np.concatenate([indptr, indptr[-1] + 2 * np.arange(1, m + 1)]),
        ),
        shape=((rank + 2) * m, n + m),
    )
    b = np.zeros(A.shape[0])
    b[first], b[first + rank + 1] = 1.0, -1.0
    P = sp.diags(np.repeat([0.0, 2.0 / (3.0 * m)], [n, m]), format="csc")
    q = np.concatenate([-objective.c, np.zeros(m)])
    return Program(P, q, A, b, [clarabel.SecondOrderConeT(rank + 2)] * m)


def _gram_program(objective: Objective) -> Program:
    """Return min ‖T‖²_F/3 − ⟨c̃,z⟩ with T = Σ Tₖ and [[Tₖ, xₖ], [xₖᵀ, 1]] ⪰ 0; triangles carry √2 off the diagonal."""
    import clarabel

    points, r = objective.form.shape
    n, size = objective.form.dim, r * (r + 1) // 2
    # X is divided by θ = ρ(z₀)^{1/4}: ‖T‖_F is then of order one, and its weight a third.
    theta = (objective.unit / 3.0) ** 0.25
    block = (r + 1) * (r + 2) // 2
    k = np.arange(points)
    entries = np.arange(size)
    # Clarabel stacks the upper triangle column by column: T, then the last column (x, 1).
    of_t = (block * k[:, None] + entries).reshape(-1)
    of_x = (block * k[:, None] + size + np.arange(r)).reshape(-1)
    sums = points * block + entries
    A = sp.coo_matrix(
        (
            np.concatenate(
                [
                    np.full(n, -np.sqrt(2.0) * objective.factor / theta),
                    np.full(points * size, -1.0),
                    np.ones(points * size),
                    np.full(size, -1.0),
                ]
            ),
            (
                np.concatenate([of_x, of_t, np.tile(sums, points), sums]),
                np.concatenate([np.arange(n), *[n + np.arange(points * size)] * 2, n + points * size + entries]),
            ),
        ),
        shape=(points * block + size, n + points * size + size),
    ).tocsc()
    b = np.zeros(A.shape[0])
    b[block * (k + 1) - 1] = 1.0
    P = sp.diags(np.repeat([0.0, 2.0 / 3.0], [n + points * size, size]), format="csc")
    q = np.zeros(A.shape[1])
    q[:n] = -objective.c
    return Program(P, q, A, b, [*[clarabel.PSDTriangleConeT(r + 1)] * points, clarabel.ZeroConeT(size)])


def _within_cone(program: Program, objective: Objective) -> Program:
    import clarabel

    n, name = objective.form.dim, objective.cone.name
    if name == "free":
        return program
    if name == "centred":
        points, coordinates = objective.form.shape
        rows = sp.kron(np.ones((1, points)), sp.identity(coordinates))
        cone = clarabel.ZeroConeT(coordinates)
    else:
        rows = -sp.identity(n)
        cone = clarabel.NonnegativeConeT(n) if name == "orthant" else clarabel.SecondOrderConeT(n)
    rows = sp.hstack([rows, sp.csc_matrix((rows.shape[0], program.A.shape[1] - n))])
    A = sp.vstack([program.A, rows], format="csc")
    return program._replace(A=A, b=np.append(program.b, np.zeros(rows.shape[0])), cones=[*program.cones, cone])
