"""How is a solver found? By its registered name, in a file as ``path/to/file.py:Class``, or given as it is."""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quartbench.errors import ProblemError, unknown_name
from quartbench.registry import Registry, name_and_settings, require_settings

from .contract import Solver


def _solver_class(found: Any, where: str) -> type[Solver]:
    """Return a class with the whole contract: one that has ``iterates`` alone gets the defaults for the rest."""
    if not (inspect.isclass(found) and callable(getattr(found, "iterates", None))):
        raise ProblemError(f"{where} must be a class with a method iterates(problem, metric, start), found {found!r}")
    if issubclass(found, Solver):
        return found
    name = getattr(found, "name", found.__name__.lower())
    return type(found.__name__, (found, Solver), {"name": name, "__doc__": found.__doc__})


class _Solvers(Registry):
    """Solvers by name; each knows the name that it is registered under."""

    def register(self, name: str, found: type[Solver]) -> type[Solver]:
        found.name = name
        return super().register(name, found)


#: The solvers by name; an installed package offers its own through this entry point group.
SOLVERS = _Solvers("solver", "quartbench.solvers", _solver_class)


def register(name: str) -> Callable[[type[Solver]], type[Solver]]:
    """Register a solver class under a name; from then on it is in every list, test, study and benchmark.

    Examples
    --------
    >>> @qb.register("patient-gradient")
    ... class PatientGradient(qb.Solver):
    ...     '''Does nothing yet.'''
    >>> from quartbench.solvers import solvers
    >>> "patient-gradient" in solvers()
    True
    """

    def decorate(cls: type[Solver]) -> type[Solver]:
        SOLVERS.register(name, _solver_class(cls, f"the solver {name!r}"))
        return cls

    return decorate


def solvers() -> dict[str, type[Solver]]:
    """Return the registered solvers by name, those of installed packages included."""
    return {name: SOLVERS[name] for name in SOLVERS}


def describe(solver: type[Solver]) -> str:
    """Return the one line that lists show: the first of the docstring."""
    return inspect.cleandoc(solver.__doc__ or "").partition("\n")[0]


def load_solver(spec: str) -> type[Solver]:
    """Return the solver class that ``"path/to/file.py:MySolver"`` names, and register it under its name.

    A class that registers itself keeps that name; another one is called after its class, in lower case.
    """
    path, _, attribute = spec.rpartition(":")
    if not path or not attribute:
        raise ProblemError(f"solver must be a name or 'path/to/file.py:Class', found {spec!r}")
    file = Path(path)
    if not file.is_file():
        raise ProblemError(f"solver {spec!r}: there is no file {path!r}")
    module_spec = importlib.util.spec_from_file_location(f"quartbench_user_{file.stem}", file)
    if module_spec is None or module_spec.loader is None:
        raise ProblemError(f"solver {spec!r}: {path!r} is not a Python file")
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise ProblemError(f"solver {spec!r}: {path!r} cannot be imported ({error!r})") from error
    classes = {name: found for name, found in vars(module).items() if inspect.isclass(found)}
    if attribute not in vars(module):
        known = [name for name in classes if "iterates" in dir(classes[name])]
        if not known:
            raise ProblemError(f"solver {spec!r}: {path!r} has no class with a method iterates")
        raise unknown_name(f"class in {path!r}:", attribute, known)
    cls = _solver_class(vars(module)[attribute], repr(spec))
    if SOLVERS.own(cls.name) is not cls:
        register(vars(cls).get("name", attribute.lower()))(cls)  # a name that is inherited is that of another
    return cls


def _class_named(name: str) -> type[Solver]:
    if name in SOLVERS:
        return SOLVERS[name]
    if ":" in name or name.endswith(".py") or os.sep in name:
        return load_solver(name)
    raise unknown_name("solver", name, SOLVERS)


def make_solver(solver: str | Solver | type[Solver]) -> Solver:
    """Return a solver from its name or ``"file.py:Class"``, perhaps with ``":setting=value"``, its class, or itself."""
    if isinstance(solver, str):
        if solver in SOLVERS:
            return SOLVERS[solver]()
        name, settings = name_and_settings(solver, "solver")
        cls = _class_named(name)
        require_settings(name, settings, cls)
        return cls(**settings)
    if inspect.isclass(solver):
        return _solver_class(solver, "solver")()
    if isinstance(solver, Solver):
        return solver
    if not callable(getattr(solver, "iterates", None)):
        raise ProblemError(f"solver must be a name, a Solver or its class, found {type(solver).__name__}")
    adapted = object.__new__(_solver_class(type(solver), "solver"))
    adapted.__dict__.update(vars(solver))
    return adapted
