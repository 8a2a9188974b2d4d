"""Where does the machine code of kernels go? To a directory of its own for each state of their source.

Numba's disk cache stamps a function with the content of its own file only, so a kernel that calls a kernel of another
file would keep the old callee after an edit. Our cache directory therefore carries a hash of all kernel sources.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from numba import config

KERNELS = Path(__file__).resolve().parent.parent / "kernels"


def source_hash() -> str:
    """Return a hash of the source of every kernel."""
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(KERNELS.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def cache_directory() -> str:
    """Return where the machine code of this source goes: below NUMBA_CACHE_DIR, the package, or the user's cache."""
    name = f"quartbench-{source_hash()}"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    roots = [config.CACHE_DIR] if config.CACHE_DIR else [str(KERNELS / "__pycache__"), home]
    for root in roots:
        path = os.path.join(root, name)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK):
            return path
    return tempfile.mkdtemp(prefix="quartbench-")
