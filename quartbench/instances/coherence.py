"""Rows with prescribed leverage scores and singular values, both exact (paper §6.2).

Two constructions: Givens rotations (few distinct directions) and scaled Gaussian rows (all directions distinct).
"""

from __future__ import annotations

from math import copysign, hypot, sqrt

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from quartbench.errors import ProblemError, number, unknown_name, whole_number
from quartbench.forms import StackedForm
from quartbench.model import Problem

from .arguments import generator, origin
from .matrices import cholesky_basis, haar, impose, unit

#: How far every leverage score of the generic rows may be off: far inside the promised 1e-10.
TOLERANCE = 1e-12

#: Sweeps at most; the hardest of 1500 small shapes took 14.
SWEEPS = 100

#: Sweeps after which the fixed point is slow: its linearisation may have eigenvalues near ±1.
NEWTON_FROM = 8

#: The longest step of ln(scale²) in a sweep: it keeps the Gram matrix of the rescaled basis fit for Cholesky.
LONGEST_STEP = 12.0

#: Leverage 1 needs an infinite scale: the generic rows stop this far from it.
NEAREST_TO_ONE = 1e-14


def coherent(
    m: int, n: int, gamma: float, cond: float = 100.0, seed: int = 0, kind: str = "givens", peaks: int = 1
) -> Problem:
    """Rows of coherence exactly ``gamma`` and condition number exactly ``cond`` (paper §6.2).

    ``peaks`` rows have leverage ``gamma``, all others share the rest of n equally, (n − peaks·γ)/(m − peaks); the
    order of the rows is random. The singular values fall geometrically from 1 to 1/cond. c is a unit Gaussian vector.
    Both are exact up to the rounding of the rows, which moves a leverage score by about 1e-16·cond.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n.
    gamma : float
        Largest leverage score, in [n/m, 1].
    cond : float
        σ_max/σ_min, from 1 to 1e8 (with n = 1 there is one singular value, 1, and ``cond`` has nothing to set).
    seed : int
        Seed of the rows and of c.
    kind : {"givens", "generic"}
        "givens" has at most 2n − 1 distinct row directions up to the sign, "generic" has m.
    peaks : int
        How many rows have leverage ``gamma``.

    Examples
    --------
    >>> problem = qb.instances.coherent(100, 5, gamma=0.9, seed=0)
    >>> round(qb.coherence(problem.form), 9)
    0.9
    """
    n = whole_number(n, "n", 1)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    scores = coherent_scores(m, n, gamma, peaks)
    cond = number(cond, "cond", 1.0, 1e8)
    if not isinstance(kind, str) or kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    rng = generator(seed)
    basis = KINDS[kind](scores, rng)[rng.permutation(m)] @ haar(n, n, rng)
    rows = impose(basis, np.geomspace(1.0, 1.0 / cond, n), rng)
    record = {"gamma": float(gamma), "cond": cond, "seed": int(seed), "kind": kind, "peaks": int(peaks)}
    return Problem(StackedForm(rows), unit(rng, n), origin=origin("coherent", m=m, n=n, **record))


def coherent_scores(m: int, n: int, gamma: float, peaks: int = 1) -> np.ndarray:
    """Return m positive leverage scores in ascending order: sum n, ``peaks`` of them equal to their maximum gamma.

    Examples
    --------
    >>> scores = qb.instances.coherent_scores(5, 2, gamma=0.8)
    >>> scores.round(12)
    array([0.3, 0.3, 0.3, 0.3, 0.8])
    """
    gamma = number(gamma, "gamma", 0.0, np.inf)
    if not n / m * (1.0 - 1e-12) <= gamma <= 1.0:  # n/m may come with a rounding error
        raise ProblemError(f"gamma must lie in [n/m, 1] = [{n / m:.12g}, 1], found {gamma!r}")
    peaks = whole_number(peaks, "peaks", 1, m)
    if peaks == m:
        if gamma > n / m * (1.0 + 1e-12):
            raise ProblemError(f"gamma must be n/m = {n / m!r} when all {m} rows are peaks, found {gamma!r}")
        return np.full(m, n / m)
    rest = (n - peaks * gamma) / (m - peaks)
    if rest < 1e-6 * n / m:  # a margin that rounding in the rotations cannot use up
        raise ProblemError(
            f"peaks·gamma must be below n = {n} by 1e-6 of it, so that no other row is zero; found {peaks}·{gamma:.10g}"
        )
    return np.concatenate([np.full(m - peaks, rest), np.full(peaks, gamma)])


def givens_basis(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return orthonormal columns whose squared row norms are ``scores`` (ascending), with random row signs.

    Starts from [0; I] and moves squared length between two rows at a time by a rotation (Dhillon, Heath, Sustik and
    Tropp; Ipsen and Wentworth, §6.1): at most m − 1 rotations of O(n).
    """
    wanted = scores.tolist()
    m, n = len(wanted), round(sum(wanted))
    q = np.zeros((m, n))
    q[m - n :] = np.eye(n)
    z = [0.0] * (m - n) + [1.0] * n
    i, j = m - n - 1, m - n
    while i >= 0 and j < m:
        need, spare = wanted[i] - z[i], z[j] - wanted[j]
        if spare <= 0.0:  # a row of leverage 1 keeps its unit vector
            j += 1
            continue
        target = wanted[i] if need <= spare else z[i] + spare
        cosine, sine = _rotation(z[i], z[j], float(q[i] @ q[j]), target)
        q[i], q[j] = cosine * q[i] + sine * q[j], cosine * q[j] - sine * q[i]
        z[i], z[j] = target, z[j] + z[i] - target
        if need <= spare:
            i -= 1
        else:
            j += 1
    return q * rng.choice([-1.0, 1.0], m)[:, None]


def _rotation(zi: float, zj: float, x: float, target: float) -> tuple[float, float]:
    """Cosine and sine after which row i has squared norm ``target``: the stable root of a T² + 2xT − b = 0."""
    a, b = zj - target, target - zi
    tangent = b / (x + copysign(sqrt(x * x + a * b), x))
    length = hypot(1.0, tangent)
    return 1.0 / length, tangent / length


def generic_basis(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return orthonormal columns whose squared row norms are ``scores``, spanned by scaled Gaussian rows.

    Rows gᵢ scaled by e^{uᵢ/2} have leverage scores σ(u) = ℓ where the convex ln det Σ e^{uᵢ}gᵢgᵢᵀ − ⟨ℓ,u⟩ is smallest.
    Every sweep rescales the last orthonormal basis, not the Gaussian rows, so no extreme scale ever builds up.
    """
    m, n = len(scores), round(float(scores.sum()))
    basis = haar(m, n, rng)
    for sweep in range(SWEEPS):
        found = np.einsum("ij,ij->i", basis, basis)
        if np.abs(found - scores).max() <= TOLERANCE:
            return basis
        slow = sweep >= NEWTON_FROM
        change = _newton_step(basis, found, scores) if slow else _logit(scores) - _logit(found)
        basis = _descend(basis, np.clip(change, -LONGEST_STEP, LONGEST_STEP), scores)
    raise ProblemError(
        f"no generic rows with m = {m}, n = {n} and gamma = {scores[-1]:.17g} after {SWEEPS} sweeps (leverage scores "
        f"off by {np.abs(found - scores).max():.1e}); try another seed or kind='givens'"
    )


def _logit(scores: np.ndarray) -> np.ndarray:
    """Return ln(ℓ/(1−ℓ)).

    A row scaled by e^{u/2} has leverage logistic(u + const) as long as the others stay, so u + logit(ℓ) − logit(σ) is
    right at once for a single peak. Ratios of logarithms would need 1/(1−γ) sweeps as γ → 1.
    """
    inside = np.minimum(scores, 1.0 - NEAREST_TO_ONE)
    return np.log(inside) - np.log1p(-inside)


def _newton_step(basis: np.ndarray, found: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the Newton step of u by conjugate gradients: the Jacobian of σ is diag(σ) − P∘P with P = QQᵀ."""
    size = np.sqrt(found * np.maximum(1.0 - found, NEAREST_TO_ONE))  # the diagonal, by which it is scaled to one

    def jacobian(v):
        v = np.ravel(v) / size
        inner = basis.T @ (v[:, None] * basis)
        return (found * v - np.einsum("ij,ij->i", basis @ inner, basis)) / size

    operator = LinearOperator((len(found), len(found)), matvec=jacobian, dtype=np.float64)
    return cg(operator, (scores - found) / size, rtol=1e-4, maxiter=200)[0] / size


def _descend(basis: np.ndarray, change: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Rescale the rows by e^{change/2}, or by less while ln det − ⟨ℓ,u⟩ would rise, and make them orthonormal again."""
    for _ in range(20):
        rows = np.exp(0.5 * change)[:, None] * basis
        upper = np.linalg.cholesky(rows.T @ rows).T
        if 2.0 * np.log(np.diag(upper)).sum() - scores @ change <= 1e-12:
            break
        change = 0.5 * change
    rows = rows @ solve_triangular(upper, np.eye(len(upper)))
    return cholesky_basis(rows) if np.ptp(change) > 1.0 else rows  # twice where the first was ill-conditioned


KINDS = {"givens": givens_basis, "generic": generic_basis}
