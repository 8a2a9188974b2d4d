"""Forms that are a sum of squared terms, ρ(x) = Σᵢ ⟨x,Bᵢx⟩² with Bᵢ = UᵢUᵢᵀ ⪰ 0, seen through the rows M = (Uᵢᵀ).

A kind needs ``_image`` (Mx) and ``_adjoint`` (Mᵀw). Everything else has a default here that is right and slow, through
products or the rows that products give; a kind overrides what it can do better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError, any_array, real_array, unknown_name
from quartbench.kernels import images, misfit
from quartbench.kernels.exact import cubic_weights, dual_power, quartic
from quartbench.linalg.known import U, finite, length
from quartbench.metrics import Bounds, Cholesky, Metric
from quartbench.runtime.blas import blas_threads

from . import duality, leverage
from .base import MODERATE, Form
from .blocks import block_count, gram_of_blocks, mirrored, mixed
from .coarse import SAMPLE as COARSE
from .coarse import coarse
from .epigraph import Epigraph, of_terms
from .plain import PlainForm, ProductsPlain
from .proof import ROUNDS, SAMPLE, Factor, Iterated, factor_of_rows
from .sampling import Proving, picks, sampled
from .trusted import Products

#: Unknowns up to which B⁽⁰⁾ is formed and factored without being asked for: from rows, and where rows come one product
#: for each column.
DENSE_DIMENSION, PRODUCT_DIMENSION = 6000, 1000

#: Unknowns up to which squares of columns are exact where a column is a product; beyond, a sketch of so many products.
EXACT_COLUMNS, SKETCH = 1000, 32

#: Columns whose lengths differ by so much are in different units: chosen well above what a sketch makes of equal
#: lengths, and not tuned.
UNEVEN = 16.0

#: Bytes of rows that are kept once products have given them; beyond, they are made anew each time.
KEPT_BYTES = 1 << 29

#: Passes that a factor of B⁽⁰⁾ may cost for a certificate, which has a factor of its own already.
DEAR = 30.0

#: Unknowns up to which a sharp proof costs no more than a coarse one.
FEW = 60

#: In which a factor of B(τ) may be asked for.
PRECISIONS = ("double", "single")

#: BLAS-3 computes so many times faster than memory is read: a factor of dense rows costs n/FACTOR passes.
FACTOR = 20.0


class TermForm(Form):
    """A sum of squared terms.

    Attributes
    ----------
    columns : int
        The columns of the rows where leverage is computed: n, or N for rows on ℂᴺ.
    row_dtype : dtype
        The type of the rows there: real, or complex for rows on ℂᴺ.
    leverage_rank : int
        The rank of a term there: 1 on the vertices of a graph and in ℂᴺ (errata 5 of the documentation).
    freedom : int
        What leverage scores add up to: n, on a graph N − 1, in ℂᴺ N.
    in_columns : bool
        Whether products with many columns at once cost less than one after another.
    refines_hessian : bool
        Whether a factor of the Hessian's weights on the way, as ``auto`` makes it, is worth its cost.
    reads_terms : bool
        Whether the rows of some terms can be read without the others.
    resident : bool
        Whether all rows may be in memory at once.
    has_edges : bool
        Whether the terms are the edges of a graph, whose traces are effective resistances.
    fuses_misfit : bool
        Whether value, gradient and image of a misfit take one read of the rows, and not one for image and one for
        gradient.

    Examples
    --------
    >>> class Slopes(qb.TermForm):
    ...     '''Differences of neighbours on a line, and the first entry.'''
    ...
    ...     def __init__(self, n):
    ...         super().__init__()
    ...         self.dim = self.terms = n
    ...         self.rank, self.shape = 1, (n,)
    ...
    ...     def _image(self, x):
    ...         return np.diff(x, prepend=0.0)
    ...
    ...     def _adjoint(self, weights):
    ...         return weights - np.append(weights[1:], 0.0)
    >>> Slopes(3).value([1.0, 3.0, 3.0])
    17.0
    >>> qb.solve(qb.Problem(Slopes(3), [0.0, 0.0, 4.0])).x.round(3)
    array([1., 2., 3.])
    """

    row_dtype = np.dtype(np.float64)
    in_columns = False
    refines_hessian = True
    reads_terms = False
    resident = True
    has_edges = False
    fuses_misfit = False

    # Hooks ------------------------------------------------------------------------------------------------------------

    def _adjoint(self, weights: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _evaluate(self, x):
        self._read()  # rows are read for the image and again for the gradient
        image = self._image(x)
        weights = np.empty_like(image)
        value = images.gradient_weights(image, self.rank, weights)
        return value, self._adjoint(weights), image

    def _hessian_product(self, x, image, v):
        self._read(1 if image is not None else 2)
        image = self._image(x) if image is None else image
        return self._adjoint(self.hessian_weights(image, self._image(v)))

    def _evaluate_misfit(self, x: np.ndarray, d: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        self._read()
        image = self._image(x)
        weights = np.empty_like(image)
        value = misfit.gradient_weights(image, self.rank, d, omega, weights)
        return value, self._adjoint(weights), image

    def _misfit_product(
        self, image: np.ndarray, alpha: np.ndarray, beta: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        self._read()
        direction = self._image(v)
        weights = np.empty_like(direction)
        misfit.product_weights(image, direction, self.rank, alpha, beta, weights)
        return self._adjoint(weights), direction

    # Points and images ------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> int:
        """The columns of the rows where leverage is computed."""
        return self.dim

    @property
    def leverage_rank(self) -> int:
        """The rank of a term where leverage is computed."""
        return self.rank

    @property
    def freedom(self) -> int:
        """What leverage scores add up to."""
        return self.dim

    @property
    def magnitude(self) -> float:
        """The size of the largest entries: by default of those that one product with random signs suggests."""
        if "magnitude" not in self._kept:
            signs = np.random.default_rng(0).choice([-1.0, 1.0], self.dim)
            self._kept["magnitude"] = float(np.abs(self._image(signs)).max()) / np.sqrt(self.dim) or 1.0
        return self.scale * self._kept["magnitude"]

    def _stacked(self, image: Any, name: str = "image") -> np.ndarray:
        """Return an image as a flat, C-ordered float64 vector; kernels do not check lengths."""
        length = self.terms * self.rank
        if type(image) is np.ndarray and image.dtype == np.float64 and image.shape == (length,):
            return image if image.flags.carray else image.copy()
        array = any_array(image, name)
        if array.size != length or array.dtype.kind not in "fiub":
            raise ProblemError(f"{name} must be {length} real numbers, found shape {array.shape} ({array.dtype})")
        return np.require(array, np.float64, "CAW").reshape(-1)

    def adjoint(self, weights: np.ndarray) -> np.ndarray:
        """Return Mᵀw = Σ Uᵢwᵢ as a flat vector. One pass."""
        self._read()
        return self._scaled(self._adjoint(self._stacked(weights, "weights")))

    def hessian_product_from_image(self, image, v):
        """Return ρ''(x)v from the image of x, in the shape of v. One pass."""
        return super().hessian_product_from_image(self._stacked(image), v)

    def value_from_image(self, image):
        """Return ρ from the image of a point. No pass."""
        return images.value(self._stacked(image), self.rank)

    def gradient_from_image(self, image):
        """Return ∇ρ, flat, from the image of a point. One pass."""
        return self.adjoint(self.gradient_weights(image))

    def line_from_images(self, image, direction):
        """Return the five coefficients of t ↦ ρ(x + t d) from the images of x and d. No pass."""
        return images.line(self._stacked(image), self._stacked(direction, "direction"), self.rank)

    def line_behind(self, at, ahead, before, theta, out=None):
        """Return the image of y and the coefficients of t ↦ ρ(x + t(y − x)); the image is written to ``out``."""
        image = np.empty_like(at) if out is None else out
        return image, images.line_behind(at, ahead, before, theta, self.rank, image)

    def gradient_weights(self, image: np.ndarray) -> np.ndarray:
        """Return wᵢ = 4‖sᵢ‖²sᵢ, of which ∇ρ is the adjoint: the dual point of x. No pass."""
        image = self._stacked(image)
        weights = np.empty_like(image)
        images.gradient_weights(image, self.rank, weights)
        return weights

    def hessian_weights(self, image: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return wᵢ = 4‖sᵢ‖²tᵢ + 8⟨sᵢ,tᵢ⟩sᵢ, of which ρ''(x)v is the adjoint, t the image of v. No pass."""
        weights = np.empty_like(image)
        images.hessian_weights(image, direction, self.rank, weights)
        return weights

    def newton_weights(self, image, ahead):
        """Return the weights of ∇ρ(x) + ρ''(x)(z − x), the dual point of Newton's step from x to z. No pass.

        As ρ''(x)x = 3∇ρ(x), they are those of ρ''(x)z − 2∇ρ(x).
        """
        return self.hessian_weights(image, ahead) - 2.0 * self.gradient_weights(image)

    def term_squares(self, image: np.ndarray) -> np.ndarray:
        """Return qᵢ = ‖sᵢ‖² for every term. No pass."""
        return images.square_norms(self._stacked(image), self.rank)

    def dual_value(self, weights: np.ndarray) -> float:
        """Return Σᵢ 3(‖λᵢ‖/4)^{4/3}, the conjugate of Σ‖sᵢ‖⁴ at weights λ. No pass."""
        return images.dual_value(weights, self.rank)

    def weighted_image(self, tau: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Return τᵢsᵢ for every term. No pass."""
        return np.repeat(tau, self.rank) * image

    def spread(self, metric: Metric, w: np.ndarray) -> np.ndarray:
        """Return λ = τᵢUᵢᵀB⁻¹w, of which w is the adjoint, in a metric B(τ). One pass, none where it keeps a sample."""
        z = metric.solve(w)
        if metric.sample is None:
            return self.weighted_image(metric.tau, self.image(z))
        picked, image = metric.sample
        weights = np.zeros((self.terms, self.rank))
        weights[picked] = metric.tau[picked, None] * image(self._scaled(z)).reshape(-1, self.rank)
        return weights.reshape(-1)

    def uniform_weights(self, p: float = 2.0) -> np.ndarray:
        """Return τ⁽⁰⁾, equal weights with ‖τ‖_q = 1."""
        return np.full(self.terms, float(self.terms) ** (1.0 / p - 1.0))

    def zero_terms(self) -> np.ndarray:
        """Return the numbers of the terms that are zero, which weigh nothing. One pass, the first time."""
        if "zero terms" not in self._kept:
            rank, found = self.leverage_rank, np.zeros(self.terms, dtype=bool)
            for start, part in self.row_blocks():
                found[start // rank : (start + len(part)) // rank] = ~part.reshape(-1, rank * part.shape[1]).any(axis=1)
            self._kept["zero terms"] = np.flatnonzero(found)
        return self._kept["zero terms"]

    def require_weights(self, tau: object) -> np.ndarray:
        """Return τ as an array of m positive numbers, zero at most for terms that are, or say what is wrong with it."""
        array = real_array(tau, "tau", 1)
        weightless = np.flatnonzero(~(array > 0))
        if array.size != self.terms or (
            weightless.size and not (array[weightless] == 0).all() & np.isin(weightless, self.zero_terms()).all()
        ):
            raise ProblemError(
                f"tau must be {self.terms} positive numbers, one per term, found {array.size} numbers, "
                f"the smallest {array.min() if array.size else 'missing'}"
            )
        return array

    # Misfits qᵢ − dᵢ of data, whose squares inverse problems add up with weights ω; flat vectors, unchecked -----------

    def evaluate_misfit(self, x: np.ndarray, d: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return F = Σ ωᵢ(qᵢ − dᵢ)², its gradient and the image of x. One pass where a kind fuses them, else two."""
        self._read()
        value, gradient, image = self._evaluate_misfit(self._scaled(x), d, omega)
        return value, self._scaled(gradient), image

    def misfit_from_image(self, image: np.ndarray, d: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """Return F and its gradient from an image. One pass."""
        weights = np.empty_like(image)
        value = misfit.gradient_weights(image, self.rank, d, omega, weights)
        return value, self.adjoint(weights)

    def misfit_product(
        self, image: np.ndarray, alpha: np.ndarray, beta: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return Mᵀ(αᵢtᵢ + βᵢ⟨sᵢ,tᵢ⟩sᵢ) and t, the image of v. One pass where a kind fuses them, else two.

        Where a pass is so cheap that sums of images would take longer, t is None.

        With β = 8ω this is F''(x)v for α = 4ω(q − d), and the product with Gauss and Newton's matrix for α = 0.
        """
        self._read()
        product, direction = self._misfit_product(image, alpha, beta, self._scaled(v))
        return self._scaled(product), direction

    def misfit_line(self, image: np.ndarray, direction: np.ndarray, d: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """Return the five coefficients of t ↦ F(x + t v) from the images of x and v. No pass."""
        return misfit.line(image, direction, self.rank, d, omega)

    def misfit_line_to(self, image: np.ndarray, ahead: np.ndarray, d: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """Return the five coefficients of t ↦ F(x + t(y − x)) from the images of x and y. No pass."""
        return misfit.line_to(image, ahead, self.rank, d, omega)

    def misfit_factor_cost(self) -> float:
        """Return the passes that a factor of such a matrix costs; infinite where a kind has none."""
        return math.inf

    def misfit_factor(self, image: np.ndarray, alpha: np.ndarray, beta: np.ndarray, shift: float) -> Any:
        """Return a factor, with ``solve``, of the matrix of ``misfit_product`` plus ``shift`` times its mean diagonal.

        None where the matrix is not definite.
        """
        raise NotImplementedError

    # Many columns at once ---------------------------------------------------------------------------------------------

    def image_columns(self, x: np.ndarray) -> np.ndarray:
        """Return MX for X of n rows, as an array of m·r rows. One pass for each column."""
        return np.stack([self.image(np.ascontiguousarray(column)) for column in x.T], axis=1)

    def adjoint_columns(self, weights: np.ndarray) -> np.ndarray:
        """Return MᵀW for W of m·r rows. One pass for each column."""
        return np.stack([self.adjoint(np.ascontiguousarray(column)) for column in weights.T], axis=1)

    # Rows, unscaled ---------------------------------------------------------------------------------------------------

    def row_blocks(self, dense: bool = True) -> Iterator[tuple[int, Any]]:
        """Give the rows in blocks of whole terms, (first row, block), unscaled; a block may be overwritten. One pass.

        By default from products with unit vectors: one for each column where the rows can be kept, else one for each
        row. ``dense=False`` allows blocks of sparse rows.
        """
        step = block_count(self.columns, self.leverage_rank, self.row_dtype)
        count = self.terms * self.rank
        if 8 * count * self.dim <= KEPT_BYTES:
            if "rows" not in self._kept:
                self._read(self.dim)
                self._kept["rows"] = np.stack([self._image(unit) for unit in np.eye(self.dim)], axis=1)
            self._read()
            for start in range(0, count, step):
                yield start, self._kept["rows"][start : start + step].copy()
            return
        for start in range(0, count, step):
            stop = min(start + step, count)
            self._read(stop - start)
            unit = np.zeros(count)
            block = np.empty((stop - start, self.dim))
            for row in range(start, stop):
                unit[row] = 1.0
                block[row - start] = self._adjoint(unit)
                unit[row] = 0.0
            yield start, block

    def real_rows(self) -> np.ndarray | sp.csr_matrix:
        """Return M as a real matrix of m·r rows on flat points, dense or sparse, unscaled. One pass."""
        return np.concatenate([block for _, block in self.row_blocks()])

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """Return Σₖ wₖMₖⱼ² for every coordinate j of flat points. One pass where a kind has rows.

        By default exact for few unknowns; beyond, E(Mᵀ(√w·g))² over random signs g, right to a quarter or so, which is
        all that a diagonal preconditioner needs.
        """
        if self.dim <= EXACT_COLUMNS:
            return self.scale**2 * sum(
                np.einsum("i,ij,ij->j", weights[start : start + len(block)], block, block)
                for start, block in self.row_blocks()
            )
        rng, roots = np.random.default_rng(0), np.sqrt(weights)
        total = np.zeros(self.dim)
        for _ in range(SKETCH):
            total += self.adjoint(roots * rng.choice([-1.0, 1.0], roots.size)) ** 2
        return total / SKETCH

    def gram_diagonal(self) -> np.ndarray:
        """Return the diagonal of ΣBᵢ as flat points have it. One pass where a kind has rows, the first time."""
        key = ("gram diagonal", self.scale)
        if key not in self._kept:
            self._kept[key] = self.column_squares(np.ones(self.terms * self.rank))
        return self._kept[key].copy()

    def uneven_columns(self) -> bool:
        """Say whether columns are in units so far apart that the Euclidean norm does not suit them."""
        squares = self.gram_diagonal()
        return float(squares.max()) > UNEVEN**2 * float(squares.min())

    def row_norms(self) -> np.ndarray | None:
        """Return the length of every stacked row, computed once for a form and its twins; None where that is dear."""
        if "row norms" not in self._kept:
            self._kept["row norms"] = self._row_norms()
        norms = self._kept["row norms"]
        return None if norms is None else self.scale * norms

    def _row_norms(self) -> np.ndarray | None:
        if self.dim > EXACT_COLUMNS:
            return None
        return np.concatenate([np.sqrt(np.einsum("ij,ij->i", block, block)) for _, block in self.row_blocks()])

    # B(τ) -------------------------------------------------------------------------------------------------------------

    @property
    def factorable(self) -> bool:
        """Whether it is sensible to factor B⁽⁰⁾ without being asked to."""
        return self.dim <= PRODUCT_DIMENSION

    @property
    def reducible(self) -> bool:
        """Whether the kernel of ρ can be found: from rows in memory, with few unknowns."""
        return self.resident and self.factorable and self.cone.whole

    def factor_cost(self) -> float:
        """Return the passes that a factor of B(τ) costs: here one product for each column, and the factor itself."""
        return self.dim + self.dim**2 / (3.0 * FACTOR * self.terms * self.rank)

    def solve_cost(self) -> float:
        """Return the passes that a solve with such a factor costs."""
        return self.dim / (self.terms * self.rank)

    def gram_work(self) -> float:
        """Return the multiplications of a Gram matrix with its factor: what decides how many threads BLAS gets."""
        return 0.5 * self.terms * self.leverage_rank * self.columns**2 + self.columns**3 / 3.0

    def weighted_gram(self, tau: np.ndarray, single: bool = False) -> np.ndarray:
        """Return B(τ) = Σ τᵢBᵢ as a dense symmetric (or Hermitian) matrix. O(mrn²) (errata 14 of the documentation).

        In single precision, where asked for, BLAS takes half the time, and the upper triangle is left empty.
        """
        weights = self.scale * np.sqrt(np.repeat(np.asarray(tau, dtype=np.float64), self.leverage_rank))
        gram = gram_of_blocks(self.row_blocks(), weights, self.columns, self.row_dtype, single)
        return gram if single else mirrored(gram)

    def weighted(self, tau: np.ndarray, precision: str = "double", accuracy: float = 1e-6) -> Metric:
        """Return the metric B(τ), with ``rounding``: how far rounding may move traces that its factor gives.

        Parameters
        ----------
        tau : array of shape (m,)
            Positive.
        precision : {"double", "single"}
            A factor in single precision takes half the time and is all that a preconditioner needs. Where columns are
            too nearly collinear for it or out of its range, the factor is in double precision all the same.
        accuracy : float
            The relative error of traces from which on QR of the rows replaces Cholesky of their Gram matrix.
        """
        tau = self.require_weights(tau)
        if precision not in PRECISIONS:
            raise unknown_name("precision", precision, PRECISIONS)
        with blas_threads(self.gram_work()):
            if precision == "single" and MODERATE[0] <= self.magnitude <= MODERATE[1]:
                made = Cholesky.in_single(self.weighted_gram(tau, single=True), tau)
                if made is not None:
                    return made
            try:
                made = Cholesky(self.weighted_gram(tau), tau)
            except ProblemError:
                made = None
        if made is not None and made.rounding <= accuracy:
            return made
        roots = self.scale * np.sqrt(np.repeat(tau, self.leverage_rank))

        def blocks():
            return (part * roots[start : start + len(part), None] for start, part in self.row_blocks())

        return Cholesky.from_rows(blocks, self.columns, self.row_dtype, tau)

    def sampled(self, saved: float) -> Metric | None:
        """Return B(τ) with equal weights on a sample of the terms; None where it does not save so many passes."""
        return sampled(self, saved)

    # The terms in the norm of a metric --------------------------------------------------------------------------------

    def traces(self, metric: Metric) -> np.ndarray:
        """Return gᵢ = Tr(B⁻¹Bᵢ) for every term. One sweep."""
        with blas_threads(self.gram_work()):
            return self.scale**2 * leverage.traces(self, metric)

    def spectral_norms(self, metric: Metric) -> np.ndarray:
        """Return λ_max(UᵢᵀB⁻¹Uᵢ) ≤ gᵢ for every term: what Lemma 5.2 (iii) needs. One sweep.

        See errata 13 of the documentation.
        """
        if self.leverage_rank == 1:
            return self.traces(metric)
        return self.scale**2 * leverage.spectral_norms(self, metric)

    def sketched_traces(self, metric: Metric, columns: int, rng: np.random.Generator) -> np.ndarray:
        """Return unbiased estimates of gᵢ from ``columns`` Gaussian vectors; relative variance 2/columns."""
        return self.scale**2 * leverage.sketched_traces(self, metric, columns, rng)

    def whitened_blocks(self, metric: Metric) -> Iterator[tuple[int, np.ndarray]]:
        """Give the rows through the factor B = FFᴴ of a metric, (F⁻¹Uᵢ)ᵀ, as (first row, block), unscaled. One pass."""
        for start, part in self.row_blocks():
            yield start, metric.half_solve(part.T, overwrite=True).T

    def sketches(self) -> bool:
        """Say whether leverage is sketched unless asked otherwise, as there is no sensible factor."""
        return False

    def bounds(self, metric: Metric) -> Bounds | None:
        """Return α and β in the norm of B(τ) or of a diagonal metric; None for others."""
        return leverage.bounds(self, metric)

    def largest(self, weights: np.ndarray, metric: Metric) -> float | None:
        """Return a bound on max ⟨x,B(w)x⟩/⟨x,Bx⟩ that is tight to rounding; None where that is too dear."""
        return leverage.largest(self, weights, metric)

    def smallest(self, metric: Metric, base: Metric) -> float:
        """Return a bound on min ⟨x,B(τ)x⟩/⟨x,Dx⟩ over ‖τ‖₂ for a diagonal metric D and a ``base`` B(τ): one on α."""
        return leverage.smallest(self, metric, base)

    # Certificates -----------------------------------------------------------------------------------------------------

    def dual_bound(self, image, gradient, residual, metric, refine):
        """Return the bound of the dual point 4‖sᵢ‖²sᵢ + τᵢUᵢᵀB⁻¹r."""
        return duality.bound(self, image, residual, metric, refine)

    def rounding_noise(self, x, image, gradient, enough):
        """Return the root sum of squares of the products 4‖sᵢ‖²sᵢ·Uᵢⱼxⱼ, which add up to 4ρ(x).

        A bound with max|xⱼ| for every |xⱼ| needs no pass, and is returned where it is at most ``enough``.
        """
        weights = self.gradient_weights(image)
        largest = float(np.abs(weights).max())
        weights /= largest
        norms = self.row_norms()
        if norms is not None:
            bound = largest * float(np.linalg.norm(weights * norms)) * float(np.abs(x).max())
            if bound <= enough:
                return bound
        # In columns of 1e±80 squares of x alone may leave the range.
        return largest * length(np.sqrt(self.column_squares(weights**2)) * x)

    def known_image(self, x, exact=True):
        """Return Mx with bounds that are taken on trust: see :mod:`.trusted`."""
        return self._trusted().image(x, exact)

    def known_residual(self, c, hi, lo, exact=True):
        """Return c − Mᵀ(hi + lo) with bounds, taken on trust as those of images are."""
        return self._trusted().residual(c, hi, lo, exact)

    def _trusted(self) -> Products:
        """Return what is known of products that say nothing of their rounding; looked at once."""
        if "trusted" not in self._kept:
            plain = self.twin()
            plain.scale = 1.0
            self._kept["trusted"] = Products(plain, plain._written())
        return self._kept["trusted"]

    def _written(self) -> TermForm | None:
        """Return the same with its rows stored, as proofs need them; None where those are too many."""
        if not self.factorable or 8 * self.terms * self.rank * self.dim > KEPT_BYTES:
            return None
        from .stacked import StackedForm

        return StackedForm(self.real_rows(), self.rank)

    def known_value(self, image):
        """Return a number that is at least Σ‖sᵢ‖⁴."""
        return quartic(*image, self.rank)

    def dual_start(self, image):
        """Return 4‖sᵢ‖²sᵢ."""
        return cubic_weights(image.hi, image.lo, self.rank)

    def dual_size(self, hi, lo):
        """Return a number that is at least (Σ‖λᵢ‖^{4/3})^{3/4} (Hölder)."""
        power = dual_power(hi, lo, self.rank)
        root = math.sqrt(power) if power < math.inf else math.inf
        return finite(root * math.sqrt(root) * (1.0 + 8.0 * U))

    def correcting(self, precision: str = "double") -> Metric | None:
        """Return a metric to correct dual points with: B⁽⁰⁾, or that of the proof where it costs less; else None."""
        if not self.factorable:
            return None
        made = self.proving() if self.factor_cost() > DEAR else None
        return made or self.weighted(self.uniform_weights(), precision)

    def proving(self) -> Metric | None:
        """Return the metric of the proof's own factor, to correct dual points that are almost feasible; or None."""
        proof = self.proof() if self.factorable and self.row_dtype.kind != "c" else None
        return Proving(proof, self.terms, self.scale) if proof is not None and proof.factored else None

    def _proof(self):
        if not self.factorable:
            return Iterated(self)
        choices = picks(self, SAMPLE)
        # A sample that misses a direction fails at once; rows that are nearly dependent take more than one attempt.
        return self._resting(choices, lambda rows: self._sharp(rows, 0)) or self._resting(choices, self._sharp)

    def _coarse_proof(self):
        if not (self.factorable and self.dim > FEW):
            return None
        return self._resting(picks(self, COARSE)[:1], lambda rows: coarse(rows, self.rank, self.terms))

    def _resting(self, choices: list[np.ndarray | None], prove: Callable[[Any], Any]) -> Any:
        """Return the first proof that some choice of terms gives."""
        for picked in choices:
            found = prove(self.term_rows(picked))
            if found is not None:
                found.picked = picked
                return found
        return None

    def _sharp(self, rows: Any, rounds: int = ROUNDS) -> Factor | None:
        """Return the sharp proof from the rows of some terms."""
        return factor_of_rows(rows.toarray() if sp.issparse(rows) else rows, self.rank, self.terms, rounds)

    def term_rows(self, picked: np.ndarray | None) -> Any:
        """Return the real rows of some terms, dense or sparse, unscaled; of all for None."""
        rows = self.real_rows()
        return rows if picked is None else rows[(picked[:, None] * self.rank + np.arange(self.rank)).reshape(-1)]

    # Others -----------------------------------------------------------------------------------------------------------

    def plain(self) -> PlainForm:
        """Return ρ through its products."""
        return ProductsPlain(self)

    def epigraph(self, theta: float) -> Epigraph:
        """Return ρ = Σtᵢ² with ‖Uᵢᵀx‖² ≤ tᵢ, in units where Uᵢᵀx is of size θ."""
        return of_terms(self.real_rows(), self.terms, self.scale, theta)

    def mixed_blocks(self, image: np.ndarray) -> Iterator[np.ndarray]:
        """Give Wᵢ^½Uᵢᵀ of the terms in blocks of real rows, of which ρ''(x) is the Gram matrix. One pass."""
        s = image.reshape(-1, self.rank)
        for start, part in self.row_blocks():
            first = start // self.rank
            yield mixed(part, s[first : first + len(part) // self.rank], self.scale)
