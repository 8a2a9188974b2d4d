"""quartbench: certified solvers and honest benchmarks for convex quartic optimisation."""

from quartbench.runtime import configure

configure()  # before anything is compiled, or a thread started

from quartbench import distributed, instances, inverse  # noqa: E402
from quartbench.cones import Centred, Cone, Free, Orthant, SecondOrder, register_cone  # noqa: E402
from quartbench.distributed import DaskForm, DiskForm  # noqa: E402
from quartbench.errors import LostError, ProblemError  # noqa: E402
from quartbench.forms import (  # noqa: E402
    ComplexForm,
    DiffractionForm,
    Form,
    GramForm,
    GraphForm,
    OperatorForm,
    StackedForm,
    TermForm,
    register_form,
)
from quartbench.metrics import Cholesky, Diagonal, Identity, Laplacian, Metric  # noqa: E402
from quartbench.model import Problem, certify  # noqa: E402
from quartbench.precondition import (  # noqa: E402
    coherence,
    effective_resistance,
    leverage,
    lewis_weights,
    measured_kappa,
    metric,
)
from quartbench.solvers import Prepared, Result, Solver, prepare, register, solve, solve_batch, solve_many  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "Centred",
    "Cholesky",
    "ComplexForm",
    "Cone",
    "DaskForm",
    "Diagonal",
    "DiffractionForm",
    "DiskForm",
    "Form",
    "Free",
    "GramForm",
    "GraphForm",
    "Identity",
    "Laplacian",
    "LostError",
    "Metric",
    "OperatorForm",
    "Orthant",
    "Prepared",
    "Problem",
    "ProblemError",
    "Result",
    "SecondOrder",
    "Solver",
    "StackedForm",
    "TermForm",
    "__version__",
    "certify",
    "coherence",
    "distributed",
    "effective_resistance",
    "instances",
    "inverse",
    "leverage",
    "lewis_weights",
    "measured_kappa",
    "metric",
    "prepare",
    "register",
    "register_cone",
    "register_form",
    "solve",
    "solve_batch",
    "solve_many",
]
