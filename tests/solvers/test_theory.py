"""Do the methods obey the theorems of the paper, with the explicit constants of errata 8 and 9 of the documentation?"""

import math
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quartbench import instances, precondition
from quartbench.cones import Orthant
from quartbench.forms import GramForm
from quartbench.model import Problem
from quartbench.solvers import ABPG, AGD, GD, AccelHomGD, Bregman, HomGD, starting_point
from quartbench.solvers.accel_homgd import early_length, early_stages
from quartbench.solvers.contract import homogenised
from quartbench.solvers.steps import level_lipschitz

from .reference import algorithm_1, algorithm_2, delta, random_form

#: What a bound may be missed by: the rounding of √ρ, and of f*, in the worst conditioned cases of the strategy.
ROUNDING = 1e-10


@st.composite
def problems(draw):
    """Draw a planted problem over m, n, r, conditioning and coherence, and one of the three metrics for it."""
    n = draw(st.integers(2, 8))
    m = draw(st.integers(n, 40))
    r = draw(st.integers(1, 3))
    cond, peak = draw(st.sampled_from([(1.0, 1.0), (3.0, 1.0), (30.0, 1.0), (1.0, 10.0), (1.0, 1000.0)]))
    form = random_form(m, n, r, cond, peak, draw(st.integers(0, 2**32 - 1)))
    problem = instances.planted(form, seed=draw(st.integers(0, 1000))).normalised().problem
    return problem, precondition.metric(problem.form, draw(st.sampled_from(["identity", "uniform", "lewis"])))


def run(method, problem, metric, count):
    """Return δ of the first iterates, from the minimum-norm start."""
    start = starting_point(problem, metric)
    values = [iterate.value for iterate in islice(method.iterates(problem, metric, start), count + 1)]
    return delta(np.array(values), problem.optimum)


def ratio(problem, metric):
    """Return L/μ = √27 κ."""
    return math.sqrt(27.0) * metric.bounds.kappa


def assert_reached(deltas, bound):
    """Assert that every accuracy whose bound lies inside the run is reached by then."""
    best = np.minimum.accumulate(deltas)
    for accuracy in np.geomspace(10.0, 1e-9, 40):
        steps = math.ceil(bound(accuracy))
        if steps < len(best):
            assert best[steps] <= accuracy * (1.0 + ROUNDING) + ROUNDING, f"δ ≤ {accuracy:.1e} within {steps} steps"


@given(problems())
def test_start_is_within_kappa_of_the_optimum(drawn):
    problem, metric = drawn
    assert run(HomGD(), problem, metric, 0)[0] <= metric.bounds.kappa - 1.0 + ROUNDING


@given(problems())
@settings(max_examples=25)
def test_homgd_obeys_theorem_4_6(drawn):
    problem, metric = drawn
    deltas, slow = run(HomGD(step="fixed"), problem, metric, 600), ratio(problem, metric)
    assert_reached(
        deltas,
        lambda accuracy: (
            12.0 * slow * (math.log(max(4.0 * deltas[0], 1.0)) + max(math.sqrt(1.0 / accuracy) - 2.0, 0.0))
        ),
    )


@given(problems())
@settings(max_examples=25)
def test_homgd_obeys_the_recursion_of_proposition_4_4_at_every_iterate(drawn):
    problem, metric = drawn
    deltas = np.maximum(run(HomGD(step="fixed"), problem, metric, 300), 0.0)
    now, after = deltas[:-1], deltas[1:]
    promised = now - now**1.5 / (4.0 * ratio(problem, metric) * np.sqrt(2.0 + now))
    assert (after <= promised + ROUNDING).all()


@given(problems())
@settings(max_examples=25)
def test_line_search_obeys_the_recursion_with_its_own_steps(drawn):
    problem, metric = drawn
    start, alpha = starting_point(problem, metric), metric.bounds.alpha
    iterates = list(islice(HomGD().iterates(problem, metric, start), 60))
    deltas = np.maximum(delta(np.array([iterate.value for iterate in iterates]), problem.optimum), 0.0)
    mu = math.sqrt(4.0 / 3.0) * alpha
    for now, after, iterate in zip(deltas, deltas[1:], iterates[1:], strict=False):
        # The proof minimises over τ ≤ 1 at τ = (μt/2)√(δ/(2+δ)); a step longer than 1/μ² would leave that range.
        tau = min(1.0, 0.5 * mu * iterate.step * math.sqrt(now / (2.0 + now)))
        promised = now - tau * now + tau**2 / (mu * iterate.step) * math.sqrt(now * (2.0 + now))
        assert after <= promised + ROUNDING


@given(problems(), st.sampled_from(["fixed", "armijo"]))
@settings(max_examples=40)
def test_homgd_decreases_monotonically(drawn, step):
    problem, metric = drawn
    deltas = run(HomGD(step=step), problem, metric, 150)
    assert (np.diff(deltas) <= ROUNDING * (1.0 + deltas[:-1])).all()


@given(problems())
@settings(max_examples=25)
def test_past_the_burn_in_the_gap_is_2592_kappa_squared_over_k_squared(drawn):
    problem, metric = drawn
    deltas, slow = run(HomGD(step="fixed"), problem, metric, 600), ratio(problem, metric)
    burn_in = math.ceil(12.0 * slow * math.log(max(4.0 * deltas[0], 1.0)))
    k = np.arange(1, len(deltas) - burn_in)
    gaps = -np.expm1(-2.0 / 3.0 * np.log1p(deltas[burn_in + 1 :]))
    assert (gaps <= 2592.0 * (slow**2 / 27.0) / k**2 + ROUNDING).all()


@given(problems())
@settings(max_examples=25)
def test_accelerated_descent_obeys_theorem_4_7(drawn):
    problem, metric = drawn
    deltas, slow = run(AccelHomGD("scheduled", "fixed"), problem, metric, 600), ratio(problem, metric)
    assert_reached(
        deltas, lambda accuracy: 32.0 * math.sqrt(slow) * (max(deltas[0], 0.0) ** 0.25 + 2.0**0.25) / accuracy**0.25
    )


@given(problems())
@settings(max_examples=25)
def test_early_restarts_remove_the_power_of_the_initial_gap(drawn):
    problem, metric = drawn
    deltas = run(AccelHomGD("scheduled", "fixed", early=True), problem, metric, 600)
    bounds = metric.bounds
    length, stages = early_length(bounds), early_stages(bounds)
    assert_reached(deltas, lambda accuracy: length * (stages + 2.0 * (128.0 / accuracy) ** 0.25))
    for stage in range(1, stages + 1):
        if stage * length < len(deltas):
            assert deltas[: stage * length + 1].min() <= max(2.0, deltas[0] / 2.0**stage) * (1.0 + ROUNDING)


@given(problems(), st.sampled_from(["scheduled", "adaptive"]), st.sampled_from(["fixed", "armijo"]))
@settings(max_examples=40)
def test_no_stage_starts_worse_than_the_one_before(drawn, restart, step):
    problem, metric = drawn
    start = starting_point(problem, metric)
    iterates = list(islice(AccelHomGD(restart, step).iterates(problem, metric, start), 150))
    best = iterates[0].value
    for last, first in pairwise(iterates):
        if first.restart:
            best = min(best, last.value)
            assert first.value <= best + ROUNDING * abs(best)


@given(problems(), st.sampled_from(["quartic", "quartic+quadratic"]))
@settings(max_examples=25)
def test_bregman_obeys_kappa_squared_over_k(drawn, kernel):
    problem, metric = drawn
    start, bounds = starting_point(problem, metric), metric.bounds
    iterates = list(islice(Bregman(kernel, "fixed").iterates(problem, metric, start), 200))
    values = np.array([iterate.value for iterate in iterates])
    gaps = (values - problem.optimum) / -problem.optimum
    k = np.arange(1, len(gaps))
    assert (np.diff(values) <= ROUNDING * np.abs(values[:-1])).all()
    if kernel == "quartic":
        assert (gaps[1:] <= bounds.kappa**2 / k + ROUNDING).all()
    distance = kernel_distance(metric, problem.solution, iterates[0].point, kernel)
    assert (gaps[1:] <= 12.0 * bounds.beta**2 * distance / k / -problem.optimum + ROUNDING).all()


@given(problems(), st.sampled_from([1.0, 2.0]))
@settings(max_examples=25)
def test_fixed_steps_of_a_ball_obey_the_standard_bounds(drawn, radius):
    problem, metric = drawn
    start, size = starting_point(problem, metric), -problem.optimum
    lipschitz = level_lipschitz(problem, metric, radius)
    for method, bound in (
        (GD("fixed", radius=radius), lambda k: 1.0 / (2.0 * k)),
        (AGD("fixed", radius=radius), lambda k: 2.0 / (k + 1.0) ** 2),
    ):
        iterates = list(islice(method.iterates(problem, metric, start), 200))
        gaps = np.array([iterate.value - problem.optimum for iterate in iterates])[1:] / size
        squared = metric.norm(iterates[0].point - problem.solution) ** 2
        assert (gaps <= lipschitz * squared * bound(np.arange(1, 200)) / size + ROUNDING).all()


@given(problems(), st.sampled_from(["quartic", "quartic+quadratic"]))
@settings(max_examples=25)
def test_accelerated_bregman_descent_obeys_the_bound_of_its_levels(drawn, kernel):
    problem, metric = drawn
    iterates = list(islice(ABPG(kernel).iterates(problem, metric, starting_point(problem, metric)), 100))
    distance = kernel_distance(metric, problem.solution, iterates[0].point, kernel)
    weight = math.inf
    for iterate in iterates[1:]:
        ratio = weight * iterate.step
        theta = 1.0 if math.isinf(ratio) else (math.sqrt(ratio**2 + 4.0 * ratio) - ratio) / 2.0
        weight = theta**2 / iterate.step
        gap = (iterate.value - problem.optimum) / -problem.optimum
        assert gap <= weight * distance * (1.0 + 1e-6) / -problem.optimum + ROUNDING


def kernel_distance(metric, x, y, kernel):
    """Return D_h(x,y) from its definition."""
    a = 0.0 if kernel == "quartic" else 1.0

    def h(point):
        return 0.25 * metric.norm(point) ** 4 + 0.5 * a * metric.norm(point) ** 2

    return h(x) - h(y) - (metric.norm(y) ** 2 + a) * float(metric.apply(y) @ (x - y))


@pytest.mark.parametrize(
    "method", [HomGD(step="fixed"), AccelHomGD("scheduled", "fixed"), Bregman(step="fixed")], ids=str
)
@pytest.mark.parametrize("case", ["orthant", "gram on the orthant", "graph"])
def test_bounds_hold_on_cones_too(method, case):
    if case == "graph":
        problem = instances.geometric(20, 2, degree=5, seed=1).normalised().problem
        metric = precondition.metric(problem.form, "lewis")
    else:
        form = GramForm(8, 3) if case != "orthant" else random_form(40, 8, 1, 10.0, 1.0, 0)
        problem = instances.planted(form, seed=2, cone=Orthant()).normalised().problem
        metric = precondition.metric(problem.form, "diagonal")
    deltas, slow = run(method, problem, metric, 2000), ratio(problem, metric)
    if isinstance(method, HomGD):
        burn_in = math.log(max(4.0 * deltas[0], 1.0))
        assert_reached(deltas, lambda accuracy: 12.0 * slow * (burn_in + max(accuracy**-0.5 - 2.0, 0.0)))
    elif isinstance(method, AccelHomGD):
        factor = 32.0 * math.sqrt(slow) * (deltas[0] ** 0.25 + 2.0**0.25)
        assert_reached(deltas, lambda accuracy: factor / accuracy**0.25)
    else:
        gaps = -np.expm1(-2.0 / 3.0 * np.log1p(deltas[1:]))
        assert (gaps <= slow**2 / 27.0 / np.arange(1, len(deltas)) + ROUNDING).all()


@pytest.mark.parametrize(
    ("method", "printed"),
    [(HomGD("fixed"), algorithm_1), (AccelHomGD("scheduled", "fixed"), algorithm_2)],
    ids=["1", "2"],
)
def test_fixed_step_methods_are_the_printed_algorithms(method, printed):
    problem = instances.spectrum(60, 12, 0.1, seed=0).normalised().problem
    metric = precondition.metric(problem.form, "identity")
    iterates = islice(method.iterates(problem, metric, starting_point(problem, metric)), 201)
    roots = list(printed(problem.form.rows, np.array(problem.c), metric.bounds.beta, 200))
    assert [iterate.value for iterate in iterates] == pytest.approx([homogenised(rho) for rho in roots], rel=1e-11)


def test_conditioning_and_coherence_are_what_the_strategy_says():
    low, high = random_form(40, 6, 1, 30.0, 1.0, 0), random_form(40, 6, 1, 1.0, 1000.0, 0)
    singular = np.linalg.svd(low.rows, compute_uv=False)
    assert singular[0] / singular[-1] == pytest.approx(30.0)
    assert precondition.coherence(high) > 0.999 > 0.6 > precondition.coherence(low)
    assert isinstance(instances.planted(low), Problem)
