"""The command line, in this process or in one of its own."""

import os
import subprocess
import sys

from click.testing import CliRunner, Result

from quartbench.cli import main


def run(*arguments) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def run_alone(*arguments, **environment) -> subprocess.CompletedProcess:
    """Run a command in a new process: one that names a user's solver registers it, which other tests must not see."""
    command = [sys.executable, "-m", "quartbench", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
