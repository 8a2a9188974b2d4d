"""Which files hold the rows? ``.npy`` or Parquet, checked by their headers and read in pieces of bounded size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from quartbench.errors import ProblemError

#: Bytes that are read at a time: two pieces, one that is computed with and one that is read, are in memory at once.
PIECE_BYTES = 1 << 25

#: What files of rows are called.
SUFFIXES = (".npy", ".parquet")


class NpyFile:
    """The rows in a ``.npy`` file of float64 or float32 in C order: pieces are read straight into a buffer.

    Attributes
    ----------
    name : str
        What errors call it.
    shape, dtype
        Of its rows.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # whatever NumPy makes of bytes that are no .npy file
            raise ProblemError(f"{self.name!r} is not a .npy file of numbers: {error}") from error
        if not isinstance(mapped, np.memmap) or mapped.ndim != 2:
            raise ProblemError(f"{self.name!r} must hold rows, an array of 2 dimensions, found {np.shape(mapped)}")
        if mapped.dtype not in (np.float64, np.float32):
            raise ProblemError(f"{self.name!r} must hold float64 or float32, found {mapped.dtype}")
        if not mapped.flags.c_contiguous:
            raise ProblemError(f"{self.name!r} must hold rows one after another (C order), found columns")
        self._offset, self.shape, self.dtype = mapped.offset, mapped.shape, mapped.dtype

    def pieces(self, count: int) -> Iterator[np.ndarray]:
        """Give the rows, at most ``count`` at a time; each piece is gone when the one after the next is asked for."""
        rows, columns = self.shape
        buffers = [np.empty((min(count, rows), columns), dtype=self.dtype) for _ in range(2 if rows > count else 1)]
        with open(self.name, "rb", buffering=0) as file:
            file.seek(self._offset)
            for turn, start in enumerate(range(0, rows, count)):
                piece = buffers[turn % 2][: min(count, rows - start)]
                _fill(file, memoryview(piece).cast("B"), self.name)
                yield piece

    def picked(self, rows: np.ndarray) -> np.ndarray:
        """Return some of the rows.

        Not through the map: every page that one has touched, and its neighbours, would count as memory of the process.
        """
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        with open(self.name, "rb", buffering=0) as file:
            for row, place in zip(rows.tolist(), out, strict=True):
                file.seek(self._offset + row * place.nbytes)
                _fill(file, memoryview(place).cast("B"), self.name)
        return out


class ParquetFile:
    """The rows in a Parquet file: one number per column, or one column with a list of numbers of one length per row."""

    def __init__(self, path: Path) -> None:
        from pyarrow import types
        from pyarrow.parquet import ParquetFile as Reader

        self.name = str(path)
        try:
            with Reader(path) as reader:
                count, schema = reader.metadata.num_rows, reader.schema_arrow
        except Exception as error:  # whatever Arrow makes of bytes that are no Parquet file
            raise ProblemError(f"{self.name!r} is not a Parquet file: {error}") from error
        self._lists = len(schema) == 1 and types.is_fixed_size_list(schema.field(0).type)
        kinds = {schema.field(0).type.value_type} if self._lists else {field.type for field in schema}
        if not kinds or not all(types.is_floating(kind) or types.is_integer(kind) for kind in kinds):
            found = ", ".join(sorted(str(kind) for kind in kinds)) or "no columns"
            raise ProblemError(f"{self.name!r} must hold columns of numbers, or one of lists of them, found {found}")
        self.shape = (count, schema.field(0).type.list_size if self._lists else len(schema))
        self.dtype = np.dtype(np.float32 if kinds == {_float32()} else np.float64)

    def pieces(self, count: int) -> Iterator[np.ndarray]:
        """Give the rows, ``count`` at a time but for the last."""
        left: list[np.ndarray] = []
        for part in self._batches(count):
            left.append(part)
            if sum(map(len, left)) >= count:
                joined = np.concatenate(left)
                yield joined[:count]
                left = [joined[count:]]
        rest = np.concatenate(left) if left else np.empty((0, self.shape[1]), dtype=self.dtype)
        if len(rest):
            yield rest

    def picked(self, rows: np.ndarray) -> np.ndarray:
        """Return some of the rows, in order; all of the file is read."""
        start, found = 0, []
        for part in self._batches(max(1, PIECE_BYTES // (8 * self.shape[1]))):
            here = rows[(rows >= start) & (rows < start + len(part))] - start
            found.append(part[here])
            start += len(part)
        return np.concatenate(found)

    def _batches(self, count: int) -> Iterator[np.ndarray]:
        from pyarrow.parquet import ParquetFile as Reader

        with Reader(self.name) as reader:
            for batch in reader.iter_batches(batch_size=count):
                yield self._array(batch)

    def _array(self, batch: Any) -> np.ndarray:
        """Return a batch as rows; what is missing in it is NaN, which is refused where rows are surveyed."""
        if self._lists:
            column = batch.column(0)
            if column.null_count:
                return np.full((len(batch), self.shape[1]), np.nan, dtype=self.dtype)
            flat = column.flatten().to_numpy(zero_copy_only=False)
            return flat.astype(self.dtype, copy=False).reshape(len(batch), self.shape[1])
        out = np.empty((len(batch), self.shape[1]), dtype=self.dtype)
        for j, column in enumerate(batch.columns):
            out[:, j] = column.to_numpy(zero_copy_only=False)
        return out


def _float32() -> Any:
    import pyarrow

    return pyarrow.float32()


def _fill(file: Any, buffer: memoryview, name: str) -> None:
    """Read as many bytes as a buffer has."""
    while len(buffer):
        count = file.readinto(buffer)
        if not count:
            raise ProblemError(f"{name!r} ended {len(buffer)} bytes before its last row: it has been cut short")
        buffer = buffer[count:]


File = NpyFile | ParquetFile


def opened(source: Any, rank: int) -> list[File]:
    """Return the files of a path, a directory or a list of paths, of one width and in whole terms; raise otherwise."""
    files = [_opened(path) for path in _paths(source)]
    for file in files:
        if file.shape[1] != files[0].shape[1]:
            raise ProblemError(
                f"blocks must have rows of one width, found {file.shape[1]} columns in {file.name!r} and "
                f"{files[0].shape[1]} in {files[0].name!r}"
            )
        if 0 in file.shape:
            raise ProblemError(f"blocks must not be empty, found shape {file.shape} in {file.name!r}")
        if file.shape[0] % rank:
            raise ProblemError(f"rows must come in blocks of rank={rank}, found {file.shape[0]} rows in {file.name!r}")
    return files


def _opened(path: Path) -> File:
    if path.suffix not in SUFFIXES:
        raise ProblemError(f"blocks of rows must be files {' or '.join(SUFFIXES)}, found {str(path)!r}")
    return NpyFile(path) if path.suffix == ".npy" else ParquetFile(path)


def _paths(source: Any) -> list[Path]:
    """Return the files that are meant; those of a directory in the order of their names."""
    if isinstance(source, str | os.PathLike):
        path = Path(source).absolute()  # workers may run elsewhere
        if not path.is_dir():
            return [path]
        found = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES and p.name[0] not in "._")
        if not found or len({p.suffix for p in found}) > 1:
            kinds = "both" if found else "neither"
            raise ProblemError(f"{str(path)!r} must hold .npy or .parquet files of rows, found {kinds}")
        return found
    if isinstance(source, Sequence) and source and all(isinstance(path, str | os.PathLike) for path in source):
        return [Path(path).absolute() for path in source]
    raise ProblemError(f"blocks must be a path, a directory or a list of paths, found {source!r:.80}")


def ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Give what an iterator gives, the next item being read in a thread while this one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="quartbench-reader") as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item
