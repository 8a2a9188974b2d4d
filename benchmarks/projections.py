"""Projections onto the cones and onto their slices K ∩ {⟨c,y⟩ = 1}: what a step costs beside its passes."""

from . import common


class OverVariables(common.Timed):
    """Over n: linear for the second-order cone, n log n for the slice of the orthant, which sorts."""

    params = ([100, 1000, 10_000, 100_000, 300_000],)
    param_names = ("n",)

    def setup_cache(self):
        import numpy as np

        from quartbench import Diagonal, Identity, Orthant, SecondOrder

        # No setup: it would run before every call and end asv's batching of microsecond calls. For the same reason no
        # import in a timed call: reading the cones and metrics of this cache has imported all.
        rng = np.random.default_rng(0)
        points = {}
        for n in self.params[0]:
            y, c, diagonal = rng.standard_normal(n), rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
            c[0] = np.linalg.norm(c)  # inside the cone, or its slice would be empty
            points[n] = (y, c, (Orthant(), Diagonal(diagonal)), (SecondOrder(), Identity(n)))
        return points

    def time_orthant_slice(self, cache, n):
        y, c, (cone, metric), _ = cache[n]
        cone.slice(c, metric)(y)

    def time_second_order(self, cache, n):
        y, _, _, (cone, _) = cache[n]
        cone.euclidean(y)

    def time_second_order_slice(self, cache, n):
        y, c, _, (cone, metric) = cache[n]
        cone.slice(c, metric)(y)
