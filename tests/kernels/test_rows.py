"""Do the kernels on dense rows, real and complex, say what plain NumPy says?"""

import numpy as np
import pytest

from quartbench.kernels import rows as kernels
from quartbench.kernels.jit import shares

from . import plain


def draw(terms, columns, rank, dtype=np.float64):
    rng = np.random.default_rng([terms, columns, rank])
    rows = (rng.standard_normal((terms * rank, columns)) / np.sqrt(columns)).astype(dtype)
    return rows, rng.standard_normal(columns), rng.standard_normal(columns), rng.standard_normal(terms * rank)


def draw_complex(terms, columns):
    rng = np.random.default_rng([terms, columns])
    rows = rng.standard_normal((terms, columns)) + 1j * rng.standard_normal((terms, columns))
    x, v = rng.standard_normal((2, columns)) + 1j * rng.standard_normal((2, columns))
    return rows / np.sqrt(columns), x, v, rng.standard_normal(2 * terms)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", plain.SHAPES)
def test_serial_kernels_agree_with_numpy(shape, dtype):
    rank = shape[2]
    rows, x, v, w = draw(*shape, dtype)
    wide = rows.astype(float)
    image = wide @ x
    plain.close(kernels.image(rows, x), image)
    plain.close(kernels.adjoint(rows, w), wide.T @ w)
    value, gradient, image_too = kernels.evaluate(rows, rank, x)
    plain.close(value, plain.value(rows, rank, x))
    plain.close(gradient, plain.gradient(rows, rank, x))
    plain.close(image_too, image)
    product = plain.hessian_product(rows, rank, x, v)
    filled = np.full(image.size, np.nan)
    plain.close(kernels.hessian_product(rows, rank, x, filled, False, v), product)
    plain.close(filled, image)
    plain.close(kernels.hessian_product(rows, rank, np.full_like(x, np.nan), image, True, v), product)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", plain.SHAPES)
def test_parallel_kernels_agree_with_serial_ones(shape, dtype, parts, threads):
    terms, _, rank = shape
    rows, x, v, w = draw(*shape, dtype)
    by_term, by_row = shares(terms, parts), shares(terms * rank, parts)
    plain.close(kernels.image_parallel(rows, x, by_row), kernels.image(rows, x))
    plain.close(kernels.adjoint_parallel(rows, w, by_row), kernels.adjoint(rows, w))
    plain.close(kernels.column_squares(rows, w), w @ rows.astype(float) ** 2)
    plain.close(kernels.column_squares_parallel(rows, w, by_row), kernels.column_squares(rows, w))
    for found, wanted in zip(
        kernels.evaluate_parallel(rows, rank, x, by_term), kernels.evaluate(rows, rank, x), strict=True
    ):
        plain.close(found, wanted)
    image = kernels.image(rows, x)
    product = kernels.hessian_product(rows, rank, x, image, True, v)
    filled = np.full(image.size, np.nan)
    plain.close(kernels.hessian_product_parallel(rows, rank, x, filled, False, v, by_term), product)
    plain.close(filled, image)
    plain.close(kernels.hessian_product_parallel(rows, rank, x, image, True, v, by_term), product)


COMPLEX_SHAPES = [(1, 1), (1, 5), (3, 1), (4, 4), (7, 3), (30, 13), (65, 8), (9, 1100)]


@pytest.mark.parametrize("shape", COMPLEX_SHAPES)
def test_serial_complex_kernels_agree_with_numpy(shape):
    rows, x, v, w = draw_complex(*shape)
    reals, flat = rows.view(float), x.view(float)
    s, t = rows.conj() @ x, rows.conj() @ v
    square = np.abs(s) ** 2
    plain.close(kernels.image_complex(reals, flat), s.view(float))
    plain.close(kernels.adjoint_complex(reals, w), (rows.T @ w.view(complex)).view(float))
    value, gradient, image = kernels.evaluate_complex(reals, flat)
    plain.close(value, (square**2).sum())
    plain.close(gradient, (4.0 * rows.T @ (square * s)).view(float))
    plain.close(image, s.view(float))
    product = (rows.T @ (4.0 * square * t + 8.0 * (s.conj() * t).real * s)).view(float)
    filled = np.full(image.size, np.nan)
    plain.close(kernels.hessian_product_complex(reals, flat, filled, False, v.view(float)), product)
    plain.close(filled, image)
    plain.close(kernels.hessian_product_complex(reals, np.zeros_like(flat), image, True, v.view(float)), product)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("shape", COMPLEX_SHAPES)
def test_parallel_complex_kernels_agree_with_serial_ones(shape, parts, threads):
    rows, x, v, w = draw_complex(*shape)
    reals, x, v = rows.view(float), x.view(float), v.view(float)
    bounds = shares(shape[0], parts)
    plain.close(kernels.image_complex_parallel(reals, x, bounds), kernels.image_complex(reals, x))
    plain.close(kernels.adjoint_complex_parallel(reals, w, bounds), kernels.adjoint_complex(reals, w))
    for found, wanted in zip(
        kernels.evaluate_complex_parallel(reals, x, bounds), kernels.evaluate_complex(reals, x), strict=True
    ):
        plain.close(found, wanted)
    image = kernels.image_complex(reals, x)
    product = kernels.hessian_product_complex(reals, x, image, True, v)
    filled = np.full(image.size, np.nan)
    plain.close(kernels.hessian_product_complex_parallel(reals, x, filled, False, v, bounds), product)
    plain.close(filled, image)
    plain.close(kernels.hessian_product_complex_parallel(reals, x, image, True, v, bounds), product)


def test_complex_rows_are_rank_two_terms_of_their_real_embedding():
    rows, x, v, _ = draw_complex(11, 6)
    real, x, v = plain.embedding(rows), x.view(float), v.view(float)
    value, gradient, image = kernels.evaluate_complex(rows.view(float), x)
    plain.close(value, plain.value(real, 2, x))
    plain.close(gradient, plain.gradient(real, 2, x))
    plain.close(image, real @ x)
    product = kernels.hessian_product_complex(rows.view(float), x, image, True, v)
    plain.close(product, plain.hessian_product(real, 2, x, v))


def test_float32_rows_are_summed_in_float64():
    # One large entry and many small ones: float32 sums would lose the small ones altogether.
    rows = np.full((1, 4097), 2.0**-24, dtype=np.float32)
    rows[0, 0] = 1.0
    x = np.ones(4097)
    assert kernels.image(rows, x)[0] == 1.0 + 4096 * 2.0**-24
    assert kernels.evaluate(rows, 1, x)[2][0] == 1.0 + 4096 * 2.0**-24


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_keep_their_meaning(bad):
    rows, x, _, _ = draw(9, 5, 1)
    x[3] = bad
    with np.errstate(invalid="ignore"):  # said where the kernels are not compiled
        value, gradient, image = kernels.evaluate(rows, 1, x)
    assert not np.isfinite(value)
    assert not np.isfinite(gradient).any()
    assert not np.isfinite(image).any()


def test_the_sum_of_all_entries_reads_them_all(threads):
    for shape in [(1, 1), (7, 3), (20, 9), (8, 16)]:
        rows = np.random.default_rng(shape).standard_normal(shape)
        plain.close(kernels.sum_parallel(rows, shares(shape[0], threads)), rows.sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_rows_are_scaled_in_double_precision_and_rounded_once(threads, dtype, precision):
    for shape in [(1, 1), (7, 3), (20, 9), (8, 16)]:
        rng = np.random.default_rng(shape)
        rows, w = rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape[0])
        out = np.empty(shape, dtype=precision)
        for function, bounds in ((kernels.scale, ()), (kernels.scale_parallel, (shares(shape[0], threads),))):
            out.fill(np.nan)
            function(rows, w, out, *bounds)
            np.testing.assert_array_equal(out, (w[:, None] * rows.astype(np.float64)).astype(precision))
