"""Which method, in which metric? What ``solve`` uses unless told otherwise: Newton directions at the least cost.

Costs are counted in passes. A dense factor of n unknowns costs so many that it must save as many, and what it saves
depends on the conditioning, of which the first conjugate gradients tell.
"""

from __future__ import annotations

import math

import numpy as np

from quartbench import precondition
from quartbench.model import ComplexForm, GramForm, GraphForm, Metric, Problem, StackedForm
from quartbench.model.certificate import DENSE_DIMENSION, ritz_values
from quartbench.model.laplacians import DENSE_VERTICES
from quartbench.precondition.factor import factored_single, uniform_weights

from .accel_homgd import AccelHomGD
from .base import Solver, automatic_metric, register
from .homnewton import HomNewton
from .homnewton_cg import HomNewtonCG, newton_cg
from .plane import Plane, iterate
from .steps import Evaluated, evaluate

#: Unknowns up to which a dense Hessian is so cheap that exact Newton directions win.
SMALL = 60

#: Passes that a factor may cost to be made without a look at the conditioning.
CHEAP_FACTOR = 30.0

#: A factor in single precision costs n/FACTOR passes over dense rows, as BLAS-3 computes so much faster than memory
#: is read, and a solve with it n/m of a pass.
FACTOR = 20.0

#: A factor of the Hessian is made once a direction has taken this many products more than the share of its cost in
#: passes: it halves those of the directions to come.
PAYING = 4.0

#: Digits up to which the directions to come are too few to repay it.
FEW_DIGITS = 7.0

#: Share of their mean that is added to the weights of the terms in it.
SMOOTHING = 0.1

#: The settings of HomNewtonCG.
FORCING, PRODUCTS = HomNewtonCG().forcing, HomNewtonCG().products

#: Passes that a factor of the Laplacian of a large graph costs, and a solve with it.
GRAPH_FACTOR, GRAPH_SOLVE = 100.0, 25.0

#: Products of the first direction, after which its Ritz values have a first idea of the conditioning.
PROBE = 12

#: How much larger the condition number may well be than the Ritz values of a run that was cut short say.
UNSEEN = 3.0


@register("auto")
class Auto(Solver):
    """The method, metric and threads that suit a problem, chosen by its shape and a look at its conditioning.

    Problem
    -------
    Any: min ρ(y) over y ∈ K, ⟨c,y⟩ = 1.

    Algorithm
    ---------
    - the second-order cone: ``accel-homgd``;
    - few unknowns: ``homnewton``;
    - else ``homnewton-cg``: on graphs in the metric of the Laplacian; on rows in B⁽⁰⁾, factored in single precision,
      where that costs few passes; else without a factor, until the Ritz values of a run of conjugate gradients
      promise that B⁽⁰⁾ pays for itself; and then in the Hessian on the way, where directions still take many products.

    Guarantee
    ---------
    That of the method chosen, which the message of the result names with the reason.

    Reference
    ---------
    This project's; the costs in passes are measured by its benchmarks.
    """

    costly = True

    def __init__(self) -> None:
        self.method = ""
        self._digits = 8.0

    def choose_metric(self, problem, rel_gap):
        """Return the metric of the method for this problem."""
        form, cone = problem.form, problem.cone
        if rel_gap:
            self._digits = min(max(-math.log10(rel_gap), 1.0), 14.0)
        name, options = automatic_metric(problem), {}
        if isinstance(form, GraphForm) and form.points > DENSE_VERTICES:
            name = "diagonal"
        elif cone.subspace and isinstance(form, StackedForm | ComplexForm):
            if form.dim <= SMALL or self._factor_cost(form) <= CHEAP_FACTOR:
                name, options = "uniform", {"precision": "single"}
            else:
                name = "diagonal" if isinstance(form, StackedForm) and form.sparse else "identity"
        return precondition.metric(form.scaled(1.0), name, **options)

    def prepare(self, problem, metric):
        """Choose the method, and say why."""
        form, cone = problem.form, problem.cone
        if not (cone.subspace or cone.name == "orthant"):
            self.method, self.reason = "accel-homgd", f"accel-homgd, as the cone is {cone.name}"
        elif isinstance(form, StackedForm | ComplexForm) and form.dim <= SMALL:
            self.method, self.reason = "homnewton", f"homnewton, as n = {form.dim} is small"
        else:
            self.method = "homnewton-cg"
            if isinstance(form, GramForm):
                why = "as no metric is better on a Gram form"
            elif metric.diagonal is None:
                why = f"preconditioned by {metric.name}, which costs few passes"
            elif cone.name == "orthant":
                why = f"in the metric {metric.name}, as the cone is the orthant"
            else:
                why = "without a factor, which would cost more than it saves"
            self.reason = f"homnewton-cg {why}"

    def iterates(self, problem, metric, start):
        """Yield the iterates of the method, or of one method after another."""
        if self.method == "accel-homgd":
            yield from AccelHomGD().iterates(problem, metric, start)
        elif self.method == "homnewton":
            yield from HomNewton().iterates(problem, metric, start)
        else:
            yield from self._newton_cg(problem, metric, start)

    def _newton_cg(self, problem: Problem, metric: Metric, start: np.ndarray):
        form, plane = problem.form, Plane(problem)
        y = evaluate(form, start)
        yield iterate(y, plane.c)
        factorable = isinstance(form, GraphForm) or form.dim <= DENSE_DIMENSION
        if problem.cone.subspace and factorable and not isinstance(form, GramForm):
            if metric.diagonal is not None:
                y, metric = yield from self._without_factor(plane, metric, y)
            if metric is not None and not isinstance(form, GraphForm):
                y, metric = yield from self._with_factor(plane, metric, y)
        if metric is not None:
            yield from newton_cg(plane, metric, y, FORCING, PRODUCTS)

    def _without_factor(self, plane: Plane, metric: Metric, y: Evaluated):
        """Yield iterates until a factor promises to pay; return the point to go on from and the metric, or None."""
        form, watch = plane.form, Conditioning(PROBE)
        for found in newton_cg(plane, metric, y, FORCING, PRODUCTS, watch):
            yield found
            if self._factor_pays(form, watch.condition()):
                break
        else:
            return y, None
        better = factored_single(form, uniform_weights(form))
        self.reason = (
            f"homnewton-cg, at first without a factor; conjugate gradients saw a condition number of some "
            f"{watch.condition():.0f}, for which a factor of B⁽⁰⁾ pays"
        )
        y = Evaluated(found.point, *found.evaluated)
        fresh = evaluate(form, better.solve(plane.c))
        if fresh.rho / float(plane.c @ fresh.point) ** 4 < y.rho / float(plane.c @ y.point) ** 4:
            y = fresh
        return y, better

    def _with_factor(self, plane: Plane, metric: Metric, y: Evaluated):
        """Yield iterates until a factor of the Hessian promises to pay; return the point to go on from and the metric.

        The terms weigh qᵢ there, and a little more, as those that are almost zero at y may not be at the solution.
        """
        form, watch = plane.form, Conditioning(PRODUCTS)
        for found in newton_cg(plane, metric, y, FORCING, PRODUCTS, watch):
            yield found
            if self._digits > FEW_DIGITS and len(watch.steps) > PAYING + self._factor_cost(form) / PAYING:
                break
        else:
            return y, None
        y = Evaluated(found.point, *found.evaluated)
        squares = np.square(y.image).reshape(-1, form.rank).sum(axis=1)
        self.reason += ", then by the Hessian on the way"
        return y, factored_single(form, squares / squares.mean() + SMOOTHING)

    @staticmethod
    def _factor_cost(form: StackedForm | ComplexForm | GraphForm) -> float:
        """Return the passes that a factor costs, in single precision on rows."""
        if isinstance(form, GraphForm):
            return GRAPH_FACTOR
        entries, n = _entries(form), form.rows.shape[1]
        gram = n / FACTOR if entries == form.rows.shape[0] * n else entries / form.rows.shape[0]
        return gram + n**3 / (3.0 * FACTOR * entries)

    def _factor_pays(self, form: StackedForm | ComplexForm | GraphForm, condition: float) -> bool:
        """Say whether the passes still to go are more without a factor than with one."""
        share = self._digits / 10.0
        solve = GRAPH_SOLVE if isinstance(form, GraphForm) else form.rows.shape[1] ** 2 / _entries(form)
        return share * 9.0 * math.sqrt(condition) > self._factor_cost(form) + (10.0 + 38.0 * share) * (1.0 + solve)


def _entries(form: StackedForm | ComplexForm) -> int:
    sparse = isinstance(form, StackedForm) and form.sparse
    return form.rows.nnz if sparse else form.rows.size


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
