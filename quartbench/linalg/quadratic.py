"""How is a convex quadratic minimised in a cone? Above bounds by block pivoting, in the ice-cream cone by one root."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.optimize import brentq

from .known import U

#: Exchanges of whole blocks that may fail to reduce the number of wrong coordinates before single ones are exchanged.
PIVOTS = 3

#: The smallest share of the largest root at which one is looked for.
NEAREST = 1e-200

#: What is farther from the boundary than this, relatively, is not on it; decades about H in which a λ is looked for.
ASTRAY, MULTIPLIERS = 1e-7, 12

#: Steps of Newton's method that give a direction its digits back.
REFINEMENTS = 4

#: Multipliers below this share of the largest gradient are rounding.
ROUNDING = 1e-15


def bounded_minimiser(
    matrix: np.ndarray, r: np.ndarray, point: np.ndarray, solve: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the minimiser of ½⟨e,He⟩ − ⟨r,e⟩ over point + e ≥ 0.

    Coordinates below zero are fixed there, those whose multiplier has the wrong sign are freed, all at once; where the
    number of wrong ones stops falling, one of them at a time, which ends (Júdice & Pires 1994).

    Parameters
    ----------
    matrix : array of shape (n, n)
        H, positive semidefinite; its lower triangle counts.
    r, point : arrays of shape (n,)
    solve : callable
        Given a principal block of H and a right-hand side, the solution of its equations.
    """
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    free = (point > 0.0) | (r > 0.0)
    fewest, tries = len(r) + 1, PIVOTS
    for _ in range(10 * len(r)):
        e = np.where(free, 0.0, -point)
        if free.any():
            e[free] = solve(np.asfortranarray(matrix[np.ix_(free, free)]), (r - matrix @ e)[free])
        rest = r - matrix @ e
        wrong = np.where(free, point + e < 0.0, rest > ROUNDING * np.abs(r).max())
        count = int(wrong.sum())
        if count == 0:
            break
        if count < fewest:
            fewest, tries = count, PIVOTS
        elif tries > 0:
            tries -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return np.maximum(e, -point)


def second_order_minimiser(matrix: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """Return the minimiser of ½⟨x,Hx⟩ − ⟨q,x⟩ over {‖v‖ ≤ s}; None where H is not definite to rounding.

    Where H⁻¹q is outside, (H − λJ)x = q and ⟨x,Jx⟩ = 0 for J = diag(1, −1, …) and a λ > 0. With H = LLᵀ and L⁻¹JL⁻ᵀ =
    QΛQᵀ, which has one positive eigenvalue Λ₊, and b = QᵀL⁻¹q,

        x = L⁻ᵀQ (I − λΛ)⁻¹b,   ⟨x,Jx⟩ = Σ Λᵢbᵢ²/(1 − λΛᵢ)².

    The eigenvector of Λ₊ is in the cone or its negative, so let it be in the cone: x is where t = b₊/(1 − λΛ₊) > 0. The
    root is looked for in t, of which λ = (1 − b₊/t)/Λ₊ and all other parts are functions: where b₊ is almost zero λ is
    next to the pole, and t is known when λ is lost. √Λ₊ t less the root of the rest changes its sign once.

    Parameters
    ----------
    matrix : array of shape (n, n)
        H, positive semidefinite; its lower triangle counts.
    q : array of shape (n,)
    """
    n = len(q)
    diagonal = np.diag(matrix)
    roots = np.sqrt(np.maximum(diagonal, max(ROUNDING * diagonal.max(), np.finfo(float).tiny)))  # some may be zero
    scaled = np.tril(matrix) / roots / roots[:, None]
    try:
        lower = scipy.linalg.cholesky(scaled + np.tril(scaled, -1).T + n * ROUNDING * np.eye(n), lower=True)
    except np.linalg.LinAlgError:
        return None
    half = scipy.linalg.solve_triangular(lower, np.diag(1.0 / roots), lower=True)  # L⁻¹ in the units of x
    values, vectors = scipy.linalg.eigh((half * np.where(np.arange(n) == 0, 1.0, -1.0)) @ half.T)
    basis = half.T @ vectors
    basis[:, -1] *= math.copysign(1.0, basis[0, -1])
    b, sizes = basis.T @ q, np.sqrt(np.abs(values))
    largest, along = float(values[-1]), float(b[-1])
    if not largest > 0.0:
        return None

    def parts(t: float) -> np.ndarray:
        return np.append(b[:-1] / (1.0 - (1.0 - along / t) / largest * values[:-1]), t)

    def excess(t: float) -> float:
        found = sizes * parts(t)
        return float(found[-1] - np.linalg.norm(found[:-1]))

    most = 2.0 * float(np.linalg.norm(sizes[:-1] * b[:-1])) / float(sizes[-1])  # as λ ≥ 0 makes the rest smaller
    if along > 0.0:
        if excess(along) >= 0.0:
            return basis @ b
        least = along
    else:
        if -q[0] >= np.linalg.norm(q[1:]):
            return np.zeros(n)  # q is in the polar cone
        if most == 0.0:
            return _by_multipliers(matrix, q)
        least = 0.25 * most
        while excess(least) > 0.0 and least > NEAREST * most:
            least *= 0.25
    if not excess(least) <= 0.0 <= excess(most):
        return _by_multipliers(matrix, q)
    x = basis @ parts(brentq(excess, least, most, xtol=1e-300, rtol=8.0 * U, maxiter=500))
    if abs(_beyond(x)) <= ASTRAY:
        return x
    better = _by_multipliers(matrix, q)
    return x if better is None else better


def _beyond(x: np.ndarray) -> float:
    """Return ⟨x,Jx⟩/⟨x,x⟩, which is zero on the boundary of the cone and its negative."""
    return float(x[0] * x[0] - x[1:] @ x[1:]) / max(float(x @ x), np.finfo(float).tiny)


def _by_multipliers(matrix: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """Return the x on the boundary with (H − λJ)x = q, λ > 0, of least ½⟨x,Hx⟩ − ⟨q,x⟩; None where none is found.

    Where H is singular to rounding and λJ is what curves, the eigenvalues of L⁻¹JL⁻ᵀ are lost, and H − λJ is as good as
    any matrix. A factor for each λ looked at.
    """
    n = len(q)
    signs = np.where(np.arange(n) == 0, 1.0, -1.0)
    symmetric = np.tril(matrix) + np.tril(matrix, -1).T
    diagonal = np.diag(matrix)

    def point(power: float) -> np.ndarray:
        multiplier = float(np.exp(power))
        roots = np.sqrt(np.maximum(diagonal + multiplier, np.finfo(float).tiny))
        try:
            return (
                np.linalg.solve((symmetric - multiplier * np.diag(signs)) / roots / roots[:, None], q / roots) / roots
            )
        except np.linalg.LinAlgError:
            return np.full(n, np.nan)

    powers = math.log(max(float(diagonal.max()), np.finfo(float).tiny)) + np.log(10.0) * np.arange(
        -MULTIPLIERS, MULTIPLIERS + 0.25, 0.5
    )
    points = [point(power) for power in powers]
    found = []
    for one, other, low, high in zip(points, points[1:], powers, powers[1:], strict=False):
        if one[0] > 0.0 and other[0] > 0.0 and _beyond(one) * _beyond(other) < 0.0:
            x = point(brentq(lambda power: _beyond(point(power)), low, high, xtol=8.0 * U * abs(low), rtol=8.0 * U))
            found.append((0.5 * float(x @ symmetric @ x) - float(q @ x), x))
    return min(found, key=lambda pair: pair[0])[1] if found else None


@np.errstate(over="ignore", invalid="ignore")
def boundary_refined(matrix: np.ndarray, r: np.ndarray, point: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Return the step e to the minimiser of ½⟨e,He⟩ − ⟨r,e⟩ on the boundary of the ice-cream cone, to more digits.

    e is the difference of two points, and has lost digits where it is short. Newton's method on its own equations, r −
    He + λJx = 0 and ⟨x,Jx⟩ = 0 for x = point + e, finds them again; where it goes astray, and be it out of the range of
    floating point, what was found before stays.
    """
    n = len(r)
    signs = np.where(np.arange(n) == 0, 1.0, -1.0)
    diagonal = np.diag(matrix)
    roots = np.sqrt(np.maximum(diagonal, max(ROUNDING * diagonal.max(), np.finfo(float).tiny)))  # some may be zero
    normal = signs * (point + e)
    square = float(normal @ normal)
    if not 0.0 < square < math.inf:
        return e
    multiplier = float(normal @ (matrix @ e - r)) / square
    kept, least = e, math.inf
    for _ in range(REFINEMENTS):
        x = point + e
        normal = signs * x
        rest = (r - matrix @ e + multiplier * normal) / roots
        beyond, square = -0.5 * float(x @ normal), float(x @ x)
        if not 0.0 < square < math.inf:
            break
        size = float(np.linalg.norm(rest)) * (1.0 + abs(beyond) / square)
        if not size < least:
            break
        kept, least = e, size
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = (matrix - multiplier * np.diag(signs)) / roots / roots[:, None]
        system[:n, n], system[n, :n] = -normal / roots, normal / roots
        try:
            change = np.linalg.solve(system, np.append(rest, beyond))
        except np.linalg.LinAlgError:
            break
        e, multiplier = e + change[:n] / roots, multiplier + float(change[n])
    return kept
