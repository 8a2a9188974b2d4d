"""Lewis weights from samples of the terms: what is drawn, what is certified, and what it costs."""

import numpy as np
import pytest
import scipy.sparse as sp

import quartbench as qb
from quartbench.errors import ProblemError
from quartbench.precondition.methods import SAMPLED_ROWS, SAMPLED_SWEEPS, _drawn, _first_scores
from quartbench.precondition.sweeps import Sweeps

FORMS = {
    "even": qb.instances.spectrum(3000, 60, sigma_min=0.05, seed=0).form,
    "coherent": qb.instances.coherent(3000, 60, gamma=0.99, kind="generic", seed=0).form,
    "heavy-tailed": qb.instances.heavy_tailed(3000, 60, df=1.0, seed=0).form,
    "rank 3": qb.instances.blocks(1500, 60, 3, seed=0).form,
    "sparse": qb.StackedForm(sp.csr_matrix(qb.instances.sparse(3000, 60, 0.2, seed=0).form.rows)),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_certificate_is_that_of_all_terms_and_near_the_best(name):
    form = FORMS[name]
    found = qb.lewis_weights(form, method="sampled")
    assert found.kappa_bound <= 1.5 * found.best_kappa
    # By hand, from all terms: ‖τ‖ maxᵢ √(gᵢ/τᵢ).
    g = form.traces(form.weighted(found.tau))
    assert found.kappa_bound == pytest.approx(np.linalg.norm(found.tau) * np.sqrt((g / found.tau).max()), rel=1e-6)
    assert found.metric.bounds.kappa <= found.kappa_bound * (1.0 + 1e-9)
    steps = found.history["step"].tolist()
    assert steps == ["sample"] * SAMPLED_SWEEPS + ["certify"]


def test_uniform_weights_would_be_far_worse():
    form = FORMS["heavy-tailed"]
    uniform = qb.metric(form, "uniform").bounds.kappa
    assert qb.lewis_weights(form, method="sampled").kappa_bound < 0.3 * uniform


def test_more_columns_are_nearer_and_seeds_repeat():
    form = FORMS["heavy-tailed"]
    few, many = (qb.lewis_weights(form, method="sampled", sketch=columns) for columns in (8, 200))
    assert many.kappa_bound < few.kappa_bound
    again = qb.lewis_weights(form, method="sampled", sketch=8)
    np.testing.assert_array_equal(few.tau, again.tau)


def test_the_first_scores_do_not_miss_a_row_that_is_alone_in_its_direction():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5000, 20))
    rows[:, 0] = 0.0
    rows[1234, 0] = 1e-3
    sweeps = Sweeps(qb.StackedForm(rows), 2.0, 0.01, 100)
    scores = _first_scores(sweeps, 200.0, 8, rng)
    assert scores[1234] > 0.2  # it is 1, and 8 columns are noisy
    assert 1234 in _drawn(scores, 200.0, rng)[0]
    assert qb.lewis_weights(qb.StackedForm(rows), method="sampled").kappa_bound < 1.5 * 20**0.5


def test_drawn_terms_are_as_likely_as_their_scores_say():
    rng = np.random.default_rng(0)
    scores = np.array([0.0, 0.01, 0.02, 0.97])
    counts = np.zeros(4)
    for _ in range(4000):
        picked, chances = _drawn(scores, 2.0, rng)
        np.testing.assert_allclose(chances, np.minimum(2.0 * scores[picked], 1.0))
        counts[picked] += 1
    np.testing.assert_allclose(counts / 4000, [0.0, 0.02, 0.04, 1.0], atol=0.01)


def test_a_sweep_factors_a_sample_and_not_all_rows(monkeypatch):
    form = FORMS["heavy-tailed"]
    seen = []
    original = type(form).weighted_gram

    def counted(self, tau, single=False):
        seen.append(self.terms)
        return original(self, tau, single)

    monkeypatch.setattr(type(form), "weighted_gram", counted)
    qb.lewis_weights(form, method="sampled")
    assert seen[-1] == form.terms
    assert max(seen[:-1]) <= 1.5 * SAMPLED_ROWS * form.dim


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_units_do_not_matter(scale):
    rows = np.random.default_rng(0).standard_t(2, (1000, 20))
    plain, scaled = (qb.lewis_weights(qb.StackedForm(one), method="sampled") for one in (rows, scale * rows))
    assert scaled.kappa_bound == pytest.approx(plain.kappa_bound, rel=0.1)


def test_forms_without_terms_to_read_are_refused():
    with pytest.raises(ProblemError, match="'sampled' needs real rows that are read term by term, found GraphForm"):
        qb.lewis_weights(qb.instances.geometric(30, 2, degree=5, seed=0).form, method="sampled")
