"""Many right-hand sides: min ρ(x) − ⟨cⱼ,x⟩ for one form and many cⱼ, with one factor and, on dense rows, in lockstep.

A pass over dense rows waits for memory. Fifty of them at once are one product of matrices, which computes: Newton
directions of all problems are found together, each by its own conjugate gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from quartbench import precondition
from quartbench.errors import ProblemError, unknown_name
from quartbench.model import Cone, Form, Free, Metric, Problem, StackedForm
from quartbench.model.certificate import DENSE_DIMENSION, certify_block, gap

from .base import HOMOGENISED, MESSAGES, History, Result, automatic_metric, require_positive, solve
from .homnewton_cg import SMALLEST_SHARE, HomNewtonCG
from .plane import PATIENCE, ROUNDING, minimiser

#: The cones in which Newton directions are found.
NEWTON_CONES = ("free", "centred", "orthant")

#: Doubles of the images of a block of problems.
BLOCK = 1 << 22


def solve_many(
    form: Form,
    C: Sequence[Any],
    cone: Cone | None = None,
    metric: str | Metric = "auto",
    rel_gap: float = 1e-6,
    starts: Sequence[Any] | None = None,
    max_iter: int = 200,
) -> list[Result]:
    """Minimise ρ(x) − ⟨c,x⟩ over a cone for every c of ``C``, to a certified relative gap.

    Parameters
    ----------
    form : Form
    C : sequence of arrays
        The right-hand sides, each of the shape of a point: the rows of an array of shape (k, n), say.
    cone : Cone, optional
        Free space where it is not given.
    metric : str or Metric
        Made once for all: a name, a Metric made for this form, or ``"auto"``.
    rel_gap : float
    starts : sequence of arrays, optional
        Where to start, one a right-hand side: the solutions of a problem before, in a loop that changes c little.
        Where a start is worse than B⁻¹c it is not used.
    max_iter : int
        The most iterations of each, in lockstep.

    Returns
    -------
    list of Result
        In the order of ``C``. On dense rows in free space problems run in lockstep, and the seconds in a history are
        those of all of them together; else they run one after another.
    """
    if not isinstance(form, Form):
        raise ProblemError(f"form must be a Form, found {type(form).__name__}")
    if not hasattr(C, "__len__"):
        raise ProblemError(f"C must be a sequence of right-hand sides, found {type(C).__name__}")
    if rel_gap is None:
        raise ProblemError("rel_gap must be positive, found None")
    if len(C) == 0:
        return []
    if starts is not None and len(starts) != len(C):
        raise ProblemError(f"starts must be one a right-hand side, found {len(starts)} for {len(C)}")
    require_positive("rel_gap", rel_gap)
    require_positive("max_iter", max_iter, zero=True)
    problems = [Problem(form, c, cone or Free()) for c in C]
    started = perf_counter()
    made = _metric(problems[0], metric)
    setup = perf_counter() - started
    dense = isinstance(form, StackedForm) and not form.sparse and form.rows.dtype == np.float64
    if dense and isinstance(problems[0].cone, Free) and made.tau is not None:
        results: list[Result] = []
        step = max(1, BLOCK // (form.terms * form.rank))
        for first in range(0, len(problems), step):
            part = slice(first, first + step)
            block = _Block(problems[part], made, None if starts is None else starts[part])
            results += block.solve(rel_gap, max_iter, setup / len(problems))
        return results
    solver = "homnewton-cg" if problems[0].cone.name in NEWTON_CONES else "accel-homgd"
    starts = [None] * len(problems) if starts is None else starts
    return [
        solve(problem, solver, made, rel_gap, start=_better_start(problem, made, start))
        for problem, start in zip(problems, starts, strict=True)
    ]


def _metric(problem: Problem, given: str | Metric) -> Metric:
    """Return the metric for all: in single precision where the solver chooses."""
    if isinstance(given, Metric):
        return given
    if not isinstance(given, str):
        raise ProblemError(f"metric must be a name or a Metric, found {type(given).__name__}")
    if given != "auto":
        if given not in precondition.METRICS:
            raise unknown_name("metric", given, [*precondition.METRICS, "auto"])
        return precondition.metric(problem.form, given)
    name = automatic_metric(problem)
    single = name == "uniform" and isinstance(problem.form, StackedForm) and problem.dim <= DENSE_DIMENSION
    return precondition.metric(problem.form, name, **({"precision": "single"} if single else {}))


def _better_start(problem: Problem, metric: Metric, start: Any) -> Any:
    """Return the start, or None where B⁻¹c is better."""
    if start is None or problem.trivial:
        return None
    other = problem.cone.project(metric.solve(problem.c.copy()), metric)
    flat = problem.form.flat(start, "start")
    if not problem.c @ flat > 0.0:
        return None
    return start if problem.homogenised_value(flat) <= problem.homogenised_value(other) else None


class _Block:
    """Problems on the same dense rows, as the columns of matrices; numbers are those of the normalised problems."""

    def __init__(self, problems: list[Problem], metric: Metric, starts: Sequence[Any] | None) -> None:
        self.problems, self.metric = problems, metric
        scaled = [problem.normalised() for problem in problems]
        self.x_scale = np.array([one.x_scale for one in scaled])
        self.f_scale = np.array([one.f_scale for one in scaled])
        self.form = scaled[0].problem.form
        self.C = np.stack([one.problem.c for one in scaled], axis=1)
        self.ratio = self.form.scale / problems[0].form.scale
        self.passes = np.zeros(len(problems), dtype=np.int64)
        self.Y = self._solve(self.C)
        self.Y /= self._inner(self.Y)
        if starts is not None:
            self._take(starts)

    # Rows, many columns at a time. A column counts a pass for each product, as it would alone -------------------------

    def _image(self, X: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        self.passes[columns] += 1
        return (self.form.rows @ (self.form.scale * X)).reshape(self.form.terms, self.form.rank, -1)

    def _adjoint(self, W: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        self.passes[columns] += 1
        return self.form.scale * (self.form.rows.T @ W.reshape(-1, W.shape[2]))

    def _solve(self, V: np.ndarray) -> np.ndarray:
        return self.metric.solve_columns(V)

    def _inner(self, X: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        return np.einsum("ij,ij->j", self.C[:, columns], X)

    def _take(self, starts: Sequence[Any]) -> None:
        """Start where a given start has a positive ⟨c,x⟩ and a smaller ρ than B⁻¹c."""
        X = np.stack([self.form.flat(start, "start") for start in starts], axis=1)
        if not np.isfinite(X).all():
            raise ProblemError("starts must be finite, found NaN or infinity")
        inner = self._inner(X)
        usable = inner > 0.0
        X[:, usable] /= inner[usable]
        S, T = self._image(self.Y), self._image(X)
        better = usable & ((_squares(T) ** 2).sum(axis=0) < (_squares(S) ** 2).sum(axis=0))
        self.Y[:, better] = X[:, better]

    # The iterations ---------------------------------------------------------------------------------------------------

    def solve(self, rel_gap: float, max_iter: int, setup: float) -> list[Result]:
        """Run all problems to the gap, and return their results."""
        clock = perf_counter()
        k = self.C.shape[1]
        self.S = self._image(self.Y)
        self.G = self._adjoint(4.0 * _squares(self.S)[:, None, :] * self.S)
        self.best = np.full(k, np.inf)
        self.lower = np.full(k, -np.inf)
        self.traces: list[list[tuple[float, ...]]] = [[] for _ in range(k)]
        self.status = np.full(k, "max_iter", dtype=object)
        before, idle = np.zeros(k), np.zeros(k, dtype=int)
        active = np.arange(k)
        self._note(active, 0.0, np.full(k, np.nan))
        self._certify(active)
        active = self._still(active, rel_gap)
        for _ in range(max_iter):
            if active.size == 0:
                break
            Y, S = self.Y[:, active], self.S[:, :, active]
            rho = (_squares(S) ** 2).sum(axis=0)
            inner = self._inner(Y, active)
            R = (4.0 * rho / inner) * self.C[:, active] - self.G[:, active]
            E, size = self._directions(active, S, R, before[active])
            before[active] = size
            t = self._step(active, Y, S, R, E, inner)
            fallen = self._note(active, perf_counter() - clock, t)
            idle[active] = np.where(fallen, 0, idle[active] + 1)
            # ⟨r,e⟩/(6ρ) is the relative gap before the step; certificates wait until it is near the target.
            near = np.einsum("ij,ij->j", R, E) / (6.0 * rho) <= math.sqrt(rel_gap)
            self._certify(active[near])
            ended = idle[active] >= PATIENCE
            self.status[active[ended]] = "stalled"
            self._certify(active[ended & ~near])
            active = self._still(active[~ended], rel_gap)
        self._certify(active)
        self._still(active, rel_gap)
        return [self._result(j, rel_gap, setup) for j in range(k)]

    def _directions(
        self, active: np.ndarray, S: np.ndarray, R: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return E with ρ''(y)e ≈ r, column by column, as HomNewtonCG finds it; and ‖r‖²_*."""
        Q = _squares(S)[:, None, :]
        E = np.zeros_like(R)
        rest, Z = R.copy(), self._solve(R)
        P = Z.copy()
        rz = size = np.einsum("ij,ij->j", rest, Z)
        share = np.full(size.size, 0.5)
        known = before > 0.0
        share[known] = np.clip(np.sqrt(size[known] / before[known]), SMALLEST_SHARE, 0.5)
        goal = share**2 * size
        live = np.arange(size.size)
        for _ in range(HomNewtonCG().products):
            T = self._image(P, active[live])
            along = (S * T).sum(axis=1, keepdims=True)
            HP = self._adjoint(4.0 * Q * T + 8.0 * S * along, active[live])
            step = rz / np.einsum("ij,ij->j", P, HP)
            E[:, live] += step * P
            rest -= step * HP
            Z = self._solve(rest)
            rz, last = np.einsum("ij,ij->j", rest, Z), rz
            on = rz > goal
            if not on.all():
                if not on.any():
                    break
                live, goal, rz, last = live[on], goal[on], rz[on], last[on]
                S, Q, rest, Z, P = S[:, :, on], Q[:, :, on], rest[:, on], Z[:, on], P[:, on]
            P = Z + (rz / last) * P
        return E, size

    def _step(self, active, Y, S, R, E, inner) -> np.ndarray:
        """Move every y to the best point of span{y, y + e}, and return the steps."""
        Z = Y + E
        share = inner / self._inner(Z, active)
        H = share * Z - Y
        W = share * self._image(Z, active) - S
        a, b, e = _squares(S), (S * W).sum(axis=1), _squares(W)
        slope = -share * np.einsum("ij,ij->j", R, E)
        lines = np.stack([(a * a).sum(0), slope, (4 * b * b + 2 * a * e).sum(0), 4 * (b * e).sum(0), (e * e).sum(0)])
        t = np.array([minimiser(line) for line in lines.T.tolist()])
        self.Y[:, active] = Y + t * H
        self.S[:, :, active] = moved = S + t * W
        self.G[:, active] = self._adjoint(4.0 * _squares(moved)[:, None, :] * moved, active)
        return t

    # What is known of them --------------------------------------------------------------------------------------------

    def _note(self, active: np.ndarray, seconds: float, t: np.ndarray) -> np.ndarray:
        """Write a row of the histories, and say which values have fallen visibly."""
        rho = (_squares(self.S[:, :, active]) ** 2).sum(axis=0)
        values = -HOMOGENISED / (rho / self._inner(self.Y[:, active], active) ** 4) ** (1.0 / 3.0)
        fallen = values < self.best[active] - ROUNDING * np.abs(values)
        self.best[active] = np.minimum(values, self.best[active])
        for j, value, step in zip(active, values, t, strict=True):
            self.traces[j].append((seconds, value, step, self.passes[j]))
        return fallen

    def _certify(self, columns: np.ndarray) -> None:
        if columns.size:
            images = self.S[:, :, columns].reshape(-1, columns.size)
            found = certify_block(
                self.form, self.C[:, columns], self.Y[:, columns], images, self.G[:, columns], self.metric, self.ratio
            )
            self.lower[columns] = np.maximum(self.lower[columns], found)

    def _still(self, active: np.ndarray, rel_gap: float) -> np.ndarray:
        """Return the problems whose gap is still too large."""
        done = np.array([gap(self.best[j], self.lower[j]) <= rel_gap for j in active], dtype=bool)
        self.status[active[done]] = "converged"
        return active[~done]

    def _result(self, j: int, rel_gap: float, setup: float) -> Result:
        problem, trace = self.problems[j], np.array(self.traces[j])
        rho, inner = float((_squares(self.S[:, :, j : j + 1]) ** 2).sum()), float(self.C[:, j] @ self.Y[:, j])
        x = self.x_scale[j] * (inner / (4.0 * rho)) ** (1.0 / 3.0) * self.Y[:, j]
        found, status, nit = gap(self.best[j], self.lower[j]), self.status[j], len(trace) - 1
        words = {"gap": found, "rel_gap": rel_gap, "nit": nit, "passes": 0, "by": ""}
        history = History(
            iteration=np.arange(len(trace)),
            passes=trace[:, 3].astype(np.int64),
            seconds=trace[:, 0],
            value=self.f_scale[j] * trace[:, 1],
            gap=np.maximum(self.lower[j] / trace[:, 1] - 1.0, gap(-1.0, -1.0)),
            step=trace[:, 2],
            restart=np.zeros(len(trace), dtype=bool),
        )
        return Result(
            x=problem.form.native(x),
            fun=self.f_scale[j] * self.best[j],
            gap=found,
            lower_bound=self.f_scale[j] * self.lower[j],
            status=status,
            success=status == "converged",
            message=MESSAGES[status].format(**words) + "; homnewton-cg, in lockstep with the others",
            nit=nit,
            passes=int(trace[-1, 3]),
            setup_time=setup,
            solve_time=float(trace[-1, 0]),
            history=history,
            solver="homnewton-cg",
            metric=self.metric.name,
        )


def _squares(S: np.ndarray) -> np.ndarray:
    """Return qᵢ = ‖sᵢ‖² for images of shape (m, r, k)."""
    return np.einsum("irk,irk->ik", S, S) if S.shape[1] > 1 else S[:, 0] ** 2
