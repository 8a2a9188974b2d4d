"""Where exactly does the automatic choice change its mind? Its rules, computed by hand on either side of each end."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import quartbench as qb
from quartbench.metrics import Identity
from quartbench.solvers import auto
from quartbench.solvers.auto import AdaptiveNewton, Auto, Conditioning
from quartbench.solvers.homnewton_cg import Last, newton_cg
from quartbench.solvers.plane import Plane
from quartbench.solvers.steps import evaluate

ROWS = np.random.default_rng(0).standard_normal((200, 20))
FORM = qb.StackedForm(ROWS)
PROBLEM = qb.Problem(FORM, np.ones(20))

JUST = 1e-9


@pytest.mark.parametrize(("gap", "digits"), [(None, 8.0), (1e-6, 6.0), (0.5, 1.0), (1e-13, 13.0), (1e-20, 14.0)])
def test_digits_to_go_are_between_one_and_fourteen(gap, digits):
    assert auto.digits(gap) == pytest.approx(digits)


@pytest.mark.parametrize(("share", "near"), [(0.99e-4, True), (1.01e-4, False)])
def test_c_is_near_the_polar_cone_where_a_ten_thousandth_of_it_is_in_the_cone(share, near):
    c = np.array([share, -math.sqrt(1.0 - share**2)])
    assert auto.near_polar(qb.Problem(qb.StackedForm(np.eye(2)), 7.0 * c, qb.Orthant())) == near


@pytest.mark.parametrize(("digits", "factor", "solve"), [(10.0, 40.0, 0.5), (5.0, 7.0, 2.0), (14.0, 100.0, 0.0)])
def test_a_factor_pays_where_nine_roots_of_the_condition_number_are_more_than_it_takes(
    monkeypatch, digits, factor, solve
):
    # To ten digits: 9√κ passes without; factor + (10 + 38)(1 + solve) with one, of which the 38 shrink with the digits.
    monkeypatch.setattr(type(FORM), "factor_cost", lambda form: factor)
    monkeypatch.setattr(type(FORM), "solve_cost", lambda form: solve)
    root = (factor + (10.0 + 3.8 * digits) * (1.0 + solve)) / (0.9 * digits)
    method = AdaptiveNewton(digits, "")
    assert method._factor_pays(FORM, root**2 * (1.0 + JUST))
    assert not method._factor_pays(FORM, root**2 * (1.0 - JUST))


def test_the_last_direction_goes_as_far_as_its_correction_is_dear():
    method = AdaptiveNewton(6.0, "")
    # Without weights, by the rows that there are for three times the unknowns; in B(τ), by the terms that have none.
    assert method._last(FORM, Identity(20)) == pytest.approx(Last(1e-6, 24.0 * 200 / 60))
    assert method._last(qb.StackedForm(ROWS[:50]), Identity(20)) == pytest.approx(Last(1e-6, 24.0))
    wide = qb.StackedForm(ROWS, rank=2)
    assert method._last(wide, Identity(20)) == pytest.approx(Last(1e-6, 24.0 * 200 / 60))
    tau = np.where(np.arange(200) < 80, 1.0, 0.0)
    assert method._last(FORM, SimpleNamespace(tau=tau)) == pytest.approx(Last(1e-6, 24.0 * 2.5))


@pytest.mark.parametrize(("rel_gap", "saved"), [(1e-3, 4.0), (1e-4, 4.0), (1e-9, 8.0), (None, 7.2)])
def test_a_sample_must_save_four_passes_and_eight_tenths_for_each_digit_beyond_four(monkeypatch, rel_gap, saved):
    asked = []
    monkeypatch.setattr(type(FORM), "sampled", lambda form, passes: asked.append(passes))
    Auto().choose_metric(PROBLEM, rel_gap)
    assert asked == [pytest.approx(saved)]


@pytest.mark.parametrize(
    ("bare", "cost", "chosen"),
    [
        ("identity", 30.0, "uniform"),
        ("identity", 30.1, "identity"),
        ("diagonal", 5.0, "uniform"),
        ("diagonal", 5.1, "diagonal"),
    ],
)
def test_a_factor_of_few_passes_is_made_at_once(monkeypatch, bare, cost, chosen):
    monkeypatch.setattr(type(FORM), "sampled", lambda form, passes: None)
    monkeypatch.setattr(type(FORM), "bare_metric", bare)
    monkeypatch.setattr(type(FORM), "factor_cost", lambda form: cost)
    assert Auto().choose_metric(PROBLEM, 1e-6).name == chosen
    monkeypatch.setattr(type(FORM), "factorable", False)
    assert Auto().choose_metric(PROBLEM, 1e-6).name == bare


@pytest.mark.parametrize(("cost", "newton"), [(30.0, True), (30.1, False)])
def test_a_dense_hessian_is_made_where_it_costs_thirty_passes_at_most(monkeypatch, cost, newton):
    monkeypatch.setattr(type(FORM), "hessian_cost", lambda form: cost)
    planned = Auto().planned(PROBLEM, Identity(20), 1e-6)
    assert planned.reason.startswith("homnewton,") == newton


@pytest.mark.parametrize(("digits", "factor", "made"), [(7.1, 8.0, True), (7.0, 8.0, False), (7.1, 16.0, False)])
def test_the_hessian_is_factored_after_so_many_products_as_its_cost_is_worth(monkeypatch, digits, factor, made):
    # More than 4 + cost/4: the directions here take eight products.
    class Watched(Conditioning):
        """Has seen eight products, whatever it sees."""

        def add(self, step, ratio):
            super().add(step, ratio)
            self.steps = [1.0] * 7 if factor == 8.0 else [1.0] * 8

    monkeypatch.setattr(auto, "Conditioning", Watched)
    weights = []
    kind = type(FORM)
    weighted = kind.weighted
    monkeypatch.setattr(kind, "factor_cost", lambda form: factor)
    monkeypatch.setattr(kind, "weighted", lambda form, tau, *rest: weights.append(tau) or weighted(form, tau, *rest))
    metric = weighted(FORM, FORM.uniform_weights())
    method = AdaptiveNewton(digits, "so")
    start = qb.solvers.starting_point(PROBLEM, metric)
    found = list(method.iterates(PROBLEM, metric, start))
    assert len(weights) == made
    if made:
        squares = (ROWS @ found[1].point) ** 2
        np.testing.assert_allclose(weights[0], squares / squares.mean() + 0.1, rtol=1e-9)
        assert found[2].reason == "so, then by the Hessian on the way"


def seen(watch, count):
    """Show a run of conjugate gradients of so many products."""
    watch.begin()
    for _ in range(count):
        watch.add(0.5, 0.25)


def test_a_run_that_was_cut_short_may_have_seen_a_third_of_the_condition_number():
    whole, cut = Conditioning(3), Conditioning(2)
    seen(whole, 2)
    seen(cut, 2)
    a, b = 0.5, 0.25  # Lanczos' matrix, from the steps and ratios of conjugate gradients
    values = np.linalg.eigvalsh([[1.0 / a, math.sqrt(b) / a], [math.sqrt(b) / a, 1.0 / a + b / a]])
    assert whole.condition() == pytest.approx(values[1] / values[0])
    assert cut.condition() == pytest.approx(3.0 * values[1] / values[0])


def test_runs_that_were_cut_short_are_twice_as_long_the_next_time():
    watch = Conditioning(4)
    for count, products in ((3, 4), (4, 4), (4, 8), (8, 8), (1, 16)):
        seen(watch, count)
        assert watch.products == products
    assert len(watch.longest[0]) == 8


# How far a direction is solved ----------------------------------------------------------------------------------------


def test_a_direction_that_cannot_be_the_last_is_solved_as_usual():
    last = Last(1e-8, 10.0)
    # The square of the gap must be at most half of the target.
    assert last.share(1.01 * math.sqrt(0.5e-8), 0.3, 0.01) == 0.3
    assert last.share(0.99 * math.sqrt(0.5e-8), 0.3, 0.01) < 0.3
    for gap, rate in ((0.0, 0.5), (1e-5, 0.0), (1e-5, 1.0)):
        assert last.share(gap, 0.3, rate) == 0.3


def test_the_last_direction_leaves_what_its_certificate_may_cost():
    # share² · gap · dearer is half of the target
    last = Last(1e-8, 10.0)
    assert last.share(1e-6, 0.3, 0.1) == pytest.approx(math.sqrt(0.5e-8 / (1e-6 * 10.0)))
    assert last.share(1e-12, 0.3, 0.1) == 0.3  # more is allowed than usual


@pytest.mark.parametrize(("least", "pays"), [(1.01, True), (0.99, False)])
def test_the_last_direction_goes_on_for_four_fifths_of_another(least, pays):
    # Another takes ln(usual)/ln(rate) + 2 products; going on takes ln(needed/usual)/ln(rate).
    usual, rate = 0.3, 0.6
    another = math.log(usual) / math.log(rate) + 2.0
    needed = usual * rate ** (0.8 * another / least)
    gap = 1e-6
    dearer = 0.5e-8 / (gap * needed**2)
    assert Last(1e-8, dearer).share(gap, usual, rate) == pytest.approx(needed if pays else usual)


def test_a_direction_is_told_its_gap_its_usual_share_and_the_rate_of_the_one_before():
    seen = []

    class Watching(Last):
        def share(self, gap, usual, rate):
            seen.append((gap, usual, rate))
            return usual

    class Counting:
        """Sees conjugate gradients: how many products each direction took."""

        products, counts = 1000, []

        def begin(self):
            self.counts.append(0)

        def add(self, step, ratio):
            self.counts[-1] += 1

    metric, counting, forcing = qb.Identity(FORM.dim), Counting(), 0.4
    y = evaluate(PROBLEM.form, qb.solvers.starting_point(PROBLEM, metric))
    points, decrements = [y.point], []
    for found in itertools.islice(
        newton_cg(Plane(PROBLEM), metric, y, forcing, 1000, counting, Watching(1e-8, 10.0)), 5
    ):
        points.append(found.point)
        decrements.append(found.decrement)
    c, sizes, values = PROBLEM.c, [], []
    for y in points:
        image = ROWS @ y
        value, gradient = float((image**4).sum()), 4.0 * ROWS.T @ image**3
        r = 4.0 * value / (c @ y) * c - gradient
        z = r - (gradient @ r) / (4.0 * value) * y  # H-orthogonal to y
        sizes.append(float(r @ z))
        values.append(value)
    usual = [forcing, *(min(forcing, max(math.sqrt(b / a), 1e-4)) for a, b in itertools.pairwise(sizes))]
    assert len(seen) == 4
    for k, (gap, share, rate) in enumerate(seen, start=1):
        assert gap == pytest.approx(decrements[k - 1] * values[k - 1] / sizes[k - 1] * sizes[k] / values[k], rel=1e-6)
        assert share == pytest.approx(usual[k], rel=1e-6)
        assert rate == pytest.approx(usual[k - 1] ** (1.0 / counting.counts[k - 1]), rel=1e-9)
