"""Dense rows: fused kernels that read each block of rows once, and BLAS-3 for everything with n² in it."""

from __future__ import annotations

import math

import numpy as np

from quartbench.errors import ProblemError
from quartbench.kernels import exact as exact_
from quartbench.kernels import rows
from quartbench.runtime.blas import blas_threads

from .blocks import block_count, column_squares, gram_of_real_blocks, gram_of_rows, mirrored
from .plain import DensePlain
from .proof import bounded
from .reading import SURVEY_BYTES, survey, watched
from .stacked import StackedForm
from .terms import FACTOR

#: Multiplications of a Hessian up to which a whole solve is one compiled call: at 1000×50 it takes 0.5 ms where the
#: driver takes 2.2 ms, at 2000×100 3.3 and 4.7 (two cores, gap 1e-10), and there BLAS-3 wins by the clock.
COMPILED_WORK = 4_000_000


class DenseForm(StackedForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the Uᵢᵀ stacked as the rows of a dense array; made by :class:`StackedForm`."""

    kind = StackedForm.kind
    rigorous = True
    reads_terms = True

    @property
    def in_columns(self):
        """Whether many columns at once are products of matrices: in float64 they are, by BLAS."""
        return self._rows.dtype == np.float64

    def _survey(self, zeros):
        step = self.rank * max(1, SURVEY_BYTES // (self._rows.itemsize * self.dim * self.rank))
        starts = range(0, self._rows.shape[0], step)
        tops = ((start, np.abs(self._rows[start : start + step]).max(axis=1)) for start in starts)
        return survey(tops, self.rank, zeros)

    def _entries(self):
        return self._rows.size

    def _sample(self):
        return watched(self._rows)

    def used_columns(self):
        """Return which columns have an entry that is not zero."""
        # A column that is nonzero in the first few rows needs no further look: almost always a small read decides.
        used = np.zeros(self.dim, dtype=bool)
        start, step = 0, 8
        while start < self._rows.shape[0] and not used.all():
            used |= (self._rows[start : start + step] != 0).any(axis=0)
            start, step = start + step, min(4 * step, max(1, SURVEY_BYTES // (16 * self._rows.itemsize * self.dim)))
        return used

    def factor_cost(self):
        """Return the passes of a Gram matrix by BLAS-3, in single precision, and its factor."""
        return self.dim / FACTOR + self._factoring()

    def small_rows(self):
        """Return the rows where a Hessian of plain loops beats BLAS and all that surrounds it."""
        few = self._rows.size * self.dim <= COMPILED_WORK and self._rows.dtype == np.float64
        return self._rows if few and self.scale == 1.0 and self._rows.flags.writeable else None

    def signature(self):
        """Return whether rows may be written to, beside the rest: to Numba that is another type."""
        return (*super().signature(), self._rows.flags.writeable)

    def _image(self, x):
        parts = self._parts()
        if parts == 1:
            return rows.image(self._rows, x)
        return self._together(rows.image_parallel, self._rows, x, self._shares(self._rows.shape[0], parts))

    def _adjoint(self, weights):
        parts = self._parts()
        if parts == 1:
            return rows.adjoint(self._rows, weights)
        return self._together(rows.adjoint_parallel, self._rows, weights, self._shares(self._rows.shape[0], parts))

    def _evaluate(self, x):
        parts = self._parts()
        if parts == 1:
            return rows.evaluate(self._rows, self.rank, x)
        return self._together(rows.evaluate_parallel, self._rows, self.rank, x, self._shares(self.terms, parts))

    def _hessian_product(self, x, image, v):
        parts, known = self._parts(), image is not None
        s, x = (image, v) if known else (np.empty(self.terms * self.rank), x)
        if parts == 1:
            return rows.hessian_product(self._rows, self.rank, x, s, known, v)
        return self._together(
            rows.hessian_product_parallel, self._rows, self.rank, x, s, known, v, self._shares(self.terms, parts)
        )

    def image_columns(self, x):
        """Return MX by BLAS-3. One pass for each column."""
        self._read(x.shape[1])
        return self._rows @ (self.scale * x)

    def adjoint_columns(self, weights):
        """Return MᵀW by BLAS-3. One pass for each column."""
        self._read(weights.shape[1])
        return self.scale * (self._rows.T @ weights)

    def row_blocks(self, dense=True):
        """Give copies of blocks of rows in one buffer, in float64. One pass."""
        self._read()
        count, step = self._rows.shape[0], block_count(self.dim, self.rank, np.dtype(np.float64))
        buffer = np.empty((min(step, count), self.dim))
        for start in range(0, count, step):
            part = buffer[: min(step, count - start)]
            part[:] = self._rows[start : start + step]
            yield start, part

    def real_rows(self):
        """Return the rows themselves, in float64."""
        self._read()
        return np.asarray(self._rows, dtype=np.float64)

    def column_squares(self, weights):
        """Return Σₖ wₖMₖⱼ² for every column j. One pass."""
        self._read()
        return self.scale**2 * column_squares(self._rows, weights, self._parts())

    def _row_norms(self):
        self._read()
        return np.sqrt(np.einsum("ij,ij->i", self._rows, self._rows, dtype=np.float64))

    def weighted_gram(self, tau, single=False):
        """Return B(τ) = Σ τᵢUᵢUᵢᵀ as a dense matrix, by BLAS-3 on row blocks."""
        self._read()
        weights = self.scale * np.sqrt(np.repeat(np.asarray(tau, dtype=np.float64), self.rank))
        gram = gram_of_rows(self._rows, weights, single)
        return gram if single else mirrored(gram)

    def dense_hessian(self, x, image):
        """Return ρ''(x) by BLAS-3 on row blocks, O(mrn²). One pass."""
        with blas_threads(0.5 * self._rows.shape[0] * self.dim**2):
            if self.rank > 1:
                return gram_of_real_blocks(self.mixed_blocks(image), self.dim)
            self._read()
            return gram_of_rows(self._rows, math.sqrt(12.0) * self.scale * np.abs(image), single=False)

    def known_image(self, x, exact=True):
        """Return Mx with proven bounds. One pass."""
        self._read()
        parts = self._parts()
        serial, parallel = (
            (exact_.image, exact_.image_parallel) if exact else (exact_.image_bounded, exact_.image_bounded_parallel)
        )
        if parts == 1:
            found = serial(self._rows, x)
        else:
            found = self._together(parallel, self._rows, x, self._shares(self._rows.shape[0], parts))
        return bounded(found)

    def known_residual(self, c, hi, lo, exact=True):
        """Return c − Mᵀ(hi + lo) with proven bounds. One pass."""
        self._read()
        parts = self._parts()
        exact = exact or lo.any()
        serial, parallel = (
            (exact_.residual, exact_.residual_parallel)
            if exact
            else (exact_.residual_bounded, exact_.residual_bounded_parallel)
        )
        arguments = (self._rows, c, hi, lo) if exact else (self._rows, c, hi)
        if parts == 1:
            return bounded(serial(*arguments))
        return bounded(self._together(parallel, *arguments, self._shares(self._rows.shape[0], parts)))

    def term_rows(self, picked):
        """Return the rows of some terms, in the precision in which they are stored."""
        self._read()
        return self._rows if picked is None else self._rows.reshape(self.terms, -1)[picked].reshape(-1, self.dim)

    def rounded(self):
        """Return the form with rows in single precision; rows of 1e±60 are in its range once they are scaled."""
        if self._rows.dtype != np.float64:
            raise ProblemError(
                "dtype='float32' is for dense rows in float64, "
                f"found {type(self).__name__} with {self._rows.dtype} rows"
            )
        twin = self.scaled(1.0 / self.scale)
        twin._rows = (self._rows if self.scale == 1.0 else self.scale * self._rows).astype(np.float32)
        twin._kept = {"magnitude": self.magnitude, "zero terms": self.zero_terms()}
        return twin

    def plain(self):
        """Return ρ by BLAS."""
        return DensePlain(self, self._rows, self.rank)

    def arrays(self):
        """Return rows and rank."""
        return {"rows": self._rows, "rank": np.array(self.rank)}
