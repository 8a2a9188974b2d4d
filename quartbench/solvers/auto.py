"""Which method, in which metric? What ``solve`` uses unless told otherwise: Newton directions at the least cost.

Costs are counted in passes, and the form says what a factor and a solve cost. A factor must save as many passes as it
costs, and what it saves depends on the conditioning, of which the first conjugate gradients tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from quartbench import precondition
from quartbench.cones import Cone
from quartbench.errors import ProblemError
from quartbench.forms import Form, TermForm
from quartbench.linalg.conjugate_gradients import ritz_values
from quartbench.metrics import Metric
from quartbench.model import Problem

from . import rounds
from .accel_homgd import AccelHomGD
from .contract import Iterate, Solver
from .homnewton import HomNewton
from .homnewton_cg import HomNewtonCG, Last, newton_cg
from .plane import Plane, first, iterate
from .registry import register, solvers
from .steps import Evaluated, evaluate

#: Unknowns up to which a dense Hessian is so cheap that exact Newton directions win.
SMALL = 60

#: Passes that a factor, or a Hessian, may cost to be made without a look at the conditioning; and a factor where the
#: diagonal of B⁽⁰⁾ does much of its work.
CHEAP, CHEAPER = 30.0, 5.0

#: A factor of the Hessian is made once a direction has taken this many products more than the share of its cost in
#: passes: it halves those of the directions to come.
PAYING = 4.0

#: Digits up to which the directions to come are too few to repay it; and those assumed where no gap is asked for, with
#: the fewest and the most that make a difference.
FEW_DIGITS, USUAL_DIGITS, DIGITS = 7.0, 8.0, (1.0, 14.0)

#: Passes that a factor of a sample must save: so many, and so many more for each digit beyond as many.
SAVED, AGAIN = 4.0, 0.8

#: How much dearer a correction of the dual point is than one by the Hessian: in weights that are all alike, by so much;
#: on so many rows for each unknown, by what is missing.
UNEVEN, FEW_ROWS = 24.0, 3.0

#: The share of c in the cone below which it is almost in the polar one.
POLAR = 1e-4

#: How many times the rounds that it should take a method on a sample may take.
PATIENCE = 2.0

#: Share of their mean that is added to the weights of the terms in it.
SMOOTHING = 0.1

#: The settings of HomNewtonCG.
FORCING, PRODUCTS = HomNewtonCG().forcing, HomNewtonCG().products

#: Products of the first direction, after which its Ritz values have a first idea of the conditioning.
PROBE = 12

#: How much larger the condition number may well be than the Ritz values of a run that was cut short say.
UNSEEN = 3.0

#: What a run to ten digits takes, in passes, measured on instances of the study ``peers``: without a factor PER_ROOT
#: for each unit of the root of the condition number; with one BESIDE it, and so many SOLVES.
PER_ROOT, BESIDE, SOLVES = 9.0, 10.0, 38.0


@register("auto")
class Auto(Solver):
    """The method, metric and threads that suit a problem, chosen by its shape and a look at its conditioning.

    Problem
    -------
    Any: min ρ(y) over y ∈ K, ⟨c,y⟩ = 1.

    Algorithm
    ---------
    - few unknowns and a cheap Hessian: ``homnewton``, on few dense rows as one compiled call;
    - rows on a cluster: what the form says that rounds and bytes cost decides between ``homnewton``, with n² numbers in
      a round, ``homnewton-cg`` in B⁽⁰⁾ or in the metric of a sample, and ``spag``, after which ``homnewton-cg`` goes on
      where a sample is too unlike the whole;
    - a cone without directions: ``accel-homgd``;
    - else ``homnewton-cg``: in B⁽⁰⁾, factored in single precision, where that costs few passes, of a sample of the
      terms where they are many; else without a factor, until the Ritz values of a run of conjugate gradients promise
      that B⁽⁰⁾ pays for itself; and then in the Hessian on the way, where directions still take many products.

    Guarantee
    ---------
    That of the method chosen, which the message of the result names with the reason.

    Reference
    ---------
    This project's; the costs in passes are measured by its benchmarks.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=5000, n=100, sigma_min=0.02, seed=0)
    >>> print(qb.solve(problem, "auto").message)
    the certified relative gap ... is at most 1.00e-06; homnewton-cg preconditioned ...
    """

    costly = True
    compiled = True

    def choose_metric(self, problem, rel_gap):
        """Return the metric of the method for this form and cone."""
        form, cone = problem.form, problem.cone
        name, options = precondition.automatic_metric(form, cone), {}
        if spread_out(form, cone):
            return self._remote_metric(form, digits(rel_gap))
        if cone.metrics == "any" and isinstance(form, TermForm):
            name = form.bare_metric if form.factorable or not form.uneven_columns() else "diagonal"
            saved = SAVED + AGAIN * max(0.0, digits(rel_gap) - SAVED)
            sampled = form.sampled(saved) if form.factorable else None
            if sampled is not None:
                return sampled
            if form.factorable and form.factor_cost() <= (CHEAP if name == "identity" else CHEAPER):
                name, options = "uniform", {"precision": "single"}
        return precondition.metric(form, name, **options)

    def planned(self, problem, metric, rel_gap):
        """Return the method chosen, with the reason."""
        form, cone = problem.form, problem.cone
        if spread_out(form, cone):
            return self._remote_method(problem, metric, rel_gap)
        small = form.dim <= SMALL and form.hessian_cost() <= CHEAP and isinstance(form, TermForm)
        if small and (cone.directions or (cone.models and not near_polar(problem))):
            return Chosen(HomNewton(), f"homnewton, as n = {form.dim} is small")
        if not cone.directions:
            return Chosen(AccelHomGD(), f"accel-homgd, as the cone is {cone.name}")
        if not isinstance(form, TermForm):
            why = "as no metric is better on this form"
        elif partial(metric):
            why = f"preconditioned by a factor of {np.count_nonzero(metric.tau)} of {metric.tau.size} terms"
        elif metric.diagonal is None:
            why = f"preconditioned by {metric.name}, which costs few passes"
        elif not cone.subspace:
            why = f"in the metric {metric.name}, as the cone is the {cone.name}"
        else:
            why = "without a factor, which would cost more than it saves"
        return AdaptiveNewton(digits(rel_gap), f"homnewton-cg {why}")

    def _remote_metric(self, form: TermForm, to_go: float) -> Metric:
        """Return the metric of the cheapest plan; a sample that does not see enough leaves it to the next."""
        for plan in rounds.plans(form, to_go):
            if plan.name in ("newton", "factor"):
                return precondition.metric(form, "uniform", precision="single")
            found = form.sampled(0.0) if plan.name == "sample" else precondition.metric(form, form.bare_metric)
            if found is not None:
                return found
        return precondition.metric(form, form.bare_metric)

    def _remote_method(self, problem: Problem, metric: Metric, rel_gap: float | None) -> Solver:
        """Return the method of the cheapest plan that the metric is for."""
        form, to_go = problem.form, digits(rel_gap)
        known = rounds.plans(form, to_go)
        factored = metric.diagonal is None
        for plan in known:
            why = rounds.words(plan, known)
            if plan.name == "newton":
                return Chosen(HomNewton(), f"homnewton, as {why}")
            if plan.name == "spag" and not factored:
                method = solvers()["spag"](share=rounds.share(form))
                try:
                    return Safeguarded(method.planned(problem, metric, rel_gap), to_go, f"spag, as {why}")
                except ProblemError:  # the sample does not see every direction
                    continue
            if factored and plan.name in rounds.METRICS and partial(metric) is (plan.name == "sample"):
                return AdaptiveNewton(to_go, f"homnewton-cg in {rounds.METRICS[plan.name]}, as {why}")
        return AdaptiveNewton(to_go, "homnewton-cg without a factor, as n² numbers are too many for a round")

    def iterates(self, problem, metric, start):
        """Yield the iterates of the method chosen."""
        return self.planned(problem, metric, None).iterates(problem, metric, start)


def spread_out(form: Form, cone: Cone) -> bool:
    """Say whether rounds and bytes decide: rows are elsewhere, and any metric and direction will do."""
    return form.remote and isinstance(form, TermForm) and cone.metrics == "any" and cone.directions and cone.subspace


class Chosen(Solver):
    """A method that ``auto`` has chosen."""

    name = Auto.name
    costly = True

    def __init__(self, method: Solver, reason: str) -> None:
        self.method, self.reason = method, reason

    def iterates(self, problem, metric, start):
        """Yield the iterates of the method."""
        return self.method.iterates(problem, metric, start)


class Safeguarded(Solver):
    """A method on a sample, and Newton-CG after it where the sample is too unlike the whole to end in time.

    Parameters
    ----------
    method : Solver
        As planned for the problem.
    digits : float
        The digits to go, which it has so many iterations for.
    reason : str
        Why it was chosen.
    """

    name = Auto.name
    costly = True

    def __init__(self, method: Solver, digits: float, reason: str) -> None:
        self.method, self.digits, self.reason = method, digits, reason

    def iterates(self, problem, metric, start):
        """Yield the iterates of the method, and those of Newton-CG from its last point."""
        most = PATIENCE * rounds.SPAG * self.digits
        for count, found in enumerate(self.method.iterates(problem, metric, start)):
            yield found._replace(reason=f"{self.reason}; {found.reason}" if found.reason else "")
            if count >= most:
                break
        last = found.point / float(problem.c @ found.point)
        then = "homnewton-cg without a factor"
        iterates = AdaptiveNewton(self.digits, then).iterates(problem, metric, last)
        next(iterates)
        for found in iterates:
            then = found.reason or then
            yield found._replace(reason=f"{self.reason}; its sample is unlike the whole, so then {then}")


def near_polar(problem: Problem) -> bool:
    """Say whether c is almost in the polar cone: ⟨c,y⟩ is then a small difference, and steps on a slice lose less."""
    return float(np.linalg.norm(problem.cone.euclidean(problem.c))) <= POLAR * float(np.linalg.norm(problem.c))


class AdaptiveNewton(Solver):
    """HomNewtonCG, which makes a factor on its way where that promises to pay for itself.

    Parameters
    ----------
    digits : float
        The digits to go, which decide what a factor is worth.
    reason : str
        Why it starts as it does.
    """

    name = Auto.name
    costly = True

    def __init__(self, digits: float, reason: str) -> None:
        self.digits, self.reason = digits, reason

    def iterates(self, problem: Problem, metric: Metric, start: np.ndarray) -> Iterator[Iterate]:
        """Yield iterates without a factor, with one of B⁽⁰⁾, and with one of the Hessian, as far as each is taken."""
        form, plane = problem.form, Plane(problem)
        y, reason = evaluate(form, start), self.reason
        yield first(y, plane.c)
        if problem.cone.subspace and isinstance(form, TermForm) and form.factorable:
            if metric.diagonal is not None or partial(metric):
                y, metric, reason = yield from self._without_factor(plane, metric, y, reason)
            if metric is not None and form.refines_hessian:
                y, metric, reason = yield from self._with_factor(plane, metric, y, reason)
        if metric is not None:
            yield from _saying(reason, newton_cg(plane, metric, y, FORCING, PRODUCTS, last=self._last(form, metric)))

    def _without_factor(self, plane: Plane, metric: Metric, y: Evaluated, reason: str):
        """Yield iterates until a factor promises to pay; return the point, the metric or None, and why."""
        form, watch = plane.form, Conditioning(PROBE)
        for found in newton_cg(plane, metric, y, FORCING, PRODUCTS, watch, self._last(form, metric)):
            yield found
            if self._factor_pays(form, watch.condition()):
                break
        else:
            return y, None, reason
        better = form.weighted(form.uniform_weights(), "single")
        reason = (
            f"homnewton-cg, at first {'with a factor of a sample' if partial(metric) else 'without a factor'}; "
            f"conjugate gradients saw a condition number of some "
            f"{watch.condition():.0f}, for which a factor of B⁽⁰⁾ pays"
        )
        y = Evaluated(found.point, *found.evaluated)
        fresh = evaluate(form, better.solve(plane.c))
        if iterate(fresh, plane.c).value < iterate(y, plane.c).value:
            y = fresh
        return y, better, reason

    def _with_factor(self, plane: Plane, metric: Metric, y: Evaluated, reason: str):
        """Yield iterates until a factor of the Hessian promises to pay; return the point, the metric, and why.

        The terms weigh qᵢ there, and a little more, as those that are almost zero at y may not be at the solution.
        """
        form, watch = plane.form, Conditioning(PRODUCTS)
        last = self._last(form, metric)
        for found in _saying(reason, newton_cg(plane, metric, y, FORCING, PRODUCTS, watch, last)):
            yield found
            if self.digits > FEW_DIGITS and len(watch.steps) > PAYING + form.factor_cost() / PAYING:
                break
        else:
            return y, None, reason
        y = Evaluated(found.point, *found.evaluated)
        squares = form.term_squares(y.image)
        made = form.weighted(squares / squares.mean() + SMOOTHING, "single")
        return y, made, f"{reason}, then by the Hessian on the way"

    def _last(self, form: Form, metric: Metric) -> Last:
        """Return how far the last direction goes: a dual point is corrected by the metric, or on few of the terms."""
        if metric.tau is None:
            dearer = max(1.0, form.terms * form.rank / (FEW_ROWS * form.dim))
        else:
            dearer = metric.tau.size / np.count_nonzero(metric.tau)
        return Last(10.0**-self.digits, UNEVEN * dearer)

    def _factor_pays(self, form: TermForm, condition: float) -> bool:
        """Say whether the passes still to go are more without a factor than with one."""
        share = self.digits / 10.0
        without = share * PER_ROOT * math.sqrt(condition)
        return without > form.factor_cost() + (BESIDE + SOLVES * share) * (1.0 + form.solve_cost())


def digits(rel_gap: float | None) -> float:
    """Return the digits to go."""
    return USUAL_DIGITS if not rel_gap else min(max(-math.log10(rel_gap), DIGITS[0]), DIGITS[1])


def partial(metric: Metric) -> bool:
    """Say whether a metric is B(τ) of a sample of the terms."""
    return metric.sample is not None


def _saying(reason: str, iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Yield iterates, the first of which gives a reason."""
    for found in iterates:
        yield found._replace(reason=reason) if reason else found
        reason = ""


class Conditioning:
    """The condition number that runs of conjugate gradients have seen, from the Ritz values of the longest.

    The runs it watches end after ``products``, twice as many each time that was too few. Ritz values of a run that was
    cut short have not reached the ends of the spectrum: the condition number counts UNSEEN times.

    Parameters
    ----------
    products : int
        The most products of the first run.
    """

    def __init__(self, products: int) -> None:
        self.products = products
        self.steps: list[float] = []
        self.ratios: list[float] = []
        self.longest: tuple[list[float], list[float]] = ([], [])
        self.cut = False

    def begin(self) -> None:
        """Take the coefficients that follow as those of a new run."""
        if self.cut:
            self.products *= 2
        self.steps, self.ratios, self.cut = [], [], False

    def add(self, step: float, ratio: float) -> None:
        """Take the coefficients of one product."""
        self.steps.append(step)
        self.ratios.append(ratio)
        self.cut = len(self.steps) >= self.products
        if len(self.steps) >= len(self.longest[0]):
            self.longest = (self.steps, self.ratios)

    def condition(self) -> float:
        """Return the ratio of the largest and the smallest Ritz value, or what it may well be."""
        steps, ratios = map(np.array, self.longest)
        if len(steps) < 2:
            return 1.0
        low, high = ritz_values(steps, ratios)
        return high / max(low, 1e-16 * high) * (UNSEEN if self.cut else 1.0)
