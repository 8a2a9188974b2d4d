"""Pictures: data in, a file out. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quartbench.errors import ProblemError

if TYPE_CHECKING:
    from quartbench.solvers import Result

#: Colours that stay apart in print, on both backgrounds and for the colour-blind (Okabe & Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

#: What Matplotlib can write without more to install.
FORMATS = (".svg", ".png", ".pdf")


def check_format(path: Path) -> None:
    """Raise where a plot of that name cannot be written, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise ProblemError(f"a plot must end in {', '.join(FORMATS)}, found {path.name!r}")


def draw_history(result: Result, path: Path) -> Path:
    """Draw the certified gap of a run against its iterations, passes and seconds, and return the path."""
    path = Path(path)
    check_format(path)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    history = result.history
    shown = np.isfinite(history.gap)
    if not shown.any():
        raise ProblemError("the run has no certified gap to plot")
    figure, panels = pyplot.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
    axes = {"iteration": "iterations", "passes": "passes", "seconds": "seconds"}
    for panel, (column, label) in zip(panels, axes.items(), strict=True):
        panel.semilogy(history[column][shown], history.gap[shown], color=COLOURS[0], linewidth=1.6)
        restarts = shown & history.restart
        if restarts.any():
            panel.plot(history[column][restarts], history.gap[restarts], ".", color=COLOURS[1], label="restart")
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("certified relative gap")
    if panels[0].get_legend_handles_labels()[0]:
        panels[0].legend(frameon=False)
    figure.suptitle(f"{result.solver} in the metric {result.metric}: gap {result.gap:.1e}", fontsize=10)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ProblemError(f"cannot write {path}: {error.strerror}") from error
    finally:
        pyplot.close(figure)
    return path
