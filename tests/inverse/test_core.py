"""F and its derivatives, the DC split, the methods, and what they do with hostile input."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import quartbench as qb
from quartbench import ProblemError, inverse
from quartbench.inverse.lines import lowest, value_on
from quartbench.inverse.recoveries import phase_gaussian, phase_masks

from .problems import KINDS, clusters, distances, phase, real_rows

OURS = [name for name, method in inverse.methods().items() if not method.peer]
PEERS = [name for name, method in inverse.methods().items() if method.peer]


def weighted():
    problem, truth = distances()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, problem.form.terms)
    return inverse.Problem(problem.form, problem.misfit.d, weights=weights), truth


ALL = {**KINDS, "weighted": weighted}


@pytest.fixture(params=ALL, ids=ALL)
def problem(request):
    return ALL[request.param]()[0]


def points(problem, count, seed=1):
    rng = np.random.default_rng(seed)
    return [problem.cone.euclidean(rng.standard_normal(problem.dim)) for _ in range(count)]


def test_the_data_are_fitted_where_they_came_from():
    for make in ALL.values():
        problem, truth = make()
        assert problem.residual(truth) < 1e-7


def test_the_gradient_is_that_of_differences(problem):
    x, v = points(problem, 2)
    step = 1e-6
    found = (problem.value(x + step * v) - problem.value(x - step * v)) / (2 * step)
    assert found == pytest.approx(float(problem.gradient(x) @ v), rel=1e-6, abs=1e-6 * problem.value(x))


def test_the_hessian_product_is_that_of_differences(problem):
    x, v = points(problem, 2)
    step = 1e-6
    found = (problem.gradient(x + step * v) - problem.gradient(x - step * v)) / (2 * step)
    assert np.allclose(found, problem.hessian_product(x, v), rtol=1e-6, atol=1e-6 * np.abs(found).max())


def test_the_gauss_newton_product_is_the_hessian_product_where_the_data_are_fitted():
    for make in ALL.values():
        problem, truth = make()
        v = points(problem, 1)[0]
        whole, part = problem.hessian_product(truth, v), problem.gauss_newton_product(truth, v)
        assert np.allclose(whole, part, rtol=1e-9, atol=1e-9 * np.abs(whole).max())


def test_the_gauss_newton_matrix_is_symmetric_and_never_curves_down(problem):
    x, v, w = points(problem, 3)
    product = problem.gauss_newton_product(x, v)
    assert product @ v >= 0.0
    assert product @ w == pytest.approx(problem.gauss_newton_product(x, w) @ v)


def test_a_line_is_f_along_it(problem):
    x, v = points(problem, 2)
    line = problem.line(x, v)
    for t in (-1.3, 0.0, 0.4, 2.0):
        assert value_on(line, t) == pytest.approx(problem.value(x + t * v))


def test_products_and_evaluations_are_the_same_with_all_threads():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 64)) + 1j * rng.standard_normal((3000, 64))  # enough work for two threads
    problem = inverse.Problem(qb.ComplexForm(rows), rng.random(3000))
    x, v = points(problem, 2)
    s = rows.conj() @ x.view(complex)
    miss = np.abs(s) ** 2 - problem.misfit.d
    gradient = (rows.T @ (4.0 * miss * s)).view(float)
    t = rows.conj() @ v.view(complex)
    product = (rows.T @ (4.0 * miss * t + 8.0 * (s.conj() * t).real * s)).view(float)
    assert problem.value(x) == pytest.approx(miss @ miss)
    assert np.allclose(problem.gradient(x), gradient, rtol=1e-10, atol=1e-10 * np.abs(gradient).max())
    assert np.allclose(problem.hessian_product(x, v), product, rtol=1e-10, atol=1e-10 * np.abs(product).max())


def test_points_keep_their_shape():
    problem, truth = phase()
    assert problem.gradient(truth).shape == truth.shape
    assert problem.gradient(truth).dtype == complex
    assert inverse.solve(problem, start=truth).x.shape == truth.shape


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_the_convex_model_lies_above_f_and_touches_it(make):
    problem, _ = make()
    x, *others = (np.abs(point) if not problem.cone.subspace else point for point in points(problem, 20))
    c = problem.linearised(x)
    model = qb.Problem(problem.form, c, problem.cone)
    constant = problem.value(x) - model.value(x)
    for y in others:
        assert problem.value(y) <= model.value(y) + constant + 1e-9 * abs(constant)


# Methods --------------------------------------------------------------------------------------------------------------


def takes(problem, method):
    chosen, _ = inverse.make_method(method).chosen(problem)
    try:
        chosen.prepare(problem)
    except ProblemError:
        return False
    return True


def pairs(kinds, names):
    """Return every kind of problem with every method that takes it."""
    return [
        pytest.param(make, name, id=f"{kind}-{name}")
        for kind, make in kinds.items()
        for name in names
        if takes(make()[0], name)
    ]


def test_free_problems_have_many_methods_and_clusters_some():
    assert len(pairs({"phase": phase}, OURS)) == len(OURS) - 2
    assert {"cd", "dc", "dc-accelerated", "nolips", "projected-lbfgs"} <= {
        case.values[1] for case in pairs({"": clusters}, OURS)
    }


@pytest.mark.parametrize(("make", "method"), pairs(ALL, OURS))
def test_f_never_rises(make, method):
    problem, _ = make()
    for seed in range(3):
        found = inverse.solve(problem, method, max_iter=60, seed=seed)
        values = found.history.value
        assert (np.diff(values) <= 1e-13 * problem.size**2).all()
        assert found.fun == pytest.approx(values.min())
        assert found.fun == pytest.approx(problem.value(found.x), rel=1e-6, abs=1e-12 * problem.size**2)


def test_extrapolated_images_stay_those_of_their_points():
    """Extrapolation by t multiplied the rounding of an image by t: after a hundred steps F was wrong by 10⁻³."""
    recovery = phase_gaussian(n=64, ratio=3, seed=0)
    worst = []
    inverse.solve(
        recovery.problem,
        "dc-accelerated",
        recovery.start,
        tol=1e-5,
        max_iter=150,
        callback=lambda state: worst.append(abs(recovery.problem.value(state.x) / state.fun - 1.0)),
    )
    assert len(worst) > 100
    assert max(worst) < 1e-8


@pytest.mark.parametrize(("make", "method"), pairs(KINDS, OURS + PEERS))
def test_every_method_recovers_from_near_the_truth(make, method):
    problem, truth = make()
    flat = problem.form.flat(truth)
    start = problem.cone.euclidean(flat + 0.05 * np.random.default_rng(5).standard_normal(flat.size))
    found = inverse.solve(problem, method, start=start, tol=1e-4, max_iter=5000)
    # Fitted, or so flat there that the gradient is all that can be small.
    assert found.status in ("fitted", "stationary")
    assert found.residual < 2e-2


def test_iterates_on_the_orthant_are_nonnegative():
    problem, _ = clusters()
    for method in ("cd", "dc-accelerated", "nolips", "dc", "projected-lbfgs"):
        seen = []
        inverse.solve(problem, method, max_iter=20, callback=lambda state, seen=seen: seen.append(state.x.min()))
        assert min(seen) >= 0.0


def test_every_dc_step_is_certified():
    problem, _ = phase()
    found = inverse.solve(problem, "dc", max_iter=15)
    assert np.isnan(found.history.gap[0])
    assert (found.history.gap[1:] <= 1e-2).all()


def test_rough_convex_steps_are_not_solved_exactly():
    """The last step's accuracy may hold at the start already: that is no reason to ask for all digits."""
    signal = phase_gaussian(32, 6.0)
    rough, exact = (signal.solve(inverse.DC(accuracy), tol=1e-4) for accuracy in (1.0, 0.001))
    assert rough.success
    assert rough.passes < 0.8 * exact.passes


def test_convex_steps_are_solved_in_the_metric_that_is_asked_for():
    heavy = phase_masks(16, 8, "heavy")
    passes = {
        metric: heavy.solve(inverse.DC(solver="homnewton-cg"), metric, max_iter=3).passes
        for metric in ("auto", "uniform", "identity")
    }
    assert passes["auto"] == passes["uniform"] < passes["identity"] / 3


def test_dc_reaches_a_stationary_point():
    problem, truth = phase()
    found = inverse.solve(problem, "dc", start=truth * 1.3, tol=1e-5, max_iter=500)
    assert found.success
    assert found.stationarity <= 1e-5


def test_newton_converges_where_no_point_fits():
    problem, truth = phase()
    noise = 0.3 * np.random.default_rng(0).standard_normal(problem.form.terms)
    noisy = inverse.Problem(problem.form, problem.misfit.d * np.exp(noise))
    found = inverse.solve(noisy, "newton", start=truth, tol=1e-10)
    assert found.status == "stationary"
    assert found.residual > 1e-3
    assert found.nit < 40


def test_auto_says_what_it_took_and_that_nothing_is_certified():
    found = inverse.solve(phase()[0])
    assert "auto took" in found.message
    assert "never" in found.message
    assert found.stages[-1].method == found.method != "auto"


def test_passes_are_counted_and_the_forms_own_count_stays():
    problem, _ = phase()
    before = problem.form.passes
    found = inverse.solve(problem, "newton")
    assert problem.form.passes == before
    assert found.passes >= found.nit > 0
    assert (np.diff(found.history.passes) > 0).all()


def test_limits_stop_a_run():
    problem, _ = phase()
    assert inverse.solve(problem, "nolips", max_iter=2).status == "max_iter"
    assert inverse.solve(problem, "nolips", max_passes=3).status == "max_passes"
    assert inverse.solve(problem, "nolips", time_limit=0.0).status == "time_limit"
    assert inverse.solve(problem, "nolips", callback=lambda state: False).status == "stopped"


def test_a_method_of_ones_own():
    @inverse.register("descent")
    class Descent(inverse.Method):
        """Descent with a fixed step."""

        def iterates(self, problem, metric, start):
            at = problem.misfit.evaluate(start)
            while True:
                yield inverse.Iterate(at)
                at = problem.misfit.evaluate(at.point - 1e-3 * at.gradient)

    assert "descent" in inverse.methods()
    found = inverse.solve(phase()[0], "descent", max_iter=3)
    assert found.method == "descent"
    assert found.nit == 3


def test_progress_belongs_to_the_error_stream(capsys):
    for problem, method in ((phase()[0], "lbfgs"), (clusters()[0], "projected-lbfgs")):
        assert inverse.solve(problem, method, progress=True).success
    rows, d, truth = inverse.examples.gaussian_phase(8, 60)
    assert inverse.phase_error(inverse.phase(rows, d, progress=True).x, truth) < 1e-4
    assert capsys.readouterr().out == ""


# The lowest point of a quartic ----------------------------------------------------------------------------------------

coefficient = st.floats(-1e3, 1e3).map(lambda number: 0.0 if abs(number) < 1e-3 else number)


@given(st.tuples(coefficient, coefficient, coefficient, coefficient), st.floats(1e-3, 1e3), st.floats(1e-12, 1e12))
def test_the_lowest_point_of_a_line_is_lower_than_any_other(lower, top, unit):
    line = np.array([*lower, top])
    stretched = line / unit ** np.arange(5)
    t = lowest(stretched) / unit
    grid = np.concatenate([np.linspace(-50.0, 50.0, 4001), np.roots(np.polyder(line[::-1])).real])
    others = np.array([value_on(line, other) for other in grid])
    rounding = 1e-15 * float(np.abs(line) @ np.abs(t) ** np.arange(5))
    assert value_on(line, t) <= others.min() + 1e-9 * (np.abs(others).min() + np.abs(line).max()) + rounding


@given(st.tuples(coefficient, coefficient, coefficient, coefficient), st.floats(0.0, 3.0))
def test_the_lowest_point_stays_within_its_limits(lower, high):
    line = np.array([*lower, 1.0])
    t = lowest(line, low=0.0, high=high)
    assert 0.0 <= t <= high
    others = [value_on(line, other) for other in np.linspace(0.0, high, 400)]
    assert value_on(line, t) <= min(others) + 1e-9 * np.abs(line).max()


# Hostile input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-120, 1e-30, 1e30, 1e120])
@pytest.mark.parametrize("method", ["newton", "lbfgs", "nolips", "dc-accelerated"])
def test_data_of_any_scale_are_fitted(scale, method):
    problem, truth = real_rows()
    start = truth + 0.1 * np.random.default_rng(0).standard_normal(truth.size)
    far = inverse.Problem(problem.form, scale * problem.misfit.d)
    found = inverse.solve(far, method, start=np.sqrt(scale) * start, tol=1e-6)
    assert found.residual <= 1e-4
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_rows_of_any_scale_give_no_nan(scale):
    rng = np.random.default_rng(0)
    rows, truth = rng.standard_normal((40, 5)), rng.standard_normal(5)
    form = qb.StackedForm(scale * rows)
    found = inverse.solve(inverse.Problem(form, (rows @ truth) ** 2), start=(truth + 0.1) / scale)
    assert found.residual <= 1e-6
    assert np.isfinite(found.x).all()


def test_model_and_data_of_very_different_scale_give_no_nan():
    problem, truth = real_rows()
    for factor in (1e-100, 1e100):
        found = inverse.solve(problem, "newton", start=factor * truth, max_iter=500)
        assert np.isfinite(found.x).all()
        assert np.isfinite(found.fun)


def test_negative_data_have_no_dc_split_and_the_error_says_what_to_do():
    problem, truth = phase()
    d = problem.misfit.d.copy()
    d[3] = -1.0
    negative = inverse.Problem(problem.form, d)
    with pytest.raises(ProblemError, match=r"found -1 at index 3; clip d"):
        negative.linearised(truth)
    with pytest.raises(ProblemError, match="newton"):
        inverse.solve(negative, "dc")
    assert inverse.solve(negative, "newton", start=truth).success


def test_an_indefinite_matrix_has_no_dc_split_but_cd_takes_it():
    matrix = np.array([[0.0, 1.0, 0.2], [1.0, 0.0, 0.1], [0.2, 0.1, 0.0]])
    problem = inverse.Problem(qb.GramForm(3, 2), matrix, qb.Orthant())
    with pytest.raises(ProblemError, match="eigenvalue -1"):
        inverse.solve(problem, "dc")
    found = inverse.solve(problem, "cd", seed=1)
    assert (np.diff(found.history.value) <= 1e-12).all()
    assert (found.x >= 0.0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: inverse.Problem("rows", [1.0]), "form must be a Form"),
        (lambda: inverse.Problem(phase()[0].form, np.ones(3)), "one number for each of the 64 terms, found 3"),
        (lambda: inverse.Problem(phase()[0].form, np.zeros(64)), "all zero"),
        (lambda: inverse.Problem(phase()[0].form, np.full(64, np.nan)), "finite"),
        (lambda: inverse.Problem(phase()[0].form, np.ones(64) * 1j), "real"),
        (lambda: inverse.Problem(phase()[0].form, np.ones(64), weights=-np.ones(64)), "negative"),
        (lambda: inverse.Problem(phase()[0].form, np.ones(64), cone="free"), "cone must be a Cone"),
        (lambda: inverse.Problem(qb.GramForm(3, 1), np.ones((2, 2))), "shape"),
        (lambda: inverse.Problem(qb.GramForm(2, 1), [[1.0, 2.0], [0.0, 1.0]]), r"take \(M \+ M.T\)/2"),
        (lambda: inverse.Problem(qb.GramForm(2, 1), sp.csr_matrix((2, 2))), "all zero"),
        (lambda: inverse.Problem(qb.GramForm(2, 1), np.eye(2), weights=[1.0]), "weights are for forms with terms"),
        (lambda: inverse.solve(phase()[0], "newtom"), "did you mean 'newton'"),
        (lambda: inverse.solve(phase()[0], start="best"), "start must be"),
        (lambda: inverse.solve(phase()[0], start=np.zeros(8)), "not be zero"),
        (lambda: inverse.solve(phase()[0], start=np.full(8, np.nan)), "finite"),
        (lambda: inverse.solve(phase()[0], tol=0.0), "tol must be"),
        (lambda: inverse.solve(phase()[0], max_iter=-1), "max_iter must be nonnegative or None, found -1"),
        (lambda: inverse.solve(phase()[0], max_passes=0), "max_passes must be positive or None, found 0"),
        (lambda: inverse.solve(phase()[0], time_limit="1"), "time_limit must be nonnegative or None, found '1'"),
        (lambda: inverse.LBFGS(memory=0), "memory must be at least 1, found 0"),
        (lambda: inverse.ProjectedLBFGS(memory=0), "memory must be at least 1, found 0"),
        (lambda: inverse.DC(accuracy=0.0), r"accuracy must lie in \(0, inf\), found 0.0"),
        (lambda: inverse.DCInexact(steps=0), "steps must be at least 1, found 0"),
        (lambda: inverse.DCAccelerated(memory=0), "memory must be at least 1, found 0"),
        (lambda: inverse.CD(sweeps=0), "sweeps must be at least 1, found 0"),
        (lambda: inverse.Newton(forcing=2.0), r"forcing must lie in \(0, 1\], found 2.0"),
        (lambda: inverse.Newton(products=0), "products must be at least 1, found 0"),
        (lambda: inverse.methods()["symhals"](coupling=-1.0), "coupling must lie in"),
        (lambda: inverse.methods()["wirtinger"](largest=0.0), "largest must lie in"),
        (lambda: inverse.methods()["reshaped-wirtinger"](step=0.0), "step must lie in"),
        (lambda: inverse.solve(clusters()[0], "newton"), "needs free space or a subspace"),
        (lambda: inverse.solve(phase()[0], "cd"), "cd needs a matrix"),
        (lambda: inverse.solve(phase()[0], "lbfgs", metric="uniform"), "needs a diagonal metric"),
        (lambda: inverse.solve(weighted()[0], "dc"), "weigh all terms alike"),
        (lambda: inverse.solve(qb.instances.spectrum(20, 3, 0.5)), "must be an inverse.Problem"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ProblemError, match=message):
        make()
