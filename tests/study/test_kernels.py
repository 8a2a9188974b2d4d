"""The kernel table compares things that compute the same."""

import numpy as np
import pytest

from quartbench.study.kernels import CASES, duration
from quartbench.study.timing import best_times, equal_threads

SMALL = [name for name in CASES if not any(size in name for size in ("100000", "20000x1000"))]


@pytest.mark.parametrize("name", SMALL)
def test_contenders_of_a_case_agree(name):
    case = CASES[name]()
    ours = case.ours()
    for other in (case.baseline(), case.tuned()):
        if case.operation == "value+gradient":
            assert ours[0] == pytest.approx(other[0], rel=1e-10)
        mine, theirs = (ours[1], other[1]) if case.operation == "value+gradient" else (ours, other)
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8 * abs(theirs).max())


def test_durations_read_well():
    assert [duration(s) for s in (2.0, 3.21e-3, 4.5e-6, 6e-9)] == ["2 s", "3.21 ms", "4.5 µs", "6 ns"]


def test_every_contender_is_called_in_every_round():
    calls = []
    best_times([lambda: calls.append("a"), lambda: calls.append("b")], rounds=2, slice_seconds=0.0, pause=0.0)
    assert "".join(calls) == "ab" + "aaabbb" * 2


def test_equal_threads_are_set_and_restored():
    import numba

    before = numba.get_num_threads()
    with equal_threads(1):
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before
