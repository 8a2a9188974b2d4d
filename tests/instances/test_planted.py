import numpy as np
import pytest
import scipy.sparse as sp

from quartbench.cones import Centred, Free, Orthant, SecondOrder
from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, GramForm, GraphForm, StackedForm
from quartbench.instances import INSTANCES, make, planted, spectrum
from quartbench.metrics import Identity

from .common import SMALL

RNG = np.random.default_rng(12)
FORMS = {
    "dense": StackedForm(RNG.standard_normal((40, 6))),
    "single precision": StackedForm(RNG.standard_normal((40, 6)).astype(np.float32)),
    "blocks": StackedForm(RNG.standard_normal((60, 6)), rank=3),
    "sparse": StackedForm(sp.csr_matrix(np.kron(np.eye(6), RNG.standard_normal((3, 1))))),
    "gram": GramForm(7, 3),
    "graph": GraphForm(6, 2, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 4)]),
    "complex": ComplexForm(RNG.standard_normal((20, 5)) + 1j * RNG.standard_normal((20, 5))),
}
each = pytest.mark.parametrize("kind", FORMS)
real = pytest.mark.parametrize("kind", [kind for kind in FORMS if kind not in ("graph", "complex")])
vectors = pytest.mark.parametrize("kind", ["dense", "single precision", "blocks", "sparse"])


@each
def test_the_planted_point_has_zero_gradient(kind):
    problem = planted(FORMS[kind], seed=3)
    gradient = problem.gradient(problem.solution)
    assert np.abs(gradient).max() <= 1e-15 * np.abs(problem.c).max()


@each
def test_the_planted_value_is_the_value_there(kind):
    problem = planted(FORMS[kind], seed=3)
    assert problem.optimum < 0.0
    np.testing.assert_allclose(problem.value(problem.solution), problem.optimum, rtol=1e-13)
    np.testing.assert_allclose(problem.optimum, -0.75 * problem.inner(problem.solution), rtol=1e-13)


@each
def test_no_other_point_is_better(kind):
    problem = planted(FORMS[kind], seed=3)
    rng = np.random.default_rng(0)
    for length in (1e-3, 0.1, 1.0):
        for _ in range(5):
            step = problem.cone.euclidean(rng.standard_normal(problem.dim))
            assert problem.value(problem.solution + length * step) > problem.optimum


@real
def test_on_the_orthant_the_optimality_conditions_hold(kind):
    problem = planted(FORMS[kind], seed=3, cone=Orthant())
    x, gradient = problem.solution, problem.gradient(problem.solution)
    assert x.min() == 0.0
    assert x.max() > 0.0
    assert gradient.min() >= -1e-14 * np.abs(problem.c).max()
    assert gradient[x == 0.0].min() > 0.0
    assert abs(x @ gradient) <= 1e-13 * abs(problem.optimum)
    np.testing.assert_allclose(problem.value(x), problem.optimum, rtol=1e-13)


@vectors
def test_on_the_second_order_cone_the_optimality_conditions_hold(kind):
    problem = planted(FORMS[kind], seed=3, cone=SecondOrder())
    x, gradient = problem.solution, problem.gradient(problem.solution)
    np.testing.assert_allclose(np.linalg.norm(x[1:]), x[0], rtol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(gradient[1:]), gradient[0], rtol=1e-12)
    assert gradient[0] > 0.0
    assert abs(x @ gradient) <= 1e-12 * abs(problem.optimum)
    np.testing.assert_allclose(problem.value(x), problem.optimum, rtol=1e-12)


@pytest.mark.parametrize("cone", [Free(), Orthant(), SecondOrder()], ids=repr)
def test_a_projected_gradient_step_does_not_move_the_planted_point(cone):
    problem = planted(FORMS["dense"], seed=1, cone=cone)
    x = problem.solution
    moved = cone.project(x - 1e-3 * problem.gradient(x), Identity(problem.dim))
    np.testing.assert_allclose(moved, x, atol=1e-12 * np.abs(x).max())


def test_graphs_are_centred_by_default():
    problem = planted(FORMS["graph"])
    assert isinstance(problem.cone, Centred)
    np.testing.assert_allclose(problem.solution.reshape(6, 2).sum(axis=0), 0.0, atol=1e-14)


def test_complex_solutions_are_complex():
    signal = FORMS["complex"].native(planted(FORMS["complex"]).solution)
    assert np.abs(signal.imag).min() > 0.0


@each
def test_planting_costs_no_pass(kind):
    before = FORMS[kind].passes
    planted(FORMS[kind])
    assert FORMS[kind].passes == before


def test_planting_is_repeatable_and_depends_on_the_seed():
    one, same, other = (planted(FORMS["dense"], seed=seed) for seed in (1, 1, 2))
    assert one.c.tobytes() == same.c.tobytes()
    assert one.c.tobytes() != other.c.tobytes()


def test_the_seed_of_the_form_may_serve_again():
    form = spectrum(50, 10, 1.0, seed=4).form
    draws = np.random.default_rng(4).standard_normal(10)
    assert abs(np.corrcoef(planted(form, seed=4).solution, draws)[0, 1]) < 0.9


@pytest.mark.parametrize("name", sorted(set(INSTANCES) - {"orthant"}))
def test_instances_that_know_their_solution_have_zero_gradient_there(name):
    problem = make(name, **SMALL[name])
    if problem.solution is None:
        assert name in {"spectrum", "coherent", "blocks", "heavy_tailed", "scaled", "sparse", "planted_partition"}
        return
    assert np.abs(problem.gradient(problem.solution)).max() <= 1e-14 * np.abs(problem.c).max()
    np.testing.assert_allclose(problem.value(problem.solution), problem.optimum, rtol=1e-12)


def test_bad_forms_and_cones_are_refused():
    with pytest.raises(ProblemError, match="form must be a Form, found ndarray"):
        planted(np.eye(3))
    with pytest.raises(ProblemError, match=r"cone must be a Cone .*found 'orthant'"):
        planted(FORMS["dense"], cone="orthant")
    with pytest.raises(ProblemError, match="needs real points"):
        planted(FORMS["complex"], cone=Orthant())
    with pytest.raises(ProblemError, match="cone=Centred"):
        planted(FORMS["graph"], cone=Free())
    with pytest.raises(ProblemError, match="seed must be at least 0, found -3"):
        planted(FORMS["dense"], seed=-3)
