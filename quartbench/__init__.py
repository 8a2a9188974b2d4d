"""quartbench: certified solvers and honest benchmarks for convex quartic optimisation."""

from quartbench import instances
from quartbench.errors import ProblemError
from quartbench.model import (
    Centred,
    Cholesky,
    ComplexForm,
    Diagonal,
    Free,
    GramForm,
    GraphForm,
    Identity,
    Laplacian,
    Orthant,
    Problem,
    SecondOrder,
    StackedForm,
    certify,
)
from quartbench.precondition import coherence, effective_resistance, leverage, lewis_weights, measured_kappa, metric
from quartbench.solvers import Result, Solver, register, solve, solve_many

__version__ = "0.1.0"

__all__ = [
    "Centred",
    "Cholesky",
    "ComplexForm",
    "Diagonal",
    "Free",
    "GramForm",
    "GraphForm",
    "Identity",
    "Laplacian",
    "Orthant",
    "Problem",
    "ProblemError",
    "Result",
    "SecondOrder",
    "Solver",
    "StackedForm",
    "__version__",
    "certify",
    "coherence",
    "effective_resistance",
    "instances",
    "leverage",
    "lewis_weights",
    "measured_kappa",
    "metric",
    "register",
    "solve",
    "solve_many",
]
