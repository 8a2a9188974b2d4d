"""The methods, one per file, behind one driver: ``solve(problem, solver=…, metric=…)``."""

from . import peers as peers
from .abpg import ABPG, AGD
from .accel_homgd import AccelHomGD
from .auto import Auto
from .bregman import Bregman
from .compiled import Batch, solve_batch
from .contract import Iterate, Solver
from .driver import State
from .gd import GD
from .homcg import HomCG
from .homgd import HomGD
from .homnewton import HomNewton
from .homnewton_cg import HomNewtonCG
from .many import solve_many
from .plots import plot
from .prepared import Prepared, prepare, solve, starting_point
from .registry import describe, load_solver, make_solver, register, solvers
from .results import History, Result

__all__ = [
    "ABPG",
    "AGD",
    "GD",
    "AccelHomGD",
    "Auto",
    "Batch",
    "Bregman",
    "History",
    "HomCG",
    "HomGD",
    "HomNewton",
    "HomNewtonCG",
    "Iterate",
    "Prepared",
    "Result",
    "Solver",
    "State",
    "describe",
    "load_solver",
    "make_solver",
    "plot",
    "prepare",
    "register",
    "solve",
    "solve_batch",
    "solve_many",
    "solvers",
    "starting_point",
]
