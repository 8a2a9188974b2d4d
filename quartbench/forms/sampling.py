"""What some of the terms tell of all: choices of terms for proofs, and B(τ) from a sample, for tall rows.

The Gram matrix of all rows is what a solve on tall rows costs. That of 20n of them, drawn evenly, is within a factor of
(1 ± √(1/20))² of it where no few terms carry much of any direction: as a preconditioner it is almost as good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import ssyrk

from quartbench.metrics import Cholesky, Metric
from quartbench.runtime.blas import blas_threads

from .base import MODERATE

if TYPE_CHECKING:
    from .terms import TermForm

#: Rows for each unknown in a sample that preconditions, at least and at most; and the share of all that it is between.
SAMPLE, LARGE, SHARE = 20, 40, 0.05

#: Terms are even where none in the sample has more than so many times the mean of their squares.
EVEN = 4.0


def picks(form: TermForm, rows_each: int) -> list[np.ndarray | None]:
    """Return choices of terms for a proof: a sample with so many rows for each unknown, and all, which is None."""
    count = -(-rows_each * form.dim // form.rank)
    return [None] if not form.reads_terms or form.terms <= 1.5 * count else [drawn(form.terms, count), None]


def drawn(terms: int, count: int) -> np.ndarray:
    """Return so many of the terms, evenly drawn, in order."""
    return np.sort(np.random.default_rng(0).choice(terms, count, replace=False))


def sampled(form: TermForm, saved: float) -> Metric | None:
    """Return B(τ) with equal weights on a sample of the terms, in single precision, about B⁽⁰⁾.

    None where it does not save so many passes, where terms are so uneven that a sample would miss much, or where rows
    are too nearly dependent for single precision. A sample that was asked for by name (``saved`` of −∞) is taken of
    uneven terms too.
    """
    count = int(min(max(SAMPLE * form.dim / form.rank, SHARE * form.terms), LARGE * form.dim / form.rank)) + 1
    share = count / form.terms
    if not form.reads_terms or form.row_dtype.kind == "c" or not MODERATE[0] <= form.magnitude <= MODERATE[1]:
        return None
    if share > 0.5 or form.factor_cost() * (1.0 - share) < saved:
        return None
    picked = drawn(form.terms, count)
    rows = form.term_rows(picked).astype(np.float32)
    squares = np.einsum("ij,ij->i", rows, rows).reshape(count, -1).sum(axis=1)
    if saved > -np.inf and not squares.max() <= EVEN * squares.mean():
        return None
    tau = np.zeros(form.terms)
    tau[picked] = weight = form.terms**-0.5 / share
    with blas_threads(0.5 * rows.size * form.dim):
        made = Cholesky.in_single(ssyrk(form.scale**2 * weight, rows.T, lower=1), tau)
    return None if made is None else made.declared(name="sampled", sample=(picked, lambda x: product(rows, x)))


def product(rows: Any, x: np.ndarray) -> np.ndarray:
    """Return Mx for rows in single precision, whatever the size of x."""
    size = float(np.abs(x).max()) or 1.0
    return size * (rows @ (x / size).astype(np.float32)).astype(np.float64)


class Proving(Metric):
    """The metric ΣBᵢ over the terms of a proof, scaled by s²: what corrects dual points where nothing better is there.

    ``tau`` is one on those terms and zero elsewhere, so that B(τ) is what the factor is of.
    """

    name = "proof"
    factor = "cholesky"

    def __init__(self, proof: Any, terms: int, scale: float) -> None:
        self.dim, self._proof, self._scale = proof.unit.size, proof, scale
        self.tau = np.ones(terms)
        if proof.picked is not None:
            self.tau[:] = 0.0
            self.tau[proof.picked] = 1.0
            self.sample = None if proof.image is None else (proof.picked, proof.image)

    def apply(self, x):
        """Raise: only solves are needed."""
        raise NotImplementedError

    def solve(self, v):
        """Return B⁻¹v."""
        return self._proof.solve(v) / (self._proof.share * self._scale**2)
