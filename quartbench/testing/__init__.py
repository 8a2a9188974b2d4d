"""Does a solver, form, metric or cone keep its contract? The batteries that the built-in ones pass, for authors of new."""

from .cones import check_cone
from .forms import check_form
from .metrics import check_metric
from .problems import problems
from .solvers import check_solver

__all__ = ["check_cone", "check_form", "check_metric", "check_solver", "problems"]
