"""What is computed from blocks of rows by BLAS-3: Gram matrices, and the rows of which a Hessian is one.

A term adds UᵢWᵢUᵢᵀ to ρ''(x), Wᵢ = 4qᵢI + 8sᵢsᵢᵀ with sᵢ = Uᵢᵀx and qᵢ = ‖sᵢ‖². Wᵢ has the root
2‖sᵢ‖(I + (√3−1)ŝᵢŝᵢᵀ), so the Hessian is the Gram matrix of rows that are the term's own, scaled and mixed: no term
needs more than its r rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.linalg import blas

from quartbench.kernels import rows
from quartbench.kernels.jit import shares, thread_count, together

#: Bytes of rows that are copied, weighted or whitened at a time: fewer lose BLAS its speed, more leave the caches.
BLOCK_BYTES = 1 << 24

#: √3 − 1: the root of I + 2ŝŝᵀ is I + (√3−1)ŝŝᵀ.
ROOT = math.sqrt(3.0) - 1.0

#: BLAS's update of the lower triangle of a Gram matrix, by the type of the rows.
RANK_UPDATE = {"f": blas.ssyrk, "d": blas.dsyrk, "F": blas.cherk, "D": blas.zherk}


def block_count(columns: int, rank: int, dtype: np.dtype) -> int:
    """Return how many rows a block has: whole terms, 16 MB."""
    return rank * max(1, BLOCK_BYTES // (np.dtype(dtype).itemsize * columns * rank))


def lowered(dtype: np.dtype) -> np.dtype:
    """Return the type of half the precision."""
    return np.dtype(np.complex64 if np.dtype(dtype).kind == "c" else np.float32)


def gram_of_blocks(blocks: Iterable, weights: np.ndarray, columns: int, dtype: np.dtype, single: bool) -> np.ndarray:
    """Return the lower triangle of Σ wₖ² rowₖ rowₖᴴ from blocks of rows, each given with the number of its first."""
    dtype = lowered(dtype) if single else np.dtype(dtype)
    out = np.zeros((columns, columns), dtype=dtype, order="F")
    for start, part in blocks:
        block = np.empty(part.shape, dtype=dtype)
        scale_rows(part, weights[start : start + len(part)], block)
        out = RANK_UPDATE[dtype.char](1.0, block.T, beta=1.0, c=out, overwrite_c=1, lower=1)
    return out


def gram_of_rows(matrix: np.ndarray, weights: np.ndarray, single: bool) -> np.ndarray:
    """Return the lower triangle of Σ wₖ² rowₖ rowₖᴴ of a dense matrix, through scaled copies that share 16 MB."""
    count, n = matrix.shape
    dtype = np.dtype(np.complex128 if np.iscomplexobj(matrix) else np.float64)
    dtype = lowered(dtype) if single else dtype
    out = np.zeros((n, n), dtype=dtype, order="F")
    step = min(count, max(1, BLOCK_BYTES // (dtype.itemsize * n)))
    buffer = np.empty((step, n), dtype=dtype)
    for start in range(0, count, step):
        block = buffer[: min(step, count - start)]
        scale_rows(matrix[start : start + step], weights[start : start + step], block)
        out = RANK_UPDATE[dtype.char](1.0, block.T, beta=1.0, c=out, overwrite_c=1, lower=1)
    return out


def gram_of_real_blocks(blocks: Iterable[np.ndarray], columns: int) -> np.ndarray:
    """Return the lower triangle of Σ rowₖrowₖᵀ from blocks of real rows."""
    out = np.zeros((columns, columns), order="F")
    for block in blocks:
        out = blas.dsyrk(1.0, block.T, beta=1.0, c=out, overwrite_c=1, lower=1)
    return out


def mirrored(lower: np.ndarray) -> np.ndarray:
    """Return the Hermitian matrix of a lower triangle."""
    return np.tril(lower) + np.tril(lower, -1).conj().T


def scale_rows(matrix: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write the rows of a real or complex matrix, each times its weight, to ``out``, in the precision of that."""
    if np.iscomplexobj(out):
        matrix, out = matrix.view(np.float64), out.view(np.float32 if out.dtype == np.complex64 else np.float64)
    parts = thread_count(matrix.size, len(matrix))
    if parts == 1:
        rows.scale(matrix, weights, out)
    else:
        together(rows.scale_parallel, matrix.size, matrix, weights, out, shares(len(matrix), parts))


def column_squares(matrix: np.ndarray, weights: np.ndarray, parts: int) -> np.ndarray:
    """Return Σₖ wₖMₖⱼ² for every column of a dense matrix."""
    if parts == 1:
        return rows.column_squares(matrix, weights)
    return together(rows.column_squares_parallel, matrix.size, matrix, weights, shares(len(matrix), parts))


def mixed(block: np.ndarray, s: np.ndarray, scale: float) -> np.ndarray:
    """Return Wᵢ^½Uᵢᵀ for a block of whole terms with images s of shape (terms, rank); the block is overwritten."""
    lengths, unit = directions(s)
    cube = block.reshape(len(s), s.shape[1], -1)
    if s.shape[1] == 1:
        cube *= (math.sqrt(12.0) * scale * lengths)[:, None, None]
        return block
    cube += ROOT * unit[:, :, None] * (unit[:, None, :] @ cube)
    cube *= (2.0 * scale * lengths)[:, None, None]
    return block


def directions(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ‖sᵢ‖ and ŝᵢ, zero where sᵢ is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", s, s))
    return lengths, s / np.where(lengths > 0.0, lengths, 1.0)[:, None]
