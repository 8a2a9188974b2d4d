"""The record of Lewis weights: Algorithm 3 once more in NumPy, and what a study keeps of it."""

import numpy as np
import pytest

from quartbench import instances
from quartbench.errors import ProblemError
from quartbench.study import grid, weights
from quartbench.study.report.figures import weight_figure


@pytest.mark.parametrize("p", [1.2, 1.8])
def test_distances_are_those_of_the_printed_algorithm(p):
    form = instances.blocks(40, 6, 2, seed=0).form
    rows = weights.fixed_point(form, p)
    blocks = form.rows.reshape(40, 2, 6)
    terms = np.einsum("irj,irk->ijk", blocks, blocks)

    def mapped(tau):
        inverse = np.linalg.inv(np.einsum("i,ijk->jk", tau, terms))
        return (np.einsum("jk,ikj->i", inverse, terms) / 6.0) ** (p - 1.0)

    best = np.full(40, 40.0 ** (1.0 / p - 1.0))
    iterates = []
    for _ in range(400):
        best = mapped(best)
        iterates.append(best)
    for row, tau in zip(rows, iterates, strict=False):
        assert row["distance"] == pytest.approx(np.abs(np.log(tau / best)).max(), rel=1e-4, abs=1e-8)
        assert row["corrected"] == pytest.approx((p - 1.0) ** (row["sweep"] + 1) / p * np.log(80.0))
        assert row["printed"] == pytest.approx(((p - 1.0) / p) ** (row["sweep"] + 1) * np.log(80.0))


def test_the_figure_has_a_panel_for_each_power_with_both_rates():
    rows = [
        {"instance": name, "p": p, "sweep": k, "distance": 0.5**k, "printed": 0.3**k, "corrected": 0.6**k}
        for name in "ab"
        for p in (1.2, 1.5)
        for k in (1, 2, 3)
    ]
    figure = weight_figure({"distances": rows})
    assert [panel.title for panel in figure.panels] == ["p = 1.2", "p = 1.5"]
    assert figure.names() == ["a", "b", "rate as printed", "rate as corrected"]
    assert figure.panels[0].series[0].y == pytest.approx([0.5, 0.25, 0.125])
    assert weight_figure(None) is None


def test_a_study_asks_for_the_record(tmp_path):
    assert grid.read_study("quick").weights
    assert grid.read_study("full").weights  # it includes the study paper
    assert not grid.read_study("peers").weights
    path = tmp_path / "mine.toml"
    path.write_text('weights = 1\n[[group]]\nname = "a"\ninstances = ["ring:points=20"]\nsolvers = ["homgd"]\n')
    with pytest.raises(ProblemError, match="weights must be true or false"):
        grid.read_study(str(path))


def test_rays_are_those_of_the_problem_itself():
    form = instances.coherent(60, 5, gamma=0.5, kind="generic", seed=0).form
    rows = weights.rays(form)
    assert {row["cone"] for row in rows} == {"free", "orthant"}
    for row in rows:
        assert row["gap"] == pytest.approx(row["equality"], rel=1e-6, abs=1e-13)
        assert 0.0 < row["gap"] <= row["printed"]
    assert max(row["gap"] for row in rows) > 0.01


def test_surrogates_are_counted_where_there_is_a_power():
    form = instances.coherent(200, 20, gamma=0.5, kind="generic", seed=0).form
    rows = weights.surrogates(form)
    assert [row["omega"] for row in rows] == [1.1, 1.25, 1.5, 2.0, 3.0]
    assert [row["iterations"] for row in rows] == sorted((row["iterations"] for row in rows), reverse=True)
    # 2 − p' by the power itself: p' = 2ln(m/n)/(ln(m/n) + 2ln ω).
    for row in rows:
        power = 2.0 * np.log(10.0) / (np.log(10.0) + 2.0 * np.log(row["omega"]))
        allowed = 1.0 + np.log(np.log(200.0) / ((2.0 - power) * weights.EPS)) / (2.0 - power)
        assert row["allowed"] == pytest.approx(allowed)
    short = instances.coherent(50, 20, gamma=0.9, kind="generic", seed=0).form
    assert [row["omega"] for row in weights.surrogates(short)] == [1.1, 1.25, 1.5]
