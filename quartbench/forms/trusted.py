"""What is known of rows that are functions? Their products are taken on trust, in the units of each column.

Few unknowns: the products with unit vectors are the columns, and what is said is said of them, with bounds as for any
rows that are stored. How well a function knows its own rows shows where its adjoint is asked for some of them: where
both agree to the last bit, as those of a matrix do, nothing is added; else products are taken to be right to so many
roundings, or to a few times what they disagree by. Many unknowns: the same allowance, for the products themselves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from quartbench.kernels.exact import add
from quartbench.linalg.known import Known, U, length, raised

if TYPE_CHECKING:
    from .terms import TermForm

#: Products are taken to be right to so many roundings, relative to the length of a column times that of the vector; and
#: to so many times what the two products, Mx and Mᵀw, disagree by.
TRUSTED, APART = 64.0, 8.0

#: Rows that the adjoint is asked for; random vectors where there are too many unknowns for that.
ASKED, PROBES = 8, 4


class Products:
    """The products of a form, with bounds that are taken on trust.

    Parameters
    ----------
    form : TermForm
        Unscaled.
    rows : TermForm or None
        The same with its rows stored, and with proven bounds; None where they are too many.

    Attributes
    ----------
    lengths : array of shape (n,)
        Those of the columns; right to a third or so where there are many.
    share : float
        What entries may be off by, as a share of the length of their column.
    """

    def __init__(self, form: TermForm, rows: TermForm | None) -> None:
        self._form, self._rows = form, rows
        moderate = (form if rows is None else rows).moderate()  # squares of 1e±160 would leave the range
        self.lengths = np.sqrt(moderate.gram_diagonal()) / moderate.scale
        apart = self._apart() if rows is None else self._entries_apart(rows)
        self.share = 0.0 if rows is not None and apart == 0.0 else max(TRUSTED * U, APART * apart)

    def _entries_apart(self, rows: TermForm) -> float:
        """Return how far entries are apart at the most in some rows, as the image has them and as the adjoint has."""
        count = rows.terms * rows.rank
        asked = np.random.default_rng(0).choice(count, min(ASKED, count), replace=False)
        unit, apart = np.zeros(count), np.zeros(rows.dim)
        for row in asked:
            unit[row] = 1.0
            apart = np.maximum(apart, np.abs(self._form.adjoint(unit) - rows.adjoint(unit)))
            unit[row] = 0.0
        return float((apart / np.where(self.lengths > 0.0, self.lengths, 1.0)).max())

    def _apart(self) -> float:
        """Return how far ⟨Mx,w⟩ and ⟨x,Mᵀw⟩ are apart at the most for random x, in the units of the columns, and w.

        With an error E of one product, of columns that are δ times as long as those of M, they differ by ⟨Ex,w⟩, of the
        order of ‖Ex‖, and that is δ‖Mx‖.
        """
        form, rng, found = self._form, np.random.default_rng(0), 0.0
        unit = np.where(self.lengths > 0.0, self.lengths, 1.0)
        for _ in range(PROBES):
            x, w = rng.standard_normal(form.dim) / unit, rng.standard_normal(form.terms * form.rank)
            image = form.image(x)
            # Sums that round would differ by more than the products do.
            apart = abs(math.fsum(image * w) - math.fsum(x * form.adjoint(w)))
            found = max(found, apart / (float(np.linalg.norm(image)) or 1.0))
        return found

    def image(self, x: np.ndarray, exact: bool) -> Known:
        """Return Mx with bounds."""
        if self._rows is not None:
            found = self._rows.known_image(x, exact)
        else:
            image = self._form.image(x)
            found = Known(image, np.zeros_like(image), np.zeros_like(image))
        return self._allowed(found, self.share * length(self.lengths * x))

    def residual(self, c: np.ndarray, hi: np.ndarray, lo: np.ndarray, exact: bool) -> Known:
        """Return c − Mᵀ(hi + lo) with bounds."""
        if self._rows is not None:
            found = self._rows.known_residual(c, hi, lo, exact)
        else:
            moved = add(*add(c, np.zeros_like(c), -self._form.adjoint(hi)), -self._form.adjoint(lo))
            found = Known(*moved, np.zeros_like(c))
        return self._allowed(found, self.share * length(hi) * self.lengths)

    @staticmethod
    def _allowed(found: Known, more: np.ndarray | float) -> Known:
        """Return the same with larger bounds."""
        return found if not np.any(more) else found._replace(error=raised(found.error, more))
