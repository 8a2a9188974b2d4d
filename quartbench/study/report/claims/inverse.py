"""Does §2.1 of the paper hold? DC steps on inverse problems: that F falls, how exact they must be, in which metric."""

from __future__ import annotations

import numpy as np
import pandas as pd

from quartbench.study import outcomes, summary
from quartbench.study.report.words import short

from .base import FAILS, HOLDS, ONLY, Finding, claim
from .evidence import SIMILAR, Comparison, keys, pick, several, split

#: The rise of F, relative to ‖d‖², that is rounding: extrapolated images are exact to 10⁻¹².
ROUNDING = 1e-11

#: The shares of its decrease to which a DC step is solved, a rough one and an exact one.
ROUGH, EXACT = 0.1, 0.001

#: Words in the label of an instance whose terms are uneven: on these B* should pay in the convex steps.
UNEVEN = ("bridge", "clouds", "heavy")

#: The word in the label of an instance whose masks leave places nearly dark.
DARK = "heavy"


@claim("dc-monotone", "§2.1", "The DC algorithm decreases F at every step.", "inverse", inverse=True)
def dc_falls(runs):
    """The largest rise of F between two points of the trace of a run of DC, with convex steps of any accuracy."""
    part = pick(runs[runs.method.isin(["dc", "dc-inexact", "dc-accelerated"]) & (runs.nit > 0)])
    if part.empty:
        return None
    worst = max(_largest_rise(run) for run in part.itertuples())
    over = f"Over {len(part)} runs and {int(part.nit.sum())} steps F"
    text = f"{over} never rises beyond rounding." if worst <= ROUNDING else f"{over} rises by up to {short(worst)}‖d‖²."
    return Finding(HOLDS if worst <= ROUNDING else FAILS, text, {"largest rise": worst}, keys(part))


def _largest_rise(run) -> float:
    """Return by how much F rises at most between two points of the trace, relative to ‖d‖²."""
    misfits = outcomes.residuals(run) ** 2
    if not np.isfinite(misfits).all():  # it ended at F = 0: then relative to the first F, which is less
        misfits = np.asarray(run.trace_value, dtype=float) / run.trace_value[0]
    return float(np.diff(misfits).max(initial=0.0))


@claim(
    "dc-accuracy",
    "§2.1",
    "DC needs as many steps when each is solved to a tenth of its decrease as when to a thousandth, and fewer passes.",
    "inverse",
    inverse=True,
)
def rough_steps_suffice(runs):
    """Steps and passes of DC to the least F that both reached, with rough against exact convex steps."""
    part = pick(runs, "dc", group="dc-accuracy")
    found, cases = {}, {}
    for instance, here in part.groupby("instance", sort=False):
        rough, exact = pick(here, accuracy=ROUGH), pick(here, accuracy=EXACT)
        steps, passes = (_compared(rough, exact, unit) for unit in ("steps", "passes"))
        if steps and passes:
            found[f"steps on {instance}"], found[f"passes on {instance}"] = steps, passes
            cases[instance] = steps.ratio <= SIMILAR and passes.ratio < 1.0
    if not found:
        return None
    verdict, condition = split(cases)
    return several(found, "Rough steps take {ratio} times what exact ones do", verdict, condition)


@claim(
    "dc-metric",
    "§2.1 and §5.3",
    "In the convex steps B* takes fewer passes than B⁽⁰⁾ on graphs with a bridge and behind masks with heavy tails.",
    "inverse",
    inverse=True,
)
def lewis_pays_on_uneven_terms(runs):
    """Passes of DC in the metric uniform over those in lewis, to the least F that both reached: significantly more.

    Behind masks they cannot differ: the rows of one mask have one leverage, so that B* is B⁽⁰⁾ but for a factor a mask.
    """
    return _judged(runs, "uniform", "lewis", UNEVEN, "B⁽⁰⁾ takes {ratio} times the passes of B*")


@claim(
    "dc-norm",
    "§2.1 and §5.3",
    "In the convex steps B⁽⁰⁾ takes fewer passes than the Euclidean norm behind masks with heavy tails.",
    "inverse",
    inverse=True,
)
def a_metric_pays_where_places_are_dark(runs):
    """Passes of DC in the metric identity over those in uniform, to the least F that both reached."""
    return _judged(runs, "identity", "uniform", (DARK,), "The Euclidean norm takes {ratio} times the passes of B⁽⁰⁾")


def _judged(runs: pd.DataFrame, dear: str, cheap: str, uneven: tuple[str, ...], words: str) -> Finding | None:
    """Say on which uneven instances DC takes significantly more passes in one metric than in another; show the even."""
    part = pick(runs, "dc", group="dc-metrics")
    found, cases = {}, {}
    for (instance, solver), here in part.groupby(["instance", "solver"], sort=False):
        one = _compared(pick(here, metric=dear), pick(here, metric=cheap), "passes")
        if one is None:
            continue
        found[f"{solver} on {instance}"] = one
        if any(word in instance for word in uneven):
            cases[instance, solver] = one.ratio > SIMILAR
    if not cases:
        return None
    verdict = HOLDS if all(cases.values()) else ONLY if any(cases.values()) else FAILS
    return several(found, words, verdict, _where(cases) if verdict == ONLY else "")


def _where(cases: dict[tuple[str, str], bool]) -> str:
    """Say with which solvers of the convex steps it holds on which instances, and on which with none."""
    solvers: dict[str, list[str]] = {}
    for (instance, solver), holds in cases.items():
        solvers.setdefault(instance, []).extend([solver.removeprefix("dc solver=")] if holds else [])
    together: dict[str, list[str]] = {}
    for instance, some in solvers.items():
        together.setdefault(", ".join(some), []).append(instance)
    words = [f"with {some} on {', '.join(where)}" for some, where in together.items() if some]
    return "; ".join(words + ([f"not on {', '.join(together[''])}"] if "" in together else []))


@claim(
    "recovery-peers",
    "quartbench",
    "From the same start auto fits the data of an inverse problem faster than the best peer.",
    "inverse",
    inverse=True,
)
def auto_fits_faster_than_the_peers(runs):
    """Seconds of the best peer over those of auto to a relative residual of 10⁻⁴, above 1 on all instances."""
    part = pick(runs, group="recovery-costs")
    table = outcomes.against_peers(part)
    ratios = table.ratio.dropna()
    if ratios.empty:
        return None
    won, mean = int((ratios > 1.0).sum()), summary.geometric_mean(ratios)
    text = f"auto is faster on {won} of {len(ratios)} instances"
    text += f": {mean:.2f} times in the geometric mean, {ratios.min():.2f} at the worst." if np.isfinite(mean) else "."
    lost = table.loc[table.ratio <= 1.0, "instance"]
    verdict = HOLDS if won == len(ratios) else ONLY if won else FAILS
    condition = f"not for {', '.join(lost)}" if verdict == ONLY else ""
    lines = tuple(
        f"{one.instance}: {short(one.ratio)} ({one.peer} {short(one.best)} s, auto {short(one.auto)} s)"
        if one.peer
        else f"{one.instance}: no peer gets there, {_alone(one.auto)}"
        for one in table.itertuples()
    )
    return Finding(verdict, text, {"geometric mean": mean, "least": float(ratios.min())}, keys(part), condition, lines)


def _alone(seconds: float) -> str:
    return f"auto takes {short(seconds)} s" if np.isfinite(seconds) else "nor does auto"


def _compared(first: pd.DataFrame, second: pd.DataFrame, unit: str) -> Comparison | None:
    """Return how many times the cost of ``first`` is that of ``second``, to the least F that both reached."""
    found = outcomes.compared(first, second, unit)
    if found is None:
        return None
    a, b, used = found
    return Comparison(float(np.median(a / b)), float("nan"), float(np.median(a)), float(np.median(b)), used)
