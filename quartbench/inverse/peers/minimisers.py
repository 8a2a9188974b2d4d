"""SciPy's L-BFGS-B on F: as a NumPy user would write F, and on our kernels, to compare the methods alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import Bounds, minimize

from quartbench.errors import ProblemError, whole_number
from quartbench.inverse.contract import Iterate, Method, register
from quartbench.inverse.matrices import MatrixMisfit
from quartbench.inverse.misfits import At, TermMisfit
from quartbench.inverse.problem import Problem
from quartbench.solvers.peers.handover import handed_over

#: More iterations and evaluations than any run takes: limits are the driver's.
ENDLESS = 10**9

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


class _SciPy(Method):
    """SciPy's L-BFGS-B with its own stopping rules switched off."""

    peer = True

    def __init__(self, memory: int = 10) -> None:
        self.memory = whole_number(memory, "memory")

    def prepare(self, problem):
        """Raise for cones that are neither subspaces nor bounds."""
        if not (problem.cone.subspace or problem.cone.lower_bounds(problem.dim) is not None):
            raise ProblemError(f"{self.name} takes subspaces and bounds, found the cone {problem.cone!r}")

    def objective(self, problem: Problem) -> Objective:
        """Return x ↦ (F, ∇F)."""
        raise NotImplementedError

    def iterates(self, problem, metric, start):
        """Yield the start, then what L-BFGS-B calls back with."""
        fun = self.objective(problem)
        # F and its gradient of order one, as absolute tolerances and first steps expect.
        unit, length = problem.size**2, float(np.linalg.norm(start))
        inside = problem.cone.euclidean if problem.cone.subspace and not problem.cone.whole else None
        lower = problem.cone.lower_bounds(problem.dim)
        last: list[At] = []

        def evaluate(z: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = fun(length * z)
            gradient = gradient if inside is None else inside(gradient)
            last[:] = [At(length * z, value, gradient, None)]
            return value / unit, (length / unit) * gradient

        evaluate(start / length)
        yield Iterate(last[0])

        def run(hand_over: Callable[[Iterate], None]) -> None:
            def callback(intermediate_result):
                z = intermediate_result.x
                if not np.array_equal(length * z, last[0].point):
                    evaluate(z.copy())
                hand_over(Iterate(last[0]))

            options = {"maxcor": self.memory, "ftol": 0.0, "gtol": 0.0, "maxiter": ENDLESS, "maxfun": ENDLESS}
            minimize(
                evaluate,
                start / length,
                jac=True,
                method="L-BFGS-B",
                bounds=None if lower is None else Bounds(lower, np.inf),
                callback=callback,
                options=options,
            )

        yield from handed_over(run)


@register("scipy-lbfgs")
class SciPyLBFGS(_SciPy):
    """SciPy's L-BFGS-B on F in plain NumPy: what a practitioner writes today.

    Problem
    -------
    min F(x) over free space, a subspace or the orthant.

    Algorithm
    ---------
    Limited-memory quasi-Newton steps with a Wolfe line search. Two passes per evaluation.

    Guarantee
    ---------
    F falls, and its gradient tends to 0.

    Reference
    ---------
    Zhu, Byrd, Lu & Nocedal, *Algorithm 778: L-BFGS-B*, in ``scipy.optimize.minimize(method="L-BFGS-B")``.

    Parameters
    ----------
    memory : int
        The number of pairs kept (``maxcor``).
    """

    def objective(self, problem):
        """Return F and ∇F by BLAS, scipy.sparse or FFT, as the form's own plain functions have them."""
        return plain_objective(problem)


@register("scipy-lbfgs-kernels")
class SciPyLBFGSKernels(_SciPy):
    """SciPy's L-BFGS-B on F and ∇F from our fused kernels: the same method without the cost of NumPy's passes.

    Problem, Algorithm, Guarantee, Reference
    ----------------------------------------
    Those of ``scipy-lbfgs``; one pass per evaluation where the form fuses value and gradient.

    Parameters
    ----------
    memory : int
        The number of pairs kept (``maxcor``).
    """

    def objective(self, problem):
        """Return F and ∇F by our kernels."""

        def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
            at = problem.misfit.evaluate(x)
            return at.value, at.gradient

        return fun


def plain_objective(problem: Problem) -> Objective:
    """Return x ↦ (F, ∇F) in plain NumPy; every read of the rows is counted with the form's."""
    return _PLAIN[type(problem.misfit)](problem.misfit)


def _plain_terms(misfit: TermMisfit) -> Objective:
    plain, scale, d = misfit.form.plain(), misfit.form.scale, misfit.d
    weights = misfit.weights if misfit.weighted else None

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        s = plain.image(scale * x)
        miss = plain.squares(s) - d
        heavy = miss if weights is None else weights * miss
        return float(miss @ heavy), scale * plain.gradient(s, heavy)

    return fun


def _plain_matrix(misfit: MatrixMisfit) -> Objective:
    matrix, shape, constant = misfit.matrix, misfit.form.shape, misfit.size**2

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        misfit.charge(1)
        x = x.reshape(shape)
        gram, product = x.T @ x, matrix @ x
        value = float(np.vdot(gram, gram)) - 2.0 * float(np.vdot(x, product)) + constant
        return value, 4.0 * (x @ gram - product).reshape(-1)

    return fun


_PLAIN = {TermMisfit: _plain_terms, MatrixMisfit: _plain_matrix}
