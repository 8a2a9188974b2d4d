"""Does what the paper says hold? Every checkable sentence with the small pure function that decides it.

A test takes the prepared runs and returns a finding: the verdict, the evidence in words and numbers, and the keys of
the runs it rests on; or None where the runs at hand cannot decide it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from quartbench.study import costs, summary

from .figures import growths
from .words import gap_words, short

HOLDS, FAILS, ONLY, OPEN = "holds", "does not hold", "holds only when", "not measured in this study"

#: Two costs within this factor are called similar; beyond it one is significantly better.
SIMILAR = 1.25

#: An exponent whose confidence interval is wider than this says nothing.
SHARP = 1.0

#: Generators of complex rows.
COMPLEX = ("complex_gaussian", "coded_diffraction")

#: A gap below this is rounding where it is held against a bound.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Finding:
    """What the runs say of a claim: the evidence in a sentence, its numbers, and a line for each of several cases."""

    verdict: str
    evidence: str
    numbers: dict[str, float]
    keys: list[str]
    condition: str = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A sentence, where it stands, the test that decides it, and the studies whose runs can."""

    name: str
    source: str
    sentence: str
    studies: str
    test: Callable[[pd.DataFrame], Finding | None] = field(repr=False)

    def decide(self, runs: pd.DataFrame) -> Finding:
        """Return the finding; that nothing can be said is one too."""
        found = self.test(runs)
        if found is None:
            return Finding(OPEN, f"The study {self.studies} measures it.", {}, [])
        return found


CLAIMS: list[Claim] = []


def claim(name: str, source: str, sentence: str, studies: str) -> Callable:
    """Enter a test into the list of claims, in the order of the page."""

    def enter(test: Callable[[pd.DataFrame], Finding | None]) -> Callable[[pd.DataFrame], Finding | None]:
        CLAIMS.append(Claim(name, source, sentence, studies, test))
        return test

    return enter


# What tests are written with ------------------------------------------------------------------------------------------


def pick(
    runs: pd.DataFrame, method: str | None = None, metric: str | None = None, group: str | None = None, **settings
) -> pd.DataFrame:
    """Return the runs of a method, metric and group with these settings; what broke or was trivial is no evidence."""
    runs = costs.iterated(runs)
    kept = pd.Series(True, index=runs.index)
    for column, wanted in (("method", method), ("metric", metric), ("group", group)):
        if wanted is not None:
            kept &= runs[column] == wanted
    part = runs[kept]
    if settings and len(part):
        options = [json.loads(text) for text in part.settings]
        part = part[[all(one.get(name) == value for name, value in settings.items()) for one in options]]
    return part


@dataclass(frozen=True)
class Comparison:
    """Median ratio of costs over the cells that two selections share, at the tightest gap that both always reach."""

    ratio: float
    gap: float
    first: float
    second: float
    keys: list[str]

    def __str__(self) -> str:
        return f"{short(self.first)} against {short(self.second)} at gap {gap_words(self.gap)}"


def compare(first: pd.DataFrame, second: pd.DataFrame, unit: str = "iterations") -> Comparison | None:
    """Return how many times the cost of ``first`` is that of ``second``; None where they share no cell or gap."""
    if first.empty or second.empty:
        return None
    first, second = costs.tightest(first), costs.tightest(second)
    sides = [part.groupby(["instance", "seed"], sort=False) for part in (first, second)]
    shared = [cell for cell in sides[0].groups if cell in sides[1].groups]
    if not shared:
        return None
    spent = [np.array([costs.median(side.get_group(cell), costs.LADDER, unit) for cell in shared]) for side in sides]
    usable = np.flatnonzero(np.isfinite(spent[0]).all(axis=0) & np.isfinite(spent[1]).all(axis=0))
    usable = usable[(spent[0][:, usable] > 0).all(axis=0) & (spent[1][:, usable] > 0).all(axis=0)]
    if not usable.size:
        return None
    last = usable[-1]
    gap, a, b = float(costs.LADDER[last]), spent[0][:, last], spent[1][:, last]
    keys = [key for side in sides for cell in shared for key in side.get_group(cell).key]
    return Comparison(float(np.median(a / b)), gap, float(np.median(a)), float(np.median(b)), keys)


def split(cases: dict[str, bool]) -> tuple[str, str]:
    """Return the verdict over several cases, and the condition under which the claim holds: the shorter list."""
    true, false = ([name for name, holds in cases.items() if holds is wanted] for wanted in (True, False))
    if not false:
        return HOLDS, ""
    if not true:
        return FAILS, ""
    return ONLY, f"for {' and '.join(true)}" if len(true) <= len(false) else f"not for {' nor '.join(false)}"


def keys(runs: pd.DataFrame) -> list[str]:
    """Return the keys of runs."""
    return runs.key.tolist()


def _bounded(runs: pd.DataFrame, bound: Callable, rounding: float = 0.0) -> Finding | None:
    """Hold the iterations along every trace against ``bound(κ, δ₀, δ)``; a gap g is δ = (1 − g)^{−3/2} − 1."""
    runs = runs[np.isfinite(runs.kappa_bound.to_numpy(dtype=float)) & np.isfinite(runs.optimum.to_numpy(dtype=float))]
    worst, count = 0.0, 0
    for run in runs.itertuples():
        gaps = np.minimum(np.minimum.accumulate(run.trace_true), 1.0 - 1e-12)
        delta = (1.0 - gaps) ** -1.5 - 1.0
        first = np.concatenate([[True], np.diff(gaps) < 0]) & (gaps > ROUNDING)
        taken = np.asarray(run.trace_iteration, dtype=float)[first]
        allowed = np.ceil(bound(run.kappa_bound, delta[0], delta[first]))
        if taken.size > 1:
            worst = max(worst, float((taken[1:] / np.maximum(allowed[1:], 1.0)).max()))
            count += 1
    if not count:
        return None
    text = f"Over {count} runs the iterations never exceed {worst:.2g} of the bound, with the certified κ."
    return Finding(HOLDS if worst <= 1.0 else FAILS, text, {"share of the bound": worst, "runs": count}, keys(runs))


# §6.1 of the paper: homogenisation and acceleration -------------------------------------------------------------------

FIGURE_1 = {"well-conditioned rows (1a)": "figure-1a", "ill-conditioned rows (1b)": "figure-1b"}


@claim("gd-homgd", "§6.1 (i)", "GD and HomGD have similar practical performance.", "quick or paper")
def gd_and_homgd_are_similar(runs):
    """Iterations of GD over those of HomGD, both with Armijo's rule, within the factor of similarity both ways."""
    found = {
        label: compare(pick(runs, "gd", group=group), pick(runs, "homgd", "identity", group))
        for label, group in FIGURE_1.items()
    }
    found = {label: one for label, one in found.items() if one}
    if not found:
        return None
    verdict, condition = split({label: 1 / SIMILAR <= one.ratio <= SIMILAR for label, one in found.items()})
    return _several(found, "GD takes {ratio} times the iterations of HomGD", verdict, condition)


def _several(found: dict[str, Comparison], words: str, verdict: str, condition: str) -> Finding:
    """Put comparisons into words: their range in a sentence, and a line for each."""
    numbers = {label: float(one.ratio) for label, one in found.items()}
    low, high = min(numbers.values()), max(numbers.values())
    ratio = short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"
    lines = tuple(f"{label}: {short(one.ratio)} ({one})" for label, one in found.items())
    every = list(dict.fromkeys(key for one in found.values() for key in one.keys))
    return Finding(verdict, f"{words.format(ratio=ratio)}.", numbers, every, condition, lines)


@claim(
    "acceleration",
    "§6.1 (ii)",
    "Accelerated variants improve convergence speed for ill-conditioned problems.",
    "quick or paper",
)
def acceleration_helps_when_ill_conditioned(runs):
    """Iterations of HomGD over those of Algorithm 2 with its restarts, significantly above 1 on Figure 1b."""
    found = {
        label: compare(
            pick(runs, "homgd", "identity", group), pick(runs, "accel-homgd", "identity", group, restart="scheduled")
        )
        for label, group in FIGURE_1.items()
    }
    found = {label: one for label, one in found.items() if one}
    hard = found.get("ill-conditioned rows (1b)")
    if hard is None:
        return None
    verdict = HOLDS if hard.ratio > SIMILAR else FAILS
    return _several(found, "HomGD takes {ratio} times the iterations of Accel-HomGD", verdict, "")


@claim("restarts", "§6.1 (iii)", "The restart scheme has a significant impact on convergence speed.", "quick or paper")
def restarts_matter(runs):
    """Iterations without restarts over those with the paper's schedule and with adaptive restarts."""
    found = {}
    for label, group in FIGURE_1.items():
        without = pick(runs, "accel-homgd", "identity", group, restart="none")
        for restart, words in (("scheduled", "the paper's schedule"), ("adaptive", "adaptive restarts")):
            one = compare(without, pick(runs, "accel-homgd", "identity", group, restart=restart))
            if one:
                found[f"{words} on {label}"] = one
    if not found:
        return None
    verdict, condition = split({label: one.ratio > SIMILAR for label, one in found.items()})
    return _several(found, "Without restarts it takes {ratio} times the iterations", verdict, condition)


@claim(
    "fixed-steps",
    "§6.1 and §7",
    "HomGD converges with a fixed step that does not depend on the radius of the domain.",
    "quick or paper",
)
def fixed_steps_converge(runs):
    """Every run with a fixed step ends lower than it began, and none broke off."""
    part = pd.concat([pick(runs, "homgd", step="fixed"), pick(runs, "accel-homgd", step="fixed")])
    if part.empty:
        return None
    fell = np.array([run.trace_true[-1] / run.trace_true[0] for run in part.itertuples()])
    share = float((fell < 1.0).mean())
    text = f"{len(part)} runs with t = 1/(6β): the gap fell to {short(np.median(fell))} of the first in the median."
    return Finding(HOLDS if share == 1.0 else FAILS, text, {"median fall": float(np.median(fell))}, keys(part))


# §6.2: preconditioning ------------------------------------------------------------------------------------------------

STEPS = {"Armijo's rule": "armijo", "fixed steps": "fixed"}


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
    return _several(found, "The Euclidean norm takes {ratio} times the iterations", verdict, condition)


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
    found = _several({**low, **high}, "B⁽⁰⁾ takes {ratio} times the iterations of B*", verdict, condition)
    least, most = max(one.ratio for one in low.values()), max(one.ratio for one in high.values())
    words = (
        f"B⁽⁰⁾ takes at most {short(least)} times the iterations of B* at low coherence, up to {short(most)} at high."
    )
    return replace(found, evidence=words)


@claim("kappa-uniform", "§5.3", "In the metric B⁽⁰⁾, κ ≤ √(mγ).", "quick or paper")
def uniform_kappa(runs):
    """The certified κ of the metric uniform over √(mγ)."""
    part = pick(runs, metric="uniform").dropna(subset=["kappa_bound", "coherence"])
    return _kappa(part, np.sqrt(part.m * part.coherence), "√(mγ)", 1e-6)


@claim("kappa-lewis", "Thm 5.6", "In the metric B*, κ ≤ √n.", "quick or paper")
def lewis_kappa(runs):
    """The certified κ of the metric lewis over √n; the weights are computed to 1 %."""
    part = pick(runs, metric="lewis").dropna(subset=["kappa_bound"])
    return _kappa(part, np.sqrt(part.n), "√n", 0.01)


@claim("kappa-identity", "§6.2", "Without a preconditioner, κ ≤ (σ_max/σ_min)²·√(mγ).", "quick or paper")
def identity_kappa(runs):
    """The certified κ of the metric identity over its bound, where the generator sets the singular values."""
    part = pick(runs, metric="identity").dropna(subset=["kappa_bound", "coherence"])
    given = [json.loads(text) for text in part.arguments]
    cond = np.array([one.get("cond") or 1.0 / one.get("sigma_min", np.nan) for one in given], dtype=float)
    part, cond = part[np.isfinite(cond)], cond[np.isfinite(cond)]
    return _kappa(part, cond**2 * np.sqrt(part.m * part.coherence), "its bound", 1e-6)


def _kappa(part: pd.DataFrame, bound: pd.Series, words: str, slack: float) -> Finding | None:
    if part.empty:
        return None
    share = (part.kappa_bound / bound).to_numpy(dtype=float)
    text = (
        f"Over {len(part)} runs the certified κ is {share.min():.3g} to {share.max():.3g} times {words}, "
        f"{np.median(share):.3g} in the median."
    )
    numbers = {"least": float(share.min()), "largest": float(share.max())}
    return Finding(HOLDS if share.max() <= 1.0 + slack else FAILS, text, numbers, keys(part))


@claim("coherence-range", "Lemma 5.2", "Coherence lies between n/m and r.", "quick or paper")
def coherence_range(runs):
    """γ of every instance of real rows, against both ends. On graphs and in ℂᴺ leverage adds up to less than n."""
    part = runs.dropna(subset=["coherence"])
    part = part[
        (part.cone != "centred") & ~part.generator.isin(["complex_gaussian", "coded_diffraction"]) & (part.m > 0)
    ]
    if part.empty:
        return None
    low, high = (part.coherence * part.m / part.n).min(), (part.coherence / part.r).max()
    holds = low >= 1.0 - 1e-9 and high <= 1.0 + 1e-9
    count = part.instance.nunique()
    over = f"Over {count} instances" if count > 1 else "On one instance"
    text = f"{over} γ is {low:.3g} times n/m or more, and {high:.3g} times r or less."
    return Finding(HOLDS if holds else FAILS, text, {"γm/n": float(low), "γ/r": float(high)}, keys(part))


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
    return _several(found, "B⁽⁰⁾ takes {ratio} times the iterations of B*", verdict, condition)


# Theorems -------------------------------------------------------------------------------------------------------------


@claim(
    "bound-homgd",
    "Thm 4.6, Prop. 4.4",
    "HomGD reaches δ in at most (12L/μ)(ln₊ 4δ₀ + (δ^{−1/2} − 2)₊) iterations, L/μ = √27 κ.",
    "quick or paper",
)
def homgd_bound(runs):
    """The bound along every trace of HomGD."""
    return _bounded(
        pick(runs, "homgd"),
        lambda kappa, start, delta: (
            12.0 * np.sqrt(27.0) * kappa * (max(np.log(4.0 * start), 0.0) + np.maximum(delta**-0.5 - 2.0, 0.0))
        ),
    )


@claim(
    "bound-accelerated",
    "Thm 4.7 with its constant corrected",
    "Accel-HomGD with restarts reaches δ in at most 32√(L/μ)(δ₀^{1/4} + 2^{1/4})/δ^{1/4} iterations.",
    "quick or paper",
)
def accelerated_bound(runs):
    """The bound along every trace of Accel-HomGD with the paper's schedule."""
    return _bounded(
        pick(runs, "accel-homgd", restart="scheduled"),
        lambda kappa, start, delta: 32.0 * np.sqrt(np.sqrt(27.0) * kappa) * (start**0.25 + 2.0**0.25) / delta**0.25,
    )


@claim(
    "kappa-iterations",
    "Thm 4.6 and 4.7",
    "Iterations grow at most like κ for HomGD and like √κ for Accel-HomGD.",
    "quick or scaling",
)
def iterations_grow_with_kappa(runs):
    """Fitted exponents of the iterations in the certified κ, against 1 and ½."""
    return _growth(runs, ["scaling-kappa"], "iterations")


@claim(
    "gamma-iterations",
    "§5.3",
    "Iterations grow at most like √γ for HomGD in the metric B⁽⁰⁾, and not at all in B*.",
    "quick or scaling",
)
def iterations_grow_with_coherence(runs):
    """Fitted exponents of the iterations in γ."""
    return _growth(runs, ["scaling-coherence"], "iterations")


@claim("complexity", "§5.2", "Lewis weights and their metric cost O(mrn²) a sweep.", "scaling")
def setup_complexity(runs):
    """Fitted exponents of the set-up time in m, n and r, against 1, 2 and 1."""
    return _growth(runs, ["scaling-m", "scaling-n", "scaling-r"], "set-up seconds")


def _growth(runs: pd.DataFrame, groups: Iterable[str], measure: str) -> Finding | None:
    """Hold exponents against those of the theory: one that lies significantly above it refutes it."""
    found = [
        one for group in groups for one in growths(runs, group) if one.measure == measure and one.theory is not None
    ]
    if not found:
        return None
    lines = {f"{one.name} in {one.group.removeprefix('scaling-')}": one for one in found}
    told = {name: one for name, one in lines.items() if one.fit.high - one.fit.low <= SHARP}
    words = tuple(f"{name}: exponent {one.fit}, theory {one.theory:g}" for name, one in lines.items())
    numbers = {name: one.fit.exponent for name, one in lines.items()}
    every = keys(runs[runs.group.isin(list(groups))])
    if not told:
        text = "The confidence intervals of the exponents are too wide to decide it; the study scaling has more points."
        return Finding(OPEN, text, numbers, every, cases=words)
    verdict, condition = split({name: one.fit.low <= one.theory + 1e-9 for name, one in told.items()})
    above = max(one.fit.exponent - one.theory for one in told.values())
    text = (
        f"Fitted exponents are at most {above:.2f} above the theory"
        if above > 0
        else (f"Fitted exponents are at least {-above:.2f} below the theory")
    )
    text += f" over {len(told)} fits whose 95 % intervals are narrow enough to tell (of {len(lines)})."
    return Finding(verdict, text, numbers, every, condition, words)


@claim(
    "sweeps",
    "Cor. 5.10",
    "A metric within a constant of the best takes O(ln(m/n)·ln ln(rm)) sweeps.",
    "quick or paper",
)
def few_sweeps(runs):
    """Sweeps against the count of the corollary for a factor 1.5 and 1 %. Ours work at p = 2, not at a surrogate."""
    part = pick(runs, metric="lewis")
    part = part[(part.sweeps > 0) & (part.m > 2.25 * part.n)]
    if part.empty:
        return None
    distance = 1.0 / (0.5 + np.log(part.m / part.n) / (4.0 * np.log(1.5)))  # 2 − p' of the surrogate, ERRATA 12
    allowed = 1.0 + np.log(np.maximum(np.log(part.r * part.m) / (distance * 0.01), 1.0)) / distance
    worst = float((part.sweeps / allowed).max())
    text = (
        f"{part.sweeps.min()} to {part.sweeps.max()} sweeps, at most {worst:.2g} of the corollary's count. The weights "
        "are computed directly at p = 2; its surrogate power is checked by the project's tests."
    )
    return Finding(HOLDS if worst <= 1.0 else FAILS, text, {"share of the count": worst}, keys(part))


# What quartbench adds -------------------------------------------------------------------------------------------------


@claim(
    "certificate", "quartbench", "A certified gap is never smaller than the true one.", "every study with known optima"
)
def certificates_are_valid(runs):
    """Certified against true gap at the end of every run with a known optimum."""
    part = runs[np.isfinite(runs.optimum) & np.isfinite(runs.gap) & (runs.optimum != 0)]
    if part.empty:
        return None
    true = (part.value - part.optimum) / part.optimum.abs()
    invalid = part[part.gap < true - 1e-10]  # an optimum is known to 1e-11
    sharp = part[true > 1e-9]
    factor = (sharp.gap / true[true > 1e-9]).median() if len(sharp) else np.nan
    text = (
        f"{len(invalid)} of {len(part)} certificates are below the truth; a certified gap is {factor:.2g} times the "
        "true one in the median."
    )
    return Finding(
        FAILS if len(invalid) else HOLDS, text, {"invalid": len(invalid), "median factor": float(factor)}, keys(part)
    )


@claim("one-pass", "quartbench", "A gradient iteration costs about one pass over the rows.", "quick or paper")
def one_pass_an_iteration(runs):
    """Passes an iteration of the gradient methods in runs of 50 or more, at most 1.25 in the median."""
    part = runs[runs.method.isin(["gd", "homgd", "accel-homgd"]) & (runs.nit >= 50)]
    if part.empty:
        return None
    ratio = (part.passes / part.nit).to_numpy(dtype=float)
    text = f"{np.median(ratio):.2f} passes an iteration in the median of {len(part)} runs, {ratio.max():.2f} at most."
    return Finding(HOLDS if np.median(ratio) <= 1.25 else FAILS, text, {"median": float(np.median(ratio))}, keys(part))


@claim("newton", "quartbench", "HomNewton ends in a handful of iterations whatever κ is.", "quick or peers")
def newton_takes_few_iterations(runs):
    """Iterations of successful runs of HomNewton, at most ten in each."""
    part = pick(runs, "homnewton")
    part = part[part.success]
    if part.empty:
        return None
    text = (
        f"{part.nit.min()} to {part.nit.max()} iterations over {len(part)} runs, {part.nit.median():.0f} in the median."
    )
    return Finding(HOLDS if part.nit.max() <= 10 else FAILS, text, {"largest": float(part.nit.max())}, keys(part))


@claim("peers", "quartbench", "The solver auto is faster than the best peer on every instance.", "quick or peers")
def auto_beats_the_peers(runs):
    """Time of the best peer over that of auto on each instance, above 1 on all."""
    part = runs[runs.group == "peers"]
    if not (part.method == "auto").any() or not part.peer.any():
        return None
    table = summary.peers(part)
    ratios = table.ratio.dropna()
    if ratios.empty:
        return None
    mean = summary.geometric_mean(ratios)
    won = int((ratios > 1.0).sum())
    text = (
        f"auto is faster on {won} of {len(ratios)} instances and gaps, significantly on "
        f"{int((ratios > SIMILAR).sum())}: {mean:.2f} times in the geometric mean, {ratios.min():.2f} at the worst."
    )
    lost = table.loc[table.ratio <= 1.0, "instance"].unique()
    verdict = HOLDS if won == len(ratios) else ONLY if won else FAILS
    condition = f"not for {', '.join(lost)}" if verdict == ONLY else ""
    return Finding(verdict, text, {"geometric mean": mean, "least": float(ratios.min())}, keys(part), condition)
