"""Are numbers read from every format of file as they were written, and is what is wrong said in words?"""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.model.matrices import read_matrix

ROWS = np.array([[1.0, 2.5, -3.0], [0.0, 4.0, 0.125]])


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1,2.5,-3\n0,4,0.125\n"),
        ("a.CSV", "one,two,three\n1,2.5,-3\n0,4,0.125\n"),
        ("a.csv", "# made by hand\n\n1,2.5,-3\n# half way\n\n0,4,0.125\n"),
        ("a.csv", "1;2.5;-3\n0;4;0.125\n"),
        ("a.csv", '"1","2.5","-3"\n"0","4","0.125"\n'),
        ("a.csv", "\ufeff1,2.5,-3\n0,4,0.125\n"),
        ("a.csv", "a;b,2,3\n1,2.5,-3\n0,4,0.125\n"),
        ("a.tsv", "1\t2.5\t-3\n0\t4\t0.125\n"),
        ("a.txt", "1  2.5 -3\n 0 4 0.125\n"),
    ],
)
def test_lines_of_numbers_are_read(tmp_path, name, text):
    np.testing.assert_array_equal(read_matrix(written(tmp_path, name, text), "rows"), ROWS)


def test_semicolons_part_columns_in_csv_files_alone(tmp_path):
    for name in ("a.tsv", "a.txt"):
        with pytest.raises(ProblemError, match=r"is not a .* file of numbers"):
            read_matrix(written(tmp_path, name, "1;2\n3;4\n"), "rows")


def test_arrays_are_read(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    np.savez(tmp_path / "a.npz", rows=ROWS)
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_matrix(ROWS))
    scipy.io.mmwrite(tmp_path / "a.mtx", ROWS)
    for name in ("a.npy", "a.npz", "a.mtx"):
        np.testing.assert_array_equal(read_matrix(tmp_path / name, "rows"), ROWS)
    found = read_matrix(tmp_path / "sparse.npz", "rows")
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), ROWS)


def test_several_arrays_are_refused_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", left=ROWS, right=ROWS)
    with pytest.raises(ProblemError, match=r"rows: .* found the arrays left, right"):
        read_matrix(tmp_path / "a.npz", "rows")


def test_what_went_wrong_is_said_in_words(tmp_path):
    with pytest.raises(ProblemError, match="could not convert string 'x' to float"):
        read_matrix(written(tmp_path, "a.csv", "1,2\nx,4\n"), "c")
    with pytest.raises(ProblemError, match=r"is not a \.npy file of numbers: it holds something else$"):
        read_matrix(written(tmp_path, "a.npy", "hello"), "c")
    with pytest.raises(ProblemError, match=r"c: .* must end in \.csv, \.tsv"):
        read_matrix(written(tmp_path, "a.doc", "1"), "c")


@pytest.mark.parametrize("header", [",a,b", '"",a,b'])
def test_row_labels_that_pandas_writes_are_no_column(tmp_path, header):
    with pytest.raises(ProblemError, match="its first column has no name"):
        read_matrix(written(tmp_path, "a.csv", f"{header}\n0,1.5,2\n1,3,4\n"), "rows")
    np.testing.assert_array_equal(
        read_matrix(written(tmp_path, "b.csv", "t,a\n0,1.5\n1,3\n"), "rows"), [[0, 1.5], [1, 3]]
    )


def test_decimal_commas_are_named(tmp_path):
    with pytest.raises(ProblemError, match="decimal commas"):
        read_matrix(written(tmp_path, "a.csv", "1,5;2,5\n3,0;4,0\n"), "rows")


def test_an_error_without_words_is_named(tmp_path, monkeypatch):
    def wordless(path):
        raise MemoryError

    monkeypatch.setitem(read_matrix.__globals__["READERS"], ".npy", wordless)
    with pytest.raises(ProblemError, match=r"file of numbers: MemoryError$"):
        read_matrix(tmp_path / "a.npy", "c")
