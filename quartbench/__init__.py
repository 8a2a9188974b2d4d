"""quartbench: certified solvers and honest benchmarks for convex quartic optimisation."""

from typing import TYPE_CHECKING, Any

from quartbench.runtime import configure

configure()  # before anything is compiled, or a thread started

from quartbench import distributed, instances, inverse  # noqa: E402
from quartbench.cones import Centred, Cone, Free, Orthant, SecondOrder, register_cone  # noqa: E402
from quartbench.distributed import DaskForm, DiskForm  # noqa: E402
from quartbench.errors import DeficientError, LostError, ProblemError  # noqa: E402
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
    LewisWeights,
    coherence,
    effective_resistance,
    leverage,
    lewis_weights,
    measured_kappa,
    metric,
)
from quartbench.regression import Regression, l4_regression  # noqa: E402
from quartbench.solvers import (  # noqa: E402
    History,
    Prepared,
    Result,
    Solver,
    State,
    plot,
    prepare,
    register,
    solve,
    solve_batch,
    solve_many,
)

if TYPE_CHECKING:
    from quartbench.regression.estimator import QuarticRegressor
    from quartbench.study.comparison import compare

__version__ = "0.1.0"

__all__ = [
    "Centred",
    "Cholesky",
    "ComplexForm",
    "Cone",
    "DaskForm",
    "DeficientError",
    "Diagonal",
    "DiffractionForm",
    "DiskForm",
    "Form",
    "Free",
    "GramForm",
    "GraphForm",
    "History",
    "Identity",
    "Laplacian",
    "LewisWeights",
    "LostError",
    "Metric",
    "OperatorForm",
    "Orthant",
    "Prepared",
    "Problem",
    "ProblemError",
    "QuarticRegressor",
    "Regression",
    "Result",
    "SecondOrder",
    "Solver",
    "StackedForm",
    "State",
    "TermForm",
    "__version__",
    "certify",
    "coherence",
    "compare",
    "distributed",
    "effective_resistance",
    "instances",
    "inverse",
    "l4_regression",
    "leverage",
    "lewis_weights",
    "measured_kappa",
    "metric",
    "plot",
    "prepare",
    "register",
    "register_cone",
    "register_form",
    "solve",
    "solve_batch",
    "solve_many",
]


def __dir__() -> list[str]:
    """List what is meant for use, that which is not imported yet included."""
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]


def __getattr__(name: str) -> Any:
    """Import what needs more packages, or slow ones, when it is first asked for."""
    if name == "QuarticRegressor":
        from quartbench.regression import QuarticRegressor

        return QuarticRegressor
    if name == "compare":
        from quartbench.study.comparison import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
