"""ℓ4 regression beside what people would use: SciPy's L-BFGS-B and IRLS from least squares, and Clarabel.

Ours is the whole call, certificate included. A peer is bare: it knows the least norm, and ends at the first point
within the gap of it. Least squares, for its start and within IRLS, are ``numpy.linalg.lstsq``; the methods "by hand"
solve normal equations by Cholesky, which is faster and fails beyond a condition number of 1e7.
``python -m benchmarks.regression`` prints the table; the study ``peers`` has the same methods.
"""

from . import common

#: The relative gap of the norm that all have to reach.
GAP = 1e-8

PROBLEMS = {
    "5000×50": (5000, 50, 1.0),
    "20000×100": (20_000, 100, 1.0),
    "20000×100, condition 1e3": (20_000, 100, 1e3),
}

#: The methods, each by its name in the package and its settings.
METHODS = {
    "l4_regression": ("l4-regression", {}),
    "scipy-lbfgs": ("scipy-lbfgs", {}),
    "irls": ("irls", {}),
    "clarabel": ("clarabel", {}),
    "scipy-lbfgs by hand": ("scipy-lbfgs", {"least_squares": "normal"}),
    "irls by hand": ("irls", {"least_squares": "normal"}),
}

#: Rows up to which Clarabel is asked: it takes half a minute at 20000×100.
CONIC_ROWS = 5000


def contest(name, methods=tuple(METHODS), rounds=5):
    """Return the least seconds of each method on a problem, taking turns; NaN for one that cannot, or does not, end."""
    from time import perf_counter

    from quartbench.regression import methods as known
    from quartbench.regression.data import regression_gaussian
    from quartbench.regression.methods import Goal, least_norm

    A, b = regression_gaussian(*PROBLEMS[name])
    goal = Goal(GAP, least_norm(A, b) * (1.0 + GAP), max_iter=10_000)
    seconds = dict.fromkeys(methods, float("inf"))
    for turn in range(rounds + 1):  # the first loads machine code
        for method in methods:
            spec, settings = METHODS[method]
            conic = spec == "clarabel"
            if seconds[method] != seconds[method] or (conic and turn > 1):
                continue
            if spec not in known() or (conic and len(b) > CONIC_ROWS):
                seconds[method] = float("nan")
                continue
            started = perf_counter()
            found = known()[spec](**settings).fit(A, b, goal)
            took = perf_counter() - started
            reached = found.status == "converged"
            seconds[method] = (min(seconds[method], took) if turn else float("inf")) if reached else float("nan")
    return seconds


class Regression:
    """Seconds to a gap of 1e-8 of the norm."""

    version = common.PROBLEM_SET
    params = (list(PROBLEMS), list(METHODS))
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
