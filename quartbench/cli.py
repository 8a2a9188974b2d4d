"""The command line: parses, calls, prints. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from quartbench import __version__
from quartbench.errors import ProblemError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """A group that lists its commands in the order they are used in, and turns bad input into one clear line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Keep the order of definition."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a ProblemError ends it with exit code 2 and no traceback."""
        try:
            return super().invoke(ctx)
        except ProblemError as error:
            raise click.UsageError(str(error)) from error


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="quartbench")
def main() -> None:
    """Solve, certify and benchmark convex quartic problems: minimise ρ(x) − ⟨c,x⟩ over a cone."""


def progress(console: Console) -> Progress:
    """Return the progress bar that every long command shows (on standard error, so that output can be piped)."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<42}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def info(as_json: bool) -> None:
    """Show versions and threads.

    This is what a bug report should carry.
    """
    from quartbench.study.system import describe

    facts = describe()
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        table.add_row(f"[bold]{name}[/]", str(value))
    Console().print(table)


@main.command()
def warmup() -> None:
    """Compile every kernel once.

    Later runs load the machine code from disk. Takes a minute or two; nothing needs it, but the first use of a kernel
    is then as fast as the next.
    """
    from quartbench.kernels import jit
    from quartbench.kernels.warmup import tasks

    console = Console(stderr=True)
    work = tasks()
    with progress(console) as bar:
        task = bar.add_task("compiling", total=len(work))
        for name, call in work:
            bar.update(task, description=f"compiling {name}")
            call()
            bar.advance(task)
    layer = jit.LAYER or "none that is thread-safe: kernels run serially"
    click.echo(f"{len(work)} kernels ready (threading layer: {layer})")


@main.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def list_(as_json: bool) -> None:
    """List solvers, metrics, cones and instances."""
    import inspect

    from quartbench import solvers
    from quartbench.instances import INSTANCES
    from quartbench.model import CONES
    from quartbench.precondition import METRICS

    def first_line(thing: object) -> str:
        return (inspect.getdoc(thing) or "").partition("\n")[0]

    found = {
        "solvers": {name: solvers.describe(solver) for name, solver in solvers.solvers().items()},
        "metrics": {name: first_line(make) for name, make in METRICS.items()},
        "cones": {name: first_line(cone) for name, cone in CONES.items()},
        "instances": {name: first_line(make) for name, make in INSTANCES.items()},
    }
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for title, entries in found.items():
        table = Table(
            box=None, show_header=False, pad_edge=False, title=title, title_justify="left", title_style="bold"
        )
        table.add_column(style="cyan", min_width=20, no_wrap=True)
        for name, line in entries.items():
            table.add_row(name, escape(line))
        Console().print(table)
        Console().print()


SOLVE_EXAMPLES = """\b
Examples:
  quartbench solve A.npy c.npy --rel-gap 1e-10 --out x.npy
  quartbench solve A.mtx c.npy --metric lewis --plot gap.svg
  quartbench solve problem.npz --solver homgd
"""


@main.command(epilog=SOLVE_EXAMPLES)
@click.argument("source", metavar="ROWS|PROBLEM", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("linear", metavar="[C]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rank", default=1, show_default=True, type=click.IntRange(1), help="Rows of a term.")
@click.option("--cone", default="free", show_default=True, help="The cone: free, orthant or second-order.")
@click.option("--solver", default="auto", show_default=True, help="A name from 'quartbench list', or file.py:Class.")
@click.option("--metric", default="auto", show_default=True, help="identity, uniform, lewis, diagonal or auto.")
@click.option("--rel-gap", default=1e-6, show_default=True, type=float, help="The certified relative gap to reach.")
@click.option("--max-iter", default=100_000, show_default=True, type=int, help="The most iterations.")
@click.option("--time-limit", type=float, help="The most seconds of set-up and iterations.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the point there, as .npy.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the gap there (.svg, .png, .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def solve(source, linear, rank, cone, solver, metric, rel_gap, max_iter, time_limit, out, plot, as_json) -> None:
    """Solve one problem to a certified gap.

    ROWS holds the stacked rows of the terms, as a dense .npy (real, or complex for phase retrieval) or a sparse Matrix
    Market .mtx file, and C the vector c as .npy. A PROBLEM saved by quartbench (.npz) holds all of it.

    The exit code is 0 where the gap was reached, else 1; the point is written in both cases.
    """
    import numpy as np

    from quartbench import solvers
    from quartbench.study.figures import check_format, draw_history
    from quartbench.study.files import read_problem

    if plot is not None:
        check_format(plot)
    problem = read_problem(source, linear, rank, cone)
    result = solvers.solve(
        problem,
        solver=solver,
        metric=metric,
        rel_gap=rel_gap,
        max_iter=max_iter,
        time_limit=time_limit,
        progress=not as_json and sys.stderr.isatty(),
    )
    written = []
    if out is not None:
        try:
            with out.open("wb") as file:
                np.save(file, result.x, allow_pickle=False)
        except OSError as error:
            raise click.ClickException(f"cannot write {out}: {error.strerror}") from error
        written.append(out)
    if plot is not None:
        written.append(draw_history(result, plot))
    columns = ("status", "message", "fun", "lower_bound", "gap", "nit", "passes", "setup_time", "solve_time")
    record = {"solver": result.solver, "metric": result.metric} | {name: result[name] for name in columns}
    if as_json:
        click.echo(json.dumps(record, indent=2))
    else:
        Console().print(_result_table(problem, record))
    for path in written:
        Console(stderr=True).print(f"written: {path}")
    if not result.success:
        sys.exit(1)


def _result_table(problem, record: dict) -> Table:
    from quartbench.study.kernels import duration

    table = Table(box=None, show_header=False, pad_edge=False)
    form = problem.form
    table.add_row("[bold]problem[/]", f"m = {form.terms}, n = {form.dim}, r = {form.rank}, cone {problem.cone.name}")
    table.add_row("[bold]method[/]", f"{record['solver']} in the metric {record['metric']}")
    colour = "green" if record["status"] in ("converged", "trivial") else "yellow"
    table.add_row("[bold]status[/]", f"[{colour}]{record['status']}[/]: {record['message']}")
    table.add_row("[bold]f(x)[/]", f"{record['fun']:.12g}")
    table.add_row("[bold]certified[/]", f"f* ≥ {record['lower_bound']:.12g}, relative gap {record['gap']:.2e}")
    table.add_row("[bold]work[/]", f"{record['nit']} iterations, {record['passes']} passes")
    table.add_row("[bold]time[/]", f"set-up {duration(record['setup_time'])}, solve {duration(record['solve_time'])}")
    return table


@main.command()
@click.argument("source", metavar="ROWS|PROBLEM", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rank", default=1, show_default=True, type=click.IntRange(1), help="Rows of a term.")
@click.option("--method", default="auto", show_default=True, help="How Lewis weights are computed.")
@click.option("--eps", default=0.01, show_default=True, type=float, help="Their accuracy: κ ≤ (1 + eps)·√n.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def precondition(source: Path, rank: int, method: str, eps: float, as_json: bool) -> None:
    """Show what each metric makes of κ.

    ROWS is a .npy or Matrix Market .mtx file of stacked rows, PROBLEM a saved .npz. For the metrics identity, uniform
    (B⁽⁰⁾) and lewis (B*) it prints the certified bound on the quartic condition number κ, the leverage sweeps and the
    seconds they took. Iterations of HomGD grow with κ, those of the accelerated method with its root.
    """
    from quartbench.precondition import describe
    from quartbench.study.files import read_form

    found = describe(read_form(source, rank), method, eps)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2))
    else:
        Console().print(_precondition_table(found))


def _precondition_table(found) -> Table:
    from quartbench.study.kernels import duration

    title = (
        f"m = {found.terms}, n = {found.dim}, r = {found.rank}, coherence γ = {found.coherence:.4g}; "
        f"no weights have a better bound than κ = √{found.freedom} = {found.best_kappa:.4g}"
    )
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="")
    table.add_column("metric")
    for heading in ("κ at most", "sweeps", "time"):
        table.add_column(heading, justify="right")
    table.add_column("κ on a log scale")
    decades = math.log10(max(one.kappa for one in found.metrics)) or 1.0
    for one in found.metrics:
        width = max(1, round(32 * math.log10(max(one.kappa, 1.0)) / decades))
        kappa = f"{one.kappa:.4g}"
        table.add_row(one.name, kappa, str(one.sweeps), duration(one.seconds), f"[cyan]{'█' * width}[/]")
    return table


@main.command()
@click.option("--case", "names", multiple=True, metavar="NAME", help="Measure only this case; may be repeated.")
@click.option("--threads", default=None, type=click.IntRange(1), help="Threads for every contender [default: all].")
@click.option("--rounds", default=6, show_default=True, type=click.IntRange(1), help="Turns that each contender gets.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Also write kernels.md and .json there.")
def kernels(names: tuple[str, ...], threads: int | None, rounds: int, as_json: bool, out: Path | None) -> None:
    """Time kernels against NumPy and scipy.sparse.

    All get the same threads and take turns; the best call of each counts. 'ratio' compares with the code as one
    writes it first, 'tuned' with the same code at its best; 'read' is the fraction of this machine's parallel read
    speed, 'wanted' the ratio that the project promises.
    """
    import numba

    from quartbench.errors import unknown_name
    from quartbench.study import kernels as study
    from quartbench.study.system import describe

    for name in names:
        if name not in study.CASES:
            raise unknown_name("case", name, study.CASES)
    threads = threads or numba.get_num_threads()
    chosen = list(names or study.CASES)
    rows = []
    console = Console(stderr=True)
    with progress(console) as bar:
        task = bar.add_task("measuring", total=len(chosen))
        for name in chosen:
            bar.update(task, description=f"measuring {name}")
            rows.extend(study.measure(threads, [name], rounds))
            bar.advance(task)
    record = {"threads": threads, "system": describe(), "rows": [row.as_dict() for row in rows]}
    if as_json:
        click.echo(json.dumps(record, indent=2))
    else:
        Console().print(_kernel_table(rows, threads))
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / "kernels.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            (out / "kernels.md").write_text(study.markdown(rows, threads, record["system"]), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"cannot write to {out}: {error.strerror}") from error
        console.print(f"written: {out / 'kernels.md'}, {out / 'kernels.json'}")


def _kernel_table(rows: list, threads: int) -> Table:
    from quartbench.study.kernels import duration

    title = f"Kernels on {threads} thread{'s' * (threads > 1)}, best of many interleaved calls"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    table.add_column("case", no_wrap=True)
    for heading in ("time", "GB/s", "read", "baseline", "ratio", "tuned", "wanted"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        colour = "green" if row.ratio >= row.target else "red"
        table.add_row(
            row.name,
            duration(row.seconds),
            f"{row.gigabytes_per_second:.1f}",
            f"{row.bandwidth_fraction:.2f}",
            duration(row.baseline_seconds),
            f"[{colour}]{row.ratio:.2f}×[/]",
            f"{row.tuned_ratio:.2f}×",
            f"{row.target:.1f}×",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
