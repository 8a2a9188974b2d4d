"""What does an entry of a study mean? Instances, solvers, metrics and numbers, as TOML or a flag writes them.

Whatever is wrong with one is refused in words that say where it stands.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quartbench.errors import ProblemError, unknown_name
from quartbench.instances.saved import checksum
from quartbench.precondition import METRICS
from quartbench.registry import assignment, name_and_settings, require_settings
from quartbench.solvers import load_solver, make_solver, solvers

from .kinds import CONVEX, GENERATORS, RECOVERY, Kind
from .records import Instance, Method, digest

#: What a method for recoveries may be given beside its own settings: further starts, as the user's call has them.
RESTARTS = "restarts"

#: The largest number that a column of whole numbers holds.
MOST = 2**63 - 1


def read_instances(entry: Any, where: str = "instance", folder: Path | None = None) -> list[Instance]:
    """Return the instances of ``"spectrum:m=2000,n=1000,sigma_min=0.02"`` or the same as a table.

    In a table an argument may be a list: the instances are then all combinations. The name of a file,
    ``"problem.npz"``, is the problem that was saved there.
    """
    if isinstance(entry, str) and entry.lower().endswith(".npz"):
        path = os.path.abspath(folder / entry if folder is not None else entry)
        return [Instance("saved", (("path", path), ("content", checksum(path))))]
    if isinstance(entry, str):
        name, _, text = entry.partition(":")
        table = dict(assignment(part, where) for part in text.split(",") if part.strip())
    elif isinstance(entry, dict):
        table = dict(entry)
        name = table.pop("generator", None)
    else:
        raise ProblemError(f"{where}: an instance must be 'generator:name=value,…' or a table, found {entry!r}")
    if not isinstance(name, str) or name not in GENERATORS:
        if isinstance(name, str) and Path(name).exists():
            raise ProblemError(f"{where}: a problem in a file is a .npz of Problem.save, found {name!r}")
        raise unknown_name("instance", name, GENERATORS)
    signature = inspect.signature(GENERATORS[name])
    if "seed" in table:
        raise ProblemError(f"{where}: seeds stand beside the instances, not among the arguments of {name!r}")
    for given in table:
        if given not in signature.parameters:
            raise unknown_name(f"argument of {name}", given, set(signature.parameters) - {"seed"})
    needed = [p.name for p in signature.parameters.values() if p.default is p.empty and p.name not in table]
    if needed:
        raise ProblemError(f"{where}: {name} needs {' and '.join(map(repr, needed))}")
    defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}
    for given, value in table.items():
        _require_plain(value, f"{where}: {given} of {name}")
    choices = {key: value if isinstance(value, list) else [value] for key, value in {**defaults, **table}.items()}
    order = [argument for argument in signature.parameters if argument != "seed"]
    combinations = itertools.product(*(choices[argument] for argument in order))
    return [Instance(name, tuple(zip(order, values, strict=True))) for values in combinations]


def _require_plain(value: Any, where: str) -> None:
    """Raise where an argument is neither a finite number nor a word, nor a list of such: nothing else has a key."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ProblemError(f"{where} must not be empty, found []")
    for one in values:
        if not isinstance(one, str | int | float) or (isinstance(one, float) and not math.isfinite(one)):
            raise ProblemError(f"{where} must be a finite number or a word, or a list of them, found {value!r}")


def read_methods(
    entries: Iterable[Any],
    where: str = "solver",
    folder: Path | None = None,
    missed: list[str] | None = None,
    kind: Kind = CONVEX,
) -> tuple[Method, ...]:
    """Return the solvers of names, ``"file.py:Class"`` or tables ``{method = …, setting = …}``.

    A name may carry settings, ``"homgd:step=fixed"``, and so may a file. Where ``missed`` is given, solvers that are
    not registered are noted there instead of being errors. Every kind of instance has methods with names of their own;
    those for recoveries may have a setting ``restarts``.
    """
    found, known = [], kind.methods()
    for entry in entries:
        table = method_table(entry, where) if isinstance(entry, str) else entry
        if not isinstance(table, dict) or not isinstance(table.get("method"), str):
            raise ProblemError(f"{where}: a solver must be a name or a table with 'method', found {entry!r}")
        given = {key: value for key, value in table.items() if key != "method"}
        spec = table["method"]
        if missed is not None and spec not in known:
            missed.append(spec)
            continue
        found.append(_method(spec, given, where, folder) if kind is CONVEX else _named_method(spec, given, where, kind))
    return tuple(dict.fromkeys(found))


def method_table(entry: str, where: str) -> dict[str, Any]:
    """Return the table of a solver that is named with its settings: ``"name:setting=value,…"``."""
    method, settings = name_and_settings(entry, where)
    return {"method": method} | settings


def _method(spec: str, given: dict[str, Any], where: str, folder: Path | None) -> Method:
    source = ""
    if spec in solvers() or ":" not in spec:
        cls, name = type(make_solver(spec)), spec
        if spec == "auto":  # it is as old as the youngest method that it may pick
            versions = {key: one.version for key, one in solvers().items() if not one.peer}
            source = digest(json.dumps(versions))
    else:
        path, _, attribute = spec.rpartition(":")
        if folder is not None and (folder / path).is_file():
            path = str(folder / path)
        spec = f"{os.path.abspath(path)}:{attribute}"
        cls = load_solver(spec)
        name = cls.name
        # A user edits the file rather than its version: what it holds decides.
        source = digest(Path(path).read_text(encoding="utf-8"))
    return _with_settings(cls, spec, name, given, where, source=source)


def _named_method(name: str, given: dict[str, Any], where: str, kind: Kind) -> Method:
    """Return a method for instances that are not convex problems: one of the registered names."""
    known = kind.methods()
    if name not in known:
        raise unknown_name(kind.solver, name, known)
    source, apart = "", {}
    if kind is RECOVERY:
        if name == "auto":  # it may pick any of ours, and its call another start
            source = digest(json.dumps({key: one.version for key, one in known.items() if not one.peer}))
        apart = {key: read_whole(given[key], f"{where}: {key} of {name}", 0) for key in given if key == RESTARTS}
    return _with_settings(known[name], name, name, given, where, apart, source=source, kind=kind.name)


def _with_settings(
    cls: Any, spec: str, name: str, given: dict[str, Any], where: str, apart: dict[str, Any] | None = None, **more: Any
) -> Method:
    """Return the method of a class with the settings given; those in ``apart`` are not for its constructor."""
    apart = apart or {}
    own = {key: value for key, value in given.items() if key not in apart}
    require_settings(name, own, cls)
    try:
        written = json.dumps(given, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise ProblemError(f"{where}, solver {name!r}: settings must be JSON, found {given!r}") from None
    try:
        solver = cls(**own)
    except ProblemError as error:
        raise ProblemError(f"{where}, solver {name!r}: {error}") from None
    settings = {key: value for key, value in vars(solver).items() if not key.startswith("_")} | apart
    label = " ".join([name, *(f"{key}={value}" for key, value in given.items())])
    return Method(
        spec=spec,
        name=name,
        label=label,
        given=written,
        settings=json.dumps(settings, sort_keys=True, default=repr),
        version=int(cls.version),
        peer=bool(cls.peer),
        **more,
    )


# Names and numbers ----------------------------------------------------------------------------------------------------


def read_metric(value: Any, where: str) -> str:
    """Return the name of a metric, or ``auto``."""
    if value != "auto" and (not isinstance(value, str) or value not in METRICS):
        raise unknown_name("metric", value, [*METRICS, "auto"])
    return value


def read_seed(value: Any, where: str) -> int:
    """Return a seed: a whole number, zero included."""
    return read_whole(value, where, 0)


def read_whole(value: Any, where: str, least: int) -> int:
    """Return a whole number of at least ``least`` that a column of results can hold."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ProblemError(f"{where} must be a whole number of at least {least}, found {value!r}")
    if value > MOST:
        raise ProblemError(f"{where} must be at most {MOST}, found {value}")
    return value


def read_text(value: Any, where: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ProblemError(f"{where} must be a text, found {value!r}")
    return value


def read_positive(value: Any, where: str) -> float:
    """Return a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < float("inf"):
        raise ProblemError(f"{where} must be a positive number, found {value!r}")
    return float(value)
