"""Does a spanning tree bound N(w) = max {⟨w,x⟩ : ρ(x) ≤ 1} on the centred points? Truth is f* to thirty digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quartbench.forms import GraphForm
from quartbench.forms.tree import spanning_tree
from quartbench.kernels import exact
from quartbench.linalg.known import Known, exactly
from tests.forms.random_forms import SEEDS, connected_edges
from tests.kernels import plain
from tests.model.truth import truth


def dual_norm(points, d, edges, w):
    """Return N(w) on the centred points for integer w, however it is translated: with a vertex held at zero."""
    rows = plain.edge_rows(points, d, edges)[:, d:]
    centred = points * w - w.sum(axis=0)  # integers again, and N is homogeneous
    if not centred.any():
        return mpmath.mpf(0)
    with mpmath.workdps(50):
        found = truth(rows, d, centred[1:].reshape(-1), "free")
        return (-found.optimum * 4 / 3 * mpmath.mpf(4) ** (mpmath.mpf(1) / 3)) ** 0.75 / points


def draw(seed, points, extra):
    rng = np.random.default_rng(seed)
    edges = connected_edges(rng, points, extra)
    return rng, edges, tuple(np.ascontiguousarray(edges.T))


@settings(max_examples=25)
@given(SEEDS, st.integers(2, 6), st.integers(1, 2), st.integers(0, 5))
def test_a_tree_bounds_n_of_every_vector_that_it_may_be_given(seed, points, d, extra):
    rng, edges, ends = draw(seed, points, extra)
    tree = spanning_tree(*ends, (points, d))
    w = rng.integers(-9, 10, (points, d)).astype(float)
    bound = tree.norm(exactly(w.reshape(-1)))
    assert bound >= dual_norm(points, d, edges, w)
    # Entries that are known to ±2: the corners of their box are integers, too.
    unknown = tree.norm(Known(w.reshape(-1), np.zeros(w.size), np.full(w.size, 2.0)))
    assert unknown >= bound
    assert unknown >= dual_norm(points, d, edges, w + 2.0 * rng.choice([-1.0, 1.0], w.shape))
    # It need not be close, as absolute values are routed, but it is of the size of what there is to route.
    assert bound <= 2.0 * points**0.75 * np.abs(w).sum()


@given(SEEDS, st.integers(2, 5), st.booleans())
def test_what_all_flows_one_way_is_bounded_closely(seed, points, turned):
    # On a path with its load at one end, nothing cancels: the bound is N but for the share that the mean takes.
    rng = np.random.default_rng(seed)
    edges = np.stack([np.arange(points - 1), np.arange(1, points)], axis=1)
    tree = spanning_tree(*np.ascontiguousarray(edges.T), (points, 1))
    w = np.zeros((points, 1))
    w[0 if turned else -1] = rng.integers(1, 100)
    w[-1 if turned else 0] = -w.sum()
    wanted = float(dual_norm(points, 1, edges, w))
    assert wanted == pytest.approx((points - 1) ** 0.75 * np.abs(w).max())
    assert wanted <= tree.norm(exactly(w.reshape(-1))) <= 3.0 * wanted


@given(SEEDS, st.integers(2, 40), st.integers(1, 3), st.integers(0, 12))
def test_no_point_shows_more_than_the_bound_of_a_tree(seed, points, d, extra):
    rng, edges, ends = draw(seed, points, extra)
    w = rng.standard_normal((points, d)) * 10.0 ** rng.uniform(-3.0, 3.0, (points, 1))
    known = Known(w.reshape(-1), 2.0**-54 * w.reshape(-1), 1e-3 * np.abs(w.reshape(-1)))
    bound = spanning_tree(*ends, (points, d)).norm(known)
    rows = plain.edge_rows(points, d, edges)
    # The point that a quadratic form would have, what is next to it, and any points.
    best = np.linalg.lstsq(rows.T @ rows, w.reshape(-1), rcond=None)[0]
    for distance in (0.0, 0.1, 1.0, 10.0, 1e3):
        x = best + distance * np.abs(best).max() * rng.standard_normal(best.size)
        x = x.reshape(points, d) - x.reshape(points, d).mean(axis=0)
        wrong = known.error.reshape(points, d) * np.sign(x)
        assert np.sum((w + wrong) * x) <= bound * plain.value(rows, d, x.reshape(-1)) ** 0.25 * (1.0 + 1e-9)


@given(SEEDS, st.integers(2, 12), st.integers(1, 3), st.integers(0, 6))
def test_the_flow_along_a_tree_carries_w(seed, points, d, extra):
    rng, edges, ends = draw(seed, points, extra)
    tree, w = spanning_tree(*ends, (points, d)), rng.standard_normal((points, d))
    flow = tree.correction(w.reshape(-1))
    rows = plain.edge_rows(points, d, edges)
    plain.close(rows.T @ flow, (w - w.mean(axis=0)).reshape(-1))
    assert (flow.reshape(-1, d) != 0.0).any(axis=1).sum() <= points - 1
    # And so Hölder's inequality bounds N by the size of the flow: never above the bound that closes.
    power = exact.dual_power(flow, np.zeros_like(flow), d)
    assert power**0.75 <= tree.norm(exactly(w.reshape(-1))) * (1.0 + 1e-9)


@given(SEEDS, st.integers(2, 30), st.integers(0, 30))
def test_a_spanning_tree_is_one(seed, points, extra):
    _, edges, ends = draw(seed, points, extra)
    tree = spanning_tree(*ends, (points, 1))
    assert sorted(tree.order) == list(range(points))
    seen = {int(tree.order[0])}
    for child, edge in zip(tree.children, tree.edges, strict=True):
        assert {int(child), int(tree.parents[child])} == set(map(int, edges[edge]))
        assert int(tree.parents[child]) in seen
        seen.add(int(child))


@settings(max_examples=15)
@given(SEEDS, st.integers(2, 5), st.integers(1, 2), st.integers(0, 5))
def test_the_proof_of_a_graph_is_its_tree_whatever_the_scale(seed, points, d, extra):
    rng, edges, _ = draw(seed, points, extra)
    form = GraphForm(points, d, edges[:, ::-1])
    proof = form.scaled(3.7).proof()
    assert proof.proved
    assert proof is form.proof()
    w = rng.integers(-9, 10, (points, d)).astype(float)
    assert proof.norm(exactly(w.reshape(-1))) >= dual_norm(points, d, form.edges, w)


def test_nothing_to_route_costs_nothing_to_speak_of_and_no_number_all():
    tree = spanning_tree(np.array([0, 1]), np.array([1, 2]), (3, 1))
    assert 0.0 <= tree.norm(exactly(np.zeros(3))) <= 1e-70
    assert tree.norm(exactly(np.array([np.nan, 0.0, 0.0]))) == np.inf
    assert tree.norm(exactly(np.array([1e200, 0.0, 0.0]))) == np.inf
