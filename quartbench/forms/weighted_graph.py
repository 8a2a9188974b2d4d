"""The edges of a graph with weights: those of a graph without, each as long as the fourth root of its weight says.

Everything is that of :class:`GraphForm` with rows sₑ(eᵢ − eⱼ)ᵀ ⊗ I, sₑ = wₑ^{1/4}: images are differences times sₑ, a
Laplacian has the weights τₑsₑ², and a flow f along an edge is the dual point f/sₑ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError, any_array, real_array
from quartbench.linalg.edges import in_order
from quartbench.linalg.known import Known, U, raised

from .base import register_form
from .graph import GraphForm
from .terms import TermForm
from .tree import spanning_tree


@register_form("weighted-graph")
class WeightedGraphForm(GraphForm):
    """ρ(X) = Σ wᵢⱼ‖xᵢ − xⱼ‖⁴ over the edges of a connected graph; made by :class:`GraphForm` with ``weights``.

    Attributes
    ----------
    weights : array of shape (m,)
        In the order of ``form.edges``.
    """

    rigorous = True
    has_edges = False  # resistances are those of a graph whose edges are alike
    fuses_misfit = False

    def __init__(self, points: int, dim: int, edges: Any, weights: Any) -> None:
        super().__init__(points, dim, edges)
        weights = real_array(weights, "weights")
        if weights.shape != (self.terms,) or not (weights > 0.0).all():
            least = f" with {weights.min():.3g}" if weights.size and not weights.min() > 0.0 else ""
            raise ProblemError(f"weights must be {self.terms} positive numbers, found shape {weights.shape}{least}")
        order = in_order(any_array(edges, "edges"))[2]
        self.weights = weights if order is None else weights[order]  # as the edges are kept
        self._lengths = np.sqrt(np.sqrt(self.weights))
        self._squares = self._lengths**2
        self._kept["magnitude"] = float(self._lengths.max())

    def _along(self, values: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return numbers of edges, one or d for each, times a factor for each edge."""
        return (values.reshape(self.terms, -1) * factors[:, None]).reshape(values.shape)

    # Reading the edges ------------------------------------------------------------------------------------------------

    def _image(self, x):
        return self._along(super()._image(x), self._lengths)

    def _adjoint(self, weights):
        return super()._adjoint(self._along(weights, self._lengths))

    _evaluate = TermForm._evaluate
    _hessian_product = TermForm._hessian_product
    _evaluate_misfit = TermForm._evaluate_misfit
    _misfit_product = TermForm._misfit_product

    def misfit_factor(self, image, alpha, beta, shift):
        """Return a factor, within a band or by fronts. One pass."""
        return super().misfit_factor(image, self._squares * alpha, self._squares * beta, shift)

    # Rows and matrices ------------------------------------------------------------------------------------------------

    def _incidence_matrix(self):
        return sp.csr_matrix(sp.diags(self._lengths) @ super()._incidence_matrix())

    def column_squares(self, weights):
        """Return the sum of sₑ² times the weights of the edges at every vertex, coordinate by coordinate. One pass."""
        return super().column_squares(self._along(weights, self._squares))

    def _row_norms(self):
        return super()._row_norms() * np.repeat(self._lengths, self.rank)

    def _conductances(self, tau):
        return self._squares * super()._conductances(tau)

    def dense_hessian(self, x, image):
        """Return Σ sₑ²(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ ⊗ Wₑ, with its mean diagonal on translations. One pass."""
        # A block is quadratic in the image of its edge: that of sₑ times the image is sₑ² times the block.
        return super().dense_hessian(x, self._along(image, self._lengths))

    # Proofs -----------------------------------------------------------------------------------------------------------

    def known_image(self, x, exact=True):
        """Return the differences along edges times their sₑ with proven bounds. One pass."""
        return super().known_image(x, exact).times(np.repeat(self._lengths, self.rank))

    def known_residual(self, c, hi, lo, exact=True):
        """Return c less the sum of ± sₑ(hi + lo) at each vertex with proven bounds. One pass."""
        flow = Known(hi, lo, np.zeros_like(hi)).times(np.repeat(self._lengths, self.rank))
        rest = super().known_residual(c, flow.hi, flow.lo, exact)
        return rest._replace(error=raised(rest.error, self._gathered(flow.error)))

    def _gathered(self, errors: np.ndarray) -> np.ndarray:
        """Return at least the sum of errors of the edges at every vertex."""
        columns = errors.reshape(self.terms, -1).T
        sums = [sum(np.bincount(end, part, self.points) for end in (self.heads, self.tails)) for part in columns]
        most = float(np.diff(self._incidence[0]).max())
        return np.nextafter(np.stack(sums, axis=1).reshape(-1) * (1.0 + (most + 4.0) * 2.0 * U), np.inf)

    def _proof(self):
        return spanning_tree(self.heads, self.tails, self.shape, self._lengths)

    # Leverage on the vertices -----------------------------------------------------------------------------------------

    def traces(self, metric):
        """Return sₑ² times the effective resistance of every edge, or what it is in a diagonal metric. One sweep."""
        return self._squares * super().traces(metric)

    def sketched_traces(self, metric, columns, rng):
        """Return sₑ²‖Zᵀ(eᵢ − eⱼ)‖² for Z = L⁺Mᵀ√W G."""
        return self._squares * super().sketched_traces(metric, columns, rng)

    # Others -----------------------------------------------------------------------------------------------------------

    def arrays(self):
        """Return the size, the edges and their weights."""
        return super().arrays() | {"weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays):
        """Return the graph that a file kept."""
        return cls(arrays["points"], arrays["dim"], arrays["edges"], arrays["weights"])
