"""Conjugate gradients: for one equation, for many at once, and what their coefficients say of the spectrum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

#: Products up to which all Ritz values are computed at once, in 2 µs where the two ends alone take 100.
FEW = 64

#: Curvature ⟨p,Hp⟩ below this share of the largest seen is rounding: H is singular along p.
FLAT = 1e-15

Vector = np.ndarray


class Watch(Protocol):
    """Sees the coefficients of runs, and says how many products each may take."""

    products: int

    def begin(self) -> None:
        """A run begins; ``products`` is read after this."""

    def add(self, step: float, ratio: float) -> None:
        """A product was made, with this step along p and this ratio of the new ⟨r,B⁻¹r⟩ to the last."""


class Solved(NamedTuple):
    """What conjugate gradients found for Hx = v.

    Attributes
    ----------
    x : array
    residual : array
        v − Hx as the recursion has it; v itself where x is no sum of its steps.
    companion : object
        The companion of x, where products have one; None where none was made.
    steps, ratios : list of float
        αₖ and βₖ, one of each per product.
    """

    x: Vector
    residual: Vector
    companion: Any
    steps: list[float]
    ratios: list[float]


class SolvedColumns(NamedTuple):
    """What conjugate gradients found for HX = V, column by column.

    Attributes
    ----------
    x : array of the shape of V
    steps, ratios : list of arrays
        αₖ and βₖ of each column, one of each per product that it took part in.
    """

    x: np.ndarray
    steps: list[np.ndarray]
    ratios: list[np.ndarray]


def conjugate_gradients(
    product: Callable[[Vector], tuple[Vector, Any]],
    v: Vector,
    precondition: Callable[[Vector], Vector],
    *,
    first: Vector | None = None,
    share: float = 1e-13,
    products: int = 1000,
    watch: Watch | None = None,
) -> Solved:
    """Solve Hx = v by preconditioned conjugate gradients from x = 0.

    They stop when ⟨r,B⁻¹r⟩ ≤ share²·⟨v,B⁻¹v⟩, after ``products`` products, or at a direction p along which H is
    singular to rounding; x is then what there is by then, or p itself where it is the first.

    Parameters
    ----------
    product : callable
        Returns Hp and its companion: None, or anything linear in p that can be added and scaled, such as the image
        that Hp was computed from. The companion of x is then their sum with the same coefficients.
    v : array
    precondition : callable
        Returns B⁻¹r. Neither its argument nor what it returns is changed afterwards, so it may return r itself.
    first : array, optional
        B⁻¹v, where it is known.
    share : float
    products : int
        Not looked at where there is a ``watch``.
    watch : Watch, optional

    Returns
    -------
    Solved
        Where ⟨v,B⁻¹v⟩ ≤ 0, x is B⁻¹v; that takes no product.

    Notes
    -----
    ⟨p,Bp⟩ obeys the recursion ⟨r,B⁻¹r⟩ + β²⟨p,Bp⟩, so that the test of curvature needs no product with B.

    References
    ----------
    Hestenes & Stiefel, *Methods of conjugate gradients for solving linear systems*, J. Res. Nat. Bur. Standards 1952.
    """
    z = precondition(v) if first is None else first
    rz = float(v @ z)
    steps: list[float] = []
    ratios: list[float] = []
    if not rz > 0.0:
        return Solved(z, v, None, steps, ratios)
    x, r, p, companion = np.zeros_like(v), v, z, None
    goal = share * share * rz
    square, largest = rz, 0.0  # ⟨p,Bp⟩, and the largest ⟨p,Hp⟩/⟨p,Bp⟩
    if watch is not None:
        watch.begin()
        products = watch.products
    for _ in range(products):
        hp, beside = product(p)
        curvature = float(p @ hp)
        largest = max(largest, curvature / square)
        if not curvature > FLAT * largest * square:
            if not steps:
                x, companion = p, beside
            break
        step = rz / curvature
        x += step * p
        r = r - step * hp
        if beside is not None and companion is None:
            companion = step * beside
        elif beside is not None:
            companion += step * beside
        z = precondition(r)
        rz, last = float(r @ z), rz
        ratio = rz / last
        steps.append(step)
        ratios.append(ratio)
        if watch is not None:
            watch.add(step, ratio)
        if not rz > goal:
            break
        p = z + ratio * p
        square = rz + ratio**2 * square
    return Solved(x, r, companion, steps, ratios)


def conjugate_gradient_columns(
    product: Callable[[np.ndarray, np.ndarray], np.ndarray],
    V: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    *,
    share: float | np.ndarray = 1e-13,
    products: int = 1000,
) -> SolvedColumns:
    """Solve HX = V by preconditioned conjugate gradients on all columns at once, each with its own coefficients.

    Each column goes as :func:`conjugate_gradients` would, and leaves the block when it is done. H may differ from
    column to column.

    Parameters
    ----------
    product : callable
        Given P and the numbers of its columns in V, returns HP.
    V : array of shape (n, k)
    precondition : callable
        Returns B⁻¹R, or R itself. It must not keep its argument, which changes; neither must ``product``.
    share : float or array of shape (k,)
    products : int
        The most that a column takes part in.

    Returns
    -------
    SolvedColumns
    """
    Z = precondition(V)
    rz = _inner(V, Z)
    live = np.flatnonzero(rz > 0.0)
    X, x = Z.copy(), np.zeros((len(V), live.size))
    # np.take and np.compress, as V[:, live] would come out with its columns contiguous and slow everything after it.
    R, P = np.take(V, live, axis=1), np.take(Z, live, axis=1)
    goal = (np.square(share) * rz)[live]
    rz = square = rz[live]
    largest = np.zeros(live.size)
    taken, coefficients = np.zeros(V.shape[1], dtype=np.int64), []
    for count in range(products):
        if not live.size:
            break
        HP = product(P, live)
        curvature = _inner(P, HP)
        largest = np.maximum(largest, curvature / square)
        sound = curvature > FLAT * largest * square
        step = np.where(sound, rz / np.where(sound, curvature, 1.0), 0.0)
        x += step * P
        if count == 0:
            x[:, ~sound] = P[:, ~sound]
        R -= step * HP
        Z = precondition(R)
        rz, last = _inner(R, Z), rz
        ratio = rz / last
        taken[live] += sound
        coefficients.append(np.zeros((2, taken.size)))
        coefficients[-1][:, live] = step, ratio
        on = sound & (rz > goal)
        if not on.all():
            X[:, live[~on]] = x[:, ~on]
            x, R, Z, P = (np.compress(on, block, axis=1) for block in (x, R, Z, P))
            live, rz, ratio, goal, square, largest = (row[on] for row in (live, rz, ratio, goal, square, largest))
        P *= ratio
        P += Z
        square = rz + ratio**2 * square
    X[:, live] = x
    steps, ratios = np.array(coefficients).reshape(len(coefficients), 2, taken.size).swapaxes(0, 1)
    return SolvedColumns(X, *([run[:most, j] for j, most in enumerate(taken)] for run in (steps, ratios)))


def _inner(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", left, right)


def ritz_values(steps: np.ndarray, ratios: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest Ritz value of B⁻¹H that conjugate gradients saw.

    Parameters
    ----------
    steps, ratios : sequences of float
        αₖ and βₖ, at least one of each: the values are eigenvalues of the Lanczos matrix behind them.
    """
    steps, ratios = np.asarray(steps, dtype=float), np.asarray(ratios, dtype=float)
    main = 1.0 / steps
    main[1:] += ratios[:-1] / steps[:-1]
    beside, last = np.sqrt(ratios[:-1]) / steps[:-1], len(main) - 1
    if 0 < last < FEW:
        values, failed = lapack.dsterf(main, beside)
        if not failed:
            return float(values[0]), float(values[-1])
    low, high = (scipy.linalg.eigvalsh_tridiagonal(main, beside, select="i", select_range=(i, i))[0] for i in (0, last))
    return float(low), float(high)
