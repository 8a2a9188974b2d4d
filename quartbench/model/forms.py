"""The quartic forms ρ(x) = Σᵢ ⟨x,Bᵢx⟩², Bᵢ = UᵢUᵢᵀ: how each kind stores its terms and reads them once an operation.

A form answers in the shape it was asked in: a point is given in its native shape (a vector, N × d, a complex vector)
or as the flat real vector of length ``dim`` that solvers use. Inputs of another memory order or dtype are copied once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from quartbench.errors import ProblemError, any_array, complex_array, whole_number
from quartbench.kernels import gram, graph, images, rows, sparse
from quartbench.kernels.jit import shares, thread_count, together

from .laplacians import DENSE_VERTICES, Dissection

#: Bytes of rows that an operation may copy at a time.
BLOCK_BYTES = 1 << 25

#: Bytes of weighted rows that enter a Gram matrix at a time: fewer lose BLAS its speed, more leave the caches.
GRAM_BYTES = 1 << 24

#: Edges up to which one thread, which sees each edge once, is as fast as two that gather at vertices.
CACHED_EDGES = 300_000

#: A sparse entry costs about this many dense ones, an edge coordinate likewise: gathers instead of streams.
GATHER_COST = 4


class Form:
    """A convex quartic form; subclasses say how its terms are read.

    Attributes
    ----------
    dim : int
        The real dimension n of a point.
    terms, rank : int
        The number of terms m and the rank r of each.
    shape : tuple of int
        The native shape of a point.
    dtype : numpy.dtype
        The native dtype of a point, float64 or complex128.
    passes : int
        Full reads of the rows so far: the deterministic unit of cost.
    magnitude : float
        The largest entry of the rows in absolute value; problems are normalised by it.
    """

    dim: int
    terms: int
    rank: int
    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.float64)
    magnitude: float = 1.0

    def __init__(self) -> None:
        self.passes = 0
        self._scale = 1.0
        self._bounds: dict[tuple[int, int], np.ndarray] = {}
        #: What was computed once of the rows, whatever their scale; shared by all twins of the form.
        self.known: dict[str, np.ndarray] = {}

    # What a kind of form implements: flat real vectors in and out, scale not applied ----------------------------------

    def _image(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _adjoint(self, weights: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _hessian_product(self, x: np.ndarray | None, image: np.ndarray | None, v: np.ndarray) -> np.ndarray:
        # x, its image, or both are given.
        raise NotImplementedError

    # Points -----------------------------------------------------------------------------------------------------------

    def flat(self, x: Any, name: str = "x") -> np.ndarray:
        """Return a point as a flat, C-ordered real vector of length ``dim`` (a view where possible).

        A read-only point is copied: to Numba it is another type, and kernels would be compiled anew for it.
        """
        if type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 1 and x.size == self.dim:
            return x if x.flags.carray else x.copy()
        array = any_array(x, name)
        if array.shape == self.shape and array.dtype.kind in ("fiubc" if self.dtype.kind == "c" else "fiub"):
            return np.require(array, self.dtype, "CAW").reshape(-1).view(np.float64)
        if array.shape == (self.dim,) and array.dtype.kind in "fiub":
            return np.require(array, np.float64, "CAW")
        raise ProblemError(
            f"{name} must have shape {self.shape} ({self.dtype}) or be flat of length {self.dim}, "
            f"found shape {array.shape} ({array.dtype})"
        )

    def native(self, flat: np.ndarray) -> np.ndarray:
        """Return a flat vector as a point of the native shape (a view)."""
        return flat.view(self.dtype).reshape(self.shape)

    def _like(self, flat: np.ndarray, given: Any) -> np.ndarray:
        array = np.asarray(given)
        return flat if array.shape == (self.dim,) and array.dtype.kind != "c" else self.native(flat)

    @property
    def _image_length(self) -> int:
        return self.terms * self.rank

    def _stacked(self, image: Any, name: str = "image") -> np.ndarray:
        """Return an image as a flat, C-ordered float64 vector; kernels do not check lengths."""
        if type(image) is np.ndarray and image.dtype == np.float64 and image.shape == (self._image_length,):
            return image if image.flags.carray else image.copy()
        array = any_array(image, name)
        if array.size != self._image_length or array.dtype.kind not in "fiub":
            raise ProblemError(
                f"{name} must be {self._image_length} real numbers, found shape {array.shape} ({array.dtype})"
            )
        return np.require(array, np.float64, "CAW").reshape(-1)

    # Operations -------------------------------------------------------------------------------------------------------

    def image(self, x: Any) -> np.ndarray:
        """Return the stacked Mx = (Uᵢᵀx), of length m·r. One pass."""
        self.passes += 1
        return self._image(self._scaled(self.flat(x)))

    def adjoint(self, weights: np.ndarray) -> np.ndarray:
        """Return Mᵀw = Σ Uᵢwᵢ as a flat vector. One pass."""
        self.passes += 1
        return self._scaled(self._adjoint(self._stacked(weights, "weights")))

    def value(self, x: Any) -> float:
        """Return ρ(x). One pass."""
        return self.value_from_image(self.image(x))

    def gradient(self, x: Any) -> np.ndarray:
        """Return ∇ρ(x) = 4 Σ ⟨x,Bᵢx⟩Bᵢx in the shape of x. One pass."""
        return self.evaluate(x)[1]

    def value_and_gradient(self, x: Any) -> tuple[float, np.ndarray]:
        """Return ρ(x) and ∇ρ(x) together, in one pass."""
        return self.evaluate(x)[:2]

    def evaluate(self, x: Any) -> tuple[float, np.ndarray, np.ndarray]:
        """Return ρ(x), ∇ρ(x) and the image Mx together, in one pass."""
        self.passes += 1
        flat = self.flat(x)
        value, gradient, image = self._evaluate(self._scaled(flat))
        gradient = self._scaled(gradient)
        return value, gradient if flat is x else self._like(gradient, x), image

    def evaluate_flat(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return what ``evaluate`` does for a flat, C-ordered float64 vector, unchecked: solvers' loops call this."""
        self.passes += 1
        if self._scale == 1.0:
            return self._evaluate(x)
        value, gradient, image = self._evaluate(self._scale * x)
        return value, self._scale * gradient, image

    def hessian_product(self, x: Any, v: Any) -> np.ndarray:
        """Return ρ''(x)v = Σ (4⟨x,Bᵢx⟩Bᵢ + 8Bᵢxxᵀ Bᵢ)v in the shape of v (ERRATA 2). One pass."""
        self.passes += 1
        product = self._hessian_product(self._scaled(self.flat(x)), None, self._scaled(self.flat(v, "v")))
        return self._like(self._scaled(product), v)

    def line(self, x: Any, d: Any) -> np.ndarray:
        """Return the five coefficients of t ↦ ρ(x + t d), constant first. Two passes; none from images."""
        return self.line_from_images(self.image(x), self.image(d))

    def value_from_image(self, image: np.ndarray) -> float:
        """Return ρ from the image of a point. No pass."""
        return images.value(self._stacked(image), self.rank)

    def gradient_from_image(self, image: np.ndarray) -> np.ndarray:
        """Return ∇ρ, flat, from the image of a point. One pass."""
        image = self._stacked(image)
        weights = np.empty_like(image)
        images.gradient_weights(image, self.rank, weights)
        return self.adjoint(weights)

    def hessian_product_from_image(self, image: np.ndarray, v: Any) -> np.ndarray:
        """Return ρ''(x)v from the image of x, in the shape of v. One pass."""
        self.passes += 1
        v_flat = self._scaled(self.flat(v, "v"))
        return self._like(self._scaled(self._hessian_product(None, self._stacked(image), v_flat)), v)

    def hessian_product_flat(self, x: np.ndarray, image: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ρ''(x)v for flat, C-ordered float64 x and v and the image of x, unchecked: for solvers' loops."""
        self.passes += 1
        if self._scale == 1.0:
            return self._hessian_product(x, image, v)
        return self._scale * self._hessian_product(self._scale * x, image, self._scale * v)

    def line_from_images(self, image: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the five coefficients of t ↦ ρ(x + t d) from the images of x and d. No pass."""
        return images.line(self._stacked(image), self._stacked(direction, "direction"), self.rank)

    def line_behind(
        self, at: np.ndarray, ahead: np.ndarray, before: np.ndarray, theta: float, out: np.ndarray
    ) -> tuple[float, ...]:
        """Write the image of y to ``out`` and return the coefficients of t ↦ ρ(x + t(y − x)). No pass.

        ``at``, ``ahead`` and ``before`` are the images of x, of y + θ(y − before) and of before: images are linear.
        """
        return images.line_behind(at, ahead, before, theta, self.rank, out)

    # The same form at another scale -----------------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """The factor a that this form puts before its stored rows."""
        return self._scale

    def scaled(self, factor: float) -> Form:
        """Return the form with rows ``factor`` times as large: the same storage, its own count of passes."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.passes = 0
        twin._scale = self._scale * factor
        twin.magnitude = self.magnitude * factor
        return twin

    def _scaled(self, vector: np.ndarray) -> np.ndarray:
        return vector if self._scale == 1.0 else self._scale * vector

    # What preconditioning needs ---------------------------------------------------------------------------------------

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """Return Σₖ wₖMₖⱼ² for every coordinate j of flat points, M the stacked rows. One pass."""
        raise ProblemError(f"{type(self).__name__} has no rows")

    def weighted_gram(self, tau: np.ndarray, single: bool = False) -> np.ndarray:
        """Return B(τ) = Σ τᵢBᵢ as a dense symmetric (or Hermitian) matrix. O(mrn²) (ERRATA 14).

        In single precision, where asked for, BLAS takes half the time, and the upper triangle is left empty.
        """
        raise ProblemError(f"{type(self).__name__} has no dense B(τ)")

    def require_definite(self) -> None:
        """Raise where ρ is seen to vanish on more than 0, as far as that costs no more than a few passes."""

    def _together(self, kernel: Callable, *arguments: Any) -> Any:
        return together(kernel, self._work, *arguments)

    def _shares(self, total: int, parts: int) -> np.ndarray:
        key = (total, parts)
        if key not in self._bounds:
            self._bounds[key] = shares(total, parts)
        return self._bounds[key]

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return what ``Problem.save`` writes for this form."""
        raise ProblemError(f"{type(self).__name__} cannot be saved")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.terms}, n={self.dim}, r={self.rank})"


class StackedForm(Form):
    """ρ(x) = Σᵢ ‖Uᵢᵀx‖⁴ with the Uᵢᵀ stacked as rows.

    Parameters
    ----------
    rows : array of shape (m·r, n), scipy.sparse matrix, or numpy.memmap
        Rows i·r to (i+1)·r − 1 are Uᵢᵀ. Dense float64 and float32 arrays in C order and CSR matrices are used as they
        are (sums are in float64 all the same); anything else is copied once.
    rank : int
        The number r of rows of a term.
    """

    def __init__(self, rows: Any, rank: int = 1) -> None:
        super().__init__()
        self.rows = _stacked_rows(rows)
        count, self.dim = self.rows.shape
        rank = whole_number(rank, "rank")
        if count == 0 or self.dim == 0:
            raise ProblemError(f"rows must not be empty, found shape {self.rows.shape}")
        if count % rank:
            raise ProblemError(f"rows must come in blocks of rank={rank}, found {count} rows")
        self.rank = rank
        self.terms = count // self.rank
        self.shape = (self.dim,)
        self.sparse = sp.issparse(self.rows)
        self._work = GATHER_COST * self.rows.nnz if self.sparse else count * self.dim
        self.magnitude = _survey(self.rows, self.rank)

    def _parts(self) -> int:
        return thread_count(self._work, self.terms)

    def _csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.rows.data, self.rows.indices, self.rows.indptr

    def _term_shares(self, parts: int) -> np.ndarray:
        """Return the bounds of each thread's terms: evenly many, or with evenly many stored entries."""
        if not self.sparse:
            return self._shares(self.terms, parts)
        key = (self.terms, parts)
        if key not in self._bounds:
            first = self.rows.indptr[:: self.rank]
            wanted = shares(int(self.rows.nnz), parts)
            bounds = np.searchsorted(first, wanted).astype(np.int64)
            bounds[0], bounds[-1] = 0, self.terms
            self._bounds[key] = bounds
        return self._bounds[key]

    def _image(self, x):
        parts = self._parts()
        if self.sparse:
            if parts == 1:
                return sparse.image(*self._csr(), x)
            return self._together(sparse.image_parallel, *self._csr(), x, self._term_shares(parts) * self.rank)
        if parts == 1:
            return rows.image(self.rows, x)
        return self._together(rows.image_parallel, self.rows, x, self._shares(self.rows.shape[0], parts))

    def _adjoint(self, weights):
        parts = self._parts()
        if self.sparse:
            if parts == 1:
                return sparse.adjoint(*self._csr(), self.dim, weights)
            return self._together(
                sparse.adjoint_parallel, *self._csr(), self.dim, weights, self._term_shares(parts) * self.rank
            )
        if parts == 1:
            return rows.adjoint(self.rows, weights)
        return self._together(rows.adjoint_parallel, self.rows, weights, self._shares(self.rows.shape[0], parts))

    def _evaluate(self, x):
        parts = self._parts()
        if self.sparse:
            if parts == 1:
                return sparse.evaluate(*self._csr(), self.dim, self.rank, x)
            return self._together(
                sparse.evaluate_parallel, *self._csr(), self.dim, self.rank, x, self._term_shares(parts)
            )
        if parts == 1:
            return rows.evaluate(self.rows, self.rank, x)
        return self._together(rows.evaluate_parallel, self.rows, self.rank, x, self._shares(self.terms, parts))

    def _hessian_product(self, x, image, v):
        parts = self._parts()
        known = image is not None
        s, x = (image, v) if known else (np.empty(self.terms * self.rank), x)
        if self.sparse:
            if parts == 1:
                return sparse.hessian_product(*self._csr(), self.dim, self.rank, x, s, known, v)
            bounds = self._term_shares(parts)
            return self._together(
                sparse.hessian_product_parallel, *self._csr(), self.dim, self.rank, x, s, known, v, bounds
            )
        if parts == 1:
            return rows.hessian_product(self.rows, self.rank, x, s, known, v)
        return self._together(
            rows.hessian_product_parallel, self.rows, self.rank, x, s, known, v, self._shares(self.terms, parts)
        )

    def column_squares(self, weights):
        """Return Σₖ wₖMₖⱼ² for every column j."""
        self.passes += 1
        parts = self._parts()
        if not self.sparse:
            sums = _dense_column_squares(self.rows, weights, parts)
        elif parts == 1:
            sums = sparse.column_squares(*self._csr(), self.dim, weights)
        else:
            bounds = self._term_shares(parts) * self.rank
            sums = self._together(sparse.column_squares_parallel, *self._csr(), self.dim, weights, bounds)
        return self._scale**2 * sums

    def weighted_gram(self, tau: np.ndarray, single: bool = False) -> np.ndarray:
        """Return B(τ) = Σ τᵢUᵢUᵢᵀ as a dense matrix, by BLAS-3 on row blocks (CSR: by a sparse product)."""
        self.passes += 1
        weights = self._scale**2 * np.repeat(np.asarray(tau, dtype=np.float64), self.rank)
        if self.sparse:
            gram = (self.rows.T @ self.rows.multiply(weights[:, None]).tocsr()).toarray()
            return np.asfortranarray(np.tril(gram), dtype=np.float32) if single else gram
        if single:
            return blocked_gram(self.rows, np.sqrt(weights), np.float32, scipy.linalg.blas.ssyrk)
        return _mirrored(blocked_gram(self.rows, np.sqrt(weights), np.float64, scipy.linalg.blas.dsyrk))

    def require_definite(self) -> None:
        """Raise where there are fewer rows than columns, or a column of zeros."""
        count = self.rows.shape[0]
        if count < self.dim:
            raise ProblemError(
                f"ρ is not positive definite: its rank is at most m·r = {count}, but n = {self.dim}; "
                "add terms or restrict x"
            )
        used = self._used_columns()
        if not used.all():
            missing = np.flatnonzero(~used)
            raise ProblemError(
                f"ρ is not positive definite: its rank is at most {self.dim - missing.size} of n = {self.dim}; "
                f"no term sees coordinate {int(missing[0])}"
            )

    def _used_columns(self) -> np.ndarray:
        # A column that is nonzero in the first few rows needs no further look: almost always a small read decides.
        if self.sparse:
            return np.bincount(self.rows.indices, minlength=self.dim) > 0
        used = np.zeros(self.dim, dtype=bool)
        start, step = 0, 8
        while start < self.rows.shape[0] and not used.all():
            used |= (self.rows[start : start + step] != 0).any(axis=0)
            start, step = start + step, min(4 * step, max(1, BLOCK_BYTES // (16 * self.rows.itemsize * self.dim)))
        return used

    def _arrays(self):
        if self.sparse:
            data, indices, indptr = self._csr()
            stored = {"data": data, "indices": indices, "indptr": indptr, "columns": np.array(self.dim)}
        else:
            stored = {"rows": self.rows}
        return {**stored, "rank": np.array(self.rank)}


class ComplexForm(Form):
    """ρ(x) = Σᵢ |⟨qᵢ,x⟩|⁴ on ℂᴺ, ⟨q,x⟩ = qᴴx: the quartic part of phase retrieval.

    ℂᴺ counts as a real space of dimension n = 2N with ⟨x,y⟩ = Re(xᴴy); a term has rank 2 and the image (re, im). The
    rows are read as they are, without a real embedding.

    Parameters
    ----------
    rows : complex array of shape (m, N)
        Row i is qᵢ (not its conjugate). Complex128 in C order is used as it is, anything else is copied once.
    """

    dtype = np.dtype(np.complex128)

    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = complex_array(rows, "rows", 2)
        self.terms, points = self.rows.shape
        if self.terms == 0 or points == 0:
            raise ProblemError(f"rows must not be empty, found shape {self.rows.shape}")
        self.dim = 2 * points
        self.rank = 2
        self.shape = (points,)
        self._reals = self.rows.view(np.float64)
        self._work = 2 * self._reals.size
        self.magnitude = _survey(self._reals, 1)

    def _parts(self) -> int:
        return thread_count(self._work, self.terms)

    def _image(self, x):
        parts = self._parts()
        if parts == 1:
            return rows.image_complex(self._reals, x)
        return self._together(rows.image_complex_parallel, self._reals, x, self._shares(self.terms, parts))

    def _adjoint(self, weights):
        parts = self._parts()
        if parts == 1:
            return rows.adjoint_complex(self._reals, weights)
        return self._together(rows.adjoint_complex_parallel, self._reals, weights, self._shares(self.terms, parts))

    def _evaluate(self, x):
        parts = self._parts()
        if parts == 1:
            return rows.evaluate_complex(self._reals, x)
        return self._together(rows.evaluate_complex_parallel, self._reals, x, self._shares(self.terms, parts))

    def _hessian_product(self, x, image, v):
        parts = self._parts()
        known = image is not None
        s, x = (image, v) if known else (np.empty(2 * self.terms), x)
        if parts == 1:
            return rows.hessian_product_complex(self._reals, x, s, known, v)
        return self._together(
            rows.hessian_product_complex_parallel, self._reals, x, s, known, v, self._shares(self.terms, parts)
        )

    def column_squares(self, weights):
        """Return Σₖ wₖMₖⱼ² for the real rows (re, im) and (−im, re) of every measurement."""
        self.passes += 1
        first, second = (
            _dense_column_squares(self._reals, np.ascontiguousarray(part), self._parts())
            for part in weights.reshape(-1, 2).T
        )
        first[0::2] += second[1::2]
        first[1::2] += second[0::2]
        return self._scale**2 * first

    def weighted_gram(self, tau: np.ndarray, single: bool = False) -> np.ndarray:
        """Return the Hermitian B(τ) = Σ τᵢqᵢqᵢᴴ on ℂᴺ."""
        self.passes += 1
        weights = self._scale * np.sqrt(np.asarray(tau, dtype=np.float64))
        if single:
            return blocked_gram(self.rows, weights, np.complex64, scipy.linalg.blas.cherk)
        return _mirrored(blocked_gram(self.rows, weights, np.complex128, scipy.linalg.blas.zherk))

    def require_definite(self) -> None:
        """Raise where there are fewer measurements than unknowns."""
        if self.terms < self.shape[0]:
            raise ProblemError(
                f"ρ is not positive definite: its rank is at most m = {self.terms}, but N = {self.shape[0]}; "
                "add measurements"
            )

    def _arrays(self):
        return {"rows": self.rows}


class GraphForm(Form):
    """ρ(X) = Σ ‖xᵢ − xⱼ‖⁴ over the edges of a connected graph, X of N × d: the quartic part of distance completion.

    Positive definite on the centred subspace {Xᵀ1 = 0} only (ERRATA 5), so its problems use the cone ``Centred``.

    Parameters
    ----------
    points : int
        The number N of vertices.
    dim : int
        The number d of coordinates of a vertex (``form.dim`` is N·d, as for every form).
    edges : integer array of shape (m, 2)
        Each edge once, in either order. Kept as ``form.edges`` with i < j in lexicographic order.
    """

    def __init__(self, points: int, dim: int, edges: Any) -> None:
        super().__init__()
        self.points, self.coordinates = whole_number(points, "points", 2), whole_number(dim, "dim")
        self.edges = _simple_edges(edges, self.points)
        self.heads, self.tails = (np.ascontiguousarray(column) for column in self.edges.T)
        self.dim = self.points * self.coordinates
        self.terms, self.rank = len(self.edges), self.coordinates
        self.shape = (self.points, self.coordinates)
        self._incidence = _incidence(self.heads, self.tails, self.points)
        self._dissection: dict[str, Dissection] = {}  # a dict, as scaled twins share it
        self._work = GATHER_COST * self.terms * self.coordinates

    def _parts(self) -> int:
        return thread_count(self._work, self.points)

    def _gatherers(self, overhead: float = 2.0) -> int:
        """Return how many threads gather at vertices, which takes ``overhead`` times the work: one, unless they gain.

        Two break even where the points do not fit into a core's cache, as the threads then write to their own.
        """
        parts = self._parts()
        return parts if parts > overhead or (parts == overhead and self.terms > CACHED_EDGES) else 1

    def _vertex_shares(self, parts: int) -> np.ndarray:
        """Return bounds of vertices with evenly many incident edges."""
        key = (self.points, parts)
        if key not in self._bounds:
            indptr = self._incidence[0]
            bounds = np.searchsorted(indptr, shares(int(indptr[-1]), parts)).astype(np.int64)
            bounds[0], bounds[-1] = 0, self.points
            self._bounds[key] = bounds
        return self._bounds[key]

    def _image(self, x):
        parts = self._parts()
        if parts == 1:
            return graph.image(self.heads, self.tails, x.reshape(self.shape))
        return self._together(
            graph.image_parallel, self.heads, self.tails, x.reshape(self.shape), self._shares(self.terms, parts)
        )

    def _adjoint(self, weights):
        parts = self._gatherers(overhead=5.0)
        if parts == 1:
            return graph.adjoint(self.heads, self.tails, *self.shape, weights).reshape(-1)
        bounds = self._vertex_shares(parts)
        return self._together(
            graph.adjoint_parallel, self.heads, *self._incidence, self.coordinates, weights, bounds
        ).reshape(-1)

    def _evaluate(self, x):
        parts = self._gatherers()
        point = x.reshape(self.shape)
        if parts == 1:
            value, gradient, image = graph.evaluate(self.heads, self.tails, point)
        else:
            value, gradient, image = self._together(
                graph.evaluate_parallel, *self._incidence, point, self._vertex_shares(parts)
            )
        return value, gradient.reshape(-1), image

    def _hessian_product(self, x, image, v):
        parts = self._gatherers()
        if x is None:
            direction = self._image(v)
            weights = np.empty_like(image)
            images.hessian_weights(image, direction, self.rank, weights)
            return self._adjoint(weights)
        x, v = x.reshape(self.shape), v.reshape(self.shape)
        if parts == 1:
            return graph.hessian_product(self.heads, self.tails, x, v).reshape(-1)
        indptr, neighbours, _ = self._incidence
        return self._together(
            graph.hessian_product_parallel, indptr, neighbours, x, v, self._vertex_shares(parts)
        ).reshape(-1)

    def column_squares(self, weights):
        """Return the sum of the weights of the edges at every vertex, coordinate by coordinate."""
        self.passes += 1
        columns, ends = weights.reshape(self.terms, -1).T, (self.heads, self.tails)
        sums = np.stack([sum(np.bincount(end, column, self.points) for end in ends) for column in columns], axis=1)
        return self._scale**2 * sums.reshape(-1)

    def laplacian(self, tau: np.ndarray | None = None) -> sp.csr_matrix:
        """Return the N × N weighted Laplacian Σ τᵢⱼ(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ (all ones without ``tau``)."""
        weights = self._scale**2 * (np.ones(self.terms) if tau is None else np.asarray(tau, dtype=np.float64))
        return laplacian(self.points, self.edges, weights)

    def dissection(self) -> Dissection | None:
        """Return the order in which Laplacians of this graph are factored (made once); None for small graphs."""
        if self.points <= DENSE_VERTICES:
            return None
        if "structure" not in self._dissection:
            self._dissection["structure"] = Dissection(self.points, self.edges)
        return self._dissection["structure"]

    def _arrays(self):
        return {"points": np.array(self.points), "dim": np.array(self.coordinates), "edges": self.edges}


class GramForm(Form):
    """ρ(X) = ‖XᵀX‖²_F = ‖XXᵀ‖²_F, X of n × r: the quartic part of symmetric NMF, with κ = √r in the Euclidean norm.

    It is not a sum of squares ⟨x,Bᵢx⟩² with Bᵢ ⪰ 0, so its image is X itself and a line costs O(nr²).

    Parameters
    ----------
    n, r : int
        The shape of X.
    """

    def __init__(self, n: int, r: int) -> None:
        super().__init__()
        self.shape = (whole_number(n, "n"), whole_number(r, "r"))
        self.dim = self.shape[0] * self.shape[1]
        self.terms, self.rank = self.shape[1] ** 2, self.shape[1]

    @property
    def _image_length(self) -> int:
        return self.dim

    def _image(self, x):
        return x.copy()

    def _adjoint(self, weights):
        return weights.copy()

    def _evaluate(self, x):
        value, gradient = gram.evaluate(x.reshape(self.shape))
        return value, gradient.reshape(-1), x.copy()

    def _hessian_product(self, x, image, v):
        point = (image if x is None else x).reshape(self.shape)
        return gram.hessian_product(point, v.reshape(self.shape)).reshape(-1)

    def value_from_image(self, image: np.ndarray) -> float:
        """Return ρ from the image of a point."""
        return gram.value(self._stacked(image).reshape(self.shape))

    def gradient_from_image(self, image: np.ndarray) -> np.ndarray:
        """Return ∇ρ, flat, from the image of a point. One pass."""
        return self.adjoint(gram.evaluate(self._stacked(image).reshape(self.shape))[1].reshape(-1))

    def line_from_images(self, image: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the five coefficients of t ↦ ρ(X + tD) from X and D, through r × r products."""
        at, along = self._stacked(image), self._stacked(direction, "direction")
        return gram.line(at.reshape(self.shape), along.reshape(self.shape))

    def line_behind(self, at, ahead, before, theta, out):
        """Write the image of y to ``out`` and return the coefficients of t ↦ ρ(x + t(y − x)). No pass."""
        images.behind(ahead, before, theta, out)
        return tuple(self.line_from_images(at, out - at).tolist())

    def _arrays(self):
        return {"size": np.array(self.shape)}


# Reading what the user gave -------------------------------------------------------------------------------------------


def _stacked_rows(given: Any) -> np.ndarray | sp.csr_matrix:
    if sp.issparse(given):
        if given.dtype.kind == "c":
            raise ProblemError("rows must be real, found complex values; use ComplexForm for complex rows")
        if given.ndim != 2:
            raise ProblemError(f"rows must have 2 dimensions (m·r, n), found shape {given.shape}")
        matrix = given.tocsr()
        if matrix is given and not matrix.has_canonical_format:
            matrix = matrix.copy()
        matrix.sum_duplicates()
        return matrix.astype(np.float64) if matrix.dtype not in (np.float64, np.float32) else matrix
    array = any_array(given, "rows")
    if array.dtype.kind == "c":
        raise ProblemError("rows must be real, found complex values; use ComplexForm for complex rows")
    if array.ndim != 2:
        raise ProblemError(f"rows must have 2 dimensions (m·r, n), found shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ProblemError(f"rows must be an array of numbers, found dtype {array.dtype}")
    dtype = array.dtype if array.dtype in (np.float64, np.float32) else np.float64
    return np.ascontiguousarray(array, dtype=dtype)


def _survey(matrix: np.ndarray | sp.csr_matrix, rank: int) -> float:
    """Return the largest entry; raise at the first NaN, infinity or zero term. One read, in blocks."""
    largest = 0.0
    if sp.issparse(matrix):
        blocks = [(0, np.maximum.reduceat(np.append(np.abs(matrix.data), 0.0), matrix.indptr[:-1]))]
        blocks[0][1][np.diff(matrix.indptr) == 0] = 0.0
    else:
        step = rank * max(1, BLOCK_BYTES // (matrix.itemsize * matrix.shape[1] * rank))
        blocks = (
            (start, np.abs(matrix[start : start + step]).max(axis=1)) for start in range(0, matrix.shape[0], step)
        )
    for start, tops in blocks:
        if not np.isfinite(tops).all():
            row = int(start + np.flatnonzero(~np.isfinite(tops))[0])
            raise ProblemError(f"rows must be finite, found NaN or infinity in row {row}")
        tops = tops.reshape(-1, rank).max(axis=1)
        if not tops.all():
            term = int(start // rank + np.flatnonzero(tops == 0)[0])
            raise ProblemError(f"every term must be nonzero, found only zeros in term {term}; drop it")
        largest = max(largest, float(tops.max()))
    return largest


def blocked_gram(matrix: np.ndarray, weights: np.ndarray, dtype: type, rank_update: Callable) -> np.ndarray:
    """Return the lower triangle of Σ wₖ² rowₖ rowₖᴴ, by BLAS-3 on blocks of rows whose scaled copies share 16 MB."""
    count, n = matrix.shape
    out = np.zeros((n, n), dtype=dtype, order="F")
    step = min(count, max(1, GRAM_BYTES // (np.dtype(dtype).itemsize * n)))
    buffer = np.empty((step, n), dtype=dtype)
    for start in range(0, count, step):
        block = buffer[: min(step, count - start)]
        _scale_rows(matrix[start : start + step], weights[start : start + step], block)
        out = rank_update(1.0, block.T, beta=1.0, c=out, overwrite_c=1, lower=1)
    return out


def _mirrored(lower: np.ndarray) -> np.ndarray:
    """Return the Hermitian matrix of a lower triangle."""
    return np.tril(lower) + np.tril(lower, -1).conj().T


def _dense_column_squares(matrix: np.ndarray, weights: np.ndarray, parts: int) -> np.ndarray:
    if parts == 1:
        return rows.column_squares(matrix, weights)
    return together(rows.column_squares_parallel, matrix.size, matrix, weights, shares(len(matrix), parts))


def _scale_rows(matrix: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write the rows of a real or complex matrix, each times its weight, to ``out``, in the precision of that."""
    if np.iscomplexobj(out):
        matrix, out = matrix.view(np.float64), out.view(np.float32 if out.dtype == np.complex64 else np.float64)
    parts = thread_count(matrix.size, len(matrix))
    if parts == 1:
        rows.scale(matrix, weights, out)
    else:
        together(rows.scale_parallel, matrix.size, matrix, weights, out, shares(len(matrix), parts))


def _simple_edges(given: Any, points: int) -> np.ndarray:
    edges = any_array(given, "edges")
    if edges.ndim != 2 or edges.shape[1] != 2 or len(edges) == 0:
        raise ProblemError(f"edges must have shape (m, 2) with m ≥ 1, found shape {edges.shape}")
    if edges.dtype.kind not in "iu":
        raise ProblemError(f"edges must be integers, found dtype {edges.dtype}")
    outside = (edges < 0) | (edges >= points)
    if outside.any():
        which = int(np.flatnonzero(outside.any(axis=1))[0])
        raise ProblemError(f"edges must join vertices 0 to {points - 1}, found {tuple(map(int, edges[which]))}")
    loops = edges[:, 0] == edges[:, 1]
    if loops.any():
        which = int(np.flatnonzero(loops)[0])
        raise ProblemError(f"edges must join two vertices, found the self-loop {tuple(map(int, edges[which]))}")
    edges = np.sort(edges.astype(np.int64), axis=1)
    unique = np.unique(edges, axis=0)
    if len(unique) != len(edges):
        raise ProblemError(f"edges must be listed once each, found {len(edges) - len(unique)} repeated")
    adjacency = sp.coo_matrix((np.ones(len(unique)), unique.T), shape=(points, points))
    components = connected_components(adjacency, directed=False)[0]
    if components > 1:
        raise ProblemError(f"the graph must be connected, found {components} components: ρ vanishes between them")
    return unique


def _incidence(heads: np.ndarray, tails: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, vertex after vertex, where its edges start, its neighbours and the numbers of the edges to them."""
    ends = np.concatenate([heads, tails])
    order = np.argsort(ends, kind="stable")
    indptr = np.zeros(points + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=points), out=indptr[1:])
    neighbours = np.concatenate([tails, heads])[order]
    incident = np.tile(np.arange(len(heads), dtype=np.int64), 2)[order]
    return indptr, neighbours, incident


def laplacian(points: int, edges: np.ndarray, weights: np.ndarray) -> sp.csr_matrix:
    """Return the weighted graph Laplacian Σ wₑ(eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ as a CSR matrix."""
    heads, tails = edges.T
    matrix = sp.coo_matrix((weights, (heads, tails)), shape=(points, points))
    matrix = (matrix + matrix.T).tocsr()
    return sp.csr_matrix(sp.diags(np.asarray(matrix.sum(axis=1)).ravel()) - matrix)


FORMS = {"stacked": StackedForm, "complex": ComplexForm, "graph": GraphForm, "gram": GramForm}
