"""
Clusters by symmetric NMF
=========================

Similarities of 120 objects, M ≈ XXᵀ with X ≥ 0: the largest entry of a row of X is the cluster of its object.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

made = qb.instances.partition_similarity(120, 4, p_in=0.5, p_out=0.05, seed=0)
shuffled = np.random.default_rng(1).permutation(120)
M, truth = made.matrix[np.ix_(shuffled, shuffled)], made.labels[shuffled]
found = qb.inverse.symnmf(M, rank=4, restarts=2)
print(f"accuracy {qb.inverse.clustering_accuracy(found.labels, truth):.2f}")

order = np.argsort(found.labels, kind="stable")
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(9.5, 3.3), layout="constrained"
)
others = M - np.diag(np.diag(M))
left.spy(others, markersize=1, color="#0072b2")
left.set_title("similarities as they come")
middle.spy(others[np.ix_(order, order)], markersize=1, color="#0072b2")
middle.set_title("in the order of the clusters")
right.imshow(found.x[order], aspect="auto", cmap="Blues", interpolation="nearest")
right.set_title("X ≥ 0")
right.set_xlabel("column")
right.set_ylabel("object, in that order")
for panel in (left, middle):
    panel.set_xticks([])
    panel.set_yticks([])
plt.show()
