"""What is a study? Groups of instances × solvers × metrics × seeds × gaps, and the list of cells that they make.

A cell is one run before its repeats; its key is a hash of exactly what the run depends on.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quartbench.instances import PROBLEM_SET

from .kinds import GENERATORS, KINDS, Kind, kind_of

#: Seconds past twice its time limit after which a run is killed. On a busy machine a small BLAS-3 call has taken 17 s:
#: its threads wait for each other without sleeping.
GRACE = 30.0

#: Signs for the arguments of generators in the label of an instance.
SIGNS = {"sigma_min": "σ_min", "gamma": "γ", "rank": "r", "points": "N", "dim": "d", "ratio": "m/n"}


@dataclass(frozen=True)
class Instance:
    """A problem before its seed: a generator and its arguments, defaults included."""

    generator: str
    arguments: tuple[tuple[str, Any], ...]

    @property
    def kind(self) -> Kind:
        """What it is: a convex problem, a recovery or a regression."""
        return kind_of(self.generator)

    @property
    def json(self) -> str:
        """The arguments as JSON text."""
        return json.dumps(dict(self.arguments), sort_keys=True)

    @property
    def label(self) -> str:
        """The problem in words: its size, then the arguments that are not at their defaults."""
        given = dict(self.arguments)
        if self.generator == "saved":
            return Path(given["path"]).stem
        words = [self.generator.replace("_", "-")]
        if {"m", "n"} <= given.keys():
            words.append(f"{given.pop('m')}×{given.pop('n')}")
        defaults = inspect.signature(GENERATORS[self.generator]).parameters
        for name, value in given.items():
            if value != defaults[name].default or name == "dim":
                words.append(_argument(name, value))
        return " ".join(words)


@dataclass(frozen=True)
class Method:
    """A solver with its settings: ``spec`` and ``given`` make it again in another process.

    ``source`` is a hash of what its version does not tell: of a user's file, of the methods that ``auto`` picks from.
    ``kind`` is the name of the kind of instances that it is for: each has methods with names of their own.
    """

    spec: str
    name: str
    label: str
    given: str
    settings: str
    version: int
    peer: bool
    source: str = ""
    kind: str = "convex"


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
    kappa: bool = False
    cluster: int = 0
    blocks: int = 0

    @property
    def kind(self) -> Kind:
        """What its instances are, and its solvers are for."""
        return KINDS[self.solvers[0].kind]


@dataclass(frozen=True)
class Study:
    """A study: its groups and what holds for all of them."""

    name: str
    groups: tuple[Group, ...]
    about: str = ""
    grace: float = GRACE
    notes: tuple[str, ...] = field(default=())
    weights: bool = False
    samples: bool = False


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
    kappa: bool = False
    cluster: int = 0
    blocks: int = 0

    @property
    def problem(self) -> tuple:
        """What the cells of one problem share."""
        return self.instance.generator, self.instance.json, self.seed, self.cluster, self.blocks

    @property
    def label(self) -> str:
        """The problem in words, with where its rows are."""
        where = f" on {self.cluster} workers" if self.cluster else ""
        return self.instance.label + where + (f" in {self.blocks} blocks" if self.blocks else "")

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
        if self.kappa:  # came later: the keys of runs without it stay what they were
            depends["kappa"] = True
        if self.cluster:
            depends |= {"cluster": self.cluster, "blocks": self.blocks}
        return digest(json.dumps(depends, sort_keys=True))


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
                kappa=group.kappa,
                cluster=group.cluster,
                blocks=group.blocks,
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


def digest(text: str) -> str:
    """Return a short hash of a text, the same in every process."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _argument(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{SIGNS.get(name, name)}={format(value, '.12g') if isinstance(value, float) else value}"
