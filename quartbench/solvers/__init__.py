"""The methods, one a file, behind one driver: ``solve(problem, solver=…, metric=…)``."""

from .accel_homgd import AccelHomGD
from .base import (
    History,
    Iterate,
    Result,
    Solver,
    State,
    describe,
    load_solver,
    make_solver,
    register,
    solve,
    solvers,
    starting_point,
)
from .bregman import Bregman
from .gd import GD
from .homgd import HomGD

__all__ = [
    "GD",
    "AccelHomGD",
    "Bregman",
    "History",
    "HomGD",
    "Iterate",
    "Result",
    "Solver",
    "State",
    "describe",
    "load_solver",
    "make_solver",
    "register",
    "solve",
    "solvers",
    "starting_point",
]
