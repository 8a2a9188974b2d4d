"""How large can ⟨w,x⟩ be where ρ(x) ≤ 1? N(w), proved with one Cholesky factor of the terms, or of a sample of them.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from quartbench.kernels import exact
from quartbench.linalg.conjugate_gradients import conjugate_gradients, ritz_values
from quartbench.linalg.known import SMALLEST, Known, U, finite, ldexp, raised, up
from quartbench.runtime.blas import blas_threads

#: The shift σ in units of λ_min: with 1/64 a solve with the shifted factor errs by 1/63, and √s is an eighth of √λ_min.
SHARE = 1.0 / 64.0

#: Rows for each unknown on which a proof rests where there are many more: a sample of even leverage is as good.
SAMPLE = 4

#: Squares of columns from which on no product of their entries that counts has underflowed.
LOWEST = 2.0**-900

#: Binary exponents of columns from which on the inverse of their Gram matrix may leave the range of floating point.
FAR = 300

#: Rows that enter a Gram matrix at a time: a product goes through so many additions, and one for every block.
GRAM_ROWS = 1024

#: Steps of inverse iteration: λ_min is then known within a factor of some n^{1/6}, and SHARE is far below that.
INVERSE = 3

#: Times that the columns may be made orthonormal before (1) is given up.
ROUNDS = 3


def bounded(found: tuple[np.ndarray, ...]) -> Known:
    """Return what a kernel found: (hi, lo, error), or (value, error) of plain sums."""
    if len(found) == 3:
        return Known(*found)
    value, error = found
    return Known(value, np.zeros_like(value), error)


def near_one(w: Known, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Return v and a bound on its error with w/unit = 2ᵖv, |v| of the order of one, and p; None where w is zero or not
    finite. N is homogeneous, and of such numbers nothing under- or overflows.
    """
    size = float((np.abs(w.hi) / unit).max() + (w.error / unit).max())
    if not 0.0 < size < math.inf:
        return None
    power = math.frexp(size)[1]
    v = np.ldexp(w.hi / unit, -power)
    error = np.ldexp(raised(np.abs(w.lo), w.error) / unit, -power) + 3.0 * SMALLEST
    return (v, error, power) if np.isfinite(v).all() and np.isfinite(error).all() else None


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

    proved = True
    factored = True
    #: The terms that a sample holds; None for all.
    picked: np.ndarray | None = None
    #: It keeps no rows.
    image = None

    def __init__(
        self,
        unit: np.ndarray,
        basis: np.ndarray | None,
        lower: np.ndarray,
        slack: float,
        plain: np.ndarray,
        terms: int,
        share: float,
    ) -> None:
        self.unit, self.slack, self.terms, self.share = unit, slack, terms, share
        self._basis, self._lower, self._plain = basis, lower, plain
        self._constant = up(math.sqrt(math.sqrt(terms)), 3)
        self._root = math.sqrt(slack) * (1.0 - 4.0 * U)
        self._upper = np.ascontiguousarray(lower.T)  # rows whose adjoint is L
        self._columns = None if basis is None else np.ascontiguousarray(basis.T)

    def norm(self, w: Known) -> float:
        """Return a number that is at least N_free of every vector within ``w.error`` of w: (2)."""
        near = near_one(w, self.unit)
        if near is None:
            return math.inf if w.hi.any() or w.error.any() else 0.0
        v, error, power = near
        if self._columns is not None:
            spread = np.abs(self._columns) @ error * (1.0 + 2.0 * (v.size + 2) * U)
            v, low, rounding = exact.image(self._columns, v)
            error = raised(raised(np.abs(low), rounding), spread)
        y = scipy.linalg.solve_triangular(self._lower, v, lower=True, check_finite=False)
        q = Known(*exact.residual(self._upper, v, y, np.zeros_like(y)))
        length = exact.norm_upper(y, np.zeros_like(y), np.zeros_like(y))
        rest = exact.norm_upper(q.hi, q.lo, raised(q.error, error))
        return finite(ldexp(self._constant * (length + rest / self._root) * (1.0 + 6.0 * U), power))

    def solve(self, w: np.ndarray) -> np.ndarray:
        """Return z ≈ (MᵀM)⁻¹w, M all rows, as it comes."""
        v = w / self.unit
        if self._columns is not None:
            v = self._columns @ v
        with blas_threads(self._plain.size):
            y = scipy.linalg.cho_solve((self._plain, True), v, check_finite=False)
        return self.share * (y if self._basis is None else self._basis @ y) / self.unit

    def correction(self, w: np.ndarray, image: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return μ = Mz with Mᵀμ ≈ w, ``image`` giving Mz: it treats all terms alike.

        μ is of the size of w over that of the rows, z of their square, which may be no number for rows of 1e±144: half
        of it is taken from w first, and given to μ.
        """
        power = -math.frexp(float(self.unit.min()))[1]
        return np.ldexp(image(self.solve(np.ldexp(w, -power))), power) if abs(power) > FAR else image(self.solve(w))

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


def factor_of_rows(matrix: np.ndarray, rank: int = 1, of: int | None = None, rounds: int = ROUNDS) -> Factor | None:
    """Return the factor of the terms of dense rows; None where nothing can be proved.

    Parameters
    ----------
    matrix : array of shape (m·r, n)
        Real rows of moderate size. 4n of even leverage are enough, and cost 4n³.
    rank : int
    of : int, optional
        How many terms there are, where these are a sample of them.
    rounds : int
        Times that the columns may be made orthonormal before (1) is given up.
    """
    chosen = np.asarray(matrix, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->j", chosen, chosen))
    with blas_threads(float(chosen.size) * norms.size):
        return factor_of_sums(lambda unit, basis: gram_sums(chosen, unit, basis), norms, rank, of, rounds)


def factor_of_sums(
    sums: Callable[[np.ndarray, np.ndarray | None], tuple],
    norms: np.ndarray,
    rank: int = 1,
    of: int | None = None,
    rounds: int = ROUNDS,
) -> Factor | None:
    """Return the factor of terms whose rows are added up elsewhere; None where nothing can be proved.

    Parameters
    ----------
    sums : callable
        Gives what ``gram_sums`` does, summed over all rows, for powers of two and a basis.
    norms : array of shape (n,)
        The norms of the columns, as they come.
    rank, of, rounds
        As for :func:`factor_of_rows`.
    """
    if not norms.size or not (norms > 0.0).all() or not np.isfinite(norms).all():
        return None
    return _factor(sums, np.exp2(np.ceil(np.log2(norms))), rank, of, rounds)


def gram_sums(rows: np.ndarray, unit: np.ndarray, basis: np.ndarray | None) -> tuple[np.ndarray, int, int, float]:
    """Return the Gram matrix of Y, rows over powers of two times a basis, in pieces of GRAM_ROWS; and what bounds it.

    That is how many rows and how many pieces were added, and the sum of the squares before the basis.
    """
    gram, squares, starts = np.zeros((unit.size, unit.size)), 0.0, range(0, len(rows), GRAM_ROWS)
    for start in starts:
        block = rows[start : start + GRAM_ROWS] / unit
        y = block if basis is None else block @ basis
        gram += y.T @ y
        squares += float(np.einsum("ij,ij->", block, block))
    return gram, len(rows), len(starts), squares


def factor_of_gram(
    gram: np.ndarray, additions: int, terms: int, share: float = 1.0, divided: np.ndarray | float = 1.0
) -> Factor | None:
    """Return the factor of a Gram matrix ΣBᵢ that is there already; None where (3) leaves nothing.

    Parameters
    ----------
    gram : array of shape (n, n)
        Σ over ``terms`` terms, in double precision; the lower triangle is read.
    additions : int
        How many additions a product went through at the most: the number of rows, or with BLAS on blocks of rows the
        rows of a block and the number of blocks.
    divided : array of shape (n,)
        Powers of two that the columns of the rows were divided by.
    """
    diagonal = np.diag(gram)
    # Below, products of entries may have underflowed, of which (3) knows nothing.
    if not (diagonal > LOWEST).all() or not np.isfinite(diagonal).all():
        return None
    unit = np.exp2(np.ceil(0.5 * np.log2(diagonal)))
    scaled = gram / unit / unit[:, None]
    with blas_threads(float(len(gram)) ** 3):
        found = _shifted(scaled, _gram_error(scaled, additions))
    return None if found is None else Factor(divided * unit, None, *found, terms, share)


def _factor(
    sums: Callable[[np.ndarray, np.ndarray | None], tuple], unit: np.ndarray, rank: int, of: int | None, rounds: int
) -> Factor | None:
    """Try (1) with powers of two alone, then with columns made almost orthonormal."""
    basis, n = None, unit.size
    for left in range(rounds, -1, -1):
        gram, count, pieces, squares = sums(unit, basis)
        if not np.isfinite(gram).all():
            return None
        error = _gram_error(gram, GRAM_ROWS + pieces + 1)
        if basis is not None:
            product = 1.02 * (n + 2) * U * math.sqrt(squares) * float(np.linalg.norm(basis))
            error += 2.02 * math.sqrt(float(np.trace(gram))) * product + 1.02 * product**2
        found = _shifted(gram, error)
        if found is not None:
            return Factor(unit, basis, *found, count // rank, (count // rank) / (of or count // rank))
        step = _orthonormalising(gram, error) if left else None
        if step is None:
            return None
        basis = step if basis is None else np.triu(basis @ step)
    return None


def _gram_error(gram: np.ndarray, additions: int) -> float:
    """Return ε of (3) without E."""
    trace, n = 1.02 * float(np.trace(gram)), len(gram)
    return (1.02 * (additions + 2) + 1.02 * (2 * n + 10)) * U * trace + 2.0 * U * float(np.diag(gram).max())


def _shifted(gram: np.ndarray, error: float) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return L of (1), s of (3) and the factor without a shift; None where rounding hides the least eigenvalue."""
    diagonal = np.diag_indices_from(gram)
    try:
        plain = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    least = _smallest_eigenvalue(plain)
    shift = max(SHARE * least, 4.0 * error)
    if not shift <= 0.25 * least:
        return None
    moved = gram.copy()
    moved[diagonal] -= shift
    try:
        lower = scipy.linalg.cholesky(moved, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return lower, (shift - error) * (1.0 - 4.0 * U), plain


def _smallest_eigenvalue(lower: np.ndarray) -> float:
    """Return λ_min(LLᵀ), by inverse iteration from a fixed start: an estimate, rather too large."""
    v = np.random.default_rng(0).standard_normal(len(lower))
    for _ in range(INVERSE):
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


class Iterated:
    """N(w) for forms too large to factor, by conjugate gradients: an estimate, no proof.

    N(w) ≤ m^{1/4}‖w‖_{G⁻¹}, G = ΣBᵢ, and ‖w‖_{G⁻¹} is bounded through the smallest Ritz value of the run, halved.
    """

    proved = False
    factored = False
    unit = None

    def __init__(self, form: Any) -> None:
        self._form = form
        self._diagonal = form.gram_diagonal()
        self._least: float | None = None

    def norm(self, w: Known) -> float:
        """Return what N(w) is at most, as far as conjugate gradients tell."""
        size = np.abs(w.hi) + np.abs(w.lo) + w.error
        if not size.any():
            return 0.0
        if self._least is None:
            self._solve(np.random.default_rng(0).standard_normal(size.size) * np.sqrt(self._diagonal))
        return self._form.terms**0.25 * float(np.sqrt(size @ (size / self._diagonal) / self._least))

    def _solve(self, w: np.ndarray) -> Any:
        form, diagonal = self._form, self._diagonal

        def product(p):
            image = form.image(p)
            return form.adjoint(image), image

        solved = conjugate_gradients(product, w, lambda r: r / diagonal, share=1e-13, products=4 * form.dim)
        if solved.steps:
            least = 0.5 * ritz_values(np.array(solved.steps), np.array(solved.ratios))[0]
            self._least = least if self._least is None else min(least, self._least)
        return solved

    def correction(self, w: np.ndarray, image: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return μ = Mz with Mᵀμ ≈ w."""
        return image(self._solve(w).x)
