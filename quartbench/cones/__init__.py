"""The cones K of a problem, one per file: their projections in the norm of a metric, onto K and onto its slice."""

from .base import CONES, Cone, Conic, cone_of, register_cone
from .centred import Centred
from .free import Free
from .orthant import Orthant
from .second_order import SecondOrder

__all__ = ["CONES", "Centred", "Cone", "Conic", "Free", "Orthant", "SecondOrder", "cone_of", "register_cone"]
