"""Does every public object have an example, is it in the reference, and is what examples show what they print?"""

import pydoc
import re
from pathlib import Path

import pytest

import quartbench
from quartbench import instances, inverse, testing

DOCS = Path(__file__).parents[2] / "docs"
MODULES = (quartbench, instances, inverse, testing)
DOCUMENTED = set(
    re.findall(r"^\.\. (?:auto\w+|data):: (\S+)", "\n".join(map(Path.read_text, DOCS.rglob("*.rst"))), re.M)
)


PUBLIC = {f"{module.__name__}.{name}" for module in MODULES for name in module.__all__}


@pytest.mark.parametrize("name", sorted(PUBLIC | DOCUMENTED))
def test_every_public_object_has_an_example(name):
    thing = pydoc.locate(name)
    if callable(thing):
        assert ">>> " in thing.__doc__.partition("Examples\n")[2]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module):
    rooms = (
        {"distributed", "instances", "inverse"}
        if module is quartbench
        else {"examples"}
        if module is inverse
        else set()
    )
    names = {f"{module.__name__}.{name}" for name in set(module.__all__) - rooms}
    assert not names - DOCUMENTED


#: Everything in one process of its own, as examples register solvers, cones and forms.
SCRIPT = r"""
import doctest, pathlib, pydoc, re, sys
import numpy, quartbench

runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
finder = doctest.DocTestFinder(recurse=False)
count = 0
for name in sys.argv[2:]:
    thing = pydoc.locate(name)
    if callable(thing):
        for test in finder.find(thing, name, module=False, globs={"np": numpy, "qb": quartbench}):
            count += bool(test.examples)
            runner.run(test)
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.md")):
    text = re.sub("^```.*$", "", path.read_text(encoding="utf-8"), flags=re.M)
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    count += bool(test.examples)
    runner.run(test)
print(count, runner.summarize().failed)
"""


def test_examples_print_what_they_show(run_python):
    count, failed = run_python(SCRIPT, DOCS, *sorted(PUBLIC | DOCUMENTED)).splitlines()[-1].split()
    assert int(count) > 100
    assert int(failed) == 0
