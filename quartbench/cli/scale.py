"""``quartbench scale``: how long would a solve take on more rows, and on more machines?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from .display import headed_table, json_text, time_words

if TYPE_CHECKING:
    from rich.table import Table

    from quartbench.distributed.scaling import Prediction

EXAMPLES = """\b
Examples:
  quartbench scale --rows 1e10 --cols 1e4 --workers 1000
  quartbench scale --rows 1e9 --cols 2000 --workers 64 \\
    --bandwidth 10 --latency 0.1 --worker-memory 256
  quartbench scale --rows 1e9 --cols 2000 --workers 64 --json
  quartbench compare --study cluster --out results
  quartbench scale --fit results --rates mine.json
  quartbench scale --rows 1e9 --cols 2000 --workers 64 \\
    --rates mine.json
"""

#: Bytes per second of a Gbit/s, and bytes of a GB.
GBIT, GB = 1.25e8, 1e9


class Count(click.ParamType):
    """A whole number, which may be written 1e10."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            number = float(value)
            if number >= 1.0 and number == math.floor(number) and number < 2**63:
                return int(number)
        except (ValueError, OverflowError):
            pass
        return self.fail(f"{value!r} is not a whole number of at least 1, such as 1000 or 1e10", param, ctx)


POSITIVE = click.FloatRange(0.0, min_open=True)


@click.command(epilog=EXAMPLES)
@click.option("--rows", type=Count(), help="Rows m·r of the form, all workers together.")
@click.option("--cols", type=Count(), help="Unknowns n.")
@click.option("--workers", type=Count(), help="Workers, each with one block of the rows.")
@click.option("--rel-gap", default=1e-6, show_default=True, type=float, help="The relative gap to reach.")
@click.option("--bandwidth", type=POSITIVE, help="Of a link of the network, in Gbit/s [default: as fitted].")
@click.option("--latency", type=click.FloatRange(0.0), help="Of a message, in ms, beside what Dask takes [default: 0].")
@click.option("--memory-speed", type=POSITIVE, help="At which a worker reads its rows, in GB/s [default: as fitted].")
@click.option("--gflops", type=POSITIVE, help="Of a worker in products of matrices, 10⁹/s [default: as fitted].")
@click.option("--worker-memory", type=POSITIVE, help="Of a worker, in GB: what needs more is not chosen.")
@click.option("--driver-memory", type=POSITIVE, help="Of the driver, in GB: likewise.")
@click.option(
    "--rates", type=click.Path(dir_okay=False, path_type=Path), help="A file of rates, read, or made by --fit."
)
@click.option("--fit", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Results to fit rates to.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table: seconds and bytes.")
def scale(
    rows,
    cols,
    workers,
    rel_gap,
    bandwidth,
    latency,
    memory_speed,
    gflops,
    worker_memory,
    driver_memory,
    rates,
    fit,
    as_json,
) -> None:
    """Predict a solve on a cluster.

    For each method: rounds, bytes over the busiest link, seconds to the gap, and memory, by a model of what a round,
    a byte, a read and a product of matrices cost; and the method to choose. How many rounds a method needs is taken
    from measured runs, whose conditioning was that of column scales over two decades: with B = I rounds grow with it,
    the others hardly do.

    The rates come with the package. With --fit they are fitted to the results of the study 'cluster' and written to the
    file of --rates; the error of the model is then said, each run being predicted from the others.
    """
    from quartbench.distributed import rates as known
    from quartbench.distributed.scaling import Shape, predict
    from quartbench.study import modelling

    if fit is not None:
        if rates is None:
            raise click.UsageError("Missing option '--rates': the file for the rates that --fit makes.")
        made = modelling.write_fit(fit, rates)
        click.echo(f"written: {rates} (off by a factor of {made.usual:.2f} in the median, {made.worst:.2f} at most)")
        return
    for name, value in (("--rows", rows), ("--cols", cols), ("--workers", workers)):
        if value is None:
            raise click.UsageError(f"Missing option '{name}'.")
    found, about = known.read(rates or known.SHIPPED)
    found = found.changed(
        latency=None if latency is None else found.latency + latency / 1e3,
        bandwidth=None if bandwidth is None else GBIT * bandwidth,
        memory=None if memory_speed is None else GB * memory_speed,
        flops=None if gflops is None else 1e9 * gflops,
    )
    more = modelling.digits(rel_gap)
    methods = {name: counts.times(more) for name, counts in modelling.known(about).items()}
    limits = [math.inf if size is None else GB * size for size in (worker_memory, driver_memory)]
    shown = predict(Shape(rows, cols, workers), methods, found, *limits)
    if as_json:
        facts = {"rows": rows, "cols": cols, "workers": workers, "rel_gap": rel_gap, "rates": vars(found)}
        choose = shown[0].method if shown[0].fits else None
        click.echo(
            json_text(facts | {"choose": choose, "methods": [one._asdict() for one in shown], "assumptions": about})
        )
        return
    console = Console()
    console.print(_table(shown, rows, cols, workers, rel_gap))
    for line in _assumptions(found, about, shown):
        console.print(escape(line), soft_wrap=True)


def _table(shown: list[Prediction], rows: int, cols: int, workers: int, rel_gap: float) -> Table:
    title = f"{rows:.4g} × {cols:.4g} on {workers} workers, to a relative gap of {rel_gap:.0e}"
    table = headed_table(title, padding=(0, 1, 0, 0))
    table.add_column("method", min_width=21, no_wrap=True)
    for heading in ("rounds", "bytes\nof link", "time", "of a\nround", "worker\nholds", "driver\nholds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, one in enumerate(shown):
        name = f"[bold green]{escape(one.method)}[/]" if place == 0 and one.fits else escape(one.method)
        held = [size_words(size) for size in (one.worker_memory, one.driver_memory)]
        row = (f"{one.rounds:.0f}", size_words(one.bytes), long_time(one.seconds), long_time(one.per_round), *held)
        table.add_row(name if one.fits else f"[dim]✗ {name}[/]", *row)
    return table


def _assumptions(rates: Any, about: dict[str, Any], shown: list[Prediction]) -> list[str]:
    error = about["error"]
    best = shown[0]
    first = f"choose: {best.method}" if best.fits else "no method fits: more workers, or more memory, are needed"
    left_out = [] if all(one.fits for one in shown) else ["✗: does not fit into the memory given, or needs more rows"]
    return [
        *left_out,
        first,
        f"rates: {1e3 * rates.latency:.3g} ms a level of a round, {1e3 * rates.task:.3g} ms a block of a round, "
        f"{rates.bandwidth / GBIT:.3g} Gbit/s a link, {rates.memory / GB:.3g} GB/s of rows and {rates.flops / 1e9:.3g} "
        "Gflop/s a worker",
        f"fitted to: {about['origin']}; off by a factor of {error['usual']:.2f} in the median and {error['worst']:.2f} "
        f"at most on these {error['runs']} runs, each predicted from the others. Larger clusters were not measured."
        + (f" {about['note']}" if about.get("note") else ""),
        f"assumed: rounds as measured on {about['instance']} at {about['gap']:.0e}, in proportion to the digits asked "
        "for; 8 bytes a number; one block for each worker; sums in a tree of 8; samples of 20n rows (spag 40n) at the "
        "driver, which is as fast as a worker; reading, sending and computing one after another",
    ]


def size_words(count: float) -> str:
    """Return bytes in the unit that reads best."""
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def long_time(seconds: float) -> str:
    """Return a time in the unit that reads best, hours and days included."""
    for unit, size in (("days", 172800.0), ("h", 7200.0), ("min", 600.0)):
        if seconds >= size:
            return f"{seconds / {'days': 86400.0, 'h': 3600.0, 'min': 60.0}[unit]:.3g} {unit}"
    return time_words(seconds)
