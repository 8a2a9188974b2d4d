"""Which correction of a dual point follows the Hessian? What Newton's method would do to it, for few unknowns."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from quartbench.kernels import images

from .proof import factor_of_rows


class Curvature:
    """Corrections that follow the Hessian at x: μ = 4‖sᵢ‖²tᵢ + 8⟨sᵢ,tᵢ⟩sᵢ, t = Me, ρ''(x)e = w, for dense rows.

    It is what Newton's method would do to λ, and costs f* no more than the step would gain; μ = Mz spends as much on
    terms that are almost zero at x, whose conjugate is steep. On the orthant e is zero where x is: then ρ''(x)e = w
    holds on the support alone, and elsewhere r, which is well below zero there, may change a little. A solver that
    has a direction at hand needs no such factor.

    Parameters
    ----------
    matrix : array of shape (m·r, n)
    rank : int
    image : array
        The image of x.
    support : integer array, optional
        Where e may differ from zero; everywhere if not given.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the Hessian has no factor.
    """

    def __init__(self, matrix: np.ndarray, rank: int, image: np.ndarray, support: np.ndarray | None = None) -> None:
        self._support = np.arange(matrix.shape[1]) if support is None else support
        self._rank, self._image = rank, image
        self._rows = matrix[:, self._support].astype(np.float64)
        self._factor = factor_of_rows(self._rows, rank)
        if self._factor is None:
            raise np.linalg.LinAlgError("the rows are too nearly dependent")
        self._rows = self._factor.columns(self._rows)
        squares = np.repeat(images.square_norms(image, rank), rank)
        products = (image[:, None] * self._rows).reshape(-1, rank, self._support.size).sum(axis=1)
        hessian = 4.0 * (self._rows.T * squares) @ self._rows + 8.0 * products.T @ products
        hessian[np.diag_indices_from(hessian)] += 1e-15 * np.trace(hessian)
        self._hessian, self._lower = hessian, scipy.linalg.cho_factor(hessian, lower=True, check_finite=False)

    def correction(self, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return μ with Mᵀμ ≈ w on the support."""
        inner = self._factor.inner(w[self._support])
        return self._weights(scipy.linalg.cho_solve(self._lower, inner, check_finite=False))

    def _weights(self, y: np.ndarray) -> np.ndarray:
        along = self._rows @ y
        out = np.empty_like(along)
        images.hessian_weights(self._image, along, self._rank, out)
        return out


class BoundaryCurvature(Curvature):
    """Corrections along the boundary of the second-order cone, where r ≈ −νJx, J = diag(1, −1, …).

    What is left then is to be −ν'Jx' with x' = x + e on the boundary too, r − ρ''(x)e = −(ν + δ)J(x + e): Newton's
    equations

        (ρ''(x) − νJ)e − δJx = r + νJx,    ⟨Jx,e⟩ = −½⟨x,Jx⟩,

    with x moved along from one correction to the next. A w near P_K(r) alone does not turn the normal, and is short
    by the first power of the distance of x from the minimiser. ``signs`` is the diagonal of J.
    """

    def __init__(self, matrix: np.ndarray, rank: int, image: np.ndarray, x: np.ndarray, signs: np.ndarray) -> None:
        super().__init__(matrix, rank, image)
        self._x = x
        self._signs = signs
        basis = self._factor.basis()
        self._turned = (basis.T * self._signs) @ basis
        self._basis = basis

    def correction(self, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return μ with r − Mᵀμ near the boundary of the polar cone."""
        normal = self._signs * self._x
        multiplier = max(-(normal @ r) / (normal @ normal), 0.0)
        inner, n = self._factor.inner(normal), self._x.size
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = self._hessian - multiplier * self._turned
        system[:n, n] = system[n, :n] = -inner
        right = np.append(self._factor.inner(r) + multiplier * inner, 0.5 * (normal @ self._x))
        scale = np.abs(inner).max() / np.sqrt(np.trace(self._hessian) / n)  # of the last equation, for the pivots
        system[n] /= scale
        right[n] /= scale
        try:
            y = np.linalg.solve(system, right)[:n]
        except np.linalg.LinAlgError:
            return super().correction(w, r)
        self._x = self._x + self._basis @ y
        return self._weights(y)
