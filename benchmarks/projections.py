"""Projections onto the cones and onto their slices K ∩ {⟨c,y⟩ = 1}: what a step costs beside its passes."""

from . import common


class OverVariables(common.Timed):
    """Over n: linear for the second-order cone, n log n for the slice of the orthant, which sorts."""

    params = ([100, 1000, 10_000, 100_000, 300_000],)
    param_names = ("n",)

    def setup_cache(self):
        import numpy as np

        # No setup: it would run before every call and end asv's batching of microsecond calls.
        rng = np.random.default_rng(0)
        points = {}
        for n in self.params[0]:
            y, c, diagonal = rng.standard_normal(n), rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
            c[0] = np.linalg.norm(c)  # inside the cone, or its slice would be empty
            points[n] = (y, c, diagonal)
        return points

    def time_orthant_slice(self, cache, n):
        from quartbench.kernels.projections import orthant_slice

        orthant_slice(*cache[n])

    def time_second_order(self, cache, n):
        from quartbench.kernels.projections import second_order

        second_order(cache[n][0])

    def time_second_order_slice(self, cache, n):
        from quartbench.kernels.projections import second_order_slice

        y, c, _ = cache[n]
        second_order_slice(y, c)
