"""Sparse rows: kernels that gather, Gram matrices by sparse products."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench.kernels import exact as exact_
from quartbench.kernels import sparse
from quartbench.kernels.jit import shares
from quartbench.linalg.known import Known

from .blocks import ROOT, block_count, directions
from .plain import SparsePlain
from .proof import ROUNDS, factor_of_gram
from .reading import survey, watched
from .stacked import StackedForm

#: Share of stored entries below which rows are multiplied by the inverse factor and not made dense for BLAS.
SPARSE_SHARE = 0.05

#: Unknowns up to which nearly dependent rows are made dense for a proof.
DENSE_PROOF = 2000


class SparseForm(StackedForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the Uᵢᵀ stacked as the rows of a CSR matrix; made by :class:`StackedForm`."""

    kind = StackedForm.kind
    rigorous = True
    reads_terms = True
    bare_metric = "diagonal"
    #: A sparse entry costs about this many dense ones: gathers instead of streams.
    _entry_cost = 4

    def _survey(self, zeros):
        tops = np.maximum.reduceat(np.append(np.abs(self._rows.data), 0.0), self._rows.indptr[:-1])
        tops[np.diff(self._rows.indptr) == 0] = 0.0
        return survey([(0, tops)], self.rank, zeros)

    def _entries(self):
        return self._rows.nnz

    def _sample(self):
        return watched(self._rows.data)

    def used_columns(self):
        """Return which columns have an entry."""
        return np.bincount(self._rows.indices, minlength=self.dim) > 0

    def factor_cost(self):
        """Return the passes of a sparse Gram matrix, one for each entry of a row, and its factor."""
        return self._entries() / self._rows.shape[0] + self._factoring()

    def _csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._rows.data, self._rows.indices, self._rows.indptr

    def _term_shares(self, parts: int) -> np.ndarray:
        """Return the bounds of each thread's terms, with evenly many stored entries."""
        key = ("shares", self.terms, parts)
        if key not in self._kept:
            first = self._rows.indptr[:: self.rank]
            bounds = np.searchsorted(first, shares(int(self._rows.nnz), parts)).astype(np.int64)
            bounds[0], bounds[-1] = 0, self.terms
            self._kept[key] = bounds
        return self._kept[key]

    def _image(self, x):
        parts = self._parts()
        if parts == 1:
            return sparse.image(*self._csr(), x)
        return self._together(sparse.image_parallel, *self._csr(), x, self._term_shares(parts) * self.rank)

    def _adjoint(self, weights):
        parts = self._parts()
        if parts == 1:
            return sparse.adjoint(*self._csr(), self.dim, weights)
        bounds = self._term_shares(parts) * self.rank
        return self._together(sparse.adjoint_parallel, *self._csr(), self.dim, weights, bounds)

    def _evaluate(self, x):
        parts = self._parts()
        if parts == 1:
            return sparse.evaluate(*self._csr(), self.dim, self.rank, x)
        return self._together(sparse.evaluate_parallel, *self._csr(), self.dim, self.rank, x, self._term_shares(parts))

    def _hessian_product(self, x, image, v):
        parts, known = self._parts(), image is not None
        s, x = (image, v) if known else (np.empty(self.terms * self.rank), x)
        if parts == 1:
            return sparse.hessian_product(*self._csr(), self.dim, self.rank, x, s, known, v)
        bounds = self._term_shares(parts)
        return self._together(
            sparse.hessian_product_parallel, *self._csr(), self.dim, self.rank, x, s, known, v, bounds
        )

    def row_blocks(self, dense=True):
        """Give blocks of rows as dense copies in float64, or as slices of the CSR matrix. One pass."""
        self._read()
        step = block_count(self.dim, self.rank, np.dtype(np.float64))
        for start in range(0, self._rows.shape[0], step):
            part = self._rows[start : start + step]
            yield start, part.toarray().astype(np.float64, copy=False) if dense else part

    def whitened_blocks(self, metric):
        """Give the rows through the factor of a metric: by its inverse where rows are few entries each."""
        if self._entries() >= SPARSE_SHARE * np.prod(self._rows.shape):
            yield from super().whitened_blocks(metric)
            return
        inverse = np.ascontiguousarray(metric.half_solve(np.eye(self.dim)).T)
        for start, part in self.row_blocks(dense=False):
            yield start, part @ inverse

    def real_rows(self):
        """Return the CSR matrix itself, in float64."""
        self._read()
        return self._rows.astype(np.float64, copy=False)

    def column_squares(self, weights):
        """Return Σₖ wₖMₖⱼ² for every column j. One pass."""
        self._read()
        parts = self._parts()
        if parts == 1:
            return self.scale**2 * sparse.column_squares(*self._csr(), self.dim, weights)
        bounds = self._term_shares(parts) * self.rank
        sums = self._together(sparse.column_squares_parallel, *self._csr(), self.dim, weights, bounds)
        return self.scale**2 * sums

    def _row_norms(self):
        self._read()
        return np.sqrt(np.asarray(self._rows.power(2).sum(axis=1), dtype=float).ravel())

    def weighted_gram(self, tau, single=False):
        """Return B(τ) = Σ τᵢUᵢUᵢᵀ as a dense matrix, by a loop over the pairs of each row."""
        self._read()
        dtype = np.float32 if single else np.float64
        roots = self.scale * np.sqrt(np.repeat(np.asarray(tau, dtype=np.float64), self.rank))
        gram = np.zeros((self.dim, self.dim), dtype=dtype)
        data = (self._rows.data * np.repeat(roots, np.diff(self._rows.indptr))).astype(dtype)
        sparse.add_pairs(data, self._rows.indices, self._rows.indptr, gram)
        return np.asfortranarray(gram) if single else gram + np.tril(gram, -1).T

    def known_image(self, x, exact=True):
        """Return Mx with proven bounds, always in twice the precision. One pass."""
        self._read()
        parts = self._parts()
        if parts == 1:
            return Known(*exact_.image_sparse(*self._csr(), x))
        bounds = self._term_shares(parts) * self.rank
        return Known(*self._together(exact_.image_sparse_parallel, *self._csr(), x, bounds))

    def known_residual(self, c, hi, lo, exact=True):
        """Return c − Mᵀ(hi + lo) with proven bounds, always in twice the precision. One pass."""
        self._read()
        parts = self._parts()
        if parts == 1:
            return Known(*exact_.residual_sparse(*self._csr(), c, hi, lo))
        bounds = self._term_shares(parts) * self.rank
        return Known(*self._together(exact_.residual_sparse_parallel, *self._csr(), c, hi, lo, bounds))

    def term_rows(self, picked):
        """Return the rows of some terms as a CSR matrix."""
        self._read()
        return self._rows if picked is None else super().term_rows(picked)

    def sampled(self, saved):
        """Return None: sparse rows have a diagonal metric that costs a pass."""
        return None

    def _sharp(self, rows, rounds=ROUNDS):
        """Return the proof through the sparse Gram matrix; where rows are nearly dependent, and few, as dense ones.

        Columns are divided by powers of two about their largest entries first: products of small ones would underflow.
        """
        largest = np.zeros(self.dim)
        np.maximum.at(largest, rows.indices, np.abs(np.asarray(rows.data, dtype=np.float64)))
        if not (largest > 0.0).all():
            return None
        unit = np.exp2(np.ceil(np.log2(largest)))
        gram = np.zeros((self.dim, self.dim))
        sparse.add_pairs(rows.data / unit[rows.indices], rows.indices, rows.indptr, gram)
        additions = int(np.bincount(rows.indices, minlength=self.dim).max())
        terms = rows.shape[0] // self.rank
        found = factor_of_gram(gram, additions, terms, terms / self.terms, unit)
        return super()._sharp(rows, rounds) if found is None and rounds and self.dim <= DENSE_PROOF else found

    def dense_hessian(self, x, image):
        """Return ρ''(x) by a product of sparse matrices. One pass."""
        self._read()
        mixed = _roots(image.reshape(-1, self.rank), self.scale) @ self._rows
        return np.asfortranarray((mixed.T @ mixed).toarray())

    def plain(self):
        """Return ρ by scipy.sparse."""
        return SparsePlain(self, self._rows, self.rank)

    def arrays(self):
        """Return the arrays of the CSR matrix, and the rank."""
        data, indices, indptr = self._csr()
        stored = {"data": data, "indices": indices, "indptr": indptr, "columns": np.array(self.dim)}
        return {**stored, "rank": np.array(self.rank)}


def _roots(s: np.ndarray, scale: float) -> sp.spmatrix:
    """Return the block-diagonal matrix of the roots Wᵢ^½ (see :mod:`.blocks`)."""
    count, rank = s.shape
    lengths, unit = directions(s)
    blocks = (np.eye(rank) + ROOT * unit[:, :, None] * unit[:, None, :]) * (2.0 * scale * lengths)[:, None, None]
    if rank == 1:
        return sp.diags(blocks.reshape(-1))
    return sp.bsr_matrix((blocks, np.arange(count), np.arange(count + 1)), shape=(count * rank, count * rank)).tocsr()
