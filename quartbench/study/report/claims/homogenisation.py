"""Does §6.1 of the paper hold? Homogenised against plain gradients, acceleration, restarts and fixed steps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from quartbench.study.report.words import short

from .base import FAILS, HOLDS, Finding, claim
from .evidence import FIGURE_1, KINDS, SIMILAR, STEPS, compare, keys, pick, several, split


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
            pick(runs, "homgd", "identity", group), pick(runs, "accel-homgd", "identity", group, restart="scheduled")
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
                pick(runs, "accel-homgd", "identity", group, restart=restart, step=step)
                for restart in ("none", "scheduled")
            )
            one = compare(without, scheduled)
            if one:
                found[f"{kind}, {words}"] = one
    if not found:
        return None
    verdict, condition = split({label: one.ratio > SIMILAR for label, one in found.items()})
    return several(found, "Without restarts it takes {ratio} times the iterations", verdict, condition)


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
