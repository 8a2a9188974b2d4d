"""
A certificate is never too good
===============================

Points at known distances from the minimiser are certified, each at the best point of its ray: the certified gap lies
above the true one, and close to it.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

form = qb.instances.spectrum(400, 40, sigma_min=0.05, seed=0).form
problem = qb.instances.planted(form, seed=1)
direction = np.random.default_rng(2).standard_normal(40)
direction *= np.linalg.norm(problem.solution) / np.linalg.norm(direction)

distances = np.geomspace(1e-6, 1.0, 25)
true, certified = [], []
for distance in distances:
    found = qb.certify(problem, problem.solution + distance * direction)
    true.append((found.value - problem.optimum) / abs(problem.optimum))
    certified.append(found.gap)

figure, (panel, ratio) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
panel.loglog(distances, certified, "o-", color="#d55e00", label="certified")
panel.loglog(distances, true, ".-", color="#0072b2", label="true")
panel.set_xlabel("relative distance of x from the minimiser")
panel.set_ylabel("relative gap")
panel.grid(alpha=0.3)
panel.legend(frameon=False)
panel.set_title("True and certified gap")
ratio.semilogx(distances, np.divide(certified, true), "o-", color="#d55e00")
ratio.axhline(1.0, color="gray", linewidth=0.8)
ratio.set_xlabel("relative distance of x from the minimiser")
ratio.set_ylabel("certified over true gap")
ratio.set_ylim(0.0, None)
ratio.grid(alpha=0.3)
ratio.set_title("Certified over true gap")
plt.show()

# %%
# At every distance:

print(all(promise >= truth for promise, truth in zip(certified, true, strict=True)))
