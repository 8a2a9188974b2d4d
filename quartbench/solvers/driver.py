"""How is a run followed? Stopping, tracing, certifying, the clock: all that a method knows nothing of."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from quartbench import views
from quartbench.errors import LostError
from quartbench.forms import Form
from quartbench.forms.budget import Budget, SpentError
from quartbench.metrics import Metric
from quartbench.model import Certificate, Normalised, Problem
from quartbench.model.certificate import Dual, prove, relative_gap
from quartbench.model.estimate import Estimate, estimate, estimate_dual, gap

from .contract import Iterate, Solver
from .results import History, Result, ended

#: Relative difference of values that is rounding.
TIE = 2.0 * sys.float_info.epsilon

#: An estimate is sharpened, which costs some ten passes, where it is within this factor of the target.
NEAR = 30.0

#: A Newton step from a gap above so many times the root of the target does not reach it, and no estimate is made.
EARLY = 3.0

#: What the dual point of a Newton step leaves of the gap before the step, unless an earlier one of the run has shown.
SLACK = 0.03

#: A proof that fell short is tried again once the estimate has fallen by this factor.
AGAIN = 0.5

#: A point that is off the cone by no more than this share of its largest coordinate has been rounded, and is left.
SLIP = 1e-13


class Wanted(NamedTuple):
    """What a call asks for beside its problem, under the names that :func:`quartbench.solve` has for it."""

    rel_gap: float | None
    max_iter: int | None
    max_passes: int | None
    time_limit: float | None
    start: Any
    callback: Callable[[State], Any] | None
    progress: bool
    certify: bool
    #: Whether the set-up was paid before, and does not count.
    paid: bool = False


class Limits(NamedTuple):
    """When a run ends; infinite for never, and a gap below zero."""

    rel_gap: float
    max_iter: float
    max_passes: float
    seconds: float

    @classmethod
    def of(cls, rel_gap, max_iter, max_passes, time_limit) -> Limits:
        """Return limits from numbers, or None for never."""
        most = (math.inf if limit is None else limit for limit in (max_iter, max_passes, time_limit))
        return cls(-1.0 if rel_gap is None else rel_gap, *most)


class State:
    """What a callback sees: the run after an iterate.

    Attributes
    ----------
    iteration, passes : int
    seconds : float
        On the clock of the method.
    value : float
        f of the iterate.
    gap : float
        The relative gap of the best point so far, as far as it has been estimated: infinite at first.

    Examples
    --------
    >>> seen = []
    >>> see = lambda state: seen.append(state.iteration)
    >>> result = qb.solve(np.eye(2), [1.0, 2.0], callback=see)
    >>> seen
    [0, 1, 2]
    """

    __slots__ = ("_form", "_point", "_scale", "gap", "iteration", "passes", "seconds", "value")

    def __init__(self, iteration, passes, seconds, value, gap, point, scale, form) -> None:
        self.iteration, self.passes, self.seconds = iteration, passes, seconds
        self.value, self.gap = value, gap
        self._point, self._scale, self._form = point, scale, form

    @property
    def x(self) -> np.ndarray:
        """The point of the iterate, as the method holds it: homogenised methods keep ⟨c,x⟩ fixed, not the scale."""
        return self._form.native(self._scale * self._point)

    def __repr__(self) -> str:
        return (
            f"State(iteration {self.iteration}, {views.counted(self.passes, 'pass', 'passes')}, {self.seconds:.3g} s, "
            f"f = {self.value:.10g}, relative gap at most {self.gap:.2e})"
        )


class Certifying(Protocol):
    """What gives the metrics that certificates solve with: B(τ) of the form, or None."""

    def certifier(self) -> Metric | None:
        """Return the one that certifies any point."""

    def corrector(self) -> Metric | None:
        """Return the one that corrects dual points that are almost feasible."""


class Run:
    """One run: its limits, its columns, the best point, and what certificates have shown so far.

    Parameters
    ----------
    problem : Problem
        As the user gave it.
    scaled : Normalised
        The same in moderate numbers, which the method sees.
    method : Solver
    metric : Metric
    certifying : Certifying or None
        Gives the metrics that certify, once they are needed; None for a run without certificates.
    limits : Limits
    watch : callable, optional
        Told the count at every pass of the method.
    """

    def __init__(
        self,
        problem: Problem,
        scaled: Normalised,
        method: Solver,
        metric: Metric,
        certifying: Certifying | None,
        limits: Limits,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        self.original, self.limits = problem, limits
        self.problem, self.x_scale, self.f_scale = scaled
        self.budget: Budget | None = None
        if min(limits.max_passes, limits.seconds) < math.inf or watch is not None:
            self.budget = Budget(limits.max_passes, limits.seconds, perf_counter, watch)
            self.problem = self.problem.on(self.problem.form.within(self.budget))
        self.method, self.metric, self.certifying = method, metric, certifying
        # Certificates read the rows through a twin of the form, so that their passes are not the method's.
        self.judged = self.problem.on(self.problem.form.twin())
        self.unscaled = problem.on(problem.form.twin())
        self.passes, self.seconds = array("q"), array("d")
        self.values, self.steps, self.restarts = array("d"), array("d"), array("b")
        self.traffic: list[tuple[int, int]] = []
        self.best: Iterate | None = None
        # What is believed: the best point so far, its value, the largest estimate of a lower bound, and their gap.
        self.judged_point: np.ndarray | None = None
        self.kept: np.ndarray | None = None
        self.kept_rho: float | None = None
        self.value, self.lower, self.believed = math.inf, -math.inf, math.inf
        self.true = -math.inf
        self.dual: Dual | None = None
        # The largest bound of dual points that came with iterates, until a proof did not bear them out.
        self.witnessed, self.credible, self.slack = -math.inf, True, SLACK
        # What is proved, of a point in the user's units.
        self.x: np.ndarray | None = None
        self.proved = Certificate(math.inf, -math.inf, math.inf)
        self.proved_point: np.ndarray | None = None
        self.short = math.inf
        self.by, self.cost, self.reason = "", 0, method.reason
        # Passes and seconds, where they were spent within an iteration.
        self.spent: tuple[int, float] | None = None

    def follow(self, start: np.ndarray, callback: Callable[[State], Any] | None, bar: Callable | None) -> str:
        """Take iterates until something says stop, and return the status."""
        self.start, self.best = start, Iterate(start, math.inf)
        iterates = closable(self.method.iterates(self.problem, self.metric, start))
        try:
            status = self._loop(iterates, callback, bar)
        except KeyboardInterrupt:
            status, self.by = "stopped", "keyboard"
        except SpentError as spent:
            status, self.spent = spent.status, (self.problem.form.passes, self.budget.elapsed)
        finally:
            iterates.close()
        with suppress(KeyboardInterrupt):  # a second Ctrl-C gives up the last certificate, not the result
            if not self.proved.gap <= self.limits.rel_gap:
                self._doubt()
            self._judge()
            self._prove()
        reached = self.proved.gap <= self.limits.rel_gap
        if status == "stopped" or reached == (status == "converged"):
            return status
        return "converged" if reached else "stalled"

    @contextmanager
    def keeping_best(self) -> Iterator[None]:
        """Give the best point so far to an error that says that the rows are lost."""
        try:
            yield
        except LostError as lost:
            lost.x = self._so_far()
            raise

    def _so_far(self) -> np.ndarray | None:
        """Return the best point so far, in the user's units, without a look at the rows."""
        if self.x is None and self.best is not None:
            rho = self.best.evaluated[0] if self.best.evaluated is not None else None
            scale = 1.0 if rho is None else self.judged.best_scale(rho, self.judged.inner(self.best.point))
            return self.original.form.native(self.x_scale * (scale * self.best.point))
        return None if self.x is None else self.original.form.native(self.x)

    @property
    def gap(self) -> float:
        """The relative gap of the best point: what is believed of it, and in the end what is proved."""
        return max(self.believed, self.proved.gap) if self.proved_point is self.kept else self.believed

    def _loop(self, iterates, callback, bar) -> str:
        form, best_value = self.problem.form, sys.float_info.max
        rel_gap, max_iter, max_passes, time_limit = self.limits
        schedule = Schedule(rel_gap)
        early = EARLY * math.sqrt(rel_gap) if rel_gap > 0.0 else math.inf
        trace = (self.passes.append, self.seconds.append, self.values.append, self.steps.append, self.restarts.append)
        add_passes, add_seconds, add_value, add_step, add_restart = trace
        seconds, iteration, check = 0.0, -1, 0
        costly, budget = self.method.costly, self.budget
        resumed = perf_counter()
        if budget is not None:
            budget.begun = resumed
        for iterate in iterates:
            seconds += perf_counter() - resumed
            iteration += 1
            if iterate.__class__ is not Iterate:
                raise TypeError(f"{self.method.name} must yield Iterate(point, value), found {type(iterate).__name__}")
            point, value, step, restart, _, reason, decrement, dual = iterate
            passes = form.passes
            add_passes(passes)
            add_seconds(seconds)
            add_value(value)
            add_step(step)
            add_restart(restart)
            if form.remote:
                self.traffic.append((form.rounds, form.bytes))
            if reason:
                self.reason = reason
            if value <= best_value + TIE * abs(best_value):
                # Of values that rounding cannot tell apart the latest is the closest: certificates see the difference.
                best_value, self.best = min(value, best_value), iterate
            ended = ""
            promised = self.slack * decrement <= NEAR * rel_gap or rel_gap <= 0.0
            if iteration >= check and (promised if dual is not None and self.credible else not decrement > early):
                self._judge()
                # A value below the true one would keep all later points, however good, from being the best.
                best_value = max(best_value, self.true)
                if self.believed <= rel_gap and self._proves():
                    ended = "converged"
                elif schedule.stalled(iteration, best_value, self.gap):
                    ended = "stalled"
                check = iteration + 1 if costly else schedule.following(iteration, self.gap, self.cost)
                if bar is not None:
                    bar(self.gap, iteration)
            if callback is not None:
                state = State(
                    iteration, passes, seconds, self.f_scale * value, self.gap, point, self.x_scale, self.original.form
                )
                if callback(state) is False and not ended:
                    self.by = "callback"
                    return "stopped"
            if ended:
                return ended
            if iteration >= max_iter:
                return "max_iter"
            if passes >= max_passes:
                return "max_passes"
            if seconds >= time_limit:
                return "time_limit"
            resumed = perf_counter()
            if budget is not None:
                budget.begun = resumed - seconds
        return "stalled"

    def _judge(self) -> None:
        """Estimate the gap of the best point, unless it was the last one judged."""
        if self.certifying is None or self.best.point is self.judged_point:
            return
        form: Form = self.judged.form
        before = form.passes
        point, evaluated = self._feasible(self.best)
        self.judged_point = self.best.point
        if evaluated is not None and self._witnessed(point, evaluated[0]):
            self.cost = form.passes - before
            return
        metric = self.certifying.certifier()
        if evaluated is None or not self.credible:
            evaluated = form.evaluate(point)
        near = NEAR * self.limits.rel_gap
        found = estimate(self.judged, point, metric, evaluated, refine=0)
        value = found.value
        if self.best.evaluated is evaluated and gap(value, found.lower_bound) <= near:
            # The bound holds for any image, f for that of the point alone, from which updates of a method may drift.
            value = self.judged.homogenised_value(point)
        self.true = value
        self._keep(point, value)
        self._hold(found, metric)
        if self.limits.rel_gap < gap(self.value, self.lower) <= near:
            self._hold(estimate(self.judged, point, metric, evaluated), metric)
        self.believed = gap(self.value, self.lower)
        self.cost = form.passes - before

    def _witnessed(self, point: np.ndarray, rho: float) -> bool:
        """Believe the dual point of the best iterate, where it has one and the proofs have borne out those before."""
        witness = self.best.dual() if self.credible and self.best.dual is not None else None
        inner = self.judged.inner(point)
        scale = self.judged.best_scale(rho, inner)
        if witness is None or scale == 0.0:
            return False
        found = estimate_dual(self.judged, scale * point, *witness, self.certifying.corrector)
        if found is None:
            return False
        lower, dual, metric = found
        self.true = value = -0.75 * scale * inner
        self._keep(point, value, rho)
        if lower > self.witnessed:
            self.witnessed, self.dual = lower, Dual(self.judged, dual, metric)
        self.believed = gap(self.value, max(self.lower, self.witnessed))
        if self.best.decrement > 0.0:
            self.slack = self.believed / self.best.decrement
        return True

    def _doubt(self) -> None:
        """Forget what the method promised, by dual points or values, and judge by our own numbers from here on."""
        if self.witnessed > -math.inf:
            self.credible, self.witnessed, self.judged_point = False, -math.inf, None
            self.kept, self.kept_rho, self.value = None, None, math.inf

    def _hold(self, found: Estimate, metric: Metric | None) -> None:
        """Keep the best bound so far, and the dual point behind it."""
        if found.lower_bound > self.lower:
            self.lower, self.dual = found.lower_bound, Dual(self.judged, found.dual, metric)

    def _proves(self) -> bool:
        """Say whether the gap that is believed can be proved; where it fell short before, only once it is much less."""
        if self.believed <= AGAIN * self.short:
            self._prove()
            self.short = self.believed
            if not self.proved.gap <= self.limits.rel_gap:
                self._doubt()
        return self.proved.gap <= self.limits.rel_gap

    def _prove(self) -> None:
        """Prove what can be proved of the best point, in the user's units; keep the best point and bound so far."""
        if self.certifying is None or self.kept is None or self.kept is self.proved_point:
            return
        self.proved_point = self.kept
        x, found = prove(self.unscaled, self._placed(self.kept, self.kept_rho), self.dual, self.limits.rel_gap)
        lower, both = max(found.lower_bound, self.proved.lower_bound), found.proved and self.proved.proved
        if not found.value <= self.proved.value:
            x, found = self.x, self.proved
        if found.lower_bound < lower <= found.value:
            found = found._replace(lower_bound=lower, gap=relative_gap(found.value, lower), proved=both)
        self.x, self.proved = x, found

    def _placed(self, point: np.ndarray, rho: float | None = None) -> np.ndarray:
        """Return the best point of the ray of a normalised point, in the user's units; ρ there saves a pass."""
        inner = self.judged.inner(point)
        scale = self.judged.best_scale(self.judged.form.value(point) if rho is None else rho, inner)
        return self.x_scale * (scale * point)

    def _feasible(self, iterate: Iterate) -> tuple[np.ndarray, tuple | None]:
        """Return the point of an iterate moved into the cone: a method's slip must not become a false gap."""
        point = iterate.point
        inside = self.judged.cone.euclidean(point)
        if inside is point or np.abs(inside - point).max() <= SLIP * np.abs(point).max():
            return point, iterate.evaluated
        return inside, None

    def _keep(self, point: np.ndarray, value: float, rho: float | None = None) -> None:
        if value < self.value:
            self.kept, self.value, self.kept_rho = point, value, rho

    def result(self, status: str, setup_time: float) -> Result:
        """Return what the run found: the best point by values computed here, whatever the method reported."""
        if self.kept is None or self.certifying is None:
            for iterate in (Iterate(self.start, math.nan), self.best):
                point, _ = self._feasible(iterate)
                self._keep(point, self.judged.homogenised_value(point))
        if self.x is None or self.proved.value == math.inf:  # nothing was proved
            self.x = self.original.cone.inside(self._placed(self.kept))
            self.proved = self.proved._replace(value=self.unscaled.value(self.x))
        # Ctrl-C can fall between two columns: the rows that all of them have are the history.
        columns = (self.passes, self.seconds, self.values, self.steps, self.restarts)
        rows = min(map(len, (*columns, self.traffic) if self.traffic else columns))
        lower = self.proved.lower_bound / self.f_scale
        passes, seconds, values, steps, restarts = (column[:rows] for column in columns)
        return ended(
            self.original.form,
            self.x,
            self.proved.value,
            self.proved.lower_bound,
            status,
            History(passes, seconds, values, lower, self.f_scale, steps, restarts, self.traffic[:rows]),
            rel_gap=self.limits.rel_gap,
            gap=self.proved.gap,
            proved=self.proved.proved and self.proved.lower_bound > -math.inf,
            setup_time=setup_time,
            solver=self.method.name,
            metric=self.metric.name,
            reason=self.reason,
            by=self.by,
            spent=self.spent,
        )


def closable(iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Yield what an iterator yields; closing this closes a generator, and leaves any other iterator alone."""
    yield from iterates


class Schedule:
    """When to certify: at growing distances, sooner where the gap is about to reach its target; and when to give up."""

    #: Decreases that are progress: of the value relatively, of the gap as a share of the least so far.
    FALLEN, SMALLER = 1e-15, 0.99
    #: Iterations without progress that are allowed beside as many as there were with it.
    GRACE = 100
    #: The next certificate is 1/NEAREST to 1/FARTHEST of the iterations so far away.
    NEAREST, FARTHEST = 20, 3
    #: A certificate of so many passes may wait an iteration longer.
    PASSES = 8

    def __init__(self, rel_gap: float) -> None:
        self.rel_gap = rel_gap
        self.progress = 0
        self.value = self.least = math.inf
        self.before = (0, math.inf)

    def stalled(self, iteration: int, value: float, gap: float) -> bool:
        """Say whether neither value nor gap has moved while the number of iterations doubled."""
        if value < self.value - self.FALLEN * abs(value) or gap < self.SMALLER * self.least:
            self.value, self.least, self.progress = min(value, self.value), min(gap, self.least), iteration
        return iteration > 2 * self.progress + self.GRACE

    def following(self, iteration: int, gap: float, cost: int) -> int:
        """Return the iteration of the next certificate: 5 to 33 % on, where a line through the log-gaps says.

        A certificate that cost many passes (conjugate gradients without a factor) waits longer, but not above 50 %.
        """
        nearest = iteration + max(1, iteration // self.NEAREST, min(cost // self.PASSES, iteration // 2))
        farthest = max(nearest, iteration + max(4, iteration // self.FARTHEST))
        last, larger = self.before
        self.before = (iteration, gap)
        if not 0.0 < self.rel_gap < gap < larger < math.inf:
            return farthest if iteration else 2
        predicted = iteration + (iteration - last) * math.log(gap / self.rel_gap) / math.log(larger / gap)
        return int(min(max(predicted, nearest), farthest))
