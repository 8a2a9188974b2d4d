"""The warm-up shares out its work: everything is compiled, and no function by two processes."""

import pytest

from quartbench.cli import warmup
from quartbench.kernels.warmup import tasks

#: Compile three small groups in two processes, into a cache of their own; a second script must find all of them.
COMPILE = """
from quartbench.cli import warmup
groups = [["images.value"], ["steps.extrapolate", "steps.slice_step"], ["projections.second_order"]]
print(sorted(warmup.compiled(groups, 2)))
"""
FIND = """
from quartbench.kernels import images, projections, steps, warmup
kernels = images.value, steps.extrapolate, steps.slice_step, projections.second_order
names = {f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.__name__}" for kernel in kernels}
for name, call in warmup.tasks():
    if name in names:
        call()
print([(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())) for kernel in kernels])
"""


@pytest.fixture(scope="module")
def groups():
    return warmup.joined([name for name, _ in tasks()])


def test_every_kernel_is_in_one_group(groups):
    assert sorted(name for group in groups for name in group) == sorted(name for name, _ in tasks())
    assert len(groups) > 1


def test_kernels_that_call_a_common_function_are_in_one_group(groups):
    group = next(group for group in groups if "rows.evaluate (float64)" in group)
    assert {"rows.evaluate (float32)", "rows.evaluate_complex"} <= set(group)  # the same kernel, and rows._total
    assert {"misfit.evaluate_complex", "sparse.evaluate", "graph.evaluate"} <= set(group)  # functions of other files
    assert not {"exact.image (float64)", "newton.solve_range", "steps.extrapolate"} & set(group)


def test_what_two_processes_compile_is_found_by_the_next(run_python, tmp_path):
    done = run_python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
    assert done == str(["images.value", "projections.second_order", "steps.extrapolate", "steps.slice_step"])
    assert run_python(FIND, NUMBA_CACHE_DIR=str(tmp_path)) == str([(1, 0)] * 4)
