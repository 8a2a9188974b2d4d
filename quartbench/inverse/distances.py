"""Distance matrix completion: points from some of their distances (paper §2.1, example 2)."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError, real_array, whole_number
from quartbench.forms import GraphForm
from quartbench.kernels import graph
from quartbench.linalg.edges import adjacency
from quartbench.linalg.known import length

from .contract import Method
from .driver import State, solve
from .embeddings import landmark_start, spectral_start
from .known import Data, read_distances, with_anchors
from .problem import Problem
from .results import Result, Stage
from .rigidity import hinges, loose_points, movable_points, named, require_connected

#: Distances that are longer are refused: F, the sum of their fourth powers, would be no number of floating point.
LONGEST = 1e70

#: In the weights 1/(d² + FLOOR·mean): how long a distance of length 0 is taken to be.
FLOOR = 0.1

#: The relative residual above which a run may have ended in a valley that is not the deepest; noise may leave as much,
#: so that runs which find the same F within CONFIRMED end the search.
POOR, CONFIRMED = 1e-5, 0.02

#: A run that keeps this share of F in so many steps in a row, at so many times the best F, is not finished.
SETTLING, PATIENCE, HOPELESS = 0.95, 3, 3.0

#: Noise disturbs all distances, a wrong valley some: (Σr²)²/(mΣr⁴) of the misfits r is ⅓ for Gaussian noise, and below
#: this only where few of them are large. Then agreement is no reason to end.
SPREAD = 0.1

#: Runs that must find the same F before it is taken for the least.
AGREEING = 3

#: How far all points are moved at first, relative to their spread.
SHAKEN = 0.3

#: Edges from a badly fitted point to those that are moved with it, at most.
HOPS = 2

#: Iterations in more dimensions, and of each step in which the extra ones are halved.
RELAXED, SQUEEZED = 300, 40

#: How often the extra dimensions are halved before they are left out.
HALVINGS = 6

#: The accuracy of relaxed solves.
ROUGH = 1e-4


def distances(
    D: Any,
    edges: Any = None,
    *,
    dim: int = 3,
    weights: Any = None,
    anchors: dict[int, Any] | None = None,
    start: Any = "auto",
    method: str | Method | type[Method] = "auto",
    relax: int = 2,
    attempts: int = 20,
    tol: float = 1e-8,
    max_iter: int = 2000,
    seed: int = 0,
    callback: Any = None,
    progress: bool = False,
) -> Result:
    """Return points with the given distances: all of them, where enough are known; else what fits.

    Parameters
    ----------
    D : array
        The N × N distances (not squared), symmetric, NaN where one is not known; or, with ``edges``, m of them.
    edges : integer array of shape (m, 2), optional
        The pairs of points whose distances D holds.
    dim : int
        The number of coordinates of a point.
    weights : array, optional
        Of the shape of D: the result minimises Σ w(‖xᵢ − xⱼ‖² − d²)². Equal, unless given.
    anchors : dict, optional
        Points whose places are known, {index: coordinates}. The result is turned, reflected and moved onto them.
    start : "auto", "spectral", "landmarks", "random" or array
        ``spectral`` takes unknown distances for zero, scaled up, which is right where they are missing at random;
        ``landmarks`` takes shortest paths for them, which is right where the long ones are missing. ``auto`` takes the
        one that fits better.
    method : str, Method or class
        ``auto`` is Newton's method, or L-BFGS where distances are so many and so long that no factor is near; first on
        misfits weighted by 1/(d² + 0.1·mean), then on plain ones.
    relax : int
        Where the first run does not fit the data, points get so many coordinates more, in which they can pass each
        other; these are then squeezed out.
    attempts : int
        Relaxed runs, each from another start; ended once the data are fitted, or three runs agree.
    tol, max_iter, seed, callback, progress
        As for :func:`quartbench.inverse.solve`.

    Returns
    -------
    Result
        With ``x`` of shape (N, dim), centred unless there are anchors; ``rmse``, that of the known distances;
        ``loose``, the points that too few distances hold (see :func:`loose_points`); ``hinges``, the points that are
        all that joins others, and ``movable``, the points that can move about them (see :func:`movable_points`); and
        ``stages``.

    References
    ----------
    Fang & O'Leary, *Euclidean distance matrix completion problems*, Optim. Methods Softw. 2012; de Silva & Tenenbaum,
    *Sparse multidimensional scaling using landmark points*, 2004; for relaxed ranks Burer & Monteiro, *Local minima and
    convergence in low-rank semidefinite programming*, Math. Program. 2005.

    Examples
    --------
    >>> truth = np.random.default_rng(0).random((30, 2))
    >>> D = np.linalg.norm(truth[:, None] - truth, axis=2)
    >>> unknown = np.triu(np.random.default_rng(1).random((30, 30)) < 0.5, 1)
    >>> D[unknown | unknown.T] = np.nan
    >>> found = qb.inverse.distances(D, dim=2)
    >>> found.success, qb.inverse.rmsd(found.x, truth) < 1e-6
    (True, True)
    """
    dim = whole_number(dim, "dim")
    relax, attempts = whole_number(relax, "relax", 0), whole_number(attempts, "attempts", 0)
    data = with_anchors(read_distances(D, edges, weights), anchors, dim)
    if data.lengths.max() > LONGEST:
        raise ProblemError(
            f"D must not hold distances above {LONGEST:g}, found {data.lengths.max():.2g}: F, the sum of their "
            "fourth powers, would be no number of floating point; measure in another unit"
        )
    if data.points > 2 * len(data.edges):  # before anything of that size is made
        held = np.unique(data.edges)
        alone = int(np.append(held != np.arange(held.size), True).argmax())
        raise ProblemError(
            f"edges must hold every point 0, 1, …, {data.points - 1}, found none at point {alone}: number the points "
            "from 0 on, or add distances"
        )
    joined = adjacency(data.points, data.edges)
    require_connected(joined)
    search = _Search(data, dim, method, {"tol": tol, "max_iter": max_iter, "callback": callback, "progress": progress})
    search.first(start, seed)
    for attempt in range(1, attempts + 1):
        if search.settled or not relax:
            break
        search.relaxed(relax, seed, attempt)
    found = search.best
    found.stages = search.stages
    found.passes = sum(stage.passes for stage in search.stages)
    found.seconds = sum(stage.seconds for stage in search.stages)
    found.rmse = rmse(found.x, data.edges, data.lengths)
    _name_unheld(found, data, dim, joined)
    if anchors:
        found.x = onto_anchors(found.x, anchors)
    return found


def _name_unheld(found: Result, data: Data, dim: int, joined: sp.csr_matrix) -> None:
    """Say which points the known distances do not hold: too few of them, or parts that turn about others."""
    found.loose = loose_points(data.points, data.edges, dim, joined)
    found.hinges = hinges(data.points, data.edges, joined)
    found.movable = movable_points(data.points, data.edges, dim, found.hinges)
    if found.loose.size:
        found.message += f"; too few distances hold {named(found.loose)}, which may lie anywhere that these allow"
    turning = np.setdiff1d(found.movable, found.loose)
    if turning.size:
        about = f" about the hinge{'s' * (found.hinges.size > 1)} at {named(found.hinges)}" if found.hinges.size else ""
        found.message += f"; {named(turning)} can move together{about} and keep all known distances"


class _Search:
    """Runs from one start after another; keeps the best and notes every stage."""

    def __init__(self, data: Data, dim: int, method, options: dict[str, Any]) -> None:
        self.data, self.dim, self.options = data, dim, options
        self.auto = isinstance(method, str) and method == "auto"
        self.method = method
        self.squares = data.lengths**2
        self.problems: dict[tuple[int, bool], Problem] = {}
        self.stages: list[Stage] = []
        self.best: Result | None = None
        self.agreeing, self.settled, self.weighted = 0, False, np.inf  # the last is a share of ‖d‖², as all F here

    def problem(self, dim: int, even: bool) -> Problem:
        """Return the problem in so many dimensions: with the user's weights, or with even ones."""
        if (dim, even) not in self.problems:
            form = next((made.form for (other, _), made in self.problems.items() if other == dim), None)
            form = GraphForm(self.data.points, dim, self.data.edges) if form is None else form
            weights = self.data.weights
            if even:
                floor = FLOOR * float(self.squares.mean())
                evened = floor / (self.squares + floor)
                weights = evened if weights is None else evened * weights
            self.problems[dim, even] = Problem(form, self.squares, weights=weights)
        return self.problems[dim, even]

    def first(self, start: Any, seed: int) -> None:
        """Run in ``dim`` dimensions from the start."""
        began = perf_counter()
        if isinstance(start, str):
            point, name = self._start(start, self.dim, seed)
            self.stages.append(Stage("start", name, 0, 0, perf_counter() - began, float("nan")))
        else:
            point = start
        self._finish(point, seed)

    def _start(self, start: str, dim: int, seed: int) -> tuple[Any, str]:
        """Return a start in so many dimensions and its name."""
        kinds = {"spectral": spectral_start, "landmarks": landmark_start}
        if start == "random":
            return "random", start
        if start not in (*kinds, "auto"):
            raise ProblemError(f"start must be 'auto', 'spectral', 'landmarks', 'random' or points, found {start!r}")
        names = kinds if start == "auto" else [start]
        made = {name: kinds[name](self.data.points, self.data.edges, self.data.lengths, dim, seed) for name in names}
        problem = self.problem(dim, True)
        fits = {name: _least_on_ray(problem, point) for name, point in made.items()}
        name = min(fits, key=fits.get)
        return made[name], name

    def _finish(self, start: Any, seed: int) -> None:
        """Run in ``dim`` dimensions, on even weights and then on the user's; keep what is best."""
        point = start
        if self.auto:
            watch = _Watch(self.weighted, self.options["callback"])
            options = {**self.options, "callback": watch}
            found = solve(self.problem(self.dim, True), self.method, point, seed=seed, **options)
            self.stages += [stage._replace(name="weighted solve") for stage in found.stages]
            if watch.hopeless:
                return
            point, self.weighted = found.x, min(found.residual**2, self.weighted)
        found = solve(self.problem(self.dim, False), self.method, point, seed=seed, **self.options)
        self.stages += found.stages
        before, now = np.inf if self.best is None else self.best.residual**2, found.residual**2
        if abs(now - before) <= CONFIRMED * before < np.inf:
            self.agreeing += 1
        elif now < before:
            self.agreeing = 1
        if self.best is None or now < before:
            self.best = found
        self.settled = (
            (self.agreeing >= AGREEING and self._spread() > SPREAD)
            or self.best.residual <= POOR
            or found.status == "stopped"
        )

    def relaxed(self, relax: int, seed: int, attempt: int) -> None:
        """Run in more dimensions, squeeze the extra ones out, and finish in ``dim``."""
        dim, rng = self.dim + relax, np.random.default_rng((seed, attempt))
        point = np.zeros((self.data.points, dim))
        point[:, : self.dim] = self.best.x
        # All points at first; then some that fit badly, and their neighbours, as far as they lie from each other.
        moved, size = np.ones(self.data.points, dtype=bool), SHAKEN * float(np.sqrt((self.best.x**2).mean()))
        if attempt > 1:
            moved, size = self._misplaced(rng), rng.uniform(0.3, 1.0) * float(np.median(self.data.lengths))
        point[moved] += (size or 1.0) * rng.standard_normal((int(moved.sum()), dim))
        problem = self.problem(dim, True)
        for halving in range(HALVINGS + 1):
            limit = RELAXED if halving == 0 else SQUEEZED
            found = solve(problem, "lbfgs", point, tol=ROUGH, max_iter=limit)
            name = "relaxed" if halving == 0 else "squeezed"
            self.stages += [stage._replace(name=f"{name}, dim = {dim}") for stage in found.stages]
            point = _principal(found.x)
            point[:, self.dim :] *= 0.5
        found = solve(self.problem(self.dim, True), "lbfgs", point[:, : self.dim], tol=ROUGH, max_iter=RELAXED)
        self.stages += [stage._replace(name="projected") for stage in found.stages]
        self._finish(found.x, seed)

    def _misfits(self) -> np.ndarray:
        """Return the relative misfit of every distance at the best point."""
        heads, tails = self.data.edges.T
        found = ((self.best.x[heads] - self.best.x[tails]) ** 2).sum(axis=1)
        return (found - self.squares) / (self.squares + FLOOR * self.squares.mean())

    def _spread(self) -> float:
        """Return how evenly misfits are spread: 1 where all are equal, 1/m where there is one."""
        squares = self._misfits() ** 2
        fourth = float(squares @ squares)
        return float(squares.sum()) ** 2 / (squares.size * fourth) if fourth > 0.0 else 1.0

    def _misplaced(self, rng: np.random.Generator) -> np.ndarray:
        """Return which points to move: one with a badly fitted distance, drawn by its misfit, and those around it."""
        heads, tails = self.data.edges.T
        miss = self._misfits() ** 2
        blame = np.bincount(heads, miss, self.data.points) + np.bincount(tails, miss, self.data.points)
        moved = np.zeros(self.data.points, dtype=bool)
        moved[rng.choice(self.data.points, p=blame / blame.sum())] = True
        joined = adjacency(self.data.points, self.data.edges)
        for _ in range(int(rng.integers(0, HOPS + 1))):
            moved |= joined @ moved > 0
        return moved


class _Watch:
    """A callback that ends a run which settles far above the best one."""

    def __init__(self, best: float, callback: Any) -> None:
        self.best, self.callback = best, callback
        self.before, self.slow = np.inf, 0

    @property
    def hopeless(self) -> bool:
        """Whether the run was ended."""
        return self.slow >= PATIENCE

    def __call__(self, state: State) -> Any:
        """Stop where F hardly falls and is many times the best."""
        share = state.residual**2
        self.slow = self.slow + 1 if SETTLING * self.before < share > HOPELESS * self.best else 0
        self.before = share
        return False if self.hopeless else self.callback(state) if self.callback is not None else None


def _least_on_ray(problem: Problem, point: np.ndarray) -> float:
    """Return F at the best scale of a point, in units in which it is of order one."""
    misfit, flat = problem.misfit.normalised()[0], problem.form.flat(point)
    image = misfit.image(flat / (float(np.abs(flat).max()) or 1.0))
    line = misfit.line(0.0 * image, image)
    return float(line[0] - 0.25 * line[2] ** 2 / line[4]) if line[4] > 0.0 else np.inf


def _principal(x: np.ndarray) -> np.ndarray:
    """Return centred points in their principal axes, the longest first."""
    x = x - x.mean(axis=0)
    return x @ np.linalg.svd(x, full_matrices=False)[2].T


# Errors ---------------------------------------------------------------------------------------------------------------


def procrustes(x: Any, truth: Any) -> np.ndarray:
    """Return x turned, reflected and moved so that it is nearest to the truth.

    Examples
    --------
    >>> truth = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> turned = truth @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 7.0
    >>> bool(np.allclose(qb.inverse.procrustes(turned, truth), truth))
    True
    """
    x, truth = real_array(x, "x", 2), real_array(truth, "truth", 2)
    if x.shape != truth.shape:
        raise ProblemError(f"x must be of the shape of the truth, {truth.shape}, found {x.shape}")
    centre = truth.mean(axis=0)
    moved = x - x.mean(axis=0)
    left, _, right = np.linalg.svd(moved.T @ (truth - centre))
    return moved @ (left @ right) + centre


def rmsd(x: Any, truth: Any) -> float:
    """Return the root mean square distance of points from the truth, after Procrustes.

    Examples
    --------
    >>> truth = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> qb.inverse.rmsd(truth + 7.0, truth) < 1e-12
    True
    """
    apart = procrustes(x, truth) - np.asarray(truth)
    return float(np.sqrt((apart**2).sum(axis=1).mean()))


def rmse(x: np.ndarray, edges: np.ndarray, lengths: np.ndarray) -> float:
    """Return the root mean square error of distances."""
    heads, tails = np.ascontiguousarray(edges.T)
    apart = graph.image(heads, tails, np.ascontiguousarray(x)).reshape(len(heads), -1)
    unit = float(np.abs(apart).max(initial=0.0)) or 1.0  # squares of 1e-160 would be zero
    found = unit * np.sqrt(np.einsum("ij,ij->i", apart / unit, apart / unit))
    missed = found - lengths
    return length(missed) / math.sqrt(missed.size)


def onto_anchors(x: np.ndarray, anchors: dict[int, Any]) -> np.ndarray:
    """Return points turned, reflected and moved so that the anchors are nearest to their places.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> qb.inverse.onto_anchors(x, {0: [5.0, 5.0], 1: [5.0, 6.0], 2: [6.0, 5.0]}).round(9)
    array([[5., 5.],
           [5., 6.],
           [6., 5.]])
    """
    where = np.array(sorted(anchors))
    places = real_array([anchors[i] for i in where.tolist()], "anchors", 2)
    centre, mean = places.mean(axis=0), x[where].mean(axis=0)
    left, _, right = np.linalg.svd((x[where] - mean).T @ (places - centre))
    return (x - mean) @ (left @ right) + centre
