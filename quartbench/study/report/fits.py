"""How does a cost grow, and how far do seeds spread? Power laws with confidence intervals; medians with bands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: The level of every confidence interval in the report.
CONFIDENCE = 0.95


class PowerLaw(NamedTuple):
    """y ≈ constant·x^exponent by least squares on logarithms, with Student's confidence interval of the exponent."""

    exponent: float
    low: float
    high: float
    constant: float
    points: int

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the fitted y."""
        return self.constant * np.asarray(x, dtype=float) ** self.exponent

    def __str__(self) -> str:
        return f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}]"


def power_law(x: np.ndarray, y: np.ndarray) -> PowerLaw | None:
    """Fit a power law to positive finite points; None where fewer than three of them or two places remain."""
    from scipy.stats import t

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    kept = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    u, v = np.log(x[kept]), np.log(y[kept])
    if len(u) < 3 or np.ptp(u) == 0.0:
        return None
    centred = u - u.mean()
    spread = centred @ centred
    exponent = float(centred @ v / spread)
    intercept = float(v.mean() - exponent * u.mean())
    residual = v - intercept - exponent * u
    error = float(np.sqrt(residual @ residual / (len(u) - 2) / spread))
    width = float(t.ppf(0.5 + CONFIDENCE / 2, len(u) - 2)) * error
    return PowerLaw(exponent, exponent - width, exponent + width, float(np.exp(intercept)), len(u))


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean of two values or more, and the ends of Student's confidence interval of it."""
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    middle = float(values.mean())
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    width = float(t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)) * error
    return middle, middle - width, middle + width


def median_and_band(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the median, least and largest cost over seeds (rows) at each gap (columns).

    Where half of the seeds or more never got there, the median is infinite; where one did not, the largest is.
    """
    costs = np.asarray(costs, dtype=float)
    return np.median(costs, axis=0), costs.min(axis=0), costs.max(axis=0)
