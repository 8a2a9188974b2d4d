"""What does one sweep tell? The traces g(τ) = Tr(B(τ)⁻¹Bᵢ), the certificate R they give, and the best so far.

    κ ≤ R·n^{1/q},    R = ‖τ‖_q · maxᵢ (gᵢ/(nτᵢ^{q−1}))^{1/q} ≥ 1

is Proposition 5.3 and needs no belief in the method that chose τ.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from quartbench.forms import StackedForm, TermForm
from quartbench.metrics import Cholesky, Metric

#: Sweeps without a better certificate after which rounding is taken to allow none.
PATIENCE = 30

#: The share of the diagonal of ΣBᵢ that a sample's Gram matrix gets: unseen directions then have very large leverage.
RIDGE = 1e-6

#: The least that an estimate of a trace may be: logarithms are taken.
TINY = 1e-300


@dataclass(frozen=True)
class Sweep:
    """One point: τ and the traces g there, of the terms that are not zero, the metric B(τ), the certificate R."""

    tau: np.ndarray
    g: np.ndarray
    metric: Metric
    ratio: float

    @property
    def leverage(self) -> np.ndarray:
        """ℓ = τg."""
        return self.tau * self.g


@dataclass
class Sweeps:
    """The leverage scores of a form as the methods ask for them: counts, certifies, remembers the best."""

    form: TermForm
    p: float
    eps: float
    limit: int
    count: int = 0
    iterations: int = 0
    best: Sweep | None = None
    best_at: int = 0
    history: list[tuple[int, str, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.q = self.p / (self.p - 1.0)
        self.n, self.rank = self.form.freedom, self.form.leverage_rank
        # Terms that are zero weigh nothing: methods, which take logarithms, see the others alone.
        self.live = np.setdiff1d(np.arange(self.form.terms), self.form.zero_terms(), assume_unique=True)
        self.m = self.live.size
        self.start = self.uniform(self.p)
        self._diagonal: np.ndarray | None = None
        self._clock = time.perf_counter()

    def __call__(self, tau: np.ndarray, step: str) -> Sweep:
        """Return the traces and the certificate at τ. One sweep."""
        metric = self.form.weighted(self.of_all(tau), accuracy=0.1 * min(self.eps, 1e-5))
        g = self._of_live(self.form.traces(metric))
        found = Sweep(tau, g, metric, certificate(tau, g, self.n, self.p) * (1.0 + metric.rounding))
        self._record(step, found.ratio * self.n ** (1.0 / self.q))
        if self.best is None or found.ratio < self.best.ratio:
            self.best, self.best_at = found, self.count
        return found

    def sketched(self, tau: np.ndarray, columns: int, rng: np.random.Generator) -> np.ndarray:
        """Return estimates of the traces at τ. One sweep, without a certificate."""
        g = self.form.sketched_traces(self.form.weighted(self.of_all(tau)), columns, rng)
        self._record("sketch", np.nan)
        return self._of_live(g)

    def sampled(
        self, tau: np.ndarray, drawn: tuple[np.ndarray, np.ndarray], columns: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return estimates of the traces at τ in B of some terms, drawn with probabilities. One sweep, uncertified."""
        picked, chances = drawn
        metric = self._of_sample(picked, tau[picked] / chances)
        self._record("sample", np.nan)
        return np.maximum(self._of_live(_traces(self.form, metric, columns, rng)), TINY)

    def rated(
        self, terms: np.ndarray, kept: np.ndarray, weights: np.ndarray, columns: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return estimates of the leverage of some terms with respect to others, at most the rank."""
        metric = self._of_sample(kept, weights)
        part = StackedForm(self.form.term_rows(self.live[terms]), self.form.rank)
        g = self.form.scale**2 * _traces(part, metric, columns, rng)
        return np.clip(g, TINY, self.rank)

    def _of_sample(self, picked: np.ndarray, weights: np.ndarray) -> Metric:
        """Return B of some terms with weights; a direction that they do not see has a little of all."""
        rows = self.form.term_rows(self.live[picked])
        part = StackedForm(rows, self.form.rank).scaled(self.form.scale)
        gram = part.weighted_gram(weights)
        if self._diagonal is None:
            self._diagonal = self.form.gram_diagonal()
        gram[np.diag_indices_from(gram)] += RIDGE * (weights.sum() / self.m) * self._diagonal
        return Cholesky(gram)

    def uniform(self, p: float) -> np.ndarray:
        """Return equal weights with ‖τ‖_q = 1 for the terms that are not zero."""
        return np.full(self.m, float(self.m) ** (1.0 / p - 1.0))

    def of_all(self, tau: np.ndarray) -> np.ndarray:
        """Return the weights of all terms: 0 for those that are zero."""
        if self.m == self.form.terms:
            return tau
        out = np.zeros(self.form.terms)
        out[self.live] = tau
        return out

    def _of_live(self, values: np.ndarray) -> np.ndarray:
        return values if self.m == self.form.terms else values[self.live]

    def _record(self, step: str, kappa: float) -> None:
        self.count += 1
        self.history.append((self.count, step, kappa, time.perf_counter() - self._clock))

    @property
    def exhausted(self) -> bool:
        """Whether the limit is reached, or rounding allows no better certificate."""
        within_rounding = self.best.ratio - 1.0 <= 2.0 * self.best.metric.rounding
        return self.count >= self.limit or within_rounding or self.count - self.best_at >= PATIENCE

    def normalised(self, u: np.ndarray) -> np.ndarray:
        """Return τ = e^u scaled to ‖τ‖_q = 1."""
        u = u - u.max()
        tau = np.exp(u)
        return tau / np.linalg.norm(tau, self.q)

    def residual(self, point: Sweep) -> np.ndarray:
        """Return T(u) − u = (p−1)ln(g/n) − ln τ."""
        return (self.p - 1.0) * np.log(point.g / self.n) - np.log(point.tau)


def _traces(form: TermForm, metric: Metric, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return the traces, sketched; exact where a sketch has as many columns as there are unknowns."""
    return form.traces(metric) if columns >= form.columns else form.sketched_traces(metric, columns, rng)


def certificate(tau: np.ndarray, g: np.ndarray, n: float, p: float = 2.0) -> float:
    """Return R = ‖τ‖_q maxᵢ (gᵢ/(nτᵢ^{q−1}))^{1/q} ≥ 1, with κ(B(τ)) ≤ R·n^{1/q} (Prop. 5.3)."""
    q = p / (p - 1.0)
    return float(np.linalg.norm(tau, q) * np.exp((np.log(g / n) - (q - 1.0) * np.log(tau)).max() / q))
