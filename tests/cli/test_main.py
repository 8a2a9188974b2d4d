"""What a person types, and what they read: the commands as a whole, and those that only say what there is."""

import importlib.metadata
import json

import quartbench
from quartbench import __version__
from quartbench.cli import main

from .common import run, run_alone


def test_version_is_printed():
    assert __version__ in run("--version").output


def test_every_command_explains_itself():
    names = main.list_commands(None)
    assert names
    for name in names:
        result = run(name, "--help")
        assert result.exit_code == 0
        first = result.output.splitlines()[2].strip()
        assert first.endswith("."), f"{name}: its help must start with a sentence that fits the command list"
        assert first.rstrip(".") in run("--help").output


def test_help_lists_the_commands_in_the_order_in_which_they_are_used():
    text = run("--help").output.partition("Commands:")[2]
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert names == [
        "info",
        "warmup",
        "list",
        "solve",
        "demo",
        "precondition",
        "kernels",
        "compare",
        "merge",
        "report",
        "scale",
        "gate",
        "history",
    ]


def test_the_installed_command_and_the_module_are_the_same():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="quartbench")
    assert script.load() is main
    assert __version__ in run_alone("--version").stdout


def test_a_command_that_needs_no_data_loads_none_of_the_heavy_packages(run_python):
    script = """
import sys
from quartbench.cli import main
main(["list"], standalone_mode=False)
heavy = {"matplotlib", "pandas", "pyarrow", "jinja2", "asv", "dask", "sklearn", "networkx", "clarabel"}
print("heavy:", sorted(heavy & set(sys.modules)))
print("study:", "quartbench.study" in sys.modules)
"""
    assert run_python(script).splitlines()[-2:] == ["heavy: []", "study: False"]


def test_what_is_imported_late_is_found_by_completion_too():
    assert {"QuarticRegressor", "compare", "solve", "inverse"} <= set(dir(quartbench))
    assert "TYPE_CHECKING" not in dir(quartbench)


def test_info_names_versions_and_threads():
    facts = json.loads(run("info", "--json").output)
    assert {"quartbench", "numpy", "numba", "threads", "threading layer", "commit"} <= facts.keys()
    assert "numba" in run("info").output


def test_everything_that_has_a_name_is_listed():
    # In a process of its own, as other tests register solvers here.
    found = json.loads(run_alone("list", "--json").stdout)
    assert {"gd", "bregman", "homgd", "accel-homgd"} <= found["solvers"].keys()
    assert {"identity", "uniform", "lewis", "diagonal", "diagonal-best", "sampled"} == found["metrics"].keys()
    assert all(line for entries in found.values() for line in entries.values()), "each with one line"
    assert "[sigma_min, 1]" in found["instances"]["spectrum"]
    assert "[sigma_min, 1]" in " ".join(run("list").output.split())


def test_lists_are_plain_words_and_completion_is_explained():
    listed = run("list").output
    assert "``" not in listed
    assert ":class:" not in listed
    assert "exactly gamma and condition number" in " ".join(listed.split())
    assert "_QUARTBENCH_COMPLETE=bash_source quartbench" in run("list", "--help").output
