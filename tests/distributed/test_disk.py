"""Rows on disk: the answers of the same rows in memory, piece by piece, and bad files named."""

import json
import threading

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import quartbench as qb
from quartbench.distributed import disk, sources
from quartbench.linalg.known import Known, exactly, together
from quartbench.testing import check_form
from tests.cli.common import run

METHODS = ("homgd", "accel-homgd", "homcg", "homnewton", "homnewton-cg", "auto")


@pytest.fixture(autouse=True)
def _many_pieces(monkeypatch):
    """Read some twenty rows at a time, so that every test sees many pieces."""
    monkeypatch.setattr(disk, "PIECE_BYTES", 2000)


def rows_of(dtype=np.float64, rank=1, seed=0):
    return np.random.default_rng(seed).standard_normal((120 * rank, 12)).astype(dtype)


#: For what does not depend on the kind of file.
npy_only = pytest.mark.parametrize("written", ["npy"], indirect=True)


@pytest.fixture(params=["npy", "columns", "lists"])
def written(request, tmp_path):
    """Return what writes rows to three files of a directory, and returns it."""

    def write(rows, rank=1):
        bounds = rank * np.array([0, 7, 80, len(rows) // rank])
        for i in range(3):
            block, path = rows[bounds[i] : bounds[i + 1]], tmp_path / f"part-{i}"
            if request.param == "npy":
                np.save(path.with_suffix(".npy"), block)
            elif request.param == "columns":
                frame = pandas.DataFrame(block, columns=[f"x{j}" for j in range(block.shape[1])])
                frame.to_parquet(path.with_suffix(".parquet"), row_group_size=11)
            else:
                column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(block.reshape(-1)), block.shape[1])
                pyarrow.parquet.write_table(pyarrow.table({"row": column}), path.with_suffix(".parquet"))
        (tmp_path / "_SUCCESS").touch()
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("written", "rank", "dtype"),
    [("npy", 1, np.float64), ("npy", 3, np.float32), ("columns", 3, np.float64), ("lists", 1, np.float32)],
    indirect=["written"],
)
def test_a_form_on_disk_keeps_the_contract_and_has_the_terms_in_order(written, rank, dtype):
    rows = rows_of(dtype, rank)
    form, same = qb.DiskForm(written(rows, rank), rank), qb.StackedForm(rows, rank)
    check_form(form)
    assert (form.terms, form.dim, form.rank) == (same.terms, same.dim, same.rank)
    x = np.random.default_rng(1).standard_normal(form.dim)
    np.testing.assert_allclose(form.image(x), same.image(x), rtol=1e-12, atol=1e-12)
    picked = np.array([0, 6, 7, 50, 119])
    np.testing.assert_array_equal(form.term_rows(picked), same.term_rows(picked))
    metric = same.weighted(same.uniform_weights())
    np.testing.assert_allclose(form.spectral_norms(metric), same.spectral_norms(metric), rtol=1e-10)


@npy_only
@pytest.mark.parametrize("rank", [1, 3])
def test_every_method_finds_the_answer_of_the_rows_in_memory(written, rank):
    rows = rows_of(rank=rank)
    c = np.random.default_rng(2).standard_normal(12)
    form, same = qb.DiskForm(written(rows, rank), rank), qb.StackedForm(rows, rank)
    for method in METHODS:
        found = qb.solve(qb.Problem(form, c), method, rel_gap=1e-10)
        assert found.success
        assert qb.certify(qb.Problem(form, c), found.x).proved
        wanted = qb.solve(qb.Problem(same, c), method, rel_gap=1e-10)
        assert found.fun == pytest.approx(wanted.fun, rel=1e-10)
    assert qb.lewis_weights(form).tau == pytest.approx(qb.lewis_weights(same).tau, rel=1e-10)


@npy_only
def test_nearly_dependent_rows_are_proved_by_all_of_them(written):
    rows = rows_of()
    rows[:, 1] = rows[:, 0] + 1e-7 * rows[:, 1]
    problem = qb.Problem(qb.DiskForm(written(rows)), rows.T @ np.ones(len(rows)))
    found = qb.solve(problem, rel_gap=1e-6)
    assert found.success
    assert qb.certify(problem, found.x, rel_gap=1e-6).proved


def test_a_sum_of_known_numbers_is_within_its_bound():
    from fractions import Fraction

    rng = np.random.default_rng(0)
    parts = [
        Known(hi, lo, np.abs(lo) * 1e-3)
        for hi, lo in ((h, h * 2.0**-54) for h in rng.standard_normal((40, 5)) * 10.0 ** rng.integers(-8, 9, (40, 5)))
    ]
    total = exactly(np.zeros(5))
    for part in parts:
        total = together(total, part)
    for j in range(5):
        exact = sum(Fraction(part.hi[j]) + Fraction(part.lo[j]) for part in parts)
        slack = total.error[j] - sum(Fraction(part.error[j]) for part in parts)
        assert abs(Fraction(total.hi[j]) + Fraction(total.lo[j]) - exact) <= slack
        assert abs(total.lo[j]) <= 2.0**-53 * abs(total.hi[j])
        assert total.error[j] <= 1.01 * sum(part.error[j] for part in parts) + 1e-28 * abs(total.hi[j]) + 1e-22


def test_the_next_piece_is_read_while_this_one_is_used():
    asked = threading.Semaphore(0)

    def items():
        for item in range(3):
            asked.release()
            yield item

    stream = sources.ahead(items())
    assert next(stream) == 0
    assert asked.acquire(timeout=10)
    assert asked.acquire(timeout=10)  # of the second, before it was asked for
    assert not asked.acquire(blocking=False)
    assert list(stream) == [1, 2]


@npy_only
def test_two_passes_at_once_do_not_share_their_pieces(written):
    rows = rows_of()
    form = qb.DiskForm(written(rows))
    for (start, block), (_, other) in zip(form.row_blocks(), form.row_blocks(), strict=True):
        np.testing.assert_array_equal(block, rows[start : start + len(block)])
        np.testing.assert_array_equal(other, block)


def test_nan_names_its_block_and_row(written):
    rows = rows_of()
    rows[83, 5] = np.nan
    with pytest.raises(qb.ProblemError, match=r"block 2 \(.*part-2\..*\): rows must be finite, found NaN .* in row 3$"):
        qb.DiskForm(written(rows))


@npy_only
def test_a_term_of_zeros_weighs_nothing(written):
    rows = rows_of()
    rows[8] = 0.0
    form = qb.DiskForm(written(rows))
    assert form.zero_terms() == [8]
    weights = qb.lewis_weights(form)
    assert weights.tau[8] == 0.0
    np.testing.assert_allclose(weights.tau, qb.lewis_weights(qb.StackedForm(rows)).tau, rtol=1e-10)


@npy_only
def test_a_column_of_zeros_is_not_definite(written):
    rows = rows_of()
    rows[:, 4] = 0.0
    form = qb.DiskForm(written(rows))
    with pytest.raises(qb.ProblemError, match="no term sees coordinate 4"):
        qb.Problem(form, np.ones(12))


@pytest.mark.parametrize(
    ("arrays", "rank", "message"),
    [
        (
            [np.ones((4, 3)), np.ones((4, 2))],
            1,
            r"rows of one width, found 2 columns in '.*b1.npy' and 3 in '.*b0.npy'",
        ),
        ([np.ones((4, 3))], 3, r"blocks of rank=3, found 4 rows in '.*b0.npy'"),
        ([np.ones((4, 3)), np.ones((0, 3))], 1, r"must not be empty, found shape \(0, 3\) in '.*b1.npy'"),
        ([np.ones(4)], 1, r"b0.npy' must hold rows, an array of 2 dimensions, found \(4,\)"),
        ([np.ones((4, 3), dtype=complex)], 1, r"must hold float64 or float32, found complex128"),
        ([np.asfortranarray(np.ones((4, 3)))], 1, r"C order"),
    ],
)
def test_blocks_that_do_not_fit_name_the_file(tmp_path, arrays, rank, message):
    paths = [tmp_path / f"b{i}.npy" for i in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    with pytest.raises(qb.ProblemError, match=message):
        qb.DiskForm(paths, rank)


def test_files_that_are_no_rows_are_refused(tmp_path):
    with pytest.raises(qb.ProblemError, match="found neither"):
        qb.DiskForm(tmp_path)
    (tmp_path / "a.npy").write_bytes(b"no array")
    with pytest.raises(qb.ProblemError, match=r"a.npy' is not a .npy file"):
        qb.DiskForm(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"no table")
    with pytest.raises(qb.ProblemError, match="found both"):
        qb.DiskForm(tmp_path)
    with pytest.raises(qb.ProblemError, match=r"a.parquet' is not a Parquet file"):
        qb.DiskForm([tmp_path / "a.parquet"])
    pandas.DataFrame({"a": ["text"]}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(qb.ProblemError, match="must hold columns of numbers"):
        qb.DiskForm([tmp_path / "b.parquet"])
    with pytest.raises(qb.ProblemError, match="must be a path"):
        qb.DiskForm(np.ones((3, 3)))


def test_a_file_that_is_cut_short_later_is_a_clear_error(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows_of())
    form = qb.DiskForm(path)
    with path.open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(qb.ProblemError, match=r"rows.npy' ended \d+ bytes before its last row"):
        form.value(np.ones(12))


def test_a_directory_is_solved_on_the_command_line(written, tmp_path):
    rows = rows_of(rank=3)
    directory, c = written(rows, 3), np.random.default_rng(2).standard_normal(12)
    (tmp_path / "given").mkdir()
    np.save(tmp_path / "given" / "c.npy", c)
    result = run("solve", directory, tmp_path / "given" / "c.npy", "--rank", "3", "--json")
    assert result.exit_code == 0, result.output
    wanted = qb.solve(qb.Problem(qb.StackedForm(rows, 3), c))
    assert json.loads(result.stdout)["fun"] == pytest.approx(wanted.fun, rel=2e-6)
