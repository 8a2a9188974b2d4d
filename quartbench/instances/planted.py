"""Which c makes a chosen point the minimiser? The optimality condition read backwards: c = ∇ρ(x*) − slack.

The slack lies in the dual cone and is orthogonal to x*, so f* = ρ(x*) − ⟨∇ρ(x*), x*⟩ = −3ρ(x*) by Euler's identity.
"""

from __future__ import annotations

import numpy as np

from quartbench.errors import ProblemError
from quartbench.model import Centred, Cone, Form, Free, GraphForm, Problem

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
        Free(), or Centred() for a graph, where not given.
    """
    if not isinstance(form, Form):
        raise ProblemError(f"form must be a Form (StackedForm, GraphForm, …), found {type(form).__name__}")
    if cone is None:
        cone = Centred() if isinstance(form, GraphForm) else Free()
    if not isinstance(cone, Cone):
        raise ProblemError(f"cone must be a Cone (Free(), Orthant(), …), found {cone!r}")
    record = origin("planted", form=repr(form), cone=cone.name, seed=seed)
    return plant(form, cone, generator(seed, PLANT_STREAM), record)


def plant(form: Form, cone: Cone, rng: np.random.Generator, record: dict, active: float = 0.5) -> Problem:
    """Draw x* in the cone and return the problem it solves; ``active`` is the share of zeros on the orthant."""
    cone = cone.bind(form)
    point = rng.standard_normal(form.dim)
    if cone.name == "orthant":
        return _plant_on_orthant(form, cone, np.abs(point), rng, record, active)
    if cone.name == "second-order":
        return _plant_on_second_order(form, cone, point, record)
    return plant_at(form, cone, cone.euclidean(point), record)


def plant_at(form: Form, cone: Cone, point: np.ndarray, record: dict, slack: np.ndarray | float = 0.0) -> Problem:
    """Return the problem solved by ``point`` (flat, in the cone) with multipliers ``slack``."""
    rho, gradient = form.scaled(1.0).value_and_gradient(point)  # a twin: planting counts no pass
    return Problem(form, gradient - slack, cone, solution=point, optimum=-3.0 * rho, origin=record)


def _plant_on_orthant(form, cone, point, rng, record, active):
    zeros = min(max(round(active * form.dim), 1), form.dim - 1)
    where = rng.permutation(form.dim)[:zeros]
    point[where] = 0.0
    slack = np.zeros(form.dim)
    slack[where] = rng.uniform(0.1, 1.0, zeros) * _rms(form.scaled(1.0).gradient(point))
    return plant_at(form, cone, point, record, slack)


def _plant_on_second_order(form, cone, point, record):
    point[0] = np.linalg.norm(point[1:])
    opposite = np.concatenate([point[:1], -point[1:]])  # the ray of the cone that is orthogonal to x*
    slack = 0.5 * _rms(form.scaled(1.0).gradient(point)) / _rms(point) * opposite
    return plant_at(form, cone, point, record, slack)


def _rms(vector):
    return float(np.linalg.norm(vector) / np.sqrt(len(vector)))
