"""How is a study read? From a TOML file, shipped or a user's own, changed by the flags of the command line."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from quartbench.errors import ProblemError, unknown_name

from .entries import (
    method_table,
    read_instances,
    read_methods,
    read_metric,
    read_positive,
    read_seed,
    read_text,
    read_whole,
)
from .kinds import CONVEX, KINDS, Kind
from .records import GRACE, Group, Study

#: The studies that come with the package.
SHIPPED = Path(__file__).parents[1] / "studies"

#: The extra of a study whose rows are on workers.
CLUSTER = "cluster"

#: Defaults for its groups that the top of a study may set.
LIMITS = ("max_iter", "time_limit", "repeats", "seeds", "rel_gaps", "metrics", "bounds", "kappa", "cluster")


class MissingClusterError(ProblemError):
    """A study needs an extra that is not installed: one that includes it goes on without it."""


def shipped() -> dict[str, str]:
    """Return the studies that come with the package, each with the line that says what it is for."""
    files = sorted(SHIPPED.glob("*.toml"))
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")).get("about", "") for path in files}


def read_study(name: str, within: tuple[Path, ...] = ()) -> Study:
    """Return the study in a TOML file, or the shipped one of that name.

    A shipped study leaves out, with a note, the solvers that are not installed here; in a user's file they are errors.
    ``within`` are the files that include it, one within another.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ProblemError(f"study: there is no file {name!r}")
        return _study(path, lenient=False, within=within)
    if name not in shipped():
        raise ProblemError(f"{unknown_name('study', name, shipped())}; a file of your own must end in .toml")
    return _study(SHIPPED / f"{name}.toml", lenient=True, within=within)


def _study(path: Path, lenient: bool, within: tuple[Path, ...] = ()) -> Study:
    where = f"study {path.name!r}"
    if path.resolve() in within:
        raise ProblemError(f"{where} includes itself, through {' and '.join(repr(one.name) for one in within)}")
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(f"study {str(path)!r} is not TOML: {error}") from None
    _known(
        found, ("name", "about", "grace", "include", "needs", "group", "notes", "weights", "samples", *LIMITS), where
    )
    groups: list[Group] = []
    missed: list[str] = []
    wanting: set[str] = set()
    notes = {read_text(note, f"{where}: notes"): None for note in _list(found.get("notes", []), f"{where}: notes")}
    records = {name: found.get(name, False) for name in ("weights", "samples")}
    for name, value in records.items():
        if not isinstance(value, bool):
            raise ProblemError(f"{where}: {name} must be true or false, found {value!r}")
    if found.get("needs") == CLUSTER and importlib.util.find_spec("distributed") is None:
        raise MissingClusterError(f"{where} spreads rows over workers: pip install 'quartbench[{CLUSTER}]'")
    for other in _list(found.get("include", []), f"{where}: include"):
        try:
            included = read_study(read_text(other, f"{where}: include"), (*within, path.resolve()))
        except MissingClusterError as error:
            notes[f"left out: {error}"] = None
            continue
        groups += included.groups
        records = {name: value or getattr(included, name) for name, value in records.items()}
        notes |= dict.fromkeys(included.notes)
    for group, lacks in _groups(found, where, path.parent, missed if lenient else None):
        if lacks:
            wanting.add(group.instances[0].kind.name)
        if group.solvers:
            groups.append(group)
    # Of every kind of which methods are not here, some to compare with have to be.
    wanting -= {method.kind for group in groups for method in group.solvers if method.peer}
    if found.get("needs", CLUSTER) != CLUSTER and wanting:
        raise ProblemError(
            f"{where} compares with methods that are not here ({', '.join(dict.fromkeys(missed))}): "
            f"pip install 'quartbench[{read_text(found['needs'], f'{where}: needs')}]'"
        )
    if missed:
        notes[f"left out, as pip install 'quartbench[peers]' is needed: {', '.join(dict.fromkeys(missed))}"] = None
    if not groups:
        raise ProblemError(f"{where} has no groups: it needs at least one [[group]] or include")
    grace = read_positive(found.get("grace", GRACE), f"{where}: grace")
    name = read_text(found.get("name", path.stem), f"{where}: name")
    about = found.get("about", "")
    if not isinstance(about, str):
        raise ProblemError(f"{where}: about must be a text, found {about!r}")
    return Study(name, tuple(groups), about, grace, tuple(notes), **records)


def _groups(found: dict[str, Any], where: str, folder: Path, missed: list[str] | None) -> Iterator[tuple[Group, bool]]:
    """Give the groups of a study's own, and whether solvers of each are not registered, which ``missed`` notes."""
    defaults = {name: found[name] for name in LIMITS if name in found}
    for number, table in enumerate(_list(found.get("group", []), f"{where}: group"), 1):
        if not isinstance(table, dict):
            raise ProblemError(f"{where}: group must be tables [[group]], found {table!r}")
        here, before = f"{where}, group {table.get('name', number)!r}", len(missed or ())
        try:
            group = _group({**defaults, **table}, here, folder, missed)
        except ProblemError as error:  # an unknown name, say, knows nothing of files
            raise ProblemError(str(error) if where in str(error) else f"{here}: {error}") from None
        yield group, len(missed or ()) > before


def _group(table: dict[str, Any], where: str, folder: Path, missed: list[str] | None) -> Group:
    _known(table, tuple(one.name for one in fields(Group)), where)
    for needed in ("name", "instances", "solvers"):
        if not table.get(needed):
            raise ProblemError(f"{where} needs {needed!r}")
    read_text(table["name"], f"{where}: name")
    given = dict(table)
    given["instances"] = tuple(
        instance
        for entry in _list(table["instances"], f"{where}: instances")
        for instance in read_instances(entry, f"{where}: instances", folder)
    )
    kinds = {instance.kind.name: instance.kind for instance in given["instances"]}
    if len(kinds) > 1:
        both = " and ".join(kind.instances for kind in kinds.values())
        raise ProblemError(f"{where}: instances must be of one kind, found {both}: make a group of each")
    entries = _list(table["solvers"], f"{where}: solvers")
    given["solvers"] = read_methods(entries, where, folder, missed, *kinds.values())
    for name, check in (("metrics", read_metric), ("seeds", read_seed), ("rel_gaps", read_positive)):
        if name in table:
            entries = _list(table[name], f"{where}: {name}")
            if not entries:
                raise ProblemError(f"{where}: {name} must not be empty")
            given[name] = tuple(check(entry, f"{where}: {name}") for entry in entries)
    for name in ("max_iter", "repeats"):
        if name in table:
            given[name] = read_whole(table[name], f"{where}: {name}", 1)
    if "time_limit" in table:
        given["time_limit"] = read_positive(table["time_limit"], f"{where}: time_limit")
    for name in ("cluster", "blocks"):
        if name in table:
            given[name] = read_whole(table[name], f"{where}: {name}", 0)
    workers, blocks = given.get("cluster", 0), given.get("blocks", 0)
    (kind,) = kinds.values()
    if workers and kind is not CONVEX:
        raise ProblemError(f"{where}: cluster = {workers} is for convex problems, found {kind.instances}")
    if blocks and not 0 < workers <= blocks:
        raise ProblemError(
            f"{where}: blocks must be at least as many as workers, found {blocks} on cluster = {workers}"
        )
    for name in ("bounds", "kappa"):
        if not isinstance(given.get(name, False), bool):
            raise ProblemError(f"{where}: {name} must be true or false, found {given[name]!r}")
    return Group(**given)


def _known(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in names:
            raise unknown_name(f"entry of {where}", name, names)


def _list(value: Any, where: str) -> list:
    if not isinstance(value, list):
        raise ProblemError(f"{where} must be a list, found {value!r}")
    return value


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
    flags are one: a group ``catalogue`` of convex problems, ``recoveries`` and ``regressions``, where there are such
    instances. Instances and solvers change the groups of their kind; a group for which nothing is left is left out.
    """
    instances, solvers, metrics = tuple(instances), tuple(solvers), tuple(metrics)
    study = _of_flags(instances) if study is None else study
    kinds = list({group.kind.name: group.kind for group in study.groups}.values())
    for flag in solvers:
        if not any(_suits(flag, kind) for kind in kinds):
            read_methods((flag.removeprefix("+"),), kind=kinds[-1])  # which says what is wrong
            raise ProblemError(f"no group of the study takes the solver {flag.removeprefix('+')!r}")

    def merged(old: tuple, flags: Iterable[str], make: Any) -> tuple:
        new = [entry for flag in flags for entry in make(flag.removeprefix("+"))]
        kept = old if all(flag.startswith("+") for flag in flags) else ()
        return tuple(dict.fromkeys([*kept, *new]))

    def changed(group: Group) -> Group | None:
        kind = group.kind
        lists: dict[str, Any] = {
            "instances": merged(
                group.instances,
                instances,
                lambda flag: [one for one in read_instances(flag) if one.kind is kind],
            ),
            "solvers": merged(
                group.solvers,
                solvers,
                lambda flag: read_methods((flag,), kind=kind) if _suits(flag, kind) else (),
            ),
            "metrics": merged(
                group.metrics,
                () if kind is not CONVEX and CONVEX in kinds else metrics,
                lambda flag: (read_metric(flag, "metric"),),
            ),
            "seeds": tuple(read_seed(seed, "seed") for seed in seeds),
            "rel_gaps": tuple(read_positive(gap, "rel_gap") for gap in rel_gaps),
            "time_limit": None if time_limit is None else read_positive(time_limit, "time_limit"),
            "max_iter": max_iter,
            "repeats": repeats,
        }
        asked = {"instances": instances, "solvers": solvers}
        if any(flags and not lists[name] for name, flags in asked.items()):
            return None
        return replace(group, **{name: value for name, value in lists.items() if value not in ((), None)})

    groups = tuple(group for group in map(changed, study.groups) if group is not None)
    if not groups:
        raise ProblemError("no group of the study has an instance and a solver left: they are of different kinds")
    return replace(study, groups=groups)


def _of_flags(instances: tuple[str, ...]) -> Study:
    """Return the study that flags alone are: a group for every kind of their instances, with its own method."""
    if not instances:
        raise ProblemError("a study needs instances: name a study, or give --instance")
    given = {one.kind.name for flag in instances for one in read_instances(flag.removeprefix("+"))}
    found = [kind for name, kind in KINDS.items() if name in given]
    groups = tuple(Group(kind.group, (), read_methods((kind.own,), kind=kind)) for kind in found)
    return Study("flags", groups, "made of flags")


def _suits(flag: str, kind: Kind) -> bool:
    """Say whether a solver by its name is one for groups of a kind; one in a file is for convex problems."""
    name = method_table(flag.removeprefix("+"), "solver")["method"]
    return name in kind.methods() or (kind is CONVEX and ":" in name)
