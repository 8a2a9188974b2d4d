"""Which norm should a method work in? The metrics by name, what is certain of each, and what it cost.

| name | B | what it costs |
|---|---|---|
| identity | I | nothing |
| uniform | B⁽⁰⁾ = m^{−½}ΣBᵢ | one factor |
| lewis | B* = B(τ*) | a few sweeps |
| diagonal | diag(B⁽⁰⁾) | one pass; for cones that need a diagonal metric |
| diagonal-best | the diagonal with the least κ | some dozen Gram matrices; for the same cones |
| sampled | B⁽⁰⁾ of a sample of the terms | one factor of the sample; uniform where there are too few terms for one |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quartbench.cones import Cone
from quartbench.errors import ProblemError, unknown_name
from quartbench.forms import Form, TermForm, require_form
from quartbench.forms.leverage import weighted_bounds
from quartbench.metrics import Bounds, Diagonal, Identity, Metric
from quartbench.runtime.stopwatch import Stopwatch

from .diagonals import best_diagonal
from .leverage import require_terms
from .lewis import lewis_weights


def metric(form: Form, name: str, **options: Any) -> Metric:
    """Return a metric by name, with ``name``, ``bounds``, ``sweeps``, ``setup_seconds`` and, for B(τ), ``tau``.

    Parameters
    ----------
    form : Form
        On one without terms, as ``GramForm`` is, every name gives the Euclidean metric.
    name : {"identity", "uniform", "lewis", "diagonal", "diagonal-best", "sampled"}
    **options
        For "uniform": ``precision="single"``, which halves the time of the factor. For "lewis" and "diagonal-best":
        those of :func:`lewis_weights` (``method``, ``eps``, ``sketch``, …).

    Examples
    --------
    >>> form = qb.instances.coherent(500, 20, gamma=0.99, seed=0).form
    >>> metrics = [qb.metric(form, name) for name in ("identity", "uniform", "lewis")]
    >>> [round(B.bounds.kappa, 1) for B in metrics]
    [42839.2, 22.1, 4.5]
    """
    require_form(form)
    if not isinstance(name, str) or name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    if options and name not in ("lewis", "diagonal-best") and not (name == "uniform" and set(options) == {"precision"}):
        raise ProblemError(f"metric {name!r} has no options, found {', '.join(map(repr, options))}")
    if options.get("p", 2.0) != 2.0:
        raise ProblemError(f"metric {name!r} is for p = 2, found p={options['p']!r}; lewis_weights computes others")
    with Stopwatch() as watch:
        made = METRICS[name](require_terms(form), **options) if isinstance(form, TermForm) else _identity(form)
    return made.declared(name=name, setup_seconds=watch.seconds)


def automatic_metric(form: Form, cone: Cone) -> str:
    """Return the name of the metric that serves a form on a cone best: without a look at its numbers, for most."""
    if not isinstance(form, TermForm) or cone.metrics == "identity":
        return "identity"
    if cone.metrics == "diagonal":
        return "diagonal"
    if form.factorable:
        return "uniform"
    return "diagonal" if form.uneven_columns() else "identity"


def _identity(form: Form) -> Metric:
    """The Euclidean norm: costs nothing, κ grows with the square of the rows' condition number."""
    return Identity(form.dim).declared(bounds=form.bounds)


def _uniform(form: TermForm, precision: str = "double") -> Metric:
    """B⁽⁰⁾, all terms weighted alike: one factor, κ ≤ √(mγ)."""
    return form.weighted(form.uniform_weights(), precision).declared(bounds=form.bounds)


def _lewis(form: TermForm, **options: Any) -> Metric:
    """B*, the terms weighted by their Lewis weights: a few sweeps, κ ≤ √n."""
    return lewis_weights(form, **options).metric


def _diagonal(form: TermForm) -> Metric:
    """The diagonal of B⁽⁰⁾: one pass, for cones that need a diagonal metric."""
    return Diagonal(form.gram_diagonal() * form.terms**-0.5).declared(bounds=form.bounds)


def _diagonal_best(form: TermForm, **options: Any) -> Metric:
    """The diagonal with the least certified κ that is found: some dozen Gram matrices, for the same cones."""
    return best_diagonal(form, **options)


def _sampled(form: TermForm) -> Metric:
    """B⁽⁰⁾ of a sample of the terms, for many of them; uniform where few terms leave no sample."""
    made = form.sampled(-np.inf)
    return _uniform(form) if made is None else made


METRICS: dict[str, Callable[..., Metric]] = {
    "identity": _identity,
    "uniform": _uniform,
    "lewis": _lewis,
    "diagonal": _diagonal,
    "diagonal-best": _diagonal_best,
    "sampled": _sampled,
}


# A summary for readers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetricSummary:
    """One metric: its certified α, β and κ, and what metric and bounds together cost."""

    name: str
    alpha: float
    beta: float
    kappa: float
    sweeps: int
    seconds: float


@dataclass(frozen=True)
class Description:
    """What ``quartbench precondition`` prints of a form.

    Attributes
    ----------
    terms, dim, rank : int
        m, n, r.
    freedom : int
        What leverage scores add up to: n, N − 1 on graphs, N in ℂᴺ. The best κ is its root.
    coherence : float
        γ.
    method, factor : str
        The method of the weights, and how B(τ) was factored.
    converged : bool
        Whether κ ≤ (1 + eps)√freedom was reached.
    metrics : tuple of MetricSummary
        identity, uniform, lewis.
    """

    terms: int
    dim: int
    rank: int
    freedom: int
    coherence: float
    method: str
    factor: str
    converged: bool
    metrics: tuple[MetricSummary, ...]

    @property
    def best_kappa(self) -> float:
        """√freedom, the κ of B*."""
        return float(np.sqrt(self.freedom))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and words, for JSON."""
        return {**asdict(self), "metrics": [asdict(one) for one in self.metrics], "best_kappa": self.best_kappa}


def describe(form: Form, method: str = "auto", eps: float = 0.01) -> Description:
    """Measure a form: its size, coherence, and the κ bounds of the metrics identity, uniform and lewis.

    Parameters
    ----------
    form : Form
        Any with terms.
    method, eps
        As for :func:`lewis_weights`.
    """
    require_terms(form)
    with Stopwatch() as watch:
        base = metric(form, "identity")
        bounds = base.bounds
    identity = _summary("identity", bounds, 0, watch)
    with Stopwatch() as watch:
        base = metric(form, "uniform")
        traces = form.traces(base)
        bounds = weighted_bounds(form, base, traces)
    uniform = _summary("uniform", bounds, 1, watch)
    with Stopwatch() as watch:
        weights = lewis_weights(form, method=method, eps=eps)
        bounds = weights.metric.bounds
    lewis = _summary("lewis", bounds, weights.sweeps, watch)
    return Description(
        terms=form.terms,
        dim=form.dim,
        rank=form.rank,
        freedom=form.freedom,
        coherence=float((base.tau * traces).max()),
        method=method,
        factor=weights.factor,
        converged=weights.converged,
        metrics=(identity, uniform, lewis),
    )


def _summary(name: str, bounds: Bounds, sweeps: int, watch: Stopwatch) -> MetricSummary:
    return MetricSummary(name, bounds.alpha, bounds.beta, bounds.kappa, sweeps, watch.seconds)
