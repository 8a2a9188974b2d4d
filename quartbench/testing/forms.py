"""Does a form keep the contract of :class:`quartbench.Form`? Every identity that ties its answers to each other."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from quartbench import instances
from quartbench.errors import ProblemError
from quartbench.forms import Form, TermForm

from .close import close
from .metrics import check_metric
from .planted import check_planted
from .report import Report

#: The most unknowns for which identities are checked one coordinate at a time.
FEW = 200


def check_form(form: Form, seed: int = 0, solve: bool = True) -> Report:
    """Check that a form keeps its contract; raise AssertionError where it does not.

    Its answers must agree with each other: the value with the image, the gradient and the Hessian with the coefficients
    along lines, homogeneity with Euler's identities, the adjoint with the image, metrics with the terms, dense matrices
    with products. It must count its passes, change nothing it is given, and give the same answer twice. Then a problem
    with a known minimiser is solved on it, certified.

    Parameters
    ----------
    form : Form
        Of a few hundred unknowns at most, so that dense comparisons are quick.
    seed : int
        Of the points it is asked about.
    solve : bool
        Whether to solve a planted problem at the end, by ``auto`` and ``accel-homgd``.

    Returns
    -------
    Report
        A dictionary that prints as a table: what was checked, and what the form says it cannot do.

    Examples
    --------
    >>> from quartbench.testing import check_form
    >>> form = qb.StackedForm(np.random.default_rng(0).standard_normal((20, 4)))
    >>> check_form(form)["identities"]
    'value, gradient, Hessian, lines, scale, passes'
    """
    assert isinstance(form, Form), f"a form derives from quartbench.Form, found {type(form).__name__}"
    rng = np.random.default_rng(seed)
    cone = form.cone.bind(form)
    x, y, d = (cone.euclidean(rng.standard_normal(form.dim)) for _ in range(3))
    report = Report(f"{type(form).__name__} keeps the contract of a form:")
    _check_points(form, x)
    _check_values(form, x, y, d)
    _check_second_order(form, x, y, d)
    _check_manners(form, x, d)
    report["identities"] = "value, gradient, Hessian, lines, scale, passes"
    if isinstance(form, TermForm):
        _check_terms(form, rng, x, y)
        report["terms"] = _check_weights(form, rng)
    report["file"] = _check_file(form, x)
    if solve:
        report.update(check_planted(instances.planted(form, seed=seed), ("auto", "accel-homgd")))
    return report


def _check_points(form: Form, x: np.ndarray) -> None:
    assert int(np.prod(form.shape)) * (2 if form.dtype.kind == "c" else 1) == form.dim, "dim is not that of shape"
    native = form.native(x)
    assert native.shape == form.shape, f"native points have shape {native.shape}, not {form.shape}"
    assert np.array_equal(form.flat(native), x), "flat and native are not inverse to each other"
    assert form.gradient(native).shape == form.shape, "the gradient at a native point has another shape"
    assert form.gradient(x).shape == (form.dim,), "the gradient at a flat point is not flat"
    try:
        form.value(np.ones(form.dim + 1))
    except ProblemError:
        pass
    else:
        raise AssertionError("a point of the wrong length is not refused with a ProblemError")


def _check_values(form: Form, x: np.ndarray, y: np.ndarray, d: np.ndarray) -> None:
    value, gradient, image = form.evaluate(x)
    assert value > 0.0, f"ρ(x) = {value}, which must be positive for x ≠ 0"
    close(form.value(x), value, "value and evaluate disagree on ρ(x)")
    close(form.value_from_image(form.image(x)), value, "ρ from the image is not ρ(x)")
    close(form.value(np.zeros(form.dim)), 0.0, "ρ(0)", size=value)
    close(form.value(-2.0 * x), 16.0 * value, "ρ is not even and homogeneous of degree 4")
    close(gradient @ x, 4.0 * value, "⟨∇ρ(x),x⟩ is not 4ρ(x) (Euler)")
    close(form.gradient_from_image(image), gradient, "∇ρ from the image is not ∇ρ(x)")
    line = form.line(x, d)
    assert np.shape(line) == (5,), f"line gives {np.shape(line)}, not five coefficients"
    close(line[0], value, "the constant of a line is not ρ(x)")
    size = np.abs(line).sum()
    close(line[1], gradient @ d, "the slope of a line is not ⟨∇ρ(x),d⟩", size=size)
    for t in (-0.7, 0.3, 1.0):
        close(np.polyval(line[::-1], t), form.value(x + t * d), f"a line at t = {t} is not ρ(x + t d)", size=size)
    close(form.line_from_images(image, form.image(d)), line, "a line from images is not that from points", size=size)
    combined = form.image(x) + 0.5 * form.image(d)
    close(form.value_from_image(combined), form.value(x + 0.5 * d), "images are not linear", size=size)
    theta = 0.6
    behind, found = form.line_behind(image, form.image(y + theta * (y - d)), form.image(d), theta)
    close(form.value_from_image(behind), form.value(y), "line_behind: not the image of y")
    close(found, form.line(x, y - x), "line_behind: not the line to y", size=np.abs(form.line(x, y - x)).sum())


def _check_second_order(form: Form, x: np.ndarray, y: np.ndarray, d: np.ndarray) -> None:
    gradient, image = form.gradient(x), form.image(x)
    product = form.hessian_product(x, d)
    size = float(np.linalg.norm(product) * np.linalg.norm(d))
    close(form.hessian_product(x, x), 3.0 * gradient, "ρ''(x)x is not 3∇ρ(x) (Euler)")
    close(product @ y, d @ form.hessian_product(x, y), "the Hessian is not symmetric", size=size)
    assert product @ d >= -1e-10 * size, "the Hessian is not positive semidefinite: ρ is not convex"
    close(0.5 * product @ d, form.line(x, d)[2], "the curvature of a line is not ½⟨d,ρ''(x)d⟩", size=size)
    close(form.hessian_product_from_image(image, d), product, "a Hessian product from the image differs")
    close(form.hessian_product_flat(x, image, d), product, "a Hessian product from point and image differs")
    if form.dim <= FEW:
        dense = np.asarray(form.dense_hessian(x, image))
        full = np.tril(dense) + np.tril(dense, -1).T
        close(full @ d, product, "the dense Hessian is not that of the products")


def _check_manners(form: Form, x: np.ndarray, d: np.ndarray) -> None:
    given = x.copy()
    first, second = form.evaluate(x), form.evaluate(x)
    assert np.array_equal(first[1], second[1]), "two evaluations at one point differ"
    assert first[0] == second[0], "two evaluations at one point differ"
    assert np.array_equal(x, given), "evaluate changed the point"
    before = form.passes
    image = form.image(x)
    assert form.passes > before, "an image counts no pass"
    before = form.passes
    form.line_from_images(image, form.image(d))
    form.value_from_image(image)
    assert form.passes == before + 1, "what follows from images counts passes"
    twin = form.scaled(2.0)
    assert twin.passes == 0, "a scaled form does not count its own passes"
    close(twin.value(x), 16.0 * form.value(x), "twice the rows are not 16 times ρ")
    close(twin.gradient(x), 16.0 * form.gradient(x), "twice the rows are not 16 times ∇ρ")
    close(twin.value_from_image(twin.image(x)), twin.value(x), "images of a scaled form are not its own")
    counted = form.counting_with(twin)
    before = twin.passes
    counted.value(x)
    assert twin.passes == before + 1, "counting_with does not count with the other"
    magnitude = form.magnitude
    assert np.isfinite(magnitude), "magnitude is not finite"
    assert magnitude > 0.0, "magnitude is not positive"
    close(form.scaled(3.0).magnitude, 3.0 * magnitude, "magnitude does not follow the scale")


def _check_terms(form: TermForm, rng: np.random.Generator, x: np.ndarray, y: np.ndarray) -> None:
    image, weights = form.image(x), rng.standard_normal(form.terms * form.rank)
    assert image.shape == weights.shape, f"an image has {image.size} entries, not m·r = {weights.size}"
    size = float(np.linalg.norm(image) * np.linalg.norm(weights))
    close(image @ weights, x @ form.adjoint(weights), "⟨Mx,w⟩ is not ⟨x,Mᵀw⟩: no adjoint", size=size)
    squares = image.reshape(form.terms, form.rank) ** 2
    close(form.term_squares(image), squares.sum(axis=1), "term_squares is not ‖sᵢ‖²")
    close((squares.sum(axis=1) ** 2).sum(), form.value(x), "ρ is not Σ‖sᵢ‖⁴")
    if form.dim > FEW:
        return
    rows = form.real_rows()
    rows = form.scale * (rows.toarray() if sp.issparse(rows) else rows)
    close(rows @ x, image, "real_rows is not M")
    positive = weights**2
    close(form.column_squares(positive), positive @ rows**2, "column_squares is not Σwₖ Mₖⱼ²")
    norms = form.row_norms()
    if norms is not None:
        close(norms, np.linalg.norm(rows, axis=1), "row_norms is not the length of the rows")
    columns = np.stack([x, y], axis=1)
    close(form.image_columns(columns), rows @ columns, "image_columns is not MX")
    pair = np.stack([weights, positive], axis=1)
    close(form.adjoint_columns(pair), rows.T @ pair, "adjoint_columns is not MᵀW")


def _check_weights(form: TermForm, rng: np.random.Generator) -> str:
    tau = rng.uniform(0.5, 2.0, form.terms)
    metric = form.weighted(tau)
    cone = form.cone.bind(form)
    check_metric(metric)
    x = cone.euclidean(rng.standard_normal(form.dim))
    wanted = form.adjoint(form.weighted_image(tau, form.image(x)))
    close(cone.euclidean(metric.apply(x)), wanted, "weighted(τ) is not Στᵢ Bᵢ")
    traces = form.traces(metric)
    assert traces.shape == (form.terms,), f"traces has shape {traces.shape}, not (m,)"
    assert (traces > -1e-12).all(), "a trace Tr(B⁻¹Bᵢ) is negative"
    close(tau @ traces, form.freedom, "Στᵢ Tr(B⁻¹Bᵢ) is not the freedom of the form")
    assert (form.spectral_norms(metric) <= traces * (1.0 + 1e-8)).all(), "λ_max(UᵢᵀB⁻¹Uᵢ) exceeds its trace"
    bounds = form.bounds(metric)
    assert bounds is not None, "bounds must know α and β in the norm of B(τ)"
    for _ in range(5):
        x = cone.euclidean(rng.standard_normal(form.dim))
        ratio = np.sqrt(form.value(x)) / metric.norm(x) ** 2
        assert bounds.alpha * (1.0 - 1e-9) <= ratio <= bounds.beta * (1.0 + 1e-9), "α or β of B(τ) is no bound"
    assert form.factor_cost() >= 0.0, "factor_cost is negative"
    assert form.solve_cost() >= 0.0, "solve_cost is negative"
    return f"adjoint, rows, B(τ) by {metric.factor}, leverage, bounds"


def _check_file(form: Form, x: np.ndarray) -> str:
    try:
        arrays = form.arrays()
    except ProblemError as error:
        return str(error)
    again = type(form).from_arrays({name: np.asarray(array) for name, array in arrays.items()})
    close(again.scaled(form.scale).value(x), form.value(x), "the form read from its arrays is another", 1e-13)
    return "arrays and back"
