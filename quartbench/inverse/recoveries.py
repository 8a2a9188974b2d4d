"""Which data have a known truth behind them? Seeded problems by name, with one start for all methods and the error.

A change of what one of them makes is a new problem set, as it is for ``quartbench.instances``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from quartbench.cones import Orthant
from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, DiffractionForm, Form, GramForm, GraphForm
from quartbench.instances import partition_similarity

from . import examples
from .contract import Method
from .distances import distances
from .driver import solve
from .embeddings import landmark_start
from .embeddings import spectral_start as classical_start
from .matrices import symmetric
from .phase import phase, phase_error, spectral_start
from .problem import Problem
from .results import Result
from .rigidity import largest_part, loose_points
from .symnmf import clustering_accuracy, similarity, symnmf, uniform_start

#: Data without noise are recovered where the relative error is at most this, others where it is at most the noise. In
#: a wrong valley it is 1e-2 or more; how exact a recovery is beyond it, the tolerance of the method decides.
RECOVERED = 1e-3

#: How many neighbours of a point have known distances where only near ones do.
NEIGHBOURS = 20


@dataclass(frozen=True)
class Recovery:
    """Data, the truth behind them, and the start from which every method begins.

    Attributes
    ----------
    problem : Problem
    start : array
        What the application begins with where nobody says otherwise.
    start_seconds : float
    start_passes : int
        What making the start took.
    noise : float
        Relative to the data.
    call : callable
        What a user calls, given ``start`` and ``restarts`` with the options of ``solve``.
    error : callable
        From the point found to the relative error: up to a global phase; of all distances between points that enough
        of them hold; the share of wrong labels.
    exact : bool
        Whether the data determine the truth, as similarities do not determine clusters.
    """

    problem: Problem
    start: np.ndarray
    start_seconds: float
    start_passes: int
    noise: float
    call: Callable[..., Result]
    error: Callable[[np.ndarray], float]
    exact: bool = True

    def solve(
        self,
        method: str | Method,
        metric: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 2000,
        restarts: int = 0,
        time_limit: float | None = None,
    ) -> Result:
        """Return what a method finds: from the one start, or with ``restarts`` as the user's call has them.

        ``auto`` is the user's call in either case; the metric and the time limit are for the others.
        """
        options = {"tol": tol, "max_iter": max_iter}
        if restarts or method == "auto":
            return self.call(method=method, start=None if restarts else self.start, restarts=restarts, **options)
        return solve(self.problem, method, self.start, metric, time_limit=time_limit, **options)

    def recovered(self, error: float, result: Result) -> bool:
        """Say whether the error is at most what the data allow; of clusters, whether the method came to its end."""
        return error <= max(RECOVERED, self.noise) if self.exact else bool(result.success)


def _timed(make: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    began = perf_counter()
    return make(), perf_counter() - began


# Phase retrieval ------------------------------------------------------------------------------------------------------


def phase_gaussian(n: int, ratio: float, noise: float = 0.0, seed: int = 0) -> Recovery:
    """A complex Gaussian signal of n numbers from the squared moduli of round(ratio·n) Gaussian rows."""
    rows, d, truth = examples.gaussian_phase(n, round(ratio * n), seed)
    return _phase(ComplexForm(rows), d, truth, noise, seed)


def phase_masks(n: int, masks: int, tails: str = "light", noise: float = 0.0, seed: int = 0) -> Recovery:
    """A complex Gaussian signal of n numbers from coded diffraction patterns; heavy tails leave places nearly dark."""
    if tails not in ("light", "heavy"):
        raise ProblemError(f"tails must be 'light' or 'heavy', found {tails!r}")
    truth = np.random.default_rng((seed, 1)).standard_normal(2 * n).view(np.complex128)
    coded, d, _ = examples.coded_image(truth, masks, seed, heavy=tails == "heavy")
    return _phase(DiffractionForm(coded), d.reshape(-1), truth, noise, seed)


def _phase(form: Form, d: np.ndarray, truth: np.ndarray, noise: float, seed: int) -> Recovery:
    """Disturb d by Gaussian noise of that share of its norm; a negative squared modulus is measured as 0."""
    d = np.maximum(d + noise * np.linalg.norm(d) * _unit(d.size, seed), 0.0)
    twin = form.moderate().twin()
    start, seconds = _timed(lambda: spectral_start(twin, d, seed))

    def call(start: Any, **options: Any) -> Result:
        return phase(form, d, start="spectral" if start is None else start, seed=seed, **options)

    return Recovery(
        Problem(form, d), start, seconds, twin.passes, noise, call, lambda x: phase_error(form.native(x), truth)
    )


def _unit(size: int, seed: int) -> np.ndarray:
    """Return Gaussian noise of length 1."""
    drawn = np.random.default_rng((seed, 2)).standard_normal(size)
    return drawn / np.linalg.norm(drawn)


# Distances ------------------------------------------------------------------------------------------------------------

SHAPES = {
    "helix": lambda points, seed: examples.helix(points),
    "cube": lambda points, seed: examples.box(points, seed=seed),
    "rod": lambda points, seed: examples.box(points, (20.0, 1.0, 1.0), seed),
    "bridge": lambda points, seed: examples.bridge(points, seed),
}


def _points(shape: str, points: int, seed: int) -> np.ndarray:
    if shape not in SHAPES:
        raise ProblemError(f"shape must be one of {', '.join(SHAPES)}, found {shape!r}")
    return SHAPES[shape](points, seed)


def distances_random(points: int, share: float, shape: str = "cube", noise: float = 0.0, seed: int = 0) -> Recovery:
    """Points from a random share of their distances, each disturbed by a share of itself."""
    truth = _points(shape, points, seed)
    return _distances(truth, examples.random_pairs(points, share, seed), noise, classical_start, seed)


def distances_near(points: int, shape: str = "cube", noise: float = 0.0, seed: int = 0) -> Recovery:
    """Points from the distances of each from its 20 nearest."""
    truth = _points(shape, points, seed)
    return _distances(truth, examples.near_pairs(truth, NEIGHBOURS), noise, landmark_start, seed)


STARTS: dict[str, Callable] = {
    "landmarks": landmark_start,
    "random": lambda points, pairs, lengths, dim, seed: np.random.default_rng((seed, 3)).standard_normal((points, dim)),
}


def _begin(start: str) -> Callable:
    if start not in STARTS:
        raise ProblemError(f"start must be one of {', '.join(STARTS)}, found {start!r}")
    return STARTS[start]


def distances_bridge(points: int, start: str = "landmarks", seed: int = 0) -> Recovery:
    """Two cubes of points, each from its 20 nearest, and the distance of the two that face each other.

    The cubes may turn about it.
    """
    left = examples.box(points // 2, seed=seed)
    right = examples.box(points - len(left), seed=seed + 1) + np.array([3.0, 0.0, 0.0])
    pairs = [examples.near_pairs(left, NEIGHBOURS), examples.near_pairs(right, NEIGHBOURS) + len(left)]
    joint = np.array([[left[:, 0].argmax(), len(left) + right[:, 0].argmin()]])
    truth = np.concatenate([left, right])
    return _distances(truth, np.concatenate([*pairs, joint]), 0.0, _begin(start), seed, exact=False)


def distances_clouds(clouds: int, points: int, start: str = "landmarks", seed: int = 0) -> Recovery:
    """Clouds of so many points each in a row, from all distances within them and one between any and the next.

    Each may turn about those.
    """
    truth, pairs = examples.clouds(clouds, points, seed=seed)
    return _distances(truth, pairs, 0.0, _begin(start), seed, exact=False)


def _distances(
    truth: np.ndarray, pairs: np.ndarray, noise: float, begin: Callable, seed: int, exact: bool = True
) -> Recovery:
    kept = largest_part(len(truth), pairs)
    truth, pairs = truth[kept], examples.among(pairs, kept)
    points, dim = truth.shape
    held = np.setdiff1d(np.arange(points), loose_points(points, pairs, dim))
    if held.size <= dim:
        raise ProblemError(f"the known distances hold {held.size} of {points} points: there is nothing to recover")
    scatter = 1.0 + noise * np.random.default_rng((seed, 2)).standard_normal(len(pairs))
    lengths = np.abs(examples.lengths(truth, pairs) * scatter)
    start, seconds = _timed(lambda: begin(points, pairs, lengths, dim, seed))
    every = pdist(truth[held])

    def call(start: Any, restarts: int, **options: Any) -> Result:
        start = "auto" if start is None else start
        return distances(lengths, pairs, dim=dim, start=start, attempts=restarts, seed=seed, **options)

    def error(x: np.ndarray) -> float:
        return float(np.linalg.norm(pdist(x.reshape(points, dim)[held]) - every) / np.linalg.norm(every))

    problem = Problem(GraphForm(points, dim, pairs), lengths**2)
    return Recovery(problem, start, seconds, 0, noise, call, error, exact)


# Clusters -------------------------------------------------------------------------------------------------------------


def clusters_digits(classes: int = 10, seed: int = 0) -> Recovery:
    """The handwritten digits below ``classes`` from the sparse similarities of near ones; the seed is of the start."""
    data, labels = examples.digits(classes)
    return _clusters(similarity(data), classes, labels, seed)


def clusters_partition(n: int, clusters: int, p_in: float = 0.2, p_out: float = 0.05, seed: int = 0) -> Recovery:
    """The clusters of a graph with a planted partition, from its dense and definite similarities."""
    made = partition_similarity(n, clusters, p_in, p_out, seed)
    return _clusters(made.matrix, clusters, made.labels, seed)


def _clusters(matrix: Any, rank: int, labels: np.ndarray, seed: int) -> Recovery:
    matrix = symmetric(matrix)
    start, seconds = _timed(lambda: uniform_start(matrix, rank, seed))
    shape = start.shape

    def call(start: Any, **options: Any) -> Result:
        return symnmf(matrix, rank, start="random" if start is None else start, seed=seed, **options)

    def error(x: np.ndarray) -> float:
        return 1.0 - clustering_accuracy(x.reshape(shape).argmax(axis=1), labels)

    problem = Problem(GramForm(*shape), matrix, Orthant())
    return Recovery(problem, start, seconds, 0, 0.0, call, error, exact=False)


#: The recoveries by name, each called with plain numbers and words; the first word is that of the application.
RECOVERIES: dict[str, Callable[..., Recovery]] = {
    function.__name__: function
    for function in (
        phase_gaussian,
        phase_masks,
        distances_random,
        distances_near,
        distances_bridge,
        distances_clouds,
        clusters_digits,
        clusters_partition,
    )
}


def application(name: str) -> str:
    """Return what a recovery is an application of: phase, distances or clusters."""
    return name.partition("_")[0]
