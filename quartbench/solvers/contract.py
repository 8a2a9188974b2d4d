"""What is a solver? A generator of iterates that knows nothing of clocks, files or screens.

The driver gives it a problem of moderate numbers, a metric and a start in 𝒞 = K ∩ {⟨c,y⟩ = 1}, and takes the iterates
one at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from quartbench import precondition
from quartbench.errors import ProblemError, unknown_name
from quartbench.metrics import Metric
from quartbench.model import Problem

#: 3/4^{4/3}: f_hom(y) = −(3/4^{4/3}) ρ(y)^{−1/3} where ⟨c,y⟩ = 1.
HOMOGENISED = 3.0 / 4.0 ** (4.0 / 3.0)


class Iterate(NamedTuple):
    """One point of a run. Its arrays are the driver's from then on: the solver does not write to them again.

    Attributes
    ----------
    point : array of shape (n,)
        A point of the cone, at any positive scale: the driver moves it to the best point of its ray.
    value : float
        f there, or already at the best point of the ray.
    step : float
        The step length that led here (NaN at the start).
    restart : bool
        Whether the method restarted here.
    evaluated : tuple, optional
        ρ, ∇ρ and the image of the point where they are known: a certificate then costs a pass less.
    reason : str
        Why the method goes on as it does, where that has changed; the message of the result ends with the last.
    decrement : float
        The relative gap before the step that led here, as Newton's model has it (NaN where there is no model): the gap
        here is about its square, so that nothing is certified where it cannot be small enough yet.
    dual : callable, optional
        Gives a dual point that the method has paid for, λ, and r = c − Mᵀλ, or None for r where it is not known. Nobody
        relies on either: a certificate is proved from λ alone.

    Examples
    --------
    >>> problem = qb.Problem(np.eye(2), [4.0, 4.0])
    >>> metric, start = qb.metric(problem.form, "uniform"), np.array([0.125, 0.125])
    >>> first = next(qb.solvers.HomGD().iterates(problem, metric, start))
    >>> first.point, round(first.value, 9)  # f at the best point of the ray, (1, 1)
    (array([0.125, 0.125]), -6.0)
    """

    point: np.ndarray
    value: float
    step: float = math.nan
    restart: bool = False
    evaluated: tuple[float, np.ndarray, Any] | None = None
    reason: str = ""
    decrement: float = math.nan
    dual: Callable[[], tuple[Any, np.ndarray | None]] | None = None


class Solver:
    """A method: hyper-parameters in the constructor, iterates from a generator. Register it with ``register``.

    A solver keeps no state of a run, so that several threads may share one.

    Examples
    --------
    >>> from quartbench.solvers import Iterate
    >>> class Plain(qb.Solver):
    ...     '''Gradient descent with one step length.'''
    ...
    ...     def iterates(self, problem, metric, start):
    ...         x = start
    ...         while True:
    ...             value, gradient = problem.value_and_gradient(x)
    ...             yield Iterate(x, value)
    ...             x = x - 0.05 * metric.solve(gradient)
    >>> qb.solve(qb.Problem(qb.StackedForm(np.eye(2)), [4.0, 4.0]), solver=Plain()).status
    'converged'
    """

    name: ClassVar[str] = "solver"
    #: Raised when the iterates of the method change: results of an older version are then not mixed with new ones.
    version: ClassVar[int] = 1
    #: Whether this is somebody else's method, held beside ours for comparison.
    peer: ClassVar[bool] = False
    #: The metric that the method gets where the caller leaves it to the solver; None for what serves the problem best.
    metric: ClassVar[str | None] = None
    #: Whether an iterate costs so much that each is worth a certificate.
    costly: ClassVar[bool] = False
    #: Whether the run may be one compiled call on rows that are few: Newton's method, to the same gap.
    compiled: ClassVar[bool] = False
    #: Why the method does what it does, for the message of the result.
    reason: str = ""

    @classmethod
    def in_one_call(cls) -> bool:
        """Say whether this very class is ``compiled``: one derived from it has iterates of its own."""
        return bool(vars(cls).get("compiled", False))

    def iterates(self, problem: Problem, metric: Metric, start: np.ndarray) -> Iterator[Iterate]:
        """Yield the start as an iterate, then one iterate after another, for as long as there is progress to make.

        Parameters
        ----------
        problem : Problem
            Not trivial, with numbers of moderate size. Points are flat real vectors.
        metric : Metric
            One whose projections the cone has.
        start : array of shape (n,)
            A point of the cone with ⟨c,start⟩ = 1.
        """
        raise NotImplementedError

    def choose_metric(self, problem: Problem, rel_gap: float | None) -> Metric:
        """Return the metric for a form and a cone where the caller leaves it to the solver; c may change later."""
        name = self.metric or precondition.automatic_metric(problem.form, problem.cone)
        return precondition.metric(problem.form, name)

    def prepare(self, problem: Problem, metric: Metric) -> None:
        """Do once what belongs to the set-up and is timed as such: raise where the method cannot take the problem."""

    def planned(self, problem: Problem, metric: Metric, rel_gap: float | None) -> Solver:
        """Return the method ready for a form, a cone and a metric: itself, or another that keeps what was made once."""
        self.prepare(problem, metric)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if not key.startswith("_"))
        return f"{type(self).__name__}({settings})"


def homogenised(rho: float) -> float:
    """Return f_hom(y) = f(s(y)y) from ρ(y), where ⟨c,y⟩ = 1; 0, which claims nothing, where rounding left no ρ > 0."""
    return -HOMOGENISED / rho ** (1.0 / 3.0) if rho > 0.0 else 0.0


def choice(argument: str, value: str, words: tuple[str, ...]) -> str:
    """Return a setting that is one of these words; raise with the nearest one where it is not."""
    if value not in words:
        raise unknown_name(argument, value, words)
    return value


def factor_above_one(argument: str, value: float) -> float:
    """Return a setting that is a finite factor of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1.0 <= value < math.inf:
        raise ProblemError(f"{argument} must be a number of at least 1, found {value!r}")
    return float(value)
