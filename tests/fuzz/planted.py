"""Problems whose minimiser is known exactly: rows and x* of small integers, c = ∇ρ(x*) − s; units by powers of two.

With rows 2ᵃ times and c 2^{a+3j} times as large x* is 2^{j−a} times as large, and nothing is rounded.
"""

from __future__ import annotations

import numpy as np

import quartbench as qb
from tests.forms.random_forms import connected_edges
from tests.kernels.plain import edge_rows, embedding

from .cases import CONES, Case, stated
from .exactly import Exact, ExactGram, ExactRows

#: Numbers from which on large problems are of up to 500 unknowns: there proofs and kernels take their other ways.
HUGE = 1_000_000


def planted(number: int, form: str, cone: str, large: bool, rng: np.random.Generator) -> Case:
    """Return a planted problem, of 60 to 150 unknowns where it is large; of up to 500 from HUGE on."""
    features = {feature for feature in ("units", "scaled") if rng.random() < 0.4}
    a, j = (int(rng.integers(-160, 161)), int(rng.integers(-90, 91))) if "scaled" in features else (0, 0)
    if form == "float32":
        a = a // 4
    if form in ("gram", "graph") or cone == "second-order":  # which tie the units of the unknowns together
        features.discard("units")
    known = tuple(sorted(features | {"large"} if large else features))
    if form == "gram":
        return _on_points(number, form, known, *_gram(cone, large, a, j, rng))
    if form == "graph":
        return _on_points(number, form, known, *_graph(cone, a, j, rng))
    rows, rank = _whole_rows(form, number >= HUGE, rng)
    real = embedding(rows) if form == "complex" else rows
    x, slack = _planted_point(real.shape[1], cone, None, rng)
    c = _float(_gradient(real, rank, x) - slack, a + 3 * j)
    units = rng.integers(-26, 27, rows.shape[1]) if "units" in features else np.zeros(rows.shape[1], dtype=int)
    each = np.repeat(units, 2) if form == "complex" else units
    rows = rows * 2.0 ** (units + a)
    c, x = np.ldexp(c, each), np.ldexp(_float(x, j - a), -each)
    if form == "float32":
        rows = rows.astype(np.float32)
    if form == "complex":
        rank, c = 1, c.view(complex)
    made = stated(number, form, cone, known, rows, rank, c)
    made.exact.planted = made.exact.value(x)
    return made


def _on_points(number, form, features, built: qb.Form, exact: Exact, x: np.ndarray) -> Case:
    """Return the case of a form on points of shape N × d, planted at x."""
    exact.planted = exact.value(x)
    problem = qb.Problem(built, exact.c, CONES[exact.cone]())
    return Case(number, form, exact.cone, features, 1.0, problem, exact, None)


def _gram(cone, large, a, j, rng) -> tuple[qb.Form, Exact, np.ndarray]:
    shape = (int(rng.integers(60, 151)) if large else int(rng.integers(2, 7)), int(rng.integers(1, 4)))
    x, slack = _planted_point(shape[0] * shape[1], cone, shape, rng)
    point = x.reshape(shape)
    c = (4 * point @ (point.T @ point)).reshape(-1) - slack
    built = qb.GramForm(*shape).scaled(2.0**a)
    return built, ExactGram(_float(c, a + 3 * j), cone, 2.0**a, shape), _float(x, j - a)


def _graph(cone, a, j, rng) -> tuple[qb.Form, Exact, np.ndarray]:
    shape = int(rng.integers(40, 81)), 2
    built = qb.GraphForm(*shape, connected_edges(rng, shape[0], int(rng.integers(40, 400)))).scaled(2.0**a)
    rows = edge_rows(*shape, built.edges)
    x, slack = _planted_point(rows.shape[1], cone, shape, rng)
    c = _float(_gradient(rows, 2, x) - slack, a + 3 * j)
    return built, ExactRows(rows, 2, c, cone, scale=2.0**a, shape=shape), _float(x, j - a)


def _whole_rows(form: str, huge: bool, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return large rows of small integers, and their rank on real points."""
    if form == "complex":
        shape = int(rng.integers(200, 400)), int(rng.integers(30, 76))
        rows = rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)
        return rows + 4.0 * np.eye(*shape), 2
    rank = 3 if form == "block" else 1
    n, terms = int(rng.integers(60, 151)), int(rng.integers(200, 1001)) // rank
    if huge:
        n = int(rng.integers(151, 501))
        terms = int(rng.integers(n, 4 * n)) // rank + 1
    rows = rng.integers(-3, 4, (terms * rank, n)).astype(float)
    if form == "sparse":
        rows *= rng.random(rows.shape) < 0.1
    rows[np.arange(terms * rank), np.arange(terms * rank) % n] += 4.0
    return rows, rank


def _planted_point(dim, cone, shape, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return a point of the cone in small integers, and a slack in the dual cone that is orthogonal to it."""
    x, slack = rng.integers(-3, 4, dim), np.zeros(dim, dtype=np.int64)
    x[0] = 2
    if cone == "centred":
        points = x.reshape(shape)
        points[-1] -= points.sum(axis=0)
        slack = np.tile(rng.integers(-9, 10, shape[1]), shape[0])  # translations
    elif cone == "orthant":
        x = np.abs(x) * (rng.random(dim) < 0.6)
        x[0] = 1
        slack = np.where(x == 0, rng.integers(0, 200, dim), 0)
    elif cone == "second-order" and rng.random() < 0.5:  # inside
        x[0] = 3 * dim
    elif cone == "second-order":  # on the boundary, the slack along the opposite ray
        x[:] = 0
        x[:3], slack[:3] = (5, 3, -4), (500, -300, 400)
    return x, slack


def _gradient(rows: np.ndarray, rank: int, x: np.ndarray) -> np.ndarray:
    """Return ∇ρ(x) = Σ 4‖Uᵢᵀx‖² Uᵢ Uᵢᵀx in whole numbers."""
    rows = rows.astype(np.int64).astype(object)
    image = (rows @ x.astype(object)).reshape(-1, rank)
    return rows.T @ (4 * (image * image).sum(axis=1, keepdims=True) * image).reshape(-1)


def _float(whole: np.ndarray, power: int) -> np.ndarray:
    """Return whole numbers times a power of two, exactly."""
    found = np.array([float(int(v)) for v in whole])
    if any(int(a) != int(v) for a, v in zip(found, whole, strict=True)):
        raise ArithmeticError("a planted problem must be exact in floating point")
    return np.ldexp(found, power)
