"""Are BLAS threads set for small work only, put back always, and made to sleep unless the user has chosen?"""

import threading

import numpy as np
import pytest

from quartbench.runtime.blas import NO_THREAD_WORK, ONE_THREAD_WORK, SPIN, _libraries, blas_threads

SMALL_WORK = 1e6

#: Prints the variable, whether BLAS multiplies and solves rightly after the package was imported, and whether its
#: threads are said to sleep soon.
SCRIPT = """
import os
import numpy as np
import scipy.linalg
{before}
import quartbench
from quartbench.runtime.blas import sleeps_soon
a = np.random.default_rng(0).standard_normal((400, 400))
right = np.allclose((a @ a)[:5], [[sum(x * y for x, y in zip(row, column)) for column in a.T] for row in a[:5]])
gram = a.T @ a + np.eye(400)
right &= np.allclose(gram @ scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram), a), a)
print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"), right, sleeps_soon())
"""


def counts():
    """Return the threads of each BLAS library."""
    return [library.get_num_threads() for library in _libraries()]


@pytest.fixture(autouse=True)
def _two_threads():
    before = counts()
    for library in _libraries():
        library.set_num_threads(2)
    yield
    for library, count in zip(_libraries(), before, strict=True):
        library.set_num_threads(count)


def test_small_work_runs_on_one_thread():
    assert counts()
    before = counts()
    with blas_threads(SMALL_WORK):
        assert counts() == [1] * len(before)
    assert counts() == before


@pytest.mark.parametrize("work", [0.0, 0.5 * NO_THREAD_WORK, 2.0 * ONE_THREAD_WORK])
def test_other_work_runs_on_as_many_as_are_set(work):
    before = counts()
    with blas_threads(work):
        assert counts() == before


def test_counts_are_put_back_after_an_exception():
    before, seen = counts(), []

    def fail():
        with blas_threads(SMALL_WORK):
            seen.append(counts())
            raise RuntimeError("oh")

    for _ in range(2):  # the second time only where the lock was given back too
        with pytest.raises(RuntimeError, match="oh"):
            fail()
        assert counts() == before
    assert seen == [[1] * len(before)] * 2


def test_one_inside_another_leaves_the_count_to_the_outer():
    before = counts()
    with blas_threads(SMALL_WORK):
        with blas_threads(SMALL_WORK):
            assert counts() == [1] * len(before)
        assert counts() == [1] * len(before)
    assert counts() == before


def test_counts_are_put_back_by_two_threads():
    before = counts()
    entered, leave = threading.Event(), threading.Event()

    def first():
        with blas_threads(SMALL_WORK):
            entered.set()
            leave.wait(10)

    worker = threading.Thread(target=first)
    worker.start()
    assert entered.wait(10)
    with blas_threads(SMALL_WORK):  # leaves after the first has put the count back
        leave.set()
        worker.join(10)
    assert counts() == before


def test_counts_are_put_back_by_many_threads_at_once():
    before = counts()
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 60))
    exact, wrong = a @ a, []

    def work():
        for _ in range(200):
            with blas_threads(SMALL_WORK):
                if not np.allclose(a @ a, exact):
                    wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert counts() == before


def test_import_shortens_the_spin_and_blas_computes_rightly(run_python, monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    assert run_python(SCRIPT.format(before="")) == f"{SPIN} True True"
    # Threads that are at work before the import are ended and made again.
    assert run_python(SCRIPT.format(before="np.ones((800, 800)) @ np.ones((800, 800))")) == f"{SPIN} True True"


def test_the_users_own_choice_is_left_alone(run_python):
    assert run_python(SCRIPT.format(before=""), OPENBLAS_THREAD_TIMEOUT="26") == "26 True False"


def test_an_import_beside_other_threads_leaves_blas_alone(run_python, monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    waiting = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    assert run_python(SCRIPT.format(before=waiting)) == "None True False"
