"""``quartbench kernels``: how fast are the kernels on this machine?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quartbench import views

from .display import headed_table, json_text, progress, time_words

if TYPE_CHECKING:
    from rich.table import Table

    from quartbench.study.kernels import Row


@click.command()
@click.option("--case", "names", multiple=True, metavar="NAME", help="Measure only this case; may be repeated.")
@click.option("--threads", default=None, type=click.IntRange(1), help="Threads for every contender [default: all].")
@click.option("--rounds", default=6, show_default=True, type=click.IntRange(1), help="Turns that each contender gets.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Also write kernels.md and .json there.")
def kernels(names: tuple[str, ...], threads: int | None, rounds: int, as_json: bool, out: Path | None) -> None:
    """Time kernels against NumPy and scipy.sparse.

    All get the same threads and take turns; the best call of each counts. 'ratio' compares with the code as one
    writes it first, 'tuned' with the same code at its best; 'read' is the fraction of this machine's parallel read
    speed, 'wanted' what the project promises of 'tuned'.
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
        click.echo(json_text(record))
    else:
        Console().print(_table(rows, threads))
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / "kernels.json").write_text(json_text(record) + "\n", encoding="utf-8")
            (out / "kernels.md").write_text(study.markdown(rows, threads, record["system"]), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"cannot write to {out}: {error.strerror}") from error
        click.echo(f"written: {out / 'kernels.md'}, {out / 'kernels.json'}", err=True)


def _table(rows: list[Row], threads: int) -> Table:
    title = f"Kernels on {views.counted(threads, 'thread')}, best of many interleaved calls"
    table = headed_table(title, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("time", "GB/s", "read", "baseline", "ratio", "tuned", "wanted"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        colour = "green" if row.ratio >= row.target else "red"
        table.add_row(
            row.name,
            time_words(row.seconds),
            f"{row.gigabytes_per_second:.1f}",
            f"{row.bandwidth_fraction:.2f}",
            time_words(row.baseline_seconds),
            f"[{colour}]{row.ratio:.2f}×[/]",
            f"{row.tuned_ratio:.2f}×",
            f"{row.target:.1f}×",
        )
    return table
