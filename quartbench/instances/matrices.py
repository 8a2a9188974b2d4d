"""Which random rows make a stacked form of known difficulty? By spectrum, by block, by tail, by sparsity.

The vector c is a unit Gaussian direction, as in §6.1 of the paper, unless the docstring says otherwise.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse as sp
from scipy.linalg import solve_triangular

from quartbench.cones import Free, Orthant
from quartbench.errors import ProblemError, number, whole_number
from quartbench.forms import StackedForm
from quartbench.model import Problem

from .arguments import PLANT_STREAM, generator, origin
from .planted import plant, plant_at

#: Entries up to which Householder QR is cheap; beyond, Cholesky QR was 5 to 7 times faster (20000×1000, 50000×500).
SMALL = 10**6


def spectrum(m: int, n: int, sigma_min: float, seed: int = 0) -> Problem:
    """Rows whose singular values are uniform in [sigma_min, 1], with Haar singular vectors (paper §6.1).

    The singular values are kept as sampled: the smallest is a little above ``sigma_min``, the largest a little below 1.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n.
    sigma_min : float
        Lower end of the singular values, in (0, 1].
    seed : int
        Seed of the rows and of c.

    Examples
    --------
    >>> problem = qb.instances.spectrum(50, 5, sigma_min=0.5, seed=1)
    >>> problem.dim, problem.origin["generator"]
    (5, 'spectrum')
    """
    n = whole_number(n, "n", 1)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    sigma_min = number(sigma_min, "sigma_min", 0.0, 1.0, open_low=True)
    rng = generator(seed)
    rows = spectral_rows(m, rng.uniform(sigma_min, 1.0, n), rng)
    record = origin("spectrum", m=m, n=n, sigma_min=sigma_min, seed=int(seed))
    return Problem(StackedForm(rows), unit(rng, n), origin=record)


def blocks(m: int, n: int, rank: int, sigma_min: float = 0.1, seed: int = 0) -> Problem:
    """Terms of rank r: the m·r stacked rows have singular values uniform in [sigma_min, 1] and Haar singular vectors.

    Parameters
    ----------
    m, n, rank : int
        Number of terms, of variables, and of rows in a term, with m·rank ≥ n.
    sigma_min : float
        Lower end of the singular values, in (0, 1].
    seed : int
        Seed of the rows and of c.

    Examples
    --------
    >>> form = qb.instances.blocks(100, 10, rank=3, seed=0).form
    >>> form.terms, form.rank, form.dim
    (100, 3, 10)
    """
    m, n, rank = whole_number(m, "m", 1), whole_number(n, "n", 1), whole_number(rank, "rank", 1)
    if m * rank < n:
        raise ProblemError(f"m·rank must be at least n = {n}, or ρ is not positive definite; found {m}·{rank}")
    sigma_min = number(sigma_min, "sigma_min", 0.0, 1.0, open_low=True)
    rng = generator(seed)
    rows = spectral_rows(m * rank, rng.uniform(sigma_min, 1.0, n), rng)
    record = origin("blocks", m=m, n=n, rank=rank, sigma_min=sigma_min, seed=int(seed))
    return Problem(StackedForm(rows, rank=rank), unit(rng, n), origin=record)


def heavy_tailed(m: int, n: int, df: float = 2.0, seed: int = 0) -> Problem:
    """Rows of a multivariate Student t: Gaussian directions, lengths with a tail of index ``df``.

    A few rows are far longer than the rest, so the leverage scores spread by themselves, not by design.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n.
    df : float
        Degrees of freedom, at least 0.5 (below, lengths leave the range of double precision); large is Gaussian.
    seed : int
        Seed of the rows and of c.

    Examples
    --------
    >>> made = (qb.instances.heavy_tailed(500, 10, df=df, seed=0) for df in (100.0, 1.0))
    >>> calm, wild = (qb.coherence(problem.form) for problem in made)
    >>> calm < 0.1 < 0.9 < wild
    True
    """
    n = whole_number(n, "n", 1)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    df = number(df, "df", 0.5, 1e9)
    rng = generator(seed)
    rows = rng.standard_normal((m, n))
    rows *= np.sqrt(df / rng.chisquare(df, m))[:, None]
    record = origin("heavy_tailed", m=m, n=n, df=df, seed=int(seed))
    return Problem(StackedForm(rows), unit(rng, n), origin=record)


def scaled(m: int, n: int, decades: float = 2.0, few: int = 0, seed: int = 0) -> Problem:
    """Gaussian rows whose columns have scales over some decades; perhaps with directions that only a few rows carry.

    With ``few``, the first three columns (all where there are fewer) are a tenth as large, but for the first rows,
    where they are ten times as large: an even sample of the rows is unlikely to see these directions as they are.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n.
    decades : float
        The largest scale of a column over the smallest, as a power of ten.
    few : int
        Rows that carry three directions, 0 for rows that are all alike.
    seed : int
        Seed of the rows and of c.

    Examples
    --------
    >>> made = (qb.instances.scaled(2000, 5, few=few, seed=0) for few in (0, 3))
    >>> even, uneven = (qb.coherence(problem.form) for problem in made)
    >>> even < 0.1 < 0.3 < uneven
    True
    """
    n = whole_number(n, "n", 1)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    decades, few = number(decades, "decades", 0.0, 12.0), whole_number(few, "few", 0)
    rng = generator(seed)
    rows = rng.standard_normal((m, n)) * np.logspace(0.0, -decades, n)
    if few:
        carried = rows[:, :3]
        carried *= 0.1
        carried[:few] = 10.0 * rng.standard_normal(carried[:few].shape)
    record = origin("scaled", m=m, n=n, decades=decades, few=few, seed=int(seed))
    return Problem(StackedForm(rows), unit(rng, n), origin=record)


def sparse(m: int, n: int, density: float, seed: int = 0) -> Problem:
    """Sparse Gaussian rows (CSR): no empty row, every column covered, full rank.

    Row i always holds column π(i mod n), π a random permutation, so the first n rows contain a permutation matrix and
    the rank is n with probability one; the other entries are present independently, so that the expected density is
    ``density``.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n.
    density : float
        Expected share of entries that are stored, in [1/n, 1].
    seed : int
        Seed of the rows and of c.

    Examples
    --------
    >>> form = qb.instances.sparse(1000, 50, density=0.1, seed=0).form
    >>> form.terms, form.dim
    (1000, 50)
    """
    n = whole_number(n, "n", 1)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    density = number(density, "density", 1.0 / n, 1.0, why="1/n is one entry per row")
    rng = generator(seed)
    cover = np.arange(m) * n + rng.permutation(n)[np.arange(m) % n]
    others = bernoulli_positions(m * n, (density * n - 1.0) / (n - 1.0) if n > 1 else 0.0, rng)
    stored = np.union1d(cover, others)
    starts = np.searchsorted(stored, np.arange(m + 1) * n)
    rows = sp.csr_matrix((rng.standard_normal(len(stored)), stored % n, starts), shape=(m, n))
    record = origin("sparse", m=m, n=n, density=density, seed=int(seed))
    return Problem(StackedForm(rows), unit(rng, n), origin=record)


def orthant(
    m: int, n: int, sigma_min: float = 0.1, active: float = 0.5, df: float | None = None, seed: int = 0
) -> Problem:
    """A problem on the nonnegative orthant whose solution is known and lies on its boundary.

    The rows are those of :func:`spectrum`, or have Student t entries where ``df`` is given. x* has a share ``active``
    of zeros and c = ∇ρ(x*) − slack, the slack being positive on those zeros: the multipliers are strictly positive, so
    the free minimiser leaves the orthant.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n ≥ 2.
    sigma_min : float
        Lower end of the singular values, in (0, 1].
    active : float
        Share of the constraints that are active at x*, in (0, 1]; at least one is active and at least one is not.
    df : float, optional
        Degrees of freedom of independent entries, which have no ``sigma_min``, at least 0.5.
    seed : int
        Seed of the rows and of x*.

    Examples
    --------
    >>> problem = qb.instances.orthant(100, 10, seed=0)
    >>> int((problem.solution == 0).sum())
    5
    """
    n = whole_number(n, "n", 2)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    sigma_min = number(sigma_min, "sigma_min", 0.0, 1.0, open_low=True)
    active = number(active, "active", 0.0, 1.0, open_low=True)
    rng = generator(seed)
    if df is None:
        rows = spectral_rows(m, rng.uniform(sigma_min, 1.0, n), rng)
    else:
        df = number(df, "df", 0.5, 1e9)
        rows = rng.standard_t(df, (m, n))
    record = origin("orthant", m=m, n=n, sigma_min=sigma_min, active=active, df=df, seed=int(seed))
    return plant(StackedForm(rows), Orthant(), generator(seed, PLANT_STREAM), record, active=active)


def degenerate(m: int, n: int, active: int, seed: int = 0) -> Problem:
    """Gaussian rows of which all but ``active`` are orthogonal to the solution, which is known.

    ρ''(x*) sees the active rows alone, so with active < n it is singular: sublinear rates show, and Newton's method is
    linear.

    Parameters
    ----------
    m, n : int
        Number of terms and of variables, m ≥ n + active.
    active : int
        Rows that are not orthogonal to x*, at least 1.
    seed : int
        Seed of the rows and of x*.

    Examples
    --------
    >>> problem = qb.instances.degenerate(60, 10, active=3, seed=0)
    >>> int((np.abs(problem.form.image(problem.solution)) > 1e-9).sum())
    3
    """
    n, active = whole_number(n, "n", 2), whole_number(active, "active", 1)
    m = whole_number(m, "m", n + active, why="m ≥ n + active, or ρ is not positive definite")
    rng = generator(seed)
    rows, solution = rng.standard_normal((m, n)), unit(rng, n)
    for _ in range(2):  # the second time for what rounding left
        rows[active:] -= np.outer(rows[active:] @ solution, solution)
    record = origin("degenerate", m=m, n=n, active=active, seed=int(seed))
    return plant_at(StackedForm(rows), Free(), solution, record)


def spectral_rows(m: int, sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return m rows with exactly these singular values and Haar singular vectors on both sides."""
    left = haar(m, len(sigma), rng)
    return impose(left, sigma, rng)


def impose(basis: np.ndarray, sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return basis · diag(sigma) · Wᵀ with Haar W: the columns of ``basis`` are orthonormal."""
    return basis @ (sigma[:, None] * haar(len(sigma), len(sigma), rng).T)


def haar(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n orthonormal columns of length m, uniformly distributed.

    They are the Q of a Gaussian matrix whose R has a positive diagonal; that R is also the Cholesky factor, which
    is accurate where m ≥ 2n is large, because the Gaussian's condition number is then below 6.
    """
    gaussian = rng.standard_normal((m, n))
    if m < 2 * n or m * n <= SMALL:
        q, r = np.linalg.qr(gaussian)
        return q * np.where(np.diag(r) < 0, -1.0, 1.0)
    return cholesky_basis(gaussian)


def cholesky_basis(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns by one Cholesky QR."""
    upper = np.linalg.cholesky(columns.T @ columns).T
    return columns @ solve_triangular(upper, np.eye(len(upper)))


def unit(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a unit vector of uniform direction."""
    direction = rng.standard_normal(n)
    return direction / np.linalg.norm(direction)


def bernoulli_positions(length: int, probability: float, rng: np.random.Generator) -> np.ndarray:
    """Return which of ``length`` independent coins show heads, in time proportional to their number."""
    if probability <= 0.0:
        return np.empty(0, dtype=np.int64)
    expected = length * probability
    found, last = [], -1
    while last < length:
        gaps = rng.geometric(min(probability, 1.0), int(expected + 6.0 * np.sqrt(expected) + 10))
        found.append(last + np.cumsum(gaps))
        last = int(found[-1][-1])
    positions = np.concatenate(found)
    return positions[positions < length]
