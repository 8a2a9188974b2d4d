"""The one side effect of importing the package: settings of Numba and BLAS that hold for the whole process."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from numba import config

from .blas import shorten_spin
from .compilation import cache_directory
from .threads import thread_safe_layer


class Settings(NamedTuple):
    """What was found and set.

    Attributes
    ----------
    cache : str
        The directory of compiled kernels.
    layer : str or None
        The threading layer of Numba in which several Python threads may run kernels; None: kernels run serially.
    """

    cache: str
    layer: str | None


@lru_cache(maxsize=1)
def configure() -> Settings:
    """Set up the process, the first time it is called; return what was set, every time."""
    layer = thread_safe_layer()
    if layer is not None and not config.DISABLE_JIT:
        config.THREADING_LAYER = layer
    shorten_spin()
    return Settings(cache_directory(), layer)
