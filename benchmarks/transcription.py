"""Algorithm 2 of the paper as one writes it first in NumPy: what the solvers are timed against."""

import numpy as np


def accelerated(rows, c, iterations):
    """Run Algorithm 2 for B = I on free space with Armijo's rule; return √ρ(y) of every iteration.

    The step is doubled before every search and halved until g(y) ≤ g(z) + ⟨∇g(z),y−z⟩ + ‖y−z‖²/(2t), g = √ρ.
    """

    def rho(y):
        return np.sum((rows @ y) ** 4)

    def gradient(y):
        return 4.0 * rows.T @ (rows @ y) ** 3

    square = c @ c
    y = c / square
    t, stage, values = 1.0, 0, []
    while len(values) < iterations:
        first = z = y
        for k in range(min(2**stage, iterations - len(values))):
            root = np.sqrt(rho(z))
            slope = gradient(z) / (2.0 * root)
            t *= 2.0
            while True:
                moved = z - t * slope
                new = moved + (1.0 - c @ moved) / square * c
                h = new - z
                value = np.sqrt(rho(new))
                if value <= root + slope @ h + h @ h / (2.0 * t):
                    break
                t *= 0.5
            z = new + k / (k + 3) * (new - y)
            y = new
            values.append(value)
        if rho(y) > rho(first):
            y = first
        stage += 1
    return values


def lean(rows, c, iterations):
    """Run the same with less work: one product with the rows for value and slope, and a step that grows by a tenth."""
    square = c @ c
    y = c / square
    t, stage, values = 1.0, 0, []
    while len(values) < iterations:
        first, first_value, z = y, np.inf, y
        for k in range(min(2**stage, iterations - len(values))):
            s = rows @ z
            root = np.sqrt(np.sum(s**4))
            slope = (2.0 / root) * (rows.T @ s**3)
            t *= 1.1
            while True:
                moved = z - t * slope
                new = moved + (1.0 - c @ moved) / square * c
                h = new - z
                value = np.sqrt(np.sum((rows @ new) ** 4))
                if value <= root + slope @ h + h @ h / (2.0 * t):
                    break
                t *= 0.5
            z = new + k / (k + 3) * (new - y)
            y = new
            values.append(value)
            first_value = root if k == 0 else first_value
        if value > first_value:
            y = first
        stage += 1
    return values
