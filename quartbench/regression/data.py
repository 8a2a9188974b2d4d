"""Seeded rows and aims for ℓ4 regression by name, as ``quartbench.instances`` are for convex problems.

A change of what one of them makes is a new problem set, as it is there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quartbench.errors import ProblemError, whole_number

Data = tuple[np.ndarray, np.ndarray]


def regression_gaussian(m: int, n: int, cond: float = 1.0, seed: int = 0) -> Data:
    """Gaussian rows, or rows of that condition number with singular values spread evenly; aims with Gaussian noise."""
    m, n = whole_number(m, "m"), whole_number(n, "n")
    if m < n:
        raise ProblemError(f"m must be at least n = {n}, found {m}")
    if not cond >= 1.0:
        raise ProblemError(f"cond must be at least 1, found {cond}")
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, n))
    if cond > 1.0:
        turned = np.linalg.qr(rng.standard_normal((n, n)))[0]
        rows = np.sqrt(m) * (np.linalg.qr(rows)[0] * np.geomspace(1.0, 1.0 / cond, n)) @ turned.T
    rows = np.ascontiguousarray(rows)
    return rows, rows @ rng.standard_normal(n) + rng.standard_normal(m)


def regression_polynomial(m: int, degree: int, seed: int = 0) -> Data:
    """The near-minimax polynomial of |t − s| on m even points of [−1, 1], by Chebyshev's; the seed moves s."""
    m, degree = whole_number(m, "m"), whole_number(degree, "degree")
    if m <= degree + 1:
        raise ProblemError(f"m must be more than the {degree + 1} coefficients, found {m}")
    t = np.linspace(-1.0, 1.0, m)
    kink = np.random.default_rng(seed).uniform(-0.5, 0.5)
    return np.ascontiguousarray(np.polynomial.chebyshev.chebvander(t, degree)), np.abs(t - kink)


REGRESSIONS: dict[str, Callable[..., Data]] = {
    "regression_gaussian": regression_gaussian,
    "regression_polynomial": regression_polynomial,
}
