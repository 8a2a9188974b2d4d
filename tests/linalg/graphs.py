"""Graphs of every kind that a Laplacian may have, as edges; and their resistances from the pseudo-inverse."""

import numpy as np

from quartbench.instances import geometric_edges, grid_edges, regular_edges, ring_edges
from quartbench.linalg.laplacians import laplacian


def path(start, stop):
    return np.stack([np.arange(start, stop - 1), np.arange(start + 1, stop)], axis=1)


def complete(start, stop):
    return start + np.stack(np.triu_indices(stop - start, 1), axis=1)


def hubs(count, points):
    return np.stack(np.meshgrid(np.arange(count), np.arange(count, points)), axis=-1).reshape(-1, 2)


def random_tree(points, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, np.arange(1, points)), np.arange(1, points)], axis=1)


def random_graph(points, extra, seed):
    """A random tree, and up to ``extra`` more edges."""
    more = np.random.default_rng(seed).integers(0, points, (extra, 2))
    pairs = np.concatenate([random_tree(points, seed), more[more[:, 0] != more[:, 1]]])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def preferential(points, seed):
    """Every vertex joins three earlier ends of edges: few vertices of high degree."""
    rng, edges = np.random.default_rng(seed), complete(0, 4).tolist()
    for vertex in range(4, points):
        edges += [[int(other), vertex] for other in {rng.choice(np.ravel(edges)) for _ in range(3)}]
    return np.array(edges)


GRAPHS = {
    "one edge": np.array([[0, 1]]),
    "path": path(0, 300),
    "star": hubs(1, 300),
    "wheel": np.concatenate([hubs(1, 250), path(1, 250), [[1, 249]]]),
    "two hubs": hubs(2, 250),
    "tree": random_tree(400, 1),
    "complete": complete(0, 120),
    "barbell": np.concatenate([complete(0, 60), path(59, 161), complete(160, 220)]),
    "lollipop": np.concatenate([complete(0, 110), path(109, 170)]),
    "scale-free": preferential(300, 1),
    "grid": grid_edges(18, 2),
    "ring": ring_edges(300, 2),
    "geometric": geometric_edges(400, 3, 8),
    "expander": regular_edges(200, 5),
}

#: Where conjugate gradients converge fast. Elsewhere a dissection is cheap, so they are not used there.
WELL_CONNECTED = ("star", "wheel", "two hubs", "complete", "scale-free", "expander")


def pseudo_inverse(points, edges, weights):
    return np.linalg.pinv(laplacian(points, edges, weights).toarray(), hermitian=True)


def true_resistances(points, edges, weights):
    inverse = pseudo_inverse(points, edges, weights)
    heads, tails = edges.T
    return inverse[heads, heads] + inverse[tails, tails] - 2.0 * inverse[heads, tails]
