"""Does a dissection eliminate every vertex once, with boundaries that separate, and know what a factor costs?"""

import numpy as np
import pytest
import scipy.sparse as sp

from quartbench.instances import geometric_edges, grid_edges, regular_edges
from quartbench.linalg import dissection
from quartbench.linalg.dissection import Dissection, minimum_degree

from .graphs import hubs, random_graph


def fronts_of(found):
    """Yield (pivots, boundary) of each front, as places in the order."""
    for f in range(found.parents.size):
        boundary = found.rows[found.pointers[f] : found.pointers[f + 1]]
        yield np.arange(found.starts[f], found.starts[f + 1]), boundary


def test_every_vertex_is_eliminated_once_and_every_edge_enters_once(points, edges):
    found = Dissection(points, edges)
    np.testing.assert_array_equal(np.sort(found.order), np.arange(points))
    np.testing.assert_array_equal(np.sort(found.links), np.arange(len(edges)))
    assert (found.starts[0], found.starts[-1]) == (0, points - 1)
    assert (np.diff(found.starts) > 0).all()


def test_a_boundary_separates_what_lies_below_from_the_rest(points, edges):
    """What the pivots of a subtree are joined to is in the subtree or in the boundary of its root, and no more is."""
    found = Dissection(points, edges)
    place = np.argsort(found.order)
    joined = sp.coo_matrix((np.ones(len(edges)), place[edges].T), shape=(points, points))
    joined = (joined + joined.T).tocsr()
    below = [set() for _ in found.parents]
    for f, (pivots, boundary) in enumerate(fronts_of(found)):
        below[f] |= set(pivots)
        touched = set(joined[sorted(below[f])].indices) - below[f]
        assert touched <= set(boundary)
        assert boundary[0] >= found.starts[f + 1]
        assert (np.diff(boundary) > 0).all()
        above = found.parents[f]
        if above >= 0:
            assert found.starts[above] <= boundary[0] < found.starts[above + 1]
            below[above] |= below[f]
        else:
            assert boundary.tolist() == [points - 1]


def test_places_in_the_front_above_are_those_of_the_boundary(points, edges):
    found = Dissection(points, edges)
    fronts = list(fronts_of(found))
    place = np.argsort(found.order)
    for f, (pivots, boundary) in enumerate(fronts):
        if found.parents[f] >= 0:
            above = np.concatenate(fronts[found.parents[f]])
            relative = found.relative[found.pointers[f] : found.pointers[f + 1]]
            np.testing.assert_array_equal(above[relative], boundary)
        for j in pivots:
            mine = slice(found.indptr[j], found.indptr[j + 1])
            ends = np.sort(place[edges[found.links[mine]]], axis=1)
            np.testing.assert_array_equal(ends[:, 0], j)
            np.testing.assert_array_equal(np.concatenate([pivots, boundary])[found.spots[mine]], ends[:, 1])


def test_the_order_fills_little():
    """On a tree not at all, on a grid far less than a banded factor would."""
    side = 60
    edges = grid_edges(side, 2)
    assert Dissection(side**2, edges).entries < 0.7 * side**3
    tree = random_graph(2000, 0, 3)
    assert minimum_degree_fill(2000, tree) == 2 * 2000 - 1  # no fill at all
    assert minimum_degree_fill(side**2, edges) < 0.3 * side**3


def minimum_degree_fill(points, edges):
    """Return the entries of the factor in the order of minimum degree, by elimination in sets."""
    links = sp.coo_matrix((np.ones(len(edges)), edges.T), shape=(points, points))
    order = minimum_degree((links + links.T).tocsr())
    np.testing.assert_array_equal(np.sort(order), np.arange(points))
    place = np.argsort(order)
    later = [set() for _ in range(points)]
    for early, late in np.sort(place[edges], axis=1):
        later[early].add(late)
    for j in range(points):
        if later[j]:
            later[min(later[j])] |= later[j] - {min(later[j])}
    return points + sum(map(len, later))


def test_costs_are_those_of_the_fronts(points, edges):
    found = Dissection(points, edges)
    panels = [pivots.size * (pivots.size + boundary.size) for pivots, boundary in fronts_of(found)]
    assert found.entries == sum(panels) == found.offsets[-1]
    assert found.flops == pytest.approx(
        sum(p.size**3 / 3 + p.size**2 * b.size + p.size * b.size**2 for p, b in fronts_of(found))
    )
    assert found.sensible


def test_limits_of_work_and_memory_decide_what_is_sensible(monkeypatch):
    found = Dissection(300, geometric_edges(300, 2, 8))
    assert found.sensible
    monkeypatch.setattr(dissection, "DISSECTION_ENTRIES", found.entries - 1.0)
    assert not found.sensible
    monkeypatch.setattr(dissection, "DISSECTION_ENTRIES", found.entries)
    assert found.sensible
    monkeypatch.setattr(dissection, "DISSECTION_FLOPS", found.flops * 0.99)
    assert not found.sensible


def test_a_large_expander_is_not_even_ordered(monkeypatch):
    """Ordering 20 000 vertices of degree 20 by minimum degree takes half a minute."""

    def never(_):
        raise AssertionError("must not be ordered")

    monkeypatch.setattr(dissection, "minimum_degree", never)
    found = Dissection(20_000, regular_edges(20_000, 20))
    assert not found.sensible
    assert found.flops == np.inf


@pytest.mark.parametrize("count", [1, 3])
def test_hubs_are_eliminated_last(count):
    found = Dissection(2000, hubs(count, 2000))
    assert set(found.order[-count:]) == set(range(count))
    assert found.entries < 2000 * (20 + count)
