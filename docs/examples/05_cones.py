"""
The same rows over three cones
==============================

The whole space, the orthant and the second-order cone: a cone is one more argument, and certificates hold on each.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

rng = np.random.default_rng(3)
form = qb.StackedForm(rng.standard_normal((200, 12)))
c = rng.standard_normal(12) + 0.5
cones = {"free": qb.Free(), "orthant": qb.Orthant(), "second-order": qb.SecondOrder()}
results = {
    name: qb.solve(qb.Problem(form, c, cone), rel_gap=1e-9)
    for name, cone in cones.items()
}

figure, panel = plt.subplots(figsize=(8, 3.6), layout="constrained")
for place, (name, result) in enumerate(results.items()):
    panel.bar(
        np.arange(12) + 0.27 * (place - 1),
        result.x,
        width=0.25,
        label=f"{name}: f = {result.fun:.4f}",
    )
panel.axhline(0.0, color="gray", linewidth=0.8)
panel.set_xticks(range(12))
panel.set_xlabel("coordinate")
panel.set_ylabel("its value in the minimiser")
panel.set_title("Minimisers over three cones")
panel.legend(frameon=False)
plt.show()

# %%
# The larger the cone, the lower the minimum, and the proved numbers say so:

print(results["free"].fun <= results["orthant"].lower_bound)
print(bool((results["orthant"].x >= 0).all()))
