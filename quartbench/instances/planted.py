"""Which c makes a chosen point the minimiser? The optimality condition read backwards: c = ∇ρ(x*) − slack.

The slack lies in the dual cone and is orthogonal to x*, so f* = ρ(x*) − ⟨∇ρ(x*), x*⟩ = −3ρ(x*) by Euler's identity.
"""

from __future__ import annotations

import numpy as np

from quartbench.cones import Cone
from quartbench.errors import ProblemError
from quartbench.forms import Form, require_form
from quartbench.model import Problem

from .arguments import PLANT_STREAM, generator, origin


def planted(form: Form, seed: int = 0, cone: Cone | None = None) -> Problem:
    """Return the problem on ``form`` whose minimiser is a seeded Gaussian point of the cone.

    On the orthant half of x* is zero, with positive slack there; on the second-order cone x* lies on the boundary.
    The count of passes of ``form`` is not changed.

    Parameters
    ----------
    form : Form
        Any form.
    seed : int
        Seed of x*; drawn from another stream than the forms of this package, so the same seed may serve both.
    cone : Cone, optional
        That of the form where not given: Free(), or Centred() for a graph.

    Examples
    --------
    >>> form = qb.StackedForm(np.eye(4))
    >>> problem = qb.instances.planted(form, seed=0, cone=qb.Orthant())
    >>> result = qb.solve(problem, rel_gap=1e-10)
    >>> bool(np.allclose(result.x, problem.solution, atol=1e-4))
    True
    """
    require_form(form)
    cone = form.cone if cone is None else cone
    if not isinstance(cone, Cone):
        raise ProblemError(f"cone must be a Cone (Free(), Orthant(), …), found {cone!r}")
    record = origin("planted", form=repr(form), cone=cone.name, seed=seed)
    return plant(form, cone, generator(seed, PLANT_STREAM), record)


def plant(form: Form, cone: Cone, rng: np.random.Generator, record: dict, active: float = 0.5) -> Problem:
    """Draw x* in the cone and return the problem it solves; ``active`` is the share of zeros on the orthant."""
    cone = cone.bind(form)
    twin = form.twin()  # planting counts no pass
    point, slack = cone.plant(rng.standard_normal(form.dim), twin.gradient, rng, active)
    return plant_at(form, cone, point, record, slack)


def plant_at(form: Form, cone: Cone, point: np.ndarray, record: dict, slack: np.ndarray | float = 0.0) -> Problem:
    """Return the problem solved by ``point`` (flat, in the cone) with multipliers ``slack``."""
    rho, gradient = form.scaled(1.0).value_and_gradient(point)  # a twin: planting counts no pass
    return Problem(form, gradient - slack, cone, solution=point, optimum=-3.0 * rho, origin=record)
