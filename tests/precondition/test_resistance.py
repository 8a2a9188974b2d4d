"""Effective resistances agree with the pseudo-inverse, whichever way they are found, and say which way it was."""

import numpy as np
import pytest

from quartbench.errors import ProblemError
from quartbench.forms import GraphForm, StackedForm
from quartbench.instances import geometric_edges, regular_edges, ring_edges
from quartbench.linalg import dissection, laplacians
from quartbench.linalg.laplacians import IterativeLaplacian
from quartbench.precondition import effective_resistance, leverage, lewis_weights, metric

from ..linalg.graphs import GRAPHS, WELL_CONNECTED, complete, path
from .plain import traces_of


@pytest.fixture(params=GRAPHS, ids=GRAPHS.keys())
def kind(request):
    return request.param


@pytest.fixture
def form(kind):
    edges = GRAPHS[kind]
    return GraphForm(int(edges.max()) + 1, 2, edges)


@pytest.fixture
def conductance(form):
    return np.exp(np.random.default_rng(0).standard_normal(form.terms))


def test_the_choice_of_solver_changes_no_metric(monkeypatch, kind, form, conductance):
    """The Laplacian metric is the same operator whichever way its equations are solved."""
    reference = form.weighted(conductance)
    x = np.random.default_rng(2).standard_normal(form.dim)
    monkeypatch.setattr(laplacians, "DENSE_VERTICES", 1)
    monkeypatch.setattr("quartbench.forms.graph.DENSE_VERTICES", 1)
    twin = GraphForm(form.points, 2, form.edges)
    dissected = twin.weighted(conductance)
    monkeypatch.setattr(dissection, "DISSECTION_FLOPS", 0.0)
    iterative = twin.weighted(conductance)
    methods = [one.solver.method for one in (reference, dissected, iterative)]
    assert methods == ["dense", "dissection", "conjugate gradients"]
    for one in (dissected, iterative) if kind in WELL_CONNECTED else (dissected,):
        np.testing.assert_allclose(one.apply(x), reference.apply(x), rtol=1e-9, atol=1e-9)
        wanted = reference.solve(x)
        np.testing.assert_allclose(one.solve(x), wanted, atol=1e-7 * np.abs(wanted).max())
        np.testing.assert_allclose(one.solve(one.apply(x)), x, atol=1e-6)


def test_a_graph_of_20000_points_is_exact_without_a_dense_matrix():
    form = GraphForm(20000, 3, geometric_edges(20000, 3, 20))
    assert form.terms >= 200_000
    structure = form.dissection()
    assert structure.sensible
    assert structure.entries < 20000**2 / 20
    found = effective_resistance(form)
    assert found.method == "dissection"
    assert found.values.sum() == pytest.approx(19999, rel=1e-10)
    assert found.values.max() <= 1 + 1e-9
    some = np.random.default_rng(0).choice(form.terms, 5)
    for edge in some:
        charge = np.zeros((20000, 1))
        charge[form.heads[edge]], charge[form.tails[edge]] = 1.0, -1.0
        potential = IterativeLaplacian(form.laplacian(), form.edges).solve(charge)
        assert found.values[edge] == pytest.approx((charge * potential).sum(), rel=1e-8)


def test_a_large_expander_is_not_factored_but_sketched():
    form = GraphForm(20000, 3, regular_edges(20000, 20))
    assert form.terms == 200_000
    assert not form.dissection().sensible
    found = effective_resistance(form, columns=24)
    assert found.method == "sketch"
    assert found.error == pytest.approx(np.sqrt(2 / 24))
    assert found.values.sum() == pytest.approx(19999, rel=0.01)
    assert np.std(found.values) < 1.2 * found.error * found.values.mean()


def test_weights_of_a_graph_that_is_not_factored_are_sketched_and_certified(monkeypatch):
    """The path of large expanders, on a small one: no factor, ten sketches, one solve a vertex."""
    monkeypatch.setattr("quartbench.forms.graph.DENSE_VERTICES", 1)
    monkeypatch.setattr(laplacians, "DENSE_VERTICES", 1)
    monkeypatch.setattr(dissection, "DISSECTION_FLOPS", 0.0)
    form = GraphForm(500, 2, regular_edges(500, 6))
    weights = lewis_weights(form)
    assert (weights.factor, weights.sketch) == ("conjugate gradients", int(np.ceil(32 * np.log(1500))))
    true = np.linalg.norm(weights.tau) * np.sqrt((traces_of(form, weights.tau) / weights.tau).max())
    assert true <= weights.kappa_bound <= 1.001 * true
    assert weights.kappa_bound <= 1.15 * np.sqrt(499)
    assert weights.metric.bounds.kappa <= weights.kappa_bound * (1 + 1e-9)
    x = np.random.default_rng(0).standard_normal(form.dim)
    np.testing.assert_allclose(weights.metric.solve(weights.metric.apply(x)), x, atol=1e-9)


@pytest.mark.parametrize("limit", [10_000, 1], ids=["dense", "dissection"])
def test_weak_bridges_are_as_accurate_as_they_claim(monkeypatch, limit):
    """Resistances are differences of potentials, which a weak bridge makes large: the error says so."""
    monkeypatch.setattr("quartbench.forms.graph.DENSE_VERTICES", limit)
    monkeypatch.setattr(laplacians, "DENSE_VERTICES", limit)
    form = GraphForm(240, 1, np.concatenate([complete(0, 120), [[119, 120]], complete(120, 240)]))
    on_bridge = (form.heads == 119) & (form.tails == 120)
    for bridge in (1.0, 1e-2, 1e-4, 1e-6, 1e-8):
        found = effective_resistance(form, np.where(on_bridge, bridge, 1.0))
        np.testing.assert_allclose(found.values, np.where(on_bridge, 1 / bridge, 2 / 120), rtol=found.error)
        assert found.error < 1e-11 / bridge


def test_weights_that_disconnect_a_graph_to_rounding_are_refused():
    form = GraphForm(6, 1, path(0, 6))
    with pytest.raises(
        ProblemError, match="tau must leave the graph connected to rounding, found weights between 1e-30"
    ):
        leverage(form, np.array([1.0, 1.0, 1e-30, 1.0, 1.0]))


def test_methods_by_name():
    form = GraphForm(60, 2, geometric_edges(60, 2, 6))
    exact = effective_resistance(form, method="exact")
    assert exact.method == "dense"
    np.testing.assert_allclose(np.asarray(exact), leverage(form), rtol=1e-10)
    sketch = effective_resistance(form, method="sketch", columns=4000, seed=1)
    assert sketch.method == "sketch"
    np.testing.assert_allclose(sketch.values, exact.values, rtol=0.15)
    np.testing.assert_array_equal(
        effective_resistance(form, method="sketch", columns=4000, seed=1).values, sketch.values
    )
    doubled = effective_resistance(form, np.full(form.terms, 2.0))
    np.testing.assert_allclose(doubled.values, 0.5 * exact.values, rtol=1e-10)
    with pytest.raises(ProblemError, match="unknown method 'exakt'; did you mean 'exact'"):
        effective_resistance(form, method="exakt")
    with pytest.raises(ProblemError, match="form must be a GraphForm without weights, found DenseForm"):
        effective_resistance(StackedForm(np.eye(3)))
    with pytest.raises(ProblemError, match="columns must be None, 'gaussian' or a positive number of columns"):
        effective_resistance(form, method="sketch", columns=-1)


def test_the_dissection_of_a_form_is_made_once():
    form = GraphForm(1600, 1, ring_edges(1600, 2))
    metric(form, "uniform")
    structure = form.dissection()
    assert structure is form.dissection()
    assert structure is form.scaled(3.0).dissection()
