"""``quartbench gate``: does a commit make quartbench slower?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quartbench.errors import ProblemError

from .display import progress, require_folder

if TYPE_CHECKING:
    from quartbench.gate.commits import Pair
    from quartbench.gate.suite import Watcher

EXAMPLES = """\b
Examples:
  quartbench gate                                against the merge base
  quartbench gate v0.1.0 HEAD --markdown -       two commits, as a comment
  quartbench gate HEAD HEAD                      what noise alone does
  quartbench gate --calibrate --runs 5 --write   thresholds from noise here
"""

#: Columns of a log, which has room where a terminal may not.
LOG_WIDTH = 120


@click.command(epilog=EXAMPLES)
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
    from quartbench.gate import commits

    files = {"markdown": markdown, "junit": junit, "json": json_}
    files = {kind: name for kind, name in files.items() if name is not None}
    if calibrate and (base is not None or files):
        raise ProblemError("--calibrate measures HEAD alone and writes benchmarks/gate.toml only: drop the rest")
    if write and not calibrate:
        raise ProblemError("--write needs --calibrate")
    for name in files.values():
        require_folder(None if name == "-" else Path(name))
    root = commits.project()
    pair = commits.choose(root, head if calibrate else base, head)
    console = Console(stderr=True)
    console.print("gate: {1} against {0}".format(*pair.names()), highlight=False)
    if commits.uncommitted(root):
        console.print("gate: uncommitted changes of the package are not measured", style="yellow")
    # Where a report goes to standard output, the table must not.
    screen = console if "-" in files.values() else Console()
    if not screen.is_terminal:
        screen.width = max(screen.width, LOG_WIDTH)
    if calibrate:
        sys.exit(_calibrate(root, pair, bench, runs, write, screen, console))
    sys.exit(_compare(root, pair, bench, files, screen, console))


def _compare(
    root: Path, pair: Pair, bench: tuple[str, ...], files: dict[str, str], screen: Console, console: Console
) -> int:
    """Measure two commits, show and write the verdicts, and return the exit code."""
    from quartbench.gate import report as reports
    from quartbench.gate import run

    with _measuring(console) as watch:
        report = run.compare(root, pair, watch, bench)
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
        click.echo(f"written: {name}", err=True)
    return report.exit_code


def _calibrate(
    root: Path, pair: Pair, bench: tuple[str, ...], runs: int, write: bool, screen: Console, console: Console
) -> int:
    """Measure a commit against itself, show its noise, write thresholds where asked to, and return the exit code."""
    from quartbench.gate import report as reports
    from quartbench.gate import run
    from quartbench.gate.thresholds import TABLE, write_table

    with _measuring(console) as watch:
        found, noise = run.calibrate(root, pair, runs, watch, bench)
    screen.print(reports.noise_table(noise, runs))
    passed = sum(one.exit_code == 0 for one in found)
    screen.print(f"The gate let {passed} of {runs} runs pass.", highlight=False)
    if write:
        write_table(root / TABLE, noise)
        click.echo(f"written: {TABLE}", err=True)
    return 2 if any(one.exit_code == 2 for one in found) else 0


@contextmanager
def _measuring(console: Console) -> Iterator[Watcher]:
    """Yield a watcher; an interruption ends the command, as nothing can be said without all of the turns."""
    try:
        with _watcher(console) as watch:
            yield watch
    except KeyboardInterrupt:
        console.print("gate: interrupted, nothing is decided", style="yellow")
        sys.exit(2)


@contextmanager
def _watcher(console: Console) -> Iterator[Watcher]:
    """Yield a function that shows how far asv is: a bar in a terminal, one line per turn elsewhere."""
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
        yield lambda done, text: bar.update(task, completed=round(100 * done), description=text[-42:])
