"""A suite with every kind of result, for the tests of the gate: DEMO tells which commit it plays."""

import os
import time

HEAD = os.environ["DEMO"] == "head"


def wait(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Times:
    """A slowed, an equal and a short time."""

    params = (["slowed", "equal", "short"],)
    param_names = ("case",)
    version, rounds, repeat, number, warmup_time = "1", 2, 8, 1, 0.0

    def time_wait(self, case):
        wait({"slowed": 0.06 if HEAD else 0.02, "equal": 0.02, "short": 0.002 if HEAD else 0.001}[case])


class Counts:
    """Counts that grow, shrink and stay."""

    params = (["grows", "shrinks", "stays"],)
    param_names = ("case",)
    version = "1"

    def track_iterations(self, case):
        return {"grows": 110.0 if HEAD else 100.0, "shrinks": 80.0 if HEAD else 100.0, "stays": 42.0}[case]

    track_iterations.unit = "iterations"


class Failures:
    """Everything that gives no number."""

    params = (["raises", "ends", "late", "new", "gone", "skipped"],)
    param_names = ("case",)
    version = "1"
    timeout = 5

    def setup(self, case):
        if case == "skipped" or (case == "gone" and HEAD):
            raise NotImplementedError("asks to be skipped")

    def track_passes(self, case):
        if case == "raises" and HEAD:
            raise ValueError("rows must be finite [bold]\nand more")
        if case == "ends" and HEAD:
            os._exit(3)
        if case == "late" and HEAD:
            time.sleep(60)
        if case == "new" and not HEAD:
            raise AttributeError("no attribute 'new'")
        return 7.0

    track_passes.unit = "passes"


class Prepared:
    """A setup_cache that raises."""

    version = "1"

    def setup_cache(self):
        if HEAD:
            raise RuntimeError("no instance")
        return 1.0

    def track_kappa(self, cache):
        return cache

    track_kappa.unit = "√n"


class Memory:
    """Peak memory."""

    version = "1"

    def peakmem_list(self):
        return [0.0] * 1_000_000
