"""What is a cone? Its projection, and whatever else it knows better than the defaults, which need nothing more.

The slice solves min ‖y − ŷ‖_B over K ∩ {⟨c,y⟩ = 1}: y = P_K(ŷ + tB⁻¹c) for the t with ⟨c,y⟩ = 1 (errata 6 of the
documentation).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from quartbench.errors import ProblemError
from quartbench.kernels import exact
from quartbench.linalg.known import Known, U, raised
from quartbench.metrics import Cholesky, Identity, Metric
from quartbench.registry import Registry

Projection = Callable[[np.ndarray], np.ndarray]

#: How far ⟨c,y⟩ may be from 1, relatively, before the slice is searched: less is rounding.
ON_SLICE = 4.0 * float(np.finfo(float).eps)


class Points(Protocol):
    """What a cone may ask of a form: the points that it takes."""

    dim: int
    shape: tuple[int, ...]
    dtype: np.dtype


class Conic(NamedTuple):
    """K as {x : Gx ∈ K₁ × K₂ × …}, for solvers of conic programs.

    Attributes
    ----------
    matrix : sparse matrix
        G.
    parts : list of (str, int)
        The Kᵢ: "zero", "nonnegative" or "second-order" (the first entry is the bound), and their sizes.
    """

    matrix: sp.spmatrix
    parts: list[tuple[str, int]]


class Cone:
    """A closed convex cone; all points are flat real vectors. A kind needs ``project`` alone.

    Attributes
    ----------
    name : str
    metrics : {"identity", "diagonal", "any"}
        In the norm of which metrics ``project`` projects: multiples of the identity, diagonal ones, or any.
    subspace : bool
        Whether K is a subspace: its projections are linear, and a projected gradient step follows a straight line.
    whole : bool
        Whether K is the whole space.
    directions : bool
        Whether Newton's directions stay inside, by ``free``, ``limit`` and ``newton_direction``.
    models : bool
        Whether at least ``newton_direction`` and ``limit`` do: enough for a method with dense Hessians.
    rigorous : bool
        Whether ``inside``, ``outside``, ``polar_contains`` and ``lower_bounds`` are true in exact arithmetic, so that
        certificates on K are proved. A class says so of itself: what derives from it may be another set.

    Examples
    --------
    >>> class Ray(qb.Cone):
    ...     '''Multiples of (1, …, 1).'''
    ...
    ...     name = "ray"
    ...
    ...     def project(self, x, metric):
    ...         return np.full(x.size, max(x.mean(), 0.0))
    >>> result = qb.solve(qb.Problem(qb.StackedForm(np.eye(3)), [9.0, 6.0, 3.0], Ray()))
    >>> result.status, result.x.round(4)
    ('converged', array([1.1447, 1.1447, 1.1447]))
    """

    name: ClassVar[str] = "cone"
    metrics: ClassVar[str] = "identity"
    subspace: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    directions: ClassVar[bool] = False
    models: ClassVar[bool] = False
    rigorous: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.rigorous = cls.__dict__.get("rigorous", False)

    def project(self, x: np.ndarray, metric: Metric) -> np.ndarray:
        """Return the projection of x onto K in the norm of ``metric``: argmin ‖y − x‖_B over y ∈ K."""
        raise NotImplementedError

    # What follows from the projection ---------------------------------------------------------------------------------

    def bind(self, form: Points) -> Cone:
        """Return this cone for the points of ``form``; raise where it has none."""
        return self

    def require_metric(self, metric: Metric) -> None:
        """Raise where the projection in the norm of ``metric`` is not available."""
        if self.metrics == "any":
            return
        diagonal = metric.diagonal
        if self.metrics == "diagonal" and diagonal is None:
            raise ProblemError(
                f"the cone {type(self).__name__} needs a diagonal metric ('identity' or 'diagonal'), found "
                f"{metric.name!r}: in a dense one the projection is a quadratic program"
            )
        if self.metrics == "identity" and (diagonal is None or np.ptp(diagonal) > 0.0):
            raise ProblemError(
                f"the cone {type(self).__name__} needs the metric 'identity' or a multiple of it, found {metric.name!r}"
            )

    def euclidean(self, x: np.ndarray) -> np.ndarray:
        """Return the Euclidean projection of x onto K."""
        return self.project(x, Identity(x.size))

    def projector(self, metric: Metric) -> Projection:
        """Return ``project`` in the norm of ``metric`` as a function, its preparation done once."""
        self.require_metric(metric)
        return lambda x: self.project(x, metric)

    def slice(self, c: np.ndarray, metric: Metric) -> Projection:
        """Return the projection onto K ∩ {⟨c,y⟩ = 1} in the norm of ``metric`` as a function of y.

        By the paper's recipe: t ↦ ⟨c,P_K(ŷ + tB⁻¹c)⟩ never falls, so its crossing of 1 is bracketed and closed in on.
        """
        project, normal = self.projector(metric), metric.solve(np.array(c))
        unit = 1.0 / float(c @ normal)

        def onto(y: np.ndarray) -> np.ndarray:
            def miss(t: float) -> float:
                return float(c @ project(y + t * normal)) - 1.0

            ends = _bracket(miss, unit)
            t = ends[0] if ends[0] == ends[1] else brentq(miss, *ends, xtol=1e-300, rtol=ON_SLICE, maxiter=500)
            found = project(y + t * normal)
            inner = float(c @ found)
            return found / inner if inner > 0.0 else found

        return onto

    def polar_contains(self, c: np.ndarray) -> bool:
        """Say whether ⟨c,x⟩ ≤ 0 on all of K: then 0 is the minimiser. Where only the projection tells, it must be 0."""
        return not self.euclidean(c / np.abs(c).max()).any()

    # What is proved ---------------------------------------------------------------------------------------------------

    def inside(self, x: np.ndarray) -> np.ndarray:
        """Return x, or a point of K next to it: in exact arithmetic where a kind can, to rounding elsewhere."""
        return self.euclidean(x)

    def inner(self, c: np.ndarray, x: np.ndarray) -> tuple[float, float, float]:
        """Return ⟨c,Px⟩ for the projection Px of x, as a pair with its bound; on cones that x is in, ⟨c,x⟩."""
        return exact.dot(c, x)

    def outside(self, r: Known, shift: np.ndarray | None = None) -> Known:
        """Return a w with r − w in the polar cone, near P_K(shift + r) − shift: what of r can matter on K.

        By default what a projection leaves outside the polar cone, and the rounding of projections, count as unknown.
        """
        rest = r.rounded if shift is None else shift + r.rounded
        w = self.euclidean(rest) if shift is None else self.euclidean(rest) - shift
        left = float(np.linalg.norm(self.euclidean(r.rounded - w)))
        left += 16.0 * U * float(np.linalg.norm(rest)) * math.sqrt(rest.size)
        return Known(w, np.zeros_like(w), raised(r.error, np.full_like(w, left)))

    def shifts(self, c: np.ndarray, x: np.ndarray, rho: float, unit: np.ndarray) -> list[np.ndarray | None]:
        """Return shifts to try: multiples of x of the order of the Hessian, with which w is r where x is inside.

        ``unit`` is the size of each column of the rows.
        """
        if not x.any():
            return [None]
        return [None, 0.4 * rho / float(x @ x) * x]

    def support(self, x: np.ndarray) -> np.ndarray | None:
        """Return the coordinates in which a point may move inside K to first order; None for all."""
        return None

    def mirror(self, x: np.ndarray) -> np.ndarray | None:
        """Return the signs J with K = {⟨x,Jx⟩ ≥ 0, x₀ ≥ 0} where x lies on its curved boundary; None elsewhere."""
        return None

    # How a search direction stays inside ------------------------------------------------------------------------------

    def free(self, point: np.ndarray, r: np.ndarray) -> np.ndarray | None:
        """Return which coordinates may move from a point where ρ falls along r; None for all."""
        return None

    def limit(self, point: np.ndarray, h: np.ndarray) -> float:
        """Return the largest t with point + t h in the cone."""
        return math.inf

    def newton_direction(self, hessian: np.ndarray, r: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Return the minimiser of ½⟨e,He⟩ − ⟨r,e⟩ over point + e ∈ K, H by its lower triangle."""
        return self.euclidean(Cholesky.regularised(hessian).solve(r))

    # What other people's solvers are told -----------------------------------------------------------------------------

    def lower_bounds(self, dim: int) -> np.ndarray | None:
        """Return the l with K = {x ≥ l}, zero or −∞ each; None where K is no such set."""
        return None

    def nonnegative(self, dim: int) -> bool:
        """Say whether K is all of the nonnegative orthant, as proofs on x ≥ 0 need to know."""
        lower = self.lower_bounds(dim) if self.rigorous else None
        return lower is not None and not lower.any()

    def inequality(self) -> tuple[Callable[[np.ndarray], float], Projection] | None:
        """Return (g, ∇g) with K = {g ≥ 0}; None where K is given by no such function."""
        return None

    def conic(self, dim: int) -> Conic | None:
        """Return K in terms of the cones that solvers of conic programs know; None where it is none of them."""
        return None

    # A known solution -------------------------------------------------------------------------------------------------

    def plant(
        self, normal: np.ndarray, gradient: Projection, rng: np.random.Generator, active: float
    ) -> tuple[np.ndarray, np.ndarray | float]:
        """Return a point of K and a slack in the dual cone orthogonal to it, from a Gaussian vector.

        By Moreau's theorem P_K(v) − v is such a slack at P_K(v). ``gradient`` gives ∇ρ, whose size the slack is to
        have; ``active`` is the share of active constraints where a cone can choose it.
        """
        point = self.euclidean(normal)
        if not point.any():
            normal = -normal
            point = self.euclidean(normal)
        slack = point - normal
        return point, 0.5 * rms(gradient(point)) / (rms(slack) or 1.0) * slack

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _bracket(miss: Callable[[float], float], unit: float) -> tuple[float, float]:
    """Return t₁ < t₂ with miss(t₁) ≤ 0 ≤ miss(t₂) for a nondecreasing function; equal ends where it is zero there."""
    here, value = 0.0, miss(0.0)
    if abs(value) <= ON_SLICE:
        return here, here
    step = -value * unit
    for _ in range(2000):
        there = here + step
        found = miss(there)
        if (found > 0.0) != (value > 0.0):
            return (here, there) if here < there else (there, here)
        here, step = there, 2.0 * step
    raise ProblemError("the slice of the cone where ⟨c,y⟩ = 1 is empty: c lies in the polar cone")


def rms(vector: np.ndarray) -> float:
    """Return the root of the mean square of the entries."""
    return float(np.linalg.norm(vector) / np.sqrt(len(vector)))


def _cone_class(found: Any, where: str) -> type[Cone]:
    if not (inspect.isclass(found) and issubclass(found, Cone)):
        raise ProblemError(f"{where} must be a subclass of quartbench.cones.Cone, found {found!r}")
    return found


#: The cones by name; an installed package offers its own through the entry point group ``quartbench.cones``.
CONES = Registry("cone", "quartbench.cones", _cone_class)


def register_cone(cls: type[Cone]) -> type[Cone]:
    """Register a cone under its ``name``: from then on problems with it are listed, saved and read.

    Examples
    --------
    >>> @qb.register_cone
    ... class Halfspace(qb.Cone):
    ...     '''Points whose entries do not add up to less than zero.'''
    ...
    ...     name = "halfspace"
    ...
    ...     def project(self, x, metric):
    ...         return x - min(x.mean(), 0.0)
    >>> qb.solve(qb.Problem(qb.StackedForm(np.eye(2)), [1.0, 1.0], Halfspace())).status
    'converged'
    """
    return CONES.register(cls.name, cls)


def cone_of(given: Cone | str | None, otherwise: Cone) -> Cone:
    """Return a cone as it is, the one of a name, or the ``otherwise`` where none is given."""
    if isinstance(given, str):
        return CONES.find(given)()
    if given is not None and not isinstance(given, Cone):
        raise ProblemError(f"cone must be a Cone (Free(), Orthant(), …) or its name, found {given!r}")
    return given or otherwise
