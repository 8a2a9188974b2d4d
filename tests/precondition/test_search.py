"""The searches for extremes of √ρ and for the best diagonal: when they go on, when they end, and what they minimise."""

import numpy as np
import pytest

import quartbench as qb
from quartbench.precondition import diagonals, lewis_weights, metric
from quartbench.precondition.diagonals import log_kappa
from quartbench.precondition.kappa import _Search

RNG = np.random.default_rng(0)


# Extremes of √ρ -------------------------------------------------------------------------------------------------------


class Scripted(_Search):
    """A search whose points have the values and gradients that it is told."""

    def __init__(self, values, ascents):
        form = qb.StackedForm(np.eye(2))
        super().__init__(form, metric(form, "identity"), len(values) - 1)
        self.values, self.ascents, self.directions = iter(values), iter(ascents), []

    def _placed(self, x):
        return x, x, next(self.values)

    def _ascent(self, x, image, sign):
        return np.array(next(self.ascents))

    def _best_step(self, x, image, direction, sign):
        self.directions.append(direction.tolist())
        return 0.0


@pytest.mark.parametrize(("gain", "goes_on"), [(1.5e-12, True), (0.7e-12, False), (-1.0, False)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_search_goes_on_where_a_step_gains_a_trillionth(gain, goes_on, sign):
    values = sign * gain * np.arange(5.0)
    search = Scripted(values, [(1.0, 0.0)] * 4)
    assert search(np.ones(2), sign) == (values[4] if goes_on else 0.0)


@pytest.mark.parametrize(("square", "goes_on"), [(1.5e-20, True), (0.7e-20, False), (np.nan, False)])
def test_a_search_ends_where_the_gradient_is_rounding(square, goes_on):
    search = Scripted([0.0, 1.0], [(0.0, np.sqrt(square))])
    assert search(np.ones(2), 1.0) == float(goes_on)


def test_a_step_that_gains_nothing_is_tried_again_along_the_gradient_alone():
    # The second gradient is perpendicular to the first and as long: Polak and Ribière keep all of the first direction.
    search = Scripted([0.0, 1.0, 1.0, 2.0], [(1.0, 0.0), (0.0, 1.0), (0.0, 1.0)])
    assert search(np.ones(2), 1.0) == 2.0
    assert search.directions == [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    # And where the gradient alone gains nothing either, it ends.
    search = Scripted([0.0, 1.0, 1.0, 1.0, 2.0], [(1.0, 0.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)])
    assert search(np.ones(2), 1.0) == 1.0
    assert len(search.directions) == 3


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_points_of_a_line_where_rounding_makes_the_form_negative_are_no_extremes(sign, monkeypatch):
    # P = t⁴ − 3t² + 1 and Q = 1 + t²: P'Q = 2PQ' at 0 and ±1, where P is −1.
    form = qb.StackedForm(np.eye(2))
    search = _Search(form, metric(form, "identity"), 1)
    monkeypatch.setattr(type(form), "line_from_images", lambda form, s, t: np.array([1.0, 0.0, -3.0, 0.0, 1.0]))
    x, direction = np.eye(2)
    assert search._best_step(x, x, direction, sign) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_step_is_that_of_a_fine_grid(sign):
    # With far points as well: x + td at large t is d, whose value may be the better one.
    rows = np.random.default_rng(5).standard_normal((9, 3))
    form = qb.StackedForm(rows)
    made = metric(form, "uniform")
    search = _Search(form, made, 1)
    for seed in range(12):
        x, direction = np.random.default_rng(seed).standard_normal((2, 3))
        x = x / made.norm(x)
        t = search._best_step(x, rows @ x, direction, sign)

        def value(t, x=x, d=direction):
            return 0.5 * np.log(form.value(x + t * d)) - 2.0 * np.log(made.norm(x + t * d))

        grid = [value(one) for one in np.tan(np.linspace(-1.57, 1.57, 2001))]
        assert sign * value(t) >= max(sign * np.array(grid)) - 1e-12


# The best diagonal ----------------------------------------------------------------------------------------------------


def test_power_means_are_within_the_eighth_root_of_n_and_reach_it():
    # All eigenvalues of the identity are one: ½ln n^{1/8} + ln n^{1/8} is all that smoothing adds to ln κ = 0.
    for n in (3, 7):
        found, _ = log_kappa(np.zeros(n), np.eye(n), np.eye(n), 1)
        assert found == pytest.approx(1.5 * np.log(n) / 8.0, rel=1e-12)


@pytest.mark.parametrize("power", [8.0, -8.0])
def test_power_means_of_numbers_far_apart_are_their_extremes(power):
    values = np.array([1e-60, 1.0])
    mean, shares = diagonals._mean(values, power)
    assert mean == pytest.approx(0.0 if power > 0.0 else np.log(1e-60), abs=1e-12)
    np.testing.assert_allclose(shares, [0.0, 1.0] if power > 0.0 else [1.0, 0.0], atol=1e-12)


def test_eigenvalues_that_are_rounding_count_as_a_rounding_of_the_largest():
    values, _ = diagonals._eigh(np.diag([0.0, 3.0, 4.0]))
    np.testing.assert_allclose(values, [4.0 * 2.0**-53, 3.0, 4.0], rtol=1e-15)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 3.0, 1e45])
def test_the_search_ends_near_a_minimum_of_the_smoothed_bound(rank, scale):
    rows = np.random.default_rng(1).standard_t(2, (60, 4)) * np.array([1.0, 5.0, 0.1, 2.0])
    form = qb.StackedForm(rows, rank).scaled(scale)
    tau = np.linspace(0.5, 2.0, form.terms)
    start = np.array([3.0, 1.0, 2.0, 0.5]) * scale**2
    d, steps = diagonals._searched(form, tau, start)
    assert steps > 1
    assert np.log(d / start).mean() == pytest.approx(0.0, abs=1e-9)
    # κ does not mind the scale of the rows: in units of them.
    base = rows.T @ (np.repeat(tau, rank)[:, None] * rows)
    value, slope = log_kappa(np.log(d / scale**2), rows, base, rank)
    before, slope_before = log_kappa(np.log(start / scale**2), rows, base, rank)
    assert value < before - 0.1
    assert np.linalg.norm(slope) < 0.02 * np.linalg.norm(slope_before)


def test_the_search_stays_within_e_to_the_20_of_its_start(monkeypatch):
    slope = np.array([1.0, 1.0, -1.0, 1.0])
    monkeypatch.setattr(diagonals, "log_kappa", lambda u, *rest: (float(slope @ u), slope))
    start = np.array([1.0, 2.0, 3.0, 4.0])
    d, _ = diagonals._searched(qb.StackedForm(RNG.standard_normal((9, 4))), np.ones(9), start)
    # u is −20 but for one +20: −10 on average, which is taken away.
    np.testing.assert_allclose(np.log(d / start), [-10.0, -10.0, 30.0, -10.0], rtol=1e-9)


def searches(monkeypatch, form, most):
    """Return how often a search is made for a form where rows of so many bytes are searched."""
    calls, asked = [], diagonals._searched

    def noting(*arguments):
        calls.append(arguments)
        return asked(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(diagonals, "SEARCHED", most)
        patch.setattr(diagonals, "_searched", noting)
        made = diagonals.best_diagonal(form)
    return len(calls), made


def test_rows_up_to_a_size_are_searched(monkeypatch):
    form = qb.StackedForm(RNG.standard_normal((60, 5)), 3)
    size = RNG.standard_normal((60, 5)).nbytes
    assert searches(monkeypatch, form, size)[0] == 1
    assert searches(monkeypatch, form, size - 1)[0] == 0


@pytest.mark.parametrize(
    "form", [qb.instances.complex_gaussian(30, 3).form, qb.instances.barbell(8, dim=2).form], ids=["complex", "graph"]
)
def test_complex_rows_and_graphs_are_not_searched(monkeypatch, form):
    calls, made = searches(monkeypatch, form, 1 << 29)
    assert calls == 0
    assert made.sweeps == lewis_weights(form).sweeps


def test_every_gram_matrix_of_the_search_counts_as_a_sweep(monkeypatch):
    form = qb.StackedForm(RNG.standard_t(2, (60, 4)))
    monkeypatch.setattr(diagonals, "_searched", lambda form, tau, start: (start, 17))
    assert diagonals.best_diagonal(form).sweeps == lewis_weights(form).sweeps + 17
