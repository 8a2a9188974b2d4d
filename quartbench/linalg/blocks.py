"""How are equations solved whose matrix has a block for every vertex and edge of a graph? Front by front."""

from __future__ import annotations

import numpy as np

from quartbench.kernels import banded, fronts
from quartbench.runtime.blas import ONE_THREAD_WORK, blas_threads

from .dissection import Dissection


class BlockFronts:
    """The fronts of a dissection for matrices of d × d blocks; its last vertex, grounded there, is a front of its own.

    Parameters
    ----------
    structure : Dissection
    block : int
        d.

    Attributes
    ----------
    work : float
        Multiplications of a factor.
    """

    def __init__(self, structure: Dissection, block: int) -> None:
        self.structure, self.block = structure, block
        d, last = block, len(structure.parents)
        within = np.arange(d)
        self._starts = d * np.append(structure.starts, structure.points)
        self._pointers = d * np.append(structure.pointers, structure.pointers[-1])
        sizes = np.diff(self._starts) * (np.diff(self._starts) + np.diff(self._pointers))
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._rows, self._relative = (
            (d * places[:, None] + within).reshape(-1) for places in (structure.rows, structure.relative)
        )
        self._parents = np.append(np.where(structure.parents < 0, last, structure.parents), -1)
        self.work = float(d**3) * structure.flops

    def factor(self, s: np.ndarray, alpha: np.ndarray, beta: np.ndarray, shift: float) -> BlockFactor | None:
        """Return the factor of Σ (eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ ⊗ (αI + βssᵀ) + shift·μI, μ its mean diagonal; None if indefinite."""
        joint = self.structure
        heads, tails = (np.ascontiguousarray(ends) for ends in joint.edges.T)
        blocks, sums = banded.edge_blocks(heads, tails, s, alpha, beta, joint.points)
        within = np.arange(self.block)
        sums[:, within, within] += shift * float(np.abs(sums[:, within, within]).mean())
        places = (self._starts, self._pointers, self._offsets, self._parents, self._relative)
        with blas_threads(ONE_THREAD_WORK):  # fronts are small: two threads would meet thousands of times
            definite, panels = fronts.factor(*places, joint.indptr, joint.spots, joint.links, sums[joint.order], blocks)
        return BlockFactor(self, panels) if definite else None

    def solve(self, panels: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the solution for a flat right-hand side, from the panels of a factor."""
        places = (self._starts, self._pointers, self._offsets, self._rows)
        columns = np.ascontiguousarray(v.reshape(-1, self.block))
        return fronts.substitute_blocks(*places, panels, self.structure.order, columns).reshape(-1)


class BlockFactor:
    """A Cholesky factor by fronts."""

    def __init__(self, structure: BlockFronts, panels: np.ndarray) -> None:
        self._structure, self._panels = structure, panels

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the solution for a flat right-hand side."""
        return self._structure.solve(self._panels, v)
