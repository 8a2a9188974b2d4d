"""SciPy's minimisers as solvers: what a practitioner reaches for today, given all that a competent user would give it.

Each has the gradient and the Hessian product (or the Hessian) of :mod:`.objective`, starts at the best point of its ray
in variables of norm one, and has its own stopping rules switched off: the driver's certified gap ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import Bounds, minimize
from threadpoolctl import ThreadpoolController

from quartbench.errors import ProblemError, whole_number
from quartbench.runtime.blas import CHANGING
from quartbench.solvers.contract import Iterate, Solver
from quartbench.solvers.registry import register

from .handover import handed_over
from .objective import BreakdownError, Objective

#: More iterations and evaluations than any run takes: limits are the driver's.
ENDLESS = 10**9

#: Where a method ends by itself, it goes on with f̃ so many times larger, and does so twice: absolute tolerances that it
#: does not show (Newton-CG gives up on curvature below 7e-16) are then so many times finer.
MAGNIFICATION, STAGES = 1e4, 3

#: The gradient at which a trust region leaves a stage: trlib takes ‖g‖² ≤ 2e-16 for zero, and its step is then whatever
#: its memory held before.
SMALL = 1e-7


class Minimiser(Solver):
    """A method of ``scipy.optimize.minimize``, turned into a generator."""

    peer = True
    costly = True
    #: Peers have no metric; this one costs nothing.
    metric: ClassVar[str] = "identity"
    #: The method's name in SciPy, and whether it takes bounds or an inequality, beside subspaces by projection.
    method: ClassVar[str]
    takes_bounds: ClassVar[bool] = False
    takes_inequality: ClassVar[bool] = False
    #: The largest dimension whose dense matrices the method can afford.
    largest: ClassVar[int | None] = None
    #: Whether the method's own matrices are tiny, so that BLAS threads only cost time there.
    small_algebra: ClassVar[bool] = False

    def arguments(self, objective: Objective) -> dict[str, Any]:
        """Return what ``minimize`` is given beside function, gradient and start."""
        raise NotImplementedError

    def prepare(self, problem, metric):
        """Raise where the method cannot take the problem."""
        cone = problem.cone
        bounded = self.takes_bounds and cone.lower_bounds(problem.dim) is not None
        if not (cone.subspace or bounded or (self.takes_inequality and cone.inequality() is not None)):
            kinds = ["subspaces", *["bounds"] * self.takes_bounds, *["one inequality"] * self.takes_inequality]
            raise ProblemError(f"{self.name} takes {', '.join(kinds)}, found the cone {cone.name}")
        if self.largest is not None and problem.dim > self.largest:
            raise ProblemError(f"{self.name} takes up to {self.largest} unknowns, found {problem.dim}")
        problem.form.plain()

    def iterates(self, problem, metric, start):
        """Yield the start, then what the method calls back with; it starts afresh where it ends by itself."""
        self.prepare(problem, metric)
        objective = Objective(problem, start)
        yield objective.iterate(objective.z, -1.0)
        yield from handed_over(lambda hand_over: self._run(objective, hand_over))

    def _run(self, objective: Objective, hand_over: Callable[[Iterate], None]) -> None:
        z = objective.z

        def callback(intermediate_result):
            nonlocal z
            z = intermediate_result.x.copy()
            iterate = objective.iterate(z, float(intermediate_result.fun))
            threads.give_back()
            hand_over(iterate)
            threads.take()

        threads = _OwnThreads(self.small_algebra)
        # A model that breaks down is a BreakdownError, or theirs.
        with threads, np.errstate(over="ignore", invalid="ignore"):
            for _ in range(STAGES):
                value = math.inf
                while (reached := objective.value(z)) < value:
                    value = reached
                    with suppress(BreakdownError):
                        minimize(
                            objective.value,
                            z,
                            jac=objective.gradient,
                            method=self.method,
                            callback=callback,
                            **self.arguments(objective),
                        )
                objective.magnify(MAGNIFICATION)


class _OwnThreads:
    """The threads of SciPy's own BLAS, which is not NumPy's: one while a method runs whose matrices are tiny.

    L-BFGS-B factors matrices of the size of its memory, where two threads mostly wait for each other: on a busy machine
    16 iterations on 60 × 8 took 220 ms with two and 1 to 10 ms with one (an idle machine was not measured). Where NumPy
    and SciPy share one BLAS it is left alone: products with rows need threads.
    """

    def __init__(self, one: bool) -> None:
        self.library, self.taken = None, False
        # Where another Python thread has changed the counts of the process, what is set now is not what is to be kept.
        if one and CHANGING.acquire(blocking=False):
            self.library = _scipy_blas()
            self.count = self.library.num_threads if self.library is not None else 1
            if self.count == 1:
                self.library = None
            CHANGING.release()

    def take(self) -> None:
        """Set one thread, unless another Python thread has changed the counts and will restore them."""
        if self.library is not None and CHANGING.acquire(blocking=False):
            self.taken = True
            self.library.set_num_threads(1)

    def give_back(self) -> None:
        """Set what was set before."""
        if self.taken:
            self.library.set_num_threads(self.count)
            self.taken = False
            CHANGING.release()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *error: object) -> None:
        self.give_back()


@lru_cache(maxsize=1)
def _scipy_blas() -> Any:
    """Return the controller of the BLAS that SciPy ships, None where it ships none."""
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        if any(part.startswith("scipy") for part in Path(library.filepath).parts[-3:-1]):
            return library
    return None


@register("scipy-lbfgs")
class LBFGS(Minimiser):
    """SciPy's L-BFGS-B, with bounds on the orthant.

    Problem
    -------
    min f̃(z), the problem in variables of norm one, over free space, the orthant by bounds, or the centred subspace by
    projected gradients.

    Algorithm
    ---------
    Limited-memory quasi-Newton steps with a Wolfe line search. Two passes per evaluation.

    Guarantee
    ---------
    f decreases and its gradient tends to 0; linear convergence near the minimiser.

    Reference
    ---------
    Zhu, Byrd, Lu & Nocedal, *Algorithm 778: L-BFGS-B*, in ``scipy.optimize.minimize(method="L-BFGS-B")``.

    Parameters
    ----------
    memory : int
        The number of pairs kept (``maxcor``).
    """

    costly = False  # one evaluation each
    method = "L-BFGS-B"
    takes_bounds = True
    small_algebra = True

    def __init__(self, memory: int = 30) -> None:
        self.memory = whole_number(memory, "memory")
        _scipy_blas()  # looked up here, where no clock runs

    def arguments(self, objective):
        """Return memory and bounds."""
        options = {"maxcor": self.memory, "ftol": 0.0, "gtol": 0.0, "maxiter": ENDLESS, "maxfun": ENDLESS}
        return {"options": options, "bounds": _bounds(objective)}


@register("scipy-newton-cg")
class NewtonCG(Minimiser):
    """SciPy's Newton-CG: Newton steps by conjugate gradients on Hessian products.

    Problem
    -------
    min f̃(z), the problem in variables of norm one, over free space or the centred subspace.

    Algorithm
    ---------
    Conjugate gradients on f̃''(z)p = −∇f̃(z) to a residual of min(½, ‖∇f̃‖₁^{1/2})‖∇f̃‖₁, then a Wolfe line search. Two
    passes per product, two per evaluation.

    Guarantee
    ---------
    Superlinear convergence near the minimiser.

    Reference
    ---------
    Nocedal & Wright, *Numerical Optimization*, §7.1, in ``scipy.optimize.minimize(method="Newton-CG")``.
    """

    method = "Newton-CG"

    def arguments(self, objective):
        """Return the Hessian product."""
        return {"hessp": objective.hessian_product, "options": {"xtol": 0.0, "maxiter": ENDLESS}}


@register("scipy-trust-krylov")
class TrustKrylov(Minimiser):
    """SciPy's trust-krylov: a trust region whose model is minimised over Krylov spaces.

    Problem
    -------
    min f̃(z), the problem in variables of norm one, over free space or the centred subspace.

    Algorithm
    ---------
    The quadratic model is minimised over ‖p‖ ≤ Δ by the generalised Lanczos method on Hessian products. Two passes a
    product, two an evaluation.

    Guarantee
    ---------
    Quadratic convergence near the minimiser.

    Reference
    ---------
    Lenders, Kirches & Potschka, *trlib: a vector-free implementation of the GLTR method*, in
    ``scipy.optimize.minimize(method="trust-krylov")``.
    """

    method = "trust-krylov"

    def arguments(self, objective):
        """Return the Hessian product."""
        return {"hessp": objective.hessian_product, "options": {"gtol": SMALL, "maxiter": ENDLESS}}


@register("scipy-trust-exact")
class TrustExact(Minimiser):
    """SciPy's trust-exact: a trust region whose model is minimised by Cholesky factors of the Hessian.

    Problem
    -------
    min f̃(z), the problem in variables of norm one, over free space or the centred subspace.

    Algorithm
    ---------
    The Hessian is formed by BLAS-3, and the quadratic model minimised nearly exactly over ‖p‖ ≤ Δ. One pass per
    Hessian, two per evaluation.

    Guarantee
    ---------
    Quadratic convergence near the minimiser.

    Reference
    ---------
    Conn, Gould & Toint, *Trust Region Methods*, §7.3, in ``scipy.optimize.minimize(method="trust-exact")``.
    """

    method = "trust-exact"
    largest = 4000

    def arguments(self, objective):
        """Return the Hessian."""
        return {"hess": objective.hessian, "options": {"gtol": SMALL, "maxiter": ENDLESS}}


@register("scipy-slsqp")
class SLSQP(Minimiser):
    """SciPy's SLSQP: sequential quadratic programming, for every cone.

    Problem
    -------
    min f̃(z), the problem in variables of norm one, over free space, the orthant by bounds, the centred subspace by
    projected gradients, or the second-order cone by the constraint s − ‖v‖ ≥ 0.

    Algorithm
    ---------
    A dense BFGS model is minimised under linearised constraints by least squares, O(n³) a step. Two passes an
    evaluation; one more where a point outside the second-order cone is moved into it.

    Guarantee
    ---------
    Superlinear convergence near the minimiser.

    Reference
    ---------
    Kraft, *A software package for sequential quadratic programming*, in ``scipy.optimize.minimize(method="SLSQP")``.
    """

    method = "SLSQP"
    takes_bounds = True
    takes_inequality = True
    largest = 1000

    def arguments(self, objective):
        """Return the bounds or the inequality of the cone."""
        given = {"options": {"ftol": 1e-16, "maxiter": ENDLESS}, "bounds": _bounds(objective)}
        inequality = objective.cone.inequality()
        if inequality is not None:
            given["constraints"] = {"type": "ineq", "fun": inequality[0], "jac": inequality[1]}
        return given


def _bounds(objective: Objective) -> Bounds | None:
    lower = objective.cone.lower_bounds(objective.form.dim)
    return None if lower is None else Bounds(lower, np.inf)
