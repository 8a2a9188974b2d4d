"""N(w) on a graph, without a factor: what is left is sent along the edges of a spanning tree, O(N).

N(w) ≤ (Σ‖flow/s‖^{4/3})^{3/4} for edges with images s(xᵢ − xⱼ), s = 1 where they weigh alike, where the flow out of a
vertex is at most the sum of |w| + error over its subtree. The signed flow is a correction to the dual point; the
absolute one closes.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from quartbench.kernels import exact
from quartbench.linalg.known import Known, U, finite


class Tree:
    """A spanning tree of a graph: it routes what is left of a residual, and bounds N of what it cannot.

    Parameters
    ----------
    order, parents : integer arrays
        The vertices, each after its parent, and the parent of each (the root is its own): a breadth-first search.
    edges : integer array
        The edge from each vertex to its parent (any number at the root).
    heads : integer array
        The head of every edge.
    shape : tuple
        N × d.
    lengths : array, optional
        The s of every edge; ones if not given.
    """

    proved = True
    factored = False
    unit = None

    def __init__(
        self,
        order: np.ndarray,
        parents: np.ndarray,
        edges: np.ndarray,
        heads: np.ndarray,
        shape: tuple[int, int],
        lengths: np.ndarray | None = None,
    ) -> None:
        self.order, self.parents, self.shape, self.count = order, parents, shape, len(heads)
        self.children = order[1:]
        self.edges = edges[self.children]
        self.signs = np.where(heads[self.edges] == self.children, 1.0, -1.0)[:, None]
        self.lengths = None if lengths is None else lengths[self.edges][:, None]

    def norm(self, w: Known) -> float:
        """Return a number that is at least N of every w within its bounds on the centred points."""
        loads = (np.abs(w.hi) + (np.abs(w.lo) + w.error)).reshape(self.shape) * (1.0 + 4.0 * U)
        # What is left at the root is a translation, which costs nothing: it is spread evenly over all vertices.
        loads = (loads + loads.sum(axis=0) / self.shape[0]) * (1.0 + (self.shape[0] + 4) * U)
        flows = exact.subtree_sums(self.order, self.parents, loads)[self.children]
        if self.lengths is not None:
            flows = np.nextafter(flows / self.lengths, np.inf)
        flows = flows.reshape(-1)
        power = exact.dual_power(np.ascontiguousarray(flows), np.zeros_like(flows), self.shape[1])
        root = math.sqrt(power)
        return finite(root * math.sqrt(root) * (1.0 + 8.0 * U))

    def correction(self, w: np.ndarray, image: object = None) -> np.ndarray:
        """Return the flow along the tree that carries w to the root, as it comes."""
        points = w.reshape(self.shape)
        flows = exact.subtree_sums(self.order, self.parents, points - points.mean(axis=0))
        out = np.zeros((self.count, self.shape[1]))
        carried = self.signs * flows[self.children]
        out[self.edges] = carried if self.lengths is None else carried / self.lengths
        return out.reshape(-1)


def spanning_tree(
    heads: np.ndarray, tails: np.ndarray, shape: tuple[int, int], lengths: np.ndarray | None = None
) -> Tree:
    """Return a breadth-first spanning tree of a connected graph."""
    points = shape[0]
    numbers = sp.coo_matrix((np.arange(1, heads.size + 1), (heads, tails)), shape=(points, points)).tocsr()
    numbers = (numbers + numbers.T).tocsr()
    order, parents = breadth_first_order(numbers, 0, directed=False)
    parents = parents.astype(np.int64)
    parents[0] = 0
    edges = np.asarray(numbers[np.arange(points), parents]).ravel().astype(np.int64) - 1
    return Tree(order.astype(np.int64), parents, edges, heads, shape, lengths)
