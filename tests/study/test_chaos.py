"""A minute of chaos: kills, full disks and damaged files at random, and a study that ends as a quiet one does."""

import random
import resource
import signal
import subprocess
import sys
import time

import pandas
import pytest

from quartbench.study import grid, runner, store

STUDY = """
name = "chaos"
repeats = 2
[[group]]
name = "catalogue"
instances = [
    { generator = "spectrum", m = [120, 200], n = 10, sigma_min = 0.2 },
    { generator = "orthant", m = 90, n = 8 },
]
solvers = ["homgd", "accel-homgd", "gd"]
metrics = ["identity", "diagonal"]
seeds = [0, 1]
rel_gaps = [1e-8]
"""

#: Seconds of chaos.
CHAOS = 60.0

#: Columns that two runs of the same study need not agree in.
TIMES = ["setup_seconds", "solve_seconds", "wall_seconds", "trace_seconds", "created"]


def started(path, out, largest=None):
    """Start the study in a process of its own, in which files may be limited to a size, as on a full disk."""
    command = [sys.executable, "-m", "quartbench", "compare", "--study", str(path), "--out", str(out), "--threads", "1"]
    limited = None if largest is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    return subprocess.Popen(
        [*command, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited
    )


def damage(out, rng):
    """Damage one file of the results in one of the ways that disks and people have."""
    files = sorted((out / "runs").glob("*.parquet"))
    if not files:
        return
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    way = rng.randrange(5)
    if way == 0:
        data = data[: rng.randrange(len(data))]
    elif way == 1:
        at = rng.randrange(len(data))
        data[at : at + 300] = rng.randbytes(len(data[at : at + 300]))
    elif way == 2:
        data = bytearray()
    elif way == 3:
        (out / "runs" / f".{path.name}.part").write_bytes(data[:50])
        return
    else:
        path.unlink()
        return
    path.write_bytes(data)


def results(out):
    """Return what a study found, without its times, in the order of its keys."""
    frame = store.read(out).sort_values("key", ignore_index=True)
    assert frame.attrs["unreadable"] == []
    return frame.drop(columns=TIMES)


def settled(frame):
    """Return the first repeat of every run: whether there is a second depends on the times of the first."""
    return frame[frame["repeat"] == 0].reset_index(drop=True)


@pytest.mark.slow
def test_a_study_that_everything_happens_to_ends_as_a_quiet_one(tmp_path):
    path = tmp_path / "chaos.toml"
    path.write_text(STUDY)
    runner.Runner(grid.read_study(str(path)), tmp_path / "quiet", 1).run()
    out, rng, happened = tmp_path / "out", random.Random(0), {"killed": 0, "stopped": 0, "full": 0, "ended": 0}
    end = time.monotonic() + CHAOS
    while time.monotonic() < end:
        way = rng.choice(["killed", "killed", "stopped", "full"])
        process = started(path, out, rng.choice([1000, 9000]) if way == "full" else None)
        try:
            process.wait(timeout=rng.uniform(0.5, 6.0))
            way = "full" if way == "full" else "ended"
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT if way == "stopped" else signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
        assert "Traceback" not in said, said
        happened[way] += 1
        for _ in range(rng.randrange(3)):
            damage(out, rng)
        if (out / "runs").is_dir():
            store.read(out)  # whatever can be read is read, at any time
    assert min(happened["killed"], happened["full"]) > 0, happened
    process = started(path, out)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    pandas.testing.assert_frame_equal(settled(results(out)), settled(results(tmp_path / "quiet")))
    assert not list((out / "runs").glob(".*"))
