"""Exponents of k in the gap: fitted over the part of a run that shows them, with intervals over seeds."""

import numpy as np
import pytest
from scipy.stats import t

from quartbench.study.report import rates, tables
from quartbench.study.report.figures import rate_figure

from ..frames import frame, run


def fall(exponent, seed=0, burn_in=0, last=10_000, **columns):
    """Return a run whose gap is 0.1·(1 + k)^exponent once a burn-in is over, in which it stays."""
    k = np.unique(np.geomspace(1, last, 120).round())
    gaps = 0.1 * np.maximum(k / max(burn_in, 1), 1.0) ** exponent
    columns = {"group": "rates", "settings": {"step": "fixed", "restart": "scheduled"}} | columns
    return run(gaps=(1.0, *gaps), iterations=(0, *k), seed=seed, **columns)


def only(*rows):
    (found,) = rates.rates(frame(*rows))
    return found


def test_the_exponent_is_that_of_the_last_decade():
    found = only(*(fall(-2.0, seed, burn_in=1000) for seed in range(3)))
    assert found.exponent == pytest.approx(-2.0, abs=0.02)
    assert (found.theory, found.seeds) == (-2.0, 3)


def test_what_is_below_rounding_is_not_fitted():
    assert only(*(fall(-8.0, seed) for seed in range(2))).exponent == pytest.approx(-8.0, abs=1e-6)


def test_the_interval_is_students_over_the_seeds():
    slopes = np.array([-1.9, -2.0, -2.3])
    found = only(*(fall(slope, seed) for seed, slope in enumerate(slopes)))
    width = t.ppf(0.975, 2) * slopes.std(ddof=1) / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((slopes.mean() - width, slopes.mean() + width), abs=1e-6)
    assert str(found) == f"−2.07 [{found.low:.2f}, {found.high:.2f}]".replace("-", "−")


@pytest.mark.parametrize(
    ("method", "restart", "expected"),
    [("homgd", None, -2), ("accel-homgd", "scheduled", -4), ("accel-homgd", "none", None), ("gd", None, None)],
)
def test_theory_is_about_algorithms_1_and_2_as_printed(method, restart, expected):
    assert rates.theory(method, {"restart": restart}) == expected


def test_one_seed_and_other_groups_give_no_rate():
    assert rates.rates(frame(fall(-2.0))) == []
    assert rates.rates(frame(fall(-2.0), fall(-2.0, 1, optimum=float("nan")))) == []
    assert rates.rates(frame(*(fall(-2.0, seed, group="figure-1a") for seed in range(3)))) == []


def test_the_figure_has_a_panel_for_each_instance_and_step_and_the_slope_of_the_theorem():
    rows = [fall(-2.0, seed, settings={"step": step}) for seed in range(3) for step in ("fixed", "armijo")]
    figure = rate_figure(frame(*rows))
    assert [panel.title.partition(", ")[2] for panel in figure.panels] == ["fixed steps", "line searches"]
    curve, slope = figure.panels[0].series
    assert (curve.kind, slope.kind) == ("line", "theory")
    assert curve.y == pytest.approx(0.1 * curve.x**-2.0, rel=0.2)
    assert slope.y[1] / slope.y[0] == pytest.approx((slope.x[1] / slope.x[0]) ** -2.0)
    assert rate_figure(frame(run())) is None


def test_the_median_curve_ends_where_half_of_the_seeds_are_below_rounding():
    curve = rate_figure(frame(fall(-2.0), fall(-8.0, 1), fall(-8.0, 2))).panels[0].series[0]
    assert curve.x.max() < 100
    assert curve.y.min() >= rates.ROUNDING


def test_the_table_names_the_theory_beside_the_fit():
    rows = [fall(-2.0, seed) for seed in range(3)] + [fall(-3.0, seed, method="gd") for seed in range(3)]
    first, second = tables.rate_table(frame(*rows)).rows
    assert [cell.text for cell in first][2:5] == ["−2.00", "[−2.00, −2.00]", "≤ −2"]
    assert second[4].text == "–"
    assert tables.rate_table(frame(run())) is None
