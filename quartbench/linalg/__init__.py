"""Linear algebra that knows nothing of quartics: conjugate gradients, Laplacians, dissection, bounded quadratics."""
