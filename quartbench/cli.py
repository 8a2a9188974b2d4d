"""The command line: parses, calls, prints. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
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
    from quartbench.cones import CONES
    from quartbench.instances import INSTANCES
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


COMPARE_EXAMPLES = """\b
Examples:
  quartbench compare --study quick --out results
  quartbench compare --study peers --solver +mine.py:MySolver --out results
  quartbench compare --instance spectrum:m=2000,n=1000,sigma_min=0.02 --solver homcg --solver scipy-lbfgs --out results
  quartbench compare --study mine.toml --seed 0 --seed 1 --rel-gap 1e-8 --out results
"""


@main.command(epilog=COMPARE_EXAMPLES)
@click.option("--study", help="A shipped study (see --studies) or a file.toml [default: quick, without --instance].")
@click.option("--instance", "instances", multiple=True, metavar="NAME:ARG=…", help="A problem, as generator:arguments.")
@click.option("--solver", "solvers", multiple=True, help="A name from 'quartbench list', or file.py:Class.")
@click.option("--metric", "metrics", multiple=True, help="identity, uniform, lewis, diagonal or auto.")
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), help="A seed of the problems.")
@click.option("--rel-gap", "rel_gaps", multiple=True, type=float, help="A relative gap to reach.")
@click.option("--time-limit", type=float, help="The most seconds of set-up and iterations of a run.")
@click.option("--max-iter", type=click.IntRange(1), help="The most iterations of a run.")
@click.option("--repeats", type=click.IntRange(1), help="The most repeats of a short run.")
@click.option("--threads", type=click.IntRange(1), help="Threads for every contender [default: all].")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The directory of the results.")
@click.option("--resume/--restart", default=True, show_default=True, help="Keep the runs that are there, or none.")
@click.option("--quiet", is_flag=True, help="Show no progress and no tables.")
@click.option("--studies", is_flag=True, help="List the shipped studies and stop.")
@click.option("--columns", is_flag=True, help="Say what the columns of the results mean and stop.")
def compare(
    study,
    instances,
    solvers,
    metrics,
    seeds,
    rel_gaps,
    time_limit,
    max_iter,
    repeats,
    threads,
    out,
    resume,
    quiet,
    studies,
    columns,
) -> None:
    """Run a study: solvers against each other.

    A study is a grid of instances × solvers × metrics × seeds × gaps. Its runs take turns in a process of their own,
    all with the same threads; short ones are repeated until their median is stable. Every run is a file as soon as it
    is done, so that a study that was stopped goes on where it was: give the same command again.

    The flags for instances, solvers and metrics stand in the place of the study's own; with a leading + they are added
    to them. Those of one seed or gap each may be repeated too.

    The results are read by pandas.read_parquet(OUT), and drawn by 'quartbench report OUT'.
    """
    import shlex

    import numba

    from quartbench.study import grid, store
    from quartbench.study.runner import Runner

    if studies or columns:
        rows = grid.shipped().items() if studies else [(column.name, column.meaning) for column in store.COLUMNS]
        Console().print(_word_table(rows))
        return
    if out is None:
        raise click.UsageError("Missing option '--out': the directory of the results.")
    chosen = grid.read_study(study or "quick") if study or not instances else None
    chosen = grid.with_flags(chosen, instances, solvers, metrics, seeds, rel_gaps, time_limit, max_iter, repeats)
    command = "quartbench " + shlex.join(sys.argv[1:])
    runner = Runner(chosen, out, threads or numba.get_num_threads(), command, restart=not resume)
    console = Console(stderr=True, quiet=quiet)
    for note in chosen.notes:
        console.print(f"note: {note}")
    try:
        with study_progress(console) as bar:
            task = bar.add_task("starting", total=runner.planned)
            runner.run(lambda label, steps: bar.update(task, description=label, advance=steps))
    except KeyboardInterrupt:
        again = command.replace(" --restart", "")
        click.echo(f"stopped after {runner.done} runs, which are kept; to go on: {again}", err=True)
        sys.exit(130)
    except OSError as error:
        kept = f"; the {runner.done} runs written before are kept, and the same command goes on after them"
        raise click.ClickException(f"cannot write to {out}: {error.strerror}{kept if runner.done else ''}") from error
    if not quiet:
        frame = store.read(out)
        _compare_tables(frame[frame["group"].isin({group.name for group in chosen.groups})])
    console.print(f"{runner.done} runs made, {runner.kept} kept: {out}", soft_wrap=True)


def study_progress(console: Console) -> Progress:
    """Return the progress bar of a study, with the time that is left."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<56.56}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
        transient=True,
        speed_estimate_period=3600.0,
    )


def _word_table(rows) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="cyan", min_width=16, no_wrap=True)
    for name, meaning in rows:
        table.add_row(name, escape(meaning))
    return table


def _compare_tables(frame) -> None:
    from quartbench.study import summary

    console = Console()
    for group, runs in frame.groupby("group", sort=False):
        console.print(_time_table(group, summary.times(runs)))
        if group == "peers" and runs["peer"].any() and (runs["solver"] == "auto").any():
            for gap, here in summary.peers(runs).groupby("rel_gap", sort=False):
                console.print(_peer_table(gap, here))
    bad = summary.failures(frame)
    if len(bad):
        table = Table(title="failures", box=SIMPLE_HEAD, title_justify="left", title_style="bold red")
        for heading in ("group", "instance", "solver", "status", "message", "runs"):
            table.add_column(heading, overflow="fold")
        for row in bad.itertuples(index=False):
            table.add_row(*(escape(str(entry)) for entry in row))
        console.print(table)


def _time_table(group: str, times) -> Table:
    title = f"{group}: time to the gap, fastest first"
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.add_column("instance", min_width=20)
    table.add_column("gap", justify="right", no_wrap=True)
    table.add_column("solvers (–: not reached)")
    for (instance, gap), row in times.iterrows():
        ranked = [f"{escape(name)} {_time(t)}" for name, t in row.dropna().sort_values().items()]
        if row.min() < math.inf:
            ranked[0] = f"[bold green]{ranked[0]}[/]"
        table.add_row(escape(instance), f"{gap:.0e}", ",  ".join(ranked))
    return table


def _peer_table(gap: float, table) -> Table:
    from quartbench.study.summary import geometric_mean

    mean, worst = geometric_mean(table["ratio"]), table["overhead"].max()
    title = (
        f"auto against the best peer, gap {gap:.0e}: {mean:.2f} times faster (geometric mean), "
        f"at most {worst:.2f} of our best method"
    )
    shown = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    shown.add_column("instance", min_width=12)
    for heading in ("auto\n(wall)", "best peer\n(wall)", "ratio", "our best", "auto/\nbest"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in table.itertuples(index=False):
        peer = f"{row.peer}\n{_time(row.peer_time)} ({_time(row.peer_wall)})" if row.peer else "none"
        shown.add_row(
            escape(row.instance),
            f"{_time(row.auto)}\n({_time(row.wall)})",
            escape(peer),
            f"[{'green' if row.ratio >= 1.0 else 'red'}]{row.ratio:.2f}×[/]",
            f"{escape(row.own)}\n{_time(row.own_time)}",
            f"[{'green' if row.overhead <= 1.3 else 'red'}]{row.overhead:.2f}[/]",
        )
    return shown


def _time(seconds: float) -> str:
    from quartbench.study.kernels import duration

    return duration(seconds) if math.isfinite(seconds) else ("–" if math.isinf(seconds) else "")


@main.command()
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.argument(
    "sources", metavar="DIR...", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--mixed", is_flag=True, help="Also unite results of different systems; their times do not compare.")
def merge(out: Path, sources: tuple[Path, ...], mixed: bool) -> None:
    """Unite the results of several studies.

    The runs of all directories DIR are copied to OUT, each once; OUT may have runs already. Results of different
    problem sets are refused, and so are those of different systems without --mixed.
    """
    from quartbench.study import store

    try:
        count = store.merge(out, list(sources), mixed)
    except OSError as error:
        raise click.ClickException(f"cannot write to {out}: {error.strerror}") from error
    click.echo(f"{count} runs: {out}")


REPORT_EXAMPLES = """\b
Examples:
  quartbench report results                             the page in results/_report
  quartbench report results --out reports/report.html   the page somewhere else
  quartbench kernels --out results/_kernels             the kernels for its roofline
"""


@main.command(epilog=REPORT_EXAMPLES)
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="The page [default: DIR/_report/report.html]."
)
def report(directory: Path, out: Path | None) -> None:
    """Draw the report of a study, running nothing.

    DIR holds the results of 'quartbench compare --out DIR'. The page is one HTML file that works offline: the verdict,
    the paper's claims with their evidence, its figures redrawn, scaling, profiles, every table, and the record of the
    runs. Beside it go its summary in Markdown, claims.csv, runs.csv, and figures/ with each figure as PDF and CSV.
    """
    from quartbench.study.report import write

    console = Console(stderr=True)
    with console.status("drawing the report"):
        made = write(directory, out)
    _print_verdict(made)
    click.echo(f"the page: {made.page}")


def _print_verdict(made) -> None:
    from quartbench.study.report.words import gap_words, short

    colours = {"holds": "green", "does not hold": "red", "holds only when": "yellow"}
    table = Table(title="Claims", box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim")
    for claim, found in made.claims:
        condition = f" [yellow]It holds {escape(found.condition)}.[/]" if found.condition else ""
        colour = colours.get(found.verdict, "bright_black")
        sentence = f"{escape(claim.sentence)} [bright_black]{claim.source}[/]"
        table.add_row(f"[{colour}]{found.verdict.removesuffix(' in this study')}[/]", sentence + condition)
    Console().print(table)
    table = Table(title="Who wins where", box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    for heading, justify in (
        ("instance", "left"),
        ("gap", "right"),
        ("fastest", "left"),
        ("time", "right"),
        ("lead", "left"),
    ):
        table.add_column(heading, justify=justify)
    for one in made.winners:
        lead = "" if not one.second else f"{short(one.factor)}× faster than {one.second}"
        tie = one.factor <= 1.0 + made.noise
        lead = f"tie with {one.second}" if tie else lead
        table.add_row(one.instance, gap_words(one.gap), one.first, _time(one.seconds), lead)
    Console().print(table)
    for sentence in made.answer:
        Console().print(sentence)


GATE_EXAMPLES = """\b
Examples:
  quartbench gate                                against the merge base
  quartbench gate v0.1.0 HEAD --markdown -       two commits, as a comment
  quartbench gate HEAD HEAD                      what noise alone does
  quartbench gate --calibrate --runs 5 --write   thresholds from noise here
"""


@main.command(epilog=GATE_EXAMPLES)
@click.argument("base", required=False)
@click.argument("head", default="HEAD")
@click.option("--bench", multiple=True, metavar="REGEX", help="Only benchmarks that match [default: ^gate\\.].")
@click.option("--markdown", metavar="FILE", help="Write a comment for a pull request there (- for standard output).")
@click.option("--junit", metavar="FILE", help="Write JUnit XML there.")
@click.option("--json", "json_", metavar="FILE", help="Write everything there, samples included.")
@click.option("--calibrate", is_flag=True, help="Measure HEAD against itself; show its noise and fitting thresholds.")
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1), help="Runs of --calibrate.")
@click.option("--write", is_flag=True, help="With --calibrate: write the thresholds to benchmarks/gate.toml.")
def gate(base, head, bench, markdown, junit, json_, calibrate, runs, write) -> None:
    """Stop a commit that makes quartbench slower.

    asv measures the gate tier of the suite on BASE and HEAD, in turns, and each benchmark gets a verdict. BASE is by
    default the merge base of HEAD with the default branch, or the parent of HEAD where that is HEAD itself. Commits
    are measured, never uncommitted changes of the package; the benchmarks are those of the working tree, for both.

    \b
    regression   a count (iterations, passes, sweeps) grew by more than 2 %;
                 or a time of at least 10 ms, the best of its samples, grew by its
                 threshold with p < 0.002, and did so again in a second run
    unmeasured   it fails on HEAD, or an expected result is missing
    worse        at least 1.1 times, but not enough or not surely enough to block
    improvement  surely 1.1 times better, or a count more than 2 % lower
    new          it gave no result on BASE

    Thresholds are in benchmarks/gate.toml; a benchmark listed there is expected to give a result. A run takes some
    seven minutes; the first one also makes an environment and compiles the kernels of both commits, which asv keeps in
    .asv.

    The exit code is 0 where nothing blocks, 1 for a regression, 2 where something could not be measured.
    """  # noqa: D301
    from quartbench.gate import commits, run
    from quartbench.gate import report as reports
    from quartbench.gate.thresholds import TABLE, write_table

    files = {"markdown": markdown, "junit": junit, "json": json_}
    files = {kind: name for kind, name in files.items() if name is not None}
    if calibrate and (base is not None or files):
        raise ProblemError("--calibrate measures HEAD alone and writes benchmarks/gate.toml only: drop the rest")
    if write and not calibrate:
        raise ProblemError("--write needs --calibrate")
    for name in files.values():
        if name != "-" and not Path(name).absolute().parent.is_dir():
            raise ProblemError(f"cannot write {name}: there is no directory {Path(name).parent}")
    root = commits.project()
    pair = commits.choose(root, head if calibrate else base, head)
    console = Console(stderr=True)
    console.print("gate: {1} against {0}".format(*pair.names()), highlight=False)
    if commits.uncommitted(root):
        console.print("gate: uncommitted changes of the package are not measured", style="yellow")
    # Where a report goes to standard output, the table must not.
    screen = console if "-" in files.values() else Console()
    if not screen.is_terminal:  # a log has room
        screen.width = max(screen.width, 120)
    try:
        with _gate_watcher(console) as watch:
            if calibrate:
                found, noise = run.calibrate(root, pair, runs, watch, bench)
            else:
                report = run.compare(root, pair, watch, bench)
    except KeyboardInterrupt:
        console.print("gate: interrupted, nothing is decided", style="yellow")
        sys.exit(2)
    if calibrate:
        screen.print(reports.noise_table(noise, runs))
        passed = sum(one.exit_code == 0 for one in found)
        screen.print(f"The gate let {passed} of {runs} runs pass.", highlight=False)
        if write:
            write_table(root / TABLE, noise)
            console.print(f"written: {TABLE}")
        sys.exit(2 if any(one.exit_code == 2 for one in found) else 0)
    screen.print(reports.table(report, screen.width))
    for kind, name in files.items():
        text = reports.WRITERS[kind](report)
        if name == "-":
            click.echo(text, nl=False)
            continue
        try:
            Path(name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ProblemError(f"cannot write {name}: {error.strerror}") from error
        console.print(f"written: {name}")
    sys.exit(report.exit_code)


@contextmanager
def _gate_watcher(console: Console):
    """Yield a function that shows how far asv is: a bar in a terminal, a line a turn elsewhere."""
    if not console.is_terminal:
        told = set()

        def line(done: float, text: str) -> None:
            if ", commit " in text and (done, text) not in told:
                told.add((done, text))
                console.print(f"gate: {100 * done:3.0f} % {text}", highlight=False)

        yield line
        return
    with progress(console) as bar:
        task = bar.add_task("starting asv", total=100)
        yield lambda done, text: bar.update(task, completed=round(100 * done), description=escape(text[-42:]))


if __name__ == "__main__":
    sys.exit(main())
