"""Does code outside a kind's own file ask the interface only? No class of a form or cone, no rows, no privates."""

import ast
from pathlib import Path

import pytest

import quartbench

PACKAGE = Path(quartbench.__file__).parent

#: The concrete kinds, and the file that each lives in.
KINDS = {
    "StackedForm": "forms/stacked.py",
    "DenseForm": "forms/dense.py",
    "SparseForm": "forms/sparse.py",
    "ComplexForm": "forms/complex.py",
    "OperatorForm": "forms/operator.py",
    "DiffractionForm": "forms/diffraction.py",
    "GraphForm": "forms/graph.py",
    "GramForm": "forms/gram.py",
    "Identity": "metrics/diagonal.py",
    "Diagonal": "metrics/diagonal.py",
    "Cholesky": "metrics/cholesky.py",
    "Laplacian": "metrics/laplacian.py",
    "Free": "cones/free.py",
    "Orthant": "cones/orthant.py",
    "Centred": "cones/centred.py",
    "SecondOrder": "cones/second_order.py",
}

#: What things of each sort are called, and the room that may look inside.
THINGS = {"form": "forms", "metric": "metrics", "cone": "cones"}

FILES = sorted(PACKAGE.rglob("*.py"))


def last(node):
    """Return the last word of a dotted name: "form" for ``self.problem.form``."""
    return getattr(node, "attr", getattr(node, "id", None))


def violations(path, tree):
    """Yield (line, what is wrong) for a file of the package."""
    here = path.relative_to(PACKAGE).as_posix()
    room = here.split("/")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last(node.func) in ("isinstance", "issubclass"):
            for kind in {last(inner) for inner in ast.walk(node.args[1])} & KINDS.keys():
                if here != KINDS[kind]:
                    yield node.lineno, f"asks whether something is a {kind}"
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            called = [side for side in sides if isinstance(side, ast.Call) and last(side.func) == "type"]
            named = {last(inner) for side in sides for inner in ast.walk(side)} & KINDS.keys()
            if called and named:
                yield node.lineno, f"compares a type with {named}"
            for side in sides:
                if last(side) == "name" and last(getattr(side, "value", None)) == "cone" and here != "model/files.py":
                    yield node.lineno, "asks for the name of a cone"
        if isinstance(node, ast.Attribute):
            thing = last(node.value)
            if thing not in THINGS or THINGS[thing] == room:
                continue
            if node.attr == "rows":
                yield node.lineno, "reads the rows of a form"
            if node.attr.startswith("_") and not node.attr.startswith("__"):
                yield node.lineno, f"reads {thing}.{node.attr}"


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(PACKAGE).as_posix() for path in FILES])
def test_nobody_asks_which_kind_it_is(path):
    found = list(violations(path, ast.parse(path.read_text())))
    assert not found, "\n".join(f"{path}:{line}: {what}" for line, what in found)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("isinstance(form, GraphForm)", "GraphForm"),
        ("isinstance(problem.form, (quartbench.StackedForm, int))", "StackedForm"),
        ("isinstance(form, StackedForm | ComplexForm)", "Form"),
        ("type(metric) is Identity", "Identity"),
        ("if problem.cone.name == 'free': pass", "name of a cone"),
        ("'free' != cone.name", "name of a cone"),
        ("self.form.rows @ x", "rows"),
        ("form._scale", "form._scale"),
        ("metric._bounds", "metric._bounds"),
    ],
)
def test_the_rule_sees(line, what):
    assert any(what in found for _, found in violations(PACKAGE / "solvers" / "x.py", ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["isinstance(form, TermForm)", "f'{cone.name}'", "form.passes", "self.rows", "StackedForm(A)"]
)
def test_the_rule_allows(line):
    assert not list(violations(PACKAGE / "solvers" / "x.py", ast.parse(line)))
