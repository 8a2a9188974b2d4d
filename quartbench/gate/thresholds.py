"""What is each benchmark held to, and how noisy is it here? The table ``benchmarks/gate.toml``, read and written.

A benchmark in the table is expected: where it gives no result, the gate fails.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quartbench.errors import ProblemError, unknown_name
from quartbench.gate.verdict import THRESHOLDS, Limit

TABLE = Path("benchmarks") / "gate.toml"
KEYS = ("threshold", "noise", "higher_is_better")

HEADER = """\
# What each benchmark of the gate is held to: `threshold` is how many times worse than base it may be (a time of at
# least 10 ms, confirmed by a second run; a count at once), `noise` the largest change that identical code showed.
# A benchmark listed here is expected: one that gives no result fails the gate.
# Written by `quartbench gate --calibrate --write`, which keeps what it did not measure and every `higher_is_better`.
"""


@dataclass(frozen=True)
class Noise:
    """What identical code showed in A/A runs: the largest change (1.04 is 4 %), and the threshold that follows."""

    name: str
    kind: str
    largest: float
    threshold: float
    runs: int


def measure_noise(name: str, kind: str, ratios: Iterable[float]) -> Noise:
    """Turn the ratios of A/A runs into a threshold: twice the largest change, rounded up to 0.05, at least the usual.

    Two runs that each differ by the noise in opposite directions stay below it. A count that moves at all is no count;
    it gets the room that it needs all the same, and the report names it.
    """
    changes = [max(ratio, 1 / ratio) if ratio > 0 else math.inf for ratio in ratios]
    largest = max(changes)
    room = 1 + 2 * (largest - 1)
    rounded = math.ceil(round(room * 20, 6)) / 20 if math.isfinite(room) else math.inf
    usual = THRESHOLDS[kind]
    return Noise(name, kind, largest, usual if room <= usual else rounded, len(changes))


def read_table(path: Path) -> dict[str, Limit]:
    """Return the limit of every benchmark in the table, nothing where there is no table."""
    return {name: Limit(entry.get("threshold"), entry.get("higher_is_better", False)) for name, entry in _read(path)}


def write_table(path: Path, found: Iterable[Noise]) -> None:
    """Write thresholds and noise of what was calibrated, keeping the other entries."""
    entries = dict(_read(path))
    for one in found:
        if not math.isfinite(one.threshold):  # a value that comes and goes has no ratio to hold it to
            continue
        measured = {"threshold": one.threshold, "noise": round(one.largest, 4)}
        entries[one.name] = {**entries.get(one.name, {}), **measured}
    lines = [HEADER]
    for name, entry in sorted(entries.items()):
        values = ", ".join(f"{key} = {json.dumps(entry[key])}" for key in KEYS if key in entry)
        lines.append(f"{json.dumps(name, ensure_ascii=False)} = {{ {values} }}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(path: Path) -> Iterable[tuple[str, dict]]:
    """Yield every entry of the table, checked."""
    if not path.is_file():
        return
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path.name} is not valid TOML: {error}") from error
    for name, entry in table.items():
        if not isinstance(entry, dict):
            raise ProblemError(f"{path.name}: {name!r} must be a table such as {{ threshold = 1.25 }}, found {entry!r}")
        for key, value in entry.items():
            if key not in KEYS:
                raise ProblemError(f"{path.name}, {name!r}: {unknown_name('key', key, KEYS)}")
            if key == "higher_is_better":
                if not isinstance(value, bool):
                    raise ProblemError(f"{path.name}, {name!r}: {key} must be true or false, found {value!r}")
            elif isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
                raise ProblemError(f"{path.name}, {name!r}: {key} must be a number of at least 1, found {value!r}")
        yield name, entry
