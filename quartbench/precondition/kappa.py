"""How large is κ truly? A lower estimate beside the bound: the extremes of √ρ on the unit sphere of a metric."""

from __future__ import annotations

import numpy as np

from quartbench.errors import ProblemError, whole_number
from quartbench.forms import Form, TermForm, require_form
from quartbench.metrics import Bounds, Metric

#: A search ends when a step changes ln(√ρ/‖x‖²) by less than this.
STILL = 1e-12

#: … or when the square of its gradient is below this: there rounding decides the direction.
FLAT = 1e-20


def measured_kappa(form: Form, metric: Metric, starts: int = 8, steps: int = 200, seed: int = 0) -> float:
    """Return a lower estimate of κ = max √ρ / min √ρ over ‖x‖_B = 1, from many starts.

    Parameters
    ----------
    form : Form
    metric : Metric
    starts : int
        Random starts for each of the two searches; the search for the maximum also starts from the ``starts`` terms
        with the largest Tr(B⁻¹Bᵢ), as one large term is easily missed.
    steps : int
        Steps a search at most, three passes each.
    seed : int

    Examples
    --------
    >>> form = qb.instances.spectrum(100, 5, sigma_min=0.1, seed=0).form
    >>> metrics = qb.metric(form, "identity"), qb.metric(form, "uniform")
    >>> identity, uniform = (qb.measured_kappa(form, B, starts=2) for B in metrics)
    >>> uniform < identity
    True
    """
    return measured_bounds(form, metric, starts, steps, seed).kappa


def measured_bounds(form: Form, metric: Metric, starts: int = 8, steps: int = 200, seed: int = 0) -> Bounds:
    """Return the smallest and the largest √ρ/‖x‖²_B found. They are attained, so any true α and β lie outside them."""
    require_form(form)
    if not isinstance(metric, Metric) or metric.dim != form.dim:
        raise ProblemError(f"metric must be a Metric of dimension {form.dim}, found {metric!r}")
    starts, steps = whole_number(starts, "starts"), whole_number(steps, "steps")
    rng = np.random.default_rng(seed)
    search = _Search(form, metric, steps)
    points = [rng.standard_normal(form.dim) for _ in range(starts)]
    low = min(search(point, -1.0) for point in points)
    high = max(search(point, +1.0) for point in [*points, *_large_terms(form, metric, starts, rng)])
    return Bounds(float(np.exp(low)), float(np.exp(high)))


def _large_terms(form: Form, metric: Metric, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return B⁻¹Uᵢw, w random, for the terms with the largest Tr(B⁻¹Bᵢ)."""
    if not isinstance(form, TermForm):
        return []
    points = []
    for term in np.argsort(-form.traces(metric), kind="stable")[:count]:
        weights = np.zeros(form.terms * form.rank)
        weights[term * form.rank : (term + 1) * form.rank] = rng.standard_normal(form.rank)
        points.append(metric.solve(form.adjoint(weights)))
    return points


class _Search:
    """Conjugate gradients (Polak–Ribière+) on ln(√ρ(x)/‖x‖²_B), with exact line search from images."""

    def __init__(self, form: Form, metric: Metric, steps: int) -> None:
        self.form, self.metric, self.steps = form, metric, steps
        self.cone = form.cone.bind(form)

    def __call__(self, x: np.ndarray, sign: float) -> float:
        """Return the extreme ln(√ρ/‖x‖²_B) that the search from x reaches: largest for sign 1, smallest for −1."""
        metric = self.metric
        x, image, value = self._placed(self.cone.project(x, metric))
        direction = before = None
        for _ in range(self.steps):
            ascent = self._ascent(x, image, sign)
            slope = ascent @ metric.apply(ascent)
            if not slope > FLAT:
                break
            keep = 0.0 if before is None else max((slope - ascent @ metric.apply(before[0])) / before[1], 0.0)
            direction = ascent if keep == 0.0 else ascent + keep * direction
            t = self._best_step(x, image, direction, sign)
            found = self._placed(x + t * direction)
            if sign * (found[2] - value) > STILL:
                (x, image, value), before = found, (ascent, slope)
            elif keep > 0.0:
                before = None  # once more, along the gradient alone
            else:
                break
        return value

    def _placed(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return x on the unit sphere, its image and ln √ρ there."""
        x = x / self.metric.norm(x)
        image = self.form.image(x)
        return x, image, 0.5 * float(np.log(self.form.value_from_image(image)))

    def _ascent(self, x: np.ndarray, image: np.ndarray, sign: float) -> np.ndarray:
        """Return ±(B⁻¹∇ρ/(2ρ) − 2x), the gradient in the metric at ‖x‖_B = 1; orthogonal to x by Euler's identity."""
        gradient = self.form.gradient_from_image(image)
        rho = self.form.value_from_image(image)
        return sign * self.cone.project(self.metric.solve(gradient) / (2.0 * rho) - 2.0 * x, self.metric)

    def _best_step(self, x: np.ndarray, image: np.ndarray, direction: np.ndarray, sign: float) -> float:
        """Return the t at the extreme of ½ln P(t) − ln Q(t), P = ρ and Q = ‖·‖²_B on the line.

        P'Q = 2PQ' has degree 4: the terms of degree 5 cancel.
        """
        rho = np.polynomial.Polynomial(self.form.line_from_images(image, self.form.image(direction)))
        applied = self.metric.apply(direction)
        square = np.polynomial.Polynomial([1.0, 2.0 * (x @ applied), direction @ applied])
        condition = rho.deriv() * square - 2.0 * rho * square.deriv()
        roots = np.polynomial.Polynomial(condition.coef[:5]).roots()
        candidates = np.append(roots.real, 0.0)  # the real part of a complex root is a point like any other
        with np.errstate(divide="ignore", invalid="ignore"):
            values = 0.5 * np.log(rho(candidates)) - np.log(square(candidates))
        values[~np.isfinite(values)] = -sign * np.inf
        return float(candidates[np.argmax(sign * values)])
