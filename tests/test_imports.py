"""Do the rooms of the package import only rooms below them, and does importing it stay quick and quiet?"""

import ast
from pathlib import Path

import pytest

import quartbench

PACKAGE = Path(quartbench.__file__).parent

#: CONTRIBUTING.md's list, lowest first: a room imports only rooms above it here. The package's door, which gathers the
#: public names, comes after the rooms it gathers from.
ORDER = (
    "errors",
    "views",
    "registry",
    "runtime",
    "kernels",
    "linalg",
    "metrics",
    "cones",
    "forms",
    "model",
    "precondition",
    "solvers",
    "instances",
    "regression",
    "inverse",
    "distributed",
    "study",
    "gate",
    "testing",
    "__init__",
    "cli",
    "__main__",
)

FILES = sorted(path for path in PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in FILES]


def room(path):
    """Return the room of a file, "__init__" for the package's door."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Yield (line, room) for everything that a file imports from the package."""
    package = ("quartbench", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) + 1 - node.level]) if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [[*base, alias.name] if len(base) == 1 else base for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "quartbench":
                # "from quartbench import model" enters a room, "from quartbench import solve" only the door.
                yield node.lineno, target[1] if len(target) > 1 and target[1] in ORDER else "__init__"


def test_every_room_has_its_place():
    assert {room(path) for path in FILES} <= set(ORDER), "give the new room its place in ORDER"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_go_down_only(path):
    own = room(path)
    for line, other in imported(path):
        assert ORDER.index(other) <= ORDER.index(own), f"{path}:{line}: {own} must not import {other}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from quartbench.solvers.base import solve", ["solvers"]),
        ("from ..solvers import base", ["solvers"]),
        ("from .. import solvers, errors", ["solvers", "errors"]),
        ("from . import forms", ["model"]),
        ("from .forms import Form", ["model"]),
        ("import quartbench.cli", ["cli"]),
        ("def late():\n    from quartbench import solve", ["__init__"]),
        ("import quartbench", ["__init__"]),
        ("import numpy as np", []),
    ],
)
def test_the_rule_sees_every_way_to_import(tmp_path, monkeypatch, line, found):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "file.py"
    path.write_text(line)
    assert [other for _, other in imported(path)] == found


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_only_kernels_compile(path):
    compilers = {"jit", "njit", "vectorize", "guvectorize", "stencil", "cfunc", "kernel", "parallel_kernel"}
    for node in ast.walk(ast.parse(path.read_text())):
        used = {getattr(node, "attr", None), getattr(node, "id", None), getattr(node, "name", None)}
        assert "jitclass" not in used
        if room(path) != "kernels" and isinstance(node, ast.FunctionDef):
            decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            names = {getattr(d, "attr", getattr(d, "id", None)) for d in decorators}
            assert not names & compilers, f"{path}:{node.lineno}: jitted functions belong in quartbench/kernels"


def test_importing_the_package_compiles_nothing_and_stays_light(run_python):
    script = """
import sys
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    import quartbench
from numba.core.dispatcher import Dispatcher
loaded = [
    name
    for module in list(sys.modules.values()) if getattr(module, "__name__", "").startswith("quartbench")
    for name, kernel in vars(module).items() if isinstance(kernel, Dispatcher) and kernel.signatures
]
heavy = {"matplotlib", "pandas", "pyarrow", "jinja2", "asv", "dask", "sklearn", "networkx", "clarabel"}
print(len(compiled.buffer), loaded, sorted(heavy & set(sys.modules)))
"""
    assert run_python(script) == "0 [] []"
