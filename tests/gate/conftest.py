"""A checkout with three commits, and asv played back from what it once wrote."""

import shutil
import subprocess
from pathlib import Path

import pytest

from quartbench.gate.suite import Suite

from .common import PAIR, RECORDED


class Checkout:
    """A git repository of its own."""

    def __init__(self, path):
        self.path = path
        self.git("init", "--quiet", "--initial-branch=main")
        (path / "asv.conf.json").write_text(
            '{"repo": ".", "benchmark_dir": "benchmarks", "env_dir": ".asv/env", "html_dir": ".asv/html"}'
        )
        (path / "pyproject.toml").write_text("")
        (path / "benchmarks").mkdir()

    def git(self, *arguments):
        identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, text):
        (self.path / "file").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", text)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a checkout with the commits a, b, c on its main branch, and work in it."""
    (tmp_path / "checkout").mkdir()
    found = Checkout(tmp_path / "checkout")
    found.hashes = [found.commit(text) for text in "abc"]
    monkeypatch.chdir(found.path)
    return found


@pytest.fixture
def recorded_asv(monkeypatch):
    """Play back what asv wrote and printed for a commit, under the name of the one that is asked for, base first.

    The second and later runs play back the recording too: what was slow is slow again.
    """
    calls = []

    def play(self, arguments, watch):
        calls.append(arguments)
        if arguments[0] == "machine":
            return []
        results = Path(arguments[arguments.index("--config") + 1]).parent
        wanted = (results / "commit").read_text().strip()[:8]
        shutil.copy(RECORDED / "benchmarks.json", results)
        (results / "demo").mkdir(exist_ok=True)
        shutil.copy(RECORDED / "demo" / "machine.json", results / "demo")
        if not (results / "base").exists():
            (results / "base").write_text(wanted)
        old = (PAIR.base if (results / "base").read_text() == wanted else PAIR.head)[:8]
        for path in (RECORDED / "demo").glob(f"{old}-existing.json"):
            shutil.copy(path, results / "demo" / path.name.replace(old, wanted))
        watch(1.0, f"commit {wanted}")
        return (RECORDED / "asv.log").read_text(encoding="utf-8").replace(old, wanted).splitlines()

    monkeypatch.setattr(Suite, "_asv", play)
    return calls
