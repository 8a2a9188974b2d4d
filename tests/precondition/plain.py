"""Straight transcriptions of the paper's formulas, and random forms, for the tests to compare with."""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from quartbench.forms import ComplexForm, GraphForm, StackedForm
from quartbench.linalg.laplacians import laplacian


def terms_of(form):
    """Return the dense Bᵢ of stacked rows, and of complex rows in ℂᴺ."""
    if isinstance(form, ComplexForm):
        blocks = form.rows.conj()[:, None, :]
    else:
        rows = form.rows.toarray() if sp.issparse(form.rows) else np.asarray(form.rows, dtype=float)
        blocks = rows.reshape(form.terms, form.rank, form.dim)
    return form.scale**2 * np.einsum("iaj,iak->ijk", blocks.conj(), blocks)


def weighted_sum(terms, tau):
    return np.einsum("i,ijk->jk", tau, terms)


def traces_of(form, tau):
    """Return Tr(B(τ)⁺Bᵢ)."""
    if isinstance(form, GraphForm):
        inverse = np.linalg.pinv(laplacian(form.points, form.edges, tau).toarray(), hermitian=True)
        own = inverse.diagonal()
        return own[form.heads] + own[form.tails] - 2 * inverse[form.heads, form.tails]
    terms = terms_of(form)
    inverse = np.linalg.pinv(weighted_sum(terms, tau), hermitian=True)
    return np.einsum("jk,ikj->i", inverse, terms).real


def potential(form, tau, p=2.0):
    """Return V(τ) = −ln det B(τ) + (n/q)‖τ‖_q^q for a form that is definite on its whole space."""
    q = p / (p - 1.0)
    total = weighted_sum(terms_of(form), tau)
    return -np.linalg.slogdet(total)[1] + len(total) / q * (tau**q).sum()


def fixed_point_map(form, tau, p):
    """Return T_p(τ) = (Tr(B(τ)⁻¹Bᵢ)/n)^{p−1}."""
    return (traces_of(form, tau) / terms_of(form).shape[1]) ** (p - 1.0)


def log_distance(tau, other):
    return np.abs(np.log(tau) - np.log(other)).max()


def exact_traces(rows, tau):
    """Return Tr(B(τ)⁻¹aᵢaᵢᵀ) of real rows in rational arithmetic: no rounding at all."""
    rows = [[Fraction(float(entry)) for entry in row] for row in rows]
    tau = [Fraction(float(weight)) for weight in tau]
    n = len(rows[0])
    gram = [[sum(t * a[j] * a[k] for t, a in zip(tau, rows, strict=True)) for k in range(n)] for j in range(n)]
    table = [gram[j] + [a[j] for a in rows] for j in range(n)]
    for pivot in range(n):
        for row in range(n):
            if row != pivot:
                ratio = table[row][pivot] / table[pivot][pivot]
                table[row] = [entry - ratio * above for entry, above in zip(table[row], table[pivot], strict=True)]
    return [sum(a[j] * table[j][n + i] / table[j][j] for j in range(n)) for i, a in enumerate(rows)]


@st.composite
def stacked_forms(draw, ranks=(1, 2, 3, 4, 5), most=30, spreads=(0.0, 1.0, 3.0)):
    """Draw a stacked form: Gaussian terms whose sizes may differ by orders of magnitude."""
    rank = draw(st.sampled_from(ranks))
    n = draw(st.integers(rank, 8))
    m = draw(st.integers(n, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    spread = draw(st.sampled_from(spreads))
    sizes = np.exp(spread * rng.standard_normal(m))
    return StackedForm(np.repeat(sizes, rank)[:, None] * rng.standard_normal((m * rank, n)), rank)


@st.composite
def weights_for(draw, form, spread=2.0):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return np.exp(spread * rng.standard_normal(form.terms))
