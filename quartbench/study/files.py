"""Problems as people bring them: rows and c in files of numbers, blocks in a directory, or a problem that was saved."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from quartbench.distributed import DaskForm, DiskForm
from quartbench.errors import ProblemError
from quartbench.forms import Form, form_of
from quartbench.model import Problem
from quartbench.model.matrices import holds_both, read_matrix


def read_problem(
    source: Path, linear: Path | None = None, rank: int | None = None, cone: str | None = None, client: Any = None
) -> Problem:
    """Return the problem in a saved ``.npz``, or that of rows and c in files of numbers.

    Parameters
    ----------
    source : Path
        A problem saved by :meth:`Problem.save`, rows in any format of :func:`read_matrix`, a ``.npz`` of arrays named A
        and c, or a directory of blocks.
    linear : Path, optional
        c beside rows; it takes the place of that in a ``.npz`` of both.
    rank : int, optional
        Rows per term, 1 where it is not given. A saved problem has its own: another one is an error.
    cone : str, optional
        The name of a cone, "free" where it is not given; it takes the place of that of a saved problem.
    client : dask.distributed.Client, optional
        Of a cluster whose workers read the rows, which are blocks of ``.npy`` or Parquet files.
    """
    if client is not None or not is_problem(source):
        if linear is None and holds_both(source):
            linear = source
        if linear is None:
            raise ProblemError(f"rows need a vector c beside them: quartbench solve {source} c.npy")
        form = read_form(source, rank) if client is None else DaskForm(source, client, rank or 1)
        c = read_matrix(linear, "c")
        return Problem(form, c.T if c.shape == (1, form.dim) else c, cone)  # a line of a table is as good as a column
    if linear is not None:
        raise ProblemError(f"a saved problem holds its own c, found {str(linear)!r} as well")
    problem = Problem.load(source)
    _require_rank(problem.form, rank)
    return problem if cone is None else Problem(problem.form, problem.given, cone)


def read_form(source: Path, rank: int | None = None) -> Form:
    """Return the form of a saved problem, that of stacked rows, real or complex, or that of a directory of blocks."""
    if source.is_dir():
        return DiskForm(source, 1 if rank is None else rank)
    if not is_problem(source):
        return form_of(read_matrix(source, "rows"), 1 if rank is None else rank)
    form = Problem.load(source).form
    _require_rank(form, rank)
    return form


def is_problem(source: Path) -> bool:
    """Say whether a file is a problem that was saved, or a ``.npz`` that cannot be anything else."""
    if source.suffix.lower() != ".npz":
        return False
    try:
        with zipfile.ZipFile(source) as file:
            names = file.namelist()
    except (OSError, zipfile.BadZipFile):
        return True
    return "head.npy" in names or not names


def _require_rank(form: Form, rank: int | None) -> None:
    if rank not in (None, form.rank):
        raise ProblemError(f"rank is for rows, and a saved problem has its own: it is {form.rank}, found {rank}")
