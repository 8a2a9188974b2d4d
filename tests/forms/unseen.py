"""A form that nobody has seen: second differences of a signal in several directions, by its image and adjoint alone."""

import numpy as np

from quartbench import TermForm


class Smoothness(TermForm):
    """ρ(X) = Σ ‖(entry, second difference across, second difference down)‖⁴ over the pixels of a small image."""

    def __init__(self, height, width):
        super().__init__()
        self.shape = (height, width)
        self.dim = self.terms = height * width
        self.rank = 3

    def _image(self, x):
        grid = x.reshape(self.shape)
        across = np.roll(grid, 1, 1) - 2.0 * grid + np.roll(grid, -1, 1)
        down = np.roll(grid, 1, 0) - 2.0 * grid + np.roll(grid, -1, 0)
        return np.stack([grid, 0.5 * across, 0.3 * down], axis=-1).reshape(-1)

    def _adjoint(self, weights):
        grid, across, down = np.moveaxis(weights.reshape(*self.shape, 3), -1, 0)
        back = grid + 0.5 * (np.roll(across, 1, 1) - 2.0 * across + np.roll(across, -1, 1))
        return (back + 0.3 * (np.roll(down, 1, 0) - 2.0 * down + np.roll(down, -1, 0))).reshape(-1)

    def arrays(self):
        return {"size": np.array(self.shape)}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(*map(int, arrays["size"]))
