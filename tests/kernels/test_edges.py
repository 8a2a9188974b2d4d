"""Do the kernels on graph edges say what plain NumPy says of the incidence matrix?"""

import numpy as np
import pytest

from quartbench.forms import GraphForm
from quartbench.kernels import graph as kernels
from quartbench.kernels.jit import shares

from . import plain


def draw(points, d, chords):
    """Return a path with random chords as a form (for its incidence lists), with points."""
    rng = np.random.default_rng([points, d, chords])
    pairs = {(i, i + 1) for i in range(points - 1)}
    pairs |= {tuple(sorted(map(int, rng.choice(points, 2, replace=False)))) for _ in range(chords)}
    form = GraphForm(points, d, np.array(sorted(pairs)))
    return form, rng.standard_normal((points, d)), rng.standard_normal((points, d))


GRAPHS = [(2, 0), (3, 1), (40, 90), (70, 3)]


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize(("points", "chords"), GRAPHS)
def test_serial_kernels_agree_with_numpy(points, chords, d):
    form, x, v = draw(points, d, chords)
    rows = plain.edge_rows(points, d, form.edges)
    image = rows @ x.ravel()
    w = np.random.default_rng(0).standard_normal(image.size)
    plain.close(kernels.image(form.heads, form.tails, x), image)
    plain.close(kernels.adjoint(form.heads, form.tails, points, d, w).ravel(), rows.T @ w)
    value, gradient, image_too = kernels.evaluate(form.heads, form.tails, x)
    plain.close(value, plain.value(rows, d, x.ravel()))
    plain.close(gradient.ravel(), plain.gradient(rows, d, x.ravel()))
    plain.close(image_too, image)
    product = kernels.hessian_product(form.heads, form.tails, x, v)
    plain.close(product.ravel(), plain.hessian_product(rows, d, x.ravel(), v.ravel()))


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize(("points", "chords"), GRAPHS)
def test_parallel_kernels_agree_with_serial_ones(points, chords, d, parts, threads):
    form, x, v = draw(points, d, chords)
    indptr, neighbours, incident = form._incidence
    by_vertex, by_edge = shares(points, parts), shares(form.terms, parts)
    w = np.random.default_rng(0).standard_normal(form.terms * d)
    plain.close(kernels.image_parallel(form.heads, form.tails, x, by_edge), kernels.image(form.heads, form.tails, x))
    plain.close(
        kernels.adjoint_parallel(form.heads, indptr, neighbours, incident, d, w, by_vertex),
        kernels.adjoint(form.heads, form.tails, points, d, w),
    )
    for found, wanted in zip(
        kernels.evaluate_parallel(indptr, neighbours, incident, x, by_vertex),
        kernels.evaluate(form.heads, form.tails, x),
        strict=True,
    ):
        plain.close(found, wanted)
    plain.close(
        kernels.hessian_product_parallel(indptr, neighbours, x, v, by_vertex),
        kernels.hessian_product(form.heads, form.tails, x, v),
    )
