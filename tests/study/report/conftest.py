"""A small study, really run, and its page: made once for every test of the report."""

import json

import pytest

from quartbench.study import kernels, store, system
from quartbench.study.grid import read_study
from quartbench.study.report import write
from quartbench.study.runner import Runner

STUDY = """
name = "small"
time_limit = 5
repeats = 2
rel_gaps = [1e-6]
bounds = true

[[group]]
name = "figure-1b"
instances = [{ generator = "spectrum", m = 60, n = 20, sigma_min = 0.05 }]
solvers = [
    "gd",
    "homgd",
    { method = "accel-homgd", restart = "scheduled" },
    { method = "accel-homgd", restart = "none" },
]
metrics = ["identity"]
seeds = [0, 1]
max_iter = 2000

[[group]]
name = "figure-2b"
instances = [{ generator = "coherent", m = 60, n = 6, gamma = 0.99, cond = 10.0, kind = "generic" }]
solvers = ["homgd"]
metrics = ["identity", "uniform", "lewis"]
max_iter = 500

[[group]]
name = "scaling-m"
instances = [{ generator = "spectrum", m = [60, 120, 240], n = 10, sigma_min = 0.2 }]
solvers = ["homgd"]
metrics = ["uniform", "lewis"]

[[group]]
name = "catalogue"
instances = [
    { generator = "spectrum", m = 50, n = 10, sigma_min = 0.2 },
    { generator = "heavy_tailed", m = 80, n = 10 },
    { generator = "orthant", m = 50, n = 10 },
]
solvers = ["homgd", "accel-homgd", "broken.py:Broken"]
"""

BROKEN = """
class Broken:
    '''Breaks at its third step.'''

    def iterates(self, problem, metric, start):
        from quartbench.solvers import Iterate
        yield Iterate(start, problem.homogenised_value(start))
        yield Iterate(start, problem.homogenised_value(start))
        raise RuntimeError("this solver <breaks> & says so")
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Return a directory of results with measured kernels."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "broken.py").write_text(BROKEN)
    (folder / "small.toml").write_text(STUDY)
    out = folder / "results"
    Runner(read_study(str(folder / "small.toml")), out, 2, "quartbench compare --study small.toml --out results").run()
    rows = [row.as_dict() for row in kernels.measure(2, ["dense-200x20", "graph-1000"], rounds=1)]
    (out / "_kernels").mkdir()
    record = {"threads": 2, "system": system.describe(), "rows": rows}
    (out / "_kernels" / "kernels.json").write_text(json.dumps(record))
    return out


@pytest.fixture(scope="session")
def report(results, tmp_path_factory):
    """Return what the report of these results says, and where it lies."""
    return write(results, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def runs(results):
    """Return the results."""
    return store.read(results)
