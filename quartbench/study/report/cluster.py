"""What do methods cost where rows are on workers? Gap against rounds, bytes and seconds, and what a sample is worth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from quartbench.distributed.scaling import Shape, predict
from quartbench.errors import ProblemError
from quartbench.study import costs, modelling

from .figures import AXIS, Figure, Panel, Series, gap_panel

#: The groups with curves, and what is on them.
GROUPS = {
    "cluster": "Rows on workers, all alike",
    "cluster-coherent": "Rows on workers, of which a few carry three directions",
}

#: What a gap is drawn against.
UNITS = ("rounds", "bytes", "seconds")


#: The problem that is predicted past this machine, and on how many workers.
LARGE, WORKERS = (1e10, 1e4), (32, 64, 128, 256, 512, 1024, 2048, 4096)


def figures(runs: pd.DataFrame, record: dict | None, cores: int = 1) -> list[Figure]:
    """Return the figures of the section that the runs at hand can fill, made on a machine with so many cores."""
    found = [traffic_figure(runs, group) for group in GROUPS]
    return [figure for figure in (*found, sample_figure(record), scale_figure(runs, cores)) if figure is not None]


def traffic_figure(runs: pd.DataFrame, group: str) -> Figure | None:
    """Return the gap against rounds, bytes and seconds in a group."""
    part = costs.tightest(costs.iterated(runs[(runs.group == group) & (runs.workers > 0)]))
    if part.empty:
        return None
    panels = [
        gap_panel(str(instance), cell, unit)
        for instance, cell in part.groupby("instance", sort=False)
        for unit in UNITS
    ]
    workers = " or ".join(f"{count}" for count in sorted(set(part.workers)))
    caption = (
        f"Relative gap against rounds (how often a method waited for sums of all blocks), bytes (what went to all "
        f"blocks and came back) and seconds with the set-up, on a Dask cluster of {workers} worker processes of one "
        "thread on one machine. Rounds and bytes are those of the iterations: a metric uniform or sampled takes a "
        f"round more before, Lewis weights two for each of their sweeps. {AXIS}"
    )
    return Figure(group, GROUPS[group], caption, panels, part.key.tolist())


def sampled(record: dict | None) -> pd.DataFrame:
    """Return μ_m and L_m of samples with their ratio, the medians over seeds."""
    rows = pd.DataFrame((record or {}).get("rows", []))
    if rows.empty:
        return rows
    rows["condition"] = rows.high / rows.low
    keys = ["instance", "sampling", "share"]
    return rows.groupby(keys, sort=False)[["terms", "low", "high", "condition"]].median().reset_index()


def sample_figure(record: dict | None) -> Figure | None:
    """Return μ_m and L_m against the size of the sample."""
    rows = sampled(record)
    if rows.empty:
        return None
    panels = []
    for instance, cell in rows.groupby("instance", sort=False):
        series = []
        for sampling, here in cell.groupby("sampling", sort=False):
            for column, sign in (("low", "μₘ"), ("high", "Lₘ")):
                shown = np.isfinite(here[column].to_numpy())
                series.append(
                    Series(
                        f"{sign}, {sampling} sampling",
                        here.terms.to_numpy()[shown],
                        here[column][shown].to_numpy(),
                        "curve",
                    )
                )
        panels.append(Panel(str(instance), "terms in the sample", "μₘ and Lₘ", series))
    caption = (
        "The relative constants of the paper's §2.2, μₘ∇²ρ̃ ⪯ ∇²ρ ⪯ Lₘ∇²ρ̃, of samples of 100 000 terms in 60 variables "
        "with column scales over two decades: the extreme eigenvalues over the minimiser and four other points, "
        "medians over samples. Where all rows are alike, so are Lewis weights within their accuracy, and both kinds of "
        "samples are the same. Steps in the geometry of a sample need some Lₘ/μₘ rounds for each digit, whatever the "
        "conditioning of ρ."
    )
    return Figure("samples", "How like the whole is a sample?", caption, panels)


def scale_figure(runs: pd.DataFrame, cores: int) -> Figure | None:
    """Return the model of ``quartbench scale`` fitted to these runs: against them, and past this machine."""
    methods = modelling.measured(runs)
    if not methods:
        return None
    try:
        found, part = modelling.fit(runs, cores)
    except ProblemError:  # too few runs
        return None
    against = [
        Series(str(name), mine.solve_seconds.to_numpy(), mine.predicted.to_numpy(), "points")
        for name, mine in part.groupby("method", sort=False)
    ]
    ends = np.array([part.solve_seconds.min(), part.solve_seconds.max()])
    against.append(Series("as measured", ends, ends, "theory"))
    past: dict[str, list[float]] = {name: [] for name in methods}
    for workers in WORKERS:
        for one in predict(Shape(*LARGE, workers), methods, found.rates):
            past[one.method].append(one.seconds)
    x = np.array(WORKERS, dtype=float)
    panels = [
        Panel("the runs of this study", "seconds measured", "seconds predicted", against),
        Panel(
            "10¹⁰×10⁴ rows, gap 10⁻⁶",
            "workers",
            "seconds predicted",
            [Series(name, x, np.array(y), "curve") for name, y in past.items()],
        ),
    ]
    caption = (
        f"A model of latency, tasks, bytes, reads and operations, fitted to {len(part)} runs with rows on workers, the "
        f"fastest of their repeats. Each predicted from the others, they are off by a factor of {found.usual:.2f} in "
        f"the median and {found.worst:.2f} at most. Right: what it predicts past this machine, with the network that "
        "was measured here, which is loopback, and the rounds of the runs above; 'quartbench scale' does so for any "
        "size or network."
    )
    return Figure("scale", "Past this machine", caption, panels, part.key.tolist())
