"""The command line: parses, calls, prints. One file per command; heavy imports wait until a command needs them."""

from __future__ import annotations

import click

from quartbench import __version__
from quartbench.errors import ProblemError

from . import compare, demo, gate, history, info, kernels, listing, merge, precondition, report, scale, solve, warmup

__all__ = ["main"]

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

#: In the order in which they are used, which is that of --help.
COMMANDS = (
    info.info,
    warmup.warmup,
    listing.list_,
    solve.solve,
    demo.demo,
    precondition.precondition,
    kernels.kernels,
    compare.compare,
    merge.merge,
    report.report,
    scale.scale,
    gate.gate,
    history.history,
)


class Commands(click.Group):
    """A group that lists its commands in the order they are used in, and turns bad input into one clear line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Keep the order of definition."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a ProblemError ends it with exit code 2, and too little memory with 1: no traceback."""
        try:
            return super().invoke(ctx)
        except ProblemError as error:
            raise click.UsageError(str(error)) from error
        except MemoryError as error:
            raise click.ClickException(f"there is not enough memory: {error}") from error


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="quartbench")
def main() -> None:
    """Solve, certify and benchmark convex quartic problems: minimise ρ(x) − ⟨c,x⟩ over a cone."""


for _command in COMMANDS:
    main.add_command(_command)
