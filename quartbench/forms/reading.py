"""What did the user give? Rows and edges are read and checked here, once, before any kernel sees them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from quartbench.errors import ProblemError, any_array
from quartbench.linalg.edges import in_order

#: Bytes of rows that a survey copies at a time: few stay in cache, many are pages that the system has to find first
#: (20000×100 took 6 ms in blocks of 32 MB, and 2 ms in these).
SURVEY_BYTES = 1 << 20

#: Entries of an array that are looked at again to see whether it was changed: some microseconds.
WATCHED = 1024


#: The most rows for each stored entry of a sparse matrix: empty ones cost memory, and a file may claim any number.
EMPTY_ROWS = 100

#: The largest entries that rows may have: forms scale them, and squares of the scale have to be numbers.
SIZES = (1e-151, 1e151)


def stacked_rows(given: Any, rank: int) -> np.ndarray | sp.csr_matrix:
    """Return rows as a C-ordered float64 or float32 array, or a canonical CSR matrix."""
    if sp.issparse(given):
        if given.dtype.kind == "c":
            raise ProblemError("rows must be real, found complex values; use ComplexForm for complex rows")
        if given.ndim != 2:
            raise ProblemError(f"rows must have 2 dimensions (m·r, n), found shape {given.shape}")
        _require_indices(given)
        if given.shape[0] > EMPTY_ROWS * rank * given.nnz:  # said before anything of that size is made
            raise ProblemError(
                f"rows must not be almost all empty, found {given.shape[0]} of them with {given.nnz} entries in all; "
                "drop those without one"
            )
        matrix = given.tocsr()
        if matrix is given and not matrix.has_canonical_format:
            matrix = matrix.copy()
        matrix.sum_duplicates()
        return matrix.astype(np.float64) if matrix.dtype not in (np.float64, np.float32) else behind(matrix)
    if hasattr(given, "matvec"):
        raise ProblemError("rows must be an array, found an operator; OperatorForm takes rows by their products")
    array = any_array(given, "rows")
    if array.dtype.kind == "c":
        raise ProblemError("rows must be real, found complex values; use ComplexForm for complex rows")
    if array.ndim != 2:
        raise ProblemError(f"rows must have 2 dimensions (m·r, n), found shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ProblemError(f"rows must be an array of numbers, found dtype {array.dtype}")
    dtype = array.dtype if array.dtype in (np.float64, np.float32) else np.float64
    return behind(np.ascontiguousarray(array, dtype=dtype))


def read_only(rows: np.ndarray | sp.csr_matrix) -> np.ndarray | sp.csr_matrix:
    """Return the same rows without a copy, as a view that cannot be written to; the rows themselves still can."""
    if sp.issparse(rows):
        return _by_arrays(rows, read_only)
    view = rows.view()
    view.flags.writeable = False
    return view


def watched(array: np.ndarray) -> np.ndarray:
    """Return a copy of some entries, evenly spaced: enough to see that an array was filled or scaled anew."""
    return array.reshape(-1)[:: array.size // WATCHED + 1].copy()


def behind(rows: np.ndarray | sp.csr_matrix) -> np.ndarray | sp.csr_matrix:
    """Return what ``read_only`` made a view of, where it did: Numba compiles kernels anew for read-only arrays."""
    if sp.issparse(rows):
        return rows if rows.data.flags.writeable else _by_arrays(rows, behind)
    whole = rows.base
    if rows.flags.writeable or type(whole) is not np.ndarray or not whole.flags.writeable:
        return rows
    same = (rows.ctypes.data, rows.shape, rows.strides, rows.dtype)
    return whole if same == (whole.ctypes.data, whole.shape, whole.strides, whole.dtype) else rows


def _by_arrays(rows: sp.csr_matrix, change: Callable[[np.ndarray], np.ndarray]) -> sp.csr_matrix:
    """Return a CSR matrix on changed views of its arrays."""
    changed = copy.copy(rows)
    changed.data, changed.indices, changed.indptr = map(change, (rows.data, rows.indices, rows.indptr))
    return changed


def _require_indices(given: Any) -> None:
    """Raise where indices of a compressed sparse matrix lead out of it.

    SciPy takes them as they are, and so do kernels. To look at every one takes less than a pass.
    """
    if given.format not in ("csr", "csc", "bsr"):
        return
    blocks = given.blocksize if given.format == "bsr" else (1, 1)
    lines, across = (length // block for length, block in zip(given.shape, blocks, strict=True))
    if given.format == "csc":
        lines, across = across, lines
    indptr, indices = given.indptr, given.indices
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise ProblemError(f"rows must have whole indices, found {indices.dtype} and {indptr.dtype} of pointers")
    stored = min(len(indices), len(given.data))
    if indptr.shape != (lines + 1,) or indptr[0] != 0 or indptr[-1] > stored or (indptr[1:] < indptr[:-1]).any():
        raise ProblemError(
            f"rows must have {lines + 1} pointers that rise from 0 to at most {stored} stored entries, found "
            f"{indptr.size} that do not: the arrays of the {given.format} matrix do not belong together"
        )
    used = indices[: indptr[-1]]
    if used.size and not 0 <= used.min() <= used.max() < across:
        wrong = int(used[(used < 0) | (used >= across)][0])
        raise ProblemError(f"rows must have indices of 0 to {across - 1}, found {wrong} in the {given.format} matrix")


def survey(tops: Iterable[tuple[int, np.ndarray]], rank: int, zeros: list[int] | None = None) -> float:
    """Return the largest entry; raise at the first NaN or infinity, and where it is far out of range.

    Parameters
    ----------
    tops : iterable of (int, array)
        The number of the first row of a block, and the largest entry of each row of it in absolute value.
    rank : int
    zeros : list of int, optional
        Is given the numbers of the terms that are zero.
    """
    largest = 0.0
    for start, found in tops:
        if not np.isfinite(found).all():
            row = int(start + np.flatnonzero(~np.isfinite(found))[0])
            raise ProblemError(f"rows must be finite, found NaN or infinity in row {row}")
        by_term = found.reshape(-1, rank).max(axis=1)
        if zeros is not None and not by_term.all():
            zeros += (start // rank + np.flatnonzero(by_term == 0)).tolist()
        largest = max(largest, float(by_term.max()))
    if not SIZES[0] <= largest <= SIZES[1]:
        raise ProblemError(
            f"rows must have a largest entry between {SIZES[0]:g} and {SIZES[1]:g}, found {largest:.3g}: give them "
            "in other units (rows a times as large have the minimiser of c/a⁴)"
        )
    return largest


def simple_edges(given: Any, points: int) -> np.ndarray:
    """Return the edges of a connected graph, each once with i < j, in lexicographic order."""
    edges = any_array(given, "edges")
    if edges.ndim != 2 or edges.shape[1] != 2 or len(edges) == 0:
        raise ProblemError(f"edges must have shape (m, 2) with m ≥ 1, found shape {edges.shape}")
    if edges.dtype.kind not in "iu":
        raise ProblemError(f"edges must be integers, found dtype {edges.dtype}")
    if edges.min() < 0 or edges.max() >= points:
        which = int(np.flatnonzero(((edges < 0) | (edges >= points)).any(axis=1))[0])
        raise ProblemError(f"edges must join vertices 0 to {points - 1}, found {tuple(map(int, edges[which]))}")
    loops = edges[:, 0] == edges[:, 1]
    if loops.any():
        which = int(np.flatnonzero(loops)[0])
        raise ProblemError(f"edges must join two vertices, found the self-loop {tuple(map(int, edges[which]))}")
    low, high, _ = in_order(edges)
    repeated = int(((low[1:] == low[:-1]) & (high[1:] == high[:-1])).sum())
    if repeated:
        raise ProblemError(f"edges must be listed once each, found {repeated} repeated")
    heads, tails, joined = low, high, points
    if len(edges) < points - 1:  # not connected; a file may claim any number of vertices, so only those joined count
        vertices, ends = np.unique(np.stack([low, high]), return_inverse=True)
        (heads, tails), joined = ends.reshape(2, -1), len(vertices)
    starts = np.searchsorted(heads, np.arange(joined + 1))
    adjacency = sp.csr_matrix((np.ones(len(edges)), tails, starts), shape=(joined, joined))
    components = connected_components(adjacency, directed=False)[0] + points - joined
    if components > 1:
        raise ProblemError(f"the graph must be connected, found {components} components: ρ vanishes between them")
    return np.stack([low, high], axis=1)
