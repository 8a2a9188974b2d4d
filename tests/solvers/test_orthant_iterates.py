"""The iterates of the fast methods on the orthant, computed once more with dense matrices from their docstrings."""

import itertools
import math

import numpy as np
import pytest

import quartbench as qb
from quartbench.solvers import HomCG, HomNewtonCG, starting_point
from quartbench.solvers.plane import Plane
from quartbench.solvers.steps import evaluate

COUNT = 10


class Truth:
    """ρ(y) = Σ⟨a,y⟩⁴ on y ≥ 0 with dense matrices, and a c that has both signs."""

    def __init__(self, seed, spread):
        rng = np.random.default_rng(seed)
        self.rows = rng.standard_normal((40, COUNT)) * np.geomspace(spread, 2.0, COUNT)
        self.c = rng.standard_normal(COUNT)
        self.c[0] = abs(self.c[0]) + 1.0
        self.problem = qb.Problem(qb.StackedForm(self.rows), self.c, qb.Orthant())
        self.metric = qb.metric(self.problem.form, "diagonal")
        self.diagonal = np.array([self.metric.apply(unit) @ unit for unit in np.eye(COUNT)])

    def rho(self, y):
        return float(((self.rows @ y) ** 4).sum())

    def residual(self, y):
        return 4.0 * self.rho(y) / (self.c @ y) * self.c - 4.0 * self.rows.T @ (self.rows @ y) ** 3

    def hessian(self, y):
        return 12.0 * self.rows.T @ ((self.rows @ y)[:, None] ** 2 * self.rows)

    def descends(self, y, r, z):
        return self.c @ z > 0.0 and r @ (z - y) > 0.0

    def on_slice(self, y, z):
        """Return the multiple of z with the ⟨c,·⟩ of y."""
        return (self.c @ y) / (self.c @ z) * z

    def best(self, y, h, least_limit=0.0):
        """Return the t where ρ(y + th) is least in the orthant, or at most ``least_limit``: a root of the cubic."""
        s, w = self.rows @ y, self.rows @ h
        cubic = [4.0 * (w**4).sum(), 12.0 * (s * w**3).sum(), 12.0 * (s**2 * w**2).sum(), 4.0 * (s**3 * w).sum()]
        roots = np.roots(cubic)
        limit = min([y[i] / -h[i] for i in range(COUNT) if h[i] < 0.0], default=math.inf)
        return min(float(roots[np.abs(roots.imag).argmin()].real), max(limit, least_limit))

    def taken(self, method, count):
        start = starting_point(self.problem, self.metric)
        return start, list(itertools.islice(method.iterates(self.problem, self.metric, start), count))


def same_ray(truth, found, y):
    np.testing.assert_allclose(found / (truth.c @ found), y / (truth.c @ y), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 5, 9, 15])
def test_homcg_projects_its_trials_and_starts_anew_where_the_free_coordinates_change(seed):
    truth = Truth(seed, 0.3)
    y, found = truth.taken(HomCG(), 7)
    d, before, size_before, free_before, unit, t = np.zeros(COUNT), None, 1.0, None, None, 1.0
    changes, restarted = 0, False
    for number, iterate in enumerate(found):
        same_ray(truth, iterate.point, y)
        assert iterate.restart == (restarted and number > 1)
        r = truth.residual(y) / truth.rho(y)
        free = (y > 0.0) | (r > 0.0)
        if free_before is not None and (free != free_before).any():
            before, changes = None, changes + 1
        v = np.where(free, r / truth.diagonal, 0.0)
        unit = unit or np.abs(y).max() / np.abs(v).max()
        v = unit * v
        beta = 0.0 if before is None else max(0.0, (r - before) @ v / size_before)
        d, restarted = v + beta * d, beta == 0.0
        d = d if r @ d > 0.0 else v
        before, size_before, free_before = r, r @ v, free
        while not truth.descends(y, r, np.maximum(y + t * d, 0.0)):
            t = 0.5 * t
            assert t > 1e-15
        h = truth.on_slice(y, np.maximum(y + t * d, 0.0)) - y
        share = truth.best(y, h)
        y, t = np.maximum(y + share * h, 0.0), t * max(share, 1e-3)
    assert changes > 0 or seed not in (1, 9)


@pytest.mark.parametrize("t", [1.0, 64.0])
def test_homcg_halves_a_trial_until_it_descends(t):
    truth = Truth(2, 0.3)
    y = evaluate(truth.problem.form, starting_point(truth.problem, truth.metric))
    r = truth.residual(y.point)
    # Far along d a coordinate with negative c has grown beyond all others.
    d = r / np.abs(r).max() * np.abs(y.point).max()
    d[truth.c.argmin()] += 3.0 * np.abs(y.point).max()
    halved = t
    while not truth.descends(y.point, r, np.maximum(y.point + halved * d, 0.0)):
        halved = 0.5 * halved
        assert halved > 1e-15
    assert halved < t
    h = truth.on_slice(y.point, np.maximum(y.point + halved * d, 0.0)) - y.point
    share = truth.best(y.point, h)
    found, after = HomCG._search(Plane(truth.problem), y, r, d, t)
    np.testing.assert_allclose(found.point, np.maximum(y.point + share * h, 0.0), rtol=1e-9, atol=1e-12)
    assert found.rho == pytest.approx(truth.rho(found.point), rel=1e-9)
    assert after == pytest.approx(halved * max(share, 1e-3), rel=1e-9)


def test_homcg_stays_where_no_trial_descends():
    truth = Truth(3, 0.3)
    y = evaluate(truth.problem.form, starting_point(truth.problem, truth.metric))
    r = truth.residual(y.point)
    found, t = HomCG._search(Plane(truth.problem), y, r, -r, 1.0)
    assert found is y
    assert t == 0.0


@pytest.mark.parametrize("seed", [1, 6, 7, 11, 25, 28, 29, 37])
def test_homnewton_cg_goes_along_the_gradient_where_projection_costs_most_of_the_descent(seed):
    # On these seeds Newton's direction keeps between −0.02 and 1.04 of its descent, and 0.3 decides.
    truth = Truth(seed, 0.03)
    y, found = truth.taken(HomNewtonCG(forcing=1e-13), 5)
    for iterate in found:
        same_ray(truth, iterate.point, y)
        r, hessian = truth.residual(y), truth.hessian(y)
        free = (y > 0.0) | (r > 0.0)
        e = np.zeros(COUNT)
        e[free] = np.linalg.solve(hessian[np.ix_(free, free)], r[free])
        if r @ (np.maximum(y + e, 0.0) - y) < 0.3 * (r @ e):
            v = np.where(free, r / truth.diagonal, 0.0)
            e = (r @ v) / (v @ hessian @ v) * v
        while not truth.descends(y, r, np.maximum(y + e, 0.0)):
            e = 0.5 * e
            assert np.abs(e).max() > 1e-15
        z = truth.on_slice(y, np.maximum(y + e, 0.0))
        t = truth.best(y, z - y, least_limit=1.0)
        best = truth.rho(y + t * (z - y))
        # z itself is taken where it misses less than a thousandth of what the best point gains.
        enough = truth.rho(z) - best <= 1e-3 * (truth.rho(y) - best) + 1e-15 * truth.rho(y)
        y = z if enough else np.maximum(y + t * (z - y), 0.0)
