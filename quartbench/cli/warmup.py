"""``quartbench warmup``: compile every kernel, once and for all."""

from __future__ import annotations

import click
from rich.console import Console

from .display import progress


@click.command()
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
