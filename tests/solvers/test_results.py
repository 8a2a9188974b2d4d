"""What a run leaves: JSON and back, pictures of its gap, and how it looks in a notebook."""

import json
import math
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import quartbench as qb

matplotlib.use("Agg")
from matplotlib import pyplot

PROBLEM = qb.instances.spectrum(m=120, n=10, sigma_min=0.1, seed=0)
RESULT = qb.solve(PROBLEM, "accel-homgd", rel_gap=1e-8)


@pytest.fixture(autouse=True)
def _no_figures():
    yield
    pyplot.close("all")


def same(one, other):
    assert one.keys() == other.keys()
    for name in one.keys() - {"x", "history"}:
        assert type(one[name]) is type(other[name])
        assert one[name] == other[name] or (math.isnan(one[name]) and math.isnan(other[name]))
    assert (one.x.dtype, one.x.shape) == (other.x.dtype, other.x.shape)
    np.testing.assert_array_equal(one.x, other.x)
    for column in qb.History.COLUMNS:
        assert one.history[column].dtype == other.history[column].dtype
        np.testing.assert_array_equal(one.history[column], other.history[column])


def test_a_result_says_whether_its_bounds_are_proved_or_taken_on_trust():
    rows, c = np.random.default_rng(0).standard_normal((40, 4)), np.array([1.0, 2.0, 0.0, -1.0])
    products = qb.OperatorForm(aslinearoperator(rows))
    dependent, unseen = np.hstack([rows, rows[:, :1]]), np.hstack([rows, np.zeros((40, 1))])
    for solver in ("auto", "homgd"):
        assert qb.solve(rows, c, solver=solver).proved
        assert not qb.solve(qb.Problem(products, c), solver).proved
        assert not qb.solve(rows, c, solver=solver, certify=False).proved
        assert not qb.solve(dependent, [*c, c[0]], solver=solver).proved
        assert qb.solve(unseen, [*c, 0.0], solver=solver).proved
    assert not qb.solve(dependent, [*c, 0.0]).proved  # unbounded to rounding
    assert qb.solve(unseen, [*c, 1.0]).proved  # unbounded, as no term sees the last coordinate
    assert all(result.proved for result in qb.solve_many(rows, [c, 2.0 * c]))
    assert "taken on trust" in qb.solve(qb.Problem(products, c))._repr_html_()
    assert "taken on trust" not in qb.solve(rows, c)._repr_html_()


@pytest.mark.parametrize(
    "result",
    [
        RESULT,
        qb.solve(PROBLEM, "gd", certify=False, max_iter=3),
        qb.solve(qb.instances.complex_gaussian(40, 5, seed=0)),
        qb.solve(qb.instances.geometric(points=30, dim=2, seed=0)),
        qb.solve(qb.Problem(np.eye(3), -np.ones(3), "orthant")),
    ],
    ids=["real", "uncertified", "complex", "graph", "trivial"],
)
def test_a_result_comes_back_from_json_bit_by_bit(result, tmp_path):
    text = result.to_json(tmp_path / "result.json")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    same(qb.Result.from_json(text), result)
    same(qb.Result.from_json(tmp_path / "result.json"), result)
    same(qb.Result.from_json(str(tmp_path / "result.json")), result)


@pytest.mark.parametrize(
    "text", ["{}", '{"quartbench": "problem"}', "{", RESULT.to_json().replace('"gap"', '"gasp"'), "nowhere.json"]
)
def test_what_is_no_result_is_refused(text):
    with pytest.raises(qb.ProblemError, match="source must be a result"):
        qb.Result.from_json(text)


# Pictures -------------------------------------------------------------------------------------------------------------


def test_gaps_are_drawn_against_passes_and_seconds():
    other = qb.solve(PROBLEM, "homgd", rel_gap=1e-8)
    figure = qb.plot(RESULT, other)
    left, right = figure.axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("passes", "time of the method")
    assert left.get_yscale() == "log"
    for panel, column in ((left, "passes"), (right, "seconds")):
        lines = [line for line in panel.get_lines() if line.get_linestyle() != "None"]
        for line, result in zip(lines, (RESULT, other), strict=True):
            shown = np.isfinite(result.history.gap)
            np.testing.assert_array_equal(line.get_xdata(), result.history[column][shown])
            np.testing.assert_array_equal(line.get_ydata(), result.history.gap[shown])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == [f"accel-homgd in the metric {RESULT.metric}", f"homgd in the metric {other.metric}"]


def test_a_history_draws_itself_and_labels_can_be_given():
    figure = RESULT.history.plot(against=["iteration"])
    assert [panel.get_xlabel() for panel in figure.axes] == ["iterations"]
    assert not figure.legends
    figure = qb.plot(RESULT, RESULT.history, labels=["one", "two"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two"]


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ((), {}, "plot needs at least one result"),
        ((np.eye(2),), {}, "plot takes results of solve, or their histories, found ndarray"),
        ((RESULT,), {"labels": ["a", "b"]}, "labels must be one for each of 1 results, found 2"),
        ((RESULT,), {"against": ["time"]}, "against must name passes, seconds, iteration, found 'time'"),
        ((qb.solve(PROBLEM, "gd", certify=False, max_iter=3),), {}, "no certified gap to plot"),
    ],
)
def test_what_cannot_be_drawn_is_said(results, options, message):
    with pytest.raises(qb.ProblemError, match=message):
        qb.plot(*results, **options)


# Notebooks ------------------------------------------------------------------------------------------------------------


class Words(HTMLParser):
    """The words of a page; fails where a tag is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def words(thing):
    return " ".join(Words(thing._repr_html_()).words)


def test_results_problems_and_weights_show_themselves():
    assert "accel-homgd in the metric" in words(RESULT)
    assert f"{RESULT.fun:.12g}" in words(RESULT)
    assert "relative gap" in words(RESULT)
    assert "m = 120 terms of rank 1, n = 10" in words(PROBLEM)
    assert "generator = spectrum" in words(PROBLEM)
    assert "0, as c lies in the polar cone" in words(qb.Problem(np.eye(3), -np.ones(3), "orthant"))
    weights = qb.lewis_weights(PROBLEM.form)
    assert f"κ ≤ {weights.kappa_bound:.6g}" in words(weights)
    assert repr(weights).startswith("LewisWeights(m=120, p=2, κ ≤ ")
    assert len(repr(weights)) < 120


def test_names_are_escaped():
    problem = qb.Problem(np.eye(2), np.ones(2), origin={"<b>": "<script>"})
    assert "<script>" not in problem._repr_html_()
    assert "&lt;script&gt;" in problem._repr_html_()


def test_a_state_says_where_the_run_is():
    seen = []
    qb.solve(PROBLEM, "homgd", callback=lambda state: seen.append(repr(state)))
    assert seen[0].startswith("State(iteration 0, ")
    assert "passes, " in seen[1]
    assert "relative gap at most " in seen[-1]
