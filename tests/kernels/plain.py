"""The forms written down once more in plain NumPy, as plainly as possible: what kernels must agree with."""

import numpy as np

SHAPES = [  # (terms, columns, rank): one of each, odd remainders of the blocks of 8 rows, blocks of one term
    (1, 1, 1),
    (1, 7, 1),
    (3, 1, 1),
    (7, 6, 1),
    (8, 8, 1),
    (17, 4, 1),
    (200, 21, 1),
    (1, 5, 2),
    (5, 3, 2),
    (9, 10, 3),
    (50, 33, 3),
    (6, 9, 4),
    (13, 17, 5),
    (20, 2100, 1),
    (3, 2050, 11),
]


def close(found, wanted, precision=1e-12):
    """Assert that two results agree to ``precision`` of the largest entry."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=precision, atol=precision * np.abs(wanted).max(initial=0.0))


def identical(found, wanted):
    """Assert that two results (arrays, numbers or tuples of them) agree bit for bit."""
    if not isinstance(found, tuple):
        found, wanted = (found,), (wanted,)
    for one, other in zip(found, wanted, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def blocks(rows, rank):
    """Return the terms Uᵢᵀ, each of shape (rank, n)."""
    return np.asarray(rows, dtype=float).reshape(-1, rank, rows.shape[1])


def value(rows, rank, x):
    return sum(np.linalg.norm(u @ x) ** 4 for u in blocks(rows, rank))


def gradient(rows, rank, x):
    """4 Σ ⟨x,Bᵢx⟩Bᵢx, with each Bᵢ formed where that is small."""
    total = np.zeros(rows.shape[1])
    for u in blocks(rows, rank):
        total += 4.0 * (u @ x @ (u @ x)) * (u.T @ (u @ x))
    return total


def hessian_product(rows, rank, x, v):
    """Σ (4⟨x,Bᵢx⟩Bᵢ + 8Bᵢxxᵀ Bᵢ)v."""
    total = np.zeros(rows.shape[1])
    for u in blocks(rows, rank):
        bx, bv = u.T @ (u @ x), u.T @ (u @ v)
        total += 4.0 * (x @ bx) * bv + 8.0 * bx * (bx @ v)
    return total


def line(rows, rank, x, d):
    """The five coefficients, as sums of squares of the polynomials ⟨x+td, Bᵢ(x+td)⟩."""
    total = np.zeros(5)
    for u in blocks(rows, rank):
        s, w = u @ x, u @ d
        quadratic = np.array([s @ s, 2.0 * s @ w, w @ w])
        total += np.convolve(quadratic, quadratic)
    return total


def incidence(points, edges):
    """Return the (m, N) matrix with +1 at the head and −1 at the tail of each edge."""
    matrix = np.zeros((len(edges), points))
    matrix[np.arange(len(edges)), edges[:, 0]] = 1.0
    matrix[np.arange(len(edges)), edges[:, 1]] = -1.0
    return matrix


def edge_rows(points, d, edges):
    """Return the stacked rows of a graph's terms, (m·d, N·d)."""
    return np.kron(incidence(points, edges), np.eye(d))


def embedding(rows):
    """Return complex rows as the stacked real rows of rank-2 terms on interleaved points: (re, im) of qᴴx."""
    m, n = rows.shape
    real = np.empty((m, 2, n, 2))
    real[:, 0, :, 0], real[:, 0, :, 1] = rows.real, rows.imag
    real[:, 1, :, 0], real[:, 1, :, 1] = -rows.imag, rows.real
    return real.reshape(2 * m, 2 * n)
