"""Rows in Matrix Market files: what a header claims is compared with what the file holds before anything is made of it.

SciPy's reader believes the header of a dense array, and writes beyond its memory where more numbers follow.
"""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError

#: Numbers on the line of an entry, by field.
FIELDS = {"real": 1, "double": 1, "integer": 1, "complex": 2, "pattern": 0}

SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read_market(path: Path) -> np.ndarray | sp.coo_matrix:
    """Return the matrix in a Matrix Market file, which may be gzipped: dense for an ``array``, else sparse."""
    with gzip.open(path, "rt", encoding="latin-1") if path.suffix == ".gz" else path.open(encoding="latin-1") as file:
        layout, field, symmetry = _banner(file.readline())
        size = _size(file, 2 if layout == "array" else 3)
        body = _numbers(file)
    if symmetry != "general" and size[0] != size[1]:
        raise ProblemError(f"a {symmetry} matrix must be square, found {size[0]} × {size[1]}")
    if layout == "array":
        return _dense(body, size, field, symmetry)
    return _sparse(body, size, field, symmetry)


def _banner(line: str) -> tuple[str, str, str]:
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ProblemError(f"its first line must be '%%MatrixMarket matrix …', found {line.strip()!r:.60}")
    layout, field, symmetry = words[2:]
    for word, known in ((layout, ("array", "coordinate")), (field, FIELDS), (symmetry, SYMMETRIES)):
        if word not in known:
            raise ProblemError(f"its first line must name one of {', '.join(known)}, found {word!r:.60}")
    return layout, field, symmetry


def _size(file: IO[str], count: int) -> list[int]:
    line = next((line for line in file if line.strip() and not line.startswith("%")), "")
    size = [int(word) for word in line.split() if word.isdecimal()]
    if len(size) != count or len(line.split()) != count:
        raise ProblemError(f"its size must be {count} whole numbers, found {line.strip()!r:.60}")
    return size


def _numbers(file: IO[str]) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        return np.loadtxt(file, comments="%", ndmin=2)


def _values(numbers: np.ndarray, field: str) -> np.ndarray:
    if field == "complex":
        return numbers[:, 0] + 1j * numbers[:, 1]
    return numbers[:, 0] if field != "pattern" else np.ones(len(numbers))


def _mirrored(values: np.ndarray, symmetry: str) -> np.ndarray:
    """Return the entries above the diagonal from those below it."""
    return {"symmetric": values, "skew-symmetric": -values, "hermitian": values.conj()}[symmetry]


def _dense(body: np.ndarray, size: list[int], field: str, symmetry: str) -> np.ndarray:
    count, columns = size
    if field == "pattern":
        raise ProblemError("an array must hold numbers, found a pattern")
    stored = count * columns
    if symmetry != "general":
        stored = count * (count + (-1 if symmetry == "skew-symmetric" else 1)) // 2
    if body.shape != (stored, FIELDS[field]) and not (stored == body.size == 0):
        raise ProblemError(
            f"an array of {count} × {columns} must have {stored} lines of {FIELDS[field]}, found {len(body)} "
            f"of {body.shape[1]}"
        )
    values = _values(body, field)
    if symmetry == "general":
        return values.reshape(columns, count).T
    matrix = np.zeros((count, count), dtype=values.dtype)
    # Column by column below the diagonal, which is row by row above it.
    above = np.triu_indices(count, 1 if symmetry == "skew-symmetric" else 0)
    matrix[above] = _mirrored(values, symmetry)
    matrix.T[above] = values
    return matrix


def _sparse(body: np.ndarray, size: list[int], field: str, symmetry: str) -> sp.coo_matrix:
    count, columns, entries = size
    width = 2 + FIELDS[field]
    if body.shape != (entries, width) and not (entries == body.size == 0):
        raise ProblemError(f"it must have {entries} lines of {width} numbers, found {len(body)} of {body.shape[1]}")
    if entries == 0:
        return sp.coo_matrix((count, columns))
    places = body[:, :2]
    wrong = (places != np.floor(places)) | (places < 1) | (places > [count, columns])
    if wrong.any():
        which = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise ProblemError(f"entry {which} must lie within {count} × {columns}, found it at {places[which].tolist()}")
    values, (i, j) = _values(body[:, 2:], field), (places - 1).astype(np.int64).T
    if symmetry != "general":
        off = i != j
        values = np.concatenate([values, _mirrored(values[off], symmetry)])
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
    return sp.coo_matrix((values, (i, j)), shape=(count, columns))
