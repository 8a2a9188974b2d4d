"""What is a method for inverse problems? A generator of iterates, as a solver is; the driver stops and times it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from quartbench.errors import ProblemError
from quartbench.metrics import Metric
from quartbench.registry import Registry

from .misfits import At
from .problem import Problem


class Iterate(NamedTuple):
    """One point of a run.

    Attributes
    ----------
    at : At
        The point with F, ∇F and its image.
    step : float
        The step length that led here.
    gap : float
        The certified relative gap of the convex step that led here (NaN where there was none).
    reason : str
        Why the method goes on as it does, where that has changed.

    Examples
    --------
    >>> qb.inverse.Iterate._fields
    ('at', 'step', 'gap', 'reason')
    """

    at: At
    step: float = math.nan
    gap: float = math.nan
    reason: str = ""


class Method:
    """Hyper-parameters in the constructor, iterates from a generator. Register it with ``register``.

    Attributes
    ----------
    metric : str
        The metric that the method gets where the caller leaves it to the method.
    peer : bool
        Whether this is somebody else's method, held beside ours for comparison.
    version : int
        Raised when the iterates change: a study then runs the method again.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(8, 64, seed=0)
    >>> class Steepest(qb.inverse.Method):
    ...     '''Gradient descent to the lowest point of each line.'''
    ...
    ...     def iterates(self, problem, metric, start):
    ...         misfit, at = problem.misfit, problem.misfit.evaluate(start)
    ...         while True:
    ...             yield qb.inverse.Iterate(at)
    ...             line = misfit.line(at.image, misfit.image(-at.gradient))
    ...             line = np.polynomial.Polynomial(line)
    ...             step = min(line.deriv().roots().real, key=line)
    ...             at = misfit.evaluate(at.point - step * at.gradient)
    >>> problem = qb.inverse.Problem(qb.ComplexForm(rows), d)
    >>> found = qb.inverse.solve(problem, method=Steepest(), max_iter=50)
    >>> bool((np.diff(found.history.value) < 0).all())
    True
    """

    name: ClassVar[str] = "method"
    metric: ClassVar[str] = "identity"
    peer: ClassVar[bool] = False
    version: ClassVar[int] = 1

    def prepare(self, problem: Problem) -> None:
        """Raise where the method cannot take the problem."""

    def choose_metric(self, problem: Problem) -> str | None:
        """Return the name of the metric for a problem where the caller leaves it to the method; None for no metric."""
        return self.metric

    def chosen(self, problem: Problem) -> tuple[Method, str]:
        """Return the method that runs on a problem, and why: itself, unless it chooses others."""
        return self, ""

    def iterates(self, problem: Problem, metric: Metric | None, start: np.ndarray) -> Iterator[Iterate]:
        """Yield the start, then one iterate after another, for as long as there is progress to make.

        Parameters
        ----------
        problem : Problem
            Of moderate numbers.
        metric : Metric or None
            None where ``choose_metric`` chose none.
        start : array of shape (n,)
            A point of the cone, not zero.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if not key.startswith("_"))
        return f"{type(self).__name__}({settings})"


def require_subspace(problem: Problem, name: str, instead: str) -> None:
    """Raise where the cone is no subspace: directions of the method would leave it."""
    if not problem.cone.subspace:
        raise ProblemError(f"{name} needs free space or a subspace, found the cone {problem.cone!r}; take {instead}")


def _method_class(found: Any, where: str) -> type[Method]:
    if not (inspect.isclass(found) and issubclass(found, Method)):
        raise ProblemError(f"{where} must be a subclass of quartbench.inverse.Method, found {found!r}")
    return found


#: The methods by name; an installed package offers its own through this entry point group.
METHODS = Registry("method", "quartbench.inverse", _method_class)


def register(name: str) -> Callable[[type[Method]], type[Method]]:
    """Register a method under a name; from then on it is in every list and test.

    Examples
    --------
    >>> @qb.inverse.register("patient")
    ... class Patient(qb.inverse.Method):
    ...     '''Does nothing yet.'''
    >>> "patient" in qb.inverse.methods()
    True
    """

    def decorate(cls: type[Method]) -> type[Method]:
        cls.name = name
        return METHODS.register(name, cls)

    return decorate


def methods() -> dict[str, type[Method]]:
    """Return the registered methods by name.

    Examples
    --------
    >>> "dc" in qb.inverse.methods()
    True
    """
    return {name: METHODS[name] for name in METHODS}


def make_method(method: str | Method | type[Method]) -> Method:
    """Return a method from its name, its class, or itself.

    Examples
    --------
    >>> qb.inverse.make_method("lbfgs")
    LBFGS(memory=10)
    """
    if isinstance(method, Method):
        return method
    if inspect.isclass(method):
        return _method_class(method, "method")()
    return METHODS.find(method)()
