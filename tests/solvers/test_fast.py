"""Do HomCG, HomNewton, HomNewtonCG and the automatic choice find the minimiser, fast, wherever the others do?"""

import threading

import numpy as np
import pytest

from quartbench import instances, testing
from quartbench.cones import Free, Orthant, SecondOrder
from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, GraphForm, StackedForm
from quartbench.instances.planted import plant_at
from quartbench.metrics import Diagonal
from quartbench.model import Problem
from quartbench.solvers import HomNewtonCG, Iterate, Solver, solve
from quartbench.solvers.homcg import REFRESH
from tests.model.planted import CASES, planted, true_gap

FAST = ("homcg", "homnewton", "homnewton-cg", "auto")


def relative_gap(problem, result):
    """Return how far a result is above the known optimum."""
    return (result.fun - problem.optimum) / -problem.optimum


def never_rises(result):
    """Say whether the values fall, up to rounding."""
    values = result.history.value
    return (np.diff(values) <= 1e-13 * np.abs(values[1:])).all()


# Agreement ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(("kind", "cone"), CASES)
def test_every_form_and_cone_is_solved_to_the_planted_solution(kind, cone, name):
    problem = planted(kind, cone, seed=1)
    if cone == "second-order" and name in ("homcg", "homnewton-cg"):
        with pytest.raises(ProblemError, match=r"takes cones with directions .*, found 'second-order'"):
            solve(problem, name)
        return
    result = solve(problem, name, rel_gap=1e-11)
    assert result.status == "converged"
    assert true_gap(problem, problem.cone.euclidean(problem.form.flat(result.x))) <= result.gap <= 1e-11
    assert relative_gap(problem, result) >= -1e-13
    assert cone == "second-order" or never_rises(result)
    slow = solve(problem, "accel-homgd", rel_gap=1e-11)
    assert result.fun == pytest.approx(slow.fun, rel=1e-10)
    x, other = problem.form.flat(result.x), problem.form.flat(slow.x)
    assert np.linalg.norm(x - problem.solution) <= 1e-3 * np.linalg.norm(problem.solution)
    assert np.linalg.norm(x - other) <= 1e-3 * np.linalg.norm(problem.solution)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("n", [8, 90])
@pytest.mark.parametrize("kind", ["free", "orthant"])
def test_larger_problems_agree_with_accel_homgd(kind, n, name):
    form = StackedForm(np.random.default_rng(n).standard_normal((3 * n, n)))
    problem = instances.planted(form, seed=2, cone=Orthant() if kind == "orthant" else Free())
    result, slow = (solve(problem, method, rel_gap=1e-12) for method in (name, "accel-homgd"))
    assert result.success
    assert slow.success
    assert result.fun == pytest.approx(slow.fun, rel=2e-12)
    assert np.linalg.norm(result.x - slow.x) <= 1e-4 * np.linalg.norm(slow.x)
    assert result.passes < (1.3 if kind == "orthant" else 1.0) * slow.passes


# Convergence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cone"), [("dense", "free"), ("block", "free"), ("complex", "free"), ("sparse", "free")]
)
def test_homnewton_converges_quadratically(kind, cone):
    problem = planted(kind, cone, seed=1)
    points = []
    result = solve(problem, "homnewton", rel_gap=1e-15, callback=lambda state: points.append(state.x))
    # Gaps in rational arithmetic: each is at most a constant times the square of the one before, until rounding.
    gaps = np.array([true_gap(problem, problem.form.flat(x)) for x in points])
    before, after = gaps[:-1], gaps[1:]
    near = (before < 1e-2) & (before > 1e-13)
    assert near.sum() >= 2
    assert (after[near] <= np.maximum(30.0 * before[near] ** 2, 1e-28)).all(), gaps
    assert result.nit <= 9


def test_quadratic_convergence_is_visible_in_the_history():
    problem = instances.spectrum(300, 40, 0.1, seed=0)
    gaps = solve(problem, "homnewton", rel_gap=1e-13).history.gap
    digits = -np.log10(gaps[(gaps < 0.1) & (gaps > 1e-14)])
    assert len(digits) >= 3
    assert (digits[1:] >= np.minimum(1.7 * digits[:-1], 11.0) - 0.5).all(), digits


def test_homnewton_cg_takes_few_iterations_and_counts_its_products():
    problem = instances.spectrum(300, 80, 0.1, seed=0)
    form, counted = problem.form, []
    original = StackedForm.hessian_product_flat

    def counting(self, *arguments):
        counted.append(self)
        return original(self, *arguments)

    solve(problem, "homnewton-cg", "identity", rel_gap=1e-10)  # warmed: its first steps are not among those counted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StackedForm, "hessian_product_flat", counting)
        result = solve(problem, "homnewton-cg", "identity", rel_gap=1e-10)
    assert result.nit <= 15
    products = len(counted)
    # One pass at the start, a pass a product, and one or two a search.
    assert 1 + products + result.nit <= result.passes <= 1 + products + 2 * result.nit
    assert form.passes == 0


@pytest.mark.parametrize("cone", [Free(), Orthant()])
def test_homcg_takes_two_passes_an_iteration(cone):
    problem = instances.planted(instances.spectrum(300, 60, 0.02, seed=0).form, seed=0, cone=cone)
    result = solve(problem, "homcg", "identity", rel_gap=1e-10)
    assert result.success
    passes = np.diff(result.history.passes)
    assert result.history.passes[0] == 1
    assert result.nit > (REFRESH if cone.name == "free" else 20)
    fresh = np.arange(1, len(passes) + 1) % REFRESH == 0
    assert (passes[~fresh] <= 2).all()
    assert (passes[fresh] <= 3).all()


def test_homnewton_takes_two_or_three_passes_an_iteration():
    passes = np.diff(solve(instances.spectrum(200, 30, 0.1), "homnewton", rel_gap=1e-12).history.passes)
    assert set(passes.tolist()) <= {2, 3}


# Hard numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("a", [1e-60, 1e60])
@pytest.mark.parametrize("b", [1e-60, 1e60])
@pytest.mark.parametrize("n", [20, 70])
def test_gap_1e_10_at_any_scale(name, a, b, n):
    rng = np.random.default_rng(n)
    rows, c = rng.standard_normal((2 * n, n)), rng.standard_normal(n)
    result = solve(Problem(StackedForm(a * rows), b * c), name, rel_gap=1e-10)
    assert (result.status, result.gap <= 1e-10) == ("converged", True)
    plain = solve(Problem(StackedForm(rows), c), name, rel_gap=1e-10)
    assert np.abs(plain.nit - result.nit) <= 1


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(
    "problem",
    [
        instances.spectrum(80, 40, 1e-4, seed=0),
        instances.spectrum(200, 100, 1e-4, seed=1),
        instances.coherent(300, 30, 0.999, seed=0),
        instances.coherent(300, 80, 0.999, seed=1),
        instances.heavy_tailed(300, 70, 2.0, seed=0),
    ],
    ids=repr,
)
def test_gap_1e_10_on_ill_conditioned_and_coherent_rows(name, problem):
    result = solve(problem, name, rel_gap=1e-10)
    assert result.status == "converged"
    assert never_rises(result)


@pytest.mark.parametrize("name", FAST)
def test_singular_values_that_span_1e4_evenly(name):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((m, 70)))[0] for m in (200, 70))
    problem = instances.planted(StackedForm((left * np.geomspace(1.0, 1e-4, 70)) @ right), seed=0)
    result = solve(problem, name, rel_gap=1e-10)
    assert result.status == "converged"
    assert -1e-10 <= relative_gap(problem, result) <= 1e-10


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("spread", [10, 25])
@pytest.mark.parametrize("n", [20, 70])
def test_columns_in_very_different_units(name, spread, n):
    # homnewton crept, and a factor in single precision overflowed.
    rng = np.random.default_rng(0)
    form = StackedForm(rng.standard_normal((3 * n, n)) * 10.0 ** rng.uniform(-spread, spread, n))
    problem = instances.planted(form, seed=0)
    result = solve(problem, name, rel_gap=1e-10, max_iter=200)
    assert result.status == "converged"
    assert abs(relative_gap(problem, result)) <= 1e-10


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
@pytest.mark.parametrize("cone", [Free(), Orthant()])
def test_a_users_metric_may_have_any_scale(name, scale, cone):
    # homcg searched along d itself: fourth powers overflowed, and its values rose.
    problem = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((60, 12))), seed=0, cone=cone)
    result = solve(problem, name, Diagonal(np.full(12, scale)), rel_gap=1e-10, max_iter=300)
    assert result.status == "converged"
    assert never_rises(result)
    assert abs(relative_gap(problem, result)) <= 1e-10


# Small and degenerate problems ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 1), (2, 2), (7, 7), (80, 80)])
@pytest.mark.parametrize("cone", [Free(), Orthant()])
def test_tiny_and_square_problems(name, m, n, cone):
    if n == 1 and cone.name == "orthant":
        problem = Problem(StackedForm(np.arange(1.0, m + 1.0)[:, None]), np.array([2.0]), cone)
        fourth = (np.arange(1.0, m + 1.0) ** 4).sum()
        optimum = -0.75 * 2.0 * (2.0 / (4.0 * fourth)) ** (1.0 / 3.0)
    else:
        form = StackedForm(np.random.default_rng(m).standard_normal((m, n)) + 2.0 * np.eye(m, n))
        problem = instances.planted(form, seed=1, cone=cone)
        optimum = problem.optimum
    result = solve(problem, name, rel_gap=1e-10)
    assert result.status == "converged"
    assert result.fun == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("cone", [Free(), Orthant()])
@pytest.mark.parametrize("n", [6, 70])
def test_terms_that_vanish_at_the_solution(name, cone, n):
    # Identity rows with some cᵢ = 0: xᵢ = 0 there, and the Hessian at the solution is singular.
    c = np.abs(np.random.default_rng(0).standard_normal(n)) + 0.1
    c[::2] = 0.0
    result = solve(Problem(StackedForm(np.eye(n)), c, cone), name, rel_gap=1e-10)
    assert result.status == "converged"
    assert result.x == pytest.approx(np.cbrt(c / 4.0), abs=1e-2 * np.cbrt(c.max()))
    assert result.fun == pytest.approx(-0.75 * (c * np.cbrt(c / 4.0)).sum(), rel=1e-10)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("seed", range(3))
def test_terms_that_alone_see_a_direction_vanish_at_the_solution(name, seed):
    rng = np.random.default_rng(seed)
    rows = np.zeros((9, 6))
    rows[:6, :3], rows[6:, 3:] = rng.standard_normal((6, 3)), rng.standard_normal((3, 3))
    form = StackedForm(rows @ np.linalg.qr(rng.standard_normal((6, 6)))[0])
    x = np.linalg.lstsq(form.rows, np.concatenate([rows[:6, :3] @ rng.standard_normal(3), np.zeros(3)]), rcond=None)[0]
    problem = plant_at(form, Free().bind(form), x, {})
    result = solve(problem, name, rel_gap=1e-10)
    assert result.status == "converged"
    assert abs(relative_gap(problem, result)) <= 1e-10


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("n", [10, 80])
@pytest.mark.parametrize("cone", [Free(), Orthant()])
def test_a_start_at_which_most_terms_vanish(name, n, cone):
    # The Hessian there sees one coordinate: conjugate gradients took steps without bounds along the others.
    for seed in range(3):
        problem = instances.planted(StackedForm(np.eye(n)), seed=seed, cone=cone)
        first = int(np.argmax(problem.c))
        result = solve(problem, name, rel_gap=1e-10, start=np.eye(n)[first])
        assert result.status == "converged"
        assert abs(relative_gap(problem, result)) <= 1e-10
        assert never_rises(result)


@pytest.mark.parametrize("name", [*FAST, "accel-homgd"])
def test_a_start_almost_orthogonal_to_c_gives_no_false_certificate(name):
    # homcg updated an image that had the rounding of a point 1e12 times as long: it certified f below f*.
    problem = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((40, 10))), seed=0)
    c = problem.c / np.linalg.norm(problem.c)
    for seed in range(4):
        start = np.random.default_rng(seed).standard_normal(10)
        start += (1e-12 * np.linalg.norm(start) - c @ start) * c
        result = solve(problem, name, rel_gap=1e-10, start=start)
        assert result.status == "converged"
        assert abs(relative_gap(problem, result)) <= 1e-10
        assert result.fun == pytest.approx(problem.value(result.x), rel=1e-12)
        assert result.lower_bound <= problem.optimum * (1.0 - 1e-14)


class Drifting(Solver):
    """Reports what is true of another point."""

    def iterates(self, problem, metric, start):
        best = problem.solution / problem.inner(problem.solution)
        yield Iterate(start, problem.homogenised_value(start))
        for _ in range(5):
            yield Iterate(start.copy(), problem.homogenised_value(best), evaluated=problem.form.evaluate(best))


def test_what_a_method_says_of_its_point_is_not_believed():
    problem = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((40, 10))), seed=0)
    result = solve(problem, Drifting(), rel_gap=1e-10)
    assert not result.success
    assert result.fun == pytest.approx(problem.value(result.x), rel=1e-12)
    assert result.gap >= relative_gap(problem, result) > 1e-6


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("n", [12, 60])
def test_orthants_without_strict_complementarity(name, n):
    rng = np.random.default_rng(n)
    form = StackedForm(rng.standard_normal((3 * n, n)))
    x = np.where(np.arange(n) % 2, np.abs(rng.standard_normal(n)), 0.0)
    for slack in (0.0, 1e-9 * np.linalg.norm(form.gradient(x)) * (x == 0.0)):
        problem = plant_at(form, Orthant().bind(form), x, {}, slack)
        result = solve(problem, name, rel_gap=1e-10)
        assert result.status == "converged"
        assert (result.x >= 0.0).all()
        assert abs(relative_gap(problem, result)) <= 1e-10


@pytest.mark.parametrize("name", FAST)
def test_c_almost_in_the_polar_cone(name):
    rng = np.random.default_rng(0)
    c = -np.abs(rng.standard_normal(40))
    c[3] = 1e-8
    problem = Problem(StackedForm(rng.standard_normal((120, 40))), c, Orthant())
    result = solve(problem, name, rel_gap=1e-10)
    assert result.status == "converged"
    assert result.fun < 0.0


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(("points", "d"), [(2, 1), (2, 3), (3, 2), (15, 2)])
def test_small_graphs(name, points, d):
    path = GraphForm(points, d, [(i, i + 1) for i in range(points - 1)])
    problem = instances.planted(path, seed=points)
    result = solve(problem, name, rel_gap=1e-10)
    assert result.status == "converged"
    assert np.abs(result.x.mean(axis=0)).max() <= 1e-12
    assert result.x.reshape(-1) == pytest.approx(problem.solution, abs=1e-3)


@pytest.mark.parametrize("name", FAST)
def test_c_almost_a_translation_of_a_graph(name):
    # What is left of c is rounding, whose squared norm in a metric came out negative.
    form = GraphForm(5, 2, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 3)])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        result = solve(Problem(form, rng.standard_normal(2) + 1e-14 * rng.standard_normal((5, 2))), name, rel_gap=1e-8)
        assert result.fun < 0.0


@pytest.mark.parametrize("name", FAST)
def test_one_complex_term(name):
    # The second iterate is the solution to the last bit: searches from there went to 1e300.
    for seed in range(8):
        q, c = np.random.default_rng(seed).standard_normal(4).view(complex)
        result = solve(Problem(ComplexForm([[q]]), [c]), name, rel_gap=1e-10)
        assert result.status == "converged"
        assert result.fun == pytest.approx(-3.0 * (abs(c) / (4.0 * abs(q))) ** (4.0 / 3.0), rel=1e-9)


@pytest.mark.parametrize("name", FAST)
def test_repeated_rows(name):
    rows = np.repeat(np.random.default_rng(0).standard_normal((9, 8)), 5, axis=0)
    problem = instances.planted(StackedForm(rows), seed=0)
    assert abs(relative_gap(problem, solve(problem, name, rel_gap=1e-10))) <= 1e-10


# Manners --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
def test_no_result_is_worse_than_the_start(name):
    for problem in testing.problems(seed=5).values():
        if problem.cone.name == "second-order" and name != "auto":
            continue
        rng = np.random.default_rng(1)
        start = problem.cone.euclidean(problem.solution + 0.3 * rng.standard_normal(problem.dim))
        begun = problem.homogenised_value(start)
        for limit in (0, 1, 2, 100):
            assert solve(problem, name, start=start, max_iter=limit).fun <= begun + 1e-9 * abs(begun)


@pytest.mark.parametrize("name", FAST)
def test_limits_and_callbacks_stop_them(name):
    problem = instances.spectrum(300, 100, 0.02, seed=0)
    assert solve(problem, name, rel_gap=1e-15, max_iter=2).nit <= 2
    result = solve(problem, name, rel_gap=1e-15, max_passes=3)
    assert result.status == "max_passes"
    assert solve(problem, name, rel_gap=1e-15, time_limit=0.0).status == "time_limit"
    stopped = solve(problem, name, rel_gap=1e-15, callback=lambda state: state.iteration < 1)
    assert (stopped.status, stopped.nit) == ("stopped", 1)
    assert np.isfinite(stopped.gap)


@pytest.mark.parametrize("name", FAST)
def test_without_certificates_they_end_by_themselves_at_the_optimum(name):
    problem = instances.planted(StackedForm(np.random.default_rng(0).standard_normal((200, 70))), seed=0)
    result = solve(problem, name, certify=False)
    assert result.status == "stalled"
    assert abs(relative_gap(problem, result)) <= 1e-12
    assert result.nit < 200


@pytest.mark.parametrize("name", FAST)
def test_two_at_once_in_two_threads(name):
    form = StackedForm(np.random.default_rng(0).standard_normal((300, 90)))
    problems = [instances.planted(form, seed=seed) for seed in (0, 1)]
    alone = [solve(problem, name, rel_gap=1e-10) for problem in problems]
    found = {}
    workers = [
        threading.Thread(target=lambda k=k: found.update({k: solve(problems[k], name, rel_gap=1e-10)})) for k in (0, 1)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k, one in enumerate(alone):
        assert found[k].success
        assert found[k].fun == pytest.approx(one.fun, rel=1e-10)


def test_forcing_and_products_are_settings():
    problem = instances.spectrum(300, 80, 0.05, seed=0)
    few = solve(problem, HomNewtonCG(products=3), "identity", rel_gap=1e-8)
    exact = solve(problem, HomNewtonCG(forcing=1e-3), "identity", rel_gap=1e-8)
    assert few.success
    assert exact.success
    assert exact.nit < few.nit
    assert (np.diff(few.history.passes) <= 5).all()


@pytest.mark.parametrize("name", FAST)
def test_directions_that_lose_their_descent_on_the_orthant(name):
    # homnewton-cg jammed at a gap of 7 %: projected, its direction stopped at coordinates that were almost zero.
    for seed in range(12):
        rng = np.random.default_rng(seed)
        form = StackedForm(rng.standard_normal((90, 30)))
        problem = Problem(form, np.abs(rng.standard_normal(30)), Orthant())
        assert solve(problem, name, rel_gap=1e-10).status == "converged", seed


@pytest.mark.parametrize("c", [(1.0, 3.0, 0.0), (0.0, 0.0, 2.0, 3.0), (1.0, 2.0, -3.0, 2.0, 0.0, 0.0)])
@pytest.mark.parametrize("solver", ["auto", "homnewton"])
def test_coordinates_that_no_row_moves_do_not_matter_on_the_second_order_cone(solver, c):
    # The Hessian at the solution has zeros on its diagonal: their inverses overflowed.
    result = solve(Problem(StackedForm(np.eye(len(c))), c, SecondOrder()), solver=solver, rel_gap=1e-9)
    assert result.success
