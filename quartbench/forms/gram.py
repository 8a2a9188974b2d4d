"""ρ(X) = ‖XᵀX‖²_F: the quartic part of symmetric NMF, through r × r matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from quartbench.errors import ProblemError, any_array, whole_number
from quartbench.kernels import gram, images
from quartbench.kernels.exact import add, norm_upper
from quartbench.kernels.exact import image as image_kernel
from quartbench.linalg.known import Known, U, exactly
from quartbench.metrics import Bounds

from .base import Form, register_form
from .epigraph import Epigraph
from .plain import GramPlain


@register_form("gram")
class GramForm(Form):
    """ρ(X) = ‖XᵀX‖²_F = ‖XXᵀ‖²_F, X of n × r: the quartic part of symmetric NMF, with κ = √r in the Euclidean norm.

    It is not a sum of squares ⟨x,Bᵢx⟩² with Bᵢ ⪰ 0, so its image is X itself and a line costs O(nr²). No metric is
    better than the Euclidean one: ρ(QXR) = ρ(X) for orthogonal Q and R, and the average of a metric over these maps is
    a multiple of I with no larger κ.

    Parameters
    ----------
    n, r : int
        The shape of X.

    Examples
    --------
    >>> form = qb.GramForm(3, 2)
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> form.value(X)
    17.0
    """

    rigorous = True

    def __init__(self, n: int, r: int) -> None:
        super().__init__()
        self.shape = (whole_number(n, "n"), whole_number(r, "r"))
        self.dim = self.shape[0] * self.shape[1]
        self.terms, self.rank = self.shape[1] ** 2, self.shape[1]

    def _matrix(self, image, name: str = "image") -> np.ndarray:
        """Return an image as a matrix; kernels do not check lengths."""
        array = any_array(image, name)
        if array.size != self.dim or array.dtype.kind not in "fiub":
            raise ProblemError(f"{name} must be {self.dim} real numbers, found shape {array.shape} ({array.dtype})")
        return np.require(array, np.float64, "CAW").reshape(self.shape)

    def _image(self, x):
        return x.copy()

    def _evaluate(self, x):
        value, gradient = gram.evaluate(x.reshape(self.shape))
        return value, gradient.reshape(-1), x.copy()

    def _hessian_product(self, x, image, v):
        point = self._matrix(image) if x is None else x.reshape(self.shape)
        return gram.hessian_product(point, v.reshape(self.shape)).reshape(-1)

    def value_from_image(self, image):
        """Return ρ from the image of a point."""
        return gram.value(self._matrix(image))

    def gradient_from_image(self, image):
        """Return ∇ρ, flat, from the image of a point. One pass."""
        self._read()
        return self._scaled(gram.evaluate(self._matrix(image))[1].reshape(-1))

    def line_from_images(self, image, direction):
        """Return the five coefficients of t ↦ ρ(X + tD) from X and D, through r × r products."""
        return gram.line(self._matrix(image), self._matrix(direction, "direction"))

    def line_behind(self, at, ahead, before, theta, out=None):
        """Return the image of y and the coefficients of t ↦ ρ(x + t(y − x)); the image is written to ``out``."""
        image = np.empty_like(at) if out is None else out
        images.behind(ahead, before, theta, image)
        return image, tuple(self.line_from_images(at, image - at).tolist())

    def dense_hessian(self, x, image):
        """Return 4(I ⊗ XᵀX + XXᵀ ⊗ I + K), K[(i,a),(j,b)] = XᵢᵦXⱼₐ. One pass."""
        self.require_dense()
        self._read()
        (points, rank), scaled = self.shape, self._matrix(image)
        out = np.einsum("ib,ja->iajb", scaled, scaled)
        each, columns = np.arange(points), np.arange(rank)
        out[each, :, each, :] += scaled.T @ scaled
        out[:, columns, :, columns] += scaled @ scaled.T
        return np.asfortranarray((4.0 * self.scale**2 * out).reshape(self.dim, self.dim))

    def bounds(self, metric):
        """Return 1/√r and 1 in the Euclidean norm: κ = √r (paper §2.1, example 3); None in others."""
        return Bounds(self.scale**2 / np.sqrt(self.shape[1]), self.scale**2) if metric.euclidean else None

    def dual_bound(self, image, gradient, residual, metric, refine):
        """Return the conjugate of the singular values: ρ is the fourth power of the Schatten 4-norm."""
        dual = (gradient + residual) / self.scale
        singular = scipy.linalg.svdvals(self.native(dual))
        return -3.0 * float(((singular / 4.0) ** (4.0 / 3.0)).sum()), dual

    def known_image(self, x, exact=True):
        """Return X itself, exactly."""
        return exactly(x)

    def known_residual(self, c, hi, lo, exact=True):
        """Return c − (hi + lo), with bounds."""
        found = add(*add(c, np.zeros_like(c), -hi), -lo)
        return Known(*found, 8.0 * U * U * (np.abs(c) + np.abs(hi)))

    def known_value(self, image):
        """Return a number that is at least ‖XᵀX‖²_F, from XᵀX in twice the precision."""
        columns = np.ascontiguousarray(image.hi.reshape(self.shape).T)
        unknown = np.ascontiguousarray((np.abs(image.lo) + image.error).reshape(self.shape).T)
        # |(X + E)ᵀ(X + E) − XᵀX| ≤ |X|ᵀE + Eᵀ|X| + EᵀE, summed with n roundings.
        cross = np.abs(columns) @ unknown.T
        spread = (cross + cross.T + unknown @ unknown.T) * (1.0 + 4.0 * (self.shape[0] + 4.0) * U)
        entries = [image_kernel(columns, column.copy()) for column in columns]
        squares = sum(
            float(((np.abs(hi + lo) + error + more) ** 2).sum())
            for (hi, lo, error), more in zip(entries, spread, strict=True)
        )
        return squares * (1.0 + (4.0 * self.shape[1] ** 2 + 24.0) * U)

    def dual_start(self, image):
        """Return ∇ρ itself: the map from dual points is the identity."""
        x = image.hi.reshape(self.shape)
        gradient = 4.0 * (x @ (x.T @ x)).reshape(-1)
        return gradient, np.zeros_like(gradient)

    def dual_size(self, hi, lo):
        """Return a number that is at least the Schatten 4/3-norm, which is dual to ρ^{1/4}.

        LAPACK's singular values are those of a matrix within some p(n, r)·u of V: 16(n + r)u‖V‖_F is ample.
        """
        matrix = (hi + lo).reshape(self.shape)
        slack = (16.0 * sum(self.shape) + 4.0) * U * float(np.linalg.norm(matrix))
        singular = scipy.linalg.svdvals(matrix) + slack
        return float((singular ** (4.0 / 3.0)).sum() ** 0.75) * (1.0 + (2.0 * singular.size + 64.0) * U)

    def _proof(self):
        return Frobenius(min(self.shape))

    def plain(self):
        """Return ρ by BLAS."""
        return GramPlain(self, self.shape)

    def epigraph(self, theta):
        """Return ρ = ‖T‖²_F with T = Σ Tₖ and [[Tₖ, xₖ], [xₖᵀ, 1]] ⪰ 0, xₖ the rows of X.

        That is XᵀX ⪯ T in cones of size r + 1; triangles carry √2 off the diagonal.
        """
        points, r = self.shape
        n, size = self.dim, r * (r + 1) // 2
        block = (r + 1) * (r + 2) // 2
        k, entries = np.arange(points), np.arange(size)
        # The upper triangle is stacked column by column: T, then the last column (x, 1).
        of_t = (block * k[:, None] + entries).reshape(-1)
        of_x = (block * k[:, None] + size + np.arange(r)).reshape(-1)
        sums = points * block + entries
        values = (
            np.full(n, -np.sqrt(2.0) * self.scale / theta),
            np.full(points * size, -1.0),
            np.ones(points * size),
            np.full(size, -1.0),
        )
        rows = (of_x, of_t, np.tile(sums, points), sums)
        columns = (np.arange(n), *[n + np.arange(points * size)] * 2, n + points * size + entries)
        shape = (points * block + size, n + points * size + size)
        matrix = sp.coo_matrix(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape
        ).tocsc()
        offset = np.zeros(shape[0])
        offset[block * (k + 1) - 1] = 1.0
        weights = np.repeat([0.0, theta**4], [points * size, size])
        return Epigraph(matrix, offset, weights, [*[("semidefinite", r + 1)] * points, ("zero", size)])

    def arrays(self):
        """Return n and r."""
        return {"size": np.array(self.shape)}

    @classmethod
    def from_arrays(cls, arrays):
        """Return the form of the size that a file kept."""
        return cls(*arrays["size"])


class Frobenius:
    """N(w) ≤ r^{1/4}‖w‖_F, as the Schatten 4/3-norm of rank r is."""

    proved = True
    factored = False
    unit = None

    def __init__(self, rank: int) -> None:
        self._constant = rank**0.25 * (1.0 + 8.0 * U)

    def norm(self, w: Known) -> float:
        """Return a number that is at least N of every w within its bounds."""
        return self._constant * norm_upper(*w)

    def correction(self, w: np.ndarray, image: object = None) -> np.ndarray:
        """Return w: the map from dual points is the identity."""
        return w
