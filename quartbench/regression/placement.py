"""Points held by springs: Σ wᵢⱼ‖xᵢ − xⱼ‖⁴ over the edges of a graph, where some points are fixed, is ℓ4 regression.

With d coordinates an edge is a group of d rows, w^{1/4}(xᵢ − xⱼ); what is fixed moves to the other side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from quartbench.errors import ProblemError, any_array, real_array
from quartbench.linalg.known import U

from .l4 import Regression, l4_regression


def edge_rows(points: int, dim: int, edges: Any, weights: Any = None) -> sp.csr_array:
    """Return the rows w^{1/4}(eᵢ − eⱼ)ᵀ ⊗ I_d of the edges of a graph, d for each, as a sparse matrix.

    ρ with these rows in terms of rank d is Σ wᵢⱼ‖xᵢ − xⱼ‖⁴ for x the points one after another: the form of a graph
    with weights, which ``GraphForm(points, dim, edges, weights)`` is without rows. It vanishes on translations. Without
    the d columns of one point, which is held at 0, it is definite, and for a c that adds up to zero over the points its
    minimiser is that of the whole up to a translation.

    Parameters
    ----------
    points, dim : int
    edges : integer array of shape (m, 2)
    weights : array of shape (m,), optional
        Positive; ones where not given.

    Examples
    --------
    >>> import numpy as np, quartbench as qb
    >>> from quartbench.regression import edge_rows
    >>> edges = [(0, 1), (1, 2), (0, 2)]
    >>> c = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> rows = edge_rows(3, 2, edges)[:, :-2]  # the last point is held
    >>> held = qb.solve(rows, c[:-1].reshape(-1), rank=2, rel_gap=1e-10)
    >>> free = qb.solve(qb.Problem(qb.GraphForm(3, 2, edges), c), rel_gap=1e-10)
    >>> bool(abs(held.fun - free.fun) < 1e-9 * abs(free.fun))
    True
    """
    edges = any_array(edges, "edges")
    if edges.ndim != 2 or edges.shape[1] != 2 or len(edges) == 0 or edges.dtype.kind not in "iu":
        raise ProblemError(f"edges must be whole numbers of shape (m, 2), found shape {edges.shape} ({edges.dtype})")
    if edges.min() < 0 or edges.max() >= points or (edges[:, 0] == edges[:, 1]).any():
        raise ProblemError(f"edges must join two of the points 0 to {points - 1}, found one that does not")
    roots = np.ones(len(edges))
    if weights is not None:
        weights = real_array(weights, "weights")
        if weights.shape != (len(edges),) or not (weights > 0.0).all():
            raise ProblemError(f"weights must be {len(edges)} positive numbers, found shape {weights.shape}")
        roots = np.sqrt(np.sqrt(weights))
    number = np.arange(len(edges))
    entries = (np.r_[roots, -roots], (np.r_[number, number], np.r_[edges[:, 0], edges[:, 1]]))
    return sp.csr_array(sp.kron(sp.csr_array(entries, shape=(len(edges), points)), sp.eye_array(dim), format="csr"))


def placement(positions: Any, edges: Any, weights: Any = None, rel_gap: float = 1e-8) -> Regression:
    """Place points so that Σ wᵢⱼ‖xᵢ − xⱼ‖⁴ over edges is least, where some of them are fixed; certified.

    The result has ``points``, all of them, and ``fun``, the fourth root of the least sum. Longest edges count most:
    they come out nearly as short as they can be.

    Parameters
    ----------
    positions : array of shape (N, d)
        The fixed points, and NaN for those to be placed.
    edges : integer array of shape (m, 2)
        Every point has to be joined to a fixed one, through others or not.
    weights : array of shape (m,), optional
        Positive.
    rel_gap : float
        The relative gap of ``fun`` to certify.

    Examples
    --------
    >>> import numpy as np
    >>> from quartbench.regression import placement
    >>> positions = [[0.0, 0.0], [4.0, 0.0], [np.nan, np.nan], [np.nan, np.nan]]
    >>> placement(positions, [(0, 2), (2, 3), (3, 1)]).points[2:].round(6)
    array([[1.333333, 0.      ],
           [2.666667, 0.      ]])
    """
    places = np.array(any_array(positions, "positions"), dtype=float)
    if places.ndim != 2:
        raise ProblemError(f"positions must have shape (N, d), found shape {places.shape}")
    free = np.isnan(places).all(axis=1)
    if not np.isfinite(places[~free]).all() or free.all() or not free.any():
        raise ProblemError("positions must be finite for some points, which are fixed, and NaN for some to be placed")
    count, dim = places.shape
    edge_rows(count, dim, edges, weights)  # says what is wrong with them
    rows = edge_rows(count, dim, edges)  # of ones: with fixed points they make no number that rounds
    _require_held(count, any_array(edges, "edges"), free)
    moving = np.repeat(free, dim)
    fixed = np.where(moving, 0.0, places.reshape(-1))
    used = rows[:, moving]
    result = l4_regression(used, -(rows @ fixed), weights, groups=dim, rel_gap=rel_gap)
    if not free[any_array(edges, "edges")].any(axis=1).all():
        # But differences of two fixed points round: each is a residual of its own, off by a share of u at most.
        result.fun, result.lower_bound = result.fun * (1.0 + 4.0 * U), result.lower_bound * (1.0 - 4.0 * U)
        result.gap = min(result.gap + 16.0 * U, 1.0) if result.fun > 0.0 else 0.0
        if result.status == "converged" and not result.gap <= rel_gap:
            result.status, result.success = "stalled", False
    places[free] = result.x.reshape(-1, dim)
    result.points = places
    return result


def _require_held(points: int, edges: np.ndarray, free: np.ndarray) -> None:
    """Raise where a point is joined to no fixed one: it could be anywhere."""
    joined = sp.coo_array((np.ones(len(edges)), tuple(edges.T)), shape=(points, points))
    _, part = connected_components(joined, directed=False)
    loose = np.flatnonzero(free & ~np.isin(part, part[~free]))
    if loose.size:
        raise ProblemError(f"every point must be joined to a fixed one, found that point {int(loose[0])} is not")
