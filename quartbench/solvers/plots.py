"""How did runs go? The certified gap against passes and seconds; Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quartbench.errors import ProblemError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .results import History, Result

#: Colours that stay apart in print, on both backgrounds and for the colour-blind (Okabe & Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

#: What runs are drawn against, with the words for it.
AXES = {"passes": "passes", "seconds": "time of the method"}


def plot(
    *results: Result | History, labels: Sequence[str] | None = None, against: Sequence[str] = tuple(AXES)
) -> Figure:
    """Draw the certified gap of runs against what they cost, circles where they restarted, and return the figure.

    Parameters
    ----------
    *results : Result or History
        What ``solve`` returned, on the same problem or on several.
    labels : sequence of str, optional
        One for each; the solver and its metric where not given.
    against : sequence of {"passes", "seconds", "iteration"}
        A panel for each: passes and seconds unless given.

    Examples
    --------
    >>> import quartbench as qb
    >>> problem = qb.instances.spectrum(m=200, n=20, sigma_min=0.1, seed=0)
    >>> names = "homgd", "accel-homgd"
    >>> runs = [qb.solve(problem, name, rel_gap=1e-8) for name in names]
    >>> figure = qb.plot(*runs)
    >>> figure.savefig("gaps.svg")  # doctest: +SKIP
    """
    if not results:
        raise ProblemError("plot needs at least one result")
    if labels is not None and len(labels) != len(results):
        raise ProblemError(f"labels must be one for each of {len(results)} results, found {len(labels)}")
    words = AXES | {"iteration": "iterations"}
    for name in against:
        if name not in words:
            raise ProblemError(f"against must name {', '.join(words)}, found {name!r}")
    histories = [getattr(result, "history", result) for result in results]
    for history in histories:
        if not hasattr(history, "gap"):
            raise ProblemError(
                f"plot takes results of solve, or their histories, found {type(history).__name__}"
                + ("; give them one by one: plot(*results)" if isinstance(history, list | tuple) else "")
            )
    shown = [np.isfinite(history.gap) & (history.gap > 0.0) for history in histories]
    if not any(mask.any() for mask in shown):
        raise ProblemError("the run has no certified gap to plot")
    from matplotlib import pyplot, ticker

    width = 3.0 * len(against) + 1.0
    figure, grid = pyplot.subplots(
        1, len(against), figsize=(width, 3.2), sharey=True, layout="constrained", squeeze=False
    )
    panels = grid[0]
    for number, (result, history, mask) in enumerate(zip(results, histories, shown, strict=True)):
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "linewidth": 1.6}
        style["linestyle"] = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
        style["marker"] = "." if np.count_nonzero(mask) < 30 else ""
        label = labels[number] if labels is not None else _label(result)
        for panel, name in zip(panels, against, strict=True):
            panel.semilogy(history[name][mask], history.gap[mask], label=label, **style)
            restarts = mask & history.restart
            if restarts.any():
                panel.plot(history[name][restarts], history.gap[restarts], "o", mfc="none", color=style["color"])
    for panel, name in zip(panels, against, strict=True):
        panel.set_xlabel(words[name])
        panel.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=name != "seconds"))
        if name == "seconds":
            panel.xaxis.set_major_formatter(ticker.EngFormatter("s"))
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("certified relative gap")
    if panels[0].get_legend_handles_labels()[0]:
        lines, names = panels[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def _label(result: Any) -> str:
    solver, metric = getattr(result, "solver", ""), getattr(result, "metric", "")
    return f"{solver} in the metric {metric}" if solver else "_"
