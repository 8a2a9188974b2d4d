"""Does a cone keep the contract of :class:`quartbench.Cone`? What makes a projection, and what follows."""

from __future__ import annotations

import numpy as np

from quartbench import instances
from quartbench.cones import Cone
from quartbench.forms import Form
from quartbench.metrics import Diagonal, Identity, Metric

from .close import close
from .planted import check_planted
from .report import Report


def check_cone(cone: Cone, form: Form, seed: int = 0, solve: bool = True) -> Report:
    """Check that a cone keeps its contract on the points of a form; raise AssertionError where it does not.

    In the norm of every metric that it says it takes: P_K is idempotent and positively homogeneous, x − P_K(x) is
    orthogonal to P_K(x) and makes no acute angle with K (Moreau), and the slice projects. Then a problem with a known
    minimiser is solved on it, certified.

    Parameters
    ----------
    cone : Cone
    form : Form
        On whose points the cone is tried.
    seed : int
    solve : bool
        Whether to solve a planted problem at the end, by ``auto`` and ``homgd``.

    Returns
    -------
    Report
        A dictionary that prints as a table: what was checked, and what the cone says it cannot do.

    Examples
    --------
    >>> from quartbench.testing import check_cone
    >>> form = qb.StackedForm(np.random.default_rng(0).standard_normal((20, 4)))
    >>> sorted(check_cone(qb.Orthant(), form))
    ['auto', 'conic', 'directions', 'homgd', 'projections']
    """
    assert isinstance(cone, Cone), f"a cone derives from quartbench.Cone, found {type(cone).__name__}"
    assert cone.metrics in ("identity", "diagonal", "any"), f"metrics is {cone.metrics!r}"
    rng = np.random.default_rng(seed)
    cone = cone.bind(form)
    for metric in _metrics(cone, form, rng):
        _check_projection(cone, metric, rng, form.dim)
        _check_slice(cone, metric, rng, form.dim)
    _check_membership(cone, rng, form.dim)
    report = Report(f"{cone.name} keeps the contract of a cone:")
    report["projections"] = f"in metrics: {cone.metrics}"
    report["conic"] = _check_descriptions(cone, rng, form.dim)
    if cone.directions:
        _check_directions(cone, rng, form.dim)
        report["directions"] = "free, limit, newton_direction"
    if solve:
        report.update(check_planted(instances.planted(form, seed=seed, cone=cone), ("auto", "homgd")))
    return report


def _metrics(cone: Cone, form: Form, rng: np.random.Generator) -> list[Metric]:
    found: list[Metric] = [Identity(form.dim)]
    if cone.metrics != "identity":
        entries = rng.uniform(0.5, 2.0, form.dim)
        found.append(Diagonal(np.repeat(entries[::2], 2) if form.dtype.kind == "c" else entries))
    return found


def _check_projection(cone: Cone, metric: Metric, rng: np.random.Generator, dim: int) -> None:
    name = metric.name
    project = cone.projector(metric)
    for x, y in rng.standard_normal((5, 2, dim)):
        given = x.copy()
        p, q = project(x), project(y)
        assert np.array_equal(x, given), "a projection changed the point it was given"
        size = float(np.linalg.norm(x))
        close(cone.project(x, metric), p, f"project and projector disagree in the metric {name}", size=size)
        close(project(p), p, f"P(P(x)) is not P(x) in the metric {name}", size=size)
        close(project(3.0 * x), 3.0 * p, f"P(3x) is not 3P(x) in the metric {name}", size=size)
        dual = metric.apply(x - p)
        weight = float(np.linalg.norm(dual)) * max(size, float(np.linalg.norm(y)))
        close(dual @ p, 0.0, f"x − P(x) is not orthogonal to P(x) in the metric {name}", size=weight or 1.0)
        assert dual @ q <= 1e-9 * weight, f"x − P(x) makes an acute angle with K in the metric {name}: no projection"
        if cone.subspace:
            close(project(x + 2.0 * y), p + 2.0 * q, "a subspace whose projection is not linear", size=3.0 * size)


def _check_slice(cone: Cone, metric: Metric, rng: np.random.Generator, dim: int) -> None:
    c = cone.euclidean(rng.standard_normal(dim))
    if not c.any():
        c = cone.euclidean(-rng.standard_normal(dim))
    onto, project = cone.slice(c, metric), cone.projector(metric)
    others = [onto(rng.standard_normal(dim)) for _ in range(4)]
    for x in rng.standard_normal((4, dim)):
        y = onto(x)
        size = float(np.linalg.norm(y))
        close(c @ y, 1.0, "the slice is not in {⟨c,y⟩ = 1}")
        close(project(y), y, "the slice is not in K", size=size)
        dual = metric.apply(x - y)
        for other in others:
            weight = float(np.linalg.norm(dual)) * (size + float(np.linalg.norm(other)))
            assert dual @ (other - y) <= 1e-7 * weight, "another point of the slice is nearer: no projection"


def _check_membership(cone: Cone, rng: np.random.Generator, dim: int) -> None:
    x = rng.standard_normal(dim)
    inside = cone.euclidean(x)
    if inside.any():
        assert not cone.polar_contains(inside), "a point of K is said to be in the polar cone"
    outside = x - inside
    if np.linalg.norm(outside) > 1e-9 * np.linalg.norm(x):
        # Rounding may leave the residual a hair outside: what counts is that nothing large is left in K.
        left = np.linalg.norm(cone.euclidean(outside))
        assert left <= 1e-9 * np.linalg.norm(x), "x − P(x) is not in the polar cone"


def _check_descriptions(cone: Cone, rng: np.random.Generator, dim: int) -> str:
    found = []
    inside, raw = cone.euclidean(rng.standard_normal(dim)), rng.standard_normal(dim)
    far = np.linalg.norm(raw - cone.euclidean(raw)) > 1e-6 * np.linalg.norm(raw)
    lower, inequality, conic = cone.lower_bounds(dim), cone.inequality(), cone.conic(dim)
    if lower is not None:
        assert (inside >= lower - 1e-12).all(), "a point of K is below lower_bounds"
        assert not far or (raw < lower).any(), "a point outside K is above lower_bounds"
        found.append("bounds")
    if inequality is not None:
        assert inequality[0](inside) >= -1e-9 * np.linalg.norm(inside), "a point of K violates its inequality"
        assert not far or inequality[0](raw) < 0.0, "a point outside K meets its inequality"
        found.append("an inequality")
    if conic is not None:
        assert conic.matrix.shape == (sum(size for _, size in conic.parts), dim), "conic: sizes do not fit"
        assert _violation(conic, inside) <= 1e-9 * np.linalg.norm(inside), "conic: a point of K is outside"
        assert not far or _violation(conic, raw) > 0.0, "conic: a point outside K is inside"
        found.append("a conic description")
    return ", ".join(found) or "none: conic solvers and bounds of peers are not for this cone"


def _violation(conic, x: np.ndarray) -> float:
    values, start, worst = conic.matrix @ x, 0, 0.0
    for kind, size in conic.parts:
        part = values[start : start + size]
        start += size
        if kind == "zero":
            worst = max(worst, float(np.abs(part).max()))
        elif kind == "nonnegative":
            worst = max(worst, float(-part.min()))
        else:
            worst = max(worst, float(np.linalg.norm(part[1:]) - part[0]))
    return worst


def _check_directions(cone: Cone, rng: np.random.Generator, dim: int) -> None:
    point, h = cone.euclidean(rng.standard_normal(dim)), cone.euclidean(rng.standard_normal(dim))
    h = h - point
    t = min(cone.limit(point, h), 10.0)
    for share in (0.5, 1.0):
        moved = point + share * t * h
        close(cone.euclidean(moved), moved, "a point within limit is outside K", size=float(np.linalg.norm(moved)))
    square = rng.standard_normal((dim, dim))
    hessian, r = square @ square.T + np.eye(dim), rng.standard_normal(dim)
    e = cone.newton_direction(np.asfortranarray(np.tril(hessian)), r, point)
    moved = point + e
    close(cone.euclidean(moved), moved, "newton_direction leaves K", size=float(np.linalg.norm(moved)) or 1.0)
    free = cone.free(point, r)
    assert free is None or free.shape == (dim,), "free is neither None nor a mask of the coordinates"
