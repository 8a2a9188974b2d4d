"""How are the equations of a graph Laplacian solved, and the effective resistances of its edges found?

Small graphs by a dense factor, large ones by a sparse factor in the order of a dissection. Graphs that nothing cuts
(expanders) by conjugate gradients, which converge fast exactly there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import lapack  # not NumPy's: its BLAS is another library, whose threads would compete

from quartbench.errors import ProblemError
from quartbench.kernels import fronts
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

from .conjugate_gradients import conjugate_gradient_columns, ritz_values
from .dissection import Dissection

#: Vertices up to which a Laplacian is factored as one dense matrix.
DENSE_VERTICES = 1500

#: BLAS has one thread for fronts, as most are small. Two save a quarter of the time of 20 000 points on idle cores, but
#: meet thousands of times: where another process has the second core, a factor of 60 ms took two seconds.
FRONT_WORK = ONE_THREAD_WORK

#: Columns that conjugate gradients carry together.
COLUMNS = 32


def laplacian(points: int, edges: np.ndarray, weights: np.ndarray) -> sp.csr_matrix:
    """Return the weighted graph Laplacian Σ wₑ(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ as a CSR matrix."""
    heads, tails = edges.T
    matrix = sp.coo_matrix((weights, (heads, tails)), shape=(points, points))
    matrix = (matrix + matrix.T).tocsr()
    return sp.csr_matrix(sp.diags(np.asarray(matrix.sum(axis=1)).ravel()) - matrix)


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
    """The sparse Cholesky factor of a Laplacian, front by front, its last vertex grounded.

    After ``resistances``, ``rounding`` estimates how far they may be from the truth, relatively.

    Parameters
    ----------
    structure : Dissection
    weights : array of shape (m,)
        Positive, one per edge.
    """

    method = "dissection"

    def __init__(self, structure: Dissection, weights: np.ndarray) -> None:
        self.structure = structure
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        degrees = np.bincount(structure.edges.ravel(), np.repeat(weights, 2), minlength=structure.points)
        self._stiffest = float(degrees.max())
        with blas_threads(FRONT_WORK):
            definite, self._panels = fronts.factor(
                *self._places(), degrees[structure.order].reshape(-1, 1, 1), weights.reshape(-1, 1, 1)
            )
        if not definite:
            raise np.linalg.LinAlgError

    def _places(self) -> tuple[np.ndarray, ...]:
        """Return where fronts lie, how they hang together, and where edges enter, as kernels take it."""
        s = self.structure
        return s.starts, s.pointers, s.offsets, s.parents, s.relative, s.indptr, s.spots, s.links

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the centred X with LX = V, for V of N rows whose columns sum to zero."""
        s = self.structure
        v = np.ascontiguousarray(v, dtype=np.float64)
        return fronts.substitute(s.starts, s.pointers, s.offsets, s.rows, self._panels, s.order, v)

    def resistances(self) -> np.ndarray:
        """Return the effective resistance between the ends of every edge, for twice the work of the factor."""
        with blas_threads(FRONT_WORK):
            values, cancellation, trace = fronts.resistances(*self._places(), self._panels)
        self.rounding = _rounding(cancellation, self._stiffest, trace)
        return values


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
        """Return upper bounds on the effective resistances, tight to a few tolerances, from one solve per vertex.

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
        x, steps, ratios = conjugate_gradient_columns(
            lambda p, _: self._matrix @ p, v, lambda r: r * inverse, share=tolerance, products=10 * len(v)
        )
        residual = v - self._matrix @ x
        norms = np.sqrt(np.einsum("ij,ij->j", residual, residual * inverse))
        ritz = [ritz_values(*run)[0] if run[0].size else 1.0 for run in zip(steps, ratios, strict=True)]
        return x - x.mean(axis=0), norms, np.array(ritz)


LaplacianSolver = DenseLaplacian | DissectedLaplacian | IterativeLaplacian


def laplacian_solver(
    matrix: sp.csr_matrix, edges: np.ndarray, weights: np.ndarray, structure: Dissection | None = None
) -> LaplacianSolver:
    """Return the solver that suits a connected graph: dense, dissected while that is sensible, iterative beyond."""
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
