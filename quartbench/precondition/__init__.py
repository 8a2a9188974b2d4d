"""Choosing the norm: leverage scores, coherence, effective resistance, Lewis weights, and the metrics they give."""

from .kappa import measured_bounds, measured_kappa
from .leverage import Resistances, coherence, effective_resistance, leverage
from .lewis import LewisWeights, lewis_weights
from .methods import METHODS
from .metrics import METRICS, Description, MetricSummary, automatic_metric, describe, metric

__all__ = [
    "METHODS",
    "METRICS",
    "Description",
    "LewisWeights",
    "MetricSummary",
    "Resistances",
    "automatic_metric",
    "coherence",
    "describe",
    "effective_resistance",
    "leverage",
    "lewis_weights",
    "measured_bounds",
    "measured_kappa",
    "metric",
]
