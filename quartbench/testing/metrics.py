"""Does a metric keep the contract of :class:`quartbench.Metric`? Products, solves and what it declares must agree."""

from __future__ import annotations

import numpy as np

from quartbench.metrics import Metric

from .close import TOLERANCE, close, same

#: What a factor in single precision may be off by.
SINGLE = 5e-2


def check_metric(metric: Metric, seed: int = 0) -> None:
    """Check that a metric keeps its contract; raise AssertionError where it does not.

    Parameters
    ----------
    metric : Metric
    seed : int
        Of the vectors it is tried on.

    Examples
    --------
    >>> from quartbench.testing import check_metric
    >>> check_metric(qb.Diagonal(np.array([1.0, 2.0])))
    """
    assert isinstance(metric, Metric), f"a metric derives from quartbench.Metric, found {type(metric).__name__}"
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, metric.dim))
    tolerance = SINGLE if metric.precision == "single" else TOLERANCE
    given = x.copy()
    applied, solved = np.asarray(metric.apply(x)), np.asarray(metric.solve(x))
    assert np.array_equal(x, given), "apply or solve changed the vector"
    assert applied.shape == solved.shape == x.shape, "apply and solve do not keep the shape"
    size = float(np.linalg.norm(applied) * np.linalg.norm(y))
    close(applied @ y, x @ metric.apply(y), "B is not symmetric", size=size)
    assert x @ applied > 0.0, "⟨x,Bx⟩ is not positive"
    close(metric.solve(metric.apply(x)), x, "B⁻¹B is not the identity", tolerance)
    close(metric.norm(x), np.sqrt(x @ applied), "norm is not ⟨x,Bx⟩^½")
    close(metric.dual_norm(x), np.sqrt(x @ solved), "dual_norm is not ⟨x,B⁻¹x⟩^½")
    dtype = np.complex128 if metric.on_complex else np.float64
    columns, wanted = (np.stack([v.view(dtype) for v in pair], axis=1) for pair in ((x, y), (solved, metric.solve(y))))
    same(metric.solve_columns(columns), wanted, "solve_columns is not solve, column by column", tolerance)
    if metric.factored:
        half = metric.half_solve(columns.copy(order="F"))
        same(half.conj().T @ half, columns.conj().T @ wanted, "half_solve is not F⁻¹ of B = FFᴴ", tolerance)
        same(metric.half_solve_adjoint(half), wanted, "half_solve_adjoint is not F⁻ᴴ", tolerance)
    if metric.diagonal is not None:
        close(metric.diagonal * x, applied, "diagonal is not that of B")
    if metric.euclidean:
        close(applied, x, "a metric that says it is Euclidean is not the identity")
    twin = metric.declared(name="another", sweeps=7)
    assert (twin.name, twin.sweeps) == ("another", 7), "declared does not declare"
    assert metric.name != "another", "declared changed the metric itself"
    close(twin.solve(x), solved, "a metric with other declarations is another metric")
    scaled = metric.rescaled(4.0)
    close(scaled.apply(x), 4.0 * applied, "rescaled is not a multiple of B")
    close(scaled.solve(x), 0.25 * solved, "rescaled does not solve with the multiple of B")
