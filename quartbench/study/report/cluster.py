"""What do methods cost where rows are on workers? Gap against rounds, bytes and seconds, and what a sample is worth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from quartbench.study import costs

from .figures import Figure, Panel, Series, gap_panel

#: The groups with curves, and what is on them.
GROUPS = {
    "cluster": "Rows on workers, all alike",
    "cluster-coherent": "Rows on workers, of which a few carry three directions",
}

#: What a gap is drawn against.
UNITS = ("rounds", "bytes", "seconds")


def figures(runs: pd.DataFrame, record: dict | None) -> list[Figure]:
    """Return the figures of the section that the runs at hand can fill."""
    found = [traffic_figure(runs, group) for group in GROUPS]
    return [figure for figure in (*found, sample_figure(record)) if figure is not None]


def traffic_figure(runs: pd.DataFrame, group: str) -> Figure | None:
    """Return the gap against rounds, bytes and seconds in a group."""
    part = costs.tightest(costs.iterated(runs[(runs.group == group) & (runs.workers > 0)]))
    if part.empty:
        return None
    panels = [
        gap_panel(f"{instance}" if unit == UNITS[0] else "", cell, unit)
        for instance, cell in part.groupby("instance", sort=False)
        for unit in UNITS
    ]
    workers = " or ".join(f"{count}" for count in sorted(set(part.workers)))
    caption = (
        f"Relative gap against rounds (how often a method waited for sums of all blocks), bytes (what went to all "
        f"blocks and came back) and seconds with the set-up, on a Dask cluster of {workers} worker processes of one "
        "thread on one machine. Rounds and bytes are those of the iterations: a metric uniform or sampled takes a "
        "round more before, Lewis weights two for each of their sweeps."
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
        "The relative constants of eq. (spag), μₘ∇²ρ̃ ⪯ ∇²ρ ⪯ Lₘ∇²ρ̃, of samples of 100 000 terms in 60 variables with "
        "column scales over two decades: the extreme eigenvalues over the minimiser and four other points, medians "
        "over samples. Where all rows are alike, so are Lewis weights within their accuracy, and both kinds of samples "
        "are the same. Steps in the geometry of a sample need some Lₘ/μₘ rounds for each digit, whatever the "
        "conditioning of ρ."
    )
    return Figure("samples", "How like the whole is a sample?", caption, panels)
