"""Is a method found by its name, from a file and from an installed package, and held to the contract?"""

import math
import sys

import numpy as np
import pytest

from quartbench import instances, testing
from quartbench.errors import ProblemError
from quartbench.forms import StackedForm
from quartbench.solvers import (
    ABPG,
    AGD,
    GD,
    AccelHomGD,
    Bregman,
    HomGD,
    HomNewtonCG,
    Iterate,
    Solver,
    describe,
    load_solver,
    make_solver,
    solve,
    solvers,
)
from quartbench.solvers.registry import SOLVERS

OWN = ("gd", "agd", "bregman", "abpg", "homgd", "accel-homgd", "homcg", "homnewton", "homnewton-cg", "auto")

#: Methods that move along directions, which the second-order cone does not have.
DIRECTED = ("homcg", "homnewton-cg")

PROBLEM = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((60, 8))), seed=0)

MINE = '''
from quartbench.solvers import Iterate, Solver


class MySolver(Solver):
    """Steepest descent on f with the exact line search.

    A second line that no list shows.
    """

    def __init__(self, shrink=1.0):
        self.shrink = shrink

    def iterates(self, problem, metric, start):
        import numpy as np

        x = problem.point(start)
        onto = problem.cone.projector(metric)
        t = None
        while True:
            value, gradient = problem.value_and_gradient(x)
            yield Iterate(x, value)
            direction = metric.solve(gradient)
            if t is None:
                t = abs(value) / (gradient @ direction) if gradient @ direction > 0 else 1.0
            while True:
                new = onto(x - t * direction)
                h = new - x
                if problem.value(new) <= value + gradient @ h + h @ metric.apply(h) / (2 * t) + 1e-15 * abs(value):
                    break
                t /= 2
            x, t = new, 1.3 * t * self.shrink


class Other:
    """Not a Solver by descent, but one by its method."""

    def iterates(self, problem, metric, start):
        return MySolver().iterates(problem, metric, start)
'''


@pytest.fixture(autouse=True)
def _entry_points_as_before(monkeypatch):
    monkeypatch.setattr(SOLVERS, "_read", SOLVERS._read)


@pytest.fixture
def mine(tmp_path):
    """Return the path of a file with a solver of one's own."""
    path = tmp_path / "my solver.py"
    path.write_text(MINE)
    return path


def test_the_catalogue():
    assert set(OWN) <= set(solvers())
    for name, cls in solvers().items():
        assert cls.name == name
        assert describe(cls)
        assert "\n" not in describe(cls)


@pytest.mark.parametrize("name", OWN)
def test_docstrings_state_problem_algorithm_guarantee_and_reference(name):
    text = solvers()[name].__doc__
    positions = [text.index(f"{word}\n") for word in ("Problem", "Algorithm", "Guarantee", "Reference")]
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", OWN)
def test_every_registered_solver_keeps_the_contract(name):
    report = testing.check_solver(name)
    assert len(report) > 20
    refused = {case for case, line in report.items() if not line.endswith("iterations")}
    if name in DIRECTED:
        assert refused == {"dense, second-order, identity"}
        assert "takes cones with directions" in report["dense, second-order, identity"]
    else:
        assert not refused, report


@pytest.mark.parametrize(
    "solver",
    [
        HomGD("fixed"),
        AccelHomGD("scheduled"),
        AccelHomGD("none"),
        AccelHomGD("scheduled", "fixed"),
        AccelHomGD("adaptive", "fixed"),
        AccelHomGD("adaptive", "armijo", early=True),
        Bregman("quartic+quadratic"),
        ABPG("quartic+quadratic"),
    ],
    ids=repr,
)
def test_every_variant_keeps_the_contract(solver):
    report = testing.check_solver(solver, rel_gap=1e-5)
    assert all(line.endswith("iterations") for line in report.values()), report


@pytest.mark.parametrize("solver", [GD("fixed"), AGD("fixed")], ids=repr)
def test_the_fixed_steps_of_a_ball_keep_the_contract_and_are_slow(solver):
    report = testing.check_solver(solver, rel_gap=1e-2, max_iter=200_000)
    assert all(line.endswith("iterations") for line in report.values()), report


@pytest.mark.parametrize("solver", [GD, AGD])
@pytest.mark.parametrize("radius", [0.5, float("nan"), float("inf"), "2", True])
def test_a_ball_smaller_than_that_of_the_level_set_is_refused(solver, radius):
    with pytest.raises(ProblemError, match="radius must be a number of at least 1"):
        solver("fixed", radius=radius)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GD(growth=0.5), "growth must be a number of at least 1, found 0.5"),
        (lambda: HomGD(growth="a"), "growth must be a number of at least 1, found 'a'"),
        (lambda: Bregman(growth=0), "growth must be a number of at least 1, found 0"),
        (lambda: HomNewtonCG(forcing=-1.0), r"forcing must lie in \(0, 1\], found -1.0"),
        (lambda: HomNewtonCG(products=0), "products must be at least 1, found 0"),
        (lambda: make_solver("homnewton-cg:products=many"), "products must be a whole number, found 'many'"),
    ],
)
def test_a_setting_that_no_run_can_use_is_refused_by_its_name(make, message):
    with pytest.raises(ProblemError, match=message):
        make()


def test_a_solver_of_ones_own_file_is_solved_with_listed_and_checked(mine):
    spec = f"{mine}:MySolver"
    result = solve(PROBLEM, spec, rel_gap=1e-6)
    assert (result.status, result.solver) == ("converged", "mysolver")
    assert describe(solvers()["mysolver"]) == "Steepest descent on f with the exact line search."
    assert solve(PROBLEM, "mysolver", rel_gap=1e-6).nit == result.nit
    report = testing.check_solver(spec)
    assert all(line.endswith("iterations") for line in report.values()), report
    assert solve(PROBLEM, load_solver(spec)(shrink=0.9)).success


def test_a_solver_of_ones_own_that_derives_from_ours_has_a_name_of_its_own(tmp_path):
    file = tmp_path / "derived.py"
    file.write_text("from quartbench.solvers import HomGD\n\n\nclass Longer(HomGD):\n    'HomGD, derived.'\n")
    assert solve(PROBLEM, f"{file}:Longer", rel_gap=1e-4).solver == "longer"
    assert solvers()["homgd"].__name__ == "HomGD"


def test_a_class_with_the_method_alone_is_a_solver(mine):
    assert solve(PROBLEM, load_solver(f"{mine}:Other")).success
    assert "other" in solvers()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{here}/nowhere.py:MySolver", "there is no file"),
        ("{mine}:MySolvre", "did you mean 'MySolver'"),
        ("{empty}:MySolver", "has no class with a method iterates"),
        ("{mine}", "'path/to/file.py:Class'"),
        ("{broken}:MySolver", "cannot be imported"),
        ("{mine}:Iterate", "must be a class with a method iterates"),
    ],
)
def test_bad_files_are_named(spec, message, mine, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_this_name\n")
    empty = tmp_path / "empty.py"
    empty.write_text("answer = 42\n")
    with pytest.raises(ProblemError, match=message):
        make_solver(spec.format(here=tmp_path, mine=mine, broken=broken, empty=empty))


def test_a_name_may_carry_settings(mine):
    assert make_solver("homgd:step=fixed").step == "fixed"
    assert make_solver("accel-homgd:restart=none,step=fixed").restart == "none"
    assert make_solver(f"{mine}:MySolver:shrink=0.9").shrink == 0.9
    assert solve(PROBLEM, "homgd:step=fixed").solver == "homgd"
    with pytest.raises(ProblemError, match="unknown setting of homgd 'stp'; did you mean 'step'"):
        make_solver("homgd:stp=fixed")
    with pytest.raises(ProblemError, match="unknown step 'fixd'; did you mean 'fixed'"):
        make_solver("homgd:step=fixd")
    with pytest.raises(ProblemError, match="written name=value, found 'step='"):
        make_solver("homgd:step=")


def installed(tmp_path, monkeypatch, entry, module):
    """Install a package with one entry point, as pip would leave it."""
    (tmp_path / "my_package.py").write_text(module)
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[quartbench.solvers]\n{entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(SOLVERS, "_read", False)
    monkeypatch.delitem(sys.modules, "my_package", raising=False)


def test_a_solver_of_an_installed_package_is_found(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, "mine = my_package:MySolver", MINE)
    assert "mine" in solvers()
    assert solve(PROBLEM, "mine").solver == "mine"


def test_a_broken_package_does_not_take_the_others_with_it(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, "mine = my_package:MySolver", "raise RuntimeError('oh')")
    with pytest.warns(UserWarning, match="'mine' of my_package:MySolver cannot be loaded: oh"):
        assert {"gd", "bregman", "homgd", "accel-homgd"} <= set(solvers())
    assert "mine" not in solvers()


# The checker finds what is wrong --------------------------------------------------------------------------------------


def descent(problem, metric, start):
    """Yield a correct run, to be spoilt."""
    yield from HomGD().iterates(problem, metric, start)


class WritesStart(Solver):
    """Changes its start."""

    def iterates(self, problem, metric, start):
        for iterate in descent(problem, metric, start.copy()):
            yield iterate
            start += 1.0


class Reuses(Solver):
    """Writes to a point that is out."""

    def iterates(self, problem, metric, start):
        buffer = np.empty_like(start)
        for iterate in descent(problem, metric, start):
            buffer[:] = iterate.point
            yield iterate._replace(point=buffer)


class Lies(Solver):
    """Reports values that are too low."""

    def iterates(self, problem, metric, start):
        for iterate in descent(problem, metric, start):
            yield iterate._replace(value=1.01 * iterate.value)


class Leaves(Solver):
    """Leaves the cone."""

    def iterates(self, problem, metric, start):
        run = descent(problem, metric, start)
        yield next(run)
        for iterate in run:
            moved = iterate.point + 1e-3 * np.roll(iterate.point, 1) * np.sign(problem.c)
            yield Iterate(moved, problem.homogenised_value(moved))


class Forgets(Solver):
    """Does not yield its start."""

    def iterates(self, problem, metric, start):
        run = descent(problem, metric, start)
        next(run)
        yield from run


class Rolls(Solver):
    """Differs from run to run."""

    runs = 0

    def iterates(self, problem, metric, start):
        Rolls.runs += 1
        yield Iterate(start, problem.homogenised_value(start))
        for k in range(20):
            moved = problem.cone.euclidean(start * (1.0 + 1e-3 * Rolls.runs * k))
            yield Iterate(moved, problem.homogenised_value(moved))


class Drifts(Solver):
    """Reports ρ, ∇ρ and an image that are not those of the point."""

    def iterates(self, problem, metric, start):
        for iterate in descent(problem, metric, start):
            rho, gradient, image = problem.form.evaluate(iterate.point)
            yield iterate._replace(evaluated=(rho, gradient, image + 1e-6 * np.abs(image).max()))


class Stops(Solver):
    """Ends long before the optimum."""

    def iterates(self, problem, metric, start):
        for _, iterate in zip(range(3), descent(problem, metric, start), strict=False):
            yield iterate


class Explodes(Solver):
    """Yields infinities."""

    def iterates(self, problem, metric, start):
        yield Iterate(start, problem.homogenised_value(start))
        yield Iterate(np.full_like(start, math.inf), 0.0)


class Refuses(Solver):
    """Refuses everything."""

    def iterates(self, problem, metric, start):
        raise ProblemError("not today")
        yield


class Silent(Solver):
    def iterates(self, problem, metric, start):
        yield from descent(problem, metric, start)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (WritesStart, "start was changed"),
        (Reuses, "was changed after it was out"),
        (Lies, "but f is"),
        (Leaves, "outside the cone"),
        (Forgets, "the first iterate is not the start"),
        (Rolls, "two runs from the same start differ"),
        (Drifts, "its image is not that of its point"),
        (Stops, "stalled after 2 iterations"),
        (Explodes, "not finite"),
        (Refuses, "refused"),
        (Silent, "the first line of the docstring"),
    ],
)
def test_the_checker_finds_what_is_wrong(solver, message):
    with pytest.raises(AssertionError, match=message):
        testing.check_solver(solver)


def test_the_report_of_the_battery_prints_as_a_table():
    first, *lines = str(testing.check_solver("homnewton")).splitlines()
    assert first == "homnewton keeps the contract of a solver:"
    assert len(lines) > 10
    assert len({line.rstrip().rfind("  ") for line in lines if line.endswith("iterations")}) == 1


class Overwrites(Solver):
    """Scales the rows for its own convenience, in place: its own answers are wrong, and so would be those of others."""

    def iterates(self, problem, metric, start):
        problem.form.rows[...] *= 2.0
        yield Iterate(start, problem.homogenised_value(start))


def test_a_solver_that_writes_to_the_rows_is_stopped_and_spoils_nothing():
    before = PROBLEM.value(PROBLEM.solution)
    with pytest.raises(ValueError, match="read-only"):
        solve(PROBLEM, Overwrites(), "identity")
    assert PROBLEM.value(PROBLEM.solution) == before
