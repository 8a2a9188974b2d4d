"""Where do the runs of a study lie, and what do their columns mean? One Parquet file per run, with one row.

``pandas.read_parquet(directory)`` reads all of them; ``_study.json`` beside them says what made them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quartbench.errors import ProblemError

if TYPE_CHECKING:
    import pandas

#: The file that says what made the results; readers of Parquet skip names with a leading underscore.
ABOUT = "_study.json"
RUNS = "runs"

#: What the file holds, and what of it every study has; the rest came later.
FACTS: dict[str, tuple[type, str]] = {
    "study": (str, "a text"),
    "config": (dict, "an object"),
    "system": (dict, "an object"),
    "command": (str, "a text"),
    "problem_set": (int, "a whole number"),
    "created": (str, "a text"),
    "noise": (dict, "an object"),
    "notes": (list, "a list"),
    "weights": (dict, "an object"),
}
REQUIRED = ("study", "config", "system", "command", "problem_set", "created")

#: Where runs go that a changed version or setting has made again. Nothing reads them.
SUPERSEDED = "_superseded"


class Column(NamedTuple):
    """One column: its name, its type as pyarrow calls it, and what it means."""

    name: str
    type: str
    meaning: str


COLUMNS = tuple(
    Column(*line)
    for line in (
        ("key", "string", "hash of everything that the run depends on; the name of its file"),
        ("study", "string", "the study that made the run"),
        ("group", "string", "the part of the study: figure-1a, scaling-m, peers, …"),
        ("application", "string", "of a recovery: phase, distances or clusters; empty for a convex problem"),
        ("instance", "string", "the problem in words, without its seed"),
        ("generator", "string", "the generator of the problem, as in 'quartbench list'"),
        ("arguments", "string", "its arguments as JSON, defaults included, without the seed"),
        ("seed", "int64", "the seed of the problem"),
        ("problem_set", "int64", "version of the generators"),
        ("m", "int64", "terms (0 where the problem could not be made)"),
        ("n", "int64", "real dimension"),
        ("r", "int64", "rank of a term"),
        ("cone", "string", "free, orthant, centred or second-order"),
        ("sigma_min", "double", "lower end of the singular values, where the generator sets it"),
        ("coherence", "double", "the coherence γ, where the generator sets it or the study measured it"),
        ("kappa_bound", "double", "certified bound on κ in the metric of the run, where the study asks for it"),
        ("kappa_measured", "double", "the largest ratio of √ρ/‖x‖² found, at most κ, where the study asks for it"),
        ("solver", "string", "the method with the settings that differ from its defaults"),
        ("method", "string", "its name in the registry"),
        ("settings", "string", "all its hyper-parameters as JSON"),
        ("version", "int64", "version of the method"),
        ("peer", "bool", "whether it is somebody else's method"),
        ("metric", "string", "the metric that the run used"),
        ("metric_asked", "string", "the metric that the study asked for: 'auto' leaves the choice to the solver"),
        ("rel_gap", "double", "the relative gap to reach; of a recovery, the tolerance on residual and stationarity"),
        ("repeat", "int64", "0, 1, …: the same run once more, for its times"),
        ("threads", "int64", "threads of BLAS and of the kernels"),
        ("time_limit", "double", "seconds of set-up and iterations that the run was allowed"),
        ("max_iter", "int64", "iterations that the run was allowed"),
        (
            "status",
            "string",
            "converged, max_iter, max_passes, time_limit, stopped, stalled, trivial, unbounded, failed, timeout",
        ),
        ("success", "bool", "whether the gap was reached, by the study's own certificate; of a recovery, the truth"),
        ("message", "string", "why the run ended"),
        ("error", "double", "of a recovery: up to a phase, of all distances, or the share of wrong labels; relative"),
        ("residual", "double", "of a recovery: √F/‖d‖"),
        ("value", "double", "f of the point returned, recomputed by the study; of a recovery, F"),
        ("lower_bound", "double", "the certified lower bound on f*, recomputed by the study"),
        ("gap", "double", "(value − lower_bound)/|value|"),
        ("optimum", "double", "f*: planted, or that of a reference certified to 1e-11; else NaN"),
        ("nit", "int64", "iterations"),
        ("passes", "int64", "passes of the method, certificates not counted; of a recovery without its start"),
        ("start_passes", "int64", "of a recovery: passes that made its start"),
        ("sweeps", "int64", "leverage sweeps that made the metric"),
        ("setup_seconds", "double", "time to make the metric and prepare the method; of a recovery, its start"),
        ("solve_seconds", "double", "time of the iterations; the clock stands still while they are judged"),
        (
            "wall_seconds",
            "double",
            "time of the whole call, certificates included; of a recovery, its start too",
        ),
        ("trace_iteration", "list<int64>", "iterations kept of the trace: first, last, evenly in the logarithm"),
        ("trace_passes", "list<int64>", "passes after each"),
        ("trace_seconds", "list<double>", "clock of the iterations after each, set-up not included"),
        ("trace_value", "list<double>", "f of each"),
        (
            "trace_gap",
            "list<double>",
            "certified relative gap of each, by the best lower bound of the run; that of a DC step",
        ),
        ("trace_restart", "list<bool>", "whether the method restarted there"),
        ("commit", "string", "commit of quartbench"),
        ("created", "string", "when the run ended"),
    )
)


def schema() -> Any:
    """Return the columns as a pyarrow schema."""
    import pyarrow as pa

    types = {name: pa.type_for_alias(name) for name in ("string", "int64", "double", "bool")}
    types |= {f"list<{name}>": pa.list_(kind) for name, kind in types.items()}
    return pa.schema([(column.name, types[column.type]) for column in COLUMNS])


# Reading --------------------------------------------------------------------------------------------------------------


def read(directory: str | os.PathLike) -> pandas.DataFrame:
    """Return the results in a directory, one row per run, in the order in which they were made.

    Files that are no runs, or damaged ones, are left out; their names are in ``frame.attrs["unreadable"]``.
    """
    frame, unreadable = _read(Path(directory))
    frame = frame.sort_values(["created", "key"], ignore_index=True)
    frame.attrs["unreadable"] = [path.name for path in unreadable]
    return frame


def _read(directory: Path) -> tuple[pandas.DataFrame, list[Path]]:
    """Return the runs that can be read, and the files that cannot."""
    import pandas

    if not (directory / RUNS).is_dir():
        raise ProblemError(f"no results in {str(directory)!r}: it has no directory {RUNS!r}")
    files = list(_files(directory))
    nothing = pandas.DataFrame(schema().empty_table().to_pandas())
    if not files:
        return nothing, []
    with suppress(Exception):  # one damaged file, and the whole cannot be read: then one after another
        frame = pandas.read_parquet(directory / RUNS, schema=schema())
        if set(frame["key"]) == {path.stem for path in files} and len(frame) == len(files):
            return frame, []
    parts, unreadable = [], []
    for path in files:
        try:
            part = pandas.read_parquet(path, schema=schema())
        except Exception:  # Arrow has as many errors as a file has places that may be damaged
            unreadable.append(path)
            continue
        if list(part["key"]) == [path.stem]:
            parts.append(part)
        else:  # Parquet, but no run
            unreadable.append(path)
    return pandas.concat(parts) if parts else nothing, unreadable


def settings(directory: str | os.PathLike) -> dict[str, Any]:
    """Return what made the results in a directory: study, config, system, command, problem_set, created, noise."""
    path = Path(directory) / ABOUT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProblemError(f"no study in {str(directory)!r}: it has no {ABOUT}") from None
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{str(path)!r} is not the {ABOUT} of a study: {error}") from None
    if not isinstance(found, dict):
        raise ProblemError(f"{str(path)!r} is not the {ABOUT} of a study: it must be an object, found {found!r:.80}")
    for name, (kind, words) in FACTS.items():
        if name in REQUIRED and name not in found:
            raise ProblemError(f"{str(path)!r} is not the {ABOUT} of a study: it has no {name!r}")
        if name in found and not isinstance(found[name], kind):
            raise ProblemError(f"{str(path)!r} is damaged: {name!r} must be {words}, found {found[name]!r:.80}")
    return found


def keys(directory: Path) -> set[str]:
    """Return the keys of the runs in a directory; a file that cannot be read is moved aside."""
    frame, unreadable = _read(directory)
    supersede(directory, [path.stem for path in unreadable])
    return set(frame["key"])


def _files(directory: Path) -> Iterator[Path]:
    found = sorted((directory / RUNS).glob("*.parquet"))
    return (path for path in found if path.is_file() and not path.name.startswith("."))


# Writing --------------------------------------------------------------------------------------------------------------


@contextmanager
def opened(directory: Path) -> Iterator[None]:
    """Make the directory and hold it: what a killed study left half-written goes, and no other study may write."""
    import fcntl

    (directory / RUNS).mkdir(parents=True, exist_ok=True)
    with (directory / "_lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProblemError(f"another study is writing to {str(directory)!r}: wait for it, or use another") from None
        for folder in (directory, directory / RUNS):
            for part in folder.glob(".*.part"):
                part.unlink(missing_ok=True)
        yield


def write(directory: Path, row: dict[str, Any]) -> Path:
    """Write one run under its key and return the path. The file appears when it is complete, or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([row], schema=schema())
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=False)
    return _replace(directory / RUNS / f"{row['key']}.parquet", buffer.getvalue().to_pybytes())


def describe(directory: Path, about: dict[str, Any]) -> Path:
    """Write what made the results."""
    text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False)
    return _replace(directory / ABOUT, (text + "\n").encode())


def supersede(directory: Path, stale: Iterable[str]) -> None:
    """Move runs out of the results."""
    for key in stale:
        (directory / SUPERSEDED).mkdir(exist_ok=True)
        name = f"{key}.parquet"
        with suppress(FileNotFoundError):
            os.replace(directory / RUNS / name, directory / SUPERSEDED / name)


def _replace(path: Path, content: bytes) -> Path:
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()
    return path


# Merging --------------------------------------------------------------------------------------------------------------

#: Facts of a system that may differ between runs of one study: they are in the columns, or nothing depends on them.
FREE_FACTS = ("commit", "quartbench", "threads", "asv")


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return in words how two systems differ; empty where their times can be compared."""
    names = [name for name in {**one, **other} if name not in FREE_FACTS and one.get(name) != other.get(name)]
    return ", ".join(f"{name} {one.get(name, '–')} / {other.get(name, '–')}" for name in names)


def merge(out: Path, sources: list[Path], mixed: bool = False) -> int:
    """Unite the results of several directories in ``out`` and return the number of runs there.

    Parameters
    ----------
    out : Path
        New, empty, or one with results, which then take part.
    sources : list of Path
        Directories of results. A run that several of them have is taken from the first.
    mixed : bool
        Unite results of different systems too, whose times cannot be compared; ``_study.json`` then lists the systems.
        Results of different problem sets are never united.
    """
    parts = [*([out] if (out / ABOUT).exists() else []), *sources]
    abouts = [settings(part) for part in parts]
    first = abouts[0]
    systems = [first["system"]]
    for part, about in zip(parts, abouts, strict=True):
        if about["problem_set"] != first["problem_set"]:
            raise ProblemError(
                f"{str(part)!r} has problem set {about['problem_set']}, {str(parts[0])!r} has {first['problem_set']}: "
                "their problems are not the same, so their runs cannot be united"
            )
        differs = difference(first["system"], about["system"])
        if differs and not mixed:
            raise ProblemError(
                f"{str(part)!r} was made on another system than {str(parts[0])!r} ({differs}), so their times cannot "
                "be compared; --mixed unites them nevertheless"
            )
        if differs:
            systems.append(about["system"])
    with opened(out):
        seen = keys(out)
        for part in sources:
            unreadable = _read(part)[1]
            for path in _files(part):
                if path.stem not in seen and path not in unreadable:
                    seen.add(path.stem)
                    _replace(out / RUNS / path.name, path.read_bytes())
        names = dict.fromkeys(name for about in abouts for name in about["study"].split(" + "))
        configs = {about["study"]: about["config"] for about in abouts}
        about = {
            **first,
            "study": " + ".join(names),
            "config": first["config"] if len(configs) == 1 else configs,
            "created": min(about["created"] for about in abouts),
            "merged": list(dict.fromkeys(about["command"] for about in abouts)),
        }
        if len(systems) > 1:
            about["systems"] = systems
        describe(out, about)
    return len(seen)
