"""Which weights make κ = √n? Lewis weights: for p > 1 the τ with ℓᵢ(τ) = nτᵢ^q, the minimiser of V (paper §5.1–5.2).

n, the traces and the rank are those of ℂᴺ for complex rows and of the N vertices for graphs (errata 5, 13 of the
documentation). The methods are in :mod:`.methods`, what a sweep certifies in :mod:`.sweeps`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quartbench import views
from quartbench.errors import ProblemError, number, unknown_name, whole_number
from quartbench.forms import Form, TermForm
from quartbench.forms.leverage import weighted_bounds
from quartbench.metrics import Metric

from .leverage import require_terms, sketch_columns
from .methods import METHODS, SAMPLED_COLUMNS, sampled, sketched, surrogate
from .sweeps import Sweep, Sweeps


@dataclass(frozen=True, repr=False)
class LewisWeights:
    """Weights, the metric they give, and how good they are for certain.

    Attributes
    ----------
    tau : array of shape (m,)
        Scaled to ‖τ‖_q = 1; 0 for terms that are zero.
    metric : Metric
        B(τ), factored.
    kappa_bound : float
        Certified: (Σ⟨Bᵢx,x⟩ᵖ)^{1/p} lies between ‖x‖² and kappa_bound·‖x‖² in the norm of the metric (p = 2: √ρ).
    sweeps : int
        Leverage computations over all terms, sketched and certifying ones included.
    history : dict of arrays
        Columns ``sweep``, ``step`` (what led there), ``kappa_bound`` (NaN for sketched sweeps) and ``seconds``.
    method : str
    p, eps : float
    iterations : int
        Applications of the map of the method.
    factor : str
        How B(τ) was factored: "cholesky", "qr"; on graphs "dense", "dissection", "conjugate gradients".
    sketch : int or None
        Columns of the sketch, if there was one.
    best_kappa : float
        n^{1/q}, which no weights can better by this certificate.

    Examples
    --------
    >>> weights = qb.lewis_weights(qb.StackedForm(np.vstack([np.eye(2), np.eye(2)])))
    >>> weights.tau.round(6), round(weights.kappa_bound, 2)
    (array([0.5, 0.5, 0.5, 0.5]), 1.41)
    """

    tau: np.ndarray
    metric: Metric
    kappa_bound: float
    sweeps: int
    history: dict[str, np.ndarray]
    method: str
    p: float
    eps: float
    iterations: int
    factor: str
    best_kappa: float
    sketch: int | None = None

    @property
    def converged(self) -> bool:
        """Whether the certificate is within the accuracy asked for, κ ≤ (1 + eps)·n^{1/q}."""
        return bool(self.kappa_bound <= (1.0 + self.eps) * self.best_kappa)

    def __repr__(self) -> str:
        return (
            f"LewisWeights(m={self.tau.size}, p={self.p:g}, κ ≤ {self.kappa_bound:.6g}, {self.sweeps} sweeps, "
            f"method={self.method!r})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "certified": f"κ ≤ {self.kappa_bound:.6g}; no weights have a better bound than {self.best_kappa:.6g}",
            "τ": f"{views.numbers(self.tau)}, between {self.tau.min():.3g} and {self.tau.max():.3g}",
            "method": f"{self.method}, B(τ) by {self.factor}" + (f", {self.sketch} columns" if self.sketch else ""),
            "work": f"{self.sweeps} sweeps, {views.duration(float(self.history['seconds'][-1]))}",
        }
        return views.fact_page(f"Lewis weights of {self.tau.size} terms, p = {self.p:g}", facts)


def lewis_weights(
    form: Form,
    p: float = 2.0,
    method: str = "auto",
    eps: float = 0.01,
    sketch: str | int | None = None,
    *,
    omega: float = 1.5,
    max_sweeps: int = 1000,
    seed: int = 0,
) -> LewisWeights:
    """Compute Lewis weights, their metric B* and a certificate of its condition number.

    Parameters
    ----------
    form : TermForm
        Any but one without terms.
    p : float
        The power, > 1; the quartic case is 2.
    method : {"auto", "relaxed", "mm", "average", "fixed-point", "surrogate", "sampled"}
        See the function of that name in :mod:`quartbench.precondition.methods`. "fixed-point" needs p < 2, "surrogate"
        p = 2. "sampled" takes sweeps of O(mrn) times some columns on B(τ) of 10n rows, drawn by leverage, and one exact
        sweep at the end: κ ≤ 1.25√n or so, for many rows on many unknowns.
    eps : float
        The accuracy: certificates stop at R ≤ 1 + eps; the precision ε of Algorithm 3 for the last two.
    sketch : {None, "gaussian"} or int
        Sketch the leverage scores with 32 ln m (or so many) Gaussian columns, and certify exactly once at the end; for
        "auto" and "relaxed", and for "sampled", which has 32 where nothing is said. A sketch with n columns or more
        would only add noise, so then the sweeps are exact. It saves the triangular solve but, unless the terms are
        sampled too, not the Gram matrix, and exact sweeps are few: it pays where there is no factor. A large graph that
        cannot be factored is sketched by "auto" without being asked.
    omega : float
        The factor that "surrogate" gives away, > 1.
    max_sweeps : int
        Stop with what there is after so many.
    seed : int
        Of the sketch.

    Returns
    -------
    LewisWeights

    Examples
    --------
    >>> form = qb.instances.coherent(500, 20, gamma=0.99, seed=0).form
    >>> weights = qb.lewis_weights(form)
    >>> weights.converged, weights.kappa_bound < 1.01 * 20**0.5
    (True, True)
    >>> round(float((weights.tau**2).sum()), 12)
    1.0
    """
    require_terms(form)
    if not isinstance(method, str) or method not in METHODS:
        raise unknown_name("method", method, METHODS)
    p, omega = number(p, "p", 1.0, open_low=True), number(omega, "omega", 1.0, open_low=True)
    eps = number(eps, "eps", 0.0, open_low=True)
    max_sweeps = whole_number(max_sweeps, "max_sweeps")
    columns = _columns(form, method, sketch)
    sweeps = Sweeps(form, p, eps, max_sweeps)
    if method == "sampled":
        found = sampled(sweeps, columns, np.random.default_rng(seed))
    elif columns is not None:
        found = sketched(sweeps, columns, np.random.default_rng(seed))
    elif method == "surrogate":
        found = surrogate(sweeps, omega)
    else:
        found = METHODS[method](sweeps)
    return _result(sweeps, found, method, columns)


def _columns(form: TermForm, method: str, sketch: str | int | None) -> int | None:
    """Return the columns of the sketch; None where sweeps are exact."""
    if method == "sampled":
        return SAMPLED_COLUMNS if sketch is None else sketch_columns(form, sketch)
    if sketch is None and not (method == "auto" and form.sketches()):
        return None
    if method not in ("auto", "relaxed"):
        raise ProblemError(f"sketch needs the method 'auto' or 'relaxed', found {method!r}")
    columns = sketch_columns(form, sketch)
    return columns if columns < form.freedom else None


def _result(sweeps: Sweeps, found: Sweep, method: str, columns: int | None) -> LewisWeights:
    """Return what the caller sees; the bounds of the metric, for ρ, are computed when asked for."""
    number, step, kappa, seconds = (np.array(column) for column in zip(*sweeps.history, strict=True))
    metric = found.metric.declared(
        name="lewis",
        sweeps=sweeps.count,
        setup_seconds=float(seconds[-1]),
        bounds=lambda made: weighted_bounds(sweeps.form, made, sweeps.of_all(found.g)),
    )
    best = sweeps.n ** (1.0 / sweeps.q)
    return LewisWeights(
        tau=sweeps.of_all(found.tau),
        metric=metric,
        kappa_bound=found.ratio * best,
        sweeps=sweeps.count,
        history={"sweep": number, "step": step, "kappa_bound": kappa, "seconds": seconds},
        method=method,
        p=sweeps.p,
        eps=sweeps.eps,
        iterations=sweeps.iterations,
        factor=metric.factor,
        best_kappa=best,
        sketch=columns,
    )
