"""Rows in blocks, wherever these are: each is a form of its own, and their answers are added up or strung together.

An operation takes the form of one block and answers ``(sums, kept)``: a tuple of what is added up over all blocks (n
numbers, n² numbers), and one of what belongs to the terms of the block (their part of an image). A kind says in
``_each`` how it gets an operation to all blocks and the sums back; nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quartbench.errors import DeficientError, ProblemError
from quartbench.forms import StackedForm, TermForm
from quartbench.forms import leverage as by_rows
from quartbench.forms.blocks import mirrored
from quartbench.forms.proof import SAMPLE, Iterated, factor_of_sums, gram_sums
from quartbench.forms.sampling import picks
from quartbench.forms.terms import DENSE_DIMENSION, FACTOR
from quartbench.linalg.known import Known, exactly, together
from quartbench.metrics import Metric
from quartbench.runtime.blas import blas_threads

#: What an operation answers: what is added up over the blocks, and what belongs to the terms of one.
Answer = tuple[tuple, tuple]


def operation(sums: bool = False, keeps: int = 0, by_term: bool = False) -> Callable[[Callable], Callable]:
    """Mark an operation with what it answers: sums, and how many arrays of one number for each row, or each term."""

    def mark(function: Callable) -> Callable:
        function.sums, function.keeps, function.by_term = sums, keeps, by_term
        return function

    return mark


def added(first: tuple, second: tuple) -> tuple:
    """Return two sums as one."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


def known(first: tuple, second: tuple) -> tuple:
    """Return two sums of numbers with bounds as one."""
    return (together(first[0], second[0]),)


class BlockForm(TermForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the Uᵢᵀ stacked as rows that come in blocks of whole terms."""

    rigorous = True
    reads_terms = True
    resident = False
    fuses_misfit = True
    #: The columns without an entry.
    _unused: np.ndarray

    # What a kind says -------------------------------------------------------------------------------------------------

    def _each(
        self, operation: Callable[..., Answer], shared: tuple = (), split: tuple = (), add: Callable = added
    ) -> Answer:
        """Return what an operation answers for all blocks: ``operation(block, *shared, *parts of split)`` for each.

        Parameters
        ----------
        operation : callable
        shared : tuple
            What every block is given.
        split : tuple of arrays or images
            Of one or of ``rank`` numbers for each term, of which a block is given its own.
        add : callable
            Adds two tuples of sums.
        """
        raise NotImplementedError

    def _entries(self) -> int:
        """Return how many entries are stored."""
        raise NotImplementedError

    def _array(self, kept: Any) -> np.ndarray:
        """Return what blocks have kept as one array."""
        return kept

    def _check_definite(self):
        """Raise where there are fewer rows than columns, or a column of zeros."""
        count = self.terms * self.rank
        if count < self.dim:
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most m·r = {count}, but n = {self.dim}; "
                "add terms or restrict x"
            )
        if self._unused.size:
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most {self.dim - self._unused.size} of n = {self.dim}; "
                f"no term sees coordinate {int(self._unused[0])}"
            )

    # Products ---------------------------------------------------------------------------------------------------------

    def _image(self, x):
        return self._each(image_at, (x,))[1][0]

    def _adjoint(self, weights):
        return self._each(_adjoint, (), (weights,))[0][0]

    def _evaluate(self, x):
        (value, gradient), (image,) = self._each(_evaluate, (x,))
        return value, gradient, image

    def _hessian_product(self, x, image, v):
        if image is None:
            return self._each(_hessian_product_at, (x, v))[0][0]
        return self._each(_hessian_product, (v,), (image,))[0][0]

    def _evaluate_misfit(self, x, d, omega):
        (value, gradient), (image,) = self._each(_evaluate_misfit, (x,), (d, omega))
        return value, gradient, image

    def _misfit_product(self, image, alpha, beta, v):
        (product,), (direction,) = self._each(_misfit_product, (v,), (image, alpha, beta))
        return product, direction

    # What has n² in it ------------------------------------------------------------------------------------------------

    @property
    def factorable(self):
        """Whether it is sensible to factor B⁽⁰⁾ without being asked to."""
        return self.dim <= DENSE_DIMENSION

    def factor_cost(self):
        """Return the passes of a Gram matrix, and its factor."""
        return self._gram_cost() + self.dim**3 / (3.0 * FACTOR * self._entries())

    def _gram_cost(self) -> float:
        """Return the passes of a Gram matrix: here by BLAS-3."""
        return self.dim / FACTOR

    def solve_cost(self):
        """Return n² over the stored entries."""
        return self.dim**2 / self._entries()

    def hessian_cost(self):
        """Return what a factor of B(τ) costs: the Hessian is such a matrix."""
        return self.factor_cost()

    def require_dense(self):
        """Allow a dense Hessian of any size: BLAS-3 makes it from the blocks."""

    def weighted_gram(self, tau, single=False):
        """Return B(τ) = Σ τᵢUᵢUᵢᵀ as a dense matrix, the sum of those of the blocks. One pass."""
        self._read()
        gram = self._each(_weighted_gram, (self.scale, single), (np.asarray(tau, dtype=np.float64),))[0][0]
        return np.asfortranarray(gram) if single else gram

    def dense_hessian(self, x, image):
        """Return ρ''(x), the sum of those of the blocks. One pass."""
        self._read()
        return np.asfortranarray(self._each(_dense_hessian, (self.scale,), (image,))[0][0])

    def column_squares(self, weights):
        """Return Σₖ wₖMₖⱼ² for every column j. One pass."""
        self._read()
        return self.scale**2 * self._each(_column_squares, (), (weights,))[0][0]

    def _row_norms(self):
        self._read()
        return self._array(self._each(_row_norms)[1][0])

    # The terms in the norm of a metric: a factor of it goes to the blocks ---------------------------------------------

    def traces(self, metric):
        """Return gᵢ = Tr(B⁻¹Bᵢ) for every term. One sweep."""
        return self._sweep(by_rows.traces, metric)

    def spectral_norms(self, metric):
        """Return λ_max(UᵢᵀB⁻¹Uᵢ) ≤ gᵢ for every term. One sweep."""
        return self._sweep(by_rows.traces if self.rank == 1 else by_rows.spectral_norms, metric)

    def _sweep(self, sizes: Callable[[TermForm, Metric], np.ndarray], metric: Metric) -> np.ndarray:
        self._read()
        bare = metric.declared(bounds=None, sample=None, tau=None)
        return self.scale**2 * self._array(self._each(_sizes, (sizes, bare))[1][0])

    # Proofs -----------------------------------------------------------------------------------------------------------

    def known_image(self, x, exact=True):
        """Return Mx with proven bounds. One pass."""
        self._read()
        return Known(*self._each(_known_image, (x, exact))[1])

    def known_residual(self, c, hi, lo, exact=True):
        """Return c − Mᵀ(hi + lo) with proven bounds. One pass."""
        self._read()
        (rest,), _ = self._each(_known_residual, (exact,), (hi, lo), known)
        return together(exactly(c), rest)

    def _proof(self):
        if not self.factorable:
            return Iterated(self)
        drawn = [picked for picked in picks(self, SAMPLE) if picked is not None]
        found = self._resting(drawn, lambda rows: self._sharp(rows, 0))
        return found or factor_of_sums(self._gram_sums, np.sqrt(self.gram_diagonal()), self.rank)

    def _gram_sums(self, unit: np.ndarray, basis: np.ndarray | None) -> tuple:
        self._read()
        return self._each(_gram_sums, (unit, basis))[0]

    def term_rows(self, picked):
        """Return the rows of some terms, or of all; raise where these were never meant to be held at once."""
        self._read()
        return self._picked(np.arange(self.terms) if picked is None else picked)

    def _picked(self, picked: np.ndarray) -> Any:
        """Return the rows of some terms, given in order."""
        raise NotImplementedError

    def rounded(self):
        """Raise: blocks are stored in the precision that they are in."""
        raise ProblemError(
            f"dtype='float32' is for dense rows in float64, found {type(self).__name__}; store its blocks in float32"
        )


# Operations on one block; its own scale is 1 --------------------------------------------------------------------------


@operation(keeps=1)
def image_at(block: StackedForm, x: np.ndarray) -> Answer:
    """Return Mx."""
    return (), (block.image(x),)


@operation(sums=True)
def _adjoint(block: StackedForm, weights: np.ndarray) -> Answer:
    return (block.adjoint(weights),), ()


@operation(sums=True, keeps=1)
def _evaluate(block: StackedForm, x: np.ndarray) -> Answer:
    value, gradient, image = block.evaluate_flat(x)
    return (value, gradient), (image,)


@operation(sums=True)
def _hessian_product(block: StackedForm, v: np.ndarray, image: np.ndarray) -> Answer:
    return (block.hessian_product_from_image(image, v),), ()


@operation(sums=True)
def _hessian_product_at(block: StackedForm, x: np.ndarray, v: np.ndarray) -> Answer:
    return (block.hessian_product(x, v),), ()


@operation(sums=True, keeps=1)
def _evaluate_misfit(block: StackedForm, x: np.ndarray, d: np.ndarray, omega: np.ndarray) -> Answer:
    value, gradient, image = block.evaluate_misfit(x, d, omega)
    return (value, gradient), (image,)


@operation(sums=True, keeps=1)
def _misfit_product(
    block: StackedForm, v: np.ndarray, image: np.ndarray, alpha: np.ndarray, beta: np.ndarray
) -> Answer:
    product, direction = block.misfit_product(image, alpha, beta, v)
    return (product,), (direction,)


@operation(sums=True)
def _weighted_gram(block: StackedForm, scale: float, single: bool, tau: np.ndarray) -> Answer:
    with blas_threads(block.gram_work()):
        return (block.scaled(scale).weighted_gram(tau, single),), ()


@operation(sums=True)
def _dense_hessian(block: StackedForm, scale: float, image: np.ndarray) -> Answer:
    return (mirrored(block.scaled(scale).dense_hessian(None, image)),), ()


@operation(sums=True)
def _column_squares(block: StackedForm, weights: np.ndarray) -> Answer:
    return (block.column_squares(weights),), ()


@operation(keeps=1)
def _row_norms(block: StackedForm) -> Answer:
    return (), (block.row_norms(),)


@operation(keeps=1, by_term=True)
def _sizes(block: StackedForm, sizes: Callable, metric: Metric) -> Answer:
    with blas_threads(block.gram_work()):
        return (), (sizes(block, metric),)


@operation(keeps=3)
def _known_image(block: StackedForm, x: np.ndarray, exact: bool) -> Answer:
    return (), tuple(block.known_image(x, exact))


@operation(sums=True)
def _known_residual(block: StackedForm, exact: bool, hi: np.ndarray, lo: np.ndarray) -> Answer:
    return (block.known_residual(np.zeros(block.dim), hi, lo, exact),), ()


@operation(sums=True)
def _gram_sums(block: StackedForm, unit: np.ndarray, basis: np.ndarray | None) -> Answer:
    total = None
    with blas_threads(block.gram_work()):
        for _, rows in block.row_blocks():
            found = gram_sums(rows, unit, basis)
            total = found if total is None else added(total, found)
    return total, ()
