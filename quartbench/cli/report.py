"""``quartbench report``: the page of a study, and its verdict on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from .display import headed_table, time_words

if TYPE_CHECKING:
    from rich.table import Table

    from quartbench.study.report import Report

EXAMPLES = """\b
Examples:
  quartbench report results                  in results/_report
  quartbench report results --out page.html  somewhere else
  quartbench kernels --out results/_kernels  for its roofline
"""

#: Colours of the verdicts. What is not measured is in the page; here it is only counted, below.
COLOURS = {"holds": "green", "does not hold": "red", "holds only when": "yellow"}


@click.command(epilog=EXAMPLES)
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

    with Console(stderr=True).status("drawing the report"):
        made = write(directory, out)
    console = Console()
    claims = _claim_table(made)
    if claims.row_count:
        console.print(claims)
    console.print(_winner_table(made))
    for sentence in made.answer:
        console.print(escape(sentence))
    for name in made.unreadable:
        click.echo(f"left out: {directory / 'runs' / name} is no run, or damaged", err=True)
    click.echo(f"the page: {made.page}")


def _claim_table(made: Report) -> Table:
    from quartbench.study.report.words import level, listed

    table = headed_table("Claims", pad_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim")
    for claim, found in made.claims:
        if found.verdict not in COLOURS:
            continue
        but = ", but" if found.condition.startswith("not ") else ""
        condition = f" [yellow]It holds{but} {escape(listed(found.condition))}.[/]" if found.condition else ""
        sentence = f"{escape(level(claim.sentence))} [bright_black]{claim.source}[/]"
        table.add_row(f"[{COLOURS[found.verdict]}]{found.verdict}[/]", sentence + condition)
    return table


def _winner_table(made: Report) -> Table:
    from quartbench.study.report.words import gap_words

    table = headed_table("Who wins where", pad_edge=False)
    columns = {"instance": "left", "gap": "right", "fastest": "left", "time": "right", "lead": "left"}
    for heading, justify in columns.items():
        table.add_column(heading, justify=justify)
    for one in made.winners:
        lead = one.lead(made.noise)
        table.add_row(
            escape(one.instance), gap_words(one.gap), escape(one.first), time_words(one.seconds), escape(lead)
        )
    return table
