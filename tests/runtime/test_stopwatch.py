"""The clock of the set-up stands still while kernels are compiled or loaded."""

import subprocess
import sys
import time

import numba
import pytest

from quartbench.runtime.stopwatch import Stopwatch


def test_compilation_does_not_count():
    @numba.njit
    def slow_to_compile(x):
        total = 0.0
        for i in range(10):
            total += x**i + abs(x - i) ** 0.5
        return total

    started = time.perf_counter()
    with Stopwatch() as watch:
        slow_to_compile(2.0)
    elapsed = time.perf_counter() - started
    assert watch.loading > 0.0
    assert watch.seconds + watch.loading <= elapsed
    before = watch.loading
    slow_to_compile(3.0 + 1.0j)  # after it was stopped
    assert watch.loading == before


def test_work_counts_and_an_error_passes_through():
    watch = Stopwatch()

    def work():
        with watch:
            time.sleep(0.02)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        work()
    assert watch.seconds >= 0.02
    assert watch.loading == 0.0


def test_the_first_set_up_of_a_process_loads_off_the_clock():
    code = """
from quartbench import instances, solve
import quartbench.runtime.stopwatch as stopwatch
loading = []
leave = stopwatch.Stopwatch.__exit__
def watched(self, *error):
    leave(self, *error)
    loading.append(self.loading)
stopwatch.Stopwatch.__exit__ = watched
problem = instances.spectrum(500, 20, 0.2, seed=0)
solve(problem, "homgd", metric="lewis")
print(sum(loading))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) > 0.0
