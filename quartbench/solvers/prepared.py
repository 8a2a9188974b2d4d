"""One form, many c: what is checked, factored and compiled once, kept for one solve after another.

``solve``, ``solve_many``, loops of convex steps and the runs of a study all go through a :class:`Prepared`.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from quartbench import precondition
from quartbench.cones import CONES, Cone, cone_of
from quartbench.errors import DeficientError, ProblemError
from quartbench.forms import Form, TermForm, form_of
from quartbench.forms.budget import Budget, SpentError
from quartbench.linalg.known import U
from quartbench.metrics import Metric
from quartbench.model import Problem
from quartbench.model.estimate import belongs, certifying_metric
from quartbench.model.problem import over_cone
from quartbench.model.quotient import quotient
from quartbench.runtime.stopwatch import Stopwatch

from .compiled import REPRESENTABLE, Compiled
from .contract import Iterate, Solver, choice
from .driver import Limits, Run, State, Wanted, closable
from .progress import bar
from .quotient import OnQuotient
from .registry import SOLVERS, make_solver
from .results import Result, trivial
from .single import InSingle

#: Iterates of a run that is taken to compile what it calls.
WARM_ITERATES = 4

#: The most that such a run may take: a method that does not come back has called what it calls. Compilation takes up to
#: a minute, which is why seconds are no measure before.
WARM_PASSES, WARM_SECONDS = 300, 60.0

#: The most that ‖c‖²_* may be, and one over it the least, in a problem whose rows and c are of order one: ρ is about
#: its inverse square at the start.
STEEPEST = 1e100

_warmed: set[tuple] = set()


def solve(
    problem: Problem | Any,
    c: Any = None,
    cone: Cone | str | None = None,
    *,
    rank: int = 1,
    solver: str | Solver | type[Solver] = "auto",
    metric: str | Metric = "auto",
    rel_gap: float | None = 1e-6,
    max_iter: int | None = 100_000,
    max_passes: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    callback: Callable[[State], Any] | None = None,
    progress: bool = False,
    certify: bool = True,
    dtype: str = "float64",
) -> Result:
    """Minimise f over the cone of a problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem, Form, array of shape (m·r, n), scipy.sparse matrix or DataFrame
        A problem; or its form, or the stacked rows of one, with ``c`` beside it. Never changed; the count of passes of
        its form neither.
    c, cone, rank
        As for :class:`Problem`, beside a form or rows. A problem has its own: after it come solver and metric.
    solver : str, Solver or class
        A registered name or ``"path/to/file.py:Class"``, perhaps with ``":setting=value"``, or a solver with its
        hyper-parameters.
    metric : str or Metric
        A name of 'quartbench list', a Metric made for this form, or ``"auto"``: what the solver chooses;
        uniform, for most, where it can be factored and the cone allows it.
    rel_gap : float or None
        Stop when (f − lower bound)/|f| is at most this; None never stops on it.
    max_iter, max_passes : int or None
        Stop after so many iterations, or passes of the method; after passes also within an iteration.
    time_limit : float or None
        Stop after so many seconds of set-up and iterations; within either when it next reads the rows.
    start : array, optional
        Any point with ⟨c,start⟩ > 0; projected onto the cone. Else, or where that is 0 to rounding, as for the solution
        0 of another c, the minimum-norm point of 𝒞 (errata 7 of the documentation).
    callback : callable, optional
        Called with a :class:`State` after every iterate, off the clock; stops the run by returning False.
    progress : bool
        Show a progress bar with the certified gap.
    certify : bool
        Without certificates nothing is spent on them, no gap is known and none stops the run.
    dtype : {"float64", "float32"}
        With ``"float32"`` dense rows are rounded, which halves the traffic of a pass, until that shows; the rest of
        the way to any gap is in double precision. Certificates always are.

    Returns
    -------
    Result

    Notes
    -----
    The clock runs while the method computes. It stands still for certificates, tracing and callbacks, and starts
    after the kernels are compiled. Where ρ vanishes on a subspace of the whole space, the problem is solved on the
    quotient by it if c is perpendicular to it, as far as rounding tells, and else has no minimum: the status is
    ``unbounded`` and x shows a direction. The message says what was decided. Ctrl-C ends the run with the best point so
    far and status ``stopped``.

    Examples
    --------
    >>> problem = qb.instances.spectrum(500, 20, sigma_min=0.1, seed=0)
    >>> result = qb.solve(problem, rel_gap=1e-8)
    >>> result.status, result.gap <= 1e-8
    ('converged', True)
    >>> result.lower_bound <= result.fun
    True
    >>> slow = qb.solve(problem, solver="homgd", metric="identity", rel_gap=1e-8)
    >>> slow.passes > result.passes
    True
    """
    if isinstance(problem, Problem):
        solver, metric = _methods(c, cone, rank, solver, metric)
    else:
        problem = _problem_of(problem, c, cone, rank)
    prepared = Prepared(problem.form, problem.cone, metric, solver, rel_gap, dtype)
    limits = (rel_gap, max_iter, max_passes, time_limit)
    return prepared.run(problem, Wanted(*limits, start, callback, progress, certify))


def _methods(second: Any, third: Any, rank: int, solver: Any, metric: Any) -> tuple[Any, Any]:
    """Return solver and metric, which may stand second and third after a problem: it has a c and a cone already."""
    if isinstance(second, np.ndarray | list | tuple) or isinstance(third, Cone) or rank != 1:
        raise ProblemError("problem has a c, a cone and a rank of its own; give them beside a form or rows only")
    return solver if second is None else second, metric if third is None else third


def _problem_of(given: Any, c: Any, cone: Cone | str | None, rank: int) -> Problem:
    """Return the problem of a form or rows with c."""
    if c is None or isinstance(c, str):
        raise ProblemError(f"problem must be a Problem, or rows with c beside them, found {type(given).__name__}")
    if isinstance(cone, str) and cone not in CONES and cone in SOLVERS:
        raise ProblemError(f"a cone stands third, after rows and c, found the solver {cone!r}: solver={cone!r}")
    return Problem(given, c, cone, rank=rank)


def prepare(
    form: Form | Any,
    cone: Cone | str | None = None,
    metric: str | Metric = "auto",
    solver: str | Solver | type[Solver] = "auto",
    rel_gap: float = 1e-6,
    dtype: str = "float64",
) -> Prepared:
    """Check, factor and warm once what many solves with one form need; ``prepared.solve(c)`` then solves for each c.

    Parameters
    ----------
    form : Form, or rows as for :class:`Problem`
    cone : Cone or str, optional
        That of the form where it is not given: the whole space, for most.
    metric, solver, dtype
        As for :func:`solve`.
    rel_gap : float
        What solves aim at unless they say otherwise; ``auto`` spends on a factor what so many digits are worth.

    Returns
    -------
    Prepared
        May be shared by threads: solves change nothing in it.

    Examples
    --------
    >>> prepared = qb.prepare(qb.instances.spectrum(200, 10, sigma_min=0.1, seed=0).form)
    >>> [prepared.solve(c).success for c in np.eye(10)[:3]]
    [True, True, True]
    """
    prepared = Prepared(form_of(form), cone, metric, solver, rel_gap, dtype)
    try:
        prepared.ready()
    except DeficientError as error:
        if not prepared.cone.whole:
            raise over_cone(error, prepared.cone) from None
        prepared.on_quotient().prepared.ready()
    return prepared


class Prepared:
    """A form, a cone, a method and its metric, ready to solve for one c after another; made by :func:`prepare`.

    Attributes
    ----------
    form, cone : Form, Cone
    method : Solver
    metric : Metric
        That of the method, for rows of moderate size.
    setup_time : float
        The seconds that metric and method took to make.

    Examples
    --------
    >>> prepared = qb.prepare(qb.StackedForm(np.eye(2)))
    >>> prepared.solve([4.0, 4.0], rel_gap=1e-9).x.round(6)
    array([1., 1.])
    """

    def __init__(self, form, cone=None, metric="auto", solver="auto", rel_gap=1e-6, dtype="float64") -> None:
        self._arguments = (form, cone, metric, solver, rel_gap, dtype)
        self._quotient: OnQuotient | None = None
        self.form = form
        self.cone = cone_of(cone, form.cone).bind(form)
        self.method = make_solver(solver)
        if choice("dtype", dtype, ("float64", "float32")) == "float32":
            self.method = InSingle(self.method)
        require_positive("rel_gap", rel_gap)
        if not isinstance(metric, str | Metric):
            raise ProblemError(f"metric must be a name or a Metric, found {type(metric).__name__}")
        if isinstance(metric, Metric) and metric.dim != form.dim:
            raise ProblemError(f"metric must have dimension {form.dim}, found {metric.dim}")
        self.rel_gap, self._given = rel_gap, metric
        at_once = self.method.in_one_call() and isinstance(metric, str) and metric == "auto"
        self._compiled = Compiled.of(form, self.cone, self.method.name) if at_once else None
        self.metric: Metric | None = None
        self.setup_time = 0.0
        self._certifier: tuple[Metric | None] | None = None
        self._lock = threading.Lock()

    # What is made once ------------------------------------------------------------------------------------------------

    def problem(self, c: Any) -> Problem:
        """Return the problem for one c."""
        return Problem(self.form, c, self.cone)

    def ready(self, problem: Problem | None = None, time_limit: float | None = None) -> None:
        """Make the metric and let the method prepare, where that has not been done.

        Where a time limit ends it, which is seen whenever the rows are read, the solves have their start to show.
        """
        with self._lock:
            if self.metric is None:
                scaled = (problem or self._representative()).normalised().problem
                budget = Budget(math.inf, math.inf if time_limit is None else time_limit)
                limited = scaled.on(scaled.form.within(budget))
                try:
                    metric = self._metric(limited)
                    self.cone.require_metric(metric)
                    with Stopwatch() as watch:
                        self.method = self.method.planned(limited, metric, self.rel_gap)
                    self.setup_time += watch.seconds
                except SpentError:
                    self.method, self.setup_time = Unprepared(self.method), budget.elapsed
                    metric = precondition.metric(scaled.form.twin(), "identity")
                budget.seconds = math.inf  # what a metric computes later is no set-up any more
                self.metric = metric

    def _representative(self) -> Problem:
        """Return a problem with some c that is not in the polar cone: a point of the cone."""
        point = self.cone.euclidean(np.random.default_rng(0).standard_normal(self.form.dim))
        return self.problem(point if point.any() else self.cone.euclidean(np.ones(self.form.dim)))

    def _metric(self, problem: Problem) -> Metric:
        """Return the metric for a normalised problem, and note the seconds it took, loading of kernels aside."""
        form, given = problem.form, self._given
        if isinstance(given, str):
            with Stopwatch() as watch:
                if given == "auto":
                    made = self.method.choose_metric(problem, self.rel_gap)
                else:
                    made = precondition.metric(form, given)
            self.setup_time = watch.seconds
            return made
        self.setup_time = given.setup_seconds
        if not given.declares_bounds:
            given = given.declared(bounds=lambda made: self._bounds(self.form.twin(), made))
        ratio = form.scale / self.form.scale
        if ratio == 1.0:
            return given
        # Of moderate size again: s = ‖c‖²_*/‖c‖² makes sB of the order of one along c.
        c = problem.c
        return given.rescaled(float(c @ given.solve(c) / (c @ c)), ratio)

    @staticmethod
    def _bounds(form: Form, metric: Metric):
        """Return α and β in a metric of the user's: for B(τ) through a factor made here."""
        return form.bounds(form.weighted(metric.tau) if metric.tau is not None else metric)

    def certifier(self) -> Metric | None:
        """Return the metric that certifies, made when it is first needed; None where certificates do without."""
        if self._certifier is None:
            with self._lock:
                if self._certifier is None:
                    self._certifier = (self._certifying(),)
        return self._certifier[0]

    def corrector(self) -> Metric | None:
        """Return a metric for dual points that are almost feasible: that of the method, or what the proof needs."""
        if self._certifier is not None:
            return self._certifier[0]
        form = self.form.moderate()
        return self._own(form) or (form.proving() if isinstance(form, TermForm) else None) or self.certifier()

    def _certifying(self) -> Metric | None:
        form = self.form.moderate()
        return self._own(form) or certifying_metric(form, "single")

    def _own(self, form: Form) -> Metric | None:
        """Return the metric of the method where it is B(τ) of the form: one that the user gave may be of another."""
        if self.metric is None or self.metric.tau is None:
            return None
        return self.metric if isinstance(self._given, str) or belongs(self.metric, form, self.cone) else None

    # Solving ----------------------------------------------------------------------------------------------------------

    def solve(
        self,
        c: Any,
        start: Any = None,
        rel_gap: float | None = None,
        max_iter: int | None = 100_000,
        max_passes: int | None = None,
        time_limit: float | None = None,
        callback: Callable[[State], Any] | None = None,
        progress: bool = False,
        certify: bool = True,
    ) -> Result:
        """Minimise ρ(x) − ⟨c,x⟩ over the cone to a certified relative gap; the set-up was paid when this was prepared.

        Parameters
        ----------
        c : array or Problem
            In the native shape of the form or flat; or a problem with this very form and cone, of which it is the c.
        start : array, optional
            A point with ⟨c,start⟩ > 0: the solution for the c before, say.
        rel_gap : float, optional
            That of the preparation where it is not given.
        max_iter, max_passes, time_limit, callback, progress, certify
            As for :func:`quartbench.solve`.
        """
        if isinstance(c, Problem):
            same = c.cone is self.cone or (type(c.cone) is type(self.cone) and c.cone.rigorous)
            if not (same and c.form.same_rows(self.form)):
                raise ProblemError(
                    f"c must be an array or a problem on the form and cone that were prepared, found {c!r} on others"
                )
            c = c.given
        limits = (self.rel_gap if rel_gap is None else rel_gap, max_iter, max_passes, time_limit)
        return self.run(c, Wanted(*limits, start, callback, progress, certify, paid=True))

    def run(self, given: Any, wanted: Wanted) -> Result:
        """Solve a Problem on this form and cone, or that of a c.

        Where ρ is seen to vanish on a subspace, at once or when it is factored, that is on the quotient by it.
        """
        if self._quotient is None and self.form.deficiency() is None:
            try:
                return self._run(given, wanted)
            except DeficientError as error:
                if not self.cone.whole:
                    raise over_cone(error, self.cone) from None
        problem = given if isinstance(given, Problem) else self.problem(given)
        return trivial(problem, self.method.name) if problem.trivial else self.on_quotient().run(problem, wanted)

    @property
    def deficient(self) -> bool:
        """Whether ρ was seen to vanish on a subspace, so that solves are on the quotient by it."""
        return self._quotient is not None or self.form.deficiency() is not None

    def on_quotient(self) -> OnQuotient:
        """Return what solves on the quotient by the kernel of ρ, made when it is first needed."""
        if self._quotient is None:
            form, _, metric, *others = self._arguments
            if not isinstance(metric, str):
                raise ProblemError(
                    "metric must be a name where ρ vanishes on a subspace: one that was made is of no use"
                )
            with Stopwatch() as watch:
                found = quotient(form)
            prepared = Prepared(found.form, None, metric, *others)
            if prepared.form.deficiency() is not None:
                raise prepared.form.deficiency()
            self._quotient = OnQuotient(found, prepared, watch.seconds)
        return self._quotient

    def _run(self, given: Any, wanted: Wanted) -> Result:
        rel_gap, max_iter, max_passes, time_limit, start, callback, progress, certify, paid = wanted
        require_positive("rel_gap", rel_gap)
        require_positive("max_iter", max_iter, zero=True)
        require_positive("max_passes", max_passes)
        require_positive("time_limit", time_limit, zero=True)
        if callback is not None and not callable(callback):
            raise ProblemError(f"callback must be callable, found {type(callback).__name__}")
        made = isinstance(given, Problem)
        plain = callback is None and start is None and not progress and max_passes is None
        if plain and certify and rel_gap is not None and self._compiled is not None:
            c = self.form.flat(given.c if made else given, "c")
            found = self._compiled.solve(c, rel_gap, math.inf if max_iter is None else max_iter)
            if found is not None:
                return found
        problem = given if made else self.problem(given)
        if problem.trivial:
            return trivial(problem, self.method.name)
        self.ready(problem, time_limit)
        scaled = problem.normalised()
        require_representable(scaled.f_scale)
        point = starting_point(scaled.problem, self.metric, start, own=isinstance(self._given, str))
        setup = 0.0 if paid else self.setup_time
        limits = Limits.of(
            rel_gap if certify else None, max_iter, max_passes, None if time_limit is None else time_limit - setup
        )
        warm(self.method, scaled.problem, self.metric, point, limits.seconds)
        shown = bar(self.method.name, rel_gap) if progress and certify else nullcontext((None, None))
        with shown as (advance, watch):
            run = Run(problem, scaled, self.method, self.metric, self if certify else None, limits, watch)
            with run.keeping_best():
                status = run.follow(point, callback, advance)
                return run.result(status, setup)

    def better_start(self, problem: Problem, start: Any) -> Any:
        """Return the start, or None where the default one, P_K(B⁻¹c), is better."""
        if start is None or problem.trivial:
            return None
        self.ready(problem)
        scaled = problem.normalised()
        flat = self.form.flat(start, "start") / scaled.x_scale
        if not scaled.problem.c @ flat > 0.0:
            return None
        other = starting_point(scaled.problem, self.metric, own=isinstance(self._given, str))
        value = scaled.problem.homogenised_value
        return start if value(flat) <= value(other) else None


class Unprepared(Solver):
    """What is left of a method whose set-up took all of the time: its start."""

    def __init__(self, method: Solver) -> None:
        self.name, self.reason = method.name, "the set-up was not finished"

    def iterates(self, problem, metric, start):
        """Yield the start."""
        yield Iterate(start, problem.homogenised_value(start))


def starting_point(problem: Problem, metric: Metric, start: Any = None, own: bool = False) -> np.ndarray:
    """Return a point y₀ of 𝒞 = K ∩ {⟨c,y⟩ = 1}: the one on the ray of ``start``, or that of least norm.

    The latter, to which a start gives way that is 0 or orthogonal to c but for rounding, is P/‖P‖² with P = P_K(B⁻¹c);
    ⟨c,P⟩ = ‖P‖² by Moreau's theorem (errata 7 of the documentation). In a metric of the problem's ``own`` form ρ is
    about ‖P‖^{−4} there, and at the minimiser, and has to be a number.
    """
    if start is None or own:
        with np.errstate(over="ignore", invalid="ignore"):  # P may be out of range, which is an error that has a name
            point = problem.cone.project(metric.solve(problem.c), metric)
            inner = float(problem.c @ point)
        if not math.isfinite(inner) or (own and not 1.0 / STEEPEST <= inner <= STEEPEST):
            far = f"of about {inner:.1e}" if math.isfinite(inner) else "out of the range of floating point"
            raise ProblemError(
                "columns of the rows must be in comparable units: the minimiser is so far from their size, by a factor "
                f"{far}, that fourth powers are no numbers; scale the columns that are small or large"
            )
        if start is None:
            return point / inner
    flat = problem.form.flat(start, "start")
    if not np.isfinite(flat).all():
        raise ProblemError("start must be finite, found NaN or infinity")
    size = float(np.abs(flat).max())
    point = problem.cone.project(flat / size, metric) if size > 0.0 else flat
    inner = float(problem.c @ point)
    if not inner > 0.0:
        products = float(np.abs(problem.c) @ np.abs(point))
        if abs(inner) <= point.size * U * products:  # its sign is rounding, or it is 0
            return starting_point(problem, metric, None, own)
        raise ProblemError(f"start must have ⟨c,start⟩ > 0 once projected onto the cone, found {inner * size:.3g}")
    return point / inner


def warm(method: Solver, problem: Problem, metric: Metric, start: np.ndarray, seconds: float = math.inf) -> None:
    """Compile what a run will call by taking its first steps, once for each kind of run in a process.

    The steps are taken on the form itself, through a twin that counts its own passes: a smaller form would choose
    other kernels (serial for parallel ones) where this one reads 4 passes of what a run reads by the hundred. A form
    whose rows come in blocks, each of which chooses for itself, lends its first.
    """
    if method.peer:
        return  # nothing of theirs is compiled here, and a few of their iterates may be all of them
    form = problem.form
    kind = (repr(method), form.signature(), type(metric), type(problem.cone))
    if kind in _warmed:
        return
    budget = Budget(WARM_PASSES, seconds + WARM_SECONDS)
    iterates = closable(method.iterates(problem.on(form.first_block().within(budget)), metric, start))
    with suppress(SpentError):
        for _ in itertools.islice(iterates, WARM_ITERATES):
            pass
    iterates.close()
    _warmed.add(kind)


def require_representable(f_scale: float) -> None:
    """Raise where f* is too large or too small for floating point: nothing true could be said of it."""
    if not REPRESENTABLE[0] < f_scale < REPRESENTABLE[1]:
        raise ProblemError(
            "f* must be a number of floating point, and rows and c of such sizes make it too "
            f"{'large' if f_scale > 1.0 else 'small'}: it is of the order of (|c|/|rows|)^(4/3); scale one of them"
        )


def require_positive(name: str, value: Any, zero: bool = False, needed: bool = False) -> None:
    """Raise where a limit is not positive (or zero), and no None either, unless it is ``needed``."""
    if value is None and not needed:
        return
    if not isinstance(value, (int, float, np.number)) or not (value > 0 or (zero and value == 0)):
        wanted = f"{'nonnegative' if zero else 'positive'}{'' if needed else ' or None'}"
        raise ProblemError(f"{name} must be {wanted}, found {value!r}")
