"""Results from several directories become one, each run once; what cannot be compared is refused."""

import json
import math

import pandas
import pytest
from click.testing import CliRunner

from quartbench.cli import main
from quartbench.errors import ProblemError
from quartbench.study import rows, store

EMPTY = {"string": "", "int64": 0, "double": math.nan, "bool": False}
SYSTEM = {"processor": "abacus", "numpy": "2.0", "commit": "abc", "cores": 2}


def row(key, **columns):
    """A row of nothing but its key and what a test needs."""
    blank = {column.name: EMPTY.get(column.type, []) for column in store.COLUMNS}
    return blank | {"key": key, "created": key} | columns


def results(folder, *keys, **about):
    """A directory with these runs."""
    with store.opened(folder):
        for key in keys:
            store.write(folder, row(key, commit=folder.name))
        made = {"study": "s", "config": {}, "system": SYSTEM, "command": "c", "problem_set": 1, "created": "2026"}
        store.describe(folder, made | about)
    return folder


def test_every_column_is_explained_once():
    names = [column.name for column in store.COLUMNS]
    assert len(set(names)) == len(names)
    assert all(column.meaning for column in store.COLUMNS)
    assert store.schema().names == names


def test_the_worker_fills_only_known_columns():
    assert {*rows.NOTHING, *rows.NOWHERE} <= set(store.schema().names)


def test_columns_keep_their_types_when_there_is_nothing_in_them(tmp_path):
    results(tmp_path, "a")
    store.write(tmp_path, row("b", trace_value=[1.0, math.inf], message="ρ", optimum=-1.5, trace_restart=[True]))
    frame = pandas.read_parquet(tmp_path)
    assert frame.dtypes["seed"] == "int64"
    assert frame.dtypes["optimum"] == "float64"
    b = store.read(tmp_path).set_index("key").loc["b"]
    assert list(b["trace_value"]) == [1.0, math.inf]
    assert (b["message"], b["optimum"], list(b["trace_restart"])) == ("ρ", -1.5, [True])


def test_an_empty_study_reads_as_an_empty_table(tmp_path):
    results(tmp_path)
    assert len(store.read(tmp_path)) == 0
    assert list(store.read(tmp_path).columns) == store.schema().names


def test_what_is_no_study_is_said_to_be_none(tmp_path):
    with pytest.raises(ProblemError, match="no results in"):
        store.read(tmp_path)
    with pytest.raises(ProblemError, match="no study in"):
        store.settings(tmp_path)
    (tmp_path / "_study.json").write_text("{")
    with pytest.raises(ProblemError, match=r"is not the _study\.json of a study"):
        store.settings(tmp_path)


def test_a_merge_is_a_union(tmp_path):
    one, two = results(tmp_path / "one", "a", "b"), results(tmp_path / "two", "b", "c", study="t", created="2025")
    out = tmp_path / "out"
    assert store.merge(out, [one, two]) == 3
    frame = store.read(out)
    assert list(frame["key"]) == ["a", "b", "c"]
    assert list(frame["commit"]) == ["one", "one", "two"]
    about = store.settings(out)
    assert (about["study"], about["created"]) == ("s + t", "2025")
    assert set(about["config"]) == {"s", "t"}
    three = results(tmp_path / "three", "c", "d")
    assert store.merge(out, [three]) == 4
    assert store.settings(out)["study"] == "s + t"


def test_different_problem_sets_are_never_merged(tmp_path):
    one, two = results(tmp_path / "one", "a"), results(tmp_path / "two", "b", problem_set=2)
    for mixed in (False, True):
        with pytest.raises(ProblemError, match=r"has problem set 2, .* has 1"):
            store.merge(tmp_path / "out", [one, two], mixed)
    assert not (tmp_path / "out").exists()


def test_different_systems_are_merged_only_when_asked_to(tmp_path):
    one = results(tmp_path / "one", "a")
    two = results(tmp_path / "two", "b", system=SYSTEM | {"processor": "quipu", "commit": "def"})
    with pytest.raises(ProblemError, match=r"another system .*processor abacus / quipu\), so their times"):
        store.merge(tmp_path / "out", [one, two])
    assert store.merge(tmp_path / "out", [one, two], mixed=True) == 2
    systems = store.settings(tmp_path / "out")["systems"]
    assert [system["processor"] for system in systems] == ["abacus", "quipu"]


def test_another_commit_is_no_other_system():
    assert store.difference(SYSTEM, SYSTEM | {"commit": "def", "threads": 1}) == ""
    assert store.difference(SYSTEM, SYSTEM | {"numpy": "2.1"}) == "numpy 2.0 / 2.1"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    import os

    results(tmp_path, "a")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        store.write(tmp_path, row("a", commit="new"))
    assert list(store.read(tmp_path)["commit"]) == [tmp_path.name]
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_merge_on_the_command_line(tmp_path):
    one, two = results(tmp_path / "one", "a"), results(tmp_path / "two", "b", problem_set=2)
    done = CliRunner().invoke(main, ["merge", str(tmp_path / "out"), str(one)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("1 run: ")
    refused = CliRunner().invoke(main, ["merge", str(tmp_path / "out"), str(two)])
    assert refused.exit_code == 2
    assert "cannot be united" in refused.output
    assert json.loads((tmp_path / "out" / "_study.json").read_text())["problem_set"] == 1


# Damaged files --------------------------------------------------------------------------------------------------------


def overwritten(path):
    """Damage a page in the middle of a file; its footer stays as it was."""
    data = bytearray(path.read_bytes())
    data[200:400] = b"\xff" * 200
    path.write_bytes(data)


def other_columns(path):
    pandas.DataFrame({"a": [1]}).to_parquet(path)


def other_types(path):
    frame = pandas.read_parquet(path)
    frame["nit"] = ["many"]
    frame.to_parquet(path)


def another_run(path):
    frame = pandas.read_parquet(path)
    frame["key"] = ["somebody-else"]
    frame.to_parquet(path)


DAMAGE = {
    "a page": overwritten,
    "the end": lambda path: path.write_bytes(path.read_bytes()[:-4]),
    "the middle": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "everything": lambda path: path.write_bytes(b""),
    "other columns": other_columns,
    "other types": other_types,
    "another run": another_run,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_costs_its_run_and_no_other(tmp_path, damage):
    folder = results(tmp_path / "r", "a", "b", "c")
    damage(folder / "runs" / "b.parquet")
    frame = store.read(folder)
    assert list(frame["key"]) == ["a", "c"]
    assert frame.attrs["unreadable"] == ["b.parquet"]
    assert frame.dtypes["peer"] == "bool"
    assert store.merge(tmp_path / "merged", [folder]) == 2
    assert store.keys(folder) == {"a", "c"}
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["a.parquet", "c.parquet"]
    assert (folder / "_superseded" / "b.parquet").exists()
    assert store.read(folder).attrs["unreadable"] == []


def test_nothing_but_damaged_files_reads_as_an_empty_table(tmp_path):
    results(tmp_path, "a")
    (tmp_path / "runs" / "a.parquet").write_bytes(b"PAR1")
    assert len(store.read(tmp_path)) == 0
    assert list(store.read(tmp_path).columns) == store.schema().names
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert "1 files cannot be read" in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "it has no 'study'"),
        ("[]", r"it must be an object, found \[\]"),
        ("null", "it must be an object, found None"),
        ('{"study": 3}', "'study' must be a text, found 3"),
        ('{"study": "s", "config": []}', r"'config' must be an object, found \[\]"),
        ('{"study": "s", "config": {}, "system": "mine"}', "'system' must be an object, found 'mine'"),
        ("[" * 100_000, "maximum recursion depth"),
    ],
)
@pytest.mark.parametrize("command", ["report", "merge", "compare"])
def test_a_damaged_description_is_named_with_what_is_wrong(tmp_path, text, message, command):
    folder = results(tmp_path / "r", "a")
    (folder / "_study.json").write_text(text)
    with pytest.raises(ProblemError, match=rf"_study\.json' is (not the _study\.json of a study|damaged): .*{message}"):
        store.settings(folder)
    arguments = {
        "report": [folder],
        "merge": [tmp_path / "out", folder],
        "compare": ["--study", "quick", "--out", folder, "--quiet", "--threads", 1],
    }[command]
    result = CliRunner().invoke(main, [command, *map(str, arguments)])
    assert result.exit_code == 2, result.output
    assert "_study.json" in result.output
    assert not isinstance(result.exception, KeyError | TypeError | AttributeError)
