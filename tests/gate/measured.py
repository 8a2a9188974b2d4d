"""Results over many commits, written by asv's own classes: what asv would have left had it measured them."""

import datetime
import json
import math
import statistics

from asv.benchmarks import Benchmarks
from asv.machine import Machine
from asv.results import Results
from asv.runner import BenchmarkResult


def benchmark(name, params=(), unit="seconds", version="1"):
    """Return a benchmark as asv describes it."""
    kind = "time" if name.rpartition(".")[2].startswith("time_") else "track"
    values = [[repr(value) for value in axis] for axis in params]
    return {"name": name, "type": kind, "unit": unit, "params": values, "version": version, "code": "pass"}


def describe(folder, benchmarks):
    """Write the list of benchmarks."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {one["name"]: one for one in benchmarks} | {"version": Benchmarks.api_version}
    (folder / "benchmarks.json").write_text(json.dumps(found))


def keep(folder, commit, date, results, machine="bench-1", version=None):
    """Write what one commit gave: [(benchmark, values)], a value being a number, None or the samples of a time."""
    (folder / machine).mkdir(parents=True, exist_ok=True)
    about = {"machine": machine, "cpu": "A processor", "num_cpu": "2", "os": "Linux", "ram": "8GB", "arch": "x86_64"}
    (folder / machine / "machine.json").write_text(json.dumps(about | {"version": Machine.api_version}))
    found = Results(about | {"python": "3.11"}, {}, commit, date, "3.11", "env", {})
    found.set_build_duration(60.0)
    for one, values in results:
        samples = [value if isinstance(value, list) else None for value in values]
        medians = [statistics.median(value) if isinstance(value, list) else value for value in values]
        number = [1 if taken else None for taken in samples]
        result = BenchmarkResult(medians, samples, number, 0, "", None)
        described = one | ({"version": version} if version else {})
        found.add_result(described, result, datetime.datetime.fromtimestamp(date / 1000, datetime.UTC), 30.0, True)
    found.save(str(folder))


def wave(place, size=0.02):
    """Return a noise that is the same every time."""
    return 1.0 + size * math.sin(7.3 * place * place + 1.1)
