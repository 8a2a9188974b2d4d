"""Rows given by their products alone: any ``scipy.sparse.linalg.LinearOperator``, and so those of PyLops too."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from quartbench.errors import DeficientError, ProblemError, whole_number

from .terms import TermForm


class OperatorForm(TermForm):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the rows Uᵢᵀ given as an operator: products and adjoints, nothing else.

    Everything works; what needs the rows themselves (a metric other than identity, leverage, proofs) takes one product
    for each column, up to a thousand columns. What is certified then is certified of these columns, which are taken on
    trust; beyond, products are. Columns may be in any units. A complex operator acts on ℂᴺ: its terms are |(Qx)ᵢ|⁴.

    Parameters
    ----------
    operator : LinearOperator, or what ``scipy.sparse.linalg.aslinearoperator`` takes
        Of shape (m·r, n), with ``matvec`` and ``rmatvec``. Real on real vectors, or complex.
    rank : int
        The number r of rows of a term; of a complex operator 1, as |·| has its own two.

    Examples
    --------
    >>> from scipy.sparse.linalg import LinearOperator
    >>> back = lambda w: np.cumsum(w[::-1])[::-1]
    >>> running = LinearOperator((4, 4), matvec=np.cumsum, rmatvec=back, dtype=float)
    >>> result = qb.solve(qb.Problem(qb.OperatorForm(running), np.ones(4)))
    >>> result.success
    True
    """

    def __init__(self, operator: Any, rank: int = 1) -> None:
        super().__init__()
        try:
            self.operator: LinearOperator = aslinearoperator(operator)
        except (TypeError, ValueError) as error:
            raise ProblemError(f"operator must be a LinearOperator, found {type(operator).__name__}") from error
        rank = whole_number(rank, "rank")
        count, points = self.operator.shape
        if count == 0 or points == 0:
            raise ProblemError(f"operator must not be empty, found shape {self.operator.shape}")
        if count % rank:
            raise ProblemError(f"rows must come in blocks of rank={rank}, found {count} rows")
        self._complex = np.dtype(self.operator.dtype).kind == "c"
        factor = 2 if self._complex else 1
        self.dtype = np.dtype(np.complex128 if self._complex else np.float64)
        self.terms, self.rank = count // rank, factor * rank
        self.shape, self.dim = (points,), factor * points
        self._check()

    def _check(self) -> None:
        """Raise where a product is not finite or not of the right size, or the adjoint is not one."""
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal(self.dim), rng.standard_normal(self.terms * self.rank)
        try:
            image, adjoint = self._image(x), self._adjoint(w)
        except NotImplementedError as error:
            raise ProblemError("operator must have rmatvec, the product with its adjoint: gradients need it") from error
        if not (np.isfinite(image).all() and np.isfinite(adjoint).all()):
            raise ProblemError("operator must give finite products, found NaN or infinity")
        miss, size = abs(image @ w - x @ adjoint), np.linalg.norm(image) * np.linalg.norm(w)
        if miss > 1e-6 * size:
            raise ProblemError(
                f"operator must have the adjoint in rmatvec, found ⟨Mx,w⟩ and ⟨x,Mᵀw⟩ apart by {miss / size:.2g}"
            )

    def _image(self, x):
        return self._flat(self.operator.matvec(x.view(self.dtype)), self.terms * self.rank)

    def _adjoint(self, weights):
        return self._flat(self.operator.rmatvec(weights.view(self.dtype)), self.dim)

    def _flat(self, product: Any, length: int) -> np.ndarray:
        # A copy: a view of the operator's own memory would change with its next product.
        product = np.array(product, dtype=self.dtype, order="C").reshape(-1).view(np.float64)
        if product.size != length:
            raise ProblemError(f"operator must give products of length {length}, found {product.size}")
        return product

    def _check_definite(self) -> None:
        """Raise where there are fewer rows than unknowns."""
        count = self.terms * self.rank
        if count < self.dim:
            raise DeficientError(
                f"ρ is not positive definite: its rank is at most {count}, but n = {self.dim}; add terms or restrict x"
            )

    def arrays(self):
        """Raise: products cannot be kept in a file."""
        raise ProblemError("OperatorForm cannot be saved: its rows are functions; save what makes them")
