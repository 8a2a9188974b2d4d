"""Do conjugate gradients solve, stop where they should, change nothing of the caller's, and know the spectrum?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.linalg.conjugate_gradients import conjugate_gradient_columns, conjugate_gradients, ritz_values

from .plain_gradients import plain_conjugate_gradients


def definite(n, seed=0, condition=1e3):
    """Return a symmetric matrix with eigenvalues between 1 and ``condition``."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return vectors * np.geomspace(1.0, condition, n) @ vectors.T


def products_of(H):
    return lambda p: (H @ p, None)


class Watched:
    """Remembers what it saw, as the automatic solver does."""

    def __init__(self, products):
        self.products, self.begun, self.seen = products, 0, []

    def begin(self):
        self.begun += 1

    def add(self, step, ratio):
        self.seen.append((step, ratio))


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_solves_to_the_share_asked_for(n, seed):
    H, rng = definite(n, seed), np.random.default_rng(seed)
    diagonal = H.diagonal() * rng.uniform(0.5, 2.0, n)
    v = rng.standard_normal(n)
    for share in (1e-2, 1e-9):
        found = conjugate_gradients(products_of(H), v, lambda r: r / diagonal, share=share)
        left = v - H @ found.x
        assert left @ (left / diagonal) <= (1.01 * share) ** 2 * (v @ (v / diagonal))
        np.testing.assert_allclose(found.residual, left, atol=1e-10 * np.abs(v).max())
        assert len(found.steps) == len(found.ratios) >= 1


@pytest.mark.parametrize("share", [0.5, 1e-4, 1e-13])
@pytest.mark.parametrize("known", [True, False])
def test_the_bits_are_those_of_the_textbook(share, known):
    H, v = definite(60), np.random.default_rng(1).standard_normal(60)
    B = definite(60, 2, 10.0)

    def precondition(r):
        return np.linalg.solve(B, r)

    first = precondition(v) if known else None
    found = conjugate_gradients(products_of(H), v, precondition, first=first, share=share, products=200)
    np.testing.assert_array_equal(found.x, plain_conjugate_gradients(H, v, precondition, share, 200))


def test_the_companion_of_the_answer_is_linear_in_it():
    rng = np.random.default_rng(0)
    A, v = rng.standard_normal((80, 20)), rng.standard_normal(20)

    def product(p):
        image = A @ p
        return A.T @ image, image

    for products in (1, 3, 100):
        found = conjugate_gradients(product, v, lambda r: r, products=products)
        np.testing.assert_allclose(found.companion, A @ found.x, rtol=1e-10, atol=1e-12)
    assert conjugate_gradients(product, v, lambda r: r, products=0).companion is None
    assert conjugate_gradients(products_of(A.T @ A), v, lambda r: r).companion is None


def test_nothing_of_the_callers_is_changed():
    """Neither v nor what the product and the preconditioner were given or gave, even where these are one array."""
    H, v = definite(30), np.random.default_rng(0).standard_normal(30)
    kept = []

    def keep(array):
        kept.append((array, array.copy()))
        return array

    def product(p):
        return keep(H @ keep(p)), keep(2.0 * p)

    first = keep(v)
    found = conjugate_gradients(product, keep(v), lambda r: keep(r), first=first)
    assert len(found.steps) > 5
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy)


def test_products_limit_a_run_and_a_watch_limits_it_instead():
    H, v = definite(50, condition=1e6), np.ones(50)
    assert len(conjugate_gradients(products_of(H), v, lambda r: r, products=7).steps) == 7
    watch = Watched(5)
    found = conjugate_gradients(products_of(H), v, lambda r: r, products=7, watch=watch)
    assert (watch.begun, watch.seen) == (1, list(zip(found.steps, found.ratios, strict=True)))
    assert len(watch.seen) == 5


def test_without_descent_the_answer_is_the_preconditioned_right_hand_side():
    watch = Watched(5)
    for v, precondition in ((np.zeros(3), lambda r: r), (np.ones(3), lambda r: -r), (np.ones(3), lambda r: np.nan * r)):
        found = conjugate_gradients(products_of(np.eye(3)), v, precondition, watch=watch)
        np.testing.assert_array_equal(found.x, precondition(v))
        assert found.residual is v
        assert (found.companion, found.steps, found.ratios) == (None, [], [])
    assert watch.begun == 0


def test_a_singular_matrix_gives_what_there_is():
    H = np.diag([4.0, 1.0, 0.0])
    found = conjugate_gradients(products_of(H), np.array([4.0, 1.0, 1.0]), lambda r: r)
    assert np.isfinite(found.x).all()
    assert len(found.steps) < 10
    # Along the null space alone there is no step at all: the direction itself, with its companion.
    v = np.array([0.0, 0.0, 2.0])
    found = conjugate_gradients(lambda p: (H @ p, 3.0 * p), v, lambda r: 0.5 * r)
    np.testing.assert_array_equal(found.x, [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(found.companion, [0.0, 0.0, 3.0])
    assert found.residual is v
    assert found.steps == []


def test_a_consistent_singular_system_is_solved():
    H = np.diag([4.0, 1.0, 0.0])
    found = conjugate_gradients(products_of(H), np.array([4.0, 3.0, 0.0]), lambda r: r)
    np.testing.assert_allclose(found.x, [1.0, 3.0, 0.0], rtol=1e-12)


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_columns_go_as_each_would_alone(n, seed):
    rng = np.random.default_rng(seed)
    H, diagonal = definite(n, seed, condition=20.0), rng.uniform(0.5, 2.0, n)
    V = rng.standard_normal((n, 5)) * [1.0, 1e-8, 1e8, 0.0, 1.0]
    share = np.array([1e-10, 1e-3, 1e-6, 1e-6, 0.5])
    before = V.copy()
    found = conjugate_gradient_columns(lambda P, _: H @ P, V, lambda R: R / diagonal[:, None], share=share)
    np.testing.assert_array_equal(V, before)
    for j in range(5):
        alone = conjugate_gradients(products_of(H), V[:, j], lambda r: r / diagonal, share=share[j])
        # At the threshold, rounding may decide that one of them takes a step more.
        assert np.linalg.norm(found.x[:, j] - alone.x) <= 100.0 * share[j] * np.linalg.norm(alone.x)
        assert abs(len(found.steps[j]) - len(alone.steps)) <= 1
        early = min(4, len(alone.steps), len(found.steps[j]))
        np.testing.assert_allclose(found.steps[j][:early], alone.steps[:early], rtol=1e-6)
        assert len(found.ratios[j]) == len(found.steps[j])


def test_columns_may_have_matrices_of_their_own_and_leave_when_done():
    """The product is told which columns are left, and is given no others."""
    matrices = [definite(20, seed, condition) for seed, condition in enumerate([1.5, 1e4, 30.0])]
    V, sizes = np.random.default_rng(0).standard_normal((20, 3)), []

    def product(P, columns):
        assert P.shape == (20, columns.size)
        sizes.append(columns.tolist())
        return np.stack([matrices[j] @ p for j, p in zip(columns, P.T, strict=True)], axis=1)

    found = conjugate_gradient_columns(product, V, lambda R: R, share=1e-8)
    for j, H in enumerate(matrices):
        np.testing.assert_allclose(H @ found.x[:, j], V[:, j], atol=1e-6)
        assert len(found.steps[j]) == sum(j in columns for columns in sizes)
    assert sizes[0] == [0, 1, 2]
    assert sizes[-1] == [1]


def test_singular_columns_leave_with_what_they_have():
    H = np.diag([4.0, 1.0, 0.0])
    V = np.array([[4.0, 0.0, 4.0], [3.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
    found = conjugate_gradient_columns(lambda P, _: H @ P, V, lambda R: R)
    np.testing.assert_allclose(found.x[:, 0], [1.0, 3.0, 0.0], rtol=1e-12)
    np.testing.assert_array_equal(found.x[:, 1], [0.0, 0.0, 2.0])
    assert np.isfinite(found.x).all()
    assert found.steps[1].size == 0


def test_no_columns_and_no_products_are_no_trouble():
    found = conjugate_gradient_columns(lambda P, _: P, np.ones((3, 0)), lambda R: R)
    assert (found.x.shape, found.steps) == ((3, 0), [])
    found = conjugate_gradient_columns(lambda P, _: P, np.ones((3, 2)), lambda R: R, products=0)
    np.testing.assert_array_equal(found.x, np.zeros((3, 2)))


def test_ritz_values_reach_the_ends_of_the_spectrum():
    H = definite(40, condition=100.0)
    found = conjugate_gradients(products_of(H), np.random.default_rng(0).standard_normal(40), lambda r: r)
    np.testing.assert_allclose(ritz_values(found.steps, found.ratios), (1.0, 100.0), rtol=1e-6)


def test_ritz_values_stay_inside_the_spectrum_of_the_preconditioned_matrix():
    H = definite(30, condition=1e4)
    diagonal = H.diagonal()
    spectrum = np.linalg.eigvalsh(H / np.sqrt(np.outer(diagonal, diagonal)))
    for products in (1, 2, 5, 20):
        run = conjugate_gradients(products_of(H), np.arange(30.0), lambda r: r / diagonal, products=products)
        low, high = ritz_values(run.steps, run.ratios)
        assert spectrum[0] * (1 - 1e-9) <= low <= high <= spectrum[-1] * (1 + 1e-9)
    steps = np.array(run.steps)
    kept = steps.copy()
    ritz_values(steps, np.array(run.ratios))
    np.testing.assert_array_equal(steps, kept)
