"""How much does each term matter? Leverage scores ℓᵢ = τᵢTr(B(τ)⁻¹Bᵢ), coherence γ, and the resistance of edges.

Everything is computed where it is cheapest and sharpest: on the N vertices of a graph, in ℂᴺ for complex rows. There
the scores add up to N − 1 and N; the real traces of the paper are d and 2 times as large (ERRATA 5, 13).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from quartbench.errors import ProblemError, unknown_name
from quartbench.model import Form, GraphForm, Metric, StackedForm

from .factor import (
    block_rows,
    copied_blocks,
    factored,
    require_terms,
    require_weights,
    term_rank,
    traces,
    uniform_weights,
)

#: Sketches have this many columns for each unit of ln m (ALGORITHMS §4).
COLUMNS_PER_LOG = 32

#: Columns of a sketch that are held at a time, on graphs: m × 32 numbers.
COLUMN_BLOCK = 32


@dataclass(frozen=True)
class Resistances:
    """Effective resistances, and how they were found.

    Attributes
    ----------
    values : array of shape (m,)
        The resistance between the ends of each edge, in the order of ``form.edges``.
    method : {"dense", "dissection", "conjugate gradients", "sketch"}
    error : float
        Relative: a bound on rounding for the exact ones, tightness for conjugate gradients (they are upper bounds),
        one standard deviation for a sketch.
    """

    values: np.ndarray
    method: str
    error: float

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)


def leverage(form: Form, tau: np.ndarray | None = None) -> np.ndarray:
    """Return the leverage scores ℓᵢ = τᵢTr(B(τ)⁻¹Bᵢ), exactly. One sweep.

    Parameters
    ----------
    form : Form
        Stacked rows (dense or CSR, any rank), complex rows, or a graph.
    tau : array of shape (m,), optional
        Positive weights; equal ones where not given.

    Returns
    -------
    array of shape (m,)
        In [0, rank], adding up to n (graphs: to N − 1, complex rows: to N).
    """
    require_terms(form)
    tau = uniform_weights(form) if tau is None else require_weights(form, tau)
    return tau * traces(form, factored(form, tau))


def coherence(form: Form) -> float:
    """Return γ = maxᵢ Tr((ΣBⱼ)⁻¹Bᵢ), the largest leverage score at equal weights (paper §5.3). One sweep.

    On a graph that is γ(Ω), the largest effective resistance of an edge; κ of B⁽⁰⁾ is at most √(mγ).
    """
    return float(leverage(form).max())


def effective_resistance(
    form: GraphForm,
    tau: np.ndarray | None = None,
    method: str = "auto",
    columns: int | None = None,
    seed: int = 0,
) -> Resistances:
    """Return the effective resistance of every edge of a graph with conductances τ.

    Parameters
    ----------
    form : GraphForm
    tau : array of shape (m,), optional
        Positive conductances; ones where not given.
    method : {"auto", "exact", "sketch"}
        "exact" factors the Laplacian, densely or by nested dissection; a large graph that nothing splits takes one
        solve by conjugate gradients for each vertex instead, minutes for 20 000. "sketch" solves for ``columns`` random
        vectors (Spielman and Srivastava). "auto" is exact wherever there is a factor, and sketches beyond.
    columns : int, optional
        Of the sketch; 32 ln m where not given.
    seed : int
        Of the sketch.
    """
    if not isinstance(form, GraphForm):
        raise ProblemError(f"form must be a GraphForm, found {type(form).__name__}; others have leverage scores")
    if method not in ("auto", "exact", "sketch"):
        raise unknown_name("method", method, ("auto", "exact", "sketch"))
    tau = np.ones(form.terms) if tau is None else require_weights(form, tau)
    metric = factored(form, tau)
    iterative = metric.solver.method == "conjugate gradients"
    if method == "sketch" or (method == "auto" and iterative):
        columns = sketch_columns(form, columns)
        values = sketched_traces(form, metric, columns, np.random.default_rng(seed))
        return Resistances(values, "sketch", float(np.sqrt(2.0 / columns)))
    values = traces(form, metric)
    return Resistances(values, metric.solver.method, 3e-4 if iterative else metric.rounding)


def sketch_columns(form: Form, columns: object = None) -> int:
    """Return how many columns a sketch has: the number given, or 32 ln m."""
    if columns is None or columns == "gaussian":
        return max(1, int(np.ceil(COLUMNS_PER_LOG * np.log(max(form.terms, 2)))))
    if isinstance(columns, bool) or not isinstance(columns, int | np.integer) or columns < 1:
        raise ProblemError(f"sketch must be None, 'gaussian' or a positive number of columns, found {columns!r}")
    return int(columns)


def sketched_traces(form: Form, metric: Metric, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return unbiased estimates of gᵢ = Tr(B⁻¹Bᵢ) from ``columns`` Gaussian vectors; relative variance 2/columns.

    For B = FFᴴ and Gaussian G, E‖GᴴF⁻¹u‖²/columns = ‖F⁻¹u‖²: after the factor, O(mrn) a column.
    """
    if isinstance(form, GraphForm):
        return _sketched_resistances(form, metric, columns, rng)
    rank, size = term_rank(form), metric.lower.shape[0]
    gaussian = rng.standard_normal((size, columns))
    if form.dtype.kind == "c":
        gaussian = (gaussian + 1j * rng.standard_normal((size, columns))) / np.sqrt(2.0)
    factor = np.asfortranarray(metric.scale[:, None] * metric.lower)
    probes = scipy.linalg.solve_triangular(factor, gaussian, lower=True, trans="C", check_finite=False).conj()
    out = np.empty(form.terms)
    for start, part in _row_blocks(form):
        reals = np.ascontiguousarray(part @ probes).view(np.float64)
        squares = np.einsum("ij,ij->i", reals, reals)
        out[start // rank : (start + len(reals)) // rank] = squares.reshape(-1, rank).sum(axis=1)
    return form.scale**2 / columns * out


def _row_blocks(form: Form):
    if isinstance(form, StackedForm) and form.sparse:
        form.passes += 1
        step = block_rows(form)
        return ((start, form.rows[start : start + step]) for start in range(0, form.rows.shape[0], step))
    return copied_blocks(form)


def _sketched_resistances(form: GraphForm, metric: Metric, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return ‖Zᵀ(eᵢ − eⱼ)‖² for Z = L⁺Mᵀ√W G, M the differences along edges (Spielman and Srivastava)."""
    conductance = form.scale * np.sqrt(metric.tau)
    accuracy = {"tolerance": 1e-6} if metric.solver.method == "conjugate gradients" else {}
    total = np.zeros(form.terms)
    for start in range(0, columns, COLUMN_BLOCK):
        width = min(COLUMN_BLOCK, columns - start)
        charges = rng.standard_normal((form.terms, width)) * conductance[:, None]
        sources = np.empty((form.points, width))
        for column in range(width):
            sources[:, column] = np.bincount(form.heads, charges[:, column], minlength=form.points)
            sources[:, column] -= np.bincount(form.tails, charges[:, column], minlength=form.points)
        potential = metric.solver.solve(sources, **accuracy)
        difference = potential[form.heads] - potential[form.tails]
        total += np.einsum("ij,ij->i", difference, difference)
    return form.scale**2 / columns * total
