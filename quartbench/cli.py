"""The command line: parses, calls, prints. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
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
