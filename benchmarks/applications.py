"""Phase retrieval, distance completion and symmetric NMF: `auto` beside other methods, from the same starts."""

from . import common

METHODS = ["auto", "scipy-lbfgs-kernels", "scipy-lbfgs"]

PHASE = ["Gaussian, N = 64, m = 6N", "Gaussian, N = 256, m = 6N", "Gaussian, N = 64, m = 4N", "8 masks, 64×64"]
PHASE += ["8 heavy-tailed masks, N = 1000"]
DISTANCES = ["helix, 1000 points, 10 %", "cube, 1000 points", "rod, 1000 points", "bridge, 1000 points"]

#: The relative residual that a run must reach to count, and what it is asked for.
REACHED, TOLERANCE = 1e-6, 1e-7


def measurements(name):
    """Return (what makes the form, d, start) of a phase problem: the start is the spectral one."""
    import numpy as np

    from quartbench import ComplexForm, DiffractionForm
    from quartbench.inverse import examples, spectral_start

    if name.startswith("Gaussian"):
        n, ratio = (int(word.split(" = ")[1].rstrip("N")) for word in name.split(", ")[1:])
        given, d, _ = examples.gaussian_phase(n, ratio * n)
        kind = ComplexForm
    else:
        shape, heavy = ((64, 64), False) if "64×64" in name else ((1000,), True)
        truth = np.random.default_rng(0).standard_normal((*shape, 2)).view(np.complex128)[..., 0]
        given, d, _ = examples.coded_image(truth, 8, heavy=heavy)
        kind = DiffractionForm
    d = d.reshape(-1)
    return (lambda: kind(given)), d, spectral_start(kind(given), d)


def points(name):
    """Return (pairs, lengths, start) of a distance problem; the start is that of landmarks, or near the truth."""
    import numpy as np

    from quartbench.inverse import examples
    from quartbench.inverse.embeddings import landmark_start

    if name.startswith("helix"):
        truth = examples.helix(1000)
        pairs = examples.random_pairs(1000, 0.1)
        return pairs, examples.lengths(truth, pairs), landmark_start(1000, pairs, examples.lengths(truth, pairs), 3)
    kinds = {"cube": examples.box(1000), "rod": examples.box(1000, (20.0, 1.0, 1.0)), "bridge": examples.bridge(1000)}
    truth = kinds[name.split(",")[0]]
    pairs = examples.near_pairs(truth, 20)
    start = truth + 0.01 * truth.std() * np.random.default_rng(1).standard_normal(truth.shape)
    return pairs, examples.lengths(truth, pairs), start


def calls(name):
    """Return whole calls by the name of their method, from arrays and a start to a result, each making its form."""
    from quartbench import GraphForm, inverse

    if name in PHASE:
        made, d, start = measurements(name)
        auto = lambda: inverse.phase(made(), d, start=start, tol=TOLERANCE, restarts=0)  # noqa: E731
    else:
        pairs, lengths, start = points(name)
        made, d = (lambda: GraphForm(len(start), 3, pairs)), lengths**2
        auto = lambda: inverse.distances(lengths, pairs, start=start, tol=TOLERANCE, attempts=0)  # noqa: E731
    other = lambda method: lambda: inverse.solve(inverse.Problem(made(), d), method, start, tol=TOLERANCE)  # noqa: E731
    return {method: auto if method == "auto" else other(method) for method in METHODS}


def run(name, repeats):
    """Return the passes and the least seconds of each method, in turns; NaN where the data were not fitted."""
    import time

    made = calls(name)
    found, walls, clocks = {}, {method: [] for method in made}, {method: [] for method in made}
    for _ in range(repeats + 1):
        for method, call in made.items():
            began = time.perf_counter()
            found[method] = result = call()
            walls[method].append(time.perf_counter() - began)
            clocks[method].append(sum(stage.seconds for stage in result.stages if "solve" in stage.name))
    figures = {}
    for method, result in found.items():
        least = {"wall": min(walls[method][1:]), "seconds": min(clocks[method][1:])}  # the first may load machine code
        fitted = 1.0 if result.residual <= REACHED else float("nan")
        figures[method] = {key: fitted * value for key, value in (least | {"passes": float(result.passes)}).items()}
    return figures


class Recovery:
    """Passes and seconds of all solves from a start to a relative residual of 1e-6, and the wall of the whole call."""

    version = common.PROBLEM_SET
    params = (PHASE + DISTANCES, METHODS)
    param_names = ("problem", "method")
    repeats = 5

    def setup_cache(self):
        common.one_thread()
        return common.table(
            ((problem,), lambda problem=problem: run(problem, self.repeats)) for problem in self.params[0]
        )

    setup_cache.timeout = 900

    def setup(self, cache, problem, method):
        self.figures = common.cell(cache, problem)[method]

    def track_wall(self, cache, problem, method):
        return self.figures["wall"]

    def track_seconds(self, cache, problem, method):
        return self.figures["seconds"]

    def track_passes(self, cache, problem, method):
        return self.figures["passes"]

    track_wall.unit = track_seconds.unit = "seconds"
    track_passes.unit = "passes"


#: Similarities of scikit-learn's digits below r, and r clusters.
CLUSTERS = ["near neighbours, r = 5", "near neighbours, r = 10", "cosines, r = 5"]

#: How near F must be to where a run ends, relatively, and how long a run may take.
NEAR, LONGEST_RUN = 1e-5, 20.0


def factored(name, method, starts):
    """Return the geometric mean over starts of the wall seconds to within 1e-5 of the F that a run ends at, and that F.

    Methods end in different valleys, some 1e-4 apart, also from one start.
    """
    import time

    import numpy as np

    from quartbench import GramForm, Orthant, inverse
    from quartbench.inverse.symnmf import uniform_start

    kind, rank = name.split(", r = ")
    data, _ = inverse.examples.digits(int(rank))
    unit = data / np.linalg.norm(data, axis=1)[:, None]
    matrix = unit @ unit.T if kind == "cosines" else inverse.similarity(data)
    problem = inverse.Problem(GramForm(len(data), int(rank)), matrix, Orthant())
    inverse.solve(problem, method, max_iter=30)  # loads machine code
    found = []
    for seed in range(starts):
        start = uniform_start(matrix, int(rank), seed)
        # On the wall: each run from its start, with all that a solve does before and between the steps.
        began, seen = time.perf_counter(), []
        note = lambda state, began=began, seen=seen: seen.append((time.perf_counter() - began, state.fun))  # noqa: E731
        run = inverse.solve(problem, method, start, tol=1e-7, max_iter=20_000, time_limit=LONGEST_RUN, callback=note)
        found.append((next(second for second, fun in seen if fun <= (1.0 + NEAR) * run.fun), run.fun))
    seconds, values = np.array(found).T
    return {"seconds": float(np.exp(np.log(seconds).mean())), "value": float(values.mean())}


class Factors:
    """Symmetric NMF of similarities of digits, on one thread: `auto`, coordinate descent, L-BFGS-B, projected BB."""

    version = common.PROBLEM_SET
    params = (CLUSTERS, ["auto", "cd", "scipy-lbfgs", "projected-bb"])
    param_names = ("matrix", "method")
    starts = 5

    def setup_cache(self):
        common.one_thread()
        cells = [(name, method) for name in self.params[0] for method in self.params[1]]
        return common.table((cell, lambda cell=cell: factored(*cell, self.starts)) for cell in cells)

    setup_cache.timeout = 900

    def setup(self, cache, matrix, method):
        self.figures = common.cell(cache, matrix, method)

    def track_seconds(self, cache, matrix, method):
        return self.figures["seconds"]

    def track_value(self, cache, matrix, method):
        return self.figures["value"]

    track_seconds.unit = "seconds"
    track_value.unit = "F"


class Bridges:
    """Passes of a convex step of DC to a certified gap of 1e-8 where a bridge joins clouds of points; medians."""

    version = common.PROBLEM_SET
    params = (
        ["2 clouds of 100, all pairs", "2 clouds of 100, near pairs", "10 clouds of 20, all pairs"],
        ["own start", "last point"],
        ["homgd", "accel-homgd", "homnewton-cg"],
        ["uniform", "lewis"],
    )
    param_names = ("points", "start", "solver", "metric")
    gap, seeds = 1e-8, 9  # from the start that solve makes itself, or from where the last step of DC ended

    def track_passes(self, points, start, solver, metric):
        import numpy as np

        return float(np.median([self.passes(points, start, solver, metric, seed) for seed in range(self.seeds)]))

    def passes(self, points, start, solver, metric, seed):
        import numpy as np

        from quartbench import GraphForm, Problem, inverse

        count, size = (int(word) for word in points.split(",")[0].split() if word.isdigit())
        truth, pairs = inverse.examples.clouds(count, size, 1, 20 if "near" in points else None, seed)
        form = GraphForm(len(truth), 3, pairs)
        last = truth + 0.05 * truth.std() * np.random.default_rng(100 + seed).standard_normal(truth.shape)
        last -= last.mean(axis=0)
        c = inverse.Problem(form, inverse.examples.lengths(truth, pairs) ** 2).linearised(last)
        begin = {"start": last} if start == "last point" else {}
        return common.counted(Problem(form, c), solver, metric, self.gap, **begin)["passes"]

    track_passes.unit = "passes"
