"""How are the equations of a graph Laplacian solved, and the effective resistances of its edges found?

Small graphs by a dense factor, large ones by nested dissection (George): a few vertices split the graph in two, and so
on downwards, and each such separator is eliminated as one dense block, a front, so that all arithmetic is BLAS-3 and no
N × N matrix appears. Graphs that nothing splits (expanders) by conjugate gradients, which converge fast exactly there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numba
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import blas, lapack  # not NumPy's @: its BLAS is another library, whose threads would compete
from scipy.sparse.csgraph import connected_components, dijkstra, maximum_bipartite_matching

from quartbench.errors import ProblemError
from quartbench.runtime.blas import blas_threads

#: Vertices up to which a Laplacian is factored as one dense matrix.
DENSE_VERTICES = 1500

#: Multiplications and stored numbers up to which nested dissection serves: some ten seconds, 400 MB.
DISSECTION_FLOPS, DISSECTION_ENTRIES = 2e11, 5e7

#: Vertices of a part that is not split any further: smaller parts cost more Python, larger ones more arithmetic.
LEAF = 96

#: Columns that conjugate gradients carry together.
COLUMNS = 32

#: A separator must leave no part with more than this share of the vertices, or the part is one dense front.
LARGEST_SHARE = 0.9

#: A vertex with more than this many times the mean degree is a hub.
HUB = 20


@dataclass
class Front:
    """Vertices that are eliminated together, and where their entries go.

    Attributes
    ----------
    pivots : array
        The vertices eliminated here.
    boundary : array
        The vertices eliminated later that these, or those below them, are joined to; in order of elimination.
    parent : int
        The number of the front above, −1 at the root.
    relative : array
        Where the boundary lies in the front above.
    edges, first, second : arrays
        The edges that enter here, and the places of their ends in the front, first > second.
    children : list of int
    """

    pivots: np.ndarray
    children: list[int]
    parent: int = -1
    boundary: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    relative: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    edges: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    first: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    second: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


class Dissection:
    """The order of elimination of a connected graph; serves every set of weights on its edges.

    Parameters
    ----------
    points : int
    edges : integer array of shape (m, 2)

    Attributes
    ----------
    fronts : list of Front
        Children before parents; the last is the root.
    flops, entries : float
        What a factorisation costs: multiplications, and numbers stored.
    """

    def __init__(self, points: int, edges: np.ndarray) -> None:
        self.points, self.edges = int(points), np.asarray(edges)
        links = sp.coo_matrix((np.ones(len(edges), dtype=np.int8), self.edges.T), shape=(points, points))
        adjacency = (links + links.T).tocsr()
        self.fronts = _fronts(adjacency)
        order = np.empty(self.points, dtype=np.int64)
        order[np.concatenate([front.pivots for front in self.fronts])] = np.arange(self.points)
        self._bound(adjacency, order)
        self._place(order)
        sizes = np.array([(front.pivots.size, front.boundary.size) for front in self.fronts], dtype=float)
        own, above = sizes.T
        self.flops = float((own**3 / 3.0 + own**2 * above + own * above**2).sum())
        self.entries = float((own**2 + own * above).sum())

    @property
    def sensible(self) -> bool:
        """Whether a factorisation takes seconds and hundreds of megabytes, not more."""
        return self.flops <= DISSECTION_FLOPS and self.entries <= DISSECTION_ENTRIES

    def _bound(self, adjacency: sp.csr_matrix, order: np.ndarray) -> None:
        """Find the boundary of each front: what its pivots and its children touch, less what is eliminated by then."""
        done = 0
        for front in self.fronts:
            done += front.pivots.size
            touched = order[adjacency[front.pivots].indices]
            later = np.unique(np.concatenate([touched, *(self.fronts[child].boundary for child in front.children)]))
            front.boundary = later[later >= done]  # as places in the order, for now
        vertex = np.argsort(order)
        for number, front in enumerate(self.fronts):
            for child in front.children:
                self.fronts[child].parent = number
            front.boundary = vertex[front.boundary]

    def _place(self, order: np.ndarray) -> None:
        """Send each edge to the front of its first eliminated end, and each boundary to its places in the parent."""
        early = order[self.edges].min(axis=1)
        late = order[self.edges].max(axis=1)
        starts = np.cumsum([0, *(front.pivots.size for front in self.fronts)])
        by_front = np.argsort(early, kind="stable")
        cuts = np.searchsorted(early[by_front], starts)
        for number, front in enumerate(self.fronts):
            mine = by_front[cuts[number] : cuts[number + 1]]
            places = order[np.concatenate([front.pivots, front.boundary])]
            front.edges = mine
            front.first = np.searchsorted(places, late[mine])
            front.second = np.searchsorted(places, early[mine])
            for child in front.children:
                self.fronts[child].relative = np.searchsorted(places, order[self.fronts[child].boundary])


class DenseLaplacian:
    """The Cholesky factor of L + w̄/N·11ᵀ, w̄ the mean weighted degree.

    After ``resistances``, ``rounding`` estimates how far they may be from the truth, relatively.
    """

    method = "dense"

    def __init__(self, matrix: sp.csr_matrix, edges: np.ndarray) -> None:
        self._edges, self._stiffest = edges, float(matrix.diagonal().max())
        shift = matrix.diagonal().mean() / matrix.shape[0]
        with blas_threads(matrix.shape[0] ** 3 / 3):
            self._factor = scipy.linalg.cho_factor(matrix.toarray() + shift, lower=True, check_finite=False)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the centred X with LX = V, for V of N rows whose columns sum to zero."""
        with blas_threads(self._factor[0].size * v[0].size):
            x = scipy.linalg.cho_solve(self._factor, v, check_finite=False)
        return x - x.mean(axis=0)

    def resistances(self) -> np.ndarray:
        """Return the effective resistance between the ends of every edge."""
        with blas_threads(len(self._factor[0]) ** 3 / 3):
            inverse = lapack.dpotri(self._factor[0], lower=1)[0]
        low, high = self._edges.min(axis=1), self._edges.max(axis=1)
        ends = inverse[low, low] + inverse[high, high]
        out = ends - 2.0 * inverse[high, low]
        self.rounding = _rounding(_cancellation(ends, out), self._stiffest, float(inverse.diagonal().sum()))
        return out


class DissectedLaplacian:
    """The Cholesky factor of a Laplacian in the order of a dissection, its last vertex grounded.

    After ``resistances``, ``rounding`` estimates how far they may be from the truth, relatively.

    Parameters
    ----------
    structure : Dissection
    weights : array of shape (m,)
        Positive, one an edge.
    """

    method = "dissection"

    def __init__(self, structure: Dissection, weights: np.ndarray) -> None:
        self.structure = structure
        fronts = structure.fronts
        degrees = np.bincount(structure.edges.ravel(), np.repeat(weights, 2), minlength=structure.points)
        self.ground, self._stiffest = int(fronts[-1].pivots[-1]), float(degrees.max())
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []
        with blas_threads(structure.flops / len(fronts)):
            self._eliminate(degrees, weights)

    def _eliminate(self, degrees: np.ndarray, weights: np.ndarray) -> None:
        fronts = self.structure.fronts
        schur: dict[int, np.ndarray] = {}
        for number, front in enumerate(fronts):
            k = front.pivots.size
            size = k + front.boundary.size
            matrix = np.zeros((size, size), order="F")
            matrix[np.arange(k), np.arange(k)] = degrees[front.pivots]
            matrix[front.first, front.second] = -weights[front.edges]
            for child in front.children:
                relative = fronts[child].relative
                matrix[relative[:, None], relative] += schur.pop(child)
            k -= number == len(fronts) - 1  # the grounded vertex has no pivot
            corner = _cholesky(matrix[:k, :k])
            below = matrix[k:, :k]
            if k and below.size:
                below = blas.dtrsm(1.0, corner, below, side=1, lower=1, trans_a=1)
                schur[number] = blas.dsyrk(-1.0, below, beta=1.0, c=matrix[k:, k:], lower=1)
            elif below.shape[0]:
                schur[number] = matrix[k:, k:]
            self._blocks.append((corner, below))

    def _rows(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        front, corner = self.structure.fronts[number], self._blocks[number][0]
        k = len(corner)
        return front.pivots[:k], np.concatenate([front.pivots[k:], front.boundary])

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the centred X with LX = V, for V of N rows whose columns sum to zero."""
        x = np.array(v, dtype=np.float64, order="C")
        with blas_threads(self.structure.entries * x[0].size / len(self._blocks)):
            self._substitute(x)
        return x - x.mean(axis=0)

    def _substitute(self, x: np.ndarray) -> None:
        """Solve in place, zero at the grounded vertex."""
        for number, (corner, below) in enumerate(self._blocks):
            if len(corner):
                own, later = self._rows(number)
                part = blas.dtrsm(1.0, corner, x[own], lower=1)
                x[own] = part
                if below.size:
                    x[later] -= blas.dgemm(1.0, below, part)
        x[self.ground] = 0.0
        for number in reversed(range(len(self._blocks))):
            corner, below = self._blocks[number]
            if len(corner):
                own, later = self._rows(number)
                part = x[own] - blas.dgemm(1.0, below, x[later], trans_a=1) if below.size else x[own]
                x[own] = blas.dtrsm(1.0, corner, part, lower=1, trans_a=1)

    def resistances(self) -> np.ndarray:
        """Return the effective resistance between the ends of every edge.

        From the root down, the inverse on a front follows from its entries on the front above (Takahashi, Fagan, Chen):
        with M = L₂₁L₁₁⁻¹, Z₂₁ = −Z₂₂M and Z₁₁ = (L₁₁L₁₁ᵀ)⁻¹ + MᵀZ₂₂M. Twice the work of the factor.
        """
        with blas_threads(2.0 * self.structure.flops / len(self._blocks)):
            return self._selected_inverse()

    def _selected_inverse(self) -> np.ndarray:
        fronts = self.structure.fronts
        out = np.empty(len(self.structure.edges))
        cancellation, trace = 1.0, 0.0
        inverses: dict[int, np.ndarray] = {}
        for number in reversed(range(len(fronts))):
            front, (corner, below) = fronts[number], self._blocks[number]
            above = np.zeros((len(below), len(below)), order="F")
            if front.parent >= 0:
                above[:] = inverses[front.parent][front.relative[:, None], front.relative]
            k = len(corner)
            z = np.empty((k + len(above), k + len(above)), order="F")
            z[k:, k:] = above
            if k:
                inverse = lapack.dpotri(corner, lower=1)[0]
                inverse = np.tril(inverse) + np.tril(inverse, -1).T
                if below.size:
                    ratio = blas.dtrsm(1.0, corner, below, side=1, lower=1)
                    z[k:, :k] = blas.dgemm(-1.0, above, ratio)
                    z[:k, k:] = z[k:, :k].T
                    inverse = blas.dgemm(-1.0, ratio, z[k:, :k], beta=1.0, c=inverse, trans_a=1)
                z[:k, :k] = inverse
            here = z.diagonal()
            first, second = front.first, front.second
            ends = here[first] + here[second]
            out[front.edges] = ends - 2.0 * z[first, second]
            cancellation = max(cancellation, _cancellation(ends, out[front.edges]))
            trace += float(here[:k].sum())
            if front.children:
                inverses[number] = z
            if front.parent >= 0 and number == fronts[front.parent].children[0]:
                del inverses[front.parent]  # children are visited last to first
        self.rounding = _rounding(cancellation, self._stiffest, trace)
        return out


def _rounding(cancellation: float, stiffest: float, trace: float) -> float:
    """Return the relative error to expect of resistances, which are differences of entries of an inverse of L.

    The differences cancel, and the entries themselves are wrong by the condition of L: its largest diagonal entry times
    the trace of its inverse. Clusters joined by weak edges make both large.
    """
    return float(np.finfo(np.float64).eps) * (4.0 * cancellation + 2.0 * stiffest * trace)


def _cancellation(ends: np.ndarray, resistances: np.ndarray) -> float:
    """Return the largest ratio of entries of the inverse to their difference; infinite where nothing of it is left."""
    if not ends.size:
        return 1.0
    return float((ends / resistances).max()) if resistances.min() > 0.0 else np.inf


class IterativeLaplacian:
    """Conjugate gradients on L with its diagonal as preconditioner: nothing but L is stored.

    Parameters
    ----------
    matrix : scipy.sparse.csr_matrix
        The Laplacian.
    edges : integer array of shape (m, 2)
    """

    method = "conjugate gradients"
    rounding = 0.0  # the resistances are upper bounds

    def __init__(self, matrix: sp.csr_matrix, edges: np.ndarray) -> None:
        self._matrix, self._edges = matrix, edges
        self._diagonal = matrix.diagonal()

    def solve(self, v: np.ndarray, tolerance: float = 1e-13) -> np.ndarray:
        """Return the centred X with LX = V, for V of N rows whose columns sum to zero.

        The tolerance is on the residual relative to V, in the norm of D⁻¹.
        """
        return np.concatenate(self._blocks(lambda c: self._columns(v[:, c], tolerance)[0], v.shape[1]), axis=1)

    def resistances(self, tolerance: float = 1e-4) -> np.ndarray:
        """Return upper bounds on the effective resistances, tight to a few tolerances, from one solve a vertex.

        With x the computed solution for b = eᵢ − eⱼ and r = b − Lx, the resistance g obeys g = ⟨b,x⟩ + ⟨r,L⁺b⟩
        ≤ ⟨b,x⟩ + ‖r‖_{L⁺}√g. ‖r‖_{L⁺} ≤ ‖r‖_{D⁻¹}/√μ, where μ is the spectral gap of D⁻¹L as the runs of conjugate
        gradients themselves see it, halved for safety.
        """
        points = self._matrix.shape[0]
        low, high = self._edges.min(axis=1), self._edges.max(axis=1)
        own, across, back, leftover, gap = (np.empty(size) for size in (points, low.size, low.size, points, points))
        by_low, by_high = np.argsort(low, kind="stable"), np.argsort(high, kind="stable")

        def block(columns: slice) -> None:
            here = np.arange(columns.start, columns.stop)
            unit = np.full((points, here.size), -1.0 / points)
            unit[here, here - columns.start] += 1.0
            x, leftover[columns], gap[columns] = self._columns(unit, tolerance)
            own[columns] = x[here, here - columns.start]
            mine = by_low[slice(*np.searchsorted(low[by_low], (columns.start, columns.stop)))]
            across[mine] = x[high[mine], low[mine] - columns.start]
            mine = by_high[slice(*np.searchsorted(high[by_high], (columns.start, columns.stop)))]
            back[mine] = x[low[mine], high[mine] - columns.start]

        self._blocks(block, points)
        values = own[low] + own[high] - across - back
        slack = (leftover[low] + leftover[high]) / np.sqrt(0.5 * gap.min())
        return (0.5 * (slack + np.sqrt(slack**2 + 4.0 * np.maximum(values, 0.0)))) ** 2

    def _blocks(self, work, columns: int) -> list:
        """Run ``work`` on blocks of columns that fit the caches, in as many threads as the kernels may use."""
        size = max(1, min(COLUMNS, -(-columns // numba.get_num_threads())))
        blocks = [slice(start, min(start + size, columns)) for start in range(0, columns, size)]
        with ThreadPoolExecutor(numba.get_num_threads()) as pool:
            return list(pool.map(work, blocks))

    def _columns(self, v: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return X, the norms ‖V − LX‖_{D⁻¹} and the smallest Ritz value of D⁻¹L, column by column."""
        inverse = (1.0 / self._diagonal)[:, None]
        x, r = np.zeros_like(v), v.copy()
        y = r * inverse
        p = y.copy()
        ry = np.einsum("ij,ij->j", r, y)
        wanted = tolerance**2 * ry
        alphas, betas = [], []
        for _ in range(10 * len(v)):
            live = ry > wanted
            if not live.any():
                break
            q = self._matrix @ p
            alpha = np.where(live, ry / np.where(live, np.einsum("ij,ij->j", p, q), 1.0), 0.0)
            x += alpha * p
            r -= alpha * q
            np.multiply(r, inverse, out=y)
            before, ry = ry, np.where(live, np.einsum("ij,ij->j", r, y), ry)
            beta = np.where(live, ry / np.where(live, before, 1.0), 0.0)
            p *= beta
            p += y
            alphas.append(alpha)
            betas.append(beta)
        residual = v - self._matrix @ x
        norms = np.sqrt(np.einsum("ij,ij->j", residual, residual * inverse))
        return x - x.mean(axis=0), norms, _ritz_values(np.array(alphas), np.array(betas))


def _ritz_values(alphas: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """Return the smallest eigenvalue of the Lanczos matrix behind each column of conjugate gradient coefficients."""
    out = np.ones(alphas.shape[1] if alphas.ndim == 2 else 0)
    for column in range(out.size):
        steps = int((alphas[:, column] > 0).sum())
        if not steps:
            continue
        alpha, beta = alphas[:steps, column], betas[:steps, column]
        main = 1.0 / alpha
        main[1:] += beta[:-1] / alpha[:-1]
        side = np.sqrt(beta[:-1]) / alpha[:-1]
        out[column] = scipy.linalg.eigvalsh_tridiagonal(main, side, select="i", select_range=(0, 0))[0]
    return out


LaplacianSolver = DenseLaplacian | DissectedLaplacian | IterativeLaplacian


def laplacian_solver(
    matrix: sp.csr_matrix, edges: np.ndarray, weights: np.ndarray, structure: Dissection | None = None
) -> LaplacianSolver:
    """Return the solver that suits a connected graph: dense, by dissection while that is sensible, iterative beyond."""
    try:
        if matrix.shape[0] <= DENSE_VERTICES:
            return DenseLaplacian(matrix, edges)
        structure = structure or Dissection(matrix.shape[0], edges)
        if structure.sensible:
            return DissectedLaplacian(structure, weights)
    except np.linalg.LinAlgError:
        raise ProblemError(
            f"weights must leave the graph connected to rounding, found them between {weights.min():.3g} and "
            f"{weights.max():.3g}"
        ) from None
    return IterativeLaplacian(matrix, edges)


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    if not matrix.size:
        return np.empty((0, 0), order="F")
    corner, info = lapack.dpotrf(matrix, lower=1)
    if info:
        raise np.linalg.LinAlgError
    return corner


# The order of elimination ---------------------------------------------------------------------------------------------


def _fronts(adjacency: sp.csr_matrix) -> list[Front]:
    """Return the fronts of nested dissection, children before parents."""
    fronts: list[Front] = []

    def finish(pivots: np.ndarray, children: list[int]) -> int:
        fronts.append(Front(pivots, children))
        return len(fronts) - 1

    def split(vertices: np.ndarray) -> int:
        part = adjacency[vertices][:, vertices]
        found = _separator(part) if vertices.size > LEAF else None
        if found is None:
            return finish(vertices, [])
        separator, side = found
        halves = [split(vertices[side == half]) for half in (0, 1) if (side == half).any()]
        return finish(vertices[separator], halves)

    split(np.arange(adjacency.shape[0]))
    return fronts


def _separator(part: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray] | None:
    """Return which vertices separate and the side of all others (0, 1; −1 on the separator); None if none serves.

    Hubs always belong to the separator, as nothing is far from anything else while they stand. Where one piece then
    holds more than half of the vertices, it is cut between two levels of a breadth-first search from its rim, by the
    smallest set of vertices that meets every edge across. The pieces that remain are shared between two sides.
    """
    size = part.shape[0]
    degrees = np.diff(part.indptr)
    separator = degrees > max(HUB * degrees.mean(), HUB)
    rest = np.flatnonzero(~separator)
    label, counts = _pieces(part[rest][:, rest])
    if counts.max() > size / 2:
        piece = rest[label == np.argmax(counts)]
        cut = _cut(part[piece][:, piece])
        if cut is None:
            return None
        separator[piece[cut]] = True
        rest = np.flatnonzero(~separator)
        label, counts = _pieces(part[rest][:, rest])
    if counts.max() > LARGEST_SHARE * size:
        return None
    side = np.full(size, -1)
    side[rest] = _halves(counts)[label]
    return separator, side


def _pieces(part: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the piece of each vertex, and how many vertices each piece has."""
    label = connected_components(part, directed=False)[1]
    return label, np.bincount(label)


def _cut(piece: sp.csr_matrix) -> np.ndarray | None:
    """Return the vertices that cut a connected piece between two levels; None where all are neighbours of the rim."""
    rim = int(np.argmax(dijkstra(piece, unweighted=True, indices=0)))
    level = dijkstra(piece, unweighted=True, indices=rim).astype(np.int64)
    sizes = np.bincount(level)
    if sizes.size < 3:
        return None
    below = np.cumsum(sizes)[:-1] / sizes.sum()
    balance = np.minimum(below, 1.0 - below)
    width = np.minimum(sizes[:-1], sizes[1:])
    # Narrow for the balance it gives, with a fifth of the vertices on either side if possible.
    at = int(np.argmin(np.where(balance >= min(0.2, balance.max()), width / balance, np.inf)))
    low, high = np.flatnonzero(level == at), np.flatnonzero(level == at + 1)
    cover_low, cover_high = _vertex_cover(piece[low][:, high])
    return np.concatenate([low[cover_low], high[cover_high]])


def _halves(counts: np.ndarray) -> np.ndarray:
    """Return 0 or 1 for each piece, so that the two halves are about equal: the largest first, to the smaller half."""
    half, totals = np.zeros(counts.size, dtype=np.int64), [0, 0]
    for piece in np.argsort(-counts, kind="stable"):
        half[piece] = int(totals[1] < totals[0])
        totals[half[piece]] += int(counts[piece])
    return half


def _vertex_cover(links: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of rows and columns that meet every entry, as few as possible (Kőnig: as many as a matching has)."""
    links = sp.csr_matrix(links)
    match = maximum_bipartite_matching(links, perm_type="column")  # the column of each row, or −1
    partner = np.full(links.shape[1], -1)
    partner[match[match >= 0]] = np.flatnonzero(match >= 0)
    rows, columns = match < 0, np.zeros(links.shape[1], dtype=bool)
    frontier = np.flatnonzero(rows)
    while frontier.size:
        reached = np.unique(links[frontier].indices)
        reached = reached[~columns[reached]]
        columns[reached] = True
        frontier = partner[reached]
        frontier = frontier[~rows[frontier]]
        rows[frontier] = True
    return ~rows, columns


def laplacian(points: int, edges: np.ndarray, weights: np.ndarray) -> sp.csr_matrix:
    """Return the weighted graph Laplacian Σ wₑ(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ as a CSR matrix."""
    heads, tails = edges.T
    matrix = sp.coo_matrix((weights, (heads, tails)), shape=(points, points))
    matrix = (matrix + matrix.T).tocsr()
    return sp.csr_matrix(sp.diags(np.asarray(matrix.sum(axis=1)).ravel()) - matrix)
