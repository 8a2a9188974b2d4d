"""Problems as people bring them: rows in .npy, .mtx or a directory of blocks with c in .npy, or a saved .npz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from quartbench.cones import CONES
from quartbench.distributed import DaskForm, DiskForm
from quartbench.errors import ProblemError, unknown_name
from quartbench.forms import ComplexForm, Form, StackedForm
from quartbench.model import Problem

from .market import read_market


def read_problem(source: Path, linear: Path | None, rank: int = 1, cone: str = "free", client: Any = None) -> Problem:
    """Return the problem in a saved ``.npz``, or that of rows (``.npy``, ``.mtx``, a directory) and c (``.npy``).

    With a client of a Dask cluster, its workers read the rows.
    """
    if client is None and source.suffix == ".npz":
        if linear is not None:
            raise ProblemError(f"a saved problem holds its own c, found {str(linear)!r} as well")
        return Problem.load(source)
    if linear is None:
        raise ProblemError(f"rows need a vector c beside them: quartbench solve {source} c.npy")
    if cone not in CONES:
        raise unknown_name("cone", cone, CONES)
    form = read_form(source, rank) if client is None else DaskForm(source, client, rank)
    return Problem(form, read_array(linear, "c"), CONES[cone]())


def read_form(source: Path, rank: int = 1) -> Form:
    """Return the form of rows in a ``.npy`` (real or complex) or Matrix Market file, or a directory of blocks."""
    if source.is_dir():
        return DiskForm(source, rank)
    if source.suffix == ".npz":
        return Problem.load(source).form
    if source.suffix in (".mtx", ".gz"):
        try:
            matrix = read_market(source)
        except Exception as error:  # whatever NumPy and gzip make of bytes that are no Matrix Market file
            raise ProblemError(f"{str(source)!r} is not a Matrix Market file: {error}") from error
        return StackedForm(matrix, rank)
    rows = read_array(source, "rows")
    if rows.dtype.kind != "c":
        return StackedForm(rows, rank)
    if rank != 1:
        raise ProblemError(f"complex rows have one row per term, found rank={rank}")
    return ComplexForm(rows)


def read_array(path: Path, name: str) -> np.ndarray:
    """Return the array in a ``.npy`` file; pickled content is refused."""
    try:
        with path.open("rb") as handle:  # np.load would leave a file open that it cannot read
            array = np.load(handle, allow_pickle=False)
    except Exception as error:  # whatever NumPy and zipfile make of bytes that are no .npy file
        raise ProblemError(f"{name}: {str(path)!r} is not a .npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ProblemError(f"{name}: {str(path)!r} holds several arrays; give one .npy file")
    return array
