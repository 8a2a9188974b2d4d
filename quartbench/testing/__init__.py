"""Does a solver, form, metric or cone keep its contract? The batteries that ours pass, for authors of new ones."""

from .cones import check_cone
from .forms import check_form
from .metrics import check_metric
from .problems import problems
from .solvers import check_solver

__all__ = ["check_cone", "check_form", "check_metric", "check_solver", "problems"]
