"""A study is read, refused in clear words, and its runs are known by what they depend on."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from quartbench import inverse
from quartbench.errors import ProblemError
from quartbench.study import grid

MINE = """
[[group]]
name = "mine"
instances = [{ generator = "spectrum", m = [100, 200], n = 10, sigma_min = 0.1 }, "ring:points=20"]
solvers = ["homgd", { method = "accel-homgd", restart = "none" }]
metrics = ["identity", "uniform"]
seeds = [0, 3]
rel_gaps = [1e-4, 1e-8]
"""
BAD_SOLVERS = Path(__file__).with_name("bad_solvers.py")


def written(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.fixture
def study(tmp_path):
    return grid.read_study(written(tmp_path, MINE))


def test_a_group_is_the_whole_grid(study):
    cells = grid.cells(study, 2)
    assert len(cells) == 3 * 2 * 2 * 2 * 2
    assert len({cell.key(0) for cell in cells}) == len(cells)
    assert {cell.method.label for cell in cells} == {"homgd", "accel-homgd restart=none"}
    assert study.name == "mine"


def test_cells_of_a_problem_stand_together(study):
    problems = [cell.problem for cell in grid.cells(study, 2)]
    changes = sum(one != other for one, other in itertools.pairwise(problems))
    assert changes == len(set(problems)) - 1


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("spectrum:m=2000,n=1000,sigma_min=0.02", "spectrum 2000×1000 σ_min=0.02"),
        ("coherent:m=500,n=20,gamma=0.04,kind=generic", "coherent 500×20 γ=0.04 generic"),
        ("blocks:m=50,n=20,rank=3", "blocks 50×20 r=3"),
        ("geometric:points=5000", "geometric N=5000 d=3"),
        ("heavy_tailed:m=50,n=20", "heavy-tailed 50×20"),
    ],
)
def test_labels_read_well(text, label):
    (instance,) = grid.read_instances(text)
    assert instance.label == label


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[[group]]", "[[groop]]"), "unknown entry of study 'mine.toml' 'groop'; did you mean 'group'?"),
        (("seeds", "seed"), "did you mean 'seeds'?"),
        (("spectrum", "spectrun"), "unknown instance 'spectrun'; did you mean 'spectrum'?"),
        (("sigma_min", "sigma"), "unknown argument of spectrum 'sigma'; did you mean 'sigma_min'?"),
        (("n = 10, ", ""), "spectrum needs 'n'"),
        (("n = 10", "n = 10, seed = 1"), "seeds stand beside the instances"),
        (('"homgd"', '"homgdd"'), "unknown solver 'homgdd'; did you mean 'homgd'?"),
        (('"none"', '"never"'), "unknown restart 'never'"),
        (("restart", "restarts"), "unknown setting of accel-homgd 'restarts'; did you mean 'restart'?"),
        (('"uniform"', '"unifrom"'), "unknown metric 'unifrom'; did you mean 'uniform'?"),
        (("[0, 3]", "[0, -3]"), "seeds must be a whole number of at least 0, found -3"),
        (("[0, 3]", "3"), "seeds must be a list, found 3"),
        (("[1e-4, 1e-8]", "[0.0]"), "rel_gaps must be a positive number, found 0.0"),
        (("[1e-4, 1e-8]", "[]"), "rel_gaps must not be empty"),
        (("[1e-4, 1e-8]", "[1e-4"), "is not TOML"),
        (('name = "mine"', ""), "group 1 needs 'name'"),
        (('"ring:points=20"', '"ring:points"'), "arguments are written name=value, found 'points'"),
        (("seeds =", "repeats = 0\nseeds ="), "repeats must be a whole number of at least 1"),
        (("seeds =", 'bounds = "yes"\nseeds ='), "bounds must be true or false"),
    ],
)
def test_what_is_wrong_with_a_study_is_said(tmp_path, change, message):
    assert change[0] in MINE
    with pytest.raises(ProblemError) as error:
        grid.read_study(written(tmp_path, MINE.replace(*change, 1)))
    assert message in str(error.value)


def test_unknown_studies_and_empty_ones_are_refused(tmp_path):
    with pytest.raises(ProblemError, match="did you mean 'paper'"):
        grid.read_study("papr")
    with pytest.raises(ProblemError, match="there is no file"):
        grid.read_study("nowhere.toml")
    with pytest.raises(ProblemError, match="has no groups"):
        grid.read_study(written(tmp_path, 'name = "empty"'))


@pytest.mark.parametrize("name", ["quick", "paper", "scaling", "peers", "inverse", "full"])
def test_shipped_studies_are_whole(name):
    study = grid.read_study(name)
    assert study.name == name
    assert study.about.endswith(".")
    assert grid.shipped()[name] == study.about
    assert {"auto"} <= {cell.method.name for cell in grid.cells(study, 2)} or name in ("paper", "scaling")


def test_full_holds_all_the_others():
    groups = {group.name for group in grid.read_study("full").groups}
    for name in ("paper", "scaling", "peers", "inverse"):
        assert {group.name for group in grid.read_study(name).groups} <= groups


def test_a_study_says_what_it_left_out(tmp_path):
    study = grid.read_study(written(tmp_path, 'notes = ["no tests with mice"]\n' + MINE))
    assert study.notes == ("no tests with mice",)
    for wrong in ('notes = "words"\n', "notes = [1]\n"):
        with pytest.raises(ProblemError, match="notes"):
            grid.read_study(written(tmp_path, wrong + MINE))


def test_kappa_is_measured_where_a_group_asks_for_it_and_other_keys_stay(tmp_path):
    plain = grid.cells(grid.read_study(written(tmp_path, MINE)), 2)
    asked = grid.cells(grid.read_study(written(tmp_path, "kappa = true\n" + MINE)), 2)
    assert not any(cell.kappa for cell in plain)
    assert all(cell.kappa for cell in asked)
    assert {cell.key(0) for cell in plain}.isdisjoint(cell.key(0) for cell in asked)
    with pytest.raises(ProblemError, match="kappa must be true or false"):
        grid.read_study(written(tmp_path, "kappa = 1\n" + MINE))


def test_shipped_studies_leave_out_what_is_not_installed(tmp_path):
    text = MINE.replace('"homgd"', '"homgd", "not-here"')
    study = grid.reading._study(Path(written(tmp_path, text)), lenient=True)
    assert study.notes == ("left out, as pip install 'quartbench[peers]' is needed: not-here",)
    assert len(study.groups[0].solvers) == 2


WITHOUT_PEERS = """
import sys
sys.modules["greenlet"] = sys.modules["clarabel"] = None
from quartbench.cli import main
main(sys.argv[1:], standalone_mode=False)
"""


@pytest.mark.parametrize("study", ["peers", "full"])
def test_a_comparison_with_peers_needs_some(run_python, tmp_path, study):
    # It ran for nine minutes without one.
    with pytest.raises(AssertionError, match=r"not here \(scipy-lbfgs, .*: pip install 'quartbench\[peers\]'"):
        run_python(WITHOUT_PEERS, "compare", "--study", study, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    quick = "from quartbench.study import grid; print(*grid.read_study('quick').notes)"
    script = WITHOUT_PEERS.replace("main(sys.argv[1:], standalone_mode=False)", quick)
    assert "quartbench[peers]' is needed: scipy-lbfgs" in run_python(script)


# Keys -----------------------------------------------------------------------------------------------------------------


def keys(study, threads=2):
    return [cell.key(0) for cell in grid.cells(study, threads)]


def test_a_key_is_the_same_in_another_process(study, tmp_path, run_python):
    script = (
        "import sys; from quartbench.study import grid; study = grid.read_study(sys.argv[1]);"
        "print(*(cell.key(1) for cell in grid.cells(study, 2)))"
    )
    other = run_python(script, written(tmp_path, MINE, "same.toml")).split()
    assert other == [cell.key(1) for cell in grid.cells(study, 2)]


@pytest.mark.parametrize(
    "change",
    [
        ("sigma_min = 0.1", "sigma_min = 0.2"),
        ('"none"', '"scheduled"'),
        ("[0, 3]", "[1, 4]"),
        ("[1e-4, 1e-8]", "[1e-5, 1e-9]"),
        ("seeds =", "time_limit = 3\nseeds ="),
        ("seeds =", "max_iter = 30\nseeds ="),
        ("seeds =", "bounds = true\nseeds ="),
        ('name = "mine"', 'name = "yours"'),
    ],
)
def test_a_setting_changes_the_keys_of_what_depends_on_it(tmp_path, study, change):
    changed = grid.read_study(written(tmp_path, MINE.replace(*change, 1), "changed.toml"))
    before, after = set(keys(study)), set(keys(changed))
    touched = {
        "sigma_min = 0.1": lambda cell: cell.instance.generator == "spectrum",
        '"none"': lambda cell: cell.method.name == "accel-homgd",
    }.get(change[0], lambda cell: True)
    kept = {cell.key(0) for cell in grid.cells(study, 2) if not touched(cell)}
    assert before & after == kept


@pytest.mark.parametrize("change", [("seeds =", "repeats = 7\nseeds ="), ("\n[[group]]", 'about = "new"\n[[group]]')])
def test_what_a_run_does_not_depend_on_leaves_its_key(tmp_path, study, change):
    changed = grid.read_study(written(tmp_path, MINE.replace(*change, 1), "changed.toml"))
    assert keys(changed) == keys(study)


def test_threads_problem_set_version_and_repeat_are_in_the_key(monkeypatch, tmp_path, study):
    from quartbench.solvers import HomGD

    cells = grid.cells(study, 2)
    before = keys(study)
    assert not set(before) & set(keys(study, threads=1))
    assert not set(before) & {cell.key(1) for cell in cells}
    monkeypatch.setattr(HomGD, "version", HomGD.version + 1)
    newer = keys(grid.read_study(written(tmp_path, MINE)))
    assert {key for key in before if key in newer} == {c.key(0) for c in cells if c.method.name != "homgd"}
    monkeypatch.setattr(grid.records, "PROBLEM_SET", grid.records.PROBLEM_SET + 1)
    assert not set(before) & set(keys(study))


def test_a_new_version_of_a_method_is_a_new_auto(monkeypatch):
    from quartbench.solvers import HomGD

    (before,) = grid.read_methods(["auto"])
    monkeypatch.setattr(HomGD, "version", HomGD.version + 1)
    (after,) = grid.read_methods(["auto"])
    assert before.source != after.source


def test_a_users_solver_is_known_by_what_its_file_holds(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(BAD_SOLVERS.read_text())
    (before,) = grid.read_methods([f"{file}:Honest"])
    assert (before.name, before.peer) == ("honest", False)
    file.write_text(BAD_SOLVERS.read_text() + "\n# better now\n")
    (after,) = grid.read_methods([f"{file}:Honest"])
    assert replace(after, source="") == replace(before, source="")
    assert after.source != before.source


def test_a_users_solver_is_found_beside_the_study(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.py").write_text(BAD_SOLVERS.read_text())
    path = written(tmp_path / "folder", MINE.replace('"homgd"', '"mine.py:Honest"'))
    monkeypatch.chdir(tmp_path)
    assert grid.read_study(path).groups[0].solvers[0].spec == f"{tmp_path / 'folder' / 'mine.py'}:Honest"


# Flags ----------------------------------------------------------------------------------------------------------------


def test_flags_stand_in_the_place_of_lists_and_plus_adds(study):
    changed = grid.with_flags(
        study, solvers=("+gd",), metrics=("identity",), seeds=(5,), rel_gaps=(1e-3,), time_limit=2.0, repeats=1
    )
    (group,) = changed.groups
    assert [method.label for method in group.solvers] == ["homgd", "accel-homgd restart=none", "gd"]
    assert (group.metrics, group.seeds, group.rel_gaps) == (("identity",), (5,), (1e-3,))
    assert (group.time_limit, group.repeats, group.instances) == (2.0, 1, study.groups[0].instances)
    (group,) = grid.with_flags(study, instances=("ring:points=9",), solvers=("gd",)).groups
    assert [instance.label for instance in group.instances] == ["ring N=9 d=3"]
    assert [method.label for method in group.solvers] == ["gd"]


def test_flags_alone_are_a_study():
    study = grid.with_flags(None, instances=("ring:points=9",), solvers=("gd", "homgd"))
    assert [cell.method.label for cell in grid.cells(study, 1)] == ["gd", "homgd"]
    with pytest.raises(ProblemError, match="needs instances"):
        grid.with_flags(None, solvers=("gd",))


def test_flags_change_the_groups_of_their_kind_and_leave_out_the_others(tmp_path):
    text = MINE + '[[group]]\nname = "waves"\ninstances = ["phase_gaussian:n=8,ratio=4"]\nsolvers = ["auto", "dc"]\n'
    both = grid.read_study(written(tmp_path, text))
    assert [group.kind for group in both.groups] == [grid.CONVEX, grid.RECOVERY]

    def solvers(**flags):
        return {group.name: [one.label for one in group.solvers] for group in grid.with_flags(both, **flags).groups}

    assert solvers(solvers=("newton",)) == {"waves": ["newton"]}
    assert solvers(solvers=("+newton",))["waves"] == ["auto", "dc", "newton"]
    assert "newton" not in solvers(solvers=("+newton",))["mine"]
    assert solvers(solvers=("auto",)) == {"mine": ["auto"], "waves": ["auto"]}
    assert solvers(instances=("phase_masks:n=8,masks=4",)) == {"waves": ["auto", "dc"]}
    assert [g.metrics for g in grid.with_flags(both, metrics=("lewis",)).groups] == [("lewis",), ("auto",)]
    with pytest.raises(ProblemError, match="no group of the study has an instance and a solver left"):
        grid.with_flags(both, instances=("phase_masks:n=8,masks=4",), solvers=("homcg",))
    with pytest.raises(ProblemError, match="did you mean 'newton'"):
        grid.with_flags(both, solvers=("newtn",))
    given = ("regression_gaussian:m=9,n=2", "phase_masks:n=8,masks=4", "ring:points=9")
    alone = grid.with_flags(None, instances=given)
    assert [(group.name, group.kind) for group in alone.groups] == [
        ("catalogue", grid.CONVEX),
        ("recoveries", grid.RECOVERY),
        ("regressions", grid.REGRESSION),
    ]
    assert [[one.label for one in group.solvers] for group in alone.groups] == [["auto"], ["auto"], ["l4-regression"]]
    (only,) = grid.with_flags(None, instances=given, solvers=("irls:least_squares=normal",)).groups
    assert [one.label for one in only.solvers] == ["irls least_squares=normal"]


def test_methods_for_recoveries_have_their_own_names_settings_and_restarts(tmp_path):
    def study(solver, instance="phase_gaussian:n=8,ratio=4"):
        text = f'name = "x"\n[[group]]\nname = "g"\ninstances = ["{instance}"]\nsolvers = [{solver}]\n'
        return grid.read_study(written(tmp_path, text))

    (method,) = study('{ method = "dc", accuracy = 0.5 }').groups[0].solvers
    assert (method.label, method.kind, json.loads(method.settings)["accuracy"]) == ("dc accuracy=0.5", "recovery", 0.5)
    (plain,), (again,) = (study(f'{{ method = "auto"{more} }}').groups[0].solvers for more in ("", ", restarts = 3"))
    assert again.label == "auto restarts=3"
    assert plain.settings != again.settings
    for solver, message in (
        ('"homgd"', "unknown method for recoveries 'homgd'"),
        ('{ method = "dc", accurcy = 1 }', "did you mean 'accuracy'"),
        ('{ method = "auto", restarts = -1 }', "restarts of auto must be a whole number of at least 0"),
    ):
        with pytest.raises(ProblemError, match=message):
            study(solver)
    with pytest.raises(ProblemError, match="of one kind, found recoveries and convex problems"):
        study('"auto"', 'phase_gaussian:n=8,ratio=4", "ring:points=9')


def test_methods_for_regressions_have_their_own_names_and_settings(tmp_path):
    def study(solver):
        text = 'name = "x"\n[[group]]\nname = "g"\ninstances = ["regression_gaussian:m=9,n=2"]\n'
        return grid.read_study(written(tmp_path, text + f"solvers = [{solver}]\n"))

    (method,) = study('"scipy-lbfgs:least_squares=normal"').groups[0].solvers
    assert (method.label, method.kind, method.peer) == ("scipy-lbfgs least_squares=normal", "regression", True)
    for solver, message in (
        ('"homgd"', "unknown method for regressions 'homgd'"),
        ('"irls:least_square=normal"', "did you mean 'least_squares'"),
        ('"irls:least_squares=norml"', "did you mean 'normal'"),
    ):
        with pytest.raises(ProblemError, match=message):
            study(solver)


def test_a_new_version_of_an_inverse_method_is_a_new_auto(monkeypatch):
    before = grid.read_methods(("auto",), kind=grid.RECOVERY)[0].source
    monkeypatch.setattr(inverse.Newton, "version", 99)
    assert grid.read_methods(("auto",), kind=grid.RECOVERY)[0].source != before


def test_a_peer_has_one_run_for_all_metrics(study):
    ours, theirs = study.groups[0].solvers
    group = replace(study.groups[0], solvers=(ours, replace(theirs, peer=True)))
    cells = grid.cells(replace(study, groups=(group,)), 2)
    assert sum(cell.method.peer for cell in cells) * 2 == sum(not cell.method.peer for cell in cells)


# Studies that are none ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("m = 60", "m = 1979-05-27"), r"group 'mine': instances: m of spectrum must be .* found datetime"),
        (("m = 60", "m = [[60]]"), r"m of spectrum must be a finite number or a word, or a list of them, found \[\[60"),
        (("m = 60", "m = []"), r"m of spectrum must not be empty, found \[\]"),
        (("m = 60", "m = { a = 1 }"), "m of spectrum must be a finite number or a word"),
        (("sigma_min = 0.1", "sigma_min = nan"), "sigma_min of spectrum must be a finite number"),
        (("sigma_min = 0.1", "sigma_min = [0.1, inf]"), "sigma_min of spectrum must be a finite number"),
        (('name = "mine"', "name = 3"), "name must be a text, found 3"),
        (('name = "mine"', "name = 1979-05-27"), "name must be a text, found datetime"),
        (('name = "top"', "name = 3"), "study 'bad.toml': name must be a text, found 3"),
        (('name = "top"', "about = [1]"), "about must be a text, found"),
        (('name = "top"', "include = [3]"), "include must be a text, found 3"),
        (('name = "top"', "seeds = [100000000000000000000]"), "seeds must be at most 9223372036854775807"),
        (('"gd"', '{ method = "gd", growth = 1979-05-27 }'), "solver 'gd': settings must be JSON, found"),
        (('"gd"', '"gt"'), "group 'mine': unknown solver 'gt'; did you mean 'gd'"),
        (('"spectrum"', '"spektrum"'), "group 'mine': unknown instance 'spektrum'; did you mean 'spectrum'"),
        (('name = "top"', "a = " + "[" * 5000 + "]" * 5000), "is not TOML: maximum recursion depth"),
    ],
)
def test_an_entry_that_is_none_is_named_with_its_file(tmp_path, change, message):
    text = """
name = "top"
[[group]]
name = "mine"
instances = [{ generator = "spectrum", m = 60, n = 5, sigma_min = 0.1 }]
solvers = ["gd"]
"""
    assert change[0] in text
    with pytest.raises(ProblemError, match=message) as error:
        grid.read_study(written(tmp_path, text.replace(*change), "bad.toml"))
    assert "bad.toml" in str(error.value)


def test_a_study_that_includes_itself_says_so(tmp_path):
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(f'include = ["{other}"]')
    other.write_text(f'include = ["{one}"]')
    with pytest.raises(ProblemError, match=r"study 'one\.toml' includes itself, through 'one\.toml' and 'other\.toml'"):
        grid.read_study(str(one))
    one.write_text(f'include = ["quick", "quick", "{other}"]')
    other.write_text('include = ["quick"]')
    assert len(grid.read_study(str(one)).groups) == 3 * len(grid.read_study("quick").groups)


def test_a_study_file_of_another_ending_is_told():
    with pytest.raises(
        ProblemError, match=r"^unknown study '1\.tml' \(known: .*quick.*\); a file .* must end in \.toml$"
    ):
        grid.read_study("1.tml")
    with pytest.raises(ProblemError, match=r"unknown study 'qick'; did you mean 'quick'\?"):
        grid.read_study("qick")
