"""
Metrics: which ellipse fits?
============================

A metric B measures points by an ellipse. The better it fits the level set of √ρ, the smaller κ, and the fewer steps a
gradient method takes. Lewis weights give an ellipse with κ ≤ √n, whatever the rows.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

COLOURS = {"identity": "#999999", "uniform": "#e69f00", "lewis": "#0072b2"}

# %%
# In the plane: many rows along one axis, a single one along the other. The level set √ρ = 1 is black. Each ellipse is
# scaled to touch it from inside; how many times its area must grow to touch it from outside is κ.

rng = np.random.default_rng(0)
many = np.column_stack([np.ones(40), 0.05 * rng.standard_normal(40)])
rows = np.vstack([many, [[0.0, 1.0]]])
form = qb.StackedForm(rows)
angle = np.linspace(0.0, 2.0 * np.pi, 721)
circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
root = np.sqrt(((circle @ rows.T) ** 4).sum(axis=1))
level = circle / np.sqrt(root)[:, None]

figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
panel.plot(*level.T, color="black", linewidth=2, label="√ρ = 1")
for name, colour in COLOURS.items():
    norms = np.array([qb.metric(form, name).norm(x) for x in circle])
    ratio = root / norms**2
    panel.plot(
        *(circle / norms[:, None] / np.sqrt(ratio.max())).T,
        color=colour,
        label=f"{name}: κ = {ratio.max() / ratio.min():.2f}",
    )
panel.set_aspect("equal")
panel.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.62, 0.85))
panel.set_xlim(-1.1, 2.4)
panel.set_title("Level set of √ρ, and ellipses of three metrics")
plt.show()

# %%
# In twenty dimensions, on rows of coherence 0.999 (the paper's Figure 2b): HomGD with its fixed step.

problem = qb.instances.coherent(500, 20, gamma=0.999, seed=0)
homgd = qb.solvers.HomGD(step="fixed")
figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
for name, colour in COLOURS.items():
    result = qb.solve(problem, solver=homgd, metric=name, rel_gap=1e-8, max_iter=1500)
    panel.semilogy(
        result.history.iteration + 1, result.history.gap, color=colour, label=name
    )
panel.set_title("Certified gap of HomGD in three metrics")
panel.set_xscale("log")
panel.set_xlabel("iterations of HomGD")
panel.set_ylabel("certified relative gap")
panel.grid(alpha=0.3)
panel.legend(frameon=False)
plt.show()
