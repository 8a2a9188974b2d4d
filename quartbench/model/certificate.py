"""Certificates that are true in exact arithmetic: how large f(x) can be at the very x, how small f* can be.

**The upper bound.** Images are known with componentwise bounds (``form.known_image``), so ρ(x) is at most what the
form's ``known_value`` says, and ⟨c,x⟩ is known in twice the precision. x is in the cone (``cone.inside``).

**The lower bound.** Let N(c) = max{⟨c,x⟩ : x ∈ K, ρ(x) ≤ 1}. Along a ray with ρ(x) = 1 and ⟨c,x⟩ = a ≥ 0, min over t
of t⁴ − at is −¾ 4^{−1/3} a^{4/3}; so f* = −¾ 4^{−1/3} N(c)^{4/3}. N is subadditive and nonnegative, and for every λ

    N(c) ≤ N(Mᵀλ) + N(r),  r = c − Mᵀλ,

where the form bounds the first (``dual_size``: Hölder's inequality, for a sum of terms). λ may be any numbers, and is a
sum of two doubles here: then what rounding leaves of r is of the order u² and not u. r is known with bounds. If r − w
is in the polar cone, ⟨r,x⟩ ≤ ⟨w,x⟩ on K, so N(r) ≤ N_free(w): the cone says which w (``cone.outside``), and the form
has a proof that bounds N_free (``form.proof``: a Cholesky factor, a spanning tree). A λ that is short of feasible costs
N(w), linearly; corrections move it, which costs nothing to first order, and then N(w) is at the level of rounding.

**Scale.** With rows sM, M as stored, M = 2ᵃM', c = 2ᵇc' and x = 2ᵉx', f(x) = 2^{b+e}(gρ'(x') − ⟨c',x'⟩), where g = s⁴
2^{4a+3e−b} is near one, and N of gρ' is g^{−1/4} that of ρ'. Powers of two round nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.forms import TermForm
from quartbench.forms.curvature import BoundaryCurvature, Curvature
from quartbench.kernels import exact
from quartbench.linalg.known import Known, U, finite, ldexp, up
from quartbench.metrics import Metric

from .estimate import belongs, certifying_metric, estimate
from .problem import Problem

#: At least ¾ 4^{−1/3} = 0.472470393710577436…
CONSTANT = 0.47247039371057750

#: A rest of this share of N(c) is of no consequence beside the rounding of the sums.
ENOUGH = 1e-17

#: Gaps from which on plain sums with a bound on their rounding are tried before sums in twice the precision.
PLAIN = 1e-9

#: With which proof, coarse or sharp, and which sums, plain or precise, it is tried, one turn after another; the last is
#: thorough.
TURNS = ((False, False), (False, True), (True, True))

#: How often a dual point is corrected; and unknowns up to which corrections follow the Hessian where others fail.
ROUNDS, FEW = 4, 100

#: How far from the cone a point may be, relative to its size, to be moved into it and not refused.
NEAR = 1e-12

Correction = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Certificate(NamedTuple):
    """f(x) ≤ value, lower_bound ≤ f*, and gap ≥ (f(x) − f*)/|f*|.

    In exact arithmetic where ``proved``; where a form gives products without bounds, or is too large to factor, or a
    cone is not ``rigorous``, up to rounding as they are trusted to round.

    Examples
    --------
    >>> problem = qb.Problem(np.eye(2), [4.0, 4.0])  # f* = −6
    >>> found = qb.certify(problem, [1.0, 1.0])
    >>> found.lower_bound <= -6.0 <= found.value, found.gap < 1e-14, found.proved
    (True, True, True)
    """

    value: float
    lower_bound: float
    gap: float
    proved: bool = True


def certify(
    problem: Problem, x: Any, metric: Metric | None = None, rel_gap: float = 0.0, refine: int = 8
) -> Certificate:
    """Certify the best point of a ray: f there, a lower bound on f*, and their gap, true in exact arithmetic.

    Parameters
    ----------
    problem : Problem
    x : array
        A point of the cone. It is moved to the best point of its ray first, so its scale does not matter.
    metric : Metric, optional
        B(τ) of the form, to find a dual point with; made here where it is not given.
    rel_gap : float
        The gap that is good enough: more is not tried.
    refine : int
        Steps of conjugate gradients (a pass each) that may sharpen the first dual point.

    Examples
    --------
    >>> problem = qb.Problem(qb.StackedForm(np.eye(2)), [4.0, 4.0])
    >>> found = qb.certify(problem, [1.0, 1.01])
    >>> found.lower_bound <= -6.0 <= found.value, found.proved
    (True, True)
    >>> 0.0 < found.gap < 1e-3
    True
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem must be a Problem, found {type(problem).__name__}")
    if metric is not None and not isinstance(metric, Metric):
        raise ProblemError(f"metric must be a Metric, found {type(metric).__name__}")
    if problem.trivial:
        return Certificate(0.0, 0.0, 0.0, problem.cone.rigorous)
    flat = problem.form.flat(x)
    if not np.isfinite(flat).all():
        raise ProblemError("x must be finite, found NaN or infinity")
    _require_inside(problem, flat)
    flat = problem.cone.inside(flat)
    scaled = problem.normalised()
    inner = scaled.problem
    point = flat / (float(np.abs(flat).max()) or 1.0)
    evaluated = inner.form.evaluate(point)
    scale = inner.best_scale(evaluated[0], inner.inner(point))
    if scale == 0.0:
        return Certificate(0.0, -math.inf, math.inf)
    if metric is None or not belongs(metric, problem.form.twin(), problem.cone):
        metric = certifying_metric(inner.form)
    elif inner.form.scale != problem.form.scale:
        metric = metric.rescaled(1.0, inner.form.scale / problem.form.scale)
    found = estimate(inner, point, metric, evaluated, refine)
    return prove(problem, scaled.x_scale * (scale * point), Dual(inner, found.dual, metric), rel_gap)[1]


def value_at(problem: Problem, x: np.ndarray) -> float:
    """Return a number that is at least f(x) at a flat point of the cone, proved where the form is ``rigorous``."""
    units = Units(problem)
    point = np.ldexp(x, -units.e)
    value = units.value(units.image(point, True), problem.cone.inner(units.c, point))
    return up(ldexp(value, units.b + units.e))


class Dual(NamedTuple):
    """A dual point of the normalised problem as it was computed, and B(τ) there to correct it with; either may be None.

    Nothing has to be proved of either.
    """

    problem: Problem
    point: Any
    metric: Metric | None


def _require_inside(problem: Problem, x: np.ndarray) -> None:
    """Raise for a point outside the cone: f at the point next to it is that of another."""
    if problem.cone.whole or not problem.form.cone.whole:  # where ρ does not see what is outside, nor does f
        return
    near = x / (float(np.abs(x).max()) or 1.0)  # squares of 1e±160 would leave the range
    distance, norm = np.linalg.norm(near - problem.cone.euclidean(near)), np.linalg.norm(near)
    if distance > NEAR * norm:
        raise ProblemError(
            f"x must lie in the cone {problem.cone!r}, found it outside by {distance / norm:.2g} of its norm"
        )


# The proof ------------------------------------------------------------------------------------------------------------


def prove(problem: Problem, x: np.ndarray, dual: Dual | None, rel_gap: float) -> tuple[np.ndarray, Certificate]:
    """Return x, moved into the cone where rounding took it out, and its certificate: one that is enough, or the best.

    Parameters
    ----------
    problem : Problem
        As the user gave it.
    x : array of shape (n,)
        Flat, in the user's units.
    dual : Dual or None
        A dual point to start from; that of x where it is not given.
    rel_gap : float
        The gap that is good enough.
    """
    units = Units(problem)
    form, cone = problem.form, problem.cone
    point = cone.inside(np.ldexp(x, -units.e))
    returned = np.ldexp(np.ldexp(point, units.e), -units.e)
    if not np.array_equal(returned, point):  # below 1e-308 it is rounded in the user's units, and may leave the cone
        point = returned
        if not np.array_equal(cone.inside(point), point):
            return np.ldexp(point, units.e), Certificate(math.inf, -math.inf, math.inf, False)
    inner = cone.inner(units.c, point)
    best = Certificate(math.inf, -math.inf, math.inf, False)
    image, before = None, (None, None)
    for sharp, precise in TURNS if rel_gap >= PLAIN else TURNS[1:]:
        proof = form.proof(sharp)
        if precise != before[1]:
            image = units.image(point, precise)
        value = min(best.value, units.value(image, inner))
        lower = best.lower_bound
        if proof is not None:
            given = None if (proof, precise) == before else dual
            for attempt in _attempts(units, cone, proof, image, point, given, precise, sharp or dual is None):
                lower = max(lower, attempt(lambda bound, value=value: relative_gap(value, bound) <= rel_gap))
                if relative_gap(value, lower) <= rel_gap:
                    break
        before = (proof, precise)
        if lower > value:  # f* ≤ f(x) ≤ value: something above is wrong, and nothing is claimed
            lower = -math.inf
        proved = best.proved
        if lower != best.lower_bound:
            proved = form.rigorous and cone.rigorous and units.exact and (proof is None or proof.proved)
        best = Certificate(value, lower, relative_gap(value, lower), proved)
        if best.gap <= rel_gap:
            break
    power = units.b + units.e
    certificate = best._replace(value=up(ldexp(best.value, power)), lower_bound=-up(ldexp(-best.lower_bound, power)))
    return np.ldexp(point, units.e), certificate


class Units:
    """The numbers of a problem near one: M', c', g and the exponents a, b, e (see the head of this file)."""

    def __init__(self, problem: Problem) -> None:
        self.form = problem.form
        scale = self.form.scale
        mantissa, power = math.frexp(scale)
        self.a = math.frexp(self.form.magnitude / scale)[1]
        self.b = math.frexp(float(np.abs(problem.given).max()))[1]
        self.e = (self.b - 4 * self.a - 4 * power) // 3
        #: g, with a relative error of at most 3u.
        self.g = math.ldexp((mantissa * mantissa) ** 2, 4 * (power + self.a) + 3 * self.e - self.b)
        self.c = np.ldexp(problem.given, -self.b)
        #: Whether that is c to the last bit: entries of 1e-300 beside one of 1e300 are rounded.
        self.exact = bool(np.array_equal(np.ldexp(self.c, self.b), problem.given))
        #: The part of c' in the subspace, rounded, which methods see.
        self.within = np.ldexp(problem.c, -self.b)

    def image(self, x: np.ndarray, precise: bool) -> Known:
        """Return M'x'."""
        return self.form.known_image(x, precise).scaled(-self.a)

    def residual(self, hi: np.ndarray, lo: np.ndarray, precise: bool) -> Known:
        """Return c' − M'ᵀ(hi + lo)."""
        return self.form.known_residual(np.ldexp(self.c, self.a), hi, lo, precise).scaled(-self.a)

    def value(self, image: Known, inner: tuple[float, float, float]) -> float:
        """Return a number that is at least gρ'(x') − ⟨c',x'⟩."""
        hi, lo, error = inner
        rho = self.g * self.form.known_value(image) * (1.0 + 6.0 * U)
        value = ((rho - hi) - lo) + error
        return finite(value + 6.0 * U * (rho + abs(hi) + abs(lo) + error))

    def lower_bound(self, size: float) -> float:
        """Return a number that is at most f'* = −¾ 4^{−1/3} g^{−1/3} N(c')^{4/3}, where N(c') ≤ size."""
        if not size < math.inf:
            return -math.inf
        power = exact.dual_power(np.array([size]), np.zeros(1), 1)
        # A cube root of the C library is right to an ulp or two; 16u are more than enough for it and all products.
        return -up(CONSTANT * power / math.cbrt(self.g) * (1.0 + 16.0 * U), 2)

    def rest(self, proof: Any, w: Known) -> float:
        """Return a number that is at least N of w on rows M'."""
        return finite(ldexp(proof.norm(w), self.a))


def relative_gap(value: float, lower: float) -> float:
    """Return a number that is at least (f(x) − f*)/|f*| where f(x) ≤ value and lower ≤ f*; inf unless value < 0.

    A value below the bound is a contradiction, of which nothing follows.
    """
    if value == lower:
        return 0.0
    if value < lower:
        return math.inf
    return up((value - lower) / -value, 3) if value < 0.0 and lower > -math.inf else math.inf


def _attempts(
    units, cone, proof, image, x, dual, precise, thorough
) -> Iterable[Callable[[Callable[[float], bool]], float]]:
    """Yield ways to a lower bound, cheap ones first; each is given a test of what is enough.

    From the dual point that is given, and where the search is ``thorough`` from that of x as well.
    """
    form = units.form
    cheap: list[Correction] = [lambda w, r: 2.0**units.a * proof.correction(w, form.twin_image)]
    starts = []
    if dual is not None and dual.point is not None:
        inner = dual.problem
        # (s_nM)ᵀλ_n = c/β for the normalised problem: λ' = 2^{a−b} s_n β λ_n.
        beta = _ratio(units, dual)
        starts.append((beta * dual.point, np.zeros_like(dual.point)))
        if dual.metric is not None:
            factor = math.ldexp(inner.form.scale, units.a)

            def by_metric(w, r):
                return factor * inner.form.spread(dual.metric, w)

            cheap.insert(0, by_metric)
    if starts:
        yield lambda enough: improve(units, starts[0], proof, cone, None, cheap, enough, precise)
    if not thorough:
        return
    hi, lo = form.dual_start(image)
    own = (units.g * hi, units.g * lo)
    rho = units.g * form.known_value(image)
    unit = np.ones_like(x) if proof.unit is None else np.ldexp(proof.unit, -units.a)
    shifts = cone.shifts(units.c, x, rho, unit)
    for shift in reversed(shifts):
        yield lambda enough, shift=shift: improve(units, own, proof, cone, shift, cheap, enough, precise)
    if not (precise and isinstance(form, TermForm) and form.resident and form.dim <= FEW):
        return
    matrix = form.real_rows()
    matrix = np.ldexp(matrix.toarray() if sp.issparse(matrix) else matrix, -units.a)
    for shift in shifts:
        for curved in _curvatures(cone, matrix, form.rank, image.hi, x, units.g, shift is None):
            yield lambda enough, shift=shift, curved=curved: improve(
                units, own, proof, cone, shift, [curved, *cheap], enough, precise, 6
            )


def _ratio(units: Units, dual: Dual) -> float:
    """Return what takes the dual point of the normalised problem to that of rows M' and c'."""
    inner = dual.problem
    where = int(np.abs(inner.c).argmax())
    return math.ldexp(inner.form.scale, units.a) * (units.within[where] / inner.c[where])


def _curvatures(cone, matrix, rank, image, x, g, turned) -> Iterable[Correction]:
    signs = cone.mirror(x)
    makers = [lambda: Curvature(matrix, rank, math.sqrt(g) * image, cone.support(x))]
    if signs is not None and turned:
        makers.append(lambda: BoundaryCurvature(matrix, rank, math.sqrt(g) * image, x, signs))
    for make in makers:
        try:
            yield make().correction
        except np.linalg.LinAlgError:  # no curvature at zero, or rows that are too nearly dependent
            continue


def improve(
    units: Units,
    weights: tuple[np.ndarray, np.ndarray],
    proof: Any,
    cone: Any,
    shift: np.ndarray | None,
    corrections: list[Correction],
    enough: Callable[[float], bool],
    precise: bool,
    rounds: int = ROUNDS,
) -> float:
    """Return the best lower bound on f'* from the dual point ``weights`` (a pair) and a few corrections of it.

    A correction adds μ with M'ᵀμ ≈ w, w the part of r that counts. In the first round a shift of the order of the
    Hessian times x lets w be all of r where x is inside the cone, so that the bound is short of f* by the square of r
    and not by ⟨r,x⟩; the later ones leave alone what is in the polar cone. ``corrections`` are tried in turn, each as
    long as it halves what is left.
    """
    form, ways = units.form, list(corrections)
    best, before, kept, left = -math.inf, math.inf, weights, None
    for turn in range(rounds + 1):
        shifted = turn == 0 and shift is not None
        r = units.residual(*weights, precise)
        w = cone.outside(r, shift) if shifted else cone.outside(r)
        rest = units.rest(proof, w)
        if not shifted:
            size = form.dual_size(*weights)
            best = max(best, units.lower_bound((size + rest) * (1.0 + 4.0 * U)))
            if rest <= ENOUGH * size or enough(best):
                break
        if turn > 1 and not rest < 0.5 * before:
            ways.pop(0)
        if turn == rounds or not ways:
            break
        if turn < 2 or rest < before:
            before, kept, left = rest, weights, (w.rounded, r.rounded)
        weights = form.dual_moved(*kept, ways[0](*left))
    return best
