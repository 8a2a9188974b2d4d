"""Who is fastest how often? Performance profiles, data profiles and log-ratios of a table of costs.

A table of costs has one row per problem and one column per contender; infinity is a problem that was not solved.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def performance_profile(costs: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for each contender the steps of its performance profile (Dolan & Moré, 2002).

    At ratio τ it is the fraction of problems that the contender solved at no more than τ times the least cost. A
    problem that nobody solved counts against everybody; where the least cost is 0, those who paid it have ratio 1.

    Returns
    -------
    dict of contender to (ratios, fractions)
        Ratios ascend from 1; the fraction holds from its ratio on.
    """
    best = costs.min(axis=1)
    ratios = costs.div(best.where(np.isfinite(best) & (best > 0)), axis=0).fillna(np.inf)
    ratios = ratios.mask(costs.eq(0.0), 1.0)
    return {name: _steps(ratios[name].to_numpy(), 1.0) for name in costs.columns}


def data_profile(costs: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for each contender the fraction of problems that it solved within a budget (Moré & Wild, 2009).

    Returns
    -------
    dict of contender to (budgets, fractions)
        Budgets ascend; the fraction holds from its budget on.
    """
    finite = costs.to_numpy()[np.isfinite(costs.to_numpy())]
    least = float(finite.min()) if finite.size else 1.0
    return {name: _steps(costs[name].to_numpy(), least) for name in costs.columns}


def _steps(costs: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray]:
    reached = np.sort(costs[np.isfinite(costs)])
    levels, counts = np.unique(reached, return_counts=True)
    fractions = np.cumsum(counts) / max(len(costs), 1)
    if not len(levels) or levels[0] > start:
        levels, fractions = np.insert(levels, 0, start), np.insert(fractions, 0, 0.0)
    return levels, fractions


def log_ratios(costs: pd.DataFrame, first: str, second: str) -> np.ndarray:
    """Return log₂(cost of first / cost of second) for each problem, ascending (Morales, 2002).

    Negative where the first is cheaper; 0 where both cost the same, nothing included; infinite where only one solved
    the problem; left out where neither did.
    """
    a, b = costs[first].to_numpy(), costs[second].to_numpy()
    kept = np.isfinite(a) | np.isfinite(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(a == b, 1.0, a / b)[kept]
        return np.sort(np.log2(ratios))


def pairs(costs: pd.DataFrame) -> pd.DataFrame:
    """Return every ordered pair of contenders: median ratio of costs, wins of the first, problems that count."""
    rows = []
    for first in costs.columns:
        for second in costs.columns:
            ratios = log_ratios(costs, first, second)
            if first != second and len(ratios):
                middle = float(2.0 ** np.median(ratios)) if np.isfinite(np.median(ratios)) else np.nan
                rows.append((first, second, middle, int((ratios < 0).sum()), len(ratios)))
    return pd.DataFrame(rows, columns=["contender", "against", "median_ratio", "wins", "problems"])
