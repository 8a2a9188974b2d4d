"""Is what a prepared problem keeps made once, shared safely, and worth the same answers as a solve from scratch?"""

import threading

import numpy as np
import pytest

import quartbench as qb
from quartbench import instances, testing
from quartbench.errors import ProblemError
from quartbench.forms import DenseForm, TermForm
from quartbench.metrics import Identity
from quartbench.model.certificate import Certificate, relative_gap
from quartbench.solvers import HomGD, Solver, driver, prepared

ROWS = np.random.default_rng(0).standard_normal((300, 70))


@pytest.fixture
def made(monkeypatch):
    """Return the list to which every factor of B(τ) made from now on adds its precision."""
    found, true = [], TermForm.weighted

    def weighted(form, tau, precision="double", accuracy=1e-6):
        found.append(precision)
        return true(form, tau, precision, accuracy)

    monkeypatch.setattr(TermForm, "weighted", weighted)
    return found


@pytest.mark.parametrize("name", testing.problems())
def test_it_solves_as_solve_does(name):
    problem = testing.problems()[name]
    ready = qb.prepare(problem.form, problem.cone, rel_gap=1e-9)
    for c in (problem.c, 3.0 * problem.c, 1e40 * problem.c):
        wanted = qb.solve(qb.Problem(problem.form, c, problem.cone), rel_gap=1e-9)
        found = ready.solve(c)
        assert found.success
        assert found.fun == pytest.approx(wanted.fun, rel=1e-14)
        assert np.array_equal(found.x, wanted.x)
        assert (found.nit, found.passes, found.message) == (wanted.nit, wanted.passes, wanted.message)
        assert found.setup_time == 0.0  # paid when it was prepared


def test_nothing_is_factored_twice(made):
    form = qb.StackedForm(ROWS)
    ready = qb.prepare(form, rel_gap=1e-8)
    first = len(made)
    rng = np.random.default_rng(1)
    for _ in range(4):
        assert ready.solve(rng.standard_normal(70)).success
    assert (first, len(made)) == (1, 1)  # the metric of the method certifies as well
    made.clear()
    ready = qb.prepare(form, metric="identity", solver="accel-homgd")
    assert made == []
    for _ in range(3):
        ready.solve(rng.standard_normal(70))
    assert made == ["single"]  # the one that certifies, when the first certificate asked for it


def test_the_form_is_checked_once(monkeypatch):
    looked = []
    monkeypatch.setattr(DenseForm, "used_columns", lambda form: looked.append(1) or np.ones(form.dim, dtype=bool))
    ready = qb.prepare(qb.StackedForm(ROWS))
    for _ in range(3):
        ready.solve(np.ones(70))
    assert len(looked) == 1


def test_a_start_near_the_solution_is_used():
    problem = instances.spectrum(400, 80, 0.01, seed=1)
    ready = qb.prepare(problem.form, solver="homgd", rel_gap=1e-8)
    cold = ready.solve(problem.c)
    warm = ready.solve(problem.c, start=cold.x)
    assert warm.success
    assert warm.nit <= 2 < cold.nit
    with pytest.raises(ProblemError, match="start must have"):
        ready.solve(problem.c, start=-cold.x)


def test_threads_may_share_it():
    form = qb.StackedForm(ROWS)
    C = np.random.default_rng(2).standard_normal((8, 70))
    wanted = [qb.solve(qb.Problem(form, c), rel_gap=1e-9).x for c in C]
    ready = prepared.Prepared(form, rel_gap=1e-9)  # not even ready yet
    found, gate = [None] * len(C), threading.Barrier(len(C))

    def work(k):
        gate.wait()
        found[k] = ready.solve(C[k]).x

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(C))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, two in zip(found, wanted, strict=True):
        assert np.array_equal(one, two)


def test_one_solver_may_be_shared_by_threads_too():
    auto = qb.solvers.Auto()
    cases = {name: testing.problems()[name] for name in ("dense, free", "dense, second-order", "graph, centred")}
    wanted = {name: qb.solve(problem).message for name, problem in cases.items()}
    found = {}

    def work(name):
        for _ in range(5):
            found[name] = qb.solve(cases[name], auto).message

    threads = [threading.Thread(target=work, args=(name,)) for name in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted
    assert vars(auto) == {}


def test_trivial_and_bad_right_hand_sides():
    form = qb.StackedForm(ROWS)
    ready = qb.prepare(form, qb.Orthant())
    assert ready.solve(-np.ones(70)).status == "trivial"
    assert ready.solve(np.ones(70)).success
    for c, message in ((np.ones(69), "c must have shape"), (np.zeros(70), "c must not be zero")):
        with pytest.raises(ProblemError, match=message):
            ready.solve(c)
    with pytest.raises(ProblemError, match="form must be a Form"):
        qb.prepare("rows")
    with pytest.raises(ProblemError, match="metric must have dimension 70, found 3"):
        qb.prepare(form, metric=qb.Identity(3))
    with pytest.raises(ProblemError, match="needs a diagonal metric"):
        qb.prepare(form, qb.Orthant(), metric="uniform")
    with pytest.raises(ProblemError, match="rel_gap must be positive"):
        ready.solve(np.ones(70), rel_gap=-1.0)


def test_a_metric_of_the_user_is_checked_once_and_certifies(made):
    form = qb.StackedForm(ROWS)
    own, other = form.weighted(np.ones(300)), qb.StackedForm(2.0 * ROWS).weighted(np.ones(300))
    made.clear()
    assert qb.prepare(form, metric=own, solver="homgd").solve(np.ones(70)).success
    assert made == []
    assert qb.prepare(form, metric=other, solver="homgd").solve(np.ones(70)).success
    assert made == ["single"]  # B(τ) of other rows certifies nothing here


def test_a_plan_is_made_once_for_many_right_hand_sides():
    planned = []

    class Planning(HomGD):
        def planned(self, problem, metric, rel_gap):
            planned.append(rel_gap)
            return self

    ready = qb.prepare(qb.StackedForm(ROWS), solver=Planning(), rel_gap=1e-5)
    for _ in range(3):
        assert ready.solve(np.ones(70)).success
    assert planned == [1e-5]


def test_a_class_with_iterates_alone_is_a_solver():
    class Bare:
        def iterates(self, problem, metric, start):
            return iter([next(HomGD().iterates(problem, metric, start))])

    for given in (Bare, Bare()):
        result = qb.solve(qb.Problem(qb.StackedForm(ROWS), np.ones(70)), given, rel_gap=1e-9)
        assert (result.solver, result.status) == ("bare", "stalled")
    assert not isinstance(Bare(), Solver)


def test_what_is_wrong_with_a_start_or_a_missing_c_is_said():
    problem, metric = qb.Problem(qb.StackedForm(np.eye(2)), [1.0, 0.5]), qb.Identity(2)
    with pytest.raises(ProblemError, match=r"once projected onto the cone, found -4$"):
        prepared.starting_point(problem, metric, [-4.0, 0.0])
    np.testing.assert_allclose(prepared.starting_point(problem, metric, [-4.0, 12.0]), [-2.0, 6.0])
    for c in (None, "homgd"):
        with pytest.raises(ProblemError, match="problem must be a Problem, or rows with c beside them"):
            qb.solve(np.eye(2), c)


def test_a_bound_that_was_proved_before_is_kept_where_it_is_better():
    problem = instances.spectrum(100, 10, sigma_min=0.1, seed=0)
    best = qb.solve(problem, rel_gap=1e-12)
    ready = qb.prepare(problem.form)
    scaled = problem.normalised()
    limits = driver.Limits.of(1.0, 10, None, None)
    run = driver.Run(problem, scaled, ready.method, ready.metric, ready, limits, None)
    run.kept = best.x / scaled.x_scale * (1.0 + 1e-3 * np.cos(np.arange(10)))
    run.proved = Certificate(0.5 * best.fun, best.lower_bound, 1.0)
    run._prove()
    assert best.fun < run.proved.value < 0.9 * best.fun
    assert run.proved.lower_bound == best.lower_bound
    assert run.proved.gap == relative_gap(run.proved.value, best.lower_bound)
    np.testing.assert_allclose(run.x, best.x, rtol=0.01, atol=0.01)
    # A point that is worse than the one before does not take its place.
    x, before = run.x, run.proved
    run.kept = np.ones(10) * np.sign(problem.c)
    run._prove()
    assert run.x is x
    assert run.proved.value == before.value


@pytest.mark.parametrize(
    "start",
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 2.0**-52]],
    ids=["nowhere", "orthogonal", "less by rounding"],
)
def test_a_start_on_which_c_is_zero_to_rounding_gives_way_to_the_own_start(start):
    problem = qb.Problem(qb.StackedForm(np.eye(3)), [1.0, 1.0, -2.0])
    own = prepared.starting_point(problem, Identity(3))
    assert prepared.starting_point(problem, Identity(3), start) == pytest.approx(own, rel=1e-15)


def test_a_start_on_which_c_is_clearly_negative_is_an_error():
    problem = qb.Problem(qb.StackedForm(np.eye(3)), [1.0, 1.0, -2.0])
    with pytest.raises(ProblemError, match="once projected"):
        prepared.starting_point(problem, Identity(3), [1.0, 1.0, 1.0 + 1e-13])


@pytest.mark.parametrize("start", [None, [1.0, 1.0]], ids=["own start", "given start"])
def test_a_minimiser_out_of_range_is_an_error_from_every_start(start):
    form = qb.StackedForm(np.diag([1e-90, 1.0]))
    with pytest.raises(ProblemError, match="comparable units"):
        qb.solve(qb.Problem(form, [1.0, 1.0]), "homnewton", start=start)


def test_a_problem_on_another_form_or_cone_is_refused():
    # It was solved on the form that was prepared, and the answer looked like that of the problem.
    rows = np.random.default_rng(0).standard_normal((6, 2))
    ready = qb.prepare(qb.StackedForm(rows))
    for other in (qb.Problem(3.0 * rows, [1.0, 2.0]), qb.Problem(ready.form, [1.0, 2.0], "orthant")):
        with pytest.raises(qb.ProblemError, match="a problem on the form and cone that were prepared"):
            ready.solve(other)
    with pytest.raises(qb.ProblemError, match="a problem on the form and cone that were prepared"):
        ready.solve(qb.Problem(ready.form.scaled(3.0), [1.0, 2.0]))
    for same in (ready.form, ready.form.twin()):
        assert ready.solve(qb.Problem(same, [1.0, 2.0])).fun == ready.solve([1.0, 2.0]).fun
