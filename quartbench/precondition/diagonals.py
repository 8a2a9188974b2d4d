"""Which diagonal is the best metric? For cones that need a diagonal one: that with the least certified κ.

In the norm of D = diag(d), with rows W = MD^{−½} and any weights ‖τ‖₂ = 1,

    α ≥ λ_min(WᵀTW), T = diag(τ),    β² ≤ λ_max(Σᵢ‖Wᵢ‖²WᵢᵀWᵢ)

(:mod:`quartbench.forms.leverage`). The least κ over D is a convex problem: α ≥ 1 is D ⪯ B(τ), linear in D and τ, and
Σᵢ⟨Bᵢ,D⁻¹⟩Bᵢ ⪯ β²D is convex in D. Here ln κ is minimised over u = ln d, with τ the Lewis weights, from diag(B*), both
eigenvalues being smoothed as power means; then exact certificates choose between what was found, diag(B*) and
diag(B⁽⁰⁾). What is certified is true of each, whatever the search did.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from quartbench.forms import TermForm
from quartbench.linalg.known import U
from quartbench.metrics import Bounds, Diagonal, Metric
from quartbench.runtime.blas import blas_threads

from .lewis import lewis_weights

#: The power of the means that stand for the largest and the smallest eigenvalue: within n^{1/8} of them.
POWER = 8.0

#: Steps of L-BFGS at most, one Gram matrix each; κ moves by some per mille beyond.
STEPS = 40

#: How far ln d may be from that of diag(B*): beyond, nothing was ever gained.
FARTHEST = 20.0

#: Bytes of dense rows up to which the search is made; beyond, the two known diagonals are all there is.
SEARCHED = 1 << 29


def best_diagonal(form: TermForm, **options: Any) -> Metric:
    """Return the diagonal metric with the least certified κ that is found; ``options`` are those of Lewis weights."""
    weights = lewis_weights(form, **options)
    bases = [form.weighted(form.uniform_weights()), weights.metric]
    starts = [form.column_squares(np.repeat(base.tau, form.rank)) for base in bases]
    found, steps = [*starts], 0
    if form.reducible and form.row_dtype.kind != "c" and 8 * form.terms * form.rank * form.dim <= SEARCHED:
        with blas_threads(form.gram_work()):
            searched, steps = _searched(form, weights.tau, starts[1])
        found.append(searched)
    made = [(one, _bounds(form, one, bases)) for one in map(Diagonal, found)]
    best, bounds = min(made, key=lambda pair: pair[1].kappa)
    return best.declared(sweeps=weights.sweeps + steps, bounds=lambda metric: bounds)


def _bounds(form: TermForm, metric: Metric, bases: list[Metric]) -> Bounds:
    """Return α and β of a diagonal metric, α by the better of several B(τ): it is true of each."""
    alpha, beta = form.bounds(metric)
    return Bounds(max(alpha, *(form.smallest(metric, base) for base in bases[1:])), beta)


def _searched(form: TermForm, tau: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the diagonal that L-BFGS ends with, and how many Gram matrices it took."""
    rows = form.real_rows()
    rows = form.scale * (rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64))
    rows = rows / np.sqrt(start)  # in units of the start: u is 0 there
    base = (rows * np.repeat(tau, form.rank)[:, None]).T @ rows
    found = scipy.optimize.minimize(
        log_kappa,
        np.zeros(form.dim),
        (rows, base, form.rank),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-FARTHEST, FARTHEST)] * form.dim,
        options={"maxiter": STEPS},
    )
    return start * np.exp(found.x - found.x.mean()), int(found.nfev)


def log_kappa(u: np.ndarray, rows: np.ndarray, base: np.ndarray, rank: int) -> tuple[float, np.ndarray]:
    """Return the smoothed bound on ln κ in the norm of diag(eᵘ), and its gradient.

    Terms of higher rank are taken by their traces, which are at least their largest eigenvalues.

    Parameters
    ----------
    u : array of shape (n,)
    rows : array of shape (m·r, n)
    base : array of shape (n, n)
        B(τ).
    rank : int
    """
    root = np.exp(-0.5 * u)
    white = rows * root
    squares = white**2
    sizes = np.repeat(squares.sum(axis=1).reshape(-1, rank).sum(axis=1), rank)
    above, v = _eigh((white * sizes[:, None]).T @ white)
    below, w = _eigh(base * root * root[:, None])
    most, share_above = _mean(above, POWER)
    least, share_below = _mean(below, -POWER)
    # d ln λₖ of the first is −vₖⱼ² from the rows and, from the sizes, the share of W²ⱼ in ⟨vₖ,ΣWᵢᵀWᵢvₖ⟩.
    through = ((white @ v) ** 2 @ (share_above / above)).reshape(-1, rank).sum(axis=1)
    slope = -(v**2) @ share_above - squares.T @ np.repeat(through, rank)
    return 0.5 * most - least, 0.5 * slope + (w**2) @ share_below


def _eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and vectors; of values that are rounding nothing is known but that, so that they are not 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, U * values[-1]), vectors


def _mean(values: np.ndarray, power: float) -> tuple[float, np.ndarray]:
    """Return ln (Σλᵖ)^{1/p} of positive numbers, and the share of each in the sum."""
    extreme = values[-1] if power > 0 else values[0]
    powers = (values / extreme) ** power
    return float(np.log(extreme) + np.log(powers.sum()) / power), powers / powers.sum()
