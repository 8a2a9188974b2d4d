"""Complex rows, read as they are: the quartic part of phase retrieval."""

from __future__ import annotations

from typing import Any

import numpy as np

from quartbench.errors import DeficientError, ProblemError, complex_array
from quartbench.kernels import exact as exact_
from quartbench.kernels import misfit, rows
from quartbench.kernels.jit import shares, thread_count, together
from quartbench.linalg.known import Known
from quartbench.runtime.blas import blas_threads

from .base import register_form
from .blocks import block_count, column_squares, gram_of_real_blocks, gram_of_rows, mirrored, mixed
from .plain import ComplexPlain
from .reading import SURVEY_BYTES, behind, read_only, survey, watched
from .terms import DENSE_DIMENSION, FACTOR, TermForm


@register_form("complex")
class ComplexForm(TermForm):
    """ρ(x) = Σᵢ |⟨qᵢ,x⟩|⁴ on ℂᴺ, ⟨q,x⟩ = qᴴx: the quartic part of phase retrieval.

    ℂᴺ counts as a real space of dimension n = 2N with ⟨x,y⟩ = Re(xᴴy); a term has rank 2 and the image (re, im). The
    rows are read as they are, without a real embedding; leverage is that of ℂᴺ.

    Parameters
    ----------
    rows : complex array of shape (m, N)
        Row i is qᵢ (not its conjugate). Complex128 in C order is used as it is, anything else is copied once.

    Examples
    --------
    >>> form = qb.ComplexForm(np.array([[1.0, 1.0j], [1.0, -1.0j]]))
    >>> form.dim, form.terms, form.rank
    (4, 2, 2)
    >>> form.value(np.array([1.0, 1.0j]))
    16.0
    """

    dtype = row_dtype = np.dtype(np.complex128)
    leverage_rank = 1
    rigorous = True
    reads_terms = True
    fuses_misfit = True

    def __init__(self, rows: Any) -> None:
        super().__init__()
        self._rows = behind(complex_array(rows, "rows", 2))
        self.terms, points = self._rows.shape
        if self.terms == 0 or points == 0:
            raise ProblemError(f"rows must not be empty, found shape {self._rows.shape}")
        self.dim = 2 * points
        self.rank = 2
        self.shape = (points,)
        self._reals = self._rows.view(np.float64)
        self._work = 2 * self._reals.size
        step = max(1, SURVEY_BYTES // (8 * self.dim))
        tops = ((start, np.abs(self._reals[start : start + step]).max(axis=1)) for start in range(0, self.terms, step))
        zeros: list[int] = []
        self._kept["magnitude"] = survey(tops, 1, zeros)
        self._kept["zero terms"] = np.array(zeros, dtype=np.int64)

    @property
    def rows(self) -> np.ndarray:
        """The rows, as a view that cannot be written to: everybody who has this form shares them."""
        return read_only(self._rows)

    @property
    def columns(self):
        """N."""
        return self.shape[0]

    freedom = columns

    @property
    def factorable(self):
        """Whether it is sensible to factor B⁽⁰⁾ without being asked to."""
        return self.dim <= DENSE_DIMENSION

    def factor_cost(self):
        """Return the passes of a Gram matrix by BLAS-3, in single precision, and its factor."""
        return self.columns / FACTOR + self.columns**3 / (3.0 * FACTOR * self._rows.size)

    def solve_cost(self):
        """Return N² over the entries."""
        return self.columns**2 / self._rows.size

    def hessian_cost(self):
        """Return what a factor of B(τ) costs: the Hessian is such a matrix."""
        return self.factor_cost()

    def require_dense(self):
        """Allow a dense Hessian of any size: BLAS-3 makes it from the rows."""

    def signature(self):
        """Return how the rows are read, beside the rest."""
        return (*super().signature(), self._rows.flags.writeable, self._parts() > 1)

    def _sample(self):
        return watched(self._reals)

    def _parts(self) -> int:
        return thread_count(self._work, self.terms)

    def _bounds(self, parts: int) -> np.ndarray:
        key = ("shares", parts)
        if key not in self._kept:
            self._kept[key] = shares(self.terms, parts)
        return self._kept[key]

    def _image(self, x):
        parts = self._parts()
        if parts == 1:
            return rows.image_complex(self._reals, x)
        return together(rows.image_complex_parallel, self._work, self._reals, x, self._bounds(parts))

    def _adjoint(self, weights):
        parts = self._parts()
        if parts == 1:
            return rows.adjoint_complex(self._reals, weights)
        return together(rows.adjoint_complex_parallel, self._work, self._reals, weights, self._bounds(parts))

    def _evaluate(self, x):
        parts = self._parts()
        if parts == 1:
            return rows.evaluate_complex(self._reals, x)
        return together(rows.evaluate_complex_parallel, self._work, self._reals, x, self._bounds(parts))

    def _hessian_product(self, x, image, v):
        parts, known = self._parts(), image is not None
        s, x = (image, v) if known else (np.empty(2 * self.terms), x)
        if parts == 1:
            return rows.hessian_product_complex(self._reals, x, s, known, v)
        return together(
            rows.hessian_product_complex_parallel, self._work, self._reals, x, s, known, v, self._bounds(parts)
        )

    def _evaluate_misfit(self, x, d, omega):
        parts = self._parts()
        if parts == 1:
            return misfit.evaluate_complex(self._reals, x, d, omega)
        bounds = self._bounds(parts)
        return together(misfit.evaluate_complex_parallel, self._work, self._reals, x, d, omega, bounds)

    def _misfit_product(self, image, alpha, beta, v):
        parts = self._parts()
        if parts == 1:
            return misfit.product_complex(self._reals, image, alpha, beta, v)
        bounds = self._bounds(parts)
        return together(misfit.product_complex_parallel, self._work, self._reals, image, alpha, beta, v, bounds)

    def row_blocks(self, dense=True):
        """Give copies of blocks of complex rows in one buffer. One pass."""
        self._read()
        step = block_count(self.columns, 1, self.dtype)
        buffer = np.empty((min(step, self.terms), self.columns), dtype=self.dtype)
        for start in range(0, self.terms, step):
            part = buffer[: min(step, self.terms - start)]
            part[:] = self._rows[start : start + step]
            yield start, part

    def real_rows(self):
        """Return the real and imaginary parts of q̄ᵢ as rows on (re, im) pairs."""
        self._read()
        return _embedded(self._rows)

    def mixed_blocks(self, image):
        """Give Wᵢ^½Uᵢᵀ of the terms in blocks of real rows. One pass."""
        self._read()
        s, step = image.reshape(-1, 2), max(1, block_count(self.dim, 2, np.dtype(np.float64)) // 2)
        for start in range(0, self.terms, step):
            yield mixed(_embedded(self._rows[start : start + step]), s[start : start + step], self.scale)

    def column_squares(self, weights):
        """Return Σₖ wₖMₖⱼ² for the real rows (re, im) and (−im, re) of every measurement. One pass."""
        self._read()
        first, second = (
            column_squares(self._reals, np.ascontiguousarray(part), self._parts()) for part in weights.reshape(-1, 2).T
        )
        first[0::2] += second[1::2]
        first[1::2] += second[0::2]
        return self.scale**2 * first

    def _row_norms(self):
        self._read()
        return np.repeat(np.sqrt(np.einsum("ij,ij->i", self._reals, self._reals)), 2)

    def weighted_gram(self, tau, single=False):
        """Return the Hermitian B(τ) = Σ τᵢqᵢqᵢᴴ on ℂᴺ."""
        self._read()
        gram = gram_of_rows(self._rows, self.scale * np.sqrt(np.asarray(tau, dtype=np.float64)), single)
        return gram if single else mirrored(gram)

    def dense_hessian(self, x, image):
        """Return ρ''(x) by BLAS-3 on real row blocks. One pass."""
        with blas_threads(self.terms * self.dim**2):
            return gram_of_real_blocks(self.mixed_blocks(image), self.dim)

    def known_image(self, x, exact=True):
        """Return (re, im) of ⟨qᵢ,x⟩ with proven bounds, always in twice the precision. One pass."""
        self._read()
        parts = self._parts()
        if parts == 1:
            return Known(*exact_.image_complex(self._reals, x))
        return Known(*together(exact_.image_complex_parallel, self._work, self._reals, x, self._bounds(parts)))

    def known_residual(self, c, hi, lo, exact=True):
        """Return c − Σ (hi + lo)ᵢqᵢ with proven bounds, always in twice the precision. One pass."""
        self._read()
        parts = self._parts()
        if parts == 1:
            return Known(*exact_.residual_complex(self._reals, c, hi, lo))
        return Known(
            *together(exact_.residual_complex_parallel, self._work, self._reals, c, hi, lo, self._bounds(parts))
        )

    def term_rows(self, picked):
        """Return the real rows of some terms: two for each."""
        self._read()
        return _embedded(self._rows if picked is None else self._rows[picked])

    def _check_definite(self) -> None:
        """Raise where there are fewer measurements than unknowns, or an entry that none of them sees."""
        if self.terms < self.shape[0]:
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most m = {self.terms}, but N = {self.shape[0]}; "
                "add measurements"
            )
        unseen = ~(self._rows[:8] != 0).any(axis=0)  # almost always these few decide
        if unseen.any():
            unseen[unseen] = ~(self._rows[:, unseen] != 0).any(axis=0)
        if unseen.any():
            seen = unseen.size - int(unseen.sum())
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most {seen} of N = {unseen.size}; no measurement sees "
                f"entry {int(unseen.argmax())}"
            )

    def plain(self):
        """Return ρ by complex BLAS."""
        return ComplexPlain(self, self._rows)

    def arrays(self):
        """Return the rows."""
        return {"rows": self._rows}

    @classmethod
    def from_arrays(cls, arrays):
        """Return the form of rows that a file kept."""
        return cls(arrays["rows"])


def _embedded(part: np.ndarray) -> np.ndarray:
    """Return the two real rows of each complex one: those of the real and of the imaginary part of ⟨q,x⟩."""
    block = np.empty((2 * len(part), 2 * part.shape[1]))
    block[0::2, 0::2], block[0::2, 1::2] = part.real, part.imag
    block[1::2, 0::2], block[1::2, 1::2] = -part.imag, part.real
    return block
