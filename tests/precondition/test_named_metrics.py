"""Metrics by name: each is the B it says, its α and β hold at every point, and it knows what it cost."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.cones import Centred, Orthant
from quartbench.errors import ProblemError
from quartbench.forms import GramForm, GraphForm, StackedForm
from quartbench.instances import barbell, blocks, coherent, complex_gaussian, geometric, heavy_tailed, ring, sparse
from quartbench.metrics import Identity
from quartbench.precondition import METRICS, describe, leverage, measured_bounds, measured_kappa, metric
from tests.model import paper_bounds as bounds

from .plain import stacked_forms

FORMS = {
    "coherent": coherent(200, 10, 0.99).form,
    "rank 3": blocks(40, 12, 3).form,
    "complex": complex_gaussian(60, 6).form,
    "sparse": sparse(300, 12, 0.2).form,
    "graph": barbell(20, dim=2).form,
    "gram": GramForm(6, 3),
}


@pytest.fixture(params=FORMS, ids=FORMS.keys())
def form(request):
    return FORMS[request.param]


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_carries_its_name_bounds_and_cost(form, name):
    made = metric(form, name)
    assert made.name == name
    assert made.dim == form.dim
    assert 0 < made.bounds.alpha <= made.bounds.beta
    assert made.bounds is made.bounds
    assert made.setup_seconds >= 0
    assert (made.sweeps > 0) == (name in ("lewis", "diagonal-best") and not isinstance(form, GramForm))
    assert (made.tau is None) == (name in ("identity", "diagonal", "diagonal-best") or isinstance(form, GramForm))


@pytest.mark.parametrize("name", METRICS)
def test_alpha_and_beta_hold_at_random_and_at_extreme_points(form, name):
    made = metric(form, name)
    low, high = made.bounds
    found = measured_bounds(form, made, starts=3, steps=60)
    assert low <= found.alpha * (1 + 1e-9)
    assert found.beta <= high * (1 + 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal(form.dim)
        if isinstance(form, GraphForm):
            x = Centred().bind(form).euclidean(x)
        ratio = np.sqrt(form.value(x)) / made.norm(x) ** 2
        assert low * (1 - 1e-9) <= ratio <= high * (1 + 1e-9)
        assert found.alpha * (1 - 1e-6) <= ratio <= found.beta * (1 + 1e-6)


@given(st.data(), st.sampled_from(["identity", "uniform", "lewis", "diagonal"]))
def test_bounds_hold_on_random_forms(data, name):
    form = data.draw(stacked_forms())
    made = metric(form, name)
    low, high = made.bounds
    x = np.random.default_rng(0).standard_normal((30, form.dim))
    ratios = np.array([np.sqrt(form.value(one)) / made.norm(one) ** 2 for one in x])
    assert (low <= ratios * (1 + 1e-9)).all()
    assert (ratios <= high * (1 + 1e-9)).all()


def test_uniform_is_the_mean_of_the_terms():
    form = FORMS["rank 3"]
    made = metric(form, "uniform")
    wanted = form.rows.T @ form.rows / np.sqrt(form.terms)
    x = np.random.default_rng(0).standard_normal(form.dim)
    np.testing.assert_allclose(made.apply(x), wanted @ x, rtol=1e-12)
    np.testing.assert_allclose(made.tau, form.terms**-0.5)


@pytest.mark.parametrize("name", ["coherent", "rank 3", "complex", "graph"])
def test_diagonal_is_the_diagonal_of_uniform(name):
    form = FORMS[name]
    made, uniform = metric(form, "diagonal"), metric(form, "uniform")
    for j in (0, 3, form.dim - 1):
        unit = np.eye(form.dim)[j]
        value = unit @ uniform.apply(unit)
        if isinstance(form, GraphForm):  # the Laplacian metric adds w̄/N·11ᵀ, which is zero on centred points
            value -= uniform.mean_degree / form.points
        assert made.diagonal[j] == pytest.approx(value, rel=1e-12)
    if not isinstance(form, GraphForm) and form.dtype.kind == "f":
        Orthant().require_metric(made)


def test_diagonal_does_not_care_for_the_units_of_coordinates():
    rows = np.random.default_rng(0).standard_normal((60, 6))
    scale = np.logspace(-6, 6, 6)
    plain, scaled = StackedForm(rows), StackedForm(rows * scale)
    assert metric(scaled, "diagonal").bounds.kappa == pytest.approx(metric(plain, "diagonal").bounds.kappa, rel=1e-8)
    assert metric(scaled, "identity").bounds.kappa > 1e20


def test_spectral_bounds_are_sharper_than_those_of_the_paper():
    form = FORMS["rank 3"]
    identity, uniform, lewis = (metric(form, name).bounds for name in ("identity", "uniform", "lewis"))
    assert identity.kappa < bounds.euclidean(form).kappa
    assert identity.alpha == pytest.approx(bounds.euclidean(form).alpha, rel=1e-6)
    assert uniform.kappa < 0.99 * bounds.uniform(form.terms, leverage(form).max()).kappa
    assert lewis.kappa < 0.99 * bounds.lewis(form.dim).kappa
    graph = FORMS["graph"]
    assert metric(graph, "identity").bounds.kappa < bounds.euclidean(graph).kappa


def test_lewis_is_the_best_of_the_three_where_rows_are_coherent():
    form = FORMS["coherent"]
    identity, uniform, lewis = (metric(form, name).bounds.kappa for name in ("identity", "uniform", "lewis"))
    assert lewis <= 1.01 * np.sqrt(form.dim)
    assert uniform == pytest.approx(np.sqrt(200 * 0.99), rel=0.01)
    assert identity > uniform > lewis


def test_large_graphs_have_true_bounds_without_dense_matrices():
    """N > 1500: eigenvalues by Lanczos, β by the degrees."""
    form = ring(1600, dim=1, neighbours=2).form
    for name in METRICS:
        made = metric(form, name)
        x = np.cos(2 * np.pi * np.arange(1600) / 1600)  # the slowest mode
        ratio = np.sqrt(form.value(x)) / made.norm(x) ** 2
        assert made.bounds.alpha <= ratio <= made.bounds.beta
    assert metric(form, "identity").bounds.alpha == pytest.approx(bounds.graph(form).alpha, rel=1e-6)


def test_options_go_to_the_weights():
    form = FORMS["coherent"]
    assert metric(form, "lewis", eps=1e-8).bounds.kappa <= (1 + 1e-8) * np.sqrt(10)
    assert metric(form, "lewis", method="mm", eps=0.3).sweeps <= metric(form, "lewis", method="mm", eps=1e-6).sweeps


def test_bad_names_and_options_are_named():
    form = FORMS["coherent"]
    with pytest.raises(ProblemError, match="unknown metric 'lewiss'; did you mean 'lewis'"):
        metric(form, "lewiss")
    with pytest.raises(ProblemError, match="metric 'uniform' has no options, found 'eps'"):
        metric(form, "uniform", eps=0.1)
    with pytest.raises(ProblemError, match="metric 'lewis' is for p = 2"):
        metric(form, "lewis", p=1.5)


def test_the_gram_form_has_one_metric_and_its_kappa_is_attained():
    form = GramForm(6, 3)
    for name in METRICS:
        made = metric(form, name)
        assert made.bounds.kappa == pytest.approx(np.sqrt(3))
        assert measured_kappa(form, made) == pytest.approx(np.sqrt(3), rel=1e-6)


@pytest.mark.parametrize("name", ["coherent", "rank 3", "complex", "graph"])
def test_a_description_is_what_the_parts_say(name):
    form = FORMS[name]
    found = describe(form)
    assert (found.terms, found.dim, found.rank) == (form.terms, form.dim, form.rank)
    assert found.coherence == pytest.approx(leverage(form).max())
    assert [one.name for one in found.metrics] == ["identity", "uniform", "lewis"]
    for one in found.metrics:
        assert one.kappa == pytest.approx(metric(form, one.name).bounds.kappa, rel=1e-6)
        assert one.kappa == pytest.approx(one.beta / one.alpha)
        assert one.seconds > 0
    assert [one.sweeps for one in found.metrics][:2] == [0, 1]
    assert found.converged
    assert json.loads(json.dumps(found.as_dict()))["metrics"][2]["name"] == "lewis"
    with pytest.raises(ProblemError, match="GramForm has no terms"):
        describe(GramForm(4, 2))


def test_measured_kappa_is_a_lower_estimate_and_finds_lonely_peaks():
    """ρ = Σxᵢ⁴ attains κ = √n (paper §5.1); on coherent rows the peak carries the maximum."""
    eye = StackedForm(np.eye(9))
    assert measured_kappa(eye, metric(eye, "identity")) == pytest.approx(3.0, rel=1e-6)
    form = coherent(2000, 10, 0.999, kind="generic").form
    uniform = metric(form, "uniform")
    found = measured_bounds(form, uniform, starts=2, steps=50)
    assert 0.99 * uniform.bounds.beta <= found.beta <= uniform.bounds.beta * (1 + 1e-9)


def test_measured_kappa_does_not_move_the_seed_or_the_input():
    form = heavy_tailed(80, 6).form
    made = metric(form, "uniform")
    assert measured_kappa(form, made, seed=3) == measured_kappa(form, made, seed=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda form, made: measured_kappa(form, made, starts=0), "starts must be at least 1, found 0"),
        (lambda form, made: measured_kappa(form, made, steps=1.5), "steps must be a whole number, found 1.5"),
        (
            lambda form, made: measured_kappa(form, "identity"),
            "metric must be a Metric of dimension 6, found 'identity'",
        ),
        (
            lambda form, made: measured_kappa(form, Identity(5)),
            "metric must be a Metric of dimension 6, found Identity",
        ),
        (lambda form, made: measured_kappa(form.rows, made), "form must be a Form, found ndarray"),
        (lambda form, made: metric(form.rows, "lewis"), "form must be a Form, found ndarray"),
        (lambda form, made: metric(form, ["lewis"]), "unknown metric"),
        (lambda form, made: Identity("three"), "dim must be a whole number, found 'three'"),
        (lambda form, made: Identity(-1), "dim must be at least 1, found -1"),
    ],
)
def test_what_is_no_form_and_no_metric_is_refused_by_the_name_of_its_argument(call, message):
    form = heavy_tailed(80, 6).form
    with pytest.raises(ProblemError, match=message):
        call(form, metric(form, "uniform"))


def test_graph_weights_work_on_vertices_not_on_coordinates():
    """The cost does not grow with d: the same metric serves every coordinate."""
    edges = geometric(80, 2, 6).form.edges
    one, three = GraphForm(80, 1, edges), GraphForm(80, 3, edges)
    a, b = metric(one, "lewis", eps=1e-9), metric(three, "lewis", eps=1e-9)
    np.testing.assert_allclose(a.tau, b.tau, rtol=1e-12)
    x = np.random.default_rng(0).standard_normal((80, 3))
    np.testing.assert_allclose(
        b.apply(x.ravel()).reshape(80, 3)[:, 1], a.apply(np.ascontiguousarray(x[:, 1])), rtol=1e-9
    )
