"""``quartbench solve``: the minimiser of one problem, with a certificate of how good it is."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from .display import fact_table, json_text, time_words

if TYPE_CHECKING:
    from rich.table import Table

    from quartbench.model import Problem
    from quartbench.solvers import Result

EXAMPLES = """\b
Examples:
  quartbench solve A.npy c.npy --rel-gap 1e-10 --out x.npy
  quartbench solve A.mtx c.npy --metric lewis --plot gap.svg
  quartbench solve problem.npz --solver homgd
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
    "nit",
    "passes",
    "rounds",
    "bytes",
    "setup_time",
    "solve_time",
)


@click.command(epilog=EXAMPLES)
@click.argument("source", metavar="ROWS|PROBLEM", type=click.Path(exists=True, path_type=Path))
@click.argument("linear", metavar="[C]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rank", default=1, show_default=True, type=click.IntRange(1), help="Rows of a term.")
@click.option("--cone", default="free", show_default=True, help="The cone: free, orthant or second-order.")
@click.option("--solver", default="auto", show_default=True, help="A name from 'quartbench list', or file.py:Class.")
@click.option("--metric", default="auto", show_default=True, help="identity, uniform, lewis, diagonal or auto.")
@click.option("--rel-gap", default=1e-6, show_default=True, type=float, help="The certified relative gap to reach.")
@click.option("--max-iter", default=100_000, show_default=True, type=int, help="The most iterations.")
@click.option("--time-limit", type=float, help="The most seconds of set-up and iterations.")
@click.option("--scheduler", help="A Dask scheduler, tcp:// or tls://, whose workers read the rows and keep them.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the point there, as .npy.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the gap there (.svg, .png, .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def solve(
    source, linear, rank, cone, solver, metric, rel_gap, max_iter, time_limit, scheduler, out, plot, as_json
) -> None:
    """Solve one problem to a certified gap.

    ROWS holds the stacked rows of the terms, as a dense .npy (real, or complex for phase retrieval) or a sparse Matrix
    Market .mtx file, and C the vector c as .npy. A directory of .npy or Parquet files holds blocks of rows, which stay
    on disk: they may be larger than memory. A PROBLEM saved by quartbench (.npz) holds all of it.

    The exit code is 0 where the gap was reached, else 1; the point is written in both cases.
    """
    from quartbench import solvers
    from quartbench.distributed import connected
    from quartbench.errors import LostError
    from quartbench.study.figures import check_format
    from quartbench.study.files import read_problem

    if plot is not None:
        check_format(plot)
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
        click.echo(json_text(record))
    else:
        Console().print(_table(problem, record))
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


def _write_point(x: Any, out: Path) -> None:
    import numpy as np

    try:
        with out.open("wb") as file:
            np.save(file, x, allow_pickle=False)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from error


def _traffic(record: dict[str, Any]) -> str:
    """Return what went to the workers of a cluster, in words; nothing where the rows are here."""
    return f", {record['rounds']} rounds of {record['bytes'] / 1e6:.3g} MB in all" if record["rounds"] else ""


def _table(problem: Problem, record: dict[str, Any]) -> Table:
    form = problem.form
    colour = "green" if record["status"] in ("converged", "trivial") else "yellow"
    facts = {
        "problem": f"m = {form.terms}, n = {form.dim}, r = {form.rank}, cone {escape(problem.cone.name)}",
        "method": escape(f"{record['solver']} in the metric {record['metric']}"),
        "status": f"[{colour}]{record['status']}[/]: {escape(record['message'])}",
        "f(x)": f"{record['fun']:.12g}",
        "certified": f"f* ≥ {record['lower_bound']:.12g}, relative gap {record['gap']:.2e}",
        "work": f"{record['nit']} iterations, {record['passes']} passes" + _traffic(record),
        "time": f"set-up {time_words(record['setup_time'])}, solve {time_words(record['solve_time'])}",
    }
    return fact_table(facts.items())
