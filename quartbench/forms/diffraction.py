"""Coded diffraction patterns by FFT: the rows of phase retrieval that are never written down."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.fft

from quartbench.errors import DeficientError, ProblemError, complex_array
from quartbench.metrics import Diagonal

from .base import register_form
from .terms import TermForm

#: Entries of all patterns from which on transforms use all threads.
PARALLEL_ENTRIES = 1 << 17


@register_form("diffraction")
class DiffractionForm(TermForm):
    """ρ(x) = Σₗₖ |F(d̄ₗ·x)ₖ|⁴ on complex signals or images: the DFT of x behind masks dₗ, by FFT.

    The DFT is ``numpy.fft.fftn``'s, without a factor. A signal of n entries counts as a real space of dimension 2n; a
    term has rank 2 and the image (re, im). ΣBᵢ = n·diag(Σ|dₗ|²): the metric ``uniform`` is diagonal and costs nothing.

    Parameters
    ----------
    masks : complex array of shape (L, …)
        One mask for each pattern, of the shape of the signal; they are copied. An entry that is dark behind all of them
        is in no term.

    Examples
    --------
    >>> form = qb.DiffractionForm(qb.instances.diffraction_masks(8, 3, seed=0))
    >>> form.dim, form.terms, form.shape, form.dtype.name
    (16, 24, (8,), 'complex128')
    """

    dtype = np.dtype(np.complex128)
    rank = 2

    def __init__(self, masks: Any) -> None:
        super().__init__()
        self.masks = np.array(complex_array(masks, "masks"))
        self.masks.flags.writeable = False  # what follows is made of them once
        if self.masks.ndim < 2 or self.masks.size == 0:
            raise ProblemError(f"masks must have shape (patterns, …) of the signal, found shape {self.masks.shape}")
        self.shape = self.masks.shape[1:]
        self.entries = int(np.prod(self.shape))
        self.dim, self.terms = 2 * self.entries, self.masks.size
        self._axes = tuple(range(1, self.masks.ndim))
        self._conjugates = self.masks.conj()
        light = (self._conjugates * self.masks).real
        self._light = light.reshape(len(light), -1)
        self._kept["magnitude"] = float(np.sqrt(light.max())) or 1.0

    def _workers(self) -> int:
        return numba.get_num_threads() if self.terms >= PARALLEL_ENTRIES else 1

    def _image(self, x):
        signal = x.view(np.complex128).reshape(self.shape)
        patterns = scipy.fft.fftn(self._conjugates * signal, axes=self._axes, workers=self._workers(), overwrite_x=True)
        return patterns.reshape(-1).view(np.float64)

    def _adjoint(self, weights):
        patterns = weights.view(np.complex128).reshape(self.masks.shape)
        signals = scipy.fft.ifftn(patterns, axes=self._axes, norm="forward", workers=self._workers())
        return np.einsum("l...,l...->...", self.masks, signals).reshape(-1).view(np.float64)

    def weighted(self, tau, precision="double", accuracy=1e-6):
        """Return n·diag(Στₗ|dₗ|²) where the weights of a pattern are all the same; else as other forms do."""
        tau = self.require_weights(tau)
        patterns = tau.reshape(len(self.masks), -1)
        if (patterns == patterns[:, :1]).all():
            diagonal = self.scale**2 * self.entries * (patterns[:, 0] @ self._light)
            return Diagonal(np.repeat(diagonal, 2)).declared(tau=tau)
        return super().weighted(tau, precision, accuracy)

    def factor_cost(self):
        """Return 0: B⁽⁰⁾ is diagonal."""
        return 0.0

    def column_squares(self, weights):
        """Return Σₗ|dₗ|²Σₖwₗₖ where both parts of a term weigh the same; else as other forms do."""
        pairs = weights.reshape(-1, 2)
        if not (pairs[:, 0] == pairs[:, 1]).all():
            return super().column_squares(weights)
        self._read()
        sums = pairs[:, 0].reshape(len(self.masks), -1).sum(axis=1)
        return self.scale**2 * np.repeat(sums @ self._light, 2)

    def _row_norms(self):
        return np.repeat(np.sqrt(self._light.sum(axis=1)), 2 * self.entries)

    def _check_definite(self) -> None:
        """Raise where an entry of the signal is behind no mask."""
        dark = np.flatnonzero(self._light.sum(axis=0) == 0.0)
        if dark.size:
            where = tuple(int(i) for i in np.unravel_index(dark[0], self.shape))
            raise DeficientError(f"ρ is not positive definite: all masks are 0 at {where}, which no pattern sees")

    def arrays(self):
        """Return the masks."""
        return {"masks": self.masks}

    @classmethod
    def from_arrays(cls, arrays):
        """Return the form of masks that a file kept."""
        return cls(arrays["masks"])
