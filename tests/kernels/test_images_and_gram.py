"""Do the kernels on images and on the Gram form say what plain NumPy says?"""

import numpy as np
import pytest

from quartbench.kernels import gram, images

from . import plain


@pytest.mark.parametrize("terms", [1, 6, 33])
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_image_kernels_agree_with_numpy(terms, rank):
    rng = np.random.default_rng([terms, rank])
    s, t = rng.standard_normal((2, terms * rank))
    eye = np.eye(terms * rank)  # rows of the identity: the image of a point is the point
    plain.close(images.value(s, rank), plain.value(eye, rank, s))
    weights = np.full(s.size, np.nan)
    plain.close(images.gradient_weights(s, rank, weights), plain.value(eye, rank, s))
    plain.close(weights, plain.gradient(eye, rank, s))
    weights[:] = np.nan
    images.hessian_weights(s, t, rank, weights)
    plain.close(weights, plain.hessian_product(eye, rank, s, t))
    plain.close(images.line(s, t, rank), plain.line(eye, rank, s, t))
    norms = np.linalg.norm(s.reshape(terms, rank), axis=1)
    plain.close(images.square_norms(s, rank), norms**2)
    plain.close(images.dual_value(s, rank), 3.0 * ((norms / 4.0) ** (4.0 / 3.0)).sum())


@pytest.mark.parametrize("rank", [1, 3])
def test_the_image_behind_an_extrapolation_is_found_again(rank):
    # z = y + θ(y − b) and images are linear, so the image of y follows from those of z and b.
    rng = np.random.default_rng(rank)
    at, y, b = rng.standard_normal((3, 4 * rank))
    ahead = y + 0.7 * (y - b)
    out = np.empty_like(y)
    images.behind(ahead, b, 0.7, out)
    plain.close(out, y)
    out[:] = np.nan
    plain.close(images.line_behind(at, ahead, b, 0.7, rank, out), images.line(at, y - at, rank))
    plain.close(out, y)


@pytest.mark.parametrize("rank", [1, 3])
def test_the_dual_value_is_the_conjugate_of_the_value(rank):
    # sup_s ⟨λ,s⟩ − Σ‖sᵢ‖⁴ is attained where λ = ∇: there the two sides of Fenchel's inequality are equal.
    rng = np.random.default_rng(rank)
    s, other = rng.standard_normal((2, 6 * rank))
    weights = np.empty_like(s)
    value = images.gradient_weights(s, rank, weights)
    plain.close(images.dual_value(weights, rank), weights @ s - value)
    assert images.dual_value(weights, rank) >= weights @ other - images.value(other, rank)


@pytest.mark.parametrize(("n", "r"), [(1, 1), (5, 1), (1, 4), (6, 3), (40, 5)])
def test_gram_kernels_agree_with_numpy(n, r):
    rng = np.random.default_rng([n, r])
    x, v = rng.standard_normal((2, n, r))
    plain.close(gram.value(x), np.linalg.norm(x @ x.T) ** 2)
    value, gradient = gram.evaluate(x)
    plain.close(value, np.linalg.norm(x @ x.T) ** 2)
    plain.close(gradient, 4.0 * x @ x.T @ x)
    plain.close(gram.hessian_product(x, v), 4.0 * (v @ x.T @ x + x @ v.T @ x + x @ x.T @ v))
    steps = np.arange(5.0) - 2.0
    values = [np.linalg.norm((x + t * v).T @ (x + t * v)) ** 2 for t in steps]
    plain.close(np.polynomial.polynomial.polyval(steps, gram.line(x, v)), values)
