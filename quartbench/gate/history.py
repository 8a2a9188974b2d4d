"""How has each benchmark moved over commits? asv's own results, and its own step detection, as series with changes."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from quartbench.errors import ProblemError
from quartbench.gate.suite import full_names, kind_of, matches
from quartbench.gate.thresholds import TABLE, read_table
from quartbench.gate.verdict import REPORTED

#: Where asv.conf.json lets asv keep its results.
RESULTS = Path(".asv") / "results"

#: What a damaged file of asv's may raise in its reader, beside its own error.
DAMAGED = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Commit:
    """A measured commit; the subject is empty where git does not know it."""

    hash: str
    date: int
    subject: str = ""

    @property
    def short(self) -> str:
        """The first eight digits of the hash."""
        return self.hash[:8]


@dataclass(frozen=True)
class Change:
    """A step of a series: from the commit at ``place`` on it is another one."""

    place: int
    before: float
    after: float
    worse: bool

    @property
    def ratio(self) -> float:
        """The value after over that before."""
        return self.after / self.before if self.before else math.inf

    @property
    def size(self) -> float:
        """How many times, up or down."""
        return max(self.ratio, 1.0 / self.ratio) if self.ratio > 0.0 else math.inf


@dataclass(frozen=True)
class Series:
    """One benchmark with one choice of parameters on one machine.

    ``values`` has a number or None for each commit, ``levels`` asv's pieces as (first, last, value).
    """

    name: str
    machine: str
    kind: str
    unit: str
    values: tuple[float | None, ...]
    levels: tuple[tuple[int, int, float], ...]
    changes: tuple[Change, ...]

    @property
    def module(self) -> str:
        """The file of the suite."""
        return self.name.partition(".")[0]

    @property
    def benchmark(self) -> str:
        """The name without parameters."""
        return self.name.partition("(")[0]

    @property
    def parameters(self) -> str:
        """The parameters as asv writes them, without their brackets."""
        return self.name.partition("(")[2].removesuffix(")")

    @property
    def choices(self) -> list[str]:
        """The parameters one by one."""
        return re.findall(r"'[^']*'|[^,\s]+", self.parameters)

    @property
    def latest(self) -> float:
        """The last value that there is."""
        return next(value for value in reversed(self.values) if value is not None)

    @property
    def counts(self) -> bool:
        """Whether it is exact: its changes are those of the method and not of the machine."""
        return self.kind == "count"

    @property
    def times(self) -> bool:
        """Whether it is a time."""
        return self.kind == "time" or self.unit == "seconds"


@dataclass(frozen=True)
class History:
    """Everything that asv has measured, oldest commit first; ``unreadable`` are files that are no results."""

    commits: list[Commit]
    series: list[Series]
    machines: dict[str, str]
    url: str = ""
    unreadable: list[str] = field(default_factory=list)

    def changes(self) -> list[tuple[Series, Change]]:
        """Return every change with its series, the largest first."""
        found = [(series, change) for series in self.series for change in series.changes]
        return sorted(found, key=lambda pair: (-pair[1].size, pair[0].name, pair[1].place))

    def related(self) -> dict[int, list[int]]:
        """Return for each time the counts of the same runs, and the other way round, by their places in ``series``.

        Those are in the same module, with the same parameters or some of them: time_to_gap('homgd') belongs to
        track_passes('spectrum 500×20', 'homgd').
        """
        groups = defaultdict(list)
        for place, series in enumerate(self.series):
            groups[series.machine, series.module].append(place)
        found: dict[int, list[int]] = {}
        for places in groups.values():
            words = {place: set(self.series[place].choices) for place in places}
            times = [place for place in places if self.series[place].times]
            counts = [place for place in places if self.series[place].counts]
            for time in times:
                for count in counts:
                    if self._belong(time, count, words[time], words[count]):
                        found.setdefault(time, []).append(count)
                        found.setdefault(count, []).append(time)
        return found

    def _belong(self, time: int, count: int, of_time: set[str], of_count: set[str]) -> bool:
        if of_time and of_count:
            return of_time <= of_count or of_count <= of_time
        one, other = (self.series[place].benchmark.rpartition(".")[0] for place in (time, count))
        return one == other and of_time == of_count


def read(results: Path, bench: Iterable[str] = ("",), root: Path | None = None) -> History:
    """Return the history of the results in a directory.

    Parameters
    ----------
    results : Path
        As asv leaves it: ``benchmarks.json``, and a directory for each machine.
    bench : iterable of str
        Regular expressions, of which a benchmark must match one.
    root : Path, optional
        A checkout of the project: git there knows subjects, their order and an address, and the table of the gate where
        more is better.
    """
    described = _described(results)
    wanted = {
        name: about
        for name, about in described.items()
        if any(matches(full, bench) for full in full_names(name, about["params"]))
    }
    loaded, unreadable = _load(results)
    if not loaded:
        damaged = f": {len(unreadable)} files cannot be read" if unreadable else ""
        raise ProblemError(f"no results in {str(results)!r}{damaged}")
    commits = _commits(loaded, root)
    place_of = {commit.hash: place for place, commit in enumerate(commits)}
    higher = _higher_is_better(root)
    series = [
        one
        for machine in sorted({one.params["machine"] for one in loaded})
        for one in _of_machine(machine, loaded, wanted, bench, place_of, higher)
    ]
    if not series:
        raise ProblemError(f"no benchmark of {str(results)!r} matches {' or '.join(bench)}")
    return History(commits, series, _machines(results), _address(root), unreadable)


def expected(results: Path) -> float | None:
    """Return the seconds that the last measured commit took, builds and preparations included; None without one."""
    loaded, _ = _load(results)
    took = [(one.date, sum(one.duration.values())) for one in loaded if one.duration]
    latest = max((date for date, _ in took), default=None)
    return max((seconds for date, seconds in took if date == latest), default=None)


def detect(
    values: Sequence[float | None], weights: Sequence[float | None], kind: str, higher: bool = False
) -> tuple[tuple[tuple[int, int, float], ...], tuple[Change, ...]]:
    """Return asv's pieces of a series, and the steps between them that count: of times, those that the gate reports."""
    from asv.step_detect import detect_steps

    levels = tuple((left, right - 1, float(value)) for left, right, value, *_ in detect_steps(values, weights))
    steps = (Change(new[0], old[2], new[2], (new[2] > old[2]) is not higher) for old, new in pairwise(levels))
    least = 1.0 if kind == "count" else REPORTED
    return levels, tuple(step for step in steps if step.size > least)


# asv's files ----------------------------------------------------------------------------------------------------------


def _require_asv() -> None:
    if find_spec("asv") is None:
        raise ProblemError("the history is read by asv, which is not installed: pip install 'quartbench[bench]'")


def _described(results: Path) -> dict[str, Any]:
    _require_asv()
    from asv import util
    from asv.benchmarks import Benchmarks

    path = Path(Benchmarks.get_benchmark_file_path(str(results)))
    if not path.is_file():
        raise ProblemError(f"no results of asv in {str(results)!r}: 'make bench' measures the last commit")
    try:
        found = util.load_json(str(path), Benchmarks.api_version)
        return {name: about for name, about in sorted(found.items()) if full_names(name, about["params"])}
    except (util.UserError, *DAMAGED) as error:
        raise ProblemError(f"{str(path)!r} is not asv's list of benchmarks: {error}") from None


def _load(results: Path) -> tuple[list[Any], list[str]]:
    """Return asv's results, older ones first, and the names of the files that are none."""
    _require_asv()
    from asv import util
    from asv.results import Results

    loaded, unreadable = [], []
    for path in sorted(results.glob("*/*.json")):
        if path.name == "machine.json":
            continue
        try:
            one = Results.load(str(path))
            numbers = [one.get_result_value(name, one.get_result_params(name)) for name in one.get_all_result_keys()]
            if not isinstance(one.date, int) or not re.fullmatch(r"[0-9a-f]{8,64}", one.commit_hash):
                raise ValueError("no commit, or no date")
            if not all(value is None or isinstance(value, int | float) for values in numbers for value in values):
                raise ValueError("a result that is no number")
            loaded.append(one)
        except (util.UserError, *DAMAGED):
            unreadable.append(str(path.relative_to(results)))
    return sorted(loaded, key=lambda one: max(one.started_at.values(), default=0) or 0), unreadable


def _of_machine(
    machine: str,
    loaded: list[Any],
    wanted: dict[str, Any],
    bench: Iterable[str],
    place_of: dict[str, int],
    higher: set[str],
) -> Iterable[Series]:
    """Give the series that a machine has of the wanted benchmarks, in their order."""
    points: dict[str, dict[int, tuple[float, float | None]]] = defaultdict(dict)
    for one in loaded:
        if one.params["machine"] == machine:
            for name, about in wanted.items():
                for full, point in _points(one, name, about):
                    points[full][place_of[one.commit_hash]] = point
    for name, about in wanted.items():
        for full in full_names(name, about["params"]):
            if full in points and matches(full, bench):
                yield _series(full, machine, about, points[full], len(place_of), higher)


def _points(one: Any, name: str, about: dict[str, Any]) -> Iterable[tuple[str, tuple[float, float | None]]]:
    """Give (full name, (value, weight)) of what a commit has of a benchmark in the version that is the suite's now."""
    from asv._stats import get_weight

    if name not in one.get_all_result_keys() or str(one.benchmark_version.get(name)) != str(about["version"]):
        return
    params = one.get_result_params(name)
    values, stats = one.get_result_value(name, params), one.get_result_stats(name, params)
    for full, value, stat in zip(full_names(name, params), values, stats, strict=True):
        if value is not None and math.isfinite(value):
            yield full, (float(value), get_weight(stat))


def _series(full: str, machine: str, about: dict, points: dict, count: int, higher: set[str]) -> Series:
    values = tuple(points[place][0] if place in points else None for place in range(count))
    weights = [points[place][1] if place in points else None for place in range(count)]
    kind = kind_of(about)
    levels, changes = detect(values, weights, kind, full in higher)
    return Series(full, machine, kind, about.get("unit", ""), values, levels, changes)


def _machines(results: Path) -> dict[str, str]:
    found = {}
    for path in sorted(results.glob("*/machine.json")):
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            words = (about.get("cpu") or about.get("arch"), f"{about.get('num_cpu')} cores", about.get("os"))
            found[str(about["machine"])] = ", ".join(str(word) for word in words if word)
        except DAMAGED:
            continue
    return found


def _higher_is_better(root: Path | None) -> set[str]:
    if root is None:
        return set()
    return {name for name, limit in read_table(root / TABLE).items() if limit.higher_is_better}


# git, where there is one ----------------------------------------------------------------------------------------------


def _commits(loaded: list[Any], root: Path | None) -> list[Commit]:
    dates = {one.commit_hash: one.date for one in loaded}
    known = {}
    listing = _git(root, "log", "--no-walk=unsorted", "--ignore-missing", "--format=%H %s", *dates) if root else ""
    for line in listing.splitlines():
        name, _, subject = line.partition(" ")
        known[name] = subject
    order = _git(root, "rev-list", "--topo-order", "--reverse", *known).split() if known else []
    place = {name: number for number, name in enumerate(order)}
    commits = [Commit(name, date, known.get(name, "")) for name, date in dates.items()]
    return sorted(commits, key=lambda commit: (commit.date, place.get(commit.hash, -1), commit.hash))


def _address(root: Path | None) -> str:
    """Return what the hash of a commit is appended to, from the remote of a checkout; nothing where there is none."""
    remote = _git(root, "remote", "get-url", "origin").strip() if root else ""
    found = re.fullmatch(
        r"(?:https?://(?:[^@/]*@)?|ssh://(?:[^@/]*@)?|[\w.-]+@)([\w.-]+)(?::\d+)?[:/](.+?)(?:\.git)?/?", remote
    )
    return f"https://{found[1]}/{found[2]}/commit/" if found else ""


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
