"""The same problems by other means: Clarabel's interior-point method, and the constants of the paper's theorems."""

import clarabel
import numpy as np
import scipy.sparse as sp

from quartbench.forms import GramForm, StackedForm
from quartbench.solvers.contract import HOMOGENISED


def clarabel_solution(problem):
    """Return the minimiser and minimum of a small problem as a conic program.

    minimise Σtᵢ² − ⟨c,x⟩ with ‖Uᵢᵀx‖² ≤ tᵢ as ‖(2Uᵢᵀx, tᵢ − 1)‖ ≤ tᵢ + 1; the Gram form as ‖S‖²_F with XᵀX ⪯ S.
    """
    problem, x_scale, f_scale = problem.normalised()
    build = _gram_blocks if isinstance(problem.form, GramForm) else _term_blocks
    extra, blocks = build(problem.form)
    blocks += _cone_blocks(problem)
    n = problem.dim
    matrix = sp.csc_matrix(np.vstack([np.hstack([x, t]) for x, t, _, _ in blocks]))
    offset = np.concatenate([b for _, _, b, _ in blocks])
    cones = [cone for _, _, _, group in blocks for cone in group]
    quadratic = sp.diags([0.0] * n + [2.0] * extra, format="csc")
    linear = np.concatenate([-problem.c, np.zeros(extra)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    found = clarabel.DefaultSolver(quadratic, linear, matrix, offset, cones, settings).solve()
    x = np.array(found.x)[:n]
    return x_scale * x, f_scale * problem.value(x)


def _term_blocks(form):
    """Return the number of tᵢ and, for each term, (rows on x, rows on t, b, cones) of s = b − Ax ∈ K."""
    n, m, r = form.dim, form.terms, form.rank
    images = np.stack([form.image(column) for column in np.eye(n)], axis=1)
    blocks = []
    for i in range(m):
        on_x, on_t, b = np.zeros((r + 2, n)), np.zeros((r + 2, m)), np.zeros(r + 2)
        on_x[1:-1] = -2.0 * images[i * r : (i + 1) * r]
        on_t[0, i] = on_t[-1, i] = -1.0
        b[0], b[-1] = 1.0, -1.0
        blocks.append((on_x, on_t, b, [clarabel.SecondOrderConeT(r + 2)]))
    return m, blocks


def _gram_blocks(form):
    """Return the entries of S, scaled so that ‖S‖²_F is their sum of squares, and [[S, Xᵀ], [X, I]] ⪰ 0."""
    rows, columns = form.shape
    size = rows + columns
    upper = [(i, j) for j in range(size) for i in range(j + 1)]  # column by column, as Clarabel stacks a triangle
    of_s = [(i, j) for j in range(columns) for i in range(j + 1)]
    on_x, on_s, b = np.zeros((len(upper), form.dim)), np.zeros((len(upper), len(of_s))), np.zeros(len(upper))
    for k, (i, j) in enumerate(upper):
        if j < columns:
            on_s[k, of_s.index((i, j))] = -1.0  # both triangles carry √2 off the diagonal
        elif i < columns:
            on_x[k, (j - columns) * columns + i] = -np.sqrt(2.0)
        elif i == j:
            b[k] = 1.0
    return len(of_s), [(on_x, on_s, b, [clarabel.PSDTriangleConeT(size)])]


def _cone_blocks(problem):
    n, name = problem.dim, problem.cone.name
    extra = len(problem.form.image(np.zeros(n))) // problem.form.rank
    if isinstance(problem.form, GramForm):
        extra = problem.form.rank * (problem.form.rank + 1) // 2
    if name == "free":
        return []
    if name == "centred":
        points, coordinates = problem.form.shape
        sums = np.kron(np.ones((1, points)), np.eye(coordinates))
        return [(sums, np.zeros((coordinates, extra)), np.zeros(coordinates), [clarabel.ZeroConeT(coordinates)])]
    cone = clarabel.NonnegativeConeT(n) if name == "orthant" else clarabel.SecondOrderConeT(n)
    return [(-np.eye(n), np.zeros((n, extra)), np.zeros(n), [cone])]


def delta(value, optimum):
    """Return δ = √ρ(y)/√ρ(y*) − 1 from f(s(y)y) and f*: values are −(3/4^{4/3})ρ^{−1/3}."""
    return np.expm1(1.5 * np.log(np.asarray(optimum) / value))


def optimal_root(optimum):
    """Return √ρ(y*) from f*."""
    return (HOMOGENISED / -optimum) ** 1.5


def random_form(m, n, r, cond, peak, seed):
    """Return stacked terms with singular values down to 1/cond and one term ``peak`` times larger: coherence."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m * r, n))
    rows[:r] *= peak
    left, _, right = np.linalg.svd(rows, full_matrices=False)
    spread = np.geomspace(1.0, 1.0 / cond, n) if peak == 1.0 else np.linalg.svd(rows, compute_uv=False)
    return StackedForm((left * spread) @ right, rank=r)


def algorithm_1(rows, c, beta, iterations):
    """Yield ρ(y_k) of Algorithm 1 for B = I on free space, as printed."""
    y = c / (c @ c)
    for _ in range(iterations + 1):
        s = rows @ y
        rho = (s**4).sum()
        yield rho
        y = _step(y, rho, 4.0 * rows.T @ s**3, c, beta)


def algorithm_2(rows, c, beta, iterations):
    """Yield ρ of the start and of every y of Algorithm 2 for B = I on free space, as printed."""
    best = c / (c @ c)
    yield ((rows @ best) ** 4).sum()
    done, stage = 0, 0
    while True:
        y = z = best
        for k in range(2**stage):
            s = rows @ z
            before, y = y, _step(z, (s**4).sum(), 4.0 * rows.T @ s**3, c, beta)
            z = y + k / (k + 3) * (y - before)
            yield ((rows @ y) ** 4).sum()
            done += 1
            if done == iterations:
                return
        best = min(best, y, key=lambda point: ((rows @ point) ** 4).sum())
        stage += 1


def _step(z, rho, gradient, c, beta):
    moved = z - gradient / (12.0 * beta * np.sqrt(rho))
    return moved + (1.0 - c @ moved) / (c @ c) * c
