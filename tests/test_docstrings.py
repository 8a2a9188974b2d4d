"""Do the examples in docstrings of results, pictures and regression print what they say?"""

import doctest
import importlib

import numpy
import pytest

import quartbench


@pytest.mark.parametrize("module", ["regression.l4", "regression.estimator", "regression.placement", "solvers.results"])
def test_examples_print_what_they_say(module):
    if module.endswith("estimator"):
        pytest.importorskip("sklearn")
    found = doctest.testmod(importlib.import_module(f"quartbench.{module}"), extraglobs={"np": numpy, "qb": quartbench})
    assert found.attempted > 0
    assert found.failed == 0
