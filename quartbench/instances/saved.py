"""A problem of somebody's own as an instance of a study: a file, known by its content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from quartbench.errors import ProblemError
from quartbench.model import Problem


def checksum(path: str | Path) -> str:
    """Return a hash of the content of a file; raise where there is none."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:20]
    except OSError as error:
        raise ProblemError(f"instance: there is no file {str(path)!r} to read ({error.strerror})") from None


def saved(path: str, content: str = "", seed: int = 0) -> Problem:
    """Return the problem that ``Problem.save`` wrote.

    Parameters
    ----------
    path : str
    content : str
        The checksum that the file must have, where one is given: results are those of that content.
    seed : int
        Of no consequence.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     problem = qb.instances.spectrum(m=20, n=3, sigma_min=0.5)
    ...     path = problem.save(f"{folder}/mine.npz")
    ...     qb.instances.saved(str(path)).dim
    3
    """
    if content and checksum(path) != content:
        raise ProblemError(f"instance: the file {path!r} has changed since the study was planned")
    return Problem.load(path)
