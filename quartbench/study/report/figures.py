"""What does each figure of the report show? The data of every panel, before anything is drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from quartbench.study import costs
from quartbench.views import counted

from . import profiles, rates
from .fits import median_and_band, power_law
from .growth import SCALING, Points, points
from .words import gap_words, slug

#: The figures of the paper, by the group of runs that redraws them.
PAPER = {
    "figure-1a": "Figure 1a: well-conditioned rows",
    "figure-1b": "Figure 1b: ill-conditioned rows",
    "figure-2a": "Figure 2a: low coherence",
    "figure-2b": "Figure 2b: high coherence",
}

#: The group of runs for their κ: what they cost is of no interest.
CONDITIONING = "conditioning"

#: How the name of a figure begins that shows the curves of a group which is none of the paper's.
CURVES = "curves-"

#: Contenders that one panel can tell apart; where there are more, Bregman methods have panels of their own.
MANY, BREGMAN = 12, ("bregman", "abpg")

#: Points of a curve and of its band: what a small page and a smooth curve agree on.
LEVELS = 81

#: Costs that spread by more than this factor over the contenders go on a logarithmic axis.
WIDE = 10.0

#: Units of cost that are counted one by one.
COUNTED = ("iterations", "passes", "rounds")

#: What captions say of the axis of costs.
AXIS = (
    f"An axis of costs is logarithmic where methods end more than a factor of {WIDE:g} apart; what is reached at no "
    "cost stands at its left edge."
)


@dataclass(frozen=True)
class Series:
    """One contender in one panel: a line (with a band in x), steps, points, their median, a fit, a theory, a roof.

    A curve has its points marked and its band in y.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    kind: str = "line"
    low: np.ndarray | None = None
    high: np.ndarray | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes. ``rows`` names the places of a categorical vertical axis."""

    title: str
    xlabel: str
    ylabel: str
    series: list[Series]
    xlog: bool = True
    ylog: bool = True
    rows: list[str] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure: its file name, its words, its panels, and the runs that it is made of."""

    name: str
    title: str
    caption: str
    panels: list[Panel]
    keys: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return who is in it, in order of appearance."""
        return list(dict.fromkeys(series.name for panel in self.panels for series in panel.series))

    def frame(self) -> pd.DataFrame:
        """Return all of its data, one row per point."""
        parts = []
        for panel in self.panels:
            for series in panel.series:
                columns = {"panel": panel.title, "name": series.name, "kind": series.kind}
                columns |= {panel.xlabel: series.x, panel.ylabel: series.y}
                if series.low is not None:
                    columns |= {"least": series.low, "largest": series.high}
                parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def figures(runs: pd.DataFrame, kernels: dict | None) -> list[Figure]:
    """Return every figure that the runs at hand can fill, in the order of the page."""
    found = [gap_figure(runs, group) for group in PAPER]
    found += [rate_figure(runs), weight_figure(runs.attrs.get("weights"))]
    elsewhere = runs.group.isin([*PAPER, rates.GROUP, *SCALING, CONDITIONING]) | (runs.workers > 0)
    found += curve_figures(runs[~elsewhere])
    found += [scaling_figure(runs, group) for group in SCALING]
    found += [profile_figure(runs), ratio_figure(runs), kernel_figure(kernels)]
    return [figure for figure in found if figure is not None]


# The paper's figures --------------------------------------------------------------------------------------------------


def gap_figure(runs: pd.DataFrame, group: str) -> Figure | None:
    """Return the gap against iterations, passes and seconds for each instance of a group."""
    part = costs.tightest(costs.iterated(runs[runs.group == group]))
    if part.empty:
        return None
    panels = []
    bregman = part.method.isin(BREGMAN) & (part.contender.nunique() > MANY)
    for instance, cell in part.groupby("instance", sort=False):
        for words, here in (
            (instance, cell[~bregman[cell.index]]),
            (f"{instance}, Bregman", cell[bregman[cell.index]]),
        ):
            panels += [gap_panel(words, here, unit) for unit in costs.UNITS if len(here)]
    seeds = part.seed.nunique()
    known = np.isfinite(part.optimum.to_numpy(dtype=float)).all()
    caption = (
        f"Relative gap (f − f*)/|f*|, f* {'planted or certified to 10⁻¹¹' if known else 'bounded by certificates'}, "
        "never the least value that some method found. "
        f"Lines: the median cost over {counted(seeds, 'seed')} of reaching each gap; bands: all seeds. "
        f"Seconds include the set-up of the metric. {AXIS}"
    )
    return Figure(group, PAPER[group], caption, panels, part.key.tolist())


def curve_figures(runs: pd.DataFrame) -> list[Figure]:
    """Return the curves of every group of runs that left some."""
    found = (curve_figure(runs, group) for group in dict.fromkeys(runs.group))
    return [figure for figure in found if figure is not None]


def curve_figure(runs: pd.DataFrame, group: str) -> Figure | None:
    """Return the gap against seconds for each instance of a group that is none of the paper's."""
    part = costs.tightest(costs.iterated(runs[runs.group == group]))
    if part.empty:
        return None
    panels = [gap_panel(instance, cell, "seconds") for instance, cell in part.groupby("instance", sort=False)]
    caption = (
        "Relative gap against seconds, set-up included: medians over seeds, with bands over all of them. A curve ends "
        f"where the run did. {AXIS}"
    )
    return Figure(f"{CURVES}{slug(group)}", f"Convergence in the group {group}", caption, panels, part.key.tolist())


def gap_panel(instance: str, runs: pd.DataFrame, unit: str) -> Panel:
    """Return the median cost over seeds of reaching each gap, with a band over all seeds."""
    first = max(float(np.nanmax(trace[:1], initial=1e-3)) for trace in runs.trace_true)
    last = min(float(np.nanmin(trace, initial=1.0)) for trace in runs.trace_true)
    gaps = np.geomspace(min(first, 1.0), max(last, runs.rel_gap.min()), LEVELS)
    series = []
    for name, mine in runs.groupby("contender", sort=False):
        spent = np.array([costs.median(cell, gaps, unit) for _, cell in mine.groupby("seed")])
        middle, low, high = median_and_band(spent)
        shown = np.isfinite(middle)
        # A band ends where a seed did: beyond, its largest cost is not known.
        high = np.where(np.isfinite(high), high, middle)
        series.append(Series(name, middle[shown], gaps[shown], "line", low[shown], high[shown]))
    ends = [one.x.max() for one in series if one.x.size and one.x.max() > 0]
    wide = bool(ends) and max(ends) > WIDE * min(ends)
    if wide:
        edge = 1.0 if unit in COUNTED else min(float(one.x[one.x > 0].min()) for one in series if (one.x > 0).any())
        series = [_on_logarithms(one, edge) for one in series]
    return Panel(instance, unit, "relative gap", series, xlog=wide)


def _on_logarithms(series: Series, edge: float) -> Series:
    """Put what is reached at no cost, for which a logarithmic axis has no place, at its left edge."""
    x, low, high = (np.where(cost > 0, cost, edge) for cost in (series.x, series.low, series.high))
    kept = slice(max(np.count_nonzero(series.high == 0) - 1, 0), None)  # the start, not every gap above it
    return Series(series.name, x[kept], series.y[kept], series.kind, low[kept], high[kept])


# Rates ----------------------------------------------------------------------------------------------------------------


def rate_figure(runs: pd.DataFrame) -> Figure | None:
    """Return the gap against k on logarithmic axes on degenerate rows, apart by the rule for the step."""
    part = costs.iterated(runs[(runs.group == rates.GROUP) & np.isfinite(runs.optimum.to_numpy(dtype=float))])
    if part.empty:
        return None
    fixed = [json.loads(text).get("step") == "fixed" for text in part.settings]
    part = part.assign(step=np.where(fixed, "fixed steps", "line searches"))
    fitted = {(one.instance, one.name): one for one in rates.rates(runs)}
    panels = []
    for (instance, step), cell in part.groupby(["instance", "step"], sort=False):
        series = []
        for name, mine in cell.groupby("contender", sort=False):
            k, gap = _median_fall(mine)
            series.append(Series(name, k, gap))
            one = fitted.get((instance, name))
            if one is not None and one.theory is not None and k.size:
                ends = np.array([max(rates.LAST * k[-1], k[0]), k[-1]])
                start = 2.0 * np.interp(np.log(ends[0]), np.log(k), gap)  # apart from the curve that it is held against
                series.append(Series(name, ends, start * (ends / ends[0]) ** one.theory, "theory"))
        panels.append(Panel(f"{instance}, {step}", "iterations k", "relative gap", series))
    seeds = part.seed.nunique()
    caption = (
        "Rows of which all but a few are orthogonal to x*, so that ρ″(x*) is singular. Lines: the median over "
        f"{counted(seeds, 'seed')} of the least gap up to iteration k, above rounding. Sparse dots: the slope of the "
        "theorem, k⁻² for HomGD and k⁻⁴ for Accel-HomGD with scheduled restarts, over the part of the run that the "
        "exponents are fitted to."
    )
    title = "Rates on degenerate rows"
    return Figure(rates.GROUP, title, caption, panels, part.key.tolist())


def _median_fall(runs: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the median gap over runs against iterations, as far as half of them are above rounding."""
    falls = [fall for fall in map(rates.falling, runs.itertuples()) if fall[0].size]
    if not falls:
        return np.empty(0), np.empty(0)
    k = np.unique(np.geomspace(1.0, max(fall[0][-1] for fall in falls), LEVELS).round())
    last = [np.searchsorted(at, k, side="right").clip(1) - 1 for at, _ in falls]
    gaps = np.array([np.where(k <= at[-1], gap[place], 0.0) for (at, gap), place in zip(falls, last, strict=True)])
    middle = np.median(gaps, axis=0)
    return k[middle > 0.0], middle[middle > 0.0]


def weight_figure(record: dict | None) -> Figure | None:
    """Return the distance of Algorithm 3 to τ* against sweeps, with the rate as printed and as corrected."""
    rows = pd.DataFrame((record or {}).get("distances", []))
    if rows.empty:
        return None
    panels = []
    for p, cell in rows.groupby("p"):
        series = [
            Series(str(instance), here.sweep.to_numpy(), here.distance.to_numpy())
            for instance, here in cell.groupby("instance", sort=False)
        ]
        bounds = cell.groupby("sweep")[["printed", "corrected"]].max()
        for column, words in (("printed", "rate as printed"), ("corrected", "rate as corrected")):
            series.append(Series(words, bounds.index.to_numpy(), bounds[column].to_numpy()))
        panels.append(Panel(f"p = {p:g}", "sweeps k", "distance to τ*", series, xlog=False))
    caption = (
        "Algorithm 3: the largest |ln τᵢ⁽ᵏ⁾ − ln τᵢ*| after k sweeps. The proof of Prop. 5.8 gives "
        "((p − 1)^{k+1}/p)·ln(rm); printed is (1 − 1/p)^{k+1}·ln(rm), which is less."
    )
    return Figure("weights", "Lewis weights at general p", caption, panels)


# Scaling --------------------------------------------------------------------------------------------------------------


def scaling_figure(runs: pd.DataFrame, group: str) -> Figure | None:
    """Return the measures of a scaling group against what varies in it, with fits and the slopes of the theory."""
    label = SCALING[group][1]
    shown: dict[str, list[Series]] = {}
    for one in points(runs, group):
        shown.setdefault(one.measure, []).extend(_scaling_series(one))
    if not shown:
        return None
    panels = [Panel(measure, label, measure, series) for measure, series in shown.items()]
    caption = (
        "A point is an instance with a seed (the median of its repeats), a line the fitted power law, sparse dots the "
        "slope of the theory from the same start."
    )
    keys = costs.iterated(runs[runs.group == group]).key.tolist()
    return Figure(group, f"Scaling in {label}", caption, panels, keys)


def _scaling_series(one: Points) -> Iterator[Series]:
    """Yield the points, the fit through them, and the slope of the theory from where the fit starts."""
    yield Series(one.name, one.x, one.y, "points")
    fit = power_law(one.x, one.y)
    if fit is None:
        return
    ends = np.array([one.x.min(), one.x.max()])
    yield Series(one.name, ends, fit(ends), "fit")
    if one.theory is not None:
        yield Series(one.name, ends, fit(ends[:1])[0] * (ends / ends[0]) ** one.theory, "theory")


# Comparisons over all instances ---------------------------------------------------------------------------------------


def compared(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[float]]:
    """Return the runs that profiles are made of, and the gaps to compare them at.

    The largest full block of the groups ``catalogue`` and ``peers``; of all but scaling where there are none.
    """
    part = runs[runs.group.isin(["catalogue", "peers"])]
    if part.empty:
        part = costs.races(runs)
    table = costs.block(costs.table(part, part.rel_gap.min(), "passes")) if len(part) else pd.DataFrame()
    if table.shape[0] < 2 or table.shape[1] < 2:
        return part.iloc[:0], []
    cells = pd.MultiIndex.from_frame(part[costs.CELL])
    part = part[cells.isin(table.index) & part.contender.isin(table.columns)]
    last = costs.target(part)
    return part, [gap for gap in (last * 1e4, last * 1e2, last) if gap <= 0.1]


def profile_figure(runs: pd.DataFrame) -> Figure | None:
    """Return performance profiles in seconds and data profiles in passes at several gaps."""
    part, gaps = compared(runs)
    panels = []
    for unit, make, xlabel in (
        ("seconds", profiles.performance_profile, "times the least seconds"),
        ("passes", profiles.data_profile, "passes"),
    ):
        for gap in gaps:
            steps = make(costs.table(part, gap, unit))
            end = max((x[-1] for x, _ in steps.values()), default=1.0) * 1.1
            series = [Series(name, np.append(x, end), np.append(y, y[-1]), "steps") for name, (x, y) in steps.items()]
            kind = "performance profile" if unit == "seconds" else "data profile"
            panels.append(Panel(f"{kind}, gap {gap_words(gap)}", xlabel, "fraction solved", series, ylog=False))
    if not panels:
        return None
    count = len(part[costs.CELL].drop_duplicates())
    left = sorted(set(runs[runs.group.isin(part.group.unique())].contender) - set(part.contender))
    caption = (
        f"{count} problems (instances with a seed) on which all of these were run. Upper row: the fraction solved "
        "within a factor of the least time; lower row: the fraction solved within a number of passes. Higher is better."
        + (f" Not run on all of them, and so left out: {', '.join(left)}." if left else "")
    )
    return Figure("profiles", "Performance and data profiles", caption, panels, part.key.tolist())


def reference(part: pd.DataFrame, gap: float) -> str:
    """Return whom the others are held against: auto where it was run, else who wins most often in seconds."""
    table = costs.table(part, gap, "seconds")
    auto = part.contender[part.method == "auto"]
    if len(auto):
        return str(auto.iloc[0])
    winners = table.idxmin(axis=1)[np.isfinite(table.min(axis=1))]
    return str(winners.mode().iloc[0]) if len(winners) else str(table.columns[0])


def ratio_figure(runs: pd.DataFrame) -> Figure | None:
    """Return the log-ratios of seconds of every contender against one, at several gaps."""
    part, gaps = compared(runs)
    if not gaps:
        return None
    base = reference(part, gaps[-1])
    panels = []
    for gap in gaps:
        table = costs.table(part, gap, "seconds")
        others = [name for name in table.columns if name != base]
        series = []
        for place, name in enumerate(others):
            ratios = profiles.log_ratios(table, name, base)
            edge = 1.0 + max(np.abs(ratios[np.isfinite(ratios)]), default=3.0)
            ratios = np.clip(ratios, -edge, edge)
            series.append(Series(name, ratios, np.full(len(ratios), float(place)), "points"))
            if len(ratios):
                middle = float(np.median(ratios))
                series.append(Series(name, np.array([middle, middle]), place + np.array([-0.3, 0.3]), "median"))
        panels.append(
            Panel(f"gap {gap_words(gap)}", "log₂ ratio of seconds", "", series, xlog=False, ylog=False, rows=others)
        )
    caption = (
        f"log₂(seconds / seconds of {base}): one point per problem, the bar is the median; right of 0 is slower than "
        f"{base} (1 is twice the time). Problems that only one of the two solved stand at the edge."
    )
    return Figure("ratios", f"Log-ratios of time against {base}", caption, panels, part.key.tolist())


# Kernels --------------------------------------------------------------------------------------------------------------


def kernel_figure(kernels: dict | None) -> Figure | None:
    """Return the roofline of the kernels: bytes read per second against bytes read, under the measured bandwidth."""
    if not kernels or not kernels["rows"]:
        return None
    rows = pd.DataFrame(kernels["rows"]).sort_values("seconds")
    size = (rows.gigabytes_per_second * rows.seconds * 1e9).to_numpy()
    roof = float(np.median(rows.gigabytes_per_second / rows.bandwidth_fraction))
    ends = np.array([size.min() / 2, size.max() * 2])
    series = [
        Series("quartbench kernels", size, rows.gigabytes_per_second.to_numpy(), "points"),
        Series("the same as one writes it first", size, size / rows.baseline_seconds.to_numpy() / 1e9, "points"),
        Series("the same, tuned", size, size / rows.tuned_seconds.to_numpy() / 1e9, "points"),
        Series("measured bandwidth", ends, np.array([roof, roof]), "roof"),
    ]
    caption = (
        f"Bytes that a call must read, over its time, on {kernels['threads']} threads. The roof is the speed at which "
        f"this machine sums a 160 MB array in parallel, {roof:.1f} GB/s; what fits into a cache may rise above it. A "
        "kernel does about half a floating-point operation per byte, so that memory is the roof that counts."
    )
    panel = Panel("", "bytes read by a call", "GB/s", series)
    return Figure("kernels", "Roofline of the kernels", caption, [panel])
