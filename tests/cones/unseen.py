"""A cone that nobody has seen: an ice-cream cone times an orthant, by its projection alone."""

import numpy as np

from quartbench import Cone


class IceCreamAndMore(Cone):
    """{(s, v, w) : ‖v‖ ≤ s, w ≥ 0}, v of three coordinates."""

    name = "ice-cream-and-more"

    def project(self, x, metric):
        y = np.maximum(x, 0.0)
        s, v = x[0], x[1:4]
        length = np.linalg.norm(v)
        if length <= s:
            y[:4] = x[:4]
        elif length <= -s:
            y[:4] = 0.0
        else:
            y[0] = 0.5 * (s + length)
            y[1:4] = y[0] * v / length
        return y
