"""What a sweep may use: little memory beside the rows, and BLAS threads only where there is work for them."""

import threading
import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quartbench.forms import ComplexForm, GraphForm, StackedForm
from quartbench.instances import geometric_edges
from quartbench.precondition import effective_resistance, leverage, lewis_weights
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads


def peak_of(call):
    """Return the most bytes that a call holds at a time, as NumPy reports them, once its kernels are compiled."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["rank 1", "rank 5", "single precision", "complex"])
def test_a_sweep_takes_64_megabytes_and_a_square_matrix_at_most(kind):
    rows = np.random.default_rng(0).standard_normal((20_000, 200))
    form = {
        "rank 1": lambda: StackedForm(rows),
        "rank 5": lambda: StackedForm(rows, 5),
        "single precision": lambda: StackedForm(rows.astype(np.float32)),
        "complex": lambda: ComplexForm(rows.reshape(20_000, 100, 2).view(np.complex128)[..., 0]),
    }[kind]()
    assert peak_of(lambda: leverage(form)) <= 64e6 + 8 * form.dim**2
    assert peak_of(lambda: lewis_weights(form, eps=0.1)) <= 64e6 + 8 * form.dim**2


def test_resistances_of_a_large_graph_take_a_small_part_of_a_dense_matrix():
    form = GraphForm(3000, 3, geometric_edges(3000, 3, 12))
    assert peak_of(lambda: effective_resistance(form)) < 8 * 3000**2 / 4


def blas_counts():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_small_work_runs_on_one_blas_thread_and_leaves_the_setting_alone():
    with threadpool_limits(2, "blas"):
        before = blas_counts()
        with blas_threads(ONE_THREAD_WORK):
            assert set(blas_counts()) == {1}
            with blas_threads(1.0):
                assert set(blas_counts()) == {1}
            assert set(blas_counts()) == {1}
        assert blas_counts() == before
        with blas_threads(2 * ONE_THREAD_WORK):
            assert blas_counts() == before


def test_python_threads_that_overlap_leave_the_setting_as_it_was():
    """The last to leave would otherwise restore the 1 that it found inside."""
    with threadpool_limits(2, "blas"):
        before = blas_counts()
        entered, leave = threading.Event(), threading.Event()

        def other():
            with blas_threads(1.0):
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with blas_threads(1.0):
            thread.start()
            assert entered.wait(10)
        leave.set()
        thread.join()
        assert blas_counts() == before


def test_two_python_threads_compute_weights_at_once():
    forms = [StackedForm(np.random.default_rng(seed).standard_normal((400, 12))) for seed in range(2)]
    wanted = [lewis_weights(form, eps=1e-8).tau for form in forms]
    found = [None, None]

    def work(number):
        for _ in range(5):
            found[number] = lewis_weights(forms[number], eps=1e-8).tau

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
