"""Kernels for second derivatives of a function of the differences along the edges of a graph: a band, or blocks."""

from __future__ import annotations

import numpy as np

from .jit import gather_kernel


@gather_kernel
def add_edges(heads, tails, s, alpha, beta, places, band):
    """Add Σ (eᵢ−eⱼ)(eᵢ−eⱼ)ᵀ ⊗ (αI + βssᵀ) to the lower band, ``band[row − column, column]``.

    Vertex v has the coordinates ``places[v]·d`` and following; s is the stacked image, d entries an edge.
    """
    d = s.size // heads.size
    for e in range(heads.size):
        first = places[heads[e]]
        second = places[tails[e]]
        if first > second:
            first, second = second, first
        low = first * d
        high = second * d
        for k in range(d):
            w = beta[e] * s[e * d + k]
            for j in range(d):
                entry = w * s[e * d + j]
                if j == k:
                    entry += alpha[e]
                band[high + k - low - j, low + j] -= entry
                if k >= j:
                    band[k - j, low + j] += entry
                    band[k - j, high + j] += entry


@gather_kernel
def edge_blocks(heads, tails, s, alpha, beta, points):
    """Return the block αI + βssᵀ of every edge, and the sum of those at every vertex."""
    d = s.size // heads.size
    blocks, sums = np.empty((heads.size, d, d)), np.zeros((points, d, d))
    for e in range(heads.size):
        for k in range(d):
            w = beta[e] * s[e * d + k]
            for j in range(d):
                entry = w * s[e * d + j]
                if j == k:
                    entry += alpha[e]
                blocks[e, k, j] = entry
                sums[heads[e], k, j] += entry
                sums[tails[e], k, j] += entry
    return blocks, sums
