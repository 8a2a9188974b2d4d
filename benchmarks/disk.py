"""Forms on disk: is a pass as fast as the files are read, and does a solve stay within memory?"""

import os
import time
from pathlib import Path

from . import common

#: Rows in float32 for each gigabyte, their width, and how many files they are in.
ROWS, WIDTH, FILES = 250_000, 1000, 8

SIZES = ["1 GB", "8 GB"]


def written(size):
    """Write rows of a size to files in the working directory, which asv keeps from ``setup_cache`` on."""
    import numpy as np

    directory = Path(size.replace(" ", ""))
    directory.mkdir()
    rng, scales = np.random.default_rng(0), np.logspace(0.0, -1.0, WIDTH, dtype=np.float32)
    count = ROWS * int(size.split()[0]) // FILES
    for number in range(FILES):
        rows = np.lib.format.open_memmap(directory / f"part-{number}.npy", "w+", np.float32, (count, WIDTH))
        for start in range(0, count, 25_000):
            part = rows[start : start + 25_000]
            part[:] = rng.standard_normal(part.shape, dtype=np.float32) * scales
    return directory.resolve()


def read(directory):
    """Read all files, and nothing else."""
    buffer = bytearray(1 << 25)
    for path in directory.iterdir():
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def forget(directory):
    """Drop the files from the page cache, so that what follows comes from the disk."""
    for path in directory.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class LargeDisk:
    """Rows of 1 and 8 GB on disk: speed of a pass over mere reading (1 is as fast), peak memory (large tier)."""

    version = common.PROBLEM_SET
    params = (SIZES,)
    param_names = ("size",)
    timeout = 3600

    def setup_cache(self):
        try:
            common.require_large()
        except NotImplementedError:
            return {}  # every cell is then skipped
        return common.table(((size,), lambda size=size: written(size)) for size in SIZES)

    setup_cache.timeout = 3600

    def setup(self, cache, size):
        self.directory = common.cell(cache, size)

    def track_speed_from_disk(self, cache, size):
        return self._speed(lambda: forget(self.directory))

    track_speed_from_disk.unit = "reading/pass"

    def track_speed_from_cache(self, cache, size):
        return self._speed(lambda: None)

    track_speed_from_cache.unit = "reading/pass"

    def _speed(self, before):
        """Return the least time to read the files over the least time of a pass, in turns."""
        import quartbench as qb

        form = qb.DiskForm(self.directory)
        x, times = common.point(form), ([], [])
        for _ in range(4):
            for found, call in zip(
                times, (lambda: read(self.directory), lambda: form.value_and_gradient(x)), strict=True
            ):
                before()
                started = time.perf_counter()
                call()
                found.append(time.perf_counter() - started)
        return min(times[0]) / min(times[1])

    def peakmem_solve(self, cache, size):
        import numpy as np

        import quartbench as qb

        c = np.random.default_rng(1).standard_normal(WIDTH)
        assert qb.solve(qb.Problem(qb.DiskForm(self.directory), c), rel_gap=1e-6).success

    def peakmem_reference(self, cache, size):
        import quartbench  # noqa: F401
