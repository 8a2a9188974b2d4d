"""``quartbench info``: what does a bug report need to say of this system?"""

from __future__ import annotations

import click
from rich.console import Console

from .display import fact_table, json_text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def info(as_json: bool) -> None:
    """Show versions and threads.

    This is what a bug report should carry.
    """
    from quartbench.study.system import describe

    facts = describe()
    if as_json:
        click.echo(json_text(facts))
        return
    Console().print(fact_table((name, str(value)) for name, value in facts.items()))
