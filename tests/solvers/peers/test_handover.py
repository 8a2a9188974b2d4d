"""Does a method that calls back behave as a generator: still between items, closed cleanly, honest about errors?"""

import gc
import threading

import numpy as np
import pytest

pytest.importorskip("greenlet")

from quartbench.solvers.peers.handover import handed_over


def counting(log):
    """Return a run that hands over 0, 1, 2, … and logs what it does."""

    def run(hand_over):
        try:
            for k in range(1000):
                log.append(k)
                hand_over(k)
        finally:
            log.append("ended")

    return run


def test_items_come_in_order_and_the_run_stands_still_between_them():
    log = []
    items = handed_over(counting(log))
    assert log == []
    assert [next(items), next(items)] == [0, 1]
    assert log == [0, 1]
    assert list(items) == list(range(2, 1000))
    assert log[-1] == "ended"


def test_a_run_without_items_is_empty():
    assert list(handed_over(lambda hand_over: None)) == []


@pytest.mark.parametrize("way", ["close", "forget"])
def test_the_run_ends_with_its_generator(way):
    log, before = [], threading.active_count()
    items = handed_over(counting(log))
    next(items)
    if way == "close":
        items.close()
    del items
    gc.collect()
    assert log == [0, "ended"]
    assert threading.active_count() == before


def test_a_generator_that_never_started_runs_nothing():
    log = []
    handed_over(counting(log)).close()
    assert log == []


@pytest.mark.parametrize("error", [ValueError("inside"), KeyboardInterrupt()], ids=repr)
def test_an_exception_of_the_run_reaches_the_caller(error):
    def run(hand_over):
        hand_over(1)
        raise error

    items = handed_over(run)
    assert next(items) == 1
    with pytest.raises(type(error)) as caught:
        next(items)
    assert caught.value is error


def test_an_exception_while_it_is_closed_reaches_the_caller():
    def run(hand_over):
        try:
            hand_over(1)
        finally:
            raise ValueError("on the way out")

    items = handed_over(run)
    next(items)
    with pytest.raises(ValueError, match="on the way out"):
        items.close()


def test_runs_may_be_taken_in_turns_nested_and_in_threads():
    outer = handed_over(lambda hand_over: [hand_over(item) for item in handed_over(counting([]))])
    assert [next(outer) for _ in range(3)] == [0, 1, 2]
    one, other = handed_over(counting([])), handed_over(counting([]))
    assert [next(one), next(other), next(one), next(other)] == [0, 0, 1, 1]
    for items in (outer, one, other):
        items.close()
    found = []
    worker = threading.Thread(target=lambda: found.extend(handed_over(counting([]))))
    worker.start()
    worker.join()
    assert found == list(range(1000))


def test_numpy_error_states_are_the_caller_s_inside_and_untouched_outside():
    def run(hand_over):
        hand_over(np.geterr()["over"])
        with np.errstate(over="ignore"):
            hand_over(np.geterr()["over"])

    with np.errstate(over="raise"):
        items = handed_over(run)
        assert next(items) == "raise"
        assert next(items) == "ignore"
        assert np.geterr()["over"] == "raise"
        items.close()
