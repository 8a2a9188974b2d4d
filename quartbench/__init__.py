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
    "SecondOrder",
    "StackedForm",
    "__version__",
    "certify",
    "instances",
]
