"""Which distances are known? A matrix with NaN, or edges, and anchors: read, checked, in one order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quartbench.errors import ProblemError, any_array, real_array
from quartbench.linalg.edges import in_order

#: How far D may be from its transpose, relative to its largest entry.
MIRRORED = 1e-9


class Data(NamedTuple):
    """What is known: edges i < j in lexicographic order, the length of each, and its weight."""

    points: int
    edges: np.ndarray
    lengths: np.ndarray
    weights: np.ndarray | None


def read_distances(D: Any, edges: Any = None, weights: Any = None) -> Data:
    """Return what is known, from a matrix with NaN or from edges; raise where it contradicts itself."""
    if edges is None:
        matrix = any_array(D, "D")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiu":
            raise ProblemError(f"D must be an N × N matrix of distances, or given with edges, found {matrix.shape}")
        matrix = matrix.astype(np.float64, copy=False)
        if np.isinf(matrix).any():
            raise ProblemError("D must be finite, or NaN where a distance is not known, found infinity")
        known = ~np.isnan(matrix)
        apart = np.abs(np.where(known & known.T, matrix - matrix.T, 0.0)).max(initial=0.0)
        if not (known == known.T).all() or apart > MIRRORED * np.abs(matrix[known]).max(initial=0.0):
            raise ProblemError("D must be symmetric, NaN included, found entries that differ from their mirror images")
        pairs = np.argwhere(np.triu(known, 1))
        lengths, points = matrix[pairs[:, 0], pairs[:, 1]], len(matrix)
        heavy = None if weights is None else any_array(weights, "weights")
        if heavy is not None and heavy.shape != matrix.shape:
            raise ProblemError(f"weights must be of the shape of D, {matrix.shape}, found {heavy.shape}")
        heavy = None if heavy is None else real_array(heavy[pairs[:, 0], pairs[:, 1]], "weights", 1)
    else:
        pairs, lengths = any_array(edges, "edges"), real_array(D, "D", 1)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or len(pairs) != lengths.size:
            raise ProblemError(
                f"edges must be {lengths.size} pairs of whole numbers, one for each distance, found shape {pairs.shape}"
            )
        if len(pairs) and pairs.min() < 0:
            raise ProblemError(f"edges must join points 0, 1, …, found {int(pairs.min())}")
        points = int(pairs.max()) + 1 if len(pairs) else 0
        heavy = None if weights is None else real_array(weights, "weights", 1)
        if heavy is not None and heavy.size != lengths.size:
            raise ProblemError(f"weights must be {lengths.size}, one for each distance, found {heavy.size}")
        low, high, order = in_order(pairs)
        pairs = np.stack([low, high], axis=1)
        if order is not None:
            lengths, heavy = lengths[order], None if heavy is None else heavy[order]
    if not len(pairs):
        raise ProblemError("D must hold at least one distance between two points, found none")
    if (pairs[:, 0] == pairs[:, 1]).any():
        where = int(pairs[(pairs[:, 0] == pairs[:, 1]).argmax(), 0])
        raise ProblemError(f"edges must join two points, found the self-loop ({where}, {where})")
    if not lengths.any():
        raise ProblemError("D must not be all zero: all points are one, and there is nothing to solve")
    if (lengths < 0.0).any():
        raise ProblemError(f"D must not be negative, found {lengths.min():.6g}")
    return Data(points, pairs, lengths, heavy)


def with_anchors(data: Data, anchors: dict[int, Any] | None, dim: int) -> Data:
    """Return the data with all distances between anchors, which are known exactly, in place of what was given."""
    if not anchors:
        return data
    where = np.array(sorted(anchors))
    if where.min() < 0 or where.max() >= data.points:
        raise ProblemError(
            f"anchors must be points 0 to {data.points - 1}, found {int(where.min())}, {int(where.max())}"
        )
    places = real_array([anchors[i] for i in where.tolist()], "anchors", 2)
    if places.shape[1] != dim or len(where) < dim + 1:
        raise ProblemError(
            f"anchors must be at least {dim + 1} points of {dim} coordinates, or the rest may be mirrored, found "
            f"{len(where)} of {places.shape[1]}"
        )
    first, second = np.triu_indices(len(where), 1)
    made = np.stack([where[first], where[second]], axis=1)
    lengths = np.linalg.norm(places[first] - places[second], axis=1)
    between = np.isin(data.edges, where).all(axis=1)
    weights = (
        None
        if data.weights is None
        else np.concatenate([data.weights[~between], np.full(len(made), data.weights.max())])
    )
    low, high, order = in_order(np.concatenate([data.edges[~between], made]))
    order = slice(None) if order is None else order
    joined = np.concatenate([data.lengths[~between], lengths])
    return Data(data.points, np.stack([low, high], axis=1), joined[order], None if weights is None else weights[order])
