"""What is a study, and how is one read? Records of what is to be run, and their reading from TOML and flags."""

from .entries import read_instances, read_methods
from .kinds import CONVEX, KINDS, RECOVERY, REGRESSION, Kind, kind_of
from .reading import read_study, shipped, with_flags
from .records import Cell, Group, Instance, Method, Study, as_dict, cells

__all__ = [
    "CONVEX",
    "KINDS",
    "RECOVERY",
    "REGRESSION",
    "Cell",
    "Group",
    "Instance",
    "Kind",
    "Method",
    "Study",
    "as_dict",
    "cells",
    "kind_of",
    "read_instances",
    "read_methods",
    "read_study",
    "shipped",
    "with_flags",
]
