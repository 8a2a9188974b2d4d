"""Quadratic inverse problems: phase retrieval, distance matrix completion, symmetric NMF, by DC and by others.

minimise F(x) = Σ (⟨x,Bᵢx⟩ − dᵢ)² over a cone. F is not convex: what is certified is each convex step of the paper's DC
algorithm, never that the point found is the one that the data came from.
"""

from . import examples
from . import peers as peers
from .auto import Auto
from .cd import CD
from .contract import Iterate, Method, make_method, methods, register
from .dc import DC
from .dc_inexact import DCAccelerated, DCInexact
from .distances import distances, onto_anchors, procrustes, rmsd
from .driver import State, solve
from .lbfgs import LBFGS
from .newton import Newton
from .nolips import NoLips
from .phase import phase, phase_error, spectral_start
from .problem import Problem
from .projected_lbfgs import ProjectedLBFGS
from .results import History, Result, Stage
from .rigidity import hinges, largest_part, loose_points, movable_points
from .symnmf import clustering_accuracy, normalised_mutual_information, similarity, symnmf

__all__ = [
    "CD",
    "DC",
    "LBFGS",
    "Auto",
    "DCAccelerated",
    "DCInexact",
    "History",
    "Iterate",
    "Method",
    "Newton",
    "NoLips",
    "Problem",
    "ProjectedLBFGS",
    "Result",
    "Stage",
    "State",
    "clustering_accuracy",
    "distances",
    "examples",
    "hinges",
    "largest_part",
    "loose_points",
    "make_method",
    "methods",
    "movable_points",
    "normalised_mutual_information",
    "onto_anchors",
    "phase",
    "phase_error",
    "procrustes",
    "register",
    "rmsd",
    "similarity",
    "solve",
    "spectral_start",
    "symnmf",
]
