"""Which points do known distances hold? What counts, cuts and the rank of a rigidity matrix say of a graph."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from quartbench.errors import ProblemError
from quartbench.kernels import graph
from quartbench.linalg.edges import adjacency
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

#: Points that an error or a message names at most.
NAMED = 8

#: Coordinates up to which the rank of the rigidity matrix is computed: a tenth of a second at the most.
RANKED = 600

#: Relative to the largest, eigenvalues of RᵀR below this are zero; a factor with a better condition than the second
#: shows without eigenvalues that none is.
ZERO, CLEARLY = 1e-12, 1e-10

#: A velocity within this of a rigid motion, relative to the largest, is part of it.
SAME = 1e-6


def require_connected(joined: sp.csr_matrix) -> None:
    """Raise where the known distances leave points apart: nothing says where one part lies relative to another."""
    count, label = connected_components(joined, directed=False)
    if count > 1:
        sizes = np.bincount(label)
        outside = np.flatnonzero(label != sizes.argmax())
        raise ProblemError(
            f"the known distances leave {count} parts that no distance joins: {named(outside)} cannot be placed "
            f"relative to the other {sizes.max()}; leave them out, or add distances"
        )


def largest_part(points: int, pairs: Any) -> np.ndarray:
    """Return the points of the largest part that pairs join: the others cannot be placed relative to it.

    Examples
    --------
    >>> qb.inverse.largest_part(5, [[0, 1], [1, 2], [3, 4]])
    array([0, 1, 2])
    """
    _, label = connected_components(adjacency(points, pairs), directed=False)
    return np.flatnonzero(label == np.bincount(label).argmax())


def loose_points(points: int, edges: np.ndarray, dim: int, joined: sp.csr_matrix | None = None) -> np.ndarray:
    """Return the points that fewer than dim + 1 distances hold, counted among points that are held themselves.

    Such a point may be mirrored or turned without changing a distance.

    Parameters
    ----------
    points : int
    edges : integer array of shape (m, 2)
    dim : int
    joined : sparse matrix, optional
        The adjacency matrix of the edges, where it is known.

    Examples
    --------
    >>> edges = [[i, j] for j in range(5) for i in range(j)] + [[4, 5]]
    >>> qb.inverse.loose_points(6, np.array(edges), dim=2)
    array([5])
    """
    degrees = np.bincount(np.asarray(edges).ravel(), minlength=points)
    held, needed = np.ones(points, dtype=bool), min(dim + 1, points - 1)
    while True:
        fallen = np.flatnonzero(held & (degrees < needed))
        if not fallen.size:
            return np.flatnonzero(~held)
        held[fallen] = False
        joined = adjacency(points, edges) if joined is None else joined
        degrees = joined[:, held].getnnz(axis=1)


def hinges(points: int, edges: np.ndarray, joined: sp.csr_matrix | None = None) -> np.ndarray:
    """Return the points whose removal leaves others apart: both ends of a bridge, and the point two parts share.

    Parameters
    ----------
    points : int
    edges : integer array of shape (m, 2)
    joined : sparse matrix, optional
        The adjacency matrix of the edges, where it is known.

    Examples
    --------
    >>> edges = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [2, 4]])
    >>> qb.inverse.hinges(5, edges)  # two triangles share a corner
    array([2])
    """
    joined = adjacency(points, edges) if joined is None else joined
    return np.flatnonzero(graph.cut_vertices(joined.indptr.astype(np.int64), joined.indices.astype(np.int64)))


def movable_points(points: int, edges: np.ndarray, dim: int, cuts: np.ndarray | None = None) -> np.ndarray:
    """Return the points that can move relative to the largest rigid part, though no known distance changes.

    What lies behind a hinge always can. On graphs of up to 600 coordinates the rank of the rigidity matrix, at random
    places, finds all others as well, such as parts that share a line, about which they turn. That mirror images alone
    are possible it does not see.

    Parameters
    ----------
    points : int
    edges : integer array of shape (m, 2)
    dim : int
    cuts : array, optional
        What ``hinges`` gives, where it is known.

    References
    ----------
    Asimow & Roth, *The rigidity of graphs*, Trans. Amer. Math. Soc. 1978.

    Examples
    --------
    >>> edges = [[i, j] for j in range(5) for i in range(j)] + [[3, 5], [4, 5]]
    >>> # It turns about the line of the two that hold it.
    >>> qb.inverse.movable_points(6, np.array(edges), dim=3)
    array([5])
    """
    edges = np.asarray(edges)
    cuts = hinges(points, edges) if cuts is None else cuts
    moves = np.zeros(points, dtype=bool)
    if cuts.size:
        rest = np.ones(points, dtype=bool)
        rest[cuts] = False
        _, label = connected_components(adjacency(points, edges)[rest][:, rest], directed=False)
        if label.size:
            moves[np.flatnonzero(rest)[label != np.bincount(label).argmax()]] = True
    if dim * points <= RANKED:
        moves |= ~_rigid_part(points, edges, dim)
    return np.flatnonzero(moves)


def _rigid_part(points: int, edges: np.ndarray, dim: int) -> np.ndarray:
    """Return which points are of the largest rigid part, by the motions that change no distance to first order."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, dim))
    motions = _rigid_motions(x)
    heads, tails = edges.T
    along = x[heads] - x[tails]
    blocks, matrix = along[:, :, None] * along[:, None, :], np.zeros((points, points, dim, dim))  # RᵀR
    matrix[heads, tails] = matrix[tails, heads] = -blocks
    matrix[np.arange(points), np.arange(points)] = -matrix.sum(axis=1)
    matrix = matrix.transpose(0, 2, 1, 3).reshape(points * dim, -1)
    rigid = np.linalg.qr(motions)[0]
    held = matrix + np.trace(matrix) / len(matrix) * (rigid @ rigid.T)
    with blas_threads(ONE_THREAD_WORK):
        factor, failed = lapack.dpotrf(held, lower=1)
    if not failed and lapack.dpocon(factor, np.abs(held).sum(axis=0).max(), uplo="L")[0] > CLEARLY:
        return np.ones(points, dtype=bool)
    values, vectors = np.linalg.eigh(held)
    flexes = vectors[:, values <= ZERO * values[-1]]
    if not flexes.shape[1]:
        return np.ones(points, dtype=bool)
    # A random one of these motions moves no two rigid parts alike.
    velocity = (flexes @ rng.standard_normal(flexes.shape[1])).reshape(points, dim)
    velocity /= np.abs(velocity).max()
    best = np.zeros(points, dtype=bool)
    for few in _simplices(points, edges, dim):
        rows = (dim * np.array(few)[:, None] + np.arange(dim)).ravel()
        found = np.linalg.lstsq(motions[rows], velocity[list(few)].ravel(), rcond=None)[0]
        same = np.abs(velocity - (motions @ found).reshape(points, dim)).max(axis=1) <= SAME
        if same.sum() > best.sum():
            best = same
        if best.sum() > points // 2:
            break
    return best


def _rigid_motions(x: np.ndarray) -> np.ndarray:
    """Return the velocities of translations and rotations at points, as columns."""
    points, dim = x.shape
    columns = [np.tile(unit, (points, 1)) for unit in np.eye(dim)]
    for i, j in combinations(range(dim), 2):
        turn = np.zeros_like(x)
        turn[:, i], turn[:, j] = x[:, j], -x[:, i]
        columns.append(turn)
    return np.stack([column.reshape(-1) for column in columns], axis=1)


def _simplices(points: int, edges: np.ndarray, dim: int):
    """Yield for every point dim points that are likely to be rigid together: itself and neighbours it shares."""
    joined = adjacency(points, edges)
    near = [set(joined.indices[joined.indptr[i] : joined.indptr[i + 1]].tolist()) for i in range(points)]
    for i in range(points):
        few, common = [i], near[i]
        while len(few) < dim and common:
            few.append(min(common))
            common = common & near[few[-1]]
        yield tuple(few)


def named(points: np.ndarray) -> str:
    """Return points in words, the first few of them."""
    listed = ", ".join(map(str, points[:NAMED].tolist()))
    more = f" and {points.size - NAMED} more" if points.size > NAMED else ""
    return f"point{'s' * (points.size > 1)} {listed}{more}"
