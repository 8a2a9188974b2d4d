"""How is a problem kept in a file? As a compressed ``.npz`` of plain arrays and a JSON header, never pickled."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quartbench.cones import CONES
from quartbench.errors import ProblemError
from quartbench.forms import FORMS

from .problem import Problem

#: The format of saved problems; a file of another one is refused by name.
FILE_VERSION = 1


def save(problem: Problem, path: str | os.PathLike) -> Path:
    """Write a problem to ``path``, and return the path (see :meth:`Problem.save`)."""
    path = Path(path)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    form, cone = problem.form, problem.cone
    arrays = {f"form_{name}": array for name, array in form.arrays().items()}
    if vars(type(form)).get("kind") not in FORMS:  # that of a class above it would be read as that class
        raise ProblemError(
            f"{type(form).__name__} cannot be saved: no file could name it; register it with register_form, or through "
            f"the entry point group {FORMS.group!r} (forms that can: {', '.join(FORMS)})"
        )
    if cone.name not in CONES:
        raise ProblemError(
            f"the cone {cone!r} cannot be saved: no file could name it; register it with register_cone, or through "
            f"the entry point group {CONES.group!r} (cones that can: {', '.join(CONES)})"
        )
    head = {"version": FILE_VERSION, "form": form.kind, "cone": cone.name, "origin": problem.origin}
    try:
        header = np.array(json.dumps(head))
    except (TypeError, ValueError) as error:
        raise ProblemError(f"origin must be JSON, found something else: {error}") from None
    arrays["scale"] = np.array(form.scale)
    arrays["c"] = np.asarray(problem.given)
    if problem.solution is not None:
        arrays["solution"] = problem.solution
    if problem.optimum is not None:
        arrays["optimum"] = np.array(problem.optimum)
    part = path.with_name(f".{path.name}.{os.getpid()}.part.npz")
    try:
        np.savez_compressed(part, head=header, **arrays)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def load(path: str | os.PathLike) -> Problem:
    """Read a problem that ``save`` wrote. Pickled content is refused."""
    head, stored = _opened(path)
    if head.get("version") != FILE_VERSION:
        raise ProblemError(f"{os.fspath(path)!r} has version {head.get('version')}, this reads {FILE_VERSION}")
    try:
        cone, kind = CONES.find(head["cone"]), FORMS.find(head["form"])
        form = kind.from_arrays({name.removeprefix("form_"): v for name, v in stored.items() if name[:5] == "form_"})
    except KeyError as error:
        raise ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: it has no {error}") from None
    scale = float(stored["scale"])
    return Problem(
        form if scale == 1.0 else form.scaled(scale),
        stored["c"],
        cone(),
        solution=stored.get("solution"),
        optimum=float(stored["optimum"]) if "optimum" in stored else None,
        origin=head["origin"],
    )


def _opened(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a saved problem; raise for any other file."""
    try:
        with open(path, "rb") as handle:  # np.load would leave a file open that it cannot read
            file = np.load(handle, allow_pickle=False)
            stored = {name: file[name] for name in file.files} if isinstance(file, Mapping) else {}
        head = json.loads(str(stored.get("head", "null")))
    except FileNotFoundError:
        raise ProblemError(f"no problem file at {os.fspath(path)!r}") from None
    except (ValueError, OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: {error}") from None
    if not isinstance(head, dict) or not {"c", "scale"} <= stored.keys():
        raise ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: it has no header")
    return head, stored
