"""The methods, one a file, behind one driver: ``solve(problem, solver=…, metric=…)``."""

from . import peers as peers
from .accel_homgd import AccelHomGD
from .auto import Auto
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
from .homcg import HomCG
from .homgd import HomGD
from .homnewton import HomNewton
from .homnewton_cg import HomNewtonCG
from .many import solve_many

__all__ = [
    "GD",
    "AccelHomGD",
    "Auto",
    "Bregman",
    "History",
    "HomCG",
    "HomGD",
    "HomNewton",
    "HomNewtonCG",
    "Iterate",
    "Result",
    "Solver",
    "State",
    "describe",
    "load_solver",
    "make_solver",
    "register",
    "solve",
    "solve_many",
    "solvers",
    "starting_point",
]
