"""Do the kernels on sparse rows say what plain NumPy says of the same rows, dense?"""

import numpy as np
import pytest
import scipy.sparse as sp

from quartbench.kernels import sparse as kernels
from quartbench.kernels.jit import shares

from . import plain


def draw(terms, columns, rank, index, dtype=np.float64):
    """Return CSR parts with empty rows inside their terms, the same rows dense, and points."""
    rng = np.random.default_rng([terms, columns, rank])
    dense = rng.standard_normal((terms * rank, columns)) * (rng.random((terms * rank, columns)) < 0.3)
    dense[rank - 1 :: rank, 0] = 1.0  # no term is empty, though most of its rows may be
    if rank > 1:
        dense[:: 2 * rank] = 0.0
    dense = dense.astype(dtype)
    matrix = sp.csr_matrix(dense)
    parts = matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)
    return parts, dense, rng.standard_normal(columns), rng.standard_normal(columns), rng.standard_normal(terms * rank)


CASES = [(shape, np.int32, np.float64) for shape in plain.SHAPES[:-2]]
CASES += [((50, 33, 3), np.int64, np.float64), ((13, 17, 5), np.int32, np.float32), ((17, 4, 1), np.int32, np.float32)]


@pytest.mark.parametrize(("shape", "index", "dtype"), CASES)
def test_serial_kernels_agree_with_numpy(shape, index, dtype):
    _, columns, rank = shape
    csr, dense, x, v, w = draw(*shape, index, dtype)
    image = dense @ x
    plain.close(kernels.image(*csr, x), image)
    plain.close(kernels.adjoint(*csr, columns, w), dense.T.astype(float) @ w)
    value, gradient, image_too = kernels.evaluate(*csr, columns, rank, x)
    plain.close(value, plain.value(dense, rank, x))
    plain.close(gradient, plain.gradient(dense, rank, x))
    plain.close(image_too, image)
    product = plain.hessian_product(dense, rank, x, v)
    filled = np.full(image.size, np.nan)
    plain.close(kernels.hessian_product(*csr, columns, rank, x, filled, False, v), product)
    plain.close(filled, image)
    plain.close(kernels.hessian_product(*csr, columns, rank, np.zeros_like(x), image, True, v), product)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize(("shape", "index", "dtype"), CASES)
def test_parallel_kernels_agree_with_serial_ones(shape, index, dtype, parts, threads):
    terms, columns, rank = shape
    csr, dense, x, v, w = draw(*shape, index, dtype)
    bounds = shares(terms, parts)
    squares = kernels.column_squares(*csr, columns, w)
    plain.close(squares, w @ dense.astype(float) ** 2)
    plain.close(kernels.column_squares_parallel(*csr, columns, w, bounds * rank), squares)
    plain.close(kernels.image_parallel(*csr, x, bounds * rank), kernels.image(*csr, x))
    plain.close(kernels.adjoint_parallel(*csr, columns, w, bounds * rank), kernels.adjoint(*csr, columns, w))
    for found, wanted in zip(
        kernels.evaluate_parallel(*csr, columns, rank, x, bounds),
        kernels.evaluate(*csr, columns, rank, x),
        strict=True,
    ):
        plain.close(found, wanted)
    image = kernels.image(*csr, x)
    product = kernels.hessian_product(*csr, columns, rank, x, image, True, v)
    filled = np.full(image.size, np.nan)
    plain.close(kernels.hessian_product_parallel(*csr, columns, rank, x, filled, False, v, bounds), product)
    plain.close(filled, image)
    plain.close(kernels.hessian_product_parallel(*csr, columns, rank, x, image, True, v, bounds), product)
