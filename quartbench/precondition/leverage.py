"""How much does each term matter? Leverage scores ℓᵢ = τᵢTr(B(τ)⁻¹Bᵢ), coherence γ, and the resistance of edges.

Everything is computed where it is cheapest and sharpest: on the N vertices of a graph, in ℂᴺ for complex rows. There
the scores add up to N − 1 and N; the real traces of the paper are d and 2 times as large (errata 5, 13 of the
documentation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quartbench.errors import ProblemError, unknown_name, whole_number
from quartbench.forms import Form, TermForm, require_form

#: Sketches have this many columns for each unit of ln m: a standard deviation of 8 % of a score at m = 20 000.
COLUMNS_PER_LOG = 32

#: How tight the upper bounds on resistances are that conjugate gradients give, relatively.
ITERATIVE_ERROR = 3e-4


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

    Examples
    --------
    >>> form = qb.GraphForm(3, 2, [(0, 1), (1, 2), (0, 2)])
    >>> qb.effective_resistance(form).values.round(12)
    array([0.66666667, 0.66666667, 0.66666667])
    """

    values: np.ndarray
    method: str
    error: float

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)


def require_terms(form: Form) -> TermForm:
    """Return a form that has terms Bᵢ ⪰ 0 to weigh; raise where it has none, or they are seen not to span the space."""
    if not isinstance(require_form(form), TermForm):
        raise ProblemError(
            f"{type(form).__name__} has no terms with Bᵢ ⪰ 0, so no leverage scores; its metric is 'identity'"
        )
    form.require_definite()
    return form


def leverage(form: TermForm, tau: np.ndarray | None = None) -> np.ndarray:
    """Return the leverage scores ℓᵢ = τᵢTr(B(τ)⁻¹Bᵢ), exactly. One sweep.

    Parameters
    ----------
    form : TermForm
        Any form with terms: dense, sparse or complex rows, operators, graphs.
    tau : array of shape (m,), optional
        Positive weights; equal ones where not given.

    Returns
    -------
    array of shape (m,)
        In [0, rank], adding up to n (graphs: to N − 1, complex rows: to N).

    Examples
    --------
    >>> form = qb.StackedForm(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    >>> qb.leverage(form).round(12)
    array([1. , 0.5, 0.5])
    """
    require_terms(form)
    tau = form.uniform_weights() if tau is None else form.require_weights(tau)
    return tau * form.traces(form.weighted(tau))


def coherence(form: TermForm) -> float:
    """Return γ = maxᵢ Tr((ΣBⱼ)⁻¹Bᵢ), the largest leverage score at equal weights (paper §5.3). One sweep.

    On a graph that is γ(Ω), the largest effective resistance of an edge; κ of B⁽⁰⁾ is at most √(mγ).

    Examples
    --------
    >>> form = qb.StackedForm(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    >>> round(qb.coherence(form), 12)
    1.0
    """
    return float(leverage(form).max())


def effective_resistance(
    form: TermForm,
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

    Examples
    --------
    >>> triangle = qb.GraphForm(3, 2, [[0, 1], [1, 2], [0, 2]])
    >>> qb.effective_resistance(triangle).values.round(12)
    array([0.66666667, 0.66666667, 0.66666667])
    """
    if not isinstance(form, TermForm) or not form.has_edges:
        raise ProblemError(
            f"form must be a GraphForm without weights, found {type(form).__name__}; others have leverage scores"
        )
    if method not in ("auto", "exact", "sketch"):
        raise unknown_name("method", method, ("auto", "exact", "sketch"))
    metric = form.weighted(np.ones(form.terms) if tau is None else tau)
    if method == "sketch" or (method == "auto" and metric.iterative):
        columns = sketch_columns(form, columns, "columns")
        values = form.sketched_traces(metric, columns, np.random.default_rng(seed))
        return Resistances(values, "sketch", float(np.sqrt(2.0 / columns)))
    values = form.traces(metric)
    return Resistances(values, metric.factor, ITERATIVE_ERROR if metric.iterative else metric.rounding)


def sketch_columns(form: TermForm, columns: object = None, name: str = "sketch") -> int:
    """Return how many columns a sketch has: the number given, or 32 ln m."""
    if columns is None or columns == "gaussian":
        return max(1, int(np.ceil(COLUMNS_PER_LOG * np.log(max(form.terms, 2)))))
    try:
        return whole_number(columns, name)
    except ProblemError:
        raise ProblemError(
            f"{name} must be None, 'gaussian' or a positive number of columns, found {columns!r}"
        ) from None
