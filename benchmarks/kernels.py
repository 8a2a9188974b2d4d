"""The kernels: value and gradient, Hessian product, line coefficients, over m, n, r and storage."""

import numba

from quartbench.instances import PROBLEM_SET
from quartbench.study.kernels import CASES, measure

from . import common


class AgainstBaseline:
    """Time over that of NumPy, BLAS or scipy.sparse, interleaved in one run: 1 is equal, lower is better."""

    params = (list(CASES),)
    param_names = ("case",)
    version = f"{PROBLEM_SET}"
    timeout = 300

    def track_relative_time(self, case):
        return 1.0 / next(measure(numba.get_num_threads(), [case])).ratio

    track_relative_time.unit = "baseline times"


class SmallValueAndGradient:
    """Value and gradient of forms that fit in cache: call overhead counts."""

    params = ([200, 500, 1000, 2000, 5000], [20, 100])
    param_names = ("m", "n")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup_cache(self):
        # No setup: it would run before every call and end asv's batching of microsecond calls.
        forms = {(m, n): common.dense(m, n) for m in self.params[0] for n in self.params[1]}
        return {size: (form, x, form.image(x)) for size, (form, x) in forms.items()}

    def time_evaluate(self, cache, m, n):
        form, x, _ = cache[m, n]
        form.evaluate(x)

    def time_line_from_images(self, cache, m, n):
        form, _, image = cache[m, n]
        form.line_from_images(image, image)


class LargeValueAndGradient:
    """Value and gradient of forms that do not: memory bandwidth counts."""

    params = ([5000, 10_000, 20_000, 50_000], [500, 1000])
    param_names = ("m", "n")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup(self, m, n):
        self.form, self.x = common.dense(m, n)
        self.image = self.form.image(self.x)

    def time_evaluate(self, m, n):
        self.form.evaluate(self.x)

    def time_hessian_product(self, m, n):
        self.form.hessian_product_from_image(self.image, self.x)


class Rank:
    """Value and gradient over the rank of the terms, the number of rows fixed."""

    params = ([1, 2, 3, 4, 5], ["float64", "float32"])
    param_names = ("r", "dtype")
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup(self, r, dtype):
        self.form, self.x = common.dense(60_000 // r, 200, r, dtype)

    def time_evaluate(self, r, dtype):
        self.form.evaluate(self.x)


class Graph:
    """Value and gradient over the edges of a geometric graph in three coordinates, ten edges a point."""

    params = ([1000, 3000, 10_000, 30_000, 100_000],)
    param_names = ("points",)
    version = f"{PROBLEM_SET}"
    rounds, repeat, warmup_time = common.TIMING["rounds"], common.TIMING["repeat"], common.TIMING["warmup_time"]

    def setup(self, points):
        self.form, self.x = common.graph(points)

    def time_evaluate(self, points):
        self.form.evaluate(self.x)


class Memory:
    """Peak memory of one evaluation beside that of its input alone: kernels must not copy rows."""

    version = f"{PROBLEM_SET}"

    def setup(self):
        self.form, self.x = common.dense(20_000, 1000)

    def peakmem_reference(self):
        pass

    def peakmem_evaluate(self):
        self.form.evaluate(self.x)
