"""``quartbench precondition``: what would each metric do for the conditioning of a form?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from .display import headed_table, json_text, time_words

if TYPE_CHECKING:
    from rich.table import Table

#: Characters of the longest bar.
BAR = 32


@click.command()
@click.argument("source", metavar="ROWS|PROBLEM", type=click.Path(exists=True, path_type=Path))
@click.option("--rank", type=click.IntRange(1), help="Rows of a term [default: 1; a saved problem has its own].")
@click.option("--method", default="auto", show_default=True, help="How Lewis weights are computed.")
@click.option("--eps", default=0.01, show_default=True, type=float, help="Their accuracy: κ ≤ (1 + eps)·√n.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def precondition(source: Path, rank: int | None, method: str, eps: float, as_json: bool) -> None:
    """Show what each metric makes of κ.

    ROWS is a file of stacked rows in any format of 'quartbench solve', PROBLEM a saved .npz. For the metrics identity,
    uniform (B⁽⁰⁾) and lewis (B*) it prints the certified bound on the quartic condition number κ, the leverage sweeps
    and the seconds they took. Iterations of HomGD grow with κ, those of the accelerated method with its root.
    """
    from quartbench.precondition import describe
    from quartbench.study.files import read_form

    found = describe(read_form(source, rank), method, eps)
    if as_json:
        click.echo(json_text(found.as_dict()))
    else:
        Console().print(_table(found))


def _table(found) -> Table:
    title = (
        f"m = {found.terms}, n = {found.dim}, r = {found.rank}, coherence γ = {found.coherence:.4g}; "
        f"no weights have a better bound than κ = √{found.freedom} = {found.best_kappa:.4g}"
    )
    table = headed_table(title, title_style="")
    table.add_column("metric")
    for heading in ("κ at most", "sweeps", "time"):
        table.add_column(heading, justify="right")
    table.add_column("κ on a log scale")
    decades = math.log10(max(one.kappa for one in found.metrics)) or 1.0
    for one in found.metrics:
        width = max(1, round(BAR * math.log10(max(one.kappa, 1.0)) / decades))
        kappa = f"{one.kappa:.4g}"
        table.add_row(one.name, kappa, str(one.sweeps), time_words(one.seconds), f"[cyan]{'█' * width}[/]")
    return table
