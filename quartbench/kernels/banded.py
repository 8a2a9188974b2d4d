"""Kernels for banded matrices: the second derivatives of a function of the differences along the edges of a graph."""

from __future__ import annotations

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
