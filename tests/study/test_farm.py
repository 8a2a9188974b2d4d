"""A study on the workers of a Dask cluster finds what it finds on one machine, whatever happens to its workers."""

import os
import signal
import threading
import time

import pandas
import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.errors import ProblemError
from quartbench.study import farm, grid, runner, store

pytest.importorskip("distributed")
import psutil
from distributed import Client, LocalCluster

STUDY = """
name = "farmed"
repeats = 1
[[group]]
name = "catalogue"
instances = [
    { generator = "spectrum", m = 120, n = 10, sigma_min = [0.2, 0.5] },
    { generator = "orthant", m = 90, n = 8 },
]
solvers = ["homgd", "accel-homgd"]
metrics = ["identity"]
rel_gaps = [1e-8]
"""

#: Columns that two runs of the same study need not agree in.
TIMES = ["setup_seconds", "solve_seconds", "wall_seconds", "trace_seconds", "created", "machine"]

#: A solver that takes its time in each run, so that there is one to interrupt; and says in a file that it has begun.
SLOW = """
import pathlib, time
from quartbench.solvers import HomGD

class Slow(HomGD):
    name = "slow"

    def iterates(self, problem, metric, start):
        begun = pathlib.Path({begun!r})
        begun.write_text(begun.read_text() + "x" if begun.exists() else "x")
        time.sleep({seconds})
        yield from super().iterates(problem, metric, start)
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "farmed.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def cluster():
    """Give two workers, which are started again where they are killed; the last test sends them home."""
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=2, threads_per_worker=2, **options) as found:
        yield found


def results(out):
    return store.read(out).sort_values("key", ignore_index=True)


def test_workers_find_what_one_machine_finds_and_the_study_resumes(study, cluster, tmp_path):
    runner.Runner(grid.read_study(str(study)), tmp_path / "here", 1).run()
    command = ["compare", "--study", str(study), "--threads", "1", "--out", str(tmp_path / "there")]
    for made, kept in ((6, 0), (0, 6)):
        done = CliRunner().invoke(main, [*command, "--scheduler", cluster.scheduler_address])
        assert done.exit_code == 0, done.output
        assert f"{made} runs made, {kept} kept" in done.output
    here, there = results(tmp_path / "here"), results(tmp_path / "there")
    pandas.testing.assert_frame_equal(here.drop(columns=TIMES), there.drop(columns=TIMES))
    assert there.success.all()
    assert (here.machine == "").all()
    assert there.machine.str.contains("cores").all()
    again = CliRunner().invoke(main, command)  # what a cluster began, one machine ends
    assert "0 runs made, 6 kept" in again.output


def test_a_run_is_made_again_where_its_worker_is_killed(cluster, tmp_path):
    begun, solver = tmp_path / "begun", tmp_path / "slow.py"
    solver.write_text(SLOW.format(begun=str(begun), seconds=2.0))
    study = grid.with_flags(None, ["spectrum:m=60,n=5,sigma_min=0.5"], [f"{solver}:Slow"], ["identity"], repeats=1)
    with Client(cluster) as client:
        made = farm.FarmedRunner(client, study, tmp_path / "out", 1)
        pids = client.run(os.getpid)
        thread = threading.Thread(target=made.run)
        thread.start()
        deadline = time.monotonic() + 120.0
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        (address,) = made.farm.busy
        below = psutil.Process(pids[address]).children()
        os.kill(pids[address], signal.SIGKILL)
        thread.join(120.0)
        assert not thread.is_alive()
    assert len(begun.read_text()) >= 2
    (row,) = results(tmp_path / "out").itertuples()
    assert row.success
    # The process of the run left with its worker.
    assert below
    assert not psutil.wait_procs(below, timeout=20.0)[1]


def test_a_worker_has_one_run_at_a_time(cluster):
    with Client(cluster) as client:
        found = farm.Farm(client, 1, farm.described()[1])
        addresses = {found.taken()[0] for _ in range(2)}
        assert addresses == set(found.addresses())
        waiting = threading.Timer(1.0, lambda: found.left(min(addresses)))
        waiting.start()
        began = time.monotonic()
        assert found.taken()[0] == min(addresses)
        assert time.monotonic() - began > 0.5
        found.stopped.set()
        with pytest.raises(farm.LostError, match="stopped"):
            found.taken()


def test_a_study_that_is_stopped_lets_its_workers_go_on_without_it(cluster, tmp_path):
    begun, solver = tmp_path / "begun", tmp_path / "slow.py"
    solver.write_text(SLOW.format(begun=str(begun), seconds=5.0))
    study = grid.with_flags(None, ["spectrum:m=60,n=5,sigma_min=0.5"], [f"{solver}:Slow"], ["identity"], repeats=1)
    with Client(cluster) as client:
        made = farm.FarmedRunner(client, study, tmp_path / "out", 1)
        timer = threading.Timer(4.0, made.farm.stopped.set)
        timer.start()
        began = time.monotonic()
        with pytest.raises(farm.LostError, match="stopped"):
            made.run()
        assert time.monotonic() - began < 8.0
    assert results(tmp_path / "out").empty


def test_no_scheduler_is_a_clear_error(tmp_path):
    flags = ["--instance", "spectrum:m=60,n=5,sigma_min=0.5", "--out", str(tmp_path), "--scheduler", "nonsense://x"]
    done = CliRunner().invoke(main, ["compare", *flags])
    assert done.exit_code != 0
    assert "no scheduler can be reached at 'nonsense://x'" in str(done.output) + str(done.exception)


def test_workers_with_other_packages_and_none_at_all_are_refused(cluster, monkeypatch):
    with Client(cluster) as client:
        facts = farm.described()[1]
        other = farm.Farm(client, 1, facts | {"numpy": "0.1"})
        with pytest.raises(ProblemError, match=r"has other packages than this process \(numpy 0.1 / "):
            other.taken()
        assert not other.busy
        with pytest.raises(ProblemError, match=r"threads must be at most \d+ on the worker"):
            farm.Farm(client, 10_000, facts).taken()
        found = farm.Farm(client, 1, facts)
        monkeypatch.setattr(farm, "ALONE", 1.0)
        client.retire_workers(found.addresses(), close_workers=True)
        deadline = time.monotonic() + 30.0
        while found.addresses() and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(farm.LostError, match="no worker for 1 s"):
            found.taken()
        with pytest.raises(ProblemError, match="the scheduler has no workers"):
            farm.Farm(client, 1, facts)
