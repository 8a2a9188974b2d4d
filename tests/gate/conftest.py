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
    """Play back what asv wrote and printed for two commits, under the names of those that are asked for.

    The second and later runs play back the recording too: what was slow is slow again.
    """
    calls = []

    def play(self, arguments, watch):
        calls.append(arguments)
        if arguments[0] == "machine":
            return []
        results = Path(arguments[arguments.index("--config") + 1]).parent
        head, base = (results / "commits").read_text().split()
        names = {PAIR.head[:8]: head[:8], PAIR.base[:8]: base[:8]}
        shutil.copy(RECORDED / "benchmarks.json", results)
        (results / "demo").mkdir()
        shutil.copy(RECORDED / "demo" / "machine.json", results / "demo")
        for path in (RECORDED / "demo").glob("*-existing.json"):
            shutil.copy(path, results / "demo" / path.name.replace(path.name[:8], names[path.name[:8]]))
        watch(1.0, "round 1 of 1, recorded")
        text = (RECORDED / "asv.log").read_text(encoding="utf-8")
        for old, new in names.items():
            text = text.replace(old, new)
        return text.splitlines()

    monkeypatch.setattr(Suite, "_asv", play)
    return calls
