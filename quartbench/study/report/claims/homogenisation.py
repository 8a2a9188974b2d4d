"""Do §1.1, §6.1 and §7 of the paper hold? Homogenised against plain gradients, acceleration, restarts, fixed steps."""

from __future__ import annotations

import json
from dataclasses import replace

from quartbench.study.report.words import short

from .base import FAILS, HOLDS, claim
from .evidence import FIGURE_1, FIXED, KINDS, SIMILAR, STEPS, compare, pick, several, split


@claim("gd-homgd", "§6.1 (i)", "GD and HomGD have similar practical performance.", "quick or paper")
def gd_and_homgd_are_similar(runs):
    """Iterations of GD over those of HomGD, both with Armijo's rule, within the factor of similarity both ways."""
    found = {
        label: compare(
            pick(runs, "gd", "identity", group, step="armijo"), pick(runs, "homgd", "identity", group, step="armijo")
        )
        for label, group in FIGURE_1.items()
    }
    found = {label: one for label, one in found.items() if one}
    if not found:
        return None
    verdict, condition = split({label: 1 / SIMILAR <= one.ratio <= SIMILAR for label, one in found.items()})
    return several(found, "GD takes {ratio} times the iterations of HomGD", verdict, condition)


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
            pick(runs, "homgd", "identity", group, step="armijo"),
            pick(runs, "accel-homgd", "identity", group, restart="scheduled", step="armijo"),
        )
        for label, group in FIGURE_1.items()
    }
    found = {label: one for label, one in found.items() if one}
    hard = found.get("ill-conditioned rows (1b)")
    if hard is None:
        return None
    verdict = HOLDS if hard.ratio > SIMILAR else FAILS
    return several(found, "HomGD takes {ratio} times the iterations of Accel-HomGD", verdict, "")


@claim("restarts", "§6.1 (iii)", "The restart scheme has a significant impact on convergence speed.", "quick or paper")
def restarts_matter(runs):
    """Iterations without restarts over those with the paper's schedule, on generic and on degenerate rows."""
    found = {}
    for kind, group in KINDS.items():
        for words, step in STEPS.items():
            without, scheduled = (
                pick(runs, "accel-homgd", group=group, restart=restart, step=step) for restart in ("none", "scheduled")
            )
            one = compare(without, scheduled)
            if one:
                found[f"{kind} with {words}"] = one
    if not found:
        return None
    verdict, condition = split({label: one.ratio > SIMILAR for label, one in found.items()})
    return several(found, "Without restarts it takes {ratio} times the iterations", verdict, condition)


@claim(
    "fixed-steps",
    "§1.1, §6.1 (i)",
    "HomGD converges with a fixed step that does not depend on the radius of the domain; the fixed step of gradient "
    "descent on f does, by a highly over-estimated Lipschitz constant.",
    "quick or paper",
)
def fixed_steps_need_no_radius(runs):
    """Iterations with the fixed steps of a ball over those of HomGD and Accel-HomGD with theirs, as the ball grows."""
    ours = {name: pick(runs, name, group=FIXED, step="fixed") for name in ("homgd", "accel-homgd")}
    ours["accel-homgd"] = pick(ours["accel-homgd"], restart="scheduled")
    rose = [
        run.key for part in ours.values() for run in part.itertuples() if not run.trace_true[-1] < run.trace_true[0]
    ]
    found = {}
    for plain, homogenised, words in (("gd", "homgd", "GD"), ("agd", "accel-homgd", "accelerated GD")):
        part = pick(runs, plain, group=FIXED, step="fixed")
        for radius in sorted({json.loads(text)["radius"] for text in part.settings}):
            one = compare(pick(part, radius=radius), ours[homogenised])
            if one:
                found[f"{words} in {short(radius)} times the ball of the level set"] = one
    if not found:
        return None
    verdict, condition = split({label: one.ratio > SIMILAR for label, one in found.items()})
    if rose:
        verdict, condition = FAILS, ""
    words = "With the step 1/L of a ball, gradients on f take {ratio} times the iterations of those on √ρ with 1/(6β)"
    return several(found, words, verdict, condition)


@claim(
    "both-criteria",
    "§7",
    "Accel-HomGD has fixed steps and acceleration together, which Euclidean and Bregman gradient descent do not have.",
    "quick or paper",
)
def fixed_steps_and_acceleration(runs):
    """Iterations of every fixed-step baseline over those of Accel-HomGD with fixed steps; and what else accelerates."""
    fast = pick(runs, "accel-homgd", group=FIXED, step="fixed", restart="scheduled")
    found = {}
    for words, part in {
        "GD": pick(runs, "gd", group=FIXED, step="fixed", radius=1.0),
        "accelerated GD": pick(runs, "agd", group=FIXED, step="fixed", radius=1.0),
        "Bregman, quartic kernel": pick(runs, "bregman", group=FIXED, step="fixed", kernel="quartic"),
        "Bregman, quartic + quadratic kernel": pick(
            runs, "bregman", group=FIXED, step="fixed", kernel="quartic+quadratic"
        ),
    }.items():
        one = compare(part, fast)
        if one:
            found[words] = one
    if not found:
        return None
    verdict, condition = split({label: one.ratio > SIMILAR for label, one in found.items()})
    finding = several(
        found, "With fixed steps they take {ratio} times the iterations of Accel-HomGD", verdict, condition
    )
    gained = compare(*(pick(runs, name, group=FIXED, step="fixed", radius=1.0) for name in ("gd", "agd")))
    if gained is None:
        return finding
    words = (
        f"Gradient descent on f does have both once a ball around the level set is known: acceleration in it saves a "
        f"factor of {short(gained.ratio)}."
    )
    numbers = finding.numbers | {"acceleration in the ball": gained.ratio}
    return replace(finding, evidence=f"{finding.evidence} {words}", numbers=numbers)
