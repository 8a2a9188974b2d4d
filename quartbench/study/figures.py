"""Pictures: data in, a file out. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quartbench.errors import ProblemError
from quartbench.solvers.plots import COLOURS, plot

__all__ = ["COLOURS", "check_format", "draw_history", "save"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quartbench.solvers import Result

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
    figure = plot(result, against=("iteration", "passes", "seconds"))
    figure.legends[0].remove()
    figure.suptitle(f"{result.solver} in the metric {result.metric}: gap {result.gap:.1e}", fontsize=10)
    return save(figure, path)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, close it, and return the path."""
    from matplotlib import pyplot

    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ProblemError(f"cannot write {path}: {error.strerror}") from error
    finally:
        pyplot.close(figure)
    return path
