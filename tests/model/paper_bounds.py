"""What the paper's propositions say of α²‖x‖⁴ ≤ ρ(x) ≤ β²‖x‖⁴, formula by formula, for each form and metric."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from quartbench.errors import ProblemError
from quartbench.forms import Form, GramForm, GraphForm
from quartbench.linalg.laplacians import DENSE_VERTICES, laplacian_solver
from quartbench.metrics import Bounds


def euclidean(form: Form) -> Bounds:
    """Return α and β in the Euclidean norm: Prop. 2.1 of the paper, its graph version, or the Gram form's.

    On a graph they hold on the centred subspace.
    """
    if isinstance(form, GramForm):
        return gram(form)
    if isinstance(form, GraphForm):
        return graph(form)
    return general(form)


def general(form: Form) -> Bounds:
    """Return λ_min(B̄)/√m and λ_max(B̄), B̄ = ΣBᵢ (Prop. 2.1)."""
    values = scipy.linalg.eigvalsh(form.weighted_gram(np.ones(form.terms)))
    if values[0] <= values[-1] * len(values) * np.finfo(float).eps:
        rank = int((values > values[-1] * len(values) * np.finfo(float).eps).sum())
        raise ProblemError(f"ρ is not positive definite: numerical rank {rank} of {len(values)}")
    return Bounds(float(values[0]) / np.sqrt(form.terms), float(values[-1]))


def graph(form: GraphForm) -> Bounds:
    """Return λ₁(L)/√|Ω| and 2d̄ on the centred subspace, d̄ the largest degree.

    See errata 3 of the documentation, without the centring term.
    """
    laplacian = form.laplacian()
    if form.points <= DENSE_VERTICES:
        gap = float(scipy.linalg.eigvalsh(laplacian.toarray(), subset_by_index=[1, 1])[0])
    else:
        weights = np.full(form.terms, form.scale**2)
        solver = laplacian_solver(laplacian, form.edges, weights, form.dissection())
        inverse = LinearOperator(
            laplacian.shape, matvec=lambda x: solver.solve(x.reshape(-1, 1) - x.mean()).ravel(), dtype=np.float64
        )
        start = np.random.default_rng(0).standard_normal(form.points)
        gap = 1.0 / float(eigsh(inverse, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
    return Bounds(gap / np.sqrt(form.terms), 2.0 * float(laplacian.diagonal().max()))


def gram(form: GramForm) -> Bounds:
    """Return 1/√r and 1: κ = √r (paper §2.1, example 3)."""
    return Bounds(form.scale**2 / np.sqrt(form.shape[1]), form.scale**2)


def uniform(terms: int, coherence: float) -> Bounds:
    """Return 1 and √(mγ), in the norm of B⁽⁰⁾ = m^{−½}ΣBᵢ (paper §5.3)."""
    return Bounds(1.0, float(np.sqrt(terms * coherence)))


def lewis(dim: int) -> Bounds:
    """Return 1 and √n, in the norm of B* (Thm 5.6 at p = 2)."""
    return Bounds(1.0, float(np.sqrt(dim)))


def weighted(tau: np.ndarray, leverage: np.ndarray, p: float = 2.0) -> Bounds:
    """Return 1/‖τ‖_q and max ℓᵢ^{1/q}/τᵢ, in the norm of B(τ), for (Σ⟨Bᵢx,x⟩ᵖ)^{1/p} (Prop. 5.3).

    ``leverage`` may hold τᵢλ_max(UᵢᵀB⁻¹Uᵢ) in place of the trace: the spectral norm suffices (errata 13 of the
    documentation).
    """
    q = p / (p - 1.0)
    return Bounds(1.0 / float(np.linalg.norm(tau, q)), float((leverage ** (1.0 / q) / tau).max()))


def uniform_convexity_gap(gradient_dual_norm: float, alpha: float) -> float:
    """Return the bound f(x) − f* ≤ ¾‖∇f(x)‖_*^{4/3} / (4α²/3)^{1/3} on free space, which needs no dual point.

    From the degree-4 uniform convexity of ρ with constant 4α²/3 (Prop. 3.3 of the paper).
    """
    return 0.75 * gradient_dual_norm ** (4.0 / 3.0) / (4.0 * alpha**2 / 3.0) ** (1.0 / 3.0)
