"""
Points from some of their distances
===================================

A helix of 300 points from a fifth of their distances; the rest is not known.
"""

from matplotlib import pyplot as plt

import quartbench as qb

truth = qb.inverse.examples.helix(300)
pairs = qb.inverse.examples.random_pairs(300, 0.2, seed=0)
found = qb.inverse.distances(qb.inverse.examples.lengths(truth, pairs), pairs)
error = qb.inverse.rmsd(found.x, truth)
print(f"{len(pairs)} distances, RMSD {error:.0e}, {found.passes} passes")

placed = qb.inverse.procrustes(found.x, truth)
figure = plt.figure(figsize=(5, 4.5), layout="constrained")
space = figure.add_subplot(projection="3d")
space.plot(*truth.T, color="#e69f00", linewidth=4, alpha=0.5, label="truth")
space.plot(*placed.T, ".", color="#0072b2", markersize=3, label="found")
space.legend(frameon=False)
space.set_title("A helix, and the points found")
space.set_box_aspect((4, 4, 3), zoom=1.25)
space.set_axis_off()
plt.show()
