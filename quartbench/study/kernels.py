"""How fast are the kernels? Each against what a user would write instead, and against the speed of reading memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import scipy.sparse as sp

from quartbench.forms import ComplexForm, GraphForm, StackedForm
from quartbench.instances import geometric_edges
from quartbench.kernels import rows
from quartbench.kernels.jit import shares
from quartbench.views import counted, duration

from .timing import best_times, equal_threads

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One row of the table before it is measured: our call, the baseline, the tuned baseline, and the bytes read."""

    name: str
    target: float
    ours: Call
    baseline: Call
    tuned: Call
    bytes: int
    baseline_name: str = "NumPy"
    operation: str = "value+gradient"


@dataclass(frozen=True)
class Row:
    """One measured row: best seconds of each contender and the ratios that follow."""

    name: str
    operation: str
    baseline_name: str
    target: float
    seconds: float
    baseline_seconds: float
    tuned_seconds: float
    gigabytes_per_second: float
    bandwidth_fraction: float

    @property
    def ratio(self) -> float:
        """How many times faster than the baseline."""
        return self.baseline_seconds / self.seconds

    @property
    def tuned_ratio(self) -> float:
        """How many times faster than the baseline at its best."""
        return self.tuned_seconds / self.seconds

    def as_dict(self) -> dict[str, object]:
        """Return all columns, the ratios included."""
        return {**asdict(self), "ratio": self.ratio, "tuned_ratio": self.tuned_ratio}


def _dense(m: int, n: int, target: float) -> Case:
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((m, n)), rng.standard_normal(n)
    form = StackedForm(a)

    def numpy_as_written():
        s = a @ x
        return (s**4).sum(), a.T @ (4 * s**3)

    def numpy_tuned():
        s = a @ x
        q = s * s
        return q @ q, a.T @ (4 * q * s)

    return Case(f"dense {m}×{n}", target, lambda: form.evaluate(x), numpy_as_written, numpy_tuned, a.nbytes)


def _blocks(m: int, n: int, rank: int, target: float) -> Case:
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((m * rank, n)), rng.standard_normal(n)
    form = StackedForm(a, rank=rank)

    def numpy_as_written():
        s = (a @ x).reshape(m, rank)
        q = (s**2).sum(axis=1)
        return (q**2).sum(), a.T @ (4 * q[:, None] * s).ravel()

    def numpy_tuned():
        s = (a @ x).reshape(m, rank)
        q = np.einsum("ij,ij->i", s, s)
        return q @ q, a.T @ (s * (4 * q)[:, None]).ravel()

    return Case(f"rank {rank}, {m}×{n}", target, lambda: form.evaluate(x), numpy_as_written, numpy_tuned, a.nbytes)


def _hessian(m: int, n: int, target: float) -> Case:
    rng = np.random.default_rng(0)
    a, x, v = rng.standard_normal((m, n)), rng.standard_normal(n), rng.standard_normal(n)
    form = StackedForm(a)
    s = a @ x

    def two_products():
        return a.T @ (12 * s**2 * (a @ v))

    def two_products_tuned():
        t = a @ v
        t *= s
        t *= s
        t *= 12
        return a.T @ t

    def ours():
        return form.hessian_product_from_image(s, v)

    name = f"Hessian {m}×{n}"
    return Case(name, target, ours, two_products, two_products_tuned, a.nbytes, operation="Hessian product")


def _graph(points: int, degree: int, target: float) -> Case:
    edges = geometric_edges(points, dim=3, degree=degree, seed=0)
    form = GraphForm(points, 3, edges)
    x = np.random.default_rng(0).standard_normal((points, 3))
    count = form.terms
    ends = np.arange(count)
    signs = np.concatenate([np.ones(count), -np.ones(count)])
    incidence = sp.csr_matrix(
        (signs, (np.tile(ends, 2), np.concatenate([form.heads, form.tails]))), shape=(count, points)
    )
    transposed = sp.csr_matrix(incidence.T)

    def sparse_as_written():
        s = incidence @ x
        q = (s**2).sum(axis=1)
        return (q**2).sum(), incidence.T @ (4 * q[:, None] * s)

    def sparse_tuned():
        s = incidence @ x
        q = np.einsum("ij,ij->i", s, s)
        return q @ q, transposed @ (s * (4 * q)[:, None])

    traffic = 2 * form.edges.nbytes + 3 * x.nbytes + 8 * 3 * count
    return Case(
        f"graph N={points}", target, lambda: form.evaluate(x), sparse_as_written, sparse_tuned, traffic, "scipy.sparse"
    )


def _sparse(m: int, n: int, density: float, target: float) -> Case:
    rng = np.random.default_rng(0)
    a = sp.random(m, n, density=density, format="csr", rng=rng, data_rvs=rng.standard_normal)
    a = sp.csr_matrix(a + sp.csr_matrix((np.ones(m), (np.arange(m), np.arange(m) % n)), shape=(m, n)))
    form, x = StackedForm(a), rng.standard_normal(n)
    transposed = sp.csr_matrix(a.T)

    def sparse_as_written():
        s = a @ x
        return (s**4).sum(), a.T @ (4 * s**3)

    def sparse_tuned():
        s = a @ x
        q = s * s
        return q @ q, transposed @ (4 * q * s)

    traffic = a.data.nbytes + a.indices.nbytes + a.indptr.nbytes
    return Case(
        f"CSR {m}×{n}", target, lambda: form.evaluate(x), sparse_as_written, sparse_tuned, traffic, "scipy.sparse"
    )


def _complex(m: int, n: int, target: float) -> Case:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((m, n)) + 1j * rng.standard_normal((m, n))
    x = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    form, conjugate = ComplexForm(q), q.conj()

    def numpy_as_written():
        z = q.conj() @ x
        return (abs(z) ** 4).sum(), q.T @ (4 * abs(z) ** 2 * z)

    def numpy_tuned():
        # With the conjugate kept at hand: twice the memory, and the product is one BLAS call.
        z = conjugate @ x
        w = z.real**2 + z.imag**2
        return w @ w, q.T @ (4 * w * z)

    return Case(f"complex {m}×{n}", target, lambda: form.evaluate(x), numpy_as_written, numpy_tuned, q.nbytes)


#: The cases with the ratio over the baseline at its best that each must reach. Between 1 and 16 MB rows lie in the last
#: cache, where both are bound by its speed.
CASES: dict[str, Callable[[], Case]] = {
    "dense-200x20": lambda: _dense(200, 20, 1.5),
    "dense-500x20": lambda: _dense(500, 20, 1.3),
    "dense-2000x50": lambda: _dense(2000, 50, 1.3),
    "dense-2000x100": lambda: _dense(2000, 100, 1.1),
    "dense-1000x250": lambda: _dense(1000, 250, 1.0),
    "dense-5000x200": lambda: _dense(5000, 200, 1.0),
    "dense-2000x500": lambda: _dense(2000, 500, 1.0),
    "dense-2000x1000": lambda: _dense(2000, 1000, 1.0),
    "dense-20000x1000": lambda: _dense(20_000, 1000, 1.5),
    "dense-100000x500": lambda: _dense(100_000, 500, 1.5),
    "rank3-20000x200": lambda: _blocks(20_000, 200, 3, 1.5),
    "hessian-20000x1000": lambda: _hessian(20_000, 1000, 1.5),
    "graph-1000": lambda: _graph(1000, 10, 4.0),
    "graph-100000": lambda: _graph(100_000, 10, 4.0),
    "csr-100000x2000": lambda: _sparse(100_000, 2000, 0.005, 1.0),
    "complex-5000x500": lambda: _complex(5000, 500, 1.0),
}


def measure(threads: int = 2, names: list[str] | None = None, rounds: int = 6) -> Iterator[Row]:
    """Measure the cases one after the other, each against its baselines and the parallel sum in the same turns."""
    reference = np.ones((20_000, 1000))  # 160 MB: far past any cache
    bounds = shares(reference.shape[0], threads)
    for name in names or CASES:
        case = CASES[name]()
        with equal_threads(threads):
            calls = [case.ours, case.baseline, case.tuned, lambda: rows.sum_parallel(reference, bounds)]
            seconds, baseline, tuned, reading = best_times(calls, rounds=rounds)
        speed = case.bytes / seconds
        yield Row(
            case.name,
            case.operation,
            case.baseline_name,
            case.target,
            seconds,
            baseline,
            tuned,
            speed / 1e9,
            speed / (reference.nbytes / reading),
        )


def markdown(measured: list[Row], threads: int, system: dict[str, object]) -> str:
    """Return the table as a Markdown page that says how it was made."""
    lines = [
        "# Kernel speed",
        "",
        f"Best of many interleaved calls on {counted(threads, 'thread')} for every contender. `ratio` "
        "compares with the code as one writes it first, `tuned` with the same code at its best, `read` is the fraction "
        "of the speed at which this machine sums a 160 MB array in parallel (cases in cache exceed it), "
        "`wanted` what the project promises of `tuned`.",
        "",
        "| case | operation | time | GB/s | read | baseline | ratio | tuned | wanted |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in measured:
        lines.append(
            f"| {row.name} | {row.operation} | {duration(row.seconds)} | {row.gigabytes_per_second:.1f} "
            f"| {row.bandwidth_fraction:.2f} | {duration(row.baseline_seconds)} {row.baseline_name} "
            f"| {row.ratio:.2f}× | {row.tuned_ratio:.2f}× | ≥ {row.target:.1f}× |"
        )
    versions = ", ".join(f"{name} {system[name]}" for name in ("python", "numpy", "scipy", "numba"))
    lines += ["", f"{system['processor']}, {system['cores']} cores; {versions}; commit {system['commit']}."]
    lines += ["Remake it with `quartbench kernels --out reports`.", ""]
    return "\n".join(lines)
