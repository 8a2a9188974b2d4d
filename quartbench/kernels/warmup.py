"""Compile every kernel for the types it meets in use, so that no run waits for the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from . import (
    banded,
    coordinates,
    exact,
    factors,
    fronts,
    gram,
    graph,
    images,
    misfit,
    newton,
    panels,
    projections,
    quasi,
    rows,
    sparse,
    steps,
)
from .jit import LAYER, shares

Task = tuple[str, Callable[[], object]]


def tasks() -> list[Task]:
    """Return (name, call) for every kernel and argument type, on arrays of a few numbers."""
    found = [*_images(), *_rows(), *_complex(), *_sparse(), *_graph(), *_fronts(), *_gram(), *_projections(), *_steps()]
    found += [*_exact(), *_panels(), *_newton(), *_misfit()]
    return found if LAYER is not None else [task for task in found if "_parallel" not in task[0]]


def _task(function: Callable, *arguments: object, of: str = "") -> Task:
    module = function.__module__.rsplit(".", 1)[-1]
    return f"{module}.{function.__name__}{of and f' ({of})'}", lambda: function(*arguments)


def _images() -> Iterator[Task]:
    s = np.ones(4)
    yield _task(images.value, s, 2)
    yield _task(images.gradient_weights, s, 2, s.copy())
    yield _task(images.hessian_weights, s, s, 2, s.copy())
    yield _task(images.line, s, s, 2)
    yield _task(images.behind, s, s, 0.5, s.copy())
    yield _task(images.line_behind, s, s, s, 0.5, 2, s.copy())
    yield _task(images.dual_value, s, 2)
    yield _task(images.square_norms, s, 2)


def _rows() -> Iterator[Task]:
    x, bounds = np.ones(3), shares(2, 2)
    for dtype in (np.float64, np.float32):
        a, s, of = np.ones((4, 3), dtype=dtype), np.ones(4), np.dtype(dtype).name
        yield _task(rows.image, a, x, of=of)
        yield _task(rows.image_parallel, a, x, 2 * bounds, of=of)
        yield _task(rows.adjoint, a, s, of=of)
        yield _task(rows.adjoint_parallel, a, s, 2 * bounds, of=of)
        yield _task(rows.evaluate, a, 2, x, of=of)
        yield _task(rows.evaluate_parallel, a, 2, x, bounds, of=of)
        yield _task(rows.hessian_product, a, 2, x, s, False, x, of=of)
        yield _task(rows.hessian_product_parallel, a, 2, x, s, False, x, bounds, of=of)
        yield _task(rows.column_squares, a, s, of=of)
        yield _task(rows.column_squares_parallel, a, s, 2 * bounds, of=of)
        for other in (np.float64, np.float32):
            out, of = np.empty((4, 3), dtype=other), f"{np.dtype(dtype).name} to {np.dtype(other).name}"
            yield _task(rows.scale, a, s, out, of=of)
            yield _task(rows.scale_parallel, a, s, out, 2 * bounds, of=of)
    yield _task(rows.sum_parallel, np.ones((4, 3)), 2 * bounds)


def _complex() -> Iterator[Task]:
    a, x, s, bounds = np.ones((2, 4)), np.ones(4), np.ones(4), shares(2, 2)
    yield _task(rows.image_complex, a, x)
    yield _task(rows.image_complex_parallel, a, x, bounds)
    yield _task(rows.adjoint_complex, a, s)
    yield _task(rows.adjoint_complex_parallel, a, s, bounds)
    yield _task(rows.evaluate_complex, a, x)
    yield _task(rows.evaluate_complex_parallel, a, x, bounds)
    yield _task(rows.hessian_product_complex, a, x, s, False, x)
    yield _task(rows.hessian_product_complex_parallel, a, x, s, False, x, bounds)


def _sparse() -> Iterator[Task]:
    matrix, x, s, bounds = sp.csr_matrix(np.ones((4, 3))), np.ones(3), np.ones(4), shares(2, 2)
    csr = (matrix.data, matrix.indices, matrix.indptr)
    yield _task(sparse.image, *csr, x)
    yield _task(sparse.image_parallel, *csr, x, 2 * bounds)
    yield _task(sparse.adjoint, *csr, 3, s)
    yield _task(sparse.adjoint_parallel, *csr, 3, s, 2 * bounds)
    yield _task(sparse.column_squares, *csr, 3, s)
    yield _task(sparse.column_squares_parallel, *csr, 3, s, 2 * bounds)
    for dtype in (np.float32, np.float64):
        pairs = (matrix.data.astype(dtype), matrix.indices, matrix.indptr, np.zeros((3, 3), dtype=dtype))
        yield _task(sparse.add_pairs, *pairs, of=np.dtype(dtype).name)
    yield _task(sparse.evaluate, *csr, 3, 2, x)
    yield _task(sparse.evaluate_parallel, *csr, 3, 2, x, bounds)
    yield _task(sparse.hessian_product, *csr, 3, 2, x, s, False, x)
    yield _task(sparse.hessian_product_parallel, *csr, 3, 2, x, s, False, x, bounds)


def _graph() -> Iterator[Task]:
    heads, tails = np.array([0, 1]), np.array([1, 2])
    lists = (np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.array([0, 0, 1, 1]))
    x, s, bounds = np.ones((3, 3)), np.ones(6), shares(2, 2)
    yield _task(graph.cut_vertices, *lists[:2])
    yield _task(graph.image, heads, tails, x)
    yield _task(graph.image_parallel, heads, tails, x, bounds)
    yield _task(graph.adjoint, heads, tails, 3, 3, s)
    yield _task(graph.adjoint_parallel, heads, *lists, 3, s, shares(3, 2))
    yield _task(graph.evaluate, heads, tails, x)
    yield _task(graph.evaluate_parallel, *lists, x, shares(3, 2))
    yield _task(graph.hessian_product, heads, tails, x, x)
    yield _task(graph.hessian_product_parallel, lists[0], lists[1], x, x, shares(3, 2))


def _misfit() -> Iterator[Task]:
    s, d, pairs, point = np.ones(4), np.ones(2), np.ones((2, 4)), np.ones(4)
    yield _task(misfit.gradient_weights, s, 2, d, d, s.copy())
    yield _task(misfit.product_weights, s, s, 2, d, d, s.copy())
    yield _task(misfit.line, s, s, 2, d, d)
    yield _task(misfit.line_to, s, s, 2, d, d)
    yield _task(misfit.evaluate_complex, pairs, point, d, d)
    yield _task(misfit.evaluate_complex_parallel, pairs, point, d, d, shares(2, 2))
    yield _task(misfit.product_complex, pairs, s, d, d, point)
    yield _task(misfit.product_complex_parallel, pairs, s, d, d, point, shares(2, 2))
    heads, tails, vertices = np.array([0, 1]), np.array([1, 2]), np.ones((3, 2))
    yield _task(misfit.evaluate_edges, heads, tails, vertices, d, d)
    yield _task(misfit.product_edges, heads, tails, s, d, d, vertices)
    yield _task(banded.edge_blocks, heads, tails, s, d, d, 3)
    yield _task(banded.add_edges, heads, tails, s, d, d, np.arange(3), np.zeros((4, 6), order="F"))
    yield _task(coordinates.convex_sweep, np.ones((3, 2)), np.ones((3, 2)), 0.0)
    yield _task(coordinates.exact_sweep, np.ones((3, 3)), np.ones((3, 2)))
    x = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])  # of full rank: else what it solves is singular
    yield _task(factors.direction, x, np.ones((3, 2)), np.ones((1, 6)), np.ones((1, 6)), 0, 0.5)
    yield _task(factors.toward, np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 2)), 1.0)
    yield _task(quasi.lbfgs_direction, s, pairs, pairs, 0, s)
    yield _task(quasi.keep_pair, pairs.copy(), pairs.copy(), 0, s, s, s, s)


def _fronts() -> Iterator[Task]:
    indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a path of three vertices
    parent, counts, order = np.array([1, 2, -1]), np.array([2, 2, 1]), np.arange(3)
    starts, pointers, offsets = np.array([0, 2]), np.array([0, 1]), np.array([0, 6])
    later, spots, parents = np.array([1, 2]), np.array([1, 2]), np.array([-1])
    places = (starts, pointers, offsets, parents, np.zeros(1, dtype=np.int64), np.array([0, 1, 2, 2]), spots)
    edges, weights, panels = np.arange(2), np.ones(2), np.array([1.0, -1.0, 0.0, 0.0, 1.0, -1.0])
    yield _task(fronts.widest_level, indptr, indices)
    yield _task(fronts.elimination_tree, indptr, indices)
    yield _task(fronts.postorder, parent)
    yield _task(fronts.column_counts, indptr, indices, parent)
    yield _task(fronts.amalgamate, parent, counts, 2, 0.1)
    yield _task(fronts.structure, starts, pointers, places[5], later)
    yield _task(fronts.factor, *places, edges, np.array([1.0, 2.0, 1.0]).reshape(3, 1, 1), weights.reshape(2, 1, 1))
    yield _task(fronts.substitute, starts, pointers, offsets, np.array([2]), panels, order, np.ones((3, 1)))
    whole = (np.array([0, 3]), np.array([0, 0]), np.array([0, 9]), np.empty(0, dtype=np.int64))
    yield _task(fronts.substitute_blocks, *whole, np.eye(3).reshape(-1), order, np.ones((3, 1)))
    yield _task(fronts.resistances, *places, edges, panels)


def _gram() -> Iterator[Task]:
    x = np.ones((3, 2))
    yield _task(gram.value, x)
    yield _task(gram.evaluate, x)
    yield _task(gram.misfit, x, x)
    yield _task(gram.hessian_product, x, x)
    yield _task(gram.line, x, x)


def _projections() -> Iterator[Task]:
    y = np.array([1.0, 0.5])
    yield _task(projections.orthant_slice, y, y, y)
    yield _task(projections.second_order, y)
    yield _task(projections.second_order_slice, y, y)
    yield _task(projections.centred, y, np.ones((1, 2)))


def _steps() -> Iterator[Task]:
    x = np.ones(3)
    yield _task(steps.slice_step, x, x, x, 1.0, x, x, 1.0, 1.0)
    yield _task(steps.extrapolate, x, x, 0.5, x)
    yield _task(steps.accelerated_step, x, x, x, 1.0, x, x, 1.0, 1.0, x, 0.5)


def _exact() -> Iterator[Task]:
    x, s, bounds = np.ones(3), np.ones(4), shares(4, 2)
    for dtype in (np.float64, np.float32):
        a, of = np.ones((4, 3), dtype=dtype), np.dtype(dtype).name
        yield _task(exact.image, a, x, of=of)
        yield _task(exact.image_parallel, a, x, bounds, of=of)
        yield _task(exact.residual, a, x, s, s, of=of)
        yield _task(exact.residual_parallel, a, x, s, s, bounds, of=of)
        yield _task(exact.image_bounded, a, x, of=of)
        yield _task(exact.image_bounded_parallel, a, x, bounds, of=of)
        yield _task(exact.residual_bounded, a, x, s, of=of)
        yield _task(exact.residual_bounded_parallel, a, x, s, bounds, of=of)
    pairs, point = np.ones((2, 4)), np.ones(4)
    yield _task(exact.image_complex, pairs, point)
    yield _task(exact.image_complex_parallel, pairs, point, shares(2, 2))
    yield _task(exact.residual_complex, pairs, point, s, s)
    yield _task(exact.residual_complex_parallel, pairs, point, s, s, shares(2, 2))
    matrix = sp.csr_matrix(np.ones((4, 3)))
    csr = (matrix.data, matrix.indices, matrix.indptr)
    yield _task(exact.image_sparse, *csr, x)
    yield _task(exact.image_sparse_parallel, *csr, x, bounds)
    yield _task(exact.residual_sparse, *csr, x, s, s)
    yield _task(exact.residual_sparse_parallel, *csr, x, s, s, bounds)
    heads, tails, vertices, flow = np.array([0, 1]), np.array([1, 2]), np.ones((3, 2)), np.ones(4)
    yield _task(exact.image_edges, heads, tails, vertices)
    yield _task(exact.image_edges_parallel, heads, tails, vertices, shares(2, 2))
    yield _task(exact.residual_edges, heads, tails, vertices, flow, flow)
    yield _task(exact.subtree_sums, np.arange(3), np.array([0, 0, 1]), vertices)
    yield _task(exact.dot, x, x)
    yield _task(exact.total, x)
    yield _task(exact.norm, x, np.zeros(3))
    yield _task(exact.norm_upper, x, x, x)
    yield _task(exact.quartic, s, s, s, 2)
    yield _task(exact.dual_power, s, s, 2)
    yield _task(exact.cubic_weights, s, s, 2)
    yield _task(exact.add, s, s, s)


def _panels() -> Iterator[Task]:
    a, vectors, matrices = np.ones((3, 2)), np.ones((4, 2)), np.stack([np.eye(2)] * 2)
    rows_in_panels, images_of_terms, buffers = np.ones((1, 2, 8)), np.ones((4, 1, 8)), np.ones((3, 8))
    yield _task(panels.shape, 3, 1)
    yield _task(panels.reach, rows_in_panels)
    yield _task(panels.equilibrate, a, vectors.copy(), 0)
    yield _task(panels.lay_out, a, 1, vectors, 0, rows_in_panels.copy())
    yield _task(panels.scale_vector, np.ones(2), False, vectors, 0, 1)
    yield _task(panels.add_gram, rows_in_panels, 0, matrices.copy(), 0)
    yield _task(panels.adjoints, rows_in_panels, images_of_terms, 0, 1, vectors.copy(), 0, 1, 2)
    yield _task(panels.image, rows_in_panels, vectors, 0, images_of_terms.copy(), 0)
    yield _task(panels.image_moduli, rows_in_panels, vectors, 0, images_of_terms.copy(), 0)
    yield _task(panels.value, images_of_terms, 0, buffers)
    yield _task(panels.weights, images_of_terms, 0, buffers, 1)
    yield _task(panels.hessian, rows_in_panels, images_of_terms, 0, buffers, rows_in_panels.copy(), matrices.copy(), 0)
    yield _task(panels.dual_norm, images_of_terms, 0, buffers)
    yield _task(panels.newton_dual, images_of_terms, 0, 0, 1.0, buffers, 1)
    yield _task(panels.line, images_of_terms, 0, 0, buffers)
    yield _task(panels.clear, images_of_terms, 2)
    yield _task(panels.combine, images_of_terms, 1.0, 0, 1.0, 0, 2)
    yield _task(panels.enlarge, images_of_terms, 2, 1.0, 0)
    yield _task(panels.dot, vectors, 0, 1)
    yield _task(panels.factor, matrices, 0, 2)
    yield _task(panels.substitute, matrices, 0, 2, vectors, 3)
    yield _task(panels.inverse_moduli, matrices, 0, 1)
    yield _task(panels.norm_of_product, matrices, 0, vectors, 0)


def _newton() -> Iterator[Task]:
    a, c = np.eye(3)[None], np.ones((1, 3))
    written = (np.empty((1, 3)), np.empty((1, 6)), np.empty((1, 3)), np.empty((1, 3)), np.empty((1, 5, 3)))
    yield _task(newton.solve_range, a, 1, c, False, 1e-6, 50, 0, 1, *written)
