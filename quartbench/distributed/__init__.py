"""Beyond one machine: forms whose rows stay on disk, or on the workers of a cluster."""

from .cluster import DaskForm
from .disk import DiskForm
from .engine import connected

__all__ = ["DaskForm", "DiskForm", "connected"]
