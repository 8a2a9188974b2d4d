"""Leverage scores of every kind of form agree with their definition, whatever the storage; bad input is named."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, GramForm, StackedForm
from quartbench.instances import barbell, coherent, complex_gaussian, geometric
from quartbench.metrics import Diagonal, Identity
from quartbench.precondition import coherence, leverage, metric

from .plain import stacked_forms, terms_of, traces_of, weights_for


@given(st.data())
def test_leverage_is_what_its_definition_says(data):
    form = data.draw(stacked_forms(spreads=(0.0, 1.0)))
    tau = data.draw(weights_for(form))
    np.testing.assert_allclose(leverage(form, tau), tau * traces_of(form, tau), rtol=1e-6)
    np.testing.assert_allclose(leverage(form), leverage(form, np.full(form.terms, 7.0)), rtol=1e-9)


@pytest.mark.parametrize("form", [complex_gaussian(30, 6).form, barbell(12).form, geometric(40, 2, 6).form], ids=repr)
def test_complex_rows_and_graphs_have_the_leverage_of_their_definition(form):
    tau = np.random.default_rng(0).uniform(0.1, 3.0, form.terms)
    np.testing.assert_allclose(leverage(form, tau), tau * traces_of(form, tau), rtol=1e-9)
    np.testing.assert_allclose(leverage(form.scaled(1e3), tau), leverage(form, tau), rtol=1e-9)


@pytest.mark.parametrize("density", [0.02, 0.3])
@pytest.mark.parametrize("rank", [1, 2])
def test_sparse_rows_have_the_leverage_of_the_same_dense_rows(density, rank):
    rng = np.random.default_rng(0)
    rows = sp.random(400, 40, density, "csr", rng=rng) + sp.csr_matrix(np.tile(np.eye(40), (10, 1)))
    tau = rng.uniform(0.5, 2.0, 400 // rank)
    dense, sparse = StackedForm(rows.toarray(), rank), StackedForm(rows.tocsr(), rank)
    np.testing.assert_allclose(leverage(sparse, tau), leverage(dense, tau), rtol=1e-10)
    np.testing.assert_allclose(sparse.spectral_norms(sparse.weighted(tau)), dense.spectral_norms(dense.weighted(tau)))


def test_single_precision_and_memory_mapped_rows_are_read_as_they_are(tmp_path):
    rows = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    wanted = leverage(StackedForm(rows.astype(np.float64)))
    np.testing.assert_allclose(leverage(StackedForm(rows)), wanted, rtol=1e-12)
    np.testing.assert_allclose(leverage(StackedForm(mapped)), wanted, rtol=1e-12)


@pytest.mark.parametrize("rank", [1, 3])
def test_blocks_of_any_size_give_the_same_scores(monkeypatch, rank):
    rng = np.random.default_rng(0)
    real = StackedForm(rng.standard_normal((60, 5)), rank)
    complex_form = ComplexForm(rng.standard_normal((30, 4)) + 1j * rng.standard_normal((30, 4)))
    wanted = leverage(real), leverage(complex_form), real.spectral_norms(real.weighted(np.ones(real.terms)))
    monkeypatch.setattr("quartbench.forms.blocks.BLOCK_BYTES", 500)
    np.testing.assert_allclose(leverage(real), wanted[0], rtol=1e-12)
    np.testing.assert_allclose(leverage(complex_form), wanted[1], rtol=1e-12)
    np.testing.assert_allclose(real.spectral_norms(real.weighted(np.ones(real.terms))), wanted[2], rtol=1e-12)


@given(st.data())
def test_spectral_norms_are_the_largest_eigenvalues_of_the_whitened_terms(data):
    form = data.draw(stacked_forms(spreads=(0.0,)))
    tau = data.draw(weights_for(form, spread=1.0))
    terms = terms_of(form)
    inverse = np.linalg.inv(np.einsum("i,ijk->jk", tau, terms))
    wanted = np.linalg.eigvals(inverse @ terms).real.max(axis=1)
    np.testing.assert_allclose(form.spectral_norms(form.weighted(tau)), wanted, rtol=1e-6)


def test_diagonal_metrics_whiten_too():
    rng = np.random.default_rng(0)
    form = StackedForm(rng.standard_normal((20, 4)), 2)
    diagonal = rng.uniform(0.5, 2.0, 4)
    wanted = np.einsum("ijj,j->i", terms_of(form), 1 / diagonal)
    np.testing.assert_allclose(form.traces(Diagonal(diagonal)), wanted)
    np.testing.assert_allclose(form.traces(Identity(4)), np.einsum("ijj->i", terms_of(form)))
    graph = barbell(8, dim=2).form
    np.testing.assert_allclose(graph.traces(Identity(16)), 2.0)


def test_coherence_is_what_the_instance_was_made_with():
    for gamma in (0.05, 0.3, 0.999):
        assert coherence(coherent(200, 10, gamma).form) == pytest.approx(gamma, rel=1e-9)
    assert coherence(StackedForm(np.eye(5))) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "form", [coherent(300, 12, 0.5).form, complex_gaussian(100, 8).form, barbell(16).form], ids=repr
)
def test_sketched_traces_are_unbiased_with_the_variance_they_claim(form):
    tau = np.random.default_rng(1).uniform(0.5, 2.0, form.terms)
    metric = form.weighted(tau)
    exact, rng = form.traces(metric), np.random.default_rng(2)
    ratios = np.array([form.sketched_traces(metric, 20, rng) / exact for _ in range(60)])
    variance = 2.0 / 20 if form.dtype.kind == "f" else 1.0 / 20
    assert ratios.mean() == pytest.approx(1.0, abs=0.02)
    assert ratios.var() == pytest.approx(variance, rel=0.25)


def test_sparse_rows_are_sketched_as_they_are():
    rows = np.kron(np.random.default_rng(0).standard_normal((50, 3)), np.eye(2))
    tau = np.ones(50)
    one, two = StackedForm(rows, 2), StackedForm(sp.csr_matrix(rows), 2)
    np.testing.assert_allclose(
        one.sketched_traces(one.weighted(tau), 7, np.random.default_rng(0)),
        two.sketched_traces(two.weighted(tau), 7, np.random.default_rng(0)),
    )


def test_a_sweep_reads_the_rows_twice_and_leaves_them_alone():
    rows = np.random.default_rng(0).standard_normal((40, 5))
    kept, tau = rows.copy(), np.ones(40)
    form = StackedForm(rows)
    leverage(form, tau)
    assert form.passes == 2
    np.testing.assert_array_equal(rows, kept)
    np.testing.assert_array_equal(tau, 1.0)


def test_bad_input_is_named():
    form = StackedForm(np.random.default_rng(0).standard_normal((10, 3)))
    with pytest.raises(ProblemError, match="tau must be 10 positive numbers"):
        leverage(form, np.ones(9))
    with pytest.raises(ProblemError, match=r"tau must be 10 positive numbers.*smallest 0"):
        leverage(form, np.zeros(10))
    with pytest.raises(ProblemError, match="tau must be finite"):
        leverage(form, np.full(10, np.nan))
    with pytest.raises(ProblemError, match="GramForm has no terms"):
        leverage(GramForm(4, 2))
    with pytest.raises(ProblemError, match="its rank is at most m·r = 2"):
        leverage(StackedForm(np.ones((2, 3))))
    for ask in (leverage, lambda rows: metric(rows, "lewis")):
        with pytest.raises(ProblemError, match=r"must be a Form, found ndarray; StackedForm\(rows\) is that of rows"):
            ask(np.eye(3))
