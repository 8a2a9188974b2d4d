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
