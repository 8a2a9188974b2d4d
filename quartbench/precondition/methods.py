"""How are Lewis weights found? The paper's methods, and those that work directly at any p > 1.

Every method works on g(τ) = Tr(B(τ)⁻¹Bᵢ), one sweep each, and on u = ln τ, where T(u) = (p−1)ln(g/n) has the fixed
point u* and the Jacobian −(p−1)P, P row-stochastic with its spectrum in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quartbench.errors import ProblemError

from .sweeps import Sweep, Sweeps, certificate

#: ``auto`` takes so many fast steps at a time, and more only once ln R has fallen to this share.
CREDIT, FALL = 3, 0.7

#: Differences that ``auto`` extrapolates from.
MEMORY = 5

#: Sketched sweeps: so many at full step, and in all. Beyond, the noise of the exact maximum falls slowly.
SKETCH_BURN, SKETCH_SWEEPS = 3, 10

#: Sampled sweeps: rows for each unknown in a sample, sweeps at full step and in all, and columns of a sketch.
SAMPLED_ROWS, SAMPLED_BURN, SAMPLED_SWEEPS, SAMPLED_COLUMNS = 10, 2, 8, 32


# The paper's methods --------------------------------------------------------------------------------------------------


def fixed_point(sweeps: Sweeps) -> Sweep:
    """Algorithm 3 of the paper: τ ← T_p(τ) for 1 < p < 2.

    Algorithm
        τ⁽⁰⁾ = m^{1/p−1};  τ⁽ᵏ⁺¹⁾ᵢ = (Tr(B(τ⁽ᵏ⁾)⁻¹Bᵢ)/n)^{p−1}  until  D_L(τ⁽ᵏ⁺¹⁾, τ⁽ᵏ⁾) ≤ ((2−p)/(p−1))ε.
    Guarantee
        T_p contracts D_L by p − 1, so D_L(τ⁽ᵏ⁾, τ*) ≤ ((p−1)^{k+1}/p) ln(rm) (errata 10 of the documentation), at most
        1 + ln₊(ln(rm)/((2−p)ε))/(2−p) iterations (errata 11 of the documentation), and κ ≤ e^{2ε}n^{1/q} at the end.
    """
    if not sweeps.p < 2.0:
        raise ProblemError(
            f"method 'fixed-point' needs p < 2, found {sweeps.p}: at p = 2 its map may cycle; use 'auto'"
        )
    tau = _fixed_point_iterates(sweeps, sweeps.p)
    return sweeps(tau / np.linalg.norm(tau, sweeps.q), "certify")


def _fixed_point_iterates(sweeps: Sweeps, p: float) -> np.ndarray:
    """Return the output of Algorithm 3 at power p, to the precision of ``sweeps``."""
    tau = sweeps.uniform(p)
    while sweeps.count < sweeps.limit - 1:
        point = sweeps(tau, "fixed-point")
        before, tau = tau, (point.g / sweeps.n) ** (p - 1.0)
        sweeps.iterations += 1
        if log_distance(tau, before) <= (2.0 - p) / (p - 1.0) * sweeps.eps:
            break
    return tau


def surrogate(sweeps: Sweeps, omega: float = 1.5) -> Sweep:
    """The paper's way to p = 2: Algorithm 3 at p' = 2ln(m/n)/(ln(m/n) + 2ln ω) < 2 (Corollary 5.10).

    Guarantee
        κ ≤ e^{2ε}ω√n after O(ln(m/n)/ln ω) iterations times a double logarithm: 1/(2−p') = ½ + ln(m/n)/(4ln ω)
        (errata 12 of the documentation). The certificate is the better of Prop. 5.3 at p = 2 and the corollary's own
        way through p'.
    For m/n ≤ ω² there is no p' > 1, and B⁽⁰⁾ serves, with κ ≤ √(mr) ≤ ω√(rn).
    """
    if sweeps.p != 2.0:
        raise ProblemError(f"method 'surrogate' is for p = 2, found {sweeps.p}; below, use 'fixed-point'")
    spread = np.log(sweeps.m / sweeps.n)
    if spread <= 2.0 * np.log(omega):
        return sweeps(sweeps.start, "certify")
    power = 2.0 * spread / (spread + 2.0 * np.log(omega))
    tau = _fixed_point_iterates(sweeps, power)
    point = sweeps(tau / np.linalg.norm(tau), "certify")
    # ‖·‖₂ ≤ ‖·‖_{p'} ≤ m^{1/p'−1/2}‖·‖₂, so a bound for W_{p'}^{1/p'} is one for √ρ with that factor.
    through = sweeps.m ** (1.0 / power - 0.5) * sweeps.n ** (0.5 - 1.0 / power)
    through *= certificate(point.tau, point.g, sweeps.n, power) * (1.0 + point.metric.rounding)
    return Sweep(point.tau, point.g, point.metric, min(point.ratio, through))


def log_distance(tau: np.ndarray, other: np.ndarray) -> float:
    """Return D_L(τ, τ') = maxᵢ |ln τᵢ − ln τ'ᵢ|."""
    return float(np.abs(np.log(tau) - np.log(other)).max())


# Directly at any p > 1 ------------------------------------------------------------------------------------------------


def mm(sweeps: Sweeps) -> Sweep:
    """Majorise and minimise V: τᵢ ← (τᵢgᵢ/n)^{1/q}, at p = 2 τᵢ ← √(τᵢgᵢ/n).

    u ↦ ln det B(e^u) is convex, so −Σℓᵢ ln τᵢ, its tangent, majorises −ln det B. V falls at every step, ‖τ‖_q stays 1,
    and the error falls by (p−1)/p a sweep in the end (½ at p = 2).
    """
    return _damped(sweeps, 1.0 / sweeps.p, "mm")


def relaxed(sweeps: Sweeps) -> Sweep:
    """The damping that is best for a spectrum in [0, 1]: u ← u + (2/(p+1))(T(u) − u), at p = 2 u/3 + (2/3)ln(g/n).

    The error falls by (p−1)/(p+1) a sweep in the end (⅓ at p = 2). For p ≤ 2 T is nonexpansive in the maximum norm, so
    the damped map converges from anywhere (Krasnoselskii and Mann).
    """
    return _damped(sweeps, 2.0 / (sweeps.p + 1.0), "relaxed")


def _damped(sweeps: Sweeps, damping: float, step: str) -> Sweep:
    point = sweeps(sweeps.start, "start")
    while point.ratio > 1.0 + sweeps.eps and not sweeps.exhausted:
        sweeps.iterations += 1
        point = sweeps(sweeps.normalised(np.log(point.tau) + damping * sweeps.residual(point)), step)
    return sweeps.best


def average(sweeps: Sweeps) -> Sweep:
    """Average the MM iterates τ⁽⁰⁾, …, τ⁽ᴷ⁻¹⁾: a guarantee before anything is computed.

    Guarantee
        κ ≤ n^{1/q}(mr/n)^{1/(qK)}: ln gᵢ is convex in τ; MM has ln(gᵢ(τ⁽ᵏ⁾)/n) = qu⁽ᵏ⁺¹⁾ᵢ − u⁽ᵏ⁾ᵢ, which telescopes;
        and u⁽⁰⁾ = −(ln m)/q, u⁽ᴷ⁾ ≤ (1/q)ln(r/n). (Cohen, Cousins, Lee and Yang do so for the John ellipsoid.)
    K is the least that guarantees R ≤ 1 + eps, or ``max_sweeps``; one sweep of the K certifies the average.
    """
    spread = np.log(sweeps.m * sweeps.rank / sweeps.n)
    count = max(1, int(np.ceil(spread / (sweeps.q * np.log1p(sweeps.eps)))))
    count = min(count, sweeps.limit)
    tau = total = sweeps.start
    for _ in range(count - 1):
        point = sweeps(tau, "mm")
        tau = sweeps.normalised(np.log(tau * point.g) / sweeps.q)
        total = total + tau
        sweeps.iterations += 1
    return sweeps(total / np.linalg.norm(total, sweeps.q), "certify")


def auto(sweeps: Sweeps) -> Sweep:
    """The fastest that is safe: Anderson's extrapolation of a step damped term by term, with ``relaxed`` behind it.

    Fast step
        The Jacobian of T has the diagonal −(p−1)Pᵢᵢ, and Pᵢᵢ = ℓᵢ for rank 1 (≤ min(ℓᵢ, 1) for any): so
        uᵢ ← uᵢ + (T(u) − u)ᵢ/(1 + (p−1)ℓᵢ) is undamped where leverage is small, the MM step where it is 1, where the
        undamped map cycles. The last ``MEMORY`` residuals are combined to the least first (Anderson 1965), which acts
        as GMRES with I + (p−1)P, of condition at most p: errors fall by 6 a sweep and more where ``relaxed`` has 3.
    Safeguard
        Three fast steps must lower ln R by 30 %, and earn three more; otherwise relaxed steps follow (MM for p > 2),
        from the best point, until R has fallen so far. Fast steps are then finitely many for any eps, and the others
        converge from anywhere.
    """
    damping = 2.0 / (sweeps.p + 1.0) if sweeps.p <= 2.0 else 1.0 / sweeps.p
    memory, credit, target = Extrapolation(MEMORY), 0, np.inf
    point = sweeps(sweeps.start, "start")
    while point.ratio > 1.0 + sweeps.eps and not sweeps.exhausted:
        sweeps.iterations += 1
        if np.log(sweeps.best.ratio) <= target:
            credit, target = CREDIT, FALL * np.log(sweeps.best.ratio)
        u, residual = memory(np.log(point.tau), sweeps.residual(point))
        if credit:
            step, label = 1.0 / (1.0 + (sweeps.p - 1.0) * np.minimum(point.leverage, 1.0)), "fast"
        else:
            if label == "fast":
                memory.forget()
                point = sweeps.best
            u, residual, step, label = np.log(point.tau), sweeps.residual(point), damping, "relaxed"
        credit = max(credit - 1, 0)
        point = sweeps(sweeps.normalised(u + step * residual), label)
    return sweeps.best


class Extrapolation:
    """Anderson's: from the last points u and residuals f, the affine combination whose residual is least."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._points: list[np.ndarray] = []
        self._residuals: list[np.ndarray] = []

    def forget(self) -> None:
        """Start anew."""
        self._points.clear()
        self._residuals.clear()

    def __call__(self, u: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take in a point and its residual; return the combined point and residual."""
        self._points = [*self._points[-self._depth :], u]
        self._residuals = [*self._residuals[-self._depth :], residual]
        if len(self._points) == 1:
            return u, residual
        steps, changes = np.diff(self._points, axis=0), np.diff(self._residuals, axis=0)
        share = np.linalg.lstsq(changes.T, residual, rcond=1e-10)[0]
        return u - share @ steps, residual - share @ changes


def sketched(sweeps: Sweeps, columns: int, rng: np.random.Generator) -> Sweep:
    """Relaxed sweeps on sketched traces with a new sketch each, then steps 1/k (Robbins and Monro), certified once.

    The sketches are unbiased and their noise is averaged away; what is left of it shows in the certificate, which is
    exact. Accuracy is limited by the noise, not by ``eps``.
    """
    u = np.log(sweeps.start)
    for k in range(max(1, min(SKETCH_SWEEPS, sweeps.limit - 1))):
        g = sweeps.sketched(sweeps.normalised(u), columns, rng)
        step = 2.0 / (sweeps.p + 1.0) if k < SKETCH_BURN else 1.0 / (k - SKETCH_BURN + 2)
        u = np.log(sweeps.normalised(u))
        u = u + step * ((sweeps.p - 1.0) * np.log(g) - u)
        sweeps.iterations += 1
    return sweeps(sweeps.normalised(u), "certify")


def sampled(sweeps: Sweeps, columns: int, rng: np.random.Generator) -> Sweep:
    """Sketched sweeps on B(τ) from a sample of the terms, drawn by their leverage: O(mrn·columns) each, not O(mrn²).

    Algorithm
        Leverage scores to begin with come from samples that double (Cohen, Lee, Musco, Musco, Peng and Sidford 2015):
        with respect to a sample, terms of the next one are rated, and of those a sample is drawn, until all terms are
        rated. Then every sweep keeps the term i with probability qᵢ = min(1, s·ℓᵢ/Σℓ), its weight being τᵢ/qᵢ, factors
        their sum and sketches all traces in it; ℓ = τg are the scores of the next. Steps are those of a sketch.
    Guarantee
        The certificate at the end, from all terms: one exact sweep, O(mrn²). Sampling makes B⁻¹ too large by a factor
        that is the same for all terms on average, which normalising takes away.
    """
    form = sweeps.form
    if not form.reads_terms or form.row_dtype.kind == "c":
        raise ProblemError(f"method 'sampled' needs real rows that are read term by term, found {type(form).__name__}")
    size = SAMPLED_ROWS * sweeps.n / sweeps.rank
    scores = _first_scores(sweeps, size, columns, rng)
    u = np.log(sweeps.start)
    for k in range(max(1, min(SAMPLED_SWEEPS, sweeps.limit - 1))):
        tau = sweeps.normalised(u)
        g = sweeps.sampled(tau, _drawn(scores, size, rng), columns, rng)
        scores = np.minimum(tau * g, sweeps.rank)
        step = 2.0 / (sweeps.p + 1.0) if k < SAMPLED_BURN else 1.0 / (k - SAMPLED_BURN + 2)
        u = np.log(tau)
        u = u + step * ((sweeps.p - 1.0) * np.log(g) - u)
        sweeps.iterations += 1
    return sweeps(sweeps.normalised(u), "certify")


def _first_scores(sweeps: Sweeps, size: float, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return rough leverage scores of all terms at equal weights, from samples that double."""
    order = rng.permutation(sweeps.m)
    count = int(min(np.ceil(size), sweeps.m))
    kept, chances = order[:count], np.ones(count)
    while True:
        count = min(2 * count, sweeps.m)
        scores = sweeps.rated(order[:count], kept, 1.0 / chances, columns, rng)
        if count == sweeps.m:
            out = np.empty(sweeps.m)
            out[order] = scores
            return out
        picked, chances = _drawn(scores, size, rng)
        kept = order[picked]


def _drawn(scores: np.ndarray, size: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return terms drawn one by one with probability min(1, s·ℓᵢ/Σℓ), about s of them, and these probabilities."""
    chances = np.minimum(size * scores / scores.sum(), 1.0)
    picked = np.flatnonzero(rng.random(chances.size) < chances)
    return picked, chances[picked]


METHODS: dict[str, Callable[..., Sweep]] = {
    "auto": auto,
    "relaxed": relaxed,
    "mm": mm,
    "average": average,
    "fixed-point": fixed_point,
    "surrogate": surrogate,
    "sampled": sampled,
}
