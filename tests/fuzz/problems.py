"""Which problem has which number? Small ones of every form and cone with hostile features, and larger planted ones.

The same number gives the same bits. What is drawn must not change without a new ``SET``: old runs and truths are then
those of other problems.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import quartbench as qb
from tests.forms.random_forms import connected_edges
from tests.kernels.plain import edge_rows

from .cases import CONES, Case, stated
from .exactly import ExactGram, ExactRows
from .planted import planted

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

#: What is hostile about a problem; most have one or two of these, which say how far they go.
FEATURES = ("units", "dominant", "dependent", "conditioned", "polar", "scaled")

#: One problem of so many is a large one.
LARGE = 25

#: Powers of ten of the largest entries of rows and c; rows in single precision have a smaller range.
SIZES, SINGLE_SIZES = 150.0, 25.0


def form_of(number: int) -> str:
    """Return the form of the problem of a number."""
    return _drawn(number)[0]


def _drawn(number: int) -> tuple[str, np.random.Generator]:
    """Return the form of a problem, and what draws the rest."""
    rng = np.random.default_rng([number, SET])
    return str(rng.choice(list(FORMS), p=[share for share, _ in FORMS.values()])), rng


def case(number: int) -> Case:
    """Return the problem of a number."""
    form, rng = _drawn(number)
    cone = str(rng.choice(FORMS[form][1]))
    large = number % LARGE == LARGE - 1
    if large or (form, cone) == ("gram", "orthant"):
        return planted(number, form, cone, large, rng)
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
    return stated(number, form, cone, features, rows, rank, c)


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
