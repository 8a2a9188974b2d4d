"""Random forms of every kind, with points, as hypothesis strategies and as functions; and their rows, written out."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator

from quartbench.forms import ComplexForm, GramForm, GraphForm, OperatorForm, StackedForm, WeightedGraphForm
from tests.kernels import plain

KINDS = ("dense", "float32", "sparse", "complex", "operator", "graph", "gram")
#: The kinds that are sums of ⟨x,Bᵢx⟩² with Bᵢ ⪰ 0.
WITH_TERMS = KINDS[:-1]

STYLES = ("gaussian", "integers", "coherent", "uneven")


def entries(rng, shape, style):
    """Return rows: Gaussian, small integers (with repetitions), one dominant row, or columns of uneven size."""
    rows = rng.integers(-2, 3, shape).astype(float) if style == "integers" else rng.standard_normal(shape)
    if style == "coherent":
        rows[0] *= 30.0
    if style == "uneven":
        rows *= 10.0 ** rng.uniform(-1.5, 1.5, shape[1])
    # An identity below keeps the form positive definite and every term nonzero.
    rows[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] += np.where(rows.any(axis=1), 0.0, 1.0)
    return rows


def make(kind, n, rank, extra, style, seed):
    """Return a positive definite form (on a graph: on the centred subspace) of about n unknowns."""
    rng = np.random.default_rng(seed)
    if kind == "gram":
        return GramForm(n, rank)
    if kind == "graph":
        edges = connected_edges(rng, n + 1, extra)
        return GraphForm(n + 1, rank, edges, 10.0 ** rng.uniform(-3, 3, len(edges)) if style == "uneven" else None)
    terms = n + extra
    if kind == "complex":
        re, im = entries(rng, (terms, n), style), rng.standard_normal((terms, n))
        return ComplexForm(np.vstack([re + 1j * im, np.eye(n)]))
    rows = entries(rng, (terms * rank, n), style)
    if kind == "sparse":
        rows *= rng.random(rows.shape) < 0.5
        rows[::rank, 0] += rows[::rank, 0] == 0.0
    rows = np.vstack([rows, np.kron(np.eye(n), np.ones((rank, 1)))])
    if kind == "sparse":
        return StackedForm(sp.csr_matrix(rows), rank)
    if kind == "operator":
        return OperatorForm(RowProducts(rows), rank)
    return StackedForm(rows.astype(np.float32) if kind == "float32" else rows, rank)


class RowProducts(LinearOperator):
    """An operator that knows its rows by products alone; ``rows`` is for tests."""

    def __init__(self, rows):
        super().__init__(np.dtype(float), rows.shape)
        self.rows = rows

    def _matvec(self, x):
        return self.rows @ x.ravel()

    def _rmatvec(self, w):
        return self.rows.T @ w.ravel()


def connected_edges(rng, points, extra):
    """Return a random tree with random further edges."""
    pairs = {(int(rng.integers(i)), i) for i in range(1, points)}
    pairs |= {tuple(sorted(map(int, rng.choice(points, 2, replace=False)))) for _ in range(extra)}
    return np.array(sorted(pairs))


@st.composite
def forms(draw, kinds=KINDS):
    """Draw a form of 1 to 6 columns and rank 1 to 3."""
    return make(
        draw(st.sampled_from(kinds)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 3)),
        draw(st.integers(0, 12)),
        draw(st.sampled_from(STYLES)),
        draw(st.integers(0, 2**32 - 1)),
    )


SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def pairs(draw, form):
    """Draw two flat points (centred on a graph): independent, almost equal, opposite, the second sparse or tiny."""
    rng = np.random.default_rng(draw(SEEDS))
    x, y = point(form, rng), point(form, rng)
    relation = draw(st.sampled_from(["independent", "close", "opposite", "sparse", "tiny", "huge"]))
    if relation == "close":
        y = x + 1e-3 * y
    elif relation == "opposite":
        y = -rng.uniform(0.1, 3.0) * x
    elif relation == "sparse" and not isinstance(form, GraphForm):
        y = y * (rng.random(y.size) < 0.4)
    elif relation == "tiny":
        y = 1e-3 * y
    elif relation == "huge":
        y = 1e3 * y
    return x, y


def point(form, rng):
    """Return a flat Gaussian point, centred on a graph."""
    x = rng.standard_normal(form.shape if form.dtype.kind != "c" else form.dim)
    if isinstance(form, GraphForm):
        x = x - x.mean(axis=0)
    return x.reshape(-1)


def dense_rows(form):
    """Return the stacked rows Uᵢᵀ of a form on flat points, formed without asking it."""
    if isinstance(form, GraphForm):
        rows = plain.edge_rows(form.points, form.coordinates, form.edges)
        if isinstance(form, WeightedGraphForm):
            rows = np.repeat(np.sqrt(np.sqrt(form.weights)), form.rank)[:, None] * rows
        return rows
    if isinstance(form, ComplexForm):
        return plain.embedding(form.rows)
    if isinstance(form, OperatorForm):
        return form.operator.rows
    return np.asarray(form.rows.todense() if sp.issparse(form.rows) else form.rows, dtype=float)
