"""How is a problem kept in a file? As a compressed ``.npz`` of plain arrays and a JSON header, never pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from quartbench.cones import CONES
from quartbench.errors import ProblemError
from quartbench.forms import FORMS
from quartbench.forms.reading import SIZES

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
        header = np.array(json.dumps(head, allow_nan=False))
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
    """Read a problem that ``save`` wrote. Pickled content is refused, and so is every file that is damaged."""
    stored = _opened(path)
    try:
        return _problem(stored)
    except KeyError as error:
        raise _refused(path, f"it has no {error}") from None
    except ProblemError as error:
        raise _refused(path, error) from None
    except Exception as error:  # whatever a form, also one of somebody else, makes of arrays that it did not write
        raise _refused(path, f"its arrays do not make a problem ({type(error).__name__}: {error})") from error


def _problem(stored: dict[str, np.ndarray]) -> Problem:
    head = json.loads(str(stored.get("head", "null")))
    if not isinstance(head, dict):
        raise ProblemError("it has no header")
    if head.get("version") != FILE_VERSION:
        raise ProblemError(f"it has version {head.get('version')}, this reads {FILE_VERSION}")
    if not isinstance(head["origin"], dict):
        raise ProblemError(f"origin must be a JSON object, found {type(head['origin']).__name__}")
    cone, kind = CONES.find(head["cone"]), FORMS.find(head["form"])
    form = kind.from_arrays({name.removeprefix("form_"): v for name, v in stored.items() if name[:5] == "form_"})
    scale = _number(stored, "scale")
    if not SIZES[0] <= scale <= SIZES[1]:
        raise ProblemError(f"scale must lie between {SIZES[0]:g} and {SIZES[1]:g}, found {scale}")
    return Problem(
        form if scale == 1.0 else form.scaled(scale),
        stored["c"],
        cone(),
        solution=stored.get("solution"),
        optimum=_number(stored, "optimum") if "optimum" in stored else None,
        origin=head["origin"],
    )


def _number(stored: dict[str, np.ndarray], name: str) -> float:
    """Return the finite number that a file keeps under a name."""
    array = stored[name]
    if array.shape != () or array.dtype.kind not in "fiu" or not np.isfinite(array):
        raise ProblemError(f"{name} must be one finite number, found {array!r:.80}")
    return float(array)


def _refused(path: str | os.PathLike, why: object) -> ProblemError:
    return ProblemError(f"{os.fspath(path)!r} is not a problem saved by quartbench: {why}")


def _opened(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a ``.npz``; raise for any other file."""
    try:
        with open(path, "rb") as handle:  # np.load would leave a file open that it cannot read
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, Mapping):
                raise ProblemError("it holds one array")
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ProblemError(f"no problem file at {os.fspath(path)!r}") from None
    except Exception as error:  # whatever NumPy, zipfile and zlib make of bytes that they did not write
        raise _refused(path, error) from None
