"""What is a study? Groups of instances × solvers × metrics × seeds × gaps, read from TOML or flags, as a list of cells.

A cell is one run before its repeats; its key is a hash of exactly what the run depends on.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from quartbench.errors import ProblemError, unknown_name
from quartbench.instances import INSTANCES, PROBLEM_SET
from quartbench.precondition import METRICS
from quartbench.solvers import load_solver, make_solver, solvers

SHIPPED = Path(__file__).with_name("studies")

#: Seconds past twice its time limit after which a run is killed. On a busy machine a small BLAS-3 call has taken 17 s:
#: its threads wait for each other without sleeping.
GRACE = 30.0

#: Signs for the arguments of generators in the label of an instance.
SIGNS = {"sigma_min": "σ_min", "gamma": "γ", "rank": "r", "points": "N", "dim": "d"}


@dataclass(frozen=True)
class Instance:
    """A problem before its seed: a generator and its arguments, defaults included."""

    generator: str
    arguments: tuple[tuple[str, Any], ...]

    @property
    def json(self) -> str:
        """The arguments as JSON text."""
        return json.dumps(dict(self.arguments), sort_keys=True)

    @property
    def label(self) -> str:
        """The problem in words: its size, then the arguments that are not at their defaults."""
        given = dict(self.arguments)
        words = [self.generator.replace("_", "-")]
        if {"m", "n"} <= given.keys():
            words.append(f"{given.pop('m')}×{given.pop('n')}")
        defaults = inspect.signature(INSTANCES[self.generator]).parameters
        for name, value in given.items():
            if value != defaults[name].default or name == "dim":
                words.append(
                    f"{SIGNS.get(name, name)}={value:.12g}" if isinstance(value, float) else _word(name, value)
                )
        return " ".join(words)


@dataclass(frozen=True)
class Method:
    """A solver with its settings: ``spec`` and ``given`` make it again in another process.

    ``source`` is a hash of what its version does not tell: of a user's file, of the methods that ``auto`` picks from.
    """

    spec: str
    name: str
    label: str
    given: str
    settings: str
    version: int
    peer: bool
    source: str = ""


@dataclass(frozen=True)
class Group:
    """One grid of runs. Fields are those of a ``[[group]]`` table."""

    name: str
    instances: tuple[Instance, ...]
    solvers: tuple[Method, ...]
    metrics: tuple[str, ...] = ("auto",)
    seeds: tuple[int, ...] = (0,)
    rel_gaps: tuple[float, ...] = (1e-10,)
    max_iter: int = 100_000
    time_limit: float = 60.0
    repeats: int = 3
    bounds: bool = False


@dataclass(frozen=True)
class Study:
    """A study: its groups and what holds for all of them."""

    name: str
    groups: tuple[Group, ...]
    about: str = ""
    grace: float = GRACE
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Cell:
    """One run of the grid, before its repeats."""

    group: str
    instance: Instance
    seed: int
    method: Method
    metric: str
    rel_gap: float
    max_iter: int
    time_limit: float
    threads: int
    repeats: int
    bounds: bool

    @property
    def problem(self) -> tuple[str, str, int]:
        """What the cells of one problem share."""
        return self.instance.generator, self.instance.json, self.seed

    @property
    def place(self) -> dict[str, Any]:
        """What the reader of a table calls this run: a run in the same place with another key is out of date."""
        return {
            "group": self.group,
            "generator": self.instance.generator,
            "arguments": self.instance.json,
            "seed": self.seed,
            "solver": self.method.label,
            "metric_asked": self.metric,
            "rel_gap": self.rel_gap,
        }

    def key(self, repeat: int) -> str:
        """Return the hash of everything that the run depends on."""
        depends = self.place | {
            "problem_set": PROBLEM_SET,
            "method": self.method.name,
            "settings": self.method.settings,
            "version": self.method.version,
            "source": self.method.source,
            "max_iter": self.max_iter,
            "time_limit": self.time_limit,
            "threads": self.threads,
            "bounds": self.bounds,
            "repeat": repeat,
        }
        return _hash(json.dumps(depends, sort_keys=True))


# Reading a study ------------------------------------------------------------------------------------------------------


def shipped() -> dict[str, str]:
    """Return the studies that come with the package, each with the line that says what it is for."""
    files = sorted(SHIPPED.glob("*.toml"))
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")).get("about", "") for path in files}


def read_study(name: str) -> Study:
    """Return the study in a TOML file, or the shipped one of that name.

    A shipped study leaves out, with a note, the solvers that are not installed here; in a user's file they are errors.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ProblemError(f"study: there is no file {name!r}")
        return _study(path, lenient=False)
    if name not in shipped():
        raise unknown_name("study", name, [*shipped(), "file.toml"])
    return _study(SHIPPED / f"{name}.toml", lenient=True)


#: Defaults for its groups that the top of a study may set.
LIMITS = ("max_iter", "time_limit", "repeats", "seeds", "rel_gaps", "metrics", "bounds")


def _study(path: Path, lenient: bool) -> Study:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProblemError(f"study {str(path)!r} is not TOML: {error}") from None
    where = f"study {path.name!r}"
    _known(found, ("name", "about", "grace", "include", "group", *LIMITS), where)
    groups, notes = [], {}
    for other in _list(found.get("include", []), f"{where}: include"):
        included = read_study(str(other))
        groups += included.groups
        notes |= dict.fromkeys(included.notes)
    defaults = {name: found[name] for name in LIMITS if name in found}
    tables = _list(found.get("group", []), f"{where}: group")
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise ProblemError(f"{where}: group must be tables [[group]], found {table!r}")
        here = f"{where}, group {table.get('name', number)!r}"
        missed: list[str] = []
        group = _group({**defaults, **table}, here, path.parent, missed if lenient else None)
        notes |= dict.fromkeys(missed)
        if group.solvers:
            groups.append(group)
    if not groups:
        raise ProblemError(f"{where} has no groups: it needs at least one [[group]] or include")
    grace = _number(found.get("grace", GRACE), f"{where}: grace")
    name = found.get("name", path.stem)
    return Study(str(name), tuple(groups), str(found.get("about", "")), grace, tuple(notes))


def _group(table: dict[str, Any], where: str, folder: Path, missed: list[str] | None) -> Group:
    _known(table, tuple(one.name for one in fields(Group)), where)
    for needed in ("name", "instances", "solvers"):
        if not table.get(needed):
            raise ProblemError(f"{where} needs {needed!r}")
    given = dict(table)
    given["instances"] = tuple(
        instance
        for entry in _list(table["instances"], f"{where}: instances")
        for instance in read_instances(entry, f"{where}: instances")
    )
    given["solvers"] = read_methods(_list(table["solvers"], f"{where}: solvers"), where, folder, missed)
    for name, check in (("metrics", _metric), ("seeds", _seed), ("rel_gaps", _number)):
        if name in table:
            entries = _list(table[name], f"{where}: {name}")
            if not entries:
                raise ProblemError(f"{where}: {name} must not be empty")
            given[name] = tuple(check(entry, f"{where}: {name}") for entry in entries)
    for name in ("max_iter", "repeats"):
        if name in table:
            given[name] = _whole(table[name], f"{where}: {name}", 1)
    if "time_limit" in table:
        given["time_limit"] = _number(table["time_limit"], f"{where}: time_limit")
    if not isinstance(given.get("bounds", False), bool):
        raise ProblemError(f"{where}: bounds must be true or false, found {given['bounds']!r}")
    return Group(**given)


def read_instances(entry: Any, where: str = "instance") -> list[Instance]:
    """Return the instances of ``"spectrum:m=2000,n=1000,sigma_min=0.02"`` or the same as a table.

    In a table an argument may be a list: the instances are then all combinations.
    """
    if isinstance(entry, str):
        name, _, text = entry.partition(":")
        table = dict(_assignment(part, where) for part in text.split(",") if part.strip())
    elif isinstance(entry, dict):
        table = dict(entry)
        name = table.pop("generator", None)
    else:
        raise ProblemError(f"{where}: an instance must be 'generator:name=value,…' or a table, found {entry!r}")
    if not isinstance(name, str) or name not in INSTANCES:
        raise unknown_name("instance", name, INSTANCES)
    signature = inspect.signature(INSTANCES[name])
    if "seed" in table:
        raise ProblemError(f"{where}: seeds stand beside the instances, not among the arguments of {name!r}")
    for given in table:
        if given not in signature.parameters:
            raise unknown_name(f"argument of {name}", given, set(signature.parameters) - {"seed"})
    needed = [p.name for p in signature.parameters.values() if p.default is p.empty and p.name not in table]
    if needed:
        raise ProblemError(f"{where}: {name} needs {' and '.join(map(repr, needed))}")
    defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}
    choices = {key: value if isinstance(value, list) else [value] for key, value in {**defaults, **table}.items()}
    order = [argument for argument in signature.parameters if argument != "seed"]
    combinations = itertools.product(*(choices[argument] for argument in order))
    return [Instance(name, tuple(zip(order, values, strict=True))) for values in combinations]


def read_methods(
    entries: Iterable[Any], where: str = "solver", folder: Path | None = None, missed: list[str] | None = None
) -> tuple[Method, ...]:
    """Return the solvers of names, ``"file.py:Class"`` or tables ``{method = …, setting = …}``.

    Where ``missed`` is given, solvers that are not registered are noted there instead of being errors.
    """
    found = []
    for entry in entries:
        table = {"method": entry} if isinstance(entry, str) else entry
        if not isinstance(table, dict) or not isinstance(table.get("method"), str):
            raise ProblemError(f"{where}: a solver must be a name or a table with 'method', found {entry!r}")
        given = {key: value for key, value in table.items() if key != "method"}
        spec = table["method"]
        if missed is not None and spec not in solvers():
            missed.append(f"{spec} is not installed")
            continue
        found.append(_method(spec, given, where, folder))
    return tuple(dict.fromkeys(found))


def _method(spec: str, given: dict[str, Any], where: str, folder: Path | None) -> Method:
    source = ""
    if spec in solvers() or ":" not in spec:
        cls, name = type(make_solver(spec)), spec
        if spec == "auto":  # it is as old as the youngest method that it may pick
            versions = {key: getattr(one, "version", 1) for key, one in solvers().items() if not _peer(one)}
            source = _hash(json.dumps(versions))
    else:
        path, _, attribute = spec.rpartition(":")
        if folder is not None and (folder / path).is_file():
            path = str(folder / path)
        spec = f"{os.path.abspath(path)}:{attribute}"
        cls = load_solver(spec)
        name = cls.name
        # A user edits the file rather than its version: what it holds decides.
        source = _hash(Path(path).read_text(encoding="utf-8"))
    parameters = inspect.signature(cls).parameters
    free = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for setting in given:
        if setting not in parameters and not free:
            raise unknown_name(f"setting of {name}", setting, parameters)
    try:
        solver = cls(**given)
    except ProblemError as error:
        raise ProblemError(f"{where}, solver {name!r}: {error}") from None
    settings = {key: value for key, value in vars(solver).items() if not key.startswith("_")}
    label = " ".join([name, *(f"{key}={value}" for key, value in given.items())])
    return Method(
        spec=spec,
        name=name,
        label=label,
        given=json.dumps(given, sort_keys=True),
        settings=json.dumps(settings, sort_keys=True, default=repr),
        version=int(getattr(cls, "version", 1)),
        peer=_peer(cls),
        source=source,
    )


# Flags ----------------------------------------------------------------------------------------------------------------


def with_flags(
    study: Study | None,
    instances: Iterable[str] = (),
    solvers: Iterable[str] = (),
    metrics: Iterable[str] = (),
    seeds: Iterable[int] = (),
    rel_gaps: Iterable[float] = (),
    time_limit: float | None = None,
    max_iter: int | None = None,
    repeats: int | None = None,
) -> Study:
    """Return a study with the flags of the command line in the place of its lists.

    An instance, solver or metric with a leading ``+`` is added to the list of every group instead. Without a study the
    flags are one: a group ``catalogue``.
    """
    if study is None:
        if not instances:
            raise ProblemError("a study needs instances: name a study, or give --instance")
        group = Group("catalogue", (), read_methods(("auto",)))
        study = Study("flags", (group,), "made of flags")

    def merged(old: tuple, flags: Iterable[str], make: Any) -> tuple:
        new = [entry for flag in flags for entry in make(flag.removeprefix("+"))]
        kept = old if all(flag.startswith("+") for flag in flags) else ()
        return tuple(dict.fromkeys([*kept, *new]))

    def changed(group: Group) -> Group:
        lists = {
            "instances": merged(group.instances, tuple(instances), read_instances),
            "solvers": merged(group.solvers, tuple(solvers), lambda flag: read_methods((flag,))),
            "metrics": merged(group.metrics, tuple(metrics), lambda flag: (_metric(flag, "metric"),)),
            "seeds": tuple(_seed(seed, "seed") for seed in seeds),
            "rel_gaps": tuple(_number(gap, "rel_gap") for gap in rel_gaps),
            "time_limit": None if time_limit is None else _number(time_limit, "time_limit"),
            "max_iter": max_iter,
            "repeats": repeats,
        }
        return replace(group, **{name: value for name, value in lists.items() if value not in ((), None)})

    return replace(study, groups=tuple(changed(group) for group in study.groups))


# Cells ----------------------------------------------------------------------------------------------------------------


def cells(study: Study, threads: int) -> list[Cell]:
    """Return the runs of a study, the methods of a problem next to each other; none twice.

    A peer chooses its own norm, so that it has one run where our methods have one for every metric.
    """
    found: dict[str, Cell] = {}
    for group in study.groups:
        grid = itertools.product(group.instances, group.seeds, group.rel_gaps, group.metrics, group.solvers)
        for instance, seed, rel_gap, metric, method in grid:
            cell = Cell(
                group=group.name,
                instance=instance,
                seed=seed,
                method=method,
                metric="auto" if method.peer else metric,
                rel_gap=rel_gap,
                max_iter=group.max_iter,
                time_limit=group.time_limit,
                threads=threads,
                repeats=group.repeats,
                bounds=group.bounds,
            )
            found.setdefault(cell.key(0), cell)
    order = {problem: number for number, problem in enumerate(dict.fromkeys(c.problem for c in found.values()))}
    return sorted(found.values(), key=lambda cell: order[cell.problem])


def as_dict(study: Study) -> dict[str, Any]:
    """Return the study as plain JSON, for the record beside its results."""
    return {
        "name": study.name,
        "about": study.about,
        "groups": [
            {
                **asdict(group),
                "instances": [{"generator": one.generator, **dict(one.arguments)} for one in group.instances],
                "solvers": [{"method": one.name, **json.loads(one.given)} for one in group.solvers],
            }
            for group in study.groups
        ],
    }


# Words and numbers ----------------------------------------------------------------------------------------------------


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _peer(solver: type) -> bool:
    return bool(getattr(solver, "peer", False))


def _word(name: str, value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{SIGNS.get(name, name)}={value}"


def _known(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in names:
            raise unknown_name(f"entry of {where}", name, names)


def _list(value: Any, where: str) -> list:
    if not isinstance(value, list):
        raise ProblemError(f"{where} must be a list, found {value!r}")
    return value


def _assignment(text: str, where: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise ProblemError(f"{where}: arguments are written name=value, found {text!r}")
    for read in (int, float):
        try:
            return name, read(value)
        except ValueError:
            pass
    return name, value


def _metric(value: Any, where: str) -> str:
    if value != "auto" and (not isinstance(value, str) or value not in METRICS):
        raise unknown_name("metric", value, [*METRICS, "auto"])
    return value


def _seed(value: Any, where: str) -> int:
    return _whole(value, where, 0)


def _whole(value: Any, where: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ProblemError(f"{where} must be a whole number of at least {least}, found {value!r}")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < float("inf"):
        raise ProblemError(f"{where} must be a positive number, found {value!r}")
    return float(value)
