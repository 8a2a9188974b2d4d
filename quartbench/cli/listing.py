"""``quartbench list``: which names can be given to the other commands?"""

from __future__ import annotations

import inspect
import re

import click
from rich.console import Console
from rich.markup import escape

from quartbench.errors import absent

from .display import json_text, word_table

COMPLETION = """\b
Completion in your shell, by a line in its start-up file:
  bash   eval "$(_QUARTBENCH_COMPLETE=bash_source quartbench)"
  zsh    eval "$(_QUARTBENCH_COMPLETE=zsh_source quartbench)"
  fish   _QUARTBENCH_COMPLETE=fish_source quartbench | source
"""


@click.command(name="list", epilog=COMPLETION)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def list_(as_json: bool) -> None:
    """List solvers, metrics, cones, instances and methods.

    Inverse methods run on recoveries, which are instances of inverse problems with the truth behind their data, and
    regression methods on regressions. The studies are listed by 'quartbench compare --studies'.
    """
    from quartbench import inverse, regression, solvers
    from quartbench.cones import CONES
    from quartbench.instances import INSTANCES
    from quartbench.inverse.recoveries import RECOVERIES
    from quartbench.precondition import METRICS
    from quartbench.regression.data import REGRESSIONS

    found = {
        "solvers": {name: _first_line(solver) for name, solver in solvers.solvers().items()},
        "metrics": {name: _first_line(make) for name, make in METRICS.items()},
        "cones": {name: _first_line(cone) for name, cone in CONES.items()},
        "instances": {name: _first_line(make) for name, make in INSTANCES.items()},
        "inverse methods": {name: _first_line(method) for name, method in inverse.methods().items()},
        "recoveries": {name: _first_line(make) for name, make in RECOVERIES.items()},
        "regression methods": {name: _first_line(method) for name, method in regression.methods().items()},
        "regressions": {name: _first_line(make) for name, make in REGRESSIONS.items()},
    }
    if as_json:
        click.echo(json_text(found))
        return
    for title, entries in found.items():
        Console().print(word_table(entries.items(), 20, title=title, title_justify="left", title_style="bold"))
        Console().print()
    missing = absent()
    for extra in dict.fromkeys(missing.values()):
        names = ", ".join(name for name in missing if missing[name] == extra)
        Console().print(escape(f"with pip install 'quartbench[{extra}]' also {names}"))


def _first_line(thing: object) -> str:
    """Return the first line of a docstring in plain words: code and roles of reStructuredText without their marks."""
    line = (inspect.getdoc(thing) or "").partition("\n")[0]
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``|(?<![\w`])`([^`]*)`", lambda m: m[1] or m[2] or m[3], line)
