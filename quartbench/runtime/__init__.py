"""What happens once per process: where machine code is cached, which threads run kernels, how BLAS's threads behave."""

from .configure import Settings, configure

__all__ = ["Settings", "configure"]
