"""How large is each term in the norm of a metric, and what follows for α and β? From the rows, whatever the metric.

Two facts give the bounds, for B(τ) = ΣτᵢBᵢ and any metric B with whitened terms B̃ᵢ = B^{−½}BᵢB^{−½}:

- √ρ(x) ≥ ‖x‖²_{B(τ)}/‖τ‖₂ (Cauchy and Schwarz), so α is 1/‖τ‖₂ in the norm of B(τ) itself, and the smallest eigenvalue
  of B^{−½}B⁽⁰⁾B^{−½} in the others, as ‖τ⁽⁰⁾‖₂ = 1;
- ρ(x) = Σ⟨x,B̃ᵢx⟩² ≤ Σλ_max(B̃ᵢ)⟨x,B̃ᵢx⟩ for ‖x‖ = 1, so β² is the largest eigenvalue of Σλ_max(B̃ᵢ)B̃ᵢ.
  It is at most maxᵢ λ_max(B̃ᵢ)/τᵢ in the norm of B(τ), which is Prop. 5.3 with the spectral norm (errata 13 of the
  documentation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quartbench.errors import ProblemError
from quartbench.metrics import Bounds, Metric

if TYPE_CHECKING:
    from .terms import TermForm

#: Eigenvalues that iterations or LAPACK give are moved by this share to the safe side.
MARGIN = 1e-10


def traces(form: TermForm, metric: Metric) -> np.ndarray:
    """Return Tr(B⁻¹Bᵢ) for every term, unscaled. One sweep."""
    rank, out = form.leverage_rank, np.empty(form.terms)
    if metric.factored:
        for start, part in form.whitened_blocks(metric):
            reals = np.ascontiguousarray(part).view(np.float64)
            squares = np.einsum("ij,ij->i", reals, reals)
            out[start // rank : (start + len(part)) // rank] = squares.reshape(-1, rank).sum(axis=1)
        return out
    for start, part in form.row_blocks():
        squares = np.einsum("ij,ji->i", part.conj(), metric.solve_columns(part.T)).real
        out[start // rank : (start + len(part)) // rank] = squares.reshape(-1, rank).sum(axis=1)
    return out


def spectral_norms(form: TermForm, metric: Metric) -> np.ndarray:
    """Return λ_max(UᵢᵀB⁻¹Uᵢ) for every term of real rows, unscaled. One sweep."""
    rank, out = form.leverage_rank, np.empty(form.terms)
    blocks = form.whitened_blocks(metric) if metric.factored else form.row_blocks()
    for start, part in blocks:
        left = part.reshape(-1, rank, part.shape[1])
        right = left if metric.factored else metric.solve_columns(part.T).T.reshape(left.shape)
        out[start // rank : (start + len(part)) // rank] = np.linalg.eigvalsh(left @ right.transpose(0, 2, 1))[:, -1]
    return out


def sketched_traces(form: TermForm, metric: Metric, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return unbiased estimates of the traces: for B = FFᴴ and Gaussian G, E‖GᴴF⁻¹u‖²/columns = ‖F⁻¹u‖²."""
    if not metric.factored:
        raise ProblemError(f"a sketch of leverage needs a metric with a factor, found {metric.name!r}")
    rank, size = form.leverage_rank, form.columns
    gaussian = rng.standard_normal((size, columns))
    if form.row_dtype.kind == "c":
        gaussian = (gaussian + 1j * rng.standard_normal((size, columns))) / np.sqrt(2.0)
    probes = metric.half_solve_adjoint(gaussian).conj()
    out = np.empty(form.terms)
    for start, part in form.row_blocks(dense=False):
        reals = np.ascontiguousarray(part @ probes).view(np.float64)
        squares = np.einsum("ij,ij->i", reals, reals)
        out[start // rank : (start + len(reals)) // rank] = squares.reshape(-1, rank).sum(axis=1)
    return out / columns


def bounds(form: TermForm, metric: Metric) -> Bounds | None:
    """Return α and β in the norm of B(τ) or of a diagonal metric; None for others."""
    if metric.tau is not None:
        # What follows must be true to rounding, so that a factor in single precision does not serve.
        return weighted_bounds(form, metric if metric.precision == "double" else form.weighted(metric.tau))
    if metric.diagonal is None:
        return None
    sharp = form.largest(form.spectral_norms(metric), metric)
    return Bounds(form.smallest(metric, form.weighted(form.uniform_weights())), float(np.sqrt(sharp)))


def weighted_bounds(form: TermForm, metric: Metric, known: np.ndarray | None = None) -> Bounds:
    """Return α and β in the norm of B(τ): 1/‖τ‖₂ and the root of λ_max(Σλ_max(B̃ᵢ)B̃ᵢ).

    Parameters
    ----------
    form : TermForm
    metric : Metric
        B(τ).
    known : array of shape (m,), optional
        The traces Tr(B⁻¹Bᵢ), where they are known: terms of rank 1 then need no sweep.
    """
    sizes = known if known is not None and form.leverage_rank == 1 else form.spectral_norms(metric)
    # Terms that are zero may weigh nothing, and ask for nothing.
    beta = float(np.sqrt(np.divide(sizes, metric.tau, out=np.zeros_like(sizes), where=sizes > 0.0).max()))
    sharper = form.largest(sizes, metric)
    if sharper is not None:
        beta = min(beta, float(np.sqrt(sharper)))
    return Bounds(1.0 / float(np.linalg.norm(metric.tau)), beta * (1.0 + metric.rounding))


def largest(form: TermForm, weights: np.ndarray, metric: Metric) -> float | None:
    """Return λ_max of F⁻¹B(w)F⁻ᴴ, B = FFᴴ, moved to the safe side; None for a metric without a factor."""
    if not metric.factored:
        return None
    if metric.factor == "qr":
        # B(w) itself would lose the digits that a factor of the rows keeps: its entries are rounded, and F⁻¹ takes the
        # small directions, in which that is all there is, for large ones. Rows that are whitened first keep them.
        return (1.0 + MARGIN) * top(_whitened_gram(form, weights, metric))
    half = metric.half_solve(form.weighted_gram(weights))
    return (1.0 + MARGIN) * top(metric.half_solve(half.conj().T))


def _whitened_gram(form: TermForm, weights: np.ndarray, metric: Metric) -> np.ndarray:
    """Return F⁻¹B(w)F⁻ᴴ as the sum over whitened rows. One sweep."""
    gram = np.zeros((form.columns, form.columns), dtype=form.row_dtype)
    roots = form.scale * np.sqrt(np.repeat(weights, form.leverage_rank))
    for start, part in form.whitened_blocks(metric):
        part = roots[start : start + len(part), None] * part
        gram += part.T @ part.conj()
    return gram


def smallest(form: TermForm, metric: Metric, base: Metric) -> float:
    """Return λ_min of D^{−½}B(τ)D^{−½}/‖τ‖₂, moved to the safe side: a bound on α for every B(τ), the ``base``.

    It is one over the square of ‖F⁻¹D^{½}‖, where B(τ) = FFᴴ is factored with its columns scaled: it keeps its digits
    where an eigenvalue of B(τ) itself would lose them.
    """
    root = np.sqrt(metric.diagonal[:: form.dim // form.columns])
    inverse = base.half_solve(np.diag(root))
    found = (1.0 - MARGIN - base.rounding) / float(np.linalg.norm(inverse, 2)) ** 2
    return found / float(np.linalg.norm(base.tau))


def top(matrix: np.ndarray) -> float:
    """Return the largest eigenvalue of a symmetric or Hermitian matrix."""
    # All of them: LAPACK's search for one fails on multiples of the identity (SciPy's "Internal Error").
    return float(np.linalg.eigvalsh(0.5 * (matrix + matrix.conj().T))[-1])
