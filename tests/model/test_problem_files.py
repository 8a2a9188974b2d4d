"""Do problems survive a trip to disk bit for bit, and are files that are no problems refused?"""

import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from quartbench.cones import CONES, Orthant
from quartbench.errors import ProblemError
from quartbench.forms import ComplexForm, DenseForm, Form, StackedForm
from quartbench.model import Problem, certify
from tests.kernels import plain

from .planted import CASES, near, planted


@pytest.mark.parametrize(("kind", "cone"), CASES)
def test_a_problem_comes_back_bit_for_bit(kind, cone, tmp_path):
    problem = planted(kind, cone, 1)
    problem.origin = {"generator": "planted", "seed": 1, "of": [kind, cone], "ratio": 0.1}
    path = problem.save(tmp_path / "problem.npz")
    again = Problem.load(path)
    assert type(again.form) is type(problem.form)
    assert repr(again) == repr(problem)
    assert again.origin == problem.origin
    assert (again.optimum, again.trivial) == (problem.optimum, problem.trivial)
    plain.identical(again.c, problem.c)
    plain.identical(again.solution, problem.solution)
    for name, array in problem.form.arrays().items():
        other = again.form.arrays()[name]
        assert (other.dtype, other.shape) == (array.dtype, array.shape)
        plain.identical(other, array)
    x = near(problem, 0.1)
    plain.identical(again.form.evaluate(x), problem.form.evaluate(x))
    assert certify(again, x) == certify(problem, x)


@pytest.mark.parametrize("seed", range(20))
def test_centred_problems_of_any_numbers_come_back_bit_for_bit(seed, tmp_path):
    # Centring what is centred already would round it once more.
    problem = planted("graph", "centred", seed, n=7)
    problem = Problem(problem.form, np.random.default_rng(seed).standard_normal(problem.dim), problem.cone)
    again = Problem.load(problem.save(tmp_path / "p"))
    plain.identical(again.c, problem.c)
    assert not again.c.flags.writeable
    assert again.optimum is None
    assert again.solution is None


def test_scaled_trivial_and_normalised_problems_come_back(tmp_path):
    problem = Problem(StackedForm(1e60 * np.eye(3)), [1.0, 2.0, 3.0]).normalised().problem
    again = Problem.load(problem.save(tmp_path / "scaled"))
    assert again.form.scale == problem.form.scale
    plain.identical(again.form.evaluate(np.ones(3)), problem.form.evaluate(np.ones(3)))
    trivial = Problem(StackedForm(np.eye(3)), [-1.0, -2.0, 0.0], Orthant())
    again = Problem.load(trivial.save(tmp_path / "trivial"))
    assert again.trivial
    assert again.optimum == 0.0
    for scale in (2.0, 3.0):
        again = Problem.load(Problem(StackedForm(np.eye(3)).scaled(scale), np.ones(3)).save(tmp_path / "multiple"))
        assert again.form.scale == scale
        assert again.form.value(np.ones(3)) == 3.0 * scale**4


def test_rows_on_disk_may_be_mapped_and_of_long_indices(tmp_path):
    np.save(tmp_path / "rows.npy", np.eye(4))
    mapped = Problem(StackedForm(np.load(tmp_path / "rows.npy", mmap_mode="r")), np.ones(4))
    assert Problem.load(mapped.save(tmp_path / "mapped")).value(np.ones(4)) == 0.0
    matrix = sp.csr_matrix(np.eye(4))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    assert Problem.load(Problem(StackedForm(matrix), np.ones(4)).save(tmp_path / "long")).value(np.ones(4)) == 0.0


def test_the_name_gets_its_suffix_and_an_old_file_is_replaced(tmp_path):
    problem = planted("dense", "free")
    assert problem.save(tmp_path / "a") == tmp_path / "a.npz"
    assert problem.save(str(tmp_path / "b.npz")) == tmp_path / "b.npz"
    assert problem.save(tmp_path / "v1.2") == tmp_path / "v1.2.npz"
    other = planted("gram", "free")
    other.save(tmp_path / "a.npz")
    assert repr(Problem.load(tmp_path / "a.npz")) == repr(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz", "v1.2.npz"]


def test_a_failed_save_leaves_the_old_file_and_no_half_one(tmp_path, monkeypatch):
    problem = planted("dense", "free")
    path = problem.save(tmp_path / "a.npz")
    before = path.read_bytes()
    write = np.savez_compressed

    def full_disk(file, **arrays):
        write(file, **arrays)
        with open(file, "r+b") as half:
            half.truncate(100)
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space left"):
        problem.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_pickled(tmp_path):
    path = planted("sparse", "free").save(tmp_path / "a.npz")
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)


def test_an_origin_that_is_no_json_is_refused_before_anything_is_written(tmp_path):
    problem = Problem(StackedForm(np.eye(2)), [1.0, 1.0], origin={"seed": np.random.default_rng(0)})
    with pytest.raises(ProblemError, match=r"origin must be JSON, found something else: .*Generator"):
        problem.save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_a_form_without_a_file_format_says_so(tmp_path):
    class MyForm(DenseForm):
        pass

    with pytest.raises(ProblemError, match="MyForm cannot be saved"):
        Problem(MyForm(np.eye(2)), [1.0, 1.0]).save(tmp_path / "a.npz")
    with pytest.raises(ProblemError, match="Form cannot be saved"):
        Form().arrays()


# Files that are no problems -------------------------------------------------------------------------------------------


def saved(tmp_path, **changes):
    """Return the path of a saved problem whose arrays were changed (None: left out)."""
    path = planted("dense", "free").save(tmp_path / "good.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    head = json.loads(str(arrays["head"]))
    head |= changes.pop("head", {})
    arrays |= {"head": np.array(json.dumps(head)), **changes}
    np.savez(tmp_path / "bad.npz", **{name: array for name, array in arrays.items() if array is not None})
    return tmp_path / "bad.npz"


def refuses(path, message):
    with pytest.raises(ProblemError, match=message):
        Problem.load(path)


def test_pickled_content_is_refused(tmp_path):
    refuses(
        saved(tmp_path, c=np.array([{"a": 1}], dtype=object)),
        r"bad.npz' is not a problem saved by quartbench: .*pickle",
    )
    np.save(tmp_path / "object.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refuses(tmp_path / "object.npy", "not a problem saved by quartbench")


def test_a_missing_file_is_named(tmp_path):
    refuses(tmp_path / "nowhere.npz", "no problem file at '.*nowhere.npz'")


@pytest.mark.parametrize("keep", [0, 1, 10, 200, 0.5, 0.9, -1])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = planted("dense", "free", terms=300).save(tmp_path / "a.npz")
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    refuses(path, r"a.npz' is not a problem saved by quartbench")


def test_a_damaged_file_is_refused(tmp_path):
    path = planted("dense", "free", terms=300).save(tmp_path / "a.npz")
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        start = next(entry for entry in file.infolist() if entry.filename == "form_rows.npy").header_offset
    for offset in range(start + 60, start + 2000, 100):
        broken = data.copy()
        broken[offset : offset + 8] = b"\xff" * 8
        path.write_bytes(broken)
        refuses(path, "is not a problem saved by quartbench")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x93NUMPY"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    refuses(tmp_path / "other", "is not a problem saved by quartbench")


def test_plain_arrays_and_folders_are_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.eye(3))
    refuses(tmp_path / "array.npy", "is not a problem saved by quartbench")
    np.savez(tmp_path / "arrays.npz", a=np.eye(3))
    refuses(tmp_path / "arrays.npz", "is not a problem saved by quartbench: it has no header")
    refuses(tmp_path, "is not a problem saved by quartbench")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head": {"version": 99}}, "has version 99, this reads 1"),
        ({"head": {"cone": "orthnt"}}, "unknown cone 'orthnt'; did you mean 'orthant'"),
        ({"head": {"form": "stackd"}}, "unknown form 'stackd'; did you mean 'stacked'"),
        ({"c": np.zeros(6)}, "c must not be zero"),
        ({"c": np.ones(5)}, r"c must have shape \(6,\)"),
        ({"form_rows": np.full((20, 6), np.nan)}, "rows must be finite"),
        ({"form_rows": None}, "it has no 'rows'"),
        ({"form_rows": np.ones((20, 6, 2))}, "rows must have 2 dimensions"),
        ({"form_rows": np.array("text")}, "rows must have 2 dimensions"),
        ({"form_rank": None}, "it has no 'rank'"),
        ({"form_rank": np.array(-1)}, "rank must be at least 1"),
        ({"form_rank": np.array(1.5)}, "rank must be a whole number"),
        ({"form_rank": np.array([1, 2])}, "rank must be a whole number"),
        ({"form_rank": np.array("one")}, "rank must be a whole number"),
        ({"scale": None}, "it has no 'scale'"),
        ({"scale": np.array(0.0)}, "scale must lie between 1e-151 and 1e"),
        ({"scale": np.array(-1.0)}, "scale must lie between 1e-151 and 1e"),
        ({"scale": np.array(np.nan)}, "scale must be one finite number"),
        ({"scale": np.ones(3)}, "scale must be one finite number"),
        ({"scale": np.array("1")}, "scale must be one finite number"),
        ({"optimum": np.array(np.inf)}, "optimum must be one finite number"),
        ({"optimum": np.ones(2)}, "optimum must be one finite number"),
        ({"optimum": np.array(1j)}, "optimum must be one finite number"),
        ({"solution": np.ones(5)}, "solution must have shape"),
        ({"c": None}, "it has no 'c'"),
        ({"head": {"origin": 3}}, "origin must be a JSON object, found int"),
        ({"head": {"cone": 3}}, "unknown cone 3"),
        ({"head": {"cone": ["free"]}}, "unknown cone"),
    ],
)
def test_files_with_bad_content_say_what_is_bad(tmp_path, changes, message):
    refuses(saved(tmp_path, **changes), "bad.npz' is not a problem saved by quartbench: .*" + message)


@pytest.mark.parametrize("missing", ["cone", "form", "origin", "version"])
def test_a_header_that_lacks_something_is_refused(tmp_path, missing):
    path = planted("dense", "free").save(tmp_path / "good.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    head = json.loads(str(arrays["head"]))
    del head[missing]
    np.savez(tmp_path / "bad.npz", **(arrays | {"head": np.array(json.dumps(head))}))
    refuses(tmp_path / "bad.npz", "bad.npz' is not a problem saved by quartbench: it has (no|version)")


def changed(tmp_path, problem, **changes):
    """Return the path of a problem of any kind, saved with some of its arrays changed by functions of them."""
    path = problem.save(tmp_path / "changed.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **(arrays | {name: change(arrays[name]) for name, change in changes.items()}))
    return path


def put(index, value):
    """Return a function that puts a value into a copy of an array."""

    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form_indices": put(3, 6)}, "rows must have indices of 0 to 5, found 6"),
        ({"form_indices": put(3, 2**30)}, "rows must have indices of 0 to 5, found 1073741824"),
        ({"form_indices": put(0, -1)}, "rows must have indices of 0 to 5, found -1"),
        ({"form_indices": lambda array: array[:-3]}, "is not a problem"),
        ({"form_indptr": put(4, 10**6)}, "is not a problem"),
        ({"form_indptr": put(4, -7)}, "rows must have .* pointers that rise from 0"),
        ({"form_indptr": put(0, 2)}, "is not a problem"),
        ({"form_indptr": lambda array: array[:0]}, "is not a problem"),
        ({"form_data": lambda array: array[:-3]}, "is not a problem"),
        ({"form_columns": lambda array: np.array(3)}, "is not a problem"),
        ({"form_columns": lambda array: np.array(-3)}, "is not a problem"),
        ({"form_columns": lambda array: np.array(10**15)}, "is not a problem"),
    ],
)
def test_sparse_rows_that_lead_out_of_their_matrix_are_refused(tmp_path, changes, message):
    refuses(changed(tmp_path, planted("sparse", "free"), **changes), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form_edges": put((0, 0), 10**9)}, "edges must join vertices 0 to"),
        ({"form_edges": put((0, 0), -1)}, "edges must join vertices 0 to"),
        ({"form_points": lambda array: np.array(10**15)}, "the graph must be connected, found 9{12}"),
        ({"form_points": lambda array: np.array(2)}, "edges must join vertices 0 to 1"),
        ({"form_dim": lambda array: np.array(10**12)}, "is not a problem"),
    ],
)
def test_graphs_that_lead_out_of_their_vertices_are_refused(tmp_path, changes, message):
    refuses(changed(tmp_path, planted("graph", "centred"), **changes), message)


def test_a_form_as_large_as_a_file_likes_is_refused_before_it_is_made(tmp_path):
    refuses(changed(tmp_path, planted("gram", "free"), form_size=lambda array: np.array([10**9, 10**9])), "c must have")


def test_a_header_nested_deeper_than_python_reads_is_refused(tmp_path):
    refuses(changed(tmp_path, planted("gram", "free"), head=lambda array: np.array("[" * 10**5)), "is not a problem")


def test_a_header_that_claims_terabytes_is_refused(tmp_path):
    path = planted("dense", "free").save(tmp_path / "a.npz")
    claims = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    claims += b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000)}".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("form_more.npy", claims + bytes(64))
    refuses(path, "is not a problem saved by quartbench")


@pytest.mark.parametrize("head", ["{", "[]", '"text"', "3", "{}"])
def test_files_with_a_broken_header_are_refused(tmp_path, head):
    path = planted("dense", "free").save(tmp_path / "good.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(tmp_path / "bad.npz", **(arrays | {"head": np.array(head)}))
    refuses(tmp_path / "bad.npz", "bad.npz' is not a problem saved by quartbench")


def test_every_cone_can_be_named_in_a_file():
    assert set(CONES) == {"free", "orthant", "centred", "second-order"}
    assert isinstance(ComplexForm(np.eye(2)), Form)
