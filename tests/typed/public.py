"""How people call the public API, for the type checker: `make lint` fails where an annotation would not let them."""

from pathlib import Path
from typing import assert_type

import numpy as np
import scipy.sparse as sp

import quartbench as qb

rows = np.ones((6, 3))
c = np.ones(3)

form = qb.StackedForm(rows, rank=2)
problem = qb.Problem(form, c, qb.Orthant())
by_name = qb.Problem(rows, c, "orthant", rank=2)
assert_type(problem.form, qb.Form)
assert_type(problem.cone, qb.Cone)
assert_type(problem.value(c), float)
assert_type(problem.gradient(c), np.ndarray)
assert_type(problem.save(Path("p.npz")), Path)
assert_type(qb.Problem.load("p.npz"), qb.Problem)
assert_type(qb.instances.spectrum(m=20, n=3, sigma_min=0.1, seed=0), qb.Problem)


def stop_early(state: qb.State) -> bool:
    """Stop after ten iterations, or at a gap."""
    assert_type(state.x, np.ndarray)
    return state.iteration < 10 and state.gap > 1e-3


result = qb.solve(problem, "homgd", "lewis", rel_gap=1e-8, callback=stop_early)
assert_type(result, qb.Result)
assert_type(result.x, np.ndarray)
assert_type(result.gap, float)
assert_type(result.status, str)
assert_type(result.history, qb.History)
assert_type(result.history.passes, np.ndarray)
assert_type(result.history.reached(1e-3), int | None)
assert_type(result.to_json("r.json"), str)
assert_type(qb.Result.from_json("r.json"), qb.Result)
assert_type(qb.solve(rows, c, "orthant", rank=2), qb.Result)
assert_type(qb.solve(sp.csr_matrix(rows), c, solver="auto", metric=qb.Identity(3)), qb.Result)
assert_type(qb.solve_many(form, [c, c], "orthant"), list[qb.Result])
assert_type(qb.solve_batch(rows[None], c[None], "orthant").success, np.ndarray)
assert_type(qb.prepare(form, "orthant").solve(c, start=c), qb.Result)
figure = qb.plot(result, result.history, labels=["one", "two"], against=["passes"])
figure.savefig("gaps.svg")
result.history.plot().savefig("gap.svg")

weights = qb.lewis_weights(form, eps=0.1)
assert_type(weights, qb.LewisWeights)
assert_type(weights.tau, np.ndarray)
assert_type(weights.kappa_bound, float)
assert_type(weights.metric, qb.Metric)
assert_type(qb.leverage(form), np.ndarray)
assert_type(qb.coherence(form), float)
assert_type(qb.metric(form, "lewis"), qb.Metric)
assert_type(qb.certify(problem, c).gap, float)

fit = qb.l4_regression(rows, np.ones(6), weights=np.ones(3), groups=2)
assert_type(fit, qb.Regression)
assert_type(fit.x, np.ndarray)
assert_type(fit.gap, float)
model = qb.QuarticRegressor(fit_intercept=False).fit(rows, np.ones(6))
assert_type(model.predict(rows), np.ndarray)


@qb.register("mine")
class Mine(qb.Solver):
    """A solver of one's own."""
