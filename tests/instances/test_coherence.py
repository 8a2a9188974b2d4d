import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from quartbench.errors import ProblemError
from quartbench.instances import coherent, coherent_scores
from quartbench.instances.coherence import KINDS

from .common import leverage


@pytest.fixture(autouse=True, scope="module")
def _one_blas_thread():
    """OpenBLAS's threads spin: on a busy machine two of them take ten times as long on matrices of this size."""
    with threadpool_limits(1, user_api="blas"):
        yield


kinds = pytest.mark.parametrize("kind", ["givens", "generic"])


@kinds
@pytest.mark.parametrize("gamma", [20 / 500, 0.041, 0.3, 0.999, 1 - 1e-9, 1.0])
def test_leverage_and_singular_values_are_exact(kind, gamma):
    rows = coherent(500, 20, gamma, cond=100, seed=2, kind=kind).form.rows
    np.testing.assert_allclose(np.sort(leverage(rows)), coherent_scores(500, 20, gamma), rtol=0, atol=1e-10)
    sigma = np.linalg.svd(rows, compute_uv=False)
    np.testing.assert_allclose(sigma, np.geomspace(1.0, 0.01, 20), rtol=0, atol=1e-10)


@kinds
@pytest.mark.parametrize(("m", "n"), [(20_000, 50), (5000, 100)])
def test_large_matrices_are_exact_too(kind, m, n):
    rows = coherent(m, n, 0.98, kind=kind).form.rows
    gram = rows.T @ rows
    found = np.einsum("ij,ij->i", rows, np.linalg.solve(gram, rows.T).T)
    np.testing.assert_allclose(np.sort(found), coherent_scores(m, n, 0.98), rtol=0, atol=1e-10)
    sigma = np.sqrt(np.linalg.eigvalsh(gram))[::-1]
    np.testing.assert_allclose(sigma, np.geomspace(1.0, 0.01, n), rtol=0, atol=1e-10)


@kinds
@given(data=st.data())
def test_every_small_shape_is_exact(kind, data):
    n = data.draw(st.integers(1, 8), label="n")
    m = n + data.draw(st.integers(0, 8), label="m - n")
    share = data.draw(st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9, 1.0]), label="share of the way to 1")
    gamma = min(n / m + share * (1.0 - n / m), 1.0)
    if m > n == 1:
        gamma = min(gamma, 1 - 1e-5)
    basis = KINDS[kind](coherent_scores(m, n, gamma), np.random.default_rng(0))
    np.testing.assert_allclose(basis.T @ basis, np.eye(n), atol=1e-12)
    np.testing.assert_allclose((basis**2).sum(axis=1), coherent_scores(m, n, gamma), rtol=0, atol=1e-11)


@kinds
@pytest.mark.parametrize("peaks", [1, 3, 15])
def test_as_many_rows_as_asked_for_are_peaks(kind, peaks):
    scores = leverage(coherent(200, 20, 0.9, kind=kind, peaks=peaks).form.rows)
    assert (np.abs(scores - 0.9) < 1e-10).sum() == peaks
    assert (scores < 0.2).sum() == 200 - peaks


@kinds
@pytest.mark.parametrize(("m", "n", "gamma"), [(500, 2, 1.0), (30, 29, 1.0), (300, 1, 1 - 1e-5), (7, 7, 1.0)])
def test_no_row_is_zero(kind, m, n, gamma):
    assert np.abs(coherent(m, n, gamma, kind=kind).form.rows).max(axis=1).min() > 0.0


@kinds
def test_the_condition_number_is_exact(kind):
    for cond in (1.0, 7.0, 1e6):
        sigma = np.linalg.svd(coherent(60, 9, 0.8, cond=cond, kind=kind).form.rows, compute_uv=False)
        np.testing.assert_allclose([sigma[0], sigma[-1] * cond], 1.0, rtol=1e-9)


def _directions(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    unit *= np.sign(unit[:, :1])
    return len(np.unique(np.round(unit, 8), axis=0))


def test_givens_rows_have_few_directions_and_generic_rows_all():
    assert _directions(coherent(200, 6, 0.5, cond=3, kind="givens").form.rows) <= 11
    assert _directions(coherent(200, 6, 0.5, cond=3, kind="generic").form.rows) == 200


def test_peaks_do_not_always_come_last():
    places = {int(np.argmax(leverage(coherent(30, 4, 0.9, seed=seed).form.rows))) for seed in range(8)}
    assert len(places) > 4


def test_scores_sum_to_n_and_are_ascending_and_positive():
    for m, n, gamma, peaks in [(500, 20, 0.04, 1), (500, 20, 1.0, 19), (9, 9, 1.0, 1), (8, 2, 0.25, 8), (3, 1, 0.5, 1)]:
        scores = coherent_scores(m, n, gamma, peaks)
        assert scores.min() > 0.0
        assert (np.diff(scores) >= -1e-15).all()
        np.testing.assert_allclose(scores.sum(), n, rtol=1e-13)
        np.testing.assert_allclose(scores[-peaks:], gamma, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.1}, r"gamma must lie in \[n/m, 1\] = \[0.25, 1\], found 0.1"),
        ({"gamma": 1.01}, r"gamma must lie in \[n/m, 1\] = \[0.25, 1\], found 1.01"),
        ({"gamma": "high"}, "gamma must be a real number, found 'high'"),
        ({"cond": 0.5}, r"cond must lie in \[1, 100000000\], found 0.5"),
        ({"kind": "given"}, r"unknown kind 'given'; did you mean 'givens'\?"),
        ({"peaks": 0}, "peaks must be at least 1, found 0"),
        ({"peaks": 10, "gamma": 1.0}, r"peaks·gamma must be below n = 10 .*no other row is zero; found 10·1"),
        ({"peaks": 40, "gamma": 0.3}, "gamma must be n/m = 0.25 when all 40 rows are peaks, found 0.3"),
        ({"m": 9}, "m must be at least 10"),
        ({"n": 1, "gamma": 1.0}, "peaks·gamma must be below n = 1"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ProblemError, match=message):
        coherent(**{"m": 40, "n": 10, "gamma": 0.5, **change})
