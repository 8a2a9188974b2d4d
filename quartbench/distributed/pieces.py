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
    depth : int
        How many operations on pieces led here, one after another: what is lost is made again by as many.

    Attributes
    ----------
    point : array or None
        Where this is the image of a point as far as the driver knows: the point. Images are linear, and so stay images.
    """

    dtype = np.dtype(np.float64)
    ndim = 1

    point: np.ndarray | None = None

    def __init__(self, engine: Engine, futures: list, place: int, length: int, depth: int) -> None:
        self.engine, self.futures, self.place, self.depth = engine, futures, place, depth
        self.size, self.shape = length, (length,)

    def at(self, point: np.ndarray | None) -> Pieces:
        """Return these as the image of a point, made anew from it where too many operations led here."""
        self.point = point
        return self.engine.image(point) if point is not None and self.depth > DEEP else self

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.concatenate(self.engine.fetched(self)).astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        own = all((isinstance(part, Pieces) and part.size == self.size) or np.ndim(part) == 0 for part in inputs)
        if method == "__call__" and not options and own and ufunc.nout == 1 and ufunc.signature is None:
            return self._elementwise(ufunc, inputs)
        if "out" in options and isinstance(options["out"][0], Pieces):
            (out,) = options.pop("out")
            vars(out).update(vars(getattr(ufunc, method)(*inputs, **options)))
            return out
        return getattr(ufunc, method)(*map(_array, inputs), **options)

    def _elementwise(self, ufunc: np.ufunc, inputs: tuple) -> Pieces:
        places = [None if isinstance(part, Pieces) else part for part in inputs]
        pieces = tuple(part for part in inputs if isinstance(part, Pieces))
        found = self.engine.each(_elementwise, (ufunc, places), pieces, blocks=False).kept[0]
        linear = len(pieces) == LINEAR.get(ufunc) and not (ufunc is np.divide and places[0] is not None)
        if linear and all(part.point is not None for part in pieces):
            return found.at(ufunc(*(getattr(part, "point", part) for part in inputs)))
        found.point = None
        return found

    def __array_function__(self, function: Any, types: Any, arguments: tuple, options: dict) -> Any:
        if function in LIKE and arguments[0] is self and not options:
            return self.engine.each(_like, (function, arguments[1:]), (self,), blocks=False).kept[0]
        return function(*map(_array, arguments), **{name: _array(value) for name, value in options.items()})

    def reshape(self, *shape: Any) -> np.ndarray:
        """Return the numbers themselves in another shape."""
        return np.asarray(self).reshape(*shape)

    def __repr__(self) -> str:
        return f"Pieces({self.size} numbers in {len(self.futures)} blocks)"


#: Elementwise functions that are linear in so many images, the rest being numbers, but for a number over an image.
LINEAR = {np.add: 2, np.subtract: 2, np.multiply: 1, np.divide: 1, np.negative: 1}

#: Operations after which an image is made anew: Dask keeps all that led to a piece, to make it again.
DEEP = 50

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
