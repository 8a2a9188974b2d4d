"""
Solve, certify, compare
=======================

One problem, four methods: what each has certified after how many passes over the rows.
"""

from matplotlib import pyplot as plt

import quartbench as qb

problem = qb.instances.spectrum(m=1000, n=200, sigma_min=0.02, seed=0)
results = {
    name: qb.solve(problem, solver=name, rel_gap=1e-8)
    for name in ("auto", "homcg", "accel-homgd", "homgd")
}
for name, result in results.items():
    print(f"{name:12}{result.status}, f = {result.fun:.8f}, certified gap", end=" ")
    print(f"{result.gap:.0e}, {result.passes} passes")

# %%
# The history of a run has a row for each iterate; ``result.history.to_frame()`` is the same as a table. The gap of an
# iterate is that to the best lower bound of the whole run.

figure, panel = plt.subplots(figsize=(7, 4), layout="constrained")
for name, result in results.items():
    panel.semilogy(result.history.passes, result.history.gap, ".-", label=name)
panel.set_xlabel("passes over the rows")
panel.set_ylabel("certified relative gap")
panel.set_title("Certified gap of four methods against passes")
panel.set_ylim(1e-10, 10)
panel.grid(alpha=0.3)
panel.legend(frameon=False)
plt.show()
