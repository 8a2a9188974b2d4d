"""How do Lewis weights converge at a power p? Algorithm 3 of the paper, sweep by sweep, on small forms.

Deterministic: numbers of sweeps and distances, no times. A study with ``weights = true`` has them in its record.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from quartbench import instances
from quartbench.forms import TermForm
from quartbench.precondition import lewis_weights

#: The forms, by the words of the page.
FORMS = {
    "coherent 500×20 γ=0.9": ("coherent", {"m": 500, "n": 20, "gamma": 0.9, "kind": "generic"}),
    "blocks 200×20 r=3": ("blocks", {"m": 200, "n": 20, "rank": 3}),
    "heavy-tailed 500×20 df=1": ("heavy_tailed", {"m": 500, "n": 20, "df": 1.0}),
}

#: Powers below 2, where Algorithm 3 contracts, and above, where ours go on.
BELOW, ABOVE = (1.2, 1.5, 1.8, 1.95), (2.0, 3.0, 4.0)

#: Sweeps of the record, and the precision ε that Algorithm 3 is stopped at.
SWEEPS, EPS = 12, 0.01


def measure() -> dict[str, list[dict[str, Any]]]:
    """Return the distances of Algorithm 3 to τ* (``distances``), and what each method ends with (``powers``)."""
    distances, powers = [], []
    for name, (generator, arguments) in FORMS.items():
        form = instances.make(generator, **arguments, seed=0).form
        for p in BELOW:
            distances += [{"instance": name, "p": p, **row} for row in fixed_point(form, p)]
            found = lewis_weights(form, p=p, method="fixed-point", eps=EPS)
            allowed = 1.0 + max(math.log(math.log(form.rank * form.terms) / ((2.0 - p) * EPS)), 0.0) / (2.0 - p)
            powers.append(_ended(name, "fixed-point", p, found) | {"allowed": allowed})
        for p in (*BELOW, *ABOVE):
            powers.append(_ended(name, "auto", p, lewis_weights(form, p=p, eps=EPS)))
    return {"distances": distances, "powers": powers}


def fixed_point(form: TermForm, p: float) -> list[dict[str, float]]:
    """Return D_L(τ⁽ᵏ⁾,τ*) of the iterates τ ← (Tr B(τ)⁻¹Bᵢ/n)^{p−1} for k ≥ 1, with the printed bound and ERRATA 10."""
    best, tau = lewis_weights(form, p=p, eps=1e-11).tau, form.uniform_weights(p)
    size, rows = math.log(form.rank * form.terms), []
    for k in range(1, SWEEPS + 1):
        tau = (form.traces(form.weighted(tau)) / form.freedom) ** (p - 1.0)
        rows.append(
            {
                "sweep": k,
                "distance": float(np.abs(np.log(tau) - np.log(best)).max()),
                "printed": (1.0 - 1.0 / p) ** (k + 1) * size,
                "corrected": (p - 1.0) ** (k + 1) / p * size,
            }
        )
    return rows


def _ended(instance: str, method: str, p: float, found: Any) -> dict[str, Any]:
    share = found.kappa_bound / found.best_kappa
    return {"instance": instance, "method": method, "p": p, "iterations": found.iterations, "share": float(share)}
