"""Forms on a Dask cluster: what do a pass and a round cost beside the same rows in this process?"""

import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from . import common


class LargeCluster:
    """A pass over 1 GB on 2 workers beside one in this process, less a round; and a round alone (large tier)."""

    version = common.PROBLEM_SET
    params = ([2],)
    param_names = ("workers",)
    timeout = 1200

    def setup(self, workers):
        common.require_large()
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise NotImplementedError("Dask is not installed") from None
        import numpy as np

        import quartbench as qb

        rows = np.random.default_rng(0).standard_normal((250_000, 500))
        self.stack = ExitStack()
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        client = self.stack.enter_context(Client(self.stack.enter_context(LocalCluster(**options))))
        few = rows[:1000, :10].copy()
        self.here = qb.StackedForm(rows)
        directory = Path(self.stack.enter_context(TemporaryDirectory()))
        for number in range(workers):
            np.save(directory / f"{number}.npy", rows[number::workers])
        self.there = qb.DaskForm(directory, client)
        self.small = qb.DaskForm([few[:500], few[500:]], client)

    def teardown(self, workers):
        if hasattr(self, "stack"):
            self.stack.close()

    def _seconds(self):
        """Return the least seconds of a pass here, of one there, and of one over few rows there, in turns."""
        times = ([], [], [])
        for _ in range(8):
            for found, form in zip(times, (self.here, self.there, self.small), strict=True):
                x = common.point(form)
                started = time.perf_counter()
                form.value_and_gradient(x)
                found.append(time.perf_counter() - started)
        return map(min, times)

    def track_relative_time(self, workers):
        here, there, small = self._seconds()
        return (there - small) / here

    track_relative_time.unit = "time there/time here"

    def track_round(self, workers):
        return list(self._seconds())[2]

    track_round.unit = "seconds"
