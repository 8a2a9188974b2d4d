"""Which two commits does the gate compare?"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quartbench.errors import ProblemError

#: Where the default branch is looked for, after what the remote itself names.
DEFAULT_BRANCHES = ("origin/main", "origin/master", "main", "master")


@dataclass(frozen=True)
class Pair:
    """The two commits, by full hash; ``twin`` where base is a copy of head, made to measure noise."""

    base: str
    head: str
    twin: bool = False

    def names(self) -> tuple[str, str]:
        """Return base and head as a reader wants them."""
        return (f"{self.head[:8]} (again)" if self.twin else self.base[:8]), self.head[:8]


def project(start: Path | None = None) -> Path:
    """Return the root of the checkout that holds ``asv.conf.json``."""
    start = start or Path.cwd()
    try:
        root = Path(_git(start, "rev-parse", "--show-toplevel"))
    except ProblemError as error:
        raise ProblemError(f"the gate measures commits, and {start} is in no clone ({error})") from None
    if not (root / "asv.conf.json").is_file():
        raise ProblemError(f"the gate measures commits of a project with an asv.conf.json, and {root} has none")
    return root


def choose(root: Path, base: str | None = None, head: str = "HEAD") -> Pair:
    """Return the commits to compare.

    ``base`` None means the merge base of ``head`` and the default branch, or the parent of ``head`` where that is
    ``head`` itself. Equal commits ask for the noise: base is then a twin of head.
    """
    found = _commit(root, head)
    if base is not None:
        other = _commit(root, base)
        return Pair(twin(root, found), found, twin=True) if other == found else Pair(other, found)
    other = _merge_base(root, found)
    if other == found:
        try:
            other = _commit(root, f"{found}~1")
        except ProblemError:
            raise ProblemError(f"commit {found[:8]} has no parent to compare with: name a BASE") from None
    return Pair(other, found)


def twin(root: Path, head: str) -> str:
    """Return a commit with the tree of ``head`` and another hash, always the same one.

    asv keeps one result a commit, so identical code can only be compared with itself under a second name. No branch
    points at the twin: git drops it with its next clean-up.
    """
    fixed = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "quartbench gate"), ("EMAIL", "gate@localhost"), ("DATE", "@0 +0000"))
    }
    message = "The same tree again, to measure noise"
    return _git(root, "commit-tree", f"{head}^{{tree}}", "-p", head, "-m", message, **fixed)


def uncommitted(root: Path) -> bool:
    """Return whether the package has changes that no commit holds, and that are therefore not measured."""
    return bool(_git(root, "status", "--porcelain", "--", "quartbench"))


def _merge_base(root: Path, head: str) -> str:
    names = list(DEFAULT_BRANCHES)
    with suppress(ProblemError):
        names.insert(0, _git(root, "rev-parse", "--abbrev-ref", "origin/HEAD"))
    for name in names:
        try:
            branch = _commit(root, name)
        except ProblemError:
            continue
        try:
            return _git(root, "merge-base", branch, head)
        except ProblemError:
            raise ProblemError(f"{head[:8]} and {name} have no common commit here: fetch more history") from None
    raise ProblemError(f"found no default branch ({', '.join(DEFAULT_BRANCHES)}): name a BASE")


def _commit(root: Path, name: str) -> str:
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except ProblemError:
        raise ProblemError(f"unknown commit {name!r}") from None


def _git(root: Path, *arguments: str, **environment: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise ProblemError("the gate needs git") from None
    except subprocess.CalledProcessError as error:
        raise ProblemError(f"git {arguments[0]}: {error.stderr.strip() or 'failed'}") from error
    return done.stdout.strip()
