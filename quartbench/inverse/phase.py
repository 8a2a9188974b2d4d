"""Phase retrieval: a complex signal from the squared moduli of linear measurements (paper §2.1, example 1)."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from quartbench.errors import ProblemError, any_array, real_array, whole_number
from quartbench.forms import ComplexForm, DiffractionForm, StackedForm, TermForm

from .contract import Method
from .driver import solve
from .problem import Problem
from .results import Result, Stage

#: In the weights 1/(dᵢ + FLOOR·d̄): how much light of the mean a dark measurement is taken to have.
FLOOR = 0.1

#: The relative residual above which a run has not found the signal, unless the noise is as large: then it is run again
#: from another start.
POOR = 0.03

#: How near to the last best F another run must come to confirm it.
CONFIRMED = 0.01

#: The accuracy of the eigenvector that the spectral start is, and the most Lanczos vectors it may take.
SPECTRAL, LANCZOS = 1e-3, 20


def phase(
    measurements: Any,
    d: Any,
    *,
    noise: str = "gaussian",
    start: Any = "spectral",
    method: str | Method | type[Method] = "auto",
    tol: float = 1e-8,
    restarts: int = 10,
    max_iter: int = 2000,
    seed: int = 0,
    callback: Any = None,
    progress: bool = False,
) -> Result:
    """Return a signal x with |⟨qᵢ,x⟩|² ≈ dᵢ; it is known up to a global phase only.

    Parameters
    ----------
    measurements : array or Form
        Rows qᵢ of shape (m, N), with ⟨q,x⟩ = qᴴx; masks of coded diffraction patterns, of the shape of d; or any form
        with terms, such as ``DiffractionForm(masks)`` or ``OperatorForm(operator)``.
    d : array
        The squared moduli: of shape (m,), or (L, …) for L masks of the shape of the signal.
    noise : {"gaussian", "poisson"}
        What disturbs d: with "gaussian" noise the result minimises Σ(|⟨qᵢ,x⟩|² − dᵢ)², with counts of photons the sum
        weighted by 1/(dᵢ + 0.1·d̄).
    start : "spectral", "random" or array
        The leading eigenvector of Σ T(dᵢ)qᵢqᵢᴴ with T(y) = (y − 1)/(y + √(m/N) − 1), y = d/d̄, by Lanczos's method.
    method : str, Method or class
        ``auto`` is L-BFGS with exact line searches, first on the weighted sum, whose curvature is far more even, then
        where noise asks for it on the plain one.
    tol, max_iter, seed, callback, progress
        As for :func:`quartbench.inverse.solve`.
    restarts : int
        Runs from other starts where the data are not fitted to 3 %; ended once two runs agree.

    Returns
    -------
    Result
        With ``stages``: the spectral start, weighted and plain solves.

    References
    ----------
    Luo, Alghamdi & Lu, *Optimal spectral initialization for signal recovery with applications to phase retrieval*, IEEE
    Trans. Signal Process. 2019; Mondelli & Montanari, *Fundamental limits of weak recovery with applications to phase
    retrieval*, Found. Comput. Math. 2019.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(16, 100, seed=0)
    >>> found = qb.inverse.phase(rows, d)
    >>> found.success, qb.inverse.phase_error(found.x, truth) < 1e-6
    (True, True)
    """
    if noise not in ("gaussian", "poisson"):
        raise ProblemError(f"noise must be 'gaussian' or 'poisson', found {noise!r}")
    restarts = whole_number(restarts, "restarts", 0)
    form = phase_form(measurements, d)
    d = real_array(d, "d").reshape(-1)
    plain = Problem(form, d)
    floor = FLOOR * float(np.abs(d).mean())
    even = Problem(form, d, weights=floor / (np.maximum(d, 0.0) + floor))
    last = even if noise == "poisson" else plain
    options = {"tol": tol, "max_iter": max_iter, "callback": callback, "progress": progress}
    stages: list[Stage] = []
    best, point = None, start
    for attempt in range(restarts + 1):
        if isinstance(start, str) and start == "spectral":
            point = _spectral(form, d, stages, seed, attempt)
        elif attempt:
            point = "random"
        found = _solved(even, last, point, method, options, stages, seed + attempt)
        # Shares of ‖d‖², where F itself may underflow.
        before, now = math.inf if best is None else best.residual**2, found.residual**2
        agreed = abs(now - before) <= CONFIRMED * before < math.inf
        if best is None or now < before:
            best = found
        if best.status == "stopped" or agreed or best.residual <= max(POOR, tol):
            break
    best.stages = stages
    best.passes = sum(stage.passes for stage in stages)
    best.seconds = sum(stage.seconds for stage in stages)
    return best


def _solved(even, last, start, method, options, stages, seed) -> Result:
    """Return what the weighted problem, and then the plain one, lead to; note both stages."""
    chosen = "lbfgs" if isinstance(method, str) and method == "auto" else method
    if isinstance(method, str) and method != "auto":  # a method that was asked for gets the problem that was
        even = last
    found = solve(even, chosen, start, seed=seed, **options)
    weighted = even is not last
    stages += [stage._replace(name="weighted solve" if weighted else "solve") for stage in found.stages]
    if weighted and found.status != "stopped":
        found = solve(last, chosen, found.x, **options)
        stages += found.stages
    if isinstance(method, str) and method == "auto":
        found.message += "; auto took lbfgs on evenly weighted misfits"
    return found


def phase_form(measurements: Any, d: Any) -> TermForm:
    """Return the form of rows, of masks, or of itself."""
    if isinstance(measurements, TermForm):
        return measurements
    array, shape = any_array(measurements, "measurements"), any_array(d, "d").shape
    if array.ndim >= 2 and array.shape == shape:
        return DiffractionForm(array)
    if array.ndim != 2 or shape != array.shape[:1]:
        raise ProblemError(
            "measurements must be rows of shape (m, N) with d of shape (m,), or masks of the shape of d, "
            f"found shapes {array.shape} and {shape}"
        )
    return ComplexForm(array) if array.dtype.kind == "c" else StackedForm(array)


def _spectral(form: TermForm, d: np.ndarray, stages: list[Stage], seed: int, attempt: int) -> np.ndarray:
    """Return the spectral start, for further attempts with as much noise; note the stage."""
    began, twin = perf_counter(), form.moderate().twin()
    point = spectral_start(twin, d, seed)
    if attempt:
        rng = np.random.default_rng((seed, attempt))
        noise = rng.standard_normal(point.size)
        point = point + float(np.linalg.norm(point) / np.linalg.norm(noise)) * noise
    stages.append(Stage("spectral start", "lanczos", 0, twin.passes, perf_counter() - began, float("nan")))
    return point


def spectral_start(form: TermForm, d: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the leading eigenvector of Σ T(dᵢ)Bᵢ relative to the diagonal of ΣBᵢ, flat; two passes per Lanczos step.

    Examples
    --------
    >>> rows, d, truth = qb.inverse.examples.gaussian_phase(16, 400, seed=0)
    >>> form = qb.ComplexForm(rows)
    >>> start = form.native(qb.inverse.spectral_start(form, d))
    >>> start = start * np.linalg.norm(truth) / np.linalg.norm(start)
    >>> qb.inverse.phase_error(start, truth) < 0.5
    True
    """
    largest = float(np.abs(d).max())
    y = np.maximum(d / largest, 0.0)
    y /= y.mean() or 1.0
    freedom = form.dim // (2 if form.dtype.kind == "c" else 1)
    tamed = (y - 1.0) / (y + max(np.sqrt(form.terms / freedom) - 1.0, 0.05))
    light = form.gram_diagonal()
    unit = 1.0 / np.sqrt(np.maximum(light, 1e-12 * light.max()))

    def product(v: np.ndarray) -> np.ndarray:
        flat = np.ascontiguousarray(v).view(np.float64).reshape(-1)
        image = form.image(unit * flat)
        return (unit * form.adjoint(form.weighted_image(tamed, image))).view(v.dtype)

    size = form.dim if form.dtype.kind != "c" else form.dim // 2
    operator = LinearOperator((size, size), matvec=product, dtype=form.dtype)
    first = np.random.default_rng(seed).standard_normal(form.dim).view(form.dtype)
    if size <= 2 or not tamed.any():  # measurements all alike prefer no direction, which ARPACK cannot start with
        return unit * first.view(np.float64)
    vector = eigsh(operator, k=1, which="LA", v0=first, ncv=min(LANCZOS, size - 1), tol=SPECTRAL)[1][:, 0]
    return unit * np.ascontiguousarray(vector).view(np.float64).reshape(-1)


def phase_error(x: Any, truth: Any) -> float:
    """Return min over φ of ‖e^{iφ}x − truth‖/‖truth‖: the error up to a global phase (a sign, for real signals).

    Examples
    --------
    >>> round(qb.inverse.phase_error(np.array([1.0j, 2.0j]), np.array([1.0, 2.0])), 12)
    0.0
    """
    x, truth = any_array(x, "x").reshape(-1), any_array(truth, "truth").reshape(-1)
    if x.shape != truth.shape:
        raise ProblemError(f"x must be of the size of the truth, {truth.size}, found {x.size}")
    inner = np.vdot(x, truth)
    turn = inner / abs(inner) if abs(inner) > 0.0 else 1.0
    return float(np.linalg.norm(turn * x - truth) / np.linalg.norm(truth))
