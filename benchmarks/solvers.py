"""The solvers: what a certified gap costs in each metric, what an iteration costs, both beside plain NumPy."""

import contextlib

from . import common, transcription

#: The certified relative gap that runs are timed and counted to.
GAP = 1e-6


class ToGap(common.Timed):
    """To a certified gap of 1e-6 on 1000 × 100 rows of coherence 0.9: the whole call, and counts that explain it."""

    params = (common.SOLVERS, common.METRICS)
    param_names = ("solver", "metric")

    def problem(self):
        """Return the one problem of this class."""
        return common.instance("coherent", m=1000, n=100, gamma=0.9, cond=10.0, kind="generic")

    def setup_cache(self):
        pairs = [(solver, metric) for solver in common.SOLVERS for metric in common.METRICS]
        return common.table((pair, lambda pair=pair: self.run(*pair)) for pair in pairs)

    def run(self, solver, metric):
        """Return the counts of one run, the gap that 30 passes buy, and the κ bound of the metric."""
        from quartbench.precondition import metric as make

        counts = common.counted(self.problem(), solver, metric, GAP, max_passes=10_000)
        alpha, beta = make(self.problem().form, metric).bounds
        return counts | {"gap": common.gap_at_budget(self.problem(), solver, metric, 30), "kappa": beta / alpha}

    def setup(self, cache, solver, metric):
        self.counts = common.cell(cache, solver, metric)

    def time_to_gap(self, cache, solver, metric):
        common.solve(self.problem(), solver, metric, GAP)

    def track_iterations(self, cache, solver, metric):
        return self.counts["iterations"]

    def track_passes(self, cache, solver, metric):
        return self.counts["passes"]

    def track_gap_at_budget(self, cache, solver, metric):
        return self.counts["gap"]

    def track_kappa_bound(self, cache, solver, metric):
        return self.counts["kappa"]

    track_iterations.unit = "iterations"
    track_passes.unit = "passes"
    track_gap_at_budget.unit = "certified relative gap after 30 passes"
    track_kappa_bound.unit = "κ"


#: Variants of the paper's methods and of its baselines, with their settings; only ever append.
VARIANTS = {
    "homgd, fixed": ("HomGD", {"step": "fixed"}),
    "accel-homgd, scheduled": ("AccelHomGD", {"restart": "scheduled"}),
    "accel-homgd, never": ("AccelHomGD", {"restart": "none"}),
    "accel-homgd, adaptive, fixed": ("AccelHomGD", {"restart": "adaptive", "step": "fixed"}),
    "accel-homgd, scheduled, fixed": ("AccelHomGD", {"restart": "scheduled", "step": "fixed"}),
    "accel-homgd, never, fixed": ("AccelHomGD", {"restart": "none", "step": "fixed"}),
    "gd, fixed": ("GD", {"step": "fixed"}),
    "agd, fixed": ("AGD", {"step": "fixed"}),
    "bregman, fixed": ("Bregman", {"step": "fixed"}),
    "bregman, quartic+quadratic": ("Bregman", {"kernel": "quartic+quadratic"}),
    "bregman, quartic+quadratic, fixed": ("Bregman", {"kernel": "quartic+quadratic", "step": "fixed"}),
}


class Variants(common.Timed):
    """To a certified gap of 1e-6 in the metric lewis, on generic and degenerate rows, by every rule of the paper."""

    params = (list(VARIANTS), ["generic", "degenerate"])
    param_names = ("variant", "rows")
    timeout = 300

    def problem(self, rows):
        """Return the problem of one kind of rows."""
        if rows == "degenerate":
            return common.instance("degenerate", m=200, n=20, active=5)
        return common.instance("coherent", m=1000, n=20, gamma=0.9, cond=10.0, kind="generic")

    def solver(self, variant):
        """Return a variant; skip one that the measured commit does not have."""
        from quartbench import solvers

        name, settings = VARIANTS[variant]
        try:
            return getattr(solvers, name)(**settings)
        except (AttributeError, TypeError):
            raise NotImplementedError(f"this commit has no {variant!r}") from None

    def setup_cache(self):
        pairs = [(variant, rows) for variant in VARIANTS for rows in self.params[1]]
        return common.table((pair, lambda pair=pair: self.run(*pair)) for pair in pairs)

    def run(self, variant, rows):
        """Return the counts of one run."""
        solver = self.solver(variant)
        run = common.solve(self.problem(rows), solver, "lewis", GAP, max_iter=20_000)
        if not run.success:
            raise RuntimeError(f"the gap is {run.gap:.1e} after {run.nit} iterations")
        return {"iterations": float(run.nit), "passes": float(run.passes)}

    def setup(self, cache, variant, rows):
        self.counts = common.cell(cache, variant, rows)

    def time_to_gap(self, cache, variant, rows):
        common.solve(self.problem(rows), self.solver(variant), "lewis", GAP)

    def track_iterations(self, cache, variant, rows):
        return self.counts["iterations"]

    def track_passes(self, cache, variant, rows):
        return self.counts["passes"]

    track_iterations.unit = "iterations"
    track_passes.unit = "passes"


class Overhead(common.Timed):
    """100 iterations without certificates on 500 × 20 rows: what a method costs beside its passes."""

    params = (["gd", "bregman", "homgd", "accel-homgd"],)
    param_names = ("solver",)

    def setup(self, solver):
        common.require_solver(solver)
        self.problem = common.instance("spectrum", m=500, n=20, sigma_min=0.01)

    def time_100_iterations(self, solver):
        common.solve(self.problem, solver, "identity", None, max_iter=100, certify=False)


class AgainstNumPy:
    """Iterations of accel-homgd over those of Algorithm 2 as one writes it in NumPy, interleaved: lower is better."""

    params = (["500×20", "2000×100"], ["accelerated", "lean"])
    param_names = ("size", "transcription")
    version = common.PROBLEM_SET
    timeout = 300

    def track_relative_time(self, size, name):
        import numba
        import numpy as np

        from quartbench.solvers import AccelHomGD
        from quartbench.study.timing import best_times, equal_threads

        m, n = map(int, size.split("×"))
        # Ill-conditioned: a run that reaches the rounding level ends before its count.
        problem, count = common.instance("spectrum", m=m, n=n, sigma_min=0.01), 255
        rows, c = problem.form.rows, np.array(problem.c)
        solver, plain = AccelHomGD("scheduled"), getattr(transcription, name)

        def ours():
            return common.solve(problem, solver, "identity", None, max_iter=count, certify=False)

        if ours().nit != count:
            raise RuntimeError(f"the run ended before its {count} iterations")
        with equal_threads(numba.config.NUMBA_NUM_THREADS):
            mine, theirs = best_times([ours, lambda: plain(rows, c, count)], rounds=3)
        return mine / theirs

    track_relative_time.unit = "× NumPy"


class ManyAgainstSeparate:
    """Time of solve_many with 50 right-hand sides over that of 50 solves by auto, interleaved: ⅓ is the promise."""

    params = (["1000×500", "5000×500"],)
    param_names = ("size",)
    version = common.PROBLEM_SET
    timeout = 300

    def track_relative_time(self, size):
        import numba
        import numpy as np

        from quartbench import Problem, solve, solve_many
        from quartbench.study.timing import best_times, equal_threads

        m, n = map(int, size.split("×"))
        form = common.instance("spectrum", m=m, n=n, sigma_min=0.1).form
        sides = np.random.default_rng(0).standard_normal((50, n))

        def separate():
            for c in sides:
                solve(Problem(form, c), rel_gap=GAP)

        with equal_threads(numba.get_num_threads()):
            ours, theirs = best_times([lambda: solve_many(form, sides, rel_gap=GAP), separate], rounds=1)
        return ours / theirs

    track_relative_time.unit = "× separate"


class SmallAgainstBare:
    """Time of a whole certified solve of a small problem over that of bare SciPy to the same gap of the known f*."""

    params = (["10×3", "100×10", "500×20"], [1e-6, 1e-10])
    param_names = ("size", "gap")
    version = common.PROBLEM_SET

    def track_relative_time(self, size, gap):
        from quartbench import solve
        from quartbench.study.timing import best_times, equal_threads

        m, n = map(int, size.split("×"))
        problem = common.instance("spectrum", m=m, n=n, sigma_min=0.2)
        bare = bare_newton_cg(problem, gap)
        with equal_threads(1):
            ours, theirs = best_times([lambda: solve(problem, rel_gap=gap), bare], rounds=3)
        return ours / theirs

    track_relative_time.unit = "× bare Newton-CG"

    def track_prepared_relative_time(self, size, gap):
        from quartbench import prepare
        from quartbench.study.timing import best_times, equal_threads

        m, n = map(int, size.split("×"))
        problem = common.instance("spectrum", m=m, n=n, sigma_min=0.2)
        ready, c = prepare(problem.form), problem.c.copy()
        bare = bare_newton_cg(problem, gap)
        with equal_threads(1):
            ours, theirs = best_times([lambda: ready.solve(c, rel_gap=gap), bare], rounds=3)
        return ours / theirs

    track_prepared_relative_time.unit = "× bare Newton-CG"

    def track_batch_relative_time(self, size, gap):
        import numba
        import numpy as np

        from quartbench import Problem, StackedForm, solve, solve_batch
        from quartbench.study.timing import best_times, equal_threads

        m, n = map(int, size.split("×"))
        rng = np.random.default_rng(0)
        rows, sides = rng.standard_normal((200, m, n)), rng.standard_normal((200, n))

        def loop():
            for one, c in zip(rows, sides, strict=True):
                solve(Problem(StackedForm(one), c), rel_gap=gap)

        with equal_threads(numba.get_num_threads()):
            ours, theirs = best_times([lambda: solve_batch(rows, sides, rel_gap=gap), loop], rounds=2)
        return ours / theirs

    track_batch_relative_time.unit = "× a loop of solve"


class TallInPasses:
    """Time of a whole certified solve of tall Gaussian rows to 1e-8 over that of one pass: 15 is the promise."""

    params = (["100000×400", "300000×400", "500000×500"],)
    param_names = ("size",)
    version = common.PROBLEM_SET
    timeout = 600

    def setup(self, size):
        m, n = map(int, size.split("×"))
        if m > 100_000:
            common.require_large()
        import numpy as np

        from quartbench import Problem, StackedForm

        rng = np.random.default_rng(0)
        rows = np.empty((m, n))
        for start in range(0, m, 20_000):
            rows[start : start + 20_000] = rng.standard_normal((20_000, n))
        self.problem = Problem(StackedForm(rows), rows[:2000].sum(axis=0))
        self.point = rng.standard_normal(n)

    def track_passes_of_wall_time(self, size):
        import numba

        from quartbench import solve
        from quartbench.study.timing import best_times, equal_threads

        problem, point = self.problem, self.point
        calls = [lambda: solve(problem.on(problem.form.fresh()), rel_gap=1e-8), lambda: problem.form.evaluate(point)]
        with equal_threads(numba.get_num_threads()):
            ours, one = best_times(calls, rounds=3)
        return ours / one

    def peakmem_reference(self, size):
        pass

    def peakmem_solve(self, size):
        from quartbench import solve

        solve(self.problem, rel_gap=1e-8)

    track_passes_of_wall_time.unit = "× one pass"


def bare_newton_cg(problem, gap):
    """Return a call of SciPy's Newton-CG as a careful user writes it, ended at the first point within the gap of f*."""
    import numpy as np
    from scipy.optimize import minimize

    from quartbench import solve

    rows, c = problem.form.rows, np.array(problem.c)
    optimum = solve(problem, rel_gap=1e-13).fun
    start = np.linalg.solve(rows.T @ rows, c)
    image = rows @ start
    start *= np.cbrt(float(c @ start) / (4.0 * float(np.sum((image * image) ** 2))))

    def value(x):
        s = rows @ x
        q = s * s
        return float(q @ q) - float(c @ x)

    def gradient(x):
        s = rows @ x
        return 4.0 * (rows.T @ (s * s * s)) - c

    def product(x, v):
        s = rows @ x
        return 12.0 * (rows.T @ (s * s * (rows @ v)))

    class Near(Exception):  # noqa: N818
        pass

    def stop(x):
        if value(x) - optimum <= gap * abs(optimum):
            raise Near

    options = {"jac": gradient, "hessp": product, "method": "Newton-CG", "callback": stop, "options": {"xtol": 0.0}}

    def call():
        with contextlib.suppress(Near):
            minimize(value, start, **options)

    return call


class Memory:
    """Peak memory of a run on 20000 × 200 rows of 32 MB, beside that of holding them."""

    params = (common.SOLVERS,)
    param_names = ("solver",)
    version = common.PROBLEM_SET

    def setup(self, solver):
        common.require_solver(solver)
        self.problem = common.instance("heavy_tailed", m=20_000, n=200)

    def peakmem_reference(self, solver):
        pass

    def peakmem_solve(self, solver):
        common.solve(self.problem, solver, "uniform", GAP)


class Large(common.Timed):
    """To a certified gap of 1e-6 on 50000 × 500 rows: memory's speed and BLAS count (large tier)."""

    params = (common.SOLVERS,)
    param_names = ("solver",)
    timeout = 1200

    def setup(self, solver):
        common.require_large()
        common.require_solver(solver)
        self.problem = common.instance("spectrum", m=50_000, n=500, sigma_min=0.1)

    def time_to_gap(self, solver):
        common.solve(self.problem, solver, "uniform", GAP)
