"""How is B(τ) factored so that what follows from the factor is true, and how are the terms seen through it?

Cholesky of the diagonally scaled Gram matrix where that is accurate, QR of the weighted rows where columns are nearly
collinear (the error grows with the condition number of the rows, not with its square), and an error that names the
missing direction beyond. All work on rows is BLAS-3 on blocks that share one buffer of 16 MB.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from quartbench.errors import ProblemError, real_array
from quartbench.model import Cholesky, ComplexForm, Form, GramForm, GraphForm, Metric, StackedForm, weighted
from quartbench.model.problem import MODERATE
from quartbench.model.threads import blas_threads

#: Bytes of rows that are copied and whitened at a time: fewer lose BLAS its speed, more leave the caches.
BLOCK_BYTES = 1 << 24

#: Share of stored entries below which sparse rows are multiplied by the inverse factor and not made dense for BLAS.
SPARSE_SHARE = 0.05

#: Reciprocal condition number of D⁻¹BD⁻¹ above which a factor in single precision is that of B to a per cent.
SINGLE_CONDITION = 3e-7

#: Squared length of a column above which products with it keep their digits in single precision.
SINGLE_SQUARE = 1e-30

EPS = float(np.finfo(np.float64).eps)


def freedom(form: Form) -> int:
    """Return the number that leverage scores add up to: n, on a graph N − 1, in ℂᴺ N (ERRATA 5)."""
    if isinstance(form, GraphForm):
        return form.points - 1
    return form.shape[0] if isinstance(form, ComplexForm) else form.dim


def term_rank(form: Form) -> int:
    """Return the rank of a term where leverage is computed: 1 on the vertices of a graph and in ℂᴺ."""
    return 1 if isinstance(form, GraphForm | ComplexForm) else form.rank


def uniform_weights(form: Form, p: float = 2.0) -> np.ndarray:
    """Return τ⁽⁰⁾, equal weights with ‖τ‖_q = 1."""
    return np.full(form.terms, float(form.terms) ** (1.0 / p - 1.0))


def sweep_work(form: Form) -> float:
    """Return the multiplications of half a sweep on rows, the Gram matrix or the triangular solve."""
    columns = form.rows.shape[1]
    entries = form.rows.nnz if isinstance(form, StackedForm) and form.sparse else form.rows.size
    return 0.5 * entries * columns + columns**3 / 3.0


def require_terms(form: Form) -> None:
    """Raise where a form has no terms Bᵢ ⪰ 0 to weigh, or they are seen not to span the space."""
    if isinstance(form, GramForm):
        raise ProblemError("GramForm has no terms with Bᵢ ⪰ 0, so no leverage scores; its metric is 'identity'")
    if not isinstance(form, StackedForm | ComplexForm | GraphForm):
        raise ProblemError(f"form must be a StackedForm, ComplexForm or GraphForm, found {type(form).__name__}")
    form.require_definite()


def require_weights(form: Form, tau: object) -> np.ndarray:
    """Return τ as an array of m positive numbers, or say what is wrong with it."""
    array = real_array(tau, "tau", 1)
    if array.size != form.terms or not (array > 0).all():
        raise ProblemError(
            f"tau must be {form.terms} positive numbers, one a term, found {array.size} numbers, "
            f"the smallest {array.min() if array.size else 'missing'}"
        )
    return array


# The factor -----------------------------------------------------------------------------------------------------------


def factored(form: Form, tau: np.ndarray, accuracy: float = 1e-6) -> Metric:
    """Return the metric B(τ), with ``metric.rounding``: how far rounding may move traces that its factor gives.

    Parameters
    ----------
    form : Form
    tau : array of shape (m,)
    accuracy : float
        The relative error of traces from which on QR replaces Cholesky.
    """
    if isinstance(form, GraphForm):
        metric = weighted(form, tau)
        metric.rounding = 0.0  # known with the traces
        return metric
    try:
        with blas_threads(sweep_work(form)):
            metric = weighted(form, tau)
        metric.rounding = 4.0 * EPS / _reciprocal_condition(metric)
        metric.factor = "cholesky"
    except ProblemError:
        metric = None
    if metric is None or not metric.rounding <= accuracy:
        metric = _by_qr(form, tau)
    return metric


def factored_single(form: Form, tau: np.ndarray) -> Metric:
    """Return the metric B(τ) through a factor in single precision: half the time, and all that a preconditioner needs.

    Where columns are too nearly collinear for it or out of its range, and on graphs, the factor is in double precision.
    """
    if isinstance(form, GraphForm) or not MODERATE[0] <= form.magnitude <= MODERATE[1]:
        return factored(form, tau)
    with blas_threads(sweep_work(form)):
        gram = form.weighted_gram(tau, single=True)
        squares = gram.diagonal().real
        if squares.min() > SINGLE_SQUARE and np.isfinite(squares).all():
            scale = np.sqrt(squares)
            gram /= scale
            gram /= scale[:, None]
            factorise, condition = (
                (lapack.cpotrf, lapack.cpocon) if np.iscomplexobj(gram) else (lapack.spotrf, lapack.spocon)
            )
            sizes = np.abs(gram)
            norm = (sizes.sum(axis=0) + sizes.sum(axis=1)).max()  # of the lower triangle and its mirror image
            lower, failed = factorise(gram, lower=1, overwrite_a=1)
            if not failed and condition(lower, norm, uplo="L")[0] > SINGLE_CONDITION:
                return Cholesky.from_factor(lower, scale.astype(np.float64), tau)
    return factored(form, tau)


def _reciprocal_condition(metric: Cholesky) -> float:
    """Return LAPACK's estimate of 1/cond₁ of D⁻¹BD⁻¹, D² the diagonal of B."""
    norm = float(((np.abs(metric.matrix) / metric.scale).sum(axis=1) / metric.scale).max())
    function = lapack.zpocon if np.iscomplexobj(metric.lower) else lapack.dpocon
    return max(float(function(metric.lower, norm, uplo="L")[0]), EPS**2)


def _by_qr(form: Form, tau: np.ndarray) -> Cholesky:
    """Return B(τ) = RᴴR from a QR factorisation of the weighted rows, columns scaled to length one, block by block."""
    weights = form.scale * np.sqrt(np.repeat(tau, term_rank(form)))
    lengths = np.sqrt(sum(np.einsum("ij,ij->j", part, part.conj()).real for _, part in _weighted(form, weights)))
    if not lengths.all():
        missing = int(np.flatnonzero(lengths == 0)[0])
        raise ProblemError(f"ρ is not positive definite: no term sees coordinate {missing}")
    upper = np.empty((0, lengths.size), dtype=form.dtype)
    for _, part in _weighted(form, weights):
        stacked = np.concatenate([upper, part.conj() / lengths])
        upper = scipy.linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][: lengths.size]
    function = lapack.ztrcon if np.iscomplexobj(upper) else lapack.dtrcon
    rcond = float(function(upper, norm="1", uplo="U")[0])
    if rcond <= 4.0 * EPS * np.sqrt(lengths.size):
        raise missing_direction(upper)
    phase = np.sign(upper.diagonal()) if upper.dtype.kind == "f" else upper.diagonal() / np.abs(upper.diagonal())
    metric = Cholesky.from_factor(np.asfortranarray((upper / phase[:, None]).conj().T), lengths, tau)
    metric.rounding = 4.0 * EPS / rcond
    metric.factor = "qr"
    return metric


def missing_direction(upper: np.ndarray) -> ProblemError:
    """Return the error that names the direction in which the rows, columns of length one, vanish to rounding."""
    values, vectors = scipy.linalg.svd(upper, full_matrices=False)[1:]
    rank = int((values > len(upper) * EPS * values[0]).sum())
    direction = vectors[-1].conj()
    direction = direction / direction[np.argmax(np.abs(direction))]
    largest = [int(i) for i in np.argsort(-np.abs(direction), kind="stable")[:3] if abs(direction[i]) > 0.1]
    named = " ".join(
        f"{direction[i].real:+.3g}·e{i}" if np.isrealobj(direction) else f"({direction[i]:.3g})·e{i}" for i in largest
    )
    return ProblemError(
        f"ρ is not positive definite to rounding: numerical rank {rank} of {len(upper)}; every term vanishes along "
        f"{named}{' …' if (np.abs(direction) > 0.1).sum() > len(largest) else ''} (each eᵢ in units of 1/‖column i‖)"
    )


# The terms through the factor -----------------------------------------------------------------------------------------


def traces(form: Form, metric: Metric) -> np.ndarray:
    """Return gᵢ = Tr(B⁻¹Bᵢ) for every term: on N vertices for a graph, in ℂᴺ for complex rows. One sweep.

    Where the equations of a graph are solved by conjugate gradients, upper bounds that are tight to some 1e-4.
    """
    if isinstance(form, GraphForm):
        return form.scale**2 * _edge_resistances(form, metric)
    rank = term_rank(form)
    out = np.empty(form.terms)
    with blas_threads(sweep_work(form)):
        for start, part in whitened(form, metric):
            reals = part.view(np.float64)
            squares = np.einsum("ij,ij->i", reals, reals)
            out[start // rank : (start + len(part)) // rank] = squares.reshape(-1, rank).sum(axis=1)
    return form.scale**2 * out


def spectral_norms(form: Form, metric: Metric) -> np.ndarray:
    """Return λ_max(UᵢᵀB⁻¹Uᵢ) ≤ gᵢ for every term: what Lemma 5.2 (iii) needs (ERRATA 13). One sweep."""
    rank = term_rank(form)
    if rank == 1:
        return traces(form, metric)
    out = np.empty(form.terms)
    for start, part in whitened(form, metric):
        blocks = part.reshape(-1, rank, part.shape[1])
        grams = blocks @ blocks.transpose(0, 2, 1)
        out[start // rank : (start + len(part)) // rank] = np.linalg.eigvalsh(grams)[:, -1]
    return form.scale**2 * out


def whitened(form: Form, metric: Metric) -> Iterator[tuple[int, np.ndarray]]:
    """Give the rows through the factor B = FFᴴ of a metric, (F⁻¹Uᵢ)ᵀ, as (first row, block); blocks hold whole terms.

    The block is overwritten by the next one. The scale of the form is left out.
    """
    if metric.diagonal is not None:
        step = np.sqrt(metric.diagonal[:: 2 if form.dtype.kind == "c" else 1])
        for start, part in copied_blocks(form):
            part /= step
            yield start, part
        return
    factor = np.asfortranarray(metric.scale[:, None] * metric.lower)
    if isinstance(form, StackedForm) and form.sparse and form.rows.nnz < SPARSE_SHARE * np.prod(form.rows.shape):
        inverse = np.ascontiguousarray(lapack.dtrtri(factor, lower=1)[0].T)
        form.passes += 1
        step = block_rows(form)
        for start in range(0, form.rows.shape[0], step):
            yield start, form.rows[start : start + step] @ inverse
        return
    solve = blas.ztrsm if np.iscomplexobj(factor) else blas.dtrsm
    for start, part in copied_blocks(form):
        yield start, solve(1.0, factor, part.T, lower=1, overwrite_b=1).T


def _edge_resistances(form: GraphForm, metric: Metric) -> np.ndarray:
    if metric.diagonal is not None:
        inverse = 1.0 / metric.diagonal[:: form.coordinates]
        return inverse[form.heads] + inverse[form.tails]
    found = metric.solver.resistances()
    metric.rounding = metric.solver.rounding
    if metric.rounding > 0.1:
        raise ProblemError(
            "tau must leave the graph connected to rounding, found weights between "
            f"{metric.tau.min():.3g} and {metric.tau.max():.3g}"
        )
    return found


def block_rows(form: Form) -> int:
    """Return how many rows a block has: whole terms, 16 MB."""
    rank = term_rank(form)
    return rank * max(1, BLOCK_BYTES // (form.dtype.itemsize * form.rows.shape[1] * rank))


def copied_blocks(form: Form) -> Iterator[tuple[int, np.ndarray]]:
    """Give copies of blocks of rows in one buffer, in the precision of the points. One pass."""
    form.passes += 1
    count, step = form.rows.shape[0], block_rows(form)
    buffer = np.empty((min(step, count), form.rows.shape[1]), dtype=form.dtype)
    sparse = isinstance(form, StackedForm) and form.sparse
    for start in range(0, count, step):
        part = buffer[: min(step, count - start)]
        rows = form.rows[start : start + step]
        part[:] = rows.toarray() if sparse else rows
        yield start, part


def _weighted(form: Form, weights: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start, part in copied_blocks(form):
        part *= weights[start : start + len(part), None]
        yield start, part
