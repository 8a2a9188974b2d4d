"""Regressions run as every run of a study does: caught when they lie, compared by the whole call, shown in the page."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from quartbench.cli import main
from quartbench.regression import methods as registered
from quartbench.regression.methods import Fitted, Irls, Ours
from quartbench.study import costs, grid, regressing, runner, store, summary
from quartbench.study.report import tables, write

STUDY = """
name = "fits"
repeats = 2
rel_gaps = [1e-8]
[[group]]
name = "regression"
instances = [{ generator = "regression_gaussian", m = 300, n = 6, cond = [1.0, 100.0] }]
solvers = ["l4-regression", "scipy-lbfgs", "irls", { method = "irls", least_squares = "normal" }]
[[group]]
name = "broken"
instances = [{ generator = "regression_gaussian", m = 3, n = 6 }]
solvers = ["irls"]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A study of regressions that nothing has disturbed, and its directory."""
    folder = tmp_path_factory.mktemp("fits")
    (folder / "fits.toml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "PAUSE", 0.0)
        runner.Runner(grid.read_study(str(folder / "fits.toml")), folder / "out", 1).run()
    return folder / "out"


def test_every_contender_reaches_the_gap_and_says_when(results):
    runs = costs.prepare(store.read(results))
    fits = runs[runs.group == "regression"]
    assert len(fits) == 16
    assert set(fits.application) == {"regression"}
    assert fits.success.all()
    assert (fits.value <= fits.optimum * (1.0 + 1e-8)).all()
    assert (fits.value >= fits.optimum).all()
    ours = fits[~fits.peer]
    assert (ours.lower_bound > 0.0).all()
    assert (ours.lower_bound <= ours.optimum * (1.0 + 1e-11)).all()
    times = summary.times(fits)
    assert times.shape == (2, 4)
    assert np.isfinite(times.to_numpy()).all()
    found = summary.peers(fits, summary.REGRESSION)
    np.testing.assert_allclose(found.wall_ratio, found.peer_time / found.wall)
    assert set(found.wall) == set(ours.groupby("instance").wall_seconds.median())


def test_they_are_neither_convex_problems_nor_recoveries(results):
    runs = costs.prepare(store.read(results))
    assert costs.convex(runs).empty
    assert costs.recoveries(runs).empty
    assert len(costs.regressions(runs)) == len(runs)


def test_data_that_cannot_be_made_are_a_failure_with_its_reason(results):
    runs = store.read(results)
    (bad,) = runs[runs.group == "broken"].itertuples()
    assert (bad.status, bad.m) == ("failed", 0)
    assert "m must be at least n = 6" in bad.message


def test_the_page_and_the_terminal_show_them(results, tmp_path, capsys):
    runs = costs.prepare(store.read(results))
    table = tables.regression_table(runs[runs.group == "regression"])
    assert len(table.rows) == 8
    ours = [row for row in table.rows if row[2].text == "l4-regression"]
    assert [(row[4].value, row[5].text) for row in ours] == [(1.0, "with a certificate")] * 2
    for row in table.rows:
        same = next(one for one in ours if one[0].text == row[0].text)
        assert row[4].value == pytest.approx(row[3].value / same[3].value)
    written = write(results, tmp_path / "page.html")
    assert any("l4-regression with its certificate has" in sentence for sentence in written.answer)
    page = written.page.read_text()
    assert "ℓ4 regression" in page
    assert 'id="curves-regression"' in page
    with pytest.raises(SystemExit):
        main(["compare", "--study", str(results.parent / "fits.toml"), "--out", str(results), "--threads", "1"])
    said = capsys.readouterr().out
    assert "whole call with its certificate, against the best bare peer" in said


# Methods that lie -----------------------------------------------------------------------------------------------------


class Flatterer(Irls):
    """Reports half of the norm that it has."""

    name = "flatterer"

    def fit(self, A, b, goal):
        found = super().fit(A, b, goal)
        return found._replace(norms=[0.5 * norm for norm in found.norms])


class Boaster(Ours):
    """Reports a bound that is above the least norm."""

    name = "boaster"

    def fit(self, A, b, goal):
        found = super().fit(A, b, goal)
        found.certified.lower_bound *= 1.0 + 1e-9
        return found


class Vandal(Irls):
    """Writes to the rows that all are given."""

    name = "vandal"

    def fit(self, A, b, goal):
        A[0, 0] += 1.0
        return super().fit(A, b, goal)


class Crash(Irls):
    """Raises what nobody expects."""

    name = "crash"

    def fit(self, A, b, goal):
        raise OSError("out of paper")


class Lazy(Irls):
    """Does nothing at all."""

    name = "lazy"

    def fit(self, A, b, goal):
        return Fitted(np.zeros(A.shape[1]), "stalled", [], [])


@dataclass
class Request:
    """What a worker is asked for."""

    spec: str

    def asked(self):
        return {
            "generator": "regression_gaussian",
            "arguments": '{"m": 40, "n": 3, "cond": 1.0}',
            "seed": 0,
            "optimum": None,
            "spec": self.spec,
            "given": "{}",
            "metric": "identity",
            "rel_gap": 1e-8,
            "max_iter": 1000,
            "time_limit": 10.0,
        }


@pytest.fixture
def bench(monkeypatch):
    """A bench that knows the methods of this file too."""
    known = registered() | {one.name: one for one in (Flatterer, Boaster, Vandal, Crash, Lazy)}
    monkeypatch.setattr(regressing, "methods", lambda: known)
    return regressing.RegressionBench(lambda stage, known: None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("flatterer", "the run reports the norm"),
        ("boaster", "the run reports that no norm is below"),
        ("vandal", "it wrote to the data"),
        ("crash", "OSError: out of paper"),
    ],
)
def test_what_is_not_true_is_a_failure(bench, name, message):
    row = bench.run(Request(name).asked())
    assert (row["status"], row["success"]) == ("failed", False)
    assert message in row["message"]
    after = bench.run(Request("irls").asked())
    assert (after["status"], after["success"]) == ("converged", True)


def test_a_method_that_gains_nothing_is_short_of_the_gap(bench):
    row = bench.run(Request("lazy").asked())
    assert (row["status"], row["success"], row["trace_value"]) == ("stalled", False, [])
    assert row["gap"] > 0.1
    assert math.isfinite(row["value"])
