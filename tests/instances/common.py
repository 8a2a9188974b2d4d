"""One small problem of every generator, and what two of them must share to be the same."""

import numpy as np
import scipy.sparse as sp

SMALL = {
    "spectrum": {"m": 40, "n": 8, "sigma_min": 0.1},
    "coherent": {"m": 40, "n": 8, "gamma": 0.7, "kind": "generic"},
    "blocks": {"m": 20, "n": 8, "rank": 3},
    "heavy_tailed": {"m": 60, "n": 5, "df": 1.5},
    "scaled": {"m": 60, "n": 5, "few": 4},
    "sparse": {"m": 60, "n": 12, "density": 0.2},
    "orthant": {"m": 40, "n": 10, "active": 0.4},
    "degenerate": {"m": 40, "n": 8, "active": 3},
    "geometric": {"points": 60, "dim": 2, "degree": 4},
    "regular": {"points": 30, "degree": 4},
    "ring": {"points": 20, "dim": 2, "neighbours": 2},
    "barbell": {"points": 13, "bridge": 3},
    "grid": {"side": 4, "dim": 2},
    "complex_gaussian": {"m": 30, "n": 6},
    "coded_diffraction": {"n": 8, "masks": 4},
    "planted_partition": {"n": 30, "clusters": 3, "p_in": 0.7, "p_out": 0.1},
}


def bits(problem):
    """Everything that makes the problem, as bytes."""
    form = problem.form
    stored = getattr(form, "rows", getattr(form, "edges", np.array(form.shape)))
    arrays = [stored.data, stored.indices, stored.indptr] if sp.issparse(stored) else [stored]
    arrays += [problem.c] + ([] if problem.solution is None else [problem.solution])
    return [np.ascontiguousarray(array).tobytes() for array in arrays] + [problem.optimum]


def leverage(rows):
    """The leverage scores of a dense full-rank matrix."""
    q = np.linalg.qr(rows)[0]
    return np.einsum("ij,ij->i", q, q)
