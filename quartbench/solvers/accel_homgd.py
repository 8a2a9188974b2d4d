"""Algorithm 2 of the paper: accelerated gradient descent on √ρ over 𝒞, with restarts; and the restarts we add."""

from __future__ import annotations

import math
from collections.abc import Iterator

from quartbench.metrics import Bounds

from .contract import Iterate, Solver, choice, homogenised
from .registry import register
from .steps import LineSearch, RootStep, evaluate, required_bounds

#: At a restart the line search may try a longer step again: within a stage theory wants t not to grow. After a stage of
#: so many steps or fewer it does not, so that rejected trials stay rare.
REGROWTH, LONG_STAGE = 1.5, 8


@register("accel-homgd")
class AccelHomGD(Solver):
    """Accelerated homogenised gradient descent, Algorithm 2: O(κ²/k⁴) by restarts.

    Problem
    -------
    min √ρ(y) over y ∈ K, ⟨c,y⟩ = 1; then x = s(y)y minimises f (Prop. 4.2).

    Algorithm
    ---------
    In a stage, from z_0 = y_0: y_{k+1} = argmin {⟨∇√ρ(z_k),y⟩ + ‖y − z_k‖²/(2t) : y ∈ K, ⟨c,y⟩ = 1} and
    z_{k+1} = y_{k+1} + k/(k+3)·(y_{k+1} − y_k). A stage ends after the steps of the schedule, or when its momentum
    points uphill, ⟨∇√ρ(z_k), y_{k+1} − y_k⟩ > 0; the next starts at the better of its two ends. One pass per iteration:
    it is at z_{k+1}, and gives the image of y_{k+1} too, as images are linear.

    Guarantee
    ---------
    With L/μ = √27 κ and stages of 1, 2, 4, … steps, δ = √ρ(y)/√ρ(y*) − 1 is reached within
    32√(L/μ)(δ_0^{1/4} + 2^{1/4})/δ^{1/4} steps (Prop. 4.5 with errata 8 of the documentation). With early stages of N =
    ⌈4√(L/μ)⌉ steps while δ may be 2 or more, each of which halves δ, and stages N, 2N, 4N, … after them: within
    N(⌈log₂(δ_0/2)⌉₊ + 2(128/δ)^{1/4}), free of powers of δ_0. Restarts on the slope come without a rate of their own,
    but no stage starts worse than the one before, and the first step of each is one of HomGD.

    Which restarts
    --------------
    By the runs of the study ``paper``: on generic rows, where convergence ends up linear, "adaptive" takes the fewest
    iterations, then "scheduled", then "none". Where ρ″(x*) is singular (``instances.degenerate``) the order of the last
    two reverses: there the gap falls like k⁻⁴ with and without the schedule, which throws away the momentum of every
    stage, and "none" is ahead by two to four digits. "adaptive" keeps up with the better of the two on both kinds, with
    either rule for the step.

    Reference
    ---------
    Dragomir & Nesterov, *Convex quartic problems: homogenized gradient method and preconditioning* (2023), Algorithm 2
    and Thm 4.7; O'Donoghue & Candès, *Adaptive restart for accelerated gradient schemes*, for the test on the slope.

    Parameters
    ----------
    restart : {"adaptive", "scheduled", "none"}
        When a stage ends: on the slope, after 1, 2, 4, … steps as the paper has it, or never.
    step : {"armijo", "fixed"}
        A line search, or t = 1/(6β) with the metric's β.
    early : bool
        Whether stages have the lengths of errata 8 of the documentation: early ones of N steps, which need the metric's
        bounds, then N, 2N, 4N, …. They are for the guarantee; on degenerate rows they cost what the schedule costs.

    Examples
    --------
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.02, seed=0)
    >>> plain = qb.solve(problem, qb.solvers.HomGD(), "identity", rel_gap=1e-8)
    >>> accelerated = qb.solve(problem, qb.solvers.AccelHomGD(), "identity", rel_gap=1e-8)
    >>> accelerated.status, accelerated.nit < plain.nit
    ('converged', True)
    """

    version = 2

    def __init__(self, restart: str = "adaptive", step: str = "armijo", early: bool = False) -> None:
        self.restart = choice("restart", restart, ("adaptive", "scheduled", "none"))
        self.step = choice("step", step, ("armijo", "fixed"))
        self.early = bool(early)

    def prepare(self, problem, metric):
        """Compute the bounds that fixed steps and early stages need."""
        if self.step == "fixed" or self.early:
            required_bounds(metric)

    def iterates(self, problem, metric, start):
        """Yield y₀, then the y of every step; one pass each, and one more where the line search shortens a step."""
        form, step = problem.form, RootStep(problem, metric)
        best = evaluate(form, start)
        yield Iterate(best.point, homogenised(best.rho), evaluated=best[1:])
        fixed, adaptive = self.step == "fixed", self.restart == "adaptive"
        search = None if fixed else LineSearch(form, step, best, growth=1.0)
        t = 1.0 / (6.0 * required_bounds(metric).beta) if fixed else search.t
        image = spare = None  # images of y that nobody needs any more
        for stage, length in enumerate(self._lengths(metric)):
            z = best
            before, restarted = z.point, stage > 0
            image_before = z.image
            k = 0
            while True:
                theta = 0.0 if k + 1 == length else k / (k + 3.0)
                y, point, squared, uphill = step.accelerated(z, t, before, theta)
                ends = k + 1 == length or (adaptive and uphill > 0.0 and k > 0)
                if ends:
                    theta, point = 0.0, y
                ahead = evaluate(form, point)
                image, line = form.line_behind(z.image, ahead.image, image_before, theta, image)
                while not (fixed or search.accepts(line, squared)):
                    y, squared = search.shorten(z, y, squared)
                    t = search.t
                    ahead = evaluate(form, y + theta * (y - before))
                    image, line = form.line_behind(z.image, ahead.image, image_before, theta, image)
                yield Iterate(y, homogenised(sum(line)), t, restarted, ahead[1:] if ends else None)
                if ends:
                    break
                z, before, restarted = ahead, y, False
                image_before, image, spare = image, spare, image
                k += 1
            if ahead.rho <= best.rho:
                best = ahead
            if not fixed and k >= LONG_STAGE:
                search.t = t = REGROWTH * t

    def _lengths(self, metric) -> Iterator[float]:
        """Yield the most steps of each stage."""
        if self.restart == "none":
            yield math.inf
        length = 1
        if self.early:
            bounds = required_bounds(metric)
            length = early_length(bounds)
            yield from [length] * early_stages(bounds)
        elif self.restart == "adaptive":
            length = math.inf
        while True:
            yield length
            length *= 2


def early_length(bounds: Bounds) -> int:
    """Return ⌈4√(L/μ)⌉, the steps that halve δ while δ ≥ 2 (errata 8 of the documentation)."""
    return math.ceil(4.0 * math.sqrt(math.sqrt(27.0) * bounds.kappa))


def early_stages(bounds: Bounds) -> int:
    """Return ⌈log₂(δ_0/2)⌉₊ with δ_0 ≤ κ − 1 (errata 7 of the documentation): the stages after which δ < 2."""
    return max(0, math.ceil(math.log2(max((bounds.kappa - 1.0) / 2.0, 1e-300))))
