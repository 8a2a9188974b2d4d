"""
A convex quartic problem in the plane
=====================================

f(x) = ρ(x) − ⟨c,x⟩ with three terms ρ(x) = Σ ⟨aᵢ,x⟩⁴. On every ray the best point is known in closed form, so that only
the direction is left to find: the homogenised problem looks for the lowest √ρ on the line ⟨c,y⟩ = 1.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

A = np.array([[1.0, 0.2], [0.3, 1.0], [0.8, -0.6]])
problem = qb.Problem(qb.StackedForm(A), [1.0, 2.0])
result = qb.solve(problem, rel_gap=1e-10)
print(result.message)

# %%
# The values of f, of √ρ, and the points that belong together.

side = np.linspace(-1.5, 1.5, 201)
grid = np.stack(np.meshgrid(side, side), axis=-1)
rho = ((grid @ A.T) ** 4).sum(axis=-1)
f = rho - grid @ problem.c
y = result.x / (problem.c @ result.x)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
levels = result.fun * np.linspace(1.0, -1.5, 16)
left.contour(side, side, f, levels=levels, cmap="viridis_r", linewidths=1.2)
left.plot(
    [0, 1.6 * result.x[0]], [0, 1.6 * result.x[1]], "--", color="gray", linewidth=1
)
left.plot(*result.x, "o", color="#d55e00")
left.annotate(
    "x*", result.x, (8, -4), textcoords="offset points", color="#d55e00", fontsize=12
)
left.set_title("f, and the ray of its minimiser")

right.contour(
    side,
    side,
    np.sqrt(rho),
    levels=np.linspace(0.02, 1.5, 14),
    cmap="viridis_r",
    linewidths=1.2,
)
right.axline((1.0, 0.0), (0.0, 0.5), color="#0072b2")
right.plot([0, 3 * y[0]], [0, 3 * y[1]], "--", color="gray", linewidth=1)
right.plot(*y, "o", color="#d55e00")
right.annotate(
    "y*", y, (8, 6), textcoords="offset points", color="#d55e00", fontsize=12
)
right.annotate(
    "⟨c,y⟩ = 1",
    (0.62, 0.28),
    color="#0072b2",
    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
)
right.set_title("√ρ, lowest on ⟨c,y⟩ = 1 at y*")
for panel in (left, right):
    panel.set_aspect("equal")
    panel.set_xlim(-1.2, 1.2)
    panel.set_ylim(-1.2, 1.2)
plt.show()
