"""How like the whole is a sample of its terms? μ_m and L_m of eq. (spag) against the size of the sample.

Deterministic: eigenvalues, no times. A study with ``samples = true`` has them in its record.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from quartbench import instances
from quartbench.distributed.sampling import reference
from quartbench.forms import TermForm
from quartbench.model import Problem
from quartbench.solvers import solve

#: The problems of the study ``cluster``, by the words of the page.
PROBLEMS = {
    "rows that are all alike": {"m": 100_000, "n": 60},
    "three directions on 30 rows": {"m": 100_000, "n": 60, "few": 30},
}

#: Shares of the terms in a sample, how they are drawn, and the seeds of the samples.
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SAMPLINGS = ("uniform", "lewis")
SEEDS = (0, 1)

#: Points at which Hessians are compared: the minimiser, and so many Gaussian ones in the norm of B⁽⁰⁾.
POINTS = 4


def measure() -> list[dict[str, Any]]:
    """Return μ_m and L_m for every problem, sampling, share and seed: the extremes over a few points."""
    rows = []
    for name, arguments in PROBLEMS.items():
        problem = instances.scaled(**arguments, seed=0)
        at = points(problem)
        whole = [hessian(problem.form, x) for x in at]
        for sampling in SAMPLINGS:
            for share in SHARES:
                for seed in SEEDS:
                    sample = reference(problem.form, share, sampling, seed)
                    low, high = constants(whole, [hessian(sample, x) for x in at])
                    facts = {"instance": name, "sampling": sampling, "share": share, "seed": seed}
                    rows.append(facts | {"terms": sample.terms, "low": low, "high": high})
    return rows


def points(problem: Problem) -> list[np.ndarray]:
    """Return the minimiser, and points in all directions that are as long in the norm of B⁽⁰⁾."""
    form = problem.form
    factor = cholesky(form.weighted_gram(form.uniform_weights()), lower=True)
    drawn = np.random.default_rng(0).standard_normal((POINTS, form.dim))
    return [
        form.flat(solve(problem, rel_gap=1e-8).x),
        *(solve_triangular(factor, g, lower=True, trans=1) for g in drawn),
    ]


def hessian(form: TermForm, x: np.ndarray) -> np.ndarray:
    """Return ρ''(x), both triangles."""
    lower = np.tril(form.dense_hessian(x, form.image(x)))
    return lower + np.tril(lower, -1).T


def constants(whole: list[np.ndarray], sample: list[np.ndarray]) -> tuple[float, float]:
    """Return the largest μ and the least L with μH̃ ⪯ H ⪯ LH̃ for pairs of Hessians; L infinite where H̃ is singular."""
    low, high = np.inf, 0.0
    for one, other in zip(whole, sample, strict=True):
        # The whole is definite: eigenvalues of H̃ in its terms are 1/L to 1/μ, and there are some whatever H̃ is.
        values = eigh(other, one, eigvals_only=True)
        low = min(low, 1.0 / values[-1])
        high = max(high, 1.0 / values[0] if values[0] > 0.0 else np.inf)
    return float(low), float(high)
