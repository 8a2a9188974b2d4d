"""Symmetric NMF: M ≈ XXᵀ with X ≥ 0, and the clusters that its columns are (paper §2.1, example 3)."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from quartbench.cones import Orthant
from quartbench.errors import ProblemError, any_array, whole_number
from quartbench.forms import GramForm

from .contract import Method
from .driver import solve
from .matrices import symmetric
from .problem import Problem
from .results import Result, Stage


def symnmf(
    M: Any,
    rank: int,
    *,
    start: Any = "random",
    method: str | Method | type[Method] = "auto",
    restarts: int = 0,
    tol: float = 1e-6,
    max_iter: int = 2000,
    seed: int = 0,
    callback: Any = None,
    progress: bool = False,
) -> Result:
    """Return X ≥ 0 of n × rank with XXᵀ ≈ M, by minimising ‖XXᵀ − M‖²_F.

    Parameters
    ----------
    M : array or sparse matrix of shape (n, n)
        Symmetric: similarities of n objects. It need not be positive semidefinite; the DC methods other than ``cd``
        then refuse it.
    rank : int
        The number of columns of X, which is that of clusters.
    start : "random" or array
        Uniform in [0, 2√(mean(M)/rank)], for which XXᵀ is of the size of M; or a point.
    method : str, Method or class
        ``auto`` is ``projected-lbfgs``: L-BFGS on the entries that are free, in a metric of the rows of X.
    restarts : int
        Further runs from other random starts; the best is returned.
    tol, max_iter, seed, callback, progress
        As for :func:`quartbench.inverse.solve`.

    Returns
    -------
    Result
        With ``labels``, the column of the largest entry of every row.

    Examples
    --------
    >>> made = qb.instances.partition_similarity(60, 3, p_in=0.9, p_out=0.05, seed=0)
    >>> found = qb.inverse.symnmf(made.matrix, rank=3)
    >>> qb.inverse.clustering_accuracy(found.labels, made.labels)
    1.0
    """
    matrix = symmetric(M)
    rank = whole_number(rank, "rank", 1, matrix.shape[0], why="M has no larger rank")
    restarts = whole_number(restarts, "restarts", 0)
    problem = Problem(GramForm(matrix.shape[0], rank), matrix, Orthant())
    stages: list[Stage] = []
    best = None
    for attempt in range(restarts + 1):
        began = perf_counter()
        point = uniform_start(matrix, rank, seed + attempt) if isinstance(start, str) and start == "random" else start
        stages.append(Stage("start", "uniform", 0, 0, perf_counter() - began, float("nan")))
        found = solve(problem, method, point, tol=tol, max_iter=max_iter, callback=callback, progress=progress)
        stages += found.stages
        best = found if best is None or found.fun < best.fun else best
        if found.status == "stopped" or not isinstance(start, str):
            break
    best.stages = stages
    best.passes = sum(stage.passes for stage in stages)
    best.seconds = sum(stage.seconds for stage in stages)
    best.labels = best.x.argmax(axis=1)
    return best


def uniform_start(matrix: np.ndarray | sp.csr_matrix, rank: int, seed: int) -> np.ndarray:
    """Return a uniform X ≥ 0 with XXᵀ of the size of M."""
    mean = max(float(matrix.mean()), 0.0)
    if mean == 0.0:
        mean = float(abs(matrix).mean())
    return np.random.default_rng(seed).uniform(0.0, 2.0 * np.sqrt(mean / rank), (matrix.shape[0], rank))


def similarity(data: Any, neighbours: int | None = None) -> sp.csr_matrix:
    """Return the normalised similarity D^{−½}AD^{−½} of the rows of data, A the self-tuned kernel of near neighbours.

    A has e^{−‖xᵢ−xⱼ‖²/(σᵢσⱼ)} between near neighbours, σᵢ the distance of xᵢ from its seventh (Zelnik-Manor & Perona
    2004), as in the experiments of Kuang, Yun and Park (2015).

    Parameters
    ----------
    data : array of shape (n, features)
    neighbours : int, optional
        Near neighbours of each row: ⌊log₂ n⌋ + 1, unless given.

    Examples
    --------
    >>> data = np.random.default_rng(0).standard_normal((50, 3))
    >>> M = qb.inverse.similarity(data)
    >>> M.shape, bool(abs(M - M.T).max() < 1e-15)
    ((50, 50), True)
    """
    from scipy.spatial import cKDTree

    rows = np.ascontiguousarray(any_array(data, "data"), dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 9 or not np.isfinite(rows).all():
        raise ProblemError(f"data must be at least 9 finite rows of features, found shape {rows.shape}")
    count = (
        int(np.log2(len(rows))) + 1 if neighbours is None else whole_number(neighbours, "neighbours", 1, len(rows) - 1)
    )
    apart, near = cKDTree(rows).query(rows, k=max(count, 7) + 1)
    scale = np.maximum(apart[:, 7], 1e-300)
    apart, near = apart[:, 1 : count + 1], near[:, 1 : count + 1]
    kernel = np.exp(-(apart**2) / (scale[:, None] * scale[near]))
    first = np.repeat(np.arange(len(rows)), count)
    matrix = sp.coo_matrix((kernel.ravel(), (first, near.ravel())), shape=(len(rows), len(rows))).tocsr()
    matrix = matrix.maximum(matrix.T)
    root = 1.0 / np.sqrt(np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1e-300))
    return sp.csr_matrix(sp.diags(root) @ matrix @ sp.diags(root))


# How good are clusters? -----------------------------------------------------------------------------------------------


def _table(labels: Any, truth: Any) -> np.ndarray:
    labels, truth = any_array(labels, "labels").ravel(), any_array(truth, "truth").ravel()
    if labels.size != truth.size or not labels.size:
        raise ProblemError(f"labels must be as many as those of the truth, {truth.size}, found {labels.size}")
    first, second = np.unique(labels, return_inverse=True)[1], np.unique(truth, return_inverse=True)[1]
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1.0)
    return table


def clustering_accuracy(labels: Any, truth: Any) -> float:
    """Return the share of objects with the right label, under the best renaming of labels (Hungarian method).

    Examples
    --------
    >>> qb.inverse.clustering_accuracy([1, 1, 0, 0], [0, 0, 1, 2])
    0.75
    """
    table = _table(labels, truth)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / table.sum())


def normalised_mutual_information(labels: Any, truth: Any) -> float:
    """Return I(labels; truth)/√(H(labels)H(truth)): 1 where they say the same, 0 where nothing of each other.

    Examples
    --------
    >>> shared = qb.inverse.normalised_mutual_information([1, 1, 0, 0], [0, 0, 1, 1])
    >>> bool(np.isclose(shared, 1.0))
    True
    """
    table = _table(labels, truth)
    joint = table / table.sum()
    first, second = joint.sum(axis=1), joint.sum(axis=0)
    some = joint > 0.0
    mutual = float((joint[some] * np.log((joint / np.outer(first, second))[some])).sum())
    entropies = float(-(first @ np.log(first))), float(-(second @ np.log(second)))
    size = np.sqrt(entropies[0] * entropies[1])
    return mutual / size if size > 0.0 else float(entropies == (0.0, 0.0))
