"""Clarabel on the problem as a conic program, written by hand: what a modeller would pose, without the modelling layer.

minimise Σtᵢ² − ⟨c,x⟩ with ‖Uᵢᵀx‖² ≤ tᵢ as ‖(2Uᵢᵀx, tᵢ − 1)‖ ≤ tᵢ + 1, in units where tᵢ is of order one at the start.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.forms.budget import SpentError
from quartbench.solvers.contract import Solver
from quartbench.solvers.registry import register

from .objective import Objective

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
    A primal-dual interior-point method with one sparse LDL factor per step. It shows no point before its last, so that
    an iterate is a whole solve, the next one a hundred times tighter. Passes count one for building the program and two
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
        """Raise where the form or the cone is no part of a conic program."""
        problem.form.plain()
        if problem.cone.conic(problem.dim) is None:
            raise ProblemError(f"{self.name} takes cones with a conic description, found {problem.cone.name}")

    def iterates(self, problem, metric, start):
        """Yield the start, then the points of solves with tighter and tighter tolerances."""
        objective = Objective(problem, start)
        yield objective.iterate(objective.z, -1.0)
        program = conic_program(objective)
        objective.plain.read(1)
        tolerance = self.tolerance
        while tolerance >= FINEST:
            found = _solved(program, tolerance, objective.plain.read)
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


def _solved(program: Program, tolerance: float, read: Callable[[int], None]) -> clarabel.DefaultSolution:
    """Return what Clarabel finds; ``read`` counts the passes of each step, and may end the solve."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = numba.get_num_threads()  # as many as the kernels have
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    solver = clarabel.DefaultSolver(*program, settings)
    taken, spent = 0, None

    def step(info: clarabel.DefaultInfo) -> bool:
        nonlocal taken, spent
        try:
            read(2 * (info.iterations - taken))
            taken = info.iterations
        except SpentError as error:
            spent = error
        return spent is not None

    with _interruptible(solver, step):
        found = solver.solve()
    if spent is not None:
        raise spent
    read(2 * (found.iterations - taken))
    return found


@contextmanager
def _interruptible(solver: clarabel.DefaultSolver, step: Callable[[clarabel.DefaultInfo], bool]) -> Iterator[None]:
    """Call ``step`` after every step, which ends the solve where it says so; let Ctrl-C end it too, and raise then.

    Clarabel prints and forgets an exception in a callback of its own, so that the handler may only leave a note.
    """
    interrupted = False

    def note(*_: object) -> None:
        nonlocal interrupted
        interrupted = True

    solver.set_termination_callback(lambda info: step(info) or interrupted)
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C does not come here, nor may handlers be set
        yield
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if interrupted:
        signal.raise_signal(signal.SIGINT)


def conic_program(objective: Objective) -> Program:
    """Return the program in the variables z of an objective: the epigraph of the form, and the cone.

    Images are divided by θ, so that their squares are of order one: ρ(σz₀) is a third of |f(σz₀)|, over all terms.
    """
    form, n = objective.form, objective.form.dim
    epigraph = form.scaled(objective.sigma).epigraph((objective.unit / (3.0 * form.terms)) ** 0.25)
    cone = objective.cone.conic(n)
    count = epigraph.weights.size
    P = sp.diags(np.concatenate([np.zeros(n), 2.0 / objective.unit * epigraph.weights]), format="csc")
    q = np.concatenate([-objective.c, np.zeros(count)])
    within = sp.hstack([-cone.matrix, sp.csc_matrix((cone.matrix.shape[0], count))])
    A = sp.vstack([epigraph.matrix, within], format="csc")
    b = np.append(epigraph.offset, np.zeros(within.shape[0]))
    return Program(P, q, A, b, [_clarabel_cone(*part) for part in (*epigraph.parts, *cone.parts)])


def _clarabel_cone(kind: str, size: int) -> Any:
    import clarabel

    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "second-order": clarabel.SecondOrderConeT,
        "semidefinite": clarabel.PSDTriangleConeT,
    }
    return kinds[kind](size)
