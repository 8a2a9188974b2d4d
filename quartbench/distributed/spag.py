"""Statistical preconditioning (§2.2): steps in the geometry of a sample of the terms, one round of messages each."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import numpy as np

from quartbench.errors import DeficientError, ProblemError, whole_number
from quartbench.forms import StackedForm, TermForm
from quartbench.model import Problem
from quartbench.solvers import Iterate, Prepared, Solver, prepare, register
from quartbench.solvers.contract import choice
from quartbench.solvers.steps import Evaluated, evaluate

from .sampling import reference

#: The relative gap of the problems on the sample, and the most iterations that one may take.
INNER, INNER_ITERATIONS = 1e-12, 2000

#: Below this share of ρ a Bregman distance from values is rounding, and comes from gradients.
SMALL = 1e-9

#: L is a little above what a step has shown, falls by so much at the most, and rises by so much where f did not fall.
ABOVE, FALL, STEEPER = 1.05, 0.7, 1.5

#: Steps in a row without a visible decrease after which there is nothing left to gain.
PATIENCE = 8

#: No step changes f visibly below this share of it.
ROUNDING = 1e-15


class Geometry:
    """ρ̃ on a cone, and what solves with it: prepared once, with warm starts from one step to the next."""

    def __init__(self, sample: TermForm, problem: Problem) -> None:
        self.sample = sample
        self.prepared: Prepared = prepare(sample, problem.cone, rel_gap=INNER)
        if self.prepared.deficient:
            raise DeficientError("ρ̃ vanishes in a direction in which ρ may not")

    def step(self, at: np.ndarray, gradient: np.ndarray, level: float) -> np.ndarray:
        """Return argmin ⟨g,x⟩ + L·D_ρ̃(x,y) over K, which is argmin ρ̃(x) − ⟨∇ρ̃(y) − g/L, x⟩: the step of §2.2."""
        linear = self.sample.gradient(at) - gradient / level
        if not linear.any():
            return np.zeros_like(at)
        start = at if float(linear @ at) > 0.0 else None
        try:
            return self.sample.flat(self.prepared.solve(linear, start, max_iter=INNER_ITERATIONS).x)
        except ProblemError:  # where the sample hardly grows, its minimiser may be no number: L was too small
            return np.zeros_like(at)

    def ratio(self, at: Evaluated, to: Evaluated) -> float:
        """Return D_ρ/D_ρ̃ from one point to another: between the μ_m and L_m of §2.2."""
        h = to.point - at.point
        ours = distance(at.rho, at.gradient, to.rho, to.gradient, h)
        theirs = distance(*self.sample.value_and_gradient(at.point), *self.sample.value_and_gradient(to.point), h)
        return ours / theirs if theirs > 0.0 and ours > 0.0 else math.nan


def distance(value: float, gradient: np.ndarray, there: float, slope: np.ndarray, h: np.ndarray) -> float:
    """Return D(x + h, x) from values and gradients at both; from gradients alone where values have lost it."""
    found = there - value - float(gradient @ h)
    return found if found > SMALL * (abs(there) + abs(value)) else 0.5 * float((slope - gradient) @ h)


class _Sampled(Solver):
    """What both methods share: the sample, drawn and prepared once, and the levels that steps have shown."""

    metric = "identity"

    def __init__(self, share: float, sampling: str, seed: int) -> None:
        if not 0.0 < share <= 1.0:
            raise ProblemError(f"share must be a share of the terms, above 0 and at most 1, found {share!r}")
        self.share, self.seed = share, seed
        self.sampling = choice("sampling", sampling, ("uniform", "lewis"))

    def planned(self, problem, metric, rel_gap):
        """Return the method with its sample, which it has then not to draw for every c."""
        planned = copy.copy(self)
        planned._geometry = self._made(problem)
        count = planned._geometry.sample.terms
        planned.reason = f"in the geometry of {count} of {problem.form.terms} terms, {self.sampling} sampling"
        return planned

    def _made(self, problem: Problem) -> Geometry:
        sample = reference(problem.form, self.share, self.sampling, self.seed)
        try:
            return Geometry(sample, problem)
        except ProblemError as error:
            if sample.terms == problem.form.terms:
                raise
            other = " or sampling='lewis'" if self.sampling == "uniform" else ""
            raise ProblemError(
                f"the sample needs to see every direction, found that its {sample.terms} terms do not: take a larger "
                f"share{other}"
            ) from error

    def iterates(self, problem, metric, start):
        """Yield points of which each has a smaller f than the one before."""
        form, c = problem.form, problem.c
        geometry = getattr(self, "_geometry", None) or self._made(problem)
        y = on_ray(problem, evaluate(form, start))
        value = y.rho - float(c @ y.point)
        yield Iterate(y.point, value, evaluated=y[1:])
        steps, level, idle, least, largest = self._steps(problem, geometry), 1.0, 0, math.inf, 0.0
        next(steps)
        while idle < PATIENCE:
            point = steps.send((y, level))
            if not float(c @ point) > 0.0:
                level *= STEEPER
                idle += 1
                continue
            new = on_ray(problem, evaluate(form, point))
            found, ratio = new.rho - float(c @ new.point), geometry.ratio(y, new)
            if math.isfinite(ratio):
                least, largest = min(least, ratio), max(largest, ratio)
            if not found < value:
                level = max(STEEPER * level, ABOVE * ratio if math.isfinite(ratio) else 0.0)
                idle += 1
                continue
            used = 1.0 / level
            if math.isfinite(ratio):
                level = max(ABOVE * ratio, FALL * level)
            idle = 0 if found < value - ROUNDING * abs(value) else idle + 1
            y, value = new, found
            reason = f"{self.reason}, relative smoothness between {least:.2g} and {largest:.2g} along its steps"
            yield Iterate(y.point, value, used, evaluated=y[1:], reason=reason if largest > 0.0 else "")

    def _steps(self, problem: Problem, geometry: Geometry) -> Iterator[np.ndarray]:
        """Take (y, level) again and again, and yield where to go from there: a coroutine, as momentum has a past.

        The same y comes again where f was larger than at y there.
        """
        raise NotImplementedError


@register("spag")
class SPAG(_Sampled):
    """Statistically preconditioned accelerated gradients: one round per step, in the geometry of a sample.

    Problem
    -------
    min f(x) = ρ(x) − ⟨c,x⟩ over K, where a gradient of ρ costs a round of communication and the driver has a sample of
    the terms, ρ̃(x) = Σ_{i∈I} ⟨x,Bᵢx⟩²/pᵢ.

    Algorithm
    ---------
    1. z = argmin {⟨∇f(y),x⟩ + L·D_ρ̃(x,y) : x ∈ K}, the step of §2.2: our own problem with c = ∇ρ̃(y) − ∇f(y)/L.
    2. y⁺ = z + β(z − z_before), β as Nesterov's, moved to the best point of its ray, where f and ∇f are evaluated: the
       round of the step.
    3. L follows D_ρ/D_ρ̃ between y and y⁺. Where f did not fall, the step is taken again from y, without momentum and
       with a larger L (the safeguard).

    Guarantee
    ---------
    f decreases monotonically. Where μ_m∇²ρ̃ ⪯ ∇²ρ ⪯ L_m∇²ρ̃, as in §2.2, steps with L ≥ L_m and without momentum
    reduce f − f* by 1 − μ_m/L_m each (Lu, Freund & Nesterov); with a sample of k = O(n) even terms L_m/μ_m is O(1),
    whatever the conditioning of ρ. It holds for ρ, not for a difference F = ρ − φ (errata 16 of the documentation).

    Reference
    ---------
    Dragomir & Nesterov, §2.2; Hendrikx, Xiao, Bubeck, Bach & Massoulié, *Statistically preconditioned accelerated
    gradient method for distributed optimization*.

    Parameters
    ----------
    share : float
        The share of the terms in the sample.
    sampling : {"uniform", "lewis"}
        How they are drawn: evenly, without a look at them, or by Lewis weights, which takes a few sweeps.
    acceleration : bool
        Whether there is momentum.
    seed : int
        Of the sample.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=5000, n=20, sigma_min=0.02, seed=0)
    >>> spag = qb.solve(problem, qb.distributed.SPAG(0.05))
    >>> gradients = qb.solve(problem, "accel-homgd", "identity")
    >>> spag.status, spag.passes < gradients.passes
    ('converged', True)
    """

    def __init__(
        self, share: float = 0.02, sampling: str = "uniform", acceleration: bool = True, seed: int = 0
    ) -> None:
        super().__init__(share, sampling, seed)
        self.acceleration = acceleration

    def _steps(self, problem, geometry):
        y, level = yield
        before, t = None, 1.0
        while True:
            z = geometry.step(y.point, y.gradient - problem.c, level)
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
            momentum = (t - 1.0) / following if self.acceleration and before is not None else 0.0
            point = z + momentum * (z - before) if momentum > 0.0 else z
            point = point if problem.cone.subspace else problem.cone.euclidean(point)
            at = y
            y, level = yield point
            before, t = (None, 1.0) if y is at else (z, following)


@register("bregman-stochastic")
class BregmanStochastic(_Sampled):
    """Stochastic Bregman gradients in the geometry of a sample, with the variance of the gradients reduced.

    Problem
    -------
    As for ``spag``.

    Algorithm
    ---------
    From y with its full gradient, ``batches`` steps as that of ``spag``, with g = ∇ρ_b(x) − ∇ρ_b(y) + ∇f(y) for the
    gradient, where ρ_b is m/|b| times the sum of a fresh batch b of terms: an unbiased estimate of ∇f(x), exact at y.
    Then f and ∇f are evaluated at where they have led; where f did not fall, they are taken again with a larger L. An
    iteration fetches the rows of its batches, and sends one point.

    Guarantee
    ---------
    f decreases monotonically; with exact gradients the rate of ``spag`` without momentum, for every step.

    Reference
    ---------
    Dragomir & Nesterov, §2.2; Johnson & Zhang, *Accelerating stochastic gradient descent using predictive variance
    reduction*.

    Parameters
    ----------
    share, sampling, seed
        As for ``spag``.
    batches : int
        The steps between two full gradients.
    batch : float
        The share of the terms in a batch, at least as many rows as there are unknowns.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=5000, n=20, sigma_min=0.02, seed=0)
    >>> method = qb.distributed.BregmanStochastic(0.05)
    >>> qb.solve(problem, method, max_iter=50).gap < 0.1
    True
    """

    def __init__(
        self, share: float = 0.02, sampling: str = "uniform", batches: int = 3, batch: float = 0.01, seed: int = 0
    ) -> None:
        super().__init__(share, sampling, seed)
        if not 0.0 < batch <= 1.0:
            raise ProblemError(f"batch must be a share of the terms, above 0 and at most 1, found {batch!r}")
        self.batches, self.batch = whole_number(batches, "batches"), batch

    def _steps(self, problem, geometry):
        form, rng = problem.form, np.random.default_rng(self.seed + 1)
        count = min(max(int(self.batch * form.terms), -(-form.dim // form.rank)), form.terms)
        y, level = yield
        while True:
            x = y.point
            for batch in self._drawn(form, rng, count):
                g = batch.gradient(x) - batch.gradient(y.point) + y.gradient - problem.c
                x = geometry.step(x, g, level)
            y, level = yield x

    def _drawn(self, form: TermForm, rng: np.random.Generator, count: int) -> Iterator[TermForm]:
        """Give the forms of batches of so many terms, all of them fetched at once."""
        chosen = [np.sort(rng.choice(form.terms, count, replace=False)) for _ in range(self.batches)]
        picked = np.unique(np.concatenate(chosen))
        pool = form.term_rows(picked)
        root = form.scale * (form.terms / count) ** 0.25
        for terms in chosen:
            places = np.searchsorted(picked, terms)[:, None] * form.rank + np.arange(form.rank)
            yield StackedForm(root * pool[places.reshape(-1)], form.rank)


def on_ray(problem: Problem, y: Evaluated) -> Evaluated:
    """Return the best point of the ray of y: ρ is homogeneous, so that nothing has to be evaluated again."""
    s = problem.best_scale(y.rho, float(problem.c @ y.point))
    return y if s == 0.0 else Evaluated(s * y.point, s**4 * y.rho, s**3 * y.gradient, s * y.image)
