"""Do Newton's dual points pay for certificates, and are they believed no longer than proofs bear them out?"""

import numpy as np
import pytest

from quartbench import instances, testing
from quartbench.forms import TermForm
from quartbench.solvers import HomNewton, HomNewtonCG, driver, solve, starting_point
from quartbench.solvers.prepared import Prepared

#: Every form and cone on which the Newton methods run.
PROBLEMS = {name: problem for name, problem in testing.problems().items() if problem.cone.directions}


def duals(problem, method, metric="auto"):
    """Return the iterates of a run that bring a dual point, each with it."""
    prepared = Prepared(problem.form, problem.cone, metric, method)
    prepared.ready(problem)
    inner = problem.normalised().problem
    start = starting_point(inner, prepared.metric)
    found = []
    for _, iterate in zip(range(20), prepared.method.iterates(inner, prepared.metric, start), strict=False):
        if iterate.dual is not None and iterate.dual() is not None:
            found.append((iterate, *iterate.dual()))
    return inner, found


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", [HomNewton, HomNewtonCG])
def test_the_dual_point_of_a_direction_is_feasible_up_to_what_it_left(name, method):
    inner, found = duals(PROBLEMS[name], method())
    for _, weights, left in found:
        r = inner.c - inner.form.adjoint(weights)
        assert (left is None) == (method is HomNewton or not inner.cone.subspace)
        if left is not None:
            np.testing.assert_allclose(left, r, atol=1e-9 * np.abs(inner.c).max())
    assert bool(found) == isinstance(inner.form, TermForm)


@pytest.mark.parametrize(
    "name",
    [name for name, problem in PROBLEMS.items() if problem.cone.subspace and isinstance(problem.form, TermForm)],
)
def test_the_bound_of_the_dual_point_closes_in_on_the_optimum(name):
    inner, found = duals(PROBLEMS[name], HomNewtonCG())
    iterate, weights, _ = found[-1]
    assert -inner.form.dual_value(weights) == pytest.approx(iterate.value, rel=1e-9)


class Braggart(HomNewtonCG):
    """A method whose dual points claim a bound that is too good, by a share of it."""

    def __init__(self, share: float = 0.5) -> None:
        super().__init__()
        self.share = share

    def iterates(self, problem, metric, start):
        for iterate in super().iterates(problem, metric, start):
            yield iterate if iterate.dual is None else self._boasting(iterate)

    def _boasting(self, iterate):
        def dual():
            weights, _ = iterate.dual()
            return (1.0 - self.share) * weights, np.zeros_like(iterate.point)

        return iterate._replace(dual=dual)


@pytest.mark.parametrize("share", [1e-7, 1e-3, 0.5, 1.0])
def test_dual_points_that_boast_are_found_out(share):
    problem = instances.spectrum(400, 80, sigma_min=0.3, seed=1)
    result = solve(problem, Braggart(share), rel_gap=1e-9)
    honest = solve(problem, HomNewtonCG(), rel_gap=1e-12)
    assert result.lower_bound <= honest.fun
    assert result.fun >= honest.lower_bound
    assert result.status == "converged"
    assert result.gap <= 1e-9


class Liar(HomNewtonCG):
    """A method whose third iterate has a ρ that is not its own, and says that all is well."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def iterates(self, problem, metric, start):
        for count, iterate in enumerate(super().iterates(problem, metric, start)):
            if count != 2:
                yield iterate
                continue
            rho, *others = iterate.evaluated
            yield iterate._replace(evaluated=(self.factor * rho, *others), decrement=1e-30)


@pytest.mark.parametrize("factor", [1e-12, 0.5, 1.0 - 1e-6, np.nan])
def test_one_false_value_does_not_keep_the_later_points_from_being_found(factor):
    problem = instances.spectrum(400, 80, sigma_min=0.3, seed=1)
    result = solve(problem, Liar(factor), rel_gap=1e-6)
    assert result.status == "converged"
    assert result.lower_bound <= solve(problem, rel_gap=1e-12).fun <= result.fun + 1e-12 * abs(result.fun)


def test_a_proof_that_fails_ends_the_belief_in_dual_points(monkeypatch):
    asked = []
    real = driver.estimate_dual
    monkeypatch.setattr(driver, "estimate_dual", lambda *args: asked.append(1) or real(*args))
    solve(instances.spectrum(400, 80, sigma_min=0.3, seed=1), Braggart(0.5), rel_gap=1e-9)
    assert len(asked) == 1


@pytest.mark.parametrize("rel_gap", [1e-6, 1e-10])
def test_a_newton_run_needs_few_estimates_and_one_proof(monkeypatch, rel_gap):
    """What certificates cost is counted: dual points that are looked at, estimates of our own, and proofs."""
    counts = {"estimate_dual": 0, "estimate": 0, "prove": 0}
    for name in counts:
        real = getattr(driver, name)

        def counted(*args, _name=name, _real=real, **options):
            counts[_name] += 1
            return _real(*args, **options)

        monkeypatch.setattr(driver, name, counted)
    for problem in (
        instances.spectrum(2000, 100, sigma_min=0.2, seed=0),
        instances.heavy_tailed(2000, 100, df=2.0, seed=0),
        instances.sparse(5000, 200, density=0.02, seed=0),
        instances.orthant(1000, 100, seed=0),
        instances.geometric(300, 3, seed=0),
    ):
        counts.update(dict.fromkeys(counts, 0))
        assert solve(problem, "homnewton-cg", rel_gap=rel_gap).status == "converged"
        assert counts["prove"] == 1, problem
        assert counts["estimate"] == 0, problem
        assert counts["estimate_dual"] <= 4, problem
