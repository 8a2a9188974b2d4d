"""Which graphs make distance problems easy or hard? Geometric, regular, ring, barbell, grid: connected and simple.

``x_edges`` returns the bare (m, 2) int64 edges, i < j in lexicographic order; ``x`` the problem on them, centred and
planted: x* is Gaussian, except for ``geometric``, where it is the points themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import gamma

from quartbench.cones import Centred
from quartbench.errors import ProblemError, whole_number
from quartbench.forms import GraphForm
from quartbench.model import Problem

from .arguments import PLANT_STREAM, generator, origin
from .planted import plant, plant_at

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

#: Rounds of switches before a regular graph is drawn afresh; a sparse one needs two or three.
REPAIRS = 200


def geometric(points: int, dim: int = 3, degree: int = 10, seed: int = 0) -> Problem:
    """The problem on a random geometric graph whose solution is its own points, centred.

    That is the DC subproblem of distance completion at the true positions.

    Parameters
    ----------
    points, dim : int
        Number of points, uniform in the unit cube of this dimension.
    degree : int
        Mean degree; the few edges that connect the graph come on top.
    seed : int
        Seed of the points.

    Examples
    --------
    >>> problem = qb.instances.geometric(50, dim=3, degree=8, seed=0)
    >>> result = qb.solve(problem, rel_gap=1e-10)
    >>> bool(np.allclose(result.x.ravel(), problem.solution.ravel(), atol=1e-4))
    True
    """
    edges = geometric_edges(points, dim, degree, seed)
    form = GraphForm(points, dim, edges)
    place = geometric_points(points, dim, seed)
    record = origin("geometric", points=int(points), dim=int(dim), degree=int(degree), seed=int(seed))
    return plant_at(form, Centred(), (place - place.mean(axis=0)).ravel(), record)


def regular(points: int, degree: int, dim: int = 3, seed: int = 0) -> Problem:
    """The problem on a random regular graph: an expander, all edges of about the same resistance.

    Parameters
    ----------
    points, degree : int
        Number of points and of edges at each, with points·degree even and 2 ≤ degree < points.
    dim : int
        Number of coordinates of a point.
    seed : int
        Seed of the graph and of x*.

    Examples
    --------
    >>> qb.instances.regular(20, degree=4, seed=0).form.terms
    40
    """
    record = origin("regular", points=points, degree=degree, dim=dim, seed=seed)
    return _planted(points, dim, regular_edges(points, degree, seed), seed, record)


def ring(points: int, dim: int = 3, neighbours: int = 1, seed: int = 0) -> Problem:
    """The problem on a ring, each point joined to its next ``neighbours`` on either side: a small spectral gap.

    Parameters
    ----------
    points, dim : int
        Number of points, and of coordinates of a point.
    neighbours : int
        Reach of the edges, with 2·neighbours < points.
    seed : int
        Seed of x*.

    Examples
    --------
    >>> qb.instances.ring(10, neighbours=2, seed=0).form.terms
    20
    """
    record = origin("ring", points=points, dim=dim, neighbours=neighbours, seed=seed)
    return _planted(points, dim, ring_edges(points, neighbours), seed, record)


def barbell(points: int, dim: int = 3, bridge: int = 1, seed: int = 0) -> Problem:
    """The problem on two complete graphs joined by a path of ``bridge`` edges: coherence 1 on the path, low elsewhere.

    Parameters
    ----------
    points, dim : int
        Number of points in all (bells and path), and of coordinates of a point.
    bridge : int
        Edges of the path, at least one.
    seed : int
        Seed of x*.

    Examples
    --------
    >>> problem = qb.instances.barbell(20, seed=0)
    >>> round(qb.coherence(problem.form), 9)
    1.0
    """
    record = origin("barbell", points=points, dim=dim, bridge=bridge, seed=seed)
    return _planted(points, dim, barbell_edges(points, bridge), seed, record)


def grid(side: int, dim: int = 3, seed: int = 0) -> Problem:
    """The problem on the cubic lattice of side^{dim} points, whose points have ``dim`` coordinates.

    Parameters
    ----------
    side, dim : int
        Points along an axis, and number of axes.
    seed : int
        Seed of x*.

    Examples
    --------
    >>> form = qb.instances.grid(4, dim=2, seed=0).form
    >>> form.shape, form.terms
    ((16, 2), 24)
    """
    edges = grid_edges(side, dim)
    return _planted(side**dim, dim, edges, seed, origin("grid", side=side, dim=dim, seed=seed))


def geometric_points(points: int, dim: int = 3, seed: int = 0) -> np.ndarray:
    """Return the points of :func:`geometric`, uniform in the unit cube, as a (points, dim) array.

    Examples
    --------
    >>> qb.instances.geometric_points(50, dim=2, seed=0).shape
    (50, 2)
    """
    points, dim = whole_number(points, "points", 2), whole_number(dim, "dim", 1)
    return generator(seed).random((points, dim))


def geometric_edges(points: int, dim: int = 3, degree: int = 10, seed: int = 0) -> np.ndarray:
    """Return the points·degree/2 shortest pairs of :func:`geometric_points`, plus short edges that connect them.

    Examples
    --------
    >>> edges = qb.instances.geometric_edges(50, degree=8, seed=0)
    >>> len(edges) >= 200
    True
    """
    place = geometric_points(points, dim, seed)
    degree = whole_number(degree, "degree", 1, points - 1, why="points − 1 is the complete graph")
    from scipy.spatial import cKDTree  # a tenth of a second that importing the package need not wait for

    tree = cKDTree(place)
    pairs = _shortest_pairs(tree, max(points * degree // 2, 1))
    return _connect(tree, pairs)


def regular_edges(points: int, degree: int, seed: int = 0) -> np.ndarray:
    """Return a random connected simple graph with ``degree`` edges at every point.

    Examples
    --------
    >>> np.bincount(qb.instances.regular_edges(6, degree=3, seed=0).ravel())
    array([3, 3, 3, 3, 3, 3])
    """
    points = whole_number(points, "points", 3)
    degree = whole_number(degree, "degree", 2, points - 1, why="a connected simple graph")
    if points * degree % 2:
        raise ProblemError(f"points·degree must be even (every edge has two ends), found {points}·{degree}")
    rng = generator(seed)
    if degree == 2:
        return _canonical(rng.permutation(points)[ring_edges(points)], points)
    while True:
        edges = _random_regular(points, degree, rng)
        if _components(edges, points)[0] == 1:
            return edges


def ring_edges(points: int, neighbours: int = 1) -> np.ndarray:
    """Return the edges {i, i+k mod points} for k = 1, …, ``neighbours``.

    Examples
    --------
    >>> qb.instances.ring_edges(4)
    array([[0, 1],
           [0, 3],
           [1, 2],
           [2, 3]])
    """
    points = whole_number(points, "points", 3)
    neighbours = whole_number(neighbours, "neighbours", 1, (points - 1) // 2, why="2·neighbours < points")
    start = np.arange(points)
    hops = [np.stack([start, (start + k) % points], axis=1) for k in range(1, neighbours + 1)]
    return _canonical(np.concatenate(hops), points)


def barbell_edges(points: int, bridge: int = 1) -> np.ndarray:
    """Return two complete graphs, equal up to one point, and the path of ``bridge`` edges between them.

    Examples
    --------
    >>> qb.instances.barbell_edges(6)
    array([[0, 1],
           [0, 2],
           [1, 2],
           [2, 3],
           [3, 4],
           [3, 5],
           [4, 5]])
    """
    points = whole_number(points, "points", 4)
    bridge = whole_number(bridge, "bridge", 1, points - 3, why="at least two points in each bell")
    left = (points - bridge + 2) // 2
    right = left + bridge - 1  # first point of the second bell
    path = np.arange(left - 1, right)
    bells = [start + np.stack(np.triu_indices(size, 1), axis=1) for start, size in ((0, left), (right, points - right))]
    return _canonical(np.concatenate([*bells, np.stack([path, path + 1], axis=1)]), points)


def grid_edges(side: int, dim: int = 3) -> np.ndarray:
    """Return the edges between neighbours of the lattice {0, …, side−1}^{dim}, points numbered in C order.

    Examples
    --------
    >>> qb.instances.grid_edges(2, dim=2)
    array([[0, 1],
           [0, 2],
           [1, 3],
           [2, 3]])
    """
    side, dim = whole_number(side, "side", 2), whole_number(dim, "dim", 1, 32)
    lattice = np.arange(side**dim).reshape((side,) * dim)
    steps = (lattice.swapaxes(0, axis) for axis in range(dim))
    return _canonical(np.concatenate([np.stack([s[:-1].ravel(), s[1:].ravel()], axis=1) for s in steps]), side**dim)


def _planted(points, dim, edges, seed, record):
    form = GraphForm(whole_number(points, "points", 2), whole_number(dim, "dim", 1), edges)
    return plant(form, Centred(), generator(seed, PLANT_STREAM), record)


def _keys(edges: np.ndarray, points: int) -> np.ndarray:
    """Number every undirected edge, in lexicographic order of (smaller end, larger end)."""
    edges = edges.astype(np.int64, copy=False)
    return edges.min(axis=1) * points + edges.max(axis=1)


def _canonical(edges: np.ndarray, points: int) -> np.ndarray:
    """Return the distinct edges with i < j in lexicographic order."""
    return np.stack(np.divmod(np.unique(_keys(edges, points)), points), axis=1)


def _components(edges: np.ndarray, points: int) -> tuple[int, np.ndarray]:
    links = sp.coo_matrix((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(points, points))
    return connected_components(links, directed=False)


def _shortest_pairs(tree: cKDTree, count: int) -> np.ndarray:
    """Return the ``count`` pairs of points that are nearest to each other."""
    points, dim = tree.data.shape
    ball = np.pi ** (dim / 2) / gamma(dim / 2 + 1)
    radius = (2 * count / points / (points * ball)) ** (1 / dim)  # right inside the cube, too small at its faces
    pairs = tree.query_pairs(radius, output_type="ndarray")
    while len(pairs) < count:
        radius *= 1.1
        pairs = tree.query_pairs(radius, output_type="ndarray")
    lengths = np.linalg.norm(tree.data[pairs[:, 0]] - tree.data[pairs[:, 1]], axis=1)
    return pairs[np.argpartition(lengths, count - 1)[:count]]


def _connect(tree: cKDTree, edges: np.ndarray) -> np.ndarray:
    """Join every component but the largest to a near point of another one, until there is one component."""
    points, near = tree.n, 8
    while True:
        edges = _canonical(edges, points)
        count, label = _components(edges, points)
        if count == 1:
            return edges
        outside = np.flatnonzero(label != np.argmax(np.bincount(label)))
        length, neighbour = tree.query(tree.data[outside], k=min(near, points))
        foreign = np.where(label[neighbour] != label[outside][:, None], length, np.inf)
        pick = foreign.argmin(axis=1)
        length, neighbour = foreign[np.arange(len(outside)), pick], neighbour[np.arange(len(outside)), pick]
        order = np.lexsort((length, label[outside]))
        first = order[np.unique(label[outside][order], return_index=True)[1]]  # the shortest link of each component
        linked = np.isfinite(length[first])
        edges = np.concatenate([edges, np.stack([outside[first], neighbour[first]], axis=1)[linked]])
        if not linked.all():  # all near points of some component were its own
            near *= 2


def _random_regular(points: int, degree: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random simple graph of this degree; a dense one is the complement of a sparse one."""
    if 2 * degree > points - 1:
        absent = _keys(_simple_pairing(points, points - 1 - degree, rng), points)
        complete = np.stack(np.triu_indices(points, 1), axis=1)
        return complete[~np.isin(_keys(complete, points), absent)]
    return _canonical(_simple_pairing(points, degree, rng), points)


def _simple_pairing(points: int, degree: int, rng: np.random.Generator) -> np.ndarray:
    """Pair the ends of edges at random, then switch loops and repeated pairs away against random good pairs."""
    while True:
        pairs = rng.permutation(np.repeat(np.arange(points), degree)).reshape(-1, 2)
        for _ in range(REPAIRS):
            keys = _keys(pairs, points)
            good = np.zeros(len(pairs), dtype=bool)
            good[np.unique(keys, return_index=True)[1]] = True
            good &= pairs[:, 0] != pairs[:, 1]
            if good.all():
                return pairs
            _switch(pairs, keys, good, points, rng)


def _switch(pairs, keys, good, points, rng):
    """Turn bad (a,b) and good (c,d) into (a,c) and (b,d), wherever both are new and no other switch makes them."""
    bad, rest = np.flatnonzero(~good), np.flatnonzero(good)
    size = min(len(bad), len(rest))
    bad, partner = bad[:size], rng.choice(rest, size, replace=False)
    made = np.stack([pairs[bad], pairs[partner]], axis=1).swapaxes(1, 2)
    new = np.stack([_keys(made[:, 0], points), _keys(made[:, 1], points)], axis=1)
    once = np.zeros(2 * size, dtype=bool)
    once[np.unique(new.ravel(), return_index=True)[1]] = True
    fine = (once.reshape(-1, 2) & ~np.isin(new, keys) & (made[:, :, 0] != made[:, :, 1])).all(axis=1)
    pairs[bad[fine]], pairs[partner[fine]] = made[fine, 0], made[fine, 1]
