"""Certificates that are true in exact arithmetic: how large f(x) can be at the very x, how small f* can be.

**The upper bound.** Images are known as pairs with componentwise bounds (``kernels.exact``), so ρ(x) ≤ Σ(‖sᵢ‖ +
errorᵢ)⁴, and so is ⟨c,x⟩. Their difference, rounded up, is at least f(x) (:func:`upper_value`). x must be in the cone
exactly: see :func:`inside_second_order` and :func:`into_second_order`; the orthant needs no more than signs, and on a
subspace f is that of the projection of x (:func:`centred_inner`).

**The lower bound.** Let N(c) = max{⟨c,x⟩ : x ∈ K, ρ(x) ≤ 1}. Along a ray with ρ(x) = 1 and ⟨c,x⟩ = a ≥ 0, min over t
of t⁴ − at is −¾ 4^{−1/3} a^{4/3}; so f* = −¾ 4^{−1/3} N(c)^{4/3}. N is subadditive and nonnegative, and for every λ

    N(c) ≤ N(Mᵀλ) + N(r),  r = c − Mᵀλ,       N(Mᵀλ) ≤ max{Σ⟨λᵢ,sᵢ⟩ : Σ‖sᵢ‖⁴ ≤ 1} = (Σ‖λᵢ‖^{4/3})^{3/4}   (Hölder).

λ may be any numbers, and is a sum of two doubles here: then what rounding leaves of r is of the order u² and not u. r
is known as pairs with bounds. A λ that is short of feasible costs N(r), linearly; :func:`improve` moves it, which
costs nothing to first order, and then N(r) is at the level of rounding.

**The cone.** If r − w is in the polar cone, ⟨r,x⟩ ≤ ⟨w,x⟩ on K, so N(r) ≤ N_free(w), N_free the same on the whole
space. What is best is near P_K(r), and what is proved is r − w ∈ K°:
- orthant: any w ≥ r; w = max(r + error, 0) (:func:`outside_orthant`);
- second-order cone: K° = −K, so w − r must be in K: any w_v, then w₀ raised to r₀ + ‖w_v − r_v‖, rounded up in twice
  the working precision, as on the boundary both are large and their sum is small (:func:`outside_second_order`);
- {Xᵀ1 = 0}: K° holds the translations, w = r − 1αᵀ for any α (:func:`outside_centred`);
- any cone: w = r.

**N_free(w), proved with one Cholesky factor.** For a set S of terms with stacked rows M_S, |S| = k: ‖M_Sx‖₂² = Σ‖sᵢ‖²
≤ √k·√ρ(x), so with G = M_SᵀM_S, ⟨w,x⟩ ≤ ‖w‖_{G⁻¹}‖M_Sx‖ gives N_free(w) ≤ k^{1/4}‖w‖_{G⁻¹}. S may be a sample: fewer
terms make ρ smaller and the bound larger, by (m/k)^{1/4} or so where the sample is even; its Gram matrix costs k·r·n²
and not m·r·n². For any nonsingular X, with x = Xy, the rows M_SX and the vector Xᵀw give the same number: so columns
are scaled by powers of two first (no rounding), units do not matter, and where even that is too ill-conditioned X is
triangular besides. Suppose it is proved that

    (M_SX)ᵀ(M_SX) ⪰ LLᵀ + sI,  s > 0.                                                                     (1)

Then for v = Xᵀw and ANY y, v = Ly + q gives ‖v‖ ≤ ‖Ly‖ + ‖q‖ in the dual norm of the left, where ‖Ly‖² = yᵀLᵀ(…)⁻¹Ly
≤ ‖y‖₂² by LLᵀ ⪯ (…), and ‖q‖² ≤ ‖q‖₂²/s by sI ⪯ (…):

    N_free(w) ≤ k^{1/4}(‖y‖₂ + ‖q‖₂/√s).                                                                  (2)

y is a triangular solve, whose rounding needs no analysis; q is measured, in twice the working precision. It is some
nu‖v‖, so the constant s matters little. What w itself is not known by counts as part of q.

Proof of (1). Y = fl(M_SX) differs from M_SX by ‖E‖_F ≤ γ_n‖M_S‖_F‖X‖_F (E = 0 for powers of two), and its Gram matrix
A is formed with an error of at most γ_d|Y|ᵀ|Y|, of norm γ_d‖Y‖_F² at most, d the additions that a product goes
through. If the Cholesky factorisation of fl(A − σI) runs to its end, LLᵀ = A − σI + Δ with |Δ| ≤ γ_{n+1}|L||Lᵀ|
(Higham, Accuracy and Stability, Thm 10.3, which holds in any order of operations; twice the constant allows for BLAS
that multiplies by reciprocals), plus u·max A on the diagonal; and ‖|L||Lᵀ|‖₂ ≤ ‖L‖_F² ≤ 1.01 tr A. As (Y + E)ᵀ(Y + E)
⪰ YᵀY − 2‖Y‖_F‖E‖_F, (1) holds with

    s = σ − ε,   ε = γ_d‖Y‖_F² + 2‖Y‖_F‖E‖_F + (2n + 10)u·1.01·tr A + u·max A.                                 (3)

σ is a fraction of the smallest eigenvalue of A as inverse iteration sees it: if that was wrong, the factorisation
fails, and nothing is claimed. Where λ_min(A) is not well above ε, X ← XR⁻¹ with RᵀR ≈ A + εI makes the rows almost
orthonormal, and (1) is tried again: two rounds reach condition numbers of 1e12 for a few columns, as ε then is
nu·cond(M_S) and not nu·cond(M_S)².

**Graphs** need no factor: w is sent along the edges of a spanning tree, and N_free(w) ≤ (Σ‖flow‖^{4/3})^{3/4}, where
the flow out of a vertex is at most the sum of |w| + error over its subtree (:class:`Tree`). The signed flow is a
correction to λ; the absolute one closes.

All of this is for moderate numbers: see :func:`powers_of_two`, which scales a problem without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from quartbench.kernels import exact, graph, images, rows, sparse
from quartbench.kernels.jit import shares, thread_count, together

#: The unit roundoff.
U = 2.0**-53

#: At least ¾ 4^{−1/3} = 0.472470393710577436…
CONSTANT = 0.47247039371057750

#: The shift σ in units of λ_min: with 1/64 a solve with the shifted factor errs by 1/63, and √s is an eighth of √λ_min.
SHARE = 1.0 / 64.0

#: Rows that enter a Gram matrix at a time: a product goes through so many additions, and one for every block.
GRAM_ROWS = 1024

#: A rest of this share of N(c) is of no consequence beside the rounding of the sums.
ENOUGH = 1e-17

#: Times that the columns may be made orthonormal before (1) is given up.
ROUNDS = 3


class Known(NamedTuple):
    """Numbers that lie within ``error`` of hi + lo, entry by entry; |lo| is at most u|hi|."""

    hi: np.ndarray
    lo: np.ndarray
    error: np.ndarray


class Certificate(NamedTuple):
    """f(x) ≤ value, lower_bound ≤ f*, and gap ≥ (f(x) − f*)/|f*|, all in exact arithmetic."""

    value: float
    lower_bound: float
    gap: float


class Exact(Protocol):
    """What a form gives: images and residuals with bounds, and plain images, of which nothing has to be proved."""

    rank: int

    def image(self, x: np.ndarray) -> Known:
        """Return Mx."""

    def residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray) -> Known:
        """Return c − Mᵀ(hi + lo), |lo| ≤ 2u|hi|."""

    def plain_image(self, z: np.ndarray) -> np.ndarray:
        """Return Mz as it comes."""


#: From a form, the part w of the residual that counts and the residual itself, a μ with Mᵀμ ≈ w.
Correction = Callable[[Exact, np.ndarray, np.ndarray], np.ndarray]


# The two numbers ------------------------------------------------------------------------------------------------------


def up(x: float, steps: int = 1) -> float:
    """Return a number so many steps above x."""
    for _ in range(steps):
        x = math.nextafter(x, math.inf)
    return x


def upper_value(image: Known, rank: int, inner: tuple[float, float, float]) -> float:
    """Return a number that is at least ρ(x) − ⟨c,x⟩.

    Parameters
    ----------
    image : Known
        The image of x.
    rank : int
    inner : tuple
        ⟨c,x⟩ as a pair with its bound: ``exact.dot(c, x)``.
    """
    hi, lo, error = inner
    rho = exact.quartic(*image, rank)
    value = ((rho - hi) - lo) + error
    return _finite(value + 6.0 * U * (rho + abs(hi) + abs(lo) + error))


def lower_bound(power: float, rest: float) -> float:
    """Return a number that is at most f* = −¾ 4^{−1/3} N(c)^{4/3}, where N(c) ≤ power^{3/4} + rest.

    ``power`` is at least Σ‖λᵢ‖^{4/3}, as ``exact.dual_power`` gives it, and ``rest`` at least N(c − Mᵀλ).
    """
    root = math.sqrt(power) if power < math.inf else math.inf
    norm = (root * math.sqrt(root) * (1.0 + 8.0 * U) + rest) * (1.0 + 4.0 * U)
    if not norm < math.inf:
        return -math.inf
    return -up(CONSTANT * exact.dual_power(np.array([norm]), np.zeros(1), 1), 2)


def relative_gap(value: float, lower: float) -> float:
    """Return a number that is at least (f(x) − f*)/|f*| where f(x) ≤ value and lower ≤ f*; inf unless value < 0."""
    if value <= lower:
        return 0.0
    return up((value - lower) / -value, 3) if value < 0.0 and lower > -math.inf else math.inf


def _finite(x: float) -> float:
    return x if x == x else math.inf


# Which part of a residual counts on a cone ----------------------------------------------------------------------------


def outside_free(r: Known) -> Known:
    """Return w = r: all of it counts on the whole space, and on any cone that knows no better."""
    return r


def outside_orthant(r: Known, shift: np.ndarray | None = None) -> Known:
    """Return a w ≥ r: max(r, −shift), for a shift ≥ 0 that is zero where x is."""
    top = _raised(r.hi, _raised(r.lo, r.error))
    floor = np.zeros_like(top) if shift is None else -shift
    return Known(np.maximum(top, floor), np.zeros_like(top), np.zeros_like(top))


def outside_second_order(r: Known, shift: np.ndarray | None = None) -> Known:
    """Return a w with w − r in the second-order cone: P(shift + r) − shift, its first entry raised for rounding."""
    moved = r.hi + r.lo if shift is None else shift + (r.hi + r.lo)
    w = _project_second_order(moved)
    if shift is not None:
        w = w - shift
    hi, lo = exact.add(-r.hi[1:], -r.lo[1:], w[1:])
    # The pairs of w_v − r_v carry two roundings of their second parts: 4u² of the sizes is more than enough.
    error = _raised(r.error[1:], 4.0 * U * U * (np.abs(r.hi[1:]) + np.abs(w[1:])))
    distance = exact.norm(hi, lo)
    spread = exact.norm_upper(error, np.zeros_like(error), np.zeros_like(error))
    w[0] = up(math.fsum([r.hi[0], r.lo[0], r.error[0], *distance, spread]))
    return Known(w, np.zeros_like(w), np.zeros_like(w))


def outside_centred(r: Known, shape: tuple[int, int]) -> Known:
    """Return r less translations of N × d points, so that hardly any is left."""
    mean = np.broadcast_to((r.hi + r.lo).reshape(shape).mean(axis=0), shape).reshape(-1)
    hi, lo = exact.add(r.hi, r.lo, -mean)
    return Known(hi, lo, _raised(r.error, 4.0 * U * U * (np.abs(r.hi) + np.abs(mean))))


def _raised(error: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return error + more, rounded up: a sum that is rounded down would forget what is small."""
    return np.nextafter(error + more, np.inf)


def _project_second_order(x: np.ndarray) -> np.ndarray:
    norm = float(np.linalg.norm(x[1:]))
    if norm <= x[0]:
        return x.copy()
    if norm <= -x[0]:
        return np.zeros_like(x)
    half = 0.5 * (x[0] + norm)
    return np.concatenate([[half], half / norm * x[1:]])


# Points of the cone, and c in its polar, decided and not rounded to ---------------------------------------------------


def inside_second_order(x: np.ndarray) -> bool:
    """Say whether ‖v‖ ≤ s for x = (s, v), exactly."""
    if not x[0] >= 0.0:
        return False
    hi, lo, error = exact.norm(x[1:], np.zeros(x.size - 1))
    excess = math.fsum([hi, lo, -x[0]])
    if abs(excess) > 2.0 * error:
        return excess < 0.0
    return Fraction(float(x[0])) ** 2 >= sum(Fraction(float(v)) ** 2 for v in x[1:])


def into_second_order(x: np.ndarray) -> np.ndarray:
    """Return x, or where it is outside a copy whose first entry is raised to the norm of the others, rounded up."""
    if inside_second_order(x):
        return x
    x = x.copy()
    x[0] = up(math.fsum(exact.norm(np.ascontiguousarray(x[1:]), np.zeros(x.size - 1))))
    return x


def polar_orthant(c: np.ndarray) -> bool:
    """Say whether ⟨c,x⟩ ≤ 0 for all x ≥ 0."""
    return bool((c <= 0.0).all())


def polar_second_order(c: np.ndarray) -> bool:
    """Say whether ⟨c,x⟩ ≤ 0 on the second-order cone, exactly: whether −c is in it."""
    return inside_second_order(-c)


def polar_centred(c: np.ndarray, shape: tuple[int, int]) -> bool:
    """Say whether ⟨c,x⟩ = 0 for all centred x: whether all points of c are the same."""
    points = c.reshape(shape)
    return bool((points == points[0]).all())


def centred_inner(c: np.ndarray, x: np.ndarray, shape: tuple[int, int]) -> tuple[float, float, float]:
    """Return ⟨c,Px⟩ for the centred Px = x less its mean point, as a pair with its bound.

    ⟨c,Px⟩ = ⟨c,x⟩ − Σ (Σc)(Σx)/N, coordinate by coordinate. The value of f at Px is ρ(x) − ⟨c,Px⟩ where ρ feels no
    translation.
    """
    hi, lo, error = exact.dot(c, x)
    lost = 0.0
    for a, b in zip(c.reshape(shape).T, x.reshape(shape).T, strict=True):
        (c_hi, c_lo, c_error), (x_hi, x_lo, x_error) = exact.total(a.copy()), exact.total(b.copy())
        c_size, x_size = abs(c_hi + c_lo) + c_error, abs(x_hi + x_lo) + x_error
        lost += (c_hi + c_lo) * (x_hi + x_lo) / shape[0]
        # Five roundings of the product, one of the sum, and what the totals are not known by.
        error += (8.0 * U * c_size * x_size + c_error * x_size + c_size * x_error) / shape[0] + 2.0 * U * abs(lost)
    return hi, lo - lost, 1.01 * error + 2.0 * U * (abs(lo) + abs(lost))


# N of what is left ----------------------------------------------------------------------------------------------------


class Factor:
    """A proved (M_SX)ᵀ(M_SX) ⪰ LLᵀ + sI, and with it bounds on N_free: see the head of this file.

    Attributes
    ----------
    slack : float
        s of (3).
    terms : int
        |S|: how many terms the bound rests on.
    unit : array
        Powers of two, about the norms of the columns.
    """

    def __init__(
        self, unit: np.ndarray, basis: np.ndarray | None, lower: np.ndarray, slack: float, terms: int, share: float
    ) -> None:
        self.unit, self.slack, self.terms = unit, slack, terms
        self._basis, self._lower, self._share = basis, lower, share
        self._constant = up(math.sqrt(math.sqrt(terms)), 3)
        self._root = math.sqrt(slack) * (1.0 - 4.0 * U)
        self._upper = np.ascontiguousarray(lower.T)  # rows whose adjoint is L
        self._columns = None if basis is None else np.ascontiguousarray(basis.T)

    def norm(self, w: Known) -> float:
        """Return a number that is at least N_free of every vector within ``w.error`` of w: (2)."""
        v, error = w.hi / self.unit, _raised(np.abs(w.lo), w.error) / self.unit
        if not (np.isfinite(v).all() and np.isfinite(error).all()):
            return math.inf
        if self._columns is not None:
            spread = np.abs(self._columns) @ error * (1.0 + 2.0 * (v.size + 2) * U)
            v, low, rounding = exact.image(self._columns, v)
            error = _raised(_raised(np.abs(low), rounding), spread)
        y = scipy.linalg.solve_triangular(self._lower, v, lower=True, check_finite=False)
        q = Known(*exact.residual(self._upper, v, y, np.zeros_like(y)))
        length = exact.norm_upper(y, np.zeros_like(y), np.zeros_like(y))
        rest = exact.norm_upper(q.hi, q.lo, _raised(q.error, error))
        return _finite(self._constant * (length + rest / self._root) * (1.0 + 6.0 * U))

    def solve(self, w: np.ndarray) -> np.ndarray:
        """Return z ≈ (MᵀM)⁻¹w, M all rows, as it comes."""
        v = w / self.unit
        if self._columns is not None:
            v = self._columns @ v
        y = scipy.linalg.cho_solve((self._lower, True), v, check_finite=False)
        return self._share * (y if self._basis is None else self._basis @ y) / self.unit

    def correction(self, form: Exact, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return μ = Mz with Mᵀμ ≈ w: it treats all terms alike."""
        return form.plain_image(self.solve(w))

    def inner(self, w: np.ndarray) -> np.ndarray:
        """Return Xᵀw, as it comes."""
        v = w / self.unit
        return v if self._columns is None else self._columns @ v

    def basis(self) -> np.ndarray:
        """Return X."""
        return np.diag(1.0 / self.unit) if self._basis is None else self._basis / self.unit[:, None]

    def columns(self, matrix: np.ndarray) -> np.ndarray:
        """Return the rows of a matrix times X, as they come."""
        scaled = matrix / self.unit
        return scaled if self._basis is None else scaled @ self._basis


class Curvature:
    """Corrections that follow the Hessian at x: μ = 4‖sᵢ‖²tᵢ + 8⟨sᵢ,tᵢ⟩sᵢ, t = Me, ρ''(x)e = w, for dense rows.

    It is what Newton's method would do to λ, and costs f* no more than the step would gain; μ = Mz spends as much on
    terms that are almost zero at x, whose conjugate is steep. On the orthant e is zero where x is: then ρ''(x)e = w
    holds on the support alone, and elsewhere r, which is well below zero there, may change a little. A solver that
    has a direction at hand needs no such factor.

    Parameters
    ----------
    matrix : array of shape (m·r, n)
    rank : int
    image : array
        The image of x.
    support : integer array, optional
        Where e may differ from zero; everywhere if not given.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the Hessian has no factor.
    """

    def __init__(self, matrix: np.ndarray, rank: int, image: np.ndarray, support: np.ndarray | None = None) -> None:
        self._support = np.arange(matrix.shape[1]) if support is None else support
        self._rank, self._image = rank, image
        self._rows = matrix[:, self._support].astype(np.float64)
        self._factor = factor_of_rows(self._rows, rank)
        if self._factor is None:
            raise np.linalg.LinAlgError("the rows are too nearly dependent")
        self._rows = self._factor.columns(self._rows)
        squares = np.repeat(images.square_norms(image, rank), rank)
        products = (image[:, None] * self._rows).reshape(-1, rank, self._support.size).sum(axis=1)
        hessian = 4.0 * (self._rows.T * squares) @ self._rows + 8.0 * products.T @ products
        hessian[np.diag_indices_from(hessian)] += 1e-15 * np.trace(hessian)
        self._hessian, self._lower = hessian, scipy.linalg.cho_factor(hessian, lower=True, check_finite=False)

    def correction(self, form: Exact, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return μ with Mᵀμ ≈ w on the support."""
        inner = self._factor.inner(w[self._support])
        return self._weights(scipy.linalg.cho_solve(self._lower, inner, check_finite=False))

    def _weights(self, y: np.ndarray) -> np.ndarray:
        along = self._rows @ y
        out = np.empty_like(along)
        images.hessian_weights(self._image, along, self._rank, out)
        return out


class BoundaryCurvature(Curvature):
    """Corrections along the boundary of the second-order cone, where r ≈ −νJx, J = diag(1, −1, …).

    What is left then is to be −ν'Jx' with x' = x + e on the boundary too, r − ρ''(x)e = −(ν + δ)J(x + e): Newton's
    equations

        (ρ''(x) − νJ)e − δJx = r + νJx,    ⟨Jx,e⟩ = −½⟨x,Jx⟩,

    with x moved along from one correction to the next. A w near P_K(r) alone does not turn the normal, and is short
    by the first power of the distance of x from the minimiser.
    """

    def __init__(self, matrix: np.ndarray, rank: int, image: np.ndarray, x: np.ndarray) -> None:
        super().__init__(matrix, rank, image)
        self._x = x
        self._signs = np.where(np.arange(x.size) == 0, 1.0, -1.0)
        basis = self._factor.basis()
        self._turned = (basis.T * self._signs) @ basis
        self._basis = basis

    def correction(self, form: Exact, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return μ with r − Mᵀμ near the boundary of the polar cone."""
        normal = self._signs * self._x
        multiplier = max(-(normal @ r) / (normal @ normal), 0.0)
        inner, n = self._factor.inner(normal), self._x.size
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = self._hessian - multiplier * self._turned
        system[:n, n] = system[n, :n] = -inner
        right = np.append(self._factor.inner(r) + multiplier * inner, 0.5 * (normal @ self._x))
        scale = np.abs(inner).max() / np.sqrt(np.trace(self._hessian) / n)  # of the last equation, for the pivots
        system[n] /= scale
        right[n] /= scale
        try:
            y = np.linalg.solve(system, right)[:n]
        except np.linalg.LinAlgError:
            return super().correction(form, w, r)
        self._x = self._x + self._basis @ y
        return self._weights(y)


def factor_of_rows(matrix: np.ndarray, rank: int = 1, sample: int | None = None, seed: int = 0) -> Factor | None:
    """Return the factor of the terms of dense rows, or of a sample of them; None where nothing can be proved.

    Parameters
    ----------
    matrix : array of shape (m·r, n)
        Real rows of moderate size.
    rank : int
    sample : int, optional
        How many terms; all where not given. 4n are enough for rows of even leverage, and cost 4rn³.
    """
    terms, n = matrix.shape[0] // rank, matrix.shape[1]
    chosen = matrix
    if sample is not None and sample < terms:
        picked = np.sort(np.random.default_rng(seed).choice(terms, sample, replace=False))
        chosen = matrix.reshape(terms, rank, n)[picked].reshape(-1, n)
    chosen = np.asarray(chosen, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->j", chosen, chosen))
    if n == 0 or not (norms > 0.0).all() or not np.isfinite(norms).all():
        return None
    unit = np.exp2(np.ceil(np.log2(norms)))
    return _factor(
        lambda: (chosen[i : i + GRAM_ROWS] / unit for i in range(0, len(chosen), GRAM_ROWS)), unit, rank, terms
    )


def factor_of_gram(gram: np.ndarray, additions: int, terms: int, share: float = 1.0) -> Factor | None:
    """Return the factor of a Gram matrix ΣBᵢ that is there already; None where (3) leaves nothing.

    Parameters
    ----------
    gram : array of shape (n, n)
        Σ over ``terms`` terms, in double precision; the lower triangle is read.
    additions : int
        How many additions a product went through at the most: the number of rows, or with BLAS on blocks of rows the
        rows of a block and the number of blocks.
    """
    diagonal = np.diag(gram)
    if not (diagonal > 0.0).all() or not np.isfinite(diagonal).all():
        return None
    unit = np.exp2(np.ceil(0.5 * np.log2(diagonal)))
    scaled = gram / unit / unit[:, None]
    lower, slack = _shifted(scaled, _gram_error(scaled, additions))
    return None if lower is None else Factor(unit, None, lower, slack, terms, share)


def _factor(blocks: Callable[[], Any], unit: np.ndarray, rank: int, all_terms: int) -> Factor | None:
    """Try (1) with powers of two alone, then with columns made almost orthonormal."""
    basis, n = None, unit.size
    for _ in range(ROUNDS + 1):
        gram, count, squares = np.zeros((n, n)), 0, 0.0
        for block in blocks():
            y = block if basis is None else block @ basis
            gram += y.T @ y
            count += len(y)
            squares += float(np.einsum("ij,ij->", block, block))
        if not np.isfinite(gram).all():
            return None
        error = _gram_error(gram, GRAM_ROWS + count // GRAM_ROWS + 2)
        if basis is not None:
            product = 1.02 * (n + 2) * U * math.sqrt(squares) * float(np.linalg.norm(basis))
            error += 2.02 * math.sqrt(float(np.trace(gram))) * product + 1.02 * product**2
        lower, slack = _shifted(gram, error)
        if lower is not None:
            return Factor(unit, basis, lower, slack, count // rank, (count // rank) / all_terms)
        step = _orthonormalising(gram, error)
        if step is None:
            return None
        basis = step if basis is None else np.triu(basis @ step)
    return None


def _gram_error(gram: np.ndarray, additions: int) -> float:
    """Return ε of (3) without E."""
    trace, n = 1.02 * float(np.trace(gram)), len(gram)
    return (1.02 * (additions + 2) + 1.02 * (2 * n + 10)) * U * trace + 2.0 * U * float(np.diag(gram).max())


def _shifted(gram: np.ndarray, error: float) -> tuple[np.ndarray | None, float]:
    """Return L of (1) and s of (3), or None where the smallest eigenvalue is too near the error."""
    diagonal = np.diag_indices_from(gram)
    try:
        lower = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None, 0.0
    least = _smallest_eigenvalue(lower)
    shift = max(SHARE * least, 4.0 * error)
    if not shift <= 0.25 * least:
        return None, 0.0
    moved = gram.copy()
    moved[diagonal] -= shift
    try:
        return scipy.linalg.cholesky(moved, lower=True, check_finite=False), (shift - error) * (1.0 - 4.0 * U)
    except np.linalg.LinAlgError:
        return None, 0.0


def _smallest_eigenvalue(lower: np.ndarray) -> float:
    """Return λ_min(LLᵀ), by inverse iteration from a fixed start: an estimate, a few per cent too large at the most."""
    v = np.random.default_rng(0).standard_normal(len(lower))
    size = 1.0
    for _ in range(8):
        v = scipy.linalg.cho_solve((lower, True), v / np.linalg.norm(v), check_finite=False)
        size = float(np.linalg.norm(v))
        if not 0.0 < size < math.inf:
            return 0.0
    return 1.0 / size


def _orthonormalising(gram: np.ndarray, error: float) -> np.ndarray | None:
    """Return R⁻¹ for RᵀR ≈ A + tI, t as small as lets the factorisation run."""
    diagonal, shift = np.diag_indices_from(gram), error
    for _ in range(8):
        moved = gram.copy()
        moved[diagonal] += shift
        try:
            upper = scipy.linalg.cholesky(moved, lower=False, check_finite=False)
        except np.linalg.LinAlgError:
            shift *= 10.0
            continue
        return scipy.linalg.solve_triangular(upper, np.eye(len(gram)), check_finite=False)
    return None


class Tree:
    """A spanning tree of a graph: it routes what is left of a residual, and bounds N of what it cannot.

    Parameters
    ----------
    order, parents : integer arrays
        The vertices, each after its parent, and the parent of each (the root is its own): a breadth-first search.
    edges : integer array
        The edge from each vertex to its parent (any number at the root).
    heads : integer array
        The head of every edge.
    shape : tuple
        N × d.
    """

    def __init__(self, order: np.ndarray, parents: np.ndarray, edges: np.ndarray, heads: np.ndarray, shape) -> None:
        self.order, self.parents, self.shape, self.count = order, parents, shape, len(heads)
        self.children = order[1:]
        self.edges = edges[self.children]
        self.signs = np.where(heads[self.edges] == self.children, 1.0, -1.0)[:, None]

    def norm(self, w: Known) -> float:
        """Return a number that is at least N of every w within its bounds on the centred points."""
        loads = (np.abs(w.hi) + (np.abs(w.lo) + w.error)).reshape(self.shape) * (1.0 + 4.0 * U)
        # What is left at the root is a translation, which costs nothing: it is spread evenly over all vertices.
        loads = (loads + loads.sum(axis=0) / self.shape[0]) * (1.0 + (self.shape[0] + 4) * U)
        flows = exact.subtree_sums(self.order, self.parents, loads)[self.children].reshape(-1)
        power = exact.dual_power(np.ascontiguousarray(flows), np.zeros_like(flows), self.shape[1])
        root = math.sqrt(power)
        return _finite(root * math.sqrt(root) * (1.0 + 8.0 * U))

    def correction(self, form: Exact, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the flow along the tree that carries w to the root, as it comes."""
        points = w.reshape(self.shape)
        flows = exact.subtree_sums(self.order, self.parents, points - points.mean(axis=0))
        out = np.zeros((self.count, self.shape[1]))
        out[self.edges] = self.signs * flows[self.children]
        return out.reshape(-1)


def spanning_tree(heads: np.ndarray, tails: np.ndarray, shape: tuple[int, int]) -> Tree:
    """Return a breadth-first spanning tree of a connected graph."""
    points = shape[0]
    numbers = sp.coo_matrix((np.arange(1, heads.size + 1), (heads, tails)), shape=(points, points)).tocsr()
    numbers = (numbers + numbers.T).tocsr()
    order, parents = breadth_first_order(numbers, 0, directed=False)
    parents = parents.astype(np.int64)
    parents[0] = 0
    edges = np.asarray(numbers[np.arange(points), parents]).ravel().astype(np.int64) - 1
    return Tree(order.astype(np.int64), parents, edges, heads, shape)


# All together ---------------------------------------------------------------------------------------------------------


def certify(
    form: Exact,
    c: np.ndarray,
    x: np.ndarray,
    factor: Factor | Tree,
    outside: Callable[..., Known] = outside_free,
    shifts: Sequence[np.ndarray | None] = (None,),
    corrections: Sequence[Correction] | None = None,
    rounds: int = 4,
    inner: tuple[float, float, float] | None = None,
) -> Certificate:
    """Certify a point that is in the cone: two passes, and two more for every correction of the dual point.

    Parameters
    ----------
    form : Exact
    c, x : arrays
    factor : Factor or Tree
        What bounds N of the rest.
    outside : callable
        Which part of a residual counts on the cone; takes a shift as its second argument.
    shifts : sequence
        For :func:`outside_orthant` and :func:`outside_second_order` in the first round: see :func:`improve`. The best
        counts.
    corrections : sequence of callables, optional
        See :func:`improve`.
    rounds : int
        How often the dual point may be corrected.
    inner : tuple, optional
        ⟨c,x⟩ where it is not ``exact.dot(c, x)``.
    """
    image = form.image(x)
    value = upper_value(image, form.rank, exact.dot(c, x) if inner is None else inner)
    weights = exact.cubic_weights(image.hi, image.lo, form.rank)
    lower = max(improve(form, c, weights, factor, outside, shift, corrections, rounds) for shift in shifts)
    return Certificate(value, lower, relative_gap(value, lower))


def improve(
    form: Exact,
    c: np.ndarray,
    weights: tuple[np.ndarray, np.ndarray],
    factor: Factor | Tree,
    outside: Callable[..., Known] = outside_free,
    shift: np.ndarray | None = None,
    corrections: Sequence[Correction] | None = None,
    rounds: int = 4,
) -> float:
    """Return the best lower bound on f* from the dual point ``weights`` (a pair) and a few corrections of it.

    A correction adds μ with Mᵀμ ≈ w, w the part of r that counts. In the first round a shift of the order of the
    Hessian times x lets w be all of r where x is inside the cone, so that the bound is short of f* by the square of r
    and not by ⟨r,x⟩; the later ones leave alone what is in the polar cone. ``corrections`` are tried in turn, each as
    long as it halves what is left; without them, ``factor.correction``.
    """
    ways = list(corrections or [factor.correction])
    best, before, kept, left = -math.inf, math.inf, weights, None
    for turn in range(rounds + 1):
        shifted = turn == 0 and shift is not None
        r = form.residual(c, *weights)
        w = outside(r, shift) if shifted else outside(r)
        rest = factor.norm(w)
        if not shifted:
            best = max(best, lower_bound(exact.dual_power(*weights, form.rank), rest))
            if rest <= ENOUGH * abs(best) ** 0.75:
                break
        if turn > 1 and not rest < 0.5 * before:
            ways.pop(0)
        if turn == rounds or not ways:
            break
        if turn < 2 or rest < before:
            before, kept, left = rest, weights, (w.hi + w.lo, r.hi + r.lo)
        weights = exact.add(*kept, ways[0](form, *left))
    return best


def certify_rows(
    matrix: np.ndarray, rank: int, c: np.ndarray, x: np.ndarray, cone: str = "free", factor: Factor | None = None
) -> tuple[np.ndarray, Certificate]:
    """Certify a point of a problem with dense real rows at any scale, sparing nothing; return the point with it.

    The point is moved by a rounding where it is not quite in the second-order cone, and its negative entries are set
    to zero on the orthant. Corrections follow the Hessian, on the orthant at the positive entries of x.

    Parameters
    ----------
    matrix : array of shape (m·r, n)
    rank : int
    c, x : arrays
    cone : {"free", "orthant", "second-order"}
    factor : Factor, optional
        Of the rows times 2⁻ᵃ, a of :func:`powers_of_two`, where it is there already.
    """
    polar = {"free": lambda c: not c.any(), "orthant": polar_orthant, "second-order": polar_second_order}
    if polar[cone](c):
        return np.zeros_like(x), Certificate(0.0, 0.0, 0.0)
    a, b, x_power, f_power = powers_of_two(float(np.abs(matrix).max()), float(np.abs(c).max()))
    scaled, c = DenseRows(np.ascontiguousarray(np.ldexp(matrix, -a)), rank), np.ldexp(c, -b)
    x = np.ldexp(x, -x_power)
    if cone == "orthant":
        x = np.maximum(x, 0.0)
    elif cone == "second-order":
        x = into_second_order(x)
    image = scaled.image(x)
    value, lower = upper_value(image, rank, exact.dot(c, x)), -math.inf
    factor = factor_of_rows(scaled.matrix, rank) if factor is None else factor
    if factor is not None:
        outside = {"free": outside_free, "orthant": outside_orthant, "second-order": outside_second_order}[cone]
        tries = [
            (shift, [*_curvatures(cone, scaled.matrix, rank, image.hi, x, turned), factor.correction])
            for shift in _shifts(cone, c, x, image, rank, factor)
            for turned in ((False, True) if cone == "second-order" and shift is None else (False,))
        ]
        weights = exact.cubic_weights(image.hi, image.lo, rank)
        lower = max(improve(scaled, c, weights, factor, outside, shift, ways, 6) for shift, ways in tries)
    return np.ldexp(x, x_power), Certificate(
        up(_ldexp(value, f_power)), -up(_ldexp(-lower, f_power)), relative_gap(value, lower)
    )


def _curvatures(
    cone: str, matrix: np.ndarray, rank: int, image: np.ndarray, x: np.ndarray, turned: bool
) -> list[Correction]:
    try:
        if turned:
            return [BoundaryCurvature(matrix, rank, image, x).correction]
        support = np.flatnonzero(x > 0.0) if cone == "orthant" else None
        return [Curvature(matrix, rank, image, support).correction]
    except np.linalg.LinAlgError:  # no curvature at zero, or rows that are too nearly dependent
        return []


def _shifts(
    cone: str, c: np.ndarray, x: np.ndarray, image: Known, rank: int, factor: Factor
) -> list[np.ndarray | None]:
    """Return shifts from none to one that lets w be r wherever x is positive, or along the boundary of the cone."""
    if cone == "free" or not x.any():
        return [None]
    rho = exact.quartic(*image, rank)
    if cone == "orthant":
        return [None, 0.4 * rho / np.sum((factor.unit * x) ** 2) * factor.unit**2 * x, np.where(x > 0.0, 1e300, 0.0)]
    return [None, 0.4 * rho / (x @ x) * x, 1e3 * np.abs(c).max() / np.abs(x).max() * x]


def _ldexp(x: float, power: int) -> float:
    try:
        return math.ldexp(x, power)
    except OverflowError:
        return math.copysign(math.inf, x)


# Rows of every kind, as ``Exact`` -------------------------------------------------------------------------------------


class DenseRows:
    """Dense real rows, float64 or float32."""

    def __init__(self, matrix: np.ndarray, rank: int = 1) -> None:
        self.matrix, self.rank = matrix, rank
        self.parts = thread_count(matrix.size, len(matrix))

    def image(self, x: np.ndarray) -> Known:
        """Return Mx."""
        return self._run(exact.image, exact.image_parallel, x)

    def residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray) -> Known:
        """Return c − Mᵀ(hi + lo)."""
        return self._run(exact.residual, exact.residual_parallel, c, hi, lo)

    def plain_image(self, z: np.ndarray) -> np.ndarray:
        """Return Mz as it comes."""
        return rows.image(self.matrix, z)

    def _run(self, serial: Callable, parallel: Callable, *arguments: np.ndarray) -> Known:
        if self.parts == 1:
            return Known(*serial(self.matrix, *arguments))
        bounds = shares(len(self.matrix), self.parts)
        return Known(*together(parallel, self.matrix.size, self.matrix, *arguments, bounds))


class ComplexRows(DenseRows):
    """Complex rows qᵢ as interleaved reals (m, 2N); points and images are interleaved too, a term has rank 2."""

    def __init__(self, matrix: np.ndarray) -> None:
        super().__init__(matrix, 2)

    def image(self, x: np.ndarray) -> Known:
        """Return (re, im) of ⟨qᵢ,x⟩."""
        return self._run(exact.image_complex, exact.image_complex_parallel, x)

    def residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray) -> Known:
        """Return c − Σ (hi + lo)ᵢqᵢ."""
        return self._run(exact.residual_complex, exact.residual_complex_parallel, c, hi, lo)

    def plain_image(self, z: np.ndarray) -> np.ndarray:
        """Return (re, im) of ⟨qᵢ,z⟩ as they come."""
        return rows.image_complex(self.matrix, z)


class SparseRows:
    """CSR rows."""

    def __init__(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rank: int = 1) -> None:
        self.csr, self.rank = (data, indices, indptr), rank

    def image(self, x: np.ndarray) -> Known:
        """Return Mx."""
        return Known(*exact.image_sparse(*self.csr, x))

    def residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray) -> Known:
        """Return c − Mᵀ(hi + lo)."""
        return Known(*exact.residual_sparse(*self.csr, c, hi, lo))

    def plain_image(self, z: np.ndarray) -> np.ndarray:
        """Return Mz as it comes."""
        return sparse.image(*self.csr, z)


class Edges:
    """The edges of a graph of N points in d coordinates."""

    def __init__(self, heads: np.ndarray, tails: np.ndarray, shape: tuple[int, int]) -> None:
        self.heads, self.tails, self.shape, self.rank = heads, tails, shape, shape[1]

    def image(self, x: np.ndarray) -> Known:
        """Return the differences x_head − x_tail, exactly."""
        return Known(*exact.image_edges(self.heads, self.tails, x.reshape(self.shape)))

    def residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray) -> Known:
        """Return c less the sum of ± (hi + lo) at each vertex, flat."""
        return Known(*exact.residual_edges(self.heads, self.tails, c.reshape(self.shape), hi, lo))

    def plain_image(self, z: np.ndarray) -> np.ndarray:
        """Return the differences of z as they come."""
        return graph.image(self.heads, self.tails, z.reshape(self.shape))


# Scale ----------------------------------------------------------------------------------------------------------------


def powers_of_two(magnitude: float, largest: float) -> tuple[int, int, int, int]:
    """Return exponents (a, b, x, f) that bring rows of size ``magnitude`` and c of size ``largest`` near one, exactly.

    Rows 2⁻ᵃM and c 2⁻ᵇ give x = 2ˣx' and f = 2ᶠf' with 3x = b − 4a and f = b + x: so b ≡ a modulo 3, and nothing
    rounds.
    """
    a, b = math.frexp(magnitude)[1], math.frexp(largest)[1]
    b += (a - b + 1) % 3 - 1
    return a, b, (b - 4 * a) // 3, b + (b - 4 * a) // 3
