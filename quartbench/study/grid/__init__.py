"""What is a study, and how is one read? Records of what is to be run, and their reading from TOML and flags."""

from .entries import read_instances, read_methods
from .reading import read_study, shipped, with_flags
from .records import Cell, Group, Instance, Method, Study, as_dict, cells

__all__ = [
    "Cell",
    "Group",
    "Instance",
    "Method",
    "Study",
    "as_dict",
    "cells",
    "read_instances",
    "read_methods",
    "read_study",
    "shipped",
    "with_flags",
]
