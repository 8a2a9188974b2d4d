"""What does asv measure on two commits? Runs asv, which takes turns between them, and reads its own result files."""

from __future__ import annotations

import codecs
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from quartbench.errors import ProblemError
from quartbench.gate.commits import Pair
from quartbench.gate.verdict import ABSENT, Measurement, Record, State

#: The tier that the gate runs, as asv's --bench takes it.
TIER = r"^gate\."
#: How often each commit has its turn.
TURNS = 5
#: Units of tracked numbers that are the same on every machine and every run.
COUNTS = ("iterations", "passes", "sweeps")
#: asv writes "[12.50%] ··· name   result"; only the last part tells a reader something.
PROGRESS = re.compile(r"^\[\s*(?P<percent>\d+\.\d+)%\] (?P<dots>·+) (?P<text>.*)")
#: The last line of a traceback, or what asv says of a process that left none.
ERROR = re.compile(r"^[A-Za-z_][\w.]*(:|$)")

#: Called with the fraction done and with what asv does now.
Watcher = Callable[[float, str], None]


@dataclass(frozen=True)
class Suite:
    """asv for one checkout, in a directory of its own: the results of everyday runs are neither read nor written."""

    root: Path
    work: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", self.root / ".asv" / "gate")

    def measure(self, pair: Pair, bench: Iterable[str], watch: Watcher, label: str = "first") -> dict[str, Record]:
        """Run the benchmarks that match on both commits in turns (base, head, base, head, …), and return the records.

        Each turn is a run of asv that adds its samples; counts are the same in every turn and are taken in the first.
        A neighbour that slows the machine for a minute then meets both commits, and leaves both some samples in peace.
        (asv's own interleaving has base, head, head, base: it may meet head alone.) The benchmarks are those of the
        working tree, for both commits, as always with asv; environments and machine code are shared with everyday runs.
        """
        results = self.work / label
        results.mkdir(parents=True)
        bench = list(bench)
        config = self._configuration(results)
        self._know_machine()
        lines, patterns = [], bench
        for number in range(2 * TURNS):

            def turn(done: float, text: str, number: int = number) -> None:
                watch((number + done) / (2 * TURNS), f"turn {number // 2 + 1} of {TURNS}, {text}")

            (results / "commit").write_text((pair.base, pair.head)[number % 2] + "\n")
            arguments = ["run", "--config", str(config), "--append-samples", "--show-stderr"]
            for pattern in patterns:
                arguments += ["--bench", pattern]
            lines += self._asv([*arguments, f"HASHFILE:{results / 'commit'}"], turn)
            (results / "asv.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
            if number % 2:
                records = self._records(results, pair, bench, lines)
                patterns = [f"^{re.escape(name)}$" for name, record in records.items() if _takes_turns(record)]
                if not patterns:
                    break
        return records

    def _records(self, results: Path, pair: Pair, bench: list[str], lines: list[str]) -> dict[str, Record]:
        try:
            return read_records(results, pair, bench, errors(lines))
        except FileNotFoundError:
            ending = "\n".join([line for line in lines if line.strip()][-15:])
            raise ProblemError(f"asv measured nothing; it ended with\n{ending}") from None

    def _configuration(self, results: Path) -> Path:
        """Write asv's configuration with results of our own, beside the pyproject.toml that asv reads with it."""
        from asv import util

        configuration = util.load_json(str(self.root / "asv.conf.json"), js_comments=True)
        for key in ("repo", "benchmark_dir", "env_dir", "html_dir"):
            configuration[key] = str((self.root / configuration[key]).resolve())
        configuration["results_dir"] = str(results)
        # asv looks for the build backend beside its configuration: without it, environments get another name.
        shutil.copy(self.root / "pyproject.toml", results / "pyproject.toml")
        path = results / "asv.conf.json"
        path.write_text(json.dumps(configuration, indent=1), encoding="utf-8")
        return path

    def _know_machine(self) -> None:
        """Let asv describe this machine where it never has: it would ask, and there may be nobody to answer."""
        from asv.machine import Machine, MachineCollection

        path = Path(MachineCollection.get_machine_file_path())
        try:
            known = set(json.loads(path.read_text(encoding="utf-8"))) - {"version"}
        except (OSError, ValueError):
            known = set()
        # asv takes the only machine that it knows for this one, whatever its name.
        if Machine.get_unique_machine_name() not in known and len(known) != 1:
            self._asv(["machine", "--yes"], lambda fraction, text: None)

    def _asv(self, arguments: list[str], watch: Watcher) -> list[str]:
        """Run asv, telling ``watch`` how far it is; return its output. Its exit code says less than its results."""
        # asv looks for a Python of the running version on PATH: ours comes first, as a shim of that name may not run.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        process = subprocess.Popen(
            [sys.executable, "-m", "asv", *arguments],
            cwd=self.root,
            env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, unfinished = "", 0
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        try:
            # asv ends a line only when the next one starts: the unfinished one is what it does now.
            for chunk in iter(lambda: process.stdout.read1(), b""):
                output += decoder.decode(chunk)
                for line in output[unfinished:].splitlines():
                    _report(line, watch)
                unfinished = output.rfind("\n") + 1
            process.wait()
        finally:
            if process.poll() is None:  # we were interrupted: so told, asv also ends the benchmark that it runs
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            process.stdout.close()
        return output.splitlines()


def _report(line: str, watch: Watcher) -> None:
    """Tell how far asv is, by the commit and the benchmark that it measures; its other lines tell a reader nothing."""
    step = PROGRESS.match(line)
    if step is None:
        if line.startswith("·"):
            watch(0.0, "building (minutes for a new commit)")
        return
    done, text = float(step["percent"]) / 100, step["text"].strip()
    commit = re.match(r"For .* commit (\w{8})", text)
    running = re.match(r"(?:Running \()?([A-Za-z_]\w*(?:\.\w+)+)", text)
    if commit:
        watch(done, f"commit {commit[1]}")
    elif running:
        watch(done, running[1])


def _takes_turns(record: Record) -> bool:
    """Say whether more turns add to what is known: to times that both commits have."""
    return record.kind == "time" and record.base.state == record.head.state == State.MEASURED


def read_records(
    results: Path, pair: Pair, bench: Iterable[str], error_lines: dict[str, str] | None = None
) -> dict[str, Record]:
    """Return a record for every benchmark and parameter that matches, from asv's result files of both commits."""
    from asv import util
    from asv.benchmarks import Benchmarks

    described = util.load_json(str(Benchmarks.get_benchmark_file_path(str(results))), Benchmarks.api_version)
    error_lines = error_lines or {}
    sides = [_read_commit(results, commit, error_lines) for commit in (pair.base, pair.head)]
    records = {}
    for name, about in sorted(described.items()):
        for full in full_names(name, about["params"]):
            if matches(full, bench):
                base, head = (side.get(full, ABSENT) for side in sides)
                records[full] = Record(full, kind_of(about), about.get("unit", ""), base, head)
    return records


def full_names(name: str, params: list[list[str]]) -> list[str]:
    """Return the name with every combination of parameters, written as asv writes it."""
    return [f"{name}({', '.join(combination)})" for combination in itertools.product(*params)] if params else [name]


def matches(name: str, bench: Iterable[str]) -> bool:
    """Return whether asv's --bench would select this benchmark."""
    return any(re.search(pattern, name) for pattern in bench)


def errors(lines: Iterable[str]) -> dict[str, str]:
    """Return the error line of every failure in asv's output, by the commit's short hash and the benchmark's name.

    asv's result files say that a benchmark failed, not why. A benchmark with parameters is named with them where the
    output tells which of them failed.
    """
    found: dict[str, str] = {}
    commit = name = full = preparation = ""
    indent = None  # of the text of a failure, which goes on over lines of its own
    for line in lines:
        step = PROGRESS.match(line)
        if step:
            text = step["text"].strip()
            indent = step.start("text") if len(step["dots"]) == 4 else None
            if text.startswith("For ") and " commit " in text:
                commit = text.split(" commit ")[1][:8]
            elif len(step["dots"]) == 3 and not text.startswith("="):
                name = full = text.split()[0]
                if text.endswith("(setup_cache failed)"):
                    found[f"{commit} {name}"] = f"setup_cache: {preparation}"
        elif indent is None or line[:indent].strip():
            continue
        else:
            text = line[indent:]
        if indent is None:
            continue
        if text.startswith("For parameters: "):
            full = f"{name}({text.removeprefix('For parameters: ')})"
        elif ERROR.match(text) and not text.startswith(("Traceback", "asv: skipped", "asv: setup_cache")):
            if name == "Setting":
                preparation = text
            elif not text.startswith("asv: benchmark failed") or f"{commit} {full}" not in found:
                found[f"{commit} {full}"] = text.removeprefix("asv: ")
    return found


def _read_commit(results: Path, commit: str, error_lines: dict[str, str]) -> dict[str, Measurement]:
    from asv.results import Results

    files = sorted(results.glob(f"*/{commit[:8]}-*.json"))
    if not files:
        raise FileNotFoundError(f"no results of {commit}")
    loaded = Results.load(str(files[0]))
    found = {}
    for name in loaded.get_all_result_keys():
        params = loaded.get_result_params(name)
        values, samples = loaded.get_result_value(name, params), loaded.get_result_samples(name, params)
        for full, value, taken in zip(full_names(name, params), values, samples, strict=True):
            if value is None:
                of_all = error_lines.get(f"{commit[:8]} {name}", "")
                found[full] = Measurement(State.FAILED, error=error_lines.get(f"{commit[:8]} {full}", of_all))
            elif math.isnan(value):
                found[full] = Measurement(State.SKIPPED)
            else:
                # asv's own value is the median. What else a machine does only adds to a time, and may fill half of the
                # samples of one commit and none of the other's: the least is what identical code has in common.
                least = min(taken) if taken else float(value)
                found[full] = Measurement(State.MEASURED, least, tuple(taken or ()))
    return found


def kind_of(about: dict) -> str:
    """Return whether a benchmark is a time, a count, which no machine moves, or another value."""
    if about["type"] == "time":
        return "time"
    return "count" if about.get("unit") in COUNTS else "value"
