"""Kernels of a sparse Cholesky factor by fronts: elimination tree, structure, factor, substitution, selected inverse.

Vertices are numbered in order of elimination, every subtree of the elimination tree a range. A front is a range of
pivots that are eliminated together, and its boundary: the later vertices that they are joined to by then. Its panel
holds the columns of L as rows, over pivots and boundary, with the reciprocal on the diagonal. The last vertex is
grounded: it has no pivot.
"""

from __future__ import annotations

import numpy as np

from .jit import gather_kernel, kernel

#: Pivots that loops eliminate before BLAS takes what they do to the rest: flat between 24 and 64, N = 5000 and 20 000.
BLOCK = 48

#: Multiplications below which loops take less time than a call of BLAS.
FEW = 4000


@gather_kernel
def widest_level(indptr, indices):
    """Return how many vertices the largest level of a breadth-first search has, over all components."""
    level = np.full(indptr.size - 1, -1)
    queue, stop, widest = np.empty_like(level), 0, 0
    for root in range(level.size):
        if level[root] >= 0:
            continue
        first = start = stop
        level[root], queue[stop] = 0, root
        stop += 1
        while start < stop:
            i = queue[start]
            if level[i] != level[queue[first]]:
                widest, first = max(widest, start - first), start
            start += 1
            for a in range(indptr[i], indptr[i + 1]):
                j = indices[a]
                if level[j] < 0:
                    level[j], queue[stop] = level[i] + 1, j
                    stop += 1
        widest = max(widest, stop - first)
    return widest


@gather_kernel
def elimination_tree(indptr, indices):
    """Return the parent of each vertex in the elimination tree of a symmetric pattern (Liu), −1 at a root."""
    parent = np.full(indptr.size - 1, -1)
    ancestor = parent.copy()
    for i in range(parent.size):
        for a in range(indptr[i], indptr[i + 1]):
            j = indices[a]
            while j != -1 and j < i:
                above = ancestor[j]
                ancestor[j] = i
                if above == -1:
                    parent[j] = i
                j = above
    return parent


@gather_kernel
def postorder(parent):
    """Return the vertices of a forest, children before parents and every subtree in one range."""
    first = np.full(parent.size, -1)
    following = first.copy()
    for j in range(parent.size - 1, -1, -1):
        if parent[j] >= 0:
            following[j] = first[parent[j]]
            first[parent[j]] = j
    order, path, done = np.empty_like(parent), np.empty_like(parent), 0
    for root in range(parent.size):
        if parent[root] >= 0:
            continue
        path[0], depth = root, 1
        while depth:
            j = path[depth - 1]
            child = first[j]
            if child == -1:
                order[done] = j
                done += 1
                depth -= 1
            else:
                first[j] = following[child]
                path[depth] = child
                depth += 1
    return order


@gather_kernel
def column_counts(indptr, indices, parent):
    """Return the entries of each column of L, its diagonal included, by walks up the tree: no fill is stored."""
    counts = np.ones_like(parent)
    seen = np.arange(parent.size)
    for i in range(parent.size):
        for a in range(indptr[i], indptr[i + 1]):
            j = indices[a]
            while j < i and seen[j] != i:
                seen[j] = i
                counts[j] += 1
                j = parent[j]
    return counts


@gather_kernel
def amalgamate(parent, counts, small, zeros):
    """Return where each front starts, and where the last one ends; every vertex but the last is a pivot.

    Columns of one pattern make a front. A front joins its parent's where they have no more than ``small`` pivots
    together, or no more than a share ``zeros`` of their panel is zero.
    """
    pivots = parent.size - 1
    starts, empty = np.empty(parent.size, dtype=np.int64), np.empty(parent.size, dtype=np.int64)
    depth = 0
    for j in range(pivots):
        start, none = j, 0
        while depth and start <= parent[start - 1] <= j:
            child = starts[depth - 1]
            size = j - child + counts[j]
            joint = none + empty[depth - 1] + (start - child) * (size - (start - child) - counts[start - 1] + 1)
            if j - child >= small and joint > zeros * (j - child + 1) * size:
                break
            start, none = child, joint
            depth -= 1
        starts[depth], empty[depth] = start, none
        depth += 1
    starts[depth] = pivots
    return starts[: depth + 1].copy()


@gather_kernel
def structure(starts, pointers, indptr, later):
    """Return the boundaries of the fronts, and where everything goes.

    Parameters
    ----------
    starts, pointers : arrays of shape (fronts + 1,)
        Where the pivots and the boundary of each front start.
    indptr, later : arrays
        The neighbours of each vertex that come after it.

    Returns
    -------
    rows : array
        The boundaries, one after another, each in order.
    parents : array of shape (fronts,)
        The front in which the first vertex of the boundary is eliminated; −1 where that is the grounded vertex.
    relative : array
        The place of each of ``rows`` in the front above.
    spots : array
        The place of each of ``later`` in the front of the earlier vertex.
    """
    fronts, points = starts.size - 1, indptr.size - 1
    rows, relative = np.empty(pointers[-1], dtype=np.int64), np.zeros(pointers[-1], dtype=np.int64)
    parents, spots = np.full(fronts, -1), np.empty(later.size, dtype=np.int64)
    seen, spot = np.full(points, -1), np.empty(points, dtype=np.int64)
    waiting, depth = np.empty(fronts, dtype=np.int64), 0
    for f in range(fronts):
        start, stop, end = starts[f], starts[f + 1], pointers[f]
        for j in range(start, stop):
            seen[j], spot[j] = f, j - start
        for a in range(indptr[start], indptr[stop]):
            if seen[later[a]] != f:
                seen[later[a]], rows[end] = f, later[a]
                end += 1
        above = depth
        while depth and rows[pointers[waiting[depth - 1]]] < stop:
            depth -= 1
            child = waiting[depth]
            parents[child] = f
            for a in range(pointers[child], pointers[child + 1]):
                if seen[rows[a]] != f:
                    seen[rows[a]], rows[end] = f, rows[a]
                    end += 1
        rows[pointers[f] : end].sort()
        for a in range(pointers[f], end):
            spot[rows[a]] = stop - start + a - pointers[f]
        for a in range(indptr[start], indptr[stop]):
            spots[a] = spot[later[a]]
        for child in waiting[depth:above]:
            for a in range(pointers[child], pointers[child + 1]):
                relative[a] = spot[rows[a]]
        waiting[depth] = f
        depth += 1
    return rows, parents, relative, spots


@kernel
def _copy(row, out):
    for c in range(row.size):
        out[c] = row[c]


@kernel
def _subtract(row, times, out):
    for c in range(out.size):
        out[c] -= times * row[c]


@kernel
def _subtract_product(left, right, out):
    """Subtract leftᵀ·right; BLAS takes contiguous arrays."""
    product = np.dot(np.ascontiguousarray(left).T, np.ascontiguousarray(right))
    for i in range(len(out)):
        _subtract(product[i], 1.0, out[i])


@kernel
def _eliminate(panel, schur):
    """Eliminate the pivots of a panel in place, subtract what they leave; return whether all were positive."""
    pivots, boundary = len(panel), len(schur)
    for start in range(0, pivots, BLOCK):
        stop = min(start + BLOCK, pivots)
        if start > 0:
            _subtract_product(panel[:start, start:stop], panel[:start, start:], panel[start:stop, start:])
        for j in range(start, stop):
            if not panel[j, j] > 0.0:
                return False
            scale = 1.0 / np.sqrt(panel[j, j])
            row = panel[j, j:]
            for c in range(row.size):
                row[c] *= scale
            for i in range(1, stop - j):
                _subtract(row[i:], row[i], panel[j + i, j + i :])
    for j in range(pivots):
        panel[j, j] = 1.0 / panel[j, j]
    if pivots * boundary * boundary < FEW:
        for j in range(pivots):
            row = panel[j, pivots:]
            for i in range(boundary):
                _subtract(row[i:], row[i], schur[i, i:])
        return True
    step = max(256, -(-boundary // 4))  # in strips, as BLAS would compute both halves of a symmetric product
    for start in range(0, boundary, step):
        right, stop = panel[:, pivots + start :], min(start + step, boundary)
        _subtract_product(right[:, : stop - start], right, schur[start:stop, start:])
    return True


@kernel
def factor(starts, pointers, offsets, parents, relative, indptr, spots, edges, diagonal, blocks):
    """Return whether a matrix of d × d blocks is positive definite to rounding, and the panels of its Cholesky factor.

    The multifrontal method (Duff, Reid): what a front leaves to its boundary waits on a stack for the front above.
    ``offsets`` says where panels start, ``edges`` which edge leads to each later neighbour. ``diagonal`` has a block
    for each vertex, ``blocks`` one for each edge, less which the two blocks off the diagonal are. Fronts are counted in
    rows of the matrix; ``indptr`` and ``spots`` in vertices.
    """
    d = diagonal.shape[1]
    panels = np.zeros(offsets[-1])
    waiting, left = [0], [np.empty((0, 0))]  # their first entries give the lists their types
    for f in range(starts.size - 1):
        pivots, boundary = starts[f + 1] - starts[f], pointers[f + 1] - pointers[f]
        panel = panels[offsets[f] : offsets[f + 1]].reshape(pivots, pivots + boundary)
        schur = np.zeros((boundary, boundary))
        for i in range(pivots):
            j, k = (starts[f] + i) // d, i % d
            for c in range(k, d):
                panel[i, i - k + c] = diagonal[j, k, c]
            for a in range(indptr[j], indptr[j + 1]):
                for c in range(d):
                    panel[i, d * spots[a] + c] -= blocks[edges[a], k, c]
        while len(left) > 1 and parents[waiting[-1]] == f:
            child, rest = waiting.pop(), left.pop()
            places = relative[pointers[child] : pointers[child + 1]]
            for i in range(places.size):
                row = rest[i]
                if places[i] < pivots:
                    target, shift = panel[places[i]], 0
                else:
                    target, shift = schur[places[i] - pivots], pivots
                for c in range(i, places.size):
                    target[places[c] - shift] += row[c]
        if not _eliminate(panel, schur):
            return False, panels
        if parents[f] >= 0:
            waiting.append(f)
            left.append(schur)
    return True, panels


@kernel
def _forward(panel, y):
    """Solve with the corner of a panel and subtract from the boundary, four columns of L at a time."""
    pivots = len(panel)
    for start in range(0, pivots, 4):
        stop = min(start + 4, pivots)
        for j in range(start, stop):
            y[j] *= panel[j, j]
            for i in range(j + 1, stop):
                y[i] -= y[j] * panel[j, i]
        rest = y[stop:]
        if stop < start + 4:
            for j in range(start, stop):
                _subtract(panel[j, stop:], y[j], rest)
            continue
        a, b, c, d = y[start], y[start + 1], y[start + 2], y[start + 3]
        p, q, r, s = panel[start, stop:], panel[start + 1, stop:], panel[start + 2, stop:], panel[start + 3, stop:]
        for i in range(rest.size):
            rest[i] -= a * p[i] + b * q[i] + c * r[i] + d * s[i]


@kernel
def _backward(panel, y):
    """Solve with the transpose of the corner for what the boundary leaves, four columns of L at a time."""
    pivots = len(panel)
    for start in range((pivots - 1) // 4 * 4, -1, -4):
        stop = min(start + 4, pivots)
        rest = y[stop:]
        if stop < start + 4:
            for j in range(start, stop):
                row = panel[j, stop:]
                for i in range(rest.size):
                    y[j] -= row[i] * rest[i]
        else:
            p, q, r, s = panel[start, stop:], panel[start + 1, stop:], panel[start + 2, stop:], panel[start + 3, stop:]
            a = b = c = d = 0.0
            for i in range(rest.size):
                a += p[i] * rest[i]
                b += q[i] * rest[i]
                c += r[i] * rest[i]
                d += s[i] * rest[i]
            y[start] -= a
            y[start + 1] -= b
            y[start + 2] -= c
            y[start + 3] -= d
        for j in range(stop - 1, start - 1, -1):
            for i in range(j + 1, stop):
                y[j] -= panel[j, i] * y[i]
            y[j] *= panel[j, j]


@kernel
def _gather(x, own, later, y):
    _copy(own, y)
    boundary = y[own.size :]
    for i in range(later.size):
        boundary[i] = x[np.uintp(later[i])]


@kernel
def _substitute(starts, pointers, offsets, rows, panels, x):
    """Solve LLᵀX = X in place, one right-hand side a row; what is no pivot is zero."""
    columns, size = x.shape
    work = np.empty(size)
    for f in range(starts.size - 1):
        later, pivots = rows[pointers[f] : pointers[f + 1]], starts[f + 1] - starts[f]
        y = work[: pivots + later.size]
        panel = panels[offsets[f] : offsets[f + 1]].reshape(pivots, y.size)
        for k in range(columns):
            own = x[k, starts[f] : starts[f + 1]]
            _gather(x[k], own, later, y)
            _forward(panel, y)
            _copy(y[:pivots], own)
            for i in range(later.size):
                x[k, np.uintp(later[i])] = y[pivots + i]
    for k in range(columns):
        x[k, starts[-1] :] = 0.0
    for f in range(starts.size - 2, -1, -1):
        later, pivots = rows[pointers[f] : pointers[f + 1]], starts[f + 1] - starts[f]
        y = work[: pivots + later.size]
        panel = panels[offsets[f] : offsets[f + 1]].reshape(pivots, y.size)
        for k in range(columns):
            own = x[k, starts[f] : starts[f + 1]]
            _gather(x[k], own, later, y)
            _backward(panel, y)
            _copy(y[:pivots], own)


@kernel
def substitute(starts, pointers, offsets, rows, panels, order, v):
    """Return the centred X with LLᵀX = V for the vertices in ``order``, V of shape (vertices, columns)."""
    points, columns = v.shape
    x = np.empty((columns, points))
    for i in range(points):
        for k in range(columns):
            x[k, i] = v[order[i], k]
    _substitute(starts, pointers, offsets, rows, panels, x)
    out = np.empty_like(v)
    for k in range(columns):
        mean = x[k].sum() / points
        for i in range(points):
            out[order[i], k] = x[k, i] - mean
    return out


@kernel
def substitute_blocks(starts, pointers, offsets, rows, panels, order, v):
    """Return X with LLᵀX = V for the vertices in ``order``, V of shape (vertices, d): one right-hand side."""
    points, d = v.shape
    x = np.empty((1, points * d))
    for i in range(points):
        for k in range(d):
            x[0, i * d + k] = v[order[i], k]
    _substitute(starts, pointers, offsets, rows, panels, x)
    out = np.empty_like(v)
    for i in range(points):
        for k in range(d):
            out[order[i], k] = x[0, i * d + k]
    return out


@kernel
def _invert(panel, z):
    """Write the inverse on the pivots of a front, where that on its boundary is known.

    By blocks of pivots from the last: with LLᵀ their corner and M = L₂₁L⁻¹, Z₂₁ = −Z₂₂M and Z₁₁ = (LLᵀ)⁻¹ − MᵀZ₂₁.
    """
    pivots, size = panel.shape
    for stop in range(pivots, 0, -BLOCK):
        start = max(stop - BLOCK, 0)
        width, rest = stop - start, size - stop
        corner = panel[start:stop, start:stop]
        both = np.zeros((width, width + rest))  # L⁻ᵀ(L⁻¹, L₂₁ᵀ); L⁻¹ first
        for i in range(width):
            row = both[i, : i + 1]
            row[i] = 1.0
            for j in range(i):
                _subtract(both[j, : j + 1], corner[j, i], row[: j + 1])
            for c in range(i + 1):
                row[c] *= corner[i, i]
            _copy(panel[start + i, stop:], both[i, width:])
        for j in range(width - 1, -1, -1):
            row = both[j]
            for i in range(j + 1, width):
                _subtract(both[i], corner[j, i], row)
            for c in range(row.size):
                row[c] *= corner[j, j]
        ratio = np.ascontiguousarray(both[:, width:])
        # Whole rows of z, as BLAS takes contiguous arrays and a copy would take longer than the columns too many.
        across = np.ascontiguousarray(np.dot(ratio, z[stop:])[:, stop:])
        within = np.dot(across, ratio.T)
        for i in range(width):
            for c in range(width):
                z[start + i, start + c] = both[i, c] + within[i, c]
            for c in range(rest):
                z[start + i, stop + c] = -across[i, c]
        for c in range(rest):
            for i in range(width):
                z[stop + c, start + i] = -across[i, c]


@kernel
def resistances(starts, pointers, offsets, parents, relative, indptr, spots, edges, panels):
    """Return the resistance of every edge, how much was lost to cancellation, and the trace of the inverse.

    From the root down, the inverse on a front follows from its entries on the front above (Takahashi, Fagan, Chen).
    A resistance is the difference of such entries; the loss is the largest ratio of the entries to the difference.
    """
    out = np.empty(edges.size)
    cancellation, trace = 1.0, 0.0
    path, inverses = [-1], [np.zeros((1, 1))]  # that of the grounded vertex is zero
    for f in range(starts.size - 2, -1, -1):
        pivots, boundary = starts[f + 1] - starts[f], pointers[f + 1] - pointers[f]
        while path[-1] != parents[f]:
            path.pop()
            inverses.pop()
        above, places = inverses[-1], relative[pointers[f] : pointers[f + 1]]
        z = np.zeros((pivots + boundary, pivots + boundary))
        for i in range(boundary):
            for c in range(boundary):
                z[pivots + i, pivots + c] = above[places[i], places[c]]
        _invert(panels[offsets[f] : offsets[f + 1]].reshape(pivots, pivots + boundary), z)
        path.append(f)
        inverses.append(z)
        for i in range(pivots):
            trace += z[i, i]
            for a in range(indptr[starts[f] + i], indptr[starts[f] + i + 1]):
                ends = z[i, i] + z[spots[a], spots[a]]
                value = ends - 2.0 * z[i, spots[a]]
                out[edges[a]] = value
                cancellation = max(cancellation, ends / value if value > 0.0 else np.inf)
    return out, cancellation, trace
