"""What is ρ''(x) as a matrix, and its factor? The dense Hessian by BLAS-3 on row blocks.

A term adds UᵢWᵢUᵢᵀ with Wᵢ = 4qᵢI + 8sᵢsᵢᵀ, sᵢ = Uᵢᵀx and qᵢ = ‖sᵢ‖². Wᵢ has the root 2‖sᵢ‖(I + (√3−1)ŝᵢŝᵢᵀ), so the
Hessian is the Gram matrix of rows that are the term's own, scaled and mixed: no term needs more than its r rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from quartbench.errors import ProblemError
from quartbench.model import Cholesky, ComplexForm, Form, GraphForm, StackedForm
from quartbench.model.forms import blocked_gram
from quartbench.model.threads import blas_threads

from .factor import BLOCK_BYTES

#: The most unknowns for which a dense Hessian is made from products or from the edges of a graph.
DENSE_UNKNOWNS = 4000

#: √3 − 1: the root of I + 2ŝŝᵀ is I + (√3−1)ŝŝᵀ.
ROOT = math.sqrt(3.0) - 1.0

#: The unit diagonal is raised by this where the factorisation fails, and tenfold each time after.
RIDGE = 1e-14


def require_dense(form: Form) -> None:
    """Raise where a form has no dense Hessian."""
    if not isinstance(form, StackedForm | ComplexForm) and form.dim > DENSE_UNKNOWNS:
        raise ProblemError(
            f"a dense Hessian of {type(form).__name__} is made up to {DENSE_UNKNOWNS} unknowns, found {form.dim}; "
            "take the solver 'homnewton-cg'"
        )


def dense_hessian(form: Form, x: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Return ρ''(x) as a dense matrix, of which only the lower triangle counts. One pass, O(mrn²) by BLAS-3.

    Parameters
    ----------
    form : Form
        On a graph, translations, on which the Hessian vanishes, get the weight of the rest.
    x, image : array
        A flat point and its image.
    """
    require_dense(form)
    if isinstance(form, GraphForm):
        return _graph_hessian(form, image)
    if not isinstance(form, StackedForm | ComplexForm):
        return np.asfortranarray([form.hessian_product_flat(x, image, column) for column in np.eye(form.dim)])
    form.passes += 1
    if isinstance(form, StackedForm) and form.sparse:
        mixed = _roots(image.reshape(-1, form.rank), form.scale) @ form.rows
        return np.asfortranarray((mixed.T @ mixed).toarray())
    with blas_threads(0.5 * form.terms * form.rank * form.dim**2):
        if form.rank == 1:
            return blocked_gram(form.rows, math.sqrt(12.0) * form.scale * np.abs(image), np.float64, blas.dsyrk)
        out = np.zeros((form.dim, form.dim), order="F")
        for block in _mixed_blocks(form, image.reshape(-1, form.rank)):
            out = blas.dsyrk(1.0, block.T, beta=1.0, c=out, overwrite_c=1, lower=1)
    return out


def factored_hessian(matrix: np.ndarray) -> Cholesky:
    """Return the factor of a Hessian, whose diagonal is raised a little where rounding or x make it singular."""
    squares = matrix.diagonal()
    seen = squares > 0.0
    # A coordinate that no term sees at x (sᵢ = 0 for all that see it) still needs a positive pivot; one that is only
    # measured in other units than the rest keeps its own.
    least = float(squares[seen].min()) if seen.any() else 1.0
    scale = np.sqrt(np.where(seen, squares, max(1e-30 * least, np.finfo(float).tiny)))
    unit = matrix / scale
    unit /= scale[:, None]
    ridge = 0.0
    with blas_threads(len(unit) ** 3 / 6.0):
        while True:
            np.fill_diagonal(unit, 1.0 + ridge)
            lower, failed = lapack.dpotrf(unit, lower=1)
            if not failed:
                return Cholesky.from_factor(lower, scale)
            if ridge > len(unit):  # by then dominated by its diagonal, whatever the entries
                raise ProblemError("the Hessian has entries that are NaN or infinite")
            ridge = max(10.0 * ridge, RIDGE)


def _mixed_blocks(form: Form, images: np.ndarray) -> Iterator[np.ndarray]:
    """Give Wᵢ^½Uᵢᵀ of the terms in blocks of rows that share one buffer."""
    rank, n = form.rank, form.dim
    step = max(1, min(form.terms, BLOCK_BYTES // (8 * rank * n)))
    buffer = np.empty((step * rank, n))
    for start in range(0, form.terms, step):
        s = images[start : start + step]
        block = buffer[: len(s) * rank]
        if isinstance(form, ComplexForm):
            _embed(form.rows[start : start + step], block)
        else:
            block[:] = form.rows[start * rank : start * rank + len(block)]
        lengths, unit = _directions(s)
        cube = block.reshape(len(s), rank, n)
        cube += ROOT * unit[:, :, None] * (unit[:, None, :] @ cube)
        cube *= (2.0 * form.scale * lengths)[:, None, None]
        yield block


def _directions(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ‖sᵢ‖ and ŝᵢ, zero where sᵢ is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", s, s))
    return lengths, s / np.where(lengths > 0.0, lengths, 1.0)[:, None]


def _embed(rows: np.ndarray, block: np.ndarray) -> None:
    """Write the two real rows of each complex one: those of the real and of the imaginary part of ⟨q,x⟩."""
    block[0::2, 0::2], block[0::2, 1::2] = rows.real, rows.imag
    block[1::2, 0::2], block[1::2, 1::2] = -rows.imag, rows.real


def _roots(s: np.ndarray, scale: float) -> sp.spmatrix:
    """Return the block-diagonal matrix of the roots Wᵢ^½."""
    count, rank = s.shape
    lengths, unit = _directions(s)
    blocks = (np.eye(rank) + ROOT * unit[:, :, None] * unit[:, None, :]) * (2.0 * scale * lengths)[:, None, None]
    if rank == 1:
        return sp.diags(blocks.reshape(-1))
    return sp.bsr_matrix((blocks, np.arange(count), np.arange(count + 1)), shape=(count * rank, count * rank)).tocsr()


def _graph_hessian(form: GraphForm, image: np.ndarray) -> np.ndarray:
    """Return Σ (eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ ⊗ Wᵢⱼ, with its mean diagonal on translations."""
    d, points = form.coordinates, form.points
    form.passes += 1
    s = image.reshape(-1, d)
    blocks = 8.0 * s[:, :, None] * s[:, None, :]
    blocks[:, np.arange(d), np.arange(d)] += 4.0 * np.einsum("ij,ij->i", s, s)[:, None]
    blocks *= form.scale**2
    out = np.zeros((points, points, d, d))
    out[form.heads, form.tails] = out[form.tails, form.heads] = -blocks
    diagonal = np.zeros((points, d, d))
    np.add.at(diagonal, form.heads, blocks)
    np.add.at(diagonal, form.tails, blocks)
    out[np.arange(points), np.arange(points)] = diagonal
    out += (np.trace(diagonal.sum(axis=0)) / (d * points**2)) * np.eye(d)
    return np.asfortranarray(out.transpose(0, 2, 1, 3).reshape(form.dim, form.dim))
