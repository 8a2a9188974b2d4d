"""In which order are the vertices of a graph eliminated, and what does a factor of its Laplacian then look like?

The order is one of minimum degree. It cuts the graph into fronts, a tree of them: a few vertices that are eliminated
together, and a boundary that separates them and all that lies below from the rest.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spilu

from quartbench.kernels import fronts

#: Multiplications and stored numbers up to which a dissection serves: some ten seconds, 400 MB.
DISSECTION_FLOPS, DISSECTION_ENTRIES = 2e11, 5e7

#: Pivots up to which fronts join whatever it costs, and the share of zeros in a panel up to which larger ones do. On
#: geometric graphs and grids of 5000 to 20 000 vertices, 4 to 32 pivots differ by a tenth; a tenth of zeros takes twice
#: the time of a fiftieth on the largest.
SMALL_FRONT, ZEROS = 16, 0.02

#: A vertex with more than this many times the mean degree is a hub: it is eliminated at the end, and not looked at
#: before. A star of 50 000 vertices would take seconds to order with it.
HUB = 20


class Dissection:
    """The fronts of a connected graph, for every set of weights on its edges.

    Parameters
    ----------
    points : int
    edges : integer array of shape (m, 2)

    Attributes
    ----------
    order : array of shape (points,)
        The vertices in order of elimination; the last is grounded.
    flops, entries : float
        What a factor costs: multiplications, and numbers stored. Infinite where no order was looked for.
    starts, pointers, offsets : arrays of shape (fronts + 1,)
        Where the pivots, the boundary and the panel of each front start; the pivots are counted along ``order``.
    rows, parents, relative, spots : arrays
        The boundaries, the tree of fronts, and where entries go: see :func:`quartbench.kernels.fronts.structure`.
    indptr, links : arrays
        For each vertex along ``order``, the edges to its later neighbours.
    """

    def __init__(self, points: int, edges: np.ndarray) -> None:
        self.points, self.edges = int(points), np.asarray(edges)
        self.flops = self.entries = np.inf
        links = sp.coo_matrix((np.ones(len(edges)), self.edges.T), shape=(points, points))
        adjacency = (links + links.T).tocsr()
        order = elimination_order(adjacency)
        if order is not None:
            order = order[fronts.postorder(fronts.elimination_tree(*_pattern(adjacency, order)))]
            self._divide(adjacency, order)
            self._place(order)

    @property
    def sensible(self) -> bool:
        """Whether a factor takes seconds and hundreds of megabytes, not more."""
        return self.flops <= DISSECTION_FLOPS and self.entries <= DISSECTION_ENTRIES

    def _divide(self, adjacency: sp.csr_matrix, order: np.ndarray) -> None:
        """Divide the vertices into fronts, and say what they cost."""
        pattern = _pattern(adjacency, order)
        parent = fronts.elimination_tree(*pattern)
        counts = fronts.column_counts(*pattern, parent)
        self.order, self.starts = order, fronts.amalgamate(parent, counts, SMALL_FRONT, ZEROS)
        pivots, boundary = np.diff(self.starts), counts[self.starts[1:] - 1] - 1
        self.pointers, self.offsets = _sums(boundary), _sums(pivots * (pivots + boundary))
        self.entries = float(self.offsets[-1])
        k, b = pivots.astype(float), boundary.astype(float)
        self.flops = float((k**3 / 3.0 + k**2 * b + k * b**2).sum())

    def _place(self, order: np.ndarray) -> None:
        """Send each edge to the front of its first eliminated end, and each boundary to its places in the parent."""
        place = np.empty_like(order)
        place[order] = np.arange(self.points)
        early, late = place[self.edges].min(axis=1), place[self.edges].max(axis=1)
        self.links = np.argsort(early, kind="stable")
        self.indptr = _sums(np.bincount(early, minlength=self.points))
        self.rows, self.parents, self.relative, self.spots = fronts.structure(
            self.starts, self.pointers, self.indptr, late[self.links]
        )


def elimination_order(adjacency: sp.csr_matrix) -> np.ndarray | None:
    """Return the vertices in an order of small fill; None where a factor would take too long in any.

    What cuts a graph in two is about as large as the levels of a breadth-first search, and is one dense front in the
    end. So a graph with a level that is too large for that (an expander) is not ordered: that can take as long.
    """
    degrees = np.diff(adjacency.indptr)
    hubs = degrees > HUB * degrees.mean()
    rest = np.flatnonzero(~hubs)
    part = adjacency[rest][:, rest]
    if float(fronts.widest_level(*_indices(part))) ** 3 > DISSECTION_FLOPS:
        return None
    return np.concatenate([rest[minimum_degree(part)], np.flatnonzero(hubs)])


def minimum_degree(adjacency: sp.csr_matrix) -> np.ndarray:
    """Return the vertices in the order of multiple minimum degree (Liu), as SuperLU finds it.

    SciPy has no function for it, but says the order of every factor: here of an incomplete one that drops all entries.
    """
    points = adjacency.shape[0]
    kept = spilu(
        sp.csc_matrix(adjacency + points * sp.identity(points)),
        drop_tol=np.inf,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(kept.perm_c)


def _pattern(adjacency: sp.csr_matrix, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _indices(adjacency[order][:, order])


def _indices(matrix: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)


def _sums(sizes: np.ndarray) -> np.ndarray:
    """Return where each of consecutive ranges starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)])
