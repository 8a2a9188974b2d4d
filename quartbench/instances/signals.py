"""Which complex measurements make a phase-retrieval form? Gaussian rows and coded diffraction patterns.

The signal x* is complex Gaussian and planted, c = ∇ρ(x*); ⟨q,x⟩ = qᴴx throughout.
"""

from __future__ import annotations

import numpy as np

from quartbench.cones import Free
from quartbench.errors import whole_number
from quartbench.forms import ComplexForm
from quartbench.model import Problem

from .arguments import PLANT_STREAM, generator, origin
from .planted import plant


def complex_gaussian(m: int, n: int, seed: int = 0) -> Problem:
    """Rows of independent complex Gaussians with E|q|² = 1 per entry.

    Parameters
    ----------
    m, n : int
        Number of measurements and of complex unknowns, m ≥ n.
    seed : int
        Seed of the rows and of x*.

    Examples
    --------
    >>> problem = qb.instances.complex_gaussian(30, 5, seed=0)
    >>> problem.form.dim, problem.form.dtype.name
    (10, 'complex128')
    """
    n = whole_number(n, "n", 1)
    m = whole_number(m, "m", n, why="m ≥ n, or ρ is not positive definite")
    parts = generator(seed).standard_normal((m, 2 * n)) * np.sqrt(0.5)
    record = origin("complex_gaussian", m=m, n=n, seed=int(seed))
    return plant(ComplexForm(parts.view(np.complex128)), Free(), generator(seed, PLANT_STREAM), record)


def coded_diffraction(n: int, masks: int, seed: int = 0) -> Problem:
    """Coded diffraction patterns, as n·masks dense rows: pattern l is the DFT of conj(d_l)·x.

    Row l·n + k is q[t] = d_l[t]·exp(2πi kt/n), so that ⟨q,x⟩ = Σ_t x[t]·conj(d_l[t])·exp(−2πi kt/n).

    Parameters
    ----------
    n : int
        Number of complex unknowns.
    masks : int
        Number of patterns, each of n measurements.
    seed : int
        Seed of the masks (see :func:`diffraction_masks`) and of x*.

    Examples
    --------
    >>> form = qb.instances.coded_diffraction(8, masks=3, seed=0).form
    >>> form.terms, form.dim
    (24, 16)
    """
    patterns = diffraction_masks(n, masks, seed)
    wave = np.exp(2j * np.pi / n * (np.outer(np.arange(n), np.arange(n)) % n))
    rows = (patterns[:, None, :] * wave).reshape(n * masks, n)
    record = origin("coded_diffraction", n=int(n), masks=int(masks), seed=int(seed))
    return plant(ComplexForm(rows), Free(), generator(seed, PLANT_STREAM), record)


def diffraction_masks(n: int, masks: int, seed: int = 0) -> np.ndarray:
    """Return the (masks, n) octanary masks d = b₁b₂ of Candès, Li and Soltanolkotabi (2015, §1.3).

    b₁ is uniform on {1, −1, i, −i}; b₂ is √2/2 with probability 4/5 and √3 with probability 1/5. Hence E d = E d² = 0,
    E|d|² = 1 and E|d|⁴ = 2, as for a complex Gaussian; and no entry is zero.

    Examples
    --------
    >>> masks = qb.instances.diffraction_masks(1000, 2, seed=0)
    >>> masks.shape, sorted({float(size) for size in np.abs(masks).ravel().round(3)})
    ((2, 1000), [0.707, 1.732])
    """
    n, masks = whole_number(n, "n", 1), whole_number(masks, "masks", 1)
    rng = generator(seed)
    phase = np.array([1.0, 1.0j, -1.0, -1.0j])[rng.integers(0, 4, (masks, n))]
    return phase * np.where(rng.random((masks, n)) < 0.8, np.sqrt(0.5), np.sqrt(3.0))
