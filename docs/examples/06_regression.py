"""
ℓ4 regression
=============

Least squares forgives one large error for many small ones; minimax looks at the largest alone. The fit that minimises
‖Ax − b‖₄ is between them, smooth, and a convex quartic problem.
"""

import numpy as np
from matplotlib import pyplot as plt

import quartbench as qb

# %%
# A polynomial of degree 5 for eˣ·sin 3x on [−1, 1].

t = np.linspace(-1.0, 1.0, 400)
A = np.polynomial.chebyshev.chebvander(t, 5)
b = np.exp(t) * np.sin(3.0 * t)

fit = qb.l4_regression(A, b, rel_gap=1e-10)
print(fit.message)

# %%
# The residuals: the quartic fit is nearly level, as the best uniform one is.

figure, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
for name, x in {"least squares": fit.start, "ℓ4": fit.x}.items():
    residual = A @ x - b
    panel.plot(t, residual, label=f"{name}: largest error {np.abs(residual).max():.4f}")
panel.axhline(0.0, color="gray", linewidth=0.8)
panel.set_xlabel("t")
panel.set_ylabel("fit − data")
panel.set_title("Residuals of a polynomial fit")
panel.legend(frameon=False)
plt.show()
