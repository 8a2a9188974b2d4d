"""Choosing the norm: leverage scores, coherence, effective resistance, Lewis weights, and the metrics they give."""

from .kappa import measured_bounds, measured_kappa
from .leverage import Resistances, coherence, effective_resistance, leverage
from .lewis import METHODS, LewisWeights, lewis_weights
from .metrics import METRICS, Description, MetricSummary, describe, metric

__all__ = [
    "METHODS",
    "METRICS",
    "Description",
    "LewisWeights",
    "MetricSummary",
    "Resistances",
    "coherence",
    "describe",
    "effective_resistance",
    "leverage",
    "lewis_weights",
    "measured_bounds",
    "measured_kappa",
    "metric",
]
