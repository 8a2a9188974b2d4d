"""Profiles, ratios, fits and bands against cases computed by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartbench.study.report.fits import median_and_band, power_law
from quartbench.study.report.profiles import data_profile, log_ratios, pairs, performance_profile

INF = np.inf
#           p1   p2   p3   p4
COSTS = pd.DataFrame({"a": [1.0, 4.0, 2.0, INF], "b": [2.0, 2.0, INF, INF]})


def test_performance_profile_by_hand():
    found = performance_profile(COSTS)
    # a is best on p1 and p3, twice the best on p2; p4 counts against both.
    np.testing.assert_allclose(found["a"], [[1.0, 2.0], [0.5, 0.75]])
    # b is best on p2, twice the best on p1.
    np.testing.assert_allclose(found["b"], [[1.0, 2.0], [0.25, 0.5]])


def test_performance_profile_of_one_who_is_never_best_starts_at_zero():
    found = performance_profile(pd.DataFrame({"a": [1.0, 1.0], "b": [3.0, 5.0]}))
    np.testing.assert_allclose(found["b"], [[1.0, 3.0, 5.0], [0.0, 0.5, 1.0]])


def test_data_profile_by_hand():
    found = data_profile(COSTS)
    np.testing.assert_allclose(found["a"], [[1.0, 2.0, 4.0], [0.25, 0.5, 0.75]])
    np.testing.assert_allclose(found["b"], [[1.0, 2.0], [0.0, 0.5]])


def test_log_ratios_by_hand():
    # p1: ½, p2: 2, p3: only a solved it, p4: nobody did, so it does not count.
    assert log_ratios(COSTS, "a", "b").tolist() == [-INF, -1.0, 1.0]
    assert log_ratios(COSTS, "b", "a").tolist() == [-1.0, 1.0, INF]


def test_what_costs_nothing_is_solved_and_a_tie_at_nothing_is_a_tie():
    free = pd.DataFrame({"a": [0.0, 0.0, 2.0], "b": [0.0, 3.0, 4.0]})
    np.testing.assert_allclose(performance_profile(free)["a"], [[1.0], [1.0]])
    np.testing.assert_allclose(performance_profile(free)["b"], [[1.0, 2.0], [1 / 3, 2 / 3]])
    assert log_ratios(free, "a", "b").tolist() == [-INF, -1.0, 0.0]
    assert pairs(free).median_ratio.tolist() == [0.5, 2.0]


def test_pairs_by_hand():
    found = pairs(COSTS).set_index(["contender", "against"])
    assert found.loc[("a", "b")].tolist() == [0.5, 2, 3]
    assert found.loc[("b", "a")].tolist() == [2.0, 1, 3]


def test_power_law_is_exact_on_a_power_law():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    fit = power_law(x, 3.0 * x**1.5)
    assert fit.exponent == pytest.approx(1.5)
    assert fit.constant == pytest.approx(3.0)
    assert (fit.low, fit.high) == pytest.approx((1.5, 1.5))
    np.testing.assert_allclose(fit(x), 3.0 * x**1.5)


def test_confidence_interval_by_hand():
    # u = −1, 0, 1 and v = 0, 1, 1 in units of ln: slope ½, residuals −1/6, 1/3, −1/6, s² = 1/6, se = √(1/12);
    # Student's 97.5 % point with one degree of freedom is 12.7062.
    fit = power_law(np.exp([-1.0, 0.0, 1.0]), np.exp([0.0, 1.0, 1.0]))
    width = 12.7062047364 * np.sqrt(1.0 / 12.0)
    assert fit.exponent == pytest.approx(0.5)
    assert (fit.low, fit.high) == pytest.approx((0.5 - width, 0.5 + width))


def test_confidence_interval_agrees_with_scipy():
    from scipy.stats import linregress, t

    rng = np.random.default_rng(0)
    x = np.geomspace(1, 100, 12)
    y = x**0.7 * np.exp(0.1 * rng.standard_normal(12))
    fit, other = power_law(x, y), linregress(np.log(x), np.log(y))
    assert fit.exponent == pytest.approx(other.slope)
    assert fit.high - fit.exponent == pytest.approx(t.ppf(0.975, 10) * other.stderr)


@pytest.mark.parametrize("x", [[1.0, 2.0], [3.0, 3.0, 3.0], [1.0, -1.0, 2.0]])
def test_no_fit_without_three_positive_points_in_two_places(x):
    assert power_law(np.array(x), np.ones(len(x))) is None


def test_points_that_were_not_reached_stay_out_of_a_fit():
    assert power_law(np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 2.0, 4.0, INF])).points == 3


def test_median_and_band_by_hand():
    middle, low, high = median_and_band([[1.0, 5.0, 9.0], [2.0, 4.0, INF], [6.0, 7.0, INF]])
    assert middle.tolist() == [2.0, 5.0, INF]
    assert low.tolist() == [1.0, 4.0, 9.0]
    assert high.tolist() == [6.0, 7.0, INF]


@given(st.lists(st.lists(st.floats(0.1, 1e6) | st.just(INF), min_size=3, max_size=3), min_size=1, max_size=8))
def test_profiles_rise_to_the_share_that_was_solved(rows):
    costs = pd.DataFrame(rows, columns=["a", "b", "c"])
    for make in (performance_profile, data_profile):
        for name, (x, y) in make(costs).items():
            assert (np.diff(x) > 0).all()
            assert (np.diff(y) >= 0).all()
            assert y[-1] == pytest.approx(np.isfinite(costs[name]).mean())
