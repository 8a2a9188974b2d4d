"""ℓ4 regression beside what people would use: SciPy's L-BFGS-B and IRLS from least squares, and Clarabel.

Ours is the whole call, certificate included. A peer is bare: it knows the least norm, and ends at the first point
within the gap of it. Least squares, for its start and within IRLS, are ``numpy.linalg.lstsq``; the methods "by hand"
solve normal equations by Cholesky, which is faster and fails beyond a condition number of 1e7.
``python -m benchmarks.regression`` prints the table.
"""

from functools import partial

from . import common

#: The relative gap of the norm that all have to reach.
GAP = 1e-8

PROBLEMS = {
    "5000×50": (5000, 50, 1.0),
    "20000×100": (20_000, 100, 1.0),
    "20000×100, condition 1e3": (20_000, 100, 1e3),
}
METHODS = ["l4_regression", "scipy-lbfgs", "irls", "clarabel", "scipy-lbfgs by hand", "irls by hand"]

#: Rows up to which Clarabel is asked: it takes half a minute at 20000×100.
CONIC_ROWS = 5000


def data(name):
    """Return A and b of a problem: Gaussian rows, with singular values spread evenly over their condition number."""
    import numpy as np

    m, n, condition = PROBLEMS[name]
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((m, n))
    if condition > 1.0:
        turned = np.linalg.qr(rng.standard_normal((n, n)))[0]
        rows = np.sqrt(m) * (np.linalg.qr(rows)[0] * np.geomspace(1.0, 1.0 / condition, n)) @ turned.T
    rows = np.ascontiguousarray(rows)
    return rows, rows @ rng.standard_normal(n) + rng.standard_normal(m)


class Reached(Exception):  # noqa: N818
    """A peer is within the gap."""


def least_squares(A, b, by_hand):
    """Return the least-squares fit: by LAPACK's singular values, or by hand."""
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    if not by_hand:
        return np.linalg.lstsq(A, b, rcond=None)[0]
    return cho_solve(cho_factor(A.T @ A, check_finite=False), A.T @ b, check_finite=False)


def lbfgs(A, b, target, by_hand=False):
    """L-BFGS-B on Σr⁴ over its value at the start."""
    from scipy.optimize import minimize

    start = least_squares(A, b, by_hand)
    scale = float((((A @ start - b) ** 2) ** 2).sum())

    def evaluate(x):
        r = A @ x - b
        squares = r * r
        value = float(squares @ squares)
        if value**0.25 <= target:
            raise Reached
        return value / scale, (4.0 / scale) * (A.T @ (squares * r))

    limits = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0, "maxcor": 20}
    minimize(evaluate, start, jac=True, method="L-BFGS-B", options=limits)
    return False


def irls(A, b, target, by_hand=False):
    """Iteratively reweighted least squares, x + (x⁺ − x)/3 with x⁺ for the weights r²: Newton's step for p = 4."""
    x = least_squares(A, b, by_hand)
    for _ in range(200):
        r = b - A @ x
        squares = r * r
        if float(squares @ squares) ** 0.25 <= target:
            raise Reached
        x = x + least_squares(r[:, None] * A, squares, by_hand) / 3.0
    return False


def clarabel(A, b, target):
    """Clarabel on min Σtᵢ² with sᵢ² ≤ tᵢ as cones of size 3, sᵢ = (⟨aᵢ,x⟩ − bᵢ)/scale."""
    import clarabel as package
    import numpy as np
    import scipy.sparse as sp

    if len(b) > CONIC_ROWS:
        raise NotImplementedError
    m, n = A.shape
    scale = float(np.abs(b - A @ least_squares(A, b, False)).max())
    cost = sp.diags(np.r_[np.zeros(n), np.full(m, 2.0)]).tocsc()
    blocks = sp.csc_matrix(
        (
            np.r_[np.full(m, -1.0), np.full(m, -1.0)],
            (np.r_[np.arange(m) * 3, np.arange(m) * 3 + 1], np.tile(np.arange(m), 2)),
        ),
        shape=(3 * m, m),
    )
    spread = sp.csc_matrix((np.full(m, -2.0 / scale), (np.arange(m) * 3 + 2, np.arange(m))), shape=(3 * m, m))
    offset = np.zeros(3 * m)
    offset[0::3], offset[1::3], offset[2::3] = 1.0, -1.0, -2.0 * b / scale
    settings = package.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = GAP
    cones = [package.SecondOrderConeT(3)] * m
    solver = package.DefaultSolver(
        cost, np.zeros(n + m), sp.hstack([spread @ A, blocks]).tocsc(), offset, cones, settings
    )
    x = np.array(solver.solve().x)[:n]
    if np.linalg.norm(A @ x - b, 4) <= (1.0 + 100 * GAP) * target:
        raise Reached
    return False


PEERS = {
    "scipy-lbfgs": lbfgs,
    "irls": irls,
    "clarabel": clarabel,
    "scipy-lbfgs by hand": partial(lbfgs, by_hand=True),
    "irls by hand": partial(irls, by_hand=True),
}


def call(A, b, method, target):
    """Return whether a method comes within the gap."""
    from quartbench import l4_regression

    if method == "l4_regression":
        return l4_regression(A, b, rel_gap=GAP).gap <= GAP
    try:
        return PEERS[method](A, b, target)
    except Reached:
        return True


def contest(name, methods=METHODS, rounds=5):
    """Return the least seconds of each method on a problem, taking turns; NaN for one that cannot, or does not, end."""
    from time import perf_counter

    from quartbench import l4_regression

    A, b = data(name)
    target = l4_regression(A, b, rel_gap=1e-10).lower_bound * (1.0 + GAP)
    seconds = dict.fromkeys(methods, float("inf"))
    for turn in range(rounds + 1):  # the first loads machine code
        for method in list(seconds):
            if seconds[method] != seconds[method]:
                continue
            started = perf_counter()
            try:
                reached = call(A, b, method, target)
            except NotImplementedError:
                reached = False
            took = perf_counter() - started
            seconds[method] = (min(seconds[method], took) if turn else float("inf")) if reached else float("nan")
    return seconds


class Regression:
    """Seconds to a gap of 1e-8 of the norm."""

    version = common.PROBLEM_SET
    params = (list(PROBLEMS), METHODS)
    param_names = ("problem", "method")

    def setup_cache(self):
        return {name: contest(name) for name in PROBLEMS}

    setup_cache.timeout = 900

    def track_seconds(self, cache, problem, method):
        return cache[problem][method]

    track_seconds.unit = "seconds"


if __name__ == "__main__":
    for name in PROBLEMS:
        found = contest(name)
        ours = found["l4_regression"]
        words = ", ".join(f"{method} {1e3 * took:.1f} ms ({took / ours:.2f})" for method, took in found.items())
        print(f"{name}: {words}")
