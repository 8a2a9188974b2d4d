"""Studies from Python: problems and solvers of one's own, tables, curves and a page."""

import matplotlib
import numpy as np
import pytest

import quartbench as qb
from quartbench.study import grid
from quartbench.study.comparison import _entry, _instances
from quartbench.study.grid.entries import read_instances, read_methods

matplotlib.use("Agg")
from matplotlib import pyplot

RNG = np.random.default_rng(0)
PROBLEM = qb.Problem(RNG.standard_normal((60, 5)), RNG.standard_normal(5))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    PROBLEM.save(folder / "kept.npz")
    problems = {"mine": PROBLEM, "theirs": str(folder / "kept.npz"), "": "spectrum:m=50,n=4,sigma_min=0.3"}
    solvers = ["homgd", "homgd:step=fixed", qb.solvers.AccelHomGD(restart="none")]
    return qb.compare(problems, solvers, "uniform", 1e-6, out=folder / "out", repeats=1, threads=1)


def test_every_solver_runs_on_every_problem(found):
    assert set(found.runs["instance"]) == {"mine", "kept", "spectrum 50×4 σ_min=0.3"}
    contenders = {"homgd · uniform", "homgd step=fixed · uniform", "accel-homgd restart=none · uniform"}
    assert set(found.runs["contender"]) == contenders
    assert len(found.runs) == 9
    assert found.runs["success"].all()
    assert np.isfinite(found.times.to_numpy()).all()
    mine = found.runs[found.runs["instance"].isin(["mine", "kept"])]
    np.testing.assert_allclose(mine["value"], qb.solve(PROBLEM, rel_gap=1e-9).fun, rtol=1e-5)
    assert "9 runs of 3 contenders" in repr(found)
    assert "<table" in found._repr_html_()


def test_its_curves_and_its_page_are_drawn(found, tmp_path):
    for against in ("seconds", "passes"):
        figure = found.plot(against)
        panels = [panel for panel in figure.axes if panel.get_visible()]
        assert [panel.get_title() for panel in panels] == ["mine", "kept", "spectrum 50×4 σ_min=0.3"]
        assert all(len(panel.get_lines()) == 3 for panel in panels)
        pyplot.close(figure)
    with pytest.raises(qb.ProblemError, match="against must be 'seconds' or 'passes', found 'steps'"):
        found.plot("steps")
    page = found.page(tmp_path / "page.html")
    assert "kept" in page.read_text(encoding="utf-8")


def test_a_second_call_keeps_the_runs(found):
    before = set(found.runs["key"])
    again = qb.compare({"mine": PROBLEM}, "homgd", "uniform", 1e-6, out=found.directory, repeats=1, threads=1)
    assert before == set(again.runs["key"])


# Entries --------------------------------------------------------------------------------------------------------------


def test_a_solver_is_named_with_its_settings():
    (method,) = read_methods(["homgd:step=fixed"])
    assert method == read_methods([{"method": "homgd", "step": "fixed"}])[0]
    (method,) = read_methods(["accel-homgd:restart=none,early=false"])
    assert method.label == "accel-homgd restart=none early=False"
    with pytest.raises(qb.ProblemError, match="unknown setting of homgd 'stepp'; did you mean 'step'"):
        read_methods(["homgd:stepp=fixed"])


def test_a_saved_problem_is_known_by_its_content(tmp_path):
    path = PROBLEM.save(tmp_path / "p.npz")
    (one,) = read_instances(str(path))
    assert one.label == "p"
    study = grid.Study("s", (grid.Group("g", (one,), read_methods(["auto"])),))
    key = grid.cells(study, 1)[0].key(0)
    qb.Problem(PROBLEM.form, 2.0 * PROBLEM.c).save(path)
    (other,) = read_instances(str(path))
    changed = grid.Study("s", (grid.Group("g", (other,), read_methods(["auto"])),))
    assert grid.cells(changed, 1)[0].key(0) != key
    with pytest.raises(qb.ProblemError, match="has changed since the study was planned"):
        qb.instances.make("saved", **dict(one.arguments))
    np.testing.assert_array_equal(qb.instances.make("saved", **dict(other.arguments)).c, 2.0 * PROBLEM.c)
    with pytest.raises(qb.ProblemError, match="there is no file"):
        read_instances("nowhere.npz")


def test_files_of_a_study_are_those_beside_it(tmp_path, monkeypatch):
    PROBLEM.save(tmp_path / "p.npz")
    text = 'name = "mine"\n[[group]]\nname = "g"\ninstances = ["p.npz"]\nsolvers = ["auto"]\n'
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.chdir("/")
    (group,) = grid.read_study(str(tmp_path / "mine.toml")).groups
    assert dict(group.instances[0].arguments)["path"] == str(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _instances([3], None), "problems must be Problems, files or instances by name, found int"),
        (lambda: _instances({"a/b": PROBLEM}, None), "names that can be those of files, found 'a/b'"),
        (lambda: qb.compare([], "auto"), "compare needs at least one problem"),
        (lambda: qb.compare(PROBLEM, repeats=0), "repeats must be a whole number of at least 1, found 0"),
        (lambda: qb.compare(PROBLEM, max_iter=0), "max_iter must be a whole number of at least 1, found 0"),
        (lambda: qb.compare(PROBLEM, time_limit=-1.0), "time_limit must be a positive number, found -1.0"),
        (lambda: qb.compare(PROBLEM, threads=0), "threads must be a whole number of at least 1, found 0"),
        (lambda: qb.compare({}, "auto"), "compare needs at least one problem"),
        (lambda: _entry(type("Mine", (qb.Solver,), {"__module__": "__main__"})), "Mine must be in a file"),
    ],
)
def test_what_cannot_be_compared_is_said(call, message):
    with pytest.raises(qb.ProblemError, match=message):
        call()


def test_a_solver_of_ones_own_is_named_by_its_file():
    from tests.study import bad_solvers

    cls = next(one for one in vars(bad_solvers).values() if getattr(one, "__module__", "") == bad_solvers.__name__)
    assert _entry(cls)["method"] == f"{bad_solvers.__file__}:{cls.__name__}"
