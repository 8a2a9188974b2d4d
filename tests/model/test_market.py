"""Do we read Matrix Market files as SciPy does, and refuse those that claim what they do not hold?"""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from quartbench.errors import ProblemError
from quartbench.model.market import read_market

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((5, 5))
THIN = np.where(RNG.random((5, 5)) < 0.5, SQUARE, 0.0)
MATRICES = {
    "general": SQUARE,
    "wide": RNG.standard_normal((3, 7)),
    "symmetric": SQUARE + SQUARE.T,
    "skew": SQUARE - SQUARE.T,
    "complex": SQUARE + 1j * THIN,
    "hermitian": (SQUARE + 1j * THIN) + (SQUARE + 1j * THIN).conj().T,
    "integer": np.arange(12).reshape(4, 3),
}


def plain(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gzipped", [False, True])
def test_every_kind_of_file_is_read_as_scipy_reads_it(tmp_path, name, sparse, gzipped):
    matrix = MATRICES[name] * (THIN != 0.0) if sparse and MATRICES[name].shape == THIN.shape else MATRICES[name]
    if sparse and name in ("symmetric", "skew", "hermitian"):
        matrix = MATRICES[name]
    path = tmp_path / "m.mtx"
    scipy.io.mmwrite(path, sp.coo_matrix(matrix) if sparse else matrix, comment=" two\n lines")
    if gzipped:
        path = tmp_path / "m.mtx.gz"
        path.write_bytes(gzip.compress((tmp_path / "m.mtx").read_bytes()))
    found = read_market(path)
    assert sp.issparse(found) == sparse
    np.testing.assert_array_equal(plain(found), plain(scipy.io.mmread(path)))
    np.testing.assert_allclose(plain(found), matrix, rtol=1e-15)


def test_patterns_and_empty_matrices_are_read(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n% why\n\n2 3 2\n1 1\n2 3\n")
    np.testing.assert_array_equal(read_market(path).toarray(), [[1, 0, 0], [0, 0, 1]])
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 3 0\n")
    assert read_market(path).shape == (2, 3)
    path.write_text("%%MatrixMarket matrix array real general\n0 3\n")
    assert read_market(path).shape == (0, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line must be"),
        ("%%MatrixMarket vector array real general\n1 1\n1", "its first line must be"),
        ("%%MatrixMarket matrix array quaternion general\n1 1\n1", "must name one of real, .* found 'quaternion'"),
        ("%%MatrixMarket matrix array real lopsided\n1 1\n1", "must name one of general"),
        ("%%MatrixMarket matrix array real general\n-1 1\n1", "its size must be 2 whole numbers, found '-1 1'"),
        ("%%MatrixMarket matrix array real general\n", "its size must be 2 whole numbers, found ''"),
        ("%%MatrixMarket matrix array real general\n2 1\n1\n2\n3\n", "must have 2 lines of 1, found 3 of 1"),
        ("%%MatrixMarket matrix array real general\n1 1\n1 2 3\n", "must have 1 lines of 1, found 1 of 3"),
        ("%%MatrixMarket matrix array real general\n99999999999 9\n1\n", "must have 899999999991 lines of 1"),
        ("%%MatrixMarket matrix array pattern general\n1 1\n1\n", "an array must hold numbers"),
        ("%%MatrixMarket matrix array real symmetric\n2 3\n1\n", "a symmetric matrix must be square, found 2 × 3"),
        ("%%MatrixMarket matrix array real symmetric\n2 2\n1\n", "must have 3 lines of 1, found 1"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "must have 2 lines of 3 numbers, found 1"),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n",
            r"entry 0 must lie within 2 × 2, found it at \[0",
        ),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", "entry 0 must lie within 2 × 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1.5 1 1\n", "entry 0 must lie within 2 × 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\nnan 1 1\n", "entry 0 must lie within 2 × 2"),
    ],
)
def test_what_is_claimed_and_not_held_is_refused(tmp_path, text, message):
    path = tmp_path / "m.mtx"
    path.write_text(text)
    with pytest.raises(ProblemError, match=message):
        read_market(path)
