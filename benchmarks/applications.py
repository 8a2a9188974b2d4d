"""Phase retrieval, distance completion and symmetric NMF: `auto` beside the peers, from the same starts."""

from . import common

METHODS = ["auto", "scipy-lbfgs-kernels", "scipy-lbfgs"]

PHASE = ["Gaussian, N = 64, m = 6N", "Gaussian, N = 256, m = 6N", "Gaussian, N = 64, m = 4N", "8 masks, 64×64"]
PHASE += ["8 heavy-tailed masks, N = 1000"]
DISTANCES = ["helix, 1000 points, 10 %", "cube, 1000 points", "rod, 1000 points", "bridge, 1000 points"]

CLUSTERS = ["partition, 500 objects in 5", "near neighbours, 1000 objects in 10"]
CLUSTERERS = ["auto", "scipy-lbfgs", "projected-bb", "symhals"]

#: The relative residual that a run must reach to count, and what it is asked for.
REACHED, TOLERANCE = 1e-6, 1e-7

#: How near to the F where it ends a factorisation must come: methods may end in different valleys.
NEAR = 1e-5


def measurements(name):
    """Return (form, d, start) of a phase problem: the start is the spectral one."""
    import numpy as np

    from quartbench import ComplexForm, DiffractionForm
    from quartbench.inverse import examples, spectral_start

    if name.startswith("Gaussian"):
        n, ratio = (int(word.split(" = ")[1].rstrip("N")) for word in name.split(", ")[1:])
        rows, d, _ = examples.gaussian_phase(n, ratio * n)
        form = ComplexForm(rows)
    else:
        shape, heavy = ((64, 64), False) if "64×64" in name else ((1000,), True)
        truth = np.random.default_rng(0).standard_normal((*shape, 2)).view(np.complex128)[..., 0]
        masks, d, _ = examples.coded_image(truth, 8, heavy=heavy)
        form = DiffractionForm(masks)
    return form, d.reshape(-1), spectral_start(form, d.reshape(-1))


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


def run(name, method, repeats):
    """Return the passes and the least seconds of all solves from the start; NaN where the data were not fitted.

    Making a form is counted for nobody.
    """
    from quartbench import GraphForm, inverse

    if name in PHASE:
        form, d, start = measurements(name)
        if method == "auto":
            call = lambda: inverse.phase(form, d, start=start, tol=TOLERANCE, restarts=0)  # noqa: E731
        else:
            problem = inverse.Problem(form, d)
            call = lambda: inverse.solve(problem, method, start, tol=TOLERANCE)  # noqa: E731
    else:
        pairs, lengths, start = points(name)
        if method == "auto":
            call = lambda: inverse.distances(lengths, pairs, start=start, tol=TOLERANCE, attempts=0)  # noqa: E731
        else:
            problem = inverse.Problem(GraphForm(len(start), 3, pairs), lengths**2)
            call = lambda: inverse.solve(problem, method, start, tol=TOLERANCE)  # noqa: E731
    seconds = []
    for _ in range(repeats + 1):  # the first may load machine code
        found = call()
        seconds.append(sum(stage.seconds for stage in found.stages if "solve" in stage.name))
    fitted = found.residual <= REACHED
    nan = float("nan")
    return {"seconds": min(seconds[1:]) if fitted else nan, "passes": float(found.passes) if fitted else nan}


class Recovery:
    """Passes and seconds of all solves from the start to a relative residual of 1e-6, on one thread."""

    version = common.PROBLEM_SET
    params = (PHASE + DISTANCES, METHODS)
    param_names = ("problem", "method")
    repeats = 5

    def setup_cache(self):
        common.one_thread()
        cells = [(problem, method) for problem in self.params[0] for method in self.params[1]]
        return common.table((cell, lambda cell=cell: run(*cell, self.repeats)) for cell in cells)

    setup_cache.timeout = 900

    def setup(self, cache, problem, method):
        self.figures = common.cell(cache, problem, method)

    def track_seconds(self, cache, problem, method):
        return self.figures["seconds"]

    def track_passes(self, cache, problem, method):
        return self.figures["passes"]

    track_seconds.unit = "seconds"
    track_passes.unit = "passes"


def similarities(name):
    """Return (M, rank): dense and definite, or sparse between near neighbours."""
    import numpy as np

    from quartbench.instances import partition_similarity
    from quartbench.inverse import similarity

    if name.startswith("partition"):
        return partition_similarity(500, 5, 0.2, 0.05).matrix, 5
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.standard_normal((10, 8))
    return similarity(centres[np.arange(1000) % 10] + rng.standard_normal((1000, 8))), 10


def factored(name, method, repeats):
    """Return the residual at the end, and the passes and least seconds to within a little of the F there.

    Seconds are on the clock of the method, which stops while the driver judges its iterates.
    """
    from quartbench import inverse

    if method not in inverse.methods():
        raise NotImplementedError(f"{method} is not installed")
    matrix, rank = similarities(name)
    seconds = []
    for _ in range(repeats + 1):  # the first may load machine code
        found = inverse.symnmf(matrix, rank, method=method)
        first = (found.history.value <= (1.0 + NEAR) * found.fun).nonzero()[0][0]
        seconds.append(float(found.history.seconds[first]))
    return {
        "residual": float(found.residual),
        "seconds": min(seconds[1:]),
        "passes": float(found.history.passes[first]),
    }


class Factorisation:
    """Passes and seconds of symmetric NMF to within 1e-5 of the F at the end, and how low that is, on one thread."""

    version = common.PROBLEM_SET
    params = (CLUSTERS, CLUSTERERS)
    param_names = ("problem", "method")
    repeats = 3

    def setup_cache(self):
        common.one_thread()
        cells = [(problem, method) for problem in self.params[0] for method in self.params[1]]
        return common.table((cell, lambda cell=cell: factored(*cell, self.repeats)) for cell in cells)

    setup_cache.timeout = 900

    def setup(self, cache, problem, method):
        self.figures = common.cell(cache, problem, method)

    def track_seconds(self, cache, problem, method):
        return self.figures["seconds"]

    def track_passes(self, cache, problem, method):
        return self.figures["passes"]

    def track_residual(self, cache, problem, method):
        return self.figures["residual"]

    track_seconds.unit = "seconds"
    track_passes.unit = "passes"
    track_residual.unit = "‖XXᵀ − M‖/‖M‖"
