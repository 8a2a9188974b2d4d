"""Does every public object have an example, is it in the reference, and is what examples show what they print?"""

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


PUBLIC = [
    pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")
    for module in MODULES
    for name in module.__all__
    if callable(getattr(module, name))
]


@pytest.mark.parametrize("thing", PUBLIC)
def test_every_public_object_has_an_example(thing):
    assert "Examples\n" in thing.__doc__
    assert ">>> " in thing.__doc__.partition("Examples\n")[2]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module):
    rooms = {"instances", "inverse"} if module is quartbench else {"examples"} if module is inverse else set()
    names = {f"{module.__name__}.{name}" for name in set(module.__all__) - rooms}
    assert not names - DOCUMENTED


#: Everything in one process of its own, as examples register solvers, cones and forms.
SCRIPT = r"""
import doctest, pathlib, re, sys
import numpy, quartbench
from quartbench import instances, inverse, testing

runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
finder = doctest.DocTestFinder(recurse=False)
count = 0
for module in (quartbench, instances, inverse, testing):
    for name in module.__all__:
        thing = getattr(module, name)
        if callable(thing):
            names = {"np": numpy, "qb": quartbench}
            for test in finder.find(thing, f"{module.__name__}.{name}", module=False, globs=names):
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
    count, failed = run_python(SCRIPT, DOCS).splitlines()[-1].split()
    assert int(count) > 100
    assert int(failed) == 0
