"""Does §2.2 of the paper hold? Steps in the geometry of a sample: the rounds that they save, and when it is like ρ."""

from __future__ import annotations

import json
import math

import pandas as pd

from quartbench.study import costs
from quartbench.study.report.cluster import sampled
from quartbench.study.report.words import short

from .base import Finding, claim
from .evidence import SIMILAR, compare, keys, pick, several, split

#: How many times fewer the rounds of SPAG are said to be.
FEWER = 20.0

#: Rounds that Lewis sampling may take, and that uniform sampling takes more than.
FEW, MANY = 15, 90


@claim(
    "spag-rounds",
    "§2.2",
    "On rows that are all alike, SPAG needs at most a twentieth of the rounds of Accel-HomGD with B = I.",
    "cluster",
)
def samples_save_rounds(runs):
    """Rounds of accel-homgd in the metric identity over those of SPAG, for each share of the rows."""
    part = runs[runs.workers > 0]
    plain = pick(part, "accel-homgd", metric="identity", group="cluster")
    found = {}
    for share, mine in _by_share(pick(part, "spag", group="cluster", sampling="uniform")):
        one = compare(plain, mine, "rounds")
        if one is not None:
            found[f"{share} of the rows"] = one
    if not found:
        return None
    verdict, condition = split({name: one.ratio >= FEWER for name, one in found.items()})
    return several(found, "Accel-HomGD takes {ratio} times the rounds of SPAG", verdict, condition)


@claim(
    "lewis-sampling",
    "§2.2 and §5",
    "Where a few rows carry a direction, SPAG needs at most 15 rounds with Lewis sampling, over 90 with uniform.",
    "cluster",
)
def lewis_samples_see_every_direction(runs):
    """Rounds to the gap asked for, with either sampling; at least those of the run where it did not get there."""
    part = pick(runs[runs.workers > 0], "spag", group="cluster-coherent")
    sides = {name: dict(_by_share(pick(part, sampling=name))) for name in ("lewis", "uniform")}
    numbers, cases, used = {}, {}, []
    for share in sides["lewis"].keys() & sides["uniform"].keys():
        lewis, uniform = (sides[name][share] for name in ("lewis", "uniform"))
        most, least = costs.to_gap(lewis, lewis.rel_gap, "rounds").max(), float(_at_least(uniform).min())
        numbers |= {f"{share}, lewis": float(most), f"{share}, uniform": least}
        cases[f"{share} of the rows"] = most <= FEW and least > MANY
        used += keys(lewis) + keys(uniform)
    if not cases:
        return None
    lines = tuple(f"{name}: {_rounds(value)}" for name, value in sorted(numbers.items()))
    verdict, condition = split(dict(sorted(cases.items())))
    least = [value for name, value in numbers.items() if name.endswith("uniform")]
    most = [value for name, value in numbers.items() if name.endswith("lewis")]
    text = (
        f"Lewis sampling takes {_range(most)} rounds, beside the sweeps of its weights, and uniform sampling "
        f"{_range(least)} or more."
    )
    return Finding(verdict, text, numbers, used, condition, lines)


@claim(
    "sample-condition",
    "§2.2",
    "The relative condition number Lₘ/μₘ of a sample approaches 1 as the sample grows.",
    "cluster",
)
def samples_become_the_whole(runs):
    """Lₘ/μₘ falls from each size of the sample to the next, and is similar to 1 at the largest."""
    rows = sampled(runs.attrs.get("samples"))
    if rows.empty:
        return None
    cases, lines, last = {}, [], {}
    for (instance, sampling), here in rows.groupby(["instance", "sampling"], sort=False):
        values = here.sort_values("share").condition
        name = f"{sampling} sampling of {instance}"
        cases[name] = bool((values.diff().iloc[1:] <= 0.0).all() and values.iloc[-1] <= SIMILAR)
        last[name] = float(values.iloc[-1])
        lines.append(f"{name}: {' → '.join(map(short, values))}")
    verdict, condition = split(cases)
    text = (
        f"From {100.0 * rows.share.min():g} to {100.0 * rows.share.max():g} % of the terms, Lₘ/μₘ falls to "
        f"{_range(last.values())}; Hessians are compared at five points."
    )
    return Finding(verdict, text, last, [], condition, tuple(lines))


def _by_share(runs: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the runs for each share of the terms in their sample, in words."""
    shares = pd.Series([json.loads(text)["share"] for text in runs.settings], index=runs.index, dtype=float)
    return [(f"{100.0 * share:g} %", here) for share, here in runs.groupby(shares)]


def _at_least(runs: pd.DataFrame) -> pd.Series:
    """Return the rounds to the gap; where a run did not get there, all that it took."""
    found = costs.to_gap(runs, runs.rel_gap, "rounds")
    return found.where(found < math.inf, runs.rounds)


def _range(values) -> str:
    low, high = min(values), max(values)
    return _rounds(low) if low == high else f"{_rounds(low)} to {_rounds(high)}"


def _rounds(value: float) -> str:
    return "not enough" if math.isinf(value) else short(value)
