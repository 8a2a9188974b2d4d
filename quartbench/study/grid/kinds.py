"""Which kinds of runs can a study hold? Convex problems, recoveries and regressions: how each is made and solved."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

from quartbench import inverse, regression
from quartbench.instances import INSTANCES
from quartbench.inverse.recoveries import RECOVERIES, application
from quartbench.regression.data import REGRESSIONS
from quartbench.solvers import solvers


class Kind(NamedTuple):
    """A kind of instance, the methods that take it, and what both are called.

    ``solver`` is what a method is called in errors, ``own`` the method that a study of flags alone runs, and
    ``application`` what the column of that name says of a generator.
    """

    name: str
    instances: str
    solver: str
    group: str
    generators: MutableMapping[str, Callable[..., Any]]
    methods: Callable[[], Mapping[str, Any]]
    own: str
    application: Callable[[str], str]


CONVEX = Kind(
    "convex", "convex problems", "solver", "catalogue", INSTANCES, solvers, own="auto", application=lambda generator: ""
)
RECOVERY = Kind(
    "recovery",
    "recoveries",
    "method for recoveries",
    "recoveries",
    RECOVERIES,
    inverse.methods,
    own="auto",
    application=application,
)
REGRESSION = Kind(
    "regression",
    "regressions",
    "method for regressions",
    "regressions",
    REGRESSIONS,
    regression.methods,
    own="l4-regression",
    application=lambda generator: "regression",
)

#: In the order in which a study of flags has their groups.
KINDS = {kind.name: kind for kind in (CONVEX, RECOVERY, REGRESSION)}

#: What an instance of any kind is made by.
GENERATORS: Mapping[str, Callable[..., Any]] = ChainMap(*(kind.generators for kind in KINDS.values()))


def kind_of(generator: str) -> Kind:
    """Return the kind of the instances that a generator makes; saved problems, which no list holds, are convex."""
    return next((kind for kind in (RECOVERY, REGRESSION) if generator in kind.generators), CONVEX)
