"""Does what quartbench adds to the paper hold? Certificates, one pass per iteration, HomNewton, auto against peers."""

from __future__ import annotations

import numpy as np

from quartbench.study import costs, summary

from .base import FAILS, HOLDS, ONLY, Finding, claim
from .evidence import KINDS, SIMILAR, STEPS, compare, keys, pick, several, split


@claim("certificate", "quartbench", "A certified gap is never smaller than the true one.", "quick, paper or peers")
def certificates_are_valid(runs):
    """Certified against true gap at the end of every run with a known optimum."""
    part = runs[np.isfinite(runs.optimum) & np.isfinite(runs.gap) & (runs.optimum != 0)]
    if part.empty:
        return None
    true = (part.value - part.optimum) / part.optimum.abs()
    invalid = part[part.gap < true - 1e-10]  # an optimum is known to 1e-11
    sharp = part[true > 1e-9]
    text, numbers = f"{len(invalid)} of {len(part)} certificates are below the truth", {"invalid": len(invalid)}
    if len(sharp):
        factor = float((sharp.gap / true[true > 1e-9]).median())
        size = "the true one to two digits" if f"{factor:.2g}" == "1" else f"{factor:.2g} times the true one"
        text += f"; a certified gap is {size} in the median"
        numbers["median factor"] = factor
    return Finding(FAILS if len(invalid) else HOLDS, f"{text}.", numbers, keys(part))


@claim("one-pass", "quartbench", "A gradient iteration costs about one pass over the rows.", "quick or paper")
def one_pass_per_iteration(runs):
    """Passes per iteration of the gradient methods in runs of 50 or more, at most 1.25 in the median."""
    part = runs[runs.method.isin(["gd", "homgd", "accel-homgd"]) & (runs.nit >= 50)]
    if part.empty:
        return None
    ratio = (part.passes / part.nit).to_numpy(dtype=float)
    text = f"{np.median(ratio):.2f} passes per iteration in the median of {len(part)} runs, {ratio.max():.2f} at most."
    return Finding(HOLDS if np.median(ratio) <= 1.25 else FAILS, text, {"median": float(np.median(ratio))}, keys(part))


@claim(
    "adaptive-restarts",
    "quartbench",
    "Adaptive restarts are at least similar to the better of the schedule and no restarts, on both kinds of rows.",
    "quick or paper",
)
def adaptive_restarts_keep_up(runs):
    """Iterations with adaptive restarts over those with the schedule and without any; the larger ratio counts."""
    found = {}
    for kind, group in KINDS.items():
        for words, step in STEPS.items():
            adaptive = pick(runs, "accel-homgd", group=group, restart="adaptive", step=step)
            others = (
                compare(adaptive, pick(runs, "accel-homgd", group=group, restart=restart, step=step))
                for restart in ("scheduled", "none")
            )
            worst = max((one for one in others if one), key=lambda one: one.ratio, default=None)
            if worst:
                found[f"{kind} with {words}"] = worst
    if not found:
        return None
    verdict, condition = split({label: one.ratio <= SIMILAR for label, one in found.items()})
    return several(found, "They take {ratio} times the iterations of the better of the two", verdict, condition)


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
    """Time of the best bare peer over the whole call of auto on each instance, above 1 by more than noise on all."""
    part = runs[runs.group == "peers"]
    if not (part.method == "auto").any() or not part.peer.any():
        return None
    table = summary.peers(part)
    ratios = table.wall_ratio.dropna()
    if ratios.empty:
        return None
    mean, noise = summary.geometric_mean(ratios), costs.noise(runs)
    found = summary.tally(ratios, noise)
    text = (
        f"auto has {found} on {len(ratios)} instances and gaps, a tie being what lies within the noise floor of "
        f"{100 * noise:.0f} %: {mean:.2f} times as fast in the geometric mean, {ratios.min():.2f} at the worst."
    )
    behind = table.loc[table.wall_ratio <= 1.0 + noise, "instance"].unique()
    verdict = HOLDS if found.wins == len(ratios) else ONLY if found.wins else FAILS
    condition = f"not for {' nor '.join(behind)}" if verdict == ONLY else ""
    numbers = {"geometric mean": mean, "least": float(ratios.min()), **found._asdict()}
    return Finding(verdict, text, numbers, keys(part), condition)
