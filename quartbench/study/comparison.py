"""A study from Python: problems and solvers in, a table of runs, curves and a page out."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from quartbench.errors import ProblemError
from quartbench.model import Problem
from quartbench.solvers import Solver, solvers
from quartbench.solvers.plots import COLOURS

from . import costs, grid, store, summary
from .grid.entries import read_instances, read_methods, read_metric, read_positive, read_seed, read_whole
from .runner import Runner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Panels of curves, at most: one for each problem.
PANELS = 12


class Comparison:
    """What :func:`compare` returns.

    Attributes
    ----------
    runs : DataFrame
        One row per run; ``quartbench compare --columns`` says what the columns mean.
    times : DataFrame
        Median seconds to the gap: one row per problem and gap, one column per contender; infinite where not reached.
    directory : Path
        The results on disk, which ``quartbench report`` reads too.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.runs = costs.prepare(store.read(directory))
        self.times = summary.times(self.runs)

    def page(self, out: str | Path | None = None) -> Path:
        """Write the report of the runs, a page that works offline, and return its path."""
        from .report import write

        return write(self.directory, None if out is None else Path(out)).page

    def plot(self, against: str = "seconds") -> Figure:
        """Draw the gap of every contender on each problem against "seconds" (set-up included) or "passes"."""
        if against not in ("seconds", "passes"):
            raise ProblemError(f"against must be 'seconds' or 'passes', found {against!r}")
        from matplotlib import pyplot, ticker

        first = self.runs[
            self.runs["repeat"] == self.runs.groupby(["instance", "contender"])["repeat"].transform("min")
        ]
        instances = list(dict.fromkeys(first["instance"]))[:PANELS]
        colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(first["contender"]))}
        columns = min(3, len(instances))
        rows = -(-len(instances) // columns)
        figure, panels = pyplot.subplots(
            rows, columns, figsize=(3.6 * columns, 2.8 * rows), layout="constrained", squeeze=False, sharey=True
        )
        for panel, name in zip(panels.flat, instances, strict=False):
            for run in first[first["instance"] == name].itertuples():
                spent = np.asarray(run.trace_passes if against == "passes" else run.trace_seconds, dtype=float)
                spent = spent + (run.setup_seconds if against == "seconds" else 0.0)
                gap = np.asarray(run.trace_true, dtype=float)
                shown = np.isfinite(gap) & (gap > 0.0)
                panel.semilogy(spent[shown], gap[shown], color=colours[run.contender], linewidth=1.4)
            panel.set_title(name, fontsize="medium")
            panel.set_xlabel("time, set-up included" if against == "seconds" else against)
            if against == "seconds":
                panel.set_xscale("log")
                panel.xaxis.set_major_formatter(ticker.EngFormatter("s"))
                panel.xaxis.set_minor_formatter(ticker.NullFormatter())
            panel.grid(alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
        for panel in panels.flat[len(instances) :]:
            panel.set_visible(False)
        for left in panels[:, 0]:
            left.set_ylabel("relative gap")
        lines = [pyplot.Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
        figure.legend(handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
        return figure

    def __repr__(self) -> str:
        return f"Comparison({len(self.runs)} runs of {self.runs['contender'].nunique()} contenders in {self.directory})"

    def _repr_html_(self) -> str:
        return self.times._repr_html_()


def compare(
    problems: Problem | str | Iterable[Problem | str] | Mapping[str, Problem | str],
    solvers: Any = ("auto",),
    metrics: str | Sequence[str] = ("auto",),
    rel_gaps: float | Sequence[float] = (1e-8,),
    seeds: int | Sequence[int] = (0,),
    *,
    out: str | Path | None = None,
    time_limit: float = 60.0,
    max_iter: int = 100_000,
    repeats: int = 3,
    threads: int | None = None,
    restart: bool = False,
) -> Comparison:
    """Run solvers against each other on problems of your own, as ``quartbench compare`` does.

    Runs are made one after another in a process of their own and repeated until their median is stable; a script that
    calls this needs ``if __name__ == "__main__":`` around it, as every script that starts processes.

    Parameters
    ----------
    problems : Problem, str, or several, or a dictionary with their names
        Problems, files of saved ones, or instances by name, ``"spectrum:m=2000,n=100,sigma_min=0.1"``.
    solvers : str, Solver or class, or several
        Names, with settings as ``"homgd:step=fixed"``, ``"file.py:Class"``, or solvers; a class of your own has to be
        in a file, as another process imports it.
    metrics, rel_gaps, seeds
        Each solver runs in each metric, to each gap, on each seed of instances by name.
    out : path, optional
        The directory of the results; where it has some already, they are kept. A temporary one if not given.
    time_limit, max_iter, repeats, threads, restart
        As for ``quartbench compare``.

    Returns
    -------
    Comparison
        ``.runs`` and ``.times`` are tables, ``.plot()`` draws the curves, ``.page()`` writes the report.

    Examples
    --------
    >>> import quartbench as qb
    >>> problem = qb.Problem([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]], [1.0, 1.0])
    >>> methods = ["auto", "homgd:step=fixed"]
    >>> found = qb.compare({"mine": problem}, methods, metrics="uniform")  # doctest: +SKIP
    >>> found.times, found.page()  # doctest: +SKIP
    """
    directory = Path(tempfile.mkdtemp(prefix="quartbench-") if out is None else out)
    group = grid.Group(
        "comparison",
        _instances(problems, directory / "_problems"),
        read_methods([_entry(one) for one in _several(solvers)]),
        metrics=tuple(read_metric(one, "metrics") for one in _several(metrics)),
        seeds=tuple(read_seed(one, "seeds") for one in _several(seeds)),
        rel_gaps=tuple(read_positive(one, "rel_gaps") for one in _several(rel_gaps)),
        max_iter=read_whole(max_iter, "max_iter", 1),
        time_limit=read_positive(time_limit, "time_limit"),
        repeats=read_whole(repeats, "repeats", 1),
    )
    study = grid.Study("comparison", (group,), "made from Python")
    threads = numba.get_num_threads() if threads is None else read_whole(threads, "threads", 1)
    Runner(study, directory, threads, "quartbench.compare(…)", restart=restart).run()
    return Comparison(directory)


def _several(given: Any) -> list:
    """Return what was given as a list: one thing, or several."""
    if isinstance(given, str | Problem | Solver) or inspect.isclass(given) or not isinstance(given, Iterable):
        return [given]
    found = list(given)
    if not found:
        raise ProblemError(
            "compare needs at least one problem, solver, metric, gap and seed, found none of one of them"
        )
    return found


def _instances(problems: Any, folder: Path) -> tuple[grid.Instance, ...]:
    """Return the instances of problems, which are saved in a folder under their names."""
    given = _several(problems.items() if isinstance(problems, Mapping) else problems)
    named = given if isinstance(problems, Mapping) else [(f"problem {n}", one) for n, one in enumerate(given, 1)]
    found: list[grid.Instance] = []
    for name, one in named:
        if isinstance(one, Problem):
            if not name or Path(name).name != name:
                raise ProblemError(f"problems must have names that can be those of files, found {name!r}")
            folder.mkdir(parents=True, exist_ok=True)
            found += read_instances(str(one.save(folder / f"{name}.npz")))
        elif isinstance(one, str | Path):
            found += read_instances(str(one))
        else:
            raise ProblemError(f"problems must be Problems, files or instances by name, found {type(one).__name__}")
    return tuple(dict.fromkeys(found))


def _changed(solver: Any) -> dict[str, Any]:
    """Return the settings of a solver that differ from those it has by default."""
    try:
        usual = vars(type(solver)())
    except TypeError:  # there are none by default
        usual = {}
    return {key: value for key, value in vars(solver).items() if key[0] != "_" and usual.get(key, solver) != value}


def _entry(solver: Any) -> str | dict[str, Any]:
    """Return the entry of a study for a solver: its name or file with its settings."""
    if isinstance(solver, str | dict):
        return solver
    cls = solver if inspect.isclass(solver) else type(solver)
    settings = {} if inspect.isclass(solver) else _changed(solver)
    if solvers().get(getattr(cls, "name", "")) is cls and cls.__module__.startswith("quartbench."):
        return {"method": cls.name, **settings}
    try:
        file = inspect.getsourcefile(cls)
        inspect.getsource(cls)  # raises where the file, as that of a console, does not have it
    except (OSError, TypeError):
        file = None
    if file is None or not Path(file).is_file():
        raise ProblemError(f"{cls.__name__} must be in a file, which another process imports: 'file.py:{cls.__name__}'")
    return {"method": f"{file}:{cls.__name__}", **settings}
