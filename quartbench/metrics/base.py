"""What is a metric? A positive definite B with products and solves, and what it declares of itself.

Vectors are flat and real. Where B = B(τ) = Σ τᵢBᵢ for a form, the metric keeps ``tau``: certificates and Lewis weights
need it. A kind of metric needs ``dim``, ``apply`` and ``solve``; all else has a default that is right and slow.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Bounds(NamedTuple):
    """Constants with α‖x‖² ≤ √ρ(x) ≤ β‖x‖² for all x, in the norm of a metric."""

    alpha: float
    beta: float

    @property
    def kappa(self) -> float:
        """The quartic condition number β/α."""
        return self.beta / self.alpha


class Metric:
    """A positive definite operator B on flat vectors of length ``dim``.

    Attributes
    ----------
    dim : int
    diagonal : array of shape (n,) or None
        The diagonal of B where B is diagonal; some cones need that.
    euclidean : bool
        Whether B = I, so that products and solves return what they are given.
    keeps_centred : bool
        Whether B maps the centred subspace to itself, so that centring is also the B-projection.
    tau : array of shape (m,) or None
        The weights where B = Σ τᵢBᵢ.
    sample : tuple of array and callable, or None
        Where τ is zero on most terms: the others, and what gives their part of an image, right to some six digits.
    factor : str
        How B is solved with: "none", "cholesky", "qr", "dense", "dissection", "conjugate gradients".
    precision : {"double", "single"}
        That of the factor. In single precision solves, and norms of duals, are right to a per cent or so.
    rounding : float
        How far rounding may move what the factor gives, relatively.
    factored : bool
        Whether B = FFᴴ with ``half_solve``.
    on_complex : bool
        Whether B acts on ℂᴺ, of which flat vectors are the real view: columns then have N complex rows.
    iterative : bool
        Whether solves iterate, so that many of them are dear.
    sweeps, setup_seconds : int, float
        What it cost to choose and factor B.

    Examples
    --------
    >>> class Twice(qb.Metric):
    ...     '''B = 2I.'''
    ...
    ...     def __init__(self, dim):
    ...         self.dim = dim
    ...
    ...     def apply(self, x):
    ...         return 2.0 * x
    ...
    ...     def solve(self, v):
    ...         return 0.5 * v
    >>> float(Twice(2).norm(np.array([1.0, 1.0])))
    2.0
    """

    name = "metric"
    dim: int
    diagonal: np.ndarray | None = None
    euclidean = False
    keeps_centred = False
    tau: np.ndarray | None = None
    sample: tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None = None
    factor: str = "none"
    precision: str = "double"
    rounding: float = 0.0
    factored = False
    on_complex = False
    iterative = False
    sweeps: int = 0
    setup_seconds: float = 0.0
    _bounds: Bounds | Callable[[Metric], Bounds | None] | None = None

    def declared(self, **facts: Any) -> Metric:
        """Return this metric with other declarations: ``name``, ``tau``, ``sweeps``, ``setup_seconds``, ``bounds``.

        ``bounds`` may be a function of the metric, called when they are first asked for. The factor is shared.
        """
        twin = copy.copy(self)
        if "bounds" in facts:
            twin._bounds = facts.pop("bounds")
        for fact, value in facts.items():
            setattr(twin, fact, value)
        return twin

    @property
    def declares_bounds(self) -> bool:
        """Whether ``bounds`` are known, or can be computed."""
        return self._bounds is not None

    @property
    def bounds(self) -> Bounds | None:
        """α and β of the form that the metric was made for.

        They may cost a sweep or an eigenvalue problem, so they are computed when first asked for, and not counted in
        the set-up: no method needs them to run.
        """
        if callable(self._bounds):
            self._bounds = self._bounds(self)
        return self._bounds

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return Bx."""
        raise NotImplementedError

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return B⁻¹v."""
        raise NotImplementedError

    def solve_columns(self, v: np.ndarray) -> np.ndarray:
        """Return B⁻¹V for V of n rows (or N complex ones), by default one column after another."""
        solved = [self.solve(np.ascontiguousarray(column).view(np.float64)).view(v.dtype) for column in v.T]
        return np.stack(solved, axis=1)

    def half_solve(self, v: np.ndarray, overwrite: bool = False) -> np.ndarray:
        """Return F⁻¹V for B = FFᴴ and V of n rows (or N complex ones); only where the metric is ``factored``."""
        raise NotImplementedError

    def half_solve_adjoint(self, v: np.ndarray) -> np.ndarray:
        """Return F⁻ᴴV for B = FFᴴ; only where the metric is ``factored``."""
        raise NotImplementedError

    def resistances(self) -> np.ndarray | None:
        """Return the effective resistance of every edge where B is the Laplacian of a graph; None elsewhere."""
        return None

    def norm(self, x: np.ndarray) -> float:
        """Return ‖x‖_B = ⟨Bx,x⟩^½ (errata 1 of the documentation)."""
        return float(np.sqrt(max(x @ self.apply(x), 0.0)))

    def dual_norm(self, v: np.ndarray) -> float:
        """Return ‖v‖_* = ⟨v,B⁻¹v⟩^½, the norm of gradients."""
        return float(np.sqrt(max(v @ self.solve(v), 0.0)))

    def rescaled(self, scale: float, ratio: float = 1.0) -> Metric:
        """Return ``scale``·B, for a form whose rows are ``ratio`` times those that B was made for."""
        return Rescaled(self, scale, ratio)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"


class Rescaled(Metric):
    """sB for a metric B, on a form whose rows are ``ratio`` times those that B was made for.

    B = ΣτᵢBᵢ is sB = Σ(sτᵢ/ratio²)Bᵢ' for the scaled terms, and √ρ' = ratio²√ρ ≤ (ratio²/s)β‖x‖²_{sB}.
    """

    def __init__(self, metric: Metric, scale: float, ratio: float) -> None:
        self.metric, self.scale = metric, scale
        self.dim, self.name, self.keeps_centred = metric.dim, metric.name, metric.keeps_centred
        self.factor, self.precision, self.rounding = metric.factor, metric.precision, metric.rounding
        self.factored, self.iterative, self.on_complex = metric.factored, metric.iterative, metric.on_complex
        self.sweeps, self.setup_seconds = metric.sweeps, metric.setup_seconds
        self.diagonal = None if metric.diagonal is None else scale * metric.diagonal
        self.tau = None if metric.tau is None else (scale / ratio**2) * metric.tau
        if metric.declares_bounds:
            self._bounds = lambda made: _times(metric.bounds, ratio**2 / scale)

    def apply(self, x):
        """Return sBx."""
        return self.scale * self.metric.apply(x)

    def solve(self, v):
        """Return B⁻¹v/s."""
        return self.metric.solve(v) / self.scale

    def solve_columns(self, v):
        """Return B⁻¹V/s."""
        return self.metric.solve_columns(v) / self.scale

    def half_solve(self, v, overwrite=False):
        """Return F⁻¹V/√s."""
        return self.metric.half_solve(v, overwrite) / np.sqrt(self.scale)

    def half_solve_adjoint(self, v):
        """Return F⁻ᴴV/√s."""
        return self.metric.half_solve_adjoint(v) / np.sqrt(self.scale)


def _times(bounds: Bounds | None, factor: float) -> Bounds | None:
    return None if bounds is None else Bounds(factor * bounds.alpha, factor * bounds.beta)
