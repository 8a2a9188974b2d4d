"""A form from what the user has: itself, or stacked rows as an array, a sparse matrix or a table."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from quartbench.errors import ProblemError, any_array

from .base import Form
from .complex import ComplexForm
from .stacked import StackedForm


def require_form(given: Any) -> Form:
    """Return what is a form; raise for anything else, rows among it, where they are not taken for one."""
    if not isinstance(given, Form):
        raise ProblemError(f"form must be a Form, found {type(given).__name__}; StackedForm(rows) is that of rows")
    return given


def form_of(given: Any, rank: int = 1) -> Form:
    """Return a form as it is, or that of stacked rows: real ones, or complex ones as in phase retrieval.

    Parameters
    ----------
    given : Form, array of shape (m·r, n), scipy.sparse matrix or DataFrame
    rank : int
        Rows per term, for rows: a form has its own.
    """
    if isinstance(given, Form):
        if rank not in (1, given.rank):
            raise ProblemError(f"rank is for rows, and {given!r} has its own, found rank={rank}")
        return given
    if isinstance(given, str | bytes) or given is None or callable(given):
        raise ProblemError(f"form must be a Form (StackedForm, GraphForm, …) or rows, found {type(given).__name__}")
    rows = given if sp.issparse(given) or hasattr(given, "matvec") else any_array(given, "rows")
    if sp.issparse(rows) or hasattr(rows, "matvec") or rows.dtype.kind != "c":
        return StackedForm(rows, rank)
    if rank != 1:
        raise ProblemError(f"complex rows have one row per term, found rank={rank}")
    return ComplexForm(rows)
