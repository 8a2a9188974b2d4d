"""How is a convex quadratic minimised above bounds? By block principal pivoting on the coordinates that are free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Exchanges of whole blocks that may fail to reduce the number of wrong coordinates before single ones are exchanged.
PIVOTS = 3

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
