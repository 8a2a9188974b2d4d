"""Ten thousand mutated files: each is read, or refused in one clear error; nothing crashes, hangs or reads beyond."""

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse as sp

from quartbench import ComplexForm, GramForm, GraphForm, Problem, ProblemError, StackedForm
from quartbench.study import grid, store
from quartbench.study.files import is_problem, read_problem

FILES, BATCHES = 10_000, 5

STUDY = """
name = "mine"
time_limit = 5.0
[[group]]
name = "catalogue"
instances = [{ generator = "spectrum", m = [60, 80], n = 5, sigma_min = 0.1 }, "orthant:m=50,n=4"]
solvers = ["homgd", { method = "accel-homgd", restart = "none" }]
metrics = ["identity", "auto"]
seeds = [0, 1]
rel_gaps = [1e-4]
"""

#: Numbers that stand at the ends of something.
ENDS = (0, 1, -1, 2, 2**15, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63))


def originals(folder):
    """Return a file of every kind that is read, by its name, as bytes."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 3))
    thin = sp.csr_matrix(np.where(rng.random((30, 4)) < 0.6, rng.standard_normal((30, 4)), 0.0) + np.eye(30, 4))
    thin = thin[np.flatnonzero(np.diff(thin.indptr))]
    ring = [(i, (i + 1) % 6) for i in range(6)]
    problems = {
        "dense": Problem(StackedForm(rows), np.ones(3), solution=np.ones(3), optimum=-1.0),
        "blocks": Problem(StackedForm(rows, 2).scaled(2.0), np.ones(3)),
        "sparse": Problem(StackedForm(thin), np.ones(4)),
        "complex": Problem(ComplexForm(rows + 1j), np.ones(3) + 0j),
        "graph": Problem(GraphForm(6, 2, ring), rng.standard_normal((6, 2))),
        "gram": Problem(GramForm(3, 2), np.ones((3, 2))),
    }
    found = {}
    for name, problem in problems.items():
        found[f"{name}.npz"] = problem.save(folder / name).read_bytes()
    for name, array in {"rows.npy": rows, "ranks.npy": rows.astype(np.float32), "waves.npy": rows * 1j}.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        found[name] = buffer.getvalue()
    for name, matrix in {"thin.mtx": thin, "full.mtx": rows, "whole.mtx": sp.csr_matrix(np.eye(4, dtype=int))}.items():
        scipy.io.mmwrite(folder / name, matrix)
        found[name] = (folder / name).read_bytes()
    sp.save_npz(folder / "thin-rows.npz", thin)
    np.savez(folder / "one-array.npz", rows=rows)
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="a,b,c", comments="")
    pyarrow.parquet.write_table(pyarrow.table({f"a{j}": rows[:, j] for j in range(3)}), folder / "rows.parquet")
    for name in ("thin-rows.npz", "one-array.npz", "rows.csv", "rows.parquet"):
        found[name] = (folder / name).read_bytes()
    found["study.toml"] = STUDY.encode()
    with store.opened(folder / "results"):
        blank = {"string": "", "int64": 0, "double": 0.5, "bool": False}
        row = {column.name: blank.get(column.type, []) for column in store.COLUMNS}
        found["a.parquet"] = store.write(folder / "results", row | {"key": "a"}).read_bytes()
        about = {"study": "s", "config": {}, "system": {}, "command": "c", "problem_set": 1, "created": "2026"}
        found["_study.json"] = store.describe(folder / "results", about).read_bytes()
    return found


def mutated(data, rng):
    """Return bytes with a few random changes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(data) + 1)
        way = rng.randrange(8)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            data[at : at + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(9))
        elif way == 2:
            del data[at:]
        elif way == 3:
            del data[at : at + rng.randrange(1, 40)]
        elif way == 4:
            data[at:at] = data[at : at + rng.randrange(1, 60)]
        elif way == 5:
            data[at : at + 8] = rng.choice(ENDS).to_bytes(8, "little", signed=True)
        elif way == 6:  # another digit, or many
            digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
            if digits:
                place = rng.choice(digits)
                data[place : place + 1] = rng.choice([b"0", b"9", b"-", b"1e5", b"99999999999", b"nan", b".5"])
        elif way == 7:
            data[at : at + rng.randrange(1, 200)] = bytes(rng.randrange(100))
    return bytes(data)


def other_arrays(data, rng):
    """Return a problem file with one of its arrays changed, and its checksums right."""
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    way = rng.randrange(6)
    if way == 0:
        del arrays[name]
    elif way == 1 and array.dtype.kind in "iu":
        flat = array.astype(np.int64).reshape(-1)
        flat[rng.randrange(flat.size)] = rng.choice(ENDS)
        arrays[name] = flat.reshape(array.shape)
    elif way == 1 and array.dtype.kind == "f":
        flat = array.reshape(-1).copy()
        flat[rng.randrange(flat.size)] = rng.choice([np.nan, np.inf, 0.0, 1e308, -5e-324, 1e200])
        arrays[name] = flat.reshape(array.shape)
    elif way == 2:
        arrays[name] = array.reshape(-1)[: rng.randrange(array.size + 1)]
    elif way == 3:
        arrays[name] = array[None]
    elif way == 4 and array.dtype.kind not in "US":
        arrays[name] = array.astype(rng.choice(["i1", "f4", "c16", "U5", "f8", "i8"]))
    elif array.dtype.kind == "U":
        arrays[name] = np.array(mutated(str(array).encode(), rng).decode("latin-1"))
    else:
        arrays[rng.choice(sorted(arrays))] = array
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def other_member(data, rng):
    """Return a problem file with the bytes of one of its members changed, and its checksums right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as file, zipfile.ZipFile(buffer, "w") as out:
        names = file.namelist()
        chosen = rng.choice(names)
        for name in names:
            out.writestr(name, mutated(file.read(name), rng) if name == chosen else file.read(name))
    return buffer.getvalue()


def read(path, folder):
    """Read a file with the reader of its kind, and use what it gives; return whether it gave anything."""
    if path.suffix == ".toml":
        return bool(grid.cells(grid.read_study(str(path)), 1))
    if path.name == "a.parquet":
        return len(store.read(folder)) > 0
    if path.suffix == ".json":
        return bool(store.settings(folder)["study"])
    linear = None
    if not is_problem(path):
        linear = folder / "c.npy"
        np.save(linear, np.ones(4 if path.stem in ("thin", "whole", "thin-rows") else 3))
    problem = read_problem(path, linear)
    x = np.linspace(-1.0, 1.0, problem.dim)
    problem.form.hessian_product(x, x)
    with np.errstate(all="ignore"):
        return not np.isnan(problem.form.evaluate(x)[1]).all()


def fuzz(folder, first, count):
    """Read so many mutated files; print how many could be read, and how many were refused."""
    folder = Path(folder)
    files = originals(folder)
    (folder / "runs").mkdir()
    taken = refused = 0
    for number in range(first, first + count):
        rng = random.Random(number)
        name = rng.choice(sorted(files))
        ways = [mutated] + ([other_arrays, other_member] if name.endswith(".npz") else [])
        data = rng.choice(ways)(files[name], rng)
        path = folder / "runs" / name if name == "a.parquet" else folder / name
        path.write_bytes(data)
        (folder / "number").write_text(f"{number}: {name}")
        try:
            taken += read(path, folder)
        except ProblemError:
            refused += 1
        path.unlink()
    print(taken, refused)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_files_are_read_or_refused(run_python, tmp_path, batch):
    # In a process of its own: a crash fails the batch, and the file "number" says where.
    each = FILES // BATCHES
    script = f"from tests.study.test_fuzz_readers import fuzz; fuzz({str(tmp_path)!r}, {batch * each}, {each})"
    taken, refused = map(int, run_python("import warnings; warnings.simplefilter('ignore')\n" + script).split())
    assert min(taken, refused) > each // 50
