"""What every test may count on: repeatable hypothesis, two Numba threads, registers as they were, own processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Numba reads this when it is first imported: parallel kernels must run in two threads on a single core too.
os.environ.setdefault("NUMBA_NUM_THREADS", str(max(2, os.cpu_count() or 1)))

import numba

from quartbench.cones.base import CONES
from quartbench.forms.base import FORMS
from quartbench.inverse.contract import METHODS
from quartbench.solvers.registry import SOLVERS

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile(
    "quartbench",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("quartbench")


def pytest_configure(config):
    """Ignore a warning of Numba's; named in pyproject.toml, its class would be imported before the threads are set.

    A shell that runs the tests in the background has them ignore Ctrl-C, which some of them send.
    """
    config.addinivalue_line("filterwarnings", "ignore::numba.core.errors.NumbaPerformanceWarning")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _threads_as_before():
    """Set Numba's thread count back after a test that changed it."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


@pytest.fixture(autouse=True)
def _registers_as_before():
    """Strike what a test registered from the lists of later tests; what is ours stays, imported late or not."""
    registers = (FORMS, CONES, METHODS, SOLVERS)
    before = [dict(register._found) for register in registers]
    yield
    for register, known in zip(registers, before, strict=True):
        ours = {name: found for name, found in register._found.items() if found.__module__.startswith("quartbench.")}
        register._found.clear()
        register._found.update({**ours, **known})


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    """Run the test with one Numba thread and with two."""
    numba.set_num_threads(request.param)
    return request.param


@pytest.fixture
def run_python():
    """Return a function that runs a script in a new process and returns its output; it fails where the script does.

    An abort of the process (as in Numba's work-queue layer) is seen here as a failing exit code.
    """

    def run(script, *arguments, path=ROOT, **environment):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "COV_"))}
        inherited["NUMBA_NUM_THREADS"] = "2"
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            cwd=path,
            env={**inherited, "PYTHONPATH": str(path), **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    return run
