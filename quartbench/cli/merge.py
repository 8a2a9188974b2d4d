"""``quartbench merge``: the results of several studies in one directory."""

from __future__ import annotations

from pathlib import Path

import click

from quartbench import views


@click.command()
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
    click.echo(f"{views.counted(count, 'run')}: {out}")
