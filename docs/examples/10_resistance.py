"""
Coherence of a graph
====================

On a graph the leverage of an edge is its effective resistance: 1 on a bridge, little where many ways lead. Lewis
weights raise the bridge until every edge counts as it should.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

# Two complete graphs of eight points on circles, and a bridge between them.
edges = qb.instances.barbell_edges(16)
form = qb.GraphForm(16, 2, edges)
resistance = qb.effective_resistance(form).values
weights = qb.lewis_weights(form)
kappa = {name: qb.metric(form, name).bounds.kappa for name in ("uniform", "lewis")}
print(f"coherence {qb.coherence(form):.3f}", end="; ")
print(f"κ ≤ {kappa['uniform']:.2f} uniform, {kappa['lewis']:.2f} lewis")

angle = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
turned = np.roll(ring, 1, axis=0)
place = np.vstack([turned - (1.8, 0.0), (1.8, 0.0) - turned])
bridge = edges[resistance.argmax()]
spots = np.array([[-0.8, 0.0], [0.8, 0.0]])
for point, spot in zip(bridge, spots, strict=True):
    half = slice(0, 8) if point < 8 else slice(8, 16)
    other = half.start + np.linalg.norm(place[half] - spot, axis=1).argmin()
    place[[point, other]] = place[[other, point]]

figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.3), layout="constrained")
drawn = {"effective resistance": resistance, "Lewis weights": weights.tau}
for panel, (title, values) in zip(panels, drawn.items(), strict=True):
    for (i, j), share in zip(edges, values / values.max(), strict=True):
        colour = plt.cm.viridis_r(share)
        panel.plot(*place[[i, j]].T, color=colour, linewidth=0.7 + 3 * share)
    panel.plot(*place.T, "o", color="black", markersize=4)
    panel.set_title(f"{title}: {values.min():.2f} to {values.max():.2f}")
    panel.set_aspect("equal")
    panel.axis("off")
plt.show()
