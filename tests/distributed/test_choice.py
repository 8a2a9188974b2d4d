"""What ``auto`` does where rows are on a cluster: rounds and bytes decide, by what the form says that they cost."""

import numpy as np
import pytest
import scipy.sparse as sp

import quartbench as qb
from quartbench.distributed.rates import Rates, arriving, levels, read
from quartbench.solvers import rounds

from .clusters import blocks_of, local
from .test_spag import scaled_rows

#: A cluster whose rounds take long, and one whose bytes do.
FAR = Rates(latency=1.0, task=0.0, bandwidth=1e12, memory=1e9, flops=1e11)
NARROW = Rates(latency=1e-6, task=0.0, bandwidth=1e4, memory=1e9, flops=1e11)


@pytest.fixture(scope="module")
def client():
    with local(processes=False) as found:
        yield found


def problem_on(client, rates, m=4000, n=30, sparse=False):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((m, n))
    if sparse:
        rows *= rng.random(rows.shape) < 0.3
        rows = sp.csr_matrix(rows + 2.0 * np.eye(m, n))
    return qb.Problem(qb.DaskForm(blocks_of(rows, 1), client, rates=rates), rng.standard_normal(n))


@pytest.mark.parametrize(
    ("rates", "sparse", "said"),
    [
        (FAR, False, "homnewton, as some"),
        (NARROW, False, "homnewton-cg in B⁽⁰⁾, as some"),
        (FAR, True, "homnewton, as some"),
    ],
)
def test_the_method_with_the_least_cost_is_taken_and_the_message_says_why(client, rates, sparse, said):
    problem = problem_on(client, rates, sparse=sparse)
    found = qb.solve(problem, rel_gap=1e-8)
    assert found.success
    assert said in found.message
    assert "passes, against" in found.message


def test_costs_are_those_of_the_rates():
    blocks, n = 20, 100
    rates = Rates(latency=0.3, task=0.01, bandwidth=1e6, memory=1e9, flops=1e10)
    # Twenty sums are three of eight at most, and then one at the driver: 8 + 3 arrive one after another.
    assert (levels(blocks), arriving(blocks)) == (2, 11)
    assert (levels(8), arriving(8), levels(64), arriving(64), levels(65)) == (1, 8, 2, 16, 3)
    wanted = 2 * 0.3 + 20 * 0.01 + (20 * 8 * n + 11 * 8 * n * n + 5e5) / 1e6
    assert rates.round(blocks, 8.0 * n, 8.0 * n * n, 5e5) == pytest.approx(wanted, rel=1e-12)
    assert rates.changed(latency=1.0, task=None) == Rates(1.0, 0.01, 1e6, 1e9, 1e10)


def test_a_form_says_what_a_round_costs_in_its_own_passes(client):
    form = problem_on(client, FAR).form
    reading = 8.0 * 4000 * 30 / 2 / FAR.memory
    assert form.round_cost(0.0) == pytest.approx((FAR.latency + 3 * 8 * 30 / FAR.bandwidth) / reading)
    assert form.round_cost(1e9) - form.round_cost(0.0) == pytest.approx(3 * 8e9 / FAR.bandwidth / reading)
    assert form.driver_cost(4000) == 2.0
    here = qb.StackedForm(np.eye(3))
    assert (here.round_cost(1e9, 1e9), here.driver_cost(3.0)) == (0.0, 1.0)


def test_where_rounds_are_dear_newton_has_the_fewest_and_where_bytes_are_it_has_too_many(client):
    far, narrow = (rounds.plans(problem_on(client, rates).form, 8.0) for rates in (FAR, NARROW))
    assert far[0].name == "newton"
    assert far[0].rounds == min(plan.rounds for plan in far)
    assert narrow[0].name != "newton"
    assert {plan.name for plan in far} == {"newton", "factor", "sample", "spag"}
    for known in (far, narrow):
        assert [plan.cost for plan in known] == sorted(plan.cost for plan in known)


@pytest.mark.parametrize("few", [0, 10])
def test_a_sample_is_left_for_newton_where_it_is_unlike_the_whole(client, monkeypatch, few):
    rows, c = scaled_rows(4000, 20, few)
    form = qb.DaskForm(blocks_of(rows, 1), client)
    only = [plan for plan in rounds.plans(form, 8.0) if plan.name == "spag"]
    monkeypatch.setattr(rounds, "plans", lambda form, digits: only)
    found = qb.solve(qb.Problem(form, c), rel_gap=1e-8)
    assert found.success
    assert "spag, as some" in found.message
    assert ("so then homnewton-cg" in found.message) is bool(few)
    assert found.fun == pytest.approx(qb.solve(qb.Problem(qb.StackedForm(rows), c), rel_gap=1e-10).fun, rel=1e-8)


def test_many_unknowns_leave_what_has_n_squared_numbers():
    """The plans of a form too large to be made: only what it says of itself is asked."""

    class Large:
        dim, terms, rank, row_dtype = 20_000, 10**8, 1, np.dtype(float)
        remote = reads_terms = True
        factorable = False

        def round_cost(self, numbers, fetched=0.0):
            return 1e-9 * (numbers + fetched)

        def hessian_cost(self):
            return 100.0

        def driver_cost(self, rows):
            return rows / 10**8

    (only,) = rounds.plans(Large(), 6.0)
    assert only.name == "spag"
    assert rounds.share(Large()) == pytest.approx(40 * 20_000 / 1e8)


def test_the_rates_of_the_package_are_fitted_and_say_to_what():
    rates, about = read()
    assert 1e-4 < rates.latency < 1.0
    assert about["origin"]


@pytest.mark.parametrize(("name", "value"), [("latency", -1.0), ("bandwidth", 0.0), ("flops", float("nan"))])
def test_bad_rates_are_refused(name, value):
    with pytest.raises(qb.ProblemError, match=name):
        FAR.changed(**{name: value})


def test_a_file_without_rates_is_refused(tmp_path):
    with pytest.raises(qb.ProblemError, match="there is no file"):
        read(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"rates": 3}')
    with pytest.raises(qb.ProblemError, match="holds no rates"):
        read(tmp_path / "bad.json")
