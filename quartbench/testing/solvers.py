"""Does a solver keep the contract? The battery that every registered method passes, for the author of a new one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from quartbench import precondition, solvers, views
from quartbench.errors import ProblemError
from quartbench.metrics import Metric
from quartbench.model import Problem
from quartbench.solvers.driver import closable

from .problems import problems
from .report import Report

#: How far a reported value may be from f, and a point from its cone, relative to their size.
TOLERANCE = 1e-9


def check_solver(
    solver: str | solvers.Solver | type[solvers.Solver],
    rel_gap: float = 1e-6,
    max_iter: int = 20_000,
    seed: int = 0,
) -> Report:
    """Check that a solver keeps the contract of :class:`quartbench.solvers.Solver`; raise AssertionError where not.

    On small problems of every form and cone with known minimisers, in each metric that the cone allows: the iterates
    begin at the start, stay in the cone and report true values; nothing given is changed, nor an iterate once it is
    out; two runs agree bit for bit; ``solve`` ends at the minimiser, certified, and no worse than it started.

    Parameters
    ----------
    solver : str, Solver or class
        As :func:`quartbench.solve` takes it.
    rel_gap : float
        The certified gap that it must reach.
    max_iter : int
        The iterations it may take for that.
    seed : int
        Of the problems.

    Returns
    -------
    Report
        A dictionary that prints as a table: for every problem and metric the iterations it took, or why the method does
        not take that combination: it says so with a ProblemError. Dense rows on free space are not optional.

    Examples
    --------
    >>> from quartbench.testing import check_solver
    >>> "dense, free, uniform" in check_solver("homnewton")
    True
    """
    method = solvers.make_solver(solver)
    assert solvers.describe(type(method)), "the first line of the docstring is what lists show: it is empty"
    report = Report(f"{method.name} keeps the contract of a solver:")
    for name, problem in problems(seed).items():
        for metric in _metrics(problem):
            where = f"{method.name} on {name} in the metric {metric.name}"
            try:
                _check_iterates(method, problem, metric, where)
                report[f"{name}, {metric.name}"] = _check_solve(method, problem, metric, rel_gap, max_iter, where)
            except ProblemError as error:
                if name == "dense, free":
                    raise AssertionError(f"{where}: refused ({error})") from error
                report[f"{name}, {metric.name}"] = str(error)
    return report


def _metrics(problem: Problem) -> Iterator[Metric]:
    """Yield the metrics in whose norm the cone of a problem has projections."""
    for name in precondition.METRICS:
        metric = precondition.metric(problem.form, name)
        try:
            problem.cone.require_metric(metric)
        except ProblemError:
            continue
        yield metric


def _check_iterates(method: Any, problem: Problem, metric: Metric, where: str) -> None:
    problem = problem.normalised().problem
    start = solvers.starting_point(problem, metric)
    given = {"start": start.copy(), "c": problem.c.copy()} | _stored(problem)
    method = method.planned(problem, metric, None)
    first, second = [], []
    for run in (first, second):
        run += _snapshots(method, problem, metric, start, where)
        for name, now in ({"start": start, "c": problem.c} | _stored(problem)).items():
            assert np.array_equal(given[name], now), f"{where}: {name} was changed"
    assert len(first) > 1, f"{where}: only {len(first)} iterate"
    same = all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(first, second, strict=True))
    assert same, f"{where}: two runs from the same start differ"
    size = np.linalg.norm(start)
    ray = first[0][0] / (problem.c @ first[0][0])
    assert np.linalg.norm(ray - start) <= TOLERANCE * size, f"{where}: the first iterate is not the start"


def _stored(problem: Problem) -> dict[str, np.ndarray]:
    """Return copies of what the form keeps, where it can say what that is."""
    try:
        return {name: np.array(array) for name, array in problem.form.arrays().items()}
    except ProblemError:
        return {}


def _snapshots(method, problem, metric, start, where) -> list[tuple[np.ndarray, float]]:
    """Return copies of the first iterates, checked one by one, and checked not to change afterwards."""
    kept, copies = [], []
    iterates = closable(method.iterates(copy.copy(problem), metric, start))
    for k, iterate in enumerate(islice(iterates, 12)):
        point, value = iterate.point, iterate.value
        at = f"{where}, iterate {k}"
        assert point.shape == (problem.dim,), f"{at}: shape {point.shape}, not flat of length {problem.dim}"
        assert np.isfinite(point).all(), f"{at}: not finite"
        assert np.isfinite(value), f"{at}: value {value}"
        outside = np.linalg.norm(problem.cone.euclidean(point) - point)
        assert outside <= TOLERANCE * np.linalg.norm(point), f"{at}: outside the cone by {outside:.1e}"
        true = (problem.value(point), problem.homogenised_value(point))
        miss = min(abs(value - f) / max(abs(f), abs(value)) for f in true)
        assert miss <= TOLERANCE, f"{at}: value {value!r}, but f is {true[0]!r}, and {true[1]!r} at its best on the ray"
        if iterate.evaluated is not None:
            for name, said, found in zip(
                ("ρ", "∇ρ", "image"), iterate.evaluated, problem.form.evaluate(point), strict=True
            ):
                off = np.linalg.norm(said - found)
                assert off <= TOLERANCE * np.linalg.norm(found), f"{at}: its {name} is not that of its point"
        kept.append(iterate)
        copies.append((point.copy(), value))
    iterates.close()
    for k, (iterate, (point, _)) in enumerate(zip(kept, copies, strict=True)):
        assert np.array_equal(iterate.point, point), f"{where}: iterate {k} was changed after it was out"
    return copies


def _check_solve(method, problem, metric, rel_gap, max_iter, where) -> str:
    begun = solvers.solve(problem, method, metric, rel_gap=rel_gap, max_iter=0)
    result = solvers.solve(problem, method, metric, rel_gap=rel_gap, max_iter=max_iter)
    assert result.fun <= begun.fun + TOLERANCE * abs(begun.fun), f"{where}: ended worse than it started"
    assert result.status == "converged", f"{where}: {result.status} after {result.nit} iterations: {result.message}"
    gap = (result.fun - problem.optimum) / abs(problem.optimum)
    assert -1e-12 <= gap <= rel_gap, f"{where}: certified {result.gap:.1e}, but the true gap is {gap:.1e}"
    # ρ grows at least like α²‖x − x*‖⁴/3 around the minimiser, so the distance is that of the fourth root of the gap.
    distance = np.linalg.norm(problem.form.flat(result.x) - problem.solution) / np.linalg.norm(problem.solution)
    assert distance <= 10.0 * rel_gap**0.25, f"{where}: {distance:.1e} away from the minimiser"
    return views.counted(result.nit, "iteration")
