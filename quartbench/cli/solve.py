"""``quartbench solve``: the minimiser of one problem, with a certificate of how good it is."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from quartbench import views

from .display import METRIC_NAMES, fact_table, json_text, require_folder, time_words

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from quartbench.model import Problem
    from quartbench.solvers import Result

EXAMPLES = """\b
Examples:
  quartbench solve A.npy c.npy --rel-gap 1e-10 --out x.npy
  quartbench solve A.csv c.csv --cone orthant --out x.csv
  quartbench solve A.mtx c.mtx --metric lewis --plot gap.svg
  quartbench solve problem.npz --solver homgd --json
  quartbench solve blocks/ c.npy
  quartbench solve blocks/ c.npy --scheduler tcp://10.0.0.1:8786
"""

#: What is printed of a result, besides its solver and metric.
SHOWN = (
    "status",
    "message",
    "fun",
    "lower_bound",
    "gap",
    "proved",
    "nit",
    "passes",
    "rounds",
    "bytes",
    "setup_time",
    "solve_time",
)

#: Numbers of the point that are printed; --out writes all.
ENTRIES = 8

#: What separates the numbers of a written point, by the end of the file's name.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}


@click.command(epilog=EXAMPLES)
@click.argument("source", metavar="ROWS|PROBLEM", type=click.Path(exists=True, path_type=Path))
@click.argument("linear", metavar="[C]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rank", type=click.IntRange(1), help="Rows of a term [default: 1; a saved problem has its own].")
@click.option("--cone", help="free, orthant, … from 'quartbench list' [default: free, or that of a saved problem].")
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    help="A name from 'quartbench list', or file.py:Class, perhaps with :setting=value.",
)
@click.option("--metric", default="auto", show_default=True, help=METRIC_NAMES)
@click.option("--rel-gap", default=1e-6, show_default=True, type=float, help="The certified relative gap to reach.")
@click.option("--max-iter", default=100_000, show_default=True, type=int, help="The most iterations.")
@click.option("--time-limit", type=float, help="The most seconds of set-up and iterations.")
@click.option("--scheduler", help="A Dask scheduler, tcp:// or tls://, whose workers read the rows and keep them.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the point there (.npy, .csv, …).")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the gap there (.svg, .png, .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def solve(
    source, linear, rank, cone, solver, metric, rel_gap, max_iter, time_limit, scheduler, out, plot, as_json
) -> None:
    """Solve one problem to a certified gap.

    ROWS holds the stacked rows of the terms (complex ones for phase retrieval), and C the vector c. Both may be .csv,
    .tsv, .txt, .parquet, Matrix Market (.mtx, .mtx.gz), .npy, or .npz of one array or of scipy.sparse.save_npz; a .npz
    of two arrays named A and c holds both. A directory of .npy or Parquet files holds blocks of rows, which stay on
    disk: they may be larger than memory. A PROBLEM saved by quartbench (.npz) holds all of it; --cone takes the place
    of its own. Nothing is unpickled.

    The exit code is 0 where the gap was reached, else 1; the point is written in both cases.
    """
    from quartbench import solvers
    from quartbench.distributed import connected
    from quartbench.errors import LostError
    from quartbench.study.figures import check_format
    from quartbench.study.files import read_problem

    if plot is not None:
        check_format(plot)
    if out is not None and out.suffix.lower() not in (".npy", *SEPARATORS):
        raise click.UsageError(f"--out must end in {', '.join(('.npy', *SEPARATORS))}, found {out.name!r}")
    for path in (out, plot):
        require_folder(path)
    with nullcontext() if scheduler is None else connected(scheduler) as client:
        problem = read_problem(source, linear, rank, cone, client)
        try:
            result = solvers.solve(
                problem,
                solver=solver,
                metric=metric,
                rel_gap=rel_gap,
                max_iter=max_iter,
                time_limit=time_limit,
                progress=not as_json and sys.stderr.isatty(),
            )
        except LostError as lost:
            if out is not None and lost.x is not None:
                _write_point(lost.x, out)
                raise click.ClickException(f"{lost}; the best point so far is in {out}") from lost
            raise click.ClickException(str(lost)) from lost
    written = _written(result, out, plot)
    record = {"solver": result.solver, "metric": result.metric} | {name: result[name] for name in SHOWN}
    if as_json:
        click.echo(json_text(record | {"x": _listed(result.x)}))
    else:
        Console().print(_table(problem, record, result.x))
    for path in written:
        click.echo(f"written: {path}", err=True)
    if not result.success:
        sys.exit(1)


def _written(result: Result, out: Path | None, plot: Path | None) -> list[Path]:
    """Write the point and the plot that were asked for, and return their paths."""
    from quartbench.study.figures import draw_history

    written = []
    if out is not None:
        _write_point(result.x, out)
        written.append(out)
    if plot is not None:
        written.append(draw_history(result, plot))
    return written


def _write_point(x: np.ndarray, out: Path) -> None:
    """Write the point in the format of the file's ending, all of its digits; complex numbers as two columns in text."""
    import numpy as np

    ending = out.suffix.lower()
    try:
        with out.open("wb") as file:
            if ending == ".npy":
                np.save(file, x, allow_pickle=False)
            else:
                table = x.view(float).reshape(len(x), -1) if x.dtype.kind == "c" else x
                np.savetxt(file, table, "%.17g", SEPARATORS[ending])
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from error


def _traffic(record: dict[str, Any]) -> str:
    """Return what went to the workers of a cluster, in words; nothing where the rows are here."""
    return f", {record['rounds']} rounds of {record['bytes'] / 1e6:.3g} MB in all" if record["rounds"] else ""


def _listed(x: np.ndarray) -> list:
    """Return the point as lists, complex numbers as [real, imaginary]."""
    return (x.view(float).reshape(*x.shape, 2) if x.dtype.kind == "c" else x).tolist()


def _shown(x: np.ndarray) -> str:
    """Return the first numbers of the point."""
    words = ", ".join(f"{number:.6g}" for number in x.reshape(-1)[:ENTRIES])
    return words if x.size <= ENTRIES else f"{words}, … (--out writes all {x.size})"


def _table(problem: Problem, record: dict[str, Any], x: np.ndarray) -> Table:
    form = problem.form
    colour = "green" if record["status"] in ("converged", "trivial") else "yellow"
    facts = {
        "problem": f"m = {form.terms}, n = {form.dim}, r = {form.rank}, cone {escape(problem.cone.name)}",
        "method": escape(f"{record['solver']} in the metric {record['metric']}"),
        "status": f"[{colour}]{record['status']}[/]: {escape(record['message'])}",
        "f(x)": f"{record['fun']:.12g}",
        "certified": views.certified(record["lower_bound"], record["gap"], record["proved"]),
        "x": _shown(x),
        "work": views.work(record["nit"], record["passes"]) + _traffic(record),
        "time": f"set-up {time_words(record['setup_time'])}, solve {time_words(record['solve_time'])}",
    }
    return fact_table(facts.items())
