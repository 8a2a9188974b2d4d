"""The kernels once each, on tiny arrays: run compiled and interpreted, in one thread and in two, again and again."""

import numpy as np
import scipy.sparse as sp

from quartbench.forms import GraphForm
from quartbench.kernels import fronts, gram, graph, images, projections, rows, sparse, warmup
from quartbench.kernels.jit import shares
from quartbench.linalg.dissection import Dissection

MODULES = (fronts, gram, graph, images, projections, rows, sparse)


def tour(parts=2):
    """Return the results of the kernels, and of everything in the warm-up, as {name: tuple of arrays}."""
    rng = np.random.default_rng(7)
    results = {}

    def call(kernel, *arguments):
        result = kernel(*arguments)
        module = next(module for module in MODULES if getattr(module, kernel.__name__, None) is kernel)
        name = f"{module.__name__.rpartition('.')[2]}.{kernel.__name__}"
        results[name] = result if isinstance(result, tuple) else (result,)
        return result

    rank, terms, n = 3, 7, 10
    dense = rng.standard_normal((terms * rank, n))
    x, v = rng.standard_normal((2, n))
    w = rng.standard_normal(terms * rank)
    by_term, by_row = shares(terms, parts), shares(terms * rank, parts)
    image = call(rows.image, dense, x)
    call(rows.image_parallel, dense, x, by_row)
    call(rows.adjoint, dense, w)
    call(rows.adjoint_parallel, dense, w, by_row)
    call(rows.column_squares, dense, w)
    call(rows.column_squares_parallel, dense, w, by_row)
    call(rows.evaluate, dense, rank, x)
    call(rows.evaluate_parallel, dense, rank, x, by_term)
    call(rows.hessian_product, dense, rank, x, image, True, v)
    call(rows.hessian_product_parallel, dense, rank, x, image, True, v, by_term)
    call(rows.sum_parallel, dense, by_row)
    scaled = np.empty_like(dense), np.empty_like(dense, dtype=np.float32)
    rows.scale(dense, w, scaled[0])
    rows.scale_parallel(dense, w, scaled[1], by_row)
    results["written by scale"] = scaled

    pairs = 2 * terms
    complex_image = call(rows.image_complex, dense[:terms], x)
    call(rows.image_complex_parallel, dense[:terms], x, by_term)
    call(rows.adjoint_complex, dense[:terms], w[:pairs])
    call(rows.adjoint_complex_parallel, dense[:terms], w[:pairs], by_term)
    call(rows.evaluate_complex, dense[:terms], x)
    call(rows.evaluate_complex_parallel, dense[:terms], x, by_term)
    call(rows.hessian_product_complex, dense[:terms], x, complex_image, True, v)
    call(rows.hessian_product_complex_parallel, dense[:terms], x, complex_image, True, v, by_term)

    matrix = sp.csr_matrix(np.where(rng.random(dense.shape) < 0.4, dense, 0.0))
    csr = matrix.data, matrix.indices, matrix.indptr
    sparse_image = call(sparse.image, *csr, x)
    call(sparse.image_parallel, *csr, x, by_term * rank)
    call(sparse.adjoint, *csr, n, w)
    call(sparse.adjoint_parallel, *csr, n, w, by_term * rank)
    call(sparse.column_squares, *csr, n, w)
    call(sparse.column_squares_parallel, *csr, n, w, by_term * rank)
    call(sparse.evaluate, *csr, n, rank, x)
    call(sparse.evaluate_parallel, *csr, n, rank, x, by_term)
    call(sparse.hessian_product, *csr, n, rank, x, sparse_image, True, v)
    call(sparse.hessian_product_parallel, *csr, n, rank, x, sparse_image, True, v, by_term)

    form = GraphForm(6, 3, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 3), (1, 5)])
    points, step = rng.standard_normal((2, 6, 3))
    by_vertex, by_edge = shares(6, parts), shares(form.terms, parts)
    indptr, neighbours, incident = form._incidence
    call(graph.image, form.heads, form.tails, points)
    call(graph.image_parallel, form.heads, form.tails, points, by_edge)
    call(graph.adjoint, form.heads, form.tails, 6, 3, w)
    call(graph.adjoint_parallel, form.heads, indptr, neighbours, incident, 3, w, by_vertex)
    call(graph.evaluate, form.heads, form.tails, points)
    call(graph.evaluate_parallel, indptr, neighbours, incident, points, by_vertex)
    call(graph.hessian_product, form.heads, form.tails, points, step)
    call(graph.hessian_product_parallel, indptr, neighbours, points, step, by_vertex)

    joined = [(i, j) for i in range(60) for j in range(i + 1, 60) if (i * j) % 7 == 1 or j == i + 1]
    joint = Dissection(60, np.array(joined))
    adjacency = sp.csr_matrix((np.ones(len(joint.edges)), joint.edges.T), shape=(60, 60))
    pattern = (adjacency + adjacency.T)[joint.order][:, joint.order]
    pattern = pattern.indptr.astype(np.int64), pattern.indices.astype(np.int64)
    call(fronts.widest_level, *pattern)
    parent = call(fronts.elimination_tree, *pattern)
    call(fronts.postorder, parent)
    counts = call(fronts.column_counts, *pattern, parent)
    call(fronts.amalgamate, parent, counts, 2, 0.1)
    later = np.argsort(joint.order)[joint.edges].max(axis=1)[joint.links]
    call(fronts.structure, joint.starts, joint.pointers, joint.indptr, later)
    ranges = joint.starts, joint.pointers, joint.offsets
    places = *ranges, joint.parents, joint.relative, joint.indptr, joint.spots, joint.links
    weights = rng.uniform(0.5, 2.0, len(joint.edges))
    degrees = np.bincount(joint.edges.ravel(), np.repeat(weights, 2))[joint.order]
    panels = call(fronts.factor, *places, degrees.reshape(-1, 1, 1), weights.reshape(-1, 1, 1))[1]
    call(fronts.substitute, *ranges, joint.rows, panels, joint.order, rng.standard_normal((60, 2)))
    call(fronts.resistances, *places, panels)

    call(gram.value, points)
    call(gram.evaluate, points)
    call(gram.hessian_product, points, step)
    call(gram.line, points, step)

    call(images.value, w, rank)
    written = {name: np.empty_like(image) for name in ("gradient_weights", "hessian_weights", "behind", "line_behind")}
    call(images.gradient_weights, image, rank, written["gradient_weights"])
    images.hessian_weights(image, w, rank, written["hessian_weights"])
    images.behind(image, w, 0.5, written["behind"])
    call(images.line_behind, w, image, w**2, 0.5, rank, written["line_behind"])
    results |= {f"written by {name}": (array,) for name, array in written.items()}
    call(images.line, image, w, rank)
    call(images.dual_value, w, rank)
    call(images.square_norms, w, rank)

    call(projections.orthant_slice, x, v, np.exp(w[:n]))
    call(projections.second_order, x)
    call(projections.centred, points.reshape(-1), np.exp(points))
    call(projections.second_order_slice, x, v + n * np.eye(n)[0])

    for name, task in warmup.tasks():
        result = task()
        if result is not None:
            results[f"warm-up: {name}"] = result if isinstance(result, tuple) else (result,)
    return results
