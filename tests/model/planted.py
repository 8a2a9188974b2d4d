"""Problems whose minimiser is known exactly: integer rows and x*, and c = ∇ρ(x*) − s by the optimality conditions.

All numbers are small integers, so that c is exact in floating point, f* = −3ρ(x*) is exact, and the true gap of any
point can be computed in rational arithmetic.
"""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from quartbench.cones import Centred, Free, Orthant, SecondOrder
from quartbench.forms import ComplexForm, GramForm, GraphForm, StackedForm
from quartbench.model import Problem
from tests.forms.random_forms import connected_edges, dense_rows

#: Every form on every cone that takes it.
CASES = (
    [(kind, "free") for kind in ("dense", "block", "float32", "sparse", "complex", "gram")]
    + [(kind, "centred") for kind in ("graph", "gram")]
    + [(kind, "orthant") for kind in ("dense", "block", "float32", "sparse", "gram")]
    + [(kind, "second-order") for kind in ("dense", "block", "sparse")]
)


def integer_form(kind, n, terms, rng):
    """Return a positive definite form of small integers."""
    if kind == "gram":
        return GramForm(n, 2)
    if kind == "graph":
        return GraphForm(n, 2, connected_edges(rng, n, terms))
    if kind == "complex":
        rows = rng.integers(-3, 4, (terms, n)) + 1j * rng.integers(-3, 4, (terms, n))
        return ComplexForm(np.vstack([rows + (rows == 0), np.eye(n)]))
    rank = 3 if kind == "block" else 1
    rows = rng.integers(-3, 4, (terms * rank, n)).astype(float)
    if kind == "sparse":
        rows *= rng.random(rows.shape) < 0.6
    rows[np.arange(0, terms * rank, rank), np.arange(terms) % n] += 4.0
    if kind == "sparse":
        return StackedForm(sp.csr_matrix(rows), rank)
    return StackedForm(rows.astype(np.float32) if kind == "float32" else rows, rank)


def planted(kind, cone, seed=0, n=6, terms=20):
    """Return a problem with its exact solution and optimum, as attributes ``solution`` and ``optimum``."""
    rng = np.random.default_rng(seed)
    form = integer_form(kind, n, terms, rng)
    x = rng.integers(-3, 4, form.dim).astype(float)
    slack = np.zeros(form.dim)
    if cone == "free":
        x[0] = 2.0
    elif cone == "centred":
        point = x.reshape(form.shape)
        point[0] += 1.0
        point[-1] -= point.sum(axis=0)
        slack = -np.tile([3.0, -5.0], form.shape[0])  # translations cost nothing: c may contain any
    elif cone == "orthant":
        x = np.abs(x) * (rng.random(x.size) < 0.6)
        x[0] = 1.0
        slack = np.where(x == 0.0, rng.integers(0, 200, x.size), 0.0)
    elif seed % 3 == 0:  # inside the second-order cone
        x[0] = 20.0
    else:  # on its boundary, with s along the opposite ray
        x[:] = 0.0
        x[[0, 1, 2]] = 5.0, 3.0, -4.0
        slack[[0, 1, 2]] = 50.0, -30.0, 40.0
    gradient = form.gradient(x)
    assert np.abs(gradient).max() < 2.0**50
    assert (gradient == np.round(gradient)).all()
    cones = {"free": Free, "centred": Centred, "orthant": Orthant, "second-order": SecondOrder}
    return Problem(form, gradient - slack, cones[cone](), solution=x, optimum=-3.0 * form.value(x))


def exact(form, x):
    """Return ρ(x) as a fraction."""
    x = [Fraction(float(number)) for number in x]
    if isinstance(form, GramForm):
        r = form.shape[1]
        columns = [x[k::r] for k in range(r)]
        return sum(sum(a * b for a, b in zip(p, q, strict=True)) ** 2 for p in columns for q in columns)
    rows = [[Fraction(float(entry)) for entry in row] for row in dense_rows(form)]
    image = [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows]
    blocks = [image[k : k + form.rank] for k in range(0, len(image), form.rank)]
    return sum(sum(s * s for s in block) ** 2 for block in blocks)


def true_gap(problem, x):
    """Return (f(s(x)x) − f*)/|f*| to full relative accuracy, however small: 1 − (⟨c,x⟩⁴ρ*/⟨c,x*⟩⁴ρ)^{1/3}."""
    c = [Fraction(float(number)) for number in problem.c]
    inner, best = (sum(a * Fraction(float(b)) for a, b in zip(c, at, strict=True)) for at in (x, problem.solution))
    ratio = inner**4 * exact(problem.form, problem.solution) / (best**4 * exact(problem.form, x))
    return float(-np.expm1(np.log1p(-float(1 - ratio)) / 3.0))


def near(problem, distance, seed=0):
    """Return a point of the cone at about a relative distance from the solution."""
    rng = np.random.default_rng([seed, 77])
    x = problem.solution + distance * np.abs(problem.solution).max() * rng.standard_normal(problem.dim)
    if problem.cone.name == "orthant":
        return np.where((problem.solution == 0.0) & (rng.random(x.size) < 0.5), 0.0, np.abs(x))
    x = problem.cone.euclidean(x)
    if problem.cone.name == "second-order":
        x[0] = np.nextafter(max(x[0], np.linalg.norm(x[1:])), np.inf)
    return x
