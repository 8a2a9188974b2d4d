"""Statistical preconditioning: an unbiased reference, true points, and few rounds."""

import numpy as np
import pytest

import quartbench as qb
from quartbench.distributed import SPAG, BregmanStochastic
from quartbench.distributed.sampling import probabilities, reference
from quartbench.distributed.spag import Geometry
from quartbench.testing import check_solver

from .clusters import blocks_of, local


def scaled_rows(m, n, few=0, seed=0):
    """Return rows with column scales over two decades, and c; three directions are carried by ``few`` of the rows."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, n)) * np.logspace(0.0, -2.0, n)
    if few:
        rows[:, :3] *= 0.1
        rows[:few, :3] = 10.0 * rng.standard_normal((few, 3))
    return rows, rng.standard_normal(n)


def passes_to(problem, solver, rel_gap=1e-6, most=100, metric="auto"):
    """Return the passes of a method, which are its rounds, to a gap; a hundred where it did not get there."""
    result = qb.solve(problem, solver, metric, rel_gap=rel_gap, max_passes=most)
    reached = result.history.reached(rel_gap)
    return most if reached is None else int(result.history.passes[reached])


@pytest.mark.parametrize("solver", [SPAG, pytest.param(BregmanStochastic, marks=pytest.mark.slow)])
def test_a_method_on_a_sample_keeps_the_contract(solver):
    report = check_solver(solver)
    assert sum(said.endswith((" iteration", " iterations")) for said in report.values()) >= 15


def test_stochastic_gradients_find_the_minimiser():
    rows, c = scaled_rows(4000, 10)
    problem = qb.Problem(qb.StackedForm(rows), c)
    found = qb.solve(problem, BregmanStochastic(0.1), rel_gap=1e-8)
    assert found.success
    assert found.fun == pytest.approx(qb.solve(problem, rel_gap=1e-10).fun, rel=1e-8)


@pytest.mark.parametrize("sampling", ["uniform", "lewis"])
def test_the_reference_is_unbiased(sampling):
    form = qb.StackedForm(scaled_rows(400, 6, few=5)[0].reshape(400, 6), rank=2)
    x = np.random.default_rng(1).standard_normal(6)
    values = [reference(form, 0.2, sampling, seed).value(x) for seed in range(60)]
    assert abs(np.mean(values) - form.value(x)) <= 4.0 * np.std(values) / 60**0.5
    assert np.std(values) > 0.0


def test_a_step_whose_minimiser_is_out_of_range_goes_nowhere():
    problem = qb.Problem(qb.StackedForm(np.diag([1e-90, 1.0])), [1.0, 1.0])
    geometry, at = Geometry(problem.form, problem), np.array([1.0, 1.0])
    np.testing.assert_array_equal(geometry.step(at, np.array([-1.0, 0.0]), 1.0), 0.0)


def test_probabilities_are_at_most_one_and_add_up():
    sizes = np.array([1e6, 3.0, 2.0, 1.0])
    np.testing.assert_allclose(probabilities(sizes, 3.0), [1.0, 1.0, 2.0 / 3.0, 1.0 / 3.0])
    np.testing.assert_allclose(probabilities(sizes, 4.0), 1.0)
    np.testing.assert_allclose(probabilities(np.ones(10), 2.5), 0.25)


def test_a_step_minimises_its_model():
    from quartbench.distributed.spag import Geometry

    rows, c = scaled_rows(200, 5)
    problem = qb.Problem(qb.StackedForm(rows), c)
    geometry = Geometry(qb.StackedForm(rows[::2] * 2.0**0.25), problem)
    y = np.random.default_rng(3).standard_normal(5)
    g, sample = problem.gradient(y), geometry.sample
    z = geometry.step(y, g, 1.7)
    # The model is stationary at z: g + L(∇ρ̃(z) − ∇ρ̃(y)) = 0.
    np.testing.assert_allclose(1.7 * (sample.gradient(z) - sample.gradient(y)), -g, atol=1e-5 * np.abs(g).max())


def test_ratios_lie_between_the_relative_constants():
    from scipy.linalg import eigh

    from quartbench.distributed.spag import Geometry
    from quartbench.solvers.steps import evaluate

    rows, c = scaled_rows(2000, 5)
    form, sample = qb.StackedForm(rows), reference(qb.StackedForm(rows), 0.1, "uniform", 0)
    geometry = Geometry(sample, qb.Problem(form, c))
    rng = np.random.default_rng(4)
    for _ in range(5):
        x, h = rng.standard_normal((2, 5))
        path = [x + t * h for t in np.linspace(0.0, 1.0, 50)]
        hessians = [(f.dense_hessian(z, f.image(z)) for f in (form, sample)) for z in path]
        constants = [eigh(*(np.tril(h) + np.tril(h, -1).T for h in pair), eigvals_only=True) for pair in hessians]
        for to in (x + h, x + 1e-7 * h):  # from values, and from gradients
            ratio = geometry.ratio(evaluate(form, x), evaluate(form, to))
            assert 0.99 * np.min(constants) <= ratio <= 1.01 * np.max(constants)


def test_a_sample_saves_rounds_on_even_rows():
    problem = qb.Problem(qb.StackedForm(scaled_rows(20_000, 20)[0]), scaled_rows(20_000, 20)[1])
    plain = passes_to(problem, "accel-homgd", most=5000, metric="identity")
    assert plain >= 20 * passes_to(problem, SPAG(0.05))
    assert plain >= 10 * passes_to(problem, "homnewton-cg", metric="sampled")


def test_lewis_sampling_sees_the_directions_of_a_few_rows():
    problem = qb.Problem(qb.StackedForm(scaled_rows(20_000, 20, few=10)[0]), scaled_rows(20_000, 20)[1])
    assert passes_to(problem, SPAG(0.02, "lewis")) <= 15
    assert passes_to(problem, SPAG(0.02, "uniform")) > 30


@pytest.mark.slow
def test_rounds_on_100000_rows():
    rows, c = scaled_rows(100_000, 60)
    problem = qb.Problem(qb.StackedForm(rows), c)
    plain = passes_to(problem, "accel-homgd", most=5000, metric="identity")
    assert plain >= 20 * passes_to(problem, SPAG(0.02))
    assert plain >= 20 * passes_to(problem, SPAG(0.05))
    rows, c = scaled_rows(100_000, 60, few=30)
    problem = qb.Problem(qb.StackedForm(rows), c)
    assert passes_to(problem, SPAG(0.02, "lewis")) <= 15
    assert passes_to(problem, SPAG(0.05, "lewis")) <= 15
    assert passes_to(problem, SPAG(0.02, "uniform")) > 90


def test_a_step_is_one_round_on_a_cluster():
    pytest.importorskip("distributed")
    rows, c = scaled_rows(2000, 6)
    with local(processes=False) as client:
        form = qb.DaskForm(blocks_of(rows, 1), client)
        problem = qb.Problem(form, c)
        method = SPAG(0.1).planned(problem, qb.metric(form, "identity"), 1e-6)
        counted = form.twin()
        iterates = method.iterates(problem.on(counted), None, c / (c @ c))
        rounds = []
        for _, _ in zip(range(5), iterates, strict=False):
            rounds.append((counted.rounds, counted.passes))
        assert all(count == passes for count, passes in rounds)
        assert rounds[-1][0] <= 7  # five points, and a step or two that were taken again
        found = qb.solve(problem, SPAG(0.1))
    assert found.success
    assert found.rounds == found.passes == found.history.rounds[-1]
    assert (np.diff(found.history.bytes) > 0).all()
    assert found.history.to_frame()[["rounds", "bytes"]].iloc[-1].tolist() == [found.rounds, found.bytes]
    assert "relative smoothness between" in found.message
    assert found.fun == pytest.approx(qb.solve(qb.Problem(qb.StackedForm(rows), c), rel_gap=1e-9).fun, rel=1e-6)


def test_bad_samples_are_refused():
    rows, c = scaled_rows(2000, 6)
    with pytest.raises(qb.ProblemError, match="share must be a share of the terms"):
        SPAG(0.0)
    with pytest.raises(qb.ProblemError, match="unknown sampling 'levis'; did you mean 'lewis'"):
        SPAG(0.1, "levis")
    with pytest.raises(qb.ProblemError, match="batch must be a share"):
        BregmanStochastic(batch=2.0)
    with pytest.raises(qb.ProblemError, match="whose terms can be read one by one, found GramForm"):
        qb.solve(qb.Problem(qb.GramForm(3, 2), np.ones(6)), "spag")
    rows[:, 0] = 0.0
    rows[7, 0] = 1.0
    with pytest.raises(qb.ProblemError, match=r"needs to see every direction.*or sampling='lewis'"):
        qb.solve(qb.Problem(qb.StackedForm(rows), c), SPAG(0.03))
