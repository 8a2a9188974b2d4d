"""Is a problem with a known minimiser solved on something new, and is what is certified of it true?"""

from __future__ import annotations

from quartbench import solvers, views
from quartbench.model import Problem

#: The certified gap that solves must reach.
GAP = 1e-8

#: Relative differences from f* that may be the rounding of a planted c.
ROUNDING = 1e-12


def check_planted(problem: Problem, names: tuple[str, ...]) -> dict[str, str]:
    """Solve a planted problem by each of these solvers; raise AssertionError where one fails or is wrong about f*."""
    report = {}
    for solver in names:
        result = solvers.solve(problem, solver, rel_gap=GAP)
        assert result.status == "converged", f"{solver}: {result.status}: {result.message}"
        slack = ROUNDING * abs(problem.optimum)
        assert result.lower_bound <= problem.optimum + slack, f"{solver}: the certified bound is above f*: false"
        assert result.fun >= problem.optimum - slack, f"{solver}: f(x) is below f*, so x is outside the cone"
        report[solver] = views.work(result.nit, result.passes)
    return report
