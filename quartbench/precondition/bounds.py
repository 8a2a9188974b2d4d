"""What is certain of a metric: α and β with α‖x‖² ≤ √ρ(x) ≤ β‖x‖² in its norm, hence κ ≤ β/α.

Two facts give them, for B(τ) = ΣτᵢBᵢ and any metric B with whitened terms B̃ᵢ = B^{−½}BᵢB^{−½}:

- √ρ(x) ≥ ‖x‖²_{B(τ)}/‖τ‖₂ (Cauchy and Schwarz), so α is 1/‖τ‖₂ in the norm of B(τ) itself, and the smallest eigenvalue
  of B^{−½}B⁽⁰⁾B^{−½} in the others, as ‖τ⁽⁰⁾‖₂ = 1;
- ρ(x) = Σ⟨x,B̃ᵢx⟩² ≤ Σλ_max(B̃ᵢ)⟨x,B̃ᵢx⟩ for ‖x‖ = 1, so β² is the largest eigenvalue of Σλ_max(B̃ᵢ)B̃ᵢ (ALGORITHMS §4).
  It is at most maxᵢ λ_max(B̃ᵢ)/τᵢ in the norm of B(τ), which is Prop. 5.3 with the spectral norm (ERRATA 13).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from quartbench.model import Bounds, ComplexForm, Form, GraphForm, Metric
from quartbench.model.laplacians import DENSE_VERTICES

from .factor import factored, spectral_norms, term_rank, uniform_weights

#: Eigenvalues that iterations or LAPACK give are moved by this share to the safe side.
MARGIN = 1e-10


def weighted_bounds(form: Form, metric: Metric, known: np.ndarray | None = None) -> Bounds:
    """Return α and β in the norm of B(τ): 1/‖τ‖₂ and the root of λ_max(Σλ_max(B̃ᵢ)B̃ᵢ).

    Parameters
    ----------
    form : Form
    metric : Metric
        B(τ), from :func:`factored`.
    known : array of shape (m,), optional
        The traces Tr(B⁻¹Bᵢ), where they are known: terms of rank 1 then need no sweep.
    """
    sizes = known if known is not None and term_rank(form) == 1 else spectral_norms(form, metric)
    beta = float(np.sqrt((sizes / metric.tau).max()))
    sharper = _largest(form, metric, sizes)
    if sharper is not None:
        beta = min(beta, float(np.sqrt(sharper)))
    return Bounds(1.0 / float(np.linalg.norm(metric.tau)), beta * (1.0 + metric.rounding))


def _largest(form: Form, metric: Metric, sizes: np.ndarray) -> float | None:
    """Return λ_max of F⁻¹(ΣsᵢBᵢ)F⁻ᴴ, B = FFᴴ; None on graphs too large for a dense matrix."""
    if isinstance(form, GraphForm):
        if form.points > DENSE_VERTICES:
            return None
        shift = metric.mean_degree / form.points
        above, below = form.laplacian(sizes).toarray(), metric.laplacian.toarray() + shift
        return (1.0 + MARGIN) * float(scipy.linalg.eigvalsh(above, below, subset_by_index=[form.points - 1] * 2)[0])
    factor = metric.scale[:, None] * metric.lower
    half = scipy.linalg.solve_triangular(factor, form.weighted_gram(sizes), lower=True, check_finite=False)
    full = scipy.linalg.solve_triangular(factor, half.conj().T, lower=True, check_finite=False)
    return (1.0 + MARGIN) * _top(full)


def diagonal_bounds(form: Form, metric: Metric) -> Bounds:
    """Return α and β in the norm of a diagonal B = D: λ_min(D^{−½}B⁽⁰⁾D^{−½}) and the root of λ_max(Σλ_max(B̃ᵢ)B̃ᵢ).

    λ_min is one over the square of ‖F⁻¹D^{½}‖, where B⁽⁰⁾ = FFᴴ is factored with its columns scaled: it keeps its
    digits where an eigenvalue of B⁽⁰⁾ itself would lose them. On graphs both hold on the centred subspace.
    """
    if isinstance(form, GraphForm):
        return _graph_diagonal_bounds(form, metric.diagonal[:: form.coordinates])
    base = factored(form, uniform_weights(form))
    root = np.sqrt(metric.diagonal[:: 2 if isinstance(form, ComplexForm) else 1])
    factor = (base.scale / root)[:, None] * base.lower
    inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True, check_finite=False)
    alpha = 1.0 / float(np.linalg.norm(inverse, 2)) ** 2
    sharp = form.weighted_gram(spectral_norms(form, metric)) / root / root[:, None]
    beta = np.sqrt((1.0 + MARGIN) * _top(sharp))
    return Bounds(alpha * (1.0 - MARGIN - base.rounding), float(beta))


def _graph_diagonal_bounds(form: GraphForm, diagonal: np.ndarray) -> Bounds:
    """Return the bounds on a graph for B = diag(d) ⊗ I.

    The least of ⟨x,Lx⟩/⟨x,Dx⟩ over centred x is 1/λ_max(D^{½}L⁺D^{½}). The edges have λ_max(B̃) = s = 1/dᵢ + 1/dⱼ, and
    Σsₑ(xᵢ − xⱼ)² ≤ maxₑ (Sᵢ/dᵢ + Sⱼ/dⱼ)·‖x‖²_D, Sᵢ = Σsₑ over the edges at i (Anderson and Morley).
    """
    base = factored(form, uniform_weights(form))
    root = np.sqrt(diagonal)
    if form.points <= DENSE_VERTICES:
        inverse = base.solver.solve(np.eye(form.points) - 1.0 / form.points)
        top = _top(root[:, None] * inverse * root)
    else:

        def product(x: np.ndarray) -> np.ndarray:
            weighted = (root * x.ravel())[:, None]
            return root * base.solver.solve(weighted - weighted.mean()).ravel()

        operator = LinearOperator((form.points, form.points), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(form.points)
        top = float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
    sizes = form.scale**2 * (1.0 / diagonal[form.heads] + 1.0 / diagonal[form.tails])
    degrees = np.bincount(form.edges.ravel(), np.repeat(form.scale**2 * sizes, 2), minlength=form.points) / diagonal
    beta_square = float((degrees[form.heads] + degrees[form.tails]).max())
    if form.points <= DENSE_VERTICES:
        sharp = form.laplacian(sizes).toarray() / root / root[:, None]
        beta_square = min(beta_square, (1.0 + MARGIN) * _top(sharp))
    return Bounds((1.0 - MARGIN - base.rounding) / top, float(np.sqrt(beta_square)))


def _top(matrix: np.ndarray) -> float:
    """Return the largest eigenvalue of a symmetric or Hermitian matrix."""
    last = len(matrix) - 1
    symmetric = 0.5 * (matrix + matrix.conj().T)
    return float(scipy.linalg.eigvalsh(symmetric, subset_by_index=[last, last], check_finite=False)[0])
