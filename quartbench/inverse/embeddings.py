"""Where may points lie, by some of their distances? Starts for distance completion, from eigenvectors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import LinearOperator, eigsh

#: Landmarks from which shortest paths are measured, as a multiple of the number of coordinates.
LANDMARKS = 20

#: Points up to which eigenvectors come from a dense matrix.
DENSE = 60


def spectral_start(points: int, edges: np.ndarray, lengths: np.ndarray, dim: int, seed: int = 0) -> np.ndarray:
    """Return classical scaling of the squared distances that are known, scaled up for those that are not.

    The centred matrix −½JD²J of all distances has the points as its leading eigenvectors; with a share p of them, drawn
    at random, the known ones divided by p are an unbiased estimate of it.
    """
    heads, tails = edges.T
    share = 2.0 * len(edges) / (points * (points - 1.0))
    unit = float(lengths.max()) or 1.0
    squares = (lengths / unit) ** 2 / share
    matrix = sp.coo_matrix((squares, (heads, tails)), shape=(points, points))
    matrix = (matrix + matrix.T).tocsr()

    def product(v: np.ndarray) -> np.ndarray:
        v = v.reshape(-1)
        found = matrix @ (v - v.mean())
        return -0.5 * (found - found.mean())

    operator = LinearOperator((points, points), matvec=product, dtype=np.float64)
    return unit * _leading(operator, points, dim, seed)


def landmark_start(points: int, edges: np.ndarray, lengths: np.ndarray, dim: int, seed: int = 0) -> np.ndarray:
    """Return landmark scaling of shortest paths: right where near points have known distances and far ones have none.

    Landmarks are chosen one after another, each farthest from those before; the others are placed by their paths to
    them (de Silva & Tenenbaum 2004).
    """
    heads, tails = edges.T
    unit = float(lengths.max()) or 1.0
    # Paths of length 0 would be no paths to a sparse matrix.
    matrix = sp.coo_matrix((np.maximum(lengths / unit, 1e-12), (heads, tails)), shape=(points, points))
    matrix = (matrix + matrix.T).tocsr()
    count = min(points, LANDMARKS * dim)
    landmark = int(np.random.default_rng(seed).integers(points))
    chosen, paths, nearest = [], [], np.full(points, np.inf)
    for _ in range(count):
        chosen.append(landmark)
        paths.append(dijkstra(matrix, indices=landmark))
        nearest = np.minimum(nearest, paths[-1])
        landmark = int(nearest.argmax())
    squares = np.array(paths) ** 2
    between = squares[:, chosen]
    means = between.mean(axis=1)
    centred = -0.5 * (between - means - means[:, None] + means.mean())
    values, vectors = np.linalg.eigh(centred)
    values, vectors = values[::-1][:dim], vectors[:, ::-1][:, :dim]
    inverse = vectors / np.sqrt(np.maximum(values, 1e-12 * values[0]))
    out = np.zeros((points, dim))
    out[:, : inverse.shape[1]] = -0.5 * (squares - means[:, None]).T @ inverse
    out -= out.mean(axis=0)
    return unit * out


def _leading(operator: LinearOperator, points: int, dim: int, seed: int) -> np.ndarray:
    """Return the leading eigenvectors, each as long as the root of its value."""
    count = min(dim, points - 1)
    if points <= DENSE:
        values, vectors = np.linalg.eigh(operator @ np.eye(points))
    else:
        first = np.random.default_rng(seed).standard_normal(points)
        values, vectors = eigsh(operator, k=count, which="LA", v0=first, tol=1e-3)
    order = np.argsort(values)[::-1][:count]
    out = np.zeros((points, dim))
    out[:, :count] = vectors[:, order] * np.sqrt(np.maximum(values[order], 1e-6 * abs(values).max()))
    return out - out.mean(axis=0)
