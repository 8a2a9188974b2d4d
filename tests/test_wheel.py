"""Does the wheel hold all that a user needs? Built, installed where nothing of this checkout is seen, and used."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def done(*command, folder):
    """Run a command in a folder of its own, with nothing of ours on its path; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    found = subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    done(*PIP, "wheel", ROOT, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, folder=folder)
    (found,) = folder.glob("*.whl")
    return found


def test_every_file_that_is_no_cache_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if name.startswith("quartbench/")}
    package = ROOT / "quartbench"
    assert held == {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_installed_wheel_lists_what_it_has(wheel, tmp_path):
    done(*PIP, "install", "--no-deps", "--target", tmp_path / "here", wheel, folder=tmp_path)
    script = "import sys; sys.path.insert(0, sys.argv.pop(1)); import quartbench; print(quartbench.__file__); "
    script += "from quartbench.cli import main; main()"
    listed = done(sys.executable, "-I", "-c", script, tmp_path / "here", "compare", "--studies", folder=tmp_path)
    where, *studies = listed.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert [line.split()[0] for line in studies if line[:1].strip()] == [
        "cluster",
        "full",
        "inverse",
        "paper",
        "peers",
        "quick",
        "scaling",
    ]


@pytest.mark.slow
def test_the_wheel_solves_in_an_empty_environment(wheel, tmp_path):
    done(sys.executable, "-m", "venv", tmp_path / "empty", folder=tmp_path)
    binaries = tmp_path / "empty" / ("Scripts" if os.name == "nt" else "bin")
    install = ("-m", "pip", "--quiet", "install", "--constraint", ROOT / "constraints.txt", wheel)
    done(binaries / "python", *install, folder=tmp_path)
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "A.csv", rng.standard_normal((30, 4)), delimiter=",")
    np.savetxt(tmp_path / "c.csv", rng.standard_normal(4))
    record = json.loads(done(binaries / "quartbench", "solve", "A.csv", "c.csv", "--json", folder=tmp_path))
    assert record["status"] == "converged"
    assert len(record["x"]) == 4
    listed = done(binaries / "quartbench", "list", "--json", folder=tmp_path)
    assert "scipy-lbfgs" not in json.loads(listed)["solvers"]
