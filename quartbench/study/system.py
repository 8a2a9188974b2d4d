"""What a result depends on besides the code: versions, processor, threads."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import numba

from quartbench.kernels import jit

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "clarabel", "asv")


def describe() -> dict[str, object]:
    """Return the facts that a result must carry, as JSON."""
    facts: dict[str, object] = {
        "quartbench": importlib.metadata.version("quartbench"),
        "commit": _commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "threading layer": jit.LAYER or "serial",
    }
    for package in PACKAGES:
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _commit() -> str:
    """Return the commit of the checkout that this package lies in, or 'unknown'."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
