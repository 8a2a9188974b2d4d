"""The metric of a graph: a weighted Laplacian on N × d points, of which only the N × N equations are solved."""

from __future__ import annotations

import numpy as np

from quartbench.errors import ProblemError, any_array, real_array
from quartbench.linalg.dissection import Dissection
from quartbench.linalg.laplacians import laplacian, laplacian_solver

from .base import Metric

#: The tolerance of rough solves by conjugate gradients, and the relative error at which resistances mean nothing.
ROUGH, LOST = 1e-6, 0.1


class Laplacian(Metric):
    """B = L_w ⊗ I_d on N × d points, with w̄/N·11ᵀ added so that it is definite; w̄ is the mean weighted degree.

    On the centred subspace B is L_w itself and B⁻¹ its pseudo-inverse. Only equations with the N × N Laplacian are
    solved: by a dense factor, nested dissection or conjugate gradients, as the graph allows (see ``factor``).

    Parameters
    ----------
    points, dim : int
        N and d.
    edges : integer array of shape (m, 2)
    weights : array of shape (m,)
        Positive.
    structure : Dissection, optional
        Of the same graph, where it is known already.
    tau : array of shape (m,), optional
        The weights of the terms, where B = Σ τᵢBᵢ.

    Examples
    --------
    >>> B = qb.Laplacian(3, 1, np.array([[0, 1], [1, 2]]), np.array([1.0, 1.0]))
    >>> B.apply(np.array([1.0, 0.0, -1.0]))
    array([ 1.,  0., -1.])
    >>> B.solve(np.array([1.0, 0.0, -1.0])).round(12)
    array([ 1.,  0., -1.])
    """

    name = "laplacian"
    keeps_centred = True

    def __init__(
        self,
        points: int,
        dim: int,
        edges: np.ndarray,
        weights: np.ndarray,
        structure: Dissection | None = None,
        tau: np.ndarray | None = None,
    ) -> None:
        edges, weights = any_array(edges, "edges"), real_array(weights, "weights", 1)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise ProblemError(f"edges must be whole numbers of shape (m, 2), found {edges.dtype} {edges.shape}")
        if len(edges) and (edges.min() < 0 or edges.max() >= points):
            raise ProblemError(f"edges must join vertices 0 to {points - 1}, found {edges.min()} to {edges.max()}")
        if weights.size != len(edges) or not (weights > 0).all():
            raise ProblemError(f"weights must be {len(edges)} positive numbers, one per edge, found {weights.size}")
        self.points, self.coordinates = int(points), int(dim)
        self.dim = self.points * self.coordinates
        self.tau = tau
        self.laplacian = laplacian(self.points, edges, weights)
        self.mean_degree = 2.0 * weights.sum() / self.points
        self.solver = laplacian_solver(self.laplacian, edges, weights, structure)
        self.factor = self.solver.method
        self.iterative = self.factor == "conjugate gradients"

    def apply(self, x):
        """Return Bx."""
        point = x.reshape(self.points, self.coordinates)
        return (self.laplacian @ point + self.mean_degree * point.mean(axis=0)).reshape(-1)

    def solve(self, v):
        """Return B⁻¹v."""
        return self.solve_vertices(v.reshape(self.points, self.coordinates)).reshape(-1)

    def solve_columns(self, v):
        """Return B⁻¹V for V of N·d rows, all columns together."""
        columns = v.shape[1]
        return self.solve_vertices(v.reshape(self.points, -1)).reshape(-1, columns)

    def solve_vertices(self, v: np.ndarray, rough: bool = False) -> np.ndarray:
        """Return (L_w + w̄/N·11ᵀ)⁻¹V for V of N rows; roughly, to 1e-6, where iterations would go on."""
        mean = v.mean(axis=0)
        accuracy = {"tolerance": ROUGH} if rough and self.iterative else {}
        return self.solver.solve(v - mean, **accuracy) + mean / self.mean_degree

    def vertex_matrix(self) -> np.ndarray:
        """Return L_w + w̄/N·11ᵀ as a dense matrix."""
        return self.laplacian.toarray() + self.mean_degree / self.points

    def resistances(self) -> np.ndarray:
        """Return the effective resistance of every edge; from then on ``rounding`` is known."""
        found = self.solver.resistances()
        self.rounding = self.solver.rounding
        if self.rounding > LOST:
            raise ProblemError(
                "tau must leave the graph connected to rounding, found weights between "
                f"{self.tau.min():.3g} and {self.tau.max():.3g}"
            )
        return found
