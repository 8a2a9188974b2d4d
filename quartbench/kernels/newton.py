"""Small dense problems from rows to certificate in one compiled call: homogenised Newton on free space or the orthant.

Where a problem fits in the cache, Python, BLAS calls and the driver cost a hundred times what the arithmetic does. The
method is that of solvers/homnewton.py with the plane search of solvers/plane.py.

**Units.** Columns are multiplied by powers of two and c by a power of eight, which is exact: rows Ã = A·D whose columns
have their largest entry in [½, 1), x = D x̃·2⁻ᵖ, f = f̃·2⁻⁴ᵖ, λ = λ̃·2⁻³ᵖ. All below is about the problem so equilibrated.

**Certificate.** With N(v) = max{⟨v,x⟩ : x ∈ K, ρ(x) ≤ 1}, f* = −¾·4^{−1/3} N(c)^{4/3}, and for any λ

    N(c) ≤ (Σ‖λᵢ‖^{4/3})^{3/4} + N(c − Uλ),

where on the orthant only the positive part of c − Uλ counts. A Newton direction e at y gives, s and w the images of y
and e and μ = 4ρ(y)/⟨c,y⟩, λᵢ = (4‖sᵢ‖²(sᵢ+wᵢ) + 8⟨sᵢ,wᵢ⟩sᵢ)/μ, for which c − Uλ is rounding, and the bound is as good
as the point that the step leads to. A leftover v is paid for in one of two norms, as ‖x‖²_G ≤ √m √ρ(x) and
‖x‖²_H ≤ 12 Σ‖sᵢ‖²⟨x,Bᵢx⟩ ≤ 12 √ρ(y) √ρ(x):

    N(v) ≤ m^{1/4} ‖v‖_{G⁻¹},  G = ΣBᵢ;        N(v) ≤ √12 ρ(y)^{1/4} ‖v‖_{H⁻¹},  H = ρ''(y).

The first needs one factor for all iterations; the second feels no dominant row.

**Rounding** is bounded, not estimated; u = 2⁻⁵³, γ(k) = 1.01 k u.

- Uλ and Σ|U||λ| are sums, in order, of sums over a panel, in any order: |error|ⱼ ≤ γ(reach)·(Σ|U||λ| + |c|)ⱼ.
- The computed factor has G = LLᵀ + E with |E| ≤ ε d dᵀ, d = √diag G, ε = γ(reach + 2n + 16): the first part is that of
  the sums, the rest that of the factorisation (Higham, Accuracy and Stability of Numerical Algorithms, Thm 10.3, and
  (|L||Lᵀ|)ⱼₖ ≤ dⱼdₖ). X, computed as L⁻¹ column by column, has |LX − I| ≤ γ(n+4)|L||X|, and (|L|v)ⱼ ≤ dⱼ‖v‖. With
  ω = ‖|X|d‖ it follows that ‖|L⁻¹|v‖ ≤ ‖|X|v‖/(1 − γ(n+4)ω) and G ⪰ (1 − η)LLᵀ, η = ε ω²/(1 − γ(n+4)ω)². So
  ‖v‖_{G⁻¹} ≤ ‖|X||v|‖ / ((1 − γ(n+4)ω)√(1−η)), and where η > ½ nothing is claimed.
- The same with H, where the entries of Wᵢ^½Uᵢᵀ are rounded too: by γ(2r+20) of ‖Wᵢ^½‖‖Uᵢⱼ‖, whose squares add up to at
  most 3Hⱼⱼ. So ε = 3γ(2 reach + 16) + γ(2n + 16).
- f(x) from above, at the x returned: |error| of an image, at most γ(n+4)Σ|U||x|, is added to its modulus before that is
  raised to the fourth power; γ(n+4)Σ|c||x| is taken off ⟨c,x⟩.
- Sums of positive numbers, cube roots and single operations are within γ(reach + 64) together, and factors cover them.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import ordered_kernel
from .panels import (
    SMALLEST_CUBE,
    add_gram,
    adjoints,
    clear,
    combine,
    dot,
    dual_norm,
    enlarge,
    equilibrate,
    factor,
    hessian,
    image,
    image_moduli,
    inverse_moduli,
    lay_out,
    line,
    newton_dual,
    norm_of_product,
    reach,
    scale_vector,
    shape,
    substitute,
    value,
    weights,
)

#: How a solve ends. CONVERGED: certified as asked for. STALLED: rounding forbids more. LIMIT: out of iterations.
#: TRIVIAL: c in the polar cone, x = 0 is optimal. SINGULAR: no certificate, as the Gram matrix is singular to rounding.
#: NOT_FINITE: NaN or inf, or a column beyond 1e±300.
CONVERGED, STALLED, LIMIT, TRIVIAL, SINGULAR, NOT_FINITE = range(6)

#: Places of the numbers that describe an answer. VALUE is f(x) as computed, UPPER ≥ f(x) and LOWER ≤ f* are proved,
#: GAP = (upper − lower)/|upper|.
VALUE, UPPER, LOWER, GAP, ITERATIONS, CODE = range(6)

#: Half the spacing of doubles at 1.
UNIT = 2.0**-53

#: Exchanges of whole blocks that may fail to reduce the number of wrong coordinates before single ones are exchanged.
PIVOTS = 3

#: Changes of ρ below this share of it are not seen, and so many iterations without a visible one end a solve.
ROUNDING, PATIENCE = 1e-15, 3

#: The minimiser of a convex quartic is at most so many Newton steps away: where φ'' = φ''(0)(1 − τ/a)², it is
#: 1 + (3v−1)^{1/3} over v of them, v = step/a.
LONGEST = 4.01

#: The image of y moves with y. Where ρ has fallen below this share in one step, it is the small difference of large
#: images, and is computed anew.
FALLEN = 0.5

#: A leftover whose price is more than this share of the gap asked for is taken into λ.
LITTLE = 0.05

#: ¾·4^{−1/3}: f* = −this·N(c)^{4/3}.
VALUE_OF_NORM = 0.75 * 4.0 ** (-1.0 / 3.0)

#: The images of a solve: of the point y and the direction e, weights of the gradient, λ now and at its best, moduli.
#: (NumPy's integers: Numba compiles a kernel anew for each of Python's that is a constant.)
_POINT, _ALONG, _WEIGHTS, _DUAL, _BEST, _MODULI = np.arange(6)

#: Its matrices: the Hessian, the factor of the Gram matrix and the moduli of its inverse, one to work in.
_HESSIAN, _GRAM, _INVERSE, _PART = np.arange(4)

#: Its vectors: the scales of the columns, c, the point y, the direction e, the residual r, ∇ρ(y), Uλ, Σ|U||λ|, how
#: large a leftover can be and what of it is rounding, the answer x, and the leftover of the best λ.
_SCALES, _C, _Y, _E, _R, _GRADIENT, _PRODUCT, _BULK, _V, _NOISE, _X, _LEFTOVER = np.arange(12)


@ordered_kernel
def _gamma(operations):
    """Return a bound on the relative error of so many roundings (fewer than 10¹³)."""
    return 1.01 * UNIT * operations


@ordered_kernel
def _fourth_root(x):
    return math.sqrt(math.sqrt(x))


# Set-up ---------------------------------------------------------------------------------------------------------------


@ordered_kernel
def _price(matrices, of, to, vectors, diagonal, share):
    """Factor a Gram matrix, write |X|, and return an a for which ‖v‖ ≤ a‖|X||v|‖ in the dual norm is proved, or inf.

    ``share`` is what was lost in the entries of the matrix, as a part of dⱼdₖ, before it was factored.
    """
    n = vectors.shape[1]
    for j in range(n):
        vectors[diagonal, j] = math.sqrt(matrices[of, j, j])
    if factor(matrices, of, n):
        return math.inf
    inverse_moduli(matrices, of, to)
    omega = 1.01 * norm_of_product(matrices, to, vectors, diagonal)
    rest = 1.0 - _gamma(n + 4) * omega
    eta = (share + _gamma(2 * n + 16)) * (omega / rest) ** 2
    return 1.01 / (rest * math.sqrt(1.0 - eta)) if rest > 0.5 and eta < 0.5 else math.inf


@ordered_kernel
def _polar(c, orthant):
    """Say whether c is in the polar cone: x = 0 is then optimal."""
    polar = True
    for j in range(c.size):
        polar &= c[j] == 0.0 or (orthant and c[j] < 0.0)
    return polar


@ordered_kernel
def _finite(vectors, of):
    finite = True
    for j in range(vectors.shape[1]):
        finite &= abs(vectors[of, j]) < math.inf
    return finite


@ordered_kernel
def _start(matrices, vectors, orthant):
    """Write G⁻¹c to y; on the orthant its positive part, or that of c where it is no ascent."""
    n = vectors.shape[1]
    for j in range(n):
        vectors[_Y, j] = vectors[_C, j]
    substitute(matrices, _GRAM, n, vectors, _Y)
    if orthant:
        for j in range(n):
            vectors[_Y, j] = max(vectors[_Y, j], 0.0)
        if not dot(vectors, _C, _Y) > 0.0:
            for j in range(n):
                vectors[_Y, j] = max(vectors[_C, j], 0.0)


# Direction and step ---------------------------------------------------------------------------------------------------


@ordered_kernel
def _residual_of_model(matrices, vectors, to, noise):
    """Write r − He, and the sum of the moduli in it, by which its rounding is measured."""
    n = vectors.shape[1]
    for j in range(n):
        vectors[to, j], vectors[noise, j] = vectors[_R, j], abs(vectors[_R, j])
    for j in range(n):
        for k in range(n):
            part = matrices[_HESSIAN, min(j, k), max(j, k)] * vectors[_E, k]
            vectors[to, j] -= part
            vectors[noise, j] += abs(part)


@ordered_kernel
def _list_places(free, places):
    """Write the places of the free coordinates, and return how many there are."""
    count = 0
    for j in range(free.size):
        if free[j]:
            places[count] = j
            count += 1
    return count


@ordered_kernel
def _solve_free(matrices, vectors, free, places):
    """Write what minimises the model over the free coordinates into e, whose others are given."""
    n, count = vectors.shape[1], _list_places(free, places)
    for a in range(count):
        j = places[a]
        for b in range(a, count):
            matrices[_PART, a, b] = matrices[_HESSIAN, j, places[b]]
        vectors[_X, a] = vectors[_R, j]
        for k in range(n):
            if not free[k]:
                vectors[_X, a] -= matrices[_HESSIAN, min(j, k), max(j, k)] * vectors[_E, k]
    factor(matrices, _PART, count)
    substitute(matrices, _PART, count, vectors, _X)
    for a in range(count):
        vectors[_E, places[a]] = vectors[_X, a]


@ordered_kernel
def _bounded_direction(matrices, vectors, free, wrong):
    """Write the e that minimises ½⟨e,He⟩ − ⟨r,e⟩ over y + e ≥ 0, by block principal pivoting (linalg/quadratic.py)."""
    n = vectors.shape[1]
    fewest, tries = n + 1, PIVOTS
    for j in range(n):
        free[j] = vectors[_Y, j] > 0.0 or vectors[_R, j] > 0.0
    for _ in range(10 * n):
        for j in range(n):
            vectors[_E, j] = -vectors[_Y, j]
        _solve_free(matrices, vectors, free, wrong)
        _residual_of_model(matrices, vectors, _X, _NOISE)
        count, last = 0, 0
        for j in range(n):
            if free[j]:
                wrong[j] = vectors[_Y, j] + vectors[_E, j] < 0.0
            else:
                wrong[j] = vectors[_X, j] > ROUNDING * vectors[_NOISE, j]
            if wrong[j]:
                count, last = count + 1, j
        if count == 0:
            break
        if count < fewest:
            fewest, tries = count, PIVOTS
        elif tries > 0:
            tries -= 1
        else:
            for j in range(last):
                wrong[j] = 0
        for j in range(n):
            free[j] ^= wrong[j]
    for j in range(n):
        vectors[_E, j] = max(vectors[_E, j], -vectors[_Y, j])


@ordered_kernel
def _minimiser(c1, c2, c3, c4, limit):
    """Return the t in [0, limit] where the convex quartic with these coefficients is least."""
    if not c1 < 0.0:
        return 0.0
    low, high = 0.0, min(-0.5 * c1 / c2 if c2 > 0.0 else 1.0, limit)
    while c1 + high * (2.0 * c2 + high * (3.0 * c3 + high * 4.0 * c4)) < 0.0:
        if high >= limit or high > 1e300:
            return high
        low, high = high, min(2.0 * high, limit)
    t = high
    for _ in range(100):  # Newton's method, halving the bracket where it leaves it
        slope = c1 + t * (2.0 * c2 + t * (3.0 * c3 + t * 4.0 * c4))
        if slope < 0.0:
            low = t
        else:
            high = t
        curvature = 2.0 * c2 + t * (6.0 * c3 + t * 12.0 * c4)
        following = t - slope / curvature if curvature > 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) <= 1e-12 * t:
            break
        t = following
    return t


@ordered_kernel
def _direction(panels, images, buffers, mixed, matrices, vectors, flags, mu, orthant):
    """Write the residual r = μc − ∇ρ(y), Newton's direction e and its image."""
    n = vectors.shape[1]
    for j in range(n):
        vectors[_R, j] = mu * vectors[_C, j] - vectors[_GRADIENT, j]
        vectors[_E, j] = vectors[_R, j]
    hessian(panels, images, _POINT, buffers, mixed, matrices, _HESSIAN)
    if orthant:
        _bounded_direction(matrices, vectors, flags[0], flags[1])
    else:
        combine(matrices, 1.0, _HESSIAN, 0.0, _HESSIAN, _PART)
        factor(matrices, _PART, n)
        substitute(matrices, _PART, n, vectors, _E)
    image(panels, vectors, _E, images, _ALONG)


@ordered_kernel
def _longest(vectors):
    """Return the largest t with y + t e ≥ 0, at least 1."""
    longest = math.inf
    for j in range(vectors.shape[1]):
        if vectors[_E, j] < 0.0:
            longest = min(longest, vectors[_Y, j] / -vectors[_E, j])
    return max(longest, 1.0)


@ordered_kernel
def _step(images, buffers, vectors, inner, orthant):
    """Move y to the best point of span{y, y + e} in the cone, and its image with it; return t, 0 where it stays.

    Along h = (y + e)·⟨c,y⟩/⟨c,y+e⟩ − y the product with c does not change; h is written over e, its image over that of
    e. The slope comes from vectors, as images lose its digits near the solution. As r ⊥ y, ⟨h,Hh⟩ ≥ share²⟨r,e⟩ for
    share = ⟨c,y⟩/⟨c,y+e⟩, so that Newton's step on the line is at most 1/share; where rounding has it longer, as where
    e ∥ y, it is wrong.
    """
    change, gain = dot(vectors, _C, _E), dot(vectors, _R, _E)
    there = inner + change
    if not (gain > 0.0 and there > 0.0):
        return 0.0
    share, rest = inner / there, -change / there
    for j in range(vectors.shape[1]):
        vectors[_E, j] = share * vectors[_E, j] + rest * vectors[_Y, j]
    combine(images, share, _ALONG, rest, _POINT, _ALONG)
    second, third, fourth = line(images, _POINT, _ALONG, buffers)
    longest = min(_longest(vectors), LONGEST / share) if orthant else LONGEST / share
    t = _minimiser(-share * gain, second, third, fourth, longest)
    for j in range(vectors.shape[1]):
        moved = vectors[_Y, j] + t * vectors[_E, j]
        vectors[_Y, j] = max(moved, 0.0) if orthant else moved
    combine(images, 1.0, _POINT, t, _ALONG, _POINT)
    return t


# Bounds ---------------------------------------------------------------------------------------------------------------


@ordered_kernel
def _leftover(panels, images, vectors, orthant):
    """Pass over the rows with the weights and λ; write c − Uλ, how large it can be, and what of that is rounding."""
    adjoints(panels, images, _WEIGHTS, _DUAL, vectors, _GRADIENT, _PRODUCT, _BULK)
    share = _gamma(reach(panels))
    for j in range(vectors.shape[1]):
        left = vectors[_C, j] - vectors[_PRODUCT, j]
        noise = share * (vectors[_BULK, j] + abs(vectors[_C, j])) + SMALLEST_CUBE
        vectors[_R, j], vectors[_NOISE, j] = left, noise
        vectors[_V, j] = max(left + noise, 0.0) if orthant else abs(left) + noise


@ordered_kernel
def _paid(price, matrices, inverse, vectors, of):
    """Return what a leftover can cost in N(c)."""
    return price * norm_of_product(matrices, inverse, vectors, of) if price < math.inf else math.inf


@ordered_kernel
def _take_in(panels, images, matrices, vectors, orthant):
    """Add UᵀG⁻¹r, r = c − Uλ (the positive part on the orthant), to λ: what is left then is rounding."""
    if orthant:
        for j in range(vectors.shape[1]):
            vectors[_R, j] = max(vectors[_R, j], 0.0)
    substitute(matrices, _GRAM, vectors.shape[1], vectors, _R)
    image(panels, vectors, _R, images, _MODULI)
    combine(images, 1.0, _DUAL, 1.0, _MODULI, _DUAL)
    _leftover(panels, images, vectors, orthant)


@ordered_kernel
def _finish(panels, images, buffers, vectors, rho, norm, power, numbers):
    """Write the best point of the ray of y to x, and its value, bounds and gap, in the units of the solve.

    Of the point that is given in the end: in the units of the problem a coordinate may be rounded, or be no number.
    """
    scale = (dot(vectors, _C, _Y) / (4.0 * rho)) ** (1.0 / 3.0)
    inner = size = 0.0
    for j in range(vectors.shape[1]):
        given = math.ldexp(scale * vectors[_Y, j] * vectors[_SCALES, j], -power)
        vectors[_X, j] = math.ldexp(given, power) / vectors[_SCALES, j]
        inner += vectors[_C, j] * vectors[_X, j]
        size += abs(vectors[_C, j] * vectors[_X, j])
    image(panels, vectors, _X, images, _POINT)
    found, share = value(images, _POINT, buffers), _gamma(vectors.shape[1] + 4)
    image_moduli(panels, vectors, _X, images, _MODULI)
    enlarge(images, _MODULI, share, _POINT)
    above = value(images, _MODULI, buffers) * (1.0 + _gamma(reach(panels) + 16))
    upper = (above - inner) + (share * size + 4.0 * UNIT * (above + size))
    lower = -(1.0 + 32.0 * UNIT) * VALUE_OF_NORM * norm ** (4.0 / 3.0)
    numbers[VALUE], numbers[UPPER], numbers[LOWER] = found - inner, upper, lower
    numbers[GAP] = (upper - lower) / -upper * (1.0 + 4.0 * UNIT) if upper < 0.0 else math.inf


@ordered_kernel
def _record(trace, iteration, best, norm, t):
    """Write value, gap and step of an iteration, where the trace has room for it; ``best`` is ⟨c,y⟩/ρ(y)^{1/4}."""
    if iteration < trace.shape[0]:
        trace[iteration, 0] = -VALUE_OF_NORM * best ** (4.0 / 3.0)
        trace[iteration, 1] = (norm / best) ** (4.0 / 3.0) - 1.0
        trace[iteration, 2] = t


# The method -----------------------------------------------------------------------------------------------------------


@ordered_kernel
def _iterate(
    panels, images, buffers, mixed, matrices, vectors, flags, terms, orthant, rel_gap, limit, power, trace, numbers
):
    """Run Newton's method on the panels and c; return the code."""
    n, roundings = vectors.shape[1], reach(panels)
    clear(matrices, _GRAM)
    for p in range(panels.shape[0]):
        add_gram(panels, p, matrices, _GRAM)
    price = _price(matrices, _GRAM, _INVERSE, vectors, _V, _gamma(roundings)) * _fourth_root(float(terms))
    if not _finite(vectors, _V):
        return NOT_FINITE
    uncertified = STALLED if price < math.inf else SINGULAR
    _start(matrices, vectors, orthant)
    image(panels, vectors, _Y, images, _POINT)
    shrink = 1.0 / _fourth_root(value(images, _POINT, buffers))
    if not 0.0 < shrink < math.inf:
        return NOT_FINITE
    for j in range(n):
        vectors[_Y, j] *= shrink
    combine(images, shrink, _POINT, 0.0, _POINT, _POINT)
    rho, inner = weights(images, _POINT, buffers, _WEIGHTS), dot(vectors, _C, _Y)
    clear(images, _DUAL)
    _leftover(panels, images, vectors, orthant)
    norm, idle, late, best = math.inf, 0, 0, inner / _fourth_root(rho)
    _record(trace, 0, best, norm, math.nan)
    for iteration in range(1, limit + 1):
        numbers[ITERATIONS] = iteration
        mu, price_here = 4.0 * rho / inner, math.sqrt(12.0) * _fourth_root(rho)
        _direction(panels, images, buffers, mixed, matrices, vectors, flags, mu, orthant)
        newton_dual(images, _POINT, _ALONG, 1.0 / mu, buffers, _DUAL)
        t, before_step = _step(images, buffers, vectors, inner, orthant), rho
        rho, inner = weights(images, _POINT, buffers, _WEIGHTS), dot(vectors, _C, _Y)
        if rho < FALLEN * before_step:
            image(panels, vectors, _Y, images, _POINT)
            rho = weights(images, _POINT, buffers, _WEIGHTS)
        if not 0.0 < rho < math.inf:
            return NOT_FINITE if price < math.inf else SINGULAR
        before, best = best, inner / _fourth_root(rho)
        wanted = (1.0 + 0.75 * rel_gap) * best
        _leftover(panels, images, vectors, orthant)
        paid = _paid(price, matrices, _INVERSE, vectors, _V)
        if paid > LITTLE * rel_gap * best and paid > 4.0 * _paid(price, matrices, _INVERSE, vectors, _NOISE):
            _take_in(panels, images, matrices, vectors, orthant)
            paid = _paid(price, matrices, _INVERSE, vectors, _V)
        unpaid = dual_norm(images, _DUAL, buffers) * (1.0 + _gamma(roundings + 64))
        if unpaid <= wanted < unpaid + paid:
            price_here *= _price(matrices, _HESSIAN, _PART, vectors, _E, 3.0 * _gamma(2 * roundings + 16))
            paid = min(paid, _paid(price_here, matrices, _PART, vectors, _V))
        if unpaid + paid < norm or norm == math.inf:
            norm = unpaid + paid
            combine(images, 1.0, _DUAL, 0.0, _DUAL, _BEST)
            for j in range(n):
                vectors[_LEFTOVER, j] = vectors[_C, j] - vectors[_PRODUCT, j]
        _record(trace, iteration, best, norm, t)
        if norm <= wanted:
            _finish(panels, images, buffers, vectors, rho, norm, power, numbers)
            if numbers[GAP] <= rel_gap:
                return CONVERGED
            image(panels, vectors, _Y, images, _POINT)
        late = late + 1 if price < math.inf and unpaid <= (1.0 + 0.1 * rel_gap) * best else 0
        idle = 0 if best > before * (1.0 + 0.25 * ROUNDING) else idle + 1
        if t == 0.0 or idle >= PATIENCE or late >= 2:
            _finish(panels, images, buffers, vectors, rho, norm, power, numbers)
            return CONVERGED if numbers[GAP] <= rel_gap else uncertified
    _finish(panels, images, buffers, vectors, rho, norm, power, numbers)
    return LIMIT


@ordered_kernel
def _prepare(rows, rank, c, orthant, panels, images, vectors, numbers):
    """Scale and lay out one problem; return whether there is anything to solve, and the power p of the units."""
    numbers[VALUE], numbers[UPPER], numbers[LOWER], numbers[GAP] = 0.0, 0.0, -math.inf, math.inf
    numbers[ITERATIONS], numbers[CODE] = 0.0, NOT_FINITE
    for j in range(c.size):
        vectors[_X, j], vectors[_LEFTOVER, j], vectors[_SCALES, j] = 0.0, c[j], 1.0
    clear(images, _BEST)
    if not _finite(vectors, _LEFTOVER):
        return False, 0
    if _polar(c, orthant):
        numbers[LOWER], numbers[GAP], numbers[CODE] = 0.0, 0.0, TRIVIAL
        return False, 0
    extreme = equilibrate(rows, vectors, _SCALES)
    if extreme != 1.0:
        numbers[CODE] = SINGULAR if extreme == 0.0 else NOT_FINITE
        return False, 0
    lay_out(rows, rank, vectors, _SCALES, panels)
    return True, scale_vector(c, orthant, vectors, _SCALES, _C)


@ordered_kernel
def _give(images, vectors, rank, width, power, x, dual, leftover, trace, numbers):
    """Write the answer in the units of the problem, as far as there is room for it."""
    for j in range(x.size):
        x[j] = math.ldexp(vectors[_X, j] * vectors[_SCALES, j], -power)
    for j in range(leftover.size):
        leftover[j] = math.ldexp(vectors[_LEFTOVER, j] / vectors[_SCALES, j], -3 * power)
    for k in range(dual.size):
        i = k // rank
        dual[k] = math.ldexp(images[_BEST, i // width, k % rank * width + i % width], -3 * power)
    for k in range(GAP):
        numbers[k] = math.ldexp(numbers[k], -4 * power)
    for k in range(min(trace.shape[0], int(numbers[ITERATIONS]) + 1)):
        trace[k, 0] = math.ldexp(trace[k, 0], -4 * power)


@ordered_kernel
def solve_range(rows, rank, c, orthant, rel_gap, limit, start, stop, x, numbers, duals, leftovers, traces):
    """Minimise Σ‖Uᵢᵀx‖⁴ − ⟨c,x⟩ for the problems from start to stop, one after another on this thread; certify each.

    One kernel serves one problem and many, as it takes seconds to compile. It holds no lock of Python's: threads may
    run shares of a batch at once.

    Parameters
    ----------
    rows : array (count, m·r, n)
        float64, C order, writeable (Numba would compile all of this again for read-only arrays). Units do not matter,
        as long as x and f do not leave the range of doubles: scale outside where they might.
    rank : int
        Rows per term.
    c : array (count, n)
    orthant : bool
        Whether x ≥ 0.
    rel_gap : float
        A solve ends once (upper − lower)/|upper| is proved to be this small.
    limit : int
        The most iterations.
    start, stop : int
    x : array (count, n)
        Overwritten with the points.
    numbers : array (count, 6)
        Overwritten with VALUE, UPPER, LOWER, GAP, ITERATIONS, CODE.
    duals : array (count, m·r) or (count, 0)
        Overwritten with the λ, stacked as the rows are, of the lower bounds.
    leftovers : array (count, n) or (count, 0)
        Overwritten with c − Uλ, as computed.
    traces : array (count, k, 3)
        Row i of a trace is overwritten with value, gap and step after i iterations, for as many as there are rows.
    """
    terms, n = rows.shape[1] // rank, rows.shape[2]
    count, width = shape(terms, rank)
    panels, mixed = np.empty((count, n, width * rank)), np.empty((1, n, width * rank))
    images, buffers = np.empty((6, count, width * rank)), np.empty((3, width))
    matrices, vectors, flags = np.empty((4, n, n)), np.empty((12, n)), np.empty((2, n), dtype=np.int64)
    for p in range(start, stop):
        found, trace = numbers[p], traces[p]
        ready, power = _prepare(rows[p], rank, c[p], orthant, panels, images, vectors, found)
        if ready:
            found[CODE] = _iterate(
                panels,
                images,
                buffers,
                mixed,
                matrices,
                vectors,
                flags,
                terms,
                orthant,
                rel_gap,
                limit,
                power,
                trace,
                found,
            )
        _give(images, vectors, rank, width, power, x[p], duals[p], leftovers[p], trace, found)
