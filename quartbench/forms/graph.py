"""The edges of a graph as terms, which are never materialised: the quartic part of distance matrix completion.

Leverage is computed on the N vertices, where a term has rank 1 and its trace is the effective resistance of its edge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from quartbench.cones import Centred
from quartbench.errors import ProblemError, whole_number
from quartbench.kernels import exact as exact_
from quartbench.kernels import graph, misfit
from quartbench.kernels.jit import shares, thread_count, together
from quartbench.linalg.banded import Band
from quartbench.linalg.blocks import BlockFronts
from quartbench.linalg.dissection import Dissection
from quartbench.linalg.edges import incidence
from quartbench.linalg.known import Known
from quartbench.linalg.laplacians import DENSE_VERTICES, laplacian
from quartbench.metrics import Bounds, Laplacian

from .base import register_form
from .leverage import MARGIN, top, weighted_bounds
from .plain import SparsePlain
from .reading import simple_edges
from .terms import TermForm
from .tree import spanning_tree

#: Edges up to which one thread, which sees each edge once, is as fast as two that gather at vertices.
CACHED_EDGES = 300_000

#: An edge coordinate costs about this many dense entries: gathers instead of streams.
GATHER_COST = 4

#: Passes that a factor of the Laplacian of a large graph costs, and a solve with it (measured at 5000 points).
LARGE_FACTOR, LARGE_SOLVE = 100.0, 25.0

#: A multiplication of a factor within a band takes this share of the time of an entry of a pass (0.1 and 0.7 ns).
FACTORED = 0.15

#: Multiplications of a factor within a band from which fronts are looked for, which takes 5 ms for 1000 points with 23
#: neighbours each: as long as so many. A multiplication takes this many times as long in fronts, most of which are
#: small, as in a band.
WIDE_BAND, FRONT_RATE = 3e8, 3.0

#: Edges per vertex beyond which no order of the vertices is looked for: it would take longer than many passes, and
#: products converge fast where every vertex has so many edges.
FACTORED_EDGES = 20

#: Columns of a sketch that are held at a time: m × 32 numbers.
COLUMN_BLOCK = 32


@register_form("graph")
class GraphForm(TermForm):
    """ρ(X) = Σ ‖xᵢ − xⱼ‖⁴ over the edges of a connected graph, X of N × d: the quartic part of distance completion.

    Positive definite on the centred subspace {Xᵀ1 = 0} only (errata 5 of the documentation), so its problems use the
    cone ``Centred``.

    Parameters
    ----------
    points : int
        The number N of vertices.
    dim : int
        The number d of coordinates of a vertex (``form.dim`` is N·d, as for every form).
    edges : integer array of shape (m, 2)
        Each edge once, in either order. Kept as ``form.edges`` with i < j in lexicographic order.
    weights : array of shape (m,), optional
        Positive, one for each edge as given: ρ(X) = Σ wᵢⱼ‖xᵢ − xⱼ‖⁴. What is proved is proved of the fourth roots of
        the weights as they are rounded.

    Notes
    -----
    Points that are fixed (anchors) make ρ inhomogeneous in the others, so that they are no part of a form. Placing
    points between anchors is ℓ4 regression, certified too: :func:`quartbench.regression.placement`.

    Examples
    --------
    >>> square = qb.GraphForm(4, 2, [[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> square.value(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    4.0
    >>> square.cone.name
    'centred'
    >>> stiff = qb.GraphForm(3, 1, [[0, 1], [1, 2]], weights=[16.0, 1.0])
    >>> result = qb.solve(qb.Problem(stiff, np.array([[1.0], [0.0], [-1.0]])))
    >>> lengths = -np.diff(result.x, axis=0).ravel()
    >>> lengths.round(4)  # pulled alike, weight 16 makes it 16^(1/3) times as short
    array([0.25, 0.63])
    """

    cone = Centred()
    leverage_rank = 1
    rigorous = True
    factorable = True
    refines_hessian = False  # directions take few products in the metric of the Laplacian
    has_edges = True
    fuses_misfit = True
    blind = True
    bare_metric = "diagonal"

    def __new__(cls, points: Any = None, dim: Any = None, edges: Any = None, weights: Any = None) -> GraphForm:
        """Return a form of edges that weigh alike, or of weighted ones."""
        if cls is GraphForm and weights is not None:
            from .weighted_graph import WeightedGraphForm

            cls = WeightedGraphForm
        return object.__new__(cls)

    def __init__(self, points: int, dim: int, edges: Any, weights: None = None) -> None:
        super().__init__()
        self.points, self.coordinates = whole_number(points, "points", 2), whole_number(dim, "dim")
        self.edges = simple_edges(edges, self.points)
        self.heads, self.tails = (np.ascontiguousarray(column) for column in self.edges.T)
        self.dim = self.points * self.coordinates
        self.terms, self.rank = len(self.edges), self.coordinates
        self.shape = (self.points, self.coordinates)
        self._incidence = incidence(self.heads, self.tails, self.points)
        self._work = GATHER_COST * self.terms * self.coordinates
        self._kept["magnitude"] = 1.0
        self._kept["zero terms"] = np.empty(0, dtype=np.int64)

    @property
    def columns(self):
        """N."""
        return self.points

    @property
    def freedom(self):
        """N − 1."""
        return self.points - 1

    def factor_cost(self):
        """Return the passes that a factor costs; none on small graphs, where certificates need the same one."""
        return 0.0 if self.points <= DENSE_VERTICES else LARGE_FACTOR

    def solve_cost(self):
        """Return the passes that a solve costs."""
        return 0.0 if self.points <= DENSE_VERTICES else LARGE_SOLVE

    def signature(self):
        """Return how the edges are read, beside the rest."""
        return (*super().signature(), self._parts() > 1, self._gatherers() > 1)

    def require_cone(self, cone):
        """Raise for a cone with translations in it: ρ vanishes on them."""
        for translation in np.kron(np.ones((1, self.points)), np.eye(self.coordinates)):
            if any(np.abs(cone.euclidean(sign * translation)).max() > 1e-9 for sign in (1.0, -1.0)):
                raise ProblemError(
                    f"ρ of a graph vanishes on translations: its problems need cone=Centred(), found {cone!r}"
                )

    # Reading the edges ------------------------------------------------------------------------------------------------

    def _parts(self) -> int:
        return thread_count(self._work, self.points)

    def _gatherers(self, overhead: float = 2.0) -> int:
        """Return how many threads gather at vertices, which takes ``overhead`` times the work: one, unless they gain.

        Two break even where the points do not fit into a core's cache, as the threads then write to their own.
        """
        parts = self._parts()
        return parts if parts > overhead or (parts == overhead and self.terms > CACHED_EDGES) else 1

    def _edge_shares(self, parts: int) -> np.ndarray:
        key = ("edges", parts)
        if key not in self._kept:
            self._kept[key] = shares(self.terms, parts)
        return self._kept[key]

    def _vertex_shares(self, parts: int) -> np.ndarray:
        """Return bounds of vertices with evenly many incident edges."""
        key = ("vertices", parts)
        if key not in self._kept:
            indptr = self._incidence[0]
            bounds = np.searchsorted(indptr, shares(int(indptr[-1]), parts)).astype(np.int64)
            bounds[0], bounds[-1] = 0, self.points
            self._kept[key] = bounds
        return self._kept[key]

    def _image(self, x):
        parts, point = self._parts(), x.reshape(self.shape)
        if parts == 1:
            return graph.image(self.heads, self.tails, point)
        return together(graph.image_parallel, self._work, self.heads, self.tails, point, self._edge_shares(parts))

    def _adjoint(self, weights):
        parts = self._gatherers(overhead=5.0)
        if parts == 1:
            return graph.adjoint(self.heads, self.tails, *self.shape, weights).reshape(-1)
        bounds = self._vertex_shares(parts)
        return together(
            graph.adjoint_parallel, self._work, self.heads, *self._incidence, self.coordinates, weights, bounds
        ).reshape(-1)

    def _evaluate(self, x):
        parts = self._gatherers()
        point = x.reshape(self.shape)
        if parts == 1:
            value, gradient, image = graph.evaluate(self.heads, self.tails, point)
        else:
            value, gradient, image = together(
                graph.evaluate_parallel, self._work, *self._incidence, point, self._vertex_shares(parts)
            )
        return value, gradient.reshape(-1), image

    def _hessian_product(self, x, image, v):
        if x is None:
            return self._adjoint(self.hessian_weights(image, self._image(v)))
        parts = self._gatherers()
        x, v = x.reshape(self.shape), v.reshape(self.shape)
        if parts == 1:
            return graph.hessian_product(self.heads, self.tails, x, v).reshape(-1)
        indptr, neighbours, _ = self._incidence
        return together(
            graph.hessian_product_parallel, self._work, indptr, neighbours, x, v, self._vertex_shares(parts)
        ).reshape(-1)

    def _evaluate_misfit(self, x, d, omega):
        value, gradient, image = misfit.evaluate_edges(self.heads, self.tails, x.reshape(self.shape), d, omega)
        return value, gradient.reshape(-1), image

    def _misfit_product(self, image, alpha, beta, v):
        # No image: to add those of many products up takes twice as long as that of their sum.
        product = misfit.product_edges(self.heads, self.tails, image, alpha, beta, v.reshape(self.shape))
        return product.reshape(-1), None

    def _band(self) -> Band:
        if "band" not in self._kept:
            self._kept["band"] = Band(*self.shape, self.heads, self.tails, self._incidence[:2])
        return self._kept["band"]

    def _ordered(self) -> Band | BlockFronts:
        """Return the order in which a matrix of second derivatives is factored (made once)."""
        if "ordered" not in self._kept:
            band, found = self._band(), None
            if band.work > WIDE_BAND:
                found = self._dissected()
                found = BlockFronts(found, self.coordinates) if found.sensible else None
            self._kept["ordered"] = found if found is not None and FRONT_RATE * found.work < band.work else band
        return self._kept["ordered"]

    def misfit_factor_cost(self):
        """Return what a factor within a band costs, which its width decides; infinite where edges are many.

        One by fronts may cost less, but to know it takes longer than a hundred passes.
        """
        if self.terms > FACTORED_EDGES * self.points:
            return math.inf
        return FACTORED * self._band().work / self._work

    def misfit_factor(self, image, alpha, beta, shift):
        """Return a factor, within a band or by fronts, whichever takes less time. One pass."""
        self._read()
        return self._ordered().factor(image, self.scale**2 * alpha, self.scale**2 * beta, shift)

    # Rows and matrices ------------------------------------------------------------------------------------------------

    def _incidence_matrix(self) -> sp.csr_matrix:
        ends = np.repeat(np.arange(self.terms), 2)
        signs = np.tile([1.0, -1.0], self.terms)
        return sp.csr_matrix((signs, (ends, self.edges.reshape(-1))), shape=(self.terms, self.points))

    def real_rows(self):
        """Return the incidence matrix ⊗ I_d as a CSR matrix. One pass."""
        self._read()
        return sp.kron(self._incidence_matrix(), sp.identity(self.coordinates), format="csr")

    def column_squares(self, weights):
        """Return the sum of the weights of the edges at every vertex, coordinate by coordinate. One pass."""
        self._read()
        columns, ends = weights.reshape(self.terms, -1).T, (self.heads, self.tails)
        sums = np.stack([sum(np.bincount(end, column, self.points) for end in ends) for column in columns], axis=1)
        return self.scale**2 * sums.reshape(-1)

    def _row_norms(self):
        return np.full(self.terms * self.rank, np.sqrt(2.0))

    def laplacian(self, tau: np.ndarray | None = None) -> sp.csr_matrix:
        """Return the N × N weighted Laplacian Σ τᵢⱼ(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ (all ones without ``tau``)."""
        weights = self._conductances(np.ones(self.terms) if tau is None else np.asarray(tau, dtype=np.float64))
        return laplacian(self.points, self.edges, weights)

    def _conductances(self, tau: np.ndarray) -> np.ndarray:
        """Return the weights of the edges in the Laplacian of B(τ)."""
        return self.scale**2 * tau

    def dissection(self) -> Dissection | None:
        """Return the order in which Laplacians of this graph are factored (made once); None for small graphs."""
        return None if self.points <= DENSE_VERTICES else self._dissected()

    def _dissected(self) -> Dissection:
        if "dissection" not in self._kept:
            self._kept["dissection"] = Dissection(self.points, self.edges)
        return self._kept["dissection"]

    def weighted_gram(self, tau, single=False):
        """Raise: a graph has Laplacians, which ``weighted`` factors."""
        raise ProblemError("GraphForm has no dense B(τ); its Laplacian is form.laplacian(tau)")

    def correcting(self, precision="double"):
        """Return the metric of the Laplacian."""
        return self.weighted(self.uniform_weights())

    def weighted(self, tau, precision="double", accuracy=1e-6):
        """Return the metric L_τ ⊗ I, always in double precision."""
        tau = self.require_weights(tau)
        return Laplacian(self.points, self.coordinates, self.edges, self._conductances(tau), self.dissection(), tau)

    def dense_hessian(self, x, image):
        """Return Σ (eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ ⊗ Wᵢⱼ, with its mean diagonal on translations. One pass."""
        self.require_dense()
        self._read()
        d, points = self.coordinates, self.points
        s = image.reshape(-1, d)
        blocks = 8.0 * s[:, :, None] * s[:, None, :]
        blocks[:, np.arange(d), np.arange(d)] += 4.0 * np.einsum("ij,ij->i", s, s)[:, None]
        blocks *= self.scale**2
        out = np.zeros((points, points, d, d))
        out[self.heads, self.tails] = out[self.tails, self.heads] = -blocks
        diagonal = np.zeros((points, d, d))
        np.add.at(diagonal, self.heads, blocks)
        np.add.at(diagonal, self.tails, blocks)
        out[np.arange(points), np.arange(points)] = diagonal
        out += (np.trace(diagonal.sum(axis=0)) / (d * points**2)) * np.eye(d)
        return np.asfortranarray(out.transpose(0, 2, 1, 3).reshape(self.dim, self.dim))

    # Proofs -----------------------------------------------------------------------------------------------------------

    def known_image(self, x, exact=True):
        """Return the differences along edges with proven bounds, always in twice the precision. One pass."""
        self._read()
        parts, point = self._parts(), x.reshape(self.shape)
        if parts == 1:
            return Known(*exact_.image_edges(self.heads, self.tails, point))
        return Known(
            *together(exact_.image_edges_parallel, self._work, self.heads, self.tails, point, self._edge_shares(parts))
        )

    def known_residual(self, c, hi, lo, exact=True):
        """Return c less the sum of ± (hi + lo) at each vertex with proven bounds. One pass."""
        self._read()
        return Known(*exact_.residual_edges(self.heads, self.tails, c.reshape(self.shape), hi, lo))

    def routed(self, w):
        """Return the flow along a spanning tree that carries w."""
        return self.proof().correction(w) / self.scale

    def _proof(self):
        return spanning_tree(self.heads, self.tails, self.shape)

    # Leverage on the vertices -----------------------------------------------------------------------------------------

    def traces(self, metric):
        """Return the effective resistance of every edge, or what it is in a diagonal metric. One sweep.

        Where the equations are solved by conjugate gradients, upper bounds that are tight to some 1e-4.
        """
        self._read()
        if metric.diagonal is not None:
            inverse = 1.0 / metric.diagonal[:: self.coordinates]
            return self.scale**2 * (inverse[self.heads] + inverse[self.tails])
        found = metric.resistances()
        if found is None or found.size != self.terms:
            raise ProblemError(f"leverage on a graph needs its Laplacian or a diagonal metric, found {metric.name!r}")
        return self.scale**2 * found

    def sketched_traces(self, metric, columns, rng):
        """Return ‖Zᵀ(eᵢ − eⱼ)‖² for Z = L⁺Mᵀ√W G, M the differences along edges (Spielman and Srivastava)."""
        conductance = np.sqrt(self._conductances(metric.tau))
        total = np.zeros(self.terms)
        for start in range(0, columns, COLUMN_BLOCK):
            width = min(COLUMN_BLOCK, columns - start)
            charges = rng.standard_normal((self.terms, width)) * conductance[:, None]
            sources = np.empty((self.points, width))
            for column in range(width):
                sources[:, column] = np.bincount(self.heads, charges[:, column], minlength=self.points)
                sources[:, column] -= np.bincount(self.tails, charges[:, column], minlength=self.points)
            potential = metric.solve_vertices(sources, rough=True)
            difference = potential[self.heads] - potential[self.tails]
            total += np.einsum("ij,ij->i", difference, difference)
        return self.scale**2 / columns * total

    def sketches(self):
        """Say whether this graph is large and nothing splits it, so that it has no factor."""
        structure = self.dissection()
        return structure is not None and not structure.sensible

    def largest(self, weights, metric):
        """Return λ_max of the Laplacian with these weights relative to B; None where a dense matrix is too large."""
        if self.points > DENSE_VERTICES:
            return None
        above = self.laplacian(weights).toarray()
        if metric.diagonal is not None:
            root = np.sqrt(metric.diagonal[:: self.coordinates])
            return (1.0 + MARGIN) * top(above / root / root[:, None])
        return (1.0 + MARGIN) * float(eigvalsh(above, metric.vertex_matrix())[-1])

    def smallest(self, metric, base):
        """Return the least of ⟨x,L(τ)x⟩/⟨x,Dx⟩ over centred x, over ‖τ‖₂: 1/λ_max(D^{½}L⁺D^{½})."""
        root = np.sqrt(metric.diagonal[:: self.coordinates])
        if self.points <= DENSE_VERTICES:
            found = top(root[:, None] * base.solver.solve(np.eye(self.points) - 1.0 / self.points) * root)
        else:

            def product(x: np.ndarray) -> np.ndarray:
                weighted = (root * x.ravel())[:, None]
                return root * base.solver.solve(weighted - weighted.mean()).ravel()

            operator = LinearOperator((self.points, self.points), matvec=product, dtype=np.float64)
            start = np.random.default_rng(0).standard_normal(self.points)
            found = float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
        return (1.0 - MARGIN - base.rounding) / (found * float(np.linalg.norm(base.tau)))

    def bounds(self, metric):
        """Return α and β on the centred subspace, in the norm of a Laplacian or of a diagonal metric; None for others.

        In diag(d) ⊗ I an edge has λ_max(B̃) = s = 1/dᵢ + 1/dⱼ, and Σsₑ(xᵢ − xⱼ)² ≤ maxₑ (Sᵢ/dᵢ + Sⱼ/dⱼ)·‖x‖²_D with
        Sᵢ = Σsₑ over the edges at i (Anderson and Morley); small graphs have the eigenvalue itself.
        """
        if metric.tau is not None:
            return weighted_bounds(self, metric)
        if metric.diagonal is None:
            return None
        diagonal, sizes = metric.diagonal[:: self.coordinates], self.traces(metric)
        weights = np.repeat(self._conductances(sizes), 2)
        degrees = np.bincount(self.edges.ravel(), weights, minlength=self.points) / diagonal
        beta_square = float((degrees[self.heads] + degrees[self.tails]).max())
        sharper = self.largest(sizes, metric)
        if sharper is not None:
            beta_square = min(beta_square, sharper)
        alpha = self.smallest(metric, self.weighted(self.uniform_weights()))
        return Bounds(alpha, float(np.sqrt(beta_square)))

    # Others -----------------------------------------------------------------------------------------------------------

    def plain(self):
        """Return ρ by the incidence matrix, all coordinates at once."""
        return SparsePlain(self, self._incidence_matrix(), self.rank, self.coordinates)

    def arrays(self):
        """Return the size and the edges."""
        return {"points": np.array(self.points), "dim": np.array(self.coordinates), "edges": self.edges}

    @classmethod
    def from_arrays(cls, arrays):
        """Return the graph that a file kept."""
        return cls(arrays["points"], arrays["dim"], arrays["edges"])
