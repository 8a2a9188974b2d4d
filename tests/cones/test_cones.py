"""Do cones project, onto themselves and onto their slice {⟨c,y⟩ = 1}, as a quadratic program solved by others does?"""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from quartbench.cones import CONES, Centred, Free, Orthant, SecondOrder
from quartbench.forms import GramForm, GraphForm, StackedForm
from quartbench.metrics import Cholesky, Diagonal, Identity, Laplacian
from quartbench.model import Problem
from quartbench.solvers import solve
from tests.forms.random_forms import SEEDS, connected_edges
from tests.kernels import plain


def agrees(found, peer, y, matrix):
    """Assert that a projection is where an interior-point method has it, and no farther from y.

    An objective that is known to 1e-8 gives its minimiser to 1e-4 (strong convexity), so that is what a peer can say.
    """
    plain.close(found, peer, 2e-4)
    distance, other = (found - y) @ matrix @ (found - y), (peer - y) @ matrix @ (peer - y)
    assert distance <= other + 1e-8 * max(other, y @ matrix @ y)


def quadratic_program(y, matrix, cone, c=None, points=None):
    """Return argmin ½‖z − y‖²_B over z in a cone (and ⟨c,z⟩ = 1) by Clarabel."""
    n = y.size
    equal = [] if c is None else [c]
    right = [] if c is None else [1.0]
    if cone == "centred":
        coordinates = n // points
        equal += list(np.kron(np.ones((1, points)), np.eye(coordinates)))
        right += [0.0] * coordinates
    blocks, cones = [], []
    if equal:
        blocks.append(np.array(equal))
        cones.append(clarabel.ZeroConeT(len(equal)))
    if cone in ("orthant", "second-order"):
        blocks.append(-np.eye(n))
        cones.append(clarabel.NonnegativeConeT(n) if cone == "orthant" else clarabel.SecondOrderConeT(n))
        right = [*right, *np.zeros(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    lhs = sp.csc_matrix(np.vstack(blocks))
    quadratic, linear = sp.csc_matrix(np.triu(matrix)), -(matrix @ y)
    return np.array(clarabel.DefaultSolver(quadratic, linear, lhs, np.array(right), cones, settings).solve().x)


def spread(rng, n, style):
    """Return numbers with ties, zeros and large spreads, by style."""
    x = rng.standard_normal(n)
    if style == "ties":
        return np.round(x)
    if style == "repeated":
        return x[rng.integers(0, max(1, n // 3), n)]
    if style == "spread":
        return x * 10.0 ** rng.uniform(-3, 3, n)
    return x


STYLES = st.sampled_from(["plain", "ties", "repeated", "spread"])


def slice_is_exact(cone, c, metric, y, z):
    """Assert that z is P_K(y + tB⁻¹c) for the t with ⟨c,z⟩ = 1, found by Brent's method.

    See errata 6 of the documentation.
    """
    assert c @ z == pytest.approx(1.0, abs=1e-12 * max(1.0, np.abs(c * z).sum()))
    direction = metric.solve(c)

    def at(t):
        return cone.project(y + t * direction, metric)

    low, high = -1.0, 1.0
    while c @ at(low) > 1.0:
        low *= 4.0
    while c @ at(high) < 1.0:
        high *= 4.0
    t = brentq(lambda t: c @ at(t) - 1.0, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)
    scale = max(np.abs(y).max(), np.abs(z).max(), np.abs(t * direction).max())
    np.testing.assert_allclose(z, at(t), rtol=0.0, atol=1e-11 * scale)


# The orthant ----------------------------------------------------------------------------------------------------------


@st.composite
def orthant_cases(draw):
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(SEEDS))
    y, c = spread(rng, n, draw(STYLES)), spread(rng, n, draw(STYLES))
    c = c * (rng.random(n) < draw(st.sampled_from([1.0, 0.5])))
    assume(c.max() > 0.0)
    diagonal = np.abs(spread(rng, n, draw(STYLES))) + 0.1
    if draw(st.booleans()):
        y = -np.abs(y)
    return y, c, diagonal


@given(orthant_cases())
def test_the_orthant_slice_is_the_point_of_its_path_that_crosses_one(case):
    y, c, diagonal = case
    metric = Diagonal(diagonal)
    z = Orthant().slice(c, metric)(y)
    assert (z >= 0.0).all()
    slice_is_exact(Orthant(), c, metric, y, z)


@pytest.mark.parametrize("seed", range(12))
def test_the_orthant_slice_agrees_with_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    y, c = spread(rng, n, "ties" if seed % 3 == 0 else "plain"), rng.standard_normal(n)
    c[rng.integers(n)] = 1.0
    c[rng.random(n) < 0.2] = 0.0
    c[0] = 0.7
    diagonal = rng.uniform(0.3, 3.0, n)
    found = Orthant().slice(c, Diagonal(diagonal))(y)
    agrees(found, quadratic_program(y, np.diag(diagonal), "orthant", c), y, np.diag(diagonal))


@given(orthant_cases())
def test_the_inner_product_never_falls_along_the_orthant_path(case):
    # errata 6 of the documentation: t ↦ ⟨c,P_K(y + tB⁻¹c)⟩ is nondecreasing, so its crossing of 1 is a projection.
    y, c, diagonal = case
    steps = np.linspace(-50.0, 50.0, 201)
    values = [c @ np.maximum(y + t * c / diagonal, 0.0) for t in steps]
    assert (np.diff(values) >= -1e-10 * np.abs(values).max()).all()


@pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e8, 1e60])
def test_the_orthant_slice_is_indifferent_to_scale(scale):
    rng = np.random.default_rng(4)
    y, c = rng.standard_normal((2, 30))
    diagonal = rng.uniform(0.1, 1.0, 30)
    wanted = Orthant().slice(c, Diagonal(diagonal))(y)
    # ⟨c·s,z/s⟩ = 1, and a multiple of B is the same projection.
    plain.close(scale * Orthant().slice(scale * c, Diagonal(diagonal))(y / scale), wanted, 1e-10)
    plain.close(Orthant().slice(c, Diagonal(scale * diagonal))(y), wanted, 1e-10)


def test_points_of_the_orthant_slice_stay_where_they_are():
    rng = np.random.default_rng(4)
    z = np.maximum(rng.standard_normal(50), 0.0)
    c = rng.standard_normal(50)
    c /= c @ z
    np.testing.assert_allclose(Orthant().slice(c, Diagonal(rng.uniform(0.1, 1.0, 50)))(z), z, atol=1e-13)


def test_many_equal_breakpoints_of_the_orthant_slice():
    # All breakpoints coincide: every coordinate enters at the same t.
    n = 1000
    c = np.ones(n)
    z = Orthant().slice(c, Identity(n))(np.full(n, -3.0))
    np.testing.assert_allclose(z, np.full(n, 1.0 / n), rtol=1e-11)
    assert c @ z == pytest.approx(1.0, abs=1e-12)


def test_a_long_orthant_slice_is_feasible_to_rounding():
    rng = np.random.default_rng(0)
    n = 20_000
    for y, c in [
        (rng.standard_normal(n), rng.standard_normal(n)),
        (rng.standard_normal(n) / n, np.abs(rng.standard_normal(n))),
        (rng.standard_cauchy(n), rng.standard_normal(n) * (rng.random(n) < 0.1)),
    ]:
        diagonal = rng.uniform(0.01, 1.0, n)
        z = Orthant().slice(c, Diagonal(diagonal))(y)
        assert (z >= 0.0).all()
        assert abs(c @ z - 1.0) <= 1e-12 * max(1.0, np.abs(c * z).sum())


def test_uneven_numbers_do_not_lead_the_orthant_slice_astray():
    # A walk along the breaks with running sums kept the rounding of large entries that had left, and stopped off the
    # slice: of these cases several were wrong by more than the slice is large.
    rng = np.random.default_rng(1)
    for _ in range(2000):
        n = int(rng.integers(1, 15))
        y, c = rng.standard_normal((2, n)) * 10.0 ** rng.uniform(-8, 8, (2, n))
        diagonal = 10.0 ** rng.uniform(-4, 4, n)
        if c.max() > 0.0:
            z = Orthant().slice(c, Diagonal(diagonal))(y)
            assert (z >= 0.0).all()
            assert abs(c @ z - 1.0) <= 1e-12 * max(1.0, np.abs(c * z).sum())


# The second-order cone ------------------------------------------------------------------------------------------------


def in_second_order(z, slack=1e-12):
    return np.linalg.norm(z[1:]) <= z[0] + slack * np.linalg.norm(z)


@st.composite
def second_order_cases(draw):
    n = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(SEEDS))
    y = spread(rng, n, draw(STYLES))
    c = spread(rng, n, draw(STYLES))
    where = draw(st.sampled_from(["inside", "outside", "axis", "boundary"]))
    if where == "inside":
        c[0] = np.linalg.norm(c[1:]) + abs(c[0])
    elif where == "axis":
        c = np.eye(n)[0] * (0.1 + abs(c[0]))
    elif where == "boundary":
        c[0] = np.linalg.norm(c[1:])
    assume(np.linalg.norm(SecondOrder().euclidean(c)) > 1e-3 * np.linalg.norm(c))
    return y, c


@given(second_order_cases())
def test_the_second_order_slice_is_the_point_of_its_path_that_crosses_one(case):
    y, c = case
    metric = Identity(y.size)
    z = SecondOrder().slice(c, metric)(y)
    assert in_second_order(z)
    slice_is_exact(SecondOrder(), c, metric, y, z)


@pytest.mark.parametrize("seed", range(12))
def test_the_second_order_slice_agrees_with_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    y, c = rng.standard_normal((2, n))
    c[0] = abs(c[0]) + 0.2
    multiple = rng.uniform(0.2, 5.0)
    found = SecondOrder().slice(c, Diagonal(np.full(n, multiple)))(y)
    agrees(found, quadratic_program(y, multiple * np.eye(n), "second-order", c), y, multiple * np.eye(n))


@pytest.mark.parametrize("seed", range(8))
def test_the_second_order_projection_agrees_with_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    y = rng.standard_normal(n)
    y[0] += (-3.0, 0.0, 3.0)[seed % 3]
    found = SecondOrder().project(y, Identity(n))
    peer = quadratic_program(y, np.eye(n), "second-order")
    np.testing.assert_allclose(found, peer, atol=2e-4)
    assert np.linalg.norm(found - y) <= np.linalg.norm(peer - y) + 1e-8
    # Moreau: y is the sum of its projections onto K and onto −K* = −K, and they are orthogonal.
    polar = -SecondOrder().project(-y, Identity(n))
    np.testing.assert_allclose(found + polar, y, atol=1e-14)
    assert abs(found @ polar) <= 1e-13


@given(second_order_cases())
def test_the_inner_product_never_falls_along_the_second_order_path(case):
    y, c = case
    values = [c @ SecondOrder().euclidean(y + t * c) for t in np.linspace(-20.0, 20.0, 101)]
    assert (np.diff(values) >= -1e-10 * np.abs(values).max()).all()


@pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e8, 1e60])
def test_the_second_order_slice_is_indifferent_to_scale(scale):
    y, c = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.5, 0.3])
    wanted = SecondOrder().slice(c, Identity(3))(y)
    plain.close(scale * SecondOrder().slice(scale * c, Identity(3))(y / scale), wanted, 1e-10)


def test_second_order_points_at_rest_stay_there():
    z = np.array([5.0, 3.0, 4.0])  # on the boundary
    c = np.array([1.0, -0.2, 0.1]) / (5.0 - 0.6 + 0.4)
    np.testing.assert_allclose(SecondOrder().slice(c, Identity(3))(z), z, atol=1e-14)
    np.testing.assert_allclose(SecondOrder().euclidean(z), z, atol=0.0)
    np.testing.assert_allclose(SecondOrder().euclidean(-z), np.zeros(3), atol=0.0)
    np.testing.assert_allclose(SecondOrder().euclidean(np.zeros(3)), np.zeros(3), atol=0.0)


# Free space and the centred subspace ----------------------------------------------------------------------------------


def dense_metric(rng, n):
    a = rng.standard_normal((n + 3, n))
    return Cholesky(a.T @ a), a.T @ a


@pytest.mark.parametrize("seed", range(6))
def test_the_free_slice_agrees_with_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    metric, matrix = dense_metric(rng, n)
    y, c = rng.standard_normal((2, n))
    found = Free().slice(c, metric)(y)
    agrees(found, quadratic_program(y, matrix, "free", c), y, matrix)
    assert c @ found == pytest.approx(1.0, abs=1e-12)
    assert Free().project(y, metric) is y


def centred(points, d):
    return Centred().bind(GraphForm(points, d, connected_edges(np.random.default_rng(0), points, 3)))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", ["identity", "diagonal", "dense", "laplacian"])
def test_the_centred_slice_agrees_with_a_quadratic_program(kind, d):
    rng = np.random.default_rng(d)
    points = 5
    n = points * d
    edges = connected_edges(rng, points, 3)
    metric = {
        "identity": lambda: Identity(n),
        "diagonal": lambda: Diagonal(rng.uniform(0.2, 3.0, n)),
        "dense": lambda: dense_metric(rng, n)[0],
        "laplacian": lambda: Laplacian(points, d, edges, rng.uniform(0.2, 3.0, len(edges))),
    }[kind]()
    matrix = np.stack([metric.apply(column) for column in np.eye(n)], axis=1)
    cone = centred(points, d)
    y, c = rng.standard_normal((2, n))
    c = cone.euclidean(c)
    found = cone.slice(c, metric)(y)
    agrees(found, quadratic_program(y, matrix, "centred", c, points), y, matrix)
    assert np.abs(found.reshape(points, d).sum(axis=0)).max() <= 1e-12
    assert c @ found == pytest.approx(1.0, abs=1e-12)
    projected = cone.project(y, metric)
    agrees(projected, quadratic_program(y, matrix, "centred", points=points), y, matrix)
    plain.close(cone.projector(metric)(y), projected)
    plain.close(cone.project(projected, metric), projected)


def test_centring_is_the_projection_in_metrics_that_keep_the_subspace():
    rng = np.random.default_rng(1)
    cone = centred(6, 2)
    y = rng.standard_normal(12)
    edges = connected_edges(rng, 6, 4)
    wanted = cone.euclidean(y)
    plain.identical(cone.project(y, Identity(12)), wanted)
    plain.identical(cone.project(y, Laplacian(6, 2, edges, np.ones(len(edges)))), wanted)
    assert not np.allclose(cone.project(y, Diagonal(np.arange(1.0, 13.0))), wanted)


# All of them ----------------------------------------------------------------------------------------------------------


def bound_cones():
    return [Free(), Orthant(), centred(4, 2), SecondOrder()]


@pytest.mark.parametrize("cone", bound_cones(), ids=lambda cone: cone.name)
def test_euclidean_projections_obey_moreau(cone):
    rng = np.random.default_rng(8)
    for _ in range(20):
        y = rng.standard_normal(8)
        inside = cone.euclidean(y)
        plain.close(cone.euclidean(inside), inside, 1e-14)
        assert (y - inside) @ inside == pytest.approx(0.0, abs=1e-13)
        other = cone.euclidean(rng.standard_normal(8))
        assert (y - inside) @ other <= 1e-13


@pytest.mark.parametrize("cone", bound_cones(), ids=lambda cone: cone.name)
def test_projections_change_no_input(cone):
    rng = np.random.default_rng(8)
    y, c = rng.standard_normal((2, 8))
    c = cone.euclidean(np.abs(c) + np.eye(8)[0] * 10.0).copy()
    kept = y.copy(), c.copy()
    metric = Identity(8)
    onto = cone.slice(c, metric)
    first = onto(y)
    cone.euclidean(y), cone.project(y, metric)
    plain.identical((y, c), kept)
    c[:] = 0.0
    plain.identical(onto(y), first) if cone.name in ("orthant", "second-order") else None


@pytest.mark.parametrize(
    ("cone", "inside", "outside"),
    [
        (Orthant(), [-1.0, 0.0, -2.0], [-1.0, 1e-9, -2.0]),
        (SecondOrder(), [-5.0, 3.0, 4.0], [-5.0, 3.0, 4.1]),
        (Centred((3, 1)), [2.0, 2.0, 2.0], [2.0, 2.0, 2.1]),
    ],
    ids=["orthant", "second-order", "centred"],
)
@pytest.mark.parametrize("scale", [1.0, 2.0**200, 2.0**-200, 2.0**660, 2.0**-660])
def test_the_polar_cone_is_recognised_at_every_scale(cone, inside, outside, scale):
    assert cone.polar_contains(scale * np.array(inside))
    assert not cone.polar_contains(scale * np.array(outside))
    assert not Free().polar_contains(scale * np.array(inside))


def test_subspaces_say_so():
    assert [cone.subspace for cone in bound_cones()] == [True, False, True, False]
    assert {"free": Free, "orthant": Orthant, "centred": Centred, "second-order": SecondOrder} == CONES


def test_a_matrix_orthant_needs_no_special_care():
    form = GramForm(3, 2)
    cone = Orthant().bind(form)
    assert cone.euclidean(np.array([1.0, -1.0, 0.0, 2.0, -3.0, 4.0])).tolist() == [1.0, 0.0, 0.0, 2.0, 0.0, 4.0]
    assert isinstance(Centred().bind(form), Centred)
    assert SecondOrder().bind(StackedForm(np.eye(2))).name == "second-order"
    np.testing.assert_allclose(cone.slice(np.ones(6), Identity(6))(np.zeros(6)), np.full(6, 1.0 / 6.0), rtol=1e-15)


def test_the_slice_of_the_second_order_cone_takes_no_point_where_the_projection_is_zero():
    rng = np.random.default_rng(17)
    units = np.array([1e-3, 1e7, 0.1])
    rows, c = rng.standard_normal((3, 3)) * units, rng.standard_normal(3) * units
    problem = Problem(StackedForm(rows), c, SecondOrder())
    assert solve(problem, "accel-homgd", max_iter=50).fun < 0.0
