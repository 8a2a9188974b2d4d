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
from quartbench.cones import Cone, cone_of
from quartbench.errors import DeficientError, ProblemError
from quartbench.forms import Form, TermForm, form_of
from quartbench.forms.budget import Budget, SpentError
from quartbench.metrics import Metric
from quartbench.model import Problem
from quartbench.model.certificate import Dual, prove
from quartbench.model.estimate import estimate_columns, gap

from .contract import HOMOGENISED
from .homnewton_cg import SMALLEST_SHARE, HomNewtonCG
from .plane import PATIENCE, ROUNDING, minimiser
from .prepared import Prepared, require_positive, require_representable
from .results import History, Result, ended

#: Doubles of the images of a block of problems.
BLOCK = 1 << 22

#: The settings of HomNewtonCG.
FORCING, PRODUCTS = HomNewtonCG().forcing, HomNewtonCG().products

#: Newton steps that problems in lockstep take at most, unless the caller says otherwise.
LOCKSTEPS = 200


def solve_many(
    form: Form | Any,
    C: Sequence[Any],
    cone: Cone | str | None = None,
    metric: str | Metric = "auto",
    rel_gap: float = 1e-6,
    starts: Sequence[Any] | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
) -> list[Result]:
    """Minimise ρ(x) − ⟨c,x⟩ over a cone for every c of ``C``, to a certified relative gap.

    Parameters
    ----------
    form : Form, or rows as for :class:`Problem`
    C : sequence of arrays
        The right-hand sides, each of the shape of a point: the rows of an array of shape (k, n), say.
    cone : Cone or str, optional
        That of the form where it is not given: free space, for most.
    metric : str or Metric
        Made once for all: a name, a Metric made for this form, or ``"auto"``.
    rel_gap : float
    starts : sequence of arrays, optional
        Where to start, one for each right-hand side: the solutions before, in a loop that changes c little. Where a
        start is worse than B⁻¹c it is not used.
    max_iter : int or None
        The most iterations of each; where not given, 200 Newton steps in lockstep, and as many as ``solve`` takes else.
    time_limit : float or None
        Stop after so many seconds of set-up and iterations, of all together; those that are left end where they are.

    Returns
    -------
    list of Result
        In the order of ``C``. On dense rows in free space problems run in lockstep, and the seconds in a history are
        those of all of them together; else they run one after another.

    Examples
    --------
    >>> form = qb.instances.spectrum(500, 20, sigma_min=0.1, seed=0).form
    >>> C = np.random.default_rng(0).standard_normal((3, 20))
    >>> [result.success for result in qb.solve_many(form, C)]
    [True, True, True]
    """
    form = form_of(form)
    if not hasattr(C, "__len__"):
        raise ProblemError(f"C must be a sequence of right-hand sides, found {type(C).__name__}")
    require_positive("rel_gap", rel_gap, needed=True)
    if len(C) == 0:
        return []
    if starts is not None and len(starts) != len(C):
        raise ProblemError(f"starts must be one for each right-hand side, found {len(starts)} for {len(C)}")
    require_positive("max_iter", max_iter, zero=True)
    require_positive("time_limit", time_limit, zero=True)
    cone = cone_of(cone, form.cone).bind(form)
    prepared = Prepared(form, cone, metric, Together() if cone.directions else "accel-homgd", rel_gap)
    problems = [prepared.problem(c) for c in C]
    try:
        form.require_definite()
        prepared.ready(next((problem for problem in problems if not problem.trivial), None), time_limit)
    except DeficientError:  # one after another on the quotient, or an error that says why not
        limits = {"time_limit": time_limit} | ({} if max_iter is None else {"max_iter": max_iter})
        return [prepared.solve(problem.given, **limits) for problem in problems]
    setup = prepared.setup_time / len(problems)
    budget = Budget(math.inf, math.inf if time_limit is None else time_limit - prepared.setup_time)
    if cone.whole and isinstance(form, TermForm) and form.in_columns and prepared.metric.tau is not None:
        results: list[Result] = []
        step = max(1, BLOCK // (form.terms * form.rank))
        for first in range(0, len(problems), step):
            part = slice(first, first + step)
            block = _Block(problems[part], prepared.metric, None if starts is None else starts[part], budget)
            results += block.solve(rel_gap, LOCKSTEPS if max_iter is None else max_iter, setup)
        return results
    starts = [None] * len(problems) if starts is None else starts
    found = []
    for problem, start in zip(problems, starts, strict=True):
        better = prepared.better_start(problem, start)
        left = None if time_limit is None else max(budget.seconds - budget.elapsed, 0.0)
        limits = {"time_limit": left} | ({} if max_iter is None else {"max_iter": max_iter})
        found.append(prepared.solve(problem.given, better, **limits))
    for result in found:
        result.setup_time = 0.0 if result.status == "trivial" else setup
    return found


class Together(HomNewtonCG):
    """HomNewtonCG in a metric that is made for many right-hand sides, in single precision where that will do."""

    name = HomNewtonCG.name

    def choose_metric(self, problem, rel_gap):
        """Return B⁽⁰⁾, whatever it costs: many solves share it."""
        name = precondition.automatic_metric(problem.form, problem.cone)
        options = {"precision": "single"} if name == "uniform" else {}
        return precondition.metric(problem.form, name, **options)


class _Block:
    """Problems on the same form, as the columns of matrices; numbers are those of the normalised problems."""

    def __init__(self, problems: list[Problem], metric: Metric, starts: Sequence[Any] | None, budget: Budget) -> None:
        self.problems, self.metric = problems, metric
        scaled = [problem.normalised() for problem in problems]
        self.x_scale = np.array([one.x_scale for one in scaled])
        self.f_scale = np.array([one.f_scale for one in scaled])
        for f_scale in self.f_scale:
            require_representable(f_scale)
        self.form, self.budget = scaled[0].problem.form, budget
        self.C = np.stack([one.problem.c for one in scaled], axis=1)
        self.passes = np.zeros(len(problems), dtype=np.int64)
        self.Y = self._solve(self.C)
        self.Y /= self._inner(self.Y)
        if starts is not None:
            self._take(starts)

    # Rows, many columns at a time. A column counts a pass for each product, as it would alone -------------------------

    def _image(self, X: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        self.passes[columns] += 1
        return self.form.image_columns(X).reshape(self.form.terms, self.form.rank, -1)

    def _adjoint(self, W: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        self.passes[columns] += 1
        return self.form.adjoint_columns(W.reshape(-1, W.shape[2]))

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
        self.duals: list[np.ndarray | None] = [None] * k
        self.traces: list[list[tuple[float, ...]]] = [[] for _ in range(k)]
        self.status = np.full(k, "max_iter", dtype=object)
        before, idle = np.zeros(k), np.zeros(k, dtype=int)
        active = np.arange(k)
        self._note(active, 0.0, np.full(k, np.nan))
        self._certify(active)
        active = self._still(active, rel_gap)
        # From here on a time limit may end it, also within a direction: all that a result needs is there.
        self.form = self.form.within(self.budget)
        for _ in range(max_iter):
            if active.size == 0:
                break
            Y, S = self.Y[:, active], self.S[:, :, active]
            rho = (_squares(S) ** 2).sum(axis=0)
            inner = self._inner(Y, active)
            R = (4.0 * rho / inner) * self.C[:, active] - self.G[:, active]
            try:
                E, size = self._directions(active, S, R, before[active])
                t = self._step(active, Y, S, R, E, inner)
            except SpentError as spent:
                self.status[active] = spent.status
                break
            before[active] = size
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
        rz = size = np.maximum(np.einsum("ij,ij->j", rest, Z), 0.0)
        share = np.full(size.size, FORCING)
        known = before > 0.0
        share[known] = np.clip(np.sqrt(size[known] / before[known]), SMALLEST_SHARE, FORCING)
        goal = share**2 * size
        live = np.arange(size.size)
        for _ in range(PRODUCTS):
            T = self._image(P, active[live])
            along = (S * T).sum(axis=1, keepdims=True)
            HP = self._adjoint(4.0 * Q * T + 8.0 * S * along, active[live])
            curvature = np.einsum("ij,ij->j", P, HP)
            # None along nothing: a column whose residual is zero to the last bit is solved.
            step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0.0)
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
        moved = S + t * W
        gradient = self._adjoint(4.0 * _squares(moved)[:, None, :] * moved, active)
        self.Y[:, active], self.S[:, :, active], self.G[:, active] = Y + t * H, moved, gradient
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
            found, duals = estimate_columns(
                self.form.twin(), self.C[:, columns], self.Y[:, columns], images, self.G[:, columns], self.metric
            )
            for j, lower, dual in zip(columns, found, duals.T, strict=True):
                if lower > self.lower[j]:
                    self.lower[j], self.duals[j] = lower, np.ascontiguousarray(dual)

    def _still(self, active: np.ndarray, rel_gap: float) -> np.ndarray:
        """Return the problems whose gap is still too large."""
        done = np.array([gap(self.best[j], self.lower[j]) <= rel_gap for j in active], dtype=bool)
        self.status[active[done]] = "converged"
        return active[~done]

    def _result(self, j: int, rel_gap: float, setup: float) -> Result:
        problem, trace = self.problems[j], np.array(self.traces[j])
        rho, inner = float((_squares(self.S[:, :, j : j + 1]) ** 2).sum()), float(self.C[:, j] @ self.Y[:, j])
        x = self.x_scale[j] * (inner / (4.0 * rho)) ** (1.0 / 3.0) * self.Y[:, j]
        scaled = problem.normalised().problem
        x, found = prove(problem.on(problem.form.twin()), x, Dual(scaled, self.duals[j], self.metric), rel_gap)
        status = self.status[j]
        if status == "converged" and found.gap > rel_gap:
            status = "stalled"
        seconds, values, steps, passes = trace.T
        restarts = np.zeros(len(trace), dtype=bool)
        lower, f_scale = found.lower_bound, self.f_scale[j]
        return ended(
            problem.form,
            x,
            found.value,
            lower,
            status,
            History(passes, seconds, values, lower / f_scale, f_scale, steps, restarts),
            rel_gap=rel_gap,
            gap=found.gap,
            proved=found.proved,
            setup_time=setup,
            solver=HomNewtonCG.name,
            metric=self.metric.name,
            reason="homnewton-cg, in lockstep with the others",
        )


def _squares(S: np.ndarray) -> np.ndarray:
    """Return qᵢ = ‖sᵢ‖² for images of shape (m, r, k)."""
    return np.einsum("irk,irk->ik", S, S) if S.shape[1] > 1 else S[:, 0] ** 2
