"""How large can ⟨w,x⟩ be where ρ(x) ≤ 1? A coarse bound, proved in single precision: all that a small w needs.

With the terms S, |S| = k, their rows M_S and columns scaled by powers of two, Y = M_SX, as in :mod:`.proof`: if YᵀY ⪰
sI, then for v = Xᵀw

    N_free(w) ≤ k^{1/4}‖v‖₂/√s,                                                                             (1)

which is too large by the root of the condition number at the most. A dual point that has been corrected leaves a w of
some 1e-10 of c and less, and there that costs nothing, while a factor in single precision takes half the time and none
of what :class:`.proof.Factor` does with it afterwards. Where (1) is not enough, or rows are too nearly dependent for
single precision, the sharp proof is there.

Proof of YᵀY ⪰ sI. u is the rounding unit of single precision. Z = fl(Y) differs from Y by ‖E‖_F ≤ u‖Y‖_F. An entry of
its Gram matrix A, the sum of products of blocks of d rows, goes through a = d + rows/d + 2 roundings at the most: its
error is at most γ_a(|Z|ᵀ|Z|), of norm γ_a·tr A. The Cholesky factorisation of fl(A − σI) is made here in blocks of b
columns, from products of b terms that are subtracted one after another: if it runs to its end, LLᵀ = A − σI + Δ with
|Δ| ≤ γ_l|L||Lᵀ|, l = 2b + 10 + 2n/b + 4 (Higham, Accuracy and Stability, Lemma 8.4 and Thm 10.3; 2b + 10 for the
diagonal block and the triangular solve, twice what they take, as BLAS may multiply by reciprocals of the diagonal; that
it does not invert blocks of it is assumed), and ‖|L||Lᵀ|‖₂ ≤ ‖L‖²_F ≤ 1.01 tr A. Numbers that underflow are off by
2⁻¹²⁶ each at the most. So

    λ_min(ZᵀZ) ≥ σ − ε,   ε = (γ_a + 1.01γ_l) tr A + 4u·max A + n(rows + n)2⁻¹²⁵,   √s = √(σ − ε) − ‖E‖_F.     (2)

Short blocks are what makes this work: with γ of a whole BLAS call, nu, it would end at a few hundred unknowns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import strsm
from scipy.linalg.lapack import spotrf, spotrs

from quartbench.kernels import exact, sparse
from quartbench.linalg.conjugate_gradients import conjugate_gradients, ritz_values
from quartbench.linalg.known import Known, U, finite, ldexp, up
from quartbench.runtime.blas import blas_threads

from .proof import LOWEST, near_one
from .sampling import product

#: The rounding unit of single precision.
U32 = 2.0**-24

#: Rows for each unknown in a sample.
SAMPLE = 3

#: Rows of a block of the Gram matrix, columns of a block of it, and of a block of the factor.
ROWS, COLUMNS, FACTORED = 256, 256, 128

#: The shift as a share of the least eigenvalue, as far as that is known; and in units of ε at the least.
SHARE, TIMES = 0.25, 1.5

#: Steps of conjugate gradients that look for the least eigenvalue.
STEPS = 6

#: The share of a right-hand side that a solve may leave, and the most products that it takes.
SOLVED, PRODUCTS = 1e-4, 12


class Coarse:
    """A proved YᵀY ⪰ sI, and with it bounds on N_free: see the head of this file.

    Attributes
    ----------
    slack : float
        s.
    unit : array
        Powers of two, about the norms of the columns.
    picked : array or None
        The terms that the bound rests on; None for all.
    share : float
        How many of the terms those are.
    """

    proved = True
    factored = True

    def __init__(
        self, unit: np.ndarray, single: Any, lower: np.ndarray, slack: float, terms: int, share: float
    ) -> None:
        self.unit, self.slack, self.share = unit, slack, share
        self.picked: np.ndarray | None = None
        self._single = single
        self._factor = lower.T  # in Fortran order, so that LAPACK copies nothing
        self._constant = up(math.sqrt(math.sqrt(terms)) / math.sqrt(slack), 8)

    def norm(self, w: Known) -> float:
        """Return a number that is at least N_free of every vector within ``w.error`` of w: (1)."""
        near = near_one(w, self.unit)
        if near is None:
            return math.inf if w.hi.any() or w.error.any() else 0.0
        v, error, power = near
        length = exact.norm_upper(v, np.zeros_like(v), error)
        return finite(ldexp(self._constant * length * (1.0 + 4.0 * U), power))

    def solve(self, w: np.ndarray) -> np.ndarray:
        """Return z ≈ (MᵀM)⁻¹w, M all rows, as it comes.

        The factor is that of A − σI, which is much too small along the least eigenvectors: it preconditions A.
        """
        v = w / self.unit
        size = float(np.abs(v).max()) or 1.0
        with blas_threads(self._factor.size):
            solved = conjugate_gradients(
                lambda p: (self._single.T @ (self._single @ p), None),
                (v / size).astype(np.float32),
                lambda r: spotrs(self._factor, r, lower=0)[0],
                share=SOLVED,
                products=PRODUCTS,
            )
        return (self.share * size) * (solved.x / self.unit)

    def image(self, x: np.ndarray) -> np.ndarray:
        """Return M_Sx, right to some six digits."""
        return product(self._single, self.unit * x)

    def correction(self, w: np.ndarray, image: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return μ = Mz with Mᵀμ ≈ w, ``image`` giving Mz: it treats all terms alike."""
        return image(self.solve(w))


def coarse(rows: Any, rank: int, of: int) -> Coarse | None:
    """Return the proof of rows, dense or CSR, whose terms are of ``of``; None where single precision cannot tell."""
    squares = column_squares(rows)
    # Out of this range squares may have under- or overflowed, and their sum would not be the trace.
    if not squares.size or not (squares > LOWEST).all() or not (squares < 1.0 / LOWEST).all():
        return None
    unit = np.exp2(np.ceil(0.5 * np.log2(squares)))
    single, additions = _rounded(rows, unit)
    n, count = unit.size, rows.shape[0]
    trace, largest = 1.02 * float((squares / unit**2).sum()), 1.02 * float((squares / unit**2).max())
    roundings = additions + 2 * FACTORED + 10 + 2 * (n // FACTORED + 1) + 4
    error = _error(roundings, trace, largest, n, count)
    with blas_threads(float(count) * n**2):
        least = _least(lambda p: single.T @ (single @ p), n)
        shift = np.float32(max(SHARE * least, TIMES * error))
        if not shift <= 0.75 * least:
            return None
        lower = _gram_sparse(single) if sp.issparse(single) else _gram(single)
        lower[np.diag_indices(n)] -= shift
        if not _factor(lower):
            return None
    rounding = 1.01 * U32 * math.sqrt(trace)  # ‖E‖_F
    root = (math.sqrt(max(float(shift) - error, 0.0)) - rounding) * (1.0 - 8.0 * U)
    if not root > 0.0:
        return None
    return Coarse(unit, single, lower, root * root * (1.0 - 4.0 * U), count // rank, count // rank / of)


def _error(roundings: int, trace: float, largest: float, n: int, count: int) -> float:
    """Return ε of (2), from how many roundings a number of A and of L goes through together."""
    return 1.03 * roundings * U32 * trace + 4.0 * U32 * largest + n * (count + n) * 2.0**-125


def column_squares(rows: Any) -> np.ndarray:
    """Return the squared norm of every column, in double precision."""
    if sp.issparse(rows):
        return np.bincount(rows.indices, np.asarray(rows.data, dtype=np.float64) ** 2, rows.shape[1])
    return np.einsum("ij,ij->j", rows, rows, dtype=np.float64)


def _rounded(rows: Any, unit: np.ndarray) -> tuple[Any, int]:
    """Return Z, and the roundings that an entry of its Gram matrix goes through at the most."""
    if sp.issparse(rows):
        data = (rows.data / unit[rows.indices]).astype(np.float32)
        count = int(np.bincount(rows.indices, minlength=unit.size).max())
        return sp.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape), count + 2
    single = np.empty(rows.shape, dtype=np.float32)
    np.multiply(rows, 1.0 / unit, out=single, casting="same_kind")
    return single, ROWS + len(rows) // ROWS + 3


def _least(product: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """Return about the least eigenvalue of A, rather too large, by a few steps of conjugate gradients."""
    start = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    solved = conjugate_gradients(lambda p: (product(p), None), start, lambda r: r, share=1e-3, products=STEPS)
    if not solved.steps:
        return 0.0
    return float(ritz_values(np.array(solved.steps), np.array(solved.ratios))[0])


def _gram(single: np.ndarray) -> np.ndarray:
    """Return the lower triangle of ZᵀZ, a block of columns at a time, which stays in cache while blocks of rows add."""
    n = single.shape[1]
    gram = np.zeros((n, n), dtype=np.float32)
    for j in range(0, n, COLUMNS):
        out = gram[j:, j : j + COLUMNS]
        total, part = np.zeros((2, *out.shape), dtype=np.float32)
        for i in range(0, len(single), ROWS):
            block = single[i : i + ROWS, j:]
            total += np.matmul(block.T, block[:, :COLUMNS], out=part)
        out[:] = total
    return gram


def _gram_sparse(single: sp.csr_matrix) -> np.ndarray:
    """Return the lower triangle of ZᵀZ, by a loop over the pairs of each row."""
    gram = np.zeros((single.shape[1],) * 2, dtype=np.float32)
    sparse.add_pairs(single.data, single.indices, single.indptr, gram)
    return gram


def _factor(a: np.ndarray) -> bool:
    """Overwrite the lower triangle by that of the Cholesky factor, in blocks of columns; False where there is none."""
    n = len(a)
    buffers = np.empty((2, n * min(n, FACTORED)), dtype=np.float32)
    for j in range(0, n, FACTORED):
        end = min(j + FACTORED, n)
        width = end - j
        panel, part = (buffer[: (n - j) * width].reshape(n - j, width) for buffer in buffers)
        panel[:] = a[j:, j:end]
        for k in range(0, j, FACTORED):
            panel -= np.matmul(a[j:, k : k + FACTORED], a[j:end, k : k + FACTORED].T, out=part)
        corner, failed = spotrf(panel[:width], lower=1)
        if failed:
            return False
        a[j:end, j:end] = corner
        if end < n:
            a[end:, j:end] = strsm(1.0, corner, panel[width:], side=1, lower=1, trans_a=1)
    return True
