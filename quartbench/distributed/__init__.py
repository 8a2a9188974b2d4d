"""Beyond one machine: forms whose rows stay on disk, or on the workers of a cluster, and methods with few rounds."""

from .cluster import DaskForm
from .disk import DiskForm
from .engine import connected
from .rates import Rates
from .spag import SPAG, BregmanStochastic

__all__ = ["SPAG", "BregmanStochastic", "DaskForm", "DiskForm", "Rates", "connected"]
