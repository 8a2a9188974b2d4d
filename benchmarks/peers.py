"""``auto`` beside what people use today, on the same problems, to the same certified gaps, with the same threads."""

from . import common

SOLVERS = ["auto", "scipy-newton-cg", "scipy-trust-krylov", "scipy-lbfgs", "clarabel"]

NORMAL = {
    "spectrum 500×20": ("spectrum", {"m": 500, "n": 20, "sigma_min": 0.2}),
    "spectrum 2000×100": ("spectrum", {"m": 2000, "n": 100, "sigma_min": 0.2}),
    "coherent 5000×100": ("coherent", {"m": 5000, "n": 100, "gamma": 0.999, "kind": "generic"}),
    "blocks 2000×100, r = 3": ("blocks", {"m": 2000, "n": 100, "rank": 3}),
    "orthant 2000×200": ("orthant", {"m": 2000, "n": 200}),
    "heavy tails 2000×100": ("heavy_tailed", {"m": 2000, "n": 100}),
    "graph of 500 points": ("geometric", {"points": 500}),
}

LARGE = {
    "spectrum 2000×1000, σ_min = 0.2": ("spectrum", {"m": 2000, "n": 1000, "sigma_min": 0.2}),
    "spectrum 2000×1000, σ_min = 0.02": ("spectrum", {"m": 2000, "n": 1000, "sigma_min": 0.02}),
    "spectrum 20000×200": ("spectrum", {"m": 20_000, "n": 200, "sigma_min": 0.1}),
    "spectrum 50000×500": ("spectrum", {"m": 50_000, "n": 500, "sigma_min": 0.1}),
    "spectrum 6000×3000": ("spectrum", {"m": 6000, "n": 3000, "sigma_min": 0.1}),
    "sparse 100000×2000": ("sparse", {"m": 100_000, "n": 2000, "density": 0.005}),
    "graph of 5000 points": ("geometric", {"points": 5000}),
}

#: The instances of the study ``peers``; the last ones belong to the large tier.
STUDIED = {
    "spectrum 500×20": ("spectrum", {"m": 500, "n": 20, "sigma_min": 0.2}),
    "spectrum 2000×100": ("spectrum", {"m": 2000, "n": 100, "sigma_min": 0.2}),
    "spectrum 3000×300, σ_min = 0.5": ("spectrum", {"m": 3000, "n": 300, "sigma_min": 0.5}),
    "spectrum 2000×1000, σ_min = 0.2": ("spectrum", {"m": 2000, "n": 1000, "sigma_min": 0.2}),
    "spectrum 2000×1000, σ_min = 0.02": ("spectrum", {"m": 2000, "n": 1000, "sigma_min": 0.02}),
    "spectrum 20000×200": ("spectrum", {"m": 20_000, "n": 200, "sigma_min": 0.02}),
    "coherent 5000×100": ("coherent", {"m": 5000, "n": 100, "gamma": 0.999}),
    "blocks 5000×200, r = 3": ("blocks", {"m": 5000, "n": 200, "rank": 3}),
    "heavy tails 5000×200": ("heavy_tailed", {"m": 5000, "n": 200, "df": 2.0}),
    "heavy tails 20000×100": ("heavy_tailed", {"m": 20_000, "n": 100, "df": 3.0}),
    "degenerate 2000×100": ("degenerate", {"m": 2000, "n": 100, "active": 20}),
    "sparse 20000×500": ("sparse", {"m": 20_000, "n": 500, "density": 0.02}),
    "graph of 5000 points": ("geometric", {"points": 5000, "dim": 3}),
    "orthant 2000×200, half active": ("orthant", {"m": 2000, "n": 200, "active": 0.5}),
    "orthant 2000×200, few active": ("orthant", {"m": 2000, "n": 200, "active": 0.05}),
    "sparse 100000×2000": ("sparse", {"m": 100_000, "n": 2000, "density": 0.005}),
    "spectrum 50000×500": ("spectrum", {"m": 50_000, "n": 500, "sigma_min": 0.02}),
    "spectrum 6000×3000": ("spectrum", {"m": 6000, "n": 3000, "sigma_min": 0.02}),
}
STUDIED_LARGE = 3


class _Contest:
    seconds, repeats = 20.0, 2
    version = common.PROBLEM_SET

    def measured(self):
        """Return the figures of every solver on every problem; none where it cannot take the problem's cone."""
        problems, solvers, gaps = self.params
        cells = [(problem, solver, gap) for problem in problems for solver in solvers for gap in gaps]
        return common.table((cell, lambda cell=cell: self.run(*cell)) for cell in cells)

    def run(self, problem, solver, gap):
        """Return the figures of one cell: the best time of its runs."""
        from quartbench.errors import ProblemError

        generator, arguments = (NORMAL | LARGE)[problem]
        try:
            problem = common.instance(generator, **arguments)
            return common.counted(problem, solver, "auto", gap, repeats=self.repeats, time_limit=self.seconds)
        except ProblemError as error:
            raise NotImplementedError(str(error)) from error

    def setup(self, cache, problem, solver, gap):
        self.figures = common.cell(cache, problem, solver, gap)

    def track_seconds_to_gap(self, cache, problem, solver, gap):
        return self.figures["seconds"]

    def track_passes(self, cache, problem, solver, gap):
        return self.figures["passes"]

    track_seconds_to_gap.unit = "seconds"
    track_passes.unit = "passes"


class Peers(_Contest):
    """Seconds (set-up included) and passes to a certified gap, at sizes that every contender can take."""

    params = (list(NORMAL), SOLVERS, [1e-6, 1e-10])
    param_names = ("problem", "solver", "gap")

    def setup_cache(self):
        return self.measured()

    setup_cache.timeout = 1800


class LargePeers(_Contest):
    """The same to a gap of 1e-10 at full size, without Clarabel, which takes minutes a run there (large tier)."""

    params = (list(LARGE), [solver for solver in SOLVERS if solver != "clarabel"], [1e-10])
    param_names = ("problem", "solver", "gap")
    seconds, repeats = 300.0, 1

    def setup_cache(self):
        try:
            common.require_large()
        except NotImplementedError:
            return {}  # every cell is then skipped
        return self.measured()

    setup_cache.timeout = 3600


class PriceOfCertificates:
    """Whole calls of ``auto`` over the same ones without certificates (1.5 is the promise), and over its clock."""

    params = (list(STUDIED), [1e-6, 1e-10])
    param_names = ("problem", "gap")
    version = common.PROBLEM_SET
    timeout = 600

    def setup(self, problem, gap):
        if problem in list(STUDIED)[-STUDIED_LARGE:]:
            common.require_large()
        generator, arguments = STUDIED[problem]
        self.problem = common.instance(generator, **arguments)

    def solved(self, gap, **options):
        """Return the result of a whole call on a form that nothing is known of."""
        from quartbench import solve

        return solve(self.problem.on(self.problem.form.fresh()), rel_gap=gap, **options)

    def track_relative_time(self, problem, gap):
        import numba

        from quartbench.study.timing import best_times, equal_threads

        with equal_threads(numba.get_num_threads()):
            count = self.solved(gap).nit  # without certificates nothing else would end a call
            contenders = [lambda: self.solved(gap), lambda: self.solved(gap, certify=False, max_iter=count)]
            with_certificate, without = best_times(contenders, rounds=7)
        return with_certificate / without

    def track_time_over_clock(self, problem, gap):
        import time

        import numba

        from quartbench.study.timing import equal_threads

        walls, clocks = [], []
        with equal_threads(numba.get_num_threads()):
            for _ in range(7):
                begun = time.perf_counter()
                result = self.solved(gap)
                walls.append(time.perf_counter() - begun)
                clocks.append(result.setup_time + result.solve_time)
        return min(walls) / min(clocks)

    track_relative_time.unit = "× certify=False"
    track_time_over_clock.unit = "× clock"
