"""The asv suite is well-formed: what a reader, the gate and asv itself rely on."""

import importlib
import inspect
import json
import math
import os
import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

import numba
import pytest
from asv.util import load_json
from asv_runner.discovery import disc_benchmarks

from benchmarks import common, gate, peers
from quartbench import instances
from quartbench.gate.suite import TURNS, full_names
from quartbench.gate.thresholds import TABLE, read_table
from quartbench.solvers import solvers

ROOT = Path(__file__).parents[2]
SUITE = list(disc_benchmarks("benchmarks"))
CLASSES = {name.rsplit(".", 1)[0] for name in (benchmark.name for benchmark in SUITE)}
AXES = ("m", "n", "r", "sigma_min", "gamma")


def of_module(name):
    return [benchmark for benchmark in SUITE if benchmark.name.startswith(f"{name}.")]


def class_of(name):
    module, name = name.split(".")[:2]
    return getattr(importlib.import_module(f"benchmarks.{module}"), name)


def test_every_topic_has_benchmarks():
    modules = {benchmark.name.split(".")[0] for benchmark in SUITE}
    assert modules == {
        "applications",
        "cluster",
        "disk",
        "gate",
        "kernels",
        "projections",
        "leverage",
        "lewis",
        "solvers",
        "scaling",
        "peers",
        "regression",
        "startup",
    }


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_class_has_a_docstring_of_one_line(name):
    text = inspect.cleandoc(class_of(name).__dict__.get("__doc__") or "")
    assert text
    assert "\n" not in text
    assert text.endswith(".")


@pytest.mark.parametrize("benchmark", SUITE, ids=lambda benchmark: benchmark.name)
def test_every_benchmark_names_its_parameters_its_unit_and_its_version(benchmark):
    assert len(benchmark.param_names) == len(benchmark.params)
    assert not any(re.fullmatch(r"param\d+", name) for name in benchmark.param_names)
    assert benchmark.unit not in (None, "", "unit")
    assert benchmark.version == common.PROBLEM_SET


def test_the_environment_of_asv_has_what_the_package_and_its_peers_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["peers"]
    configuration = load_json(str(ROOT / "asv.conf.json"), js_comments=True)
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lines, re.M))
    installed = {name.lower(): versions for name, versions in configuration["matrix"]["req"].items()}
    for requirement in wanted:
        name = re.match(r"[\w.-]+", requirement)[0].lower()
        assert installed.get(name) == [pinned[name]], requirement


def test_version_is_that_of_the_problem_set():
    assert str(instances.PROBLEM_SET) == common.PROBLEM_SET


@pytest.mark.parametrize("module", ["kernels", "leverage", "lewis", "scaling"])
@pytest.mark.parametrize("axis", AXES)
def test_every_axis_is_swept_over_five_values_with_the_others_fixed(module, axis):
    found = [b for b in of_module(module) if axis in b.param_names and ".Over" in b.name]
    assert found
    for benchmark in found:
        assert not set(benchmark.param_names) & (set(AXES) - {axis})
        assert len(set(benchmark.params[benchmark.param_names.index(axis)])) >= 5


def test_scaling_has_every_solver_of_ours_in_every_metric():
    # On problems as small as these a sample is all of the terms.
    own = {
        name
        for name, solver in solvers().items()
        if not solver.peer and not solver.__module__.startswith("quartbench.distributed")
    }
    assert own <= set(common.SOLVERS)
    for benchmark in of_module("scaling"):
        assert benchmark.params[0] == [repr(name) for name in common.SOLVERS]
        assert benchmark.params[1] == [repr(name) for name in common.METRICS]


def test_axes_stand_still_but_for_one():
    shapes = {axis: [common.SMALL.problem(axis, v).form for v in common.SMALL.values[axis]] for axis in AXES}
    assert [form.terms for form in shapes["m"]] == common.SMALL.values["m"]
    assert [form.dim for form in shapes["n"]] == common.SMALL.values["n"]
    assert [form.rank for form in shapes["r"]] == common.SMALL.values["r"]
    for axis, fixed in {"m": "dim rank", "n": "terms rank", "r": "terms dim", "gamma": "terms dim rank"}.items():
        for name in fixed.split():
            assert len({getattr(form, name) for form in shapes[axis]}) == 1, (axis, name)


def test_every_setup_cache_is_declared_in_its_own_class():
    # asv keys it by file and line: an inherited one would serve the first class's results to all.
    keys = {}
    for benchmark in SUITE:
        if benchmark.setup_cache_key is not None:
            keys.setdefault(benchmark.setup_cache_key, set()).add(benchmark.name.rsplit(".", 1)[0])
    assert keys
    assert all(len(classes) == 1 for classes in keys.values()), keys


def test_memory_is_measured_beside_a_reference():
    classes = {b.name.rsplit(".", 1)[0] for b in SUITE if b.type == "peakmemory"}
    assert classes
    for name in classes:
        assert hasattr(class_of(name), "peakmem_reference")


def test_times_have_the_samples_that_a_verdict_needs():
    for benchmark in of_module("gate"):
        if benchmark.type == "time":
            least, *_ = benchmark.repeat
            assert benchmark.rounds == 1, "the gate takes turns between commits itself"
            assert TURNS * least >= 7, "fewer samples cannot show p < 0.002"


def test_the_gate_tier_is_what_its_pattern_selects():
    selected = {b.name.rsplit(".", 1)[0] for b in SUITE if re.search(r"^gate\.", b.name)}
    assert selected == {
        "gate.Kernels",
        "gate.Preconditioning",
        "gate.LewisCounts",
        "gate.SolverTimes",
        "gate.SolverCounts",
    }


def test_the_table_of_thresholds_is_that_of_the_gate_tier():
    names = {full for b in of_module("gate") for full in full_names(b.name, b.params)}
    table = read_table(ROOT / TABLE)
    assert table.keys() <= names, "a benchmark that is expected but gone fails every gate"
    assert names - table.keys() == set(), "run quartbench gate --calibrate --write"


@pytest.fixture
def threads_restored():
    before = numba.get_num_threads()
    yield
    if common.one_thread.cache_info().currsize:
        common.one_thread().restore_original_limits()
        common.one_thread.cache_clear()
    numba.set_num_threads(before)


@pytest.mark.parametrize("name", ["Kernels", "Preconditioning", "SolverTimes"])
def test_gate_times_run(name, threads_restored):
    timed = getattr(gate, name)()
    for parameters in product(*getattr(timed, "params", ())):
        try:
            timed.setup(*parameters)
        except NotImplementedError:
            continue
        for method in (method for method in dir(timed) if method.startswith("time_")):
            getattr(timed, method)(*parameters)


@pytest.mark.parametrize("name", ["LewisCounts", "SolverCounts"])
def test_gate_counts_are_exact_positive_and_complete(name):
    counts = getattr(gate, name)()
    first, second = counts.setup_cache(), counts.setup_cache()
    present = set(solvers())
    for parameters in product(*counts.params):
        if name == "SolverCounts" and parameters[1] not in present:
            continue
        counts.setup(first, *parameters)
        for track in (track for track in dir(counts) if track.startswith("track_")):
            value = getattr(counts, track)(first, *parameters)
            assert math.isfinite(value), (parameters, track)
            assert value > 0.0
        exact = ("iterations", "passes", "sweeps")
        found = [[table[parameters].get(key) for key in exact] for table in (first, second)]
        assert found[0] == found[1]


def test_the_large_tier_skips_and_keeps_its_parameters(monkeypatch):
    large = sorted(name for name in CLASSES if name.split(".")[1].startswith("Large"))
    assert large
    monkeypatch.delenv("QUARTBENCH_LARGE", raising=False)
    for name in large:
        benchmark = class_of(name)()
        assert "(large tier)" in inspect.getdoc(benchmark)
        cache = (benchmark.setup_cache(),) if hasattr(benchmark, "setup_cache") else ()
        for parameters in product(*benchmark.params):
            with pytest.raises(NotImplementedError):
                benchmark.setup(*cache, *parameters)
    monkeypatch.setenv("QUARTBENCH_LARGE", "1")
    common.require_large()


def test_make_bench_measures_all_that_the_large_tier_skips():
    (pattern,) = re.findall(r"^LARGE := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    large = {name for name in CLASSES if "require_large" in inspect.getsource(class_of(name))}
    assert any(not name.split(".")[1].startswith("Large") for name in large)
    assert {name for name in CLASSES if re.search(pattern, f"{name}.")} == large


def test_a_solver_that_the_commit_lacks_is_skipped():
    with pytest.raises(NotImplementedError, match="no-such"):
        common.require_solver("no-such")


def test_a_run_that_its_limits_end_has_no_counts():
    problem = common.instance("spectrum", m=200, n=20, sigma_min=0.1)
    whole = common.counted(problem, "homgd", "identity", 1e-6)
    cut = common.counted(problem, "homgd", "identity", 1e-6, max_passes=10)
    assert whole["iterations"] > 10.0
    assert whole["seconds"] > 0.0
    assert all(math.isnan(figure) for figure in cut.values())


def test_one_failure_does_not_hide_the_other_cells():
    def fails():
        raise ValueError("broken")

    def skips():
        raise NotImplementedError

    cache = common.table([(("good",), lambda: 1.0), (("bad",), fails), (("none",), skips)])
    assert common.cell(cache, "good") == 1.0
    with pytest.raises(RuntimeError, match="broken"):
        common.cell(cache, "bad")
    with pytest.raises(NotImplementedError):
        common.cell(cache, "none")


def test_importing_the_suite_loads_nothing_heavy():
    modules = ", ".join(f"benchmarks.{path.stem}" for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py")))
    code = f"import sys, {modules}; print([name for name in ('numba', 'quartbench', 'scipy') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_each_commit_has_the_numba_cache_that_asv_warms(tmp_path):
    text = (ROOT / "asv.conf.json").read_text()
    settings = json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))
    (warmed,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", " ".join(settings["install_command"]))
    environment = os.environ | {"ASV_ENV_DIR": str(tmp_path), "ASV_COMMIT": "abc"}
    code = "import os, benchmarks; print(os.environ['NUMBA_CACHE_DIR'])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == warmed.format(env_dir=tmp_path, commit="abc")


def test_certificates_are_priced_on_the_instances_of_the_study():
    study = tomllib.loads((ROOT / "quartbench/study/studies/peers.toml").read_text(encoding="utf-8"))
    named = set()
    for entry in (entry for group in study["group"] for entry in group["instances"]):
        generator, *names = entry
        if entry[generator] not in instances.INSTANCES:  # a regression
            continue
        values = [entry[name] if isinstance(entry[name], list) else [entry[name]] for name in names]
        named |= {(entry[generator], *zip(names, chosen, strict=True)) for chosen in product(*values)}
    # Where a size has two settings, the groups for a few peers name one of them by leaving it out.
    priced = {(generator, *arguments.items()) for generator, arguments in peers.STUDIED.values()}
    assert priced == named - {("orthant", ("m", 2000), ("n", 200))}
