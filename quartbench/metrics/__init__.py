"""The metrics B, one kind per file: a norm ‖x‖_B, its dual ‖v‖_{B⁻¹}, products with B and solves."""

from .base import Bounds, Metric
from .cholesky import Cholesky
from .diagonal import Diagonal, Identity
from .laplacian import Laplacian

__all__ = ["Bounds", "Cholesky", "Diagonal", "Identity", "Laplacian", "Metric"]
