"""What is made once, asked for, refused or shown: the rules of prepared problems, names, quotients and pictures."""

import math

import matplotlib
import numpy as np
import pytest

import quartbench as qb
from quartbench.errors import ProblemError
from quartbench.metrics import Diagonal, Identity
from quartbench.model.certificate import relative_gap
from quartbench.solvers import HomGD, make_solver, prepared, starting_point
from quartbench.solvers.prepared import Prepared, warm
from quartbench.solvers.results import History

matplotlib.use("Agg")
from matplotlib import pyplot

ROWS = np.random.default_rng(0).standard_normal((120, 70))
FORM = qb.StackedForm(ROWS)
PROBLEM = qb.Problem(FORM, np.random.default_rng(1).standard_normal(70))


@pytest.fixture(autouse=True)
def _no_figures():
    yield
    pyplot.close("all")


# Starts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inner", "fits"), [(0.7e-100, False), (1.4e-100, True), (0.7e100, True), (1.4e100, False)])
def test_the_minimiser_may_be_of_sizes_whose_fourth_powers_have_squares(inner, fits):
    problem, metric = qb.Problem(qb.StackedForm([[1.0]]), [1.0]), Diagonal(np.array([1.0 / inner]))
    assert starting_point(problem, metric) == pytest.approx([1.0])  # a metric of the user's may have any scale
    if fits:
        assert starting_point(problem, metric, own=True) == pytest.approx([1.0])
    else:
        with pytest.raises(ProblemError, match="columns of the rows must be in comparable units"):
            starting_point(problem, metric, own=True)


@pytest.mark.parametrize("size", [1e-290, 1e-100, 1.0, 1e100, 1e290])
def test_a_start_may_be_of_any_size(size):
    problem = qb.Problem(qb.StackedForm(np.eye(3)), [1.0, 2.0, 0.5], "orthant")
    found = starting_point(problem, Identity(3), size * np.array([1.0, 3.0, -1.0]))
    np.testing.assert_allclose(found, np.array([1.0, 3.0, 0.0]) / 7.0, rtol=1e-14)


@pytest.mark.parametrize("cone", ["free", "orthant"])
def test_a_start_is_taken_where_it_is_better_than_the_own_one(cone):
    problem = qb.Problem(50.0 * ROWS, 7.0 * np.abs(PROBLEM.c), cone)
    ready = qb.prepare(problem.form, cone)
    own = starting_point(problem.normalised().problem, ready.metric)
    best = qb.solve(problem).x
    for good in (best, 1e-3 * best, 0.5 * best + 0.5 * np.linalg.norm(best) / np.linalg.norm(own) * own):
        assert ready.better_start(problem, good) is good
    for bad in (None, -best, best * np.geomspace(1e-2, 1e2, 70)):
        assert ready.better_start(problem, bad) is None
    if cone == "orthant":
        assert ready.better_start(qb.Problem(FORM, -np.ones(70), cone), best) is None


# What is asked for ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((np.ones(70),), {}), (([1.0] * 70,), {}), ((), {"cone": qb.Orthant()}), ((), {"rank": 2})],
)
def test_what_a_problem_has_already_is_refused_beside_it(arguments, options):
    with pytest.raises(ProblemError, match="problem has a c, a cone and a rank of its own"):
        qb.solve(PROBLEM, *arguments, **options)


@pytest.mark.parametrize(
    ("progress", "certify", "shown"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_a_bar_is_shown_where_it_is_asked_for_and_there_is_a_gap_to_show(progress, certify, shown, monkeypatch):
    bars, true = [], prepared.bar
    monkeypatch.setattr(prepared, "bar", lambda *given: bars.append(given) or true(*given))
    qb.solve(PROBLEM, "homgd", rel_gap=1e-3, progress=progress, certify=certify, max_iter=5)
    assert bars == ([("homgd", 1e-3)] if shown else [])


@pytest.mark.parametrize(("limit", "allowed"), [(10.0, 70.0), (math.inf, math.inf)])
def test_warming_has_a_minute_beside_the_time_limit(limit, allowed, monkeypatch):
    budgets, true = [], prepared.Budget
    monkeypatch.setattr(prepared, "Budget", lambda *limits: budgets.append(limits) or true(*limits))
    monkeypatch.setattr(prepared, "_warmed", set())
    warm(HomGD(), PROBLEM, Identity(70), starting_point(PROBLEM, Identity(70)), limit)
    assert [seconds for _, seconds in budgets] == [allowed]


# Metrics --------------------------------------------------------------------------------------------------------------


def test_a_metric_of_the_user_is_used_as_it_is_where_rows_are_moderate():
    given = Diagonal(np.linspace(1.0, 50.0, 70))
    ready = qb.prepare(FORM, metric=given)
    x = np.random.default_rng(3).standard_normal(70)
    np.testing.assert_array_equal(ready.metric.apply(x), given.apply(x))


@pytest.mark.parametrize("size", [1e-40, 1e40])
@pytest.mark.parametrize("already", [1.0, 1e20])
def test_a_metric_of_the_user_is_of_the_order_of_one_along_c_where_rows_are_not_moderate(size, already):
    form = qb.StackedForm(size * ROWS).scaled(already)
    problem = qb.Problem(form, PROBLEM.c)
    made = qb.metric(form, "uniform")
    ready = Prepared(form, metric=made, solver=HomGD("fixed"))
    ready.ready(problem)
    c = problem.normalised().problem.c
    assert c @ ready.metric.solve(c) == pytest.approx(c @ c, rel=1e-9)
    # Its bounds are those of the rows in moderate numbers: the fixed step is the one of the metric by its name.
    named = qb.solve(problem, HomGD("fixed"), "uniform", rel_gap=1e-6)
    found = qb.solve(problem, HomGD("fixed"), made, rel_gap=1e-6)
    assert (found.status, found.nit) == (named.status, named.nit)


def test_dual_points_are_corrected_by_the_metric_of_the_method_or_by_what_the_proof_needs(monkeypatch):
    own = qb.prepare(FORM, metric="uniform")
    assert own.corrector() is own.metric
    proof = qb.metric(FORM, "uniform")
    monkeypatch.setattr(qb.TermForm, "proving", lambda form: proof)
    other = qb.prepare(FORM, metric="identity", solver="homgd")
    assert other.corrector() is proof
    assert other._certifier is None  # nothing was factored for it
    monkeypatch.setattr(qb.TermForm, "proving", lambda form: None)
    assert other.corrector() is other.certifier()
    assert other.certifier() is not None
    assert other.corrector() is other.certifier()


# Quotients ------------------------------------------------------------------------------------------------------------


def dependent():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 4)) @ rng.standard_normal((4, 7))


def unseen():
    rows = np.random.default_rng(0).standard_normal((40, 6))
    rows[:, 2] = 0.0
    return rows


@pytest.mark.parametrize("rows", [dependent(), unseen()], ids=["dependent", "unseen"])
def test_a_form_that_is_known_to_vanish_somewhere_is_not_solved_on_all_of_space_again(rows, monkeypatch):
    ready = qb.prepare(rows)
    assert ready.deficient
    assert not qb.prepare(ROWS).deficient
    tried, true = [], Prepared._run
    monkeypatch.setattr(Prepared, "_run", lambda one, *rest: tried.append(one) or true(one, *rest))
    for _ in range(2):
        assert ready.solve(rows[0]).success
    assert ready not in tried
    assert len(tried) == 2


@pytest.mark.parametrize(("limit", "paid", "left"), [(10.0, True, 10.0), (10.0, False, 6.0), (3.0, False, 0.0)])
def test_a_time_limit_counts_what_the_quotient_took_unless_it_was_paid(limit, paid, left):
    rows = dependent()
    ready = qb.prepare(rows, solver="homgd")
    on = ready.on_quotient()
    given, true = [], on.prepared.run
    on.seconds, on.prepared.run = 4.0, lambda problem, wanted: given.append(wanted) or true(problem, wanted)
    problem = ready.problem(rows[0])
    ready.run(problem, prepared.Wanted(1e-6, None, None, limit, None, None, False, True, paid))
    assert [wanted.time_limit for wanted in given] == [left]


def test_the_gap_on_a_quotient_is_that_of_the_value_on_the_whole_space():
    rows = dependent()
    found = qb.solve(rows, rows[0], rel_gap=1e-6)
    assert found.gap == relative_gap(found.fun, found.lower_bound) <= 1e-6
    without = qb.solve(rows, rows[0], certify=False, max_iter=3)
    assert (without.gap, without.lower_bound) == (math.inf, -math.inf)


@pytest.mark.parametrize(("off", "status"), [(0.0, "converged"), (1e-2, "stalled")])
def test_a_gap_that_the_whole_space_does_not_bear_out_is_not_called_converged(off, status):
    rows = dependent()
    ready = qb.prepare(rows)
    on = ready.on_quotient()
    true = on.prepared.run

    def run(problem, wanted):
        found = true(problem, wanted)
        found.x = found.x * (1.0 + off)
        return found

    on.prepared.run = run
    found = ready.solve(rows[0], rel_gap=1e-6)
    assert (found.status, found.success) == (status, status == "converged")
    assert ("no further progress is possible" in found.message) is (status == "stalled")


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mine.py", "some/where", "mine", "some/where.py:", ":Mine", "nowhere:Mine"])
def test_what_looks_like_a_file_is_looked_for_as_one(name):
    message = {
        "mine": "unknown solver 'mine'",
        "nowhere:Mine": "there is no file 'nowhere'",
    }.get(name, "must be a name or 'path/to/file.py:Class'")
    with pytest.raises(ProblemError, match=message):
        make_solver(name)


def test_a_file_that_is_not_python_is_named(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("class Mine: pass")
    with pytest.raises(ProblemError, match=r"mine\.txt' is not a Python file"):
        make_solver(f"{file}:Mine")


# Results and pictures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "least", "most"), [(1, 3.5, 4.5), (2, 6.0, 7.5), (3, 9.0, 10.5)])
def test_pictures_fit_a_column_or_the_width_of_a_page(count, least, most):
    result = qb.solve(PROBLEM, "homgd", rel_gap=1e-3)
    width, height = qb.plot(result, against=("passes", "seconds", "iteration")[:count]).get_size_inches()
    assert least <= width <= most
    assert 2.5 <= height <= 4.0
    assert 0.6 < (width - 1.0) / count / height < 1.2  # panels that are nearly square, whatever their number


@pytest.mark.parametrize(("count", "marked"), [(5, True), (29, True), (30, False), (60, False)])
def test_iterates_are_marked_where_they_are_few(count, marked):
    values = -2.0 + 0.5 ** np.linspace(1.0, 9.0, count)
    history = History(range(count), np.arange(count), values, -2.0, 1.0, np.ones(count), np.zeros(count))
    panel = qb.plot(history, against=["passes"]).axes[0]
    line = panel.get_lines()[0]
    assert line.get_marker() == ("." if marked else "")
    # Lines are stronger than those of the grid, which are faint.
    assert 1.0 < line.get_linewidth() < 2.5
    assert panel.get_xgridlines()[0].get_alpha() < 0.5


def test_passes_are_whole_numbers_and_seconds_have_their_unit():
    values = [-1.0, -1.5, -1.9]
    history = History([1, 2, 3], [0.0, 1e-3, 2e-3], values, -2.0, 1.0, np.ones(3), np.zeros(3))
    figure = qb.plot(history)
    figure.canvas.draw()
    passes, seconds = ([label.get_text() for label in panel.get_xticklabels()] for panel in figure.axes)
    assert set(passes) >= {"1", "2", "3"}
    assert all(float(text.replace("−", "-")).is_integer() for text in passes)
    assert any(text.endswith("ms") for text in seconds)
    assert len(seconds) >= 4  # more than the whole numbers between them


def test_many_whose_own_start_is_out_of_range_are_one_clear_error_from_a_given_start_too():
    # The own start, 0/0, was computed beside the given one.
    rows = np.random.default_rng(0).standard_normal((15, 3))
    c = np.array([5e-324, -1.0, -1.0])
    for starts in (None, [c]):
        with pytest.raises(qb.ProblemError, match="columns of the rows must be in comparable units"):
            qb.solve_many(rows, [c], "orthant", starts=starts)
