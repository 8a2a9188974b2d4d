"""Which similarity matrix has known clusters, and what is the first problem that SymNMF solves on it?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quartbench.cones import Orthant
from quartbench.errors import ProblemError, number, whole_number
from quartbench.forms import GramForm
from quartbench.model import Problem

from .arguments import PLANT_STREAM, generator, origin


class Similarity(NamedTuple):
    """A similarity matrix of n objects, nonnegative and positive semidefinite, and the cluster of each object.

    Examples
    --------
    >>> found = qb.instances.partition_similarity(20, 2, p_in=0.9, p_out=0.1, seed=0)
    >>> found.matrix.shape, np.bincount(found.labels)
    ((20, 20), array([10, 10]))
    """

    matrix: np.ndarray
    labels: np.ndarray


def planted_partition(n: int, clusters: int, p_in: float, p_out: float, seed: int = 0) -> Problem:
    """The first DC subproblem of SymNMF on :func:`partition_similarity`: min ‖XᵀX‖²_F − ⟨4MX₀, X⟩ over X ≥ 0.

    X of n × clusters; 4MX₀ = ∇φ(X₀) for φ(X) = 2⟨MX, X⟩ (paper §2.1, example 3). X₀ is uniform in [0, 2√(mean(M)/r)],
    the usual start, for which X₀X₀ᵀ is of the size of M.

    Parameters
    ----------
    n, clusters : int
        Number of objects, and of clusters r, whose sizes differ by at most one.
    p_in, p_out : float
        Probability of an edge within a cluster and between two, 0 ≤ p_out ≤ p_in ≤ 1.
    seed : int
        Seed of the matrix and of X₀.

    Examples
    --------
    >>> problem = qb.instances.planted_partition(20, 2, p_in=0.9, p_out=0.1, seed=0)
    >>> problem.form.shape, problem.cone.name
    ((20, 2), 'orthant')
    """
    matrix, _ = partition_similarity(n, clusters, p_in, p_out, seed)
    start = generator(seed, PLANT_STREAM).uniform(0.0, 2.0 * np.sqrt(matrix.mean() / clusters), (n, clusters))
    arguments = {"clusters": int(clusters), "p_in": float(p_in), "p_out": float(p_out), "seed": int(seed)}
    record = origin("planted_partition", n=int(n), **arguments)
    return Problem(GramForm(n, clusters), 4.0 * (matrix @ start), Orthant(), origin=record)


def partition_similarity(n: int, clusters: int, p_in: float, p_out: float, seed: int = 0) -> Similarity:
    """Return M = I + D^{−1/2}AD^{−1/2} for the graph A of a planted partition, and the labels.

    The eigenvalues of the normalised adjacency matrix lie in [−1, 1], so M is positive semidefinite, and it is
    nonnegative; an isolated object has M_ii = 1 alone.

    Examples
    --------
    >>> found = qb.instances.partition_similarity(20, 2, p_in=0.9, p_out=0.1, seed=0)
    >>> bool((np.linalg.eigvalsh(found.matrix) > -1e-12).all())
    True
    """
    n = whole_number(n, "n", 2)
    clusters = whole_number(clusters, "clusters", 1, n, why="no cluster is empty")
    p_in, p_out = number(p_in, "p_in", 0.0, 1.0), number(p_out, "p_out", 0.0, 1.0)
    if p_out > p_in:
        raise ProblemError(f"p_out must be at most p_in = {p_in:.6g}, found {p_out:.6g}")
    rng = generator(seed)
    labels = rng.permutation(np.arange(n) % clusters)
    chance = np.where(labels[:, None] == labels, p_in, p_out)
    edges = np.triu(rng.random((n, n)) < chance, 1)
    adjacency = (edges | edges.T).astype(np.float64)
    root = 1.0 / np.sqrt(np.maximum(adjacency.sum(axis=1), 1.0))
    return Similarity(np.eye(n) + root[:, None] * adjacency * root, labels)
