"""Do all solvers of Laplacian equations agree with the pseudo-inverse, and say how accurate their resistances are?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.errors import ProblemError
from quartbench.instances import geometric_edges
from quartbench.linalg import dissection, laplacians
from quartbench.linalg.dissection import Dissection
from quartbench.linalg.laplacians import (
    DenseLaplacian,
    DissectedLaplacian,
    IterativeLaplacian,
    laplacian,
    laplacian_solver,
)

from .graphs import WELL_CONNECTED, complete, path, pseudo_inverse, random_graph, true_resistances


def test_a_laplacian_is_the_sum_over_its_edges(points, edges, weights):
    incidence = np.zeros((len(edges), points))
    incidence[np.arange(len(edges)), edges[:, 0]] = 1.0
    incidence[np.arange(len(edges)), edges[:, 1]] = -1.0
    found = laplacian(points, edges, weights)
    assert found.format == "csr"
    np.testing.assert_allclose(found.toarray(), incidence.T @ (weights[:, None] * incidence), atol=1e-12)


def test_dissection_gives_the_resistances_of_the_pseudo_inverse(points, edges, weights):
    found = DissectedLaplacian(Dissection(points, edges), weights).resistances()
    np.testing.assert_allclose(found, true_resistances(points, edges, weights), rtol=1e-8)
    assert (weights * found).sum() == pytest.approx(points - 1)  # Foster


def test_all_solvers_solve(kind, points, edges, weights):
    matrix = laplacian(points, edges, weights)
    v = np.random.default_rng(1).standard_normal((points, 3))
    v -= v.mean(axis=0)
    wanted, before = pseudo_inverse(points, edges, weights) @ v, v.copy()
    for solver in (
        DenseLaplacian(matrix, edges),
        DissectedLaplacian(Dissection(points, edges), weights),
        *([IterativeLaplacian(matrix, edges)] if kind in WELL_CONNECTED else []),
    ):
        np.testing.assert_allclose(solver.solve(v), wanted, atol=1e-7 * np.abs(wanted).max(), err_msg=solver.method)
        np.testing.assert_array_equal(v, before)


@pytest.mark.parametrize("columns", [1, 2, 40])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_a_dissected_laplacian_solves_any_number_of_columns(columns, layout):
    edges = geometric_edges(500, 3, 8)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(edges))
    v = np.asarray(np.random.default_rng(1).standard_normal((500, columns)), order=layout)
    v -= v.mean(axis=0)
    found = DissectedLaplacian(Dissection(500, edges), weights).solve(v)
    np.testing.assert_allclose(laplacian(500, edges, weights) @ found, v, atol=1e-11)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-13)


def test_fronts_of_many_blocks_are_factored_and_inverted():
    """A complete graph is one front of hundreds of pivots; two that share some have a wide boundary."""
    edges = np.unique(np.concatenate([complete(0, 400), complete(100, 700)]), axis=0)
    weights = np.exp(np.random.default_rng(0).standard_normal(len(edges)))
    found = DissectedLaplacian(Dissection(700, edges), weights)
    np.testing.assert_allclose(found.resistances(), true_resistances(700, edges, weights), rtol=1e-10)
    v = np.eye(700)[:, :5] - 1.0 / 700
    np.testing.assert_allclose(laplacian(700, edges, weights) @ found.solve(v), v, atol=1e-12)


def test_edges_listed_twice_add_up():
    edges, weights = np.array([[0, 1], [1, 2], [2, 1], [0, 2]]), np.array([1.0, 2.0, 3.0, 4.0])
    found = DissectedLaplacian(Dissection(3, edges), weights)
    np.testing.assert_allclose(found.resistances(), true_resistances(3, edges, weights), rtol=1e-12)


@given(st.integers(0, 10**6))
def test_random_graphs_of_any_kind_are_dissected_correctly(seed):
    rng = np.random.default_rng(seed)
    points = int(rng.integers(2, 260))
    edges = random_graph(points, int(rng.integers(0, 3 * points)), seed)
    weights = np.exp(rng.standard_normal(len(edges)))
    found = DissectedLaplacian(Dissection(points, edges), weights).resistances()
    np.testing.assert_allclose(found, true_resistances(points, edges, weights), rtol=1e-7)


def test_one_dissection_serves_many_weights(points, edges):
    structure, rng = Dissection(points, edges), np.random.default_rng(3)
    v = rng.standard_normal((points, 1))
    v -= v.mean()
    solvers = [DissectedLaplacian(structure, rng.uniform(0.1, 1.0, len(edges))) for _ in range(2)]
    kept = solvers[0].solve(v)
    solvers[1].resistances()
    np.testing.assert_array_equal(solvers[0].solve(v), kept)


def test_conjugate_gradients_give_tight_upper_bounds(kind, points, edges, weights):
    found = IterativeLaplacian(laplacian(points, edges, weights), edges).resistances()
    true = true_resistances(points, edges, weights)
    assert (found >= true * (1 - 1e-10)).all()
    if kind in WELL_CONNECTED:
        assert (found <= true * 1.005).all()


@pytest.mark.parametrize("method", ["dense", "dissection"])
def test_weak_bridges_are_as_accurate_as_they_claim(method):
    """Resistances are differences of potentials, which a weak bridge makes large: the rounding says so."""
    edges = np.concatenate([complete(0, 120), [[119, 120]], complete(120, 240)])
    on_bridge = (edges == [119, 120]).all(axis=1)
    structure = Dissection(240, edges)
    for bridge in (1.0, 1e-2, 1e-4, 1e-6, 1e-8):
        weights = np.where(on_bridge, bridge, 1.0)
        solver = (
            DissectedLaplacian(structure, weights)
            if method == "dissection"
            else DenseLaplacian(laplacian(240, edges, weights), edges)
        )
        np.testing.assert_allclose(solver.resistances(), np.where(on_bridge, 1 / bridge, 2 / 120), rtol=solver.rounding)
        assert solver.rounding < 1e-11 / bridge


def test_the_solver_suits_the_graph(monkeypatch):
    edges = geometric_edges(300, 2, 8)
    weights = np.ones(len(edges))
    matrix = laplacian(300, edges, weights)
    assert laplacian_solver(matrix, edges, weights).method == "dense"
    monkeypatch.setattr(laplacians, "DENSE_VERTICES", 1)
    structure = Dissection(300, edges)
    found = laplacian_solver(matrix, edges, weights, structure)
    assert (found.method, found.structure) == ("dissection", structure)
    assert laplacian_solver(matrix, edges, weights).method == "dissection"
    monkeypatch.setattr(dissection, "DISSECTION_FLOPS", 0.0)
    assert laplacian_solver(matrix, edges, weights, structure).method == "conjugate gradients"


def test_weights_that_disconnect_a_graph_to_rounding_are_refused(monkeypatch):
    monkeypatch.setattr(laplacians, "DENSE_VERTICES", 1)
    edges, weights = path(0, 6), np.array([1.0, 1.0, 1e-30, 1.0, 1.0])
    with pytest.raises(ProblemError, match="weights must leave the graph connected to rounding, found them between 1e"):
        laplacian_solver(laplacian(6, edges, weights), edges, weights)
