"""The kernels: value and gradient, Hessian product, line coefficients, over every axis and storage."""

from . import common

#: Calls in a sample: most take less than a millisecond, which alone would be timed badly.
CALLS = 20


class AgainstBaseline:
    """Time over that of NumPy, BLAS or scipy.sparse, interleaved in one run: 1 is equal, lower is better."""

    params = (
        [
            "dense-200x20",
            "dense-500x20",
            "dense-2000x100",
            "dense-2000x1000",
            "dense-20000x1000",
            "rank3-20000x200",
            "hessian-20000x1000",
            "graph-1000",
            "graph-100000",
            "csr-100000x2000",
            "complex-5000x500",
        ],
    )
    param_names = ("case",)
    version = common.PROBLEM_SET
    timeout = 300

    def track_relative_time(self, case):
        import numba

        from quartbench.study.kernels import measure

        return 1.0 / next(measure(numba.get_num_threads(), [case], rounds=3)).ratio

    track_relative_time.unit = "× baseline"


class _Sweep(common.Timed):
    axis, number = "", CALLS

    def setup(self, value):
        self.form = common.MEDIUM.problem(self.axis, value).form
        self.x = common.point(self.form)

    def time_value_and_gradient(self, value):
        self.form.value_and_gradient(self.x)

    def time_hessian_product(self, value):
        self.form.hessian_product(self.x, self.x)


class OverTerms(_Sweep):
    """Over m, 200 variables, rank 1: linear in m, with a step where the rows leave the cache."""

    axis, params, param_names = "m", (common.MEDIUM.values["m"],), ("m",)


class OverVariables(_Sweep):
    """Over n, 5000 terms of rank 1: linear in n."""

    axis, params, param_names = "n", (common.MEDIUM.values["n"],), ("n",)


class OverRank(_Sweep):
    """Over r, 5000 terms of 200 variables: linear in r, as a term has r rows."""

    axis, params, param_names = "r", (common.MEDIUM.values["r"],), ("r",)


class OverConditioning(_Sweep):
    """Over σ_min, 5000 × 200: flat, as the numbers do not matter."""

    axis, params, param_names = "sigma_min", (common.MEDIUM.values["sigma_min"],), ("sigma_min",)


class OverCoherence(_Sweep):
    """Over the coherence γ, 5000 × 200: flat too."""

    axis, params, param_names = "gamma", (common.MEDIUM.values["gamma"],), ("gamma",)


class OverDensity(common.Timed):
    """Sparse rows (CSR, 20000 × 1000) over the share of entries that are stored."""

    params = ([0.002, 0.005, 0.01, 0.02, 0.05],)
    param_names = ("density",)
    number = CALLS

    def setup(self, density):
        self.form = common.instance("sparse", m=20_000, n=1000, density=density).form
        self.x = common.point(self.form)

    def time_value_and_gradient(self, density):
        self.form.value_and_gradient(self.x)


class OverGraphs(common.Timed):
    """Geometric graphs in three coordinates over their points, ten edges at each."""

    params = ([1000, 3000, 10_000, 30_000, 100_000],)
    param_names = ("points",)
    number = CALLS

    def setup(self, points):
        self.form = common.instance("geometric", points=points).form
        self.x = common.point(self.form)

    def time_value_and_gradient(self, points):
        self.form.value_and_gradient(self.x)


class SmallForms(common.Timed):
    """Forms of 20 variables that fit in the first caches: what a call costs beside its work."""

    params = ([50, 200, 500, 1000, 2000],)
    param_names = ("m",)

    def setup_cache(self):
        # No setup: it would run before every call and end asv's batching of microsecond calls.
        forms = {m: common.instance("spectrum", m=m, n=20, sigma_min=0.1).form for m in self.params[0]}
        return {m: (form, common.point(form), form.image(common.point(form))) for m, form in forms.items()}

    def time_value_and_gradient(self, cache, m):
        form, x, _ = cache[m]
        form.value_and_gradient(x)

    def time_line_from_images(self, cache, m):
        form, _, image = cache[m]
        form.line_from_images(image, image)


class Memory:
    """Peak memory of one evaluation beside that of its 80 MB of rows alone: kernels must not copy rows."""

    version = common.PROBLEM_SET

    def setup(self):
        self.form = common.instance("heavy_tailed", m=20_000, n=500).form
        self.x = common.point(self.form)

    def peakmem_reference(self):
        pass

    def peakmem_value_and_gradient(self):
        self.form.value_and_gradient(self.x)


class Large(common.Timed):
    """Rows of 400 MB and 2 GB: the speed of memory counts (large tier)."""

    params = (["100000×500", "250000×1000"],)
    param_names = ("size",)

    def setup(self, size):
        common.require_large()
        m, n = map(int, size.split("×"))
        self.form = common.instance("heavy_tailed", m=m, n=n).form
        self.x = common.point(self.form)

    def time_value_and_gradient(self, size):
        self.form.value_and_gradient(self.x)

    def time_hessian_product(self, size):
        self.form.hessian_product(self.x, self.x)
