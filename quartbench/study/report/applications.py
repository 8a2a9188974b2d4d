"""What do the applications show? A part of the page for each question about recoveries: figures, tables, an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from quartbench.study import costs, outcomes, summary
from quartbench.views import counted

from . import tables
from .figures import Figure, Panel, Series
from .words import as_many, short


@dataclass(frozen=True)
class Part:
    """A question, its answer in sentences, and what shows it."""

    name: str
    question: str
    answer: list[str]
    figures: list[Figure]
    tables: list[tables.Table]


def parts(runs: pd.DataFrame) -> list[Part]:
    """Return a part for every question that the recoveries among the runs can answer, in the order of the page."""
    runs = costs.recoveries(runs)
    found = [make(runs) for make in (_phase, _distances, _clusters, _prices, _accuracy, _metrics)]
    return [part for part in found if part is not None]


# Curves ---------------------------------------------------------------------------------------------------------------

Measure = Callable[[pd.DataFrame], float]


def _recovered(runs: pd.DataFrame) -> float:
    return float(runs.groupby("seed").success.all().mean())


def _error(runs: pd.DataFrame) -> float:
    return float(runs.groupby("seed").error.median().median())


def _passes(runs: pd.DataFrame) -> float:
    """Return the median passes of the runs that recovered the truth, their start included."""
    won = runs[runs.success]
    return float((won.passes + won.start_passes).median()) if len(won) else np.nan


def _curves(runs: pd.DataFrame, argument: str, measure: Measure, band: str = "") -> list[Series]:
    """Return one curve per contender over an argument of the generator; ``band`` is a column whose range is shaded."""
    places = outcomes.argument(runs, argument)
    found = []
    for name, here in runs.groupby("contender", sort=False):
        cells = [(place, here[places[here.index] == place]) for place in sorted(set(places[here.index]))]
        x, y = np.array([(place, measure(cell)) for place, cell in cells]).T
        low, high = (
            np.array([getattr(cell[band], side)() for _, cell in cells]) if band else None for side in ("min", "max")
        )
        shown = np.isfinite(y)
        found.append(
            Series(name, x[shown], y[shown], "curve", *(None if one is None else one[shown] for one in (low, high)))
        )
    return [series for series in found if series.x.size]


def _group(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the runs of a group that left something to show."""
    return costs.iterated(runs[runs.group == name])


def _decibels(series: Series) -> Series:
    return Series(series.name, -20.0 * np.log10(series.x), series.y, series.kind, series.low, series.high)


def _seeds(runs: pd.DataFrame) -> str:
    return counted(runs.seed.nunique(), "seed")


def _median(runs: pd.DataFrame) -> str:
    """Say what a curve and its band are; of one seed there is no band."""
    return "of one seed" if runs.seed.nunique() == 1 else f"the median over {_seeds(runs)}, the band is all of them"


# Phase retrieval and distances ----------------------------------------------------------------------------------------


def _phase(runs: pd.DataFrame) -> Part | None:
    measured, noisy = _group(runs, "phase-measurements"), _group(runs, "phase-noise")
    panels, words = [], []
    if len(measured):
        panels.append(
            Panel(
                "recovered",
                "measurements m/n",
                "share of seeds",
                _curves(measured, "ratio", _recovered),
                xlog=False,
                ylog=False,
            )
        )
        panels.append(Panel("cost", "measurements m/n", "passes", _curves(measured, "ratio", _passes), xlog=False))
        words.append(
            f"'recovered' is the share of {_seeds(measured)} whose signal is found to a relative error of 10⁻³, up to "
            "a phase, 'cost' the median passes of these runs, start included. "
        )
    if len(noisy):
        curves = [_decibels(series) for series in _curves(noisy, "noise", _error, "error")]
        panels.append(Panel("noise", "SNR of d (dB)", "relative error", curves, xlog=False))
        words.append(f"'noise' has the error: {_median(noisy)}. An SNR of 40 dB is noise=0.01. ")
    if not panels:
        return None
    both = pd.concat([measured, noisy])
    words.append("All methods begin at the same spectral start, but for those with restarts, which may make others.")
    figure = Figure("phase", "Phase retrieval", "".join(words), panels, both.key.tolist())
    answer = [_threshold(measured, "ratio", "m/n =", "signal")] if len(measured) else []
    if len(noisy):
        answer.append(_by_noise(noisy, lambda share: f"{-20.0 * np.log10(share):.0f} dB"))
    return Part(
        "phase",
        "How many measurements does a signal need, and what does noise do to it?",
        answer,
        [figure],
        [tables.outcome_table(both, "phase-outcomes", "Signals recovered")],
    )


def _distances(runs: pd.DataFrame) -> Part | None:
    shares, noisy = _group(runs, "distances-share"), _group(runs, "distances-noise")
    panels, words = [], []
    if len(shares):
        percent = "share of distances known"
        panels.append(Panel("error", percent, "relative RMSE", _curves(shares, "share", _error, "error"), xlog=False))
        panels.append(
            Panel("recovered", percent, "share of seeds", _curves(shares, "share", _recovered), xlog=False, ylog=False)
        )
        words.append(
            "'error' is the root mean square error of all distances, known or not, between points that at least four "
            f"known ones hold, relative to their root mean square: {_median(shares)}; "
            "'recovered' is the share of seeds with at most 10⁻³. "
        )
    if len(noisy):
        panels.append(Panel("noise", "noise of a distance", "relative RMSE", _curves(noisy, "noise", _error, "error")))
        words.append(f"'noise' has the same error against a noise relative to each distance, over {_seeds(noisy)}. ")
    if not panels:
        return None
    both = pd.concat([shares, noisy])
    words.append("All methods begin at the same spectral start, but for those with restarts.")
    figure = Figure("distances", "Distance completion", "".join(words), panels, both.key.tolist())
    answer = [_threshold(shares, "share", "a share of", "cloud of points")] if len(shares) else []
    if len(noisy):
        answer.append(_by_noise(noisy, lambda share: f"a noise of {100.0 * share:g} %"))
    return Part(
        "distances",
        "How few distances place points, and how exactly where they are noisy?",
        answer,
        [figure],
        [tables.outcome_table(both, "distances-outcomes", "Points placed")],
    )


def _threshold(runs: pd.DataFrame, argument: str, words: str, thing: str) -> str:
    """Say from where on each contender recovers the truth of every seed."""
    found: dict[float, list[str]] = {}
    for series in _curves(runs, argument, _recovered):
        whole = series.y >= 1.0
        last = np.flatnonzero(~whole)
        first = last[-1] + 1 if last.size else 0
        found.setdefault(float(series.x[first]) if first < len(whole) else np.inf, []).append(series.name)
    lines = [
        f"{_listed(names)} from {words} {short(place)} on" if np.isfinite(place) else f"{_listed(names)} nowhere"
        for place, names in sorted(found.items())
    ]
    return f"Every {thing} of {_seeds(runs)} is recovered by {'; by '.join(lines)}."


def _by_noise(runs: pd.DataFrame, level: Callable[[float], str]) -> str:
    """Say how the error grows with the noise, by the method that leads."""
    curves = {series.name: series for series in _curves(runs, "noise", _error)}
    one = curves.get("auto") or next(iter(curves.values()))
    steps = [f"{short(y, 2)} at {level(x)}" for x, y in zip(one.x, one.y, strict=True)]
    return f"The median error of {one.name} is {_listed(steps)}."


def _span(values: Sequence[float]) -> str:
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# Clusters -------------------------------------------------------------------------------------------------------------


def _clusters(runs: pd.DataFrame) -> Part | None:
    part = _group(runs, "clusters")
    if part.empty:
        return None
    instances = list(part.groupby("instance"))
    panels = [make(instance, here) for make in (_fall_panel, _accuracy_panel) for instance, here in instances]
    answer = []
    for instance, here in instances:
        found = outcomes.outcomes(here).sort_values("wall", kind="stable")
        quick, exact = found.iloc[0], found.loc[found.error.idxmin()]
        best = f"the best is {1.0 - exact.error:.3f} by {exact.contender} after {tables.seconds(exact.wall).text}"
        answer.append(
            f"{instance}: {quick.contender} ends first, after {tables.seconds(quick.wall).text}, with an accuracy of "
            f"{1.0 - quick.error:.3f}{f'; {best}' if exact.error < quick.error else ', which is the best'}."
        )
    caption = (
        f"How far F = ‖XXᵀ − M‖² is above the least that any of these methods found from the same start, in the median "
        f"over starts ({_seeds(part)}); and the accuracy of the labels where each run ended, one "
        "point per seed."
    )
    figure = Figure("clusters", "Clusters by symmetric NMF", caption, panels, part.key.tolist())
    return Part(
        "clusters",
        "Who finds clusters fastest, and how good are they?",
        answer,
        [figure],
        [tables.cluster_table(part)],
    )


def _fall_panel(instance: str, runs: pd.DataFrame) -> Panel:
    """Return how F falls towards the least value that any method found from the same start."""
    least = runs.groupby("seed").value.min()
    series = []
    levels = np.geomspace(1.0, 1e-7, 60)
    for name, mine in runs.groupby("contender", sort=False):
        spent = np.array(
            [
                [outcomes.to_value(run, least[run.seed] * (1.0 + level), "seconds") for level in levels]
                for run in mine.itertuples()
            ]
        )
        middle = np.median(spent, axis=0)
        shown = np.isfinite(middle) & (middle > 0.0)
        series.append(Series(name, middle[shown], levels[shown], "line"))
    return Panel(instance, "seconds", "F above the least", [one for one in series if one.x.size])


def _accuracy_panel(instance: str, runs: pd.DataFrame) -> Panel:
    series = []
    for name, mine in runs.groupby("contender", sort=False):
        cells = mine.groupby("seed")[["wall_seconds", "error"]].median()
        series.append(Series(name, cells.wall_seconds.to_numpy(), 1.0 - cells.error.to_numpy(), "points"))
    return Panel(instance, "seconds", "accuracy", series, ylog=False)


# Costs ----------------------------------------------------------------------------------------------------------------


def _prices(runs: pd.DataFrame) -> Part | None:
    part = _group(runs, "recovery-costs")
    table = outcomes.against_peers(part) if len(part) else pd.DataFrame()
    if table.empty:
        return None
    mean = summary.geometric_mean(table.ratio)
    answer = [
        f"auto is faster than the best peer on {int((table.ratio > 1.0).sum())} of {len(table)} problems, "
        f"{short(mean)} times in the geometric mean of those that a peer fits."
    ]
    dc = table[np.isfinite(table.dc_passes) & np.isfinite(table.peer_passes)]
    if len(dc):
        reads, waits = dc.dc_passes / dc.peer_passes, dc.dc_seconds / dc.auto
        answer.append(
            f"The paper's DC algorithm, each step certified, takes {_span(reads)} times the passes of that peer, and "
            f"{_span(waits)} times the seconds of auto."
        )
    missed = table[~np.isfinite(table.dc_passes)]
    if len(missed):
        answer.append(f"It does not fit {_listed(list(missed.instance))} within its time.")
    caption = (
        "log₂ of what a contender takes over what auto takes, from the same start to a relative residual of 10⁻⁴: one "
        "point per problem, the bar is the median; right of 0 is more than auto (1 is twice). Who does not get there "
        "stands at the edge."
    )
    panels = [_ratio_panel(part, unit) for unit in ("passes", "seconds")]
    figure = Figure("recovery-costs", "The price of a recovery, against auto", caption, panels, part.key.tolist())
    return Part(
        "recovery-costs",
        "What does a recovery cost, and what does the paper's DC algorithm cost beside it?",
        answer,
        [figure],
        [tables.price_table(table), tables.fit_table(part)],
    )


def _ratio_panel(runs: pd.DataFrame, unit: str) -> Panel:
    spent = outcomes.fitting(runs, unit)
    others = [name for name in spent.columns if name != "auto"]
    ratios = np.log2(spent[others].div(spent["auto"], axis=0).to_numpy())
    edge = 1.0 + max(np.abs(ratios[np.isfinite(ratios)]), default=3.0)
    series = []
    for place, name in enumerate(others):
        mine = np.clip(ratios[:, place][~np.isnan(ratios[:, place])], -edge, edge)
        series.append(Series(name, mine, np.full(len(mine), float(place)), "points"))
        if len(mine):
            series.append(Series(name, np.full(2, np.median(mine)), place + np.array([-0.3, 0.3]), "median"))
    return Panel(unit, f"log₂ ratio of {unit}", "", series, xlog=False, ylog=False, rows=others)


# The steps of DC ------------------------------------------------------------------------------------------------------


def _accuracy(runs: pd.DataFrame) -> Part | None:
    part = _group(runs, "dc-accuracy")
    if part.empty:
        return None
    panels = []
    for instance, here in part.groupby("instance", sort=False):
        for unit in ("steps", "passes"):
            panels.append(_residual_panel(instance, here, unit))
        panels.append(_gap_panel(instance, here))
    caption = (
        "The DC algorithm with convex steps solved until the certified gap is at most a share of the decrease that the "
        f"step has found, the 'accuracy'. The relative residual against steps and passes, medians over {_seeds(part)}; "
        "and the certified relative gap of every step of the first seed against the fall of F in it, relative to ‖d‖²."
    )
    found = outcomes.outcomes(part)
    answer = []
    for instance, here in found.groupby("instance", sort=False):
        few, many = here.loc[here.passes.idxmin()], here.loc[here.passes.idxmax()]
        if few.contender != many.contender:
            answer.append(
                f"{instance}: {few.contender} ends after {few.passes:.0f} passes, {many.contender} after "
                f"{many.passes:.0f}."
            )
    return Part(
        "dc-accuracy",
        "How exactly must the convex steps of the DC algorithm be solved?",
        answer,
        [Figure("dc-accuracy", "Inner accuracy against outer progress", caption, panels, part.key.tolist())],
        [],
    )


def _residual_panel(instance: str, runs: pd.DataFrame, unit: str) -> Panel:
    last = max(float(run.residual) for run in runs.itertuples())
    levels = np.geomspace(0.5, max(last, 1e-8), 60)
    series = []
    for name, mine in runs.groupby("contender", sort=False):
        spent = np.array([[outcomes.to_residual(run, level, unit) for level in levels] for run in mine.itertuples()])
        middle = np.median(spent, axis=0)
        shown = np.isfinite(middle)
        series.append(Series(name, middle[shown], levels[shown], "line"))
    return Panel(instance, unit, "relative residual", [one for one in series if one.x.size], xlog=False)


def _gap_panel(instance: str, runs: pd.DataFrame) -> Panel:
    series = []
    for name, mine in runs[runs.seed == runs.seed.min()].groupby("contender", sort=False):
        run = next(mine.itertuples())
        falls, gaps = -np.diff(outcomes.residuals(run) ** 2), np.asarray(run.trace_gap, dtype=float)[1:]
        shown = (falls > 0.0) & (gaps > 0.0) & np.isfinite(gaps)
        series.append(Series(name, falls[shown], gaps[shown], "points"))
    return Panel(f"{instance}: steps", "fall of F", "certified gap", [one for one in series if one.x.size])


def _metrics(runs: pd.DataFrame) -> Part | None:
    part = _group(runs, "dc-metrics").sort_values("instance", kind="stable")
    table = tables.metric_table(part)
    if table is None:
        return None
    pairs = {"B⁽⁰⁾/B*": "B⁽⁰⁾ takes {} times the passes of B*", "I/B⁽⁰⁾": "the Euclidean norm {} times those of B⁽⁰⁾"}
    answer = []
    for instance in dict.fromkeys(row[0].text for row in table.rows):
        said = []
        for pair, words in pairs.items():
            ratios = [row[-1].value for row in table.rows if (row[0].text, row[2].text) == (instance, pair)]
            said += [words.format(_span(ratios))] if ratios else []
        answer.append(as_many(f"{instance}: {', '.join(said)}."))
    return Part("dc-metrics", "Where does a metric pay in the convex steps?", answer, [], [table])
