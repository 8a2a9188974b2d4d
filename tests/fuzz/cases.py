"""What is a problem of the fuzz? As a user states it, the same exactly, and what is known of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import quartbench as qb
from tests.forms.random_forms import RowProducts
from tests.kernels.plain import embedding

from .exactly import Exact, ExactRows

CONES = {"free": qb.Free, "orthant": qb.Orthant, "second-order": qb.SecondOrder, "centred": qb.Centred}


class Case(NamedTuple):
    """A problem as a user states it, the same exactly, and what is known of it.

    Attributes
    ----------
    condition : float
        That of the rows, with columns of unit length where the cone allows other units for each.
    rows : array or None
        Dense rows in double precision, for batches.
    """

    number: int
    form: str
    cone: str
    features: tuple[str, ...]
    condition: float
    problem: qb.Problem
    exact: Exact
    rows: np.ndarray | None

    @property
    def well_posed(self) -> bool:
        """Whether a gap of 1e-10 is to be certified: rows of a condition up to 1e6, c away from the polar cone."""
        return self.condition <= 1e6 and "polar" not in self.features


def stated(number, form, cone, features, rows, rank, c, optimum=None) -> Case:
    """Return the case of rows as they are stored, and its exact twin."""
    real = embedding(rows) if form == "complex" else np.asarray(rows, dtype=float)
    makers = {
        "sparse": lambda: qb.StackedForm(sp.csr_matrix(rows), rank),
        "operator": lambda: qb.OperatorForm(RowProducts(rows), rank),
        "complex": lambda: qb.ComplexForm(rows),
    }
    stored = makers.get(form, lambda: qb.StackedForm(rows, rank))()
    flat = c.view(float) if form == "complex" else c
    exact = ExactRows(real, 2 if form == "complex" else rank, flat, cone, optimum=optimum)
    problem = qb.Problem(stored, c, CONES[cone]())
    batch = real if form in ("dense", "block") and cone in ("free", "orthant") else None
    return Case(number, form, cone, features, _condition(real, cone), problem, exact, batch)


def _condition(rows: np.ndarray, cone: str) -> float:
    """Return the condition of rows; with columns of unit length on cones that do not tie their units together."""
    rows = rows / np.abs(rows).max()
    if cone in ("free", "orthant"):
        rows = rows / np.abs(rows).max(axis=0)
        rows = rows / np.linalg.norm(rows, axis=0)
    return float(np.linalg.cond(rows))
