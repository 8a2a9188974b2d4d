"""Do kernels run as promised: the same bits, in every thread, compiled or not, never from stale machine code?"""

import importlib
import shutil
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import quartbench
from quartbench.kernels import jit, rows, warmup

from . import plain
from .tour import tour

#: Scripts start with one form of every kind that has parallel kernels, however little work it is for them.
LARGE_FORMS = """
import numpy as np
import scipy.sparse as sp
from quartbench.kernels import jit
from quartbench.forms import ComplexForm, GraphForm, StackedForm

jit.PARALLEL_WORK = 0
rng = np.random.default_rng(0)
rows = rng.standard_normal((3000, 30))
thinned = np.where(rng.random((4000, 40)) < 0.3, rng.standard_normal((4000, 40)), 0.0)
ring = np.stack([np.arange(9000), (np.arange(9000) + 1) % 9000], axis=1)
forms = [
    StackedForm(rows, rank=3),
    StackedForm(sp.csr_matrix(thinned)),
    ComplexForm(rows[:, :15] + 1j * rows[:, 15:]),
    GraphForm(9000, 3, ring),
]
points = [rng.standard_normal(form.dim) for form in forms]

def results():
    return [
        np.concatenate([[value], gradient, image, form.hessian_product(x, x), form.adjoint(image), form.image(x)])
        for form, x in zip(forms, points)
        for value, gradient, image in [form.evaluate(x)]
    ]
"""

TWO_THREADS = """
from threading import Barrier, Thread
start, found = Barrier(2), [[], []]

def work(mine):
    start.wait()
    for _ in range(40):
        mine.append(results())

workers = [Thread(target=work, args=(mine,)) for mine in found]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
alone = results()
assert [len(mine) for mine in found] == [40, 40]
for mine in found:
    for answer in mine:
        assert all(np.array_equal(a, b) for a, b in zip(answer, alone))
"""


def public_kernels():
    """Return the names "module.kernel" of all public kernels, found by looking through the files of the room."""
    names = set()
    for source in Path(jit.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"quartbench.kernels.{source.stem}")
        for name, kernel in vars(module).items():
            if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__ and name[0] != "_":
                names.add(f"{source.stem}.{name}")
    return names


def test_the_warm_up_compiles_every_public_kernel():
    assert {name.partition(" ")[0] for name, _ in warmup.tasks()} >= public_kernels()


def test_after_the_warm_up_forms_and_cones_compile_nothing(run_python):
    script = """
import numpy as np, scipy.sparse as sp
from quartbench.kernels import fronts, gram, graph, images, jit, projections, rows, sparse, warmup
from quartbench.linalg.dissection import Dissection
from quartbench.linalg.laplacians import DissectedLaplacian
from quartbench import *

jit.PARALLEL_WORK = 1000

def signatures():
    kernels = (k for room in (fronts, gram, graph, images, projections, rows, sparse) for k in vars(room).values())
    return {(k.py_func.__qualname__, s) for k in kernels if hasattr(k, "py_func") for s in k.signatures}

for _, call in warmup.tasks():
    call()
warm = signatures()
a = np.random.default_rng(0).standard_normal((40, 6))
ring = [(i, (i + 1) % 9) for i in range(9)]
for form, cone, metric in [
    (StackedForm(a), Free(), Identity(6)),
    (StackedForm(a.astype(np.float32), rank=2), Orthant(), Diagonal(np.arange(1.0, 7.0))),
    (StackedForm(sp.csr_matrix(a)), SecondOrder(), Identity(6)),
    (StackedForm(np.tile(a, (300, 1))), Free(), Identity(6)),
    (StackedForm(sp.csr_matrix(np.tile(a, (300, 1)))), Free(), Identity(6)),
    (ComplexForm(a[:, :3] + 1j * a[:, 3:]), Free(), Identity(6)),
    (ComplexForm(np.tile(a[:, :3] + 1j * a[:, 3:], (300, 1))), Free(), Identity(6)),
    (GraphForm(9, 3, ring), Centred(), Identity(27)),
    (GramForm(5, 2), Orthant(), Identity(10)),
]:
    x = np.linspace(1.0, 2.0, form.dim) ** 2
    x[0] = 2.0 * form.dim
    problem = Problem(form, x, cone)
    s, v = form.image(x), form.gradient(x)
    form.value(x), form.hessian_product(x, v), form.line(x, v)
    if not isinstance(form, GramForm): form.adjoint(s)
    form.gradient_from_image(s), form.hessian_product_from_image(s, v)
    problem.cone.slice(problem.c, metric)(x)
    certify(problem, problem.cone.euclidean(x))
solver = DissectedLaplacian(Dissection(9, np.array(ring)), np.arange(1.0, 10.0))
solver.solve(np.eye(9)[:, :2] - 1 / 9), solver.resistances()
print(signatures() - warm or "none")
"""
    assert run_python(script) == "none"


def test_the_same_input_gives_the_same_bits(threads):
    first = tour(parts=threads)
    for _ in range(5):
        for name, result in tour(parts=threads).items():
            plain.identical(result, first[name])


def test_shares_not_threads_decide_the_bits():
    # Sums run in the order of the shares: a busy machine that runs two shares in one thread changes nothing.
    results = []
    for count in (1, 2):
        numba.set_num_threads(count)
        results.append(tour(parts=2))
    for name, result in results[0].items():
        plain.identical(result, results[1][name])


def test_kernels_do_not_change_their_input():
    # Read-only arrays are another type to Numba, and a kernel that writes to one does not compile for it.
    a, x = np.random.default_rng(0).standard_normal((9, 4)), np.ones(4)
    wanted = rows.evaluate(a, 1, x)
    a.flags.writeable = x.flags.writeable = False
    for found, expected in zip(rows.evaluate(a, 1, x), wanted, strict=True):
        plain.close(found, expected)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("total", [0, 1, 2, 5, 1000])
def test_shares_cut_a_range_evenly(total, parts):
    bounds = jit.shares(total, parts)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1], bounds.size) == (0, total, parts + 1)
    assert sizes.min() >= total // parts
    assert sizes.max() <= -(-total // parts)


def test_small_work_runs_in_one_thread_and_large_work_in_all():
    numba.set_num_threads(2)
    assert jit.thread_count(jit.PARALLEL_WORK - 1, 100) == 1
    assert jit.thread_count(jit.PARALLEL_WORK, 100) == (1 if jit.LAYER is None else 2)
    assert jit.thread_count(jit.PARALLEL_WORK, 1) == 1
    numba.set_num_threads(1)
    assert jit.thread_count(1e12, 100) == 1


def test_two_python_threads_may_run_kernels_at_once(run_python):
    script = LARGE_FORMS + TWO_THREADS + "import numba\nprint(jit.LAYER, numba.threading_layer())"
    asked, running = run_python(script).split()
    assert asked == running
    assert running in ("omp", "tbb")


FORKS = """
import concurrent.futures, multiprocessing, os, sys, numba

def job(number):
    return results()[number]

here = results() + results() + results()  # the third call of a kernel is on all threads
fork = multiprocessing.get_context("fork")
"""

FORKED = {
    "os.fork": """
child = os.fork()
if child == 0:
    os._exit(0 if all(np.allclose(a, b) for a, b in zip(here, results())) else 3)
print(os.waitpid(child, 0)[1])
""",
    "a pool": """
with fork.Pool(2) as pool:
    print(0 if all(np.allclose(a, b) for a, b in zip(here, pool.map(job, range(4)))) else 3)
""",
    "an executor": """
with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
    print(0 if all(np.allclose(a, b) for a, b in zip(here, pool.map(job, range(4)))) else 3)
""",
    "a child of a child": """
child = os.fork()
if child == 0:
    results()
    inner = os.fork()
    if inner == 0:
        os._exit(0 if all(np.allclose(a, b) for a, b in zip(here, results())) else 3)
    os._exit(os.waitpid(inner, 0)[1])
print(os.waitpid(child, 0)[1])
""",
}


@pytest.mark.parametrize("way", FORKED)
def test_a_forked_process_computes_what_its_parent_does(run_python, way):
    # GNU's OpenMP ends a process that was forked beside its threads, at the first parallel kernel.
    assert run_python(LARGE_FORMS + FORKS + FORKED[way], NUMBA_NUM_THREADS="2").split() == ["0"]


def test_a_process_that_was_forked_before_any_thread_ran_has_its_own(run_python):
    script = """
import os
child = os.fork()
if child == 0:
    results()
    os._exit(jit.LAYER is None)
print(os.waitpid(child, 0)[1])
"""
    assert run_python(LARGE_FORMS + script, NUMBA_NUM_THREADS="2").split() == ["0"]


def test_under_the_work_queue_layer_kernels_run_serially(run_python):
    script = LARGE_FORMS + TWO_THREADS + "print(jit.LAYER, jit.thread_count(1e12, 9))"
    assert run_python(script, NUMBA_THREADING_LAYER="workqueue") == "None 1"


def test_a_work_queue_that_already_runs_is_noticed(run_python):
    # Numba starts its threads once a process: whoever ran a parallel function before us has chosen the layer.
    script = """
import numba
numba.config.THREADING_LAYER = "workqueue"
numba.set_num_threads(2)
from numba.np.ufunc.parallel import _launch_threads
_launch_threads()
assert numba.threading_layer() == "workqueue"
numba.config.THREADING_LAYER = "default"
from quartbench.kernels import jit
print(jit.LAYER, jit.thread_count(1e12, 9), numba.config.THREADING_LAYER)
"""
    assert run_python(script) == "None 1 default"


def test_without_compilation_the_kernels_say_the_same(run_python, tmp_path):
    script = """
import sys, numba, numpy as np
from tests.kernels.tour import tour
assert numba.config.DISABLE_JIT
np.savez(sys.argv[1], **{f"{name} {k}": part for name, parts in tour().items() for k, part in enumerate(parts)})
"""
    run_python(script, tmp_path / "interpreted.npz", NUMBA_DISABLE_JIT="1")
    compiled = {f"{name} {k}": part for name, parts in tour().items() for k, part in enumerate(parts)}
    with np.load(tmp_path / "interpreted.npz") as interpreted:
        assert set(interpreted.files) == set(compiled)
        for name in compiled:
            plain.close(compiled[name], interpreted[name])


@pytest.mark.parametrize("shared", [False, True], ids=["own cache", "NUMBA_CACHE_DIR"])
def test_an_edited_callee_in_another_file_is_compiled_anew(run_python, tmp_path, shared):
    # Numba stamps cached machine code with the content of the caller's own file only (quartbench/kernels/jit.py).
    package = Path(quartbench.__file__).parent
    copy = tmp_path / "quartbench"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    # A small caller of images.value compiles in a second; sparse.evaluate and the others are in the same position.
    (copy / "kernels" / "caller.py").write_text(
        "from .images import value\nfrom .jit import kernel\n\n\n@kernel\ndef call(s):\n    return value(s, 1)\n"
    )
    script = """
import numpy as np, quartbench
from quartbench.kernels.caller import call
print(call(np.full(1, 2.0)), sum(call.stats.cache_hits.values()), quartbench.__file__)
"""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if shared else {}

    def run():
        value, hits, origin = run_python(script, path=tmp_path, **cache).split()
        assert Path(origin).parent == copy
        return float(value), int(hits)

    assert run() == (16.0, 0)
    assert run() == (16.0, 1)
    source = copy / "kernels" / "images.py"
    before = "return _value(image, 1)"
    text = source.read_text()
    assert text.count(before) == 1
    source.write_text(text.replace(before, "return 1.0 + _value(image, 1)"))
    assert run() == (17.0, 0)


def test_a_read_only_installation_caches_elsewhere(run_python, tmp_path):
    # Root may write anywhere, so the folder that cannot be made stands in for one that may not be written.
    package = Path(quartbench.__file__).parent
    copy = tmp_path / "quartbench"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "kernels" / "__pycache__").write_text("in the way")
    script = "from quartbench.kernels import jit; print(jit.CACHE_DIR)"
    home = tmp_path / "home"
    where = run_python(script, path=tmp_path, XDG_CACHE_HOME=str(home), PYTHONDONTWRITEBYTECODE="1")
    assert Path(where).parent == home


def test_crowded_cores_are_left_to_others_for_longer_each_time():
    crowd = jit._Crowd()
    for slow in (True, False, True, True):
        crowd.see(slow)
    assert crowd.calls == 0
    crowd.see(True)  # the third in a row
    assert crowd.calls == jit.FEWEST_ALONE
    for _ in range(10):
        crowd.see(True)  # no better afterwards
    assert crowd.calls == jit.MOST_ALONE
    crowd.see(False)
    assert (crowd.slow, crowd.following) == (0, jit.FEWEST_ALONE)


def test_a_parallel_kernel_runs_alone_at_first_and_while_the_cores_are_crowded(monkeypatch):
    seen, seconds = [], iter(np.cumsum([0.0, 1.0, 0.0, 2.0, 0.0, 0.5] + 3 * [0.0, 9.0] + 30 * [0.0, 1.0]))
    monkeypatch.setattr(jit, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(jit, "_crowd", jit._Crowd())
    numba.set_num_threads(2)

    def kernel(result):
        seen.append(numba.get_num_threads())
        return result

    assert [jit.together(kernel, 1000, k) for k in range(15)] == list(range(15))
    alone, crowded = jit.SAMPLES * [1], jit.FEWEST_ALONE * [1]
    assert seen == [*alone, 2, 2, 2, 2, *crowded, 2]
    assert numba.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError):
        jit.together(lambda: 1 / 0, 1000)
    assert numba.get_num_threads() == 2
