"""Numbers that belong to terms, each on the worker that has the term: images, dual points and bounds on them.

To NumPy a :class:`Pieces` is an array: elementwise functions run where the pieces are, without a round of
communication; anything else fetches the numbers first, which is right and slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .blocks import operation

if TYPE_CHECKING:
    from .engine import Engine


class Pieces(NDArrayOperatorsMixin):
    """A vector in pieces, one for each block.

    Parameters
    ----------
    engine : Engine
        Where the blocks are.
    futures : list of Future
        The answers of an operation, one for each block.
    place : int
        Where in what an operation has kept the pieces are.
    length : int
    """

    dtype = np.dtype(np.float64)
    ndim = 1

    def __init__(self, engine: Engine, futures: list, place: int, length: int) -> None:
        self.engine, self.futures, self.place = engine, futures, place
        self.size, self.shape = length, (length,)

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.concatenate(self.engine.fetched(self)).astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        own = all((isinstance(part, Pieces) and part.size == self.size) or np.ndim(part) == 0 for part in inputs)
        if method == "__call__" and not options and own and ufunc.nout == 1 and ufunc.signature is None:
            places = [None if isinstance(part, Pieces) else part for part in inputs]
            pieces = tuple(part for part in inputs if isinstance(part, Pieces))
            return self.engine.each(_elementwise, (ufunc, places), pieces, blocks=False).kept[0]
        return getattr(ufunc, method)(*map(_array, inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: tuple, options: dict) -> Any:
        if function in LIKE and arguments[0] is self and not options:
            return self.engine.each(_like, (function, arguments[1:]), (self,), blocks=False).kept[0]
        return function(*map(_array, arguments), **{name: _array(value) for name, value in options.items()})

    def reshape(self, *shape: Any) -> np.ndarray:
        """Return the numbers themselves in another shape."""
        return np.asarray(self).reshape(*shape)

    def __repr__(self) -> str:
        return f"Pieces({self.size} numbers in {len(self.futures)} blocks)"


#: Functions that make an array of the shape of another.
LIKE = (np.zeros_like, np.empty_like, np.full_like)


def _array(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_array, value))
    return np.asarray(value) if isinstance(value, Pieces) else value


@operation(keeps=1)
def _elementwise(ufunc: np.ufunc, places: list, *pieces: np.ndarray) -> tuple:
    given = iter(pieces)
    return (), (ufunc(*(next(given) if place is None else place for place in places)),)


@operation(keeps=1)
def _like(function: Any, arguments: tuple, piece: np.ndarray) -> tuple:
    return (), (function(piece, *arguments),)
