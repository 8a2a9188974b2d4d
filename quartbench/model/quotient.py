"""What if ρ vanishes on a subspace? On the whole space the problem then lives on the quotient by that kernel.

ρ^¼ is a seminorm. Where ⟨c,d⟩ > 0 for some d of its kernel, f falls without end along d. Where c is perpendicular to
the kernel, f does not change along it, and x = Ez reduces f to coordinates z in which ρ is definite, with all rates;
there κ ≤ √rank. Two cases are told apart:

- **Coordinates that no term sees.** Their columns are zero, exactly; z are the other coordinates, nothing is rounded,
  and what is proved of z is proved of x.
- **Columns that depend on each other to rounding.** Columns are divided by powers of two near their lengths, and
  singular values of at most n·u times the largest count as zero; E is a basis of the others. The rows as they are
  given may well have full rank, so this is a decision and no proof: of f on the range of E the bounds are true up to
  the rounding of its rows, of f itself nothing is claimed beyond. The range is known to within an angle of about
  n·u·σ₁/σ_rank, and c counts as perpendicular to the kernel where its part there is no larger than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from quartbench.errors import DeficientError
from quartbench.forms import Form, StackedForm, TermForm
from quartbench.linalg.known import U
from quartbench.runtime.blas import blas_threads

from .certificate import value_at
from .problem import Problem

#: The angle up to which a range that rounding has moved still tells what is perpendicular to it.
CLEAR = 1e-3

#: The least ρ of a direction of length one that is told from zero: that of rounding is about u⁴.
VANISHING = 1e-80

#: How often a point is taken closer to zero until f is proved to be negative there.
ATTEMPTS = 20

#: Bytes of rows that enter a QR factorisation at a time.
PIECE = 1 << 26


def quotient(form: Form) -> Quotient:
    """Return the quotient of the whole space by the kernel of ρ; raise where the rank cannot be told.

    Parameters
    ----------
    form : TermForm
        With rows that may be in memory, and few enough unknowns to factor.
    """
    if not (isinstance(form, TermForm) and form.reducible):
        found = form.deficiency() or DeficientError("ρ is not positive definite")
        raise DeficientError(f"{found}; its kernel is looked for in rows in memory, with few unknowns, alone")
    rows = form.real_rows()
    largest = np.asarray(abs(rows).max(axis=0).todense()).ravel() if sp.issparse(rows) else np.abs(rows).max(axis=0)
    seen = np.flatnonzero(largest)
    if not seen.size:
        raise DeficientError("ρ is zero: there is no term that is not; add terms")
    _, powers = np.frexp(largest[seen])
    with blas_threads(float(rows.shape[0]) * form.dim**2):
        upper = _triangle(rows, seen, powers)
        _, more = np.frexp(np.linalg.norm(upper, axis=0))
        sizes, directions = scipy.linalg.svd(np.ldexp(upper, -more), full_matrices=False)[1:]
        powers = powers + more
        rank = int((sizes > 2.0 * U * seen.size * sizes[0]).sum())
        if rank == form.dim:
            raise DeficientError(_unclear(sizes))
        if rank == seen.size:
            kept = rows[:, seen]
            return Quotient(form, StackedForm(kept, form.rank), seen, powers, None, 0.0)
        basis = np.ascontiguousarray(directions[:rank].T)
        reduced = np.concatenate([piece @ basis for piece in _pieces(rows, seen, powers)])
    angle = 2.0 * U * max(rows.shape) * float(sizes[0] / sizes[rank - 1])
    if angle > CLEAR:
        raise DeficientError(_unclear(sizes))
    return Quotient(form, StackedForm(reduced, form.rank), seen, powers, basis, angle)


def _unclear(sizes: np.ndarray) -> str:
    return (
        f"ρ is not positive definite to rounding, and its rank cannot be told: singular values of {sizes.size} "
        f"columns fall to {sizes[-1] / sizes[0]:.1e} of the largest without a clear step; drop columns or add terms"
    )


def _pieces(rows: Any, seen: np.ndarray, powers: np.ndarray) -> Iterator[np.ndarray]:
    """Give the columns that some term sees in pieces of rows, divided by powers of two, dense."""
    step = max(1, PIECE // (8 * rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        piece = rows[start : start + step]
        dense = piece.toarray() if sp.issparse(piece) else piece
        yield np.ldexp(dense[:, seen].astype(np.float64, copy=False), -powers)


def _triangle(rows: Any, seen: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Return R of a QR factorisation of such columns, which has their singular values."""
    upper = np.empty((0, seen.size))
    for piece in _pieces(rows, seen, powers):
        upper = scipy.linalg.qr(np.concatenate([upper, piece]), mode="r", overwrite_a=True, check_finite=False)[0]
        upper = upper[: seen.size]
    return upper


class Quotient:
    """Coordinates z with x = Ez, in which ρ is definite.

    Attributes
    ----------
    form : Form
        ρ(Ez).
    rank, dim : int
        Of ρ, and of the whole space.
    exact : bool
        Whether the kernel is that of coordinates which no term sees, so that nothing is rounded.
    angle : float
        How well the range of E is known; 0 where it is exact.
    """

    def __init__(
        self,
        whole: Form,
        form: Form,
        seen: np.ndarray,
        powers: np.ndarray,
        basis: np.ndarray | None,
        angle: float,
    ) -> None:
        self.form = form if whole.scale == 1.0 else form.scaled(whole.scale)
        self.rank, self.dim, self.exact, self.angle = form.dim, whole.dim, basis is None, angle
        self._seen, self._powers, self._basis = seen, powers, basis

    def point(self, z: np.ndarray) -> np.ndarray:
        """Return x = Ez, flat."""
        x = np.zeros(self.dim)
        x[self._seen] = z if self._basis is None else np.ldexp(self._basis @ z, -self._powers)
        return x

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Return z with ρ(Ez) = ρ(x), to rounding."""
        seen = x[self._seen]
        return seen if self._basis is None else np.ldexp(seen, self._powers) @ self._basis

    def linear(self, c: np.ndarray) -> np.ndarray:
        """Return Eᵀc."""
        seen = c[self._seen]
        return seen if self._basis is None else np.ldexp(seen, -self._powers) @ self._basis

    def unseen(self, c: np.ndarray) -> np.ndarray | None:
        """Return c at the coordinates that no term sees, a direction with ρ = 0, exactly; None where c is 0 there."""
        part = c.copy()
        part[self._seen] = 0.0
        return part / np.abs(part).max() if part.any() else None

    def outside(self, c: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the share of c in the kernel, which may be rounding up to ``angle``, and that part as a direction.

        Of the coordinates that some term sees; lengths are those in units in which columns are of length one.
        """
        direction = np.zeros(self.dim)
        if self._basis is None:
            return 0.0, direction
        mantissas, exponents = np.frexp(c[self._seen])
        exponents = exponents - self._powers
        scaled = np.ldexp(mantissas, exponents - exponents[mantissas != 0.0].max())
        rest = scaled - self._basis @ (self._basis.T @ scaled)
        rest -= self._basis @ (self._basis.T @ rest)
        direction[self._seen] = np.ldexp(rest, self._powers.min() - self._powers)
        return float(np.linalg.norm(rest) / np.linalg.norm(scaled)), direction

    def words(self) -> str:
        """Say what was decided, for messages."""
        if self.exact:
            return f"no term sees {self.dim - self.rank} of {self.dim} coordinates"
        return f"ρ has numerical rank {self.rank} of {self.dim}"


def falling(problem: Problem, direction: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a point on the ray of a direction in which ρ vanishes to rounding, and a number that is at least f there.

    Proved, as far as the form's products are: f* is at most that number.
    """
    scaled = problem.normalised()
    direction = direction / np.abs(direction).max()
    rho, inner = scaled.problem.form.value(direction), scaled.problem.inner(direction)
    scale = scaled.x_scale * scaled.problem.best_scale(max(rho, VANISHING), inner)
    for _ in range(ATTEMPTS):
        value = value_at(problem, scale * direction)
        if value < 0.0:
            return scale * direction, value
        scale *= 0.1  # ρ was smaller by luck than what can be proved of it
    return direction, math.inf
