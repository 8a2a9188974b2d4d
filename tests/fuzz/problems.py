"""Which problem has which number? Small ones of every form and cone with hostile features, and larger planted ones.

The same number gives the same bits. What is drawn must not change without a new ``SET``: old runs and truths are then
those of other problems.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import quartbench as qb
from tests.forms.random_forms import RowProducts, connected_edges
from tests.kernels.plain import edge_rows, embedding

from .exactly import Exact, ExactGram, ExactRows

#: The problems that numbers stand for.
SET = 2

#: Forms with their shares, and the cones that they take.
FORMS = {
    "dense": (0.28, ("free", "orthant", "second-order")),
    "block": (0.14, ("free", "orthant", "second-order")),
    "float32": (0.06, ("free", "orthant", "second-order")),
    "sparse": (0.12, ("free", "orthant", "second-order")),
    "operator": (0.12, ("free", "orthant", "second-order")),
    "complex": (0.10, ("free",)),
    "graph": (0.10, ("centred",)),
    "gram": (0.08, ("free", "orthant", "centred")),
}
CONES = {"free": qb.Free, "orthant": qb.Orthant, "second-order": qb.SecondOrder, "centred": qb.Centred}

#: What is hostile about a problem; most have one or two of these, which say how far they go.
FEATURES = ("units", "dominant", "dependent", "conditioned", "polar", "scaled")

#: One problem of so many is a large one.
LARGE = 25

#: Powers of ten of the largest entries of rows and c; rows in single precision have a smaller range.
SIZES, SINGLE_SIZES = 150.0, 25.0


class Case(NamedTuple):
    """A problem as a user states it, the same exactly, and what is known of it.

    Attributes
    ----------
    condition : float
        That of the rows, with columns of unit length where the cone allows other units for each.
    rows : array or None
        Dense rows in double precision, for batches.
    """

    number: int
    form: str
    cone: str
    features: tuple[str, ...]
    condition: float
    problem: qb.Problem
    exact: Exact
    rows: np.ndarray | None

    @property
    def well_posed(self) -> bool:
        """Whether a gap of 1e-10 is to be certified: rows of a condition up to 1e6, c away from the polar cone."""
        return self.condition <= 1e6 and "polar" not in self.features


def case(number: int) -> Case:
    """Return the problem of a number."""
    rng = np.random.default_rng([number, SET])
    form = str(rng.choice(list(FORMS), p=[share for share, _ in FORMS.values()]))
    cone = str(rng.choice(FORMS[form][1]))
    large = number % LARGE == LARGE - 1
    if large or (form, cone) == ("gram", "orthant"):
        return _planted(number, form, cone, large, rng)
    wanted = int(rng.choice([0, 1, 1, 2]))
    features = tuple(sorted(map(str, rng.choice(_possible(form, cone), wanted, replace=False))))
    if form == "gram":
        return _gram(number, cone, features, rng)
    if form == "graph":
        return _graph(number, cone, features, rng)
    return _rows(number, form, cone, features, rng)


def _possible(form: str, cone: str) -> list[str]:
    """Return the features that problems of a form and a cone can have."""
    if form == "graph":
        return ["polar", "scaled"]
    if form == "gram":
        return ["conditioned", "scaled"]
    without = {"polar"} if cone == "free" else set()
    if form in ("sparse", "float32"):  # a prescribed spectrum fills zeros, and does not outlive rounding
        without |= {"conditioned"}
    return [feature for feature in FEATURES if feature not in without]


# Small problems -------------------------------------------------------------------------------------------------------


def _rows(number, form, cone, features, rng) -> Case:
    columns = int(rng.integers(1, 5)) if form == "complex" else int(rng.integers(2, 9))
    rank = int(rng.integers(2, 4)) if form == "block" else 1
    terms = int(rng.integers(columns, 16 if rng.random() < 0.85 else 41))
    rows, c = _gaussian(form, (terms * rank, columns), rng), _gaussian(form, columns, rng)
    if form == "sparse":
        rows *= rng.random(rows.shape) < 0.6
        rows[np.arange(len(rows)), np.arange(len(rows)) % columns] += 1.0
    for feature in features:
        rows, c = _hostile(feature, rows, c, cone, rng)
    if "scaled" in features:
        most = SINGLE_SIZES if form == "float32" else SIZES
        rows, c = _sized(rows, most, rng), _sized(c, SIZES, rng)
    if form == "float32":
        rows = rows.astype(np.float32)
    return _stated(number, form, cone, features, rows, rank, c)


def _sized(array: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Return an array whose largest entry is a power of ten between ±most."""
    return array / np.abs(array).max() * 10.0 ** rng.uniform(-most, most)


def _gaussian(form: str, shape: Any, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.standard_normal(shape)
    return drawn + 1j * rng.standard_normal(shape) if form == "complex" else drawn


def _hostile(feature, rows, c, cone, rng):
    """Return rows and c with one more feature."""
    n = rows.shape[1]
    if feature == "units":
        units = 10.0 ** rng.uniform(-8.0, 8.0, n)
        return rows * units, c * units
    if feature == "dominant":
        rows[rng.integers(len(rows))] *= 10.0 ** rng.uniform(3.0, 9.0)
    elif feature == "dependent" and n > 1:
        mixture = rows[:, :-1] @ rng.standard_normal(n - 1)
        rows[:, -1] = mixture + 10.0 ** rng.uniform(-9.0, -2.0) * rows[:, -1]
    elif feature == "conditioned":
        u, _, v = np.linalg.svd(rows, full_matrices=False)
        rows = (u * 10.0 ** np.linspace(0.0, -rng.uniform(2.0, 12.0), n)) @ v
    elif feature == "polar" and cone == "orthant":
        c = -np.abs(c)
        c[rng.integers(n)] *= -(10.0 ** rng.uniform(-14.0, -2.0))
    elif feature == "polar" and cone == "second-order":
        # One in three on the other side, where 0 is the minimiser.
        c[0] = -np.linalg.norm(c[1:]) * (1.0 - rng.choice([-1.0, 1.0, 1.0]) * 10.0 ** rng.uniform(-14.0, -2.0))
    return rows, c


def _graph(number, cone, features, rng) -> Case:
    points, coordinates = int(rng.integers(3, 8)), int(rng.integers(1, 3))
    edges = connected_edges(rng, points, int(rng.integers(0, 8)))
    c, scale = rng.standard_normal((points, coordinates)), float(rng.choice([1.0, 3.7, 1e-3]))
    if "polar" in features:  # almost a translation
        c = rng.standard_normal(coordinates) + 10.0 ** rng.uniform(-14.0, -2.0) * c
    if "scaled" in features:
        scale, c = scale * 10.0 ** rng.uniform(-SIZES, SIZES), c * 10.0 ** rng.uniform(-SIZES, SIZES)
    form = qb.GraphForm(points, coordinates, edges).scaled(scale)
    exact = ExactRows(
        edge_rows(points, coordinates, form.edges), coordinates, c.ravel(), cone, scale=scale, shape=c.shape
    )
    problem = qb.Problem(form, c, CONES[cone]())
    return Case(number, "graph", cone, features, 1.0, problem, exact, None)


def _gram(number, cone, features, rng) -> Case:
    shape = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    c, scale, condition = rng.standard_normal(shape), float(rng.choice([1.0, 3.7, 1e-3])), 1.0
    if "conditioned" in features:
        u, s, v = np.linalg.svd(c, full_matrices=False)
        c = (u * 10.0 ** np.linspace(0.0, -rng.uniform(2.0, 12.0), s.size)) @ v
    if "scaled" in features:
        scale, c = scale * 10.0 ** rng.uniform(-SIZES, SIZES), c * 10.0 ** rng.uniform(-SIZES, SIZES)
    seen = c / np.abs(c).max()
    seen = seen - seen.mean(axis=0) if cone == "centred" else seen
    condition = float(np.linalg.cond(seen)) if cone == "free" or shape[0] > shape[1] else 1.0
    problem = qb.Problem(qb.GramForm(*shape).scaled(scale), c, CONES[cone]())
    return Case(number, "gram", cone, features, condition, problem, ExactGram(c.ravel(), cone, scale, shape), None)


def _stated(number, form, cone, features, rows, rank, c, optimum=None) -> Case:
    """Return the case of rows as they are stored, and its exact twin."""
    real = embedding(rows) if form == "complex" else np.asarray(rows, dtype=float)
    makers = {
        "sparse": lambda: qb.StackedForm(sp.csr_matrix(rows), rank),
        "operator": lambda: qb.OperatorForm(RowProducts(rows), rank),
        "complex": lambda: qb.ComplexForm(rows),
    }
    stored = makers.get(form, lambda: qb.StackedForm(rows, rank))()
    flat = c.view(float) if form == "complex" else c
    exact = ExactRows(real, 2 if form == "complex" else rank, flat, cone, optimum=optimum)
    problem = qb.Problem(stored, c, CONES[cone]())
    batch = real if form in ("dense", "block") and cone in ("free", "orthant") else None
    return Case(number, form, cone, features, _condition(real, cone), problem, exact, batch)


def _condition(rows: np.ndarray, cone: str) -> float:
    """Return the condition of rows; with columns of unit length on cones that do not tie their units together."""
    rows = rows / np.abs(rows).max()
    if cone in ("free", "orthant"):
        rows = rows / np.abs(rows).max(axis=0)
        rows = rows / np.linalg.norm(rows, axis=0)
    return float(np.linalg.cond(rows))


# Planted problems: rows and x* of small integers, c = ∇ρ(x*) − s; then other units by powers of two -------------------


def _planted(number, form, cone, large, rng) -> Case:
    features = tuple(feature for feature in ("units", "scaled") if rng.random() < 0.4)
    a, j = (int(rng.integers(-160, 161)), int(rng.integers(-90, 91))) if "scaled" in features else (0, 0)
    if form == "float32":
        a = a // 4
    if form == "gram":
        features = tuple(feature for feature in features if feature != "units")
        shape = (int(rng.integers(60, 151)) if large else int(rng.integers(2, 7)), int(rng.integers(1, 4)))
        x, slack = _planted_point(shape[0] * shape[1], cone, shape, rng)
        point = x.reshape(shape)
        c = (4 * point @ (point.T @ point)).reshape(-1) - slack
        exact = ExactGram(_float(c, a + 3 * j), cone, 2.0**a, shape)
        exact.planted = exact.value(_float(x, j - a))
        problem = qb.Problem(qb.GramForm(*shape).scaled(2.0**a), exact.c, CONES[cone]())
        return Case(number, form, cone, _with_size(features, large), 1.0, problem, exact, None)
    if form == "graph":
        features = tuple(feature for feature in features if feature != "units")
        shape = int(rng.integers(40, 81)), 2
        built = qb.GraphForm(*shape, connected_edges(rng, shape[0], int(rng.integers(40, 400)))).scaled(2.0**a)
        rows = edge_rows(*shape, built.edges)
        x, slack = _planted_point(rows.shape[1], cone, shape, rng)
        exact = ExactRows(rows, 2, _float(_gradient(rows, 2, x) - slack, a + 3 * j), cone, scale=2.0**a, shape=shape)
        exact.planted = exact.value(_float(x, j - a))
        problem = qb.Problem(built, exact.c, CONES[cone]())
        return Case(number, form, cone, _with_size(features, large), 1.0, problem, exact, None)
    rows, rank = _whole_rows(form, rng)
    real = embedding(rows) if form == "complex" else rows
    x, slack = _planted_point(real.shape[1], cone, None, rng)
    c = _float(_gradient(real, rank, x) - slack, a + 3 * j)
    units = np.zeros(rows.shape[1], dtype=int)
    if cone == "second-order":
        features = tuple(feature for feature in features if feature != "units")
    if "units" in features:
        units = rng.integers(-26, 27, rows.shape[1])
    each = np.repeat(units, 2) if form == "complex" else units
    rows = rows * 2.0 ** (units + a)
    c, x = np.ldexp(c, each), np.ldexp(_float(x, j - a), -each)
    if form == "float32":
        rows = rows.astype(np.float32)
    made = _stated(
        number,
        form,
        cone,
        _with_size(features, large),
        rows,
        rank if form != "complex" else 1,
        c.view(complex) if form == "complex" else c,
    )
    made.exact.planted = made.exact.value(x)
    return made


def _with_size(features: tuple[str, ...], large: bool) -> tuple[str, ...]:
    return tuple(sorted((*features, "large") if large else features))


def _whole_rows(form: str, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return large rows of small integers, and their rank on real points."""
    if form == "complex":
        shape = int(rng.integers(200, 400)), int(rng.integers(30, 76))
        rows = rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)
        return rows + 4.0 * np.eye(*shape), 2
    rank = 3 if form == "block" else 1
    n, terms = int(rng.integers(60, 151)), int(rng.integers(200, 1001)) // rank
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
