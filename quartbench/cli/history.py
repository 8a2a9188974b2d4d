"""``quartbench history``: what asv has measured over commits, as one page that needs no network."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from quartbench.errors import ProblemError

from .display import headed_table
from .gate import LOG_WIDTH

EXAMPLES = """\b
Examples:
  quartbench history                  .asv/results, all of it
  quartbench history --bench ^gate --out gate.html
  quartbench history --expect         time that 'make bench' takes
"""

#: Changes that the terminal shows; the page has all.
SHOWN = 12


@click.command(epilog=EXAMPLES)
@click.option(
    "--results", type=click.Path(file_okay=False, path_type=Path), help="asv's results [default: .asv/results]."
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The page [default: .asv/history.html].")
@click.option("--bench", multiple=True, metavar="REGEX", help="Only benchmarks that match.")
@click.option("--expect", is_flag=True, help="Only say how long measuring a commit takes, from the last one.")
def history(results: Path | None, out: Path | None, bench: tuple[str, ...], expect: bool) -> None:
    """Draw how performance has moved over commits.

    asv's own results ('make bench', 'asv run') become one HTML page that works offline: every benchmark over commits
    with its changes marked, by asv's own step detection; the largest changes in a table; links between times and the
    counts that explain them.
    """
    from quartbench.gate import commits, page
    from quartbench.gate import history as histories
    from quartbench.gate.run import check_patterns

    try:
        root = commits.project()
    except ProblemError:
        root = None
    results = results or (root or Path.cwd()) / histories.RESULTS
    if expect:
        click.echo(_expected(histories.expected(results)))
        return
    found = histories.read(results, check_patterns(bench, ""), root)
    path = page.write(found, out or results.parent / "history.html")
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, LOG_WIDTH)
    changes = found.changes()[:SHOWN]
    if changes:
        table = headed_table("The largest changes", pad_edge=False)
        table.add_column("benchmark", overflow="fold")
        for heading in ("before", "after", "ratio"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("commit", no_wrap=True)
        for series, change in changes:
            values = (page.value_words(series, value) for value in (change.before, change.after))
            colour = "red" if change.worse else "green"
            ratio = f"[{colour}]{page.ratio_words(change)}[/]"
            table.add_row(escape(series.name), *values, ratio, found.commits[change.place].short)
        console.print(table)
    for sentence in page.answer(found):
        console.print(escape(sentence), highlight=False)
    for name in found.unreadable:
        click.echo(f"left out: {results / name} is no result of asv's, or damaged", err=True)
    click.echo(f"the page: {path}")


def _expected(seconds: float | None) -> str:
    if seconds is None:
        return "nothing measured here yet: 1900 series, by an estimate half an hour, and minutes to build and compile"
    minutes = max(round(seconds / 60), 1)
    return f"the last commit took {minutes} minute{'s' if minutes != 1 else ''}, its build included"
