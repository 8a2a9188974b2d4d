"""Kernels on graph edges: ρ(X) = Σ ‖xᵢ − xⱼ‖⁴ over the edges of a graph, X of N × d; no edge becomes a row.

One thread walks the edges, each once. Several threads walk vertices instead: a vertex gathers from all of its edges, so
that no two threads write to the same place. Edge e joins ``heads[e] < tails[e]``; its image is x_head − x_tail. The
incidence lists (``indptr``, ``neighbours``, ``incident``) give each vertex its neighbours and the edges to them.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .images import gradient_weights, hessian_weights
from .jit import gather_kernel, kernel, parallel_kernel


@gather_kernel
def _differences(heads, tails, start, stop, x, out):
    d = x.shape[1]
    for e in range(start, stop):
        i = np.uintp(heads[e])
        j = np.uintp(tails[e])
        for k in range(d):
            out[(e - start) * d + k] = x[i, k] - x[j, k]


@kernel
def image(heads, tails, x):
    """Return the stacked differences x_head − x_tail."""
    out = np.empty(heads.size * x.shape[1])
    _differences(heads, tails, 0, heads.size, x, out)
    return out


@parallel_kernel
def image_parallel(heads, tails, x, bounds):
    """Return the stacked differences x_head − x_tail."""
    d = x.shape[1]
    out = np.empty(heads.size * d)
    for p in prange(bounds.size - 1):
        _differences(heads, tails, bounds[p], bounds[p + 1], x, out[bounds[p] * d : bounds[p + 1] * d])
    return out


@gather_kernel
def _scatter(heads, tails, start, stop, weights, out):
    d = out.shape[1]
    for e in range(start, stop):
        i = np.uintp(heads[e])
        j = np.uintp(tails[e])
        for k in range(d):
            w = weights[(e - start) * d + k]
            out[i, k] += w
            out[j, k] -= w


@kernel
def adjoint(heads, tails, points, d, weights):
    """Return the sum of ± weights at each vertex."""
    out = np.zeros((points, d))
    _scatter(heads, tails, 0, heads.size, weights, out)
    return out


@parallel_kernel
def adjoint_parallel(heads, indptr, neighbours, incident, d, weights, bounds):
    """Return the sum of ± weights at each vertex; each vertex gathers its own."""
    points = indptr.size - 1
    out = np.zeros((points, d))
    for p in prange(bounds.size - 1):
        for i in range(bounds[p], bounds[p + 1]):
            for a in range(indptr[i], indptr[i + 1]):
                e = incident[a]
                sign = 1.0 if heads[e] == i else -1.0
                for k in range(d):
                    out[i, k] += sign * weights[e * d + k]
    return out


#: Edges whose image and weights are formed together.
EDGES = 64


@gather_kernel
def evaluate(heads, tails, x):
    """Return ρ(X), ∇ρ(X) and the image in one pass over the edges."""
    d = x.shape[1]
    s = np.empty(heads.size * d)
    gradient = np.zeros_like(x)
    total = 0.0
    if d == 2:
        for e in range(heads.size):
            i = np.uintp(heads[e])
            j = np.uintp(tails[e])
            a = x[i, 0] - x[j, 0]
            b = x[i, 1] - x[j, 1]
            q = a * a + b * b
            total += q * q
            s[2 * e] = a
            s[2 * e + 1] = b
            w = 4.0 * q
            gradient[i, 0] += w * a
            gradient[i, 1] += w * b
            gradient[j, 0] -= w * a
            gradient[j, 1] -= w * b
        return total, gradient, s
    if d == 3:
        for e in range(heads.size):
            i = np.uintp(heads[e])
            j = np.uintp(tails[e])
            a = x[i, 0] - x[j, 0]
            b = x[i, 1] - x[j, 1]
            c = x[i, 2] - x[j, 2]
            q = a * a + b * b + c * c
            total += q * q
            s[3 * e] = a
            s[3 * e + 1] = b
            s[3 * e + 2] = c
            w = 4.0 * q
            gradient[i, 0] += w * a
            gradient[i, 1] += w * b
            gradient[i, 2] += w * c
            gradient[j, 0] -= w * a
            gradient[j, 1] -= w * b
            gradient[j, 2] -= w * c
        return total, gradient, s
    weights = np.empty(EDGES * d)
    for e in range(0, heads.size, EDGES):
        end = min(e + EDGES, heads.size)
        part = s[e * d : end * d]
        _differences(heads, tails, e, end, x, part)
        total += gradient_weights(part, d, weights)
        _scatter(heads, tails, e, end, weights, gradient)
    return total, gradient, s


@gather_kernel
def _gather_range(indptr, neighbours, incident, x, start, stop, image, gradient):
    """For each vertex of a range: its gradient, and the images of the edges it is the head of. Return their ρ."""
    d = x.shape[1]
    total = 0.0
    if d == 3:
        for i in range(start, stop):
            p, q, r = x[i, 0], x[i, 1], x[i, 2]
            u = v = w = 0.0
            for a in range(indptr[i], indptr[i + 1]):
                j = np.uintp(neighbours[a])
                f = p - x[j, 0]
                g = q - x[j, 1]
                h = r - x[j, 2]
                norm = f * f + g * g + h * h
                u += norm * f
                v += norm * g
                w += norm * h
                if j > np.uintp(i):
                    e = 3 * incident[a]
                    image[e] = f
                    image[e + 1] = g
                    image[e + 2] = h
                    total += norm * norm
            gradient[i, 0] = 4.0 * u
            gradient[i, 1] = 4.0 * v
            gradient[i, 2] = 4.0 * w
        return total
    for i in range(start, stop):
        for k in range(d):
            gradient[i, k] = 0.0
        for a in range(indptr[i], indptr[i + 1]):
            j = np.uintp(neighbours[a])
            norm = 0.0
            for k in range(d):
                f = x[i, k] - x[j, k]
                norm += f * f
            for k in range(d):
                gradient[i, k] += 4.0 * norm * (x[i, k] - x[j, k])
            if j > np.uintp(i):
                for k in range(d):
                    image[incident[a] * d + k] = x[i, k] - x[j, k]
                total += norm * norm
    return total


@parallel_kernel
def evaluate_parallel(indptr, neighbours, incident, x, bounds):
    """Return ρ(X), ∇ρ(X) and the image in one pass shared between threads."""
    s = np.empty(neighbours.size // 2 * x.shape[1])
    gradient = np.empty_like(x)
    totals = np.zeros(bounds.size - 1)
    for p in prange(bounds.size - 1):
        totals[p] = _gather_range(indptr, neighbours, incident, x, bounds[p], bounds[p + 1], s, gradient)
    total = 0.0
    for p in range(totals.size):
        total += totals[p]
    return total, gradient, s


@gather_kernel
def hessian_product(heads, tails, x, v):
    """Return ρ''(X)V in one pass over the edges."""
    d = x.shape[1]
    product = np.zeros_like(x)
    if d == 2:
        for e in range(heads.size):
            i = np.uintp(heads[e])
            j = np.uintp(tails[e])
            s0 = x[i, 0] - x[j, 0]
            s1 = x[i, 1] - x[j, 1]
            t0 = v[i, 0] - v[j, 0]
            t1 = v[i, 1] - v[j, 1]
            q = 4.0 * (s0 * s0 + s1 * s1)
            b = 8.0 * (s0 * t0 + s1 * t1)
            w0 = q * t0 + b * s0
            w1 = q * t1 + b * s1
            product[i, 0] += w0
            product[i, 1] += w1
            product[j, 0] -= w0
            product[j, 1] -= w1
        return product
    if d == 3:
        for e in range(heads.size):
            i = np.uintp(heads[e])
            j = np.uintp(tails[e])
            s0 = x[i, 0] - x[j, 0]
            s1 = x[i, 1] - x[j, 1]
            s2 = x[i, 2] - x[j, 2]
            t0 = v[i, 0] - v[j, 0]
            t1 = v[i, 1] - v[j, 1]
            t2 = v[i, 2] - v[j, 2]
            q = 4.0 * (s0 * s0 + s1 * s1 + s2 * s2)
            b = 8.0 * (s0 * t0 + s1 * t1 + s2 * t2)
            w0 = q * t0 + b * s0
            w1 = q * t1 + b * s1
            w2 = q * t2 + b * s2
            product[i, 0] += w0
            product[i, 1] += w1
            product[i, 2] += w2
            product[j, 0] -= w0
            product[j, 1] -= w1
            product[j, 2] -= w2
        return product
    s = np.empty(EDGES * d)
    t = np.empty(EDGES * d)
    weights = np.empty(EDGES * d)
    for e in range(0, heads.size, EDGES):
        end = min(e + EDGES, heads.size)
        size = (end - e) * d
        _differences(heads, tails, e, end, x, s)
        _differences(heads, tails, e, end, v, t)
        hessian_weights(s[:size], t[:size], d, weights)
        _scatter(heads, tails, e, end, weights, product)
    return product


@gather_kernel
def _hessian_gather_range(indptr, neighbours, x, v, start, stop, product):
    """For each vertex of a range: its part of ρ''(X)V."""
    d = x.shape[1]
    if d == 3:
        for i in range(start, stop):
            x0, x1, x2 = x[i, 0], x[i, 1], x[i, 2]
            v0, v1, v2 = v[i, 0], v[i, 1], v[i, 2]
            sum0 = sum1 = sum2 = 0.0
            for a in range(indptr[i], indptr[i + 1]):
                j = np.uintp(neighbours[a])
                s0 = x0 - x[j, 0]
                s1 = x1 - x[j, 1]
                s2 = x2 - x[j, 2]
                t0 = v0 - v[j, 0]
                t1 = v1 - v[j, 1]
                t2 = v2 - v[j, 2]
                q = s0 * s0 + s1 * s1 + s2 * s2
                b = 2.0 * (s0 * t0 + s1 * t1 + s2 * t2)
                sum0 += q * t0 + b * s0
                sum1 += q * t1 + b * s1
                sum2 += q * t2 + b * s2
            product[i, 0] = 4.0 * sum0
            product[i, 1] = 4.0 * sum1
            product[i, 2] = 4.0 * sum2
        return
    for i in range(start, stop):
        for k in range(d):
            product[i, k] = 0.0
        for a in range(indptr[i], indptr[i + 1]):
            j = np.uintp(neighbours[a])
            q = 0.0
            b = 0.0
            for k in range(d):
                s = x[i, k] - x[j, k]
                q += s * s
                b += s * (v[i, k] - v[j, k])
            for k in range(d):
                product[i, k] += 4.0 * q * (v[i, k] - v[j, k]) + 8.0 * b * (x[i, k] - x[j, k])


@parallel_kernel
def hessian_product_parallel(indptr, neighbours, x, v, bounds):
    """Return ρ''(X)V in one pass shared between threads; each vertex gathers its own."""
    product = np.empty_like(x)
    for p in prange(bounds.size - 1):
        _hessian_gather_range(indptr, neighbours, x, v, bounds[p], bounds[p + 1], product)
    return product


@gather_kernel
def cut_vertices(indptr, neighbours):
    """Return whether each vertex is one whose removal leaves others apart (Hopcroft and Tarjan), without recursion."""
    points = indptr.size - 1
    found, cut = np.full(points, -1), np.zeros(points, np.bool_)
    lowest, parent, following = np.empty(points, np.int64), np.full(points, -1), indptr[:-1].copy()
    path = np.empty(points, np.int64)
    count = 0
    for root in range(points):
        if found[root] >= 0:
            continue
        path[0], depth, branches = root, 1, 0
        found[root] = lowest[root] = count
        count += 1
        while depth:
            i = path[depth - 1]
            if following[i] < indptr[i + 1]:
                j = neighbours[following[i]]
                following[i] += 1
                if found[j] < 0:
                    parent[j] = i
                    found[j] = lowest[j] = count
                    count += 1
                    path[depth] = j
                    depth += 1
                elif j != parent[i]:
                    lowest[i] = min(lowest[i], found[j])
                continue
            depth -= 1
            above = parent[i]
            if above >= 0:
                lowest[above] = min(lowest[above], lowest[i])
                if above == root:
                    branches += 1
                elif lowest[i] >= found[above]:
                    cut[above] = True
        cut[root] = branches > 1
    return cut
