"""A group with ``cluster = 2`` has its rows on two workers: the same answers, with rounds and bytes in every row."""

import time
from dataclasses import replace

import numpy as np
import pandas
import pytest

from quartbench.errors import ProblemError
from quartbench.study import costs, grid, runner, samples, store

pytest.importorskip("distributed")
import psutil

STUDY = """
name = "spread"
repeats = 1
[[group]]
name = "cluster"
instances = [{ generator = "scaled", m = 600, n = 6, decades = 1.0 }]
solvers = ["homnewton", { method = "spag", share = 0.2 }]
rel_gaps = [1e-8]
cluster = 2
[[group]]
name = "cluster"
instances = [{ generator = "complex_gaussian", m = 40, n = 4 }]
solvers = ["homgd"]
cluster = 2
[[group]]
name = "here"
instances = [{ generator = "scaled", m = 600, n = 6, decades = 1.0 }]
solvers = ["homnewton", { method = "spag", share = 0.2 }]
rel_gaps = [1e-8]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spread")
    (folder / "spread.toml").write_text(STUDY)
    made = runner.Runner(grid.read_study(str(folder / "spread.toml")), folder / "out", 1)
    made.run()
    deadline = time.monotonic() + 30.0
    while (left := workers()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return store.read(folder / "out"), left


def workers():
    """Return the processes below this one, but for the one that multiprocessing keeps for itself."""
    return [one for one in psutil.Process().children(recursive=True) if "resource_tracker" not in str(one.cmdline())]


def test_no_worker_is_left_behind(results):
    assert not results[1]


def test_runs_on_workers_count_rounds_and_bytes_and_find_the_same(results):
    frame = costs.prepare(results[0])
    spread, here = (frame[(frame.workers == count) & frame.success].set_index("solver") for count in (2, 0))
    assert set(spread.index) == set(here.index) == {"homnewton", "spag share=0.2"}
    assert set(spread.instance) == {"scaled 600×6 decades=1 on 2 workers"}
    for solver, run in spread.iterrows():
        assert run.value == pytest.approx(here.loc[solver].value, rel=1e-8)
        assert run.rounds == run.trace_rounds[-1] > 0
        assert run.bytes == run.trace_bytes[-1] > 16 * 6 * run.rounds
        assert (np.diff(run.trace_rounds) > 0).all()
    assert (here.rounds == 0).all()
    spent = costs.to_gap(spread.reset_index(), 1e-6, "rounds")
    assert ((spent > 0) & (spent <= spread.rounds.to_numpy())).all()


def test_rows_that_cannot_be_spread_are_said_to_be_so(results):
    (bad,) = results[0][~results[0].success].itertuples()
    assert bad.status == "failed"
    assert "needs real rows to spread" in bad.message


def test_runs_in_one_process_keep_their_keys():
    study = grid.with_flags(None, ["scaled:m=60,n=6"])
    (cell,) = grid.cells(study, 1)
    assert cell.key(0) != replace(cell, cluster=2).key(0)
    assert replace(cell, cluster=2).problem != cell.problem
    assert cell.label == "scaled 60×6"


def test_recoveries_are_not_spread(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(
        '[[group]]\nname = "a"\ninstances = ["phase_gaussian:n=8,ratio=4"]\nsolvers = ["auto"]\ncluster = 2\n'
    )
    with pytest.raises(ProblemError, match="cluster = 2 is for convex problems, found recoveries"):
        grid.read_study(str(path))


def test_blocks_are_at_least_as_many_as_workers(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text('[[group]]\nname = "a"\ninstances = ["scaled:m=60,n=6"]\nsolvers = ["auto"]\nblocks = 3\n')
    with pytest.raises(ProblemError, match="at least as many as workers, found 3 on cluster = 0"):
        grid.read_study(str(path))
    path.write_text(path.read_text() + "cluster = 2\n")
    (cell,) = grid.cells(grid.read_study(str(path)), 1)
    assert cell.label == "scaled 60×6 on 2 workers in 3 blocks"


def test_a_study_that_includes_one_of_clusters_goes_on_without_dask(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else find(name))
    with pytest.raises(ProblemError, match=r"pip install 'quartbench\[cluster\]'"):
        grid.read_study("cluster")
    full = grid.read_study("full")
    assert not any(group.cluster for group in full.groups)
    assert any("quartbench[cluster]" in note for note in full.notes)


def test_the_shipped_study_is_spread_and_has_the_samples_on_record():
    study = grid.read_study("cluster")
    assert study.samples
    assert {(group.cluster, group.blocks) for group in study.groups} == {(2, 0), (2, 16), (2, 64)}
    assert any(group.cluster for group in grid.read_study("full").groups)


def test_constants_of_a_sample_bound_the_hessian():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2, 30, 4))
    whole, sample = (part.T @ part for part in rows)
    low, high = samples.constants([whole], [sample])
    for definite in (whole - low * sample, high * sample - whole):
        assert np.linalg.eigvalsh(definite)[0] == pytest.approx(0.0, abs=1e-12 * high * 30)
    assert samples.constants([whole], [np.diag([1.0, 1.0, 1.0, 0.0])])[1] > 1e12
    assert samples.constants([whole, whole], [whole, 2.0 * whole]) == (pytest.approx(0.5), pytest.approx(1.0))


def test_the_record_of_samples_has_all_of_them(monkeypatch):
    monkeypatch.setattr(samples, "PROBLEMS", {"a": {"m": 2000, "n": 5}, "b": {"m": 2000, "n": 5, "few": 4}})
    monkeypatch.setattr(samples, "SHARES", (0.05, 0.5))
    found = pandas.DataFrame(samples.measure())
    assert len(found) == 2 * 2 * 2 * len(samples.SEEDS)
    assert (found.low <= found.high).all()
    condition = (found.high / found.low).groupby([found.instance, found.sampling, found.share]).median()
    assert condition["a", "uniform", 0.5] < condition["a", "uniform", 0.05]
    assert condition["b", "lewis", 0.05] < condition["b", "uniform", 0.05]
