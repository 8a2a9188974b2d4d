"""Does a solve in another process find what it finds here, after a solve on all threads, whoever starts the process?"""

SOLVED = """
import concurrent.futures, multiprocessing, os
import joblib
import numpy as np
import quartbench as qb
from quartbench.kernels import jit

jit.PARALLEL_WORK = 0  # every kernel on all threads
FORM = qb.StackedForm(np.random.default_rng(0).standard_normal((900, 70)))
RIGHT = np.random.default_rng(1).standard_normal((4, 70))

def job(number):
    result = qb.solve(qb.Problem(FORM, RIGHT[number]), "homcg", "uniform", rel_gap=1e-9)
    return os.getpid(), result.success, result.x

here = [job(number) for number in range(4)]
fork = multiprocessing.get_context("fork")
ways = {
    "joblib, threads": lambda: joblib.Parallel(2, backend="threading")(joblib.delayed(job)(k) for k in range(4)),
    "loky": lambda: joblib.Parallel(2, backend="loky")(joblib.delayed(job)(number) for number in range(4)),
    "joblib, fork": lambda: joblib.Parallel(2, backend="multiprocessing")(joblib.delayed(job)(k) for k in range(4)),
    "executor": lambda: list(concurrent.futures.ProcessPoolExecutor(2, mp_context=fork).map(job, range(4))),
    "pool": lambda: fork.Pool(2).map(job, range(4)),
}
for way, solves in ways.items():
    print(way, end=": ", flush=True)  # a way that aborts the process is the last one named
    there = solves()
    for (_, success, x), (_, success_there, x_there) in zip(here, there, strict=True):
        assert success and success_there
        np.testing.assert_allclose(x_there, x, rtol=1e-4, atol=1e-6)
    print("elsewhere" if {pid for pid, *_ in there} - {os.getpid()} else "here")
"""


def test_processes_solve_after_a_solve_on_all_threads(run_python):
    # GNU's OpenMP ends a process that was forked beside its threads, at the first parallel kernel.
    found = dict(line.split(": ") for line in run_python(SOLVED).splitlines())
    others = dict.fromkeys(["loky", "joblib, fork", "executor", "pool"], "elsewhere")
    assert found == {"joblib, threads": "here", **others}
