"""The project's own files agree with each other."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
)


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


PINNED = {canonical(name): version.split(";")[0].strip() for name, version in PINS.items()}


def asv_configuration():
    text = (ROOT / "asv.conf.json").read_text()
    return json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))


def test_asv_measures_the_versions_that_the_tests_run_with():
    for name, versions in asv_configuration()["matrix"]["req"].items():
        assert versions == [PINNED[canonical(name.removeprefix("pip+"))]], name


def test_asv_environments_hold_every_runtime_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {canonical(re.split(r"[<>=]", requirement)[0]) for requirement in project["dependencies"]}
    assert wanted <= {canonical(name) for name in asv_configuration()["matrix"]["req"]}


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    for requirement in requirements:
        assert canonical(re.split(r"[<>=\[]", requirement)[0]) in PINNED, requirement


def test_no_file_names_a_host_of_a_registry_in_its_pins():
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_version_is_the_same_everywhere():
    import quartbench

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == quartbench.__version__
