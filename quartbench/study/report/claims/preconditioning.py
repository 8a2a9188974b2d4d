"""Do §5.3 and §6.2 of the paper hold? What the metrics B⁽⁰⁾ and B* make of κ, and when they save iterations."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from quartbench.study.report.words import as_many, short
from quartbench.views import counted

from .base import FAILS, HOLDS, Finding, claim
from .evidence import SIMILAR, STEPS, Comparison, compare, keys, pick, several, split

#: Generators of complex rows.
COMPLEX = ("complex_gaussian", "coded_diffraction")


def _metrics(runs: pd.DataFrame, first: str, second: str, group: str) -> dict[str, Comparison]:
    """Compare HomGD in two metrics, apart for every instance of a group and both rules for the step."""
    found = {}
    for instance, part in runs[runs.group == group].groupby("instance", sort=False):
        for words, step in STEPS.items():
            one = compare(pick(part, "homgd", first, step=step), pick(part, "homgd", second, step=step))
            if one:
                found[f"{instance} with {words}"] = one
    return found


@claim(
    "preconditioning",
    "§6.2 (i)",
    "B* and B⁽⁰⁾ significantly improve performance over the Euclidean norm when the spectral gap is large.",
    "quick or paper",
)
def metrics_beat_the_identity(runs):
    """Iterations of HomGD in the metric identity over those in uniform and in lewis."""
    found = {}
    for metric in ("uniform", "lewis"):
        for group in ("figure-2a", "figure-2b"):
            for label, one in _metrics(runs, "identity", metric, group).items():
                found[f"{metric} on {label}"] = one
    if not found:
        return None
    verdict, condition = split({label: one.ratio > SIMILAR for label, one in found.items()})
    return several(found, "The Euclidean norm takes {ratio} times the iterations", verdict, condition)


@claim(
    "coherence",
    "§6.2 (ii)",
    "The gap between B* and B⁽⁰⁾ is significant only for highly coherent matrices.",
    "quick or paper",
)
def lewis_beats_uniform_only_at_high_coherence(runs):
    """Iterations in the metric uniform over those in lewis: similar on Figure 2a, significantly more on 2b."""
    low, high = (_metrics(runs, "uniform", "lewis", group) for group in ("figure-2a", "figure-2b"))
    if not low or not high:
        return None
    cases = {label: one.ratio > SIMILAR for label, one in high.items()}
    if any(one.ratio > SIMILAR for one in low.values()):
        verdict, condition = FAILS, ""
    else:
        verdict, condition = split(cases)
    found = several({**low, **high}, "B⁽⁰⁾ takes {ratio} times the iterations of B*", verdict, condition)
    least, most = max(one.ratio for one in low.values()), max(one.ratio for one in high.values())
    words = (
        f"B⁽⁰⁾ takes at most {short(least)} times the iterations of B* at low coherence, up to {short(most)} times "
        "as many at high."
    )
    return replace(found, evidence=as_many(words))


@claim("kappa-uniform", "§5.3", "In the metric B⁽⁰⁾, κ ≤ √(mγ).", "quick or paper")
def uniform_kappa(runs):
    """The measured κ of the metric uniform over √(mγ)."""
    part = pick(runs, metric="uniform").dropna(subset=["kappa_measured", "coherence"])
    return _kappa(part, np.sqrt(part.m * part.coherence), "√(mγ)", 1e-6)


@claim("kappa-lewis", "Thm 5.6", "In the metric B*, κ ≤ √n.", "quick or paper")
def lewis_kappa(runs):
    """The measured κ of the metric lewis over √n; the weights are computed to 1 %."""
    part = pick(runs, metric="lewis").dropna(subset=["kappa_measured"])
    return _kappa(part, np.sqrt(part.n), "√n", 0.01)


@claim("kappa-identity", "§6.2", "Without a preconditioner, κ ≤ (σ_max/σ_min)²·√(mγ).", "quick or paper")
def identity_kappa(runs):
    """The measured κ of the metric identity over its bound, where the generator sets the singular values."""
    part, cond = _conditioned(runs)
    part = part.assign(cond=cond).dropna(subset=["coherence"])
    return _kappa(part, part.cond**2 * np.sqrt(part.m * part.coherence), "its bound", 1e-6)


@claim("kappa-terms", "Prop. 2.1", "In the Euclidean norm, κ ≤ √m·κ₂(ΣBᵢ).", "quick or paper")
def kappa_of_the_sum(runs):
    """The measured κ of the metric identity over √m·(σ_max/σ_min)²."""
    part, cond = _conditioned(runs)
    return _kappa(part, cond**2 * np.sqrt(part.m), "√m·κ₂(ΣBᵢ)", 1e-6)


@claim("kappa-symnmf", "§2.1, Example 3", "The condition number of symmetric NMF is √r.", "quick or paper")
def kappa_of_symmetric_nmf(runs):
    """The measured κ of ‖XᵀX‖²_F in the Euclidean norm over √r: never above, and attained to 1 %."""
    part = pick(runs, metric="identity").dropna(subset=["kappa_measured"])
    part = part[part.generator == "planted_partition"]
    found = _kappa(part, np.sqrt(part.r), "√r", 1e-6)
    return found if found is None or found.numbers["least"] >= 0.99 else replace(found, verdict=FAILS)


def _conditioned(runs: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the runs in the Euclidean norm with a measured κ on rows of known σ_max/σ_min, and that ratio."""
    part = pick(runs, metric="identity").dropna(subset=["kappa_measured"])
    given = [json.loads(text) for text in part.arguments]
    cond = np.array([one.get("cond") or 1.0 / one.get("sigma_min", np.nan) for one in given], dtype=float)
    return part[np.isfinite(cond)], cond[np.isfinite(cond)]


def _kappa(part: pd.DataFrame, bound: pd.Series | np.ndarray, words: str, slack: float) -> Finding | None:
    """Hold the measured κ, which some point attains, against a bound; and say how tight that is."""
    if part.empty:
        return None
    share = (part.kappa_measured / bound).to_numpy(dtype=float)
    least, most = f"{share.min():.3g}", f"{share.max():.3g}"
    alike = words if least == "1" else f"{least} times {words}"
    found = alike if least == most else f"{least} to {most} times {words}"
    middle = "" if least == most else f", {np.median(share):.3g} in the median"
    text = f"Over {counted(part.instance.nunique(), 'instance')} the largest κ found is {found}{middle}."
    numbers = {"least": float(share.min()), "largest": float(share.max())}
    return Finding(HOLDS if share.max() <= 1.0 + slack else FAILS, text, numbers, keys(part))


@claim("coherence-range", "Lemma 5.2", "Coherence lies between n/m and r.", "quick or paper")
def coherence_range(runs):
    """γ of every instance of real rows, against both ends. On graphs and in ℂᴺ leverage adds up to less than n."""
    part = runs.dropna(subset=["coherence"])
    part = part[(part.cone != "centred") & ~part.generator.isin(COMPLEX) & (part.m > 0)]
    if part.empty:
        return None
    low, high = (part.coherence * part.m / part.n).min(), (part.coherence / part.r).max()
    holds = min(low, 1.0 / high) >= 1.0 - 1e-9
    count = part.instance.nunique()
    over = f"Over {count} instances" if count > 1 else "On one instance"
    text = f"{over} γm/n is {low:.4g} or more, and γ/r {high:.4g} or less."
    return Finding(HOLDS if holds else FAILS, text, {"γm/n": float(low), "γ/r": float(high)}, keys(part))


@claim(
    "graph-coherence",
    "§5.3",
    "The coherence γ(Ω) of a graph lies between (N − 1)/|Ω| and 1, and is 1 where an edge is a bridge.",
    "quick or full",
)
def graph_coherence(runs):
    """γ of every graph against both ends; the barbell has a bridge, rings and regular graphs have none."""
    part = runs[(runs.cone == "centred") & np.isfinite(runs.coherence.to_numpy(dtype=float)) & (runs.m > 0)]
    if part.empty:
        return None
    floor = (part.n / part.r - 1.0) / part.m
    inside = (part.coherence >= floor * (1.0 - 1e-6)) & (part.coherence <= 1.0 + 1e-6)
    bridged, unbridged = part.generator == "barbell", part.generator.isin(["ring", "regular"])
    told = inside & (~bridged | (part.coherence >= 1.0 - 1e-6)) & (~unbridged | (part.coherence < 1.0 - 1e-6))
    cases = {str(name): bool(told[here.index].all()) for name, here in part.groupby("instance", sort=False)}
    verdict, condition = split(cases)
    tight = (part.coherence / floor).to_numpy(dtype=float)
    bridges = part[bridged].instance.nunique()
    text = (
        f"Over {counted(len(cases), 'graph')} γ(Ω) is {tight.min():.3g} to {tight.max():.3g} times "
        f"(N − 1)/|Ω| and at most {part.coherence.max():.3g}; {bridges} of them "
        f"{'has' if bridges == 1 else 'have'} a bridge."
    )
    return Finding(
        verdict, text, {"least": float(tight.min()), "largest": float(part.coherence.max())}, keys(part), condition
    )


@claim(
    "graphs",
    "§5.3",
    "For distance matrices, B* pays where a graph has high effective resistance, |Ω|γ ≫ N.",
    "full",
)
def lewis_pays_on_resistant_graphs(runs):
    """Iterations in the metric uniform over those in lewis on graphs, by how far |Ω|γ exceeds N = n/r."""
    part = runs[(runs.cone == "centred") & np.isfinite(runs.coherence.to_numpy(dtype=float))]
    cases, found = {}, {}
    for instance, here in part.groupby("instance", sort=False):
        both = set(pick(here, metric="lewis").solver) & set(pick(here, metric="uniform").solver)
        here = here[here.solver == min(both, default="")]
        one = compare(pick(here, metric="uniform"), pick(here, metric="lewis"))
        if one:
            excess = float((here.m * here.coherence * here.r / here.n).median())
            found[f"{instance} (|Ω|γ/N = {excess:.2g})"] = one
            cases[instance] = (one.ratio > SIMILAR) == (excess > SIMILAR**2)  # κ₀/κ* is its root
    if not found:
        return None
    verdict, condition = split(cases)
    return several(found, "B⁽⁰⁾ takes {ratio} times the iterations of B*", verdict, condition)
