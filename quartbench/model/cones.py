"""The cones K of a problem: their projections in the norm of a metric, onto K and onto its slice K ∩ {⟨c,y⟩ = 1}.

The slice solves min ‖y − ŷ‖_B over K ∩ {⟨c,y⟩ = 1}: y = P_K(ŷ + tB⁻¹c) for the t with ⟨c,y⟩ = 1 (ERRATA 6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from quartbench.errors import ProblemError
from quartbench.kernels import projections

if TYPE_CHECKING:
    from .forms import Form
    from .metrics import Metric

Slice = Callable[[np.ndarray], np.ndarray]


class Cone:
    """A closed convex cone; all points are flat real vectors."""

    name = "cone"
    #: Whether K is a subspace: then its projections are linear and a projected gradient step follows a straight line.
    subspace = False

    def bind(self, form: Form) -> Cone:
        """Return this cone for the points of ``form``; raise where it has none."""
        return self

    def require_metric(self, metric: Metric) -> None:
        """Raise where the projection in the norm of ``metric`` is not available."""

    def euclidean(self, x: np.ndarray) -> np.ndarray:
        """Return the Euclidean projection of x onto K."""
        raise NotImplementedError

    def project(self, x: np.ndarray, metric: Metric) -> np.ndarray:
        """Return the projection of x onto K in the norm of ``metric``."""
        raise NotImplementedError

    def projector(self, metric: Metric) -> Slice:
        """Return ``project`` in the norm of ``metric`` as a function, its preparation done once."""
        self.require_metric(metric)
        return lambda x: self.project(x, metric)

    def slice(self, c: np.ndarray, metric: Metric) -> Slice:
        """Return the projection onto K ∩ {⟨c,y⟩ = 1} in the norm of ``metric`` as a function of y."""
        raise NotImplementedError

    def polar_contains(self, c: np.ndarray) -> bool:
        """Say whether ⟨c,x⟩ ≤ 0 on all of K, up to rounding: then 0 is the minimiser."""
        unit = c / np.abs(c).max()  # of moderate size: squares of 1e±200 would say that every c is in the polar cone
        return bool(np.linalg.norm(self.euclidean(unit)) <= 1e-14 * np.linalg.norm(unit))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Free(Cone):
    """The whole space."""

    name = "free"
    subspace = True

    def euclidean(self, x):
        """Return x."""
        return x

    def project(self, x, metric):
        """Return x."""
        return x

    def slice(self, c, metric):
        """Return y ↦ y + (1 − ⟨c,y⟩)/‖c‖²_* B⁻¹c."""
        normal = metric.solve(c)
        normal = normal / (c @ normal)
        return lambda y: y + (1.0 - c @ y) * normal


class Orthant(Cone):
    """The nonnegative orthant. Its projection is coordinatewise in a diagonal metric; in another it is a QP."""

    name = "orthant"

    def bind(self, form):
        """Raise for complex points: they have no order."""
        if form.dtype.kind == "c":
            raise ProblemError("the cone Orthant needs real points, found complex ones")
        return self

    def require_metric(self, metric):
        """Raise for metrics that are not diagonal."""
        if metric.diagonal is None:
            raise ProblemError(
                f"the cone Orthant needs a diagonal metric ('identity' or 'diagonal'), found {metric.name!r}: "
                "in a dense one the projection is a quadratic program"
            )

    def euclidean(self, x):
        """Return the positive part."""
        return np.maximum(x, 0.0)

    def project(self, x, metric):
        """Return the positive part."""
        self.require_metric(metric)
        return np.maximum(x, 0.0)

    def slice(self, c, metric):
        """Return the exact projection by sorted breakpoints, O(n log n)."""
        self.require_metric(metric)
        c, diagonal = np.array(c), np.array(metric.diagonal)  # read-only arrays would compile the kernel anew
        return lambda y: projections.orthant_slice(y, c, diagonal)


class Centred(Cone):
    """The subspace {Xᵀ1 = 0} of N × d points: no translation."""

    name = "centred"
    subspace = True

    def __init__(self, shape: tuple[int, int] | None = None) -> None:
        self.shape = shape
        if shape is not None:
            self._even = np.full(shape, 1.0 / shape[0])

    def bind(self, form):
        """Take the shape N × d from the form."""
        if len(form.shape) != 2:
            raise ProblemError(f"the cone Centred needs points of shape (N, d), found shape {form.shape}")
        return Centred(form.shape)

    def euclidean(self, x):
        """Return x less its mean point."""
        return _less_sum(x, self._even)

    def project(self, x, metric):
        """Return x − B⁻¹C(CᵀB⁻¹C)⁻¹Cᵀx with C = 1 ⊗ I_d."""
        return self.projector(metric)(x)

    def slice(self, c, metric):
        """Return y ↦ Py + t PB⁻¹c with the t that gives ⟨c,y⟩ = 1."""
        project = self.projector(metric)
        normal = project(metric.solve(c))
        normal = normal / (c @ normal)

        def onto(y):
            y = project(y)
            return y + (1.0 - c @ y) * normal

        return onto

    def projector(self, metric: Metric) -> Slice:
        """Return the projection; the d solves of a metric that mixes translations in are done once, here."""
        if metric.keeps_centred:
            return self.euclidean
        points, coordinates = self.shape
        if metric.diagonal is not None:
            weights = 1.0 / metric.diagonal.reshape(self.shape)
            weights /= weights.sum(axis=0)
            return lambda x: _less_sum(x, weights)
        normals = np.kron(np.ones((points, 1)), np.eye(coordinates))
        solved = np.stack([metric.solve(np.ascontiguousarray(column)) for column in normals.T], axis=1)
        inverse = np.linalg.inv(normals.T @ solved)
        return lambda x: x - solved @ (inverse @ x.reshape(self.shape).sum(axis=0))


def _less_sum(x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    # A read-only array, as c is, would compile the kernel anew.
    return projections.centred(x if x.flags.carray else x.copy(), shares)


class SecondOrder(Cone):
    """The second-order cone {(s, v) : ‖v‖ ≤ s}, in a metric that is a multiple of the identity."""

    name = "second-order"

    def bind(self, form):
        """Raise for points that are not real vectors of length 2 or more."""
        if len(form.shape) != 1 or form.dtype.kind == "c" or form.dim < 2:
            raise ProblemError(
                f"the cone SecondOrder needs real vectors of length ≥ 2, found shape {form.shape} ({form.dtype})"
            )
        return self

    def require_metric(self, metric):
        """Raise for metrics that are not a multiple of the identity."""
        if metric.diagonal is None or np.ptp(metric.diagonal) > 0.0:
            raise ProblemError(
                f"the cone SecondOrder needs the metric 'identity' or a multiple of it, found {metric.name!r}"
            )

    def euclidean(self, x):
        """Return the projection, in closed form."""
        return projections.second_order(x)

    def project(self, x, metric):
        """Return the projection, in closed form."""
        self.require_metric(metric)
        return projections.second_order(x)

    def slice(self, c, metric):
        """Return the projection by the root of a nondecreasing scalar function."""
        self.require_metric(metric)
        c = np.array(c)
        return lambda y: projections.second_order_slice(y, c)


CONES = {cone.name: cone for cone in (Free, Orthant, Centred, SecondOrder)}
