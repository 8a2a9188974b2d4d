"""
A method of your own
====================

A solver is a class with a generator of iterates. The driver times it, stops it and certifies what it finds, so that
it stands beside the others at once. This one has momentum, and a fixed step. The gap of an iterate is that to the best
lower bound of the whole run, so that a curve levels off once f has reached its minimum.
"""

from matplotlib import pyplot as plt

import quartbench as qb
from quartbench.solvers import Iterate


class HeavyBall(qb.Solver):
    """Gradient steps on the homogenised problem with a share of the last step."""

    def __init__(self, momentum=0.7):
        self.momentum = momentum

    def iterates(self, problem, metric, start):
        """Yield the start, then a step after another."""
        project = problem.cone.slice(problem.c, metric)
        step = 1.0 / (6.0 * metric.bounds.beta)
        before = y = project(start)
        while True:
            root, gradient = problem.root_and_gradient(y)  # one pass
            # With f at the best point of the ray of y:
            yield Iterate(y, -3.0 * 4.0 ** (-4.0 / 3.0) * root ** (-2.0 / 3.0))
            moved = y - step * metric.solve(gradient) + self.momentum * (y - before)
            before, y = y, project(moved)


problem = qb.instances.spectrum(m=500, n=50, sigma_min=0.05, seed=0)
figure, panel = plt.subplots(figsize=(7, 4), layout="constrained")
for name, solver in {
    "heavy ball": HeavyBall(),
    "homgd, fixed step": qb.solvers.HomGD(step="fixed"),
    "homgd": "homgd",
}.items():
    result = qb.solve(
        problem, solver=solver, metric="uniform", rel_gap=1e-8, max_iter=500
    )
    panel.semilogy(
        result.history.iteration, result.history.gap, label=f"{name}: {result.status}"
    )
panel.set_xlabel("iterations")
panel.set_ylabel("certified relative gap")
panel.set_title("Certified gap of one's own method and of HomGD")
panel.grid(alpha=0.3)
panel.legend(frameon=False)
plt.show()
