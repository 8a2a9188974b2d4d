"""``quartbench compare``: run a study, and show who was fastest."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from quartbench import views

from .display import METRIC_NAMES, headed_table, require_folder, study_progress, time_words, word_table

if TYPE_CHECKING:
    import pandas
    from rich.table import Table

    from quartbench.study.runner import Runner

EXAMPLES = """\b
Examples:
  quartbench compare --study quick --out results
  quartbench compare --study peers --out results \\
    --solver +mine.py:MySolver
  quartbench compare --out results --solver homcg --solver scipy-lbfgs \\
    --instance spectrum:m=2000,n=1000,sigma_min=0.02
  quartbench compare --out results --instance problem.npz \\
    --solver homgd --solver homgd:step=fixed --metric lewis
  quartbench compare --study mine.toml --out results \\
    --seed 0 --seed 1 --rel-gap 1e-8
  quartbench compare --study full --out results \\
    --scheduler tcp://10.0.0.1:8786 --threads 2
  quartbench compare --out results --solver auto --solver wirtinger \\
    --instance phase_gaussian:n=64,ratio=4
  quartbench compare --out results --solver l4-regression --solver irls \\
    --instance regression_gaussian:m=5000,n=50
"""

#: The most that auto may take, in times of our best method, to be shown in green.
OVERHEAD = 1.3


@click.command(epilog=EXAMPLES)
@click.option("--study", help="A shipped study (see --studies) or a file.toml [default: quick, without --instance].")
@click.option(
    "--instance",
    "instances",
    multiple=True,
    metavar="NAME:ARG=…|FILE.npz",
    help="A problem, as generator:arguments, or a saved one.",
)
@click.option(
    "--solver",
    "solvers",
    multiple=True,
    help="A name from 'quartbench list', or file.py:Class, perhaps with :setting=value.",
)
@click.option("--metric", "metrics", multiple=True, help=METRIC_NAMES)
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), help="A seed of the problems.")
@click.option("--rel-gap", "rel_gaps", multiple=True, type=float, help="A relative gap to reach.")
@click.option("--time-limit", type=float, help="The most seconds of set-up and iterations of a run.")
@click.option("--max-iter", type=click.IntRange(1), help="The most iterations of a run.")
@click.option("--repeats", type=click.IntRange(1), help="The most repeats of a short run.")
@click.option("--threads", type=click.IntRange(1), help="Threads for every contender [default: all].")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The directory of the results.")
@click.option("--resume/--restart", default=True, show_default=True, help="Keep the runs that are there, or none.")
@click.option(
    "--curves", type=click.Path(dir_okay=False, path_type=Path), help="Draw the gaps there (.svg, .png, .pdf)."
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Spread the runs over the workers of a Dask cluster, tcp://… or tls://…, one run a worker at a time.",
)
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
    curves,
    scheduler,
    quiet,
    studies,
    columns,
) -> None:
    """Run a study: solvers against each other.

    A study is a grid of instances × solvers × metrics × seeds × gaps. Its runs take turns in a process of their own,
    all with the same threads; short ones are repeated until their median is stable. Every run is a file as soon as it
    is done, so that a study that was stopped goes on where it was: give the same command again.

    The flags for instances, solvers and metrics stand in the place of the study's own; with a leading + they are added
    to them. Those of one seed or gap each may be repeated too. Recoveries are instances of inverse problems and
    regressions of ℓ4 regression, each with methods of their own, all in 'quartbench list': a flag changes the groups of
    its kind and leaves out the others.

    With --scheduler the runs are made by the workers of a Dask cluster, those of one problem by one worker, and each
    row names its machine. What they find is what one machine finds, but for the times; a worker that is lost loses the
    run under way, which is made again. The workers need the same packages as this process.

    The results are read by pandas.read_parquet(OUT), and drawn by 'quartbench report OUT'.
    """
    import numba

    from quartbench.distributed import connected
    from quartbench.study import grid, store
    from quartbench.study.farm import FarmedRunner
    from quartbench.study.figures import check_format
    from quartbench.study.runner import Runner

    if studies or columns:
        rows = grid.shipped().items() if studies else [(column.name, column.meaning) for column in store.COLUMNS]
        Console().print(word_table(rows, 16))
        return
    if curves is not None:
        check_format(curves)
        require_folder(curves)
    if out is None:
        raise click.UsageError("Missing option '--out': the directory of the results.")
    chosen = grid.read_study(study or "quick") if study or not instances else None
    chosen = grid.with_flags(chosen, instances, solvers, metrics, seeds, rel_gaps, time_limit, max_iter, repeats)
    command = "quartbench " + shlex.join(sys.argv[1:])
    console = Console(stderr=True, quiet=quiet)
    for note in chosen.notes:
        console.print(escape(f"note: {note}"))
    with connected(scheduler) if scheduler else nullcontext() as client:
        make = partial(FarmedRunner, client) if scheduler else Runner
        runner = make(chosen, out, threads or numba.get_num_threads(), command, restart=not resume)
        _run(runner, console)
    if curves is not None:
        _draw(out, curves)
    if not quiet:
        frame = store.read(out)
        _print_tables(frame[frame["group"].isin({group.name for group in chosen.groups})])
    console.print(escape(f"{views.counted(runner.done, 'run')} made, {runner.kept} kept: {out}"), soft_wrap=True)


def _draw(out: Path, curves: Path) -> None:
    """Draw the gap of every contender on each problem against time."""
    import matplotlib

    matplotlib.use("Agg")
    from quartbench.study.comparison import Comparison
    from quartbench.study.figures import save

    save(Comparison(out).plot(), curves)
    click.echo(f"written: {curves}", err=True)


def _run(runner: Runner, console: Console) -> None:
    """Do the runs under a progress bar; where they are stopped, say what is kept and how to go on."""
    from quartbench.errors import LostError

    try:
        with study_progress(console) as bar:
            task = bar.add_task("starting", total=runner.planned)
            runner.run(lambda label, steps: bar.update(task, description=label, advance=steps))
    except KeyboardInterrupt:
        again = runner.command.replace(" --restart", "")
        kept = f"after {_kept(runner)}" if runner.done else "before the first run was done"
        click.echo(f"stopped {kept}; to go on: {again}", err=True)
        sys.exit(130)
    except LostError as lost:
        made = views.counted(runner.done, "run")
        raise click.ClickException(f"{lost} ({made} made); the same command goes on") from lost
    except OSError as error:
        kept = f" after {_kept(runner)}; the same command goes on after them" if runner.done else ""
        raise click.ClickException(f"cannot write to {runner.out}: {error.strerror}{kept}") from error


def _kept(runner: Runner) -> str:
    """Say how many runs were made before the study ended."""
    return f"{views.counted(runner.done, 'run')}, which {'is' if runner.done == 1 else 'are'} kept"


def _print_tables(frame: pandas.DataFrame) -> None:
    from quartbench.study import costs, outcomes, summary

    console = Console()
    frame = costs.prepare(frame)
    for group, runs in costs.recoveries(frame).groupby("group", sort=False):
        console.print(_recovery_table(group, outcomes.outcomes(runs)))
    for group, runs in costs.regressions(frame).groupby("group", sort=False):
        console.print(_time_table(group, summary.times(runs), ()))
        if runs["peer"].any() and (runs["solver"] == summary.REGRESSION).any():
            console.print(_regression_table(summary.peers(runs, summary.REGRESSION)))
    for group, runs in costs.convex(frame).groupby("group", sort=False):
        console.print(_time_table(group, summary.times(runs), runs.loc[~runs["peer"], "metric_asked"].unique()))
        if (runs["rounds"] > 0).any():
            console.print(_traffic_table(group, runs[runs["workers"] > 0]))
        if group == "peers" and runs["peer"].any() and (runs["solver"] == "auto").any():
            for gap, here in summary.peers(runs).groupby("rel_gap", sort=False):
                console.print(_peer_table(gap, here))
    bad = summary.failures(frame)
    if len(bad):
        table = headed_table("failures", title_style="bold red")
        for heading in ("group", "instance", "solver", "status", "message", "runs"):
            table.add_column(heading, overflow="fold")
        for row in bad.itertuples(index=False):
            table.add_row(*(escape(str(entry)) for entry in row))
        console.print(table)


def _time_table(group: str, times: pandas.DataFrame, metrics: Sequence[str]) -> Table:
    """Rank the contenders on each instance; a metric that all of ours were asked for is said once, in the title."""
    shared = metrics[0] if len(metrics) == 1 and metrics[0] != "auto" else ""
    where = f" in the metric {shared}" if shared else ""
    times = times.rename(columns=lambda name: name.removesuffix(f" · {shared}"))
    table = headed_table(escape(f"{group}: time to the gap{where}, fastest first"))
    table.add_column("instance", min_width=20)
    table.add_column("gap", justify="right", no_wrap=True)
    table.add_column("solvers (–: not reached)")
    for (instance, gap), row in times.iterrows():
        ranked = [f"{escape(name)} {time_words(t)}" for name, t in row.dropna().sort_values().items()]
        if row.min() < math.inf:
            ranked[0] = f"[bold green]{ranked[0]}[/]"
        table.add_row(escape(instance), f"{gap:.0e}", ",  ".join(ranked))
    return table


def _traffic_table(group: str, runs: pandas.DataFrame) -> Table:
    """Rank the contenders on each instance by the rounds of their iterations."""
    table = headed_table(escape(f"{group}: rounds and bytes of the iterations, fewest first"))
    table.add_column("instance", min_width=20)
    table.add_column("solvers (–: gap not reached)")
    for instance, here in runs.groupby("instance", sort=False):
        cells = here.groupby("contender", sort=False)[["rounds", "bytes", "success"]].median().sort_values("rounds")
        ranked = [
            f"{escape(name)} {row.rounds:.0f} ({row.bytes / 1e6:.3g} MB){'' if row.success else ' –'}"
            for name, row in cells.iterrows()
        ]
        table.add_row(escape(str(instance)), ",  ".join(ranked))
    return table


def _recovery_table(group: str, found: pandas.DataFrame) -> Table:
    """Rank the contenders on each instance: by how often they recover the truth, then by the whole wait."""
    table = headed_table(escape(f"{group}: recovered of seeds, median error and time with the start"))
    table.add_column("instance", min_width=20)
    table.add_column("methods, best first")
    for instance, here in found.groupby("instance", sort=False):
        here = here.assign(missed=-here.recovered / here.seeds).sort_values(["missed", "wall"], kind="stable")
        ranked = [
            f"{escape(one.contender)} {one.recovered}/{one.seeds} {one.error:.0e} {time_words(one.wall)}"
            for one in here.itertuples()
        ]
        ranked[0] = f"[bold green]{ranked[0]}[/]"
        table.add_row(escape(instance), ",  ".join(ranked))
    return table


def _regression_table(found: pandas.DataFrame) -> Table:
    """Hold the whole call of l4_regression against the best bare peer on each instance."""
    table = headed_table("l4_regression, whole call with its certificate, against the best bare peer")
    table.add_column("instance", min_width=20)
    for heading in ("gap", "ours", "best peer", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.itertuples(index=False):
        table.add_row(
            escape(row.instance),
            f"{row.rel_gap:.0e}",
            time_words(row.wall),
            f"{escape(row.peer)}\n{time_words(row.peer_time)}" if row.peer else "none",
            f"[{'green' if row.wall_ratio >= 1.0 else 'red'}]{row.wall_ratio:.2f}×[/]",
        )
    return table


def _peer_table(gap: float, table: pandas.DataFrame) -> Table:
    from quartbench.study.summary import geometric_mean

    wall, clock, worst = geometric_mean(table["wall_ratio"]), geometric_mean(table["ratio"]), table["overhead"].max()
    title = (
        f"auto, whole call with its certificate, against the best bare peer, gap {gap:.0e}: {wall:.2f} times as fast "
        f"(geometric mean); by the clock of the method {clock:.2f}, at most {worst:.2f} of our best method"
    )
    caption = "a peer is bare: on functions of NumPy and scipy.sparse, up to the first point within the gap of f*"
    shown = headed_table(title, caption=caption, caption_justify="left")
    shown.add_column("instance", min_width=12)
    for heading in (
        "auto\n(clock)",
        "best peer, bare\n(certified)",
        "ratio\n(clock)",
        "our best\n(clock)",
        "auto/\nbest",
    ):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in table.itertuples(index=False):
        peer = f"{row.peer}\n{time_words(row.peer_time)} ({time_words(row.peer_wall)})" if row.peer else "none"
        shown.add_row(
            escape(row.instance),
            f"{time_words(row.wall)}\n({time_words(row.auto)})",
            escape(peer),
            f"[{'green' if row.wall_ratio >= 1.0 else 'red'}]{row.wall_ratio:.2f}×[/]\n({row.ratio:.2f}×)",
            f"{escape(row.own)}\n{time_words(row.own_time)}",
            f"[{'green' if row.overhead <= OVERHEAD else 'red'}]{row.overhead:.2f}[/]",
        )
    return shown
