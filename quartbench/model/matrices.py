"""One matrix or vector from a file of whatever format people keep numbers in; nothing is ever unpickled."""

from __future__ import annotations

import itertools
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from quartbench.errors import ProblemError

from .market import read_market

#: A dense array, or a sparse matrix where the file holds one.
Matrix = np.ndarray | sp.sparray | sp.spmatrix


def read_matrix(path: Path, name: str) -> Matrix:
    """Return the matrix or vector in a file, whose format is known by the end of its name.

    Parameters
    ----------
    path : Path
        CSV, TSV or text (with or without a line of headings), Parquet (each column a column of the matrix), Matrix
        Market, ``.npy``, or ``.npz`` of one array, of two named A and c, or of ``scipy.sparse.save_npz``.
    name : str
        What it is to be, "rows" or "c": which of A and c, and the words of an error.
    """
    read = next((reader for ending, reader in READERS.items() if path.name.lower().endswith(ending)), None)
    if read is None:
        raise ProblemError(f"{name}: {str(path)!r} must end in {', '.join(READERS)}, and hold what that says")
    try:
        found = read(path)
        return found["c" if name == "c" else "A"] if isinstance(found, dict) else found
    except Exception as error:  # whatever NumPy, pandas, Arrow and zipfile make of bytes that they did not write
        ending = next(ending for ending in READERS if path.name.lower().endswith(ending))
        raise ProblemError(f"{name}: {str(path)!r} is not a {ending} file of numbers: {_plain(error)}") from error


def _plain(error: Exception) -> str:
    """Return what went wrong in words; NumPy's are about pickle wherever bytes are not its own."""
    words = str(error) or type(error).__name__
    return "it holds something else" if "pickle" in words else words


def _read_npy(path: Path) -> np.ndarray:
    with path.open("rb") as handle:  # np.load would leave a file open that it cannot read
        found = np.load(handle, allow_pickle=False)
    if not isinstance(found, np.ndarray):
        raise ProblemError("it holds several arrays; name it .npz")
    return found


def holds_both(path: Path) -> bool:
    """Say whether a file is a ``.npz`` of two arrays named A and c."""
    try:
        with zipfile.ZipFile(path) as file:
            return sorted(file.namelist()) == ["A.npy", "c.npy"]
    except (OSError, zipfile.BadZipFile):
        return False


def _read_npz(path: Path) -> Matrix | dict[str, np.ndarray]:
    with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
        names = sorted(file.files)
        if names == ["A", "c"]:
            return {name: file[name] for name in names}
        if "format" not in names:
            if len(names) != 1:
                raise ProblemError(
                    f"it must be one array, two named A and c, a matrix of scipy.sparse.save_npz or a problem saved by "
                    f"quartbench, found the arrays {', '.join(names)}"
                )
            return file[names[0]]
    with path.open("rb") as handle:
        return sp.load_npz(handle)


def _read_text(separator: str | None) -> Callable[[Path], np.ndarray]:
    """Return a reader of lines of numbers; a first line that is not all numbers is taken for headings."""

    def read(path: Path) -> np.ndarray:
        with path.open(encoding="utf-8-sig") as handle:
            lines = (line for line in handle if line.strip() and not line.startswith("#"))
            first = next(lines, "")
            # Spreadsheets write semicolons between columns where the comma is for decimals.
            between = ";" if separator == "," and ";" in first and "," not in first else separator
            words = first.split(between)
            if separator == "," and len(words) > 1 and words[0].strip().strip('"') == "" and _is_heading(words):
                raise ProblemError(
                    "its first column has no name, as that of row labels that pandas writes: without it "
                    "(to_csv(…, index=False)) all columns are numbers of the rows; to keep it, name it"
                )
            if between == "," and ";" in first and not _is_heading(first.replace(",", ".").split(";")):
                raise ProblemError("it has semicolons between numbers with decimal commas: write decimal points")
            rest = lines if _is_heading(words) else itertools.chain([first], lines)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                return np.loadtxt(rest, delimiter=between, comments=None, quotechar='"', ndmin=2)

    return read


def _is_heading(words: list[str]) -> bool:
    """Say whether some word of a line is there and is no number."""
    for word in filter(None, (word.strip().strip('"') for word in words)):
        try:
            float(word)
        except ValueError:
            return True
    return False


def _read_parquet(path: Path) -> np.ndarray:
    import pyarrow.parquet

    frame = pyarrow.parquet.ParquetFile(path).read().to_pandas()
    for column, kind in frame.dtypes.items():
        if getattr(kind, "kind", "O") not in "fiub":
            sample = frame[column].dropna()
            shown = repr(sample.iloc[0])[:40] if len(sample) else "nothing"
            raise ProblemError(f"column {column!r} must be numbers, found {shown}")
    missing = frame.isna().to_numpy()
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise ProblemError(f"no number may be missing, found none in row {row} of column {frame.columns[column]!r}")
    return frame.to_numpy(dtype=float)


#: The formats by the end of a file's name.
READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _read_text(","),
    ".tsv": _read_text("\t"),
    ".txt": _read_text(None),
    ".parquet": _read_parquet,
    ".mtx": read_market,
    ".mtx.gz": read_market,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
