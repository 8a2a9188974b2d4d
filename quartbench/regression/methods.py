"""ℓ4 regression by ours and by what people would use otherwise: L-BFGS-B and IRLS from least squares, and Clarabel.

Ours is the whole call, certificate included. A peer is bare: it is told which norm to reach, and ends at its first
point with it. Benchmarks and studies take them from here.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import minimize

from quartbench.errors import ProblemError, unknown_name

from .l4 import Regression, l4_regression


class Goal(NamedTuple):
    """What a fit is to reach: a relative gap of the norm, which for a peer is a norm; and what it may take."""

    rel_gap: float
    norm: float
    max_iter: int = 100_000
    time_limit: float | None = None


class EndedError(Exception):
    """A peer has reached its goal, or taken all it may; ``status`` says which."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Watch:
    """The clock of a fit and the norms along it; :meth:`see` raises :class:`EndedError` where it ends."""

    def __init__(self, goal: Goal) -> None:
        self.goal, self.started = goal, perf_counter()
        self.x: np.ndarray | None = None
        self.seconds: list[float] = []
        self.norms: list[float] = []

    def see(self, x: np.ndarray, norm: float) -> None:
        """Take note of a point and its norm."""
        now = perf_counter() - self.started
        if self.x is None or norm < min(self.norms):
            self.x = np.array(x)
        self.seconds.append(now)
        self.norms.append(float(norm))
        if norm <= self.goal.norm:
            raise EndedError("converged")
        if self.goal.time_limit is not None and now > self.goal.time_limit:
            raise EndedError("time_limit")
        if len(self.norms) > self.goal.max_iter:
            raise EndedError("max_iter")


class Fitted(NamedTuple):
    """What a method made of rows and aims: coefficients, how it ended, and its way there."""

    x: np.ndarray
    status: str
    seconds: list[float]
    norms: list[float]
    certified: Regression | None = None


class Method(ABC):
    """A way to fit, with its settings in the constructor."""

    name: ClassVar[str]
    peer: ClassVar[bool] = False
    version: ClassVar[int] = 1

    @abstractmethod
    def fit(self, A: np.ndarray, b: np.ndarray, goal: Goal) -> Fitted:
        """Fit b by the columns of A until the goal is reached, or nothing more is gained."""


class Ours(Method):
    """quartbench.l4_regression: the whole call, with the certificate that it ends by."""

    name = "l4-regression"

    def fit(self, A, b, goal):
        """Call it, and time the call."""
        started = perf_counter()
        found = l4_regression(A, b, rel_gap=goal.rel_gap, max_iter=goal.max_iter, time_limit=goal.time_limit)
        return Fitted(found.x, found.status, [perf_counter() - started], [found.fun], found)


class Peer(Method):
    """A method that shows its points to a watch, which ends it."""

    peer = True

    def fit(self, A, b, goal):
        """Run until the watch ends it, or nothing more is gained."""
        watch = Watch(goal)
        try:
            self.run(A, b, watch)
            status = "stalled"
        except EndedError as end:
            status = end.status
        x = np.zeros(A.shape[1]) if watch.x is None else watch.x
        return Fitted(x, status, watch.seconds, watch.norms)

    @abstractmethod
    def run(self, A: np.ndarray, b: np.ndarray, watch: Watch) -> None:
        """Show points to the watch until it ends the run, or for as long as there is something to gain."""


class FromLeastSquares(Peer):
    """A peer that solves least-squares problems: by singular values, as NumPy does, or by normal equations.

    Normal equations are three times as fast, and fail beyond a condition number of 1e7.
    """

    SOLVES = ("lstsq", "normal")

    def __init__(self, least_squares: str = "lstsq") -> None:
        if least_squares not in self.SOLVES:
            raise unknown_name("least_squares", least_squares, self.SOLVES)
        self.least_squares = least_squares

    def solve(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the least-squares fit of b by the columns of A."""
        if self.least_squares == "lstsq":
            return np.linalg.lstsq(A, b, rcond=None)[0]
        factor = scipy.linalg.cho_factor(A.T @ A, check_finite=False)
        return scipy.linalg.cho_solve(factor, A.T @ b, check_finite=False)


class Lbfgs(FromLeastSquares):
    """SciPy's L-BFGS-B on Σrᵢ⁴ over its value at the least-squares fit, which it starts from."""

    name = "scipy-lbfgs"

    def run(self, A, b, watch):
        """Show every point at which it evaluates."""
        start = self.solve(A, b)
        squares = (A @ start - b) ** 2
        scale = float(squares @ squares) or 1.0

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
            r = A @ x - b
            squares = r * r
            value = float(squares @ squares)
            watch.see(x, value**0.25)
            return value / scale, (4.0 / scale) * (A.T @ (squares * r))

        limits = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0, "maxcor": 20}
        minimize(evaluate, start, jac=True, method="L-BFGS-B", options=limits)


class Irls(FromLeastSquares):
    """Iteratively reweighted least squares, x + (x⁺ − x)/3 with x⁺ for the weights r²: Newton's step for p = 4."""

    name = "irls"

    def run(self, A, b, watch):
        """Show every iterate."""
        x = self.solve(A, b)
        while True:
            r = b - A @ x
            squares = r * r
            watch.see(x, float(squares @ squares) ** 0.25)
            x = x + self.solve(r[:, None] * A, squares) / 3.0


class Conic(Peer):
    """Clarabel on min Σtᵢ² with rᵢ² ≤ tᵢ as second-order cones of size 3: what cvxpy would hand to it.

    It stops once, by its own measure, at a tolerance that is the gap.
    """

    name = "clarabel"

    def run(self, A, b, watch):
        """Show its one answer."""
        import clarabel

        m, n = A.shape
        # In units of the largest residual of least squares, so that the numbers it meets are about 1.
        scale = float(np.abs(b - A @ np.linalg.lstsq(A, b, rcond=None)[0]).max()) or 1.0
        cost = sp.diags(np.r_[np.zeros(n), np.full(m, 2.0)]).tocsc()
        rows = 3 * np.arange(m)
        # s = offset − M(x, t) is (1 + t, t − 1, 2r) for each row, in the cone where r² ≤ t.
        entries = (np.full(2 * m, -1.0), (np.r_[rows, rows + 1], np.tile(np.arange(m), 2)))
        bounds = sp.csc_matrix(entries, shape=(3 * m, m))
        spread = sp.csc_matrix((np.full(m, -2.0 / scale), (rows + 2, np.arange(m))), shape=(3 * m, m))
        offset = np.zeros(3 * m)
        offset[0::3], offset[1::3], offset[2::3] = 1.0, -1.0, -2.0 * b / scale
        solver = clarabel.DefaultSolver(
            cost,
            np.zeros(n + m),
            sp.hstack([spread @ sp.csc_matrix(A), bounds]).tocsc(),
            offset,
            [clarabel.SecondOrderConeT(3)] * m,
            _settings(clarabel, watch.goal),
        )
        x = np.array(solver.solve().x)[:n]
        squares = (A @ x - b) ** 2
        watch.see(x, float(squares @ squares) ** 0.25)


def _settings(clarabel: Any, goal: Goal) -> Any:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = goal.rel_gap
    settings.max_iter = min(goal.max_iter, 10_000)
    if goal.time_limit is not None:
        settings.time_limit = goal.time_limit
    return settings


def methods() -> dict[str, type[Method]]:
    """Return the methods for regressions by name: ours, then the peers that are installed."""
    found: list[type[Method]] = [Ours, Lbfgs, Irls]
    if importlib.util.find_spec("clarabel") is not None:
        found.append(Conic)
    return {method.name: method for method in found}


def least_norm(A: np.ndarray, b: np.ndarray) -> float:
    """Return a proved lower bound of the least norm that is within 1e-11 of it, which peers are measured against."""
    found = l4_regression(A, b, rel_gap=1e-12)
    if not found.gap <= 1e-11:
        raise ProblemError(f"the least norm is known only to the relative gap {found.gap:.1e}: {found.message}")
    return found.lower_bound
