"""Beyond one machine: forms whose rows stay on disk, or on the workers of a cluster."""

from .disk import DiskForm

__all__ = ["DiskForm"]
